"""Losses of sets of parts, from 0 to 1: how much is missed, how much is wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, SupportsFloat, TypeAlias, cast

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from structsvm.arrays import Floats

# Where a loss is surely small: with all parts, with none; None: nowhere.
Safe: TypeAlias = Literal["all", "none"] | None


class Counts(NamedTuple):
    """Numbers of parts of outputs, as arrays of one shape.

    Attributes
    ----------
    right, found, true : int64 arrays
        How many parts are found and true, found, and true.
    most : int
        The largest number of parts by which two outputs can differ; 0: there is no bound.
    """

    right: NDArray[np.int64]
    found: NDArray[np.int64]
    true: NDArray[np.int64]
    most: int


def missed(counts: Counts) -> Floats:
    """The share of true parts that are not found, ``1 - recall``; 0 where none is true."""
    return np.where(counts.true > 0, 1.0 - counts.right / counts.true.clip(1), 0.0)


def wrong(counts: Counts) -> Floats:
    """The share of found parts that are not true, ``1 - precision``; 0 where none is found."""
    return 1.0 - counts.right / counts.found.clip(1) - (counts.found == 0)


def f1(counts: Counts) -> Floats:
    """``1 - F1``; 0 where no part is true and none is found."""
    both = counts.found + counts.true
    return 1.0 - 2.0 * counts.right / both.clip(1) - (both == 0)


def path(counts: Counts) -> Floats:
    """The edges between a found node of a taxonomy and the true one, as a share of the most that there can be."""
    return np.minimum((counts.found + counts.true - 2 * counts.right) / max(counts.most, 1), 1.0)


def checked(losses: Iterable[object], outputs: Iterable[int]) -> NDArray[np.float64]:
    """A user's losses as numbers; ValueError for the first that is none from 0 to 1, naming its output."""
    found = list[float]()
    for loss, i in zip(losses, outputs, strict=True):
        try:
            found.append(float(cast("SupportsFloat", loss)))
        except (TypeError, ValueError, OverflowError):
            raise ValueError(f"loss must return a number from 0 to 1, got {loss!r:.80} for output {i}") from None
        if not 0.0 <= found[-1] <= 1.0:
            raise ValueError(f"loss must return a number from 0 to 1, got {found[-1]:g} for output {i}")
    return np.array(found, dtype=np.float64)


@dataclass(frozen=True)
class Loss:
    """A loss, and where it is safe: there it is surely small, and it grows from there, about or surely."""

    of: Callable[[Counts], Floats]
    safe: Safe


LOSSES = {"missed": Loss(missed, "all"), "wrong": Loss(wrong, "none"), "f1": Loss(f1, None), "path": Loss(path, None)}
