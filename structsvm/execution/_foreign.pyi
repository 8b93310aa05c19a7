from collections.abc import Callable, Sequence
from typing import TypeAlias

from structsvm.arrays import AnyArray

TYPES: dict[int, object]
VERSIONS: tuple[int, ...]

Function: TypeAlias = Callable[[list[AnyArray]], Sequence[AnyArray]]

class Quick: ...

def serve(
    make: Callable[[str], Function] | None, quick: Quick | None = None
) -> Callable[[str], Function] | None: ...
def handler(version: int) -> object: ...
