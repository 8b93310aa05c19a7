"""What models check of the arrays of a file."""

import numpy as np
import pytest

from structsvm.tasks.common.model import checked_weights


def test_weights_of_a_file():
    weights = np.ones(3)
    assert checked_weights(weights, (3,), np.float64) is weights
    for wrong in (np.ones(4), np.ones((3, 1)), np.ones(3, dtype=np.float32)):
        with pytest.raises(ValueError, match=r"weights of shape .*, not \(3,\) and float64"):
            checked_weights(wrong, (3,), np.float64)
    for value in (np.nan, np.inf, -np.inf):
        with pytest.raises(ValueError, match="weights that are not finite"):
            checked_weights(np.array([0.0, 1.0, value]), (3,), np.float64)
