"""Control of losses of parts of outputs over many splits: how large they are, how much is found, and answered."""

from __future__ import annotations

import warnings
from unittest import mock

import numpy as np
from scipy.special import bdtr, xlogy

from common.report import Table, notes
from risk.pools import SEED, pools
from risk.wholes import parsers
from structsvm.risk import bounds
from structsvm.risk.bounds import certified_step, controlled_step, needed_for_threshold, selective_threshold
from structsvm.risk.curves import curves_of
from structsvm.risk.losses import LOSSES
from structsvm.risk.parts import mean_chance, parts_of, wrong_share
from structsvm.risk.steps import GRID, grid
from structsvm.tasks import GrammarParser, SemanticParser

SPLITS, QUICK, DELTA = 200, 20, 0.1
ALPHAS = (0.05, 0.1, 0.2)
# The default probability that a `RiskController` is misled.
DELTA_OF_ANSWERS = 0.05
COLUMNS = {
    "data": ("data", ""),
    "loss": ("loss", ""),
    "alpha": ("promise: loss at most %", "g"),
    "true": ("true parts", ".2f"),
    "mean_loss": ("conformal risk control: loss %", ".2f"),
    "mean_broken": ("conformal risk control: splits above %", ".1f"),
    "mean_found": ("conformal risk control: parts found", ".2f"),
    "mean_refused": ("conformal risk control: splits refused %", ".1f"),
    "test_loss": ("learn then test: loss %", ".2f"),
    "test_broken": ("learn then test: splits above %", ".1f"),
    "test_found": ("learn then test: parts found", ".2f"),
    "test_refused": ("learn then test: splits refused %", ".1f"),
    "bound_loss": ("by Hoeffding and Bentkus: loss %", ".2f"),
    "bound_found": ("by Hoeffding and Bentkus: parts found", ".2f"),
    "bound_refused": ("by Hoeffding and Bentkus: splits refused %", ".1f"),
    "half_loss": ("threshold 0.5: loss %", ".2f"),
    "half_found": ("threshold 0.5: parts found", ".2f"),
}
ABOUT = """
Half of the pool is held out, the other half is what comes later; over all splits. Parts are entities, fields, brackets
of trees, labels of sets and nodes of a taxonomy. Conformal risk control promises the mean over splits; learn then test
that the loss of a split is above with a probability of 10 % at most, counted here on a later half, which strays around
the true loss. By Hoeffding and Bentkus: the same with their bound (Bates et al. 2021) in place of bets, which is not
what `LossController` does. The threshold 0.5 promises nothing. A split is refused, and not counted, where no threshold
keeps the promise: the parser gives too many true brackets no probability.
"""
ANSWERS = {
    "data": ("data", ""),
    "alpha": ("promise: wrong parts of an answer at most %", "g"),
    "n": ("held out", "d"),
    "parts": ("parts of an output", ".2f"),
    "all": ("wrong if all is answered %", ".2f"),
    "answered": ("answered %", ".1f"),
    "loss": ("wrong %", ".2f"),
    "broken": ("splits above the promise %", ".1f"),
    "bound_answered": ("by Hoeffding and Bentkus: answered %", ".1f"),
    "bound_loss": ("by Hoeffding and Bentkus: wrong %", ".2f"),
}
OF_ANSWERS = """
`RiskController(loss="parts")`: half of the pool is held out, the other half is what comes later; over all splits. Wrong
is the share of the parts of an answer that are not true, as a mean over answers. It is above the promise with a
probability of 5 % at most, counted here on a later half, which strays around the true share. By Hoeffding and Bentkus:
the same with their bound in place of bets, which is not what `RiskController` does.
"""


def hoeffding_bentkus(sums, n, alpha, level, *, binary):
    """Whether tests say that a loss is at most alpha, as `says_below` (Bates et al. 2021, proposition 3)."""
    total = (sums(np.positive) + n * alpha).clip(0.0)  # sums are rounded
    mean = np.minimum(total / n, alpha)
    divergence = xlogy(mean, mean / alpha) + xlogy(1.0 - mean, (1.0 - mean) / (1.0 - alpha))
    return np.minimum(np.exp(-n * divergence), np.e * bdtr(np.ceil(np.round(total, 9)), n, alpha)) <= level


def by_mean(losses, held, alpha, order):
    """The step of conformal risk control, from the safe end on."""
    return controlled_step(losses.raised(from_last=order < 0).sums(held)[::order], held.sum(), alpha)


def by_test(losses, held, alpha, order):
    """The step of learn then test."""
    sums = losses.excess(held, alpha)
    return certified_step(lambda of: sums(of)[::order], int(held.sum()), alpha, DELTA, binary=losses.are_binary)


def by_bound(losses, held, alpha, order):
    """The same by the bound of Hoeffding and Bentkus."""
    with mock.patch.object(bounds, "says_below", hoeffding_bentkus):
        return by_test(losses, held, alpha, order)


def by_half(losses, held, alpha, order):
    """The step of the threshold 0.5."""
    return int(np.searchsorted(-GRID[::order], -0.5) if order == 1 else np.searchsorted(GRID[::-1], 0.5))


WAYS = {"mean": by_mean, "test": by_test, "bound": by_bound, "half": by_half}


def run(options):
    n_splits = QUICK if options.quick else SPLITS
    made = Table("Losses", COLUMNS, notes=notes(ABOUT))
    for pool in pools(options):
        if isinstance(pool.estimator, SemanticParser):  # meanings are right or wrong as a whole
            continue
        parts = parts_of(pool.estimator)
        likely, true = parts.likely(pool.estimator, pool.X), parts.true(pool.estimator, pool.X, pool.y)
        steps = grid()
        sizes = curves_of(steps, likely, true, lambda counts: counts.found)
        for loss in ("missed", "wrong"):
            losses = curves_of(steps, likely, true, LOSSES[loss].of)
            for alpha in ALPHAS:
                row = {"data": pool.name, "loss": loss, "alpha": 100.0 * alpha, "true": true.sizes.mean()}
                for way in WAYS:
                    row |= found_by(losses, sizes, alpha, way, -1 if LOSSES[loss].safe == "all" else 1, n_splits)
                made.rows.append(row)
        yield made
    yield from answers(options, n_splits)


def found_by(losses, sizes, alpha, way, order, n_splits):
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
    row = {f"{way}_refused": 100.0 * (1.0 - len(means) / n_splits)}
    if means:
        row |= {f"{way}_loss": 100.0 * np.mean(means), f"{way}_found": np.mean(found)}
        row[f"{way}_broken"] = 100.0 * np.mean(np.array(means) > alpha)
    return row


def answers(options, n_splits):
    """Shares of outputs that are answered, of taggers, classifiers and parsers."""
    made = Table("Answers with few wrong parts", ANSWERS, notes=notes(OF_ANSWERS))
    for name, estimator, X, y in models(options):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            predicted = estimator.predict(X)
            sure, lost = mean_chance(estimator, X, predicted), wrong_share(estimator, X, y, predicted)
            sizes = parts_of(estimator).true(estimator, X, predicted).sizes
        for alpha in ALPHAS:
            if len(sure) // 2 >= needed_for_threshold(alpha, DELTA_OF_ANSWERS):
                row = {"data": name, "alpha": 100.0 * alpha, "n": len(sure) // 2, "parts": sizes.mean()}
                made.rows.append(row | {"all": 100.0 * lost.mean()} | answered(sure, lost, alpha, n_splits))
        yield made


def models(options):
    """Names, estimators and later examples: of trees, parsers that have seen more than those of the pools."""
    for pool in pools(options):
        if not isinstance(pool.estimator, (SemanticParser, GrammarParser)):
            yield pool.name, pool.estimator, pool.X, pool.y
    yield from parsers(options.quick)


def answered(sure, lost, alpha, n_splits):
    """The means over splits, by bets and by the bound of Hoeffding and Bentkus."""
    rng, found, n = np.random.default_rng(SEED), {"": ([], []), "bound_": ([], [])}, len(sure)
    for _ in range(n_splits):
        order = rng.permutation(n)
        held, later = order[: n // 2], order[n // 2 :]
        for way, (shares, means) in found.items():
            test = hoeffding_bentkus if way else bounds.says_below
            with mock.patch.object(bounds, "says_below", test):
                passed = sure[later] > selective_threshold(sure[held], lost[held], alpha, DELTA_OF_ANSWERS)
            shares.append(passed.mean())
            means.append(lost[later][passed].mean() if passed.any() else 0.0)
    row = {}
    for way, (shares, means) in found.items():
        row |= {f"{way}answered": 100.0 * np.mean(shares), f"{way}loss": 100.0 * np.mean(means)}
        row[f"{way}broken"] = 100.0 * np.mean(np.array(means) > alpha)
    return row
