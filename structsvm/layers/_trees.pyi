import numpy as np
from numpy.typing import NDArray

from structsvm.arrays import Floats

CYCLE: int
ROOTS: int
CROSSING: int

def tree_sums(
    arcs: Floats,
    lengths: NDArray[np.int64],
    first: int,
    last: int,
    projective: bool,
    several: bool,
    log_z: NDArray[np.float64],
    chances: Floats | None,
) -> list[int]: ...
def faults(
    heads: NDArray[np.int32], lengths: NDArray[np.int64], several: bool, projective: bool
) -> NDArray[np.int32]: ...
