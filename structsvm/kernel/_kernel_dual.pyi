from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

from structsvm.arrays import AnyArray, Matrix
from structsvm.dual._schedules import Schedule
from structsvm.dual._state import State
from structsvm.kernel._expansion import Expansion
from structsvm.kernel._kernels import Gram
from structsvm.kernel._row_cache import RowCache

class KernelDual(State):
    @property
    def kind(self) -> str: ...
    @property
    def cache(self) -> RowCache: ...
    @property
    def vectors(self) -> Expansion: ...
    @property
    def n_vectors(self) -> int: ...
    @property
    def n_labels(self) -> int: ...
    tau: float
    @property
    def n_optimize(self) -> int: ...
    def __init__(
        self,
        gram: Gram,
        y: ArrayLike,
        C: ArrayLike,
        n_labels: int,
        *,
        cache_size: float = 200.0,
        selection: str = "random",
        loss: ArrayLike | None = None,
        similarity: Matrix | None = None,
        first: int = 0,
        seed: int = 0,
    ) -> None: ...
    def settle(self) -> float: ...
    def certify(self) -> tuple[float, float, float]: ...
    def coefficients(
        self,
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32], NDArray[np.float64], NDArray[np.float64]]: ...
    def restart(
        self, members: ArrayLike, slots: ArrayLike, labels: ArrayLike, beta: ArrayLike, g: ArrayLike | None = None
    ) -> None: ...
    def lay_out(
        self, slots: NDArray[np.int64], labels: NDArray[np.int32], beta: NDArray[np.float64], g: NDArray[np.float64]
    ) -> None: ...
    def check_point(
        self, members: NDArray[np.int64], slots: NDArray[np.int64], labels: NDArray[np.int32], beta: NDArray[np.float64]
    ) -> None: ...
    def into_box(
        self, members: NDArray[np.int64], slots: NDArray[np.int64], labels: NDArray[np.int32], beta: NDArray[np.float64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]]: ...
    def get_state(self) -> dict[str, AnyArray]: ...
    def set_state(self, state: Mapping[str, AnyArray], *, adapt: bool = False) -> None: ...

class WorkingSetSchedule(Schedule):
    def __init__(self, state: KernelDual) -> None: ...
