"""Orders by the assignment relaxation and by local search, on sets that are small enough for the exact ones."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np

from common.report import Table, notes
from structsvm.datasets import make_orderings
from structsvm.oracles.ordering import OrderingOracle
from structsvm.tasks import ItemOrderer

N_TRAIN, N_TEST, N_ITEMS, SEEDS = 200, 400, 8, 3
# (features of pairs, noise): pairs that make cycles agree with no order, without noise too.
SETS = ((0, 1.0), (1, 1.0), (4, 1.0), (4, 0.1))
COLUMNS = {
    "pairs": ("features of pairs", "d"),
    "noise": ("noise", "g"),
    "exact": ("trained exactly: wrong pairs %", ".1f"),
    "relaxed": ("by the relaxation: wrong pairs %", ".1f"),
    "found": ("best order found by search, % of sets", ".1f"),
}
NOTES = f"""
Up to {N_ITEMS} items (`make_orderings`), {N_TRAIN} sets to train on, {N_TEST} to test on, means over {SEEDS} seeds; the
estimator as it comes, predictions exact. Search: at the weights trained exactly, a set counts if its order scores as
much as the best.
"""


def run(options):
    """Yield the table."""
    table = Table("Orders: the relaxation and the search", COLUMNS, notes=notes(NOTES))
    for n_pairs, noise in SETS:
        found = [measured(n_pairs, noise, seed, options.quick) for seed in range(1 if options.quick else SEEDS)]
        means = zip(("exact", "relaxed", "found"), 100.0 * np.mean(found, axis=0), strict=True)
        table.rows.append({"pairs": n_pairs, "noise": noise} | dict(means))
        yield table


def measured(n_pairs, noise, seed, quick):
    """Shares of wrong pairs after both trainings, and of sets whose best order the search finds."""
    n_train, n_test = (60, 60) if quick else (N_TRAIN, N_TEST)
    X, y = make_orderings(n_train, 5, n_pairs, max_items=N_ITEMS, noise=noise, random_state=seed)
    X_test, y_test = make_orderings(n_test, 5, n_pairs, max_items=N_ITEMS, noise=noise, random_state=1000 + seed)
    exact = ItemOrderer(random_state=seed).fit(X, y)
    with patch.object(OrderingOracle, "most_exact", 1):
        relaxed = ItemOrderer(random_state=seed).fit(X, y)
    w, oracle = np.append(exact.coef_, exact.pair_coef_), OrderingOracle(5, n_pairs)
    best = oracle.predict(X_test, w)[0]
    with patch.object(OrderingOracle, "most_exact", 1):
        searched = oracle.predict(X_test, w)[0]
    scores = [[value(oracle, *pair, w) for pair in zip(X_test, orders, strict=True)] for orders in (best, searched)]
    errors = [wrong_pairs(model_orders(model, X_test), y_test) for model in (exact, relaxed)]
    return [*errors, np.mean(np.isclose(*scores))]


def model_orders(model, X):
    """Orders of the exact programme, whatever the model was trained with."""
    oracle = OrderingOracle(len(model.coef_), len(model.pair_coef_))
    return oracle.predict(X, np.append(model.coef_, model.pair_coef_))[0]


def value(oracle, x, order, w):
    indices, values = oracle.joint_feature(x, order)
    return np.asarray(w)[indices] @ values


def wrong_pairs(found, true):
    """The share of pairs of items in the wrong order, over all sets."""
    wrong = total = 0
    for a, b in zip(found, true, strict=True):
        place, truth = np.argsort(a), np.argsort(b)
        i, j = np.triu_indices(len(a), 1)
        wrong += np.count_nonzero((place[i] < place[j]) != (truth[i] < truth[j]))
        total += len(i)
    return wrong / total
