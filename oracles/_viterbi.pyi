from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from structsvm._problem import Problem
from structsvm.features.tokens import Tokens
from structsvm.oracles.chain import KnownLabels
from structsvm.oracles.viterbi import ViterbiOracle
from structsvm.structures._labels import LabelDecoder

MAX_CHART_BYTES: int

class Chain(LabelDecoder):
    def kbest(
        self, w: ArrayLike, i: int, k: int, allowed: NDArray[np.bool_] | None = None
    ) -> tuple[NDArray[np.int32], NDArray[np.float64]]: ...
    def expect(
        self, w: ArrayLike, i: int, allowed: NDArray[np.bool_] | None = None
    ) -> tuple[float, NDArray[np.float64], NDArray[np.float64]]: ...
    def max_marginals(self, w: ArrayLike, i: int) -> NDArray[np.float64]: ...

def local_indices(bigrams: Tokens) -> tuple[NDArray[np.int32], int]: ...

class ChainProblem(Problem):
    @property
    def chain(self) -> Chain: ...
    @property
    def labels(self) -> NDArray[np.int32] | None: ...
    @property
    def known(self) -> KnownLabels | None: ...
    @property
    def incomplete(self) -> Self: ...
    def __init__(
        self,
        structure: ViterbiOracle,
        tokens: Tokens,
        labels: ArrayLike | None,
        known: KnownLabels | None = None,
        *,
        rescaling: str | None = "margin",
        penalty: str | None = "linear",
    ) -> None: ...
    def most_violated(self, i: int, w: ArrayLike) -> NDArray[np.int32]: ...
