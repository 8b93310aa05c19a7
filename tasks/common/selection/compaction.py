"""Compact models: weights that matter least are 0, the others have fewer bits."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from structsvm.files.weight_rows import in_few_bits
from structsvm.solvers.choosing import is_loss
from structsvm.tasks.common.selection.pruning import last_that
from structsvm.tasks.common.selection.search import ratio

if TYPE_CHECKING:
    from structsvm.arrays import Floats, Integers
    from structsvm.tasks.common.examples import Examples
    from structsvm.tasks.common.model import TaskModel

    Model = TypeVar("Model", bound=TaskModel)

# Sizes below which weights become 0, as shares of the largest: powers of the fourth root of 2.
SHARES = [0.0, *(2.0 ** np.arange(-20.0, 0.125, 0.25)).tolist()]
# Numbers of a report, which names its metric beside.
NUMBERS = ("bytes", "bytes_before", "bits", "least_weight", "score", "score_before")


def compacted(
    model: Model, *, budget: int | None, tolerance: float | None, bits: int, examples: Examples | None
) -> Model:
    """A compact copy of a model, with its report; see `TaskEstimator.compact`.

    Both bytes and score fall as the size below which weights are 0 rises, the score but for noise.
    """
    top, error, bytes_before = float(np.abs(model.weights).max(initial=0.0)), 0.0, size_of(model)
    report: dict[str, float | str] = {"bytes": bytes_before, "bytes_before": bytes_before, "bits": bits}
    if examples is not None:
        metric, *sums = model.output_scores(examples)
        sign = -1.0 if is_loss(metric) else 1.0
        before, error = ratio(*sums)
        report |= {"metric": metric, "score": before, "score_before": before}

    def small(k: int) -> Model:
        """The model with all of its features."""
        other = model.in_few_bits(SHARES[k] * top, bits)
        other.report = report | {"least_weight": SHARES[k] * top}
        return other

    def fall(k: int) -> float:
        return 0.0 if examples is None else sign * (before - ratio(*small(k).output_scores(examples)[1:])[0])

    chosen = 0
    if budget is not None:
        chosen = 1 + last_that(lambda k: size_of(small(k).narrowed_by_weights()) > budget, -1, len(SHARES))
        if chosen == len(SHARES):
            smallest = size_of(small(len(SHARES) - 1).narrowed_by_weights())
            raise ValueError(f"budget={budget} is less than what the smallest file takes, {smallest} bytes")
        if tolerance is not None and fall(chosen) > tolerance:
            raise ValueError(
                f"a file of budget={budget} bytes has a {metric} that is {fall(chosen):.4f} worse than that of the "
                f"model, which is more than tolerance={tolerance}: give more bytes or bits"
            )
    elif examples is not None:
        most = error if tolerance is None else tolerance
        chosen = last_that(lambda k: fall(k) <= most, 0, len(SHARES))
    if examples is not None:
        report["score"] = before - sign * fall(chosen)
    found = small(chosen).narrowed_by_weights()
    for _ in range(3):  # the number of bytes is itself in the file, and may end on another digit
        found.report = report | {"least_weight": SHARES[chosen] * top}
        report["bytes"] = size_of(found)
    return found


def with_few_bits(model: TaskModel, lengths: Integers, least: float, bits: int) -> Floats:
    """The weights of a model, with 0 for those below a size, and units of a row for the others."""
    return in_few_bits(model.pruned(least), lengths, bits)


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
        wanted = (str,) if name == "metric" else (int, float)
        if (name not in NUMBERS and name != "metric") or type(value) not in wanted:
            raise ValueError(f"the report of a compact model with {name!r:.80}: {value!r:.80}")
    return stored
