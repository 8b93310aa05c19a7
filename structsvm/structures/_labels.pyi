from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from structsvm.features.tokens import Tokens
from structsvm.protocol import Oracle

class LabelDecoder:
    @property
    def K(self) -> int: ...
    @property
    def stride(self) -> int: ...
    @property
    def order(self) -> int: ...
    @property
    def n_emission(self) -> int: ...
    @property
    def n_bigrams(self) -> int: ...
    @property
    def first_bigram(self) -> int: ...
    @property
    def tokens(self) -> Tokens: ...
    @property
    def structure(self) -> Oracle: ...
    def __init__(self, structure: Oracle, tokens: Tokens) -> None: ...
    def decode(
        self,
        w: ArrayLike,
        start: int = 0,
        stop: int | None = None,
        allowed: Sequence[NDArray[np.bool_] | None] | None = None,
        scores: NDArray[np.float32] | None = None,
    ) -> NDArray[np.int32]: ...
