import numpy as np
from numpy.typing import ArrayLike, NDArray

from structsvm._labels import LabelDecoder
from structsvm._problem import Problem
from structsvm.oracles.greedy import GreedyOracle
from structsvm.tokens import Tokens

class GreedyDecoder(LabelDecoder):
    def decision_scores(self, w: ArrayLike) -> NDArray[np.float64]: ...

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
