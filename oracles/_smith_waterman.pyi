import numpy as np
from numpy.typing import ArrayLike, NDArray

from structsvm._problem import Problem
from structsvm.oracles.smith_waterman import SmithWatermanOracle
from structsvm.structures.alignments import FREE as FREE
from structsvm.structures.alignments import References, Strings

MAX_BYTES: int

class Aligner:
    @property
    def structure(self) -> SmithWatermanOracle: ...
    @property
    def strings(self) -> Strings: ...
    @property
    def n_symbols(self) -> int: ...
    @property
    def n_features(self) -> int: ...
    @property
    def n_striped(self) -> int: ...
    def __init__(
        self,
        structure: SmithWatermanOracle,
        strings: Strings,
        pairs: ArrayLike,
        layers: ArrayLike = 1,
        traceback: bool = True,
    ) -> None: ...
    def scores(self, w: ArrayLike, pairs: NDArray[np.int64]) -> NDArray[np.float64]: ...
    def hits(self, w: ArrayLike, references: References, beta: float = 0.0) -> NDArray[np.int64]: ...
    def complete(
        self, w: ArrayLike, x: int, z: int, known: NDArray[np.uint8]
    ) -> tuple[int, int, NDArray[np.uint8]]: ...
    def check_known(self, x: int, z: int, known: NDArray[np.uint8]) -> None: ...
    def align(self, w: ArrayLike, x: int, z: int, beta: float = 0.0) -> tuple[int, int, NDArray[np.uint8], float]: ...
    def table(
        self, w: ArrayLike, x: int, z: int
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]: ...
    def log_sum(
        self, w: ArrayLike, x: int, z: int, beta: float = 1.0, known: NDArray[np.uint8] | None = None
    ) -> tuple[float, float]: ...
    def histogram(self, x: int, z: int, i: int, j: int, codes: NDArray[np.uint8]) -> NDArray[np.float64]: ...

class ReferenceProblem(Problem):
    @property
    def structure(self) -> SmithWatermanOracle: ...
    @property
    def references(self) -> References: ...
    @property
    def aligner(self) -> Aligner: ...
    def __init__(
        self,
        structure: SmithWatermanOracle,
        references: References,
        aligner: Aligner,
        rescaling: str | None,
        penalty: str | None,
    ) -> None: ...
    def places(self) -> NDArray[np.int64]: ...

class AlignmentProblem(ReferenceProblem):
    def __init__(
        self,
        structure: SmithWatermanOracle,
        references: References,
        *,
        rescaling: str | None = "margin",
        penalty: str | None = "linear",
    ) -> None: ...
    def most_violated(self, i: int, w: ArrayLike) -> tuple[int, int, NDArray[np.uint8]]: ...

class DecoyProblem(ReferenceProblem):
    def __init__(
        self,
        structure: SmithWatermanOracle,
        references: References,
        *,
        rescaling: str | None = "margin",
        penalty: str | None = "linear",
    ) -> None: ...
