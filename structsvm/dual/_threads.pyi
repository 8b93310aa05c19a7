from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from structsvm._problem import Problem
from structsvm.dual._dual import DualState
from structsvm.dual._weights import WeightState

class Exchange:
    @property
    def n_members(self) -> int: ...
    @property
    def n_pages(self) -> int: ...
    def __init__(self, n_members: int) -> None: ...

class ThreadPart(DualState):
    def __init__(
        self,
        problem: Problem,
        C: NDArray[np.float64],
        whole: WeightState,
        exchange: Exchange,
        member: int,
        runs: NDArray[np.int64],
        visited: NDArray[np.int64],
        work: float,
        *,
        seed: int = 0,
    ) -> None: ...
    def begin(self) -> None: ...
    def rest(self) -> None: ...
    def meet(self) -> None: ...
    def total(self) -> tuple[NDArray[np.float64], float, float] | tuple[()]: ...

def gather(whole: WeightState, parts: Sequence[ThreadPart], found: Sequence[Any] = ()) -> None: ...
def costs(problem: Problem) -> NDArray[np.float64]: ...
