"""Compact models of label sequences: weights that matter least are 0, the others have fewer bits."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import numpy as np

from structsvm.stored_values import in_bits
from structsvm.tasks.common.selection.pruning import last_that
from structsvm.tasks.common.selection.search import ratio

if TYPE_CHECKING:
    from structsvm.tasks.sequence.examples import LabeledSequences
    from structsvm.tasks.sequence.model import SequenceModel

# Sizes below which weights become 0, as shares of the largest: powers of the fourth root of 2.
SHARES = [0.0, *(2.0 ** np.arange(-20.0, 0.125, 0.25)).tolist()]
# Numbers of a report, which names its metric beside.
NUMBERS = ("bytes", "bytes_before", "bits", "least_weight", "score", "score_before")


def compacted(
    model: SequenceModel,
    *,
    budget: int | None,
    tolerance: float | None,
    bits: int,
    examples: LabeledSequences | None,
) -> SequenceModel:
    """A compact copy of a model, with its report; see `SequenceLabeler.compact`.

    Both bytes and score fall as the size below which weights are 0 rises, the score but for noise.
    """
    top, error, bytes_before = float(np.abs(model.weights).max(initial=0.0)), 0.0, size_of(model)
    report: dict[str, float | str] = {"bytes": bytes_before, "bytes_before": bytes_before, "bits": bits}
    if examples is not None:
        metric, *sums = model.held_out_scores(examples)
        before, error = ratio(*sums)
        report |= {"metric": metric, "score": before, "score_before": before}

    def pruned(k: int) -> SequenceModel:
        """The model with all of its features."""
        other = model.without_state()
        weights = model.pruned(SHARES[k] * top).reshape(-1, model.oracle.stride)
        other.weights, other.report = in_bits(weights, bits).ravel(), report | {"least_weight": SHARES[k] * top}
        return other

    def fall(k: int) -> float:
        return 0.0 if examples is None else before - ratio(*pruned(k).held_out_scores(examples)[1:])[0]

    chosen = 0
    if budget is not None:
        chosen = 1 + last_that(lambda k: size_of(narrow(pruned(k))) > budget, -1, len(SHARES))
        if chosen == len(SHARES):
            smallest = size_of(narrow(pruned(len(SHARES) - 1)))
            raise ValueError(f"budget={budget} is less than what the smallest file takes, {smallest} bytes")
        if tolerance is not None and fall(chosen) > tolerance:
            raise ValueError(
                f"a file of budget={budget} bytes has a {metric} that is {fall(chosen):.4f} below that of the model, "
                f"which is more than tolerance={tolerance}: give more bytes or bits"
            )
    elif examples is not None:
        most = error if tolerance is None else tolerance
        chosen = last_that(lambda k: fall(k) <= most, 0, len(SHARES))
    small = pruned(chosen)
    if examples is not None:
        report["score"] = before - fall(chosen)
    small = narrow(small)
    for _ in range(3):  # the number of bytes is itself in the file, and may end on another digit
        small.report = report | {"least_weight": SHARES[chosen] * top}
        report["bytes"] = size_of(small)
    return small


def narrow(model: SequenceModel) -> SequenceModel:
    """The model as its file has it."""
    return model.narrowed_by_weights()


def size_of(model: SequenceModel) -> int:
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
