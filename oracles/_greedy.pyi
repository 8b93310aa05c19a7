import numpy as np
from numpy.typing import ArrayLike, NDArray

from structsvm._problem import Problem
from structsvm.features.tokens import Tokens
from structsvm.oracles.chain import KnownLabels
from structsvm.oracles.greedy import GreedyOracle
from structsvm.structures._labels import LabelDecoder

class GreedyDecoder(LabelDecoder):
    def decision_scores(self, w: ArrayLike) -> NDArray[np.float64]: ...

class GreedyProblem(Problem):
    @property
    def chain(self) -> GreedyDecoder: ...
    @property
    def labels(self) -> NDArray[np.int32] | None: ...
    @property
    def known(self) -> KnownLabels | None: ...
    def __init__(
        self,
        structure: GreedyOracle,
        tokens: Tokens,
        labels: ArrayLike | None,
        known: KnownLabels | None = None,
        *,
        rescaling: str | None = "margin",
        penalty: str | None = "linear",
    ) -> None: ...
