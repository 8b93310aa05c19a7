"""A linear model of labels learnt from sets of candidates: labels, weights, and the choice of the loss."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from structsvm.features.matrices import is_sparse
from structsvm.files.weight_rows import RaggedRows, rows_from
from structsvm.metrics._counts import is_nan, is_unknown, mark_for, say_unknown
from structsvm.oracles.ambiguous import AmbiguousOracle
from structsvm.oracles.ambiguous import as_bags as as_bag_arrays
from structsvm.solvers import LatentSVM
from structsvm.stored_values import Count, Flag, OneOf, Record, Stored
from structsvm.tasks.common.calibration import LabelCalibration, fit_temperature, softmax_loss
from structsvm.tasks.common.examples import SHARED, Examples
from structsvm.tasks.common.inspection.weights import Explanation, WeightTable
from structsvm.tasks.common.labels import check_no_dates, sort_labels
from structsvm.tasks.common.model import TaskModel
from structsvm.tasks.common.selection.search import Held, LossSearch, Search, total_variance
from structsvm.tasks.common.solver import AUTO, Settings, is_to_choose
from structsvm.tasks.common.solver import solver_of as solver_of_loss
from structsvm.tasks.common.stored_labels import Labels
from structsvm.tasks.common.units import UNITS, Units, rows_in, undone, units_of

if TYPE_CHECKING:
    from structsvm._problem import BoundProblem
    from structsvm.arrays import AnyArray, Floats, Integers, Matrix, MatrixLike, Weights
    from structsvm.features.dense import DenseRows
    from structsvm.features.sparse import SparseRows
    from structsvm.oracles._ambiguous import AmbiguousProblem
    from structsvm.solvers import Solver

    # Per row a label, labels that it may have, or a dict of their weights; or a matrix of weights.
    Candidates: TypeAlias = MatrixLike | Iterable[Hashable | Collection[Hashable]]
    # Candidates of a row by their ids, or weights of these.
    Bag: TypeAlias = set[int] | dict[int, float]

COLLECTIONS = (set, frozenset, list, tuple, np.ndarray)


# In the order of preference where held-out examples do not tell them apart; the first one where there are too few.
LOSSES = ("pairwise", "log", "mean", "max")
RECORD = Record({
    "params": Record({"fit_intercept": Flag()}, written=False),
    "labels": Labels(2),
    "n_features_in": Count(1, of=lambda model: model.columns["n_features_in_"]),
    "loss": OneOf(LOSSES),
    "weights": RaggedRows(("n_rows", "n_labels"), dtype="f8", of="stored_weights"),
    "units": UNITS,
})  # fmt: skip
# Losses that use weights of candidates.
WEIGHTED = ("log", "mean")
# Probabilities go on to improve where no more examples are predicted otherwise. The losses of several hinges have more
# than one good range of C: where one hinge holds, and where they all do.
LONGEST_OF_BAGS, PATIENCE_OF_BAGS = 11, 7
# Held-out probabilities of values of C differ by little; from some C on by nothing, and the least of these is chosen.
GAP_OF_BAGS, LEEWAY_OF_BAGS = 1e-3, 0.01


@dataclass(frozen=True, eq=False)
class BaggedRows(Examples):
    """Rows with the candidates of each one's label.

    Attributes
    ----------
    rows : encoded rows
    bags : list of set of int, or of dict
        Label ids, or their weights; see `encode_bags`.
    n_unknown : int
        Rows about which nothing is known.
    """

    rows: DenseRows | SparseRows
    bags: list[Bag]
    n_unknown: int = field(default=0, metadata=SHARED)

    @property
    def output_ids(self) -> Integers | None:
        """The labels of rows, where each has one candidate."""
        return np.array([*map(min, self.bags)]) if all(len(bag) == 1 for bag in self.bags) else None


class BagCalibration(LabelCalibration):
    """Calibration of labels learnt from bags."""

    def resumes(self, model: TaskModel[BaggedRows]) -> bool:
        """Not with "log" and "max": one pass does not undo the influence of the removed examples."""
        return model.loss not in ("log", "max")


class AmbiguousModel(TaskModel[BaggedRows]):
    """Labels and a weight per feature and label, those of an intercept last.

    Attributes
    ----------
    labels : list
    has_intercept : bool
    units : Units or None
        In which weights are learnt.
    loss : str
        One of `LOSSES`.
    weights : ndarray of shape ((n_features + has_intercept) * n_labels,), float64
    """

    kind = "ambiguous"
    record = RECORD
    estimator = "AmbiguousClassifier"
    has_temperature = True
    calibration = BagCalibration()
    comparison = LossSearch
    compares_always = narrows = True

    def __init__(
        self,
        labels: Sequence[Hashable],
        n_features: int,
        *,
        has_intercept: bool,
        loss: str = LOSSES[0],
        units: Units | None = None,
        weights: Floats | None = None,
    ) -> None:
        super().__init__()
        self.labels, self.has_intercept, self.units = labels, has_intercept, units
        self.oracle = AmbiguousOracle(len(labels), n_features + has_intercept, loss)
        self.weights = np.zeros(self.oracle.n_features) if weights is None else weights
        self.columns = {"n_features_in_": n_features}

    @property
    def loss(self) -> str:
        return self.oracle.bag_loss

    @property
    def judges_predictions(self) -> bool:
        """Whether C is chosen by predictions: with "max" where no other loss is compared."""
        return bool(self.params.get("loss") == "max")

    @property
    def table(self) -> Floats:
        """The weights of columns as given, by feature and label: array (n_features + has_intercept, n_labels)."""
        weights = self.weights.reshape(-1, len(self.labels))
        return undone(self.units, weights)

    def weight_table(self) -> WeightTable:
        names = self.name_columns(self.columns["n_features_in_"])
        return WeightTable(names, list(self.labels), self.table[: len(names)])

    def explain(self, x: MatrixLike) -> Explanation:
        known = self.weight_table()
        intercepts = self.table[len(known.features) :].sum(axis=0)
        return Explanation.of_row(x, known, intercepts, known.labels)

    def bind(self, examples: BaggedRows, solver: Solver) -> tuple[BoundProblem, Weights | None]:
        return self.oracle.bind(examples.rows, examples.bags, **solver.formulation()), examples.weight

    def class_scores(self, X: DenseRows | SparseRows) -> Floats:
        return self.oracle.scores(X, self.weights)

    def examples_of(
        self, problem: AmbiguousProblem, chosen: Integers
    ) -> tuple[DenseRows | SparseRows, NDArray[np.bool_]]:
        indptr, labels = problem.bags[:2]
        return problem.rows.take(chosen), membership(indptr, labels, len(self.labels))[chosen]

    # ---- training, and choosing loss and C --------------------------------------------------------

    def most_passes(self, solver: Any) -> int:
        return solver.n_passes if solver.is_likelihood else softly(solver).n_passes

    def solver_of_loss(self, loss: str) -> Solver:
        return solver_of(self.params, loss)

    def losses_to_compare(self, examples: BaggedRows) -> Sequence[str]:
        if self.params.get("loss") != AUTO or self.is_trained:
            return ()
        return possible_losses(self.params, weighted=is_weighted(examples.bags))

    def adopt_loss(self, other: Self) -> None:
        self.oracle = other.oracle

    def search_of_loss(self, examples: BaggedRows, solver: Any) -> Search:
        values = None if is_to_choose(Settings(**self.params), solver) else [solver.C]
        search = Search(self, examples, solver, values)
        search.longest, search.gap, search.leeway = LONGEST_OF_BAGS, GAP_OF_BAGS, LEEWAY_OF_BAGS
        if self.loss == "mean" or self.judges_predictions:
            search.patience = PATIENCE_OF_BAGS
        search.solver = self.adapted(search.solver, examples)
        return search

    def adapted(self, solver: Solver, examples: BaggedRows) -> Solver:
        """The steps of "log" complete bags, and the losses but "max" are of whole bags."""
        is_open = self.loss == "max" and any(len(bag) > 1 for bag in examples.bags)
        return softly(solver) if is_open else solver

    def held_out_scores(self, examples: BaggedRows) -> Held:
        """Minus the log of the probability that the label is a candidate, at the temperature of least such loss.

        Margins are measured in units of their own, probabilities are comparable, between losses too. How often the best
        label is a candidate says less: among the candidates is, say, whoever is in every scene. But "max" alone is
        judged by that: its scores are hardly logarithms of probabilities where it predicts best.
        """
        scores = self.class_scores(examples.rows)
        indptr, labels, prior = as_bag_arrays(examples.bags, len(self.labels))
        known = membership(indptr, labels, len(self.labels))
        says = ~known.all(axis=1)
        if not says.any():
            return Held("candidate log loss", np.zeros(len(says)), np.zeros(len(says)))
        if self.judges_predictions:
            return self.output_scores(examples)
        scores = scores / fit_temperature(softmax_loss(scores[says], known[says]))
        weighted = np.full(known.shape, -np.inf)
        weighted[known] = scores[known] + np.log(prior)
        losses = np.logaddexp.reduce(scores, axis=1) - np.logaddexp.reduce(weighted, axis=1)
        return Held("candidate log loss", losses * says, 1.0 * says)

    def output_scores(self, examples: BaggedRows) -> Held:
        """How often the predicted label is a candidate, of rows about which something is known."""
        indptr, labels, _ = as_bag_arrays(examples.bags, len(self.labels))
        known = membership(indptr, labels, len(self.labels))
        says, best = ~known.all(axis=1), self.class_scores(examples.rows).argmax(axis=1)
        return Held("share in candidates", says * known[np.arange(len(known)), best], 1.0 * says)

    def pruned(self, size: float) -> Floats:
        """The weights, with 0 for those of columns below a size; intercepts stay."""
        weights, n = super().pruned(size), len(self.labels) * self.has_intercept
        weights[len(weights) - n :] = self.weights[len(weights) - n :]
        return weights

    def weight_rows(self) -> Integers:
        return np.full(self.oracle.n_input_features, len(self.labels))

    @property
    def stored_weights(self) -> tuple[Floats, Integers | None]:
        weights, lengths = super().stored_weights
        return weights.reshape(-1, len(self.labels)), lengths

    def scale(self, examples: BaggedRows) -> float:
        return 2.0 * total_variance(examples.rows)

    def scores(self, X: Matrix) -> Floats:
        """Scores of all labels: array (n_samples, n_labels)."""
        return self.class_scores(self.rows(X))

    def rows(self, X: Matrix) -> DenseRows | SparseRows:
        """The rows of a matrix as the oracle takes them."""
        return rows_in(self.units, X, self.has_intercept)

    def stored_params(self) -> dict[str, Any]:
        return self.params | {"fit_intercept": self.has_intercept}

    @classmethod
    def from_record(cls, stored: Stored) -> Self:
        n_features, has_intercept = stored.n_features_in, stored.params.fit_intercept
        n_rows, n_labels = n_features + has_intercept, len(stored.labels)
        arrays = stored.arrays(n_rows=n_rows)
        weights = rows_from(arrays, "weights", n_rows, lambda: np.full(n_rows, n_labels))
        weights = weights.astype(np.float64, copy=False)
        about = {"has_intercept": has_intercept, "loss": stored.loss, "units": units_of(stored.units, n_features)}
        return cls(stored.labels, n_features, weights=weights, **about)


def solver_of(params: dict[str, Any], loss: str) -> Solver:
    """The solver that an estimator's parameters ask for, for a loss; ValueError if it does not minimise that loss."""
    solver = solver_of_loss(params, loss)
    if solver.completes and loss != "max":
        raise ValueError(
            f"LatentSVM completes sets of candidates, and loss={loss!r} needs no completions: loss='max' does"
        )
    return solver


def possible_losses(params: dict[str, Any], *, weighted: bool = False) -> list[str]:
    """The losses that "auto" compares: those that the solver minimises, and with weights of candidates knows."""
    found, error = [], None
    for loss in WEIGHTED if weighted else LOSSES:
        try:
            solver_of(params, loss)
            found.append(loss)
        except ValueError as no:
            error = error or no
    if error is not None and not found:
        raise error
    return found


def softly(solver: Any) -> Solver:
    """The solver of "max", in a `LatentSVM`: its start knows no best candidate, as there is none at first."""
    return solver if solver.completes else LatentSVM(solver, start="soft")


def is_weighted(bags: Iterable[Bag]) -> bool:
    """Whether candidates of encoded bags have weights."""
    return any(isinstance(bag, dict) for bag in bags)


def as_bag(candidates: Any) -> list[Hashable] | dict[Hashable, float] | None:
    """The candidates of one row as a list, or as a dict of their weights; None if nothing is known.

    What is no collection is one candidate.
    """
    if isinstance(candidates, np.ndarray) and candidates.ndim == 0:
        candidates = candidates.item()
    if candidates is None:
        return None
    if isinstance(candidates, Mapping):
        return {plain(label): float(weight) for label, weight in candidates.items() if weight != 0.0}
    return [plain(label) for label in (candidates if isinstance(candidates, COLLECTIONS) else [candidates])]


def plain(label: Hashable) -> Hashable:
    """A label as Python's own type."""
    return label.item() if isinstance(label, np.generic) else label


def as_bags(
    y: Any, unknown: object = AUTO, *, is_new: bool = False
) -> tuple[list[Hashable], Sequence[list[Hashable] | dict[Hashable, float] | None]]:
    """``(labels, bags)``: the candidates of all rows as `as_bag` has them, and the labels of a matrix's columns.

    `unknown` is the mark of rows about which nothing is known (`is_unknown`); `is_new`: whether y settles the labels.
    """
    if y is None:
        raise ValueError("AmbiguousClassifier requires y to be passed, but the target y is None")
    check_no_dates(y)
    is_table = getattr(y, "ndim", 1) == 2
    if is_sparse(y) or (is_table and (hasattr(y, "columns") or y.dtype.kind in "fb" or is_indicator(y))):
        return bags_of_matrix(y)
    rows = y if hasattr(y, "__iter__") else np.asarray(y)
    if isinstance(rows, np.ndarray) and rows.ndim == 0:
        raise ValueError(f"y must hold the candidate labels of each example, got {y!r:.80}")
    bags = [as_bag(candidates) for candidates in rows]
    found = dict.fromkeys(chain.from_iterable(bag for bag in bags if bag is not None))
    if any(map(is_nan, found)):
        i = next(i for i, bag in enumerate(bags) if bag is not None and any(map(is_nan, bag)))
        raise ValueError(f"example {i}: a candidate is NaN ({bags[i]!r:.80}); None says that nothing is known of a row")
    if None in found:
        raise ValueError("y holds a set of candidate labels with None in it; None alone: it may be any")
    marks = [label for label in found if is_unknown(label, unknown)]
    if not marks:
        return list(found), bags
    for i, bag in enumerate(bags):
        if bag is not None and len(bag) > 1 and any(mark in bag for mark in marks):
            raise ValueError(f"example {i} has {marks[0]!r} among its candidates; alone it means: not known")
    others = [label for label in found if label not in marks]
    alone = (bag[0] for bag in bags if isinstance(bag, list) and len(bag) == 1)
    say_unknown(alone, unknown, others if is_new else None, "rows")
    return others, [None if bag is not None and len(bag) == 1 and next(iter(bag)) in marks else bag for bag in bags]


def bags_of_matrix(y: Any) -> tuple[list[Hashable], list[dict[Hashable, float]]]:
    """``(labels, bags)`` of a matrix with a column per label: the candidates of a row are those not 0, with weights."""
    names = [plain(name) for name in getattr(y, "columns", range(y.shape[1]))]
    rows = csr_array(y, dtype=np.float64)
    pairs = [(names[k], weight) for k, weight in zip(rows.indices.tolist(), rows.data.tolist(), strict=True)]
    return names, [{k: v for k, v in pairs[a:b] if v != 0.0} for a, b in pairwise(rows.indptr.tolist())]


def is_indicator(y: AnyArray) -> bool:
    """Whether an array of integers says which columns are candidates, rather than their labels: 0 and 1 alone."""
    is_binary = y.dtype.kind in "iu" and y.shape[1] > 1 and y.size > 0 and y.min() >= 0 and y.max() <= 1
    return bool(is_binary and y.any(axis=1).all())


def encode_bags(
    y: Candidates, labels: Sequence[Hashable] | None = None, unknown: object = AUTO
) -> tuple[Sequence[Hashable], list[Bag]]:
    """Return ``(labels, bags)``: the distinct labels, sorted, and each row's candidates as label ids.

    A bag is a set of these, or a dict from them to weights. `labels` are the labels known already: ValueError for
    another one, and for a row without candidates. `unknown` is the mark of rows about which nothing is known.
    """
    unknown = unknown if labels is None else mark_for(unknown, labels)
    found, bags = as_bags(y, unknown, is_new=labels is None)
    for i, bag in enumerate(bags):
        if bag is None:
            continue
        if not bag:
            raise ValueError(f"the set of candidate labels of example {i} is empty; at least one must stand there")
        if any(isinstance(label, float) and label != label // 1 for label in bag):
            raise ValueError(f"Unknown label type: continuous, {bag} of example {i}; labels are names or whole numbers")
        if isinstance(bag, dict) and not all(0.0 < weight < np.inf for weight in bag.values()):
            raise ValueError(f"the weights of the candidates of example {i} must be finite and not negative, got {bag}")
    if labels is None:
        labels = sort_labels(found)
    number = {label: k for k, label in enumerate(labels)}
    for i, bag in enumerate(bags):
        for label in bag or ():
            if label not in number:
                raise ValueError(
                    f"example {i} has the candidate {label!r}, which is not one of the model's labels; the first fit "
                    f"settles them (partial_fit can name later ones: classes=): {labels}"
                )
    return labels, [encoded(bag, number) for bag in bags]


def encoded(bag: list[Hashable] | dict[Hashable, float] | None, number: dict[Hashable, int]) -> Bag:
    """A bag by label ids; one about which nothing is known holds all labels, one of equal weights is a set."""
    if bag is None:
        return set(number.values())
    if isinstance(bag, dict) and len(set(bag.values())) > 1:
        return {number[label]: weight for label, weight in bag.items()}
    return {number[label] for label in bag}


def membership(indptr: Integers, labels: Integers, n_labels: int) -> Any:
    """Return whether each label is a candidate of each example: bool array (n_samples, n_labels)."""
    known = np.zeros((len(indptr) - 1, n_labels), dtype=bool)
    known[np.repeat(np.arange(len(known)), np.diff(indptr)), labels] = True
    return known
