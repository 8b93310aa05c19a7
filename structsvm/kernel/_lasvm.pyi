from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

from structsvm.arrays import AnyArray
from structsvm.dual._schedules import Schedule
from structsvm.dual._state import State
from structsvm.kernel._kernels import Gram
from structsvm.kernel._row_cache import RowCache

SELECTIONS: Mapping[str, int]

TINY: np.float64

class LaSVMState(State):
    @property
    def kind(self) -> str: ...
    @property
    def cache(self) -> RowCache: ...
    tau: float
    @property
    def bias(self) -> float: ...
    @property
    def delta(self) -> float: ...
    @property
    def n_steps(self) -> int: ...
    @property
    def n_vectors(self) -> int: ...
    def __init__(
        self,
        gram: Gram,
        y: ArrayLike,
        C: ArrayLike,
        *,
        tau: float = 1e-3,
        selection: str = "random",
        cache_size: float = 200.0,
        first: int = 0,
        seed: int = 0,
    ) -> None: ...
    def query(self, pool: NDArray[np.int64]) -> int: ...
    def teach(self, i: int, label: int, C: float) -> None: ...
    def finish(self, max_steps: int = 10_000_000, *, leave: bool = True) -> bool: ...
    def settle(self) -> float: ...
    def certify(self) -> tuple[float, float, float]: ...
    def coefficients(
        self,
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32], NDArray[np.float64], NDArray[np.float64]]: ...
    def restart(self, members: ArrayLike, slots: ArrayLike, labels: ArrayLike, beta: ArrayLike) -> None: ...
    def lay_out(
        self, members: NDArray[np.int64], alpha: NDArray[np.float64], g: NDArray[np.float64] | None = None
    ) -> None: ...
    def bounds(self, members: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...
    def into_box(self, members: NDArray[np.int64], alpha: NDArray[np.float64]) -> NDArray[np.float64]: ...
    def get_state(self) -> dict[str, AnyArray]: ...
    def set_state(self, state: Mapping[str, AnyArray], *, adapt: bool = False) -> None: ...

class OnlineSchedule(Schedule):
    def __init__(
        self,
        state: LaSVMState,
        *,
        n_reprocess: float = 1.0,
        delta_max: float = ...,
        max_visits: int | None = None,
    ) -> None: ...
