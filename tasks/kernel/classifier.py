"""What all kernel classifiers share: scikit-learn's contract around a `KernelModel`."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets

from structsvm.callbacks import with_callbacks
from structsvm.dual.parallel import parallel_map
from structsvm.tasks.common.estimator import TaskEstimator, checked_sample_weight, weighted_by_class
from structsvm.tasks.common.kernel_machine import kernel_of
from structsvm.tasks.common.labels import label_ids_of, settled_labels
from structsvm.tasks.common.parameters import CLASS_WEIGHT, KERNEL, TRAINING
from structsvm.tasks.kernel.model import KernelModel


class KernelClassifier(ClassifierMixin, TaskEstimator):
    """Base of the kernel classifiers.

    A subclass has the parameters of a kernel and of training, and those of its solver, whose class it names.
    """

    _model_class = KernelModel
    _solver_class: Any
    _constraints = TRAINING | KERNEL | {"class_weight": CLASS_WEIGHT}

    kernel: Any
    class_weight: Any = None

    def _make_solver(self) -> Any:
        """The solver with those of its parameters that the classifier has."""
        names = self.get_params(deep=False).keys() & self._solver_class().get_params().keys()
        return self._solver_class(**{name: getattr(self, name) for name in sorted(names)})

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
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
        return self._train(X, y, sample_weight, metadata={"sample_weight": sample_weight})

    def _prepare(self, X: Any, y: Any, sample_weight: Any, before: Any, *, classes: Any = None) -> tuple[Any, Any, Any]:
        X, y, columns = self._validated(X, y, before=before, **self._accepted)
        check_classification_targets(y)
        if self.kernel == "precomputed" and X.shape[0] != X.shape[1]:
            raise ValueError(f"Precomputed matrix must be a square matrix. Input is a {X.shape[0]}x{X.shape[1]} matrix")
        labels = settled_labels(y, classes, None if before is None else before.labels)
        self._check_labels(labels)
        label_ids = label_ids_of(y, labels)
        if before is None:
            model = self._model_class(labels, kernel_of(self, X))
            model.columns = columns
        else:
            model = before
            model.check_kernel(self, X)
        weight = checked_sample_weight(sample_weight, len(label_ids))
        return model, (X, label_ids), weighted_by_class(weight, self.class_weight, labels.tolist(), label_ids)

    def _check_labels(self, labels: Any) -> None:
        """Raise ValueError for classes that this machine cannot tell apart."""
        if len(labels) < 2:
            only = labels.tolist()[0]
            raise ValueError(
                f"{type(self).__name__} needs samples of 2 classes or more; y has only one class: {only!r}"
            )

    @property
    def _accepted(self) -> dict[str, Any]:
        """The matrices that `validate_data` takes or makes: a precomputed kernel is dense."""
        sparse = False if self.kernel == "precomputed" else "csr"
        return {"accept_sparse": sparse, "dtype": [np.float64, np.float32], "order": "C"}

    # ---- prediction -----------------------------------------------------------------------------

    def decision_function(self, X: Any) -> Any:
        """Scores of the classes.

        Returns
        -------
        ndarray of shape (n_samples, n_classes); (n_samples,) for two classes, the second one's minus the first one's.
        """
        model = self._fitted()
        scores = self._by_parts(model.decision_function, self._test(model, X))
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    def predict(self, X: Any) -> Any:
        """The class of highest score for each row: array (n_samples,)."""
        model = self._fitted()
        return self._by_parts(model.predict, self._test(model, X))

    def _test(self, model: Any, X: Any) -> Any:
        return self._validated(X, before=model, **self._accepted)[0]

    def _by_parts(self, function: Any, X: Any) -> Any:
        """A function of rows, by `n_jobs` threads."""
        bounds = np.linspace(0, X.shape[0], max(1, min(self._threads, X.shape[0])) + 1).astype(int).tolist()
        parts = [slice(a, b) for a, b in pairwise(bounds)]
        return np.concatenate(parallel_map(lambda part: function(X[part]), parts, self._threads))

    # ---- views, files ---------------------------------------------------------------------------

    @property
    def support_(self) -> Any:
        return self._fitted().support

    @property
    def support_vectors_(self) -> Any:
        return self._fitted().vectors

    @property
    def dual_coef_(self) -> Any:
        return self._fitted().coef

    @property
    def n_support_(self) -> Any:
        return np.bincount(self._fitted().support_labels, minlength=len(self.classes_))

    @property
    def n_kernel_(self) -> Any:
        return self._fitted().n_kernel

    @property
    def hit_rate_(self) -> Any:
        return self._fitted().hit_rate

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.kernel != "precomputed"
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags
