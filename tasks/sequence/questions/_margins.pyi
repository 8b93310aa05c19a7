from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from structsvm.arrays import Floats

Ids: TypeAlias = NDArray[np.int64]
Scores: TypeAlias = NDArray[np.float32]
ChunkTables: TypeAlias = tuple[Ids, Ids, Ids, NDArray[np.uint8], NDArray[np.uint8]]

KINDS: dict[str, int]

def add_rows(
    scores: Scores, starts: Ids, tokens: Ids, values: Scores | None, features: Ids, changes: Scores
) -> None: ...
def doubts(
    emissions: Scores,
    offsets: Ids,
    moves: Scores,
    begin: Scores,
    end: Scores,
    out: Floats,
    values: Floats,
    strategy: str,
    heat: float,
    near: Floats,
    chunks: ChunkTables,
    pairs: tuple[Ids, Ids, Scores | None, Scores] | None = None,
) -> None: ...
