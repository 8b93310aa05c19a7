"""The runtime of classifiers learnt from candidates in C and in JavaScript against Python: of texts, of rows."""

import copy
import json
import subprocess
import tempfile
import warnings
from pathlib import Path

import candidate_models
import numpy as np
import pytest
import runtime_models
from candidate_models import ROWS, TEXTS, export, fitted, rows, texts
from runtime_models import COMPILER
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfTransformer
from sklearn.pipeline import make_pipeline

from structsvm.tasks import AmbiguousClassifier

pytestmark = pytest.mark.skipif(COMPILER is None, reason="needs a C compiler")


def bytes_of(name):
    with tempfile.TemporaryDirectory() as folder:
        export(name, folder)
        return (Path(folder) / "model.bin").read_bytes()


def scores_of(name):
    """The documents, as the runtime takes them, and Python's scores."""
    given = texts() if name in TEXTS else rows(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scores = fitted(name).decision_function(given)
    return given if name in TEXTS else np.asarray(given.toarray() if hasattr(given, "toarray") else given), scores


@pytest.mark.parametrize("name", [*TEXTS, "sparse", "sparse with large columns"])
def test_scores_of_texts_and_sparse_rows_are_those_of_python(runtime, name):
    given, scores = scores_of(name)
    classes, order = fitted(name).classes_, np.argsort(-scores, axis=1, kind="stable")
    model = runtime.load(bytes_of(name))
    assert model.predict(given) == classes[order[:, 0]].tolist()
    for k in (1, 4, 99):
        assert [model.kbest(one, k) for one in given] == [
            list(zip(classes[best].tolist(), own[best].tolist(), strict=True))
            for own, best in zip(scores, order[:, :k], strict=True)
        ]
    assert len(np.unique(scores)) > 100
    assert len(set(model.predict(given))) > 3


@pytest.mark.parametrize("name", ["dense", "dense with outliers", "dense as they are"])
def test_scores_of_dense_rows_are_those_of_python_but_for_rounding(runtime, name):
    given, scores = scores_of(name)
    model, size = runtime.load(bytes_of(name)), np.abs(scores).max()
    for row, own in zip(given, scores, strict=True):
        found = dict(model.kbest(row, len(own)))
        assert [found[label] for label in model.labels] == pytest.approx(own.tolist(), abs=1e-11 * size)
    assert model.predict(given) == fitted(name).predict(given).tolist()
    assert model.n_numbers == 9


@pytest.mark.parametrize("name", [*TEXTS, *ROWS])
def test_probabilities_are_those_of_python(runtime, name):
    given, _ = scores_of(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wanted = fitted(name).predict_proba(given)
    np.testing.assert_allclose(runtime.load(bytes_of(name)).probability(given), wanted, atol=1e-6)


def test_the_models_have_what_they_are_tried_for():
    units = {name: fitted(name).model_.units for name in ROWS}
    assert units["dense"].centre is not None
    assert units["dense with outliers"].limits is not None
    assert units["dense as they are"] is None
    assert units["sparse with large columns"].centre is None
    assert units["sparse with large columns"].limits is not None
    assert (units["sparse with large columns"].scale != 1.0).any()


def test_weights_of_few_bits_take_fewer_bytes(runtime):
    """Weights that float32, or fewer bits, hold are stored so, and scores are the same as of float64."""
    model = candidate_models.AmbiguousClassifier(C=1.0, max_iter=2, random_state=0, loss="pairwise")
    X, bags = rows("sparse"), candidate_models.bags_of(candidate_models.labels_of(300))
    model.fit(X, bags)
    sizes = []
    for unit in (None, 2.0**-20, 2.0**-6):
        if unit is not None:
            model.model_.weights = np.round(model.model_.weights / unit) * unit
        with tempfile.TemporaryDirectory() as folder:
            model.export(folder)
            data = (Path(folder) / "model.bin").read_bytes()
        sizes.append(len(data))
        found = runtime.load(data)
        for row, own in zip(X.toarray()[:50], model.decision_function(X[:50]), strict=True):
            assert [dict(found.kbest(row, 6))[label] for label in found.labels] == own.tolist()
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[2] < sizes[0] / 2


# ---- what is refused ----------------------------------------------------------------------------


def test_damaged_files_are_refused(runtime):
    for name in ("counts", "sparse with large columns"):
        data = bytes_of(name)
        for damaged in [data[:-1], data + b"\0", data[:-8]]:
            with pytest.raises(runtime.ModelError):
                runtime.Classifier(damaged)
        for at in range(0, len(data), 1 + len(data) // 60):
            with pytest.raises(runtime.ModelError):
                runtime.Classifier(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])


def test_wrong_rows_are_named(runtime):
    model = runtime.load(bytes_of("dense"))
    with pytest.raises(ValueError, match="row 1 has 8 numbers, and the model reads 9"):
        model.predict([[0.0] * 9, [0.0] * 8])
    with pytest.raises(TypeError, match="row 0 must be a list of numbers"):
        model.predict(["a text"])
    with pytest.raises(ValueError, match="not finite"):
        model.predict([[float("nan")] * 9])
    with pytest.raises(TypeError, match="rows must be a list of lists"):
        model.predict("a text")
    assert model.predict([]) == []


def test_scores_that_overflow_are_refused(runtime, tmp_path):
    large = copy.deepcopy(fitted("dense as they are"))
    large.model_.weights *= 1e6
    large.export(tmp_path)
    model = runtime.load(tmp_path / "model.bin")
    assert len(model.predict([[1e290] * 9])) == 1
    for call in (model.predict, model.probability, lambda rows: model.kbest(rows[0], 2)):
        with pytest.raises(ValueError, match="scores overflow"):
            call([[1e308] * 9])


def test_what_the_runtime_does_not_read_is_named(tmp_path):
    bags = [{"a", "b"}, {"a"}, {"b"}] * 4
    words = ["red tent", "blue shoe", "red shoe"] * 4
    params = {"C": 1.0, "max_iter": 1, "random_state": 0}
    model = make_pipeline(CountVectorizer(), TfidfTransformer(), AmbiguousClassifier(**params)).fit(words, bags)
    with pytest.raises(ValueError, match="pipeline must be a vectorizer and this classifier, with nothing between"):
        model[-1].export(tmp_path / "none", pipeline=model)
    with pytest.raises(ValueError, match="pipeline must be a vectorizer"):
        model[-1].export(tmp_path / "none", pipeline=make_pipeline(CountVectorizer(), AmbiguousClassifier()))
    with pytest.raises(ValueError, match="a page labels texts, and this model reads rows"):
        fitted("dense").export(tmp_path / "none", to="page")
    with pytest.raises(ValueError, match=r"The 'to' parameter of AmbiguousClassifier\.export"):
        fitted("dense").export(tmp_path / "none", to="json")
    hashed = make_pipeline(HashingVectorizer(n_features=64), AmbiguousClassifier(**params)).fit(words, bags)
    with pytest.raises(ValueError, match="an AmbiguousClassifier with texts of a HashingVectorizer cannot be exported"):
        hashed[-1].export(tmp_path / "none", pipeline=hashed)
    numbers = AmbiguousClassifier(**params).fit(np.eye(4), [{0, 1}, {1}, {0}, {1}])
    with pytest.raises(ValueError, match="labels that are not str"):
        numbers.export(tmp_path / "none")
    assert not (tmp_path / "none").exists()


# ---- JavaScript ---------------------------------------------------------------------------------

COMPARE = """
import { readFileSync } from "node:fs";
import { load } from "./structsvm.mjs";
const classifier = await load(readFileSync(process.argv[2]));
const given = JSON.parse(readFileSync(process.argv[3]));
const failed = (work) => { try { work(); return "none"; } catch (error) { return error.message; } };
console.log(JSON.stringify([
  classifier.predict(given), given.map((one) => classifier.kbest(one, 3)), classifier.probability(given).length,
  classifier.nNumbers && classifier.predict(given.map((row) => Float64Array.from(row))),
  failed(() => classifier.predict(given[0])), failed(() => classifier.predict([[1, 2]])),
]));
"""


@pytest.mark.skipif(runtime_models.NODE is None, reason="needs node")
@pytest.mark.parametrize("name", ["counts", "sparse with large columns"])
def test_javascript_labels_as_python(name, tmp_path):
    pytest.importorskip("ziglang")
    given, scores = scores_of(name)
    kept = [i for i, one in enumerate(given) if "\ud800" not in list(one)]  # JavaScript has no UTF-8 of it
    given, scores = [given[i] if name in TEXTS else given[i].tolist() for i in kept], scores[kept]
    export(name, tmp_path, to="wasm")
    (tmp_path / "X.json").write_text(json.dumps(given), encoding="utf-8")
    (tmp_path / "test.mjs").write_text(COMPARE, encoding="utf-8")
    command = [runtime_models.NODE, *(str(tmp_path / file) for file in ("test.mjs", "model.bin", "X.json"))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    labels, best, n_rows, typed, no_list, no_row = json.loads(done.stdout)
    classes, order = fitted(name).classes_, np.argsort(-scores, axis=1, kind="stable")[:, :3]
    assert labels == classes[order[:, 0]].tolist()
    assert best == [
        [{"label": classes[y], "score": own[y]} for y in row] for own, row in zip(scores, order, strict=True)
    ]
    assert n_rows == len(given)
    if name in TEXTS:
        assert no_list == "texts must be an array of strings"
        assert no_row == "text 0 must be a string"
    else:
        assert typed == labels
        assert no_list == no_row == "row 0 must be an array of 60 numbers"
