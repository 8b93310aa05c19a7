"""The runtime in C against Python: labels, scores of the k best, probabilities, and what it refuses."""

import copy
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from ctypes import CDLL, byref, c_size_t, c_void_p
from pathlib import Path
from threading import local

import document_models
import numpy as np
import parser_models
import pytest
import runtime_models
from runtime_models import COMPILER, MODELS, ODD, arrays_of, bytes_of, columns_of_labels, fitted, sequences, sound

from structsvm.datasets import make_sequences
from structsvm.export.letters import LetterTable
from structsvm.tasks import SequenceLabeler, TokenFeatures

pytestmark = pytest.mark.skipif(COMPILER is None, reason="needs a C compiler")
SMALL = "words"


@pytest.fixture(scope="module")
def tagger_of(runtime, tmp_path_factory):
    taggers = {}

    def opened(name):
        if name not in taggers:
            folder = tmp_path_factory.mktemp("model")
            fitted(name).export(folder)
            taggers[name] = runtime.load(folder / "model.bin")
        return taggers[name]

    return opened


@pytest.mark.parametrize("name", MODELS)
def test_labels_are_those_of_python(tagger_of, name):
    model, tagger = fitted(name), tagger_of(name)
    X = sequences(name)
    assert [tagger.predict(x) for x in X] == [list(labels) for labels in model.predict(X)]
    assert len({label for x in X for label in tagger.predict(x)}) > 1


def test_some_models_have_automata():
    assert sum(fitted(name).model_.oracle.language is not None for name in MODELS) == 4


@pytest.mark.parametrize("name", MODELS)
def test_scores_of_the_k_best_are_those_of_python(tagger_of, name):
    model, tagger = fitted(name), tagger_of(name)
    X = [*sequences(name)[:20], *sequences(name)[-9:]]
    found = [tagger.kbest(x, 6) for x in X]
    assert found == [[(list(labels), score) for labels, score in best] for best in model.predict_kbest(X, 6)]
    assert max(map(len, found)) == 6


@pytest.mark.parametrize("name", [name for name, (_, params) in MODELS.items() if params.get("loss") == "log"])
def test_probabilities_are_those_of_python(tagger_of, name):
    model, tagger = fitted(name), tagger_of(name)
    X = sequences(name)
    for x, tags in zip(X, model.predict_marginals(X), strict=True):
        rows = tags @ columns_of_labels(model)
        np.testing.assert_allclose(np.reshape(tagger.probability(x), rows.shape), rows, atol=2e-5)


def test_calibrated_probabilities(runtime):
    X, y = make_sequences(80, n_labels=3, random_state=1)
    for order in (1, 2):
        model = SequenceLabeler(C=0.1, order=order, random_state=0).fit(X[:40], y[:40]).calibrate(X[40:], y[40:])
        assert model.temperature_ not in (None, 1.0)
        tagger = runtime.load(bytes_of(model))
        for x, rows in zip(X, model.predict_marginals(X), strict=True):
            np.testing.assert_allclose(tagger.probability(x), rows, atol=2e-5)


@pytest.mark.parametrize("bits", [8, 16, 32])
def test_compact_models(runtime, bits):
    X, y = make_sequences(80, n_labels=4, random_state=1)
    whole = SequenceLabeler(C=0.1, random_state=0).fit(X[:40], y[:40])
    model = whole.compact(bits=bits, budget=12_000)
    tagger = runtime.load(bytes_of(model))
    assert [tagger.predict(x) for x in X] == model.predict(X)
    assert [[score for _, score in tagger.kbest(x, 3)] for x in X] == [
        [score for _, score in best] for best in model.predict_kbest(X, 3)
    ]
    assert len(bytes_of(model)) < len(bytes_of(whole))


def test_values_of_attributes(runtime):
    X, y = make_sequences(60, n_labels=3, random_state=2)
    names = [[token[0] for token in tokens] for tokens in X]
    model = SequenceLabeler(C=0.1, random_state=0).fit([[{name: 1.0} for name in x] for x in names], y)
    X = [[{name: [0.5, 3.0, 0.0, 1, -2, True][t % 6], "none": 1e9} for t, name in enumerate(x)] for x in names]
    tagger = runtime.load(bytes_of(model))
    assert [tagger.predict(x) for x in X] == model.predict(X)


# Labels, and weights of a row from which on the runtime stores it dense.
MANY_LABELS, DENSE = 20, 8


@pytest.fixture(scope="module")
def of_many_labels():
    rng = np.random.default_rng(3)
    X = [[f"w{k}" for k in rng.integers(60, size=9)] for _ in range(60)]
    y = [[f"l{rng.integers(MANY_LABELS)}" for _ in x] for x in X]
    params = {"loss": "log", "C": 0.1, "max_iter": 2, "random_state": 0}
    templates = "U0:%x[0,0]\nU1:%x[-1,0]/%x[0,0]\nU2:%x[1,0]\nB\nB0:%x[0,0]\n"
    dicts = [[{word: 1.0, word[-1]: 1.0} for word in x] for x in X]
    return {
        "pairs": (SequenceLabeler(templates=templates, **params).fit(X, y), X),
        "order 2": (SequenceLabeler(templates=templates, order=2, **params).fit(X, y), X),
        "dicts": (SequenceLabeler(**params).fit(dicts, y), [[dict.fromkeys(z, 0.3) for z in x] for x in dicts]),
    }


@pytest.mark.parametrize("unit", [0, 2.0**-4, 2.0**-10], ids=["float32", "8 bits", "16 bits"])
@pytest.mark.parametrize("name", ["pairs", "order 2", "dicts"])
def test_rows_of_few_and_of_many_weights(runtime, of_many_labels, name, unit):
    given, X = of_many_labels[name]
    model, rng = copy.deepcopy(given), np.random.default_rng(4)
    weights = model.model_.weights.reshape(-1, model.model_.oracle.stride).copy()
    has_one = rng.random((len(weights), MANY_LABELS)) < rng.random((len(weights), 1))
    weights[:, :MANY_LABELS] = has_one * (rng.integers(-99, 99, weights[:, :MANY_LABELS].shape) * (unit or 0.013))
    model.model_.weights = weights.ravel()
    sizes = has_one.sum(axis=1)
    assert min((sizes >= DENSE).sum(), ((sizes > 0) & (sizes < DENSE)).sum()) > 20
    tagger = runtime.load(bytes_of(model))
    for x in X[:30]:
        assert tagger.predict(x) == model.predict([x])[0]
        assert tagger.kbest(x, 3) == [(list(y), score) for y, score in model.predict_kbest([x], 3)[0]]
        np.testing.assert_allclose(tagger.probability(x), model.predict_marginals([x])[0], atol=2e-5)


def test_letters_are_pythons():
    table = LetterTable.of_python()
    pages = table.kinds[table.pages].ravel()
    for letter in ("A", "ß", "İ", "٣", "²", "ǅ", "\U000e0101"):
        assert pages[ord(letter)] > 0
    lower = [chr(c) for c in range(0x300) if chr(c).lower() == chr(c)]
    assert all(table.shifts[pages[ord(c)]] == 0 for c in lower)
    assert table.shifts[pages[ord("A")]] == 32


# ---- what it refuses ----------------------------------------------------------------------------


def test_damaged_files_are_refused(runtime, tmp_path):
    data = bytes_of(fitted(SMALL))
    assert sound(data) == data
    for damaged in [b"", data[:20], data[:-1], data + b"\0", b"x" + data[1:], sound(data[:-8]), sound(data + bytes(8))]:
        with pytest.raises(runtime.ModelError, match="bytes: not a complete, sound model"):
            runtime.load(damaged)
    for at in range(0, len(data), 97):
        with pytest.raises(runtime.ModelError):
            runtime.load(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
    (tmp_path / "empty").touch()
    with pytest.raises(runtime.ModelError, match="empty: not a model"):
        runtime.load(tmp_path / "empty")


@pytest.mark.parametrize(
    ("structure", "exported"),
    [
        ("sequences", lambda: bytes_of(fitted(SMALL))),
        ("segments", lambda: bytes_of(fitted("segments"))),
        ("documents", lambda: bytes_of(document_models.fitted("tfidf"))),
        ("trees", lambda: bytes_of(parser_models.fitted("projective"))),
    ],
)
def test_files_of_another_version_are_refused_by_name(runtime, structure, exported):
    data = exported()
    opened = CDLL(str(Path(runtime.__file__).with_name(f"_{structure}.so"))).structsvm_open
    for version in (1, 2, 3, 4, 7):
        other = data[:8] + version.to_bytes(4, "little") + data[12:]
        with pytest.raises(ValueError, match="another version of structsvm exported: export it again"):
            runtime.load(other)
        room = np.frombuffer(other, np.uint8).copy()
        assert opened(c_void_p(room.ctypes.data), c_size_t(len(other)), byref(c_void_p())) == -8  # STRUCTSVM_VERSION


def test_rows_of_scores_that_no_token_has_are_refused(runtime):
    """The last rows of order 2, behind those of all pairs of labels, belong to the first token alone."""
    data = bytearray(bytes_of(fitted("automaton of order 2")))
    arrays = arrays_of(data)
    n_labels = int(arrays[0][1])
    sizes = [len(array) for array in arrays]
    at = next(i for i in range(1, len(sizes)) if sizes[i] == 2 and sizes[i + 1 : i + 5] == [int(arrays[i][0])] * 4)
    arrays[at + 2][0] = n_labels * (n_labels + 1) - 1
    runtime.load(sound(bytes(data)))
    arrays[at + 2][0] += 1
    with pytest.raises(runtime.ModelError, match="not a complete, sound model"):
        runtime.load(sound(bytes(data)))


def test_nodes_that_lead_twice_to_one_are_refused(runtime):
    """The ways to a node are gathered in room for all nodes."""
    data = bytearray(bytes_of(fitted("automaton")))
    arrays = arrays_of(data)
    sizes = [len(array) for array in arrays]
    at = next(i for i in range(1, len(sizes)) if sizes[i] == 2 and sizes[i + 1 : i + 5] == [int(arrays[i][0])] * 4)
    origins, origin = arrays[at + 8], arrays[at + 9]
    node = int(np.flatnonzero(np.diff(origins.astype(np.int64)) > 1)[0])
    runtime.load(sound(bytes(data)))
    origin[origins[node] + 1] = origin[origins[node]]
    with pytest.raises(runtime.ModelError, match="not a complete, sound model"):
        runtime.load(sound(bytes(data)))


def test_wrong_input_is_named(runtime, tagger_of):
    words, dicts = tagger_of(SMALL), tagger_of("dicts")
    margins = SequenceLabeler(solver="perceptron", max_iter=2, random_state=0).fit([["a", "b"]], [["x", "y"]])
    for token in (3, None, [1], b"x"):
        with pytest.raises(TypeError, match="token 1 must be a str"):
            words.predict(["a", token])
    with pytest.raises(ValueError, match="token 0 has 2 columns, and the model reads 1"):
        words.predict([("a", "b")])
    with pytest.raises(TypeError, match="tokens must be a list"):
        words.predict("abc")
    for k in (0, -1):
        with pytest.raises(ValueError, match="k must be"):
            words.kbest(["a"], k)
    for k in (1 << 23, 1 << 40):  # refused by the runtime, and before it
        with pytest.raises(ValueError, match="bytes"):
            words.kbest(["a"] * 40, k)
    with pytest.raises(TypeError, match="token 0: feature 'w' must be"):
        dicts.predict([{"w": object()}])
    with pytest.raises(ValueError, match="not finite"):
        dicts.predict([{"w": "a", "nested": {}, "w:x": float("nan")}])
    with pytest.raises(ValueError, match="margins"):
        runtime.load(bytes_of(margins)).probability(["a", "b"])
    assert words.predict(["a"] * 3) == fitted(SMALL).predict([["a"] * 3])[0]


def test_models_without_a_counterpart_are_refused(tmp_path):
    X, y = [["a", "b"]] * 3, [["x", "y"]] * 3
    labels = ["O", "I-x"]
    for params, its, wanted in [
        ({"inference": "greedy"}, y, "greedy inference"),
        ({"features": TokenFeatures(hash_bits=8)}, y, r"hashed features \(hash_bits\)"),
        ({"segments": True, "constraints": "iob1"}, [labels] * 3, "segments in IOB1 or IOE1"),
        ({"templates": '*:%t[0,0,"^a"]'}, y, r"regular expressions \(%t"),
        ({}, [[0, 1]] * 3, "labels that are not str"),
    ]:
        model = SequenceLabeler(C=0.1, random_state=0, **params).fit(X, its)
        with pytest.raises(ValueError, match=wanted):
            model.export(tmp_path / "none")
    numeric = SequenceLabeler(C=0.1, random_state=0).fit([np.eye(2)] * 3, y)
    with pytest.raises(ValueError, match="rows of numbers"):
        numeric.export(tmp_path / "none")
    numbers = SequenceLabeler(C=0.1, random_state=0).fit([[{"a": 2.0}, {"a": 0.5}]] * 3, y)
    with pytest.raises(ValueError, match="named features with numbers"):
        numbers.export(tmp_path / "none")
    assert not (tmp_path / "none").exists()
    with pytest.raises(ValueError, match=r"The 'to' parameter of SequenceLabeler\.export"):
        numeric.export(tmp_path / "none", to="java")


def test_constraints_that_leave_nothing(runtime):
    X, y = [["a", "b"]] * 3, [["x", "y"]] * 3
    model = SequenceLabeler(C=0.1, random_state=0, constraints="x y").fit(X, y)
    tagger = runtime.load(bytes_of(model))
    assert tagger.predict(["b", "a"]) == ["x", "y"] == model.predict([["b", "a"]])[0]
    for verb in (tagger.predict, lambda tokens: tagger.kbest(tokens, 2)):
        with pytest.raises(ValueError, match="constraints leave no labelling"):
            verb(["a", "b", "a"])


# ---- memory and time ----------------------------------------------------------------------------


def test_import_needs_neither_numpy_nor_structsvm(runtime):
    code = "import sys, structsvm_runtime; assert not {'numpy', 'structsvm', 'scipy'} & set(sys.modules)"
    folder = runtime.__file__.rpartition("/structsvm_runtime/")[0]
    subprocess.run([sys.executable, "-c", f"import sys; sys.path.insert(0, {folder!r}); {code}"], check=True)


def test_all_odd_words_have_the_functions_of_python(runtime):
    """Each function of each word, told apart by its own feature's weight."""
    words = [word for word in ODD if word]
    labels = [f"l{k}" for k in range(len(words))]
    model = SequenceLabeler(C=0.1, max_iter=3, random_state=0, templates=runtime_models.FUNCTIONS).fit(
        [words] * 2, [labels] * 2
    )
    tagger = runtime.load(bytes_of(model))
    for word in [*ODD, *(a + b for a in ODD for b in ("Σ", "1", "!", "é"))]:
        assert tagger.kbest([word], 4) == [(list(y), score) for y, score in model.predict_kbest([[word]], 4)[0]], word


@pytest.mark.parametrize("name", ["records", "bigrams of order 2", "automaton and bigrams"])
def test_only_the_longest_sequence_so_far_allocates(counting, name):
    runtime = counting("sequences")
    allocations = runtime.native.library("sequences").structsvm_allocations
    opened = allocations()
    tagger, X = runtime.load(bytes_of(fitted(name))), sequences(name)

    def use(x):
        tagger.predict(x)
        tagger.kbest(x, 2)
        if fitted(name).loss_ == "log":
            tagger.probability(x)

    longest = max(X, key=len)
    use(longest)
    before = allocations()
    assert before > opened + 3
    for x in X:
        use(x)
    use(longest)
    assert allocations() == before
    use([*longest, *longest])
    assert allocations() > before


# The runtime, which counts how often it looks for a hyphen in a word: once for each time that its functions are asked.
HYPHENS = """
#include <string.h>
static long n_hyphens;
static void *counted(const void *text, int letter, size_t size) {
    n_hyphens++;
    return (void *)memchr(text, letter, size);
}
#define memchr counted
#include "structsvm_sequences.c"
long structsvm_hyphens(void) { return n_hyphens; }
"""


def test_functions_of_the_last_words_are_remembered(runtime, tmp_path):
    X, y = [["dog-1", "a-", "bark", "dog-1"]] * 3, [["x", "y", "z", "x"]] * 3
    model = SequenceLabeler(C=1.0, random_state=0, templates="U0:%hyphen[0,0]\nU1:%lower[0,0]\nB\n").fit(X, y)
    runtime = runtime_models.counted(tmp_path, runtime, "sequences", HYPHENS)
    tagger, asked = runtime.load(bytes_of(model)), runtime.native.library("sequences").structsvm_hyphens
    x, long = ["Dog-1", "dog-1", "", "b-" * 12], ["b-" * 12 + "c", "é" * 12 + "-"]
    for sequence, wanted in [(x, 4), (x, 4), (x[::-1] * 9, 4), (long, 6), (long, 8), ([*long, *x], 10)]:
        assert tagger.kbest(sequence, 3) == [(list(y_), s) for y_, s in model.predict_kbest([sequence], 3)[0]]
        assert asked() == wanted


@pytest.mark.parametrize("pairs", ["B\n", "B1:%x[0,1]\nB2:%shape[0,0]\nB\n"], ids=["labels", "features"])
def test_words_are_remembered_by_column_and_template(runtime, pairs):
    """The same words in both columns, where functions, features and their numbers are others."""
    rng, vocabulary = np.random.default_rng(5), [f"{w}{k}" for w in ("Dog", "dog", "d-", "x" * 22) for k in range(9)]
    X = [[(str(a), str(b)) for a, b in rng.choice(vocabulary, size=(7, 2))] for _ in range(50)]
    y = [[f"l{(len(a) + ord(b[-1])) % 5}" for a, b in x] for x in X]
    of_tokens = "U0:%lower[0,1]\nU1:%x[0,0]/%lower[-1,1]\nU2:%suffix1[0,1]\nU3:%end[0,1]/%x[0,0]\nU4:%before[0,0]\n"
    params = {"C": 0.1, "loss": "log", "max_iter": 2, "random_state": 0}
    model = SequenceLabeler(templates=of_tokens + pairs, **params).fit(X[:40], y[:40])
    tagger = runtime.load(bytes_of(model))
    for x in [*X, *[[cells[::-1] for cells in x] for x in X], *X]:
        assert tagger.kbest(x, 3) == [(list(y_), score) for y_, score in model.predict_kbest([x], 3)[0]]


def test_threads_have_taggers_of_their_own(runtime):
    model, data = fitted("records"), bytes_of(fitted("records"))
    X = sequences("records") * 3
    shared, own = runtime.load(data), local()

    def work(x):
        if not hasattr(own, "tagger"):
            own.tagger = runtime.load(data)
        return own.tagger.predict(x), shared.predict(x)

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(work, X))
    assert found == [(list(y), list(y)) for y in model.predict(X)]
