import numpy as np
from numpy.typing import NDArray

from structsvm.arrays import Floats

CYCLE: int
ROOTS: int
CROSSING: int

class Batch:
    def __init__(self, arcs: Floats, lengths: NDArray[np.int64], projective: bool, several: bool) -> None: ...
    def sums(
        self,
        n_threads: int,
        log_z: NDArray[np.float64],
        chances: Floats | None,
        heads: NDArray[np.int32] | None = None,
        known: NDArray[np.float64] | None = None,
        looks: bool = False,
    ) -> list[int] | None: ...
    def are_trees(self, heads: NDArray[np.int32]) -> bool: ...
    def tables(self, first: int, last: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]: ...

def faults(
    heads: NDArray[np.int32], lengths: NDArray[np.int64], several: bool, projective: bool
) -> NDArray[np.int32]: ...
