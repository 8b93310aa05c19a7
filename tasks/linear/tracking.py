"""Linear machines that follow the optimum of a stream (thesis, section 4.4)."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from structsvm.callbacks import with_callbacks
from structsvm.kernel._kernels import Rows
from structsvm.linear.problem import LinearProblem
from structsvm.parameters import Seed, declared
from structsvm.solvers.linear.tracking import Tracking, TrackingParameters
from structsvm.stored_values import Array, Stored
from structsvm.tasks.common.classifier import Classifier
from structsvm.tasks.common.examples import LabeledRows
from structsvm.tasks.common.parameters import MachineRunning, Standardize
from structsvm.tasks.linear.model import RECORD, LinearModel

if TYPE_CHECKING:
    from structsvm._problem import BoundProblem
    from structsvm.arrays import Floats, Matrix, MatrixLike, Weights
    from structsvm.solvers import Solver
    from structsvm.solvers.linear.sgdqn import GradientRun
    from structsvm.solvers.linear.tracking import TrackingRun

STREAM = RECORD | {
    "examples": Array("f8", ("n_seen", "n_features")),
    "label_ids": Array("i4", ("n_seen",), within=(0, 2)),
}


class TrackingModel(LinearModel):
    """A linear model and all examples of the stream so far.

    Attributes
    ----------
    examples : ndarray of shape (n_seen, n_features), float64
        In units, if there are some.
    label_ids : ndarray of shape (n_seen,), int32
    """

    estimator = "TrackingClassifier"
    record = STREAM

    examples: NDArray[np.float64]
    label_ids: NDArray[np.int32]

    @property
    def has_intercept(self) -> bool:
        """Whether the state has its weight."""
        return self.state is not None and np.shape(self.state.get("weights", ()))[1:] > (self.n_features,)

    def bind(self, examples: LabeledRows, solver: Solver) -> tuple[BoundProblem, Weights | None]:
        """The problem of a copy of the examples, as dense rows: they are stored."""
        if self.units is None or self.units.centre is None:
            X = examples.rows
            examples = replace(examples, rows=X.toarray() if hasattr(X, "toarray") else X.copy())
        return super().bind(examples, solver)

    def recentred(
        self, problem: Any, sample_weight: Weights | None, solver: Solver
    ) -> tuple[LinearProblem, Weights | None, Any]:
        """The problem of the examples so far and the others behind them."""
        X, label_ids = [self.examples, problem.rows.data], [self.label_ids, problem.y]
        if sample_weight is not None:
            sample_weight = np.concatenate([np.ones(len(self.examples)), sample_weight])
        problem = LinearProblem(Rows(np.concatenate(X)), np.concatenate(label_ids), problem.n_labels)
        return problem, sample_weight, self.state

    def set_weights_from(self, run: GradientRun | TrackingRun) -> None:
        super().set_weights_from(run)
        n = run.state.n_seen
        self.examples, self.label_ids = run.problem.rows.data[:n], run.problem.y[:n]

    @classmethod
    def from_record(cls, stored: Stored) -> Self:
        model, found = super().from_record(stored), stored.arrays()
        model.examples, model.label_ids = found["examples"], found["label_ids"]
        return model

    def check(self) -> None:
        run = Tracking(fit_intercept=self.has_intercept).start(
            LinearProblem(Rows(self.examples), self.label_ids, 2), base=self.state or {}
        )
        if run.state.n_seen != len(self.examples):
            raise ValueError(f"{len(self.examples)} examples and the state of {run.state.n_seen}")


@declared
class TrackingClassifier(TrackingParameters, Standardize, Seed, MachineRunning, Classifier):
    """Linear support vector machine that stays near the optimum of all examples so far.

    After each example come `n_reprocess` coordinate ascents on the dual of ``1/2 |w|^2 + C sum_i max(0, 1 - y_i <w,
    x_i>)``; with ``|x| <= 1``, the constant of the intercept counted, the excess of the primal objective over its
    optimum, divided by C t and averaged over time, is at most ``mu((D* - gained) / (n_reprocess t))``, ``mu(x) =
    sqrt(2 x) + x / C``, in expectation (theorem 7).
    `fit` visits the rows in their order, and `partial_fit` the next ones. All examples are stored, as dense rows, and
    each call of `partial_fit` reads all of them once: call it with batches.

    Parameters
    ----------
    C, n_reprocess, process, fit_intercept, max_iter
        As for `structsvm.solvers.Tracking`; the first `fit` or batch decides whether there is an intercept.
    standardize : bool, default=True
        As for `SGDQNClassifier`; False, with ``fit_intercept=False``, for the theorem's ``|x| <= 1``.
    random_state : int, RandomState or None
        Seeds the choice of the examples to ascend on.
    warm_start : bool, default=False
        Whether `fit` resumes from the current model: with `max_iter` more passes over the same data; other data are
        the next part of the stream.
    n_jobs : int, optional
        Threads for prediction, -1 for one per processor; scores do not depend on it.
    checkpoint
        As for the solver.
    probability : bool, default=False
        Fit a temperature for `predict_proba` on held-out examples: costs about one more training, on small data five.
    verbose : bool, default=False
        Show a progress bar.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
    coef_ : ndarray of shape (1, n_features), float64
        The averaged classifier.
    intercept_ : ndarray of shape (1,), float64
    dual_ : float
        The dual objective at the last point.
    gained_ : float
        The total gain of the first ascents on each example: delta_T of theorem 7.
    result_ : Result
        With the primal objective of `coef_` over all examples so far, and the dual one.
    n_iter_, n_seen_, n_features_in_ : int

    Examples
    --------
    >>> from structsvm.tasks import TrackingClassifier
    >>> X, y = [[0.0, 1.0], [0.2, 0.9], [0.9, 0.1], [1.0, 0.0]], ["low", "low", "high", "high"]
    >>> TrackingClassifier(C=1.0, random_state=0).fit(X, y).predict([[0.1, 1.0]]).tolist()
    ['low']
    """

    _model_class = TrackingModel
    _solver_class = Tracking
    _is_binary = True

    @with_callbacks
    def partial_fit(
        self,
        X: MatrixLike,
        y: ArrayLike,
        classes: Iterable[Hashable] | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Follow the stream: one pass over its next examples.

        Parameters
        ----------
        X, y, sample_weight : see `fit`
        classes : array-like, optional
            Both classes, in the first call; default: those of its y. Any other label is an error.
        """
        metadata = {"sample_weight": sample_weight}
        return self._train(X, y, sample_weight, passes=1, metadata=metadata, classes=classes)

    def _start(self, X: Matrix, labels: Any, before: TrackingModel | None) -> tuple[TrackingModel, Matrix]:
        return TrackingModel(labels) if before is None else before, X

    def _make_solver(self, before: Any = None) -> Solver:
        solver = super()._make_solver()
        return solver if before is None else solver.set_params(fit_intercept=before.has_intercept)

    @property
    def _accepted(self) -> dict[str, Any]:
        return super()._accepted | {"dtype": np.float64}

    # ---- views ----------------------------------------------------------------------------------

    @property
    def dual_(self) -> float:
        return float(self._fitted().state["gains"][0])

    @property
    def gained_(self) -> float:
        return float(self._fitted().state["gains"][1])

    @property
    def n_seen_(self) -> int:
        return len(self._fitted().examples)

    @property
    def coef_(self) -> Floats:
        return self._fitted().coef

    @property
    def intercept_(self) -> Floats:
        return self._fitted().intercept
