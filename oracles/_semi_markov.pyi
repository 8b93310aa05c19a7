from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from structsvm._problem import Problem
from structsvm.features.tokens import Tokens
from structsvm.oracles.chain import KnownLabels
from structsvm.oracles.semi_markov import SemiMarkovOracle
from structsvm.structures._labels import LabelDecoder

class SegmentChain(LabelDecoder):
    @property
    def structure(self) -> SemiMarkovOracle: ...
    def expect(
        self, w: ArrayLike, i: int, allowed: NDArray[np.bool_] | None = None
    ) -> tuple[float, NDArray[np.float64], NDArray[np.float64]]: ...
    def lattice(self, w: ArrayLike, i: int) -> NDArray[np.float32]: ...
    def best_by(self, i: int, lattice: NDArray[np.float32]) -> tuple[float, NDArray[np.int32]]: ...

class SegmentProblem(Problem):
    @property
    def chain(self) -> SegmentChain: ...
    @property
    def labels(self) -> NDArray[np.int32] | None: ...
    @property
    def known(self) -> KnownLabels | None: ...
    @property
    def incomplete(self) -> Self: ...
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
    def most_violated(self, i: int, w: ArrayLike) -> NDArray[np.int32]: ...
