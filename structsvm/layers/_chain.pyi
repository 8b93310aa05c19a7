import numpy as np
from numpy.typing import NDArray

from structsvm.arrays import AnyArray, Floats

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
    def adds(self) -> bool: ...
    def sums(
        self,
        n_threads: int,
        log_z: NDArray[np.float64],
        nodes: Floats | None,
        pairs: Floats | None,
        edges: tuple[Floats, Floats] | None = None,
        y: NDArray[np.int32] | None = None,
        known: NDArray[np.float64] | None = None,
        added: bool = False,
    ) -> None: ...
    def best(self, first: int, last: int, states: NDArray[np.int32]) -> int: ...
    def reached(self, scores: NDArray[np.float64]) -> None: ...
    def kbest(self, k: int, paths: NDArray[np.int32], values: NDArray[np.float64]) -> None: ...
    def draws(self, first: int, last: int, generators: list[np.random.Generator], states: NDArray[np.int32]) -> int: ...

FLOATS: tuple[int, int]
NARROW: tuple[int, int]

def is_plain(array: AnyArray, types: tuple[int, int]) -> bool: ...
def are_huge(values: NDArray[np.float64]) -> bool: ...
def above(values: NDArray[np.float64], others: NDArray[np.float64]) -> NDArray[np.float64]: ...
def known_labels(
    y: NDArray[np.int32], lengths: NDArray[np.int64], n_labels: int, checked: NDArray[np.int32]
) -> bool: ...
def within(array: Floats, most: float, n_threads: int = 1) -> bool: ...
def sum_rows(array: Floats, n_threads: int = 1) -> Floats: ...
