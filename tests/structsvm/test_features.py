"""The feature encoder, against a reference that builds every string."""

import copy
import io
import json
import os
import pickle
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from structsvm._strings import Interner
from structsvm._tokens import descending_order
from structsvm.columns import ColumnFileError, Columns, read_columns
from structsvm.features import FeatureEncoder, Tokens
from structsvm.templates import FUNCTIONS, TemplateError, parse_templates

# ------------------------------------------------------------------------ reference


def reference_templates(text, sequences):
    """Feature strings of every token, as CRF++ makes them."""
    templates, _ = parse_templates(text)
    out = []
    for rows in sequences:
        tokens = []
        for t in range(len(rows)):
            names = []
            for template in templates:
                name = template.literals[0]
                for item, literal in zip(template.items, template.literals[1:], strict=True):
                    p = t + item.row
                    if p < 0:
                        value = f"_B-{-p}"
                    elif p >= len(rows):
                        value = f"_B+{p - len(rows) + 1}"
                    else:
                        value = rows[p][item.column]
                        if item.function != "x":
                            value = FUNCTIONS[item.function]([value])[0]
                    if value is None:
                        break
                    name += value + literal
                else:
                    names.append(name)
            tokens.append(dict(Counter(names)))
        out.append(tokens)
    return out


def reference_token(token, prefix=""):
    """(name, value) pairs of a token, as python-crfsuite takes it apart."""
    if not isinstance(token, dict):
        return [(prefix + item, 1.0) for item in token]
    pairs = []
    for key, value in token.items():
        if isinstance(value, str):
            pairs.append((f"{prefix}{key}:{value}", 1.0))
        elif isinstance(value, (dict, list, set)):
            pairs += reference_token(value, f"{prefix}{key}:")
        else:
            pairs.append((prefix + key, float(np.float32(value))))
    return pairs


def added_up(pairs):
    total = {}
    for name, value in pairs:
        if value:
            total[name] = float(np.float32(total.get(name, 0.0) + value))
    return total


def decoded(tokens, names):
    """Tokens as lists of lists of dicts, checking the layout on the way."""
    assert tokens.offsets.dtype == tokens.indptr.dtype == np.int64
    assert tokens.indices.dtype == np.int32
    assert tokens.offsets[0] == tokens.indptr[0] == 0
    assert tokens.offsets[-1] == tokens.n_tokens
    assert tokens.indptr[-1] == len(tokens.indices)
    if tokens.values is not None:
        assert tokens.values.dtype == np.float32
        assert len(tokens.values) == len(tokens.indices)
    flat = []
    for a, b in pairwise(tokens.indptr.tolist()):
        ids = tokens.indices[a:b]
        assert (np.diff(ids) > 0).all()
        assert ((ids >= 0) & (ids < tokens.n_features)).all()
        values = np.ones(b - a) if tokens.values is None else tokens.values[a:b]
        flat.append({names[i]: float(v) for i, v in zip(ids, values, strict=True)})
    ends = tokens.offsets.tolist()
    return [flat[a:b] for a, b in pairwise(ends)]


def cut(reference, kept):
    return [[{k: v for k, v in t.items() if k in kept} for t in s] for s in reference]


def occurrences(reference):
    return Counter(k for s in reference for t in s for k, v in t.items() for _ in range(int(v)))


def same(a, b):
    assert a.n_features == b.n_features
    assert np.array_equal(a.offsets, b.offsets)
    assert np.array_equal(a.indptr, b.indptr)
    assert np.array_equal(a.indices, b.indices)
    assert (a.values is None) == (b.values is None)
    assert a.values is None or np.array_equal(a.values, b.values)
    return True


# ------------------------------------------------------------------------ templates

TEMPLATES = [
    "U00:%x[-2,0]\nU01:%x[0,0]\nU02:%x[-1,0]/%x[0,0]\nU03:%x[1,1]/%x[3,0]/%x[-1,1]\nB",
    "U:%x[-1,0]\nU:%x[0,0]\nU:%x[1,0]\n",  # one space: a bag of words, values up to 3
    "U\nU1:%x[0,0]%x[0,0]\n",  # a constant
    "U0:%lower[0,0]/%suffix2[-1,0]\nU1:%capital[0,0]\nU2:%shape[1,0]/%prefix3[2,0]",
    "U9:%x[-4,0]/%x[-3,0]/%x[-2,0]/%x[-1,0]/%x[0,0]/%x[1,0]/%x[2,1]/%x[5,0]",
]
words = st.text("abAB1-é", min_size=1, max_size=3)
row_lists = st.lists(
    st.lists(st.tuples(words, st.sampled_from(["N", "V", "D"])), min_size=1, max_size=6),
    min_size=1,
    max_size=5,
)


@given(st.sampled_from(TEMPLATES), row_lists, row_lists, st.integers(1, 3))
def test_templates_against_strings(text, train, test, min_count):
    encoder = FeatureEncoder(text, min_count=min_count)
    tokens = encoder.fit_transform(Columns.from_sequences(train))
    names = encoder.feature_names
    reference = reference_templates(text, train)
    counts = occurrences(reference)
    kept = {name for name, n in counts.items() if n >= min_count}
    assert set(names) == kept
    assert len(names) == encoder.n_features == tokens.n_features
    assert decoded(tokens, names) == cut(reference, kept)
    # By falling frequency.
    frequencies = [counts[name] for name in names]
    assert frequencies == sorted(frequencies, reverse=True)
    # Another file has other ids.
    other = encoder.transform(Columns.from_sequences(test))
    assert decoded(other, names) == cut(reference_templates(text, test), kept)
    assert same(encoder.transform(Columns.from_sequences(train)), tokens)
    assert same(copied_by_arrays(encoder).transform(Columns.from_sequences(test)), other)


def copied_by_arrays(encoder):
    meta, arrays = encoder.to_arrays()
    for array in arrays.values():
        array.flags.writeable = False  # as from a memory map
    again = FeatureEncoder.from_arrays(json.loads(json.dumps(meta)), arrays)
    assert again.feature_names == encoder.feature_names
    assert again.template_bigram == encoder.template_bigram
    return again


def test_long_tuples_of_many_words():
    # 12 items of 3000 words: far more than 63 bits, so several stages and their growth.
    rng = np.random.default_rng(0)
    rows = [[(f"w{i}",) for i in rng.integers(3000, size=40)] for _ in range(100)]
    text = "U:" + "/".join(f"%x[{k},0]" for k in range(-6, 6)) + "\nV".replace("V", "U1:%x[0,0]")
    encoder = FeatureEncoder(text)
    tokens = encoder.fit_transform(Columns.from_sequences(rows))
    assert decoded(tokens, encoder.feature_names) == reference_templates(text, rows)
    assert same(copied_by_arrays(encoder).transform(Columns.from_sequences(rows)), tokens)


@given(row_lists, st.integers(0, 4))
def test_a_slice_of_columns_is_encoded_as_itself(rows, s):
    columns = Columns.from_sequences(rows)
    encoder = FeatureEncoder("rich")
    tokens = encoder.fit_transform(columns)
    assert same(encoder.transform(columns[s : s + 1]), tokens[s : s + 1])
    part = FeatureEncoder("rich")
    assert part.fit_transform(columns[:1]).n_features == part.n_features
    alone = FeatureEncoder("rich").fit(Columns.from_sequences(rows[:1]))
    assert part.feature_names == alone.feature_names


def test_ties_go_by_first_occurrence():
    encoder = FeatureEncoder("U0:%x[0,0]\nU1:%x[0,0]").fit(Columns.from_sequences([[("b",), ("a",), ("c",), ("c",)]]))
    assert encoder.feature_names == ["U0:c", "U1:c", "U0:b", "U1:b", "U0:a", "U1:a"]


@pytest.mark.parametrize("name", ["rich", "crf++", "attributes", None])
@pytest.mark.parametrize("n_columns", [1, 2, 3])
def test_built_in_sets_encode(name, n_columns):
    rows = [[("The", "D", "x")[:n_columns], ("dog-2", "N", "y")[:n_columns]]]
    encoder = FeatureEncoder(name)
    tokens = encoder.fit_transform(Columns.from_sequences(rows))
    layout_text = encoder.to_arrays()[0]["template_text"]
    assert encoder.template_bigram
    assert decoded(tokens, encoder.feature_names) == reference_templates(layout_text, rows)


def test_bigram_line():
    columns = Columns.from_sequences([[("a",)]])
    assert FeatureEncoder("U:%x[0,0]\nB\n").fit(columns).template_bigram
    assert not FeatureEncoder("U:%x[0,0]\n").fit(columns).template_bigram
    assert FeatureEncoder("B").fit(columns).n_features == 0


def test_template_paths_and_errors(tmp_path):
    path = tmp_path / "my.tpl"
    path.write_text("# one\nU0:%x[0,1]\n")
    encoder = FeatureEncoder(path)
    path.unlink()  # it was read at once
    with pytest.raises(TemplateError, match="column 1 of data with 1 columns"):
        encoder.fit(Columns.from_sequences([[("a",)]]))
    with pytest.raises(TemplateError, match="neither built in"):
        FeatureEncoder("crfpp")
    with pytest.raises(TemplateError, match=r"templates:2: .*only 'B' alone"):
        FeatureEncoder("U:%x[0,0]\nB:%x[0,0]")
    with pytest.raises(TypeError, match="templates must be"):
        FeatureEncoder(3)
    encoder = FeatureEncoder().fit(Columns.from_sequences([[("a", "b")]]))
    with pytest.raises(ValueError, match="expected 2 columns without the label, found 1"):
        encoder.transform(Columns.from_sequences([[("a",)]]))


def test_columns_altered_by_the_user_do_not_crash():
    columns = Columns.from_sequences([[("a",), ("b",)]])
    columns.ids[0, 0] = 99
    with pytest.raises(ValueError, match="outside its vocabulary"):
        FeatureEncoder("U:%x[0,0]").fit(columns)
    columns.ids[0, 0] = -1
    with pytest.raises(ValueError, match="outside its vocabulary"):
        FeatureEncoder("U:%x[0,0]").fit(columns)


def test_hashed_templates():
    rows = [[(f"w{i % 7}", "N") for i in range(20)]] * 2
    columns = Columns.from_sequences(rows)
    encoder = FeatureEncoder("crf++", hash_bits=18)
    tokens = encoder.fit_transform(columns)
    assert tokens.n_features == 2**18
    exact = FeatureEncoder("crf++").fit_transform(columns)
    assert len(tokens.indices) == len(exact.indices)
    # Independent of the ids of a file, of the batch and of the process.
    assert same(encoder.transform(Columns.from_sequences([rows[0][::-1], rows[0]]))[1:], tokens[1:])
    assert same(copied_by_arrays(encoder).transform(columns), tokens)
    tiny = FeatureEncoder("crf++", hash_bits=2).fit_transform(columns)
    assert tiny.values.sum() == len(exact.indices)


# ----------------------------------------------------------- templates on tuples of strings


@given(row_lists, row_lists, st.sampled_from(["crf++", "rich", TEMPLATES[0]]))
def test_tuples_of_strings_are_columns_to_templates(train, test, templates):
    columns = FeatureEncoder(templates, min_count=2)
    tuples = FeatureEncoder(templates, min_count=2)
    assert same(tuples.fit_transform(iter(train)), columns.fit_transform(Columns.from_sequences(train)))
    assert tuples.kind == "columns"
    assert tuples.feature_names == columns.feature_names
    wanted = columns.transform(Columns.from_sequences(test))
    assert same(tuples.transform(iter(test)), wanted)
    assert same(tuples.transform(Columns.from_sequences(test)), wanted)
    assert same(columns.transform(test), wanted)
    assert same(copied_by_arrays(tuples).transform(test), wanted)


def test_an_encoder_fitted_on_columns_takes_tuples():
    rows = [[("the", "D"), ("dog", "N")]]
    encoder = FeatureEncoder()  # Columns alone say that templates are wanted
    tokens = encoder.fit_transform(Columns.from_sequences(rows))
    assert same(encoder.transform(rows), tokens)
    assert len(encoder.transform([])) == 0
    hashed = FeatureEncoder("crf++", hash_bits=10)
    assert same(hashed.transform(rows), hashed.transform(Columns.from_sequences(rows)))


def test_without_templates_tuples_are_attributes():
    encoder = FeatureEncoder().fit([[("the", "D"), ("dog", "N")]])
    assert encoder.kind == "attributes"
    assert encoder.feature_names == ["the", "D", "dog", "N"]


@pytest.mark.parametrize(
    ("X", "where"),
    [
        ([[("a", "b")], [("a", "b"), {"w": "a"}]], "sequence 1, token 1: "),
        ([[["a", "b"]]], "sequence 0, token 0: "),
        ([["a", "b"]], "sequence 0, token 0: "),
        ([[("a", "b"), ("a", 1)]], "sequence 0, token 1: "),
        ([[("a", None)]], "sequence 0, token 0: "),
        ([[("a", b"b")]], "sequence 0, token 0: "),
        ([np.array([["a", "b"]])], "sequence 0, token 0: "),
        ([np.ones((2, 2))], ""),
    ],
)
def test_templates_need_columns(X, where):
    message = where + "templates need columns: a Columns object, or tokens that are tuples of str"
    encoder = FeatureEncoder("crf++")
    with pytest.raises(ValueError, match=message):
        encoder.fit(X)
    fitted = FeatureEncoder().fit(Columns.from_sequences([[("a", "b")]]))
    for other in (encoder.fit([[("a", "b")]]), fitted):
        with pytest.raises(ValueError, match=message):
            other.transform(X)
    with pytest.raises(ValueError, match=r"templates need columns.* X holds numeric"):
        encoder.transform(np.ones((2, 2)), lengths=[2])


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        ([[("a", "b")], []], ColumnFileError, "X: sequence 1 is empty"),
        ([[("a", "b"), ("a",)]], ColumnFileError, "X: sequence 0, token 1: expected 2 columns"),
        ([[("a", "b")], 7], TypeError, "sequence 1 must be a list of tokens, got int"),
        ([[("a", "b")], "ab"], TypeError, "sequence 1 must be a list of tokens, got str"),
        ([[("a",)]], ValueError, "expected 2 columns without the label, found 1"),
    ],
)
def test_bad_tuples(X, error, message):
    encoder = FeatureEncoder("crf++").fit([[("a", "b")]])
    with pytest.raises(error, match=message):
        encoder.transform(X)


# ----------------------------------------------------------------------- attributes

numbers = st.one_of(st.booleans(), st.integers(-3, 3), st.floats(-2, 2, width=16))
keys = st.text("abc:é", max_size=2)
nested = st.recursive(
    st.dictionaries(
        keys,
        st.one_of(keys, numbers, st.lists(keys, max_size=3), st.sets(keys, max_size=3)),
        max_size=4,
    ),
    lambda inner: st.dictionaries(keys, st.one_of(keys, numbers, inner), max_size=3),
    max_leaves=6,
)
python_tokens = st.one_of(nested, st.lists(keys, max_size=5), st.sets(keys), st.lists(keys).map(tuple))
python_sequences = st.lists(st.lists(python_tokens, min_size=1, max_size=4), min_size=1, max_size=4)


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
        ([[{"a": np.ones(2)}]], TypeError, "feature 'a' has a value of type ndarray"),
        ([[{1: "x"}]], TypeError, "token 0: names of features must be strings, got 1 of type int"),
        ([[["a"], ["b", 3]]], TypeError, "sequence 0, token 1: names .* got 3 of type int"),
        ([[{"a": ["b", 3]}]], TypeError, "got 3 of type int"),
        ([[["a"], "abc"]], TypeError, "token 1: a token must be a dict .* type str"),
        ([[["a"], None]], TypeError, "token 1: a token must be a dict .* type NoneType"),
        ([[["a"]], "abc"], TypeError, "sequence 1 must be a list of tokens, got str"),
        ([[["a"]], 7], TypeError, "sequence 1 must be a list of tokens, got int"),
        ([{"a": "b"}], TypeError, "sequence 0 must be a list of tokens, got dict"),
        ([[{b"\xff": "b"}]], ValueError, "not UTF-8"),
        ("abc", TypeError, "X must hold sequences"),
        (5, TypeError, "X must hold sequences"),
        ([], ValueError, "X holds no sequences"),
        (iter([]), ValueError, "X holds no sequences"),
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


def test_an_error_leaves_the_encoder_as_it_was():
    encoder = FeatureEncoder().fit([[["a"]]])
    with pytest.raises(ValueError, match="empty"):
        encoder.fit([[["b"]], []])
    assert encoder.feature_names == ["a"]


def test_kind_must_match():
    with pytest.raises(ValueError, match="not fitted"):
        FeatureEncoder().transform([[["a"]]])
    encoder = FeatureEncoder().fit([[["a"]]])
    with pytest.raises(ValueError, match="fitted on attributes, X holds numeric"):
        encoder.transform([np.ones((2, 2))])
    with pytest.raises(ValueError, match="fitted on attributes, X holds columns"):
        encoder.transform(Columns.from_sequences([[("a",)]]))
    assert len(encoder.transform([])) == 0


@pytest.mark.parametrize(
    "kwargs",
    [{"min_count": 0}, {"min_count": 1.5}, {"min_count": True}, {"hash_bits": 31},
     {"hash_bits": 0}, {"hash_bits": "8"}],
)  # fmt: skip
def test_bad_parameters(kwargs):
    with pytest.raises((ValueError, TypeError), match=next(iter(kwargs))):
        FeatureEncoder(**kwargs)


# -------------------------------------------------------------------------- numeric


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.uint8, bool, np.int64])
def test_dense_rows(dtype):
    rng = np.random.default_rng(0)
    X = [(rng.integers(0, 3, size=(n, 60))).astype(dtype) for n in (3, 1, 5)]
    encoder = FeatureEncoder()
    tokens = encoder.fit_transform(X)
    assert encoder.feature_names[:2] == ["0", "1"]
    dense = np.zeros((9, 60))
    rows = np.repeat(np.arange(9), np.diff(tokens.indptr))
    dense[rows, tokens.indices] = 1 if tokens.values is None else tokens.values
    assert np.array_equal(dense, np.concatenate(X).astype(float))
    assert tokens.offsets.tolist() == [0, 3, 4, 9]
    assert same(encoder.transform(np.concatenate(X), lengths=[3, 1, 5]), tokens)
    assert same(FeatureEncoder().fit_transform([list(x) for x in X]), tokens)  # rows
    assert same(copied_by_arrays(encoder).transform(X), tokens)


def test_csr_rows():
    sparse = pytest.importorskip("scipy.sparse")
    rng = np.random.default_rng(1)
    X = [rng.integers(-1, 2, size=(n, 7)).astype(float) for n in (3, 1, 5)]
    tokens = FeatureEncoder().fit_transform(X)
    for make in (sparse.csr_matrix, sparse.csr_array, sparse.csc_array, sparse.coo_matrix):
        assert same(FeatureEncoder().fit_transform([make(x) for x in X]), tokens)
        whole = make(np.concatenate(X))
        assert same(FeatureEncoder().fit_transform(whole, lengths=[3, 1, 5]), tokens)
        with pytest.raises(ValueError, match="lengths="):
            FeatureEncoder().fit(whole)


class FakeCSR:
    def __init__(self, indptr, indices, data, shape):
        self.indptr, self.indices, self.data = map(np.array, (indptr, indices, data))
        self.shape = shape


def test_csr_by_its_attributes():
    # Entries in any order, one twice, one zero.
    matrix = FakeCSR([0, 4, 4], [3, 1, 3, 0], [1.0, 2.0, 0.5, 0.0], (2, 4))
    tokens = FeatureEncoder().fit_transform([matrix])
    assert tokens.indices.tolist() == [1, 3]
    assert tokens.values.tolist() == [2.0, 1.5]
    assert tokens.indptr.tolist() == [0, 2, 2]


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (FakeCSR([0, 1], [9], [1.0], (1, 4)), "column 9 of a matrix with 4 columns"),
        (FakeCSR([0, 1], [-1], [1.0], (1, 4)), "column -1"),
        (FakeCSR([0, 2], [1], [1.0], (1, 4)), "indptr"),
        (FakeCSR([0, 5, 1], [1], [1.0], (2, 4)), "indptr"),
        (FakeCSR([-4, 1], [1], [1.0], (1, 4)), "indptr"),
        (FakeCSR([0, 1], [1], [1.0], (2, 4)), "indptr"),
        (FakeCSR([0, 1], [1, 2], [1.0], (1, 4)), "do not fit"),
        (FakeCSR([0, 1], [1], [np.nan], (1, 4)), "sequence 0, token 0: feature '1' .* nan"),
    ],
)
def test_hostile_csr(matrix, message):
    with pytest.raises(ValueError, match=message):
        FeatureEncoder().fit([matrix])


@pytest.mark.parametrize(
    ("X", "lengths", "error", "message"),
    [
        ([np.ones((2, 3)), np.ones((1, 4))], None, ValueError, "sequence 1 has 4 columns, exp"),
        ([np.ones((2, 3)), np.ones((0, 3))], None, ValueError, "sequence 1 is empty"),
        ([np.array([[0, 1], [np.nan, 1]])], None, ValueError, "token 1: feature '0' .* nan"),
        ([np.array([[0, 1e300]])], None, ValueError, "feature '1' has the value inf"),
        ([np.ones(3)], None, TypeError, "sequence 0 must be a 2-D array"),
        ([np.ones((2, 2)), [["a"]]], None, TypeError, "sequence 1 must be a 2-D array"),
        ([np.ones((1, 1), dtype=complex)], None, TypeError, "complex"),
        ([[np.ones(2), np.ones(3)]], None, ValueError, "rows of different lengths"),
        (np.ones((4, 2)), None, ValueError, "lengths="),
        (np.ones((4, 2)), [1, 2], ValueError, "add up to 3, X has 4 rows"),
        (np.ones((4, 2)), [4, 0], ValueError, "sequence 1 is empty"),
        (np.ones((4, 2)), [1.5, 2.5], TypeError, "lengths must be"),
    ],
)
def test_bad_rows(X, lengths, error, message):
    with pytest.raises(error, match=message):
        FeatureEncoder().fit_transform(X, lengths)


# ------------------------------------------------------------------ state and slices


def fitted_encoders():
    rows = [[("The", "D"), ("dog", "N")], [("dogs", "N")]]
    return [
        FeatureEncoder(),
        FeatureEncoder("crf++", min_count=2).fit(Columns.from_sequences(rows)),
        FeatureEncoder("rich").fit(Columns.from_sequences(rows)),
        FeatureEncoder().fit([[["a", "é"], {"b": "c", "n": 2}]]),
        FeatureEncoder(hash_bits=4).fit([[["a"]]]),
        FeatureEncoder(hash_bits=4).fit(Columns.from_sequences(rows)),
        FeatureEncoder().fit([np.ones((1, 3))]),
    ]


@pytest.mark.parametrize("i", range(7))
def test_copies(i):
    encoder = fitted_encoders()[i]
    for again in (
        pickle.loads(pickle.dumps(encoder)),
        copy.deepcopy(encoder),
        copied_by_arrays(encoder),
    ):
        assert again.feature_names == encoder.feature_names
        assert again.to_arrays()[0] == encoder.to_arrays()[0]
        assert again.min_count == encoder.min_count


@pytest.mark.parametrize("i", range(7))
@given(data=st.data())
def test_hostile_arrays(i, data):
    """Whatever is altered: ValueError, or an encoder that works."""
    meta, arrays = fitted_encoders()[i].to_arrays()
    meta = dict(meta)
    arrays = {name: array.copy() for name, array in arrays.items()}
    if arrays and data.draw(st.booleans()):
        name = data.draw(st.sampled_from(sorted(arrays)))
        array = arrays[name]
        kind = data.draw(st.sampled_from(["entry", "cut", "type", "gone", "shape"]))
        if kind == "entry" and array.size:
            at = data.draw(st.integers(0, array.size - 1))
            info = np.iinfo(array.dtype)
            array.flat[at] = data.draw(
                st.one_of(st.integers(0, 20), st.integers(info.min, info.max)).filter(
                    lambda v: info.min <= v <= info.max
                )
            )
        elif kind == "cut":
            arrays[name] = array[: len(array) // 2]
        elif kind == "type":
            arrays[name] = array.astype(np.float64)
        elif kind == "shape":
            arrays[name] = array.reshape(-1, 1)
        else:
            del arrays[name]
    else:
        name = data.draw(st.sampled_from(sorted(meta)))
        meta[name] = data.draw(
            st.one_of(st.none(), st.integers(-3, 40), st.just(2**40), st.text(max_size=5),
                      st.sampled_from(["columns", "attributes", "numeric"]),
                      st.just("U:%x[0,0]/%x[1,1]"), st.lists(st.integers(), max_size=2))
        )  # fmt: skip
    try:
        encoder = FeatureEncoder.from_arrays(meta, arrays)
    except ValueError:
        return
    if encoder.n_features < 2**20:
        assert len(encoder.feature_names) == encoder.n_features
    for X in (Columns.from_sequences([[("The", "D"), ("x", "N")]]), [[["a"]]], [np.ones((2, 3))]):
        try:
            tokens = encoder.transform(X)
        except ValueError:
            continue
        assert tokens.indices.size == 0 or tokens.indices.max() < tokens.n_features


@given(python_sequences, st.data())
def test_slices_of_tokens(sequences, data):
    encoder = FeatureEncoder()
    tokens = encoder.fit_transform(sequences)
    names = encoder.feature_names
    whole = decoded(tokens, names)
    cut_ = data.draw(st.slices(len(sequences)))
    assert decoded(tokens[cut_], names) == whole[cut_]
    index = data.draw(st.lists(st.integers(-len(sequences), len(sequences) - 1)))
    assert decoded(tokens.take(index), names) == [whole[i] for i in index]
    mask = np.arange(len(sequences)) % 2 == 0
    assert decoded(tokens.take(mask), names) == whole[::2]
    assert tokens.lengths.tolist() == [len(s) for s in sequences]
    with pytest.raises(TypeError, match="take"):
        tokens[0]
    with pytest.raises(IndexError):
        tokens.take([len(sequences)])


def test_a_slice_copies_no_entries():
    tokens = FeatureEncoder().fit_transform([[["a", "b"]]] * 4)
    assert np.shares_memory(tokens[1:3].indices, tokens.indices)
    assert isinstance(tokens[1:3], Tokens)


# ----------------------------------------------------------------------- primitives


@given(st.lists(st.integers(0, 5), max_size=30), st.data())
def test_descending_order(counts, data):
    firsts = data.draw(st.lists(st.integers(0, 9), min_size=len(counts), max_size=len(counts)))
    got = descending_order(np.array(counts, np.int64), np.array(firsts, np.int64))
    wanted = sorted(range(len(counts)), key=lambda i: (-counts[i], firsts[i], i))
    assert got.tolist() == wanted


@given(st.lists(st.one_of(st.none(), st.text(max_size=12)), max_size=200))
def test_interner(strings):
    interner = Interner()
    ids = interner.intern(strings)
    seen = {}
    wanted = [-1 if s is None else seen.setdefault(s, len(seen)) for s in strings]
    assert ids.tolist() == wanted
    assert len(interner) == len(seen)
    again = pickle.loads(pickle.dumps(interner))
    assert again.lookup(strings).tolist() == wanted
    assert again.lookup_arrays(*interner.to_arrays()).tolist() == list(range(len(seen)))
    assert again.lookup(["not there at all"]).tolist() == [-1]


def test_interner_takes_strings_only():
    interner = Interner()
    assert interner.intern([np.str_("é"), "é", b"\xc3\xa9"]).tolist() == [0, 0, 0]
    with pytest.raises(TypeError, match="wanted str, bytes or None, got int"):
        interner.intern(["a", 1])


# ------------------------------------------------------------------------ real data

DATA = os.environ.get("STRUCTSVM_DATA")


@pytest.mark.skipif(not DATA, reason="STRUCTSVM_DATA does not name the data folder")
def test_crfpp_counts_on_conll2000():
    # CRF++ 'crf_learn -f 3' counts these, each with 22 labels, and 22 * 22 for 'B'.
    columns = read_columns(os.path.join(DATA, "chunk_conll2000", "train.txt.gz"))
    assert columns.n_tokens == 211_727
    assert len(columns) == 8936
    encoder = FeatureEncoder("crf++", min_count=3)
    tokens = encoder.fit_transform(columns.drop_last())
    assert encoder.n_features == 76_328
    assert same(encoder.transform(columns.drop_last()), tokens)
    part = columns[:50].drop_last()
    wanted = reference_templates(
        encoder.to_arrays()[0]["template_text"],
        [list(zip(w, t, strict=True)) for w, t in zip(part.column(0), part.column(1), strict=True)],
    )
    names = encoder.feature_names
    assert decoded(tokens[:50], names) == cut(wanted, set(names))


def test_text_to_tokens():
    text = b"He PRP B-NP\nsees VBZ B-VP\n\nHe PRP B-NP\n"
    encoder = FeatureEncoder("U:%x[0,0]/%x[1,0]")
    tokens = encoder.fit_transform(read_columns(io.BytesIO(text)).drop_last())
    assert decoded(tokens, encoder.feature_names) == [
        [{"U:He/sees": 1}, {"U:sees/_B+1": 1}],
        [{"U:He/_B+1": 1}],
    ]
