"""The parser as it comes beside others that learn from the same trees, all lengths up to 70, one run."""

from __future__ import annotations

import gzip
import io
import tempfile
from pathlib import Path

from common.report import Table, notes
from grammar.commands import found
from grammar.data import treebank, up_to
from grammar.whole import LONGEST, TAGGED, WORDS, as_it_comes, judged
from structsvm.datasets import fetch_treebank_sample
from structsvm.structures.trees import read_trees

OURS = "structsvm, as it comes"
COLUMNS = {
    "parser": ("parser", ""),
    "terminals": ("from", ""),
    "cpu": ("training, CPU s", ".1f"),
    "accuracy": ("test acc %", ".1f"),
    "f1": ("test F1 %", ".2f"),
    "tags": ("tags right %", ".1f"),
    "rate": ("sentences/s", ".1f"),
    "memory": ("peak, MB", ".0f"),
}


def run(options):
    train, test = treebank(LONGEST, options.quick)
    title = f"Beside other parsers, {len(train)} trees to train on, {len(test)} to test on"
    table = Table(title, COLUMNS, notes=notes(NOTES))
    before = options.kept.parts.get("peers")
    reused = before and before["machine"]["cpu"] == options.machine["cpu"] and not (options.fresh or options.quick)
    old = [row for kept in options.kept.tables("peers") for row in kept.rows] if reused else []
    kept = [row for row in old if row["parser"] != OURS]
    for terminals in ("tags", WORDS, TAGGED, "both"):
        table.rows.append(as_it_comes(terminals, train, test)[1] | {"parser": OURS})
        yield table
    for program in found():
        rows = [row for row in kept if row["parser"] == program.name]
        table.rows += rows or theirs(program, source(len(train)), test)
        kept = [row for row in kept if row not in rows]
        yield table
    table.rows += kept  # programs that are not installed here
    yield table


def source(n):
    """The first n training trees as the treebank has them, with function tags and traces."""
    data = fetch_treebank_sample()
    with gzip.open(data.train_path.with_name("trees.train.mrg.gz"), "rt", encoding="utf-8") as file:
        lines = [line.rstrip() for line, tree in zip(file, data.train, strict=True) if up_to([tree], LONGEST)]
    return lines[:n]


def theirs(program, trees, test):
    """A row from words and one from both, of one training."""
    held_out = len(trees) // 10
    sentences = [tree.tokens() for tree in test]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        training = program.train(trees[:-held_out], trees[-held_out:], folder)
        for terminals in ("words", "both"):
            once, parsing = (program.parse(part, terminals == "both", folder) for part in (sentences[:1], sentences))
            predicted = read_trees(io.BytesIO(parsing.stdout.encode()))
            rate = (len(sentences) - 1) / (parsing.cpu - once.cpu)
            memory = max(training.peak, parsing.peak)
            row = {"parser": program.name, "cpu": training.cpu, "rate": rate, "memory": memory}
            yield judged(terminals, test, predicted) | row


NOTES = f"""
All trained and tested on wsj_0001-0159 and wsj_0160-0199 of NLTK's sample, sentences up to {LONGEST} words, one thread;
tags, where they are given, are the treebank's. Ours as in `grammar/whole`.

The others get the trees with function tags and traces, and the settings that they document for WSJ; of the training
trees BLLIP's back-off has the last tenth to itself. Their training is the whole command, one for both rows; their
sentences/s leave out the time of a command that parses one sentence. Their rows are kept, and made again with --fresh.
"""
