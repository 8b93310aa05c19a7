"""The runtime of dependency trees in C and in JavaScript against Python: trees, scores, what is refused."""

import copy
import io
import itertools
import json
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from threading import local

import numpy as np
import pytest
import runtime_models
from parser_models import MODELS, columns, export, fitted, new_sentences, sentences
from runtime_models import COMPILER, bytes_of

from structsvm._warnings import AdviceWarning
from structsvm.datasets import fetch_ud_dutch, fetch_ud_english_ewt
from structsvm.model_file import write_model
from structsvm.structures.dependencies import what_is_no_tree
from structsvm.tasks import ArcFeatures, DependencyParser

pytestmark = pytest.mark.skipif(COMPILER is None, reason="needs a C compiler")


@pytest.fixture(scope="module")
def opened(runtime):
    return runtime_models.opener(runtime, fitted)


@pytest.mark.parametrize("name", MODELS)
def test_trees_are_those_of_python(opened, name):
    X = new_sentences()
    found = [opened(name).predict(columns(words)) for words in X]
    assert found == [list(tree) for tree in fitted(name).predict(X)]
    assert all(what_is_no_tree([head for head, _ in tree]) is None for tree in found if tree)
    assert len({label for tree in found for _, label in tree}) > 3


@pytest.mark.parametrize("name", MODELS)
def test_scores_of_the_k_best_are_those_of_python(opened, name):
    X = [words for words in new_sentences() if len(words) < 9][:25]
    for k in (1, 5, 40):
        found = [opened(name).kbest(columns(words), k) for words in X]
        wanted = fitted(name).predict_kbest(X, k)
        assert found == [[(list(tree), score) for tree, score in ranked] for ranked in wanted]
    assert len({score for ranked in found for _, score in ranked}) > 100
    assert opened(name).kbest([], 3) == []


def test_all_trees_of_a_short_sentence_are_ranked(opened):
    words = new_sentences()[0][:2]
    found = opened("projective").kbest(columns(words), 10_000)
    assert len(found) == 2 * (
        len(opened("projective").labels) - 1
    )  # either word below the root, whose label is its own
    assert found == [(list(tree), score) for tree, score in fitted("projective").predict_kbest([words], 10_000)[0]]
    assert all(a[1] >= b[1] for a, b in itertools.pairwise(found))


@pytest.mark.parametrize("name", ["log loss", "log loss of any shape"])
def test_probabilities_are_those_of_python(opened, name):
    X = new_sentences()
    for words, wanted in zip(X, fitted(name).predict_proba(X), strict=True):
        found = np.reshape(opened(name).probability(columns(words)), wanted.shape if len(words) else (0, 1))
        np.testing.assert_allclose(found, wanted, atol=2e-5)
        np.testing.assert_allclose(found.sum(axis=1), 1.0, atol=1e-5)


def test_probabilities_of_a_calibrated_model(runtime):
    model = copy.deepcopy(fitted("of any shape")).calibrate(*sentences(30, True, seed=2))
    assert model.temperature_ not in (None, 1.0)
    X = new_sentences()[:20]
    found = runtime.load(bytes_of(model))
    for words, wanted in zip(X, model.predict_proba(X), strict=True):
        np.testing.assert_allclose(found.probability(columns(words)), wanted, atol=2e-5)


def test_weights_of_few_bits_take_few_bytes():
    """Hashed numbers and rows of labels have few bits; the same weights are 0 with any number of them."""
    whole = fitted("two stages")
    sizes = {bits: len(bytes_of(small := whole.compact(bits=bits))) for bits in (8, 16, 32)}
    weights = np.concatenate([small.model_.weights, small.model_.pairs.weights])
    n_bytes = 3 * np.count_nonzero(weights)
    assert sizes[8] < sizes[32] - 0.9 * n_bytes
    assert sizes[16] < sizes[32] - 0.6 * n_bytes
    small = whole.compact(bits=8).model_
    write_model(file := io.BytesIO(), small.kind, *small.contents())  # not deflated
    assert sizes[8] < len(file.getvalue()) + 50_000  # and properties of letters


def test_the_models_have_what_they_are_tried_for():
    models = {name: fitted(name).model_ for name in MODELS}
    assert not models["two stages, crossing"].pairs.oracle.projective
    assert models["two stages"].pairs.oracle.projective
    few = models["crossing in the second"]
    assert few.oracle.projective and not few.pairs.oracle.projective
    assert models["own templates"].oracle.templates.sizes[-1] == 1
    assert all(models[name].pairs is None for name in MODELS if "stages" not in name and name[0] in "pl")


@pytest.mark.slow
@pytest.mark.skipif("STRUCTSVM_DATA" not in os.environ, reason="STRUCTSVM_DATA does not name a data folder")
@pytest.mark.parametrize("fetch", [fetch_ud_english_ewt, fetch_ud_dutch])
@pytest.mark.parametrize("projective", [True, False])
def test_trees_of_real_sentences_are_those_of_python(runtime, fetch, projective):
    data = fetch()
    model = DependencyParser(C=0.1, projective=projective, max_iter=3, random_state=0)
    model.fit(data.train[:200])
    found, X = runtime.load(bytes_of(model)), data.dev[:500]
    assert [found.predict(columns(tree.words)) for tree in X] == [list(tree) for tree in model.predict(X)]


# ---- memory and threads -------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["two stages, crossing", "log loss", "log loss of any shape"])
def test_only_what_is_longer_than_all_before_allocates(counting, tmp_path, name):
    runtime = counting("trees")
    allocations = runtime.native.library("trees").structsvm_allocations
    opened = allocations()
    export(name, tmp_path)
    parser, X = runtime.load(tmp_path / "model.bin"), [columns(words) for words in new_sentences()[:15]]

    def use(words):
        parser.predict(words)
        parser.kbest(words, 2)
        if fitted(name).temperature_ is not None:
            parser.probability(words)

    for words in X:
        use(words)
    before = allocations()
    assert before > opened + 10
    for words in X[::-1]:
        use(words)
    assert allocations() == before
    use([*X[0], *X[1], *X[2]])
    assert allocations() > before


def test_threads_have_parsers_of_their_own(runtime):
    data, X = bytes_of(fitted("two stages")), [columns(words) for words in new_sentences()[:60]] * 3
    shared, own = runtime.load(data), local()

    def work(words):
        if not hasattr(own, "parser"):
            own.parser = runtime.load(data)
        return own.parser.predict(words), shared.predict(words)

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(work, X))
    wanted = [list(tree) for tree in fitted("two stages").predict(new_sentences()[:60])] * 3
    assert found == [(tree, tree) for tree in wanted]


# ---- words --------------------------------------------------------------------------------------


def test_words_may_be_strings_pairs_or_columns(runtime):
    X = [[("the", "DET"), ("cat", "NOUN"), ("sleeps", "VERB")], [("cats", "NOUN"), ("sleep", "VERB")]] * 6
    y = [[(2, "det"), (3, "nsubj"), (0, "root")], [(2, "nsubj"), (0, "root")]] * 6
    model = DependencyParser(random_state=0, order=1, max_iter=3).fit(X, y)
    parser = runtime.load(bytes_of(model))
    wanted = list(model.predict([X[0]])[0])
    assert parser.predict(X[0]) == wanted == y[0]
    assert parser.predict([{"form": form, "upos": tag, "deprel": "_"} for form, tag in X[0]]) == wanted
    bare = DependencyParser(random_state=0, order=1, max_iter=3).fit([[form for form, _ in x] for x in X], y)
    parser = runtime.load(bytes_of(bare))
    assert parser.predict("the cat sleeps") == parser.predict(["the", "cat", "sleeps"]) == y[0]
    # Columns that the words of training had not are left out, as in Python.
    with pytest.warns(AdviceWarning, match="left out"):
        assert list(bare.predict([X[0]])[0]) == y[0]
    assert parser.predict(X[0]) == y[0]


def test_sentences_without_a_column_of_training_are_refused(opened):
    words = ["a"] * 9
    with pytest.raises(ValueError, match="training had"):
        fitted("projective").predict([words])
    with pytest.raises(ValueError, match="words without a column of training"):
        opened("projective").predict(words)


def test_wrong_words_are_named(opened):
    parser = opened("projective")
    with pytest.raises(TypeError, match="word 1 must be a str, a pair"):
        parser.predict([("a", "DET"), 3])
    with pytest.raises(TypeError, match="word 0 must have a form"):
        parser.predict([{"upos": "DET"}])
    with pytest.raises(TypeError, match="word 0: columns must be str"):
        parser.predict([("a", 3)])
    with pytest.raises(ValueError, match="word 0 must have a form"):
        parser.predict([("", "DET")])
    with pytest.raises(ValueError, match="k must be at least 1"):
        parser.kbest([("a", "DET")], 0)
    with pytest.raises(ValueError, match="longer than the parser takes"):
        parser.predict([("a", "DET")] * 1001)
    with pytest.raises(ValueError, match="margins"):
        parser.probability([("a", "DET")])


def test_damaged_files_and_models_of_other_structures_are_refused(runtime):
    data = bytes_of(fitted("two stages"))
    for damaged in [data[:-1], data + b"\0", data[:-8]]:
        with pytest.raises(runtime.ModelError):
            runtime.Parser(damaged)
    for at in range(0, len(data), 1 + len(data) // 50):
        with pytest.raises(runtime.ModelError):
            runtime.Parser(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
    with pytest.raises(runtime.ModelError):
        runtime.Tagger(data)
    assert isinstance(runtime.load(data), runtime.Parser)


def test_what_the_runtime_does_not_read_is_named(tmp_path):
    own = ArcFeatures(columns=lambda words: [word[:1] for word in words])
    model = DependencyParser(features=own, order=1, max_iter=1, random_state=0).fit(*sentences(5, False))
    with pytest.raises(ValueError, match="a DependencyParser with columns of the user's own cannot be exported"):
        model.export(tmp_path / "none")
    with pytest.raises(ValueError, match=r"The 'to' parameter of DependencyParser\.export"):
        fitted("projective").export(tmp_path / "none", to="page")
    assert not (tmp_path / "none").exists()


# ---- JavaScript ---------------------------------------------------------------------------------

COMPARE = """
import { readFileSync } from "node:fs";
import { load } from "./structsvm.mjs";
const parser = await load(readFileSync(process.argv[2]));
const failed = (work) => { try { work(); return "none"; } catch (error) { return error.message; } };
for (const words of JSON.parse(readFileSync(process.argv[3]))) {
  const rows = process.argv[4] === "probable" ? parser.probability(words).map((row) => [...row]) : [];
  console.log(JSON.stringify([parser.predict(words), parser.kbest(words, 3), rows]));
}
console.log(JSON.stringify([
  failed(() => parser.predict("a b")), failed(() => parser.predict([["a", "DET"], 3])),
  failed(() => parser.kbest([["a", "DET"]], 0)),
]));
"""


@pytest.mark.skipif(runtime_models.NODE is None, reason="needs node")
@pytest.mark.parametrize("name", ["two stages, crossing", "log loss", "log loss of any shape"])
def test_javascript_parses_as_python(name, tmp_path):
    pytest.importorskip("ziglang")
    X = [words for words in new_sentences() if words]
    X = [*X[:20], *(words for words in X[20:] if any("\ud800" in word.form for word in words))]
    export(name, tmp_path, to="wasm")
    (tmp_path / "X.json").write_text(json.dumps([columns(words) for words in X]), encoding="utf-8")
    (tmp_path / "test.mjs").write_text(COMPARE, encoding="utf-8")
    has_chances = fitted(name).temperature_ is not None
    files = [str(tmp_path / file) for file in ("test.mjs", "model.bin", "X.json")]
    command = [runtime_models.NODE, *files, "probable" if has_chances else "margins"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    *found, refused = map(json.loads, done.stdout.splitlines())
    trees, ranked = fitted(name).predict(X), fitted(name).predict_kbest(X, 3)

    def arcs(tree):
        return [{"head": head, "label": label} for head, label in tree]

    assert [one[:2] for one in found] == [
        [arcs(tree), [{"arcs": arcs(other), "score": score} for other, score in best]]
        for tree, best in zip(trees, ranked, strict=True)
    ]
    if has_chances:
        for (_, _, rows), wanted in zip(found, fitted(name).predict_proba(X), strict=True):
            np.testing.assert_allclose(rows, wanted, atol=2e-5)
    assert refused == [
        "a sentence must be an array of words",
        "word 1 must be a string, a pair [form, tag], or an object of columns, with a form",
        "k must be an integer of at least 1, got 0",
    ]
