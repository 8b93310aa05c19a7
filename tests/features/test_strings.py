"""Strings and their numbers."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from structsvm.features._strings import Interner


@given(st.lists(st.one_of(st.none(), st.text(max_size=12)), max_size=200))
def test_interner(strings):
    interner = Interner()
    ids = interner.intern(strings)
    seen = {}
    wanted = [-1 if s is None else seen.setdefault(s, len(seen)) for s in strings]
    assert ids.tolist() == wanted
    assert len(interner) == len(seen)
    again = pickle.loads(pickle.dumps(interner))
    assert again.lookup(strings).tolist() == wanted
    assert again.lookup_arrays(*interner.to_arrays()).tolist() == list(range(len(seen)))
    assert again.lookup(["not there at all"]).tolist() == [-1]


def test_interner_takes_strings_only():
    interner = Interner()
    assert interner.intern([np.str_("é"), "é", b"\xc3\xa9"]).tolist() == [0, 0, 0]
    with pytest.raises(TypeError, match="wanted str, bytes or None, got int"):
        interner.intern(["a", 1])
