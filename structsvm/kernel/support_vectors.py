"""The coefficients of the support vectors that a kernel machine has learnt."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class SupportVectors:
    """The expansion ``S(x, y) = sum_i beta_i^y k(x_i, x)``.

    Attributes
    ----------
    members : ndarray of shape (n_patterns,), int64
        The support patterns: examples.
    slots : ndarray of shape (n_vectors,), int64
        Each support vector's place in `members`.
    labels : ndarray of shape (n_vectors,), int32
        Its label y; of two classes, the second.
    beta : ndarray of shape (n_vectors,), float64
        Its coefficient.
    """

    members: NDArray[np.int64]
    slots: NDArray[np.int64]
    labels: NDArray[np.int32]
    beta: NDArray[np.float64]
