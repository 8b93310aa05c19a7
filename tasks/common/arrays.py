"""The arrays of training data and models, by what they contain."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

# One float64 per example.
Weights = NDArray[np.float64]
# Numbers of any width.
Floats = NDArray[np.floating[Any]]
Integers = NDArray[np.integer[Any]]
# The arrays of a training's state, by name.
State = dict[str, NDArray[Any]]
