"""Tokens: slices and choices of sequences."""

import numpy as np
import pytest
from feature_reference import decoded, python_sequences
from hypothesis import given
from hypothesis import strategies as st

from structsvm.features.encoder import FeatureEncoder
from structsvm.features.tokens import Tokens


@given(python_sequences, st.data())
def test_slices_of_tokens(sequences, data):
    encoder = FeatureEncoder()
    tokens = encoder.fit_transform(sequences)
    names = encoder.feature_names
    whole = decoded(tokens, names)
    cut_ = data.draw(st.slices(len(sequences)))
    assert decoded(tokens[cut_], names) == whole[cut_]
    index = data.draw(st.lists(st.integers(-len(sequences), len(sequences) - 1)))
    assert decoded(tokens.take(index), names) == [whole[i] for i in index]
    mask = np.arange(len(sequences)) % 2 == 0
    assert decoded(tokens.take(mask), names) == whole[::2]
    assert tokens.lengths.tolist() == [len(s) for s in sequences]
    with pytest.raises(TypeError, match="take"):
        tokens[0]
    with pytest.raises(IndexError):
        tokens.take([len(sequences)])


def test_a_slice_copies_no_entries():
    tokens = FeatureEncoder().fit_transform([[["a", "b"]]] * 4)
    assert np.shares_memory(tokens[1:3].indices, tokens.indices)
    assert isinstance(tokens[1:3], Tokens)
