"""Pairs of true and predicted outputs, the meaning of -1, and ratios of counts, for all metrics."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

True_ = TypeVar("True_")
Predicted = TypeVar("Predicted")


def paired(y_true: Iterable[True_], y_pred: Iterable[Predicted], what: str) -> tuple[list[True_], list[Predicted]]:
    """Return both as lists. Raises ValueError if they differ in length or are empty; `what` names the items."""
    true, pred = list(y_true), list(y_pred)
    if len(true) != len(pred):
        raise ValueError(f"y_true has {len(true)} {what} and y_pred has {len(pred)}.")
    if not true:
        raise ValueError(f"y_true and y_pred have no {what} to score.")
    return true, pred


def has_unlabelled(found: Any, labels: Any = None) -> bool:
    """Whether -1 among distinct labels means an unknown one, as in scikit-learn.

    It does beside integers that are not less than it: the labels fixed before, or two or more others.
    """
    others = [label for label in found if label != -1] if labels is None else list(labels)
    if -1 not in found or (labels is None and len(others) < 2):
        return False
    return all(type(label) is int and label >= 0 for label in others)


def precision_recall_f1(n_correct: float, n_true: float, n_predicted: float) -> tuple[float, float, float]:
    """Return the three ratios; one with denominator 0 is 0."""
    return (
        n_correct / n_predicted if n_predicted else 0.0,
        n_correct / n_true if n_true else 0.0,
        2 * n_correct / (n_true + n_predicted) if n_correct else 0.0,
    )
