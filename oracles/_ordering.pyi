from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from structsvm._problem import Problem

MOST_EXACT: int

class OrderingProblem(Problem):
    @property
    def oracle(self) -> Any: ...
    @property
    def data(self) -> Any: ...
    def __init__(
        self,
        oracle: Any,
        data: Any,
        orders: NDArray[np.int32],
        known: tuple[NDArray[np.int64], NDArray[np.int32]] | None = None,
        *,
        rescaling: str | None = "margin",
        penalty: str | None = "linear",
    ) -> None: ...
    def answer(self, i: int, w: ArrayLike) -> NDArray[np.float64]: ...
    def decoded(self, w: ArrayLike) -> tuple[NDArray[np.int32], NDArray[np.float64]]: ...
    def moments(self, i: int, w: ArrayLike) -> tuple[float, NDArray[np.float64]]: ...
