"""How sure an estimator is of each of its outputs: a number, the greater the surer.

A probability where the estimator has one, otherwise how far the output's score is above the next one's. An estimator
names the function of its kind of outputs, ``confidence(estimator, X, predicted)``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from structsvm.arrays import Floats


def has_probabilities(estimator: Any) -> bool:
    """Whether an estimator's scores can become probabilities; those of another library say so by their methods."""
    return getattr(estimator, "temperature_", 1.0) is not None


def of_class(estimator: Any, X: Any, predicted: Any) -> Floats:
    """The probability of each predicted class, or how far its score is above the next one."""
    if hasattr(estimator, "predict_proba") and has_probabilities(estimator):
        at = {label: k for k, label in enumerate(np.asarray(estimator.classes_).tolist())}
        rows = np.asarray(estimator.predict_proba(X))
        sure: Floats = rows[np.arange(len(rows)), [at[label] for label in np.asarray(predicted).tolist()]]
        return sure
    if not hasattr(estimator, "decision_function"):
        raise TypeError(
            f"{type(estimator).__name__} has neither probabilities nor scores of its outputs: give confidence=, a "
            "function of it and X"
        )
    scores = np.asarray(estimator.decision_function(X), dtype=np.float64)
    if scores.ndim == 1:
        return np.abs(scores)
    best = np.partition(scores, -2, axis=1)[:, -2:]
    return best[:, 1] - best[:, 0]


def of_set(estimator: Any, X: Any, predicted: Any) -> Floats:
    """The least certain label of each predicted set: its probability to be as predicted, or its margin."""
    if has_probabilities(estimator):
        p = estimator.predict_proba(X)
        worst: Floats = np.maximum(p, 1.0 - p).min(axis=1)
        return worst
    margins: Floats = np.abs(estimator.decision_function(X)).min(axis=1)
    return margins


def of_structure(estimator: Any, X: Any, predicted: Any) -> Floats:
    """The probability of each best output, or how far its score is above the next one's."""
    if has_probabilities(estimator):
        ranked = estimator.predict_kbest(X, 1, probabilities=True)
        return np.array([found[0][1] if len(found) else 1.0 for found in ranked], dtype=np.float64)
    ranked = estimator.predict_kbest(X, 2)
    margins = [found[0][1] - found[1][1] if len(found) > 1 else np.inf for found in ranked]
    return np.array([-np.inf if np.isnan(margin) else margin for margin in margins], dtype=np.float64)


def of_labelling(estimator: Any, X: Any, predicted: Any) -> Floats:
    """As `of_structure`; of greedy inference the least margin of a token."""
    if not estimator.model_.is_greedy:
        return of_structure(estimator, X, predicted)
    scores = estimator.decision_function(X)
    return np.array([-np.partition(own, -2, axis=1)[:, -2].max() if len(own) else np.inf for own in scores])


def of_meaning(estimator: Any, X: Any, predicted: Any) -> Floats:
    """The probability of each best meaning; 0 where there is none."""
    if estimator.model_.method == "ospas":
        return without(estimator, X, predicted)
    return np.array([found[0][1] if found else 0.0 for found in estimator.predict_kbest(X, 1)], dtype=np.float64)


def without(estimator: Any, X: Any, predicted: Any) -> Floats:
    """Raise TypeError: outputs have no confidence."""
    raise TypeError(
        f"{type(estimator).__name__} has no probability or score of a whole output: give confidence=, a function of "
        "the estimator and X"
    )
