import numpy as np
from numpy.typing import ArrayLike, NDArray

from structsvm._problem import Problem
from structsvm.dual._weights import WeightState

class DualState(WeightState):
    @property
    def n_cuts(self) -> int: ...
    @property
    def n_patterns(self) -> int: ...
    @property
    def tau(self) -> float: ...
    @property
    def patience(self) -> int: ...
    def __init__(
        self,
        problem: Problem,
        C: NDArray[np.float64],
        *,
        seed: int = 0,
        averaging: str | None = None,
        base: ArrayLike | None = None,
        patience: int = 0,
    ) -> None: ...
    def settle(self) -> float: ...
    def primal(self, w: ArrayLike | None = None, violation: NDArray[np.float64] | None = None) -> float: ...
    def constraints(
        self,
    ) -> tuple[NDArray[np.int64], NDArray[np.float64], list[tuple[NDArray[np.int64], NDArray[np.float64]]]]: ...
    def alphas(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]: ...
