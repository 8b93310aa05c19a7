"""The arrays of training data and models, by what they contain."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    from scipy.sparse import csr_array, csr_matrix, sparray, spmatrix

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
# The arrays of a training's state, by name.
State = dict[str, NDArray[Any]]
