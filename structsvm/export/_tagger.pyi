from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

@final
class Lattice:
    n: int
    @property
    def states(self) -> NDArray[np.float64]: ...
    def into(self, t: int) -> NDArray[np.float64] | None: ...

@final
class Names:
    def __new__(cls, rows: dict[str, int]) -> Self: ...

@final
class Tagger:
    def __init__(
        self,
        labels: Sequence[str],
        attributes: Mapping[str, int],
        starts: ArrayLike,
        targets: ArrayLike,
        weights: ArrayLike,
        transitions: ArrayLike,
        *,
        start: ArrayLike | None = None,
        end: ArrayLike | None = None,
        pair_starts: ArrayLike | None = None,
        pair_targets: ArrayLike | None = None,
        pair_weights: ArrayLike | None = None,
    ) -> None: ...
    @property
    def labels(self) -> list[str]: ...
    def lattice(self, sequence: Iterable[Any] | Lattice) -> Lattice: ...
    def tag(self, sequence: Iterable[Any] | Lattice) -> list[str]: ...
    def score(self, sequence: Iterable[Any] | Lattice, labels: Sequence[str]) -> float: ...
    def log_partition(self, sequence: Iterable[Any] | Lattice) -> float: ...
    def probability(self, sequence: Iterable[Any] | Lattice, labels: Sequence[str]) -> float: ...
    def marginals(self, sequence: Iterable[Any] | Lattice) -> NDArray[np.float64]: ...
    def kbest(self, sequence: Iterable[Any] | Lattice, k: int) -> list[tuple[float, list[str]]]: ...

def rebuilt(
    labels: list[str],
    attributes: dict[str, int],
    starts: ArrayLike,
    targets: ArrayLike,
    weights: ArrayLike,
    transitions: ArrayLike,
    start: ArrayLike | None,
    end: ArrayLike | None,
    pair_starts: ArrayLike | None,
    pair_targets: ArrayLike | None,
    pair_weights: ArrayLike | None,
) -> Tagger: ...
