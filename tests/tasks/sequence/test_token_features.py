"""`TokenFeatures`, the group of parameters `features` of `SequenceLabeler`, and the length in `segments`."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import structsvm
from structsvm.datasets import make_sequences
from structsvm.tasks import SequenceLabeler, TokenFeatures

X, y = make_sequences(24, n_labels=5, n_words=60, mean_length=6.0, random_state=0)
X = [[list(token) for token in sequence] for sequence in X]


def made(**params):
    return SequenceLabeler(C=0.1, loss="hamming", probability=False, random_state=0, **params)


def test_it_nests_as_solvers_do():
    model = made(features=TokenFeatures(bigrams="w"))
    copy = clone(model).set_params(features__min_count=3, features__bigrams=None)
    assert copy.features == TokenFeatures(min_count=3) and model.features == TokenFeatures(bigrams="w")
    assert "features=TokenFeatures(min_count=3)" in repr(copy)
    with pytest.raises(ValueError, match="TokenFeatures has no parameter 'min_counts'"):
        copy.set_params(features__min_counts=3)
    search = GridSearchCV(made(features=TokenFeatures()), {"features__min_count": [1, 3]}, cv=2).fit(X, y)
    assert search.best_estimator_.features.min_count == search.best_params_["features__min_count"]


@pytest.mark.parametrize("features", [None, TokenFeatures(min_count=2), TokenFeatures(hash_bits=9)], ids=repr)
def test_it_is_stored_with_the_model(features, tmp_path):
    model = made(features=features, warm_start=True).fit(X, y)
    model.save(tmp_path / "m")
    loaded = structsvm.load(tmp_path / "m")
    assert loaded.features == features
    np.testing.assert_array_equal(loaded.fit(X, y).model_.weights, model.fit(X, y).model_.weights)


def test_none_is_the_defaults():
    model = made(warm_start=True).fit(X, y)
    weights = model.model_.weights
    np.testing.assert_array_equal(made(features=TokenFeatures()).fit(X, y).model_.weights, weights)
    model.set_params(features=TokenFeatures()).fit(X, y)
    model.set_params(features=None).fit(X, y)
    weights = model.model_.weights
    for name, value in (("min_count", 2), ("hash_bits", 8), ("bigrams", X[0][0][1])):
        with pytest.raises(ValueError, match=f"trained with another '{name}'"):
            model.set_params(features=TokenFeatures(**{name: value})).fit(X, y)
    with pytest.raises(ValueError, match="'min_count' parameter of TokenFeatures must be an int in the range"):
        model.set_params(features=TokenFeatures(min_count=0)).fit(X, y)
    np.testing.assert_array_equal(model.model_.weights, weights)


@pytest.mark.parametrize("segments", [True, np.True_, 2, np.int64(5)], ids=repr)
def test_a_length_of_segments(segments, tmp_path):
    model = made(segments=segments, warm_start=True).fit(X, y)
    length = model.model_.segments.phrases.max_length
    assert length == segments or (segments == True and 4 <= length <= 8)  # noqa: E712 (numpy's as well)
    model.save(tmp_path / "m")
    loaded = structsvm.load(tmp_path / "m")
    assert loaded.segments == segments and type(loaded.segments) in (bool, int)
    for same in (segments, True, length):
        loaded.set_params(segments=same).fit(X, y)
    with pytest.raises(ValueError, match=rf"another 'segments'.* Got {length + 1}, it has {length}"):
        loaded.set_params(segments=length + 1).fit(X, y)
