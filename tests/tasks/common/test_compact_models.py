"""Compact models of all estimators: smaller files, models like any other, and none that is trained further."""

import io

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
    TaxonomyClassifier,
)

pytestmark = pytest.mark.filterwarnings("ignore::structsvm.ConvergenceWarning")  # passes are few
each = pytest.mark.parametrize("case", CASES.values(), ids=CASES)
WITH = ("SequenceLabeler", "TaxonomyClassifier", "AmbiguousClassifier", "DependencyParser", "GrammarParser")
WITH += ("MultilabelClassifier",)

TITLES, CATEGORIES, TAXONOMY = make_products(600, random_state=0)
SENTENCES = make_dependency_trees(120, max_length=9, crossing=0.1, random_state=0)
TREES = make_treebank(60, max_length=9, random_state=0)
TREES += TREES[:20]  # without words that the grammar does not know
RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(400, 60)) * 10.0 ** RNG.integers(-3, 4, 60)
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
    found = rows_from(RECORD.read(header, arrays).arrays(), "weights", LENGTHS)
    np.testing.assert_array_equal(found, rounded)
    assert found.dtype == np.float32
    whole = RECORD.write((rounded, None))[1]
    assert [*whole] == ["weights"]
    assert rows_from(RECORD.read({}, whole).arrays(n=len(rounded)), "weights", LENGTHS) is not None


def test_lengths_of_blocks_add_up():
    for n in (1, 255, 256, 257, 1000):
        assert blocks(n).sum() == n
        assert (blocks(n)[:-1] == 256).all()
    assert len(blocks(0)) == 0


def test_forged_rows_are_refused(fitted, tmp_path):
    file = read_model(file_of(fitted[0].compact(bits=8)))
    table = RaggedRows(("n",)).table_of("weights")
    for name in ("weights.data", "weights.places", "weights.counts", "weights.exponents"):
        array = file.arrays[name]
        wrong = [None, array.astype("<f8"), array[:-1], *forgeries(array, table[name])]
        for forgery in wrong if name != "weights.data" else wrong[:3]:
            arrays = {key: value for key, value in (file.arrays | {name: forgery}).items() if value is not None}
            write_model(tmp_path / "forged", file.kind, file.meta, arrays)
            with pytest.raises(ModelFileError, match=r"array 'weights(\.\w+)?' "):
                structsvm.load(tmp_path / "forged")
    for change in (lambda places: places[::-1], lambda places: np.full_like(places, 0)):
        arrays = file.arrays | {"weights.places": change(file.arrays["weights.places"])}
        write_model(tmp_path / "forged", file.kind, file.meta, arrays)
        with pytest.raises(ModelFileError, match=r"'weights\.places' must ascend within rows, below their lengths"):
            structsvm.load(tmp_path / "forged")


def test_a_report_on_a_model_that_is_never_compact_is_refused(tmp_path):
    model, small = CASES["kernel taxonomy"].fit(), LARGE["candidates"][0].fit(ROWS, BAGS).compact(bits=8)
    file = read_model(file_of(model))
    write_model(tmp_path / "forged", file.kind, file.meta | {"report": small.compact_}, file.arrays)
    with pytest.raises(ModelFileError, match="the report of a compact model, which models of this kind are not"):
        structsvm.load(tmp_path / "forged")
