"""Matchings of two sets of nodes, one to one or several to one: assignment problems (Taskar and others 2005).

The compiled part is scipy's `linear_sum_assignment`. A right node of capacity c is c columns of its matrix; forbidden
pairs are minus infinity there. Where nodes may stay unmatched, a pair gains what it has over its left node alone, and
nothing if that is negative: a full assignment of these gains, less its pairs without gain, is the best matching.
Where some may not, there are columns for staying alone.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_array

from structsvm._problem import Problem
from structsvm.adapter import OracleError
from structsvm.execution.aside import aside
from structsvm.features.matrices import is_sparse
from structsvm.features.sparse import as_rows
from structsvm.parameters import COUNT, FLAG, NONE, POSITIVE, check_arguments, checked_k
from structsvm.protocol import Oracle, Penalty, Rescaling, checked_weights

__all__ = ["AssignmentOracle", "NoMatching", "Pairs"]

ALONE, UNKNOWN = -1, -2

# Entries of the largest table that is left to scipy, which does not check signals.
MOST_ENTRIES = 2**17


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """The pairs of two sets of nodes that may be matched, and their features.

    Attributes
    ----------
    shape : (int, int)
        Left and right nodes.
    pairs : int array of shape (n_pairs, 2)
        Left node and right node; all other pairs are forbidden. The right node -1: what is known of leaving this left
        node unmatched.
    features : array or sparse matrix of shape (n_pairs, n_pair_features)
    capacities : int array of shape (n_right,), optional
        Left nodes that each right node may be matched with; None: the oracle's `capacity`.

    Examples
    --------
    >>> import numpy as np
    >>> from structsvm.oracles.assignment import AssignmentOracle, Pairs
    >>> x = Pairs(shape=(2, 2), pairs=[[0, 0], [1, 0], [1, 1]], features=[[1.0], [2.0], [0.5]])
    >>> AssignmentOracle(1).argmax(x, np.array([1.0, 0.0])).tolist()
    [-1, 0]
    """

    shape: tuple[int, int]
    pairs: Any
    features: Any
    capacities: Any = None


class AssignmentInput:
    """An input, checked.

    Attributes
    ----------
    n_left, n_right : int
    features : float64 array or csr_array
        Rows of pairs.
    row : int32 array of shape (n_left, n_right + 1)
        The row of each pair, last that of the left node alone; -1: there is none.
    column : int64 array of shape (n_slots,) or None
        Right nodes, each as often as its capacity; None: each takes any number.
    """

    __slots__ = ("column", "features", "n_left", "n_right", "row")

    def __init__(self, features: Any, row: NDArray[np.int32], column: NDArray[np.int64] | None) -> None:
        self.features, self.row, self.column = features, row, column
        self.n_left, self.n_right = row.shape[0], row.shape[1] - 1

    def __reduce__(self) -> Any:
        return AssignmentInput, (self.features, self.row, self.column)

    @property
    def n_slots(self) -> int:
        if self.column is None:
            return self.n_left if self.n_right else 0
        return len(self.column)


class AssignmentOracle(Oracle):
    """Matchings of left nodes with right ones, of the highest sum of the pairs' scores ``<w, features>``.

    An input is an array (n_left, n_right, n_pair_features) of the features of all pairs, or `Pairs`. An output is an
    int array (n_left,): the right node that each left one is matched with, -1 if it is unmatched.

    The loss is ``missed_cost`` times the pairs of the true matching that are missing, and ``false_cost`` times those
    that are not in it. Loss-augmented inference is exact.

    Parameters
    ----------
    n_pair_features : int
    unmatched : bool, default=True
        Whether left nodes may stay unmatched; one more feature, the last, counts those that do, so its weight is
        the least score of a pair. False: as many pairs as capacity allows, ``min(n_left, slots)``.
    capacity : int or None, default=1
        Left nodes that one right node may be matched with: 1 is one to one. None: any number.
    missed_cost, false_cost : float, default=1.0
        Greater than 0.

    Attributes
    ----------
    n_features : int
        ``n_pair_features + unmatched``.

    Notes
    -----
    In training, outputs may be known in part (`structsvm.LatentSVM`): an array with -2 where nothing is known; or a
    boolean array (n_left, n_right + 1) of the partners that a node may have, the last column for none.

    References
    ----------
    B. Taskar, S. Lacoste-Julien and D. Klein, A discriminative matching approach to word alignment, HLT-EMNLP 2005.
    K. Murty, An algorithm for ranking all the assignments in order of increasing cost, Operations Research 16, 1968.

    Examples
    --------
    >>> import numpy as np
    >>> from structsvm.oracles.assignment import AssignmentOracle
    >>> oracle = AssignmentOracle(1)
    >>> scores = np.array([[3.0, 2.5, 0.0], [2.9, 0.0, 0.4]])
    >>> oracle.argmax(scores[:, :, None], np.array([1.0, 0.5])).tolist()
    [1, 0]
    """

    def __init__(
        self,
        n_pair_features: Any,
        *,
        unmatched: bool = True,
        capacity: Any = 1,
        missed_cost: float = 1.0,
        false_cost: float = 1.0,
    ) -> None:
        check_arguments(
            "AssignmentOracle",
            locals(),
            n_pair_features=COUNT,
            unmatched=FLAG,
            capacity=(COUNT, NONE),
            missed_cost=POSITIVE,
            false_cost=POSITIVE,
        )
        self.n_pair_features, self.unmatched = int(n_pair_features), bool(unmatched)
        self.capacity = None if capacity is None else int(capacity)
        self.missed_cost, self.false_cost = float(missed_cost), float(false_cost)
        self.n_features = self.n_pair_features + self.unmatched

    # ---- inputs and outputs ---------------------------------------------------------------------------

    def bind(
        self, X: Any, Y: Any, *, rescaling: Rescaling | None = "margin", penalty: Penalty | None = "linear"
    ) -> Problem:
        """Bind examples (see `Oracle.bind`), checked once; ValueError names the one that is wrong."""
        if len(X) != len(Y):
            raise ValueError(f"X has {len(X)} examples, y has {len(Y)}")
        inputs: list[Any] = []
        outputs: list[Any] = []
        for i, (x, y) in enumerate(zip(X, Y, strict=True)):
            try:
                inputs.append(self.encoded(x))
                outputs.append(self._checked(inputs[-1], y))
            except (ValueError, TypeError) as error:
                raise ValueError(f"example {i}: {error}") from error
        return super().bind(inputs, outputs, rescaling=rescaling, penalty=penalty)

    def encoded(self, x: Any) -> AssignmentInput:
        """A checked input, which all methods accept in place of x; ValueError if it is invalid."""
        if isinstance(x, AssignmentInput):
            return x
        if isinstance(x, Pairs):
            return self._encoded_pairs(x)
        features = np.ascontiguousarray(x, dtype=np.float64)
        if features.ndim != 3 or features.shape[2] != self.n_pair_features:
            raise ValueError(
                f"x must be Pairs or an array (n_left, n_right, {self.n_pair_features}) of the features of all pairs, "
                f"got shape {features.shape}"
            )
        n, m, d = features.shape
        row = np.full((n, m + 1), -1, dtype=np.int32)
        row[:, :m] = np.arange(n * m, dtype=np.int32).reshape(n, m)
        return AssignmentInput(finite(features.reshape(n * m, d)), row, self._column(n, m, None))

    def _encoded_pairs(self, x: Pairs) -> AssignmentInput:
        n, m = (whole(size, "a shape") for size in x.shape)
        pairs = np.asarray(x.pairs)
        pairs = pairs.reshape(0, 2) if pairs.size == 0 else pairs
        if pairs.ndim != 2 or pairs.shape[1] != 2 or (pairs.size and pairs.dtype.kind not in "iu"):
            raise ValueError(f"pairs must be an int array (n_pairs, 2), got {pairs.dtype} {pairs.shape}")
        lowest = np.array([0, ALONE if self.unmatched else 0])
        for k in np.flatnonzero(((pairs < lowest) | (pairs >= [n, m])).any(axis=1))[:1]:
            raise ValueError(
                f"pair {k} is {tuple(pairs[k].tolist())}, expected a left node from 0 to {n - 1} and a right node "
                f"from {lowest[1]} to {m - 1}"
            )
        if is_sparse(x.features):
            rows = as_rows(x.features, self.n_pair_features)
            shape = (len(rows), self.n_pair_features)
            features: Any = csr_array((rows.values, rows.indices, rows.indptr), shape=shape)
        else:
            features = np.ascontiguousarray(x.features, dtype=np.float64)
            features = finite(features.reshape(0, self.n_pair_features) if features.size == 0 else features)
        if features.shape != (len(pairs), self.n_pair_features):
            raise ValueError(
                f"features of {len(pairs)} pairs must have shape {(len(pairs), self.n_pair_features)}, "
                f"got {features.shape}"
            )
        row = np.full((n, m + 1), -1, dtype=np.int32)
        row[pairs[:, 0], pairs[:, 1]] = np.arange(len(pairs))  # -1 is the last column
        for k in np.flatnonzero(row[pairs[:, 0], pairs[:, 1]] != np.arange(len(pairs)))[:1]:
            raise ValueError(f"the pair {tuple(pairs[k].tolist())} stands there twice")
        return AssignmentInput(features, row, self._column(n, m, x.capacities))

    def _column(self, n_left: int, n_right: int, capacities: Any) -> NDArray[np.int64] | None:
        if capacities is None:
            return None if self.capacity is None else np.repeat(np.arange(n_right), min(self.capacity, n_left))
        array = np.asarray(capacities)
        if array.shape != (n_right,) or (array.size and array.dtype.kind not in "iu") or (array < 0).any():
            raise ValueError(f"capacities must be {n_right} integers >= 0, got {capacities!r:.80}")
        return np.repeat(np.arange(n_right), np.minimum(array, n_left).astype(np.int64))

    def _checked(self, x: AssignmentInput, y: Any) -> Any:
        """A true output, or what is known of it; ValueError unless it is one."""
        known = np.asarray(y)
        if known.dtype == bool and known.ndim == 2:
            if known.shape != x.row.shape:
                raise ValueError(f"partners that may stand must be a boolean array {x.row.shape}, got {known.shape}")
            return known
        if known.shape != (x.n_left,) or (known.size and known.dtype.kind not in "iu"):
            raise ValueError(
                f"y must be {x.n_left} integers, the right node of each left one, or a boolean array {x.row.shape}; "
                f"got {known.dtype} {known.shape}"
            )
        known = known.astype(np.int64)
        for i in np.flatnonzero((known < UNKNOWN) | (known >= x.n_right))[:1]:
            raise ValueError(f"y[{i}] is {known[i]}, expected a right node from 0 to {x.n_right - 1}, -1 or -2")
        matched = np.flatnonzero(known >= 0)
        for i in matched[x.row[matched, known[matched]] < 0][:1]:
            raise ValueError(f"y matches nodes {i} and {known[i]}, which are not one of the pairs")
        if x.column is not None:
            taken = np.bincount(known[matched], minlength=x.n_right)
            room = np.bincount(x.column, minlength=x.n_right)
            for j in np.flatnonzero(taken > room)[:1]:
                raise ValueError(f"y matches {taken[j]} nodes with node {j}, whose capacity is {room[j]}")
        if not self.unmatched and (known == ALONE).sum() > x.n_left - min(x.n_left, x.n_slots):
            raise ValueError("y leaves nodes unmatched for which there is room, and unmatched=False")
        return known

    # ---- the protocol ---------------------------------------------------------------------------------

    def joint_feature(self, x: Any, y: Any) -> Any:
        """Sum of the features of the pairs and of the unmatched nodes; last, the number of the latter."""
        x, y = self.encoded(x), output(y)
        rows = x.row[np.arange(x.n_left), y]  # -1 takes the last column
        alone = y == ALONE
        for i in np.flatnonzero((rows < 0) & ~alone)[:1]:
            raise ValueError(f"nodes {i} and {y[i]} are not one of the pairs")
        rows = rows[rows >= 0]
        n_alone = float(np.count_nonzero(alone))
        if isinstance(x.features, np.ndarray):
            psi = np.zeros(self.n_features)
            psi[: self.n_pair_features] = x.features[rows].sum(axis=0)
            psi[self.n_pair_features :] = n_alone
            return psi
        part = x.features[rows]
        if not self.unmatched:
            return part.indices, part.data
        return np.append(part.indices, self.n_pair_features), np.append(part.data, n_alone)

    def loss(self, y_true: Any, y: Any) -> float:
        """The costs of missing and of false pairs."""
        true, guess = output(y_true), output(y)
        wrong = true != guess
        missed, false = np.count_nonzero(wrong & (true >= 0)), np.count_nonzero(wrong & (guess >= 0))
        return float(self.missed_cost * missed + self.false_cost * false)

    def argmax(self, x: Any, w: Any, y_true: Any = None, rescaling: Any = None) -> NDArray[np.int64]:
        """The best matching; with y_true the one of the highest sum of score and loss."""
        x = self.encoded(x)
        pairs, alone = self._scores(x, w)
        if y_true is not None:
            true = output(y_true)
            matched = np.flatnonzero(true >= 0)
            # A constant, the cost of missing all true pairs: found ones take theirs back.
            pairs += self.false_cost
            pairs[matched, true[matched]] -= self.false_cost + self.missed_cost
        return self._best(x, pairs, alone)

    def complete(self, x: Any, known: Any, w: Any) -> NDArray[np.int64]:
        """The best matching that agrees with what is known; ValueError if there is none."""
        x = self.encoded(x)
        known = self._checked(x, known)
        if known.ndim == 1:
            if (known >= ALONE).all():
                return np.array(known)
            known = self._mask(x, known)
        pairs, alone = self._scores(x, w)
        return self._best(x, pairs, alone, known)

    def kbest(self, x: Any, w: Any, k: int) -> list[tuple[NDArray[np.int64], float]]:
        """The k best matchings as ``(y, score)``, best first; fewer if fewer exist (Murty 1968).

        Each one found parts the others: those that differ from it at a left node, and not before that.
        """
        k = checked_k(k)
        x = self.encoded(x)
        pairs, alone = self._scores(x, w)
        everything = np.column_stack([pairs, alone])
        ties, left = count(), np.arange(x.n_left)
        heap: list[Any] = []

        def best_of(first: Any, banned: list[int]) -> None:
            """The best matching that begins with `first`, and has the next left node with none of `banned`."""
            n = len(first)
            mask = np.ones(x.row.shape, dtype=bool)
            mask[:n] = False
            mask[left[:n], first] = True
            mask[n : n + 1, banned] = False
            if not mask[n : n + 1].any() and n < x.n_left:
                return
            try:
                y = self._best(x, pairs, alone, mask)
            except NoMatching:
                return
            heapq.heappush(heap, (-float(everything[left, y].sum()), next(ties), y, n, banned))

        found: list[tuple[NDArray[np.int64], float]] = []
        best_of(left[:0], [])
        while heap and len(found) < k:
            value, _, y, n, banned = heapq.heappop(heap)
            found.append((y, -value))
            if len(found) < k:
                for i in range(n, x.n_left):
                    best_of(y[:i], [*(banned if i == n else ()), int(y[i])])
        return found

    # ---- inference ------------------------------------------------------------------------------------

    def _scores(self, x: AssignmentInput, w: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Scores of pairs, (n_left, n_right), minus infinity where forbidden; and of left nodes alone, (n_left,)."""
        weights = checked_weights(w, self.n_features, np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            own = np.append(x.features @ weights[: self.n_pair_features], 0.0)
            if not np.isfinite(4.0 * x.n_left * (np.abs(own).max() + abs(weights[-1]))):
                raise ValueError("the scores overflow, or w has values that are not finite")
        own[-1] = -np.inf
        scores = own[x.row]
        if not self.unmatched:
            return scores[:, :-1], np.zeros(x.n_left)
        return scores[:, :-1], np.where(x.row[:, -1] < 0, 0.0, scores[:, -1]) + weights[-1]

    def _mask(self, x: AssignmentInput, known: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Partners that agree with an output known in part."""
        mask = np.zeros(x.row.shape, dtype=bool)
        mask[known == UNKNOWN] = True
        there = np.flatnonzero(known != UNKNOWN)
        mask[there, known[there]] = True
        return mask

    def _best(self, x: AssignmentInput, pairs: Any, alone: Any, mask: Any = None) -> NDArray[np.int64]:
        """The best matching by scores; `mask`: of the allowed partners."""
        y = np.full(x.n_left, ALONE)
        if mask is not None:
            pairs, alone = np.where(mask[:, :-1], pairs, -np.inf), np.where(mask[:, -1], alone, -np.inf)
        if self.unmatched and mask is None:
            gains = np.maximum(pairs - alone[:, None], 0.0)
            if x.n_right == 0:
                return y
            if x.column is None:
                left, right = np.arange(x.n_left), gains.argmax(axis=1)
            else:
                left, slots = solved(gains[:, x.column])
                right = x.column[slots]
            gained = gains[left, right] > 0.0
            y[left[gained]] = right[gained]
            return y
        column = np.arange(x.n_right) if x.column is None else x.column
        n_alone = x.n_left if self.unmatched else max(x.n_left - x.n_slots, 0)
        table = np.concatenate([pairs[:, column], np.repeat(alone[:, None], n_alone, axis=1)], axis=1)
        partner = np.append(column, np.full(n_alone, ALONE))
        if x.n_left == 0:
            return y
        try:
            if x.column is None:
                slots = table.argmax(axis=1)
                if not np.isfinite(table.max(axis=1)).all():
                    raise ValueError
            else:
                slots = solved(table)[1]
        except ValueError:
            agrees = "" if mask is None else " that agrees with what is known"
            of = "" if self.unmatched else f" of {min(x.n_left, x.n_slots)} pairs"
            raise NoMatching(f"there is no matching{of}{agrees}") from None
        return np.asarray(partner[slots])


def best_pairs(table: NDArray[np.float64]) -> tuple[Any, Any]:
    """Left and right nodes of the full assignment of the highest sum.

    scipy copies a table that it has to negate or to transpose, and ends the process if there is no memory for it.
    """
    if table.shape[0] <= table.shape[1]:
        left, right = linear_sum_assignment(np.negative(table, order="C"))
        return left, right
    right, left = linear_sum_assignment(np.negative(table.T, order="C"))
    by_left = np.argsort(left)
    return left[by_left], right[by_left]


def solved(table: NDArray[np.float64]) -> tuple[Any, Any]:
    """`best_pairs`, of a large table in a thread of its own."""
    return best_pairs(table) if table.size <= MOST_ENTRIES else aside(lambda: best_pairs(table))


class NoMatching(ValueError):
    """Pairs that are forbidden leave no output.

    Examples
    --------
    >>> import numpy as np
    >>> from structsvm.oracles.assignment import AssignmentOracle, Pairs
    >>> x = Pairs(shape=(2, 2), pairs=[[0, 0], [1, 0]], features=[[1.0], [2.0]])
    >>> AssignmentOracle(1, unmatched=False).argmax(x, np.array([1.0]))
    Traceback (most recent call last):
        ...
    structsvm.oracles.assignment.NoMatching: there is no matching of 2 pairs
    """


def whole(value: Any, what: str) -> int:
    """An integer >= 0; ValueError for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 0:
        raise ValueError(f"{what} must be of integers >= 0, got {value!r:.80}")
    return int(value)


def finite(features: NDArray[np.float64]) -> NDArray[np.float64]:
    """Features; raises an error unless they and their squares are finite."""
    if not np.isfinite(features).all():
        raise ValueError("features hold NaN or infinity")
    with np.errstate(over="ignore"):
        if not np.isfinite(np.vdot(features, features)):
            raise ValueError("the squares of features overflow; scale them down")
    return features


def output(y: Any) -> NDArray[np.int64]:
    """An output as an array; OracleError for a partly known one."""
    array = np.asarray(y)
    if array.ndim != 1 or (array.size and (array.dtype.kind not in "iu" or array.min() < ALONE)):
        raise OracleError(
            "an output is one right node, or -1, per left node; one that is known in part is trained on by LatentSVM, "
            f"got {y!r:.80}"
        )
    return array.astype(np.int64, copy=False)
