from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from structsvm.arrays import AnyArray
from structsvm.dual._state import State

STRATEGIES: Mapping[str, int]
UNKNOWN: int
BEYOND: int
NOTHING: int

def rounded(n: int) -> int: ...

class Scenes:
    @property
    def n_sentences(self) -> int: ...
    @property
    def longest(self) -> int: ...
    @property
    def arrays(self) -> list[AnyArray]: ...
    def __init__(
        self,
        words: NDArray[np.int32],
        offsets: NDArray[np.int64],
        worlds: NDArray[np.int32],
        world_of: NDArray[np.int64],
        targets: NDArray[np.int32] | None = None,
        ordered: NDArray[np.uint8] | None = None,
    ) -> None: ...

class Network:
    def __init__(
        self, layers: Mapping[str, NDArray[np.float32]], dimension: int, *, strategy: str = "order_free"
    ) -> None: ...
    def find(self, scenes: Scenes) -> tuple[NDArray[np.int32], NDArray[np.int32]]: ...

class ConceptState(State):
    kind: str
    steps: frozenset[str]
    @property
    def layers(self) -> dict[str, NDArray[np.float32]]: ...
    @property
    def network(self) -> Network: ...
    @property
    def n_updates(self) -> int: ...
    def __init__(
        self,
        scenes: Scenes,
        layers: Mapping[str, NDArray[np.float32]],
        weight: NDArray[np.float64],
        *,
        dimension: int,
        strategy: str,
        learning_rate: float,
        seed: int = 0,
    ) -> None: ...
    def visit(self, i: int) -> None: ...
    def get_state(self) -> dict[str, AnyArray]: ...
    def set_state(self, state: Mapping[str, AnyArray], *, adapt: bool = False) -> None: ...
    def restart(self, state: Mapping[str, AnyArray]) -> None: ...
