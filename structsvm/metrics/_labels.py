"""Scores for label sequences, counted over tokens: accuracy, and precision, recall and F1 of each label."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from operator import eq
from typing import NamedTuple

__all__ = ["LabelScore", "label_report", "token_accuracy", "token_accuracy_scorer"]


class LabelScore(NamedTuple):
    """Scores of one label or chunk type, as fractions; a ratio with denominator 0 is 0.

    Attributes
    ----------
    precision, recall, f1 : float
    support : int
        How often it is there in ``y_true``.
    predicted : int
        How often it is there in ``y_pred``.
    """

    precision: float
    recall: float
    f1: float
    support: int
    predicted: int


def label_score(n_correct, support, predicted):
    return LabelScore(
        n_correct / predicted if predicted else 0.0,
        n_correct / support if support else 0.0,
        2 * n_correct / (support + predicted) if n_correct else 0.0,
        int(support),
        int(predicted),
    )


def check_sequences(y_true, y_pred):
    """Both as lists of label sequences of pairwise equal lengths."""
    for name, labels in (("y_true", y_true), ("y_pred", y_pred)):
        if getattr(labels, "n_columns", 1) != 1:
            raise ValueError(f"{name} has {labels.n_columns} columns; select the one of the labels.")
    y_true, y_pred = list(y_true), list(y_pred)
    if len(y_true) != len(y_pred):
        raise ValueError(f"y_true has {len(y_true)} sequences and y_pred has {len(y_pred)}.")
    for i, (true, pred) in enumerate(zip(y_true, y_pred, strict=True)):
        for name, labels in (("y_true", true), ("y_pred", pred)):
            if isinstance(labels, str | bytes) or not hasattr(labels, "__len__"):
                raise TypeError(f"{name}[{i}] must be a sequence of labels. Got {labels!r}.")
        if len(true) != len(pred):
            raise ValueError(f"sequence {i}: y_true has {len(true)} labels and y_pred has {len(pred)}.")
    if not any(map(len, y_true)):
        raise ValueError("y_true and y_pred have no tokens to score.")
    return y_true, y_pred


def token_accuracy(y_true, y_pred) -> float:
    """Fraction of tokens whose label is right.

    Parameters
    ----------
    y_true, y_pred : list of (list or array of shape (length,))
        Label sequences; labels of any type with ``==``.

    Returns
    -------
    float
        Between 0 and 1.

    Raises
    ------
    ValueError
        The numbers of sequences differ, a pair of sequences differs in length (the message names
        its index), or there is no token at all.
    TypeError
        An item of ``y_true`` or ``y_pred`` is not a sequence of labels.
    """
    y_true, y_pred = check_sequences(y_true, y_pred)
    n_right = sum(map(eq, chain.from_iterable(y_true), chain.from_iterable(y_pred)))
    return float(n_right / sum(map(len, y_true)))


def label_report(y_true, y_pred) -> dict:
    """Precision, recall and F1 of every label, counted over tokens.

    Parameters
    ----------
    y_true, y_pred : list of (list or array of shape (length,))
        Label sequences; labels of any hashable type.

    Returns
    -------
    dict of label to LabelScore
        Every label of ``y_true`` or ``y_pred``, in sorted order if they can be sorted, else in
        the order of their first appearance.

    Raises
    ------
    ValueError, TypeError
        As in :func:`token_accuracy`; TypeError also if a label is not hashable.
    """
    y_true, y_pred = check_sequences(y_true, y_pred)
    pairs = Counter(zip(chain.from_iterable(y_true), chain.from_iterable(y_pred), strict=True))
    support: Counter = Counter()
    predicted: Counter = Counter()
    right: Counter = Counter()
    for (true, pred), count in pairs.items():
        support[true] += count
        predicted[pred] += count
        right[true] += count * (true == pred)
    labels = list(dict.fromkeys(chain(support, predicted)))
    with suppress(TypeError):  # labels of mixed types have no order
        labels.sort()
    return {k: label_score(right[k], support[k], predicted[k]) for k in labels}


@dataclass(frozen=True)
class Scorer:
    """``scoring=`` of scikit-learn's model selection: (estimator, X, y) -> float."""

    metric: Callable

    def __call__(self, estimator, X, y, *, lengths=None) -> float:
        return self.metric(y, estimator.predict(X) if lengths is None else estimator.predict(X, lengths=lengths))

    def __repr__(self):
        return f"{self.metric.__name__}_scorer"


token_accuracy_scorer = Scorer(token_accuracy)
