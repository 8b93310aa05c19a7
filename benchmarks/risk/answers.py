"""Answers of which a share alpha may be wrong, over many splits of a pool, beside thresholds on probabilities."""

from __future__ import annotations

import numpy as np
from sklearn.isotonic import IsotonicRegression

from common.report import Table, notes
from risk.pools import SEED, pools
from structsvm.risk.bounds import needed_for_threshold, selective_threshold

DELTA, SPLITS, QUICK = 0.05, 200, 20
ALPHAS = (0.01, 0.02, 0.05)
COLUMNS = {
    "data": ("data", ""),
    "alpha": ("promise: wrong at most %", "g"),
    "way": ("threshold by", ""),
    "answered": ("answered %", ".1f"),
    "risk": ("wrong %", ".2f"),
    "worst": ("wrong %, the worst of 20 splits", ".2f"),
    "broken": ("splits that break the promise %", ".1f"),
}
ABOUT = """
Half of the pool is held out, the other half is what comes later; over all splits. Wrong is an output that differs from
the true one anywhere.

RiskController: broken may be at most 5 % of splits (delta) by the true risk; a risk counted on the later half alone
strays around it.

Probability, calibrated: answered is where the probability, or what an isotonic regression on the held-out half makes of
it, is at least 1 - alpha.
"""


def by_promise(sure, wrong, later, alpha):
    """Whether a `RiskController` answers each later output."""
    return later > selective_threshold(sure, wrong, alpha, DELTA)


def by_probability(sure, wrong, later, alpha):
    """Whether each later output has the probability that is wanted."""
    return later >= 1.0 - alpha


def by_calibrated(sure, wrong, later, alpha):
    """The same, with probabilities that held-out outputs have calibrated."""
    return IsotonicRegression(out_of_bounds="clip").fit(sure, 1.0 - wrong).predict(later) >= 1.0 - alpha


WAYS = {"RiskController": by_promise, "probability": by_probability, "calibrated probability": by_calibrated}


def run(options):
    made = Table("Answers", COLUMNS, notes=notes(ABOUT))
    for pool in pools(options):
        for alpha in ALPHAS:
            if len(pool) // 2 >= needed_for_threshold(alpha, DELTA):
                made.rows += [row_of(pool, alpha, name, QUICK if options.quick else SPLITS) for name in WAYS]
                yield made


def row_of(pool, alpha, name, n_splits):
    """The means over splits."""
    rng, answered, risks, n = np.random.default_rng(SEED), [], [], len(pool)
    for _ in range(n_splits):
        order = rng.permutation(n)
        held, later = order[: n // 2], order[n // 2 :]
        passed = WAYS[name](pool.sure[held], pool.wrong[held], pool.sure[later], alpha)
        answered.append(passed.mean())
        risks.append(pool.wrong[later][passed].mean() if passed.any() else 0.0)
    return {
        "data": pool.name,
        "alpha": 100.0 * alpha,
        "way": name,
        "answered": 100.0 * np.mean(answered),
        "risk": 100.0 * np.mean(risks),
        "worst": 100.0 * np.quantile(risks, 0.95),
        "broken": 100.0 * np.mean(np.array(risks) > alpha),
    }
