"""Features of templates, against a reference that builds every string."""

import io
import os
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from feature_reference import (
    TEMPLATES,
    copied_by_arrays,
    cut,
    decoded,
    occurrences,
    reference_templates,
    row_lists,
    same,
)
from hypothesis import example, given
from hypothesis import strategies as st

from structsvm.features import template_features
from structsvm.features._strings import hash_strings
from structsvm.features.columns import Columns, Vocabulary, read_columns
from structsvm.features.encoder import FeatureEncoder
from structsvm.features.functions.places import PLACES
from structsvm.features.functions.strings import FUNCTIONS
from structsvm.features.template_features import TemplateVocabulary, count
from structsvm.features.templates import TemplateError, TemplateLayout, built_in_templates


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
    of_pairs = reference_templates(text, train, bigrams=True)
    kept_pairs = {name for name, n in occurrences(of_pairs).items() if n >= min_count}
    assert encoder.n_bigrams == tokens.n_bigrams == len(kept_pairs)
    assert set(encoder.bigram_names) == kept_pairs
    if tokens.bigrams is not None:
        assert decoded(tokens.bigrams, encoder.bigram_names) == cut(of_pairs, kept_pairs)
    # By falling frequency.
    frequencies = [counts[name] for name in names]
    assert frequencies == sorted(frequencies, reverse=True)
    # Another file has other ids.
    other = encoder.transform(Columns.from_sequences(test))
    assert decoded(other, names) == cut(reference_templates(text, test), kept)
    if other.bigrams is not None:
        wanted = cut(reference_templates(text, test, bigrams=True), kept_pairs)
        assert decoded(other.bigrams, encoder.bigram_names) == wanted
    assert same(encoder.transform(Columns.from_sequences(train)), tokens)
    assert same(copied_by_arrays(encoder).transform(Columns.from_sequences(test)), other)


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
    with pytest.raises(TemplateError, match=r"templates:2: .*wanted %x"):
        FeatureEncoder("U:%x[0,0]\nB:%x[0]")
    with pytest.raises(TemplateError, match=r"templates:2: 'B:%x\[0,1\]': column 1 of data with 1 columns"):
        FeatureEncoder("U:%x[0,0]\nB:%x[0,1]").fit(Columns.from_sequences([[("a",)]]))
    with pytest.raises(TypeError, match="templates must be"):
        FeatureEncoder(3)
    encoder = FeatureEncoder().fit(Columns.from_sequences([[("a", "b")]]))
    with pytest.raises(ValueError, match="expected 2 columns without the label, found 1"):
        encoder.transform(Columns.from_sequences([[("a",)]]))


@pytest.mark.parametrize("function", ["x", "start", "again", "behind"])
@pytest.mark.parametrize("bad", [99, -1])
def test_columns_altered_by_the_user_do_not_crash(function, bad):
    columns = Columns.from_sequences([[("a",), ("b",)]])
    columns.ids[0, 0] = bad
    with pytest.raises(ValueError, match="outside its vocabulary"):
        FeatureEncoder(f"U:%{function}[0,0]").fit(columns)


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
    assert tiny.values is None and 0 < np.diff(tiny.indptr).max() <= 4


def test_features_that_hashed_templates_share_are_added_up():
    columns = Columns.from_sequences([[("a",), ("b",), ("a",), ("b",)]])
    shared, apart = (f"U{n}:%x[-1,0]\nU{m}:%x[1,0]\n" for n, m in (("", ""), ("0", "1")))
    exact, tokens = (FeatureEncoder(shared, hash_bits=bits).fit_transform(columns) for bits in (None, 20))
    assert exact.values.tolist() == [1.0, 1.0, 2.0, 2.0, 1.0, 1.0]
    assert sorted(tokens.values.tolist()) == sorted(exact.values.tolist())
    assert FeatureEncoder(apart, hash_bits=20).fit_transform(columns).values is None


def hashed(*strings):
    """The hash that is made of a template's key and of the strings of its items, in Python's numbers."""

    def of(text):
        one = Vocabulary.from_strings([text])
        return int(hash_strings(one.data, one.starts)[0])

    h = of(strings[0])
    for text in strings[1:]:
        h = (h ^ of(text)) * 0x9E3779B97F4A7C15 % 2**64
        h ^= h >> 29
    return h


@given(row_lists, st.integers(1, 30), st.booleans())
@example(rows=[[("a",)] * 3], bits=1, shared=False)
def test_hashed_templates_against_python(rows, bits, shared):
    last = "U1" if shared else "U3"
    text = f"U0:%x[0,0]\nU1:%lower[-1,0]/%prefix2[1,0]|%x[-2,0]\nU2\n{last}:%lower[0,0]/%prefix2[0,0]|%x[1,0]\n"
    layout = TemplateLayout.build(text, "templates", len(rows[0][0]))
    wanted = []
    for row in rows:
        for t in range(len(row)):
            found = []
            for template in layout.templates:
                places = [t + item.row for item in template.items]
                strings = [
                    f"_B{p}" if p < 0
                    else f"_B+{p - len(row) + 1}" if p >= len(row)
                    else row[p][0] if item.function == "x"
                    else FUNCTIONS[item.function]([row[p][0]])[0]
                    for p, item in zip(places, template.items)
                ]  # fmt: skip
                if None not in strings:
                    found.append(hashed(repr(template.space), *strings) >> (64 - bits))
            wanted.append(Counter(found if shared else set(found)))
    tokens = FeatureEncoder(text, hash_bits=bits).fit_transform(Columns.from_sequences(rows))
    values = np.ones(tokens.n_entries) if tokens.values is None else tokens.values
    spans = list(pairwise(tokens.indptr.tolist()))
    assert [dict(zip(tokens.indices[a:b].tolist(), values[a:b].tolist(), strict=True)) for a, b in spans] == wanted
    assert all((np.diff(tokens.indices[a:b]) > 0).all() for a, b in spans)


@pytest.mark.parametrize("settings", [{}, {"hash_bits": 16}])
def test_codes_of_strings_are_forgotten_and_found_again(settings, monkeypatch):
    rows = [[(f"w{i % 7}", "N") for i in range(20)], [(f"v{i}", "V") for i in range(9)]]
    encoder = FeatureEncoder("rich", **settings)
    tokens = encoder.fit_transform(Columns.from_sequences(rows))
    for remembered in (5, 8, 10):  # more strings than that at once, and after one another
        monkeypatch.setattr(template_features, "REMEMBERED", remembered)
        again = copied_by_arrays(encoder)
        assert same(again.transform(rows), tokens)
        for i in (0, 1, 1, 0):
            assert same(again.transform(rows[i : i + 1]), tokens[i : i + 1])


def test_functions_see_each_string_once(monkeypatch):
    seen = []
    monkeypatch.setitem(FUNCTIONS, "lower", lambda words: seen.extend(words) or [word.lower() for word in words])
    encoder = FeatureEncoder("U:%lower[0,0]", hash_bits=16)
    encoder.fit_transform([["a", "B"]])
    encoder.transform([["B", "c", "a"], ["c"]])
    assert seen == ["a", "B", "c"]


@pytest.mark.parametrize("function", PLACES)
def test_places_of_long_sequences(function):
    """Counts end in a string of their own, and sequences do not see one another."""
    rng = np.random.default_rng(0)
    kinds = np.array(["Main", "12th", "St.,", "(a)", "a", "-", "x."])
    sentences = [rng.choice(kinds, n).tolist() for n in (1, 2, 9, 15, 200, 3, 66, 1)]
    text = f"U:%{function}[0,0]\n"
    encoder = FeatureEncoder(text)
    tokens = encoder.fit_transform(sentences)
    wanted = reference_templates(text, [[(word,) for word in sentence] for sentence in sentences])
    assert decoded(tokens, encoder.feature_names) == wanted
    for i, sentence in enumerate(sentences):  # alone, as in a stream, with ids of its own
        assert same(encoder.transform([sentence]), tokens[i : i + 1])
    hashed = FeatureEncoder(text, hash_bits=16)
    whole = hashed.fit_transform(sentences)
    assert all(same(hashed.transform([sentence]), whole[i : i + 1]) for i, sentence in enumerate(sentences))


def test_functions_of_places_are_asked_once_by_unigrams_and_bigrams(monkeypatch):
    """Also those that only bigrams read; what each returns is remembered by string, whatever was asked before."""
    asked = Counter()
    for name, function in PLACES.items():
        monkeypatch.setitem(PLACES, name, lambda placed, name=name, f=function: (asked.update([name]), f(placed))[1])
    text = "U1:%size[0,0]/%again[0,0]\nB1:%size[0,0]\nB2:%behind[0,0]\nB3:%start[-1,0]"
    sentences = [["12", "Main", "St.,"], ["(a)", "b", "b", "1"], ["x"], ["12", "12"]]
    encoder = FeatureEncoder(text)
    whole = encoder.fit_transform(sentences)
    assert asked == dict.fromkeys(["size", "again", "behind", "start"], 1)
    for i in (0, 1, 2, 3, 1, 0):
        asked.clear()
        one = encoder.transform([sentences[i]])
        assert same(one, whole[i : i + 1]) and same(one.bigrams, whole.bigrams[i : i + 1])
        assert set(asked.values()) == {1}


def test_records_in_pieces_as_in_one():
    """Shards count, piece by piece, the vocabulary of all."""
    sentences = [["12", "Main", "St.,"], ["(a)", "b", "b", "1"], ["x"]]
    X = Columns.from_sequences(sentences)
    layout = TemplateLayout.resolve("record-tokens", 1)
    parts = [count(layout, [X[:1], X[1:2]]), count(layout, [Columns.from_sequences(sentences[2:])])]
    whole = FeatureEncoder("record-tokens").fit(X)
    assert TemplateVocabulary.of_counts(layout, parts, 1).names == whole.feature_names
    assert "U:start/pattern=0/00" in whole.feature_names
    assert "B:" not in built_in_templates("record-tokens", 3)


def test_hashed_bigrams():
    rows = [[(f"w{i % 7}", "N") for i in range(20)]] * 2
    columns = Columns.from_sequences(rows)
    encoder = FeatureEncoder("U:%x[0,0]\nB:%x[0,0]", hash_bits=12)
    tokens = encoder.fit_transform(columns)
    assert encoder.n_bigrams == tokens.n_bigrams == 2**12 == len(encoder.bigram_names)
    assert np.diff(tokens.bigrams.indptr).reshape(2, 20).tolist() == [[0] + [1] * 19] * 2
    assert len(np.unique(tokens.bigrams.indices)) == 7
    assert same(copied_by_arrays(encoder).transform(columns), tokens)


def test_bigrams_of_sequences_without_tokens():
    encoder = FeatureEncoder("U:%x[0,0]\nB:%x[0,0]").fit(Columns.from_sequences([[("a",), ("b",)]]))
    tokens = encoder.transform([[], [("b",), ("b",)], [], [("a",), ("c",), ("b",)], []])
    assert tokens.bigrams.offsets.tolist() == tokens.offsets.tolist() == [0, 0, 2, 2, 5, 5]
    assert decoded(tokens.bigrams, encoder.bigram_names) == [[], [{}, {"B:b": 1}], [], [{}, {}, {"B:b": 1}], []]
    assert encoder.transform([]).n_bigrams == encoder.transform([[]]).n_bigrams == 1
    assert FeatureEncoder("U:%x[0,0]\nB:%x[0,0]").fit_transform([[("a",)]]).n_bigrams == 0


def test_text_to_tokens():
    text = b"He PRP B-NP\nsees VBZ B-VP\n\nHe PRP B-NP\n"
    encoder = FeatureEncoder("U:%x[0,0]/%x[1,0]")
    tokens = encoder.fit_transform(read_columns(io.BytesIO(text)).drop_last())
    assert decoded(tokens, encoder.feature_names) == [[{"U:He/sees": 1}, {"U:sees/_B+1": 1}], [{"U:He/_B+1": 1}]]


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
