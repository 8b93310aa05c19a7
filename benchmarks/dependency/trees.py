"""Brute force: numbers of trees against their closed forms, and inference with losses against all labelled trees."""

from __future__ import annotations

from itertools import product
from math import comb

import numpy as np

from common.report import Table, notes
from structsvm.features.arc_templates import ArcTemplates
from structsvm.oracles.arborescence import ArborescenceOracle
from structsvm.oracles.eisner import EisnerOracle
from structsvm.structures.dependencies import crossing_arcs

LONGEST, QUICK, DRAWS, N_LABELS = 5, 3, 50, 2
KINDS = {"projective": EisnerOracle, "all": ArborescenceOracle}
FORMS = {"margin": lambda loss, more: loss + more, "slack": lambda loss, more: loss * (1.0 + more)}
COLUMNS = {
    "trees": ("trees", ""),
    "words": ("words", "d"),
    "known": ("closed form", "d"),
    "kbest": ("trees of k best", "d"),
    "margin": ("margin: largest error", ".1e"),
    "slack": ("slack: largest error", ".1e"),
}


def is_tree(heads):
    """Whether one word has head 0, and all others are below it."""
    if heads.count(0) != 1:
        return False
    for m in range(1, len(heads) + 1):
        for _ in heads:
            m = heads[m - 1] if m else 0
        if m:
            return False
    return True


def all_outputs(n, projective, n_labels):
    """Heads and labels of all labelled trees, (n_trees, n, 2)."""
    trees = [list(heads) for heads in product(range(n + 1), repeat=n) if is_tree(list(heads))]
    trees = [heads for heads in trees if not (projective and crossing_arcs(heads))]
    labels = product(range(n_labels), repeat=n)
    return np.array([list(zip(heads, names)) for names in labels for heads in trees], dtype=np.int32)


def run(options):
    table = Table("Brute force against all trees", COLUMNS, notes=notes(NOTES))
    templates = ArcTemplates(("word",), ["h.word m.word dist"], ["m.word h.word dir"])
    for kind, oracle_of in KINDS.items():
        for n in range(1, (QUICK if options.quick else LONGEST) + 1):
            rng, words = np.random.default_rng(n), np.arange(2, n + 2, dtype=np.int32)[:, None]
            one = oracle_of(1, templates, arc_bits=8, row_bits=8)
            known = n ** (n - 1) if kind == "all" else comb(3 * n - 2, n - 1) // n
            row = {"trees": kind, "words": n, "known": known}
            row["kbest"] = len({output.tobytes() for output, _ in one.kbest(words, np.zeros(one.n_features))})
            oracle = oracle_of(N_LABELS, templates, arc_bits=8, row_bits=8)
            outputs = all_outputs(n, kind == "projective", N_LABELS)
            for form in oracle.rescalings:
                row[form] = max(error(oracle, words, outputs, form, rng) for _ in range(DRAWS))
            table.rows.append(row)
            yield table


def error(oracle, words, outputs, form, rng):
    """How far the most violated constraint is from the greatest value of all trees."""
    w = rng.normal(size=oracle.n_features).astype(np.float32)
    scores = oracle.decoder(len(words)).table(words, w)[outputs[..., 0], np.arange(len(words)), outputs[..., 1]]
    true = int(rng.integers(len(outputs)))
    loss, totals = (outputs != outputs[true]).any(axis=2).sum(axis=1), scores.sum(axis=1, dtype=np.float64)
    b, psi = oracle.bind([words], [outputs[true]], rescaling=form).separate(0, w)
    return abs(max(FORMS[form](loss, totals - totals[true]).max(), 0.0) - (b - psi @ w.astype(np.float64)))


NOTES = f"""
Trees with one word below the root. Closed forms: binomial(3n - 2, n - 1) / n projective ones, n^(n - 1) of all
(Cayley). Errors: of {DRAWS} draws of weights and of a true tree, {N_LABELS} labels, how far the violation of the
constraint that inference returns is from the greatest one of all labelled trees. Weights are float32.
"""
