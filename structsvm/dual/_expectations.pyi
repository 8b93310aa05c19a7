from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from structsvm._problem import Problem
from structsvm.dual._weights import WeightState

MAX_BYTES: int

class ExpectationState(WeightState):
    constant: float
    base: NDArray[np.float64] | None
    def __init__(
        self, problem: Problem, C: NDArray[np.float64], *, seed: int = 0, base: ArrayLike | None = None
    ) -> None: ...
    def settle(self) -> float: ...
    def shares(self) -> tuple[float, NDArray[np.float64]]: ...
    def gradient(self, weights: NDArray[Any]) -> tuple[float, float, NDArray[np.float64]]: ...
    def without(self, others: NDArray[np.bool_]) -> dict[str, NDArray[Any]]: ...
    def primal(self, w: NDArray[Any], losses: NDArray[np.float64]) -> float: ...
