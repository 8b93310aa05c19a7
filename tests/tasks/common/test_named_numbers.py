"""Numbers among named features: in any units, of any size, the labels are those of plain features or better."""

import warnings

import numpy as np
import pytest

import structsvm
from structsvm import AdviceWarning
from structsvm.datasets import make_sequences
from structsvm.tasks import GraphLabeler, SequenceLabeler, TokenFeatures

WORDS, TAGS = make_sequences(90, n_labels=4, n_words=80, mean_length=8.0, random_state=0)
N = sum(map(len, TAGS))
TRAINED = 60


def with_numbers(of):
    """The words with more features: `of` a running number and a label."""
    k, made = 0, []
    for words, tags in zip(WORDS, TAGS, strict=True):
        made.append([])
        for word, tag in zip(words, tags, strict=True):
            made[-1].append({"w": str(word), **of(k, tag)})
            k += 1
    return made


def sequences(X, **params):
    return SequenceLabeler(C=1.0, loss="hamming", random_state=0, **params), X, TAGS


def hashed(X):
    return sequences(X, features=TokenFeatures(hash_bits=12))


def paths(X):
    return GraphLabeler(C=1.0, random_state=0), [(x, [(i, i + 1) for i in range(len(x) - 1)]) for x in X], TAGS


FORMS = {"sequences": sequences, "hashed": hashed, "paths": paths}
DRAWN = np.random.default_rng(0).normal(size=N)
NUMBERS = {
    "times": lambda k, tag: {"time": 1.7e9 + 1e7 * DRAWN[k]},
    "one outlier": lambda k, tag: {"x": 1e30 if k == 17 else DRAWN[k]},
    "tiny": lambda k, tag: {"x": 1e-20 * DRAWN[k]},
    "both": lambda k, tag: {"x": 1e12 * DRAWN[k], "y": 1e-12 * DRAWN[k]},
    "NumPy's": lambda k, tag: {"x": np.float32(1e9) * np.float32(DRAWN[k])},
    "integers": lambda k, tag: {"id": 10**15 + k},
    "nested": lambda k, tag: {"of": {"x": 1e9 * DRAWN[k]}},
}


def scored(form, of):
    model, X, y = FORMS[form](with_numbers(of))
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model.fit(X[:TRAINED], y[:TRAINED])
    right = np.concatenate(model.predict(X[TRAINED:])) == np.concatenate(y[TRAINED:])
    return float(np.mean(right)), [str(one.message) for one in said], model


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("of", NUMBERS)
def test_numbers_of_any_size_leave_the_rest(form, of):
    plain, _, _ = scored(form, lambda k, tag: {})
    assert scored(form, NUMBERS[of])[0] > plain - 0.05


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("unit", [1e-9, 1.0, 1e9])
def test_numbers_tell_what_they_tell_in_any_unit(form, unit):
    found, _, _ = scored(form, lambda k, tag: {"x": unit * (float(tag == TAGS[0][0]) + 0.1 * DRAWN[k])})
    other, _, _ = scored(form, lambda k, tag: {"x": float(tag == TAGS[0][0]) + 0.1 * DRAWN[k]})
    assert found == pytest.approx(other, abs=0.02)


@pytest.mark.parametrize(
    ("of", "name"), [("times", "'time'"), ("one outlier", "'x'"), ("both", "'x'"), ("integers", "'id'")]
)
@pytest.mark.parametrize("form", ["sequences", "paths"])
def test_large_numbers_are_named(form, of, name):
    _, said, _ = scored(form, NUMBERS[of])
    assert len(said) == 1 and name in said[0] and "'w" not in said[0]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", [list, tuple, np.array])
def test_lists_and_arrays_are_numbered_features(form, kind):
    labels = sorted({tag for tags in TAGS for tag in tags})

    def of(k, tag):
        return {"v": kind([float(tag == label) + 0.01 * DRAWN[k] for label in labels])}

    score, said, model = scored(form, of)
    assert score > 0.99 and not said
    if form == "sequences":
        assert {"v[0]", "v[3]"} <= {*model.feature_names_}


def test_numbers_are_as_columns_of_a_matrix():
    """Dicts of numbers alone give the scores of the same matrix."""
    rows = np.random.default_rng(1).normal(size=(40, 3, 4)) * [1e-3, 1.0, 1e3, 1e6] + [0.0, 1.0, 2.0, 3.0]
    y = [["a" if row[0] > 0.0 else "b" for row in part] for part in rows]
    named = [[{f"x{j}": value for j, value in enumerate(row)} for row in part.tolist()] for part in rows]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AdviceWarning)
        models = [SequenceLabeler(C=1.0, loss="hamming", random_state=0).fit(X, y) for X in (list(rows), named)]
    np.testing.assert_allclose(models[0].emission_, models[1].emission_, rtol=1e-5)
    assert models[0].predict(list(rows)) == models[1].predict(named)


def test_a_file_keeps_limits(tmp_path):
    _, _, model = scored("sequences", NUMBERS["one outlier"])
    model.save(tmp_path / "model")
    other, X = structsvm.load(tmp_path / "model"), with_numbers(NUMBERS["one outlier"])
    assert other.predict(X) == model.predict(X)
    far = [[{"w": "w1", "x": value}] for value in (4.0, 1e20, 1e38)]
    scores = [float(table.max()) for table in other.decision_function(far[1:])]
    assert scores[0] == scores[1] and other.predict(far) == model.predict(far)
    np.testing.assert_array_equal(other.model_.units.limits, model.model_.units.limits)


def test_plain_features_have_no_units():
    X = [[{"w": "a", "is_title": True, "n": 1, "of": ["x", "x"]}, {"w": "b", "is_title": False}]] * 3
    assert SequenceLabeler(C=1.0, random_state=0).fit(X, [["p", "q"]] * 3).model_.units is None
