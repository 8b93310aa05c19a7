from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from structsvm._problem import Problem
from structsvm.protocol import Oracle

def sparse_feature(psi: Any, n_features: int, where: str) -> tuple[NDArray[np.int32], NDArray[np.float64]]: ...

class PythonProblem(Problem):
    @property
    def oracle(self) -> Oracle: ...
    def __init__(
        self,
        oracle: Oracle,
        X: Sequence[Any],
        Y: Sequence[Any],
        *,
        rescaling: str | None = "margin",
        penalty: str | None = "linear",
    ) -> None: ...
