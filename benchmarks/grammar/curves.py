"""Learning curve from tags: the parser as it comes, by number of training trees."""

from __future__ import annotations

import warnings

from common.measure import Clock
from common.report import Table, notes
from grammar.data import treebank
from structsvm.metrics import bracket_scores
from structsvm.tasks import GrammarParser

LONGEST = 40
SIZES = (100, 200, 400, 800, 1600)
COLUMNS = {
    "trees": ("trees", "d"),
    "C": ("C", "g"),
    "cpu": ("training, CPU s", ".1f"),
    "without": ("without a parse %", ".1f"),
    "f1": ("F1 %", ".2f"),
}


def run(options):
    trees, _ = treebank(LONGEST, options.quick)
    n = len(trees) // 5
    train, test = trees[:-n], trees[-n:]
    table = Table(f"From tags, up to {LONGEST} words: {n} others of the training part", COLUMNS, notes=notes(NOTES))
    for size in (10, 20) if options.quick else SIZES:
        with warnings.catch_warnings(), Clock() as clock:
            warnings.simplefilter("ignore")  # sentences without a parse count as they are
            parser = GrammarParser(random_state=0).fit(train[:: len(train) // size][:size])
        sentences = [tree.tokens() for tree in test]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            predicted = parser.predict(sentences)
            best = parser.predict_kbest(sentences, 1)
        row = {"trees": size, "C": parser.C_, "cpu": clock.cpu, "f1": 100.0 * bracket_scores(test, predicted).f1}
        table.rows.append(row | {"without": 100.0 * sum(found[0][1] == -float("inf") for found in best) / n})
        yield table


NOTES = """
`GrammarParser` as it comes, on trees at equal distances in the first four fifths of wsj_0001-0159, judged on the last
fifth. Sentences without a parse get constituents side by side.
"""
