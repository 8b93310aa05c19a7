"""Linear machines that follow the optimum of a stream (thesis, section 4.4)."""

from __future__ import annotations

import os
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets

from structsvm.callbacks import with_callbacks
from structsvm.linear._tracking import Tracker
from structsvm.model_file import unsound
from structsvm.parameters import FLAG, POSITIVE, RANDOM_STATE, Interval, seed_from
from structsvm.tasks.common.estimator import TaskEstimator, checked_sample_weight
from structsvm.tasks.common.labels import label_ids_of, settled_labels
from structsvm.tasks.linear.model import LinearModel


class TrackingModel(LinearModel):
    """A linear model and the tracker that moves it; the file stores all examples so far, as the training state.

    Attributes
    ----------
    tracker : Tracker
    """

    estimator = "TrackingClassifier"

    tracker: Tracker

    def follow(self, rows: Any, sign: Any, weight: Any) -> None:
        """Extend the stream by dense rows, their signs (-1 or 1) and weights."""
        self.tracker.extend(rows, sign, weight)
        self.set_weights(np.append(self.tracker.coef, 0.0)[None, :])

    def save(self, path: str | os.PathLike[str]) -> None:
        self.state = self.tracker.get_state()
        super().save(path)

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, mmap: bool = False, trusted: bool = False) -> Self:
        model = super().load(path, mmap=mmap, trusted=trusted)
        with unsound(path, cls.kind):
            model.tracker = Tracker(model.n_features, 1.0)
            model.tracker.set_state(model.state or {})
        model.state = None
        return model


class TrackingClassifier(ClassifierMixin, TaskEstimator):
    """Linear support vector machine without bias that stays near the optimum of all examples so far.

    Each example is followed by `n_reprocess` coordinate ascents on the dual of
    ``1/2 |w|^2 + C sum_i max(0, 1 - y_i <w, x_i>)``; with |x| <= 1 the excess of the primal objective over its optimum,
    divided by C t and averaged over time, is at most ``mu((D* - gained) / (n_reprocess t))``, ``mu(x) = sqrt(2 x) +
    x / C``, in expectation (theorem 7). All examples are kept, as dense rows.

    Parameters
    ----------
    C : float, default=1.0
    n_reprocess : int, default=10
        K: ascents on random examples so far, over which the classifier is averaged.
    process : bool, default=True
        Whether an example's own coefficient is moved first (algorithm 16, not 15).
    random_state : int, RandomState or None

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
    coef_ : ndarray of shape (1, n_features), float64
        The averaged classifier.
    dual_ : float
        The dual objective at the last point.
    gained_ : float
        What the first ascents on each example have gained in all: delta_T of theorem 7.
    n_seen_, n_features_in_ : int
    """

    _model_class = TrackingModel
    _constraints = {
        "C": POSITIVE,
        "n_reprocess": Interval(Integral, 1),
        "process": FLAG,
        "random_state": RANDOM_STATE,
        "warm_start": FLAG,
    }

    def __init__(
        self,
        C: float = 1.0,
        *,
        n_reprocess: int = 10,
        process: bool = True,
        random_state: int | np.random.RandomState | None = None,
        warm_start: bool = False,
    ) -> None:
        self.C = C
        self.n_reprocess = n_reprocess
        self.process = process
        self.random_state = random_state
        self.warm_start = warm_start

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Follow a stream from its beginning (with `warm_start`, on from where it stands), in the order of the rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Labels of two classes.
        sample_weight : array-like of shape (n_samples,), optional
            Factor on each example's C.
        """
        return self._follow(X, y, None, sample_weight, going_on=self.warm_start)

    @with_callbacks
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Follow the stream on; see `fit`. `classes` are all classes, in the first call."""
        return self._follow(X, y, classes, sample_weight, going_on=True)

    def _follow(self, X: Any, y: Any, classes: Any, sample_weight: Any, *, going_on: Any) -> Self:
        self._check_params()
        before = self.model_ if going_on and hasattr(self, "model_") else None
        X, y, columns = self._validated(X, y, before=before, accept_sparse="csr", dtype=np.float64, order="C")
        check_classification_targets(y)
        labels = settled_labels(y, classes, None if before is None else before.labels)
        if len(labels) > 2:
            raise ValueError(
                f"Only binary classification is supported. The type of the target is multiclass: {len(labels)} classes"
            )
        label_ids = label_ids_of(y, labels)
        weight = checked_sample_weight(sample_weight, len(y))
        rows = np.ascontiguousarray(X.toarray() if hasattr(X, "toarray") else X)
        with np.errstate(over="ignore"):
            if not np.isfinite(np.einsum("ij,ij->i", rows, rows)).all():
                raise ValueError("the squares of X overflow; scale the features down")
        # The tracker holds all examples so far: a stream extends it in place.
        model = before
        if model is None:
            model = TrackingModel(labels)
            model.columns = columns
            model.tracker = Tracker(X.shape[1], float(self.C), seed=seed_from(self.random_state))
        tracker = model.tracker
        tracker.C, tracker.n_reprocess, tracker.process = float(self.C), self.n_reprocess, bool(self.process)
        model.follow(rows, 2.0 * label_ids - 1.0, np.ones(len(y)) if weight is None else weight)
        self._adopt(model)
        return self

    @property
    def dual_(self) -> Any:
        return self._fitted().tracker.dual

    @property
    def gained_(self) -> Any:
        return self._fitted().tracker.gained

    @property
    def n_seen_(self) -> Any:
        return self._fitted().tracker.n_seen

    @property
    def coef_(self) -> Any:
        return self._fitted().coef

    def decision_function(self, X: Any) -> Any:
        """<w, x>: array (n_samples,)."""
        model = self._fitted()
        X, _ = self._validated(X, before=model, accept_sparse="csr", dtype=np.float64)
        return model.decision_function(X).ravel()

    def predict(self, X: Any) -> Any:
        """The class of each row: array (n_samples,)."""
        model = self._fitted()
        X, _ = self._validated(X, before=model, accept_sparse="csr", dtype=np.float64)
        return model.predict(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_class = False
        return tags
