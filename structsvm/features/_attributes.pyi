from collections.abc import Iterable
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from structsvm.features._tokens import TokenBuffer

@final
class Beginning: ...

@final
class KnownNames:
    def __init__(self, names: list[str]) -> None: ...
    @property
    def n_remembered(self) -> int: ...

@final
class AttributeBuffer(TokenBuffer):
    def __init__(
        self, names: dict[str, int] | KnownNames, grow: bool = False, hash_bits: int = 0, first: int = 0
    ) -> None: ...
    numbers: set[int]

    def counted(self) -> NDArray[np.int64]: ...
    def add(self, sequence: Any) -> None: ...

def count_columns(token: object, counts: dict[str, int], names: dict[object, str]) -> None: ...
def in_all_tokens(sequences: Iterable[Iterable[object]], columns: Iterable[str]) -> list[str]: ...
def are_usual(
    sequences: list[list[object]], texts: tuple[str, ...], others: tuple[str, ...], known: set[str], step: int
) -> bool: ...
