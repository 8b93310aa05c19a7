from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

RESCALINGS: Mapping[str | None, int]
PENALTIES: Mapping[str | None, int]

class Problem:
    @property
    def n_samples(self) -> int: ...
    @property
    def n_features(self) -> int: ...
    @property
    def is_exact(self) -> bool: ...
    @property
    def weight_dtype(self) -> np.dtype[Any]: ...
    @property
    def groups(self) -> NDArray[np.int64] | None: ...
    @property
    def formulation(self) -> dict[str, str | None]: ...
    def __init__(
        self,
        n_samples: int,
        n_features: int,
        *,
        rescaling: str | None = "margin",
        penalty: str | None = "linear",
        weight_dtype: DTypeLike = ...,
        is_exact: bool = True,
        groups: NDArray[np.int64] | None = None,
    ) -> None: ...
    def lend(self, w: NDArray[Any]) -> None: ...
    def separate(self, i: int, w: ArrayLike) -> tuple[float, NDArray[np.float64]]: ...
