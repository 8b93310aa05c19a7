"""Pairs of true and predicted outputs, the labels that mean an unknown one, and ratios of counts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Container, Hashable, Iterable
from itertools import islice
from typing import Protocol, TypeVar

import numpy as np

from structsvm._warnings import AdviceWarning, warn
from structsvm.features.inputs.masks import check_no_masks, is_masked, without_masks

True_ = TypeVar("True_")
Predicted = TypeVar("Predicted")


def paired(y_true: Iterable[True_], y_pred: Iterable[Predicted], what: str) -> tuple[list[True_], list[Predicted]]:
    """Return both as lists, what is masked in `y_true` as None; `what` names the items.

    Raises ValueError if they differ in length, are empty, or if entries of `y_pred` are masked.
    """
    check_no_masks(y_pred, "y_pred")
    true, pred = list(without_masks(y_true)), list(y_pred)
    if len(true) != len(pred):
        raise ValueError(f"y_true has {len(true)} {what} and y_pred has {len(pred)}.")
    if not true:
        raise ValueError(f"y_true and y_pred have no {what} to score.")
    return true, pred


# Marks of unknown labels: what the parameter `unknown` is by default, and the numbers that are read as unknown unasked.
# -1 is scikit-learn's mark of unlabelled examples, -100 what token classifiers ignore.
AUTO, UNLABELLED, IGNORED = "auto", -1, -100
# Text that is a number.
NUMBER = re.compile(r"[+-]?[0-9]{1,15}(\.[0-9]{1,15})?", re.ASCII)


def is_unknown(label: object, unknown: object = AUTO) -> bool:
    """Whether a label in y stands for an unknown one: None and -100 always, and the mark `unknown`.

    "auto" is -1, whatever the other labels are; None: there is no mark. Text that is a number, as files have it, is
    read as that number.
    """
    if label is None or isinstance(label, (bool, np.bool_)):
        return label is None
    if isinstance(label, (str, tuple)) and unknown is not None and not _is_auto(unknown) and label == unknown:
        return True
    number = number_of(label)
    return number is not None and (number == IGNORED or number == (UNLABELLED if _is_auto(unknown) else unknown))


def is_nan(label: object) -> bool:
    """Whether a label is NaN, pandas' NA or a masked entry; a text or a collection is none of them."""
    if is_masked(label):
        return label.ndim == 0 and bool(label.mask)
    if isinstance(label, Collection):
        return False
    try:
        return bool(label != label)
    except TypeError:  # NA is neither equal to itself nor not
        return True


def check_no_nan(labels: Iterable[object], place: Callable[[int], str]) -> None:
    """Raise ValueError for a true label that `is_nan`; `place` says where the k-th one stands."""
    for k, label in enumerate(labels):
        if is_nan(label):
            raise ValueError(f"{place(k)}: the label is {label!r}; None says that it is not known")


def number_of(label: object) -> float | None:
    """The number that a label is, or that its text is; None: it is none."""
    if isinstance(label, str):
        return float(label) if NUMBER.fullmatch(label) else None
    is_number = isinstance(label, (int, float, np.integer, np.floating)) and not isinstance(label, bool)
    return float(label) if is_number else None  # type: ignore[arg-type]


def _is_auto(unknown: object) -> bool:
    return isinstance(unknown, str) and unknown == AUTO


def mark_for(unknown: object, labels: Iterable[object]) -> object:
    """The mark beside labels that a model has: one of these is a label, and no mark."""
    return None if any(is_unknown(label, unknown) for label in labels) else unknown


def say_unknown(labels: Iterable[object], unknown: object, known: Collection[object] | None, what: str) -> None:
    """Say how many labels are numbers that are read as unknown though `unknown` does not name them.

    Parameters
    ----------
    labels : iterable
        All labels of y; `what` names them ("tokens", "rows").
    unknown : object
        The mark.
    known : collection, optional
        The other labels of y, where they must be two or more.

    Raises
    ------
    ValueError
        There is one other label only.
    """
    counts = Counter(number_of(label) for label in labels if _is_unasked(label, unknown))
    for value, n in ((value, counts[value]) for value in (UNLABELLED, IGNORED) if value in counts):
        remedy = "unknown=-1 says so without this message, and unknown=None makes -1 a label"
        if value == IGNORED:
            remedy = "None in its place, or unknown=-100, says so without this message"
        text = f"y is {value} at {n} {what}, which is read as: not known; {remedy} (on the command line: --unknown)"
        if known is not None and len(known) == 1:
            raise ValueError(f"y has one label alone, {next(iter(known))!r:.80}: {text}")
        warn(text, AdviceWarning)


def _is_unasked(label: object, unknown: object) -> bool:
    """Whether a label is a number that is read as unknown, and the mark is another one."""
    number = None if isinstance(label, str) and label == unknown else number_of(label)
    if number is None:
        return False
    return number == UNLABELLED if _is_auto(unknown) and number != IGNORED else number == IGNORED != unknown


class Places(Protocol):
    """Where labels stand in a file."""

    def place_of(self, i: int, number: int, /) -> str | None:
        """File and line of a part of example i."""


def say_unseen(labels: Iterable[object], seen: Container[object], what: str, places: Places | None = None) -> int:
    """Say how many labels are none of `seen`, and return the number; None and collections are no labels.

    `places` has file and line of each label, ``place_of(i, 0)``: those of the first one are said.
    """
    found = [(i, label) for i, label in enumerate(labels) if isinstance(label, Hashable) and label not in seen]
    counts, n = Counter(label for _, label in found), len(found)
    if n:
        names = ", ".join(f"{label!r:.40}" for label in islice(counts, 3)) + ", ..." * (len(counts) > 3)
        names += "" if places is None else f", the first at {places.place_of(found[0][0], 0)}"
        warn(f"{n} {what} have a label that training never saw ({names}): they count as wrong", AdviceWarning)
    return n


def precision_recall_f1(n_correct: float, n_true: float, n_predicted: float) -> tuple[float, float, float]:
    """Return the three ratios; one with denominator 0 is 0."""
    return (
        n_correct / n_predicted if n_predicted else 0.0,
        n_correct / n_true if n_true else 0.0,
        2 * n_correct / (n_true + n_predicted) if n_correct else 0.0,
    )
