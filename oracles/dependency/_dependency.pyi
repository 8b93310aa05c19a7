from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from structsvm._problem import Problem
from structsvm.oracles.dependency.arcs import DependencyOracle
from structsvm.oracles.dependency.pairs import PairOracle, TreeCandidates

ARC: np.dtype[np.void]
CANDIDATES: int

class TreeFinder:
    @property
    def projective(self) -> bool: ...
    @property
    def longest(self) -> int: ...
    def __init__(self, projective: bool, longest: int) -> None: ...
    def tree(self, scores: NDArray[np.float32]) -> tuple[NDArray[np.int32], float] | None: ...
    def trees(self, tables: NDArray[np.float32], sizes: NDArray[np.int64], heads: NDArray[np.int32]) -> None: ...
    def log_sum(self, scores: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]: ...
    def samples(self, scores: NDArray[np.float64], uniforms: NDArray[np.float64]) -> NDArray[np.int32] | None: ...

class ArcDecoder:
    @property
    def oracle(self) -> DependencyOracle: ...
    @property
    def finder(self) -> TreeFinder: ...
    def __init__(self, oracle: DependencyOracle, longest: int) -> None: ...
    def parse(
        self, codes: NDArray[np.int32], offsets: NDArray[np.int64], w: NDArray[np.float32]
    ) -> tuple[NDArray[np.int32], NDArray[np.float32]]: ...
    def candidates(
        self,
        codes: NDArray[np.int32],
        offsets: NDArray[np.int64],
        w: NDArray[np.float32],
        gap: float,
        outputs: NDArray[np.int32] | None = None,
    ) -> tuple[NDArray[np.int32], NDArray[np.void], NDArray[np.int32]]: ...
    def table(self, codes: NDArray[np.int32], w: NDArray[np.float32]) -> NDArray[np.float32]: ...
    def chances(self, table: NDArray[np.float32]) -> tuple[float, NDArray[np.float64]]: ...
    def feature_sum(self, codes: NDArray[np.int32], amounts: NDArray[np.float64]) -> NDArray[np.float64]: ...

class PairDecoder:
    @property
    def oracle(self) -> PairOracle: ...
    @property
    def projective(self) -> bool: ...
    @property
    def longest(self) -> int: ...
    @property
    def most(self) -> int: ...
    def __init__(self, oracle: PairOracle, longest: int) -> None: ...
    def parse(
        self, codes: NDArray[np.int32], offsets: NDArray[np.int64], candidates: TreeCandidates, w: NDArray[np.float32]
    ) -> NDArray[np.int32]: ...
    def features(self, codes: NDArray[np.int32], tree: NDArray[np.int32]) -> tuple[NDArray[np.int32], int]: ...

class ArcsProblem(Problem):
    @property
    def oracle(self) -> Any: ...
    @property
    def codes_array(self) -> NDArray[np.int32]: ...
    @property
    def offsets_array(self) -> NDArray[np.int64]: ...
    @property
    def outputs_array(self) -> NDArray[np.int32]: ...
    @property
    def told(self) -> list[NDArray[np.int32]]: ...
    def __init__(
        self,
        oracle: Any,
        codes: NDArray[np.int32],
        offsets: NDArray[np.int64],
        outputs: NDArray[np.int32],
        *,
        rescaling: str | None = "margin",
        penalty: str | None = "linear",
    ) -> None: ...
    @staticmethod
    def longest_of(offsets: NDArray[np.int64]) -> int: ...
    def most_violated(self, i: int, w: ArrayLike) -> NDArray[np.int32]: ...

class DependencyProblem(ArcsProblem):
    def __init__(
        self,
        oracle: DependencyOracle,
        codes: NDArray[np.int32],
        offsets: NDArray[np.int64],
        outputs: NDArray[np.int32],
        known: NDArray[np.int32] | None = None,
        *,
        rescaling: str | None = "margin",
        penalty: str | None = "linear",
    ) -> None: ...

class PairProblem(ArcsProblem):
    @property
    def candidates(self) -> TreeCandidates: ...
    def __init__(
        self,
        oracle: PairOracle,
        codes: NDArray[np.int32],
        offsets: NDArray[np.int64],
        outputs: NDArray[np.int32],
        candidates: TreeCandidates,
        *,
        rescaling: str | None = "margin",
        penalty: str | None = "linear",
    ) -> None: ...
