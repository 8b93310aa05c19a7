import numpy as np
from numpy.typing import NDArray

from structsvm.arrays import Floats

def add_rows(
    scores: NDArray[np.float32],
    starts: NDArray[np.int64],
    tokens: NDArray[np.int64],
    values: NDArray[np.float32] | None,
    features: NDArray[np.int64],
    changes: NDArray[np.float32],
) -> None: ...
def margins(
    emissions: NDArray[np.float32],
    offsets: NDArray[np.int64],
    moves: NDArray[np.float32],
    begin: NDArray[np.float32],
    end: NDArray[np.float32],
    out: Floats,
    pairs: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32] | None, NDArray[np.float32]] | None = None,
) -> None: ...
