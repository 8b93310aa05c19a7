"""Weights that no output feels, which become 0: those below a size at which held-out outputs hardly change.

Three quarters of the weights of a tagger are below 1e-5 of the largest, and a file need not hold them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

# Share of the held-out outputs, such as labels of tokens, that may change: with five times as many, names in Spanish
# news, where most tokens are outside, lose .3 points of F1.
MOST_CHANGED = 1e-4
# Sizes that are tried, as shares of the largest weight: powers of the root of 2. Few held-out outputs would let go of
# weights that others need, so that no larger share is tried: the tagger of chunks and others end below it.
LEAST_SHARE, MOST_SHARE = 2.0**-20, 2.0**-5


def least_weight(held_out: Sequence[tuple[Any, Any]], most_changed: float = MOST_CHANGED) -> float:
    """The largest tried size below which weights can be 0; 0 where even the smallest change too much.

    Parameters
    ----------
    held_out : sequence of (TaskModel, Examples)
        Models, and examples that they were not trained on.
    most_changed : float
        The share of outputs that may change.
    """
    before = [model.outputs_of(examples) for model, examples in held_out]
    n_outputs = sum(map(len, before))
    top = max(float(np.abs(model.weights).max(initial=0.0)) for model, _ in held_out)

    def is_felt(size: float) -> bool:
        changed = 0
        for (model, examples), outputs in zip(held_out, before, strict=True):
            other = model.copy()
            other.weights = model.pruned(size)
            changed += int((other.outputs_of(examples) != outputs).sum())
        return changed > most_changed * n_outputs

    sizes = [0.0, *(top * 2.0 ** np.arange(np.log2(LEAST_SHARE), np.log2(MOST_SHARE) + 0.25, 0.5)).tolist()]
    return sizes[last_that(lambda k: not is_felt(sizes[k]), 0, len(sizes))]


def last_that(holds: Callable[[int], bool], low: int, high: int) -> int:
    """The last number below `high` for which something holds that holds up to it; `low` where it is taken to hold."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low
