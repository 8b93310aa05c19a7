"""Groups of rows that are labelled or ranked as one, with losses that are not sums over rows (Joachims 2005)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from structsvm.features.dense import DenseRows, check_squares
from structsvm.features.matrices import is_sparse
from structsvm.features.ranges import take_ranges
from structsvm.features.sparse import SparseRows, as_rows
from structsvm.oracles._ranking import GROUP_LOSSES, GroupProblem
from structsvm.parameters import COUNT, NONE, Options, check_arguments
from structsvm.protocol import Oracle, Penalty, Rescaling, UnsupportedFormulation
from structsvm.structures.queries import HIGHEST_GRADE

if TYPE_CHECKING:
    from structsvm.arrays import AnyArray

__all__ = ["RankingOracle"]


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """Rows whose groups are consecutive.

    Attributes
    ----------
    rows : SparseRows or DenseRows
    bounds : int64 array of shape (n_groups + 1,)
        Where each group begins.
    """

    rows: SparseRows | DenseRows
    bounds: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.bounds) - 1

    def __getitem__(self, groups: slice) -> Groups:
        start, stop, _ = groups.indices(len(self))
        bounds = self.bounds[start : max(start, stop) + 1]
        return Groups(self.rows[int(bounds[0]) : int(bounds[-1])], bounds - bounds[0])

    def take(self, groups: Any) -> tuple[Groups, Any]:
        """``(groups, rows)``: some groups, and the indices of their rows."""
        bounds, rows = take_ranges(self.bounds, groups)
        return Groups(self.rows.take(rows), bounds), rows

    @property
    def arrays(self) -> tuple[AnyArray, ...]:
        rows = self.rows
        own = (rows.values, np.array([rows.has_intercept])) if isinstance(rows, DenseRows) else rows.arrays
        return *own, self.bounds


class _Runs:
    """The rows of each group by grade, in runs of one grade.

    Attributes
    ----------
    order : int array of shape (n_rows,)
        The rows by group and grade.
    group, of_row : int arrays of shape (n_rows,)
        The group of each row, and the run of each row in this order.
    starts, lengths : int arrays of shape (n_runs,)
        Where each run begins in it, and how many rows it has.
    """

    def __init__(self, grades: Any, bounds: NDArray[np.int64]) -> None:
        self.grades, self.bounds, self.sizes = grades, bounds, np.diff(bounds)
        self.largest = int(self.sizes.max(initial=0))
        self.group = np.repeat(np.arange(len(self.sizes)), self.sizes)
        if len(self.sizes) == 1 and grades.max(initial=0.0) <= 1.0 and not np.modf(grades)[0].any():  # without sorting
            self.order = np.concatenate([np.flatnonzero(grades == grade) for grade in np.unique(grades)])
        else:
            self.order = np.lexsort((grades, self.group))
        in_order, is_new = grades[self.order], np.ones(len(self.order), dtype=bool)
        is_new[1:] = (in_order[1:] != in_order[:-1]) | (self.group[1:] != self.group[:-1])
        self.starts = np.flatnonzero(is_new)
        self.lengths, self.of_row = np.diff(np.append(self.starts, len(self.order))), np.cumsum(is_new) - 1

    def sums(self, values: Any) -> NDArray[np.float64]:
        """The sum per group of values of rows."""
        return np.bincount(self.group, weights=values, minlength=len(self.sizes)).astype(np.float64, copy=False)

    def ranks(self) -> NDArray[np.float64]:
        """The index of each row's grade among those of its group."""
        found = np.empty(len(self.order))
        first = self.of_row[self.bounds[:-1]] if len(self.order) and (self.sizes > 0).all() else 0 * self.sizes
        found[self.order] = self.of_row - first[self.group]
        return found

    def n_pairs(self) -> NDArray[np.float64]:
        """The number of pairs of different grades per group."""
        ties = self.lengths * (self.lengths - 1.0)
        of_ties = np.bincount(self.group[self.starts], weights=ties, minlength=len(self.sizes))
        return 0.5 * (self.sizes * (self.sizes - 1.0) - of_ties)


def _inverse(values: Any) -> NDArray[np.float64]:
    """1 over positive values, else 0."""
    return np.divide(1.0, values, out=np.zeros(len(values)), where=values > 0.0)


class RankingOracle(Oracle):
    """Inference and losses over groups of rows.

    An example is a group of rows and their grades. With the scores ``s_r = <w, x_r>`` rows are found, if ``s_r > 0``
    or if they are among the k best, or ranked. A bound problem finds the most violated output in O(n log n), see
    `GroupProblem`. Rows of positive grade are relevant.

    ``error``: the share of wrong rows; the objective is that of a linear SVM, with the mean of its hinge losses.

    ``f1``: 1 - F1.

    ``prec_at_k``: 1 - precision among the k rows found; ``prbep`` with k = the number of relevant ones, where precision
    and recall are the same.

    ``pairs``, ``roc_area``: the share of swapped pairs of rows of different grades; with two grades 1 - ROC area.

    ``map``: 1 - average precision (Yue and others 2007).

    ``ndcg``: 1 - normalised discounted cumulative gain, of the k first places if k is given, with gains 2^grade - 1 and
    discounts 1 / log2(1 + place). The joint feature sums rows times discounts (Le and Smola 2007); a row of the true
    ranking has the mean discount of the places of its grade.

    Parameters
    ----------
    n_input_features : int
        Columns of X.
    loss : str
        One of these.
    k : int, optional
        For "prec_at_k", and for "ndcg".

    Notes
    -----
    Joachims 2005 labels rows +-1; the differences of joint features here are half of his, divided by n or the number of
    pairs: so a row (a pair) with margin 1 has no loss in "error" ("pairs").

    Examples
    --------
    >>> import numpy as np
    >>> from structsvm.oracles.ranking import RankingOracle
    >>> oracle = RankingOracle(1, "pairs")
    >>> scores = oracle.argmax(np.array([[0.1], [0.9], [0.5]]), np.array([1.0]))
    >>> oracle.loss([0, 1, 2], scores)
    0.3333333333333333
    """

    def __init__(self, n_input_features: Any, loss: str = "pairs", k: Any = None) -> None:
        check_arguments("RankingOracle", locals(), n_input_features=COUNT, loss=Options(*GROUP_LOSSES), k=(COUNT, NONE))
        if loss == "prec_at_k" and k is None:
            raise ValueError(
                f"The 'k' parameter of RankingOracle must be {COUNT} for loss='prec_at_k'. Got None instead."
            )
        self.loss_name, self.k = loss, None if k is None else int(k)
        self.n_input_features = self.n_features = int(n_input_features)
        if loss in ("prec_at_k", "prbep"):
            self.rescalings = ("margin", "slack")

    def bind(
        self, X: Any, Y: Any, *, rescaling: Rescaling | None = "margin", penalty: Penalty | None = "linear"
    ) -> GroupProblem:
        """Bind groups and their grades (see `Oracle.bind`): `Groups` and an array of grades, or a list of both."""
        self.check_formulation(rescaling, penalty)
        if not isinstance(X, Groups):
            X, Y = self._joined(X, Y)
        grades = np.ascontiguousarray(Y, dtype=np.float64)
        if grades.shape != (len(X.rows),):
            raise ValueError(f"X has {len(X.rows)} rows, y has {grades.shape} grades")
        if X.rows.n_features != self.n_input_features:
            raise ValueError(f"X has {X.rows.n_features} columns, expected {self.n_input_features}")
        check_squares(X.rows.values)
        if not np.isfinite(grades).all():
            raise ValueError("grades must be finite")
        if self.loss_name == "ndcg" and not (
            grades.min(initial=0.0) >= 0.0 and grades.max(initial=0.0) <= HIGHEST_GRADE
        ):
            raise ValueError(
                f"grades must be from 0 to {HIGHEST_GRADE:g} for loss='ndcg', whose gains are 2^grade - 1, "
                f"got {grades.min():g} to {grades.max():g}"
            )
        if self.loss_name == "prec_at_k":
            for i in np.flatnonzero(np.diff(X.bounds) < self.k)[:1]:
                raise ValueError(f"k = {self.k} rows are to be found of the {np.diff(X.bounds)[i]} of example {i}")
        return GroupProblem(self, X, grades, rescaling=rescaling, penalty=penalty)

    def _joined(self, X: Any, Y: Any) -> tuple[Groups, Any]:
        """The groups of a list of matrices and a list of their grades."""
        if len(X) != len(Y):
            raise ValueError(f"X has {len(X)} examples, y has {len(Y)}")
        for i, (x, y) in enumerate(zip(X, Y, strict=True)):
            if x.shape[0] != len(y):
                raise ValueError(f"example {i} has {x.shape[0]} rows and {len(y)} grades")
        bounds = np.cumsum([0, *(len(y) for y in Y)], dtype=np.int64)
        if not len(X):
            rows = np.zeros((0, self.n_input_features))
        elif is_sparse(X[0]):
            from scipy.sparse import vstack

            rows = vstack(X, format="csr")
        else:
            rows = np.vstack(X)
        return Groups(as_rows(rows, self.n_input_features), bounds), np.concatenate([*Y, np.zeros(0)])

    def about(self, grades: Any, bounds: NDArray[np.int64]) -> tuple[AnyArray, ...]:
        """Tables that the losses compute from grades.

        Returns
        -------
        gain : float64 array of shape (n_rows,)
            For "ndcg", the gain over that of the ideal ranking; else the index of the grade among those of its group,
            where rows that are not relevant have one grade, but with "pairs".
        order : int32 array of shape (n_rows,)
            The rows of each group, from its first, by grade.
        n_negative, n_found : int64 arrays of shape (n_groups,)
            Rows that are not relevant, and rows to find, of "prec_at_k" and "prbep".
        norm : float64 array of shape (n_groups,)
            The factor of coefficients; 0: the grades say nothing.
        truth : float64 array of shape (n_rows,)
            For "ndcg", the mean discount of the places of each row's grade.
        table : float64 array
            Discounts by place; of "map" the harmonic numbers.
        """
        loss = self.loss_name
        if loss not in ("pairs", "roc_area", "ndcg"):
            grades = (grades > 0.0).astype(np.float64)
        runs = _Runs(grades, bounds)
        n_positive = runs.sums(grades > 0.0).astype(np.int64)
        n_negative = runs.sizes - n_positive
        n_found = n_positive if loss != "prec_at_k" else np.full(len(runs.sizes), self.k)
        gain, norm, truth, table = grades, np.zeros(0), np.zeros(1), np.zeros(1)
        if loss == "error":
            norm = 1.0 / runs.sizes
        elif loss == "ndcg":
            gain, norm, truth, table = self._discounted(runs)
        elif loss in ("pairs", "roc_area"):
            gain, norm = runs.ranks(), _inverse(runs.n_pairs())
        else:
            says = (n_positive > 0) & (n_negative > 0)
            norm = _inverse(says * (1.0 * n_positive * n_negative if loss == "map" else runs.sizes))
            if loss == "map":
                table = np.concatenate([[0.0], np.cumsum(1.0 / np.arange(1.0, runs.largest + 1.0))])
        local = (runs.order - bounds[:-1][runs.group]).astype(np.int32)
        return gain, local, n_negative.astype(np.int64), np.asarray(n_found, dtype=np.int64), norm, truth, table

    def _discounted(self, runs: _Runs) -> tuple[Any, ...]:
        """``(gain, norm, truth, table)`` of "ndcg"."""
        table = 1.0 / np.log2(np.arange(2.0, runs.largest + 2.0))
        table[self.k or runs.largest :] = 0.0
        n = len(runs.order)
        # From the best grade down: places in a group, of its last row the first.
        place = np.repeat(runs.bounds[1:], runs.sizes) - 1 - np.arange(n)
        truth = np.zeros(n)
        if n:
            truth[runs.order] = (np.add.reduceat(table[place], runs.starts) / runs.lengths)[runs.of_row]
        gain = np.exp2(runs.grades) - 1.0
        ideal = runs.sums(gain * truth)
        return gain / np.where(ideal > 0.0, ideal, 1.0)[runs.group], 1.0 * (ideal > 0.0), truth, table

    # ---- the protocol, on plain objects ---------------------------------------------------------------

    def joint_feature(self, x: Any, y: Any) -> Any:
        """Raises UnsupportedFormulation: the true grades determine which rows are compared."""
        raise UnsupportedFormulation(
            f"RankingOracle has no joint feature of an output alone, as loss={self.loss_name!r} compares it with the "
            "true grades: its constraints come through bind()"
        )

    def argmax(self, x: Any, w: Any, y_true: Any = None, rescaling: Any = None) -> NDArray[np.float64]:
        """The scores of the rows, by which they are found or ranked; `bind` makes constraints."""
        if y_true is not None:
            self.joint_feature(x, y_true)
        return np.asarray(x @ np.asarray(w, dtype=np.float64))

    def loss(self, y_true: Any, y: Any) -> float:
        """The loss of scores y; of equal ones, the worse row comes first."""
        grades, scores = np.asarray(y_true, dtype=np.float64), np.asarray(y, dtype=np.float64)
        norm = self.about(grades, np.array([0, len(grades)]))[4][0]
        if norm == 0.0:
            return 0.0
        # One column, the scores: the loss of plain inference at w = 1.
        problem = RankingOracle(1, self.loss_name, self.k).bind([scores[:, None]], [grades], rescaling=None)
        return float(problem.separate(0, np.ones(1))[0])
