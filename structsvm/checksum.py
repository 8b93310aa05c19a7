"""A checksum of arrays, for model files and for the data of a training state."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["checksum"]


def checksum(arrays: Iterable[NDArray[Any]]) -> int:
    """The crc32 of the concatenated arrays."""
    value = 0
    for array in arrays:
        value = zlib.crc32(np.ascontiguousarray(array).data, value)
    return value
