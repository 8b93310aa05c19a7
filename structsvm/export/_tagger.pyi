from collections.abc import Iterable, Mapping, Sequence
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

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
    def tag(self, sequence: Iterable[Any]) -> list[str]: ...
    def score(self, sequence: Iterable[Any], labels: Sequence[str]) -> float: ...
    def log_partition(self, sequence: Iterable[Any]) -> float: ...
    def probability(self, sequence: Iterable[Any], labels: Sequence[str]) -> float: ...
    def marginals(self, sequence: Iterable[Any]) -> NDArray[np.float64]: ...
    def kbest(self, sequence: Iterable[Any], k: int) -> list[tuple[float, list[str]]]: ...
