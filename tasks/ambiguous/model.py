"""A linear model of labels learnt from sets of candidates: labels, weights."""

from __future__ import annotations

from itertools import chain
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from structsvm.features.dense import DenseRows, is_filled
from structsvm.oracles.ambiguous import AmbiguousOracle, as_rows
from structsvm.stored_values import Array, checked_arrays, stored_count, stored_flag
from structsvm.tasks.common.calibration import Calibrated
from structsvm.tasks.common.intercept import with_intercept
from structsvm.tasks.common.labels import label_to_json, labels_from_json, sort_labels
from structsvm.tasks.common.reordered import ReorderedModel
from structsvm.tasks.common.selection import Held, total_variance

ARRAYS = {"weights": Array("f8", ("n_rows", "n_labels"))}

COLLECTIONS = (set, frozenset, list, tuple, np.ndarray)


class AmbiguousModel(Calibrated, ReorderedModel):
    """Labels and a weight for each feature and label, those of an intercept last.

    Attributes
    ----------
    labels : list
    has_intercept : bool
    weights : ndarray of shape ((n_features + has_intercept) * n_labels,), float64
    """

    kind = "ambiguous"
    estimator = "AmbiguousClassifier"

    def __init__(self, labels: Any, n_features: int, *, has_intercept: Any, weights: Any = None) -> None:
        super().__init__()
        self.labels, self.has_intercept = labels, has_intercept
        self.oracle = AmbiguousOracle(len(labels), n_features + has_intercept)
        self.weights = np.zeros(self.oracle.n_features) if weights is None else weights
        self.columns = {"n_features_in_": n_features}

    @property
    def table(self) -> Any:
        """The weights by feature and label: array (n_features + has_intercept, n_labels)."""
        return self.weights.reshape(-1, len(self.labels))

    def bind(self, data: Any, solver: Any, sample_weight: Any = None) -> tuple[Any, Any]:
        """The oracle bound to ``(rows, bags)``."""
        return self.oracle.bind(*data, **solver.formulation()), sample_weight

    def class_scores(self, X: Any) -> Any:
        return self.oracle.scores(X, self.weights)

    def examples_of(self, problem: Any, chosen: Any) -> tuple[Any, Any]:
        indptr, labels = problem.bags
        known = np.zeros((len(indptr) - 1, len(self.labels)), dtype=bool)
        known[np.repeat(np.arange(len(known)), np.diff(indptr)), labels] = True
        return problem.rows.take(chosen), known[chosen]

    def divide(self, data: Any, train: Any, test: Any) -> tuple[Any, Any]:
        rows, bags = data
        train, test = ((rows.take(chosen), [bags[i] for i in chosen]) for chosen in (train, test))
        return train, test

    def judged(self, data: Any) -> Held:
        """How often the best label is one of the candidates."""
        rows, bags = data
        best = self.oracle.scores(rows, self.weights).argmax(axis=1).tolist()
        right = np.array([label in bag for label, bag in zip(best, bags, strict=True)], dtype=np.float64)
        return Held("accuracy", right, np.ones(len(right)))

    def scale(self, data: Any) -> float:
        return 2.0 * total_variance(data[0])

    def scores(self, X: Any) -> Any:
        """Scores of all labels: array (n_samples, n_labels)."""
        return self.class_scores(rows_of(X, self.has_intercept))

    def stored_params(self) -> Any:
        return self.params | {"fit_intercept": self.has_intercept}

    def to_file(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        header = {
            "labels": [label_to_json(label) for label in self.labels],
            "n_features_in": self.columns["n_features_in_"],
        }
        return header, {"weights": self.table}

    @classmethod
    def from_file(cls, header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Self:
        labels, n_features = labels_from_json(header["labels"]), stored_count(header, "n_features_in", 1)
        has_intercept = stored_flag(header["params"], "fit_intercept")
        if len(labels) < 2:
            raise ValueError(f"{len(labels)} labels, two or more are wanted")
        learnt = checked_arrays(arrays, ARRAYS, n_rows=n_features + has_intercept, n_labels=len(labels))
        return cls(labels, n_features, has_intercept=has_intercept, weights=learnt["weights"].ravel())


def rows_of(X: Any, has_intercept: Any) -> Any:
    """The rows of X, with an intercept if there is one."""
    rows = DenseRows(np.ascontiguousarray(X)) if is_filled(X) else as_rows(X, X.shape[1])
    return with_intercept(rows) if has_intercept else rows


def as_bag(candidates: Any) -> list[Any]:
    """The candidates of one row as a list; what is no collection is one candidate."""
    if isinstance(candidates, np.ndarray) and candidates.ndim == 0:
        candidates = candidates.item()
    if not isinstance(candidates, COLLECTIONS):
        candidates = [candidates]
    return [label.item() if isinstance(label, np.generic) else label for label in candidates]


def encode_bags(y: Any, labels: Any = None) -> tuple[Any, Any]:
    """Return ``(labels, bags)``: the distinct labels, sorted, and each row's candidates as a set of label ids.

    `labels` are the labels known already: ValueError for another one, and for a row without candidates.
    """
    if y is None:
        raise ValueError("AmbiguousClassifier requires y to be passed, but the target y is None")
    rows = y if hasattr(y, "__iter__") else np.asarray(y)
    if isinstance(rows, np.ndarray) and rows.ndim == 0:
        raise ValueError(f"y must hold the candidate labels of each example, got {y!r:.80}")
    bags = [as_bag(candidates) for candidates in rows]
    for i, bag in enumerate(bags):
        if any(isinstance(label, float) and label != label // 1 for label in bag):
            raise ValueError(f"Unknown label type: continuous, {bag} of example {i}; labels are names or whole numbers")
    if labels is None:
        labels = sort_labels(list(dict.fromkeys(chain.from_iterable(bags))))
    number = {label: k for k, label in enumerate(labels)}
    for i, bag in enumerate(bags):
        if not bag:
            raise ValueError(f"the set of candidate labels of example {i} is empty; at least one must stand there")
        for label in bag:
            if label not in number:
                raise ValueError(
                    f"example {i} has the candidate {label!r}, which is not one of the model's labels; the first fit "
                    f"settles them (partial_fit can name later ones: classes=): {labels}"
                )
    return labels, [{number[label] for label in bag} for bag in bags]
