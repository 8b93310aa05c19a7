"""Classifiers of the rows of a matrix: what kernel machines and linear machines share."""

from __future__ import annotations

from abc import abstractmethod
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.metaestimators import available_if

from structsvm.callbacks import with_callbacks
from structsvm.dual.parallel import in_own_threads, parallel_map
from structsvm.features.inputs.masks import reads_masks
from structsvm.metrics._counts import say_unseen
from structsvm.tasks.common.bases import ClassifierMixin
from structsvm.tasks.common.calibration import class_probabilities
from structsvm.tasks.common.estimator import TaskEstimator, weighted_by_class
from structsvm.tasks.common.examples import LabeledRows, checked_sample_weight
from structsvm.tasks.common.labels import check_labelled, check_targets, label_ids_of, settled_labels
from structsvm.tasks.common.solver import is_auto

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable

    from numpy.typing import NDArray

    from structsvm.arrays import Floats, Integers, LabelArray, Matrix, MatrixLike, Scalar, Weights
    from structsvm.solvers import Solver
    from structsvm.tasks.common.model import TaskModel

# Rows that one thread predicts at a time: the same whatever n_jobs, and so are the scores.
PART = 512


def has_probabilities(estimator: Classifier) -> bool:
    """True; AttributeError unless a classifier has, or was trained with, ``probability=True``."""
    model = estimator._model  # noqa: SLF001 (of this file)
    if estimator.probability if model is None else model.temperature is not None:
        return True
    raise AttributeError("predict_proba is not available unless the classifier was trained with probability=True")


# The matrices that `validate_data` takes or makes, where both floats are used as they are.
ACCEPTED: dict[str, object] = {"accept_sparse": "csr", "dtype": [np.float64, np.float32], "order": "C"}


class Classifier(ClassifierMixin, TaskEstimator):
    """Base of the classifiers.

    A subclass names the class of its solver, with which it shares parameters, and implements `_start`. Its model has
    ``labels``, ``decision_function`` and ``predict``.
    """

    _solver_class: type[Solver]
    _is_binary: ClassVar[bool] = False
    class_weight: Any = None
    probability: bool

    @abstractmethod
    def _start(self, X: Any, labels: LabelArray, before: Any) -> tuple[TaskModel, Any]:
        """Return ``(model, X)``: a new model, or `before` if there is one, and X as it trains on it."""

    def _make_solver(self, before: TaskModel | None = None) -> Solver:
        """The solver with those of its parameters that the classifier has; its own C where that is to be chosen."""
        names = self.get_params(deep=False).keys() & self._solver_class().get_params().keys()
        given = {name: getattr(self, name) for name in sorted(names)}
        if is_auto(given.get("C")):
            del given["C"]
        return self._solver_class(**given)

    @property
    def _accepted(self) -> dict[str, object]:
        """The matrices that `validate_data` takes or makes."""
        return ACCEPTED

    # ---- training -------------------------------------------------------------------------------

    @with_callbacks
    def fit(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Train on examples.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            float32 and float64 are used directly (`TrackingClassifier`: float64), other types become float64; sparse
            matrices become CSR. With ``kernel="precomputed"`` the kernel matrix, (n_samples, n_samples); with a
            kernel that is a function, also a list of any objects.
        y : array-like of shape (n_samples,)
            Labels of two classes or more.
        sample_weight : array-like of shape (n_samples,), optional
            Factor on each example's loss; of a perceptron, on the length of its steps.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            For parameters out of range, data that are not finite or do not match, labels of one class only, weights
            that overflow, a cache smaller than one row, a kernel whose values are not finite or have the wrong shape.
        KeyboardInterrupt
            On Ctrl-C, after the partial model has been stored.
        """
        return self._train(X, y, sample_weight, metadata={"sample_weight": sample_weight})

    def _prepare(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None,
        before: TaskModel | None,
        *,
        classes: Iterable[Hashable] | None = None,
    ) -> tuple[Any, LabeledRows]:
        check_labelled(y)
        X, y, columns = self._validated(X, y, before=before, **self._accepted)
        check_targets(y)
        labels = self._labels_of(y, classes, before)
        label_ids = label_ids_of(y, labels)
        model, X = self._start(X, labels, before)
        model.columns = columns
        examples = self._examples(X, label_ids, checked_sample_weight(sample_weight, len(label_ids)))
        return model, weighted_by_class(examples, self.class_weight, labels.tolist())

    def _examples(self, X: Any, label_ids: Integers, weight: Weights | None) -> LabeledRows:
        """The rows that the model is trained on."""
        return LabeledRows(X, label_ids, weight=weight)

    def _labels_of(self, y: Any, classes: Iterable[Hashable] | None, before: Any) -> LabelArray:
        """All labels; ValueError if there are too few or too many, or others than those of `before`."""
        known = None if before is None else before.labels
        labels = settled_labels(y, classes, known, streams=hasattr(self, "partial_fit"))
        if self._is_binary and len(labels) > 2:
            raise ValueError(
                "Only binary classification is supported. The type of the target is multiclass: "
                f"{len(labels)} classes, {labels.tolist()!r:.80}; wrap {type(self).__name__} in "
                "sklearn.multiclass.OneVsRestClassifier"
            )
        return labels

    # ---- prediction -----------------------------------------------------------------------------

    def decision_function(self, X: MatrixLike) -> Floats:
        """Scores of the classes.

        Returns
        -------
        ndarray of shape (n_samples, n_classes); (n_samples,) for two classes, the second one's against the first one's.
        """
        model = self._fitted()
        scores = self._by_parts(model.decision_function, self._test(model, X))
        if scores.shape[1] > 2:
            return scores
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores.ravel()

    def predict(self, X: MatrixLike) -> LabelArray:
        """The class of highest score for each row: array (n_samples,)."""
        model = self._fitted()
        return self._by_parts(model.predict, self._test(model, X))

    def score(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Share of the rows whose class is right; rows of a class that training never saw count as wrong."""
        check_labelled(y)
        say_unseen(np.asarray(y).tolist(), set(self.classes_.tolist()), "rows")
        return float(super().score(X, y, sample_weight))

    @available_if(has_probabilities)
    @in_own_threads
    @reads_masks
    def predict_proba(self, X: MatrixLike) -> NDArray[np.float64]:
        """Probabilities of the classes: array (n_samples, n_classes).

        A softmax over the scores (for two classes over 0 and the score of the second) at the temperature
        `temperature_`, which ``probability=True`` fits on held-out examples.
        """
        model = self._fitted()
        return class_probabilities(model, self._by_parts(model.class_scores, self._test(model, X)))

    @available_if(has_probabilities)
    @in_own_threads
    @reads_masks
    def predict_log_proba(self, X: MatrixLike) -> Floats:
        """Logarithms of `predict_proba`."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def _test(self, model: TaskModel, X: MatrixLike) -> Matrix:
        return self._rows_of_prediction(X, model, **self._accepted)

    def _by_parts(self, function: Callable[[Matrix], NDArray[Scalar]], X: Matrix) -> NDArray[Scalar]:
        """A function of rows, by `n_jobs` threads."""
        parts = [slice(a, b) for a, b in pairwise([*range(0, X.shape[0], PART), X.shape[0]])]
        return np.concatenate(parallel_map(lambda part: function(X[part]), parts, self._threads))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = bool(self._accepted["accept_sparse"])
        tags.classifier_tags.multi_class = not self._is_binary
        return tags
