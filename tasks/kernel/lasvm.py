"""LaSVM for classification with kernels, on examples or on an unlabelled pool (thesis, sections 4.2 and 4.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Self, cast

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import column_or_1d

from structsvm.kernel.parameters import KernelParameters
from structsvm.parameters import POSITIVE, Options, Seed, declared, group_of, parameter
from structsvm.solvers.kernel.lasvm import LaSVM, LaSVMParameters, LaSVMSteps
from structsvm.tasks.common.estimator import weighted_by_class
from structsvm.tasks.common.examples import LabeledRows, checked_sample_weight
from structsvm.tasks.common.labels import label_ids_of
from structsvm.tasks.common.parameters import ClassWeight, MachineRunning
from structsvm.tasks.common.solver import AUTO, is_to_choose
from structsvm.tasks.kernel.online import BinaryKernelClassifier

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from structsvm.arrays import Integers, Matrix, MatrixLike, Weights
    from structsvm.solvers import Solver
    from structsvm.tasks.common.model import TaskModel
    from structsvm.tasks.kernel.model import KernelModel


@declared
class LaSVMClassifier(KernelParameters, LaSVMParameters, ClassWeight, Seed, MachineRunning, BinaryKernelClassifier):
    """Support vector machine with a kernel and a bias, trained in one pass.

    Minimises ``1/2 |w|^2 + C sum_i max(0, 1 - y_i (<w, Phi(x_i)> + b))``, in the dual: the machine of scikit-learn's
    SVC. One pass and the finishing step nearly reach the accuracy of the optimum.

    Parameters
    ----------
    C : float or "auto", default="auto"
        Weight of the sum of slacks. "auto": chosen on held-out examples (`validation_`), see
        `structsvm.tasks.common.selection.kernels`; 1 with fewer than 20 examples, and in `partial_fit` before any
        `fit`.
    kernel, gamma, degree, coef0, warm_start, n_jobs, checkpoint
        As for `LaRankClassifier`.
    steps : LaSVMSteps, optional
        How many steps on old examples follow one on a new example, and whether training ends with the finishing step;
        None: ``LaSVMSteps()``.
    selection, max_visits, max_iter, tol, tau, cache_size
        As for `structsvm.solvers.LaSVM`.
    class_weight : dict or "balanced", optional
        Factor on C by class (default 1); "balanced": ``n_samples / (2 * count)``.
    random_state : int, RandomState or None
        Seeds the order of examples and the candidates of a selection.
    probability : bool, default=False
        Fit a temperature for `predict_proba` on held-out examples: costs about one more training, on small data five.
    verbose : bool, default=False
        Show a progress bar.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        The second is y = 1.
    support_ : ndarray of shape (n_SV,)
        Indices of the kept examples in the training data; -1 for those of earlier batches of `partial_fit`.
    support_vectors_ : ndarray or CSR matrix of shape (n_SV, n_features)
        Empty for a precomputed kernel.
    dual_coef_ : ndarray of shape (1, n_SV)
        alpha: ``f(x) = dual_coef_ @ k(support_vectors_, x) + intercept_``. In a stream some of them may be 0.
    intercept_ : ndarray of shape (1,)
    n_support_ : ndarray of shape (2,)
        Support vectors of each class.
    n_kernel_, hit_rate_, C_, gamma_, validation_, result_, n_iter_, n_features_in_
        As for `LaRankClassifier`. Without `tol` no duality gap is claimed.

    Examples
    --------
    >>> from structsvm.datasets import make_banana
    >>> from structsvm.tasks import LaSVMClassifier
    >>> X, y = make_banana(2000, random_state=0)
    >>> model = LaSVMClassifier(C=1.0, gamma=0.5, random_state=0).fit(X[:1000], y[:1000])
    >>> bool(model.score(X[1000:], y[1000:]) > 0.8)
    True
    """

    C: float | Literal["auto"] = parameter(POSITIVE, Options(AUTO), default=AUTO, kw_only=False)
    steps: LaSVMSteps | None = group_of(LaSVMSteps)

    _solver_class = LaSVM

    def _make_solver(self, before: TaskModel[LabeledRows] | None = None) -> Solver:
        return super()._make_solver(before).set_params(**(self.steps or LaSVMSteps()).get_params())

    _pool = cast("Pool | None", None)

    def _stream_solver(self, before: TaskModel[LabeledRows] | None = None) -> Solver:
        return super()._stream_solver().set_params(finishing=False)

    def _of_model(self, solver: Solver, model: Any) -> Any:
        """The solver, with the C chosen for the model if C is "auto"."""
        chosen = is_to_choose(self, solver) and model.choice is not None
        return solver.set_params(C=model.choice.C) if chosen else solver

    def _adopt(self, model: TaskModel[LabeledRows], **beside: object) -> None:
        super()._adopt(model, **beside)
        self._pool = None

    def finish(self) -> Self:
        """The finishing step after a stream or a pool: solve the dual over the kept examples.

        Returns
        -------
        self
        """
        model, pool = self._fitted().copy(), self._pool
        if pool is None:
            if model.kernel.name == "precomputed":
                raise ValueError("finish() needs the support vectors, which kernel='precomputed' does not keep")
            solver = self._of_model(self._make_solver(), model).set_params(tol=None, finishing=True)
            nothing = model.vectors[:0], np.empty(0, np.int32)
            problem, weight, base = model.problem_around(*nothing, None, solver.C)
            problem.n_before = 0  # the support patterns keep their indices
            run = solver.start(problem, sample_weight=weight, base=base)
            run.certify()
            support = model.support
            model.set_weights_from(run)
            model.support, model.result = support[model.support], run.result()
        else:
            pool.run.state.finish()
            pool.update(model)
        self._adopt(model)
        self._pool = pool
        return self

    # ---- pools ----------------------------------------------------------------------------------

    def query(
        self, X: MatrixLike | None = None, n_queries: int = 1, *, classes: Iterable[Hashable] | None = None
    ) -> Integers:
        """Choose rows of a pool to label next: those that `selection` chooses from its draws.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_pool, n_features), optional
            A new pool of unlabelled examples; None: the last one. Training continues from the current model.
        n_queries : int, default=1
        classes : array-like, optional
            The two classes, if the classifier is not fitted yet.

        Returns
        -------
        ndarray of shape (n_queries,), int64
            Indices of rows; fewer if fewer rows of the pool are unlabelled.

        Raises
        ------
        ValueError
            There is no pool, it is used up, ``selection="gradient"`` (which needs labels), or X is invalid.
        """
        self._check_params()
        self._check_stream()
        if self.selection == "gradient":
            raise ValueError("selection='gradient' looks at labels, which a pool does not have; use 'active'")
        if isinstance(n_queries, bool) or not isinstance(n_queries, (int, np.integer)) or n_queries < 1:
            raise ValueError(f"n_queries must be an int in the range [1, inf). Got {n_queries!r} instead.")
        if X is not None:
            self._open(X, classes)
        pool = self._open_pool()
        if len(pool.left) == 0:
            raise ValueError(f"the pool has run dry: all of its {pool.n} rows have been taught")
        return pool.query(n_queries)

    def teach(self, rows: ArrayLike, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Learn the labels of rows of the pool: Process and Reprocess each.

        Parameters
        ----------
        rows : array-like of shape (n,), int
            Rows, as `query` returns them.
        y : array-like of shape (n,)
            Their labels.
        sample_weight : array-like of shape (n,), optional

        Returns
        -------
        self
        """
        pool = self._open_pool()
        rows, y = np.atleast_1d(np.asarray(rows)), column_or_1d(np.atleast_1d(np.asarray(y)))
        if rows.dtype.kind not in "iu":
            raise ValueError(f"teach takes indices of rows, integers, got an array of {rows.dtype}")
        if rows.ndim != 1 or rows.shape != y.shape:
            raise ValueError(f"teach takes as many rows as labels, got {rows.shape} and {y.shape}")
        wrong = rows[~np.isin(rows, pool.left)]
        if len(wrong) or len(np.unique(rows)) < len(rows):
            text = f"row {wrong[0]} is not one of the pool's" if len(wrong) else "a row is taught twice, which is not"
            raise ValueError(f"{text} {len(pool.left)} rows that have no label yet")
        labels = pool.labels
        known = label_ids_of(y, labels)
        taught = LabeledRows(rows, known, weight=checked_sample_weight(sample_weight, len(y)))
        weight = weighted_by_class(taught, self.class_weight, labels.tolist()).weight
        pool.teach(rows.astype(np.int64), known, np.ones(len(y)) if weight is None else weight)
        model = pool.model.copy()
        pool.update(model)
        self._adopt(model)
        self._pool = pool
        return self

    def _open(self, X: Any, classes: Iterable[Hashable] | None) -> None:
        old = self._model
        if old is None and classes is None:
            raise ValueError("query needs classes= with the first pool: nothing tells it the two labels")
        X, columns = self._validated(X, before=old, **self._accepted)
        model, X = self._start(X, self._labels_of(None, classes, old), old)
        model.columns = columns
        self._pool = Pool(model, X, self._of_model(self._stream_solver(), model))

    def _open_pool(self) -> Pool:
        if self._pool is None:
            raise ValueError("there is no pool to ask about: give query(X) one")
        return self._pool

    def __getstate__(self) -> dict[str, object]:
        return super().__getstate__() | {"_pool": None}  # copies and files hold what was learnt


class Pool:
    """Rows without labels, and a run of LaSVM on those that `teach` labels.

    Attributes
    ----------
    n : int
        Rows.
    left : ndarray of int64
        Those without a label.
    """

    def __init__(self, model: KernelModel, X: Matrix, solver: Any) -> None:
        self.model, self.labels, self.n = model, model.labels, X.shape[0]
        self.first = len(model.support)
        problem, weight, base = model.problem_around(X, np.zeros(self.n, dtype=np.int32), None, solver.C)
        self.run = solver.start(problem, sample_weight=weight, base=base)
        self.C = float(solver.C)
        self.left = np.arange(self.n)

    def query(self, n_queries: int) -> Integers:
        candidates = self.left + self.first
        chosen: list[int] = []
        while len(candidates) and len(chosen) < n_queries:
            place = self.run.state.query(candidates)
            chosen.append(candidates[place] - self.first)
            candidates = np.delete(candidates, place)
        return np.array(chosen, dtype=np.int64)

    def teach(self, rows: Integers, labels: Integers, weight: Weights) -> None:
        run = self.run
        for i, label, factor in zip(rows + self.first, labels, weight):
            run.problem.y[i], run.C[i] = label, self.C * factor
            run.state.teach(i, label, self.C * factor)
        self.left = np.setdiff1d(self.left, rows)

    def update(self, model: KernelModel) -> None:
        """Store the state of the run in the model."""
        self.run.dual = self.run.state.settle()
        model.set_weights_from(self.run)
        model.result = self.run.result()
