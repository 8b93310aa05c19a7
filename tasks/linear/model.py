"""A trained linear machine without scikit-learn: weights and labels.

The classifiers of `structsvm.tasks` wrap it for Python users; the command line uses it as it is.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from structsvm.model_file import ModelFileError, read_model, write_model
from structsvm.result import read_result, result_arrays
from structsvm.tasks.common.labels import label_array, label_from_json, label_to_json
from structsvm.tasks.kernel.model import param_from_json, param_to_json

KIND = "binary"


class LinearModel:
    """Scores ``<w_y, x> + b_y`` of labels; of two labels, the second one's against 0.

    Attributes
    ----------
    labels : ndarray of shape (n_labels,)
    coef : ndarray of shape (n_machines, n_features)
        One machine of two labels, else as many as labels.
    intercept : ndarray of shape (n_machines,)
    result : Result
    state : dict of ndarray, or None
        What training on a stream goes on from.
    params : dict
        The estimator's parameters.
    estimator : str
        The name of its class.
    """

    def __init__(self, labels, *, estimator="SGDQNClassifier", params=None):
        self.labels, self.estimator, self.params = labels, estimator, {} if params is None else params
        self.result: Any = None
        self.state: dict[str, np.ndarray] | None = None

    @property
    def n_features(self):
        return self.coef.shape[1]

    def take(self, w, result=None, state=None):
        """Take over weights (n_machines, n_features + 1), the last column the intercepts."""
        self.coef, self.intercept = np.ascontiguousarray(w[:, :-1]), w[:, -1].copy()
        self.result, self.state = result, state

    def decision_function(self, X):
        """Scores: array (n_samples, n_machines)."""
        return np.asarray(X @ self.coef.T) + self.intercept

    def predict_numbers(self, X):
        """Numbers of the labels of highest score: array (n_samples,)."""
        scores = self.decision_function(X)
        return (scores[:, 0] > 0.0).astype(np.int64) if scores.shape[1] == 1 else scores.argmax(axis=1)

    def predict(self, X):
        """Labels of highest score."""
        return self.labels[self.predict_numbers(X)]

    def save(self, path):
        """Write the model file; see `structsvm.model_file`."""
        meta = {
            "estimator": self.estimator,
            "params": {name: param_to_json(value) for name, value in self.params.items()},
            "labels": [label_to_json(label) for label in self.labels.tolist()],
            "result": None if self.result is None else self.result.to_dict(),
        }
        arrays = {"coef": self.coef, "intercept": self.intercept} | result_arrays(self.result, self.state)
        write_model(path, KIND, meta, arrays)

    @classmethod
    def load(cls, path, *, mmap=False):
        """Read a model file; ModelFileError if it is not a whole, sound linear model."""
        file = read_model(path, kind=KIND, mmap=mmap)
        try:
            meta, arrays = file.meta, file.arrays
            labels = label_array([label_from_json(label) for label in meta["labels"]])
            if len(set(labels.tolist())) != len(labels) or len(labels) < 2:
                raise ValueError("two labels or more, none of them twice, are wanted")
            model = cls(labels, estimator=meta["estimator"])
            model.params = {name: param_from_json(value) for name, value in meta["params"].items()}
            model.coef, model.intercept = arrays["coef"], arrays["intercept"]
            n = 1 if len(labels) == 2 else len(labels)
            for name, array, ndim in (("coef", model.coef, 2), ("intercept", model.intercept, 1)):
                if array.dtype not in (np.float32, np.float64) or array.ndim != ndim or array.shape[0] != n:
                    raise ValueError(f"array {name!r} has dtype {array.dtype} and shape {array.shape}")
                if not np.isfinite(array).all():
                    raise ValueError(f"array {name!r} holds values that are not finite")
            if meta["result"] is None:
                model.state = file.under("state.") or None
            else:
                model.result, model.state = read_result(file)
        except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
            raise ModelFileError(f"{path}: not a sound binary model: {error}") from error
        return model
