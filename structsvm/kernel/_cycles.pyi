from typing import final

import numpy as np
from numpy.typing import NDArray

class Arcs:
    def __init__(
        self, start: NDArray[np.int64], C: NDArray[np.float64], beta: NDArray[np.float64], F: NDArray[np.float64]
    ) -> None: ...
    def steepest_cycle(self) -> tuple[NDArray[np.int64], float]: ...

@final
class CycleSteps(Arcs):
    def __init__(
        self,
        start: NDArray[np.int64],
        C: NDArray[np.float64],
        beta: NDArray[np.float64],
        F: NDArray[np.float64],
        K: NDArray[np.float64],
    ) -> None: ...
    def run(self, eps: float, max_steps: int) -> int: ...
