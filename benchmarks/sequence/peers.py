"""structsvm beside python-crfsuite, Wapiti and CRF++: the same attributes for everyone, one run.

Each competitor runs in a process of its own. Their results are stored with a key of versions, data,
settings and machine, and reused by a later run unless --fresh; ours are always measured again.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from common.measure import package_version, run_module
from common.report import Table, notes
from sequence import commands
from sequence.attributes import attribute_lists, read_attributes, write_attributes
from sequence.data import FETCH, head
from structsvm.datasets import write_columns
from structsvm.features.columns import read_columns
from structsvm.features.encoder import FeatureEncoder
from structsvm.metrics import chunk_scores, token_accuracy

LIMIT = 1200  # seconds for the training of Wapiti and CRF++
RATIO_WANTED = 30.0  # python-crfsuite's lbfgs over ours
OURS, THEIRS = "structsvm, exact", "python-crfsuite, lbfgs"
SETS = [
    ("CoNLL-2000", "crf++", 3),
    ("CoNLL-2002 es", "crf++", 3),
    ("CoNLL-2000", "rich", 1),
    ("CoNLL-2002 es", "rich", 1),
]
COLUMNS = {
    "who": ("program", ""),
    "passes": ("passes", ".0f"),
    "features": ("features s", ".2f"),
    "train": ("training s", ".2f"),
    "cpu": ("CPU s", ".2f"),
    "ratio": ("x ours", ".1f"),
    "accuracy": ("accuracy %", ".2f"),
    "f1": ("F1 %", ".2f"),
    "tag_encoded": ("tok/s features given", ",.0f"),
    "tag_attributes": ("tok/s from attributes", ",.0f"),
    "tag_text": ("tok/s from text", ",.0f"),
    "peak": ("peak MB", ".0f"),
    "model": ("model MB", ".1f"),
    "remark": ("", ""),
}
NOTES = f"""
features: from attribute strings in memory (rows with "text": from the column file) to the program's own
training data; Wapiti: all of the command's wall time but the iterations, so with reading the text and writing
the model; CRF++: reading the text

training: optimisation only, ours with certificate and bookkeeping, CRF++'s with writing the model; ours the
median of some runs, the others' one run; CPU: the same in CPU seconds (Wapiti and CRF++: of the whole command)

x ours: training seconds over those of our default exact solver on the same attributes

python-crfsuite: its defaults, with feature.possible_transitions; its feature.minfreq counts pairs of
attribute and label, so rare attributes are cut before, as for everyone; the row with feature.minfreq gets all
of them

from text: ours and CRF++ read the column file; python-crfsuite gets attributes that plain Python makes

peak: largest resident set of the process until the model is trained, libraries included

Wapiti and CRF++: one thread, interrupted after {LIMIT} s (CRF++ then has no model)
"""


@dataclass(frozen=True)
class Competitor:
    """A program and its settings.

    Attributes
    ----------
    name : str
    program : {"structsvm", "crfsuite", "wapiti", "crfpp"}
    settings : dict
    source : {"attributes", "text", "uncut"}
        What it reads: attributes without the rare ones, the column file, or all attributes.
    """

    name: str
    program: str
    settings: dict = field(default_factory=dict)
    source: str = "attributes"

    @property
    def version(self):
        if self.program == "wapiti":
            return commands.wapiti()[-1]
        if self.program == "crfpp":
            return commands.crfpp()[-1]
        return package_version({"crfsuite": "python-crfsuite"}.get(self.program, self.program))


def run(options):
    """Yield one table per data set and set of attributes."""
    old = [] if options.fresh else options.kept.tables("peers")
    kept = {row["key"]: row for table in old for row in table.rows}
    for name, templates, min_count in SETS[: 1 if options.quick else None]:
        with tempfile.TemporaryDirectory() as folder:
            task, size = export(Path(folder), name, templates, min_count, 0.03 if options.quick else 1.0)
            rows = [row_of(who, task, options, kept) for who in competitors(task, options.quick)]
        title = f"{name}, {templates} templates, min_count {min_count} ({size})"
        yield Table(title, COLUMNS, rows, [*notes(NOTES), compare(rows)])


# ---- who and what ------------------------------------------------------------------------------


def export(folder, name, templates, min_count, share):
    """Write what the competitors read; returns the request of `sequence.peer`, and the sizes in words."""
    data = FETCH[name]()
    task = {"data": name, "share": share, "templates": templates, "min_count": min_count}
    files = ("attributes", "uncut", "test", "train_text", "test_text", "model")
    task |= {key: str(folder / key) for key in files}
    train, test = (head(read_columns(path), share) for path in (data.train_path, data.test_path))
    write_text(task["train_text"], train)
    write_text(task["test_text"], test)
    encoder = FeatureEncoder(templates, min_count)
    tokens = encoder.fit_transform(train.drop_last())
    test_tokens = encoder.transform(test.drop_last())
    write_attributes(task["attributes"], attribute_lists(encoder, tokens), train.column(-1))
    write_attributes(task["test"], attribute_lists(encoder, test_tokens), test.column(-1))
    everything = FeatureEncoder(templates)
    uncut = attribute_lists(everything, everything.fit_transform(train.drop_last()))
    write_attributes(task["uncut"], uncut, train.column(-1))
    sizes = (tokens.n_tokens, encoder.n_features, test_tokens.n_tokens)
    return task, "{} tokens, {} attributes; {} tokens to test on".format(*sizes)


def write_text(path, columns):
    names = [columns.column(j) for j in range(columns.n_columns)]
    X = [list(zip(*sentence, strict=True)) for sentence in zip(*names[:-1], strict=True)]
    write_columns(path, X, names[-1])


def competitors(task, quick):
    """All installed competitors, ours first."""
    yield Competitor(OURS, "structsvm")
    yield Competitor(f"{OURS}, text", "structsvm", source="text")
    yield Competitor(f"{OURS}, 15 passes", "structsvm", {"max_iter": 15})
    yield Competitor(f"{OURS}, 15 passes, C = 1", "structsvm", {"max_iter": 15, "C": 1.0})
    yield Competitor("structsvm, greedy, text", "structsvm", {"inference": "greedy"}, "text")
    yield Competitor("structsvm, averaged perceptron, text", "structsvm", {"solver": "perceptron"}, "text")
    short = {"max_iterations": 5} if quick else {}
    for algorithm in ("lbfgs", "ap", "pa", "arow"):
        yield Competitor(f"python-crfsuite, {algorithm}", "crfsuite", {"algorithm": algorithm} | short)
    if task["min_count"] > 1:
        settings = {"algorithm": "lbfgs", "feature.minfreq": task["min_count"]} | short
        yield Competitor(f"{THEIRS}, feature.minfreq {task['min_count']}", "crfsuite", settings, "uncut")
    if commands.wapiti():
        for algorithm in ("l-bfgs", "rprop"):
            yield Competitor(f"Wapiti, {algorithm}", "wapiti", {"algorithm": algorithm})
    if commands.crfpp() and task["templates"] == "crf++":
        for algorithm in ("CRF", "MIRA"):
            yield Competitor(f"CRF++, {algorithm}", "crfpp", {"algorithm": algorithm}, "text")


# ---- one row -----------------------------------------------------------------------------------


def row_of(who, task, options, kept):
    """Measure one competitor, or return its stored row."""
    key = key_of(who, task, options.machine)
    if who.program != "structsvm" and key in kept:
        return kept[key]
    print(f"  {task['data']}, {task['templates']}: {who.name}", file=sys.stderr, flush=True)
    request = task | {"settings": who.settings, "source": who.source, "times": options.repeat}
    row = {"who": who.name, "key": key, "load": os.getloadavg()[0]}
    if who.program in ("structsvm", "crfsuite"):
        request["program"] = who.program
        return row | run_module("sequence.peer", json.dumps(request))
    return row | command_row(who.program, request, 20 if options.quick else LIMIT)


def command_row(program, request, limit):
    """The row of Wapiti or CRF++."""
    runner = {"wapiti": commands.run_wapiti, "crfpp": commands.run_crfpp}[program]
    try:
        measured, predicted = runner(request, limit)
    except RuntimeError as error:
        print(error, file=sys.stderr)
        return {"remark": f"no model (limit: {limit} s)"}
    gold = [labels for _, labels in read_attributes(request["test"])]
    accuracy, f1 = token_accuracy(gold, predicted), chunk_scores(gold, predicted).f1
    remark = "" if measured["in_time"] else f"interrupted after {limit} s"
    return measured | {"accuracy": 100.0 * accuracy, "f1": 100.0 * f1, "remark": remark}


def key_of(who, task, machine):
    """Key of a result: all it depends on."""
    about = [who.name, who.version, who.settings, LIMIT if who.program in ("wapiti", "crfpp") else None]
    about += [task[name] for name in ("data", "share", "templates", "min_count")]
    about += [machine[name] for name in ("cpu", "cores", "python")]
    return json.dumps(about)


def compare(rows):
    """Add the ratios to our default exact solver to the rows; return the verdict on the target."""
    by_name = {row["who"]: row for row in rows}
    ours, theirs = by_name[OURS], by_name[THEIRS]
    for row in rows:
        row["ratio"] = row["train"] / ours["train"] if "train" in row else None
    able = [row for row in rows if row["who"].startswith(OURS) and row["f1"] >= theirs["f1"]]
    best = min(able or [ours], key=lambda row: row["train"])
    times = theirs["train"] / best["train"]
    return (
        f"target: training at least {RATIO_WANTED:g} times faster than python-crfsuite's lbfgs, at an F1 no "
        f"lower: {best['who']} is {times:.1f} times faster ({theirs['cpu'] / best['cpu']:.1f} in CPU seconds), F1 "
        f"{best['f1']:.2f} against {theirs['f1']:.2f}: {'met' if able and times >= RATIO_WANTED else 'MISSED'}"
    )
