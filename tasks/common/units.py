"""Columns in standard units, so that a model does not depend on the given ones.

Dual solvers and the regulariser treat all columns alike: one in large units drowns the others, one in small units is
drowned, and means far from 0 cost passes. A model with `Units` learns weights of what `Units.applied` returns;
`Units.undone` has those of the columns as given.

Rows of numbers are standardised. Those of a sequence also weigh as much as the previous label: the mean square of
their length is 1, as each transition is 1; if they have many zeros, these stay zeros, and attributes (one column
per word, say) each weigh as much as a label. Named features are such columns as soon as one of them is a number. A few
huge values of a column become the least or the largest of its others, lest these lose their size: in sparse rows too,
which are otherwise used as given.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from structsvm._warnings import LEAST_INPUTS, MANY_UNKNOWN, AdviceWarning, warn
from structsvm.features.dense import FILLED, DenseRows, check_squares, column_moments, is_filled
from structsvm.features.matrices import LEAST_OF_SPARSE, LEAST_SIZE, is_sparse
from structsvm.features.ranges import pieces, repeated
from structsvm.features.word_codes import VectorUnits
from structsvm.stored_values import Array, Record, Stored
from structsvm.tasks.common.intercept import rows_of, with_intercept
from structsvm.tasks.common.selection.search import LEAST_EXAMPLES

if TYPE_CHECKING:
    from collections.abc import Callable

    from structsvm.arrays import Floats, Integers, Matrix, Weights
    from structsvm.features.encoder import FeatureEncoder
    from structsvm.features.sparse import SparseRows
    from structsvm.features.tokens import Tokens

TINY, HUGE = float(np.finfo(np.float32).tiny), float(np.finfo(np.float32).max)
# Units in a file; a model may have none.
UNITS = Record(
    {
        "scale": Array("f4 f8", ("n_columns",), within=(TINY, None)),
        "centre": Array("f4 f8", ("n_columns",), needed=False),
        "low": Array("f4 f8", ("n_columns",), needed=False),
        "high": Array("f4 f8", ("n_columns",), needed=False),
    },
    needed=False,
)
# A column whose deviation is less than this share of its mean, by the bytes of a number, is constant but for rounding.
CONSTANT, SMALLEST = {4: 1e-6, 8: 1e-13}, 1e-30
# Rows with a smaller share of numbers that are not zero are those of attributes.
ATTRIBUTES = 0.05
# A number so many times the one below which 9 of 10 are is an outlier; a named one so many times the others' size is
# large.
OUTLIER, USUAL, LARGE = 1000.0, 0.9, 1000.0
# A number of a vector beside attributes, which count 1, drowns them when its size is beyond this: with one of 10, the
# score of a parser of drawn trees falls by one point, with 50 by twenty. Smaller ones weigh as the vectors' user says.
DROWNING = 10.0
# Rows of a prediction that are looked at, and rows that tell which columns may have outliers.
MOST_LOOKED_AT = 1000
MOST_NAMED = 3  # features in a warning
# Rows so many that copies among them hardly move a mean, and take long to find.
MOST_COMPARED = 1 << 17


# The least and the largest value of each column that is taken as it is.
Limits: TypeAlias = tuple[NDArray[Any], NDArray[Any]]


class Units(NamedTuple):
    """The centres subtracted from columns, and the scales that then divide them.

    Attributes
    ----------
    scale : ndarray of shape (n_columns,)
    centre : ndarray of shape (n_columns,), or None
        None: zeros stay zeros.
    low, high : ndarray of shape (n_columns,), or None
        Values beyond them are taken as them; None: there are no outliers, and no named numbers.
    """

    scale: Floats
    centre: Floats | None = None
    low: Floats | None = None
    high: Floats | None = None

    @classmethod
    def of_rows(cls, rows: DenseRows | SparseRows, *, short: bool = False, alike: bool = False) -> Self | None:
        """Return units in which columns have mean 0 and variance 1; None for too few rows.

        Sparse rows with outliers have limits alone, others no units. Without an intercept no column is shifted. A
        constant column keeps its unit. `short`: a whole row has variance 1, so that it weighs as much as other features
        of the model. `alike`: all columns have one unit, in which the mean of their variances is 1.
        """
        if len(rows.values if isinstance(rows, DenseRows) else rows.indptr[1:]) < LEAST_EXAMPLES:
            return None
        if not isinstance(rows, DenseRows):
            bounds = limits_of_sparse(rows.indices, rows.values, rows.n_features)
            return None if bounds is None else cls(np.ones(rows.n_features), None, *bounds)
        limits = limits_of_columns(rows.values)
        mean, size = moments(cut_columns(rows.values, limits))
        if alike and size.any():
            size = np.where(size > 0.0, math.sqrt(float(np.mean(size[size > 0.0] ** 2))), 0.0)
        length = math.sqrt(max(int(np.count_nonzero(size)), 1)) if short else 1.0
        return cls(np.where(size > 0.0, size, 1.0) * length, mean * rows.has_intercept, *limits or ())

    @classmethod
    def of_matrix(cls, X: Matrix, has_intercept: bool, weight: Weights | None = None, **options: bool) -> Self | None:
        """`of_rows` of a matrix, with each distinct row of nonzero weight once: copies and weights do not matter."""
        if not is_filled(X):
            return cls.of_rows(rows_of(X, has_intercept=False))
        return cls.of_rows(distinct_rows(rows_of(X, has_intercept), weight), **options)

    @classmethod
    def of_tokens(cls, tokens: Tokens, limits: Limits | None = None) -> Self:
        """Return the units of the tokens of sequences: with many zeros, the size of the nonzeros.

        `limits`: those of named numbers; None: of all columns.
        """
        limits = limits_of_tokens(tokens) if limits is None else limits
        tokens = cut_off(tokens, limits)
        n, d, centre = max(tokens.n_tokens, 1), tokens.n_features, None
        if tokens.n_entries > FILLED * n * d:
            mean, size = moments(table(tokens))
            centre, length = mean.astype(np.float32), math.sqrt(max(int(np.count_nonzero(size)), 1))
        else:
            counts, squares = np.zeros(d, dtype=np.int64), np.zeros(d)
            for piece in pieces(tokens.n_entries):
                values = None if tokens.values is None else tokens.values[piece].astype(np.float64) ** 2
                counts += np.bincount(tokens.indices[piece], minlength=d)
                squares += np.bincount(tokens.indices[piece], weights=values, minlength=d)
            size = np.sqrt(squares / np.maximum(counts, 1))
            length = 1.0 if tokens.n_entries < ATTRIBUTES * n * d else math.sqrt(tokens.n_entries / n)
        scale = np.clip(np.where(size > 0.0, size, 1.0) * length, TINY, HUGE)
        return cls(scale.astype(np.float32), centre, *limits or ())

    @classmethod
    def of_named(cls, tokens: Tokens, encoder: FeatureEncoder) -> Self:
        """Return the units of tokens with named features; warns of numbers that are outliers, or large."""
        return cls.of_tokens(tokens, limits_of(tokens, encoder) if len(encoder.numbers) else None)

    @property
    def limits(self) -> Limits | None:
        """``(low, high)``, if there are some."""
        return None if self.low is None or self.high is None else (self.low, self.high)

    def of_columns(self, chosen: Any) -> Self:
        """The units of some columns."""
        own: list[Any] = [None if of is None else of[chosen] for of in self]
        return type(self)(*own)

    def applied(self, rows: Any) -> Any:
        """`DenseRows` in these units; or `Tokens`, with an intercept behind the columns (bigrams stay as they are)."""
        if isinstance(rows, DenseRows):
            kind, centre = rows.values.dtype, np.zeros(1) if self.centre is None else self.centre
            values = cut_columns(rows.values, self.limits)
            return replace(rows, values=(values - centre.astype(kind)) * (1.0 / self.scale).astype(kind))
        rows = cut_off(rows, self.limits)
        n, d = rows.n_tokens, rows.n_features
        if self.centre is None:
            values = np.empty(rows.n_entries, dtype=np.float32)
            for piece in pieces(rows.n_entries):
                value = np.float32(1.0) if rows.values is None else rows.values[piece]
                np.divide(value, self.scale[rows.indices[piece]], out=values[piece])
            return with_intercept(replace(rows, values=values))
        values, own = np.empty((n, d + 1), dtype=np.float32), table(rows)
        for piece in pieces(n, d):
            np.subtract(own[piece], self.centre, out=values[piece, :d])
            values[piece, :d] /= self.scale
            values[piece, d] = 1.0
        return replace(
            rows,
            indptr=np.arange(0, n * (d + 1) + 1, d + 1, dtype=np.int64),
            indices=repeated(np.arange(d + 1, dtype=np.int32), n),
            values=values.ravel(),
            n_features=d + 1,
        )

    @property
    def usual(self) -> Floats:
        """A size that values of each column have."""
        return self.scale + (0.0 if self.centre is None else np.abs(self.centre))

    def left(self, values: Floats) -> Floats:
        """Numbers as they came, from those in these units."""
        return values * self.scale + (0.0 if self.centre is None else self.centre)

    def undone(self, weights: Floats) -> Floats:
        """Weights of columns as given, from those in these units; rows are columns, that of an intercept last."""
        n = len(self.scale)
        own = weights.astype(np.float64)
        own[:n] /= self.scale[:, None]
        if self.centre is not None:
            own[n:] -= self.centre @ own[:n]
        try:
            with np.errstate(over="raise"):
                return own.astype(weights.dtype)
        except FloatingPointError as error:
            raise ValueError("weights for the columns as they came overflow float32") from error


def check_scale(X: Matrix) -> None:
    """Raise ValueError for a matrix whose squares overflow, or are too small to learn from."""
    values = X.data if is_sparse(X) else X
    check_squares(values)
    if values.any() and max(values.max(), -values.min()) < (LEAST_OF_SPARSE if is_sparse(X) else LEAST_SIZE):
        raise ValueError("the squares of X underflow float32; scale the features up")


def warn_of_other_units(X: Matrix, usual: Floats) -> None:
    """Warn of a prediction for rows that mostly have values a thousand times the usual ones of their columns."""
    some = X[:: max(1, -(-X.shape[0] // MOST_LOOKED_AT))]
    if is_sparse(some):
        beyond = np.abs(some.data) > LARGE * usual[some.indices]
        rows = np.diff(np.concatenate([[0], np.cumsum(beyond)])[some.indptr]) > 0
    else:
        rows = (np.abs(some) > LARGE * usual).any(axis=1)
    n = int(np.count_nonzero(rows))
    if len(rows) >= LEAST_INPUTS and n > MANY_UNKNOWN * len(rows):
        warn(
            f"{n} of {len(rows)} rows looked at have values a thousand times those of training: are they in its units?",
            AdviceWarning,
        )


def distinct_rows(rows: DenseRows | SparseRows, weight: Weights | None) -> DenseRows | SparseRows:
    """Return the rows of a weight above 0, each once, in another order; more than `MOST_COMPARED` as they are."""
    if not isinstance(rows, DenseRows):
        return rows
    rows = rows if weight is None else rows.take(np.flatnonzero(weight > 0.0))
    return rows.take(distinct_places(rows.values))


def distinct_places(values: Floats) -> slice | Integers:
    """Return the indices of distinct rows; a slice of all for more than `MOST_COMPARED`."""
    if len(values) > MOST_COMPARED:
        return slice(None)
    return np.unique(values.view(f"V{values.strides[0]}").ravel(), return_index=True)[1]


def cut_rows(units: Units | None, X: Matrix) -> Matrix:
    """A matrix without values beyond the limits of its columns, for weights of columns as given."""
    if units is None or units.limits is None:
        return X
    if is_sparse(X) and units.centre is None:
        low, high = (limit.astype(X.dtype) for limit in units.limits)
        X = X.tocsr(copy=True)
        X.data = np.clip(X.data, low[X.indices], high[X.indices])
        return X
    return cut_columns(X.toarray() if is_sparse(X) else np.asarray(X), units.limits)


def rows_in(
    units: Units | None, X: Matrix, has_intercept: bool, sparse: Callable[[Matrix], Tokens | SparseRows] | None = None
) -> Any:
    """The rows of a matrix as of `rows_of`; in units, if there are some, as `DenseRows`."""
    if units is None or units.centre is None:
        return rows_of(cut_rows(units, X), has_intercept, sparse)
    X = X.toarray() if is_sparse(X) else X
    return units.applied(DenseRows(np.ascontiguousarray(X), has_intercept=has_intercept))


def undone(units: Units | None, weights: Floats) -> Floats:
    """`Units.undone`, if there are some."""
    return weights if units is None else units.undone(weights)


def units_of(stored: Stored | None, n_columns: int) -> Units | None:
    """The units of a file, if it has some."""
    return None if stored is None else Units(**stored.arrays(n_columns=n_columns))


def moments(values: Floats) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Means and standard deviations of columns, these 0 for what is constant but for rounding."""
    mean, variance = column_moments(values)
    size = np.sqrt(variance)
    least = CONSTANT[values.dtype.itemsize] * np.abs(mean)
    return mean, np.where(size > np.maximum(least, SMALLEST), size, 0.0)


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


def limits_of_columns(values: Floats) -> Limits | None:
    """The least and the largest number of each column without its outliers; None if there are none. Warns of them.

    An outlier is `OUTLIER` times as far from the median as `USUAL` of the numbers are; where most are equal, of those
    that are not.
    """
    if not values.size:
        return None
    found, limits = _dense_outliers(values)
    _warn_of_outliers(found, str)
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
    _warn_of_outliers(sizes.outliers(), str)
    return sizes.limits(tokens.n_features, only_beyond=True)


def limits_of_sparse(columns: Integers, values: Floats, n_columns: int) -> Limits | None:
    """The limits of columns of sparse rows, which no scale brings to one size; None without outliers. Warns of them.

    An outlier is `OUTLIER` times as large as `USUAL` of the nonzeros, those of its column and those of all columns. The
    only nonzero of a column becomes the size that is usual in all.
    """
    found = _sparse_outliers(columns, values)
    if found is None:
        return None
    _warn_of_outliers(found.outliers(), str)
    return found.limits(n_columns, only_beyond=True)


def warn_of_outliers(X: Matrix) -> None:
    """Warn of rows whose columns have outliers, to which kernels, that have no units, are exposed."""
    if X.shape[0] < LEAST_EXAMPLES:
        return
    if is_filled(X):
        found = _dense_outliers(X)[0]
    else:
        columns, values = (X.indices, X.data) if is_sparse(X) else _nonzeros(X)
        sizes = _sparse_outliers(columns, values)
        found = [] if sizes is None else sizes.outliers()
    _warn_of_outliers(found, str, "the kernel sees them as they are")


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


def limits_of(tokens: Tokens, encoder: FeatureEncoder) -> Limits:
    """The limits of named features, beyond which values are cut off: for numbers `OUTLIER` times their usual size.

    If there are some beyond it, the largest of the others. Warns of these, and of features that are large.
    """
    chosen = np.isin(tokens.indices, encoder.numbers)
    sizes = Sizes.of(tokens.indices[chosen], cast("Floats", tokens.values)[chosen])
    others = np.bincount(tokens.indices, minlength=tokens.n_features) > 0
    others[sizes.columns] = False
    usual = sizes.usual
    size = float(np.median(np.concatenate([usual, np.ones(np.count_nonzero(others))]))) if len(usual) else 1.0
    names = encoder.feature_names
    _warn_of_outliers(sizes.outliers(), names.__getitem__)
    _warn_of_large(names, sizes.columns, usual > LARGE * size, usual)
    return sizes.limits(tokens.n_features)


def units_of_vectors(numbers: NDArray[np.float32], names: list[str]) -> VectorUnits | None:
    """The units of vectors of words, in which large numbers have the size of attributes, 1; None if there are none.

    Each number that is larger than `DROWNING` for any word has a limit, as named features have; if its size, the root
    mean square of the nonzeros, is, too, it is divided by that. Warns of outliers, and of large numbers.
    """
    largest = np.maximum(numbers.max(axis=0, initial=0.0), -numbers.min(axis=0, initial=0.0))
    chosen = np.flatnonzero(largest > DROWNING)
    if not len(chosen):
        return None
    own = numbers[:, chosen]
    sizes = Sizes.of(chosen[own.nonzero()[1]], own[own.nonzero()])
    _, limit = sizes.limits(len(names))
    squares = np.square(np.clip(own, -limit[chosen], limit[chosen]), dtype=np.float64)
    size = np.sqrt(squares.sum(axis=0) / np.count_nonzero(own, axis=0))
    scale = np.ones(len(names), dtype=np.float32)
    scale[chosen] = np.where(size > DROWNING, np.minimum(size, HUGE), 1.0)
    _warn_of_outliers(sizes.outliers(), names.__getitem__)
    _warn_of_large(names, chosen, size > LARGE, sizes.usual)
    return VectorUnits(scale, limit)


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


def _warn_of_outliers(
    found: list[Outliers], name: Callable[[int], str], outcome: str = "they are taken as the largest of the others"
) -> None:
    """Warn of columns with outliers, the first ones by their names, and of what becomes of them."""
    for column, n, largest, usual in found[:MOST_NAMED]:
        warn(
            f"feature {name(column)!r:.80} has {n} values of up to {largest:.3g}, where most are at most {usual:.3g}: "
            f"{outcome}. Correct them, or give the logarithm",
            AdviceWarning,
        )


def _warn_of_large(names: list[str], columns: Integers, is_large: Any, usual: Floats) -> None:
    """Warn of named numbers that are large."""
    large = np.flatnonzero(is_large)
    if len(large):
        listed = ", ".join(f"{names[columns[k]]!r:.80} ({usual[k]:.3g})" for k in large[:MOST_NAMED].tolist())
        warn(
            f"numbers a thousand times the size of other features, which are divided by their size: {listed}"
            f"{', and others' * (len(large) > MOST_NAMED)}. If it is their differences that matter, as of dates and "
            "identifiers, subtract the mean; what names something is better given as a string",
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
