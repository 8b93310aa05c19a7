from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

class TokenBuffer:
    @property
    def n_tokens(self) -> int: ...
    @property
    def n_sequences(self) -> int: ...
    def __new__(cls, *args: Any, **kwargs: Any) -> Self: ...
    def add_dense(self, x: NDArray[np.float32]) -> None: ...
    def add_csr(
        self,
        indptr: NDArray[np.int64],
        indices: NDArray[np.int64],
        values: NDArray[np.float32],
        n_columns: int,
        begin: int,
        end: int,
    ) -> None: ...
    def finish(
        self, remap: NDArray[np.int32] | None = None
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32], NDArray[np.float32] | None]: ...

def steps(ends: NDArray[np.int64]) -> tuple[int, int, int]: ...
def are_within(ids: NDArray[np.int32], n: int) -> bool: ...
def known_runs(
    offsets: NDArray[np.int64],
    names: list[NDArray[np.int64]],
    sizes: list[int],
    keys: list[list[NDArray[np.integer[Any]]]],
) -> tuple[NDArray[np.int64], NDArray[np.int32]]: ...
def are_entries(
    offsets: NDArray[np.int64],
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    values: NDArray[np.float32] | None,
    n_features: int,
) -> bool: ...
def distinct(ids: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int32]]: ...
def descending_order(counts: NDArray[np.int64], firsts: NDArray[np.int64] | None = None) -> NDArray[np.int64]: ...
