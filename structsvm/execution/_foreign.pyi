from collections.abc import Callable, Sequence
from typing import TypeAlias

from structsvm.arrays import AnyArray

TYPES: dict[int, object]
VERSIONS: tuple[int, ...]

_Function: TypeAlias = Callable[[list[AnyArray]], Sequence[AnyArray]]

class Quick: ...

def serve(make: Callable[[str], _Function] | None, quick: Quick | None = None) -> Callable[[str], _Function] | None: ...
def handler(version: int) -> object: ...
