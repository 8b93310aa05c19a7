"""Orderings: permutations of items, scored by which item of each pair comes first."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from itertools import count, pairwise
from numbers import Integral
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from structsvm.features.dense import check_squares
from structsvm.features.inputs.kinds import check_kinds
from structsvm.features.ranges import take_ranges
from structsvm.features.sparse import SparseRows, as_rows
from structsvm.oracles._ordering import MOST_EXACT, OrderingProblem
from structsvm.parameters import Interval, Options, check_arguments, checked_k
from structsvm.protocol import Oracle, Penalty, Rescaling

if TYPE_CHECKING:
    from structsvm.arrays import AnyArray

__all__ = ["OrderingOracle"]

ORDER_LOSSES = ("kendall", "zero_one", "log")
MOST_ITEMS = 1024  # the relaxation takes tables of n x n, and time n^3


class FractionalOrder(NamedTuple):
    """A point of the relaxation.

    Attributes
    ----------
    before : float64 array of shape (n_items, n_items)
        1 where the item of the row comes before the item of the column, 0 where it does not, or 1/2.
    """

    before: NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class ItemSets:
    """Sets of items, one after the other.

    Attributes
    ----------
    rows : SparseRows
        Items, `n_item_features` wide.
    bounds : int64 array of shape (n_sets + 1,)
        Where the items of each set begin.
    pairs : float64 array of shape (n_pairs, n_pair_features)
        P[i, j] - P[j, i] of the pairs i < j of each set, in the order of the upper triangle.
    """

    rows: SparseRows
    bounds: NDArray[np.int64]
    pairs: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.bounds) - 1

    def __getitem__(self, sets: slice) -> ItemSets:
        start, stop, _ = sets.indices(len(self))
        bounds, pair_bounds = self.bounds[start : stop + 1], self.pair_bounds
        pairs = self.pairs[pair_bounds[start] : pair_bounds[stop]]
        return ItemSets(self.rows[int(bounds[0]) : int(bounds[-1])], bounds - bounds[0], pairs)

    def take(self, chosen: Any) -> ItemSets:
        """The sets of an array of indices."""
        bounds, rows = take_ranges(self.bounds, chosen)
        return ItemSets(self.rows.take(rows), bounds, self.pairs[take_ranges(self.pair_bounds, chosen)[1]])

    @property
    def pair_bounds(self) -> NDArray[np.int64]:
        """Where the pairs of each set begin."""
        sizes = np.diff(self.bounds)
        return np.concatenate([[0], np.cumsum(sizes * (sizes - 1) // 2)]).astype(np.int64)

    @property
    def arrays(self) -> tuple[AnyArray, ...]:
        return *self.rows.arrays, self.bounds, self.pairs

    def columns(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Return ``(bounds, columns)``: the features of each set, ascending; the first one for a set without any."""
        d, p = self.rows.n_features, self.pairs.shape[1]
        of_pairs = np.arange(d if p else 0, d + p if p else 1)
        entries = self.rows.indptr[self.bounds]
        parts = []
        for a, b in zip(entries[:-1].tolist(), entries[1:].tolist(), strict=True):
            own = np.unique(self.rows.indices[a:b])
            parts.append(np.concatenate([own, of_pairs]) if p or not len(own) else own)
        bounds = np.cumsum([0, *map(len, parts)], dtype=np.int64)
        return bounds, np.concatenate([np.zeros(0), *parts]).astype(np.int32)


class OrderingOracle(Oracle):
    """Orders of n items, from scores of pairs: ``sum <w, phi(i, j)>`` over the pairs where item i comes before item j.

    x is a matrix (n_items, n_item_features), dense or CSR, or with pair features ``(rows, P)``, where P is an array
    (n_items, n_items, n_pair_features) and P[i, j] is what speaks for i before j. y lists the items in their order, an
    int array (n_items,). ``phi(i, j)`` is ``x_i - x_j``, and then ``(P[i, j] - P[j, i]) / 2``: the rest of P adds the
    same to all orders. There are at most 1024 items; without any, the order is empty.

    Parameters
    ----------
    n_item_features, n_pair_features : int
        One of them may be 0.
    loss : {"kendall", "zero_one", "log"}
        The share of pairs in the wrong order (Kendall's tau is 1 - 2 loss); whether the order is wrong. "log": as
        "kendall" where a loss is needed, but only for solvers of the log loss.

    Notes
    -----
    Differences of items alone make the best order a sort by ``<w, x_i>``. Pair features say more, such as cycles of
    preferences; what they are is left to the caller, who can make them from the items (``x_i (x) x_j``, say).
    The best order is then a linear ordering problem, NP-hard.

    Inference is exact for up to 10 items, by dynamic programming over sets of items. With more, training takes the
    optimum of an assignment relaxation (Gilmore 1962, Lawler 1963): `inference` of a bound problem is "relaxed" if one
    of its examples has more items, and `argmax` may return a `FractionalOrder`. `predict` finds permutations: for more
    items by local search, with a bound on what another one can gain. "zero_one", and sums over all orders, are of at
    most 10 items.

    In training, orders may be known in part (`structsvm.LatentSVM`): as an int array (n_precedences, 2) of pairs of
    items, of which the first comes before the second.

    References
    ----------
    M. Held and R. Karp, A dynamic programming approach to sequencing problems, J. SIAM 10, 1962.
    P. Gilmore, Optimal and suboptimal algorithms for the quadratic assignment problem, J. SIAM 10, 1962.
    E. Lawler, The quadratic assignment problem, Management Science 9, 1963.

    Examples
    --------
    >>> import numpy as np
    >>> from structsvm.oracles.ordering import OrderingOracle
    >>> OrderingOracle(1).argmax(np.array([[0.1], [0.9], [0.5]]), np.array([1.0])).tolist()
    [1, 2, 0]
    """

    most_exact = MOST_EXACT

    def __init__(self, n_item_features: int, n_pair_features: int = 0, loss: str = "kendall") -> None:
        size = Interval(Integral, 0, 2**30 - 1, closed="both")
        check_arguments(
            "OrderingOracle", locals(), n_item_features=size, n_pair_features=size, loss=Options(*ORDER_LOSSES)
        )
        if n_item_features + n_pair_features == 0:
            raise ValueError("OrderingOracle needs features of items or of pairs: both numbers are 0")
        self.n_item_features, self.n_pair_features, self.loss_name = int(n_item_features), int(n_pair_features), loss
        self.n_features = self.n_item_features + self.n_pair_features
        if loss == "log":
            self.rescalings = ()
        if loss == "zero_one":  # margin and slack rescaling are the same
            self.rescalings, self.penalties = ("margin", "slack"), ("linear", "quadratic", None)

    def bind(
        self, X: Any, Y: Any, *, rescaling: Rescaling | None = "margin", penalty: Penalty | None = "linear"
    ) -> OrderingProblem:
        """Bind sets of items and their orders (see `Oracle.bind`): X is an `ItemSets` or a list, Y a list."""
        self.check_formulation(rescaling, penalty)
        if len(X) != len(Y):
            raise ValueError(f"X has {len(X)} examples, y has {len(Y)}")
        data = X if isinstance(X, ItemSets) else self.item_sets(X)
        sizes = np.diff(data.bounds)
        if data.rows.n_features != self.n_item_features or data.pairs.shape[1] != self.n_pair_features:
            raise ValueError(
                f"X has {data.rows.n_features} features of items and {data.pairs.shape[1]} of pairs, expected "
                f"{self.n_item_features} and {self.n_pair_features}"
            )
        for i in np.flatnonzero(sizes > self.most_exact)[:1] if self.loss_name != "kendall" else ():
            raise ValueError(
                f"loss={self.loss_name!r} is for at most {self.most_exact} items, example {i} has {sizes[i]}"
            )
        orders, known = known_orders(Y, sizes.tolist())
        return OrderingProblem(self, data, orders, known, rescaling=rescaling, penalty=penalty)

    def item_sets(self, X: Any) -> ItemSets:
        """Check a list of inputs and join them. Raises ValueError that names the wrong one."""
        items, pairs = [], []
        for i, x in enumerate(X):
            try:
                rows, own = self._checked(x)
            except (ValueError, TypeError) as error:
                raise ValueError(f"example {i}: {error}") from error
            items.append(rows)
            pairs.append(own)
        bounds = np.cumsum([0, *map(len, items)], dtype=np.int64)
        entries = np.cumsum([0, *(rows.indptr[-1] for rows in items)], dtype=np.int64)
        rows = SparseRows(
            np.concatenate([[0], *(r.indptr[1:] + e for r, e in zip(items, entries, strict=False))]).astype(np.int64),
            np.concatenate([np.zeros(0, np.int32), *(r.indices for r in items)]),
            np.concatenate([np.zeros(0), *(r.values for r in items)]),
            self.n_item_features,
        )
        table = np.concatenate([np.zeros((0, self.n_pair_features)), *pairs])
        check_squares(rows.values)
        check_squares(table.ravel())
        return ItemSets(rows, bounds, table)

    def _checked(self, x: Any) -> tuple[SparseRows, NDArray[np.float64]]:
        """Return the items of an input, and its pairs i < j as in `ItemSets`."""
        items, P = x, None
        if self.n_pair_features:
            if not isinstance(x, tuple) or len(x) != 2:
                raise ValueError(f"expected (rows, pair_features), got {type(x).__name__}")
            items, P = x
        for given in (items, P):
            check_kinds(given)
        rows = as_rows(items, self.n_item_features)
        n, p = len(rows), self.n_pair_features
        if n > MOST_ITEMS:
            raise ValueError(f"there are {n} items, expected at most {MOST_ITEMS}")
        table = np.zeros((n, n, p)) if P is None else np.asarray(P, dtype=np.float64)
        if table.shape != (n, n, p):
            raise ValueError(f"pair features of {n} items have shape {table.shape}, expected {(n, n, p)}")
        check_squares(table.ravel())
        a, b = np.triu_indices(n, 1)
        return rows, table[a, b] - table[b, a]

    # ---- the protocol, on plain objects ---------------------------------------------------------------

    def joint_feature(self, x: Any, y: Any) -> Any:
        return self._feature(self.item_sets([x]), y)

    def _feature(self, data: ItemSets, y: Any) -> tuple[AnyArray, NDArray[np.float64]]:
        """Return the joint feature of one set as ``(indices, values)``."""
        before = precedence(y, int(data.bounds[-1]))
        leads = before - before.T
        of_items = np.repeat(leads.sum(axis=1), np.diff(data.rows.indptr)) * data.rows.values
        of_pairs = 0.5 * leads[np.triu_indices(len(leads), 1)] @ data.pairs
        columns, inverse = np.unique(data.rows.indices, return_inverse=True)
        indices = np.concatenate([columns, np.arange(self.n_item_features, self.n_features)])
        return indices, np.concatenate([np.bincount(inverse, of_items, len(columns)), of_pairs])

    def loss(self, y_true: Any, y: Any) -> float:
        n = len(y_true)
        true = precedence(y_true, n)
        wrong = float((true * (1.0 - precedence(y, n))).sum())
        return float(wrong > 0.0) if self.loss_name == "zero_one" else wrong / max(n * (n - 1) // 2, 1)

    def argmax(self, x: Any, w: Any, y_true: Any = None, rescaling: Any = None) -> Any:
        """See `Oracle.argmax`. A fractional solution of the relaxation is a `FractionalOrder`."""
        data = self.item_sets([x])
        y = np.arange(data.bounds[-1]) if y_true is None else y_true
        found = self.bind(data, [y], rescaling=None if y_true is None else rescaling).answer(0, w)
        before = square(found, len(y))
        place = before.sum(axis=0)
        order = np.argsort(place, kind="stable").astype(np.int32)
        return order if (before == precedence(order, len(y))).all() else FractionalOrder(before)

    def predict(self, X: Any, w: Any, known: Any = None) -> tuple[list[NDArray[np.int32]], NDArray[np.float64]]:
        """Return the best orders of many sets of items; of more than 10 items, those of a local search.

        Parameters
        ----------
        X : ItemSets or list
        w : array of shape (n_features,)
        known : list, optional
            Whole orders or precedences, with which the orders agree.

        Returns
        -------
        orders : list of int32 arrays
        gaps : float64 array of shape (n_sets,)
            Upper bounds on how much higher the best order scores; 0 for up to 10 items.
        """
        data = X if isinstance(X, ItemSets) else self.item_sets(X)
        known = [NOTHING] * len(data) if known is None else known
        orders, gaps = self.bind(data, known, rescaling=None).decoded(w)
        return [orders[a:b] for a, b in pairwise(data.bounds.tolist())], gaps

    def complete(self, x: Any, known: Any, w: Any) -> NDArray[np.int32]:
        """Return an order that agrees with what is known; of up to 10 items the best one."""
        return self.predict([x], w, [known])[0][0]

    def expect(self, x: Any, w: Any) -> tuple[float, Any]:
        """See `Oracle.expect`. Raises ValueError for more than 10 items."""
        return self.expect_known(x, NOTHING, w)

    def expect_known(self, x: Any, known: Any, w: Any) -> tuple[float, Any]:
        data = self.item_sets([x])
        log_sum, before = self.bind(data, [known], rescaling=None).moments(0, w)
        return log_sum, self._feature(data, FractionalOrder(square(before, int(data.bounds[-1]))))

    def kbest(self, x: Any, w: Any, k: int) -> list[tuple[NDArray[np.int32], float]]:
        """Return the k best orders as ``(y, score)``, best first; fewer if fewer exist (Murty 1968). At most 10 items.

        Each order found parts the others by the first of its neighbours that they have the other way round.
        """
        k = checked_k(k)
        data = self.item_sets([x])
        n, ties = int(data.bounds[-1]), count()
        if n > self.most_exact:
            raise ValueError(f"the k best orders are of at most {self.most_exact} items, got {n}")
        heap: list[Any] = []

        def best_of(known: NDArray[np.int64]) -> None:
            if is_order(known, n):
                (y,), _ = self.predict(data, w, [known])
                indices, values = self._feature(data, y)
                heapq.heappush(heap, (-float(values @ np.asarray(w)[indices]), next(ties), y, known))

        found: list[tuple[NDArray[np.int32], float]] = []
        best_of(NOTHING)
        while heap and len(found) < k:
            value, _, y, known = heapq.heappop(heap)
            found.append((y, -value))
            neighbours = np.column_stack([y[:-1], y[1:]])
            for t in range(n - 1 if len(found) < k else 0):
                best_of(np.concatenate([known, neighbours[:t], neighbours[t : t + 1, ::-1]]))
        return found


NOTHING = np.zeros((0, 2), dtype=np.int64)  # precedences of which none is known


def square(before: NDArray[np.float64], n: int) -> NDArray[np.float64]:
    """Return the table `before`, (n, n), from the probabilities of pairs i < j."""
    table, (a, b) = np.zeros((n, n)), np.triu_indices(n, 1)
    table[a, b], table[b, a] = before, 1.0 - before
    return table


def precedence(y: Any, n: int) -> NDArray[np.float64]:
    """Return the table `before`, (n, n), of an order or a `FractionalOrder`. Raises ValueError for anything else."""
    if isinstance(y, FractionalOrder):
        return y.before
    place = np.argsort(checked_order(y, n))
    return (place[:, np.newaxis] < place).astype(np.float64)


def checked_order(y: Any, n: int) -> NDArray[np.int32]:
    """Return an order as an array. Raises ValueError unless it is a permutation of n items."""
    order = np.asarray(y)
    if order.dtype.kind not in "iu" or order.shape != (n,) or not np.array_equal(np.sort(order), np.arange(n)):
        are_places = order.shape == (n,) and np.array_equal(np.sort(order), np.arange(1, n + 1))
        hint = ": of places, 1 the first, np.argsort is the order" * are_places
        raise ValueError(f"expected an order, a permutation of the items 0 .. {n - 1}, got {y!r:.80}{hint}")
    return order.astype(np.int32)


def is_order(precedences: Any, n: int) -> bool:
    """Return whether some order of n items has these precedences, which must have no cycle."""
    pairs = np.asarray(precedences)
    graph = coo_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(n, n))
    return not (pairs[:, 0] == pairs[:, 1]).any() and connected_components(graph, connection="strong")[0] == n


def known_orders(Y: Any, sizes: list[int]) -> tuple[NDArray[np.int32], Any]:
    """Return ``(orders, known)`` for `OrderingProblem`. Raises ValueError that names the wrong example."""
    orders, known = [], []
    for i, (y, n) in enumerate(zip(Y, sizes, strict=True)):
        try:
            array = np.asarray(y)
            if array.ndim != 2:
                orders.append(checked_order(y, n))
                known.append(np.column_stack([orders[-1][:-1], orders[-1][1:]]))
                continue
            if array.shape[1] != 2 or (array.size and array.dtype.kind not in "iu"):
                raise ValueError(f"expected precedences, integers (n_precedences, 2), got {array.dtype} {array.shape}")
            if array.size and not 0 <= array.min() <= array.max() < n:
                raise ValueError(f"precedences are of items {array.min()} to {array.max()}, expected 0 to {n - 1}")
            if not is_order(array, n):
                raise ValueError("the precedences have a cycle")
        except ValueError as error:
            raise ValueError(f"example {i}: {error}") from error
        orders.append(np.full(n, -1, dtype=np.int32))
        known.append(array.astype(np.int32))
    flat = np.concatenate([np.zeros(0, np.int32), *orders])
    if not (flat < 0).any():
        return flat, None
    bounds = np.cumsum([0, *map(len, known)], dtype=np.int64)
    return flat, (bounds, np.ascontiguousarray(np.concatenate(known), dtype=np.int32))
