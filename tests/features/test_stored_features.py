"""Arrays of strings in files: what is refused."""

import numpy as np
import pytest

from structsvm.features.stored_features import stored_array, stored_strings

DATA = np.frombuffer(b"abc", dtype=np.uint8)


def strings(*starts):
    return stored_strings({"data": DATA, "starts": np.array(starts, dtype=np.int64)}, "data", "starts")


def test_strings():
    vocabulary, decoded = strings(0, 1, 1, 3)
    assert decoded == ["a", "", "bc"] == vocabulary.tolist()
    for starts in ((), (1, 3), (0, 2), (0, 4), (1, 2)):
        with pytest.raises(ValueError, match="starts does not fit data"):
            strings(*starts)
    with pytest.raises(ValueError, match="starts does not rise"):
        strings(0, 2, 1, 3)


def test_arrays():
    assert stored_array({"a": DATA}, "a", np.uint8, 1).tobytes() == b"abc"
    for dtype, ndim in ((np.int8, 1), (np.uint8, 2)):
        with pytest.raises(ValueError, match="a has the wrong type or shape"):
            stored_array({"a": DATA}, "a", dtype, ndim)
