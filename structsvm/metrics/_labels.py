"""Scores for label sequences, counted over tokens: accuracy, and precision, recall and F1 of each label."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from contextlib import suppress
from itertools import chain
from operator import eq
from typing import Any, NamedTuple

import numpy as np

from structsvm.features.columns import Columns
from structsvm.metrics._counts import (
    AUTO,
    check_no_nan,
    is_nan,
    is_unknown,
    mark_for,
    paired,
    precision_recall_f1,
    say_unknown,
)

LabelSequences = Iterable[Sequence[Hashable] | np.ndarray]


class LabelScore(NamedTuple):
    """Scores of one label or chunk type, as fractions; a ratio with denominator 0 is 0.

    Attributes
    ----------
    precision, recall, f1 : float
    support : int
        Number of occurrences in ``y_true``.
    predicted : int
        Number of occurrences in ``y_pred``.

    Examples
    --------
    >>> from structsvm.metrics import label_report
    >>> label_report([["a", "b"]], [["a", "a"]])["a"].precision
    0.5
    """

    precision: float
    recall: float
    f1: float
    support: int
    predicted: int


def label_score(n_correct: int, support: int, predicted: int) -> LabelScore:
    return LabelScore(*precision_recall_f1(n_correct, support, predicted), support, predicted)


def check_sequences(y_true: LabelSequences, y_pred: LabelSequences) -> tuple[list[Any], list[Any]]:
    """Return both as lists of label sequences of pairwise equal lengths."""
    for name, columns in (("y_true", y_true), ("y_pred", y_pred)):
        if isinstance(columns, Columns) and columns.n_columns != 1:
            raise ValueError(f"{name} has {columns.n_columns} columns; select the one of the labels.")
    y_true, y_pred = (y.to_pylist() if hasattr(y, "to_pylist") else y for y in (y_true, y_pred))  # Arrow's scalars
    y_true, y_pred = paired(y_true, y_pred, "sequences")
    for i, (true, pred) in enumerate(zip(y_true, y_pred, strict=True)):
        for name, labels in (("y_true", true), ("y_pred", pred)):
            if isinstance(labels, str | bytes) or not hasattr(labels, "__len__"):
                raise TypeError(f"{name}[{i}] must be a sequence of labels. Got {labels!r}.")
        if len(true) != len(pred):
            raise ValueError(f"sequence {i}: y_true has {len(true)} labels and y_pred has {len(pred)}.")
    if not any(map(len, y_true)):
        raise ValueError("y_true and y_pred have no tokens to score.")
    return y_true, y_pred


def known_tokens(y_true: LabelSequences, y_pred: LabelSequences, unknown: object = AUTO) -> tuple[list[Any], list[Any]]:
    """Return both as `check_sequences`, without the tokens whose true label is unknown (`is_unknown`).

    A mark that is predicted is a label. Raises ValueError for a true label NaN, and if no token is left.
    """
    true, pred = check_sequences(y_true, y_pred)
    check_no_nan_in(true)
    if not any(label is None or is_unknown(label, unknown) for label in distinct_in(true)):
        return true, pred
    unknown = mark_for(unknown, distinct_in(pred))
    say_unknown(chain.from_iterable(true), unknown, None, "tokens that the scores leave out")
    pairs = [[p for p in zip(*both, strict=True) if not is_unknown(p[0], unknown)] for both in zip(true, pred)]
    if not any(pairs):
        raise ValueError("y_true tells no label of any token")
    return [[a for a, _ in own] for own in pairs], [[b for _, b in own] for own in pairs]


def check_no_nan_in(y: list[Any]) -> None:
    """Raise ValueError, with sequence and token, for NaN in the place of a label."""
    if any(map(is_nan, distinct_in(y))):
        for i, labels in enumerate(y):
            check_no_nan(labels, f"sequence {i}, token {{}}".format)


def distinct_in(y: list[Any]) -> list[Any]:
    """The distinct labels of sequences; all of them where some cannot be hashed."""
    try:
        return list(dict.fromkeys(chain.from_iterable(y)))
    except TypeError:
        return list(chain.from_iterable(y))


def token_accuracy(y_true: LabelSequences, y_pred: LabelSequences, unknown: object = AUTO) -> float:
    """Fraction of tokens whose label is right.

    Parameters
    ----------
    y_true, y_pred : list of (list or array of shape (length,))
        Label sequences; labels of any type with ``==``.
    unknown : object, default="auto"
        The mark of unknown true labels, which are left out, as None and -100 always are; "auto": -1, unless it is
        predicted. None: there is no mark.

    Returns
    -------
    float
        Between 0 and 1.

    Raises
    ------
    ValueError
        The numbers of sequences differ or are 0, a pair of sequences differs in length (the message gives its index),
        or there are no tokens.
    TypeError
        An item of ``y_true`` or ``y_pred`` is not a sequence of labels.

    Examples
    --------
    >>> from structsvm.metrics import token_accuracy
    >>> token_accuracy([["DT", "NN"], ["VB", "RB"]], [["DT", "NN"], ["VB", "NN"]])
    0.75
    """
    y_true, y_pred = known_tokens(y_true, y_pred, unknown)
    n_right = sum(map(eq, chain.from_iterable(y_true), chain.from_iterable(y_pred)))
    return float(n_right / sum(map(len, y_true)))


def label_report(y_true: LabelSequences, y_pred: LabelSequences, unknown: object = AUTO) -> dict[Any, LabelScore]:
    """Precision, recall and F1 of every label, counted over tokens.

    Parameters
    ----------
    y_true, y_pred : list of (list or array of shape (length,))
        Label sequences; labels of any hashable type.
    unknown : object, default="auto"
        As in :func:`token_accuracy`.

    Returns
    -------
    dict of label to LabelScore
        Every label of ``y_true`` or ``y_pred``, sorted if they can be compared, else by first appearance.

    Raises
    ------
    ValueError, TypeError
        As in :func:`token_accuracy`; TypeError also if a label is not hashable.

    Examples
    --------
    >>> from structsvm.metrics import label_report
    >>> label_report([["DT", "NN"]], [["DT", "NN"]])["DT"]
    LabelScore(precision=1.0, recall=1.0, f1=1.0, support=1, predicted=1)
    """
    y_true, y_pred = known_tokens(y_true, y_pred, unknown)
    pairs = Counter(zip(chain.from_iterable(y_true), chain.from_iterable(y_pred), strict=True))
    support: Counter[Any] = Counter()
    predicted: Counter[Any] = Counter()
    right: Counter[Any] = Counter()
    for (true, pred), count in pairs.items():
        support[true] += count
        predicted[pred] += count
        right[true] += count * (true == pred)
    labels = list(dict.fromkeys(chain(support, predicted)))
    with suppress(TypeError):  # labels of mixed types have no order
        labels.sort()
    return {k: label_score(right[k], support[k], predicted[k]) for k in labels}
