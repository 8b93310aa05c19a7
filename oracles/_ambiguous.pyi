import numpy as np
from numpy.typing import NDArray

from structsvm._problem import Problem
from structsvm.arrays import Floats
from structsvm.features.dense import DenseRows
from structsvm.features.sparse import SparseRows
from structsvm.oracles.ambiguous import AmbiguousOracle

BAG_LOSSES: dict[str, int]

def decision_scores(rows: SparseRows, n_labels: int, w: NDArray[np.float64]) -> NDArray[np.float64]: ...

class AmbiguousProblem(Problem):
    @property
    def oracle(self) -> AmbiguousOracle: ...
    @property
    def rows(self) -> SparseRows | DenseRows: ...
    @property
    def bags(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]: ...
    @property
    def prior(self) -> NDArray[np.float64]: ...
    @property
    def labels(self) -> NDArray[np.int32] | None: ...
    def __init__(
        self,
        oracle: AmbiguousOracle,
        rows: SparseRows | DenseRows,
        bags: tuple[NDArray[np.int64], NDArray[np.int32]],
        prior: NDArray[np.float64] | None = None,
        labels: NDArray[np.int32] | None = None,
        *,
        rescaling: str | None = "margin",
        penalty: str | None = "linear",
    ) -> None: ...
    def to_oracle(self, w: Floats) -> Floats: ...
    def from_oracle(self, w: Floats) -> Floats: ...
