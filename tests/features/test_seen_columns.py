"""Inputs of predictions have the columns that training had, or an error or a warning says what they lack."""

import json
import re
import warnings
import zlib
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import structsvm
from structsvm import AdviceWarning
from structsvm.datasets import make_dependency_trees, make_sequences, make_treebank
from structsvm.features._attributes import count_columns, in_all_tokens
from structsvm.features.inputs import seen_columns
from structsvm.features.inputs.seen_columns import SeenColumn, SeenColumns, sampled_names
from structsvm.model_file import read_model, write_model
from structsvm.structures.trees import parse_tree
from structsvm.tasks import ArcFeatures, DependencyParser, GrammarParser, GraphLabeler, SequenceLabeler, TokenFeatures

WORDS, LABELS = make_sequences(60, n_labels=4, n_words=80, mean_length=8.0, random_state=0)
TOKENS = [[(str(word), f"T{zlib.crc32(str(word).encode()) % 7}") for word in words] for words in WORDS]
TREES = make_dependency_trees(60, max_length=8, random_state=0)
BRACKETS = [str(tree) for tree in make_treebank(60, max_length=8, random_state=0)]


def each(form, tokens=TOKENS):
    return [[form(*token) for token in sentence] for sentence in tokens]


def paths(X):
    return [(x, [(i, i + 1) for i in range(len(x) - 1)]) for x in X]


def of_sequences(form, **params):
    X = each(form)
    return SequenceLabeler(C=1.0, loss="hamming", random_state=0, **params).fit(X, LABELS)


def of_hashes(form):
    return of_sequences(form, features=TokenFeatures(hash_bits=14))


def of_columns(_):
    return SequenceLabeler(C=1.0, loss="hamming", templates="rich", random_state=0).fit(TOKENS, LABELS)


def of_graphs(form):
    return GraphLabeler(C=1.0, random_state=0).fit(paths(each(form)), LABELS)


def of_trees(X):
    return DependencyParser(C=0.1, order=1, max_iter=1, random_state=0).fit(X, [tree.arcs for tree in TREES])


def of_brackets(terminals):
    return GrammarParser(C=1.0, max_iter=1, terminals=terminals, random_state=0).fit(BRACKETS)


def as_dict(word, tag):
    return {"w": word, "tag": tag}


def as_strings(word, tag):
    return [f"w={word}", f"tag={tag}"]


def with_number(word, tag):
    return {"w": word, "size": float(len(word) - 3)}


FORMS = [[(word.form, word.upos) for word in tree.words] for tree in TREES]
SWAPPED = each(lambda w, t: (t, w))
WORDS_ONLY = [[form for form, _ in sentence] for sentence in FORMS]
LEAVES = [parse_tree(tree).tokens() for tree in BRACKETS]

# How a model is made, of what, inputs that training did not have, and what the error says of them.
ERRORS = {
    "a key is missing": (of_sequences, as_dict, each(lambda w, t: {"w": w}), "missing: 'tag:'"),
    "a token without a key": (of_sequences, as_dict, [[{"w": "a"}]], "missing: 'tag:'"),
    "other keys": (of_sequences, as_dict, each(lambda w, t: {"word": w, "pos": t}), "X has 'word:', 'pos:'; missing"),
    "another separator": (of_sequences, as_dict, each(as_strings), "missing: 'tag:', 'w:'"),
    "strings for dicts": (of_sequences, as_strings, each(as_dict), "missing: 'tag=', 'w='"),
    "a number is missing": (of_sequences, with_number, each(lambda w, t: {"w": w}), "missing: 'size'"),
    "rows for dicts": (of_sequences, as_dict, [np.eye(3)], "fitted on attributes, X contains numeric"),
    "hashed": (of_hashes, as_dict, each(lambda w, t: {"w": w}), "missing: 'tag:'"),
    "columns in another order": (of_columns, None, SWAPPED, "those that 'column 2' had in training"),
    "a column too few": (of_columns, None, each(lambda w, t: (w,)), "expected 2 columns without the label, found 1"),
    "a column too many": (of_columns, None, each(lambda w, t: (w, t, t)), "expected 2 columns without the label"),
    "nodes without a key": (of_graphs, as_dict, paths(each(lambda w, t: {"w": w})), "missing: 'tag:'"),
    "nodes with other keys": (of_graphs, as_dict, paths(each(lambda w, t: {"v": w, "t": t})), "missing: 'tag:', 'w:'"),
    "words without tags": (of_trees, TREES, WORDS_ONLY, "training had 'form', 'upos', 'xpos', and X has 'form'"),
    "a word without a tag": (of_trees, TREES, [["a"]], "missing: 'upos', 'xpos'"),
    "one of two tags": (of_trees, TREES, FORMS, "missing: 'xpos'"),
    "words for pairs": (of_trees, FORMS, WORDS_ONLY, "missing: 'upos'"),
    "tag and word": (of_trees, FORMS, each(lambda w, t: (t, w), FORMS), "those that 'form' had in training"),
    "tags for words": (of_brackets, "words", each(lambda w, t: t, LEAVES), "those that 'tag' had in training"),
    "words for tags": (of_brackets, "tags", each(lambda w, t: w, LEAVES), "Are they words"),
    "words for both": (of_brackets, "both", each(lambda w, t: w, LEAVES), "must be a pair"),
}
WARNINGS = {
    "more keys": (of_sequences, as_dict, each(lambda w, t: {"w": w, "tag": t, "lemma": w}), "X has 'lemma:', which"),
    "half of the tokens": (
        of_sequences,
        as_dict,
        each(lambda w, t: {"w": w} if t < "T5" else {"w": w, "tag": t}),
        "of the tokens of X have 'tag:', and 100% had it",
    ),
    "unknown words": (
        of_columns,
        None,
        each(lambda w, t: (w[::-1] + "zz", t)),
        "'column 1' in X is among the frequent",
    ),
    "more columns of words": (of_trees, WORDS_ONLY, TREES, "X has upos, xpos, which the words of training had not"),
    "other tags": (of_trees, FORMS, each(lambda w, t: (w, "zz" + t), FORMS), "none of the values of 'upos' in X"),
    "unknown words of trees": (
        of_brackets,
        "words",
        each(lambda w, t: "zz" + w, LEAVES),
        "none of the values of 'word'",
    ),
}


@pytest.fixture(scope="module")
def made():
    """Models by how they are made, as they are and as their files have them."""
    known = {}

    def get(make, of, folder):
        key = make, str(of)
        if key not in known:
            model = make(of)
            model.save(folder / "model")
            known[key] = model, structsvm.load(folder / "model")
        return known[key]

    return get


@pytest.mark.parametrize("name", ERRORS)
def test_what_is_missing_is_an_error(name, made, tmp_path):
    make, of, X, message = ERRORS[name]
    for model in made(make, of, tmp_path):
        with pytest.raises(ValueError, match=message):
            model.predict(X)
        with pytest.raises(ValueError, match=message):
            model.explain(X[0]) if make is not of_brackets else model.predict_kbest(X, 2)


@pytest.mark.filterwarnings("ignore:the grammar has no tree")
@pytest.mark.parametrize("name", WARNINGS)
def test_what_is_left_out_is_a_warning(name, made, tmp_path):
    make, of, X, message = WARNINGS[name]
    for model in made(make, of, tmp_path):
        with pytest.warns(AdviceWarning, match=message):
            model.predict(X)


def test_columns_that_training_had_not_make_no_difference(made, tmp_path):
    model, _ = made(of_trees, WORDS_ONLY, tmp_path)
    expected = model.predict(WORDS_ONLY)
    for X in (TREES, FORMS):
        with pytest.warns(AdviceWarning, match="left out"):
            assert model.predict(X) == expected


def test_batches_are_checked(made, tmp_path):
    with pytest.raises(ValueError, match="missing: 'tag:'"):
        of_sequences(as_dict).partial_fit(each(lambda w, t: {"w": w}), LABELS)
    with pytest.raises(ValueError, match="missing: 'upos', 'xpos'"):
        of_trees(TREES).partial_fit(WORDS_ONLY, [tree.arcs for tree in TREES])
    with pytest.raises(ValueError, match="missing: 'tag:'"):
        of_graphs(as_dict).partial_fit(paths(each(lambda w, t: {"w": w})), LABELS)


@pytest.mark.parametrize("seed", range(30))
def test_the_same_tokens_are_looked_at_and_counted(seed, monkeypatch):
    """Tokens are as usual if those that are counted have all columns, whatever the others have."""
    monkeypatch.setattr(seen_columns, "SAMPLED", 7)
    rng = np.random.default_rng(seed)
    tokens = [{"w": "a", "n": 1} if rng.random() < 0.95 else {"w": "a"} for _ in range(rng.integers(1, 40))]
    X = [part.tolist() for part in np.split(np.array(tokens), np.sort(rng.integers(0, len(tokens) + 1, 5)))]
    counts, n = sampled_names(X)
    assert 0 < n <= 7
    seen = SeenColumns({"w:": SeenColumn(1.0), "n": SeenColumn(1.0)})
    assert seen.are_as_usual(X) == (counts["w:"] == counts.get("n", 0) == n)


def test_many_tokens_with_the_usual_columns_are_not_counted(monkeypatch):
    model, X = of_sequences(as_dict), each(as_dict) * 10
    assert sum(map(len, X)) > 2 * seen_columns.SAMPLED
    monkeypatch.setattr("structsvm.features.encoder.sampled_names", None)
    model.predict(X)
    with pytest.raises(TypeError):  # counted
        model.predict([[{"w": "a"}], *X])


def test_a_zero_is_no_missing_number(made, tmp_path):
    model, _ = made(of_sequences, with_number, tmp_path)
    model.predict([[{"w": TOKENS[0][0][0], "size": 0.0}]])


def test_columns_that_no_template_sees_may_be_missing():
    features = ArcFeatures(arcs=["h.form m.form", "h.upos m.upos dist"], labels=["m.upos"], pairs=[])
    parser = DependencyParser(C=0.1, order=1, max_iter=1, features=features, random_state=0).fit(TREES)
    assert len(parser.predict(FORMS)) == len(FORMS)


@pytest.mark.parametrize(
    "wrong", [3, [], {"a": 1}, {"a": [0.5, 0.5]}, {"a": [2.0, 0.0, []]}, {"a": [1.0, 0.0, [None]]}]
)
def test_what_no_file_has(wrong):
    with pytest.raises(ValueError, match="seen"):
        SeenColumns.from_json(wrong)


def test_json_gives_the_same_columns():
    seen = SeenColumns.of({"a": dict.fromkeys("xyz", 40), "b": {7: 90}}, 120)
    again = SeenColumns.from_json(json.loads(json.dumps(seen.to_json())))
    assert again.columns == seen.columns and seen.columns["b"].share == 0.75


def test_a_file_of_version_0_2_is_not_checked(tmp_path):
    path = tmp_path / "model"
    for kind, model, X in (
        ("dependency", of_trees(TREES), WORDS_ONLY),
        ("sequence", of_sequences(as_dict), each(lambda w, t: {"w": w})),
        ("grammar", of_brackets("words"), each(lambda w, t: t, LEAVES)),
    ):
        model.save(path)
        file = read_model(path, kind=kind)
        header = {name: value for name, value in file.meta.items() if name != "seen"}
        if kind == "sequence":
            header["encoder"] = {name: value for name, value in header["encoder"].items() if name != "seen"}
        write_model(path, kind, header, file.arrays)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", AdviceWarning)
            assert len(structsvm.load(path).predict(X)) == len(X)


def text(name):
    return name.decode("utf-8", "replace") if isinstance(name, bytes) else name


def names_in(token):
    """The columns of a token, as `count_columns` counts them, slowly."""
    if hasattr(token, "items"):
        return [text(key) + ":" * isinstance(value, (str, bytes)) for key, value in token.items()]
    if isinstance(token, (list, tuple, set, frozenset)):
        begin = (re.match(r"[^:=]+[:=]", text(one)) for one in token)
        return sorted({found[0] for found in begin if found})
    return []


TEXTS = st.text("ab:=ü€😀", max_size=6)
NAMED = st.one_of(
    st.dictionaries(
        st.one_of(TEXTS, st.binary(max_size=2)), st.one_of(TEXTS, st.integers(), st.booleans(), st.just(b"a"))
    ),
    st.lists(st.one_of(TEXTS, st.binary(max_size=2))),
    st.lists(TEXTS).map(tuple),
    st.frozensets(TEXTS),
    TEXTS,
)


@given(st.lists(NAMED, max_size=5))
def test_columns_are_counted_as_they_are_named(tokens):
    counts, names = {}, {}
    for token in tokens:
        count_columns(token, counts, names)
    assert counts == Counter(name for token in tokens for name in names_in(token))
    assert all(f"{text(key)}:" == name for key, name in names.items())


@given(st.lists(st.lists(NAMED, max_size=3), max_size=3), st.data())
def test_columns_of_all_tokens_are_those_that_each_is_counted_with(sequences, data):
    tokens = [names_in(token) for sequence in sequences for token in sequence]
    some = sorted({name for names in tokens for name in names} | {"a:", "a=", "a", "a:b:"})
    columns = data.draw(st.lists(st.sampled_from(some), unique=True))
    assert in_all_tokens(sequences, columns) == [one for one in columns if all(one in names for names in tokens)]


def test_a_column_that_one_token_of_many_lacks_is_not_needed():
    """Whichever tokens are looked at in predictions, all of training are counted."""
    for lacks, has in (({"p": "x"}, {"p": "x", "w": "a", "n": 1.0}), (["p=x"], ["p=x", "w=a"])):
        X = [[has] * 40] * 300 + [[lacks]]
        counts, n = sampled_names(X)
        assert set(counts.values()) == {n}  # the last one is not looked at
        model = SequenceLabeler(C=1.0, max_iter=1, random_state=0).fit(X, [["A", *"B" * (len(x) - 1)] for x in X])
        assert [name[0] for name in model.model_.encoder.seen.required] == ["p"]
        assert [len(labels) for labels in model.predict([[lacks]])] == [1]


@pytest.mark.parametrize("form", [as_dict, as_strings, with_number])
def test_bytes_are_the_columns_of_their_texts(form):
    def coded(token):
        if isinstance(token, list):
            return [name.encode() for name in token]
        return {key.encode(): value.encode() if isinstance(value, str) else value for key, value in token.items()}

    X = each(form)
    of_bytes = [[coded(token) for token in x] for x in X]
    models = [SequenceLabeler(C=1.0, max_iter=1, random_state=0).fit(some, LABELS) for some in (X, of_bytes)]
    assert models[0].model_.encoder.seen.columns == models[1].model_.encoder.seen.columns != {}
    for some in (X[:1], of_bytes[:1]):
        assert [list(model.predict(some)[0]) for model in models] == [list(models[0].predict(X[:1])[0])] * 2


@pytest.mark.parametrize("n", [1, 2, 9, 10, 40])
@pytest.mark.parametrize("form", [as_dict, as_strings], ids=["dicts", "strings"])
def test_what_is_seldom_looked_at_is_said_as_of_all_values(form, n):
    """Few tokens, of which some lack a column: `check_names` says what `check` says."""
    seen = of_sequences(form).model_.encoder.seen
    for k in range(n + 1):
        counts = {name: n - k if name.startswith("tag") else n for name in seen.columns}
        assert said(seen.check_names, counts, n) == said(
            seen.check, {name: {name: count} for name, count in counts.items()}, n
        )


def said(check, *args):
    """The error or the warnings of a check."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        try:
            check(*args)
        except ValueError as error:
            return str(error)
    return [str(one.message) for one in found]
