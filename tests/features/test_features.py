"""The feature encoder: its forms of data, its state, what model files keep of it."""

import copy
import pickle
from functools import cache

import numpy as np
import pytest
from feature_reference import TEMPLATES, copied_by_arrays, row_lists, same
from hypothesis import given, settings
from hypothesis import strategies as st

from structsvm.features.columns import ColumnFileError, Columns
from structsvm.features.encoder import FeatureEncoder


@given(row_lists, row_lists, st.sampled_from(["crf++", "rich", TEMPLATES[0]]))
def test_tuples_of_strings_are_columns_to_templates(train, test, templates):
    columns = FeatureEncoder(templates, min_count=2)
    tuples = FeatureEncoder(templates, min_count=2)
    assert same(tuples.fit_transform(iter(train)), columns.fit_transform(Columns.from_sequences(train)))
    assert tuples.kind == "columns"
    assert tuples.feature_names == columns.feature_names
    wanted = columns.transform(Columns.from_sequences(test))
    assert same(tuples.transform(iter(test)), wanted)
    assert same(tuples.transform(Columns.from_sequences(test)), wanted)
    assert same(columns.transform(test), wanted)
    assert same(copied_by_arrays(tuples).transform(test), wanted)


def test_an_encoder_fitted_on_columns_takes_tuples():
    rows = [[("the", "D"), ("dog", "N")]]
    encoder = FeatureEncoder()  # Columns alone say that templates are wanted
    tokens = encoder.fit_transform(Columns.from_sequences(rows))
    assert same(encoder.transform(rows), tokens)
    assert len(encoder.transform([])) == 0
    hashed = FeatureEncoder("crf++", hash_bits=10)
    assert same(hashed.transform(rows), hashed.transform(Columns.from_sequences(rows)))


def test_without_templates_tuples_are_attributes():
    encoder = FeatureEncoder().fit([[("the", "D"), ("dog", "N")]])
    assert encoder.kind == "attributes"
    assert encoder.feature_names == ["the", "D", "dog", "N"]


@pytest.mark.parametrize(
    ("X", "where"),
    [
        ([[("a", "b")], [("a", "b"), {"w": "a"}]], "sequence 1, token 1: "),
        ([[["a", "b"]]], "sequence 0, token 0: "),
        ([["a", b"b"]], "sequence 0, token 1: "),
        ([[("a", "b"), ("a", 1)]], "sequence 0, token 1: "),
        ([[("a", None)]], "sequence 0, token 0: "),
        ([[("a", b"b")]], "sequence 0, token 0: "),
        ([np.array([["a", "b"]])], "sequence 0, token 0: "),
        ([np.ones((2, 2))], ""),
    ],
)
def test_templates_need_columns(X, where):
    message = where + "templates need columns: a Columns object, or tokens that are tuples of str"
    encoder = FeatureEncoder("crf++")
    with pytest.raises(ValueError, match=message):
        encoder.fit(X)
    fitted = FeatureEncoder().fit(Columns.from_sequences([[("a", "b")]]))
    for other in (encoder.fit([[("a", "b")]]), fitted):
        with pytest.raises(ValueError, match=message):
            other.transform(X)
    with pytest.raises(ValueError, match=r"templates need columns.* X contains numeric"):
        encoder.transform(np.ones((2, 2)), lengths=[2])


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        ([[("a", "b"), ("a",)]], ColumnFileError, "X: sequence 0, token 1: expected 2 columns"),
        ([[("a", "b")], 7], TypeError, "sequence 1 must be a list of tokens, got int"),
        ([[("a", "b")], "ab"], TypeError, "sequence 1 must be a list of tokens, got str"),
        ([[("a",)]], ValueError, "expected 2 columns without the label, found 1"),
    ],
)
def test_bad_tuples(X, error, message):
    encoder = FeatureEncoder("crf++").fit([[("a", "b")]])
    with pytest.raises(error, match=message):
        encoder.transform(X)


def test_an_error_leaves_the_encoder_as_it_was():
    encoder = FeatureEncoder().fit([[["a"]]])
    for X in ([[["b"]], []], [[], ["b", "c"]]):
        with pytest.raises(ValueError, match="empty"):
            encoder.fit(X)
    assert encoder.feature_names == ["a"]


def test_kind_must_match():
    with pytest.raises(ValueError, match="not fitted"):
        FeatureEncoder().transform([[["a"]]])
    encoder = FeatureEncoder().fit([[["a"]]])
    with pytest.raises(ValueError, match="fitted on attributes, X contains numeric"):
        encoder.transform([np.ones((2, 2))])
    with pytest.raises(ValueError, match="fitted on attributes, X contains columns"):
        encoder.transform(Columns.from_sequences([[("a",)]]))
    assert len(encoder.transform([])) == 0


@pytest.mark.parametrize(
    "kwargs",
    [{"min_count": 0}, {"min_count": 1.5}, {"min_count": True}, {"hash_bits": 31},
     {"hash_bits": 0}, {"hash_bits": "8"}],
)  # fmt: skip
def test_bad_parameters(kwargs):
    with pytest.raises((ValueError, TypeError), match=next(iter(kwargs))):
        FeatureEncoder(**kwargs)


@cache
def fitted_encoders():
    rows = [[("The", "D"), ("dog", "N")], [("dogs", "N")]]
    return [
        FeatureEncoder(),
        FeatureEncoder("crf++", min_count=2).fit(Columns.from_sequences(rows)),
        FeatureEncoder("rich").fit(Columns.from_sequences(rows)),
        FeatureEncoder().fit([[["a", "é"], {"b": "c", "n": 2}]]),
        FeatureEncoder(hash_bits=4).fit([[["a"]]]),
        FeatureEncoder(hash_bits=4).fit(Columns.from_sequences(rows)),
        FeatureEncoder().fit([np.ones((1, 3))]),
    ]


@pytest.mark.parametrize("i", range(7))
def test_copies(i):
    encoder = fitted_encoders()[i]
    for again in (pickle.loads(pickle.dumps(encoder)), copy.deepcopy(encoder), copied_by_arrays(encoder)):
        assert again.feature_names == encoder.feature_names
        assert again.to_arrays()[0] == encoder.to_arrays()[0]
        assert again.min_count == encoder.min_count


@pytest.mark.parametrize("i", range(7))
@settings(max_examples=40)
@given(data=st.data())
def test_hostile_arrays(i, data):
    """Whatever is altered: ValueError, or an encoder that works."""
    meta, arrays = fitted_encoders()[i].to_arrays()
    meta = dict(meta)
    arrays = {name: array.copy() for name, array in arrays.items()}
    if arrays and data.draw(st.booleans()):
        name = data.draw(st.sampled_from(sorted(arrays)))
        array = arrays[name]
        kind = data.draw(st.sampled_from(["entry", "cut", "type", "gone", "shape"]))
        if kind == "entry" and array.size:
            at = data.draw(st.integers(0, array.size - 1))
            info = np.iinfo(array.dtype)
            array.flat[at] = data.draw(
                st.one_of(st.integers(0, 20), st.integers(info.min, info.max)).filter(
                    lambda v: info.min <= v <= info.max
                )
            )
        elif kind == "cut":
            arrays[name] = array[: len(array) // 2]
        elif kind == "type":
            arrays[name] = array.astype(np.float64)
        elif kind == "shape":
            arrays[name] = array.reshape(-1, 1)
        else:
            del arrays[name]
    else:
        name = data.draw(st.sampled_from(sorted(meta)))
        meta[name] = data.draw(
            st.one_of(st.none(), st.integers(-3, 40), st.just(2**40), st.text(max_size=5),
                      st.sampled_from(["columns", "attributes", "numeric"]),
                      st.just("U:%x[0,0]/%x[1,1]"), st.lists(st.integers(), max_size=2))
        )  # fmt: skip
    try:
        encoder = FeatureEncoder.from_arrays(meta, arrays)
    except ValueError:
        return
    if encoder.n_features < 2**20:
        assert len(encoder.feature_names) == encoder.n_features
    for X in (Columns.from_sequences([[("The", "D"), ("x", "N")]]), [[["a"]]], [np.ones((2, 3))]):
        try:
            tokens = encoder.transform(X)
        except ValueError:
            continue
        assert tokens.indices.size == 0 or tokens.indices.max() < tokens.n_features
