import numpy as np
from numpy.typing import NDArray

from structsvm._dual import DualState

class WorkingSets:
    def __init__(self, state: DualState, epsilon: float = 0.0) -> None: ...
    def join(
        self, start: int, terms: NDArray[np.float64], bounds: NDArray[np.int64], words: NDArray[np.int32]
    ) -> int: ...
    def optimize(self, enough: float, max_sweeps: int) -> float: ...
