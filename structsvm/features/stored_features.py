"""Arrays of features in model files, checked: a file may contain anything."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from structsvm.features.columns import Vocabulary


def stored_array(arrays: dict[str, NDArray[Any]], name: str, dtype: Any, ndim: int) -> NDArray[Any]:
    """An array by its name; raises ValueError if it has another type or number of dimensions."""
    array = np.asarray(arrays[name])
    if array.dtype != dtype or array.ndim != ndim:
        raise ValueError(f"not a feature encoder: {name} has the wrong type or shape")
    return np.ascontiguousarray(array)


def stored_strings(arrays: dict[str, NDArray[Any]], data: str, starts: str) -> tuple[Vocabulary, list[str]]:
    """Strings by the names of their two arrays, encoded and decoded; raises ValueError if they are invalid."""
    vocabulary = Vocabulary(stored_array(arrays, data, np.uint8, 1), stored_array(arrays, starts, np.int64, 1))
    ends = vocabulary.starts
    if len(ends) == 0 or ends[0] != 0 or ends[-1] != len(vocabulary.data):
        raise ValueError(f"not a feature encoder: {starts} does not fit {data}")
    if (ends[1:] < ends[:-1]).any():
        raise ValueError(f"not a feature encoder: {starts} does not rise")
    return vocabulary, vocabulary.tolist()  # UTF-8, or UnicodeDecodeError, a ValueError
