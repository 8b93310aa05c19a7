"""A tagger of words, whole and compact, in each program that predicts with it."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from common.report import Table, notes, verdict
from installed.features import SETS
from installed.tagging import THEIRS, Program, exported, row_of, scores
from runtime.programs import NODE, PYTHON, C, made, measured, written
from sequence import commands
from structsvm.tasks import SequenceLabeler

# Models: how the whole one is made compact.
MODELS: dict[str, dict[str, Any] | None] = {
    "whole": None,
    "32 bits": {"bits": 32},
    "16 bits": {"bits": 16},
    "8 bits": {"bits": 8},
    "8 bits, 900 kB": {"bits": 8, "budget": 900_000},
    "8 bits, 400 kB": {"bits": 8, "budget": 400_000},
    "8 bits, 200 kB": {"bits": 8, "budget": 200_000},
    "8 bits, 60 kB": {"bits": 8, "budget": 60_000},
}
COLUMNS = {
    "model": ("model", ""),
    "program": ("program", ""),
    "size": ("file kB", ",.0f"),
    "records": ("records right %", ".2f"),
    "fields": ("fields F1 %", ".2f"),
    "accuracy": ("tokens right %", ".2f"),
    "load": ("load CPU ms", ",.1f"),
    "resident": ("load MB", ".1f"),
    "speed": ("tok/s", ",.0f"),
    "relative": ("tok/s / C's", ".2f"),
    "remark": ("", ""),
}
CRFPP_LIMIT, CRFPP_MOST = 240, 5000  # seconds of training, and sentences
NOTES = """
words alone, of chunks and entities with their parts of speech, under the templates that come with the labeler; 16 and 8
bits, and a budget in bytes for Python's file: as `compact` returns them, with a fifth of the training part held out,
which the whole model is not trained on either, less its sentences with labels that the others do not have

file kB: Python's for Python, for the other programs the one that `export` writes

load: the model and its first sentence, in Python with the imports, in C and Node in the process that then labels; in
Chromium milliseconds of a clock

tok/s: from words in memory to labels, one sentence after the other, the best of all runs in 1.5
seconds, from 3 to 200 of them in every program; in Python all at once.
The first run in WebAssembly is the slowest: its code is compiled anew while it runs

python-crfsuite: with the features and parameters of the program that has it, from dicts. CRF++: the same
features as columns, as it comes, where there are no more than 5000 sentences; its time with the reading of a text file

every program gives the labels of Python, or the run fails
"""


def run(options):
    """Yield the table of the part's data set."""
    data, n = SETS[options.part.partition("-")[2]], 60 if options.quick else None
    old = [] if options.fresh else options.kept.tables(options.part)
    kept = {row["key"]: row for table in old for row in table.rows if "key" in row}
    X, y, X_test, y_test = (part[:n] for part in data.load())
    fifth = max(len(X) // 5, 1)
    rows: list[dict[str, Any]] = []
    title = f"{data.name}, {len(X) - fifth} sentences to train on"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        programs = made(folder)
        written(folder, X_test)
        whole = SequenceLabeler(random_state=0, **templates_for(X)).fit(X[fifth:], y[fifth:])
        for one, params in MODELS.items():
            print(f"  {data.name}: {one}", file=sys.stderr, flush=True)
            model, remark = compacted(whole, params, known(X[:fifth], y[:fifth], whole.classes_))
            if model is None:
                rows.append({"model": one, "remark": remark})
            else:
                rows += rows_of(one, model, programs, y_test, folder)
            yield Table(title, COLUMNS, rows, notes(NOTES))
        task = exported(folder, data, n)
        for who in peers(data, len(X)):
            rows.append(as_row(row_of(who, data, task, options, kept, limit=CRFPP_LIMIT)))
            yield Table(title, COLUMNS, rows, [*notes(NOTES), *compared(rows)])


def peers(data, n):
    """Other programs for n sentences: python-crfsuite, and for few of them CRF++ if the machine has it."""
    yield Program(THEIRS, "crfsuite", data.settings, is_ours=False)
    if n <= CRFPP_MOST and commands.crfpp():
        yield Program("CRF++, as it comes", "crfpp", {"algorithm": "CRF-L2"}, is_ours=False)


def as_row(row):
    """A row of another program, under the columns of this table, where a kept one stands already."""
    if "program" in row:
        return row
    size = row.get("model")
    about = {"model": row["who"].partition(",")[0], "program": "C++" if "CRF++" in row["who"] else "C"}
    return row | about | {"size": size and 1e3 * size, "speed": row.get("single", row.get("batch"))}


def templates_for(X):
    """Columns are read by the templates for words when these are asked for; words are by themselves."""
    return {} if isinstance(X[0][0], str) else {"templates": "rich"}


def known(X, y, labels):
    """The sentences whose labels the model has."""
    chosen = [k for k, own in enumerate(y) if set(own) <= set(labels)]
    return [X[k] for k in chosen], [y[k] for k in chosen]


def compacted(whole, params, held_out):
    """The model, and None; or None, and why there is none."""
    if params is None:
        return whole, None
    try:
        return whole.compact(**params, data=held_out), None
    except ValueError as error:
        return None, str(error)


def rows_of(name, model, programs, gold, folder):
    """A row per program; RuntimeError if one has other labels than Python."""
    model.save(folder / "model.svm", training_state=False)
    model.export(folder)
    found = {program: measured(program, folder) for program in (PYTHON, *programs)}
    labels = found[PYTHON]["labels"]
    about, rows = scores(gold, in_sentences(labels, gold)), []
    for program, row in found.items():
        if row.pop("labels") != labels:
            raise RuntimeError(f"{program} and Python label sentences of {name} differently")
        size = (folder / ("model.svm" if program == PYTHON else "model.bin")).stat().st_size / 1e3
        relative = row["speed"] / found[C]["speed"]
        rows.append({"model": name, "program": program, "size": size, **about, **row, "relative": relative})
    return rows


def in_sentences(labels, like):
    """Labels of tokens as lists of the lengths of other lists."""
    rest = iter(labels)
    return [[next(rest) for _ in sentence] for sentence in like]


def compared(rows):
    """The verdicts on what was aimed at."""
    of_c = {row["model"]: row for row in rows if row.get("program") == C and row["model"] in MODELS}
    whole, theirs = of_c["whole"], next(row for row in rows if row["model"] == "python-crfsuite")
    verdicts = [
        smallest(
            "a file smaller than CRFsuite's at no fewer tokens right",
            [row for row in of_c.values() if row["accuracy"] >= theirs["accuracy"]],
            theirs["size"],
        ),
        smallest(
            "a file below 1 MB at most 0.1 of fields F1 lower than the whole model's",
            [row for row in of_c.values() if row["fields"] >= whole["fields"] - 0.1],
            1000.0,
        ),
    ]
    speeds = [row["speed"] for row in rows if row.get("program") == NODE]
    if speeds:
        verdicts.append(verdict("200,000 tokens a second in Node", f"{min(speeds):,.0f}", min(speeds) >= 200_000))
    return verdicts


def smallest(target, rows, limit):
    """The verdict on the smallest file of models that are good enough."""
    if not rows:
        return verdict(target, "no model is as good", False)
    best = min(rows, key=lambda row: row["size"])
    return verdict(target, f"{best['model']}, {best['size']:,.0f} of {limit:,.0f} kB", best["size"] < limit)
