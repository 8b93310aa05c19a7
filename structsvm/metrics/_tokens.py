"""Precision, recall and F1 of labels, counted over tokens, by scikit-learn's functions on all sequences as one.

What sklearn-crfsuite's ``metrics.flat_*`` are: with averages over labels, and a printed report. Labels may be of any
type; those without an order among them are sorted by their texts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

from structsvm.metrics._counts import AUTO
from structsvm.metrics._labels import LabelSequences, distinct_in, known_tokens
from structsvm.parameters import printable


def _flat(
    y_true: LabelSequences, y_pred: LabelSequences, labels: Iterable[Any] | None, unknown: object
) -> tuple[list[int], list[int], list[int], list[str]]:
    """Both labellings as numbers of labels in one list, the numbers to score, and the texts of these labels.

    `labels` None: all that occur, sorted.
    """
    true, pred = known_tokens(y_true, y_pred, unknown)
    every = list(dict.fromkeys([*distinct_in(true), *distinct_in(pred)]))
    try:
        every.sort()
    except TypeError:  # labels of mixed types have no order
        every.sort(key=repr)
    chosen = every if labels is None else list(labels)
    place = {label: k for k, label in enumerate(dict.fromkeys([*chosen, *every]))}
    ids = [[place[label] for label in chain.from_iterable(y)] for y in (true, pred)]
    return ids[0], ids[1], list(range(len(chosen))), list(map(str, chosen))


def flat_precision_score(
    y_true: LabelSequences,
    y_pred: LabelSequences,
    *,
    labels: Sequence[Any] | None = None,
    average: str | None = "weighted",
    zero_division: float = 0.0,
    unknown: object = AUTO,
) -> Any:
    """Precision of labels over tokens; parameters are those of :func:`flat_f1_score`.

    Examples
    --------
    >>> from structsvm.metrics import flat_precision_score
    >>> flat_precision_score([["a", "b"]], [["a", "a"]], labels=["a"], average="macro")
    0.5
    """
    return _scored("precision_score", y_true, y_pred, labels, average, zero_division, unknown)


def flat_recall_score(
    y_true: LabelSequences,
    y_pred: LabelSequences,
    *,
    labels: Sequence[Any] | None = None,
    average: str | None = "weighted",
    zero_division: float = 0.0,
    unknown: object = AUTO,
) -> Any:
    """Recall of labels over tokens; parameters are those of :func:`flat_f1_score`.

    Examples
    --------
    >>> from structsvm.metrics import flat_recall_score
    >>> flat_recall_score([["a", "b"]], [["a", "a"]], average="macro")
    0.5
    """
    return _scored("recall_score", y_true, y_pred, labels, average, zero_division, unknown)


def flat_f1_score(
    y_true: LabelSequences,
    y_pred: LabelSequences,
    *,
    labels: Sequence[Any] | None = None,
    average: str | None = "weighted",
    zero_division: float = 0.0,
    unknown: object = AUTO,
) -> Any:
    """F1 of labels over tokens.

    Parameters
    ----------
    y_true, y_pred : list of (list or array of shape (length,))
        Label sequences; labels of any hashable type.
    labels : list, optional
        The labels to average over, such as all but "O"; one that does not occur scores `zero_division`. None: all that
        occur.
    average : {"weighted", "macro", "micro"} or None, default="weighted"
        As in :func:`sklearn.metrics.f1_score`; None: an array of the labels' scores.
    zero_division : float, default=0.0
        The score of a label without tokens.
    unknown : object, default="auto"
        As in :func:`token_accuracy`.

    Returns
    -------
    float, or ndarray of shape (n_labels,)

    Raises
    ------
    ValueError, TypeError
        As in :func:`token_accuracy`.

    Examples
    --------
    >>> from structsvm.metrics import flat_f1_score
    >>> round(flat_f1_score([["B-X", "O"], ["O"]], [["B-X", "O"], ["B-X"]], labels=["B-X"]), 3)
    0.667
    """
    return _scored("f1_score", y_true, y_pred, labels, average, zero_division, unknown)


def _scored(
    name: str, y_true: Any, y_pred: Any, labels: Any, average: str | None, zero_division: float, unknown: object
) -> Any:
    import sklearn.metrics

    if average == "binary":
        raise ValueError("average must be 'weighted', 'macro', 'micro' or None over the labels of tokens, got 'binary'")
    true, pred, ids, _ = _flat(y_true, y_pred, labels, unknown)
    value = getattr(sklearn.metrics, name)(true, pred, labels=ids, average=average, zero_division=zero_division)
    return value if average is None else float(value)


def flat_classification_report(
    y_true: LabelSequences,
    y_pred: LabelSequences,
    *,
    labels: Sequence[Any] | None = None,
    digits: int = 2,
    output_dict: bool = False,
    zero_division: float = 0.0,
    unknown: object = AUTO,
) -> str | dict[str, Any]:
    """Text with precision, recall, F1 and support of each label, and their averages, as scikit-learn prints them.

    Parameters
    ----------
    y_true, y_pred, labels, zero_division, unknown : see :func:`flat_f1_score`
    digits : int, default=2
        Digits behind the point.
    output_dict : bool, default=False
        Whether to return a dict in place of the text.

    Returns
    -------
    str or dict

    Examples
    --------
    >>> from structsvm.metrics import flat_classification_report
    >>> print(flat_classification_report([["a", "b"]], [["a", "a"]]).splitlines()[2].split())
    ['a', '0.50', '1.00', '0.67', '1']
    """
    from sklearn.metrics import classification_report

    true, pred, ids, names = _flat(y_true, y_pred, labels, unknown)
    names = names if output_dict else [printable(name) for name in names]
    report: str | dict[str, Any] = classification_report(
        true, pred, labels=ids, target_names=names, digits=digits, output_dict=output_dict, zero_division=zero_division
    )
    return report
