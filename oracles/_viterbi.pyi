import numpy as np
from numpy.typing import ArrayLike, NDArray

from structsvm.features.tokens import Tokens
from structsvm.oracles.chain import KnownLabels
from structsvm.oracles.viterbi import ViterbiOracle
from structsvm.structures._labels import LabelLattice, LabelProblem

MAX_CHART_BYTES: int
MOST_BYTES: int

class Chain(LabelLattice):
    def kbest(
        self, w: ArrayLike, i: int, k: int, allowed: NDArray[np.bool_] | None = None
    ) -> tuple[NDArray[np.int32], NDArray[np.float64]]: ...
    def max_marginals(self, w: ArrayLike, i: int) -> NDArray[np.float64]: ...

def local_indices(bigrams: Tokens) -> tuple[NDArray[np.int32], int]: ...

class ChainProblem(LabelProblem):
    @property
    def chain(self) -> Chain: ...
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

class LazyProblem(ChainProblem):
    @property
    def relaxed(self) -> NDArray[np.bool_]: ...
