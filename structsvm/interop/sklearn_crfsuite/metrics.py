"""Scores of label sequences under sklearn-crfsuite's names: of all tokens at once, as scikit-learn has them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import chain
from typing import TypeAlias

from structsvm.metrics import flat_classification_report, flat_f1_score, flat_precision_score, flat_recall_score

__all__ = [
    "flat_accuracy_score",
    "flat_classification_report",
    "flat_f1_score",
    "flat_fbeta_score",
    "flat_precision_score",
    "flat_recall_score",
    "sequence_accuracy_score",
]

Labels: TypeAlias = Sequence[Sequence[Hashable]]


def flat_accuracy_score(y_true: Labels, y_pred: Labels) -> float:
    """Share of tokens whose label is right."""
    pairs = list(zip(chain.from_iterable(y_true), chain.from_iterable(y_pred), strict=True))
    return sum(a == b for a, b in pairs) / len(pairs) if pairs else float("nan")


def flat_fbeta_score(y_true: Labels, y_pred: Labels, beta: float, **params: object) -> object:
    """Return scikit-learn's ``fbeta_score`` of all tokens; `params` are its own."""
    from sklearn.metrics import fbeta_score

    return fbeta_score(list(chain.from_iterable(y_true)), list(chain.from_iterable(y_pred)), beta=beta, **params)


def sequence_accuracy_score(y_true: Labels, y_pred: Labels) -> float:
    """Share of sequences whose labels are all right; 0 of none."""
    pairs = list(zip(y_true, y_pred, strict=True))
    return sum(list(a) == list(b) for a, b in pairs) / len(pairs) if pairs else 0.0
