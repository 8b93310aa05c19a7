from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from structsvm.arrays import Floats

_Ids: TypeAlias = NDArray[np.int64]
_Scores: TypeAlias = NDArray[np.float32]
_ChunkTables: TypeAlias = tuple[_Ids, _Ids, _Ids, NDArray[np.uint8], NDArray[np.uint8]]

KINDS: dict[str, int]

def add_rows(
    scores: _Scores,
    sizes: NDArray[np.float32],
    starts: _Ids,
    tokens: _Ids,
    values: _Scores | None,
    features: _Ids,
    changes: _Scores,
) -> None: ...
def doubts(
    emissions: _Scores,
    offsets: _Ids,
    moves: _Scores,
    begin: _Scores,
    end: _Scores,
    out: Floats,
    values: Floats,
    strategy: str,
    heat: float,
    near: Floats,
    chunks: _ChunkTables,
    pairs: tuple[_Ids, _Ids, _Scores | None, _Scores] | None = None,
) -> None: ...
