"""Outliers of columns of numbers: few values so large that beside them the others have no size.

What is `OUTLIER` times as large as most values of its column is one: in dense columns as far from the median, in sparse
ones as large as most nonzeros. Those of a later batch are told by what columns had in training. An outlier becomes the
largest of its column's others, or is left as it is; each is named in a warning.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from structsvm._warnings import LEAST_INPUTS, AdviceWarning, warn
from structsvm.features.dense import FILLED, is_filled
from structsvm.features.matrices import is_sparse
from structsvm.features.ranges import pieces

if TYPE_CHECKING:
    from collections.abc import Callable

    from structsvm.arrays import Floats, Integers, Matrix
    from structsvm.features.tokens import Tokens

    R = TypeVar("R", bound=Any)

TINY, HUGE = float(np.finfo(np.float32).tiny), float(np.finfo(np.float32).max)
# A number so many times the one below which 9 of 10 are is an outlier.
OUTLIER, USUAL = 1000.0, 0.9
# Rows that tell which columns may have outliers; numbers that tell the usual size of sparse rows; columns in a warning.
MOST_LOOKED_AT, MOST_COMPARED, MOST_NAMED = 1000, 1 << 17, 3
# Fewer rows do not say what is usual.
LEAST_ROWS = 5
CUT, KEPT = "they are taken as the largest of the others", "they are taken as they are"

# The least and the largest value of each column that is taken as it is.
Limits: TypeAlias = tuple[NDArray[Any], NDArray[Any]]


def cut_off(tokens: Tokens, limits: Limits | None) -> Tokens:
    """The tokens without values beyond the limits of their columns, which they become."""
    if limits is None or tokens.values is None:
        return tokens
    values = np.empty_like(tokens.values)
    for piece in pieces(tokens.n_entries):
        low, high = (of_columns[tokens.indices[piece]] for of_columns in limits)
        np.clip(tokens.values[piece], low, high, out=values[piece])
    return replace(tokens, values=values)


def cut_columns(values: NDArray[Any], limits: Limits | None) -> NDArray[Any]:
    """The columns without values beyond their limits, which they become."""
    return values if limits is None else np.clip(values, *(limit.astype(values.dtype) for limit in limits))


def cut_entries(columns: Integers, values: Floats, limits: Limits | None) -> Floats:
    """The values of entries, with their columns, without those beyond the limits of these, which they become."""
    if limits is None:
        return values
    return np.clip(values, *(limit[columns].astype(values.dtype) for limit in limits))


def limits_of_columns(values: Floats) -> Limits | None:
    """The least and the largest number of each column without its outliers; None if there are none. Warns of them.

    An outlier is `OUTLIER` times as far from the median as `USUAL` of the numbers are; where most are equal, of those
    that are not.
    """
    if not values.size:
        return None
    found, limits = _dense_outliers(values)
    say_outliers(found, str)
    return limits if found else None


def _dense_outliers(values: Floats) -> tuple[list[Outliers], Limits]:
    """The columns with outliers, as `limits_of_columns` defines them, and the limits of all columns."""
    some = np.linspace(0, len(values) - 1, min(len(values), MOST_LOOKED_AT)).astype(np.intp)
    sample = values[some]
    middle = np.median(sample.astype(np.float64), axis=0)
    farthest = np.maximum(values.max(axis=0) - middle, middle - values.min(axis=0))
    most = float(np.finfo(values.dtype).max)
    low, high = (np.full(values.shape[1], end, dtype=values.dtype) for end in (-most, most))
    said: list[Outliers] = []
    for j in np.flatnonzero(farthest > 0.5 * OUTLIER * usual_of(np.abs(sample - middle))).tolist():
        column = values[:, j].astype(np.float64)
        far = np.abs(column - np.median(column))
        usual = float(usual_of(far[:, np.newaxis])[0])
        beyond = far > OUTLIER * usual
        if beyond.any():
            low[j], high[j] = column[~beyond].min(), column[~beyond].max()
            said.append(Outliers(j, int(beyond.sum()), float(np.abs(column[beyond]).max()), usual))
    return said, (low, high)


def usual_of(sizes: Floats) -> Floats:
    """The size in each column below which `USUAL` of all are, or where it is 0, of those that are not 0."""
    sizes = np.sort(sizes, axis=0)
    n, n_zeros = len(sizes), np.count_nonzero(sizes == 0.0, axis=0)
    of_all, of_others = int(USUAL * (n - 1)), n_zeros + (USUAL * (n - n_zeros - 1)).astype(np.intp)
    place = np.where(n_zeros > of_all, np.minimum(of_others, n - 1), of_all)
    return np.take_along_axis(sizes, place[np.newaxis], axis=0)[0]


def limits_of_tokens(tokens: Tokens) -> Limits | None:
    """`limits_of_columns` of tokens that are rows of numbers; with many zeros, of the size of the nonzeros."""
    if tokens.values is None or not tokens.n_entries:
        return None
    if tokens.n_entries > FILLED * max(tokens.n_tokens, 1) * tokens.n_features:
        return limits_of_columns(table(tokens))
    sizes = Sizes.of(tokens.indices, tokens.values)
    if not sizes.n_beyond.any():
        return None
    say_outliers(sizes.outliers(), str)
    return sizes.limits(tokens.n_features, only_beyond=True)


def limits_of_sparse(columns: Integers, values: Floats, n_columns: int) -> Limits | None:
    """The limits of columns of sparse rows, which no scale brings to one size; None without outliers. Warns of them.

    An outlier is `OUTLIER` times as large as `USUAL` of the nonzeros, those of its column and those of all columns. The
    only nonzero of a column becomes the size that is usual in all.
    """
    found = _sparse_outliers(columns, values)
    if found is None:
        return None
    say_outliers(found.outliers(), str)
    return found.limits(n_columns, only_beyond=True)


def warn_of_outliers(X: Matrix, outcome: str = KEPT) -> None:
    """Warn of rows whose columns have outliers that are left as they are; says what comes of them."""
    if X.shape[0] < LEAST_ROWS:
        return
    if is_filled(X):
        found = _dense_outliers(X)[0]
    else:
        columns, values = (X.indices, X.data) if is_sparse(X) else _nonzeros(X)
        sizes = _sparse_outliers(columns, values)
        found = [] if sizes is None else sizes.outliers()
    say_outliers(found, str, outcome)


def without_outliers(rows: R, size: Any, centre: Any = 0.0, name: Callable[[int], str] = str, outcome: str = CUT) -> R:
    """The rows of a later batch without outliers, each of which becomes the largest of the others; warns of them.

    A column in which they are many is in other units than those of training: it is named, and taken as it is.

    Parameters
    ----------
    rows : ndarray or CSR matrix of shape (n, n_columns), SparseRows or Tokens
    size, centre : float, or ndarray of shape (n_columns,)
        How far values were from the centre of their column in training. An outlier is `OUTLIER` times as far.
    name : callable
        The name of a column, by its index.
    outcome : str
        What comes of outliers, for the warning: `CUT`, or another, with which the rows are returned as they are.
    """
    is_table = isinstance(rows, np.ndarray)
    values: Any = rows if is_table else rows.data if is_sparse(rows) else rows.values
    if values is None or not values.size:
        return rows
    n_columns = rows.n_features if hasattr(rows, "n_features") else rows.shape[1]
    size, centre = (np.broadcast_to(np.asarray(one, dtype=np.float64), n_columns) for one in (size, centre))
    columns = None if is_table else rows.indices
    bounds, found, elsewhere = dict[int, tuple[float, float]](), list[Outliers](), list[Outliers]()
    for j in _columns_beyond(values, columns, size, centre):
        own = (values[:, j] if columns is None else values[columns == j]).astype(np.float64)
        far = np.abs(own - centre[j])
        beyond = far > OUTLIER * size[j]
        one = Outliers(j, int(beyond.sum()), float(np.abs(own).max()), float(abs(centre[j]) + size[j]))
        if len(own) >= LEAST_INPUTS and one.n > (1.0 - USUAL) * len(own):
            elsewhere.append(one)
            continue
        reach = far[~beyond].max(initial=0.0) or size[j]
        bounds[j] = (centre[j] - reach, centre[j] + reach)
        found.append(one)
    say_outliers(elsewhere, name, "they are most of it, perhaps in other units than those of training")
    say_outliers(found, name, outcome)
    if not found or outcome != CUT:
        return rows
    most = float(np.finfo(values.dtype).max)
    low, high = np.full(n_columns, -most), np.full(n_columns, most)
    low[[*bounds]], high[[*bounds]] = np.transpose([*bounds.values()])
    if columns is None:
        cut: Any = cut_columns(rows, (low, high))
        return cut
    values = cut_entries(columns, values, (low, high))
    if not is_sparse(rows):
        return replace(rows, values=values)
    return type(rows)((values, rows.indices, rows.indptr), shape=rows.shape)


def _columns_beyond(values: Floats, columns: Integers | None, size: Floats, centre: Floats) -> list[int]:
    """The columns of a table, or of entries with their columns, that have outliers."""
    if columns is None:
        reach = np.maximum(values.max(axis=0) - centre, centre - values.min(axis=0))
        return np.flatnonzero(reach > OUTLIER * size).tolist()
    return np.unique(columns[np.abs(values - centre[columns]) > OUTLIER * size[columns]]).tolist()


def middle_of(X: Floats) -> Floats:
    """A value of each column that most rows are near: the median; of fewer than `LEAST_ROWS` the least in size."""
    if len(X) >= LEAST_ROWS:
        return np.median(X.astype(np.float64), axis=0)
    return np.take_along_axis(X, np.abs(X).argmin(axis=0)[np.newaxis], axis=0)[0]


def _nonzeros(X: Matrix) -> tuple[Integers, Floats]:
    """The columns and the values of the nonzeros of dense rows."""
    rows, columns = np.nonzero(X)
    return columns, X[rows, columns]


def _sparse_outliers(columns: Integers, values: Floats) -> Sizes | None:
    """The sizes of columns of sparse rows that have outliers, as `limits_of_sparse` defines them."""
    sizes = np.abs(values)
    some = sizes[np.linspace(0, len(sizes) - 1, min(len(sizes), MOST_COMPARED)).astype(np.intp)]
    some = np.sort(some[some > 0.0])
    if not len(some):
        return None
    usual = float(some[int(USUAL * (len(some) - 1))])
    is_far = sizes > OUTLIER * usual
    if not is_far.any():
        return None
    chosen = np.isin(columns, columns[is_far]) & (sizes > 0.0)
    return Sizes.of(columns[chosen], values[chosen], usual)


class Outliers(NamedTuple):
    """The outliers of a column, for a warning."""

    column: int
    n: int
    largest: float
    usual: float


class Sizes(NamedTuple):
    """The sizes of the numbers of some columns.

    Attributes
    ----------
    columns : ndarray of shape (n,)
    usual, largest, below : ndarray of shape (n,)
        Below which `USUAL` of the column's sizes are; the largest of all, and of those that are no outliers.
    n_beyond : ndarray of shape (n,)
        Outliers of each.
    """

    columns: Integers
    usual: Floats
    largest: Floats
    below: Floats
    n_beyond: Integers

    @classmethod
    def of(cls, columns: Integers, values: Floats, usual_of_all: float = 0.0) -> Self:
        """The sizes of numbers, from the column and the value of each.

        `usual_of_all`: outliers are `OUTLIER` times this size, too, and it is that of a column with one number.
        """
        sizes = np.abs(values)
        order = np.lexsort((sizes, columns))
        columns, sizes = columns[order], sizes[order]
        found, starts = np.unique(columns, return_index=True)
        ends = np.append(starts[1:], len(columns)).astype(np.intp)
        usual = sizes[starts + (USUAL * (ends - starts - 1)).astype(np.intp)]
        if usual_of_all:
            usual = np.where(ends - starts == 1, usual_of_all, usual)
        beyond = sizes > OUTLIER * np.maximum(usual.astype(np.float64), usual_of_all).repeat(ends - starts)
        n_beyond = np.add.reduceat(beyond, starts, dtype=np.intp) if len(starts) else starts
        below = np.where(n_beyond < ends - starts, sizes[ends - 1 - n_beyond], usual)
        return cls(found, usual, sizes[ends - 1], below, n_beyond)

    def limits(self, n_columns: int, *, only_beyond: bool = False) -> Limits:
        """The limits of all columns: of those with outliers the largest other size, else `OUTLIER` times the usual one.

        `only_beyond`: these alone have limits.
        """
        limit = np.full(n_columns, HUGE, dtype=np.float32)
        otherwise = HUGE if only_beyond else OUTLIER * self.usual.astype(np.float64)
        limit[self.columns] = np.clip(np.where(self.n_beyond > 0, self.below, otherwise), TINY, HUGE)
        return -limit, limit

    def outliers(self) -> list[Outliers]:
        """The columns that have some."""
        table = zip(self.columns.tolist(), self.n_beyond.tolist(), self.largest.tolist(), self.usual.tolist())
        return [Outliers(*row) for row in table if row[1]]


def say_outliers(found: list[Outliers], name: Callable[[int], str], outcome: str = CUT) -> None:
    """Warn of columns with outliers, the first ones by their names, and of what becomes of them."""
    for column, n, largest, usual in found[:MOST_NAMED]:
        warn(
            f"feature {name(column)!r:.80} has {n} values of up to {largest:.3g}, where most are at most {usual:.3g}: "
            f"{outcome}. Correct them, or give the logarithm",
            AdviceWarning,
        )


def table(tokens: Tokens) -> NDArray[np.float32]:
    """The rows of tokens as an array (n_tokens, n_features)."""
    n, d = tokens.n_tokens, tokens.n_features
    if tokens.n_entries == n * d:
        values = np.ones(n * d, np.float32) if tokens.values is None else tokens.values
        return values.reshape(n, d)
    rows = np.zeros((n, d), dtype=np.float32)
    for piece in pieces(n, d):
        ends = tokens.indptr[piece.start : piece.stop + 1]
        at, entries = np.repeat(np.arange(piece.start, piece.stop), np.diff(ends)), slice(ends[0], ends[-1])
        rows[at, tokens.indices[entries]] = 1.0 if tokens.values is None else tokens.values[entries]
    return rows
