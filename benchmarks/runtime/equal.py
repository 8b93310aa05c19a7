"""Labels of real sentences in each program that predicts with an exported model, against Python's."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from common.report import Table, notes, verdict
from installed.features import SETS
from runtime.programs import PYTHON, made, measured, written
from runtime.tagging import known, templates_for
from structsvm.datasets import fetch_ud_english_ewt
from structsvm.tasks import SequenceLabeler

N_TO_TRAIN, N_TO_LABEL = 1500, 2000
COMPACT = "8 bits"
NOTES = f"""
models of {N_TO_TRAIN} sentences, whole and as `compact(bits=8)` returns them with the others; labels that differ from
Python's among those of {N_TO_LABEL} sentences, those of the test part first, then of the training part
"""


def run(options):
    """Yield the table of all data sets."""
    rows: list[dict[str, Any]] = []
    n = 40 if options.quick else N_TO_LABEL
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        programs = made(folder)
        columns = {
            "set": ("data set", ""),
            "model": ("model", ""),
            "sentences": ("sentences", ",d"),
            "n": ("tokens", ",d"),
        }
        columns |= {program: (f"other labels in {program}", ",d") for program in programs}
        for name_of_set, load in sets().items():
            print(f"  {name_of_set}", file=sys.stderr, flush=True)
            rows += rows_of(name_of_set, load, n, programs, folder)
            yield Table("Labels of real sentences", columns, rows, notes(NOTES))
    counts = [sum(row[key] for row in rows if row["model"] == COMPACT) for key in ("sentences", *programs)]
    is_met = counts[0] >= 5 * n and not any(row[program] for row in rows for program in programs)
    found = f"{counts[0]:,} sentences; of compact models " + ", ".join(
        f"{count} other labels in {program}" for count, program in zip(counts[1:], programs, strict=True)
    )
    target = verdict("all labels equal on 10,000 real sentences of five data sets", found, is_met)
    yield Table("Labels of real sentences", columns, rows, [*notes(NOTES), target])


def sets():
    """Five data sets by name: functions that return X, y to train on and X, y to test on."""
    return {data.name: data.load for data in SETS.values()} | {"UD English EWT": tags}


def tags():
    """Words and their parts of speech."""
    data = fetch_ud_english_ewt()
    return [
        [[getattr(word, field) for word in tree.words] for tree in part]
        for part in (data.train, data.test)
        for field in ("form", "upos")
    ]


def rows_of(name, load, n, programs, folder):
    """A row per model: how many labels of each program are not Python's."""
    X, y, X_test, _ = load()
    sentences, rows = [*X_test, *X][:n], []
    chosen, others = slice(0, min(n, N_TO_TRAIN)), slice(min(n, N_TO_TRAIN), n + n // 4)
    labeler = SequenceLabeler(random_state=0, **templates_for(X)).fit(X[chosen], y[chosen])
    written(folder, sentences)
    for model, one in (
        ("whole", labeler), (COMPACT, labeler.compact(bits=8, data=known(X[others], y[others], labeler.classes_))),
    ):  # fmt: skip
        one.save(folder / "model.svm", training_state=False)
        one.export(folder)
        labels = {program: measured(program, folder)["labels"] for program in (PYTHON, *programs)}
        wanted = labels.pop(PYTHON)
        row = {"set": name, "model": model, "sentences": len(sentences), "n": len(wanted)}
        rows.append(row | {program: differing(wanted, found) for program, found in labels.items()})
    return rows


def differing(wanted, found):
    """How many labels are others; all if there are more or fewer."""
    return sum(a != b for a, b in zip(wanted, found, strict=True)) if len(wanted) == len(found) else len(wanted)
