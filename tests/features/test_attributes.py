"""Attribute strings and feature dicts, against a reference that takes them apart."""

import itertools
import os
import subprocess
import sys
from collections import UserDict

import numpy as np
import pytest
from feature_reference import added_up, copied_by_arrays, decoded, python_sequences, reference_token, same
from hypothesis import given

from structsvm.features._attributes import AttributeBuffer, KnownNames
from structsvm.features.encoder import FeatureEncoder
from structsvm.features.tokens import Tokens


@given(python_sequences, python_sequences)
def test_attributes_against_reference(train, test):
    encoder = FeatureEncoder()
    tokens = encoder.fit_transform(iter(train))
    names = encoder.feature_names
    reference = [[added_up(reference_token(t)) for t in s] for s in train]
    found = decoded(tokens, names)
    for s, wanted in zip(found, reference, strict=True):
        for token, want in zip(s, wanted, strict=True):
            assert {k: v for k, v in token.items() if v} == pytest.approx(
                {k: v for k, v in want.items() if v}, abs=1e-6
            )
    known = set(names)
    other = decoded(encoder.transform(test), names)
    assert same(copied_by_arrays(encoder).transform(test), encoder.transform(test))
    for s, wanted in zip(other, test, strict=True):
        for token, python_token in zip(s, wanted, strict=True):
            want = added_up(reference_token(python_token))
            assert {k: v for k, v in token.items() if v} == pytest.approx(
                {k: v for k, v in want.items() if v and k in known}, abs=1e-6
            )


@given(python_sequences)
def test_attributes_as_python_crfsuite_has_them(sequences):
    pycrfsuite = pytest.importorskip("pycrfsuite")
    encoder = FeatureEncoder()
    found = decoded(encoder.fit_transform(sequences), encoder.feature_names)
    for s, sequence in enumerate(sequences):
        names = [set(item) for item in pycrfsuite.ItemSequence(sequence).items()]
        assert all(set(a) <= b for a, b in zip(found[s], names, strict=True))


def test_a_token_of_every_form():
    token = {
        "w": "the",
        "n": 2,
        "t": True,
        "f": False,
        "d": {"x": "y", "e": {"z": 0.5}},
        "l": ["p", "q", "p"],
        "np": np.float32(1.5),
        "s": np.str_("str"),
        "b": b"bytes",
    }
    encoder = FeatureEncoder()
    tokens = encoder.fit_transform([[token], [["w:the", "n"], (), {}]])
    assert decoded(tokens, encoder.feature_names) == [
        [{"w:the": 1, "n": 2, "t": 1, "d:x:y": 1, "d:e:z": 0.5, "l:p": 2, "l:q": 1, "np": 1.5,
          "s:str": 1, "b:bytes": 1}],
        [{"w:the": 1, "n": 1}, {}, {}],
    ]  # fmt: skip


def test_min_count_of_attributes():
    encoder = FeatureEncoder(min_count=2)
    tokens = encoder.fit_transform([[["a", "b"], ["c", "b"]], [["b", "c", "d"]]])
    assert encoder.feature_names == ["b", "c"]
    assert tokens.values is None
    assert tokens.indices.tolist() == [0, 0, 1, 0, 1]
    assert same(encoder.transform([[["a", "b"], ["c", "b"]], [["b", "c", "d"]]]), tokens)


def test_a_generator_is_encoded_as_it_comes():
    alive = []

    class Sequence(list):
        def __init__(self, *args):
            super().__init__(*args)
            alive.append(1)

        def __del__(self):
            alive.pop()

    most = 0

    def stream():
        nonlocal most
        for i in range(100):
            yield Sequence([[f"w{i % 5}"]])
            most = max(most, len(alive))

    assert len(FeatureEncoder().fit_transform(stream())) == 100
    assert most <= 2


def test_hashed_attributes():
    X = [[["a", "b:c"], {"b": "c", "x": 0.5}]]
    encoder = FeatureEncoder(hash_bits=20)
    tokens = encoder.transform(X)  # needs no fit
    assert tokens.n_features == 2**20
    (a, bc), (bc2, x) = (tokens.indices[tokens.indptr[t] : tokens.indptr[t + 1]].tolist() for t in (0, 1))
    assert {a, bc} & {bc2, x}
    assert same(copied_by_arrays(encoder).transform(X), tokens)
    with pytest.raises(ValueError, match="min_count=1"):
        FeatureEncoder(min_count=2, hash_bits=3)


def test_big_tokens_and_long_sequences():
    many = [f"f{i}" for i in range(5000)]
    encoder = FeatureEncoder()
    tokens = encoder.fit_transform([[many[::-1] + many[:10]], [["f1"]] * 100_000])
    assert tokens.n_tokens == 100_001
    assert tokens.values.sum() == 5010 + 100_000
    assert decoded(tokens[:1], encoder.feature_names)[0][0]["f3"] == 2
    assert decoded(encoder.transform([[["w" * 1_000_000, "f2"]]]), encoder.feature_names) == [[{"f2": 1}]]


def test_lone_surrogates_survive():
    encoder = FeatureEncoder()
    encoder.fit([[["\ud800", "x"]]])
    assert copied_by_arrays(encoder).feature_names == ["\ud800", "x"]
    FeatureEncoder(hash_bits=5).fit([[["\ud800"]]])


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        ([[["a"]], []], ValueError, "sequence 1 is empty"),
        ([[{"a": 1}, {"x": float("nan")}]], ValueError, "sequence 0, token 1: feature 'x' .* nan"),
        ([[{"a": {"x": float("inf")}}]], ValueError, "token 0: feature 'a:x' has the value inf"),
        ([[{"a": 1e300}]], ValueError, "feature 'a'"),
        ([[{"a": 10**400}]], ValueError, "feature 'a' has the value too large"),
        ([[{"a": None}]], TypeError, "sequence 0, token 0: feature 'a' .* type NoneType"),
        ([[{"a": 1j}]], TypeError, "feature 'a' has a value of type complex"),
        ([[{"a": np.array([1j])}]], TypeError, r"feature 'a\[0\]' has a value of type complex"),
        ([[{1: "x"}]], TypeError, "token 0: names of features must be strings, got 1 of type int"),
        ([[["a"], ["b", 3]]], TypeError, "sequence 0, token 1: names .* got 3 of type int"),
        ([[{"a": {"b", 3}}]], TypeError, "got 3 of type int"),
        ([[{"a": [1.0, None]}]], TypeError, r"feature 'a\[1\]' .* type NoneType"),
        ([[{"a": [0.0, float("nan")]}]], ValueError, r"feature 'a\[1\]' .* nan"),
        ([[["a"], "abc"]], TypeError, "token 1: a token must be a dict .* type str"),
        ([[["a"], None]], TypeError, "token 1: a token must be a dict .* type NoneType"),
        (
            [[["a"]], "abc"],
            TypeError,
            r"a list of tokens, got str; text.split\(\) makes one, and X of one alone is \[tokens\]",
        ),
        ([[["a"]], 7], TypeError, "sequence 1 must be a list of tokens, got int"),
        ([{"a": "b"}], TypeError, "sequence 0 must be a list of tokens, got dict"),
        ([[{b"\xff": "b"}]], ValueError, "not UTF-8"),
        ("abc", TypeError, "X must contain sequences"),
        (5, TypeError, "X must contain sequences"),
        ([], ValueError, "X contains no sequences"),
        (iter([]), ValueError, "X contains no sequences"),
    ],
)
def test_bad_attributes(X, error, message):
    with pytest.raises(error, match=message):
        FeatureEncoder().fit_transform(X)


def test_endless_nesting():
    token = {}
    token["a"] = token
    with pytest.raises(ValueError, match="nested more than"):
        FeatureEncoder().fit([[token]])


def test_errors_of_users_come_out_unchanged():
    class Weird:
        def __float__(self):
            raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        FeatureEncoder().fit([[{"a": Weird()}]])


def test_a_vocabulary_grows_from_buffer_to_buffer():
    names = {}
    for k in range(3):
        buffer = AttributeBuffer(names, True)
        buffer.add([[f"old{i}" for i in range(50)], [f"new{k}"]])
        offsets, indptr, indices, values = buffer.finish()
        assert indices.tolist() == [*range(50), 50 + k]
        assert buffer.counted().tolist() == [1] * 50 + [0] * k + [1]
        assert (offsets.tolist(), indptr.tolist(), values) == ([0, 2], [0, 50, 51], None)
    assert list(names.values()) == list(range(53))


def test_beginnings_of_names_are_remembered_while_they_are_few():
    tokens = [{f"a{k}": {"no": False} | {f"b{j}": 1 for j in range(k % 3)}, "bag": {f"w{k}": 2.0}} for k in range(5000)]
    flat = [
        [f"a{k}:b{j}" for j in range(k % 3)] + [f"bag:w{k}"] for k in range(5000)
    ]  # False is no feature, with a prefix or without
    names = {}
    buffer = AttributeBuffer(names, True)
    buffer.add(tokens)
    assert list(names) == [name for one in flat for name in one]
    known = KnownNames(list(names))
    for _ in range(2):
        found = AttributeBuffer(known)
        found.add(tokens)
        assert found.finish()[2].tolist() == [i for one in flat for i in sorted(names[name] for name in one)]
    assert known.n_remembered == 4096


def test_a_name_is_found_by_any_two_parts_of_it():
    """Keys and values have colons of their own, and letters outside ASCII; surrogates may stand alone."""
    given_and_found = [
        ({"a:b:c": 1}, ["a:b:c"]),
        ({"a": {"b": "c"}}, ["a:b:c"]),
        ({"a": "b:c"}, ["a:b:c"]),
        ({"a": {"b:c": True}, "": True}, ["a:b:c", ""]),
        ({"a": "", "": ""}, ["a:", ":"]),
        ({"a:b": {"d": {"e": True}}, "a": True}, ["a:b:d:e", "a"]),
        ({"é": "ü", "\ud83d": "\ude00", "\U0001f600": ("x",)}, ["é:ü", "\ud83d:\ude00", "\U0001f600:x"]),
        ({"A": "b:c", "a": "b:", "\ud83d\ude00": "x", "e\u0301": "ü"}, []),
    ]
    names = list(dict.fromkeys(name for _, found in given_and_found for name in found))
    known = KnownNames(names)
    for _ in range(2):  # beginnings are made, and found again
        buffer = AttributeBuffer(known)
        buffer.add([token for token, _ in given_and_found])
        _, indptr, indices, values = buffer.finish()
        found = [{names[j] for j in indices[a:b]} for a, b in itertools.pairwise(indptr)]
        assert found == [set(wanted) for _, wanted in given_and_found]
        assert values is None


def test_strings_that_a_value_frees_while_they_are_read():
    """Names are looked up long after they were read: until then the buffer keeps them."""
    token = {f"k{i}": f"v{i * i}" for i in range(100)}
    names = [*(f"{key}:{value}" for key, value in token.items()), "f"]

    class Clearing:
        def __float__(self):
            token.clear()
            self.others = [f"w{i * i}" for i in range(1000)]  # in the memory of those that are free now
            return 2.0

    buffer = AttributeBuffer(KnownNames(names))
    buffer.add([{}])
    token["f"] = Clearing()
    buffer.add([token, {"k3": "v9"}])
    _, indptr, indices, values = buffer.finish()
    assert indptr.tolist() == [0, 0, 101, 102]
    assert indices.tolist() == [*range(101), 3] and values.tolist() == [1.0] * 100 + [2.0, 1.0]


def test_strings_that_end_with_the_loop_over_a_mapping():
    class Made(UserDict):
        def items(self):
            return ((f"k{i}", f"v{i * i}") for i in range(100))

    names = [f"k{i}:v{i * i}" for i in range(100)]
    for token, wanted in ((Made(), names), (frozenset(names), sorted(names))):
        buffer = AttributeBuffer(KnownNames(wanted))
        buffer.add([token])
        assert buffer.finish()[2].tolist() == list(range(100))


def test_what_is_gathered_is_given_back():
    """Strings that tokens share, and one of a token that ends with an error."""
    names = ["a:long name", "long name"]
    word, other = names[0][2:], names[0][2:8]

    class Failing:
        def __float__(self):
            raise ZeroDivisionError("mine")

    before = sys.getrefcount(word), sys.getrefcount(other)
    buffer = AttributeBuffer(KnownNames(names))
    buffer.add([{"a": word}, [word, "é"], {}])
    with pytest.raises(ZeroDivisionError, match="mine"):
        buffer.add([{"a": word}, {"a": word, "b": other, "c": Failing()}])
    assert sys.getrefcount(word) == before[0] + 4 and sys.getrefcount(other) == before[1] + 1
    buffer.add([{"a": word}])
    assert sys.getrefcount(other) == before[1]
    _, indptr, indices, _ = buffer.finish()
    assert indptr.tolist() == [0, 1, 2, 2, 3, 4] and indices.tolist() == [0, 1, 0, 0]
    assert (sys.getrefcount(word), sys.getrefcount(other)) == before
    buffer.add([{"a": word}] * 3)
    del buffer
    assert sys.getrefcount(word) == before[0]


def test_more_names_than_are_looked_up_together():
    """Tokens and sequences end where they did, also empty ones; a token may have more names than the buffer holds."""
    sizes = [0, 1, 5000, 0, 20000, 7, 0, 3, 9000, 0]
    names = [f"w{k}" for k in range(max(sizes))]
    buffer = AttributeBuffer(KnownNames(names[::2]))
    for cut in (slice(0, 3), slice(3, 3), slice(3, 10)):
        buffer.add([names[:size] for size in sizes[cut]])
    offsets, indptr, indices, values = buffer.finish()
    assert offsets.tolist() == [0, 3, 3, 10] and values is None
    assert np.diff(indptr).tolist() == [(size + 1) // 2 for size in sizes]
    assert all(indices[a:b].tolist() == list(range(b - a)) for a, b in itertools.pairwise(indptr.tolist()))


def test_parts_are_encoded_as_the_whole():
    X = [[{"w": f"w{k % 7}", "n": float(k % 3), "bag": {"x", f"y{k}"}}, {f"w:w{k % 5}": 1, "é": 2}] for k in range(100)]
    encoder = FeatureEncoder().fit(X)
    X.append([])
    read = encoder.reader(X)
    whole = Tokens.joined([read(0, 40), read(40, 40), read(40, 101)])
    assert same(whole, encoder.transform(X))
    X[60] = [{"a": 1}, {3: 1}]
    for first in (0, 60):
        with pytest.raises(TypeError, match="sequence 60, token 1: names of features must be strings"):
            read(first, 101)


def test_other_data_are_read_as_a_whole():
    dicts, lists = [[{"w": "a"}], [{"w": "b"}]], [[["w:a"]], [["w:b"]]]
    encoder = FeatureEncoder().fit(dicts)
    assert encoder.reader(dicts) is not None and encoder.reader(lists) is not None
    for X in (iter(dicts), tuple(dicts), [], [[], *dicts], [["w:a"]], [[[]]], [[[3.0]]], [[("w:a",)]]):
        assert encoder.reader(X) is None
    for other, X in ((FeatureEncoder(hash_bits=5), dicts), (FeatureEncoder("attributes"), [["a", "b"]])):
        assert other.fit(X).reader(dicts) is None
    with pytest.raises(ValueError, match="training had 'w:', and X has 'v:'"):
        FeatureEncoder().fit([[{"w": str(k)}] for k in range(60)]).reader([[{"v": "a"}]] * 60)


def test_threads_that_run_at_the_same_time_share_no_beginnings(monkeypatch):
    X = [[{"w": f"w{k % 7}", "of": {"x": "y"}}] for k in range(20)]
    shared, own = (FeatureEncoder().fit(X)._vocabulary for _ in range(2))
    wanted = shared.transform(X)
    monkeypatch.setattr(sys, "_is_gil_enabled", lambda: False, raising=False)
    assert same(own.transform(X), wanted)
    assert own.known.n_remembered == 0
    monkeypatch.setattr(sys, "_is_gil_enabled", lambda: True)
    assert same(own.transform(X), wanted)
    assert own.known.n_remembered == 3


@pytest.mark.parametrize("value", [np.array("x"), np.array(b"x")])
def test_arrays_of_one_text_are_named(value):
    with pytest.raises(TypeError, match="sequence 1, token 1: feature 'a' has a value of type ndarray"):
        FeatureEncoder().fit([[{"b": 1}], [{"b": 1}, {"a": value}]])


@pytest.mark.parametrize("seed", range(3))
def test_known_names_are_found_whatever_the_order_of_keys(seed):
    """Against a dict of the joined names; keys come in any order, some are missing, some are new."""
    rng = np.random.default_rng(seed)
    keys, values = [f"k{i}" for i in range(9)], ["x", "y:z", "ß", "日本", ""]
    names = [f"{key}:{value}" for key in keys[:7] for value in values[:4]] + [*keys[:5], *(f"k8:{k}:x" for k in keys)]
    index, known = {name: i for i, name in enumerate(names)}, KnownNames(names)
    buffer, wanted = AttributeBuffer(known), []
    for _ in range(200):
        chosen = rng.permutation(keys)[: rng.integers(0, 10)].tolist()
        token = {str(key): values[rng.integers(5)] if rng.random() < 0.7 else True for key in chosen}
        if rng.random() < 0.3:
            token["k8"] = dict.fromkeys(chosen, "x")
        joined = [
            f"{key}:{inner}:x" if type(value) is dict else f"{key}:{value}" if type(value) is str else key
            for key, value in token.items()
            for inner in (value if type(value) is dict else [""])
        ]
        wanted.append(sorted(index[name] for name in joined if name in index))
        buffer.add([token])
    _, indptr, indices, numbers = buffer.finish()
    assert numbers is None
    assert [indices[a:b].tolist() for a, b in itertools.pairwise(indptr)] == wanted


# --- attributes conjoined with pairs of labels ----------------------------------------------------


def test_named_attributes_are_bigrams():
    X = [[{"word": "a", "words": "x"}, {"word": "a", "n": 2}, {"word": "b", "n": 0.5}], [["word=c"], ["word", "w"]]]
    encoder = FeatureEncoder(bigrams=["word", "n"])
    tokens = encoder.fit_transform(X)
    assert set(encoder.bigram_names) == {"word:a", "word:b", "n", "word"}  # "word=c" is at a first token
    assert encoder.n_bigrams == tokens.n_bigrams == 4
    wanted = [[{}, {"word:a": 1, "n": 2}, {"word:b": 1, "n": 0.5}], [{}, {"word": 1}]]
    assert decoded(tokens.bigrams, encoder.bigram_names) == wanted
    other = encoder.transform([[["word=c"], ["word=c", "word:a"]], []])
    assert decoded(other.bigrams, encoder.bigram_names) == [[{}, {"word:a": 1}], []]
    assert same(copied_by_arrays(encoder).transform(X), tokens)
    assert FeatureEncoder(bigrams="word").fit(X).bigram_names == ["word:a", "word:b", "word"]
    assert FeatureEncoder(bigrams="word", min_count=2).fit(X).bigram_names == []


def test_numeric_columns_as_bigrams():
    x = np.array([[1.0, 0.0], [2.0, 3.0], [0.0, 4.0]])
    encoder = FeatureEncoder(bigrams="1")
    tokens = encoder.fit_transform([x])
    assert decoded(tokens.bigrams, encoder.bigram_names) == [[{}, {"1": 3.0}, {"1": 4.0}]]
    assert same(copied_by_arrays(encoder).transform([x]), tokens)


@pytest.mark.parametrize(
    ("options", "X", "message"),
    [
        ({"bigrams": []}, None, r"bigrams must be names of attributes, or None; got \[\]"),
        ({"bigrams": ["a", 1]}, None, "bigrams must be names"),
        ({"bigrams": ""}, None, "bigrams must be names"),
        ({"bigrams": "a", "hash_bits": 4}, None, "hash_bits keeps no names"),
        ({"bigrams": "b"}, [[["a", "bc=1"]]], "no feature has the name 'b', nor 'b' and ':' or '=' before"),
        ({"bigrams": "a", "templates": "attributes"}, [[("a",)]], "templates do so by lines such as B01:"),
    ],
)
def test_bigrams_that_cannot_be(options, X, message):
    with pytest.raises(ValueError, match=message):
        FeatureEncoder(**options).fit(X)


HELD = """
import numpy as np
from structsvm.features.encoder import FeatureEncoder

class Word(str):
    pass

class Clearing:
    def __init__(self, owner):
        self.owner = owner
    def act(self):
        self.owner.clear()
        return [bytearray(n) for n in range(200)]

class Shape(Clearing):
    @property
    def shape(self):
        self.act()
        return ()
    def __float__(self):
        return 1.0

class Float(Clearing):
    def __float__(self):
        self.act()
        return 1.0

class Repr(Clearing):
    def __repr__(self):
        self.act()
        return "Repr()"

class Table:
    shape = (1,)
    def tolist(self):
        return {"".join(["ca", "ps"]): True, "".join(["lo", "w"]): "".join(["x", "yz"])}

encoder = FeatureEncoder().fit([[{"caps": True}, {"low": "xyz"}, {"t": {"caps": True}}, {"t": {"low": "xyz"}}, {}]] * 2)

def names(token):
    tokens = encoder.transform([[token]])
    return sorted(encoder.feature_names[i] for i in tokens.indices.tolist())

for key in (b"caps", np.str_("caps"), Word("caps")):
    assert names({key: True}) == ["caps"], key
for key in (b"low", np.str_("low"), Word("low")):
    assert names({key: "".join(["x", "yz"])}) == ["low:xyz"], key
assert names({"t": Table()}) == ["t:caps", "t:low:xyz"]
for kind in (Shape, Float):
    token = {}
    token["".join(["c", "aps"])] = kind(token)
    assert names(token) == ["caps"], kind
    inner = {}
    token = {"t": inner}
    inner["".join(["c", "aps"])] = kind(token)
    assert names(token) == ["t:caps"], kind
token = ["caps"]
token.append(Repr(token))
try:
    names(token)
except TypeError as error:
    assert "got Repr() of type Repr" in str(error), error
else:
    raise AssertionError("a name that is no string")
"""


def test_names_and_values_live_until_they_are_looked_up():
    """Memory that is given back is overwritten: what is read from it later is not the name."""
    command = [sys.executable, "-P", "-X", "faulthandler", "-c", HELD]
    done = subprocess.run(
        command, env=os.environ | {"PYTHONMALLOC": "debug"}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
