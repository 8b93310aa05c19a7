import numpy as np
from numpy.typing import NDArray

from structsvm.arrays import Floats

class Batch:
    def __init__(
        self,
        emissions: Floats,
        transitions: Floats,
        start: Floats,
        end: Floats,
        lengths: NDArray[np.int64],
        apart: bool = False,
    ) -> None: ...
    @property
    def n_groups(self) -> int: ...
    def sums(
        self, first: int, last: int, log_z: NDArray[np.float64], nodes: Floats | None, pairs: Floats | None
    ) -> None: ...
    def best(self, first: int, last: int, states: NDArray[np.int32]) -> int: ...
    def draws(self, first: int, last: int, generators: list[np.random.Generator], states: NDArray[np.int32]) -> int: ...
    def less_known(self, y: NDArray[np.int32], values: NDArray[np.float64], nodes: Floats, pairs: Floats) -> None: ...

def within(array: Floats, most: float) -> bool: ...
