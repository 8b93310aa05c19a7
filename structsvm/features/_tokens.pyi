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

def descending_order(counts: NDArray[np.int64], firsts: NDArray[np.int64] | None = None) -> NDArray[np.int64]: ...
