import numpy as np
from numpy.typing import NDArray

from structsvm.dual._dual import DualState

class WorkingSets:
    def __init__(self, state: DualState) -> None: ...
    def join(
        self,
        start: int,
        terms: NDArray[np.float64],
        bounds: NDArray[np.int64],
        words: NDArray[np.int32],
        epsilon: float,
    ) -> int: ...
    def optimize(self, enough: float, max_sweeps: int) -> float: ...
