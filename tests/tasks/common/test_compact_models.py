"""Compact models of all estimators: smaller files, models like any other, and none that is trained further."""

import io
import tracemalloc

import numpy as np
import pytest
from cases import CASES
from forgeries import forgeries
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer

import structsvm
from structsvm.datasets import make_dependency_trees, make_products, make_treebank
from structsvm.files.weight_rows import RaggedRows, blocks, in_few_bits, rows_from
from structsvm.model_file import ModelFileError, read_model, write_model
from structsvm.stored_values import Record
from structsvm.tasks import (
    AmbiguousClassifier,
    DependencyParser,
    GrammarParser,
    MultilabelClassifier,
    SequenceLabeler,
    TaxonomyClassifier,
)
from structsvm.tasks.common.selection.compaction import report_from

pytestmark = pytest.mark.filterwarnings("ignore::structsvm.ConvergenceWarning")  # passes are few
each = pytest.mark.parametrize("case", CASES.values(), ids=CASES)
WITH = ("SequenceLabeler", "TaxonomyClassifier", "AmbiguousClassifier", "DependencyParser", "GrammarParser")
WITH += ("MultilabelClassifier",)

TITLES, CATEGORIES, TAXONOMY = make_products(600, random_state=0)
SENTENCES = make_dependency_trees(120, max_length=9, crossing=0.1, random_state=0)
TREES = make_treebank(60, max_length=9, random_state=0)
TREES += TREES[:20]  # without words that the grammar does not know
RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(400, 200)) * 10.0 ** RNG.integers(-3, 4, 200)
CLASSES = np.array(list("abc"))[np.abs(RNG.normal(size=(400, 3)) + 2.0 * np.sign(ROWS[:, :3])).argmax(axis=1)]
BAGS = [{label, "abc"[i % 3]} for i, label in enumerate(CLASSES)]
SETS = [{label} | ({"d"} if row[4] > 0.0 else set()) for label, row in zip(CLASSES, ROWS, strict=True)]


def of_texts(**params):
    model = TaxonomyClassifier(TAXONOMY, vectorizer=TfidfVectorizer(), C=1.0, random_state=0, **params)
    return model, np.array(TITLES, dtype=object), CATEGORIES


LARGE = {
    "texts": of_texts(),
    "lists of weights": of_texts(max_weights=3000),
    "without an intercept": of_texts(fit_intercept=False, max_weights=3000),
    "candidates": (AmbiguousClassifier(C=0.1, random_state=0), ROWS, BAGS),
    "sets of labels": (MultilabelClassifier(C=0.1, random_state=0), ROWS, SETS),
    "trees": (DependencyParser(C=0.1, max_iter=4, random_state=0), SENTENCES, [tree.arcs for tree in SENTENCES]),
    "grammar": (GrammarParser(C=0.1, max_iter=4, random_state=0), TREES, None),
}


def part(data, start, stop):
    return None if data is None else data[start:stop]


def file_of(model):
    stream = io.BytesIO()
    model.save(stream, training_state=False)
    return stream.getvalue()


@pytest.fixture(scope="module", params=LARGE)
def fitted(request):
    model, X, y = LARGE[request.param]
    n = 3 * len(X) // 4
    y_new = X[n:] if y is None else y[n:]
    questions = [tree.tokens() for tree in X[n:]] if request.param == "grammar" else X[n:]
    return model.fit(part(X, 0, n), part(y, 0, n)), (questions, y_new), questions


def test_each_size_is_scored_once(monkeypatch):
    labeler = SequenceLabeler(C=0.1, max_iter=4, random_state=0).fit([["a", "b"], ["b", "c"]] * 9, [["A", "B"]] * 18)
    score, scored = type(labeler.model_).output_scores, []

    def counted(model, examples):
        scored.append(None if model.report is None else model.report["least_weight"])
        return score(model, examples)

    monkeypatch.setattr(type(labeler.model_), "output_scores", counted)
    chosen = labeler.compact(data=([["a", "b"]] * 3 + [["b", "a"]], [["A", "B"]] * 4)).compact_["least_weight"]
    assert len(scored) == len({*scored}) > 3
    assert scored[0] is None and chosen in scored


@pytest.mark.parametrize("bits", [32, 16, 8])
def test_a_compact_model_is_smaller_and_like_any_other(fitted, bits):
    model, data, questions = fitted
    before = file_of(model), repr([*model.predict(questions)])
    small = model.compact(bits=bits, data=data)
    assert (file_of(model), repr([*model.predict(questions)])) == before
    found, report = file_of(small), small.compact_
    assert len(found) == report["bytes"] < report["bytes_before"] == len(before[0])
    assert report["bits"] == bits
    assert report["least_weight"] > 0.0
    assert report["metric"] in ("accuracy", "share in candidates", "F1", "LAS", "Hamming loss")
    assert 0.0 <= report["score"] <= 1.0
    loaded = structsvm.load(found)
    assert loaded.compact_ == report
    assert repr([*loaded.predict(questions)]) == repr([*small.predict(questions)])
    np.testing.assert_array_equal(loaded.model_.weights, small.model_.weights)
    assert file_of(loaded) == found
    assert repr(loaded.get_params(deep=False)) == repr(model.get_params(deep=False))
    assert np.count_nonzero(small.model_.weights) < np.count_nonzero(model.model_.weights)


def test_fewer_bits_make_smaller_files(fitted):
    model, _, _ = fitted
    sizes = [model.compact(bits=bits).compact_["bytes"] for bits in (32, 16, 8)]
    assert sizes[0] > sizes[1] > sizes[2]


def test_a_budget_and_a_tolerance_are_kept(fitted):
    model, data, _ = fitted
    least, most = model.compact(bits=8, tolerance=1.0, data=data).compact_, model.compact(bits=8).compact_
    budget = (least["bytes"] + most["bytes"]) // 2
    report = model.compact(bits=8, budget=budget, data=data).compact_
    assert least["bytes"] <= report["bytes"] <= budget
    kept = model.compact(bits=32, tolerance=0.0, data=data).compact_
    fall = kept["score_before"] - kept["score"]
    assert (-fall if kept["metric"].endswith(("loss", "error")) else fall) <= 0.0
    with pytest.raises(ValueError, match=r"budget=300 is less than what the smallest file takes, \d+ bytes"):
        model.compact(budget=300)


@each
def test_estimators_without_compact_models_say_so(case):
    model = case.make(**case.passes(1))
    with pytest.raises(NotFittedError):
        model.compact()
    case.train(model)
    if type(model).__name__ not in WITH or model.model_.weight_rows() is None:
        with pytest.raises(TypeError, match=f"{type(model).__name__} has no compact models"):
            model.compact(bits=8)
        return
    small = model.compact(bits=8)
    assert small.compact_["bytes"] <= small.compact_["bytes_before"] + 600  # the report, and names of arrays
    assert len(case.predicted(small))
    methods = [small.partial_fit] * hasattr(small, "partial_fit")
    for train in (*methods, small.set_params(warm_start=True).fit):
        with pytest.raises(ValueError, match="a compact model is not trained further"):
            train(case.X, case.y, **case.about(len(case.X)))
    assert not hasattr(case.train(small.set_params(warm_start=False)), "compact_")


def test_a_model_that_fits_is_not_pruned(fitted):
    model, _, _ = fitted
    whole = model.compact()
    size = max(whole.compact_["bytes"], whole.compact_["bytes_before"])
    small = model.compact(budget=size)
    assert small.compact_["least_weight"] == 0.0
    np.testing.assert_array_equal(small.model_.weights, whole.model_.weights)
    if whole.compact_["bytes"] > whole.compact_["bytes_before"]:
        with pytest.raises(ValueError, match=r"budget=\d+ holds the file of \d+ bytes as it is"):
            model.compact(budget=whole.compact_["bytes_before"])


def test_a_dense_model_grows_by_its_report_alone(fitted):
    model, _, _ = fitted
    dense = model.model_.copy()
    dense.weights = np.linspace(1.0, 2.0, dense.weights.size, dtype=dense.weights.dtype)
    report = type(model)._loaded("", dense).compact().compact_
    assert report["bytes"] <= report["bytes_before"] + 600


def test_data_that_say_nothing_are_refused(fitted):
    model, (X, y), _ = fitted
    for wrong, got in (((X,), "1 of them"), ((X, y, y), "3 of them"), (7, "int")):
        with pytest.raises(ValueError, match=rf"data must be two things, \(X, y\); got {got}"):
            model.compact(data=wrong)
    if isinstance(model, AmbiguousClassifier):
        with pytest.raises(ValueError, match="data tells nothing about the share in candidates"):
            model.compact(data=(X[:3], [set("abc")] * 3))


def test_data_without_a_chunk_are_refused():
    X, y = [["a", "b"], ["b", "a"]] * 20, [["B-X", "O"], ["O", "B-X"]] * 20
    model = SequenceLabeler(C=1.0, random_state=0).fit(X, y)
    for tokens, message in ((["b"], "data tells nothing about the F1"), (["a"], "the F1 of data is 0 before any")):
        with pytest.raises(ValueError, match=message):
            model.compact(data=([tokens] * 3, [["O"]] * 3))
    assert model.compact(data=(X, y)).compact_["score"] > 0.5


def test_refusals_name_the_kernel():
    model = CASES["kernel taxonomy"].trained
    with pytest.raises(TypeError, match=f"has no compact models with kernel={model.kernel!r:.20}"):
        model.compact()


def test_data_of_which_nothing_is_known_are_refused(fitted):
    model, (X, _), _ = fitted
    if isinstance(model, TaxonomyClassifier):
        with pytest.raises(ValueError, match="data has no example whose output is known"):
            model.compact(data=(X[:2], [None, None]))


# ---- the form of files --------------------------------------------------------------------------

RECORD = Record({"weights": RaggedRows(("n",), of=lambda value: value)})
LENGTHS = np.array([0, 3, 1, 0, 700, 8, 0])


def some_weights():
    vector = (RNG.normal(size=int(LENGTHS.sum())) * 10.0 ** RNG.integers(-9, 9, int(LENGTHS.sum()))).astype("f4")
    vector[RNG.random(len(vector)) < 0.7] = 0.0
    vector[3] = 0.0
    return vector


@pytest.mark.parametrize("bits", [8, 16, 32])
def test_rows_are_read_as_they_were_written(bits):
    rounded = in_few_bits(some_weights(), LENGTHS, bits)
    np.testing.assert_array_equal(in_few_bits(rounded, LENGTHS, bits), rounded)
    header, arrays = RECORD.write((rounded, LENGTHS))
    assert arrays["weights.data"].dtype.itemsize == bits // 8
    found = rows_from(RECORD.read(header, arrays).arrays(), "weights", len(LENGTHS), lambda: LENGTHS)
    np.testing.assert_array_equal(found, rounded)
    assert found.dtype == np.float32
    whole = RECORD.write((rounded, None))[1]
    assert [*whole] == ["weights"]
    stored = RECORD.read({}, whole).arrays(n=len(rounded))
    np.testing.assert_array_equal(rows_from(stored, "weights", len(LENGTHS), lambda: LENGTHS), rounded)


@pytest.mark.parametrize("bits", [8, 16, 32])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("zeros", [0.0, 0.1, 0.4, 0.9, 1.0])
def test_files_have_the_form_of_fewest_bytes(bits, dtype, zeros):
    rng = np.random.default_rng(0)
    vector = (rng.normal(size=int(LENGTHS.sum())) * (rng.random(int(LENGTHS.sum())) >= zeros)).astype(dtype)
    rounded, n = in_few_bits(vector, LENGTHS, bits), len(vector)
    record = Record({"weights": RaggedRows(("n",), dtype=dtype, of=lambda value: value)})
    header, arrays = record.write((rounded, LENGTHS))
    found = rows_from(record.read(header, arrays).arrays(n=n), "weights", len(LENGTHS), lambda: LENGTHS)
    np.testing.assert_array_equal(found, rounded)
    size, n_some = sum(array.nbytes for array in arrays.values()), np.count_nonzero(rounded)
    around = 3 * len(LENGTHS)  # counts and units
    assert size <= min(n * np.dtype(dtype).itemsize, n * bits // 8 + around, n_some * (bits // 8 + 2) + around)
    if zeros == 0.0:
        assert [*arrays] == ["weights"] if bits == 32 and dtype == "f4" else "weights.places" not in arrays


def test_values_near_the_largest_of_float32_stay_finite():
    vector = np.array([3.4e38, -3.4e38, 1.0], dtype="f4")
    for bits, error in ((8, 0.01), (16, 1e-4)):
        rounded = in_few_bits(vector, np.array([3]), bits)
        np.testing.assert_allclose(rounded[:2], vector[:2], rtol=error)


def test_lengths_of_blocks_add_up():
    for n in (1, 255, 256, 257, 1000):
        assert blocks(n).sum() == n
        assert (blocks(n)[:-1] == 256).all()
    assert len(blocks(0)) == 0


def test_forged_rows_are_refused(fitted, tmp_path):
    file = read_model(file_of(fitted[0].compact(bits=8)))
    table = RaggedRows(("n",)).table_of("weights")
    for name in ("weights.data", "weights.places", "weights.counts", "weights.exponents"):
        array = file.arrays.get(name)
        if array is None:
            assert name == "weights.places"  # rows have all of their entries
            continue
        wrong = [None, array.astype("<f8"), array[:-1], *forgeries(array, table[name])]
        for forgery in wrong if name != "weights.data" else wrong[:3]:
            arrays = {key: value for key, value in (file.arrays | {name: forgery}).items() if value is not None}
            write_model(tmp_path / "forged", file.kind, file.meta, arrays)
            with pytest.raises(ModelFileError, match=r"array 'weights(\.\w+)?' "):
                structsvm.load(tmp_path / "forged")
    if "weights.places" not in file.arrays:
        return
    for change in (lambda places: places[::-1], lambda places: np.full_like(places, 0)):
        arrays = file.arrays | {"weights.places": change(file.arrays["weights.places"])}
        write_model(tmp_path / "forged", file.kind, file.meta, arrays)
        with pytest.raises(ModelFileError, match=r"'weights\.places' must ascend within rows, below their lengths"):
            structsvm.load(tmp_path / "forged")


@pytest.mark.parametrize("name", ["candidates", "sets of labels"])
@pytest.mark.parametrize("is_compact", [False, True])
def test_headers_that_claim_many_columns_take_no_memory(name, is_compact, tmp_path):
    model, X, y = LARGE[name]
    model.fit(X, y)
    file = read_model(file_of(model.compact() if is_compact else model))
    write_model(tmp_path / "forged", file.kind, file.meta | {"n_features_in": 2**24}, file.arrays)
    tracemalloc.start()
    try:
        with pytest.raises(ModelFileError, match=r"array 'weights(\.counts)?' "):
            structsvm.load(tmp_path / "forged")
        assert tracemalloc.get_traced_memory()[1] < 4e6
    finally:
        tracemalloc.stop()


def test_weights_of_a_map_are_shared(fitted, tmp_path):
    model, _, questions = fitted
    model.save(tmp_path / "m", training_state=False)
    loaded = structsvm.load(tmp_path / "m", mmap=True)
    assert not loaded.model_.weights.flags.owndata
    assert not loaded.model_.weights.flags.writeable
    assert repr([*loaded.predict(questions)]) == repr([*model.predict(questions)])


@pytest.mark.parametrize(
    "wrong",
    [
        {"bytes": -1},
        {"bytes": 1.5},
        {"bytes_before": True},
        {"bits": 12},
        {"bits": 8.0},
        {"least_weight": -1.0},
        {"score": "0.5"},
        {"metric": 1},
        {"other": 1},
    ],
    ids=repr,
)
def test_reports_out_of_range_are_refused(wrong):
    report = {"bytes": 10, "bytes_before": 20, "bits": 8, "least_weight": 0.0, "metric": "F1", "score": 0.5}
    assert report_from(report) == report
    with pytest.raises(ValueError, match=f"the report of a compact model with '{next(iter(wrong))}'"):
        report_from(report | wrong)


def test_a_report_on_a_model_that_is_never_compact_is_refused(tmp_path):
    model, small = CASES["kernel taxonomy"].trained, LARGE["candidates"][0].fit(ROWS, BAGS).compact(bits=8)
    file = read_model(file_of(model))
    write_model(tmp_path / "forged", file.kind, file.meta | {"report": small.compact_}, file.arrays)
    with pytest.raises(ModelFileError, match="the report of a compact model, which models of this kind are not"):
        structsvm.load(tmp_path / "forged")
