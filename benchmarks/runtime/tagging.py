"""A tagger of words, whole and compact, in each program that predicts with it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from common.measure import run_command, run_module
from common.report import Table, notes, verdict
from installed.features import SETS
from installed.tagging import THEIRS, Program, exported, row_of, scores
from structsvm.export.folders import WASM, compiled_wasm
from structsvm.tasks import SequenceLabeler

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
C_OPTIONS = ("-std=c99", "-O3", "-ffp-contract=off")
# Models: how the whole one is made compact.
MODELS: dict[str, dict[str, Any] | None] = {
    "whole": None,
    "32 bits": {"bits": 32},
    "16 bits": {"bits": 16},
    "8 bits": {"bits": 8},
    "8 bits, 200 kB": {"bits": 8, "budget": 200_000},
    "8 bits, 60 kB": {"bits": 8, "budget": 60_000},
}
PYTHON, C, NODE = "Python", "C", "WebAssembly in Node"
COLUMNS = {
    "model": ("model", ""),
    "program": ("program", ""),
    "size": ("file kB", ",.0f"),
    "records": ("records right %", ".2f"),
    "accuracy": ("tokens right %", ".2f"),
    "load": ("load CPU ms", ",.1f"),
    "resident": ("load MB", ".1f"),
    "speed": ("tok/s", ",.0f"),
    "remark": ("", ""),
}
NOTES = """
words alone under the templates that come with the labeler; 16 and 8 bits, and a budget in bytes for Python's file: as
`compact` returns them, with a fifth of the training part held out, which the whole model is not trained on either, less
its sentences with labels that the others do not have

load: the model and its first sentence, in Python with the imports, in C and Node in the process that then labels

tok/s: from words in memory to labels, one sentence after the other; in Python all at once

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
    with tempfile.TemporaryDirectory() as folder:
        programs = made(Path(folder))
        test = written(Path(folder), X_test)
        whole = SequenceLabeler(random_state=0).fit(X[fifth:], y[fifth:])
        for name, params in MODELS.items():
            print(f"  {data.name}: {name}", file=sys.stderr, flush=True)
            model, remark = compacted(whole, params, known(X[:fifth], y[:fifth], whole.classes_))
            if model is None:
                rows.append({"model": name, "remark": remark})
            else:
                rows += rows_of(name, model, programs, test, y_test, Path(folder))
            yield Table(title, COLUMNS, rows, notes(NOTES))
        task = exported(Path(folder), data, n)
        theirs = row_of(Program(THEIRS, "crfsuite", data.settings, is_ours=False), data, task, options, kept)
    rows.append(
        theirs | {"model": "python-crfsuite", "program": "C", "size": 1e3 * theirs["model"], "speed": theirs["single"]}
    )
    yield Table(title, COLUMNS, rows, [*notes(NOTES), *compared(rows)])


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


def made(folder):
    """The commands of the programs that are not Python's."""
    program = folder / "tag"
    runtime = ROOT / "structsvm" / "export" / "runtime"
    files = [str(HERE / "tag.c"), str(runtime / "structsvm_sequences.c"), "-I", str(runtime), "-lm", "-o", str(program)]
    subprocess.run(["cc", *C_OPTIONS, *files], check=True)
    found = {C: [str(program)]}
    node = shutil.which("node")
    try:
        (folder / WASM).write_bytes(compiled_wasm("sequences"))
    except ImportError:
        node = None
    if node is not None:
        for script in (HERE / "tag.mjs", runtime / "structsvm.mjs"):
            shutil.copy(script, folder)
        found[NODE] = [node, str(folder / "tag.mjs")]
    return found


def written(folder, X):
    """The sentences as programs read them: a line per token, its columns between tabs, and an empty one behind each."""
    lines = ["".join("\t".join([token] if isinstance(token, str) else token) + "\n" for token in x) for x in X]
    (folder / "words").write_text("\n".join([*lines, ""]), encoding="utf-8")
    (folder / "words.json").write_text(json.dumps(X), encoding="utf-8")
    return folder / "words"


def rows_of(name, model, programs, test, gold, folder):
    """A row per program; RuntimeError if one has other labels than Python."""
    model.save(folder / "model.svm", training_state=False)
    model.export(folder)
    row = run_module("runtime.program", str(folder / "model.svm"), f"{test}.json")
    labels = row.pop("labels")
    about = {key: value for key, value in scores(gold, labels).items() if key in ("records", "accuracy")}
    rows = [{"model": name, "program": PYTHON, "size": (folder / "model.svm").stat().st_size / 1e3, **about, **row}]
    for program, command in programs.items():
        found = json.loads(run_command([*command, folder / "model.bin", test]).stdout)
        if found.pop("labels") != [label for sentence in labels for label in sentence]:
            raise RuntimeError(f"{program} and Python label sentences of {name} differently")
        rows.append(
            {"model": name, "program": program, "size": (folder / "model.bin").stat().st_size / 1e3, **about, **found}
        )
    return rows


def compared(rows):
    """The verdicts on what was aimed at."""
    found = {(row["model"], row.get("program")): row for row in rows}
    theirs = found["python-crfsuite", "C"]
    compact = found["8 bits", C]
    verdicts = [
        verdict(
            "a file smaller than CRFsuite's at no fewer tokens right",
            f"{compact['size']:,.0f} and {theirs['size']:,.0f} kB, {compact['accuracy']:.2f} and "
            f"{theirs['accuracy']:.2f} %",
            compact["size"] < theirs["size"] and compact["accuracy"] >= theirs["accuracy"],
        )
    ]
    if ("8 bits", NODE) in found:
        speed = found["8 bits", NODE]["speed"]
        verdicts.append(verdict("200,000 tokens a second in Node", f"{speed:,.0f}", speed >= 200_000))
    return verdicts
