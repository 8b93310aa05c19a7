"""Compact models: weights that matter least are 0, the others have fewer bits."""

from __future__ import annotations

import io
import math
from functools import cache
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from structsvm.solvers.choosing import is_loss
from structsvm.tasks.common.selection.pruning import last_that
from structsvm.tasks.common.selection.search import Held, difference, ratio

if TYPE_CHECKING:
    from structsvm.tasks.common.examples import Examples
    from structsvm.tasks.common.model import TaskModel

    Model = TypeVar("Model", bound=TaskModel)


def shares(step: float) -> list[float]:
    """Sizes below which weights become 0, as shares of the largest: 2 to every multiple of a step from -20 to 0."""
    return [0.0, *(2.0 ** np.arange(-20.0, step / 2.0, step)).tolist()]


# Scores are noisy, and each takes a prediction; a file is to use the bytes that it may have.
OF_SCORES, OF_BYTES = shares(1 / 4), shares(1 / 16)


def _is_count(value: object) -> bool:
    return type(value) is int and value >= 0


def _is_score(value: object) -> bool:
    return type(value) in (int, float) and math.isfinite(value)  # type: ignore[arg-type]


# Entries of a report, and whether a value is one.
ENTRIES = {
    "bytes": _is_count,
    "bytes_before": _is_count,
    "bits": lambda value: type(value) is int and value in (8, 16, 32),
    "least_weight": lambda value: _is_score(value) and value >= 0.0,
    "metric": lambda value: isinstance(value, str),
    "score": _is_score,
    "score_before": _is_score,
}


def compacted(
    model: Model, *, budget: int | None, tolerance: float | None, bits: int, examples: Examples | None
) -> Model:
    """A compact copy of a model, with its report; see `TaskEstimator.compact`.

    Both bytes and score fall as the size below which weights are 0 rises, the score but for noise.
    """
    top, bytes_before = float(np.abs(model.weights).max(initial=0.0)), size_of(model)
    sizes = [top * share for share in (OF_SCORES if budget is None else OF_BYTES)]
    report: dict[str, float | str] = {"bytes": bytes_before, "bytes_before": bytes_before, "bits": bits}
    if examples is not None:
        held = model.output_scores(examples)
        metric, before = held.metric, ratio(*held[1:])[0]
        if not held.denominator.sum() > 0.0:
            raise ValueError(f"data tells nothing about the {metric}: it has nothing that this counts")
        if before == 0.0 and not is_loss(metric) and (budget is None or tolerance is not None):
            raise ValueError(f"the {metric} of data is 0 before any weight is: it can fall no further")
        report |= {"metric": metric, "score": before, "score_before": before}

    def small(k: int) -> Model:
        """The model with all of its features."""
        other = model.in_few_bits(sizes[k], bits)
        other.report = report | {"least_weight": sizes[k]}
        return other

    @cache
    def scores(k: int) -> Held | None:
        """The scores of examples, once per size; None without any."""
        return None if examples is None else small(k).output_scores(examples)

    def change(k: int) -> tuple[float, float]:
        """How far the score falls, and the standard error of that."""
        after = scores(k)
        return (0.0, 0.0) if after is None else fall(held, after)

    chosen = 0
    if budget is not None:
        if size_of(small(0).narrowed_by_weights()) > budget:
            chosen = 1 + last_that(lambda k: size_of(small(k).narrowed_by_weights()) > budget, 0, len(sizes))
        if chosen == len(sizes):
            smallest = size_of(small(len(sizes) - 1).narrowed_by_weights())
            raise ValueError(f"budget={budget} is less than what the smallest file takes, {smallest} bytes")
        if chosen > 0 and bytes_before <= budget:
            raise ValueError(
                f"budget={budget} holds the file of {bytes_before} bytes as it is, and not the report of what would be "
                f"done: a compact model has {size_of(small(0).narrowed_by_weights())} bytes with all of its weights"
            )
        if tolerance is not None and (worse := change(chosen)[0]) > tolerance:
            raise ValueError(
                f"a file of budget={budget} bytes has a {metric} that is {worse:.4f} worse than that of the "
                f"model, which is more than tolerance={tolerance}: give more bytes or bits"
            )
    elif examples is not None:
        most = ratio(*held[1:])[1] if tolerance is None else tolerance
        chosen = last_that(lambda k: change(k)[0] <= most, 0, len(sizes))
        if tolerance is None:
            # Both models err on the same examples: the error of the fall is far smaller than that of a score.
            falls = ((k, *change(k)) for k in range(chosen, 0, -1))
            chosen = next((k for k, worse, error in falls if worse <= error), 0)
    if (after := scores(chosen)) is not None:
        report["score"] = ratio(*after[1:])[0]
    found = small(chosen).narrowed_by_weights()
    for _ in range(3):  # the number of bytes is itself in the file, and may end on another digit
        found.report = report | {"least_weight": sizes[chosen]}
        report["bytes"] = size_of(found)
    return found


def fall(before: Held, after: Held) -> tuple[float, float]:
    """How far the score of the same examples falls (a loss: rises), and the standard error of that."""
    change, error = difference(before, after)
    return (change if is_loss(before.metric) else -change), error


def size_of(model: TaskModel) -> int:
    """The bytes of a model's file, without training state."""
    stream = io.BytesIO()
    model.save(stream, training_state=False)
    return stream.tell()


def report_from(stored: object) -> dict[str, float | str]:
    """The report of a file's header; ValueError for what no compact model has."""
    if not isinstance(stored, dict) or not {"bytes", "bytes_before", "bits", "least_weight"} <= stored.keys():
        raise ValueError(f"the report of a compact model {stored!r:.80}")
    for name, value in stored.items():
        if not (name in ENTRIES and ENTRIES[name](value)):
            raise ValueError(f"the report of a compact model with {name!r:.80}: {value!r:.80}")
    return stored
