import numpy as np
from numpy.typing import ArrayLike, NDArray

from structsvm.features.tokens import Tokens
from structsvm.oracles.chain import KnownLabels
from structsvm.oracles.semi_markov import SemiMarkovOracle
from structsvm.structures._labels import LabelLattice, LabelProblem

MAX_CHART_BYTES: int

def tables_of(tags: ArrayLike, n_labels: int) -> tuple[NDArray[np.int32], ...]: ...

class SegmentChain(LabelLattice):
    @property
    def structure(self) -> SemiMarkovOracle: ...
    def lattice(self, w: ArrayLike, i: int) -> NDArray[np.float32]: ...
    def best_by(self, i: int, lattice: NDArray[np.float32]) -> tuple[float, NDArray[np.int32]]: ...

class SegmentProblem(LabelProblem):
    @property
    def chain(self) -> SegmentChain: ...
    def __init__(
        self,
        structure: SemiMarkovOracle,
        tokens: Tokens,
        labels: ArrayLike | None,
        known: KnownLabels | None = None,
        *,
        rescaling: str | None = "margin",
        penalty: str | None = "linear",
    ) -> None: ...
