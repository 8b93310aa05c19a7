from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from structsvm._problem import Problem

SET_LOSSES: Mapping[str, int]
STRUCTURES: Mapping[str, int]

class LabelSetProblem(Problem):
    @property
    def oracle(self) -> Any: ...
    @property
    def rows(self) -> Any: ...
    def __init__(
        self,
        oracle: Any,
        rows: Any,
        Y: NDArray[np.int8],
        known: NDArray[np.int8] | None = None,
        *,
        rescaling: str | None = "margin",
        penalty: str | None = "linear",
    ) -> None: ...
    def answer(self, i: int, w: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...
    def decoded(self, w: ArrayLike) -> NDArray[np.int8]: ...
    def margins(self, w: ArrayLike) -> NDArray[np.float64]: ...
    def moments(self, i: int, w: ArrayLike) -> tuple[float, NDArray[np.float64], NDArray[np.float64]]: ...
    def marginals(self, w: ArrayLike) -> NDArray[np.float64]: ...
