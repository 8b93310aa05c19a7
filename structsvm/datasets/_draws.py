"""Draws of simulators, and the shares that they take."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from numbers import Real
from typing import TypeVar, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from structsvm.parameters import Interval

RandomState = int | np.random.Generator | None
T = TypeVar("T")

SHARE = Interval(Real, 0.0, 1.0, closed="both")


def pick(rng: np.random.Generator, options: Sequence[T]) -> T:
    """Draw one of the options, all equally likely."""
    return options[int(rng.integers(len(options)))]


def shuffled(rng: np.random.Generator, options: Iterable[T]) -> list[T]:
    """Return the distinct options in random order."""
    distinct = list(dict.fromkeys(options))
    return [distinct[k] for k in rng.permutation(len(distinct))]


@overload
def draw(rng: np.random.Generator, weights: ArrayLike, size: None = None) -> np.intp: ...
@overload
def draw(rng: np.random.Generator, weights: ArrayLike, size: int) -> NDArray[np.intp]: ...
def draw(rng: np.random.Generator, weights: ArrayLike, size: int | None = None) -> np.intp | NDArray[np.intp]:
    """Draw indices in proportion to the weights."""
    upper = np.cumsum(weights)
    return np.searchsorted(upper, rng.random(size) * upper[-1], side="right")


def zipf(n: int) -> NDArray[np.float64]:
    """The weights of n words by rank."""
    return 1.0 / np.arange(1, n + 1)
