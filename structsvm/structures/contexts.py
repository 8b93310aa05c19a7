"""Contexts of positions in strings: the letters around each, summed up by one of a few values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from structsvm.structures.alignments import Strings

__all__ = ["Context"]


@dataclass(frozen=True)
class Context:
    """A value for each position of a string, by the mean of a scale over some of the letters around it.

    The scale is in integers, so that the value does not depend on the order of the sum.

    Parameters
    ----------
    name : str
        Name of the context in tables of weights.
    scale : tuple of int
        A number per symbol.
    offsets : tuple of int
        Positions of the letters, from that of the letter itself; those outside of the string are left out.
    limits : tuple of float
        Ascending; the value is the number of limits that the mean exceeds. Where no letter is left, it is the middle
        one.

    Examples
    --------
    >>> from structsvm.structures.alignments import Strings
    >>> from structsvm.structures.contexts import Context
    >>> left = Context("left", scale=(0, 10), offsets=(-1,), limits=(5.0,))
    >>> left.values(Strings.of([[0, 1, 1, 0]])).tolist()
    [1, 0, 1, 1]
    """

    name: str
    scale: tuple[int, ...]
    offsets: tuple[int, ...]
    limits: tuple[float, ...]

    @property
    def size(self) -> int:
        """Number of values."""
        return len(self.limits) + 1

    def values(self, strings: Strings) -> NDArray[np.int64]:
        """The values at all letters of the strings: array like `strings.symbols`."""
        numbers = np.array(self.scale, dtype=np.int64)[strings.symbols]
        lengths = np.diff(strings.offsets)
        start, stop = (np.repeat(ends, lengths) for ends in (strings.offsets[:-1], strings.offsets[1:]))
        total, count = np.zeros((2, len(numbers)), dtype=np.int64)
        for offset in self.offsets:
            at = np.arange(len(numbers)) + offset
            inside = (start <= at) & (at < stop)
            total[inside] += numbers[at[inside]]
            count += inside
        found = sum((total > limit * count for limit in self.limits), np.zeros(len(numbers), dtype=np.int64))
        return np.where(count > 0, found, self.size // 2)
