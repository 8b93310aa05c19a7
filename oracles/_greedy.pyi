from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from structsvm._problem import Problem
from structsvm.features import Tokens
from structsvm.oracles.greedy import GreedyOracle

class GreedyDecoder:
    @property
    def K(self) -> int: ...
    @property
    def stride(self) -> int: ...
    @property
    def order(self) -> int: ...
    @property
    def n_emission(self) -> int: ...
    @property
    def n_rows(self) -> int: ...
    @property
    def tokens(self) -> Tokens: ...
    @property
    def structure(self) -> GreedyOracle: ...
    def __init__(self, structure: GreedyOracle, tokens: Tokens) -> None: ...
    def decode(
        self,
        w: ArrayLike,
        start: int = 0,
        stop: int | None = None,
        allowed: Sequence[NDArray[np.bool_] | None] | None = None,
        scores: NDArray[np.float32] | None = None,
    ) -> NDArray[np.int32]: ...

class GreedyProblem(Problem):
    @property
    def chain(self) -> GreedyDecoder: ...
    @property
    def labels(self) -> NDArray[np.int32]: ...
    def __init__(
        self,
        structure: GreedyOracle,
        tokens: Tokens,
        labels: ArrayLike,
        *,
        rescaling: str | None = "margin",
        penalty: str | None = "linear",
    ) -> None: ...
