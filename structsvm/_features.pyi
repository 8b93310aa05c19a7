from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

class RaggedLineError(Exception): ...
class BadUTF8Error(Exception): ...

class Interner:
    n: int
    def __len__(self) -> int: ...
    def intern(self, strings: Iterable[str | bytes | None]) -> NDArray[np.int32]: ...
    def lookup(self, strings: Iterable[str | bytes | None]) -> NDArray[np.int32]: ...
    def lookup_arrays(self, data: NDArray[np.uint8], starts: NDArray[np.int64]) -> NDArray[np.int32]: ...
    def to_arrays(self) -> tuple[NDArray[np.uint8], NDArray[np.int64]]: ...
    @staticmethod
    def from_arrays(data: NDArray[np.uint8], starts: NDArray[np.int64]) -> Interner: ...

class TemplateTable:
    n: int
    def __init__(self, sizes: list[int], direct_limit: int = ...) -> None: ...
    def expand(
        self,
        columns: list[NDArray[np.int32]],
        rows: list[int],
        offsets: NDArray[np.int64],
        left: int,
        right: int,
        out: NDArray[np.int32],
        grow: bool,
    ) -> None: ...
    def insert(self, codes: NDArray[np.int32], ids: NDArray[np.int32]) -> None: ...
    def statistics(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]: ...

class TokenBuffer:
    n_tokens: int
    n_sequences: int
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

class AttributeBuffer(TokenBuffer):
    def __init__(
        self,
        names: dict[str, int],
        pairs: dict[str, dict[str, int]],
        grow: bool,
        hash_bits: int = 0,
    ) -> None: ...
    def counted(self) -> NDArray[np.int64]: ...
    def add(self, sequence: Any) -> None: ...

def parse_columns(
    data: bytes,
) -> tuple[NDArray[np.int64], NDArray[np.int32], list[Interner]]: ...
def hash_strings(data: NDArray[np.uint8], starts: NDArray[np.int64]) -> NDArray[np.uint64]: ...
def pad_column(
    ids: NDArray[np.int32],
    codes: NDArray[np.int32],
    offsets: NDArray[np.int64],
    left: int,
    right: int,
) -> NDArray[np.int32]: ...
def descending_order(counts: NDArray[np.int64], firsts: NDArray[np.int64] | None = None) -> NDArray[np.int64]: ...
def gather_templates(
    locals_: Sequence[NDArray[np.int32]],
    maps: Sequence[NDArray[np.int32] | None],
    n_tokens: int,
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32] | None]: ...
