"""SequenceLabeler's model files: what comes back, and what no file may do."""

import copy
import itertools
import json
import os
import pickle
import re
import struct
import warnings
import zlib

import numpy as np
import pytest

import structsvm
from structsvm import AdviceWarning, ConvergenceWarning, LaRank, ModelFileError, PassiveAggressive, Perceptron
from structsvm.datasets import make_sequences
from structsvm.features.columns import Columns
from structsvm.model_file import read_model, write_model
from structsvm.tasks import SequenceLabeler, TokenFeatures
from structsvm.tasks.sequence.model import SequenceModel

X, y = make_sequences(30, n_labels=5, n_words=100, mean_length=6.0, random_state=0)
X_test, y_test = make_sequences(20, n_labels=5, n_words=100, mean_length=6.0, random_state=1)
columns, columns_test = Columns.from_sequences(X), Columns.from_sequences(X_test)
classes = sorted({label for s in y for label in s})
K = len(classes)
rng = np.random.default_rng(0)
dense = [rng.normal(size=(len(s), 5)) for s in X]

MASK = np.ones((K, K), dtype=bool)
MASK[0, 1] = all((a, b) != (classes[0], classes[1]) for s in y for a, b in itertools.pairwise(s)) ^ True

BIGRAM_TEMPLATES = "U0:%x[0,0]\nU1:%x[0,1]\nB\nB0:%x[0,0]\nB1:%x[-1,1]/%x[0,1]\n"

CONFIGURATIONS = [
    {},
    {"C": 1.0, "max_iter": 2, "random_state": 7, "n_jobs": 2, "verbose": False, "warm_start": True},
    {"C": np.float64(1.0), "max_iter": np.int64(2)},
    {"tol": 0.5},
    {"order": 2, "features": TokenFeatures(end=True)},
    {"loss": "zero_one"},
    {"inference": "greedy", "order": 0},
    {"inference": "greedy", "order": 7},
    {"constraints": "bio"},
    {"constraints": (MASK, None, np.ones(K, dtype=bool))},
    {"constraints": "bio", "inference": "greedy"},
    {"class_weight": "balanced"},
    {"class_weight": {"O": 2.0, "B-NP": 0.5}},
    {"features": TokenFeatures(min_count=2)},
    {"features": TokenFeatures(hash_bits=9)},
    {"templates": "crf++"},
    {"templates": "U00:%x[0,0]\nU01:%x[-1,0]/%x[0,1]\nB\n"},
    {"templates": BIGRAM_TEMPLATES},
    {"templates": BIGRAM_TEMPLATES, "features": TokenFeatures(hash_bits=6)},
    {"templates": BIGRAM_TEMPLATES, "inference": "greedy"},
    {"templates": BIGRAM_TEMPLATES, "order": 2, "features": TokenFeatures(min_count=2)},
    {"solver": "perceptron"},
    {"solver": "passive_aggressive"},
    {"solver": LaRank(C=0.3, schedule="adaptive", average=False, max_iter=3)},
    {"solver": LaRank(C=0.3, rescaling="slack", penalty="quadratic", random_state=np.random.RandomState(0))},
    {"solver": PassiveAggressive(C=0.5)},
    {"solver": Perceptron(average=False, max_iter=2)},
]


def shown(value):
    """A parameter for comparison; masks that allow all are stored as None."""
    if isinstance(value, tuple):
        return tuple(None if part is None or part.all() else part.tolist() for part in value)
    if isinstance(value, (LaRank, PassiveAggressive, Perceptron)):
        params = {k: None if isinstance(v, np.random.RandomState) else v for k, v in value.get_params().items()}
        return type(value).__name__, params
    return value


@pytest.mark.parametrize("params", CONFIGURATIONS, ids=lambda params: re.sub(" at 0x[0-9A-F]+", "", str(params)))
def test_every_configuration_comes_back(tmp_path, params):
    path = tmp_path / "x.model"
    with np.errstate(all="raise"):
        model = SequenceLabeler(**params).fit(columns, y)
    model.save(path, training_state=True)
    for mmap in (False, True):
        loaded = structsvm.load(path, mmap=mmap)
        assert type(loaded) is SequenceLabeler
        assert {k: shown(v) for k, v in loaded.get_params(deep=False).items()} == {
            k: shown(v) for k, v in model.get_params(deep=False).items()
        }
        np.testing.assert_array_equal(loaded.model_.weights, model.model_.weights)
        assert loaded.predict(columns_test) == model.predict(columns_test)
        for ours, theirs in zip(
            loaded.decision_function(columns_test), model.decision_function(columns_test), strict=True
        ):
            np.testing.assert_array_equal(ours, theirs)
        assert loaded.classes_.tolist() == model.classes_.tolist()
        assert loaded.classes_.dtype == model.classes_.dtype
        assert loaded.feature_names_ == model.feature_names_
        assert loaded.n_features_in_ == model.n_features_in_
        assert loaded.n_iter_ == model.n_iter_
        assert loaded.result_.to_dict() == model.result_.to_dict()
        for name, column in model.result_.history.items():
            np.testing.assert_array_equal(loaded.result_.history[name], column)
        loaded.save(tmp_path / "again.model", training_state=True)
        assert (tmp_path / "again.model").read_bytes() == path.read_bytes()


@pytest.mark.parametrize(
    ("data", "bigrams"),
    [(X, None), (dense, None), (X, X[0][0][1]), (X, (X[0][0][1], X[1][0][1])), (dense, "2")],
    ids=["attributes", "numeric", "a name", "names", "a column"],
)
@pytest.mark.filterwarnings("ignore::structsvm.ConvergenceWarning")  # rows that say nothing of the labels
def test_every_kind_of_features_comes_back(tmp_path, data, bigrams):
    model = SequenceLabeler(features=TokenFeatures(bigrams=bigrams), random_state=0).fit(data, y)
    model.save(tmp_path / "m")
    loaded = structsvm.load(tmp_path / "m")
    assert loaded.predict(data) == model.predict(data)
    assert loaded.features.bigrams == bigrams
    assert loaded.bigram_names_ == model.bigram_names_
    assert set(model.bigram_names_) == (set() if bigrams is None else set(np.ravel(bigrams).tolist()))
    np.testing.assert_array_equal(loaded.bigram_, model.bigram_)


def test_templates_of_a_file_that_is_gone(tmp_path):
    (tmp_path / "templates").write_text("U00:%x[0,0]\nU01:%x[0,1]\nB\n")
    model = SequenceLabeler(templates=tmp_path / "templates", random_state=0, warm_start=True, max_iter=1).fit(
        columns, y
    )
    model.save(tmp_path / "m")
    (tmp_path / "templates").unlink()
    loaded = SequenceLabeler.load(tmp_path / "m")
    assert loaded.templates == "U00:%x[0,0]\nU01:%x[0,1]\nB\n"
    assert loaded.fit(columns, y).n_iter_ == 2


def test_a_solver_of_ones_own_is_left_out(tmp_path):
    class Mine(LaRank):
        pass

    SequenceLabeler(solver=Mine(C=1.0)).fit(columns, y).save(tmp_path / "m")
    assert SequenceLabeler.load(tmp_path / "m").solver == "larank"


def test_pickle_and_copies():
    model = SequenceLabeler(random_state=0, solver=LaRank(C=0.2)).set_params(random_state=None).fit(columns, y)
    for other in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model), copy.copy(model)):
        assert other.predict(columns_test) == model.predict(columns_test)
        assert other.get_params()["solver__C"] == 0.2


def test_labels_of_every_kind_that_json_holds(tmp_path):
    labels = ["O", "étiquette", 0, -(2**70), 2.5, True, ("a", 1, ("b", None))]
    X = [[[f"w{k}"] for k in range(len(labels))]] * 3
    model = SequenceLabeler(C=10.0, random_state=0).fit(X, [labels] * 3)
    model.save(tmp_path / "m")
    loaded = SequenceLabeler.load(tmp_path / "m")
    assert loaded.predict(X) == [labels] * 3
    assert list(map(type, loaded.classes_)) == list(map(type, model.classes_))


@pytest.mark.parametrize("label", [frozenset("a"), b"bytes", 1j, float("inf"), ("a", b"b")])
def test_labels_that_no_file_holds(tmp_path, label):
    path = tmp_path / "m"
    model = SequenceLabeler().fit([[["a"], ["b"]]], [["A", label]])
    with pytest.raises(TypeError, match=r"a model file cannot hold the label|is inf, which JSON"):
        model.save(path)
    assert os.listdir(tmp_path) == []
    SequenceLabeler().fit(columns, y).save(path)
    before = path.read_bytes()
    with pytest.raises(TypeError):
        model.save(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["m"]


def test_a_save_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "m"
    model = SequenceLabeler().fit(columns, y)
    model.save(path)
    before = path.read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        model.set_params(C=3.0).fit(columns, y).save(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["m"]


# ---- files that are not sound ------------------------------------------------------------------


@pytest.fixture
def no_fsync(monkeypatch):
    """Thousands of files that need not outlive a power cut."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


FEW = 12  # sequences: what a file holds is not their number


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """Files of several kinds, and what is in them; the first has a choice of C and the sum of two losses."""
    folder = tmp_path_factory.mktemp("sound")
    found = {}
    few, named = Columns.from_sequences(X[:FEW]), TokenFeatures(bigrams=[X[0][0][1], X[1][0][1]])
    for name, params, data in [
        ("columns", {"constraints": "bio", "templates": "U0:%x[0,0]\nU1:%x[-1,1]/%x[0,1]\nB\n"}, few),
        ("attributes", {"class_weight": {"O": 2.0}, "order": 2, "solver": LaRank(C=0.1, max_iter=2)}, X[:FEW]),
        ("numeric", {"inference": "greedy", "solver": "perceptron"}, dense[:FEW]),
        ("hashed", {"features": TokenFeatures(hash_bits=6), "C": 1.0, "loss": "hamming", "max_iter": 1}, few),
        ("bigrams", {"templates": BIGRAM_TEMPLATES, "C": 1.0, "loss": "log", "max_iter": 1}, few),
        ("named bigrams", {"features": named, "inference": "greedy", "max_iter": 1}, X[:FEW]),
    ]:
        path = folder / name
        SequenceLabeler(**params).fit(data, y[:FEW]).save(path, training_state=True)
        file = read_model(path)
        found[name] = path, file.meta, file.arrays, data
    return found


KINDS = ["columns", "attributes", "numeric", "hashed", "bigrams", "named bigrams"]


def load_and_use(path, data, *, train=True):
    """Load; what loads must also work, or say in a ValueError why training cannot go on."""
    model = structsvm.load(path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", AdviceWarning)  # names and units are forged
            model.predict(data)
    except ValueError as error:  # forged masks and weights; a model of three columns
        known = ("no labelling", "no label is left", "columns without the label", "overflow float32")
        assert any(part in str(error) for part in known), error  # noqa: PT017
    repr(model)
    assert model.result_ is None or model.result_.certificate()
    if not train:
        return
    model.set_params(
        warm_start=True, **({"max_iter": 1, "tol": None} if isinstance(model.solver, str) else {"solver__max_iter": 1})
    )
    try:
        with warnings.catch_warnings():
            for kind in (AdviceWarning, ConvergenceWarning):
                warnings.simplefilter("ignore", kind)
            model.fit(data, y[:FEW])
    except ValueError as error:
        assert not isinstance(error, UnicodeError), error  # noqa: PT017


@pytest.mark.parametrize("kind", KINDS)
def test_flipped_and_truncated_bytes(sound, kind, tmp_path):
    path, *_ = sound[kind]
    whole = path.read_bytes()
    bad = tmp_path / "bad"
    random = np.random.default_rng(0)
    places = np.concatenate([np.arange(0, 400, 7), random.integers(0, len(whole), 150)])
    for place in places.tolist():
        data = bytearray(whole)
        data[place] ^= 1 << random.integers(8)
        bad.write_bytes(data)
        with pytest.raises(ModelFileError):
            structsvm.load(bad)
    for size in [0, 1, 8, 15, 16, 100, *random.integers(0, len(whole), 30).tolist(), len(whole) - 1]:
        bad.write_bytes(whole[:size])
        with pytest.raises(ModelFileError):
            structsvm.load(bad)
    bad.write_bytes(whole + b"x")
    with pytest.raises(ModelFileError):
        structsvm.load(bad)


def places_in(value, path=()):
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from places_in(item, (*path, key))


def replaced(value, path, new):
    value = copy.deepcopy(value)
    inner = value
    for key in path[:-1]:
        inner = inner[key]
    if new is ...:
        del inner[path[-1]]
    else:
        inner[path[-1]] = new
    return value


HOSTILE = [
    ...,
    None,
    True,
    False,
    -1,
    0,
    1,
    3,
    2**31 - 1,
    2**31,
    2**63,
    10**30,
    0.5,
    -1.5,
    1e308,
    "",
    "x",
    "sequence",
    [],
    {},
    [None],
    [[]],
    {"tuple": 1},
    {"solver": "Solver"},
    {"solver": "LaRank", "params": {"C": -1}},
    {"weights": 3},
    {"masks": True},
    "U%x[99999,0]",
    "a" * 10_000,
]


@pytest.mark.filterwarnings("ignore:.* have no feature that the model knows:structsvm.AdviceWarning")
@pytest.mark.usefixtures("no_fsync")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.filterwarnings("ignore:.*of another version:structsvm.AdviceWarning")
def test_hostile_headers(sound, kind, tmp_path):
    """Every value in the header against every strange one, under a right checksum; the kinds of models share them."""
    _, meta, arrays, data = sound[kind]
    bad = tmp_path / "bad"
    refused = 0
    pairs = list(itertools.product(list(places_in(meta))[1:], HOSTILE))
    for place, new in pairs[KINDS.index(kind) :: len(KINDS)]:
        write_model(bad, "sequence", replaced(meta, place, new), arrays)
        try:
            # Parameters in range are served: a million passes, a C of 1e308.
            load_and_use(bad, data, train=place[0] in ("oracle", "fingerprint", "result"))
        except ModelFileError:
            refused += 1
    assert refused > 50


def strange(array, random):
    """Arrays that are not this one: other shapes, types, numbers out of any range."""
    yield None
    yield array.ravel()[:-1] if array.size else np.zeros(3, array.dtype)
    yield array[..., None]
    yield array.reshape(-1)
    yield np.zeros(0, array.dtype)
    for dtype in (np.float64, np.float32, np.int64, np.int32, np.uint8, np.bool_, np.complex128, "S3"):
        yield np.zeros(array.shape, dtype=dtype)
    fill = (
        [np.nan, np.inf, -np.inf, 3e38] if array.dtype.kind == "f" else [0, 1, 127] + [-1] * (array.dtype.kind == "i")
    )
    if array.dtype.kind == "i":
        fill += [np.iinfo(array.dtype).max, np.iinfo(array.dtype).min]
    for value in fill:
        yield np.full_like(array, value)
        if array.size:
            one = array.copy()
            one.flat[random.integers(array.size)] = value
            yield one
    if array.size > 1:
        yield np.roll(array, 1)
        yield array[::-1].copy()


@pytest.mark.usefixtures("no_fsync")
@pytest.mark.parametrize("kind", KINDS)
def test_hostile_arrays(sound, kind, tmp_path):
    _, meta, arrays, data = sound[kind]
    bad = tmp_path / "bad"
    random = np.random.default_rng(0)
    refused = 0
    for name, array in arrays.items():
        for new in itertools.islice(strange(array, random), KINDS.index(kind) % 2, None, 2):
            others = {k: v for k, v in arrays.items() if k != name or new is not None}
            if new is not None:
                others[name] = new
            write_model(bad, "sequence", meta, others)
            try:
                load_and_use(bad, data)
            except ModelFileError:
                refused += 1
    assert refused > 15


def test_a_header_of_ones_own_making(sound, tmp_path):
    path, *_ = sound["columns"]
    whole = path.read_bytes()
    length = struct.unpack("<I", whole[8:12])[0]
    header = json.loads(whole[16 : 16 + length])
    header["arrays"][0]["shape"] = [2**40, 2**20]
    text = json.dumps(header).encode().ljust(length)
    crc = zlib.crc32(text, zlib.crc32(struct.pack("<I", len(text))))
    (tmp_path / "bad").write_bytes(whole[:8] + struct.pack("<II", len(text), crc) + text + whole[16 + length :])
    with pytest.raises(ModelFileError):
        structsvm.load(tmp_path / "bad")


def test_huge_claims_allocate_nothing(sound, tmp_path):
    import tracemalloc

    _, meta, arrays, _ = sound["numeric"]
    for place, value in [
        (("oracle", "order"), 10**12),
        (("oracle", "n_token_features"), 10**9),
        (("encoder", "n_features"), 2**31 - 1),
        (("labels",), list(range(50_000))),
    ]:
        write_model(tmp_path / "bad", "sequence", replaced(meta, place, value), arrays)
        tracemalloc.start()
        with pytest.raises(ModelFileError):
            structsvm.load(tmp_path / "bad")
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 200e6


def test_files_of_another_task_or_version(sound, tmp_path):
    path, meta, arrays, _ = sound["columns"]
    write_model(tmp_path / "other", "cookery", meta, arrays)
    with pytest.raises(ModelFileError, match="a model of the task 'cookery', which this version does not know"):
        structsvm.load(tmp_path / "other")
    with pytest.raises(ModelFileError, match="for the task 'cookery', but one for 'sequence' was wanted"):
        SequenceLabeler.load(tmp_path / "other")
    whole = path.read_bytes()
    length = struct.unpack("<I", whole[8:12])[0]
    text = whole[16 : 16 + length].replace(b'"schema":2', b'"schema":9')
    crc = zlib.crc32(text, zlib.crc32(struct.pack("<I", len(text))))
    (tmp_path / "new").write_bytes(whole[:8] + struct.pack("<II", len(text), crc) + text + whole[16 + length :])
    with pytest.raises(ModelFileError, match="schema 9; this version reads up to schema 2: upgrade"):
        structsvm.load(tmp_path / "new")
    (tmp_path / "text").write_text("He PRP B-NP\n")
    with pytest.raises(ModelFileError, match="not a structsvm model file"):
        structsvm.load(tmp_path / "text")
    with pytest.raises(ModelFileError, match="is a directory"):
        structsvm.load(tmp_path)
    with pytest.raises(FileNotFoundError):
        structsvm.load(tmp_path / "none")


def test_keys_of_a_later_version_are_no_harm(sound, tmp_path):
    _, meta, arrays, data = sound["columns"]
    later = replaced(meta, ("params", "not_yet_known"), [1])
    write_model(tmp_path / "m", "sequence", later | {"more": 1}, arrays | {"more": np.zeros(3)})
    with pytest.warns(structsvm.AdviceWarning, match="had the parameters not_yet_known;"):
        model = structsvm.load(tmp_path / "m")
    assert model.predict(data)


def test_the_model_without_scikit_learn(tmp_path):
    """SequenceModel is what the command line uses: same file, same labels."""
    SequenceLabeler(random_state=0).fit(columns, y).save(tmp_path / "m")
    model = SequenceModel.load(tmp_path / "m", mmap=True)
    assert model.predict(columns_test) == SequenceLabeler.load(tmp_path / "m").predict(columns_test)
    assert model.params["random_state"] == 0
