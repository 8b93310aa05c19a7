"""A trained linear machine without scikit-learn: weights and labels."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray

from structsvm.features.dense import is_filled
from structsvm.kernel._kernels import Rows
from structsvm.linear.problem import LinearProblem
from structsvm.stored_values import Array, Record, Stored
from structsvm.tasks.common.calibration import RetrainedCalibration, one_hot
from structsvm.tasks.common.examples import LabeledRows
from structsvm.tasks.common.inspection.weights import Explanation, WeightTable
from structsvm.tasks.common.intercept import rows_of
from structsvm.tasks.common.kernel_machine import deviations_bring_labels_together
from structsvm.tasks.common.labels import label_array
from structsvm.tasks.common.model import TaskModel
from structsvm.tasks.common.stored_labels import Labels
from structsvm.tasks.common.units import (
    UNITS,
    Units,
    check_scale,
    cut_rows,
    distinct_places,
    later_rows,
    rows_in,
    settle_sizes,
    sized_rows,
    undone,
    units_of,
)

if TYPE_CHECKING:
    from structsvm._problem import BoundProblem
    from structsvm.arrays import Floats, Integers, LabelArray, Matrix, MatrixLike, State, Weights
    from structsvm.solvers import Solver
    from structsvm.solvers.linear.sgdqn import GradientRun
    from structsvm.solvers.linear.tracking import TrackingRun
    from structsvm.solvers.run import Run
    from structsvm.tasks.common.training import Job

RECORD = Record({
    "labels": Labels(2),
    "coef": Array("f4 f8", ("n_machines", "n_features")),
    "intercept": Array("f4 f8", ("n_machines",)),
    "units": UNITS,
})  # fmt: skip


class LinearModel(TaskModel[LabeledRows]):
    """Scores ``<w_y, x> + b_y`` of labels; of two labels, the second one's against 0.

    Attributes
    ----------
    labels : ndarray of shape (n_labels,)
    coef : ndarray of shape (n_machines, n_features)
        One machine of two labels, else as many as labels.
    intercept : ndarray of shape (n_machines,)
    units : Units or None
        In which weights are learnt; `coef` and `intercept` are of the columns as given.
    state : dict of ndarray, or None
        The training state; after a batch only that of the descent, from which the next batch starts.
    """

    kind = "binary"
    needs_state = True
    estimator = "SGDQNClassifier"
    record = RECORD
    has_temperature = True
    calibration = RetrainedCalibration()
    calibrates = False  # unless asked to

    def __init__(self, labels: LabelArray) -> None:
        super().__init__()
        self.labels = labels

    @property
    def n_features(self) -> int:
        return self.coef.shape[1]

    def weight_table(self) -> WeightTable:
        labels = self.labels.tolist()
        return WeightTable(self.name_columns(self.n_features), labels[-len(self.coef) :], self.coef.T)

    def explain(self, x: MatrixLike) -> Explanation:
        return Explanation.of_row(x, self.weight_table(), self.intercept, self.labels.tolist())

    def settle(self, job: Job[LabeledRows]) -> None:
        """Leave out examples of weight 0; the first data settle the units of columns."""
        examples = job.examples = job.examples.of_weight()  # the descent's objective is a mean over examples
        # The command line has no such option.
        standardizes = self.params.get("standardize", True)
        if self.is_trained:
            job.examples = replace(examples, rows=later_rows(self, examples.rows, is_cut=standardizes))
            return
        check_scale(examples.rows)
        if standardizes:
            self.set_units(examples, job.solver.has_intercept)
        settle_sizes(self, examples.rows)

    def set_units(self, examples: LabeledRows, has_intercept: bool) -> None:
        """Find the units of dense columns, one for all of them where nearest neighbours do not gain by their own."""
        if not is_filled(examples.rows):
            self.units = Units.of_matrix(examples.rows, has_intercept)
            return
        places = distinct_places(examples.rows)
        X, label_ids = examples.rows[places], examples.label_ids[places]
        alike = not deviations_bring_labels_together(X, label_ids)
        self.units = Units.of_rows(rows_of(X, has_intercept), short=True, alike=alike)

    def bind(self, examples: LabeledRows, solver: Solver) -> tuple[BoundProblem, Weights | None]:
        """The problem of rows in units."""
        X = examples.rows
        if self.units is not None:
            is_dense = self.units.centre is not None
            X = rows_in(self.units, X, has_intercept=False).values if is_dense else sized_rows(self.units, X)
        return LinearProblem(Rows(X), examples.label_ids, len(self.labels)), examples.weight

    def recentred(
        self, problem: BoundProblem, sample_weight: Weights | None, solver: Solver
    ) -> tuple[BoundProblem, Weights | None, State | None]:
        return problem, sample_weight, self.state

    def set_weights_from(self, run: GradientRun | TrackingRun) -> None:
        if not np.isfinite(run.weights).all():
            raise ValueError("the weights have overflowed: scale the features, or set a larger t0")
        self.set_weights(run.weights)

    def set_weights(self, w: Floats) -> None:
        """Set weights (n_machines, n_features + 1) of columns in units, the last one the intercepts."""
        w = undone(self.units, w.T).T
        self.coef, self.intercept = np.ascontiguousarray(w[:, :-1]), w[:, -1].copy()

    def state_of(self, run: Run, passes: int | None) -> State | None:
        return run.get_state() if passes is None else run.batch_state()

    def decision_function(self, X: Matrix) -> Floats:
        """Scores: array (n_samples, n_machines)."""
        return np.asarray(cut_rows(self.units, X) @ self.coef.T) + self.intercept

    def class_scores(self, X: Matrix) -> Floats:
        scores = self.decision_function(X)
        return np.column_stack([np.zeros(len(scores)), scores]) if scores.shape[1] == 1 else scores

    def examples_of(self, problem: LinearProblem, chosen: Integers) -> tuple[Matrix, NDArray[np.bool_]]:
        X = problem.rows.data[chosen]
        if self.units is not None:
            X = self.units.left(X)
        return X, one_hot(problem.y[chosen], len(self.labels))

    def predict_ids(self, X: Matrix) -> NDArray[np.int64]:
        """Ids of the labels of highest score: array (n_samples,)."""
        scores = self.decision_function(X)
        return (scores[:, 0] > 0.0).astype(np.int64) if scores.shape[1] == 1 else scores.argmax(axis=1)

    def predict(self, X: Matrix) -> LabelArray:
        """Labels of highest score."""
        return self.labels[self.predict_ids(X)]

    @classmethod
    def from_record(cls, stored: Stored) -> Self:
        model = cls(label_array(stored.labels))
        found = stored.arrays(n_machines=1 if len(stored.labels) == 2 else len(stored.labels))
        model.coef, model.intercept = found["coef"], found["intercept"]
        model.units = units_of(stored.units, model.n_features)
        model.columns["n_features_in_"] = model.n_features
        return model
