"""Compact models: weights that matter least are 0, the others have fewer bits."""

from __future__ import annotations

import io
import math
from typing import TYPE_CHECKING

import numpy as np

from structsvm.solvers.choosing import is_loss
from structsvm.tasks.common.selection.pruning import last_that
from structsvm.tasks.common.selection.search import Held, difference, ratio

if TYPE_CHECKING:
    from structsvm.tasks.common.examples import Examples
    from structsvm.tasks.common.model import TaskModel


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


class Compaction:
    """Compact copies of a model, one per size below which weights become 0 (shares of the largest weight).

    Both bytes and score fall as the size rises, the score but for noise.
    """

    def __init__(self, model: TaskModel, bits: int, examples: Examples | None, of_largest: list[float]) -> None:
        self.model, self.bits, self.examples, self.n_bytes = model, bits, examples, size_of(model)
        top = float(np.abs(model.weights).max(initial=0.0))
        self.sizes = [top * share for share in of_largest]
        self.report: dict[str, float | str] = {"bytes": self.n_bytes, "bytes_before": self.n_bytes, "bits": bits}
        self.known: dict[int, Held] = {}

    def copy(self, k: int) -> TaskModel:
        """The copy of the k-th size, with all features."""
        other = self.model.in_few_bits(self.sizes[k], self.bits)
        other.report = self.report | {"least_weight": self.sizes[k]}
        return other

    def bytes_of(self, k: int) -> int:
        """The bytes of a copy's file."""
        return size_of(self.copy(k).narrowed_by_weights())

    def score(self, *, must_fall: bool) -> None:
        """Score the model itself. Raises ValueError for examples without anything to count, or a score of 0."""
        if self.examples is None:
            return
        self.before = held = self.model.output_scores(self.examples)
        score = ratio(*held[1:])[0]
        if not held.denominator.sum() > 0.0:
            raise ValueError(f"data tells nothing about the {held.metric}: it has nothing that this counts")
        if score == 0.0 and not is_loss(held.metric) and must_fall:
            raise ValueError(f"the {held.metric} of data is 0 before any weight is: it can fall no further")
        self.report |= {"metric": held.metric, "score": score, "score_before": score}

    def scores(self, k: int) -> Held:
        """The scores of the examples by a copy."""
        if k not in self.known:
            self.known[k] = self.copy(k).output_scores(self.examples)
        return self.known[k]

    def fall(self, k: int) -> tuple[float, float]:
        """How far the score falls (a loss: rises), and the standard error of that."""
        change, error = difference(self.before, self.scores(k))
        return (change if is_loss(self.before.metric) else -change), error

    def within(self, budget: int) -> int:
        """The least size whose file has no more bytes than that."""
        of_all = self.bytes_of(0)
        k = 0 if of_all <= budget else 1 + last_that(lambda k: self.bytes_of(k) > budget, 0, len(self.sizes))
        if k == len(self.sizes):
            raise ValueError(f"budget={budget} is less than what the smallest file takes, {self.bytes_of(k - 1)} bytes")
        if k > 0 and self.n_bytes <= budget:
            raise ValueError(
                f"budget={budget} holds the file of {self.n_bytes} bytes as it is, and not the report of what would be "
                f"done: a compact model has {of_all} bytes with all of its weights"
            )
        return k

    def tolerated(self, tolerance: float | None) -> int:
        """The largest size by which the score falls no further; None: by no more than chance."""
        most = ratio(*self.before[1:])[1] if tolerance is None else tolerance
        k = last_that(lambda k: self.fall(k)[0] <= most, 0, len(self.sizes))
        if tolerance is not None:
            return k
        # Both models err on the same examples: the error of the fall is far smaller than that of a score.
        falls = ((j, *self.fall(j)) for j in range(k, 0, -1))
        return next((j for j, worse, error in falls if worse <= error), 0)

    def finished(self, k: int) -> TaskModel:
        """The copy that is chosen, without features that have no weight, and with its report."""
        if self.examples is not None:
            self.report["score"] = ratio(*self.scores(k)[1:])[0]
        found = self.copy(k).narrowed_by_weights()
        for _ in range(3):  # the number of bytes is itself in the file, and may end on another digit
            found.report = self.report | {"least_weight": self.sizes[k]}
            self.report["bytes"] = size_of(found)
        return found


def compacted(
    model: TaskModel, *, budget: int | None, tolerance: float | None, bits: int, examples: Examples | None
) -> TaskModel:
    """A compact copy of a model, with its report; see `TaskEstimator.compact`."""
    found = Compaction(model, bits, examples, OF_SCORES if budget is None else OF_BYTES)
    found.score(must_fall=budget is None or tolerance is not None)
    if budget is None:
        return found.finished(0 if examples is None else found.tolerated(tolerance))
    k = found.within(budget)
    if tolerance is not None and (worse := found.fall(k)[0]) > tolerance:
        raise ValueError(
            f"a file of budget={budget} bytes has a {found.before.metric} that is {worse:.4f} worse than that of the "
            f"model, which is more than tolerance={tolerance}: give more bytes or bits"
        )
    return found.finished(k)


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
