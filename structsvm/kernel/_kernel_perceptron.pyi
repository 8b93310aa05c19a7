from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

from structsvm.arrays import AnyArray
from structsvm.dual._state import State
from structsvm.kernel._expansion import Expansion
from structsvm.kernel._kernels import Gram
from structsvm.kernel._row_cache import RowCache

class KernelPerceptronState(State):
    @property
    def kind(self) -> str: ...
    @property
    def cache(self) -> RowCache: ...
    @property
    def vectors(self) -> Expansion: ...
    @property
    def own(self) -> NDArray[np.float64]: ...
    @property
    def n_labels(self) -> int: ...
    @property
    def n_vectors(self) -> int: ...
    def __init__(
        self,
        gram: Gram,
        y: ArrayLike,
        n_labels: int,
        weight: ArrayLike | None = None,
        *,
        margin: float = 0.0,
        budget: int = 0,
        cache_size: float = 200.0,
        seed: int = 0,
    ) -> None: ...
    def restart(
        self, members: ArrayLike, slots: ArrayLike, labels: ArrayLike, beta: ArrayLike, u: ArrayLike | None = None
    ) -> None: ...
    def settle(self) -> None: ...
    def lay_out(
        self, slots: NDArray[np.int64], labels: NDArray[np.int32], beta: NDArray[np.float64], u: NDArray[np.float64]
    ) -> None: ...
    def get_state(self) -> dict[str, AnyArray]: ...
    def set_state(self, state: Mapping[str, AnyArray], *, adapt: bool = False) -> None: ...
    def coefficients(
        self, average: bool = False
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]]: ...
