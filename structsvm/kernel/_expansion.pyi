from typing import Self

import numpy as np
from numpy.typing import NDArray

class Expansion:
    @property
    def n_labels(self) -> int: ...
    @property
    def n_vectors(self) -> int: ...
    def __new__(cls, n_labels: int, n_slots: int) -> Self: ...
    def listed(
        self,
    ) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64], NDArray[np.float64]]: ...
    def fill(
        self,
        slots: NDArray[np.int64],
        labels: NDArray[np.int32],
        beta: NDArray[np.float64],
        g: NDArray[np.float64],
    ) -> None: ...

def check_members(members: NDArray[np.int64], n_samples: int) -> None: ...
def check_vectors(
    members: NDArray[np.int64], slots: NDArray[np.int64], labels: NDArray[np.int32], n_samples: int, n_labels: int
) -> None: ...
