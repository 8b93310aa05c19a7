"""Encoders to which features are added."""

import copy
import pickle

import numpy as np
import pytest

from structsvm.datasets import make_sequences
from structsvm.features.encoder import FeatureEncoder

COLUMNS = [list(x) for x in make_sequences(60, mean_length=6, random_state=0)[0]]
NAMED = [[{"word": word, "tag": tag} for word, tag in x] for x in COLUMNS]
FORMS = {
    "rich": (COLUMNS, "rich"),
    "records": (COLUMNS, "records"),
    "functions": (COLUMNS, 'U00:%x[0,0]\nU01:%t[0,0,"^[A-Z]"]/%x[-1,1]\nB01:%x[0,1]\nB'),
    "named": (NAMED, None),
}


@pytest.mark.parametrize("form", FORMS)
def test_it_grows_to_the_whole(form):
    X, templates = FORMS[form]
    encoder, whole = FeatureEncoder(templates), FeatureEncoder(templates)
    encoder.fit_transform(X[:10])
    expected = whole.fit_transform(X)
    first, grown = encoder.feature_names, encoder
    for x in X[10:]:
        grown = grown.grown([x])
    assert encoder.feature_names == first and grown.feature_names[: len(first)] == first
    names = np.array(grown.feature_names), np.array(whole.feature_names)
    assert sorted(names[0]) == sorted(names[1]) and len(set(names[0])) == grown.n_features
    assert sorted(grown.bigram_names) == sorted(whole.bigram_names)
    tokens = grown.transform(X)
    for t in range(tokens.n_tokens):
        own, its = (
            sorted(of[one.indices[one.indptr[t] : one.indptr[t + 1]]])
            for of, one in zip(names, (tokens, expected), strict=True)
        )
        assert own == its
    positions, _ = grown.positions(whole, X)
    assert (names[0][positions] == names[1]).all()
    assert (encoder.positions(whole, X)[0] >= 0).sum() == encoder.n_features


@pytest.mark.parametrize("form", FORMS)
def test_what_is_known_adds_nothing(form):
    X, templates = FORMS[form]
    encoder = FeatureEncoder(templates).fit(X)
    assert encoder.grown(X[:3]) is encoder


@pytest.mark.parametrize("form", FORMS)
def test_a_grown_encoder_is_stored(form):
    X, templates = FORMS[form]
    grown = FeatureEncoder(templates).fit(X[:10]).grown(X[10:])
    meta, arrays = grown.to_arrays()
    for other in (FeatureEncoder.from_arrays(meta, arrays), copy.deepcopy(grown), pickle.loads(pickle.dumps(grown))):
        assert other.feature_names == grown.feature_names
        assert other.growth == () and other.lineage is not grown.lineage
        a, b = other.transform(X), grown.transform(X)
        assert np.array_equal(a.indices, b.indices) and np.array_equal(a.indptr, b.indptr)


def test_growth_remembers_what_it_came_from():
    encoder = FeatureEncoder().fit(NAMED[:5])
    grown = encoder.grown(NAMED[5:10])
    again = grown.grown(NAMED[10:20])
    assert encoder.growth == () and grown.growth[0] == NAMED[5:10] and again.growth[0] is grown.growth[0]
    assert again.lineage is encoder.lineage and FeatureEncoder().fit(NAMED[:5]).lineage is not encoder.lineage


@pytest.mark.parametrize("params", [{"hash_bits": 8}, {"min_count": 2}, {"bigrams": "word"}], ids=str)
def test_features_without_names_of_their_own_do_not_grow(params):
    encoder = FeatureEncoder(**params).fit(NAMED * 2)
    assert not encoder.can_grow
    with pytest.raises(ValueError, match="features can be added where all that occur have names"):
        encoder.grown(NAMED)


def test_other_columns_are_refused():
    encoder = FeatureEncoder("rich").fit(COLUMNS)
    with pytest.raises(ValueError, match="expected 2 columns without the label, found 1"):
        encoder.grown([["one", "column"]])
