from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

from structsvm.arrays import AnyArray
from structsvm.dual._state import State
from structsvm.kernel._kernels import Gram
from structsvm.kernel._row_cache import RowCache

ROWS: int

class FullGradient(State):
    @property
    def kind(self) -> str: ...
    @property
    def cache(self) -> RowCache: ...
    @property
    def n_labels(self) -> int: ...
    @property
    def n_vectors(self) -> int: ...
    tau: float
    def __init__(
        self,
        gram: Gram,
        y: ArrayLike,
        C: ArrayLike,
        n_labels: int,
        *,
        cache_size: float = 200.0,
        seed: int = 0,
    ) -> None: ...
    def worst(self) -> float: ...
    def settle(self) -> float: ...
    def gradient_of(self, beta: NDArray[np.float64]) -> NDArray[np.float64]: ...
    def certify(self) -> tuple[float, float, float]: ...
    def coefficients(
        self,
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32], NDArray[np.float64], NDArray[np.float64]]: ...
    def get_state(self) -> dict[str, AnyArray]: ...
    def set_state(self, state: Mapping[str, AnyArray], *, adapt: bool = False) -> None: ...
