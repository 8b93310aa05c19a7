import numpy as np
from numpy.typing import ArrayLike, NDArray

from structsvm._problem import Problem
from structsvm.arrays import CheckedArray

def violations(
    problem: Problem, weights: ArrayLike, start: int = 0, stop: int | None = None
) -> NDArray[np.float64]: ...
def collect(
    problem: Problem, weights: ArrayLike, start: int, stop: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64], NDArray[np.int32]]: ...
def losses(problem: Problem, weights: ArrayLike, start: int = 0, stop: int | None = None) -> NDArray[np.float64]: ...
def log_losses(
    problem: Problem, weights: ArrayLike, chosen: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...
def completions(
    problem: Problem, weights: ArrayLike, start: int = 0, stop: int | None = None, turn: int = 0, turns: int = 1
) -> tuple[NDArray[np.int64], CheckedArray]: ...
