"""A checksum of arrays: of model files, and of the data that a training state belongs to."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["checksum"]


def checksum(arrays: Iterable[NDArray[Any]]) -> int:
    """One crc32 of several arrays, one after the other."""
    value = 0
    for array in arrays:
        value = zlib.crc32(np.ascontiguousarray(array).data, value)
    return value
