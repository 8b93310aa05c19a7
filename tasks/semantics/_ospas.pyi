from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from structsvm.features.tokens import Tokens

STRATEGIES: Mapping[str, int]

class Ospas:
    @property
    def n_features(self) -> int: ...
    @property
    def K(self) -> int: ...
    @property
    def n_visits(self) -> int: ...
    @property
    def n_updates(self) -> int: ...
    @property
    def weights(self) -> NDArray[np.float64]: ...
    def __init__(
        self,
        n_features: int,
        n_labels: int,
        *,
        C: float = 0.1,
        strategy: str = "random",
        average: bool = False,
        seed: int = 0,
    ) -> None: ...
    def scores(self, tokens: Tokens) -> NDArray[np.float64]: ...
    def resize(self, n_features: int, n_labels: int) -> None: ...
    def learn(
        self,
        tokens: Tokens,
        bag_of: NDArray[np.int64],
        bag_indptr: NDArray[np.int64],
        bag_labels: NDArray[np.int32],
        bag_counts: NDArray[np.int32],
    ) -> NDArray[np.int32]: ...
    def get_state(self) -> dict[str, NDArray[Any]]: ...
    def set_state(self, state: Mapping[str, NDArray[Any]]) -> None: ...

class Rows:
    def __init__(self, tokens: Tokens) -> None: ...

def rebuild(n_features: int, n_labels: int, options: Mapping[str, Any], state: Mapping[str, NDArray[Any]]) -> Ospas: ...
def enlarged(table: NDArray[np.float64], n_rows: int, n_columns: int) -> NDArray[np.float64]: ...
def word_scores(tokens: Tokens, weights: NDArray[np.float64]) -> NDArray[np.float64]: ...
