"""Labels: wrong ones (`Not`), sorted, as ids and arrays; their costs; those of streams, which the first batch fixes."""

from __future__ import annotations

import operator
import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import repeat
from numbers import Real
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from structsvm._warnings import AdviceWarning, warn
from structsvm.metrics._counts import IGNORED, check_no_nan, is_nan, is_unknown, say_unknown, say_unseen

K = TypeVar("K", bound=Hashable)

# Missing values of NumPy and pandas as text.
MISSING_TEXTS = ("nan", "NaN", "<NA>", "NaT")

if TYPE_CHECKING:
    from collections.abc import Container, Iterable

    from numpy.typing import NDArray

    from structsvm.arrays import Integers, LabelArray, Weights


def is_hashable(label: object) -> bool:
    """Whether a label can be a key."""
    try:
        hash(label)
    except TypeError:
        return False
    return True


@dataclass(frozen=True, init=False, repr=False)
class Not:
    """A mark in y: the label is none of these.

    In training it stands for the set of all other labels, those that y names and those of the model (Ishida and others
    2017, "Learning from complementary labels"). `teach` keeps the mark: once there are more labels, `consolidate` has
    these among the others.

    Parameters
    ----------
    labels : hashable
        Arguments, one or more. In a taxonomy whose labels are leaves, an inner node stands for all labels below it.

    Raises
    ------
    ValueError
        Without a label.
    TypeError
        For a set, a list or None.

    Examples
    --------
    >>> from structsvm.tasks import Not, TaxonomyClassifier
    >>> X, y = [[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]] * 3, ["a", "b", "c"] * 3
    >>> model = TaxonomyClassifier(C=1.0, loss="log", random_state=0).fit(X + [[0.0, 2.0]], y + [Not("c")])
    >>> model.predict([[0.0, 2.0]]).tolist()
    ['a']
    """

    labels: frozenset[Hashable]

    def __init__(self, *labels: Hashable) -> None:
        if not labels:
            raise ValueError("Not takes the labels that are wrong, one at least")
        for label in labels:
            if label is None or not is_hashable(label):
                raise TypeError(f"Not takes labels, each as an argument of its own, got {label!r:.80}")
        object.__setattr__(self, "labels", frozenset(labels))

    __hash__ = None  # type: ignore[assignment]  # it is no label

    def __repr__(self) -> str:
        return f"Not({', '.join(map(repr, sort_labels(list(self.labels))))})"


def agreement(
    y: Any,
    predicted: Iterable[object],
    unknown: object,
    collections: tuple[type, ...],
    allows: Any = operator.eq,
    *,
    seen: Container[object],
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return whether each prediction agrees with y, and whether y labels the example: two bool arrays.

    Parameters
    ----------
    y : iterable
        Per example a label, a collection of possible labels, `Not` with wrong ones, or None: any label.
    predicted : iterable of labels
    unknown : object
        The mark of unknown labels (`is_unknown`).
    collections : tuple of type
        Types of collections of labels: their objects are no labels themselves.
    allows : callable
        Returns whether the first argument, a label in y, admits the second one, a prediction.
    seen : container
        The labels that training saw; how many others y has is said.

    Raises
    ------
    ValueError
        If the numbers of examples differ, for NaN in the place of a label, or if y has no labelled example.
    """
    y, predicted = list(y), list(predicted)
    if len(y) != len(predicted):
        raise ValueError(f"X has {len(predicted)} samples, y has {len(y)}")

    def agrees(known: object, label: object) -> bool:
        if isinstance(known, Not):
            return not any(allows(one, label) for one in known.labels)
        if isinstance(known, collections):
            return any(agrees(one, label) for one in weights_of(known))
        return known is None or allows(known, label)

    check_no_nan(y, "y, number {}".format)
    says = np.array([not is_unknown(known, unknown) for known in y], dtype=bool)
    if not says.any():
        raise ValueError("y tells nothing of any example")
    say_unknown(y, unknown, None, "examples that the score leaves out")
    marks = (*collections, Not)
    alone = (label for label, is_known in zip(y, says) if is_known and not isinstance(label, marks))
    say_unseen(alone, seen, "examples")
    right = [agrees(known, label) for known, label in zip(y, predicted, strict=True)]
    return np.array(right, dtype=bool), says


def weights_of(candidates: Any) -> dict[Hashable, float]:
    """The weights of a collection of labels, without those of 0; 1 each if it is not a dict of them.

    Raises ValueError, which says what the weights must be.
    """
    if not isinstance(candidates, dict):
        return dict.fromkeys(candidates, 1.0)
    try:
        weights = {label: float(weight) for label, weight in candidates.items()}
    except (TypeError, ValueError):
        raise ValueError("must be numbers") from None
    if not all(0.0 <= weight < np.inf for weight in weights.values()):
        raise ValueError("must be finite and not negative")
    return {label: weight for label, weight in weights.items() if weight > 0.0}


def ids_by_label(labels: Sequence[Hashable], used: Iterable[Hashable]) -> dict[Hashable, int]:
    """The index of each label of a model; ValueError for one of `used` that is none of them."""
    id_of = {label: k for k, label in enumerate(labels)}
    unknown = [label for label in used if label not in id_of]
    if unknown:
        raise ValueError(
            f"label {unknown[0]!r} is not one of the model's labels, which the first fit settles "
            f"(partial_fit can name later ones: classes=): {labels}"
        )
    return id_of


def sort_labels(labels: Iterable[Any]) -> list[Any]:
    """The labels in their own order, or, if they have none, by type and text."""
    labels = list(labels)
    if any(map(is_nan, labels)):
        raise ValueError("y holds NaN as a label")
    labels = [label.item() if isinstance(label, np.generic) else label for label in labels]
    try:
        return sorted(labels)
    except TypeError:
        return sorted(labels, key=lambda label: (type(label).__name__, repr(label)))


def from_text(name: str) -> str | set[str] | None:
    r"""Return the label that a column's text stands for: ``_`` for any label, ``A|B`` for one of these.

    A backslash escapes the next character: the labels ``_`` and ``A|B`` are ``\_`` and ``A\|B``.
    """
    parts = re.split(r"(?<!\\)\|", name)
    if parts == ["_"]:
        return None
    if "" in parts or "_" in parts:
        raise ValueError(f"the label {name!r}: each side of a bar must name a label, the label _ as \\_")
    labels = [re.sub(r"\\([|_])", r"\1", part) for part in parts]
    return labels[0] if len(labels) == 1 else set(labels)


def label_array(labels: LabelArray | Sequence[Any]) -> LabelArray:
    """Labels as an array: as it is, of one type that NumPy has, else of objects (NumPy cuts off NULs at the end)."""
    if isinstance(labels, np.ndarray):
        return labels
    kinds = {type(label) for label in labels}
    cut_off = kinds == {str} and any(label.endswith("\0") for label in labels)
    if len(kinds) == 1 and kinds <= {str, int, float, bool} and not cut_off:
        return np.array(labels)
    array = np.empty(len(labels), dtype=object)
    array[:] = labels
    return array


def label_costs(class_weight: Any, labels: Sequence[Hashable], label_ids: Integers) -> NDArray[np.float64] | None:
    """Cost of a wrong label, by the true one: array (n_labels,), or None for 1."""
    if class_weight is None:
        return None
    if class_weight == "balanced":
        counts = np.bincount(label_ids, minlength=len(labels))
        return len(label_ids) / (len(labels) * np.maximum(counts, 1.0))
    unknown = [label for label in class_weight if label not in labels]
    if unknown:
        raise ValueError(f"class_weight names {unknown[0]!r}, which is not one of the labels {labels}")
    for label, weight in class_weight.items():
        if not isinstance(weight, Real) or not 0.0 < float(weight) < np.inf:
            raise ValueError(f"class_weight must be positive and finite, got {weight!r} for the label {label!r}")
    return np.array([float(class_weight.get(label, 1.0)) for label in labels])


def listed(classes: Any) -> list[Any]:
    """Distinct labels of `classes`, an argument of `partial_fit`; ValueError unless it is a collection of labels."""
    try:
        found = classes.tolist() if isinstance(classes, np.ndarray) else list(classes)
        if not isinstance(classes, (str, bytes)) and all(map(is_hashable, found)):
            return list(dict.fromkeys(found))
    except TypeError:  # no collection
        pass
    raise ValueError(f"classes must be a list of labels, got {classes!r:.80}")


def summed(keys: Iterable[K], weight: Weights | None) -> dict[K, tuple[int, float]]:
    """Per distinct key its first place, and the sum of its weights (None: 1 each), if not 0."""
    total: dict[K, tuple[int, float]] = {}
    for i, (key, w) in enumerate(zip(keys, repeat(1.0) if weight is None else weight.tolist())):
        if w > 0.0:
            first, sum_ = total.get(key, (i, 0.0))
            total[key] = (first, sum_ + w)
    return total


def distinct(labels: LabelArray | list[Any], name: str) -> LabelArray:
    """Distinct labels, ascending, as an array; ValueError, which begins with `name`, if they have no order."""
    if isinstance(labels, np.ndarray) and labels.dtype.kind != "O":
        return np.unique(labels)
    unhashable = next((label for label in labels if not is_hashable(label)), None)
    if unhashable is not None:
        raise ValueError(f"{name} holds {unhashable!r:.80}, which is no label")
    try:
        return np.unique(labels)
    except TypeError:
        raise ValueError(
            f"{name} holds labels that have no order among them (strings and numbers, say): {labels!r:.200}"
        ) from None


def _plain(label: object) -> object:
    """A label as Python's own type."""
    return label.item() if isinstance(label, np.generic) else label


def warn_of_odd_labels(labels: Iterable[object]) -> None:
    """Warn of labels of a first training that are missing values as text, empty, or two ways to write one."""
    texts = dict[str, object]()
    for label in map(_plain, labels):
        text = label if isinstance(label, str) else str(label)
        if isinstance(label, str) and (text in MISSING_TEXTS or not text.strip()):
            warn(
                f"y has the label {label!r}, which is a class like the others: None says that a label is not known",
                AdviceWarning,
            )
        first = texts.setdefault(text.strip(), label)
        if first is not label:
            warn(f"y has the labels {first!r:.80} and {label!r:.80}, which are two: write one of them", AdviceWarning)


def check_labelled(y: object, *, takes_unknown: bool = False) -> None:
    """Raise ValueError, with the number of rows, for labels NaN or NA, and for unknown ones unless `takes_unknown`.

    ValueError for dates as well.
    """
    values = y.to_numpy() if hasattr(y, "to_numpy") else y
    if not isinstance(values, (np.ndarray, list, tuple)):
        return
    kind = getattr(values, "dtype", np.dtype("O")).kind
    check_no_dates(values)
    mark = {"i": IGNORED, "U": str(IGNORED)}.get(kind)
    if kind not in "Of" and (mark is None or not (np.asarray(values) == mark).any()):
        return
    missing = [i for i, label in enumerate(values) if is_missing(label, takes_unknown=takes_unknown)]
    if missing:
        raise ValueError(
            f"y has no label (but None, NaN, NA or -100) in {len(missing)} of its rows, row {missing[0]} the first: "
            + ("None says that a label is not known" if takes_unknown else "leave these rows out of X and y; ")
            + "AmbiguousClassifier learns from rows whose label is None" * (not takes_unknown)
        )


def check_no_dates(y: object) -> None:
    """Raise ValueError for an array of dates or durations, which are neither names nor numbers."""
    dtype = getattr(y, "dtype", None)
    if getattr(dtype, "kind", "") in ("m", "M"):
        raise ValueError(
            f"y holds {dtype}: labels are names or whole numbers, and grades numbers; y.astype(str) names it"
        )


def is_missing(label: Any, *, takes_unknown: bool) -> bool:
    """Whether a value of y is no label: NaN, NA of pandas, or the sign of an unknown one, unless that is taken."""
    return not takes_unknown if is_unknown(label, None) else is_nan(label)


def check_targets(y: object) -> None:
    """Raise ValueError unless y are labels of classes, as defined by scikit-learn."""
    from sklearn.utils.multiclass import check_classification_targets

    try:
        check_classification_targets(y)
    except TypeError as error:  # bytes, or labels without an order among them
        raise ValueError(f"y holds no labels of classes: {error}") from error


def check_no_classes(classes: object, reason: str) -> None:
    """Raise ValueError, which ends in the reason, if `partial_fit` is given classes that it does not support."""
    if classes is not None:
        raise ValueError(f"classes={classes!r:.80} has no meaning here: {reason}")


def check_classes(classes: object, labels: LabelArray | Sequence[Hashable]) -> None:
    """Raise ValueError if `partial_fit` is given other classes than those of the first call."""
    if classes is not None and set(listed(classes)) != set(labels):
        last = label_array(labels)
        raise ValueError(f"classes={classes!r} is not the same as on the last call of partial_fit: {last}")


def settled_labels(
    y: Any, classes: Iterable[Hashable] | None, labels: LabelArray | None = None, *, streams: bool = True
) -> LabelArray:
    """All labels of a stream, ascending.

    Parameters
    ----------
    y : ndarray
        Labels of the batch.
    classes : array-like or None
        The argument of `partial_fit`.
    labels : ndarray, optional
        Those fixed by an earlier call.
    streams : bool
        Whether there is `partial_fit`.

    Raises
    ------
    ValueError
        `classes` are others than `labels`, or no labels that can be sorted, or there is one class only.
    """
    if labels is None:
        labels = distinct(y, "y") if classes is None else distinct(listed(classes), "classes")
    else:
        check_classes(classes, labels)
    if len(labels) < 2:
        only = f"only one class: {labels.tolist()[0]!r}" if len(labels) else "no class"
        hint = " (partial_fit takes all of them as classes=)" * streams
        raise ValueError(f"2 classes or more are needed, and y has {only}{hint}")
    return labels


def label_ids_of(y: LabelArray, labels: LabelArray) -> Integers:
    """Ids of labels, int32; ValueError for one that is not among them."""
    if all(isinstance(a, np.ndarray) and a.dtype.kind == labels.dtype.kind in "USiu" for a in (y, labels)):
        ids = np.minimum(np.searchsorted(labels, y), len(labels) - 1)
        if (labels[ids] == y).all():
            return ids.astype(np.int32)
    try:
        unseen = np.setdiff1d(y, labels).tolist()
    except TypeError:  # y has labels of another type
        known = set(labels.tolist())
        unseen = [label for label in np.asarray(y).tolist() if label not in known]
    if unseen:
        row = np.asarray(y).tolist().index(unseen[0])
        raise ValueError(
            f"row {row} of y has the label {unseen[0]!r}, none of the classes that the first call has settled: {labels}"
        )
    return np.searchsorted(labels, y).astype(np.int32)


def check_stream_weight(class_weight: object) -> None:
    """ValueError for class weights that need the counts of all labels."""
    if isinstance(class_weight, str):
        raise ValueError(
            "class_weight='balanced' needs the counts of all labels, which a stream does not tell; "
            "give partial_fit a dict"
        )
