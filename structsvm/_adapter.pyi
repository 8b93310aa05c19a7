from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from structsvm._problem import Problem
from structsvm.protocol import Oracle

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
