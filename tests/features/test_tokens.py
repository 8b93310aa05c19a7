"""Tokens: slices and choices of sequences."""

from dataclasses import replace

import numpy as np
import pytest
from feature_reference import decoded, python_sequences
from hypothesis import given
from hypothesis import strategies as st

from structsvm.features._tokens import are_within, steps
from structsvm.features.encoder import FeatureEncoder
from structsvm.features.tokens import Tokens


@given(python_sequences, st.data())
def test_slices_of_tokens(sequences, data):
    encoder = FeatureEncoder()
    tokens = encoder.fit_transform(sequences)
    every = np.arange(tokens.n_features, dtype=np.int32)
    tokens = replace(tokens, bigrams=tokens.conjoined(every, tokens.n_features))
    names = encoder.feature_names
    whole = decoded(tokens, names)
    cut_ = data.draw(st.slices(len(sequences)))
    index = data.draw(st.lists(st.integers(-len(sequences), len(sequences) - 1)))
    mask = np.arange(len(sequences)) % 2 == 0
    parts = [
        (tokens[cut_], whole[cut_]),
        (tokens.take(index), [whole[i] for i in index]),
        (tokens.take(mask), whole[::2]),
        (Tokens.joined([tokens[:1], tokens]), [*whole[:1], *whole]),
    ]
    for part, wanted in parts:
        assert decoded(part, names) == wanted
        assert decoded(part.bigrams, names) == [[{} for _ in s[:1]] + s[1:] for s in wanted]
    assert tokens.lengths.tolist() == [len(s) for s in sequences]
    with pytest.raises(TypeError, match="take"):
        tokens[0]
    with pytest.raises(IndexError):
        tokens.take([len(sequences)])


def test_a_slice_copies_no_entries():
    tokens = FeatureEncoder().fit_transform([[["a", "b"]]] * 4)
    assert np.shares_memory(tokens[1:3].indices, tokens.indices)
    assert isinstance(tokens[1:3], Tokens)


def test_joining_tokens_of_different_features():
    a, b = (FeatureEncoder().fit_transform([[names]]) for names in (["a"], ["a", "b"]))
    with pytest.raises(ValueError, match=r"different features: \[\(1, 0\), \(2, 0\)\]"):
        Tokens.joined([a, b])


def test_fingerprints_tell_bigrams():
    one = FeatureEncoder(bigrams="a").fit_transform([[["x"], ["a=1", "b=1"]]])
    other = replace(one, bigrams=replace(one.bigrams, values=np.full(1, 2.0, dtype=np.float32)))
    labels = np.zeros(2, dtype=np.int32)
    assert len({tokens.fingerprint(labels) for tokens in (one, other, replace(one, bigrams=None))}) == 3


@pytest.mark.parametrize(
    ("ends", "wanted"),
    [
        ([], (0, 0, 0)),
        ([5], (0, 0, 0)),
        ([0, 2, 2, 7, 7], (0, 5, 2)),
        ([0, 3, 2], (-1, 3, 0)),
        ([0, 2**63 - 1, -(2**63), 2**63 - 1, 1], (-1, 2**63 - 1, 0)),  # whose differences would wrap to numbers >= 0
    ],
)
def test_steps(ends, wanted):
    assert steps(np.array(ends, dtype=np.int64)) == wanted


def test_are_within():
    ids = np.array([0, 3, 1], dtype=np.int32)
    assert are_within(ids, 4) and not are_within(ids, 3) and not are_within(np.array([2, -1], np.int32), 4)
    assert are_within(ids[:0], 0)
