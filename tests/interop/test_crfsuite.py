"""CRFsuite's model files: one written by hand is read, what is written is read back, damage is refused."""

import struct
import warnings
from dataclasses import replace

import numpy as np
import pytest

import structsvm
from structsvm import AdviceWarning
from structsvm.features.columns import Columns
from structsvm.interop import ChainModel, ModelFileError, read_crfsuite, write_crfsuite
from structsvm.interop.chain_model import Weights
from structsvm.interop.crfsuite import to_bytes
from structsvm.tasks import SequenceLabeler, TokenFeatures

SEQUENCE = [["a"], ["b", "ü:x"], {"b": 2.0, "a": 0.5, "no": 1}]


def names(*texts):
    """A database whose hash tables are empty: names stand there by number alone."""
    records, offsets = b"", []
    for number, text in enumerate(texts):
        key = text.encode() + b"\0"
        offsets.append(24 + 8 * 256 + len(records))
        records += struct.pack("<II", number, len(key)) + key
    backward = 24 + 8 * 256 + len(records)
    head = struct.pack("<4sIIIII", b"CQDB", backward + 4 * len(texts), 0, 0x62445371, len(texts), backward)
    return head + bytes(8 * 256) + records + struct.pack(f"<{len(texts)}I", *offsets)


def by_hand():
    """Labels X, Y; a: X 1.5, Y -2; b: Y .25; ü:x: X 3; after X: X -1; after Y: X .5."""
    weights = [(0, 0, 0, 1.5), (0, 0, 1, -2.0), (1, 1, 0, 0.5), (0, 1, 1, 0.25), (1, 0, 0, -1.0), (0, 2, 0, 3.0)]
    chunks = [
        struct.pack("<4sII", b"FEAT", 12 + 20 * 6, 6) + b"".join(struct.pack("<IIId", *weight) for weight in weights),
        names("X", "Y"),
        names("a", "b", "ü:x"),
    ]
    places = [48, *(48 + np.cumsum([len(chunk) for chunk in chunks])).tolist()]
    lists = places[3] + 12 + 16
    chunks.append(struct.pack("<4sII4I", b"LFRF", 44, 4, lists, lists + 8, 0, 0) + struct.pack("<4I", 1, 4, 1, 2))
    places.append(places[3] + 44)
    lists = places[4] + 12 + 12
    chunks.append(
        struct.pack("<4sII3I", b"AFRF", 52, 3, lists, lists + 12, lists + 20) + struct.pack("<7I", 2, 0, 1, 1, 3, 1, 5)
    )
    size = 48 + sum(map(len, chunks))
    return struct.pack("<4sI4s9I", b"lCRF", size, b"FOMC", 100, 0, 2, 3, *places) + b"".join(chunks)


HAND = by_hand()


def same(one, other):
    assert (one.kind, one.labels, one.attributes) == (other.kind, other.labels, other.attributes)
    for a, b in zip(one.states, other.states, strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(one.transitions, other.transitions)


def test_a_file_written_by_hand(tmp_path):
    (tmp_path / "m.crfsuite").write_bytes(HAND)
    model = read_crfsuite(tmp_path / "m.crfsuite")
    assert (model.kind, model.labels, model.attributes) == ("crfsuite", ["X", "Y"], ["a", "b", "ü:x"])
    assert model.states.rows().tolist() == [0, 0, 1, 2]
    assert model.states.targets.tolist() == [0, 1, 1, 0]
    assert model.states.weights.tolist() == [1.5, -2.0, 0.25, 3.0]
    assert model.transitions.tolist() == [[-1.0, 0.0], [0.5, 0.0]]
    assert model.start is model.end is model.pairs is None
    assert model.predict([SEQUENCE]) == [["X", "X", "X"]]
    assert model.score(SEQUENCE, ["X", "X", "Y"]) == 1.5 - 1.0 + 3.0 + 0.0 + (2.0 * 0.25 - 0.5 * 2.0)
    same(read_crfsuite(HAND), model)


def test_what_is_written_is_read_back(tmp_path):
    rng = np.random.default_rng(0)
    labels, attributes = ["B-é", "", "I\t"], [f"word:{k}" * (k % 5) or "w" for k in range(40)]
    attributes = [f"{k}{name}" for k, name in enumerate(attributes)]
    table = rng.normal(size=(40, 3)) * (rng.random((40, 3)) < 0.5)
    rows, targets = np.nonzero(table)
    model = ChainModel(
        "crfsuite",
        labels,
        attributes,
        Weights.of_entries(rows, targets, table[rows, targets], 40),
        transitions=rng.normal(size=(3, 3)) * (rng.random((3, 3)) < 0.7),
    )
    write_crfsuite(model, tmp_path / "m")
    again = read_crfsuite(tmp_path / "m")
    kept = table.any(axis=1)
    assert again.attributes == [name for name, has in zip(attributes, kept, strict=True) if has]  # others say nothing
    np.testing.assert_array_equal(again.transitions, model.transitions)
    x = [rng.choice(attributes, 5).tolist() for _ in range(6)]
    assert again.score(x, ["", "I\t"] * 3) == model.score(x, ["", "I\t"] * 3)
    write_crfsuite(again, tmp_path / "n")
    assert (tmp_path / "n").read_bytes() == (tmp_path / "m").read_bytes()


# ---- trained models -----------------------------------------------------------------------------


def data(n=120, seed=0, numbers=False, first=True):
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        words = rng.integers(20, size=rng.integers(1, 8))
        own = [{"w": f"w{w}", "n": {"b": f"w{v}"}} for w, v in zip(words, [20, *words], strict=False)]
        for t, token in enumerate(own):
            token |= {"__BOS__": t == 0} if first else {}
            token |= {"size": float(words[t]) + 0.5, "far": 1e3 * float(words[t] % 4 + 1)} if numbers else {}
        X.append(own)
        y.append([int(sum(words[max(t - 1, 0) : t + 1]) % 3) for t in range(len(words))])
    return X, y


def texts(y):
    return [[str(label) for label in labels] for labels in y]


def fitted(X, y, **params):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return SequenceLabeler(random_state=0, **params).fit(X, y)


CASES = {
    "log": ({"loss": "log", "C": 1.0}, {}),
    "margin": ({"loss": "hamming", "C": 0.1}, {}),
    "numbers": ({"loss": "log", "C": 1.0}, {"numbers": True}),
    "end": ({"loss": "log", "C": 1.0, "features": TokenFeatures(end=True)}, {}),
}


@pytest.mark.parametrize("name", CASES)
def test_a_trained_model_keeps_labels_and_probabilities(tmp_path, name):
    params, about = CASES[name]
    (X, y), (X_test, _) = data(**about), data(20, seed=1, **about)
    model = fitted(X, y, **params)
    ends = pytest.warns(AdviceWarning, match="last='__EOS__'") if name == "end" else warnings.catch_warnings()
    with ends:
        write_crfsuite(model, tmp_path / "m")
    read = read_crfsuite(tmp_path / "m")
    assert read.labels == ["0", "1", "2"]
    tokens = [[{**token, "__EOS__": t + 1 == len(x)} for t, token in enumerate(x)] for x in X_test]
    assert read.predict(tokens) == texts(map(list, model.predict(X_test)))
    for own, theirs in zip(model.predict_marginals(X_test), read.predict_marginals(tokens), strict=True):
        np.testing.assert_allclose(own, theirs, atol=2e-6)


def test_first_labels_need_an_attribute(tmp_path):
    X, y = data(first=False)
    model = fitted(X, y, loss="log", C=1.0)
    with pytest.warns(
        AdviceWarning, match="first='start': the model has weights of first labels.*give it to all first"
    ):
        write_crfsuite(model, tmp_path / "m", first="start")
    tokens = [[{**token, "start": t == 0} for t, token in enumerate(x)] for x in X]
    assert read_crfsuite(tmp_path / "m").predict(tokens) == texts(map(list, model.predict(X)))


def test_templates_and_a_loaded_model(tmp_path):
    X = [["the", "dog", "sees"], ["a", "cat"], ["runs"], ["the", "cat", "sees", "a", "dog"]] * 3
    y = [["D", "N", "V"], ["D", "N"], ["V"], ["D", "N", "V", "D", "N"]] * 3
    columns = Columns.from_sequences([[(word,) for word in x] for x in X])
    model = fitted(columns, y, templates="U:%x[0,0]\nU1:%x[-1,0]\nB\n", loss="log", C=1.0)
    model.save(tmp_path / "own")
    for one in (model, structsvm.load(tmp_path / "own")):
        with pytest.warns(AdviceWarning, match="first="):
            write_crfsuite(one, tmp_path / "m")
    tokens = [[["U:a", "__BOS__"], ["U:cat", "U1:a"]]]
    assert read_crfsuite(tmp_path / "m").predict(tokens) == [["D", "N"]]


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"inference": "greedy"}, "greedy"),
        ({"order": 2}, "three labels"),
        (
            {"constraints": (np.eye(3, dtype=bool) < 2, np.array([True, True, False]), None), "broken": "predict"},
            "constraints",
        ),
        ({"features": TokenFeatures(hash_bits=8)}, "hashed"),
        ({"features": TokenFeatures(bigrams="w")}, "pairs of labels"),
    ],
)
def test_refused_models(tmp_path, params, message):
    X, y = data(40)
    (tmp_path / "m").write_bytes(b"old")
    with pytest.raises(ValueError, match=f"model: .*{message}.* train"):
        write_crfsuite(fitted(X, y, C=0.1, **params), tmp_path / "m")
    assert (tmp_path / "m").read_bytes() == b"old"


def test_refused_names(tmp_path):
    model = read_crfsuite(HAND)
    for change, message in (
        ({"labels": ["X", "a\0b"]}, "the label b'a\\\\x00b' has a zero byte"),
        ({"attributes": ["a", "b\0", "c"]}, "the attribute b'b\\\\x00' has a zero byte"),
    ):
        with pytest.raises(ValueError, match=message):
            write_crfsuite(replace(model, **change), tmp_path / "m")


# ---- damage -------------------------------------------------------------------------------------

STATES, TRANSITIONS = HAND.index(b"AFRF"), HAND.index(b"LFRF")
LABELS = HAND.index(b"CQDB")


@pytest.mark.parametrize(
    ("at", "value", "message"),
    [
        (0, 0, "no model of CRFsuite: wanted b'lCRF'"),
        (4, len(HAND) + 1, "the file is cut off: its header announces"),
        (8, 0, "wanted kind b'FOMC' and version 100"),
        (12, 101, "wanted kind b'FOMC' and version 100, got b'FOMC' and 101"),
        (20, 1, "no (transition|state) of its own"),
        (20, 0, "offset 20: 0 labels: wanted 1 to 4,096"),
        (20, 5000, "5,000 labels: wanted 1 to 4,096"),
        (20, 3, "3 names are announced"),
        (24, 4, "4 names are announced"),
        (28, 1 << 31, "offset 2,147,483,648: wanted b'FEAT', the file has"),
        (28, 0, "offset 0: wanted b'FEAT', got b'lCRF'"),
        (32, len(HAND) - 10, "a database of names does not fit"),
        (36, 48, "wanted 'CQDB'"),
        (40, STATES, "wanted b'LFRF', got b'AFRF'"),
        (44, len(HAND), "wanted b'AFRF'"),
        (48 + 8, 1 << 30, "1,073,741,824 weights do not fit"),
        (48 + 12, 7, "no state of its own"),
        (48 + 16, 1, "no state of its own"),
        (48 + 20, 2, "no state of its own"),
        (48 + 20, 1, "no state of its own"),
        (48 + 28, 0x7FF00000, "offset 72: a weight is not finite|offset 60: a weight is not finite"),
        (TRANSITIONS + 8, 1, "2 lists of weights are wanted, 1 announced"),
        (TRANSITIONS + 12, 1 << 31, "a list of weights is beyond the file"),
        (TRANSITIONS + 28, 1 << 31, "the lists name more weights than the 6"),
        (TRANSITIONS + 32, 6, "a list names weight 6 of 6"),
        (TRANSITIONS + 32, 2, "no transition of its own"),
        (STATES + 28, 1, "no state of its own"),
    ],
)
def test_damage_is_refused(tmp_path, at, value, message):
    damaged = bytearray(HAND)
    struct.pack_into("<I", damaged, at, value)
    path = tmp_path / "m.crfsuite"
    path.write_bytes(damaged)
    with pytest.raises(ModelFileError, match=message) as error:
        read_crfsuite(path)
    assert str(error.value).startswith(f"{path}: ")


@pytest.mark.parametrize("size", [0, 3, 4, 47, 48, 60, LABELS + 10, TRANSITIONS + 20, len(HAND) - 1])
def test_a_cut_file_is_refused(size):
    with pytest.raises(ModelFileError, match=r"^model: "):
        read_crfsuite(HAND[:size])


def test_lists_that_overlap_take_no_more_memory_than_the_file():
    """All attributes point to one long list, which would be read once for each."""
    labels, attributes = ["X"], [str(k) for k in range(2000)]
    data = to_bytes(
        ChainModel("crfsuite", labels, attributes, Weights(np.arange(2001), np.zeros(2000, np.int32), np.ones(2000)))
    )
    at = data.index(b"AFRF")
    lists = at + 12 + 4 * 2000
    forged = data[: at + 12] + struct.pack("<I", lists) * 2000 + struct.pack("<I", 1999) + data[lists + 4 :]
    with pytest.raises(ModelFileError, match="the lists name more weights than the 2,000"):
        read_crfsuite(forged)


# ---- beside the program -------------------------------------------------------------------------


def trained_there(folder, seed, **params):
    pycrfsuite = pytest.importorskip("pycrfsuite")
    X, y = data(60, seed=seed, numbers=seed % 2 == 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trainer = pycrfsuite.Trainer(verbose=False, params=params)
    for x, labels in zip(X, texts(y), strict=True):
        trainer.append(x, labels)
    trainer.train(str(folder / "theirs"))
    tagger = pycrfsuite.Tagger()
    tagger.open(str(folder / "theirs"))
    return tagger, X


@pytest.mark.parametrize("seed", range(4))
def test_read_and_written_as_the_program_does(tmp_path, seed):
    theirs, X = trained_there(tmp_path, seed, c1=0.1 * (seed // 2), max_iterations=20)
    model = read_crfsuite(tmp_path / "theirs")
    assert model.labels == theirs.labels()
    for x in X:
        labels = theirs.tag(x)
        lattice = model.tagger.lattice(x)
        assert model.tagger.tag(lattice) == labels
        assert model.tagger.probability(lattice, labels) == pytest.approx(theirs.probability(labels), abs=1e-9)
        expected = [[theirs.marginal(label, t) for label in model.labels] for t in range(len(x))]
        np.testing.assert_allclose(model.tagger.marginals(lattice), expected, atol=1e-9)
    assert to_bytes(model) == (tmp_path / "theirs").read_bytes()


def test_ties_go_where_the_program_s_go(tmp_path):
    """Weights are few whole numbers, so that many labellings have the same score."""
    pycrfsuite = pytest.importorskip("pycrfsuite")
    rng = np.random.default_rng(0)
    n_ties = 0
    for seed in range(20):
        table, between = rng.integers(-1, 2, size=(6, 4)), rng.integers(-1, 2, size=(4, 4)).astype(float)
        rows, targets = np.nonzero(table)
        states = Weights.of_entries(rows, targets, table[rows, targets].astype(float), 6)
        model = ChainModel("crfsuite", list("DBCA"), list("uvwxyz"), states, transitions=between)
        write_crfsuite(model, tmp_path / "m")
        theirs = pycrfsuite.Tagger()
        theirs.open(str(tmp_path / "m"))
        for _ in range(20):
            x = [rng.choice(list("uvwxyz"), 2).tolist() for _ in range(rng.integers(1, 7))]
            assert model.tagger.tag(x) == theirs.tag(x), seed
            best = model.tagger.kbest(x, 2)
            n_ties += len(best) > 1 and best[0][0] == best[1][0]
    assert n_ties > 100


def test_the_program_opens_a_trained_model(tmp_path):
    pycrfsuite = pytest.importorskip("pycrfsuite")
    X, y = data()
    model = fitted(X, y)
    write_crfsuite(model, tmp_path / "m")
    tagger = pycrfsuite.Tagger()
    tagger.open(str(tmp_path / "m"))
    marginals = model.predict_marginals(X)
    for x, labels, own in zip(X, model.predict(X), marginals, strict=True):
        assert tagger.tag(x) == [str(label) for label in labels]
        expected = [[tagger.marginal(str(label), t) for label in model.classes_] for t in range(len(x))]
        np.testing.assert_allclose(own, expected, atol=2e-6)


def test_each_word_of_a_kind_has_an_attribute(tmp_path):
    """Words of a kind share a feature of a model, and have a name each in the file."""
    draw = np.random.default_rng(0)
    words = [f"{a}{b}{c}" for a in "bdgk" for b in "lnrs" for c in "vwxz"]
    labels = {word: label for words, label in ((words[::2], "given"), (words[1::2], "family")) for word in words}
    X = [draw.choice(words, 4).tolist() for _ in range(60)]
    y = [[labels[word] for word in x] for x in X]
    templates = "U:both=%x[0,0]/%x[1,0]\nU:k=%kind[0,0]\nU:k[1]=%kind[1,0]\nB\n"
    model = SequenceLabeler(C=0.1, templates=templates, loss="hamming", probability=False, random_state=0).fit(X, y)
    path = str(tmp_path / "m.crfsuite")
    with pytest.warns(AdviceWarning, match="first='__BOS__'"):
        write_crfsuite(model, path)

    def attributes(x):
        after = [*x[1:], "_B+1"]
        names = [[f"U:both={a}/{b}", f"U:k={a}", f"U:k[1]={b}"] for a, b in zip(x, after, strict=True)]
        return [[*names[0], "__BOS__"], *names[1:]]

    unseen = [draw.choice(words, 5).tolist() for _ in range(40)]
    wanted = model.predict(unseen)
    assert np.mean([labels[word] == label for x, y in zip(unseen, wanted) for word, label in zip(x, y)]) > 0.9
    chain = read_crfsuite(path)
    assert sum(name.startswith("U:k=") for name in chain.attributes) > 50
    assert chain.predict(list(map(attributes, unseen))) == wanted
    original = pytest.importorskip("pycrfsuite")
    tagger = original.Tagger()
    tagger.open(path)
    assert [tagger.tag(attributes(x)) for x in unseen] == wanted
