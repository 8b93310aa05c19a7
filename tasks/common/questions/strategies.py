"""Usefulness of an answer, by strategy, and how much it can change with the weights.

The value of an input is the logarithm of a number that is large where its answer would teach much:

    margin          -(score of the best output - score of the second best)
    confidence      log(1 - P(best output))
    entropy         log H, H = -sum_y P(y) log P(y)
    span            log of the greatest probability that one predicted span is wrong
    risk            log of the expected number of wrong parts

For a change of weights let Delta(y) be the change of the score of y, y* the output that was best, and

    slack   >= max_y Delta(y) - Delta(y*)
    spread  >= max_y Delta(y) - min_y Delta(y),

over the temperature where probabilities are meant. Then the margin falls by no more than slack, log P(y*) by no more
than slack, each probability changes by no more than the factor exp(spread), and so
``H' <= exp(spread) H + spread``. While the margin is greater than the slack, y* is still the best output; its parts are
then wrong with at most exp(spread) times the probability.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from structsvm.arrays import Floats

STRATEGIES = ("margin", "confidence", "entropy", "span", "risk")
RANDOM = "random"


class Reading(NamedTuple):
    """Values of inputs, and the margins of their best outputs: float64 arrays (n,)."""

    value: Floats
    margin: Floats


class Change(NamedTuple):
    """Bounds on the change of scores since inputs were read: float64 arrays (n,), see the head of the file."""

    slack: Floats
    spread: Floats

    def plus(self, other: Change) -> Change:
        """The bounds after both changes."""
        return Change(self.slack + other.slack, self.spread + other.spread)


def log_of(values: Floats | np.float64 | float) -> Floats:
    """Logarithms; minus infinity for what rounding has put at or below 0."""
    with np.errstate(divide="ignore"):
        logs: Floats = np.log(np.maximum(np.asarray(values, dtype=np.float64), 0.0))
    return logs


def _of_margin(read: Reading, change: Change, temperature: float) -> Floats:
    return read.value + change.slack


def _of_confidence(read: Reading, change: Change, temperature: float) -> Floats:
    best = -np.expm1(read.value)  # P(best output)
    return log_of(1.0 - best * np.exp(-change.slack / temperature))


def _of_entropy(read: Reading, change: Change, temperature: float) -> Floats:
    spread = change.spread / temperature
    return np.logaddexp(read.value + spread, log_of(spread))


def _of_parts(read: Reading, change: Change, temperature: float) -> Floats:
    is_kept = read.margin > change.slack
    return np.where(is_kept, read.value + change.spread / temperature, np.inf)


BOUNDS: dict[str, Callable[[Reading, Change, float], Floats]] = {
    "margin": _of_margin,
    "confidence": _of_confidence,
    "entropy": _of_entropy,
    "span": _of_parts,
    "risk": _of_parts,
}
