"""A tagger of words, whole and compact, in each program that predicts with it."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from common.report import Table, notes, verdict
from installed.features import SETS
from installed.tagging import THEIRS, Program, exported, row_of, scores
from runtime.paired import fall, fewer_right, in_words, right_of
from runtime.programs import NODE, PYTHON, C, made, measured, written
from sequence import commands
from structsvm.solvers import ElasticLikelihood
from structsvm.tasks import SequenceLabeler, TokenFeatures

# Models: how the whole one is made compact.
MODELS: dict[str, dict[str, Any] | None] = {
    "whole": None,
    "32 bits": {"bits": 32},
    "16 bits": {"bits": 16},
    "8 bits": {"bits": 8},
    "8 bits, 600 kB": {"bits": 8, "budget": 600_000},
    "8 bits, 400 kB": {"bits": 8, "budget": 400_000},
    "8 bits, 200 kB": {"bits": 8, "budget": 200_000},
    "8 bits, 60 kB": {"bits": 8, "budget": 60_000},
}
# Models from the features of the program that people run: how each is made compact.
SAME: dict[str, dict[str, Any] | None] = {
    "same features": None,
    "same features, 16 bits": {"bits": 16},
    "same features, 8 bits": {"bits": 8},
}
# Their C and l1: of addresses the program's own, of citations chosen on the first fifth of the training part.
NORMS = {"addresses": (50.0, 5.0), "citations": (10.0, 1.0)}
NEAR = 0.003  # the gap of these models: some of 5 %, the solver's own, differ by .2 % of the tokens
CRFSUITE = "python-crfsuite"
COLUMNS = {
    "model": ("model", ""),
    "program": ("program", ""),
    "size": ("file kB", ",.0f"),
    "records": ("records right %", ".2f"),
    "fields": ("fields F1 %", ".2f"),
    "fall": ("F1 below whole", ""),
    "accuracy": ("tokens right %", ".2f"),
    "fewer": ("below CRFsuite", ""),
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

same features: of addresses and citations those of the program that has CRFsuite, from all of its sentences, with both
norms: of addresses as the program has them, of citations as the first fifth of the training part chose them

F1 below whole: of fields, with the standard error of the difference, as both label the same sentences; below CRFsuite:
tokens right in percent, likewise

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
    rows_before = [row for table in old for row in table.rows if "key" in row]
    kept = {row["key"]: row for row in rows_before if "right" in row or "accuracy" not in row}
    X, y, X_test, y_test = (part[:n] for part in data.load())
    fifth = max(len(X) // 5, 1)
    rows: list[dict[str, Any]] = []
    right: dict[str, list[int]] = {}
    title = f"{data.name}, {len(X) - fifth} sentences to train on"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        programs, before = made(folder), None
        for whole, ways, held_out, tokens in groups(data, X, y, X_test, fifth):
            written(folder, tokens)
            for one, params in ways.items():
                print(f"  {data.name}: {one}", file=sys.stderr, flush=True)
                model, remark = compacted(whole, params, held_out)
                if model is None:
                    rows.append({"model": one, "remark": remark})
                else:
                    own, labels = rows_of(one, model, programs, y_test, folder)
                    before, right[one] = before or labels, right_of(y_test, labels)
                    rows += [row | {"fall": in_words(fall(y_test, before, labels))} for row in own]
                yield Table(title, COLUMNS, rows, notes(NOTES))
        task = exported(folder, data, n)
        for who in peers(data, len(X)):
            rows.append(as_row(row_of(who, data, task, options, kept, limit=CRFPP_LIMIT, about=scores_and_right)))
            compare(rows, right, list(map(len, y_test)))
            yield Table(title, COLUMNS, rows, [*notes(NOTES), *compared(rows)])


def groups(data, X, y, X_test, fifth):
    """Whole models, each with the ways to make it compact, sentences held out from it, and those to label."""
    whole = SequenceLabeler(random_state=0, **templates_for(X)).fit(X[fifth:], y[fifth:])
    yield whole, MODELS, known(X[:fifth], y[:fifth], whole.classes_), X_test
    if data.name in NORMS:
        features, of_test = ([data.features(sentence) for sentence in part] for part in (X, X_test))
        yield with_norms(*NORMS[data.name]).fit(features, y), SAME, None, of_test


def with_norms(C, l1):
    """A labeler with both norms, and the weights that CRFsuite has, as near to the optimum as CRFsuite goes."""
    solver = ElasticLikelihood(C=C, l1=l1, tol=NEAR, random_state=0)
    return SequenceLabeler(solver=solver, loss="log", features=TokenFeatures(possible_states=False))


def peers(data, n):
    """Other programs for n sentences: python-crfsuite, and for few of them CRF++ if the machine has it."""
    yield Program(THEIRS, "crfsuite", data.settings, is_ours=False)
    if n <= CRFPP_MOST and commands.crfpp():
        yield Program("CRF++, as it comes", "crfpp", {"algorithm": "CRF-L2"}, is_ours=False)


def scores_and_right(gold, labels):
    """Scores, and by sentence how many tokens are right."""
    return scores(gold, labels) | {"right": right_of(gold, labels)}


def compare(rows, right, lengths):
    """Say of each model how many tokens fewer than CRFsuite's it has right."""
    theirs = next(row["right"] for row in rows if row["model"] == CRFSUITE)
    for row in rows:
        if (own := right.get(row["model"])) is not None and "program" in row:
            row["chance"] = fewer_right(theirs, own, lengths)
            row["fewer"] = in_words(row["chance"])


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
    """A row per program, and the labels; RuntimeError if one has other labels than Python."""
    model.save(folder / "model.svm", training_state=False)
    model.export(folder)
    found = {program: measured(program, folder) for program in (PYTHON, *programs)}
    labels = found[PYTHON]["labels"]
    sentences: list[list[str]] = in_sentences(labels, gold)
    about, rows = scores(gold, sentences), []
    for program, row in found.items():
        if row.pop("labels") != labels:
            raise RuntimeError(f"{program} and Python label sentences of {name} differently")
        size = (folder / ("model.svm" if program == PYTHON else "model.bin")).stat().st_size / 1e3
        relative = row["speed"] / found[C]["speed"]
        rows.append({"model": name, "program": program, "size": size, **about, **row, "relative": relative})
    return rows, sentences


def in_sentences(labels, like):
    """Labels of tokens as lists of the lengths of other lists."""
    rest = iter(labels)
    return [[next(rest) for _ in sentence] for sentence in like]


def compared(rows):
    """The verdicts on what was aimed at."""
    of_c = [row for row in rows if row.get("program") == C]
    theirs = next(row for row in rows if row["model"] == CRFSUITE)
    verdicts = [smaller(of_c, theirs), below_a_megabyte([row for row in rows if row.get("program") in (PYTHON, C)])]
    speeds = [row["speed"] for row in rows if row.get("program") == NODE and row["model"] in MODELS]
    if speeds:
        verdicts.append(
            verdict("200,000 tokens a second from words in Node", f"{min(speeds):,.0f}", min(speeds) >= 200_000)
        )
    return verdicts


def smaller(rows, theirs):
    """The verdict on the best of the models with a smaller file than CRFsuite's."""
    target = "a file smaller than CRFsuite's at its tokens right: no fewer by more than the standard error"
    rows = [row for row in rows if "chance" in row and row["size"] < theirs["size"]]
    if not rows:
        return verdict(target, "no file is smaller", False)
    best = min(rows, key=lambda row: (row["chance"][0] > row["chance"][1], row["chance"][0]))
    found = f"{best['model']}, {best['size']:,.0f} of {theirs['size']:,.0f} kB, fewer by {best['fewer']} %"
    return verdict(target, found, best["chance"][0] <= best["chance"][1])


def below_a_megabyte(rows):
    """The verdict on the best model whose file, Python's or the exported one, is below 1 MB."""
    target = "a file below 1 MB at most 0.1 of fields F1 lower than the whole model's"
    small = [row for row in rows if row["size"] < 1000.0 and "fall" in row]
    if not small:
        return verdict(target, "no file is as small", False)
    best, whole = max(small, key=lambda row: row["fields"]), rows[0]
    found = f"{best['model']}, {best['program']}, {best['size']:,.0f} kB, lower by {best['fall']}"
    return verdict(target, found, best["fields"] >= whole["fields"] - 0.1)
