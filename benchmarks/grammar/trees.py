"""Brute force: numbers of trees against Catalan's, and each loss under each rescaling against all trees."""

from __future__ import annotations

from math import comb

import numpy as np

from common.report import Table, notes
from structsvm.oracles.cky import CKYOracle

LONGEST, QUICK, DRAWS = 6, 4, 10
GRAMMAR = "S -> S S | A S | 'a'\nA -> S S | 'a'"
COLUMNS = {
    "words": ("words", "d"),
    "catalan": ("Catalan", "d"),
    "one": ("trees of S -> S S", "d"),
    "two": ("trees of two symbols", "d"),
} | {
    f"{loss} {rescaling}": (f"{loss}, {rescaling}", ".1e")
    for loss in ("hamming", "f1", "zero_one")
    for rescaling in ("margin", "slack")
}


def run(options):
    table = Table("Brute force against all trees", COLUMNS, notes=notes(NOTES))
    for n in range(1, (QUICK if options.quick else LONGEST) + 1):
        words, rng = ["a"] * n, np.random.default_rng(n)
        row = {"words": n, "catalan": comb(2 * n - 2, n - 1) // n}
        row["one"] = len(list(CKYOracle("S -> S S | 'a'").kbest(words, [0.0, 0.0])))
        for loss in ("hamming", "f1", "zero_one"):
            oracle = CKYOracle(GRAMMAR, loss=loss)
            trees = [tree for tree, _ in oracle.kbest(words, np.zeros(oracle.n_features))]
            row["two"] = len({str(tree) for tree in trees})
            for rescaling in ("margin", "slack"):
                row[f"{loss} {rescaling}"] = max(error(oracle, words, trees, rescaling, rng) for _ in range(DRAWS))
        table.rows.append(row)
        yield table


def error(oracle, words, trees, rescaling, rng):
    """How far the value of the tree that inference finds is from the greatest one of all trees."""
    w, true = rng.normal(size=oracle.n_features), trees[rng.integers(len(trees))]

    def value(tree):
        loss, score = oracle.loss(true, tree), w @ oracle.joint_feature(words, tree)
        return loss + score if rescaling == "margin" else loss * (1.0 + score - w @ oracle.joint_feature(words, true))

    return abs(max(map(value, trees)) - value(oracle.argmax(words, w, true, rescaling)))


NOTES = f"""
Trees of k best, all different, beside the number of binary trees; with the rules {GRAMMAR!r}, {DRAWS} draws of weights
and of a true tree: how far the value of the tree of loss-augmented inference is from the greatest one.
"""
