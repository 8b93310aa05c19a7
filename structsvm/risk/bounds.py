"""Statistics of held-out outputs: how high a score may be, and how often a threshold lets wrong outputs pass.

All of it holds for finite numbers of outputs and whatever the model is, if the outputs are exchangeable with later
ones: drawn from the same source, none of them used in training. Outputs, not their tokens: the tokens of a sentence
belong together.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from math import ceil, floor, log, log1p
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from scipy.special import bdtr, xlogy

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from structsvm.arrays import Floats, Integers

# Per test, the sum over its outputs of a function of each one's excess.
Sums: TypeAlias = "Callable[[Callable[[Floats], Floats]], Floats]"
# Sizes of bets: the largest, as a part of the one that loses all at a loss of 1; how many times smaller each is than
# the one before; and how many there are.
LARGEST, RATIO, N_SIZES = 1.0 - 1e-12, 2.0**0.5, 30
# How many times as many outputs the next start of `selective_threshold` has. Of 2, 4 and 8, on simulated outputs whose
# risk falls slowly or fast with confidence, or is the same, 4 answers the most or close to it.
APART = 4


def conformal_rank(n: int, alpha: float) -> int:
    """The rank k among n scores such that one more score is at most the k-th least with probability >= 1 - alpha.

    ``ceil((n + 1) (1 - alpha))``, of the decimal fraction that `alpha` is written as: floating-point products would
    be off by one here and there (0.07 of 100).
    """
    return ceil((n + 1) * (1 - Fraction(repr(float(alpha)))))


def needed_for_quantile(alpha: float) -> int:
    """The least n with ``conformal_rank(n, alpha) <= n``."""
    return ceil(1 / Fraction(repr(float(alpha)))) - 1


def conformal_quantile(scores: Floats, alpha: float, weights: Floats | None = None) -> float:
    """The score that one more output's score exceeds with probability alpha at most (split conformal prediction).

    Parameters
    ----------
    scores : ndarray of shape (n,)
        Scores of held-out outputs, the higher the stranger; infinity is allowed.
    alpha : float
        Between 0 and 1.
    weights : ndarray of shape (n,), optional
        How many times likelier each output is among the later ones than here, up to a common factor (Tibshirani et
        al. 2019). The new output's own weight is taken as the largest of them.

    Raises
    ------
    ValueError
        For fewer scores than `needed_for_quantile`, or weights under which they count as too few.

    Examples
    --------
    >>> import numpy as np
    >>> from structsvm.risk.bounds import conformal_quantile
    >>> conformal_quantile(np.arange(1.0, 10.0), alpha=0.1)
    9.0
    """
    n = len(scores)
    if conformal_rank(n, alpha) > n:
        raise ValueError(f"alpha={alpha:g} needs at least {needed_for_quantile(alpha)} held-out outputs, got {n}")
    order = np.argsort(scores, kind="stable")
    if weights is None:
        return float(scores[order[conformal_rank(n, alpha) - 1]])
    check_weights(weights)
    shares = np.cumsum(weights[order]) / (weights.sum() + weights.max())
    place = int(np.searchsorted(shares, 1.0 - alpha - 1e-12))
    if place == n:
        effective = weights.sum() / weights.max()
        raise ValueError(
            f"alpha={alpha:g} needs at least {needed_for_quantile(alpha)} held-out outputs, and under their weights "
            f"the {n} that there are count as {effective:.1f}"
        )
    return float(scores[order[place]])


def check_weights(weights: Floats | None) -> None:
    """ValueError for weights that are all 0."""
    if weights is not None and not weights.any():
        raise ValueError(f"the weights of all {len(weights)} held-out outputs are 0, or nothing beside the largest one")


def needed_for_threshold(alpha: float, delta: float) -> int:
    """The least n with ``(1 - alpha)^n <= delta``: with fewer outputs not even n right ones say enough."""
    return max(ceil(log(delta) / log1p(-alpha) - 1e-12), 1)


def says_below(sums: Sums, n: Integers | int, alpha: float, level: float, *, binary: bool) -> NDArray[np.bool_]:
    """Whether each of some tests says that an expected loss is at most alpha; wrongly with probability `level` at most.

    Parameters
    ----------
    sums : callable
        ``sums(of)`` returns per test the sum of ``of(excess)`` over its outputs. The excess of an output is
        ``weight (loss - alpha)``, with losses from 0 to 1 and weights of 1 at most: its mean is at most 0 where the
        weighted mean of the losses is at most alpha.
    n : int or ndarray of int
        The number of outputs of each test.
    alpha, level : float
    binary : bool
        Whether each loss is 0 or 1, and all weights are 1: the test is the binomial one, and exact. Otherwise
        `log_wealth` tests.
    """
    if binary:
        return np.asarray(bdtr(np.rint(sums(np.positive) + n * alpha), n, alpha) <= level, dtype=np.bool_)
    return log_wealth(sums, n, alpha, level) >= -log(level) - 1e-9


def log_wealth(sums: Sums, n: Integers | int, alpha: float, level: float) -> Floats:
    """The logarithm of what a stake of 1 has become in bets on small losses, per test of `says_below`.

    A bet of size b multiplies its stake by ``1 + b (alpha - loss)`` at each output, which is not negative for b up to
    ``1 / (1 - alpha)``. If the expected loss is above alpha, the expectation of their product is below 1. A mean over
    bets fixed by n, alpha and `level` alone has the same property, so it reaches ``1 / level`` with probability at most
    `level` (Markov; betting: Waudby-Smith and Ramdas 2024). Weights multiply b. The order of outputs plays no part.

    Half of the stake is on the size that is best for losses of 0 and 1 with the largest mean m that Hoeffding's bound
    accepts, ``n kl(m, alpha) = log(1 / level)``: it is ``b = (alpha - m) / (alpha (1 - alpha))``, and other losses with
    this mean win no less. The other half is on all larger sizes alike: they win more where losses vary less.
    """
    # Size k is 1 / RATIO^k of the largest, and is the best from this n on, but for rounding.
    mean = alpha * (1.0 - RATIO ** -(np.arange(1, N_SIZES) - 0.5))
    least = -log(level) / (xlogy(mean, mean / alpha) + xlogy(1.0 - mean, (1.0 - mean) / (1.0 - alpha)))
    best = np.searchsorted(least, n, side="right")
    sizes = LARGEST / (1.0 - alpha) * RATIO ** -np.arange(int(np.max(best)) + 1.0)
    wealth = larger = sums(partial(log_factors, sizes[0]))
    for k, b in enumerate(sizes[1:], start=1):
        on_best = sums(partial(log_factors, b))
        wealth = np.where(best == k, np.logaddexp(on_best, larger - log(k)) - log(2.0), wealth)
        larger = np.logaddexp(larger, on_best)  # the wealth of k + 1 stakes of 1
    return wealth


def log_factors(b: float, excess: Floats) -> Floats:
    """The logarithm of what a bet of size b multiplies its stake by at each output."""
    return np.log1p(np.maximum(-b * excess, -LARGEST))


def selective_threshold(
    confidence: Floats, losses: Floats, alpha: float, delta: float, weights: Floats | None = None
) -> float:
    """The lowest threshold for which the outputs of higher confidence have an expected loss of at most alpha.

    This holds with probability 1 - delta over the held-out outputs. Thresholds are tested from the highest down, and
    the first one that could be too low ends the tests (learn then test with a fixed sequence: Angelopoulos et al.
    2021). A single mistake among the first outputs would end them at once; so there are several starts, each with
    `APART` times as many outputs as the one before, which share delta.

    Given the confidence of the k-th output, the losses of the k - 1 above it are independent draws from all outputs
    above that threshold: so the tests are exact though the thresholds come from the data.

    Parameters
    ----------
    confidence : ndarray of shape (n,)
    losses : ndarray of shape (n,)
        From 0 to 1.
    alpha, delta : float
        Between 0 and 1.
    weights : ndarray of shape (n,), optional
        As of `conformal_quantile`; the largest of them has to be as large as any later one.

    Returns
    -------
    float
        Minus infinity if all outputs may pass, infinity if none may.

    Raises
    ------
    ValueError
        For fewer outputs than `needed_for_threshold`.
    """
    n, least = len(confidence), needed_for_threshold(alpha, delta)
    if n < least:
        raise ValueError(f"alpha={alpha:g} with delta={delta:g} needs at least {least} held-out outputs, got {n}")
    order = np.argsort(-confidence, kind="stable")
    own = np.ones(n) if weights is None else weights[order] / weights.max()
    sure, excess = confidence[order], own * (losses[order] - alpha)
    counts = np.append(np.flatnonzero(sure[1:] < sure[:-1]) + 1, n)
    n_starts = 1 + floor(log(n / least, APART))
    binary = bool(own.min() == 1.0 and np.isin(losses, (0.0, 1.0)).all())
    passes = says_below(lambda of: np.cumsum(of(excess))[counts - 1], counts, alpha, delta / n_starts, binary=binary)
    start, best = needed_for_threshold(alpha, delta / n_starts), -1
    for k in range(n_starts):
        first = int(np.searchsorted(counts, start * APART**k))
        last = first + int(np.argmin(np.append(passes[first:], False))) - 1
        best = max(best, last) if last >= first else best
    if best < 0:
        return np.inf
    return -np.inf if best == len(counts) - 1 else float(sure[counts[best]])


def mean_quantile(scores: Floats, shares: Floats, n: float, alpha: float) -> float:
    """The least score q such that the expected share of one more output's units with scores above q is at most alpha.

    Conformal risk control (Angelopoulos et al. 2022) of the share of units missed:
    ``n / (n + 1) mean_share(q) + 1 / (n + 1) <= alpha``.

    Parameters
    ----------
    scores, shares : ndarray of shape (n_units,)
        Scores of the units of all outputs, and the share of each in its output, times the output's weight.
    n : float
        The number of outputs; with weights their sum over the largest.
    alpha : float

    Raises
    ------
    ValueError
        For fewer outputs than `needed_for_quantile`.
    """
    limit = alpha * (n + 1.0) - 1.0 + 1e-9
    if limit < 0.0:
        raise ValueError(f"alpha={alpha:g} needs at least {needed_for_quantile(alpha)} held-out outputs, got {n:g}")
    order = np.argsort(-scores, kind="stable")
    above = np.append(0.0, np.cumsum(shares[order]))
    # The q of rank k from the top misses the k units above it, fewer where others equal it.
    allowed = int(np.searchsorted(above, limit, side="right")) - 1
    return float(scores[order[allowed]]) if allowed < len(scores) else -np.inf


def controlled_step(total: Floats, n: float, alpha: float) -> int:
    """The last step at which the loss expected of one more output is at most alpha, by conformal risk control.

    ``n / (n + 1) mean(step) + 1 / (n + 1) <= alpha`` is what holds at the step (Angelopoulos et al. 2022), of losses
    that do not fall from step to step: those that do are raised to their greatest one at the steps before.

    Parameters
    ----------
    total : ndarray of shape (n_steps,)
        Sums of losses from 0 to 1, by steps from the safest on, which no output of these has settled; with weights (see
        `conformal_quantile`), of losses times weights, where 1 is the most that a weight can be.
    n : float
        The number of outputs; with weights their sum.
    alpha : float

    Returns
    -------
    int
        -1 if there is none.
    """
    return int(np.searchsorted((total + 1.0) / (n + 1.0), alpha + 1e-9, side="right")) - 1


def certified_step(sums: Sums, n: int, alpha: float, delta: float, *, binary: bool) -> int:
    """The last step whose expected loss is at most alpha, with probability 1 - delta (learn then test).

    Steps are tested from the first on, each at level delta, and the first one that fails ends the tests: a fixed
    sequence (Angelopoulos et al. 2021). Losses may rise and fall.

    Parameters
    ----------
    sums : callable
        ``sums(of)`` returns an entry per step, as `says_below` takes it.
    n : int
        The number of outputs.
    alpha, delta : float
    binary : bool
        Whether each loss is 0 or 1, and all weights are 1.

    Returns
    -------
    int
        -1 if there is none.
    """
    passes = says_below(sums, n, alpha, delta, binary=binary)
    return int(np.argmin(np.append(passes, False))) - 1
