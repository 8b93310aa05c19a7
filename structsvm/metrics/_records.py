"""Scores of whole records, such as addresses and references: sequences without an error, and fields."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import chain, groupby

from structsvm.metrics._chunks import chunk_f1
from structsvm.metrics._counts import AUTO, precision_recall_f1
from structsvm.metrics._labels import LabelSequences, known_tokens
from structsvm.metrics._schemes import Scheme, scheme_of

OUTSIDE = "O"


def record_accuracy(y_true: LabelSequences, y_pred: LabelSequences, unknown: object = AUTO) -> float:
    """Fraction of sequences whose labels are all right.

    Parameters
    ----------
    y_true, y_pred, unknown : see :func:`token_accuracy`
        Tokens whose true label is unknown are left out, and sequences without others.

    Returns
    -------
    float

    Raises
    ------
    ValueError, TypeError
        As in :func:`token_accuracy`.

    Examples
    --------
    >>> from structsvm.metrics import record_accuracy
    >>> record_accuracy([["number", "street"], ["city"]], [["number", "city"], ["city"]])
    0.5
    """
    pairs = zip(*known_tokens(y_true, y_pred, unknown), strict=True)
    right = [all(a == b for a, b in zip(true, pred, strict=True)) for true, pred in pairs if len(true)]
    return sum(right) / len(right)


def field_f1(
    y_true: LabelSequences, y_pred: LabelSequences, scheme: str | Scheme | None = None, unknown: object = AUTO
) -> float:
    """Harmonic mean of the precision and recall of fields: of runs of one label where labels have no scheme.

    Parameters
    ----------
    y_true, y_pred, unknown : see :func:`token_accuracy`
        Labels of a scheme are scored by its chunks (:func:`chunk_f1`). Of others each run of equal labels is a field,
        but for "O"; it is right if start, end and label are.
    scheme : str or Scheme, optional
        None: read off all labels, true and predicted.

    Returns
    -------
    float

    Raises
    ------
    ValueError, TypeError
        As in :func:`token_accuracy`.

    Examples
    --------
    >>> from structsvm.metrics import field_f1
    >>> field_f1([["number", "street", "street"]], [["number", "street", "city"]])
    0.4
    """
    true, pred = known_tokens(y_true, y_pred, unknown)
    if scheme is not None or scheme_of(chain.from_iterable(chain(true, pred))) is not None:
        return chunk_f1(true, pred, scheme, None)
    fields = [{(i, *run) for i, labels in enumerate(y) for run in runs(labels)} for y in (true, pred)]
    return float(precision_recall_f1(len(fields[0] & fields[1]), len(fields[0]), len(fields[1]))[2])


def runs(labels: Sequence[Hashable]) -> list[tuple[int, int, Hashable]]:
    """The runs ``(start, stop, label)`` of equal labels other than "O"."""
    found, start = [], 0
    for label, run in groupby(labels):
        stop = start + sum(1 for _ in run)
        if label != OUTSIDE:
            found.append((start, stop, label))
        start = stop
    return found
