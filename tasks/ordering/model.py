"""A linear model of orders: weights of the features of items and of pairs of items."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from structsvm.dual._rounds import log_losses
from structsvm.dual.parallel import parallel_parts
from structsvm.features.dense import FILLED, DenseRows
from structsvm.features.inputs.outliers import (
    CUT,
    KEPT,
    OUTLIER,
    cut_columns,
    limits_of_columns,
    middle_of,
    warn_of_outliers,
    without_outliers,
)
from structsvm.features.sparse import as_rows
from structsvm.oracles.ordering import NOTHING, ORDER_LOSSES, ItemSets, OrderingOracle, square
from structsvm.parameters import checked_k
from structsvm.stored_values import Array, Count, OneOf, Record, Stored
from structsvm.tasks.common.examples import Examples
from structsvm.tasks.common.inspection.inputs import depth
from structsvm.tasks.common.inspection.weights import Explanation, WeightTable
from structsvm.tasks.common.likelihood import (
    StructureCalibration,
    calibrate_on,
    probable_weights,
    ranking_weights,
    temperature_of_loss,
    with_probabilities,
)
from structsvm.tasks.common.model import TaskModel
from structsvm.tasks.common.selection.search import Held, first_scale
from structsvm.tasks.common.solver import is_log
from structsvm.tasks.common.units import UNITS, Units, settle_sizes, undone, units_of

if TYPE_CHECKING:
    from structsvm.arrays import Floats, Integers, MatrixLike, Weights
    from structsvm.oracles._ordering import OrderingProblem
    from structsvm.solvers import Solver

    # The items of a set as rows; or rows, and the features of their pairs.
    Items: TypeAlias = MatrixLike | tuple[MatrixLike, ArrayLike]
    # Items in their order, or pairs of items; None: nothing is known.
    Order: TypeAlias = ArrayLike | None


RECORD = Record({
    "loss": OneOf(ORDER_LOSSES),
    "n_features_in": Count(0, of="oracle.n_item_features"),
    "n_pair_features": Count(0, of="oracle.n_pair_features"),
    "weights": Array("f8", ("n_weights",)),
    "units": UNITS,
    "pair_units": UNITS,
})  # fmt: skip


@dataclass(frozen=True, eq=False)
class OrderedSets(Examples):
    """Sets of items and their orders.

    Attributes
    ----------
    sets : ItemSets
    orders : list of int arrays
        Items in their order, (n_items,), or precedences, (n_precedences, 2).
    """

    sets: ItemSets
    orders: list[Integers]

    @property
    def has_unknown(self) -> bool:
        return any(y.ndim == 2 for y in self.orders)

    def fully_known(self) -> Self:
        return self.take(np.flatnonzero([y.ndim == 1 for y in self.orders]))


class OrderCalibration(StructureCalibration):
    """Orders, whose loss is a share of up to 45 pairs: so much smaller are margins than those of counts."""

    limit = math.log(64.0 * 45.0)


class OrderingModel(TaskModel[OrderedSets]):
    """Weights of the features of items, then those of the features of pairs.

    Attributes
    ----------
    oracle : OrderingOracle
    units, pair_units : Units or None
        Scales of features of items and of pairs, in which weights are learnt.
    weights : ndarray of shape (oracle.n_features,), float64
    """

    kind = "ordering"
    record = RECORD
    estimator = "ItemOrderer"
    has_temperature = True
    calibration = OrderCalibration()
    calibrates = False
    sums_over_known = True

    def __init__(self, n_item_features: int, n_pair_features: int, loss: str) -> None:
        super().__init__()
        self.oracle = OrderingOracle(n_item_features, n_pair_features, loss)
        self.units: Units | None = None
        self.pair_units: Units | None = None
        self.largest_pair: float | None = None
        self.weights = np.zeros(self.oracle.n_features)
        self.columns = {"n_features_in_": n_item_features}
        self.temperature = temperature_of_loss(self.oracle)

    @property
    def loss(self) -> str:
        return self.oracle.loss_name

    @property
    def decoder(self) -> OrderingOracle:
        """The oracle that predicts: for any number of items, whatever the loss."""
        return OrderingOracle(self.oracle.n_item_features, self.oracle.n_pair_features)

    def item_sets(self, X: Sequence[Items]) -> ItemSets:
        """Sets of items as the oracle takes them; ValueError for data frames with other columns than in training."""
        known = self.named_columns
        for i, x in enumerate(X):
            found = column_names(x[0] if isinstance(x, tuple) else x)
            if found is not None and known is not None and found != known:
                raise ValueError(
                    f"example {i}: its columns are {', '.join(found):.80}, those of training {', '.join(known):.80}: "
                    "give X[columns], in their order"
                )
        return self.oracle.item_sets(X)

    def set_names(self, X: Sequence[Items]) -> None:
        """Store the names of the columns of a first training, if its sets are data frames."""
        names = column_names(X[0][0] if isinstance(X[0], tuple) else X[0])
        if names is not None:
            self.columns["feature_names_in_"] = np.array(names, dtype=object)

    # ---- units ------------------------------------------------------------------------------------

    def set_units(self, sets: ItemSets) -> None:
        """Standardise dense columns, items by their deviation from the mean of their set, and pairs."""
        n, d = len(sets.rows), sets.rows.n_features
        if len(sets.rows.indices) > FILLED * n * d:
            values, sizes = matrix(sets).toarray(), np.diff(sets.bounds)
            limits = limits_of_columns(values)
            values = cut_columns(values, limits)
            means = np.add.reduceat(values, sets.bounds[:-1]) / sizes[:, np.newaxis]
            units = Units.of_rows(DenseRows(values - np.repeat(means, sizes, axis=0)))
            self.units = None if units is None else Units(units.scale, units.centre, *limits or ())
        if sets.pairs.shape[1]:  # both signs: which item of a pair is the first says nothing
            self.pair_units = Units.of_rows(DenseRows(np.concatenate([sets.pairs, -sets.pairs])))

    def later(self, sets: ItemSets, *, is_cut: bool) -> ItemSets:
        """The sets of a later batch without the outliers among them, `is_cut`, or with them; warns of these.

        The features of items are told by their distance from the middle of their set, as units are.
        """
        outcome = CUT if is_cut else KEPT
        rows, pairs, size = sets.rows, sets.pairs, np.full(sets.rows.n_features, self.largest or np.inf)
        if self.units is not None:
            values = matrix(sets).toarray()
            middles = np.repeat(
                [middle_of(values[a:b]) for a, b in pairwise(sets.bounds)], np.diff(sets.bounds), axis=0
            )
            far = values - middles
            near = without_outliers(far, self.units.scale, outcome=outcome)
            if near is not far:
                rows = as_rows(np.where(near == far, values, near + middles), rows.n_features)
            size[np.abs(near).max(axis=0, initial=0.0) > OUTLIER * self.units.scale] = np.inf  # named already
        rows = without_outliers(rows, size, outcome=outcome)
        if self.pair_units is not None or self.largest_pair:
            usual = self.largest_pair if self.pair_units is None else self.pair_units.scale
            pairs = without_outliers(pairs, usual, outcome=outcome)
        return ItemSets(rows, sets.bounds, pairs)

    def settle_sizes(self, sets: ItemSets) -> None:
        """`units.settle_sizes` of items, and of pairs."""
        settle_sizes(self, matrix(sets))
        if self.pair_units is None:
            warn_of_outliers(sets.pairs)
            self.largest_pair = float(np.abs(sets.pairs).max(initial=0.0))

    def in_units(self, sets: ItemSets) -> ItemSets:
        """Sets of items in the units of the weights."""
        sets = self.cut(sets)
        rows, pairs = sets.rows, sets.pairs
        if self.units is not None:
            rows = replace(rows, values=rows.values / self.units.scale[rows.indices])
        if self.pair_units is not None:
            pairs = pairs / self.pair_units.scale
        return ItemSets(rows, sets.bounds, pairs)

    def cut(self, sets: ItemSets) -> ItemSets:
        """Sets of items without the outliers of columns."""
        rows, pairs = sets.rows, sets.pairs
        if self.units is not None and self.units.limits is not None:
            low, high = (limit[rows.indices] for limit in self.units.limits)
            rows = replace(rows, values=np.clip(rows.values, low, high))
        if self.pair_units is not None:
            pairs = cut_columns(pairs, self.pair_units.limits)
        return ItemSets(rows, sets.bounds, pairs)

    def as_given(self, weights: Floats) -> NDArray[np.float64]:
        """Weights of features as given, from those in units."""
        d = self.oracle.n_item_features
        parts = ((self.units, weights[:d]), (self.pair_units, weights[d:]))
        return np.concatenate([undone(units, own[:, np.newaxis])[:, 0] for units, own in parts])

    @property
    def coef(self) -> NDArray[np.float64]:
        """Weights of features as given."""
        return self.as_given(self.weights)

    # ---- training ---------------------------------------------------------------------------------

    def bind(self, examples: OrderedSets, solver: Solver) -> tuple[OrderingProblem, Weights | None]:
        return self.oracle.bind(examples.sets, examples.orders, **solver.formulation()), examples.weight

    def held_out_scores(self, examples: OrderedSets) -> Held:
        """The loss itself, of the predicted order; a set of one item does not count."""
        says = 1.0 * (np.diff(examples.sets.bounds) > 1)
        if is_log(self.loss):
            problem = self.oracle.bind(examples.sets, examples.orders, rescaling=None)
            return Held("log loss", log_losses(problem, self.weights, np.arange(len(examples)))[0], says)
        found, _ = self.decoder.predict(examples.sets, self.weights)
        distances = [distance(y, order) for y, order in zip(examples.orders, found, strict=True)]
        losses = np.where(says > 0.0, distances, 0.0)
        if self.loss == "zero_one":
            return Held("zero-one loss", 1.0 * (losses > 0.0), says)
        return Held("Kendall loss", losses, says)

    def scale(self, examples: OrderedSets) -> float:
        return first_scale(self.decoder.bind(examples.sets, examples.orders))

    # ---- probabilities ----------------------------------------------------------------------------

    def calibrate(self, X: Sequence[Items], y: Sequence[Order]) -> None:
        """Fit the temperature to sets that the model was not trained on."""
        calibrate_on(self, self.known_problem(X, y))

    def known_problem(self, X: Sequence[Items], y: Sequence[Order]) -> OrderingProblem:
        """The problem of sets with what is known of their orders."""
        sets = self.in_units(self.item_sets(X))
        return self.oracle.bind(sets, read_orders(y, len(sets)), rescaling=None)

    def proba(self, X: Sequence[Items]) -> list[NDArray[np.float64]]:
        """Per set the probability that one item, the row, comes before another, the column."""
        weights = self.as_given(probable_weights(self, "predict_proba"))
        sets = self.cut(self.item_sets(X))
        sizes = np.diff(sets.bounds).tolist()
        problem = self.decoder.bind(sets, [NOTHING] * len(sets), rescaling=None)
        return [square(problem.moments(i, weights)[1] if n else np.zeros(0), n) for i, n in enumerate(sizes)]

    # ---- prediction -------------------------------------------------------------------------------

    def predict(
        self, X: Sequence[Items], known: Sequence[Order] | None = None, n_threads: int = 1
    ) -> list[NDArray[np.int32]]:
        """Per set the best order found."""
        sets, coef = self.cut(self.item_sets(X)), self.coef
        known = None if known is None else read_orders(known, len(sets), "known")
        return parallel_parts(
            lambda a, b: self.decoder.predict(sets[a:b], coef, None if known is None else known[a:b])[0],
            len(sets),
            n_threads,
        )

    def predict_kbest(
        self, X: Iterable[Items], k: int, *, probabilities: bool = False
    ) -> list[list[tuple[NDArray[np.int32], float]]]:
        """Per set its k best orders, as ``(order, score)``; see `ItemOrderer.predict_kbest`."""
        k, found = checked_k(k), []
        weights = self.as_given(ranking_weights(self, probabilities=probabilities))
        for i, x in enumerate(X):
            try:
                ranked = self.decoder.kbest(x, weights, k)
            except ValueError as error:
                raise ValueError(f"example {i}: {error}") from error
            if probabilities:
                ranked = with_probabilities(ranked, self.decoder.expect(x, weights)[0])
            found.append(ranked)
        return found

    def preferences(self, X: Sequence[Items]) -> list[NDArray[np.float64]]:
        """Per set what exchanging two neighbours costs, the item of the row before that of the column."""
        sets, coef, d = self.cut(self.item_sets(X)), self.coef, self.oracle.n_item_features
        scores, of_pairs, found = matrix(sets) @ coef[:d], sets.pairs @ coef[d:], []
        for i in range(len(sets)):
            own = scores[sets.bounds[i] : sets.bounds[i + 1]]
            table = 2.0 * (own[:, np.newaxis] - own)
            a, b = np.triu_indices(len(own), 1)
            pairs = of_pairs[sets.pair_bounds[i] : sets.pair_bounds[i + 1]]
            table[a, b] += pairs
            table[b, a] -= pairs
            found.append(table)
        return found

    # ---- inspection -------------------------------------------------------------------------------

    def weight_table(self) -> WeightTable:
        names = self.name_columns(self.oracle.n_item_features)
        names += [f"pair feature {k}" for k in range(self.oracle.n_pair_features)]
        return WeightTable(names, [None], self.coef[:, np.newaxis])

    def holds_several(self, x: object) -> bool:
        return not isinstance(x, tuple) and depth(x) > 2

    def explain(self, x: Items) -> Explanation:
        """The runner-up is the second best order."""
        (found,), known = self.predict_kbest([x], 2), self.weight_table()
        alone = "the set has one item only, and two orders are compared"
        ranked = [(order.tolist(), self.joint_feature(x, order)) for order, _ in found]
        return Explanation.of_best(ranked, self.coef, lambda k: (known.features[k], ""), alone)

    def joint_feature(self, x: Items, order: Integers) -> NDArray[np.float64]:
        """As a vector with an entry for each weight."""
        columns, values = self.decoder.joint_feature(x, order)
        psi = np.zeros(self.oracle.n_features)
        psi[columns] = values
        return psi

    # ---- files ------------------------------------------------------------------------------------

    @classmethod
    def from_record(cls, stored: Stored) -> Self:
        d, p = stored.n_features_in, stored.n_pair_features
        weights = stored.arrays(n_weights=d + p)["weights"]  # before there is a model of that size
        model = cls(d, p, stored.loss)
        model.weights = weights
        model.units, model.pair_units = units_of(stored.units, d), units_of(stored.pair_units, p)
        return model


def column_names(rows: object) -> list[str] | None:
    """The names of a data frame's columns; None for other rows, and for names that are no text."""
    names = getattr(rows, "columns", None)
    found = None if names is None else list(names)
    return found if found and all(isinstance(name, str) for name in found) else None


def matrix(sets: ItemSets) -> csr_array:
    """The rows of all items."""
    rows = sets.rows
    return csr_array((rows.values, rows.indices, rows.indptr), shape=(len(rows), rows.n_features))


def read_orders(y: Sequence[Order], n_sets: int, name: str = "y") -> list[Integers]:
    """Orders or precedences as arrays; None and an empty list are no precedences.

    Raises
    ------
    ValueError
        For another number of them than of sets, and for entries that are no array; the oracle checks the rest.
    """
    if len(y) != n_sets:
        raise ValueError(f"X has {n_sets} sets of items, {name} has {len(y)} orders")
    found = []
    for i, order in enumerate(y):
        try:
            array = NOTHING if order is None else np.asarray(order)
        except ValueError:
            raise ValueError(f"example {i}: expected an order or precedences, got {order!r:.80}") from None
        found.append(array if array.size else NOTHING)
    return found


def distance(y: Integers, order: Integers) -> float:
    """The share of the pairs that y orders, or of its precedences, that an order has the other way round; NaN: none."""
    place = np.argsort(order)
    first, second = y.T if y.ndim == 2 else y[np.array(np.triu_indices(len(y), 1))]
    return float(np.mean(place[first] > place[second])) if len(first) else np.nan
