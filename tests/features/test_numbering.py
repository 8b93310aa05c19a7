"""Features numbered by falling frequency."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from structsvm.features._tokens import descending_order


@given(st.lists(st.integers(0, 5), max_size=30), st.data())
def test_descending_order(counts, data):
    firsts = data.draw(st.lists(st.integers(0, 9), min_size=len(counts), max_size=len(counts)))
    got = descending_order(np.array(counts, np.int64), np.array(firsts, np.int64))
    wanted = sorted(range(len(counts)), key=lambda i: (-counts[i], firsts[i], i))
    assert got.tolist() == wanted
