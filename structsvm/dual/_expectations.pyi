import numpy as np
from numpy.typing import ArrayLike, NDArray

from structsvm._problem import Problem
from structsvm.arrays import AnyArray
from structsvm.dual._weights import WeightState

MAX_BYTES: int

class ExpectationState(WeightState):
    constant: float
    base: NDArray[np.float64] | None
    l1: float
    drifts: bool
    def __init__(
        self,
        problem: Problem,
        C: NDArray[np.float64],
        *,
        seed: int = 0,
        base: ArrayLike | None = None,
        stores: bool = True,
        l1: float = 0.0,
    ) -> None: ...
    def settle(self) -> float: ...
    def exact(self) -> tuple[AnyArray, float]: ...
    def shares(self, weights: AnyArray) -> tuple[float, NDArray[np.float64]]: ...
    def losses(self, weights: AnyArray) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...
    def gradient(self, weights: AnyArray) -> tuple[float, float, NDArray[np.float64]]: ...
    def without(self, others: NDArray[np.bool_]) -> dict[str, AnyArray]: ...
    def start_from(self, state: dict[str, AnyArray], rows: NDArray[np.intp]) -> None: ...
    def primal(self, w: AnyArray, losses: NDArray[np.float64]) -> float: ...
