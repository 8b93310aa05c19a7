"""The arrays of training data, models and states, by what they contain, and the checksum of some."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    from scipy.sparse import csr_array, csr_matrix, sparray, spmatrix

MAX_COUNT = 2**31 - 1  # compiled code counts in int32

# One float64 per example.
Weights = NDArray[np.float64]
# Numbers of any width.
Floats = NDArray[np.floating[Any]]
Integers = NDArray[np.integer[Any]]
# Floats or integers, or bools.
Numbers = NDArray[np.number[Any] | np.bool_]
# Labels: numbers, strings, or objects.
LabelArray = NDArray[Any]
# Rows of numbers as users give them: lists, arrays, data frames, sparse matrices.
MatrixLike: TypeAlias = "ArrayLike | sparray | spmatrix"
# The same, checked.
Matrix: TypeAlias = "Floats | csr_array | csr_matrix"
# Values of any type. It is no array of floats before it has been converted to one, or checked.
AnyArray: TypeAlias = "NDArray[np.generic[object]]"
# Such arrays, by name.
Arrays: TypeAlias = "Mapping[str, AnyArray]"
# An array whose type is known when the program runs: a table has checked it (`structsvm.stored_values`), or it is a
# problem's, whose outputs are words or objects.
CheckedArray = NDArray[Any]
# The arrays of a training's state, by name.
State = dict[str, CheckedArray]
# The type of values of an array that a function returns as it got it.
Scalar = TypeVar("Scalar", bound="np.generic[object]")


def checksum(arrays: Iterable[AnyArray]) -> int:
    """The crc32 of the concatenated arrays, for model files and for the data of a training state."""
    value = 0
    for array in arrays:
        value = zlib.crc32(np.ascontiguousarray(array).data, value)
    return value
