"""The runtime of texts in C and in JavaScript against Python: labels, scores of the k best, what is refused."""

import copy
import json
import re
import shutil
import subprocess
import warnings
from html import unescape

import document_models
import numpy as np
import pytest
import runtime_models
from document_models import MODELS, fitted, texts
from runtime_models import COMPILER, bytes_of
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer

from structsvm._warnings import AdviceWarning
from structsvm.datasets import make_sequences
from structsvm.tasks import SequenceLabeler, TaxonomyClassifier

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")

pytestmark = pytest.mark.skipif(COMPILER is None, reason="needs a C compiler")


@pytest.fixture(scope="module")
def opened(runtime):
    return runtime_models.opener(runtime, fitted)


def in_python(function, *arguments):
    """A result of Python; texts without a known word, which it warns of, are among those tried."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*arguments)


@pytest.mark.parametrize("name", MODELS)
def test_labels_are_those_of_python(opened, name):
    found = opened(name).predict(texts())
    assert found == in_python(fitted(name).predict, texts()).tolist()
    assert len(set(found)) > 5


@pytest.mark.parametrize("name", MODELS)
def test_scores_of_the_k_best_are_those_of_python(opened, name):
    scores = in_python(fitted(name).decision_function, texts())
    labels, order = fitted(name).classes_, np.argsort(-scores, axis=1, kind="stable")
    for k in (1, 4, 99):
        found = [opened(name).kbest(text, k) for text in texts()]
        assert found == [
            list(zip(labels[best].tolist(), own[best].tolist(), strict=True))
            for own, best in zip(scores, order[:, :k], strict=True)
        ]
    assert len(np.unique(scores)) > 100


@pytest.mark.parametrize("name", MODELS)
def test_probabilities_are_those_of_python(opened, name):
    np.testing.assert_allclose(
        opened(name).probability(texts()), in_python(fitted(name).predict_proba, texts()), atol=1e-6
    )


def test_the_models_have_what_they_are_tried_for():
    assert fitted("lists of weights").model_.rows.lists is not None
    assert not fitted("attributes of numbers").model_.intercept


def assert_alike(runtime, model, X):
    found, scores = runtime.load(bytes_of(model)), model.decision_function(X)
    assert found.predict(X) == model.predict(X).tolist()
    for text, own in zip(X, scores, strict=True):
        assert dict(found.kbest(text, len(own))) == dict(zip(model.classes_.tolist(), own.tolist(), strict=True))


def test_limits_and_units_of_features(runtime):
    X, y = [*document_models.X, "red " * 20_000], [*document_models.Y, document_models.Y[0]]
    params = {"C": 1.0, "max_iter": 2, "random_state": 0, "fit_intercept": False}
    model = TaxonomyClassifier(document_models.TAXONOMY, vectorizer=CountVectorizer(), **params)
    with pytest.warns(AdviceWarning, match="they are taken as the largest of"):
        model.fit(X, y)
    low, high = model.model_.units.limits
    assert high.min() < 100
    texts = ["red " * n + text for n, text in enumerate(document_models.X[:9])]
    assert_alike(runtime, model, texts)
    model.model_.units = model.model_.units._replace(scale=np.linspace(0.3, 3.0, len(low)))
    assert_alike(runtime, model, texts)


def test_texts_are_labelled_alike_alone_and_together(opened):
    model = opened("tfidf")
    assert [model.predict([text])[0] for text in texts()] == model.predict(texts())
    assert model.predict([]) == []


# ---- what is refused ----------------------------------------------------------------------------


def test_a_source_refuses_models_of_the_other_structure(runtime):
    X, y = make_sequences(20, random_state=0)
    sequences = bytes_of(SequenceLabeler(C=0.1, max_iter=1, random_state=0).fit(X, y))
    documents = bytes_of(fitted("tfidf"))
    assert isinstance(runtime.load(sequences), runtime.Tagger)
    assert isinstance(runtime.load(documents), runtime.Classifier)
    for kind, data in ((runtime.Classifier, sequences), (runtime.Tagger, documents)):
        with pytest.raises(runtime.ModelError, match="not a complete, sound model"):
            kind(data)


def test_damaged_files_are_refused(runtime):
    data = bytes_of(fitted("counts"))
    for damaged in [data[:-1], data + b"\0", data[:-8]]:
        with pytest.raises(runtime.ModelError):
            runtime.Classifier(damaged)
    for at in range(0, len(data), 997):
        with pytest.raises(runtime.ModelError):
            runtime.Classifier(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])


def test_wrong_input_is_named(runtime):
    margins = copy.deepcopy(fitted("counts"))
    margins.model_.temperature = None
    model = runtime.load(bytes_of(margins))
    with pytest.raises(TypeError, match="texts must be a list of str"):
        model.predict("a text")
    with pytest.raises(TypeError, match="text 1 must be a str"):
        model.predict(["a", 3])
    with pytest.raises(ValueError, match="k must be at least 1"):
        model.kbest("a", 0)
    with pytest.raises(ValueError, match="margins"):
        model.probability(["a"])
    with pytest.raises(ValueError, match="longer than"):
        model.predict(["a" * ((1 << 24) + 1)])


@pytest.mark.parametrize(
    ("params", "wanted"),
    [
        ({"vectorizer": HashingVectorizer(n_features=64)}, "texts of a HashingVectorizer"),
        ({"vectorizer": TfidfVectorizer(strip_accents="unicode")}, "strip_accents='unicode'"),
        ({"vectorizer": TfidfVectorizer(token_pattern=r"[a-z]+")}, "token_pattern="),
        ({"vectorizer": CountVectorizer(analyzer=str.split)}, "analyzer=<"),
        ({"vectorizer": CountVectorizer(preprocessor=str.upper)}, "preprocessor=<"),
        ({"vectorizer": CountVectorizer(), "kernel": "linear"}, "a kernel"),
        ({"vectorizer": CountVectorizer(), "leaf_only": False}, "inner nodes"),
    ],
)
def test_what_the_runtime_does_not_read_is_named(params, wanted, tmp_path):
    model = TaxonomyClassifier(document_models.TAXONOMY, C=1.0, max_iter=2, random_state=0, **params)
    model.fit(document_models.X[:60], document_models.Y[:60])
    with pytest.raises(ValueError, match=wanted):
        model.export(tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_texts_of_files_are_refused(tmp_path):
    for k, text in enumerate(["a tent", "a shoe"]):
        (tmp_path / f"{k}.txt").write_text(text)
    files = [str(tmp_path / f"{k}.txt") for k in (0, 1)]
    vectorizer = CountVectorizer(input="filename")
    model = TaxonomyClassifier(vectorizer=vectorizer, C=1.0, random_state=0).fit(files * 4, ["x", "y"] * 4)
    with pytest.raises(ValueError, match="the input='filename' of its vectorizer cannot be exported"):
        model.export(tmp_path / "none")


def test_matrices_and_other_targets_are_refused(tmp_path):
    rows = TaxonomyClassifier(C=1.0, random_state=0).fit(np.eye(4), list("abab"))
    with pytest.raises(ValueError, match="rows of numbers"):
        rows.export(tmp_path / "none")
    with pytest.raises(ValueError, match=r"The 'to' parameter of TaxonomyClassifier\.export"):
        fitted("tfidf").export(tmp_path / "none", to="json")
    numbers = TaxonomyClassifier(vectorizer=CountVectorizer(), C=1.0, random_state=0).fit(
        ["tent", "shoe"] * 4, [0, 1] * 4
    )
    with pytest.raises(ValueError, match="labels that are not str"):
        numbers.export(tmp_path / "none")


# ---- JavaScript ---------------------------------------------------------------------------------

COMPARE = """
import { readFileSync } from "node:fs";
import { load } from "./structsvm.mjs";
const classifier = await load(readFileSync(process.argv[2]));
const texts = JSON.parse(readFileSync(process.argv[3]));
const failed = (work) => { try { work(); return "none"; } catch (error) { return error.message; } };
console.log(JSON.stringify([
  classifier.predict(texts), texts.map((text) => classifier.kbest(text, 3)), classifier.probability(texts).length,
  failed(() => classifier.predict("a")), failed(() => classifier.predict(["a", 1])),
  failed(() => classifier.kbest("a", 0)),
]));
"""


@pytest.mark.skipif(runtime_models.NODE is None, reason="needs node")
def test_javascript_labels_as_python(tmp_path):
    pytest.importorskip("ziglang")
    X = texts()
    (tmp_path / "X.json").write_text(json.dumps(X), encoding="utf-8")
    (tmp_path / "test.mjs").write_text(COMPARE, encoding="utf-8")
    for name in ("logarithms of pairs", "letters of words", "lists of weights"):
        model = fitted(name)
        model.export(tmp_path, to="wasm")
        command = [runtime_models.NODE, *(str(tmp_path / file) for file in ("test.mjs", "model.bin", "X.json"))]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        labels, best, n_rows, *refused = json.loads(done.stdout)
        scores = in_python(model.decision_function, X)
        order = np.argsort(-scores, axis=1, kind="stable")[:, :3]
        assert labels == in_python(model.predict, X).tolist()
        assert best == [
            [{"label": model.classes_[y], "score": own[y]} for y in row] for own, row in zip(scores, order, strict=True)
        ]
        assert n_rows == len(X)
        assert refused == [
            "texts must be an array of strings", "text 1 must be a string", "k must be an integer of at least 1, got 0",
        ]  # fmt: skip


@pytest.mark.skipif(CHROMIUM is None, reason="needs chromium")
def test_a_page_classifies_in_a_browser_from_a_file(tmp_path):
    pytest.importorskip("ziglang")
    model = fitted("letters of words")
    model.export(tmp_path, to="page")
    page = tmp_path / "classifier.html"
    text = re.search(r"<textarea[^>]*>([^<]*)<", page.read_text(encoding="utf-8"))[1]
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=20000", "--dump-dom"]
    command = [CHROMIUM, *options, f"--user-data-dir={tmp_path / 'profile'}", page.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = re.findall(r'<td class="">([^<]*)<', done.stdout.partition('id="classes"')[2])
    scores = in_python(model.decision_function, [unescape(text)])[0]
    best = np.argsort(-scores, kind="stable")[:5]
    assert len(best) == 5 and len(set(found[::2])) == 5, done.stderr[-500:]
    assert found[::2] == [model.classes_[k] for k in best]
    assert all(re.fullmatch(r"\d+ %|score -?[\d.]+", value) for value in found[1::2])
