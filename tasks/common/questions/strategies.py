"""Usefulness of an answer, by strategy.

The value of an input is the logarithm of a number that is large where its answer would teach much:

    margin          -(score of the best output - score of the second best)
    confidence      log(1 - P(best output))
    entropy         log H, H = -sum_y P(y) log P(y)
    span            log of the greatest probability that one predicted span is wrong
    risk            log of the expected number of wrong parts
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from structsvm.arrays import Floats

STRATEGIES = ("margin", "confidence", "entropy", "span", "risk")
RANDOM = "random"


def log_of(values: Floats | np.float64 | float) -> Floats:
    """Logarithms; minus infinity for what rounding has put at or below 0."""
    with np.errstate(divide="ignore"):
        logs: Floats = np.log(np.maximum(np.asarray(values, dtype=np.float64), 0.0))
    return logs
