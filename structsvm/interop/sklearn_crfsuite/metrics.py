"""Scores of label sequences under sklearn-crfsuite's names: scikit-learn's, of all tokens at once."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TypeAlias

from structsvm.interop.sklearn_crfsuite.utils import flatten

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
    true, predicted = _flat(y_true, y_pred)
    return sum(a == b for a, b in zip(true, predicted, strict=True)) / len(true) if true else float("nan")


def flat_precision_score(y_true: Labels, y_pred: Labels, **params: object) -> object:
    """Return scikit-learn's ``precision_score`` of all tokens; `params` are its own, `average` is "weighted"."""
    from sklearn.metrics import precision_score

    return precision_score(*_flat(y_true, y_pred), **_averaged(params))


def flat_recall_score(y_true: Labels, y_pred: Labels, **params: object) -> object:
    """Return scikit-learn's ``recall_score`` of all tokens; `params` are its own, `average` is "weighted"."""
    from sklearn.metrics import recall_score

    return recall_score(*_flat(y_true, y_pred), **_averaged(params))


def flat_f1_score(y_true: Labels, y_pred: Labels, **params: object) -> object:
    """Return scikit-learn's ``f1_score`` of all tokens; `params` are its own, `average` is "weighted"."""
    from sklearn.metrics import f1_score

    return f1_score(*_flat(y_true, y_pred), **_averaged(params))


def flat_fbeta_score(y_true: Labels, y_pred: Labels, beta: float, **params: object) -> object:
    """Return scikit-learn's ``fbeta_score`` of all tokens; `params` are its own, `average` is "weighted"."""
    from sklearn.metrics import fbeta_score

    return fbeta_score(*_flat(y_true, y_pred), beta=beta, **_averaged(params))


def flat_classification_report(
    y_true: Labels, y_pred: Labels, labels: Sequence[Hashable] | None = None, **params: object
) -> str | dict[str, object]:
    """Return scikit-learn's ``classification_report`` of all tokens; `params` are its own."""
    from sklearn.metrics import classification_report

    report: str | dict[str, object] = classification_report(*_flat(y_true, y_pred), labels=labels, **params)
    return report


def sequence_accuracy_score(y_true: Labels, y_pred: Labels) -> float:
    """Share of sequences whose labels are all right; 0 of none."""
    pairs = list(zip(y_true, y_pred, strict=True))
    return sum(list(a) == list(b) for a, b in pairs) / len(pairs) if pairs else 0.0


def _averaged(params: dict[str, object]) -> dict[str, object]:
    """Parameters with the average that more than two labels have, if they name none, nor the label that counts."""
    return params if "pos_label" in params else {"average": "weighted"} | params


def _flat(y_true: Labels, y_pred: Labels) -> tuple[list[Hashable], list[Hashable]]:
    """Labels of all tokens; ValueError if those of a sequence are not as many."""
    pairs = list(zip(y_true, y_pred, strict=True))
    for i, (a, b) in enumerate(pairs):
        if len(a) != len(b):
            raise ValueError(f"sequence {i}: y_true has {len(a)} labels, y_pred {len(b)}")
    return flatten(a for a, _ in pairs), flatten(b for _, b in pairs)
