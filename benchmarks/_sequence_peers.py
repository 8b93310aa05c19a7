"""structsvm beside python-crfsuite, Wapiti and CRF++: the same attributes for everyone, one run.

Each competitor works in a process of its own. Their results are kept with a key of versions, data,
settings and machine, and reused by a later run unless --fresh; ours are always measured again.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path

import _peer_commands
from _attributes import attribute_lists, read_attributes, write_attributes
from _measure import package_version, run_command
from _report import Table
from _sequence_data import FETCH, head

from structsvm.columns import read_columns
from structsvm.datasets import write_columns
from structsvm.features import FeatureEncoder
from structsvm.metrics import chunk_scores, token_accuracy

LIMIT = 600             # seconds for the training of Wapiti and CRF++
RATIO_WANTED = 30.0     # python-crfsuite's lbfgs over ours
CHILD = Path(__file__).with_name("_peer.py")
SETS = [("CoNLL-2000", "crf++", 3), ("CoNLL-2002 es", "crf++", 3), ("CoNLL-2000", "rich", 1), ("CoNLL-2002 es", "rich", 1)]
COLUMNS = {
    "who": ("program", ""), "passes": ("passes", ".0f"), "features": ("features s", ".2f"),
    "train": ("training s", ".2f"), "cpu": ("CPU s", ".2f"), "ratio": ("x ours", ".1f"),
    "accuracy": ("accuracy %", ".2f"), "f1": ("F1 %", ".2f"), "tag_encoded": ("tok/s features given", ",.0f"),
    "tag_attributes": ("tok/s from attributes", ",.0f"), "tag_text": ("tok/s from text", ",.0f"),
    "peak": ("peak MB", ".0f"), "model": ("model MB", ".1f"), "remark": ("", ""),
}
NOTES = [
    "features: from attribute strings in memory (rows with 'text': from the column file) to the program's own training "
    "data; Wapiti, CRF++: all of training's wall time but the iterations, so with reading text and writing the model",
    "training: optimisation only, ours with certificate and bookkeeping; ours the median of N runs, the others' one run; "
    "CPU: of training (Wapiti, CRF++: of the whole command)",
    "x ours: training seconds over those of our default exact solver on the same attributes",
    "python-crfsuite: its defaults with feature.possible_transitions; its feature.minfreq counts pairs of attribute "
    "and label, so rare attributes are cut before, as for everyone; the row with feature.minfreq gets all of them",
    "from text: ours and CRF++ read the column file; python-crfsuite gets the attributes from plain Python",
    "peak: largest resident set of the process until the model is trained, libraries included",
    f"Wapiti, CRF++: one thread, interrupted after {LIMIT} s of training (CRF++ then has no model)",
]


def run(options):
    """One table for each data set and set of attributes."""
    kept = {} if options.fresh else {row["key"]: row for table in options.kept.tables("peers") for row in table.rows}
    for name, templates, min_count in SETS[: 1 if options.quick else None]:
        with tempfile.TemporaryDirectory() as folder:
            task, size = export(Path(folder), name, templates, min_count, 0.03 if options.quick else 1.0)
            rows = [row_of(who, task, options, kept) for who in competitors(task, options)]
        table = Table(f"{name}, {templates} templates, min_count {min_count} ({size})", COLUMNS, rows, list(NOTES))
        table.notes += compare(rows)
        yield table


def export(folder, name, templates, min_count, share):
    """Write what the competitors read; returns what `_peer` wants to know, and the sizes in words."""
    data = FETCH[name]()
    task = {"data": name, "share": share, "templates": templates, "min_count": min_count, "model": str(folder / "model")}
    task |= {key: str(folder / key) for key in ("train", "test", "uncut", "train_text", "test_text")}
    train, test = (head(read_columns(path), share) for path in (data.train_path, data.test_path))
    for part, columns in (("train", train), ("test", test)):
        X = list(zip(*(columns.drop_last().column(j) for j in range(columns.n_columns - 1)), strict=True))
        write_columns(task[f"{part}_text"], [list(zip(*s, strict=True)) for s in X], columns.column(-1))
    encoder = FeatureEncoder(templates, min_count)
    tokens = encoder.fit_transform(train.drop_last())
    write_attributes(task["train"], attribute_lists(encoder, tokens), train.column(-1))
    write_attributes(task["test"], attribute_lists(encoder, encoder.transform(test.drop_last())), test.column(-1))
    if min_count > 1:
        everything = FeatureEncoder(templates)
        write_attributes(task["uncut"], attribute_lists(everything, everything.fit_transform(train.drop_last())),
                         train.column(-1))
    return task, f"{tokens.n_tokens} tokens, {encoder.n_features} attributes; {test.n_tokens} tokens to test on"


def competitors(task, options):
    """What to run, as changes to the task: ours first."""
    ours = {"program": "structsvm", "times": options.repeat}
    yield ours | {"who": "structsvm, exact", "source": "attributes", "settings": {}}
    yield ours | {"who": "structsvm, exact, text", "source": "text", "settings": {}}
    yield ours | {"who": "structsvm, greedy, text", "source": "text", "settings": {"inference": "greedy"}}
    yield ours | {"who": "structsvm, averaged perceptron, text", "source": "text", "settings": {"solver": "perceptron"}}
    short = {"max_iterations": 5} if options.quick else {}
    for algorithm in ("lbfgs", "ap", "pa", "arow"):
        yield {"program": "crfsuite", "who": f"python-crfsuite, {algorithm}",
               "settings": {"algorithm": algorithm} | short}
    if task["min_count"] > 1:
        settings = {"algorithm": "lbfgs", "feature.minfreq": task["min_count"]} | short
        yield {"program": "crfsuite", "who": f"python-crfsuite, lbfgs, feature.minfreq {task['min_count']}",
               "train": task["uncut"], "settings": settings}
    if _peer_commands.wapiti():
        for algorithm in ("l-bfgs", "rprop"):
            yield {"program": "wapiti", "who": f"Wapiti, {algorithm}", "settings": {"algorithm": algorithm}}
    if _peer_commands.crfpp() and task["templates"] == "crf++":
        for algorithm in ("CRF", "MIRA"):
            yield {"program": "crfpp", "who": f"CRF++, {algorithm}", "settings": {"algorithm": algorithm}}


def row_of(competitor, task, options, kept):
    """Measure one competitor, or take its kept row."""
    key = key_of(competitor, task, options)
    if competitor["program"] != "structsvm" and key in kept:
        return kept[key]
    print(f"  {task['data']}, {task['templates']}: {competitor['who']}", file=sys.stderr, flush=True)
    limit = 20 if options.quick else LIMIT
    request = task | competitor
    row = {"who": competitor["who"], "key": key, "load": os.getloadavg()[0]}
    if competitor["program"] in ("structsvm", "crfsuite"):
        return row | json.loads(run_command([sys.executable, CHILD, json.dumps(request)]).stdout)
    runner = {"wapiti": _peer_commands.run_wapiti, "crfpp": _peer_commands.run_crfpp}[competitor["program"]]
    try:
        measured, predicted = runner(request, limit)
    except RuntimeError as error:
        return row | {"remark": f"failed, or no model after {limit} s", "error": str(error)[-300:]}
    gold = [labels for _, labels in read_attributes(task["test"])]
    row |= measured | {"accuracy": 100.0 * token_accuracy(gold, predicted), "f1": 100.0 * chunk_scores(gold, predicted).f1}
    return row | {"remark": "" if measured["in_time"] else f"interrupted after {limit} s"}


def key_of(competitor, task, options):
    """What a result depends on."""
    versions = {"structsvm": package_version("structsvm"), "crfsuite": package_version("python-crfsuite"),
                "wapiti": (_peer_commands.wapiti() or [None])[-1], "crfpp": (_peer_commands.crfpp() or [None])[-1]}
    about = [competitor["who"], versions[competitor["program"]], competitor["settings"], task["data"], task["share"],
             task["templates"], task["min_count"], options.machine["cpu"], options.machine["cores"],
             options.machine["python"]]
    return json.dumps(about)


def compare(rows):
    """Ratios to our default exact solver, in the rows, and the target in words."""
    by_name = {row["who"]: row for row in rows}
    ours, theirs = by_name["structsvm, exact"], by_name["python-crfsuite, lbfgs"]
    for row in rows:
        if row.get("train"):
            row["ratio"] = row["train"] / ours["train"]
    met = theirs["ratio"] >= RATIO_WANTED and ours["f1"] >= theirs["f1"]
    return [f"target: training at least {RATIO_WANTED:g} times faster than python-crfsuite's lbfgs at an F1 no lower: "
            f"{theirs['ratio']:.1f} times (CPU seconds: {theirs['cpu'] / ours['cpu']:.1f}), F1 {ours['f1']:.2f} against "
            f"{theirs['f1']:.2f}: {'met' if met else 'MISSED'}"]
