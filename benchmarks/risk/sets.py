"""Conformal sets over many splits of a pool: how often they have the truth, and how large they are."""

from __future__ import annotations

import numpy as np
from scipy.stats import betabinom

from common.report import Table, notes
from risk.pools import SEED, pools
from structsvm.risk.bounds import conformal_quantile, conformal_rank

SPLITS, QUICK, N_SIZES = 200, 20, 20
ALPHAS = (0.05, 0.1, 0.2)
COLUMNS = {
    "data": ("data", ""),
    "alpha": ("promise: the truth inside %", "g"),
    "covered": ("inside %", ".2f"),
    "within": ("splits within their band of 95 %", ".1f"),
    "size": ("labels of a set", ".2f"),
    "labels": ("of", "d"),
    "alone": ("inside % if the best label is the set", ".1f"),
}
ABOUT = """
Half of the pool is held out, the other half is what comes later; over all splits. The truth is inside if all sets of an
output have it: of a sentence, the sets of all tokens; of trees and meanings the set is some of the 20 best ones, where
these have the true one often enough. The band of a split is what a beta-binomial distribution gives
for these numbers, with continuous scores; scores that are tied, and the best label that each set has, lift it above.
"""


def run(options):
    made = Table("Sets", COLUMNS, notes=notes(ABOUT))
    for pool in pools(options):
        worst, every, many = pool.strangeness()
        for alpha in ALPHAS:
            if np.isinf(worst).mean() >= alpha / 2:  # too many true outputs are none of the k best
                continue
            made.rows.append(row_of(pool, worst, every, many, alpha, QUICK if options.quick else SPLITS))
            yield made


def row_of(pool, worst, every, many, alpha, n_splits):
    """The means over splits; of sizes over the first `N_SIZES`."""
    rng, covered, within, sizes, n = np.random.default_rng(SEED), [], [], [], len(pool)
    for k in range(n_splits):
        order = rng.permutation(n)
        held, later = order[: n // 2], order[n // 2 :]
        most = conformal_quantile(worst[held], alpha)
        inside = int((worst[later] <= most).sum())
        rank, m = conformal_rank(len(held), alpha), len(later)
        low, high = betabinom.interval(0.95, m, rank, len(held) + 1 - rank)
        covered.append(inside / m)
        within.append(low <= inside <= high)
        if k < N_SIZES:
            counts = np.concatenate([(every[i] <= most).sum(axis=1) for i in later])
            sizes.append((counts if many else np.maximum(counts, 1)).mean())
    return {
        "data": pool.name,
        "alpha": 100.0 * (1.0 - alpha),
        "covered": 100.0 * np.mean(covered),
        "within": 100.0 * np.mean(within),
        "size": np.mean(sizes),
        "labels": max(own.shape[1] for own in every),
        "alone": 100.0 * (1.0 - pool.wrong.mean()),
    }
