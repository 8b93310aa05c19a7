"""Thresholds of scores, from held-out rows whose labels are known.

With few rows of a class, the cut at which their F1 is best is a matter of chance: of 25 rows of a class that has one in
a hundred, it costs other rows 2 points of F1 on average. A curve of three parameters for the probability of the class
says where F1 is expected to be best, and loses a third of that. Where chances are no such curve, the rows know better:
they count a quarter. With many rows both are alike, and the rows decide.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from structsvm.arrays import Floats, Weights

# Fewer rows of the class are few. A penalty on the squares of the curve's parameters, for classes that scores separate.
FEW, RIDGE = 500, 1e-3
# How much few rows themselves count beside their curve.
OF_ROWS = 0.25


def threshold_of_count(scores: Floats, positive: NDArray[np.bool_], weights: Weights) -> float:
    """The threshold between two rows at which as many rows are found as are positive."""
    order = np.argsort(-scores, kind="stable")
    k = int(np.searchsorted(np.cumsum(weights[order]), weights[positive].sum()))
    return float(scores[order][k : k + 2].mean())


def threshold_of_f1(scores: Floats, positive: NDArray[np.bool_], weights: Weights) -> float:
    """The threshold at which F1 is expected to be the best: between two rows, or 1/2 below the last of all.

    Parameters
    ----------
    scores, weights : float arrays of shape (n_rows,)
    positive : bool array of shape (n_rows,)
    """
    chance = 1.0 * positive
    if weights[positive].sum() < FEW:
        chance = OF_ROWS * chance + (1.0 - OF_ROWS) * chances(scores, positive, weights)
    return best_cut(scores, chance, weights)


def best_cut(scores: Floats, chance: Floats, weights: Weights) -> float:
    """The cut with the best F1 if rows belong to the class with these chances; rows of equal scores stay together."""
    order = np.argsort(-scores, kind="stable")
    ranked, n_found = scores[order], np.cumsum(weights[order])
    right, below = np.cumsum((weights * chance)[order]), np.append(ranked[1:], ranked[-1] - 1.0)
    k = int(np.where(below < ranked, right / (n_found + right[-1]), -1.0).argmax())
    return float(0.5 * (ranked[k] + below[k]))


def chances(scores: Floats, positive: NDArray[np.bool_], weights: Weights) -> Floats:
    """The probability of the class at each score: logistic, of a polynomial of degree 2, by maximum likelihood."""
    spread = float(scores.std())
    z = (scores - scores.mean()) / spread if spread > 0.0 else np.zeros_like(scores)
    powers = np.stack([np.ones_like(z), z, z * z])

    def loss(at: Floats) -> tuple[float, Floats]:
        logits = at @ powers
        value = weights @ np.logaddexp(0.0, logits) - weights[positive] @ logits[positive]
        slope = powers @ (weights * (expit(logits) - positive))
        return float(value + RIDGE * (at @ at)), slope + 2.0 * RIDGE * at

    found = minimize(loss, np.zeros(3), jac=True, method="BFGS")
    return np.asarray(expit(found.x @ powers))
