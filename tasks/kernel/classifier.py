"""What all kernel classifiers share: scikit-learn's contract around a `KernelModel`."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from structsvm.callbacks import CallbackSupportMixin, with_callbacks
from structsvm.kernel._kernels import KERNELS
from structsvm.parameters import FLAG, POSITIVE, RANDOM_STATE, Interval, Kind, Options, validate
from structsvm.solvers.base import raise_if_interrupted
from structsvm.tasks.common.estimator import checked_sample_weight
from structsvm.tasks.common.labels import label_costs
from structsvm.tasks.common.stored_estimator import StoredEstimatorMixin, all_or_nothing, monitor_for
from structsvm.tasks.kernel.model import KernelModel, kernel_of


class Callable:
    """Anything that can be called, as a constraint of a parameter."""

    def accepts(self, value):
        return callable(value)

    def __str__(self):
        return "a callable"


KERNEL_PARAMETERS = {
    "kernel": (Options(*KERNELS), Callable()),
    "gamma": (Options("scale", "auto"), POSITIVE),
    "degree": Interval(Integral, 0, 2**31 - 1),
    "coef0": Interval(Real, -np.inf, closed="neither"),
    "cache_size": POSITIVE,
    "random_state": RANDOM_STATE,
    "verbose": FLAG,
}
CLASS_WEIGHT = (Options("balanced", None), Kind(dict, "a dict"))


class KernelClassifier(StoredEstimatorMixin, CallbackSupportMixin, ClassifierMixin, BaseEstimator):
    """Base of the kernel classifiers.

    A subclass has the parameters ``kernel``, ``gamma``, ``degree``, ``coef0``, ``cache_size``, ``random_state`` and
    ``verbose``, names its own in `_constraints`, and makes its solver.
    """

    _model_class = KernelModel
    _kind = "multiclass"
    _constraints: dict = KERNEL_PARAMETERS

    kernel: Any
    class_weight: Any = None
    verbose: bool

    def _make_solver(self):
        """The solver that the parameters ask for."""
        raise NotImplementedError

    @with_callbacks
    def fit(self, X, y, sample_weight=None):
        """Train on examples.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            float32 and float64 are used as they are, others become float64; sparse matrices become CSR. With
            ``kernel="precomputed"`` the kernel matrix, (n_samples, n_samples).
        y : array-like of shape (n_samples,)
            Labels of two classes or more.
        sample_weight : array-like of shape (n_samples,), optional
            Factor on each example's C.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            For parameters out of range, data that are not finite or do not fit, labels of one class only, a cache
            smaller than one row, a kernel whose values are not finite or of the wrong shape.
        KeyboardInterrupt
            On Ctrl-C, after the partial model has been put in place.
        """
        return self._fit(X, y, sample_weight)

    @all_or_nothing
    def _fit(self, X, y, sample_weight, resume=None):
        validate(self, self._constraints)
        X, y = self._validated(X, y, reset=True)
        labels, numbers = np.unique(y, return_inverse=True)
        self._check_labels(labels)
        if resume is not None and not np.array_equal(resume.labels, labels):
            raise ValueError("warm_start=True goes on with the same classes; these data have others")
        model = self._new_model(labels, X)
        solver = self._make_solver()
        weight = self._weights(sample_weight, labels, numbers)

        def fitted(run):
            seen = type(model)(labels, model.kernel)
            seen.take(run)
            return {"model_": seen, "classes_": labels}

        monitor = monitor_for(self, X, y, solver.n_passes, fitted, sample_weight=sample_weight)
        run = model.train(X, numbers.astype(np.int32), solver, sample_weight=weight, monitor=monitor, resume=resume)
        self._adopt(model)
        raise_if_interrupted(run)
        return self

    def _check_labels(self, labels):
        """Raise ValueError for classes that this machine cannot tell apart."""
        if len(labels) < 2:
            only = labels.tolist()[0]
            raise ValueError(
                f"{type(self).__name__} needs samples of 2 classes or more; y has only one class: {only!r}"
            )

    def _validated(self, X, y, *, reset):
        X, y = validate_data(self, X, y, reset=reset, **self._accepted)
        check_classification_targets(y)
        if self.kernel == "precomputed" and X.shape[0] != X.shape[1]:
            raise ValueError(f"Precomputed matrix must be a square matrix. Input is a {X.shape[0]}x{X.shape[1]} matrix")
        return X, y

    @property
    def _accepted(self):
        """The matrices that `validate_data` takes or makes: a precomputed kernel is dense."""
        sparse = False if self.kernel == "precomputed" else "csr"
        return {"accept_sparse": sparse, "dtype": [np.float64, np.float32], "order": "C"}

    def _new_model(self, labels, X):
        return self._model_class(labels, kernel_of(self, X), estimator=type(self).__name__)

    def _weights(self, sample_weight, labels, numbers):
        """Factors on C, or None for 1."""
        weight = checked_sample_weight(sample_weight, len(numbers))
        costs = label_costs(self.class_weight, labels.tolist(), numbers)
        if costs is None:
            return weight
        return costs[numbers] * (1.0 if weight is None else weight)

    def _adopt(self, model):
        self.model_ = model
        self.classes_ = model.labels
        self.n_features_in_ = model.n_features
        self.result_ = model.result
        self.n_iter_ = 0 if model.result is None else model.result.n_iter

    # ---- prediction -----------------------------------------------------------------------------

    def decision_function(self, X):
        """Scores of the classes.

        Returns
        -------
        ndarray of shape (n_samples, n_classes); (n_samples,) for two classes, the second one's minus the first one's.
        """
        scores = self._checked_model().decision_function(self._test(X))
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    def predict(self, X):
        """The class of highest score for each row: array (n_samples,)."""
        return self._checked_model().predict(self._test(X))

    def _checked_model(self):
        check_is_fitted(self)
        return self.model_

    def _test(self, X):
        check_is_fitted(self)
        return validate_data(self, X, reset=False, **self._accepted)

    # ---- views, files ---------------------------------------------------------------------------

    @property
    def support_(self):
        return self._checked_model().support

    @property
    def support_vectors_(self):
        return self._checked_model().vectors

    @property
    def dual_coef_(self):
        return self._checked_model().coef

    @property
    def n_support_(self):
        return np.bincount(self._checked_model().support_labels, minlength=len(self.classes_))

    @property
    def n_kernel_(self):
        return self._checked_model().n_kernel

    @property
    def hit_rate_(self):
        return self._checked_model().hit_rate

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.kernel != "precomputed"
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags
