import numpy as np
from numpy.typing import NDArray

from structsvm.arrays import Floats

class Batch:
    def __init__(
        self, pairs: Floats, parts: tuple[Floats, ...], ways: tuple[tuple[bool, bool], ...], lengths: NDArray[np.int64]
    ) -> None: ...
    def sums(
        self,
        n_threads: int,
        totals: NDArray[np.float64],
        expected: list[Floats] | None,
        y: NDArray[np.int32] | None = None,
        known: NDArray[np.float64] | None = None,
    ) -> None: ...
    def best(self, first: int, last: int, totals: NDArray[np.float64], y: NDArray[np.int32]) -> None: ...
    def draws(self, first: int, last: int, generators: list[np.random.Generator], y: NDArray[np.int32]) -> int: ...

def known_alignments(
    y: NDArray[np.int32],
    lengths: NDArray[np.int64],
    m: int,
    outer_pay: bool,
    outer_free: bool,
    checked: NDArray[np.int32],
) -> bool: ...
