import numpy as np
from numpy.typing import ArrayLike, NDArray

from structsvm._problem import Problem
from structsvm.features.tokens import Tokens
from structsvm.oracles.taxonomy import TaxonomyOracle
from structsvm.structures._lattice import NODE_LOSSES as NODE_LOSSES

class OutputAttributes:
    @property
    def arrays(
        self,
    ) -> tuple[
        NDArray[np.int32],
        NDArray[np.int32],
        NDArray[np.int32],
        NDArray[np.float32],
        NDArray[np.float32],
        NDArray[np.int32],
    ]: ...
    @property
    def n_attributes(self) -> int: ...
    @property
    def n_positions(self) -> int: ...
    @property
    def n_outputs(self) -> int: ...
    def __init__(
        self,
        base: NDArray[np.int32],
        first: NDArray[np.int32],
        attribute: NDArray[np.int32],
        value: NDArray[np.float32],
        scale: NDArray[np.float32],
        position: NDArray[np.int32],
        n_attributes: int,
    ) -> None: ...
    def vector(self, k: int) -> NDArray[np.float64]: ...

class TaxonomyDecoder:
    @property
    def structure(self) -> TaxonomyOracle: ...
    @property
    def documents(self) -> Tokens: ...
    @property
    def n_samples(self) -> int: ...
    def __init__(self, structure: TaxonomyOracle, documents: Tokens) -> None: ...
    def parts(self, size: int) -> list[TaxonomyDecoder]: ...
    def decode(self, w: ArrayLike) -> NDArray[np.int32]: ...
    def scores(self, w: ArrayLike) -> NDArray[np.float64]: ...

class TaxonomyProblem(Problem):
    @property
    def decoder(self) -> TaxonomyDecoder: ...
    @property
    def labels(self) -> NDArray[np.int32]: ...
    def __init__(
        self,
        structure: TaxonomyOracle,
        documents: Tokens,
        labels: ArrayLike,
        *,
        rescaling: str | None = "margin",
        penalty: str | None = "linear",
    ) -> None: ...
    def most_violated(self, i: int, w: ArrayLike) -> int: ...
