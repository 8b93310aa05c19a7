"""Weights that no output feels, which become 0: those below a size at which held-out outputs hardly change.

Three quarters of the weights of a tagger are below 1e-5 of the largest, and a file need not hold them. The others need
no more digits than that size has: in 16 bits they take half of the bytes. Weights of numbers, which multiply what
rounding changes, keep their digits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from structsvm.stored_values import exponents_of

if TYPE_CHECKING:
    from structsvm.arrays import Floats
    from structsvm.tasks.common.selection.search import Held

# Labels of held-out tokens that may change, as a share of what the metric counts: of chunks, where most tokens may be
# outside of any, or of tokens. So few change by chance: with a size of one in 10,000 tokens, names in Spanish news lose
# .1 points of F1 in other sentences. Changes fall with the power 1.8 of the size. At a quarter of it a twelfth as many
# change, and the same names lose less than .03.
MOST_CHANGED, SAFETY = 1e-3, 4.0
# Sizes that are tried, as shares of the largest weight: powers of the root of 2. Few held-out outputs would let go of
# weights that others need, so that no larger share is tried: the tagger of chunks and others end below it.
LEAST_SHARE, MOST_SHARE = 2.0**-20, 2.0**-5
# Bits of the other weights, where the largest one's unit is at most so small a share of the size. Of 140,000 tokens of
# chunks, names, addresses and citations one then has another label.
BITS, FINE = 16, 0.125


def least_weight(held_out: Sequence[tuple[Any, Any]], most_changed: float = MOST_CHANGED) -> float:
    """The size below which weights can be 0: a quarter of the largest that is hardly felt; 0 where all are felt.

    Parameters
    ----------
    held_out : sequence of (TaskModel, Examples)
        Models, and examples that they were not trained on.
    most_changed : float
        Outputs that may change, as a share of the chunks or tokens that the metric counts.
    """
    top = max(float(np.abs(model.weights).max(initial=0.0)) for model, _ in held_out)
    held_out = [model.narrowed(examples)[:2] for model, examples in held_out]  # other weights are not felt
    before = [model.outputs_of(examples) for model, examples in held_out]
    n_units = sum(n_counted(model.held_out_scores(examples)) for model, examples in held_out)

    def is_felt(size: float) -> bool:
        changed = 0
        for (model, examples), outputs in zip(held_out, before, strict=True):
            other = model.copy()
            other.weights = model.pruned(size)
            changed += int((other.outputs_of(examples) != outputs).sum())
        return changed > most_changed * n_units

    sizes = [0.0, *(top * 2.0 ** np.arange(np.log2(LEAST_SHARE), np.log2(MOST_SHARE) + 0.25, 0.5)).tolist()]
    return sizes[last_that(lambda k: not is_felt(sizes[k]), 0, len(sizes))] / SAFETY


def is_fine(weights: Floats, size: float) -> bool:
    """Whether weights in `BITS` change by far less than a size that no output feels."""
    top = np.abs(weights).max(initial=0.0)
    return bool(np.exp2(float(exponents_of(top, BITS))) <= FINE * size)


def n_counted(held: Held) -> float:
    """The units that a metric counts: chunks, of which F1 counts the true and the found ones, or tokens."""
    total = float(held.denominator.sum())
    return total / 2.0 if held.metric == "F1" else total


def last_that(holds: Callable[[int], bool], low: int, high: int) -> int:
    """The last number below `high` for which something holds that holds up to it; `low` where it is taken to hold."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low
