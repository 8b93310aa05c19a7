"""Rows of numbers: columns in any units, an intercept, files."""

import warnings

import numpy as np
import pytest
from scipy.sparse import csr_array

import structsvm
from structsvm.features.encoder import FeatureEncoder
from structsvm.features.inputs.outliers import table
from structsvm.tasks import SequenceLabeler, TokenFeatures
from structsvm.tasks.common.units import Units
from structsvm.tasks.sequence.model import SequenceModel

rng = np.random.default_rng(0)
MEANS = rng.normal(size=(3, 6))
Y = [rng.integers(0, 3, n).tolist() for n in rng.integers(1, 9, 60)]
FILLED = [(MEANS[labels] + 0.6 * rng.normal(size=(len(labels), 6))).astype(np.float32) for labels in Y]
SPARSE = [rows * (rng.random(rows.shape) < 0.2) for rows in FILLED]
UNITS = 2.0 ** np.array([-10, 0, 14, 2, -3, 6])  # powers of two change no digit


def fitted(X, **params):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return SequenceLabeler(**{"C": 1.0, "random_state": 0} | params).fit(X, Y)


@pytest.mark.parametrize("inference", ["exact", "greedy"])
@pytest.mark.parametrize("X", [FILLED, SPARSE], ids=["filled", "sparse"])
def test_units_make_no_difference(X, inference):
    one, other = fitted(X, inference=inference), fitted([rows * UNITS for rows in X], inference=inference)
    assert one.predict(X) == other.predict([rows * UNITS for rows in X])
    np.testing.assert_array_equal(one.emission_, other.emission_ * UNITS[:, None].astype(np.float32))
    assert one.emission_.shape == (6, 3) and one.n_features_in_ == len(one.feature_names_) == 6
    if X is FILLED:
        moved = fitted([rows + 100.0 for rows in X], inference=inference)
        assert abs(moved.score([rows + 100.0 for rows in X], Y) - one.score(X, Y)) < 0.02


@pytest.mark.parametrize("X", [FILLED, SPARSE], ids=["filled", "sparse"])
def test_weights_are_of_the_columns_as_they_came(X):
    model = fitted(X)
    rows, encoded = X[5], model.model_.encode(X[5:6])
    scores = table(encoded) @ model.model_.rows(0, encoded.n_features)
    np.testing.assert_allclose(rows @ model.emission_ + model.intercept_, scores, rtol=1e-4, atol=1e-4)
    matrices = [csr_array(rows) for rows in X]
    assert fitted(matrices).predict(matrices) == model.predict(X)


def test_what_columns_are_divided_by():
    rows = np.array([[1.0, 5.0, 0.0], [3.0, 5.0, 2.0]], np.float32)
    tokens = FeatureEncoder().fit_transform([rows])
    units = Units.of_tokens(tokens)
    np.testing.assert_allclose(units.centre, [2.0, 5.0, 1.0])
    np.testing.assert_allclose(units.scale, np.sqrt(2.0) * np.ones(3))  # two columns vary, by 1; the other counts as 1
    new = units.applied(tokens)
    np.testing.assert_allclose(
        table(new), [[-(0.5**0.5), 0.0, -(0.5**0.5), 1.0], [0.5**0.5, 0.0, 0.5**0.5, 1.0]], rtol=1e-6
    )
    tokens = FeatureEncoder().fit_transform([np.diag([3.0, 4.0, 0.0, 0.0, 0.0]).astype(np.float32)])
    units = Units.of_tokens(tokens)
    assert units.centre is None
    length = np.sqrt(2 / 5)  # two of five rows are not zero
    np.testing.assert_allclose(units.scale, length * np.array([3.0, 4.0, 1.0, 1.0, 1.0]), rtol=1e-6)
    new = units.applied(tokens)
    assert new.indices.tolist() == [0, 5, 1, 5, 5, 5, 5]
    np.testing.assert_allclose(new.values, [1 / length, 1.0, 1 / length, 1.0, 1.0, 1.0, 1.0])
    tokens = FeatureEncoder().fit_transform([csr_array(([2.0, 4.0, 1.0], ([0, 1, 1], [7, 7, 90])), shape=(2, 100))])
    units = Units.of_tokens(tokens)  # attributes: the size of each alone
    assert units.scale[[7, 90, 0]].tolist() == [np.float32(np.sqrt(10.0)), 1.0, 1.0]


def test_files(tmp_path):
    for X in (FILLED, SPARSE):
        model = fitted(X, warm_start=True, max_iter=3)
        model.save(tmp_path / "m")
        loaded = structsvm.load(tmp_path / "m")
        assert loaded.predict(X) == model.predict(X)
        np.testing.assert_array_equal(loaded.emission_, model.emission_)
        np.testing.assert_array_equal(loaded.intercept_, model.intercept_)
        assert (loaded.fit(X, Y).model_.weights == model.fit(X, Y).model_.weights).all()


def test_streams_keep_the_units_of_their_first_batch():
    stream = SequenceLabeler(C=1.0, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        stream.partial_fit(FILLED[:20], Y[:20], classes=[0, 1, 2])
        scale = stream.model_.units.scale.copy()
        stream.partial_fit(FILLED[20:40], Y[20:40])
    assert (stream.model_.units.scale == scale).all()
    assert stream.score(FILLED[40:], Y[40:]) > 0.5


@pytest.mark.parametrize(
    "params", [{}, {"inference": "greedy"}, {"constraints": (None, np.array([True, False, True]), None)}]
)
def test_filled_rows_are_multiplied_as_matrices(params, monkeypatch):
    model = fitted(FILLED, broken="predict", **params)
    X = [*FILLED, np.empty((0, 6), np.float32)]
    expected = model.model_.split(model.model_.predict_tokens(model.model_.encode(X)), model.model_.encode(X).offsets)
    monkeypatch.setattr(SequenceModel, "encode", lambda *_: pytest.fail("rows are encoded"))
    assert model.predict(X) == model.predict([rows.astype(float) for rows in X]) == expected
    assert model.predict(np.concatenate(X), lengths=[len(rows) for rows in X]) == expected
    assert model.predict([]) == []
    monkeypatch.undo()
    assert model.predict([rows.tolist() and list(rows) for rows in FILLED]) == expected[:-1]
    with pytest.raises(ValueError, match="sequence 1, token 0"):
        model.predict([FILLED[0], np.full((1, 6), np.nan, np.float32)])
    chain = model.model_.oracle.chain(model.model_.encode(FILLED))
    with pytest.raises(ValueError, match="scores have shape"):
        chain.decode(model.model_.weights, scores=np.zeros((1, 8), np.float32))


BIGRAMS = {
    "filled": (FILLED, "3", [rows * UNITS for rows in FILLED]),
    "sparse": (SPARSE, "3", [rows * UNITS for rows in SPARSE]),
    "named": tuple(
        [
            [
                [{"w": str(label), "age": unit * float(row[0])} for label, row in zip(rows[:, 1] > 0.0, rows)]
                for rows in FILLED
            ]
            if unit
            else "age"
            for unit in (1.0, None, 2.0**20)
        ]
    ),
}


@pytest.mark.parametrize("params", [{}, {"order": 2}, {"inference": "greedy"}, {"inference": "greedy", "order": 0}])
@pytest.mark.parametrize("form", BIGRAMS)
def test_bigrams_are_in_the_units_of_their_features(form, params, tmp_path):
    """Whatever the units; weights of pairs of labels are of the numbers as they came."""
    X, name, others = BIGRAMS[form]
    one, other = (fitted(data, features=TokenFeatures(bigrams=name), **params) for data in (X, others))
    assert one.predict(X) == other.predict(others)
    assert other.bigram_names_ == [name]
    factor = 2.0**20 if form == "named" else UNITS[3]
    np.testing.assert_allclose(one.bigram_, other.bigram_ * factor, rtol=1e-6)
    np.testing.assert_allclose(one.transition_, other.transition_, rtol=1e-6)
    other.save(tmp_path / "m")
    loaded = structsvm.load(tmp_path / "m")
    assert loaded.predict(others) == other.predict(others)
    np.testing.assert_array_equal(loaded.bigram_, other.bigram_)


@pytest.mark.parametrize("X", [FILLED, SPARSE], ids=["filled", "sparse"])
def test_scores_of_pairs_by_hand(X):
    """The sums of two neighbours' labels, in units and as the columns came: the same, up to rounding."""
    far = [rows + np.float32(50.0) * (rows != 0.0) for rows in X]
    model = fitted(far, features=TokenFeatures(bigrams=["1", "3"]))
    i = max(range(len(far)), key=lambda i: len(far[i]))
    encoded, rows = model.model_.encode(far[i : i + 1]), far[i]
    for labels in (np.zeros(len(rows), int), np.arange(len(rows)) % 3):
        found = model.model_.weights.astype(float) @ model.model_.oracle.joint_feature(encoded, labels)
        wanted = sum((rows @ model.emission_.astype(float) + model.intercept_)[np.arange(len(rows)), labels])
        for t in range(1, len(rows)):
            before, own = labels[t - 1], labels[t]
            wanted += model.transition_[before, own] + rows[t, [1, 3]] @ model.bigram_[:, before, own]
        start = model.model_.oracle.n_token_features + 3
        wanted += model.model_.rows(start, 1)[0, labels[0]]
        assert found == pytest.approx(wanted, abs=1e-2)


@pytest.mark.parametrize("params", [{"loss": "hamming"}, {"loss": "log"}, {"inference": "greedy"}])
@pytest.mark.parametrize("value", [1.7e9, 1e30], ids=["times", "one"])
def test_large_bigrams_leave_the_rest(value, params):
    """UNIX times of all tokens, or one huge value, that count for pairs of labels as well."""
    drawn = np.random.default_rng(1)
    labels = [drawn.integers(0, 3, n) for n in drawn.integers(3, 9, 60)]
    scale, centre = (1e7, 1.7e9) if value < 1e30 else (1.0, 0.0)
    X = [[{"w": str(label), "age": centre + scale * drawn.normal()} for label in part] for part in labels]
    if value == 1e30:
        X[7][1]["age"] = value
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = SequenceLabeler(C=1.0, features=TokenFeatures(bigrams="age"), random_state=0, **params)
        assert model.fit(X[:40], labels[:40]).score(X[40:], labels[40:]) > 0.98
