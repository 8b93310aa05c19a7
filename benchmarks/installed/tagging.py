"""Programs side by side on the same features: training, whole records right, speed, size, price of a first answer."""

from __future__ import annotations

import json
import re
import sys
import tempfile
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any

from common.measure import package_version, run_module
from common.report import Table, notes, verdict
from installed.features import SETS
from sequence import commands
from sequence.attributes import write_attributes
from structsvm.metrics import field_f1, record_accuracy, token_accuracy

OURS, THEIRS = "structsvm, as it comes", "python-crfsuite, the program's parameters"
GRID = {"c1": (0.0, 0.1, 1.0), "c2": (1e-3, 0.1, 1.0)}
LIMIT = 1200  # seconds of Wapiti's and CRF++'s training
COLUMNS = {
    "who": ("program", ""),
    "settings": ("settings", ""),
    "cpu": ("training CPU s", ".1f"),
    "records": ("records right %", ".2f"),
    "fields": ("fields F1 %", ".2f"),
    "accuracy": ("tokens right %", ".2f"),
    "batch": ("tok/s, all at once", ",.0f"),
    "threads": ("2 threads", ",.0f"),
    "single": ("tok/s, one by one", ",.0f"),
    "model": ("model MB", ".2f"),
    "load": ("load CPU ms", ".0f"),
    "alone": ("predictor=True", ".0f"),
    "resident": ("load MB", ".0f"),
    "remark": ("", ""),
}
NOTES = f"""
training: from dicts in memory to the model, the choice of C and loss included in ours; best of a grid: c1 of
{GRID["c1"]}, c2 of {GRID["c2"]}, by whole records right of the last fifth of the training part, its CPU seconds apart

load: imports, the model and its first sentence, CPU milliseconds and resident memory of a fresh process over one that
has imported what measures (NumPy among it); predictor=True: the milliseconds of `structsvm.load(path, predictor=True)`,
which imports neither scikit-learn nor scipy

CRF++: the dicts as columns, one per key, an underscore where a token lacks it, and a template per column

one import changed: the same calls as python-crfsuite's, of structsvm.interop.pycrfsuite

sklearn-crfsuite wraps python-crfsuite, whose figures are its own
"""


@dataclass(frozen=True)
class Program:
    """A program and its parameters; `data` is the features of all, or words alone."""

    name: str
    program: str
    settings: dict[str, Any] = field(default_factory=dict)
    data: str = "data"
    is_ours: bool = True


def run(options):
    """Yield the table of the part's data set."""
    data = SETS[options.part.partition("-")[2]]
    old = [] if options.fresh else options.kept.tables(options.part)
    kept = {row["key"]: row for table in old for row in table.rows}
    with tempfile.TemporaryDirectory() as folder:
        task = exported(Path(folder), data, 60 if options.quick else None)
        rows: list[dict[str, Any]] = []
        for who in programs(data):
            rows.append(row_of(who, data, task, options, kept))
            yield Table(f"{data.name}, {task['n']} sentences to train on", COLUMNS, rows, notes(NOTES))
        rows.append(best_of_grid(data, task, options, kept))
        yield Table(f"{data.name}, {task['n']} sentences to train on", COLUMNS, rows, [*notes(NOTES), *compared(rows)])


def programs(data):
    yield Program(OURS, "structsvm")
    yield Program("structsvm, words alone", "words", data="words")
    yield Program("structsvm, one import changed", "swapped", data.settings)
    yield Program(THEIRS, "crfsuite", data.settings, is_ours=False)
    for name, program, settings in (
        ("Wapiti, as it comes", "wapiti", {"algorithm": "l-bfgs"}),
        ("CRF++, as it comes", "crfpp", {"algorithm": "CRF-L2"}),
    ):
        if getattr(commands, program)():
            yield Program(name, program, settings, is_ours=False)


def exported(folder, data, n):
    """Write the features and the words; returns what the processes are asked, with the gold labels."""
    X, y, X_test, y_test = (part[:n] for part in data.load())
    features, of_test = ([data.features(sentence) for sentence in part] for part in (X, X_test))
    task = {"n": len(X), "gold": y_test, "folder": folder, "X": features, "y": y}
    for name, parts in (("data", (features, y, of_test, y_test)), ("words", (X, y, X_test, y_test))):
        task[name] = str(folder / f"{name}.json")
        Path(task[name]).write_text(json.dumps(parts), encoding="utf-8")
        Path(f"{task[name]}.first").write_text(json.dumps(parts[2][0]), encoding="utf-8")
    for name, part, labels in (("attributes", features, y), ("test", of_test, y_test)):
        task[name] = str(folder / name)
        write_attributes(task[name], [[names_of(token) for token in sentence] for sentence in part], labels)
    return task | as_column_files(folder, features, of_test, y, y_test)


def as_column_files(folder, X, X_test, y, y_test):
    """Write what CRF++ reads: a column per key of the dicts, the label last; and the templates, one per column."""
    parts = [[[columns_of(token) for token in sentence] for sentence in part] for part in (X, X_test)]
    keys = sorted({key for sentence in parts[0] for token in sentence for key in token})
    task = {"template_text": "".join(f"U{k}:%x[0,{k}]\n" for k in range(len(keys))) + "B\n"}
    for name, part, labels in (("train_text", parts[0], y), ("test_text", parts[1], y_test)):
        task[name] = str(folder / name)
        blocks = (
            "".join(
                f"{' '.join(token.get(key, '_') for key in keys)} {label}\n" for token, label in zip(*pair, strict=True)
            )
            for pair in zip(part, labels, strict=True)
        )
        Path(task[name]).write_text("\n".join(blocks) + "\n", encoding="utf-8")
    return task


def columns_of(features, prefix=""):
    """Values of a token's dict by key, those of inner dicts by both keys; false ones are left out."""
    found = {}
    for key, value in features.items():
        if isinstance(value, dict):
            found |= columns_of(value, f"{prefix}{key}:")
        elif value:
            found[f"{prefix}{key}"] = re.sub(r"\s", "_", value) if isinstance(value, str) else "1"
    return found


def names_of(features, prefix=""):
    """Attributes of a token's dict, as python-crfsuite names them; false ones are left out."""
    names = []
    for name, value in features.items():
        if isinstance(value, dict):
            names += names_of(value, f"{prefix}{name}:")
        elif isinstance(value, str):
            names.append(f"{prefix}{name}:{value}".replace(" ", "_"))
        elif value:
            names.append(f"{prefix}{name}".replace(" ", "_"))
    return names


# ---- one row -----------------------------------------------------------------------------------


def row_of(who, data, task, options, kept, limit=LIMIT, about=None):
    """Measure one program, or return its kept row; `about` is what is said of gold labels and the program's."""
    about = about or scores
    key = key_of(who, data, task, options)
    if not who.is_ours and key in kept:
        return kept[key]
    print(f"  {data.name}: {who.name}", file=sys.stderr, flush=True)
    row = {"who": who.name, "key": key, "settings": in_words(who.settings)}
    model = str(task["folder"] / who.program)
    if who.program in ("wapiti", "crfpp"):
        return row | of_command(who, task, model, 20 if options.quick else limit, about)
    request = {
        "program": who.program,
        "settings": who.settings,
        "data": task[who.data],
        "first": f"{task[who.data]}.first",
        "model": model,
    }
    row |= run_module("installed.program", "train", json.dumps(request))
    row |= run_module("installed.program", "load", json.dumps(request))
    if who.program in ("structsvm", "words"):
        row["alone"] = run_module("installed.program", "load", json.dumps(request | {"alone": True}))["load"]
    row |= run_module("installed.program", "tag", json.dumps(request)) | {"model": Path(model).stat().st_size / 1e6}
    if "C" in row:
        row["settings"] = f"{row.pop('loss')}, C = {row.pop('C'):.3g}"
    return row | about(task["gold"], row.pop("labels"))


def key_of(who, data, task, options):
    """The name under which a program's row is kept: what it was measured with."""
    version = package_version({"crfsuite": "python-crfsuite"}.get(who.program, "structsvm"))
    about = [who.name, who.settings, version, data.name, task["n"]]
    return json.dumps(about + [options.machine[name] for name in ("cpu", "cores", "python")])


def of_command(who, task, model, limit, about):
    """Measure Wapiti or CRF++."""
    run = {"wapiti": commands.run_wapiti, "crfpp": commands.run_crfpp}[who.program]
    try:
        found, labels = run(task | {"settings": who.settings, "model": model, "min_count": 1}, limit)
    except RuntimeError as error:
        print(error, file=sys.stderr)
        return {"remark": f"no model (limit: {limit} s)"}
    remark = "" if found["in_time"] else f"interrupted after {limit} s"
    speed = found["tag_attributes" if who.program == "wapiti" else "tag_text"]
    measured = {"cpu": found["cpu"], "model": found["model"], "batch": speed, "remark": remark}
    return measured | about(task["gold"], labels)


def best_of_grid(data, task, options, kept):
    """python-crfsuite with the c1 and c2 whose records of the last fifth of training are best, or its kept row."""
    who = Program("python-crfsuite, best of a grid", "crfsuite", data.settings | GRID, is_ours=False)
    key = key_of(who, data, task, options)
    if key in kept:
        return kept[key]
    n = task["n"] - task["n"] // 5
    X, y = task["X"], task["y"]
    part = task | {"data": str(task["folder"] / "fold.json"), "gold": y[n:], "n": n}
    Path(part["data"]).write_text(json.dumps([X[:n], y[:n], X[n:], y[n:]]), encoding="utf-8")
    Path(f"{part['data']}.first").write_text(json.dumps(X[n]), encoding="utf-8")
    tried = []
    for values in product(*GRID.values()):
        settings = data.settings | dict(zip(GRID, values, strict=True))
        one = Program(f"grid {values}", "crfsuite", settings, is_ours=False)
        tried.append((row_of(one, data, part, options, {}), settings))
    best = replace(who, settings=max(tried, key=lambda pair: pair[0]["records"])[1])
    searched = sum(row["cpu"] for row, _ in tried)
    remark = f"and {searched:.0f} s of CPU for the grid"
    return row_of(best, data, task, options, {}) | {"key": key, "remark": remark}


def in_words(settings):
    return ", ".join(f"{name} = {value}" for name, value in settings.items() if name in ("c1", "c2", "algorithm"))


def scores(gold, predicted):
    return {
        "records": 100.0 * record_accuracy(gold, predicted),
        "fields": 100.0 * field_f1(gold, predicted),
        "accuracy": 100.0 * token_accuracy(gold, predicted),
    }


def compared(rows):
    """The verdicts on what was aimed at."""
    by_name = {row["who"]: row for row in rows}
    ours, theirs = by_name[OURS], by_name[THEIRS]
    cheaper, faster = theirs["cpu"] / ours["cpu"], ours["batch"] / theirs["batch"]
    alone, both = ours["single"] / theirs["single"], ours["threads"] / theirs["batch"]
    return [
        verdict(
            "at least 10 times less CPU to train, at no fewer records right",
            f"{cheaper:.1f} times, {ours['records']:.2f} and {theirs['records']:.2f} %",
            cheaper >= 10.0 and ours["records"] >= theirs["records"],
        ),
        verdict(
            "from dicts, 3 times as fast all at once, 6 times with two threads, 1.5 times one by one",
            f"{faster:.1f}, {both:.1f} and {alone:.1f} times",
            faster >= 3.0 and both >= 6.0 and alone >= 1.5,
        ),
        verdict(
            "a file no larger", f"{ours['model']:.2f} and {theirs['model']:.2f} MB", ours["model"] <= theirs["model"]
        ),
    ]
