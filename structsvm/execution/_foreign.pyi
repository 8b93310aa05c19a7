from collections.abc import Callable, Sequence

import numpy as np

from structsvm.arrays import AnyArray

TYPES: dict[int, np.dtype[np.generic]]
VERSIONS: tuple[int, ...]

class Quick: ...

def number_of(function: Callable[[list[AnyArray]], Sequence[AnyArray]], quick: Quick | None = None) -> int: ...
def handler(version: int) -> object: ...
