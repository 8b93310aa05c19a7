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
from typing import TYPE_CHECKING, Any, NamedTuple, Self, cast

import numpy as np
from numpy.typing import NDArray

from structsvm._warnings import LEAST_INPUTS, MANY_UNKNOWN, AdviceWarning, warn
from structsvm.features.dense import FILLED, DenseRows, check_squares, column_moments, is_filled
from structsvm.features.inputs.outliers import (
    CUT,
    HUGE,
    KEPT,
    MOST_COMPARED,
    MOST_LOOKED_AT,
    MOST_NAMED,
    OUTLIER,
    TINY,
    Limits,
    Sizes,
    cut_columns,
    cut_entries,
    cut_off,
    limits_of_columns,
    limits_of_sparse,
    limits_of_tokens,
    say_outliers,
    table,
    warn_of_outliers,
    without_outliers,
)
from structsvm.features.matrices import LEAST_OF_SPARSE, LEAST_SIZE, is_sparse
from structsvm.features.ranges import pieces, repeated
from structsvm.features.word_codes import OwnColumns, VectorUnits
from structsvm.stored_values import Array, Record, Stored
from structsvm.tasks.common.intercept import rows_of, with_intercept
from structsvm.tasks.common.selection.search import LEAST_EXAMPLES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from structsvm.arrays import Floats, Integers, Matrix, Weights
    from structsvm.features.encoder import FeatureEncoder
    from structsvm.features.sparse import SparseRows
    from structsvm.features.tokens import Tokens
    from structsvm.tasks.common.model import TaskModel

# Units in a file; a model may have none.
UNITS = Record(
    {
        "scale": Array("f4 f8", ("n_columns",), within=(TINY, None)),
        "centre": Array("f4 f8", ("n_columns",), needed=False),
        "low": Array("f4 f8", ("n_columns",), needed=False),
        "high": Array("f4 f8", ("n_columns",), needed=False),
        "far": Array("f4 f8", ("n_columns",), needed=False),
    },
    needed=False,
)
# A column whose deviation is less than this share of its mean, by the bytes of a number, is constant but for rounding.
CONSTANT, SMALLEST = {4: 1e-6, 8: 1e-13}, 1e-30
# Rows with a smaller share of numbers that are not zero are those of attributes.
ATTRIBUTES = 0.05
# A mean so many times the deviation is far from 0.
FAR = 10.0
# A named number so many times the others' size is large.
LARGE = 1000.0
# A number of a vector beside attributes, which count 1, drowns them when its size is beyond this: with one of 10, the
# score of a parser of drawn trees falls by one point, with 50 by twenty. Smaller ones weigh as the vectors' user says.
DROWNING = 10.0
ROUNDING = 1e-6  # as a share of a number


class Units(NamedTuple):
    """The centres subtracted from columns, and the scales that then divide them.

    Attributes
    ----------
    scale : ndarray of shape (n_columns,)
    centre : ndarray of shape (n_columns,), or None
        None: zeros stay zeros.
    low, high : ndarray of shape (n_columns,), or None
        Values beyond them are taken as them; None: there are no outliers, and no named numbers.
    far : ndarray of shape (n_columns,), or None
        Means of columns that are not shifted, where some are far from 0.
    """

    scale: Floats
    centre: Floats | None = None
    low: Floats | None = None
    high: Floats | None = None
    far: Floats | None = None

    @classmethod
    def of_rows(cls, rows: DenseRows | SparseRows, *, short: bool = False, alike: bool = False) -> Self | None:
        """Return units in which columns have mean 0 and variance 1; None for too few rows.

        Sparse rows with outliers have limits, large columns of theirs a scale, others no units. Without an intercept no
        column is shifted. A constant column keeps its unit. `short`: a whole row has variance 1, so that it weighs as
        much as other features of the model. `alike`: all columns have one unit, in which the mean of their variances
        is 1.
        """
        if len(rows.values if isinstance(rows, DenseRows) else rows.indptr[1:]) < LEAST_EXAMPLES:
            return None
        if not isinstance(rows, DenseRows):
            bounds = limits_of_sparse(rows.indices, rows.values, rows.n_features)
            sizes = large_columns(cut_entries(rows.indices, rows.values, bounds), rows.indices, rows.n_features)
            _warn_of_large(sizes.keys(), sizes.values())
            scale = np.ones(rows.n_features)
            scale[[*sizes]] = [*sizes.values()]
            return None if bounds is None and not sizes else cls(scale, None, *bounds or (None, None))
        limits = limits_of_columns(rows.values)
        mean, size = moments(cut_columns(rows.values, limits))
        if alike and size.any():
            size = np.where(size > 0.0, math.sqrt(float(np.mean(size[size > 0.0] ** 2))), 0.0)
        length = math.sqrt(max(int(np.count_nonzero(size)), 1)) if short else 1.0
        scale = np.where(size > 0.0, size, 1.0) * length
        is_far = not rows.has_intercept and bool((np.abs(mean) > FAR * scale).any())
        low, high = limits or (None, None)
        return cls(scale, mean * rows.has_intercept, low, high, mean if is_far else None)

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
    def middle(self) -> Floats | float:
        """Where the values of each column lie."""
        if self.far is not None:
            return self.far
        return 0.0 if self.centre is None else self.centre

    @property
    def usual(self) -> Floats:
        """A size that values of each column have."""
        return self.scale + np.abs(self.middle)

    def left(self, X: Matrix) -> Matrix:
        """Rows as they came, from those in these units."""
        if is_sparse(X):
            scale = self.scale.astype(X.dtype)
            return type(X)((X.data * scale[X.indices], X.indices, X.indptr), shape=X.shape)
        return X * self.scale + (0.0 if self.centre is None else self.centre)

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


def settle_sizes(model: TaskModel[Any], X: Matrix) -> None:
    """Store how large values are after a first training has settled the units of columns.

    Warns of outliers and large columns where there are no units: they are left as they are there.
    """
    if model.units is None:
        warn_of_outliers(X)
        warn_of_large_columns(X)
    rows = cut_rows(model.units, X)
    values = rows.data if is_sparse(rows) else rows
    model.largest = float(max(values.max(), -values.min())) if values.size else None


def later_rows(model: TaskModel[Any], X: Matrix, *, is_cut: bool = True) -> Matrix:
    """The rows of a later batch without the outliers among them, see `without_outliers`; `is_cut`: or with them.

    In columns with units outliers are told by these, in others by the largest value of training.
    """
    outcome, units = CUT if is_cut else KEPT, model.units
    if units is not None and units.centre is not None:
        X = X.toarray() if is_sparse(X) else X
        return without_outliers(X, units.scale, units.middle, outcome=outcome)
    if model.largest:
        return without_outliers(X, model.largest, outcome=outcome)
    if not is_cut:
        warn_of_outliers(X)
        return X
    rows = rows_of(X, has_intercept=False)  # a file contains no such size: the batch itself tells
    if isinstance(rows, DenseRows):
        return cut_columns(X, limits_of_columns(X))
    limits = limits_of_sparse(rows.indices, rows.values, rows.n_features)
    return X if limits is None else cut_rows(Units(np.ones(rows.n_features), None, *limits), X)


def later_tokens(units: Units | None, tokens: Tokens, name: Callable[[int], str] = str) -> Tokens:
    """The tokens of a later batch without outliers; features without units had the value 1."""
    if units is None:
        return without_outliers(tokens, 1.0, name=name)
    return without_outliers(tokens, units.scale, units.middle, name)


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


def sized_rows(units: Units | None, X: Matrix) -> Matrix:
    """`cut_rows`, with large columns divided by their size."""
    X = cut_rows(units, X)
    if units is None or (units.scale == 1.0).all():
        return X
    scale = units.scale.astype(X.dtype)
    if isinstance(X, np.ndarray):
        return X / scale
    return type(X)((X.data / scale[X.indices], X.indices, X.indptr), shape=X.shape)


def rows_in(
    units: Units | None, X: Matrix, has_intercept: bool, sparse: Callable[[Matrix], Tokens | SparseRows] | None = None
) -> Any:
    """The rows of a matrix as of `rows_of`; in units, if there are some, as `DenseRows`."""
    if units is None or units.centre is None:
        return rows_of(sized_rows(units, X), has_intercept, sparse)
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
    say_outliers(sizes.outliers(), names.__getitem__)
    large = np.flatnonzero(usual > LARGE * size)
    _warn_of_large([names[j] for j in sizes.columns[large].tolist()], usual[large].tolist())
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
    say_outliers(sizes.outliers(), names.__getitem__)
    large = np.flatnonzero(size > LARGE)
    _warn_of_large([names[j] for j in chosen[large].tolist()], sizes.usual[large].tolist())
    return VectorUnits(scale, limit)


def later_vectors(numbers: NDArray[np.float32], own: OwnColumns) -> NDArray[np.float32]:
    """Numbers of vectors of a later batch, which are in their units, without outliers; warns of these.

    In units a number is as large as 1, and cut off at its limit; one without is at most `DROWNING`.
    """
    n = len(own.number_names)
    limit = np.full(n, HUGE) if own.units is None else own.units.limit / own.units.scale.astype(np.float64)
    size = np.clip(limit * (1.0 - ROUNDING) / OUTLIER, 0.1, DROWNING)
    return without_outliers(numbers, size, name=own.number_names.__getitem__)


def large_columns(values: Floats, columns: Integers, n_columns: int) -> dict[int, float]:
    """The columns whose nonzeros are `LARGE` times those of half of the columns, and their mean size."""
    sizes = np.abs(values)
    some = sizes[np.linspace(0, len(sizes) - 1, min(len(sizes), MOST_COMPARED)).astype(np.intp)]
    some = some[some > 0.0]
    if not len(some) or sizes.max() <= LARGE * np.quantile(some, 0.1):
        return {}
    n = np.bincount(columns, sizes > 0.0, minlength=n_columns)
    mean = np.bincount(columns, sizes, minlength=n_columns) / np.maximum(n, 1)
    large = np.flatnonzero(mean > LARGE * np.median(mean[n > 0]))
    return dict(zip(large.tolist(), mean[large].tolist()))


def warn_of_large_columns(X: Matrix, name: Callable[[int], str] = str) -> None:
    """Warn of columns without units that drown others: in dense rows by their deviations."""
    if is_filled(X):
        size = moments(X)[1]
        large = np.flatnonzero(size > LARGE * np.median(size[size > 0.0])).tolist() if size.any() else []
        found = {j: float(size[j]) for j in large}
    else:
        rows = rows_of(X, has_intercept=False)
        found = large_columns(rows.values, rows.indices, rows.n_features)
    _warn_of_large(map(name, found.keys()), found.values(), "which drown these: scale them")


def _warn_of_large(
    names: Iterable[object], sizes: Iterable[float], outcome: str = "which are divided by their size"
) -> None:
    """Warn of numbers that are large, by the names and sizes of their columns."""
    found = [f"{str(name)!r:.80} ({size:.3g})" for name, size in zip(names, sizes)]
    if found:
        warn(
            f"numbers a thousand times the size of other features, {outcome}: {', '.join(found[:MOST_NAMED])}"
            f"{', and others' * (len(found) > MOST_NAMED)}. If it is their differences that matter, as of dates and "
            "identifiers, subtract the mean; what names something is better given as a string",
            AdviceWarning,
        )
