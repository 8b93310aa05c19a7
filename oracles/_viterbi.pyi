from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from structsvm._problem import Problem
from structsvm.features import Tokens
from structsvm.oracles.viterbi import ViterbiOracle

MAX_CHART_BYTES: int

class Chain:
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
    def structure(self) -> ViterbiOracle: ...
    def __init__(self, structure: ViterbiOracle, tokens: Tokens) -> None: ...
    def decode(
        self,
        w: ArrayLike,
        start: int = 0,
        stop: int | None = None,
        allowed: Sequence[NDArray[np.bool_] | None] | None = None,
    ) -> NDArray[np.int32]: ...
    def kbest(
        self, w: ArrayLike, i: int, k: int, allowed: NDArray[np.bool_] | None = None
    ) -> tuple[NDArray[np.int32], NDArray[np.float64]]: ...
    def max_marginals(self, w: ArrayLike, i: int) -> NDArray[np.float64]: ...

class ChainProblem(Problem):
    @property
    def chain(self) -> Chain: ...
    @property
    def labels(self) -> NDArray[np.int32]: ...
    def __init__(
        self,
        structure: ViterbiOracle,
        tokens: Tokens,
        labels: ArrayLike,
        *,
        rescaling: str | None = "margin",
        penalty: str | None = "linear",
    ) -> None: ...
    def most_violated(self, i: int, w: ArrayLike) -> NDArray[np.int32]: ...
