"""Control of losses of parts of outputs over many splits: how large they are, and how many parts are found."""

from __future__ import annotations

import numpy as np

from common.report import Table, notes
from risk.pools import SEED, pools
from structsvm.risk.bounds import certified_step, controlled_step
from structsvm.risk.curves import curves_of
from structsvm.risk.losses import LOSSES
from structsvm.risk.parts import parts_of
from structsvm.risk.steps import GRID, grid
from structsvm.tasks import SemanticParser

SPLITS, QUICK, DELTA = 200, 20, 0.1
ALPHAS = (0.05, 0.1, 0.2)
COLUMNS = {
    "data": ("data", ""),
    "loss": ("loss", ""),
    "alpha": ("promise: loss at most %", "g"),
    "way": ("by", ""),
    "refused": ("splits that calibrate refuses %", ".1f"),
    "mean": ("loss %", ".2f"),
    "broken": ("splits above the promise %", ".1f"),
    "found": ("parts found of an output", ".2f"),
    "true": ("true ones", ".2f"),
}
ABOUT = """
Half of the pool is held out, the other half is what comes later; over all splits. Parts are entities, fields, brackets
of trees, labels of sets and nodes of a taxonomy. Conformal risk control promises the mean over splits; learn then test
that the loss of a split is above with a probability of 10 % at most, counted here on a later half, which strays around
the true loss. The threshold 0.5 promises nothing. A split is refused, and not counted, where no threshold keeps the
promise: the parser gives too many true brackets no probability.
"""


def by_mean(losses, held, alpha, order):
    """The step of conformal risk control, from the safe end on."""
    return controlled_step(losses.raised(from_last=order < 0).sums(held)[::order], held.sum(), alpha)


def by_test(losses, held, alpha, order):
    """The step of learn then test."""
    n = int(held.sum())
    return certified_step(losses.sums(held)[::order], n, alpha, DELTA, binary=losses.are_binary)


def by_half(losses, held, alpha, order):
    """The step of the threshold 0.5."""
    return int(np.searchsorted(-GRID[::order], -0.5) if order == 1 else np.searchsorted(GRID[::-1], 0.5))


WAYS = {"conformal risk control": by_mean, "learn then test": by_test, "threshold 0.5": by_half}


def run(options):
    made = Table("Losses", COLUMNS, notes=notes(ABOUT))
    for pool in pools(options):
        if isinstance(pool.estimator, SemanticParser):  # meanings are right or wrong as a whole
            continue
        parts = parts_of(pool.estimator)
        likely, true = parts.likely(pool.estimator, pool.X), parts.true(pool.estimator, pool.X, pool.y)
        steps = grid()
        sizes = curves_of(steps, likely, true, lambda counts: counts.found)
        for loss in ("missed", "wrong"):
            order = -1 if LOSSES[loss].safe == "all" else 1
            losses = curves_of(steps, likely, true, LOSSES[loss].of)
            for alpha in ALPHAS:
                for way in WAYS:
                    row = row_of(losses, sizes, alpha, way, order, QUICK if options.quick else SPLITS)
                    row |= {"data": pool.name, "loss": loss, "true": true.sizes.mean()}
                    made.rows.append(row)
            yield made


def row_of(losses, sizes, alpha, way, order, n_splits):
    """The means over splits."""
    rng, means, found, n = np.random.default_rng(SEED), [], [], len(losses)
    for _ in range(n_splits):
        shuffled, held = rng.permutation(n), np.zeros(n)
        held[shuffled[: n // 2]] = 1.0
        later, step = shuffled[n // 2 :], WAYS[way](losses, held, alpha, order)
        if step < 0:
            continue
        step = losses.n_steps - 1 - step if order < 0 else step
        means.append(losses.at(step)[later].mean())
        found.append(sizes.at(step)[later].mean())
    row = {"alpha": 100.0 * alpha, "way": way, "refused": 100.0 * (1.0 - len(means) / n_splits)}
    if means:
        row |= {"mean": 100.0 * np.mean(means), "broken": 100.0 * np.mean(np.array(means) > alpha)}
        row["found"] = np.mean(found)
    return row
