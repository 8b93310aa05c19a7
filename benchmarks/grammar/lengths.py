"""Time of parsing against length, and its exponent: the parser as it comes, from tags, from words, from both."""

from __future__ import annotations

from functools import partial

import numpy as np

from common.measure import repeat
from common.report import Table, notes
from grammar.data import treebank
from structsvm.tasks import GrammarParser

LENGTHS, QUICK, LONGEST = (10, 20, 40, 80, 160), (10, 20), 25
SENTENCES = 8
KINDS = {"tags": "from tags, ms", "words": "from words, ms", "both": "from both, ms"}
COLUMNS = {"length": ("words", "d")} | {kind: (title, ".3f") for kind, title in KINDS.items()}


def run(options):
    train, test = treebank(LONGEST, options.quick)
    parsers = {kind: GrammarParser(C=0.3, max_iter=1, terminals=kind, random_state=0).fit(train) for kind in KINDS}
    tokens = [token for tree in test for token in tree.tokens()]
    table = Table("Time against length", COLUMNS, notes=notes(NOTES))
    for n in QUICK if options.quick else LENGTHS:
        starts = np.linspace(0, len(tokens) - n, SENTENCES, dtype=int).tolist()
        sentences = [tokens[start : start + n] for start in starts]
        row = {"length": n}
        for kind, parser in parsers.items():
            cpu = repeat(partial(parser.model_.predict, sentences, on_no_parse=None), 5)[1].cpu
            row[kind] = 1000.0 * cpu / SENTENCES
        table.rows.append(row)
        yield table
    before, last = table.rows[-2:]
    for kind in KINDS:
        exponent = np.log(last[kind] / before[kind]) / np.log(last["length"] / before["length"])
        table.notes.append(f"Exponent of the last doubling, from {kind}: {exponent:.2f}.")
    yield table


NOTES = f"""
Trained in one pass on the sentences of up to {LONGEST} words of wsj_0001-0159; {SENTENCES} stretches of the test part's
words in a row, which cross the borders of sentences. One thread, CPU milliseconds a sentence, the best of five.
"""
