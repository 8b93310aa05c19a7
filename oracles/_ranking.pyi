import numpy as np
from numpy.typing import NDArray

from structsvm._problem import Problem
from structsvm.oracles.ranking import Groups, RankingOracle

GROUP_LOSSES: dict[str, int]

class GroupProblem(Problem):
    @property
    def oracle(self) -> RankingOracle: ...
    @property
    def data(self) -> Groups: ...
    @property
    def grades(self) -> NDArray[np.float64]: ...
    def __init__(
        self,
        oracle: RankingOracle,
        data: Groups,
        grades: NDArray[np.float64],
        *,
        rescaling: str | None = "margin",
        penalty: str | None = "linear",
    ) -> None: ...
    def find_columns(self) -> None: ...
