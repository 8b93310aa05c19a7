"""A linear model of label sets: labels, pairs that interact, weights."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array
from scipy.special import expit

from structsvm.dual.parallel import parallel_parts
from structsvm.files.weight_rows import RaggedRows, rows_from
from structsvm.metrics._counts import AUTO
from structsvm.oracles.label_sets import LabelSetOracle
from structsvm.stored_values import Array, Count, Flag, OneOf, Record, Stored
from structsvm.tasks.common.calibration import check_evidence, fit_temperature, softmax_loss
from structsvm.tasks.common.examples import Examples
from structsvm.tasks.common.inspection.weights import Explanation, WeightTable, one_row
from structsvm.tasks.common.likelihood import StructureCalibration, calibrate_on, probable_weights, temperature_of_loss
from structsvm.tasks.common.model import TaskModel
from structsvm.tasks.common.outputs import Outputs
from structsvm.tasks.common.selection.search import TINY, Held, total_variance
from structsvm.tasks.common.solver import is_log
from structsvm.tasks.common.stored_labels import Labels
from structsvm.tasks.common.units import UNITS, Units, rows_in, undone, units_of
from structsvm.tasks.multilabel.sets import read_sets

if TYPE_CHECKING:
    from structsvm._problem import BoundProblem
    from structsvm.arrays import Floats, Integers, Matrix, MatrixLike, Weights
    from structsvm.features.dense import DenseRows
    from structsvm.features.sparse import SparseRows
    from structsvm.oracles._label_sets import LabelSetProblem
    from structsvm.solvers import Solver

    # A matrix of 0, 1 and -1, or collections of labels, None for what is not known.
    SetsLike: TypeAlias = MatrixLike | Sequence[Collection[Hashable] | None]

INTERACTIONS = ("auto", "none", "tree", "full")
LOSSES = ("hamming", "subset", "f1", "log")

# Forms of y: a matrix, a sparse one, or a list of collections of labels.
FORMS = ("indicator", "sparse", "sets")

RECORD = Record({
    "labels": Labels(1),
    "form": OneOf(FORMS),
    "loss": OneOf(LOSSES, of="oracle.loss_name"),
    "has_intercept": Flag(),
    "n_features_in": Count(1, of=lambda model: model.columns["n_features_in_"]),
    "weights": RaggedRows(("n_weights",), dtype="f8", of="stored_weights"),
    "edges": Array("i4", ("n_edges", 2), within=(0, "n_labels"), of="oracle.edges"),
    "units": UNITS,
})  # fmt: skip


@dataclass(frozen=True, eq=False)
class LabelSets(Examples):
    """Rows with a set of labels each.

    Attributes
    ----------
    rows : encoded rows
    Y : ndarray of shape (n_rows, n_labels), int8
        0, 1, and -1 for what is not known.
    """

    rows: DenseRows | SparseRows
    Y: NDArray[np.int8]

    @property
    def n_unknown(self) -> int:
        return int(np.count_nonzero(self.Y < 0))

    @property
    def has_unknown(self) -> bool:
        return bool((self.Y < 0).any())

    @property
    def output_ids(self) -> Integers:
        """Whether each row's set differs from the first known one; -1 where it is not known in full."""
        is_known = (self.Y >= 0).all(axis=1)
        differs = (self.Y[int(is_known.argmax())] != self.Y).any(axis=1)
        return np.where(is_known, differs.astype(np.int64), -1)

    def fully_known(self) -> Self:
        return self.take(np.flatnonzero((self.Y >= 0).all(axis=1)))


class SetCalibration(StructureCalibration):
    """Calibration of sets; of labels, by their margins alone, where there are no sums over sets."""

    def temperature(
        self,
        model: Any,
        turns: Sequence[tuple[MultilabelModel, Integers]],
        problem: LabelSetProblem,
        weight: Weights | None,
        *,
        is_batch: bool = False,
        **search: float,
    ) -> float | None:
        if model.oracle.can_sum:
            return super().temperature(model, turns, problem, weight, is_batch=is_batch, **search)
        _, rows, Y, known = problem.examples(0, problem.n_samples)
        parts = []
        for one, chosen in turns:
            margins = one.unknown(rows.take(chosen)).margins(one.weights).ravel()
            labels = (Y if known is None else known)[chosen].ravel()
            each = np.ones(len(chosen)) if weight is None else weight[chosen]
            parts.append((margins, labels, np.repeat(each, len(model.labels))))
        margins, labels, weights = (np.concatenate(part) for part in zip(*parts, strict=True))
        scores, may = np.column_stack([0.0 * margins, margins]), np.column_stack([labels != 1, labels != 0])
        return fit_temperature(softmax_loss(scores, may, weights), **search) if weights.any() else None


class MultilabelModel(TaskModel[LabelSets]):
    """Labels, pairs of them that interact, and weights.

    Attributes
    ----------
    labels : list
    form : str
        Of FORMS: what y was, and predictions are.
    oracle : LabelSetOracle
    has_intercept : bool
        Whether the last feature is one of value 1.
    units : Units or None
        In which weights are learnt.
    weights : ndarray of shape (oracle.n_features,), float64
    """

    kind = "multilabel"
    record = RECORD
    estimator = "MultilabelClassifier"
    has_temperature = True
    calibration = SetCalibration()
    calibrates = False
    sums_over_known = True

    def __init__(
        self,
        labels: list[Hashable],
        n_features: int,
        edges: ArrayLike,
        loss: str,
        *,
        has_intercept: bool = True,
        form: str = FORMS[0],
    ) -> None:
        super().__init__()
        self.labels, self.form, self.has_intercept = labels, form, has_intercept
        self.oracle = LabelSetOracle(len(labels), n_features + has_intercept, edges, loss)
        self.units: Units | None = None
        self.weights = np.zeros(self.oracle.n_features)
        self.columns = {"n_features_in_": n_features}
        self.temperature = temperature_of_loss(self.oracle)

    def rows(self, X: Matrix) -> DenseRows | SparseRows:
        """A matrix as rows in units, with an intercept if there is one."""
        return rows_in(self.units, X, self.has_intercept)

    @property
    def table(self) -> Floats:
        """Weights of columns as given, that of an intercept last, by label: array (n_rows, n_labels)."""
        L = len(self.labels)
        weights = self.weights[: L * self.oracle.n_input_features].reshape(-1, L)
        return undone(self.units, weights)

    def bind(self, examples: LabelSets, solver: Solver) -> tuple[BoundProblem, Weights | None]:
        return self.oracle.bind(examples.rows, examples.Y, **solver.formulation()), examples.weight

    def held_out_scores(self, examples: LabelSets) -> Held:
        """Score by the loss of training; where the user asks for the log loss, by that of labels' probabilities."""
        rows, Y = examples.rows, examples.Y
        right = Y > 0
        if is_log(self.params.get("loss")):
            p = self.unknown(rows).marginals(self.weights)
            losses = -np.log(np.maximum(np.where(right, p, 1.0 - p), TINY))
            return Held("log loss", losses.sum(axis=1), np.full(len(Y), float(Y.shape[1])))
        found = self.unknown(rows).decoded(self.weights) > 0
        if self.oracle.loss_name in ("hamming", "log"):
            return Held("Hamming loss", 1.0 * (found != right).sum(axis=1), np.full(len(Y), float(Y.shape[1])))
        if self.oracle.loss_name == "subset":
            return Held("subset accuracy", 1.0 * (found == right).all(axis=1), np.ones(len(Y)))
        total = right.sum(axis=1) + found.sum(axis=1)
        return Held(
            "F1", np.where(total > 0, 2.0 * (right & found).sum(axis=1) / np.maximum(total, 1), 1.0), np.ones(len(Y))
        )

    def scale(self, examples: LabelSets) -> float:
        return total_variance(examples.rows)

    # ---- probabilities ----------------------------------------------------------------------------

    def calibrate(self, X: Matrix, y: SetsLike) -> None:
        """Fit the temperature to rows that the model was not trained on."""
        Y = read_sets(y, self.labels, unknown=self.params.get("unknown", AUTO))[2]
        check_evidence((Y >= 0).any())
        calibrate_on(self, self.oracle.bind(self.rows(X), Y, rescaling=None))

    def proba(self, X: Matrix, n_threads: int = 1) -> Floats:
        """The probability of each label: array (n_samples, n_labels)."""
        weights, rows = probable_weights(self, "predict_proba"), self.rows(X)
        if not self.oracle.can_sum:
            return expit(self.margins(X, n_threads) / self.temperature)
        return parallel_parts(lambda a, b: self.unknown(rows[a:b]).marginals(weights), len(rows), n_threads)

    # ---- prediction -------------------------------------------------------------------------------

    def unknown(self, rows: DenseRows | SparseRows) -> LabelSetProblem:
        """A problem of rows of which no label is known."""
        return self.oracle.bind(rows, np.full((len(rows), len(self.labels)), -1, dtype=np.int8), rescaling=None)

    def margins(self, X: Matrix, n_threads: int = 1) -> Any:
        """By how much the best set with a label is above the best one without: array (n_samples, n_labels)."""
        rows = self.rows(X)
        return parallel_parts(lambda a, b: self.unknown(rows[a:b]).margins(self.weights), len(rows), n_threads)

    def indicators(self, X: Matrix, n_threads: int = 1) -> NDArray[np.int8]:
        """Sets as an int8 array (n_samples, n_labels)."""
        rows = self.rows(X)
        return parallel_parts(lambda a, b: self.unknown(rows[a:b]).decoded(self.weights), len(rows), n_threads)

    def predict(self, X: Matrix, n_threads: int = 1) -> Any:
        """Sets in the form of y."""
        found = self.indicators(X, n_threads)
        if self.form == "sets":
            return Outputs(tuple(self.labels[j] for j in np.flatnonzero(row)) for row in found)
        return found.astype(np.int64) if self.form == "indicator" else csr_array(found.astype(np.int64))

    def weight_table(self) -> WeightTable:
        names = self.name_columns(self.columns["n_features_in_"])
        return WeightTable(names, list(self.labels), self.table[: len(names)])

    def explain(self, x: MatrixLike) -> Explanation:
        """The runner-up is the best set that differs in the label that is decided most narrowly."""
        known = self.weight_table()
        row = one_row(x, len(known.features))
        problem = self.unknown(self.rows(row[np.newaxis]))
        best = problem.decoded(self.weights)[0]
        other = np.full(len(best), -1, dtype=np.int8)
        k = int(np.abs(problem.margins(self.weights)[0]).argmin())
        other[k] = 1 - best[k]
        other = self.oracle.bind(self.rows(row[np.newaxis]), other[np.newaxis], rescaling=None).decoded(self.weights)[0]
        inputs, L = np.append(row, [1.0] * self.has_intercept), len(self.labels)
        ranked = [
            (tuple(self.labels[j] for j in np.flatnonzero(labels)), self.oracle.joint_feature(inputs, labels))
            for labels in (best, other)
        ]
        weights = np.concatenate([self.table.ravel(), self.weights[L * self.oracle.n_input_features :]])

        def name(k: int) -> tuple[str, str]:
            column, label = divmod(k, L)
            if column < len(inputs):
                return [*known.features, "intercept"][column], str(self.labels[label])
            return "together", ", ".join(str(self.labels[j]) for j in self.oracle.edges[k - L * len(inputs)])

        return Explanation.of_best(ranked, weights, name)

    # ---- compact models, files --------------------------------------------------------------------

    def pruned(self, size: float) -> Floats:
        """The weights, with 0 for those of columns below a size; intercepts and weights of pairs of labels stay."""
        weights, n = super().pruned(size), self.columns["n_features_in_"] * len(self.labels)
        weights[n:] = self.weights[n:]
        return weights

    def weight_rows(self) -> Integers:
        n_edges = len(self.oracle.edges)
        return np.append(np.full((len(self.weights) - n_edges) // len(self.labels), len(self.labels)), n_edges)

    @classmethod
    def from_record(cls, stored: Stored) -> Self:
        labels, n_features, has_intercept = stored.labels, stored.n_features_in, stored.has_intercept
        edges = stored.arrays()["edges"]
        n_rows = n_features + has_intercept
        arrays = stored.arrays(n_weights=n_rows * len(labels) + len(edges))
        weights = rows_from(
            arrays, "weights", n_rows + 1, lambda: np.append(np.full(n_rows, len(labels)), len(edges))
        ).astype(np.float64, copy=False)
        model = cls(labels, n_features, edges, stored.loss, has_intercept=has_intercept, form=stored.form)
        model.weights, model.units = weights, units_of(stored.units, n_features)
        return model
