from typing import Self, final

import numpy as np
from numpy.typing import NDArray

@final
class TemplateTable:
    @property
    def n(self) -> int: ...
    def __new__(cls, sizes: list[int], direct_limit: int = ...) -> Self: ...
    def insert(self, codes: NDArray[np.int32], ids: NDArray[np.int32]) -> None: ...
    def statistics(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]: ...

@final
class TemplateReader:
    def __new__(
        cls,
        tables: list[TemplateTable],
        seeds: NDArray[np.uint64],
        starts: NDArray[np.int32],
        items: NDArray[np.int32],
        sources: NDArray[np.int32],
        boundaries: NDArray[np.int64],
        left: int,
        of_bigrams: bool,
        bits: int,
    ) -> Self: ...
    def read(
        self,
        ids: NDArray[np.int32],
        offsets: NDArray[np.int64],
        codes: list[tuple[int, NDArray[np.int32], NDArray[np.int64]]],
        grow: bool = False,
        before: int = 0,
    ) -> NDArray[np.int32]: ...

def merge_templates(
    found: NDArray[np.int32],
    n_tokens: int,
    order: NDArray[np.int32],
    maps: list[NDArray[np.int32]] | None = None,
    *,
    once: bool = False,
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32] | None]: ...
