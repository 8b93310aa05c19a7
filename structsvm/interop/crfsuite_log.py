"""Record of a training in CRFsuite's words: the lines that are shown, and the figures in them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any, NamedTuple, TypeAlias

Figures: TypeAlias = dict[str, Any]


class LabelScore(NamedTuple):
    """Counts and scores of a label on held-out tokens; None for a label that neither truth nor prediction has."""

    match: int
    model: int
    ref: int
    precision: float | None
    recall: float | None
    f1: float | None


class TrainLogParser:
    """Record of a training, with the fields of python-crfsuite's parser of the same name.

    Attributes
    ----------
    log : list of str
        All lines.
    events : list of (str, int, int)
        What happened, and the range of its lines.
    event : str or None
        What ended with the last line: "start", "featgen_end", "prepared", "iteration", "optimization_end", "end".
    featgen_percent, featgen_num_features, featgen_seconds, training_seconds, storing_seconds : int or float
    iterations : list of dict
        Figures of each iteration: num, loss, feature_norm, error_norm, active_features, time, scores; with a holdout
        group also avg_precision, avg_recall, avg_f1, item_accuracy, instance_accuracy and both as floats.
    last_iteration : dict or None
    """

    event: str | None = None

    def __init__(self) -> None:
        self.log: list[str] = []
        self.events: list[tuple[str, int, int]] = []
        self.featgen_percent = 0
        self.featgen_num_features: int | None = None
        self.featgen_seconds: float | None = None
        self.training_seconds: float | None = None
        self.storing_seconds: float | None = None
        self.iterations: list[Figures] = []
        self.last_iteration: Figures | None = None

    def add(self, line: str, event: str | None, figures: Figures) -> None:
        """Add a line, with which an event may end, and new values of attributes."""
        for name, value in figures.items():
            setattr(self, name, value)
        if event == "iteration":
            self.iterations.append(self.last_iteration or {})
        self.log.append(line)
        self.event = event
        if event is not None:
            self.events.append((event, self.events[-1][2] if self.events else 0, len(self.log)))

    @property
    def last_log(self) -> str:
        """Lines of the last event."""
        _, start, end = self.events[-1]
        return "".join(self.log[start:end])


def iteration_lines(figures: Figures) -> Iterator[str]:
    """Lines of an iteration but for the empty one behind."""
    yield f"***** Iteration #{figures['num']} *****\n"
    yield f"Loss: {figures['loss']:f}\n"
    yield f"Feature norm: {figures['feature_norm']:f}\n"
    if "error_norm" in figures:
        yield f"Error norm: {figures['error_norm']:f}\n"
    yield f"Active features: {figures['active_features']}\n"
    yield f"Seconds required for this iteration: {figures['time']:.3f}\n"
    if not figures["scores"]:
        return
    yield "Performance by label (#match, #model, #ref) (precision, recall, F1):\n"
    for label, score in figures["scores"].items():
        parts = ", ".join("******" if value is None else f"{value:.4f}" for value in score[3:])
        yield f"    {label}: ({score.match}, {score.model}, {score.ref}) ({parts})\n"
    means = ", ".join(f"{figures[f'avg_{name}']:f}" for name in ("precision", "recall", "f1"))
    yield f"Macro-average precision, recall, F1: ({means})\n"
    for what, name in (("Item", "item_accuracy"), ("Instance", "instance_accuracy")):
        right, total = figures[f"{name}_counts"]
        yield f"{what} accuracy: {right} / {total} ({figures[f'{name}_float']:.4f})\n"


def scored(labels: Sequence[str], true: Sequence[Sequence[int]], predicted: Sequence[Sequence[int]]) -> Figures:
    """Figures of predictions for held-out sequences, labels as their indices."""
    pairs = [(a, b) for one, other in zip(true, predicted, strict=True) for a, b in zip(one, other, strict=True)]
    scores = {name: _score(k, pairs) for k, name in enumerate(labels)}
    means = [sum(score[k] or 0.0 for score in scores.values()) / max(len(scores), 1) for k in (3, 4, 5)]
    figures: Figures = {"scores": scores}
    figures |= dict(zip(("avg_precision", "avg_recall", "avg_f1"), means, strict=True))
    whole = sum(list(one) == list(other) for one, other in zip(true, predicted, strict=True))
    for name, right, total in (
        ("item_accuracy", sum(a == b for a, b in pairs), len(pairs)),
        ("instance_accuracy", whole, len(true)),
    ):
        share = Fraction(right, max(total, 1))
        figures |= {f"{name}_counts": (right, total), name: share, f"{name}_float": float(share)}
    return figures


def _score(k: int, pairs: Sequence[tuple[int, int]]) -> LabelScore:
    match = sum(a == b == k for a, b in pairs)
    model, ref = sum(b == k for _, b in pairs), sum(a == k for a, _ in pairs)
    if not model and not ref:
        return LabelScore(0, 0, 0, None, None, None)
    precision, recall = match / max(model, 1), match / max(ref, 1)
    return LabelScore(match, model, ref, precision, recall, 2 * match / (model + ref))
