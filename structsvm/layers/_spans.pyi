import numpy as np
from numpy.typing import NDArray

from structsvm.arrays import Floats

class Entries:
    def __init__(self, scores: Floats, shared: tuple[NDArray[np.float64], ...], lengths: NDArray[np.int64]) -> None: ...
    def sums(
        self,
        n_threads: int,
        log_z: NDArray[np.float64],
        parts: Floats | None,
        counts: NDArray[np.float64] | None,
        ends: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None,
        y: NDArray[np.int32] | None = None,
        known: NDArray[np.float64] | None = None,
    ) -> list[int]: ...
    def finish_wide(self, wide: list[int]) -> None: ...
    def kbest(self, k: int, y: NDArray[np.int32], values: NDArray[np.float64]) -> None: ...
    def best(self, first: int, last: int, values: NDArray[np.float64], y: NDArray[np.int32]) -> None: ...
    def draws(
        self,
        first: int,
        last: int,
        generators: list[np.random.Generator],
        log_z: NDArray[np.float64],
        y: NDArray[np.int32],
    ) -> list[int]: ...

class Segments(Entries):
    def reached(self, scores: NDArray[np.float64]) -> None: ...

class Brackets(Entries):
    def through(self, scores: NDArray[np.float64]) -> None: ...

def known_segments(
    y: NDArray[np.int32], lengths: NDArray[np.int64], K: int, L: int, checked: NDArray[np.int32]
) -> bool: ...
def known_trees(
    y: NDArray[np.int32],
    lengths: NDArray[np.int64],
    n_labels: int,
    checked: NDArray[np.int32],
    places: NDArray[np.int32],
    n_threads: int,
) -> bool: ...
