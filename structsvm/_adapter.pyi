from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from structsvm._problem import Problem
from structsvm.protocol import Oracle

def sparse_feature(psi: Any, n_features: int, where: str) -> tuple[NDArray[np.int32], NDArray[np.float64]]: ...
def feature_arrays(
    psi: Any, n_features: int, where: Callable[[], str]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]: ...
def checked_expect(
    answer: Any, n_features: int, where: Callable[[], str]
) -> tuple[float, tuple[NDArray[np.int32], NDArray[np.float64]]]: ...
def check_numbers(indices: NDArray[Any], values: NDArray[Any], n_features: int, where: str) -> None: ...
def as_objects(outputs: Sequence[Any]) -> NDArray[np.object_]: ...

class PythonProblem(Problem):
    @property
    def oracle(self) -> Oracle: ...
    @property
    def is_open(self) -> bool: ...
    def __init__(
        self,
        oracle: Oracle,
        X: Sequence[Any],
        Y: Sequence[Any],
        known: Sequence[Any] | None = None,
        is_open: bool | None = None,
        *,
        rescaling: str | None = "margin",
        penalty: str | None = "linear",
    ) -> None: ...
