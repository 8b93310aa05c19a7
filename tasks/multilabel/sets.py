"""Sets of labels as users give them: a matrix of 0 and 1, or a collection of labels per row."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from structsvm.features.attributes import unwrapped
from structsvm.features.matrices import is_sparse
from structsvm.metrics._counts import AUTO, IGNORED, is_nan, is_unknown, say_unknown, say_unseen
from structsvm.tasks.common.labels import check_classes, is_hashable, label_array, listed, sort_labels


def read_sets(
    y: Any, labels: list[Hashable] | None = None, classes: Iterable[Hashable] | None = None, unknown: object = AUTO
) -> tuple[list[Any], str, Any]:
    """Return ``(labels, form, Y)`` of the sets of rows: Y is an int8 array of shape (n, n_labels).

    Parameters
    ----------
    y : matrix of 0, 1 and -1 (-100, NaN), or list of collections of labels (None: nothing is known)
    labels : list, optional
        Those that are settled.
    classes : list, optional
        Those that are to be; of a matrix without names of columns in their order.

    Raises
    ------
    ValueError
        For anything else, and labels that are none of those settled.
    """
    if labels is not None:
        check_classes(classes, labels)
    known = labels if labels is not None or classes is None else listed(classes)
    names = getattr(y, "columns", None)
    if names is not None and hasattr(y, "to_numpy"):
        y = y.to_numpy()
    if is_sparse(y) or (isinstance(y, np.ndarray) and y.dtype != object) or getattr(y, "ndim", 1) == 2:
        values = indicators(y.toarray() if is_sparse(y) else np.asarray(y))
        if labels is None and (values == -1.0).any() and (values == 1.0).any() and not (values == 0.0).any():
            raise ValueError("y has 1 and -1, and no 0: -1 is a label that is not known, 0 one that a row has not")
        known, values = by_column(values, names, known)
        return known, "sparse" if is_sparse(y) else "indicator", values.astype(np.int8)
    rows = rows_of(y, unknown)
    check_members(rows, unknown, is_new=labels is None)
    found = sort_labels(dict.fromkeys(label for row in rows if row is not None for label in row))
    check_no_matrix(rows, found)
    if known is None:
        known = found
    elif labels is None:
        known = sort_labels(known)
    return known, "sets", members(rows, known)


def indicators(matrix: NDArray[Any]) -> NDArray[np.float64]:
    """A matrix as 0, 1, and -1 for what is not known; ValueError, naming row and column, for anything else."""
    if matrix.ndim != 2 or matrix.shape[1] == 0:
        raise ValueError(
            "y must be a matrix of 0 and 1 with a column per label, or a list of sets of labels; got shape "
            f"{matrix.shape}"
        )
    try:
        if matrix.dtype == object:  # NA of pandas is no number
            matrix = np.where(np.vectorize(is_nan, otypes=[bool])(matrix), np.nan, matrix)
        values = matrix.astype(np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"y must be a matrix of 0 and 1, got {matrix.dtype}") from None
    values[np.isnan(values) | (values == IGNORED)] = -1.0
    wrong = ~np.isin(values, (0.0, 1.0, -1.0))
    if wrong.any():
        i, j = np.argwhere(wrong)[0].tolist()
        raise ValueError(
            f"y must be a matrix of 0, 1, and -1 for what is not known; row {i}, column {j} is {values[i, j]:g}"
        )
    return values


def by_column(
    values: NDArray[np.float64], names: Iterable[Hashable] | None, known: list[Any] | None
) -> tuple[list[Any], NDArray[np.float64]]:
    """Return ``(labels, values)``: the labels, and columns in their order; ValueError if columns are others."""
    found = list(range(values.shape[1])) if names is None else sort_free(names)
    if known is None:
        return found, values
    if len(known) != len(found):
        raise ValueError(f"y has {len(found)} columns, the labels are {len(known)}")
    if names is None:
        return known, values
    if set(found) != set(known):
        raise ValueError(f"the columns of y are {label_array(found)}, the labels are {label_array(known)}")
    return known, values[:, [found.index(label) for label in known]]


def rows_of(y: Any, unknown: object) -> list[Any]:
    """Collections of labels, None for what is not known; ValueError for an input that is no list."""
    if isinstance(y, (str, bytes)) or not hasattr(y, "__len__"):
        raise ValueError(f"y must be a matrix of 0 and 1, or a list of sets of labels, got {y!r:.80}")
    rows = [row.item() if isinstance(row, np.generic) else row for row in y]
    say_unknown((row for row in rows if isinstance(row, (int, float, str))), unknown, None, "rows")
    return [None if isinstance(row, (int, float, str)) and is_unknown(row, unknown) else row for row in rows]


def check_members(rows: Sequence[Any], unknown: object, *, is_new: bool) -> None:
    """Raise ValueError, naming the row, for one that is no collection, and for what is no label.

    In sets of a new model, marks of unknown labels are no labels.
    """
    for i, row in enumerate(rows):
        if row is not None and (isinstance(row, (str, bytes, dict)) or not hasattr(row, "__iter__")):
            raise ValueError(f"row {i} of y must be a collection of labels, got {row!r:.80}")
        for label in [] if row is None else row:
            if label is None or not is_hashable(label):
                raise ValueError(f"row {i} of y holds {label!r:.80}, which is no label")
            if is_new and is_unknown(label, unknown):
                raise ValueError(
                    f"row {i} of y holds {label!r:.80} among its labels, which means one that is not known; None in "
                    "the place of a row: nothing is known of it. unknown=None makes -1 a label"
                )


def check_no_matrix(rows: Sequence[Any], found: Iterable[Hashable]) -> None:
    """Raise ValueError for lists that are rows of a matrix."""
    lists = [row for row in rows if isinstance(row, (list, tuple))]
    if set(found) <= {0, 1} and len(set(map(len, lists))) == 1 and any(len(row) > len(set(row)) for row in lists):
        raise ValueError(
            "y is a list of rows of 0 and 1, which is taken as one of sets of labels: np.array(y) is a matrix"
        )


def members(rows: Sequence[Any], labels: Sequence[Hashable]) -> NDArray[np.int8]:
    """The matrix of sets; ValueError, naming the row, for a label that is none of these."""
    ids = {label: j for j, label in enumerate(labels)}
    Y = np.zeros((len(rows), len(ids)), dtype=np.int8)
    for i, row in enumerate(rows):
        if row is None:
            Y[i] = -1
        for label in [] if row is None else row:
            if label not in ids:
                raise ValueError(f"row {i} of y has the label {label!r:.80}, which is none of {label_array(labels)}")
            Y[i, ids[label]] = 1
    return Y


def without_unseen(y: Any, labels: Sequence[Hashable]) -> tuple[Any, NDArray[np.bool_]]:
    """Return ``(y, is_unseen)``: sets without the labels that are none of the model's, and which rows had such.

    Their number is said. Matrices are as they are, with one False for all rows.
    """
    if is_sparse(y) or getattr(y, "ndim", 1) == 2:
        return y, np.zeros(1, dtype=bool)
    y = unwrapped(y)
    if not isinstance(y, (list, tuple, np.ndarray)):
        return y, np.zeros(1, dtype=bool)
    seen, sets = set(labels), (set, frozenset, list, tuple)
    rows = [row if isinstance(row, sets) else () for row in y]
    if not say_unseen((label for row in rows for label in row), seen, "labels of rows"):
        return y, np.zeros(1, dtype=bool)
    kept = [[label for label in row if label in seen] if isinstance(row, sets) else row for row in y]
    return kept, np.array([not seen.issuperset(row) for row in rows])


def sort_free(names: Iterable[Hashable]) -> list[Any]:
    """Names of columns as labels; ValueError if one stands there twice."""
    labels = [name.item() if isinstance(name, np.generic) else name for name in names]
    if len(set(labels)) < len(labels):
        raise ValueError("columns of y have the same name")
    return labels
