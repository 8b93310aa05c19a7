"""Tokens of all kinds in lists of dicts, which are read at a glance: answers, warnings and errors are as elsewhere.

A tuple of sequences is read in the general way.
"""

import decimal
import sys
import warnings
from collections import OrderedDict, UserDict, defaultdict
from itertools import pairwise
from types import MappingProxyType

import numpy as np
import pytest

import structsvm
from structsvm.datasets import make_sequences
from structsvm.tasks import SequenceLabeler, TokenFeatures

WORDS, Y = make_sequences(60, n_labels=3, n_words=30, mean_length=6.0, random_state=0)


def dicts(sequences):
    return [[{"w": token[0], "bias": 1, "in": {"n": str(t % 3)}} for t, token in enumerate(x)] for x in sequences]


X = dicts(WORDS)
FIRST = X[0][0]


class Text(str):
    """A string of another class."""


class Angry:
    """A key that cannot be compared."""

    def __hash__(self):
        return hash("w")

    def __eq__(self, other):
        raise RuntimeError("no comparison")


class Strange(dict):
    """A dict whose items are others."""

    def items(self):
        return [("w", "w1"), ("bias", 1), ("in", {"n": "0"})]


def endless():
    found = dict(FIRST)
    found["self"] = found
    return found


TOKENS = {
    "usual": FIRST,
    "no token": None,
    "number": 3,
    "text": "word",
    "bytes": b"word",
    "object": object(),
    "list": ["w:w1", "bias"],
    "tuple": ("w:w1", "bias"),
    "set": {"w:w1", "bias"},
    "list of numbers": [1, 2],
    "empty list": [],
    "empty dict": {},
    "array": np.zeros(3),
    "without a usual column": {"w": "w1", "bias": 1},
    "another column": {**FIRST, "new": "x"},
    "another number": {**FIRST, "new": 0.5},
    "name with a colon": {**FIRST, "new:": 1},
    "name with a sign": {**FIRST, "new=": 1},
    "whole name": {"w:w1": 1, "bias": 1, "in": {"n": "0"}},
    "text for a number": {**FIRST, "bias": "x"},
    "number for a text": {**FIRST, "w": 2.0},
    "nothing for a text": {**FIRST, "w": None},
    "false": {**FIRST, "bias": False},
    "zero": {**FIRST, "bias": 0},
    "nan": {**FIRST, "bias": float("nan")},
    "inf": {**FIRST, "bias": float("-inf")},
    "beyond float32": {**FIRST, "bias": 1e39},
    "great integer": {**FIRST, "bias": 10**400},
    "complex": {**FIRST, "bias": 1j},
    "decimal": {**FIRST, "bias": decimal.Decimal("0.5")},
    "numpy float": {**FIRST, "bias": np.float32(1.0)},
    "numpy nan": {**FIRST, "bias": np.float64("nan")},
    "numpy integer": {**FIRST, "bias": np.int64(1)},
    "numpy bool": {**FIRST, "bias": np.True_},
    "numpy text": {**FIRST, "w": np.str_("w1")},
    "text of a class": {**FIRST, "w": Text("w1")},
    "value of bytes": {**FIRST, "w": b"w1"},
    "damaged bytes": {**FIRST, "w": b"\xff"},
    "key of bytes": {b"w": "w1", "bias": 1, "in": {"n": "0"}},
    "both keys": {b"w": "w1", **FIRST},
    "key of a class": {Text("w"): "w1", "bias": 1, "in": {"n": "0"}},
    "numpy key": {np.str_("w"): "w1", "bias": 1, "in": {"n": "0"}},
    "number as key": {**FIRST, 3: "x"},
    "nothing as key": {**FIRST, None: "x"},
    "angry key": {"bias": 1, "in": {"n": "0"}, Angry(): "x"},
    "empty key": {**FIRST, "": "x"},
    "surrogate": {**FIRST, "w": "\ud800"},
    "key with a surrogate": {**FIRST, "\udcff": "x"},
    "null character": {**FIRST, "w": "w1\0"},
    "long text": {**FIRST, "w": "x" * 100_000},
    "default dict": defaultdict(str, FIRST),
    "ordered dict": OrderedDict(FIRST),
    "dict of other items": Strange(),
    "mapping": MappingProxyType(FIRST),
    "user's dict": UserDict(FIRST),
    "list of texts": {**FIRST, "in": ["n:0", "n:1"]},
    "set of texts": {**FIRST, "in": {"n:0", "n:1"}},
    "nested numbers": {**FIRST, "in": [1.0, 2.0]},
    "nested array": {**FIRST, "in": np.array([1.0, np.nan])},
    "nested nothing": {**FIRST, "in": {"n": None}},
    "nested bytes": {**FIRST, "in": {b"n": b"0"}},
    "nested in itself": endless(),
}


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "m"
    quick = {"C": 0.1, "max_iter": 3, "random_state": 0}
    labeler = SequenceLabeler(loss="log", **quick).fit(X, Y)
    labeler.save(path)
    return {
        "estimator": labeler,
        "predictor": structsvm.load(path, predictor=True),
        "segments": SequenceLabeler(segments=True, **quick).fit(X, Y),
        "hashed": SequenceLabeler(features=TokenFeatures(hash_bits=8), **quick).fit(X, Y),
        "bigrams": SequenceLabeler(features=TokenFeatures(bigrams="w"), **quick).fit(X, Y),
    }


def outcome(predict, given):
    """Return what a prediction returns or raises, and its warnings."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            found = list(map(list, predict(given)))
        except Exception as error:
            found = type(error), str(error)
    return found, [(warning.category, str(warning.message)) for warning in said]


def same(model, sequences):
    """The outcome of a list of lists, which is that of a tuple of tuples as well."""
    found = outcome(model.predict, sequences)
    assert found == outcome(model.predict, tuple(sequences))
    assert found == outcome(model.predict, [tuple(x) if type(x) is list else x for x in sequences])
    return found[0]


NAMES = ["estimator", "predictor", "segments", "hashed", "bigrams"]


@pytest.mark.parametrize("token", TOKENS.values(), ids=TOKENS)
@pytest.mark.parametrize("name", NAMES)
def test_any_token_at_any_place(models, name, token):
    for sequences in ([[token]], [[token, *X[1]]], [[*X[1], token]], [X[1], [token, *X[2]], [token]], [[], [token]]):
        same(models[name], sequences)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "sequences",
    [
        [],
        [[]],
        [[], []],
        [[], X[0], []],
        [X[0], None],
        [X[0], 3],
        [X[0], "text"],
        [X[0], {}],
        [X[0], [X[0]]],
        [X[0][0]],
    ],
    ids=["nothing", "empty", "two", "around", "none", "number", "text", "dict", "too deep", "no sequences"],
)
def test_any_sequences(models, name, sequences):
    same(models[name], sequences)


@pytest.mark.parametrize("name", NAMES)
def test_errors_name_the_token(models, name):
    kind, text = same(models[name], [X[1], [FIRST, {**FIRST, "bias": float("nan")}]])
    assert kind is ValueError and "sequence 1, token 1: feature 'bias'" in text
    kind, text = same(models[name], [X[1], [FIRST, 3]])
    assert kind is TypeError and "sequence 1, token 1" in text


@pytest.mark.parametrize("name", NAMES)
def test_many_tokens(models, name):
    tokens = [dict(token) for x in X * 200 for token in x][:10_000]
    (labels,) = same(models[name], [tokens])
    assert len(labels) == 10_000 and set(labels) <= set(models[name].classes_)
    kind, text = same(models[name], [[*tokens, {**FIRST, "w": 1j}]])
    assert kind is TypeError and "token 10000" in text


def test_one_by_one_is_all_at_once(models):
    for name, model in models.items():
        assert [model.predict([x])[0] for x in X] == model.predict(X), name
    assert models["predictor"].predict(X) == models["estimator"].predict(X)


@pytest.mark.parametrize("strange", [{"w": 2.0}, {"new": "x"}, {"bias": None}], ids=str)
def test_what_is_amiss_is_said_as_of_many(models, strange):
    """A column of few tokens is as of many, as warnings and errors say."""
    few = [[{**FIRST, **strange}] * 12]
    found = outcome(models["estimator"].predict, few)
    assert found == outcome(models["estimator"].predict, tuple(few))
    assert isinstance(found[0], tuple) or found[1]


def test_usual_calls_enter_no_function_per_token(models):
    """Python's own functions that a prediction enters are as many for 300 tokens as for 3."""

    def entered(model, x):
        n = 0

        def count(_frame, event, _arg):
            nonlocal n
            n += event == "call"

        model.predict([x])
        sys.setprofile(count)
        try:
            model.predict([x])
        finally:
            sys.setprofile(None)
        return n

    short, long = X[0][:3], [token for x in X for token in x][:300]
    for name in ("estimator", "predictor", "segments"):
        assert entered(models[name], short) == entered(models[name], long) < 90, name


def test_texts_of_phrases_are_remembered_rightly(models):
    phrases = models["segments"].model_.segments.phrases
    tokens = models["segments"].model_.encoder.transform(X)
    again = phrases.transform(X, tokens)
    np.testing.assert_array_equal(phrases.transform(X, tokens).indices, again.indices)
    for a, b in pairwise(again.indptr.tolist()):
        assert (np.diff(again.indices[a:b]) > 0).all()
