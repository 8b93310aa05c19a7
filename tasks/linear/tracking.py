"""Linear machines that follow the optimum of a stream (thesis, section 4.4)."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from structsvm.linear._tracking import Tracker
from structsvm.parameters import FLAG, POSITIVE, RANDOM_STATE, Interval, seed_from, validate
from structsvm.tasks.common.estimator import checked_sample_weight
from structsvm.tasks.common.labels import label_ids_of, settled_labels
from structsvm.tasks.common.stored_estimator import StoredEstimatorMixin, all_or_nothing
from structsvm.tasks.linear.model import LinearModel


class TrackingClassifier(StoredEstimatorMixin, ClassifierMixin, BaseEstimator):
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

    _constraints = {
        "C": POSITIVE,
        "n_reprocess": Interval(Integral, 1, 2**31),
        "process": FLAG,
        "random_state": RANDOM_STATE,
    }
    _model_class = LinearModel
    _kind = "binary"
    _tracker: Any = None

    def __init__(self, C=1.0, *, n_reprocess=10, process=True, random_state=None):
        self.C = C
        self.n_reprocess = n_reprocess
        self.process = process
        self.random_state = random_state

    def fit(self, X, y, sample_weight=None):
        """Follow a stream from its beginning, in the order of the rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Labels of two classes.
        sample_weight : array-like of shape (n_samples,), optional
            Factor on each example's C.
        """
        return self._extend(X, y, None, sample_weight, None)

    def partial_fit(self, X, y, classes=None, sample_weight=None):
        """Follow the stream on; see `fit`. `classes` are all classes, in the first call."""
        return self._extend(X, y, classes, sample_weight, self._tracker)

    @all_or_nothing
    def _extend(self, X, y, classes, sample_weight, tracker):
        validate(self, self._constraints)
        reset = tracker is None
        X, y = validate_data(self, X, y, reset=reset, accept_sparse="csr", dtype=np.float64, order="C")
        check_classification_targets(y)
        labels = settled_labels(y, classes, None if reset else self.classes_)
        if len(labels) > 2:
            raise ValueError(
                f"Only binary classification is supported. The type of the target is multiclass: {len(labels)} classes"
            )
        numbers = label_ids_of(y, labels)
        weight = checked_sample_weight(sample_weight, len(y))
        rows = np.ascontiguousarray(X.toarray() if hasattr(X, "toarray") else X)
        with np.errstate(over="ignore"):
            if not np.isfinite(np.einsum("ij,ij->i", rows, rows)).all():
                raise ValueError("the squares of X overflow; scale the features down")
        tracker = self._new_tracker(X.shape[1]) if tracker is None else tracker
        tracker.C, tracker.n_reprocess, tracker.process = float(self.C), self.n_reprocess, bool(self.process)
        tracker.extend(rows, 2.0 * numbers - 1.0, np.ones(len(y)) if weight is None else weight)
        self._take(LinearModel(labels, estimator=type(self).__name__), tracker)
        return self

    def _new_tracker(self, n_features):
        return Tracker(n_features, float(self.C), seed=seed_from(self.random_state))

    def _take(self, model, tracker):
        model.take(np.append(tracker.coef, 0.0)[None, :])
        self.model_, self._tracker = model, tracker
        self.classes_, self.n_features_in_ = model.labels, model.n_features
        self.dual_, self.gained_, self.n_seen_ = tracker.dual, tracker.gained, tracker.n_seen

    def save(self, path):
        """Write all that the stream goes on from, its examples too, to one file; `structsvm.load` opens it."""
        check_is_fitted(self)
        self.model_.state = self._tracker.get_state()
        super().save(path)

    def _adopt(self, model):
        tracker = self._new_tracker(model.n_features)
        tracker.set_state(model.state or {})
        self._take(model, tracker)

    def decision_function(self, X):
        """<w, x>: array (n_samples,)."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, accept_sparse="csr", dtype=np.float64)
        return self.model_.decision_function(X).ravel()

    def predict(self, X):
        """The class of each row: array (n_samples,)."""
        second = self.decision_function(X) > 0.0
        return self.classes_[second.astype(int)]

    @property
    def coef_(self):
        check_is_fitted(self)
        return self.model_.coef

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_class = False
        return tags
