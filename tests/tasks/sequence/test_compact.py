"""Compact models: bytes, bits and scores as asked for, models like any other, and none that is trained further."""

import io

import numpy as np
import pytest
from forgeries import forgeries

import structsvm
from structsvm.datasets import make_sequences
from structsvm.features.columns import Columns
from structsvm.files.weight_rows import in_few_bits
from structsvm.metrics._chunks import chunk_counts
from structsvm.model_file import ModelFileError, read_model, write_model
from structsvm.stored_values import Matrix, Record, matrix_of
from structsvm.tasks import SequenceLabeler

X, Y = make_sequences(300, n_labels=5, n_words=400, mean_length=8.0, random_state=0)
X_NEW, Y_NEW = make_sequences(200, n_labels=5, n_words=400, mean_length=8.0, random_state=1)


def dicts(sequences):
    return [[{"w": token[0], "shape": str(len(token[0]))} for token in tokens] for tokens in sequences]


FORMS = {
    "columns": (Columns.from_sequences, {}),
    "dicts": (dicts, {}),
    "greedy": (Columns.from_sequences, {"inference": "greedy"}),
    "segments": (Columns.from_sequences, {"segments": True}),
    "hashed": (Columns.from_sequences, {"features": structsvm.tasks.TokenFeatures(hash_bits=12)}),
    "order 2": (Columns.from_sequences, {"order": 2}),
}


@pytest.fixture(scope="module", params=FORMS)
def fitted(request):
    given, params = FORMS[request.param]
    return SequenceLabeler(C=0.1, max_iter=4, random_state=0, **params).fit(given(X), Y), given


def file_of(model):
    stream = io.BytesIO()
    model.save(stream)
    return stream.getvalue()


@pytest.mark.parametrize("bits", [32, 16, 8])
def test_a_budget_is_kept_by_a_model_like_any_other(fitted, bits):
    model, given = fitted
    n = len(file_of(model))
    before = file_of(model), model.predict(given(X_NEW))
    small = model.compact(budget=int(0.6 * n), bits=bits, data=(given(X_NEW), Y_NEW))
    assert (file_of(model), model.predict(given(X_NEW))) == before
    data, report = file_of(small), small.compact_
    assert len(data) == report["bytes"] <= 0.6 * n
    assert report["bytes_before"] == n
    assert report["bits"] == bits
    assert report["score_before"] - 0.2 < report["score"] <= 1.0
    loaded = structsvm.load(data)
    assert loaded.compact_ == report
    assert loaded.predict(given(X_NEW)) == small.predict(given(X_NEW))
    np.testing.assert_array_equal(loaded.model_.weights, small.model_.weights)
    assert file_of(loaded) == data
    assert loaded.get_params(deep=False) == model.get_params(deep=False)
    if "hash_bits" not in repr(model):
        assert loaded.top_features(loaded.classes_[0], 3)
    if model.inference == "exact":
        assert loaded.explain(given(X_NEW)[:1][0]).margin > 0.0


def test_fewer_bytes_and_bits_are_fewer(fitted):
    model, _ = fitted
    sizes = [model.compact(bits=bits).compact_["bytes"] for bits in (32, 16, 8)]
    assert sizes[0] > sizes[1] > sizes[2]
    least = [model.compact(budget=int(share * sizes[0])).compact_["least_weight"] for share in (0.9, 0.7, 0.5)]
    assert least[0] <= least[1] <= least[2]
    assert sizes[0] <= len(file_of(model)) + 300  # the report
    assert least[0] < least[2]


def test_a_tolerance_is_kept_on_data():
    model = SequenceLabeler(C=0.1, max_iter=4, random_state=0).fit(Columns.from_sequences(X), Y)
    data, found = (Columns.from_sequences(X_NEW), Y_NEW), []
    for tolerance in (0.0, 0.01, 0.1):
        report = model.compact(tolerance=tolerance, data=data).compact_
        assert report["metric"] == "F1"
        assert report["score_before"] - report["score"] <= tolerance
        found.append(report["bytes"])
    assert found[0] >= found[1] > found[2]
    by_error = model.compact(data=data).compact_
    assert by_error["bytes"] < by_error["bytes_before"]
    with pytest.raises(ValueError, match=r"more than tolerance=0.0: give more bytes or bits"):
        model.compact(budget=12_000, tolerance=0.0, data=data)


def test_by_default_the_score_falls_by_chance_alone():
    model = SequenceLabeler(C=0.1, max_iter=4, random_state=0).fit(Columns.from_sequences(X), Y)
    tokens = Columns.from_sequences(X_NEW)
    counts = [chunk_counts(Y_NEW, one.predict(tokens)) for one in (model, model.compact())]
    np.testing.assert_array_equal(*counts)
    before = f1_and_others(counts[0])
    chosen = model.compact(data=(tokens, Y_NEW))
    alone = error_of(before[1:])
    smaller = model.compact(data=(tokens, Y_NEW), tolerance=alone)
    falls = []
    for small in (chosen, smaller):
        after = f1_and_others(chunk_counts(Y_NEW, small.predict(tokens)))
        assert small.compact_["score"] == pytest.approx(after[0])
        falls.append((before[0] - after[0], error_of(before[1:] - after[1:])))
    assert smaller.compact_["bytes"] < chosen.compact_["bytes"]
    assert falls[0][0] <= falls[0][1] < 0.6 * alone
    assert falls[1][1] < falls[1][0] <= alone


def f1_and_others(counts):
    """F1 of all sentences, then of all without each."""
    true, found, right = counts.sum(axis=1)[:, None] - np.hstack([np.zeros((3, 1)), counts])
    return 2.0 * right / (true + found)


def error_of(others):
    """The standard error of a score, by its jackknife."""
    return np.sqrt((len(others) - 1) * np.var(others))


def test_what_cannot_be_is_refused():
    model = SequenceLabeler(C=0.1, max_iter=2, random_state=0).fit(X, Y)
    for wrong, message in (
        ({"bits": 4}, "'bits' parameter of SequenceLabeler.compact must be 8 or 16 or 32"),
        ({"budget": 0}, "'budget' parameter of SequenceLabeler.compact must be an int"),
        ({"tolerance": -0.1}, "'tolerance' parameter of SequenceLabeler.compact must be a float"),
        ({"tolerance": 0.1}, r"give data=\(X, y\)"),
        ({"budget": 1000}, r"budget=1000 is less than what the smallest file takes, \d+ bytes"),
    ):
        with pytest.raises(ValueError, match=message):
            model.compact(**wrong)
    with pytest.raises(AttributeError, match="compact returned"):
        model.compact_  # noqa: B018
    small = model.compact(bits=8)
    for train in (small.partial_fit, small.set_params(warm_start=True).fit):
        with pytest.raises(ValueError, match="a compact model is not trained further"):
            train(X, Y)
    assert small.compact(bits=8).predict(X_NEW) == small.predict(X_NEW)
    assert small.compact(data=(X_NEW, Y_NEW)).compact_["bytes"] <= small.compact_["bytes"]
    assert not hasattr(small.set_params(warm_start=False).fit(X, Y), "compact_")


# ---- the form of files --------------------------------------------------------------------------

RECORD = Record({"weights": Matrix("n_rows", "n_columns", of=lambda matrix: (matrix, False))})


@pytest.mark.parametrize("bits", [8, 16])
def test_rows_of_few_bits_are_near_and_read_as_they_were(bits):
    rng = np.random.default_rng(0)
    matrix = rng.normal(size=(50, 8)).astype(np.float32) * np.float32(10.0) ** rng.integers(-30, 30, (50, 1)).astype(
        "f4"
    )
    matrix[rng.random(matrix.shape) < 0.7] = 0.0
    matrix[:3] = [[0.0], [1e-45], [3.4e38]]
    lengths = np.full(50, 8)
    rounded = in_few_bits(matrix.ravel(), lengths, bits).reshape(50, 8)
    assert rounded.dtype == np.float32
    np.testing.assert_array_equal(in_few_bits(rounded.ravel(), lengths, bits), rounded.ravel())
    error = np.abs(rounded - matrix).max(axis=1) / np.maximum(np.abs(matrix).max(axis=1), 1e-37)
    assert error[3:].max() <= 2.0 ** (1 - bits) * 1.02
    header, arrays = RECORD.write(rounded)
    assert arrays["weights.data"].dtype.itemsize == bits // 8
    stored = RECORD.read(header, arrays).arrays(n_rows=50, n_columns=8)
    np.testing.assert_array_equal(matrix_of(stored, "weights", matrix.shape), rounded)


def test_forged_rows_of_few_bits_are_refused(tmp_path):
    model = SequenceLabeler(C=0.1, max_iter=2, random_state=0).fit(X, Y).compact(bits=8)
    file, table = read_model(file_of(model)), Matrix("n_rows", "stride").table_of("weights")
    for name in ("weights.data", "weights.indices", "weights.counts", "weights.exponents"):
        array = file.arrays[name]
        wrong = [None, array.astype("<f8"), *forgeries(array, table[name])]
        for forgery in wrong if name != "weights.data" else wrong[:4]:
            arrays = {key: value for key, value in (file.arrays | {name: forgery}).items() if value is not None}
            write_model(tmp_path / "forged", file.kind, file.meta, arrays)
            with pytest.raises(ModelFileError, match=r"array 'weights(\.\w+)?' "):
                structsvm.load(tmp_path / "forged")
    report = file.meta["report"]
    for other in ([], {}, report | {"more": 1}, report | {"bits": "8"}, {**report, "metric": 1}):
        write_model(tmp_path / "forged", file.kind, file.meta | {"report": other}, file.arrays)
        with pytest.raises(ModelFileError, match="the report of a compact model"):
            structsvm.load(tmp_path / "forged")
