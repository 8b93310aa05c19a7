from collections.abc import Sequence
from typing import Self, final

import numpy as np
from numpy.typing import NDArray

@final
class TemplateTable:
    @property
    def n(self) -> int: ...
    def __new__(cls, sizes: list[int], direct_limit: int = ...) -> Self: ...
    def expand(
        self,
        columns: list[NDArray[np.int32]],
        rows: list[int],
        offsets: NDArray[np.int64],
        left: int,
        right: int,
        out: NDArray[np.int32],
        grow: bool,
        before: int = 0,
    ) -> None: ...
    def insert(self, codes: NDArray[np.int32], ids: NDArray[np.int32]) -> None: ...
    def statistics(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]: ...

def pad_column(
    ids: NDArray[np.int32],
    codes: NDArray[np.int32],
    offsets: NDArray[np.int64],
    left: int,
    right: int,
) -> NDArray[np.int32]: ...
def gather_templates(
    locals_: Sequence[NDArray[np.int32]],
    maps: Sequence[NDArray[np.int32] | None],
    n_tokens: int,
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32] | None]: ...
