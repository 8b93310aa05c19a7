from collections.abc import Callable, Sequence

from structsvm.arrays import AnyArray

TYPES: dict[int, object]
VERSIONS: tuple[int, ...]

class Quick: ...

def number_of(function: Callable[[list[AnyArray]], Sequence[AnyArray]], quick: Quick | None = None) -> int: ...
def handler(version: int) -> object: ...
