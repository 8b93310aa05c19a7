from typing import Any

import numpy as np
from numpy.typing import NDArray

from structsvm.features._strings import Interner

class RaggedLineError(Exception): ...
class BadUTF8Error(Exception): ...

def parse_columns(
    data: bytes,
    wanted: int = 0,
) -> tuple[NDArray[np.int64], NDArray[np.int32], list[Interner]]: ...

def intern_rows(rows: list[Any]) -> tuple[NDArray[np.int32], list[Interner]]: ...
def width(data: bytes | bytearray) -> int: ...
