import numpy as np
from numpy.typing import NDArray

from structsvm.arrays import Floats

class Entries:
    def __init__(self, scores: Floats, shared: tuple[NDArray[np.float64], ...], lengths: NDArray[np.int64]) -> None: ...
    def sums(
        self,
        first: int,
        last: int,
        log_z: NDArray[np.float64],
        parts: Floats | None,
        counts: NDArray[np.float64] | None,
    ) -> list[int]: ...
    def best(self, first: int, last: int, values: NDArray[np.float64], y: NDArray[np.int32]) -> None: ...
    def draws(
        self,
        first: int,
        last: int,
        generators: list[np.random.Generator],
        log_z: NDArray[np.float64],
        y: NDArray[np.int32],
    ) -> list[int]: ...

class Segments(Entries): ...
class Brackets(Entries): ...

def known_trees(
    y: NDArray[np.int32], lengths: NDArray[np.int64], n_labels: int, checked: NDArray[np.int32]
) -> bool: ...
def less_trees(
    y: NDArray[np.int32], lengths: NDArray[np.int64], spans: Floats, chances: Floats, values: NDArray[np.float64]
) -> bool: ...
