"""Templates of span features: what each of them sees, and the rows that values select."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from structsvm.structures.spans import LENGTHS, PLAIN, SpanTemplates, Token

COLUMNS, SIDES = ("form", "shape"), ("first", "last", "split")
TEMPLATES = (
    *PLAIN,
    "first.terminal length",
    "first-1.terminal first.form",
    "last.shape last+2.form first.terminal length",
    "first+1.form",
    "all.shape",
    "all.form all+1.terminal last.form length",
    "split-1.form split.form",
    "split-2.terminal",
    "rule split.terminal",
    "rule first-1.form first.terminal",
)


def value_of(words, at, column):
    """Value of a column at a word; -1 beyond the sentence."""
    return words[at][("terminal", *COLUMNS).index(column)] if 0 <= at < len(words) else -1


def seen(text, words, i, j, k):
    """Values that a template sees: a tuple; None for a split where there is none."""
    found, of_words = [], []
    for part in text.split():
        if part == "length":
            found.append(sum(j - i >= bound for bound in LENGTHS))
        if part in ("length", "rule"):
            continue
        side, _, column = part.partition(".")
        name, offset = next((name, side.removeprefix(name)) for name in (*SIDES, "all") if name in side)
        words_at = range(i, j) if name == "all" else [{"first": i, "last": j - 1, "split": k}[name]]
        values = [value_of(words, at + int(offset or 0), column) for at in words_at]
        if name == "all":
            of_words.append(values)
        else:
            found += values
    return (text, *found, tuple(sorted(zip(*of_words, strict=True))))


@settings(max_examples=30)
@given(st.integers(0, 2**32 - 1))
def test_equal_values_share_a_row_and_others_do_not(seed):
    rng = np.random.default_rng(seed)
    texts = [str(text) for text in rng.permutation(TEMPLATES)[: rng.integers(1, len(TEMPLATES))]]
    templates = SpanTemplates(texts, COLUMNS, bits=24, n_terminals=4)
    # Codes are from 1 up: 0 is no word.
    sentences = [rng.integers([0, 1, 1], [4, 5, 5], (int(n), 3)).astype(np.int32) for n in rng.integers(1, 7, 3)]
    offsets = np.concatenate([[0], np.cumsum([len(words) for words in sentences])])
    every = templates.keys(np.concatenate(sentences), offsets)
    rows, rules = {}, {}
    spans = [text for text in texts if "split" not in text and "rule" not in text]
    splits = [text for text in texts if "split" in text and "rule" not in text]
    assert (templates.n_spans, templates.n_splits) == (len(spans), len(splits))
    of_rules = sorted((text for text in texts if "rule" in text), reverse=True)
    assert templates.n_rule_splits + templates.n_rests == len(of_rules)
    for s, words in enumerate(sentences):
        n = len(words)
        keys = every[offsets[s] + s :][: n + 1]
        for i in range(n):
            for j in range(i + 1, n + 1):
                for text, row in zip(spans, templates.rows(keys, i, j), strict=True):
                    rows.setdefault(seen(text, words.tolist(), i, j, None), set()).add(int(row))
        for k in range(1, n):
            for text, row in zip(splits, templates.split_rows(keys, k), strict=True):
                rows.setdefault(seen(text, words.tolist(), 0, 0, k), set()).add(int(row))
            for text, row in zip(of_rules, templates.rule_rows(keys, k, k), strict=True):
                rules.setdefault(seen(text, words.tolist(), k, k, k), set()).add(int(row))
    assert all(len(found) == 1 and 0 <= min(found) < templates.n_rule_rows for found in rules.values())
    assert len({row for found in rules.values() for row in found}) >= len(rules) - 1
    assert all(len(found) == 1 and 0 <= min(found) < templates.n_rows for found in rows.values())
    # A few hundred values among 2**24 rows: a collision is one in a hundred.
    assert len({row for found in rows.values() for row in found}) >= len(rows) - 1


def test_rows_of_the_plain_templates():
    templates = SpanTemplates(PLAIN, n_terminals=3)
    keys = templates.keys(np.array([[2], [0], [1]], dtype=np.int32))
    # Tables of four rows (three terminals, and none) in the order of the text, those of splits last.
    assert templates.rows(keys, 0, 2).tolist() == [2, 4 + 0, 8 + 3, 12 + 1, 16 + 1]
    assert templates.rows(keys, 1, 3).tolist() == [0, 4 + 1, 8 + 2, 12 + 3, 16 + 1]
    assert templates.split_rows(keys, 1).tolist() == [25 + 0]
    assert templates.n_rows == 25 + 4
    # The begin, the end, the begin with the length.
    assert (templates.group.tolist(), templates.group_ptr.tolist()) == ([0, 2, 1, 3, 4], [0, 2, 4, 5, 5, 5])


def test_numbers_stand_after_the_keys():
    templates = SpanTemplates(["last+1.near", "length", "first.far"], (), n_terminals=3, vectors={"near": 1, "far": 2})
    numbers = np.array([[1.5, -2.0, 3.0], [0.25, 4.0, 5.0]], dtype=np.float32)
    words = np.hstack([np.array([[2], [0]], dtype=np.int32), numbers.view(np.int32)])
    keys = templates.keys(np.vstack([words, words[:1]]), np.array([0, 2, 3]))
    seen = keys[:, -templates.n_numbers :].copy().view(np.float32)
    np.testing.assert_array_equal(seen, np.vstack([numbers, np.zeros(3), numbers[:1], np.zeros(3)]))
    assert templates.n_number_rows == 3 and templates.n_rows == 9
    assert templates.numbers(keys[:3], 0, 0).tolist() == [0.25, -2.0, 3.0]
    assert templates.numbers(keys[:3], 1, 1).tolist() == [0.0, 4.0, 5.0]
    assert not templates.numbers(keys[:3], None, None, 1).any()
    with pytest.raises(ValueError, match="words need 0 codes and 3 numbers beside their terminals, got 0"):
        templates.checked(words[:, 0])
    assert SpanTemplates(["length"], (), n_terminals=3, vectors={"near": 1}).n_keys == 2  # no template sees any
    with pytest.raises(ValueError, match="'all' sees no vectors, and 'far' has them"):
        SpanTemplates(["all.far"], (), vectors={"far": 2})
    for text in ("first.near length", "first.near last.near", "rule split.near"):
        with pytest.raises(ValueError, match="a vector stands alone, and 'near' has vectors"):
            SpanTemplates([text], (), vectors={"near": 1})


@pytest.mark.parametrize("bits", [1, 5])
def test_few_rows_are_shared(bits):
    templates = SpanTemplates(TEMPLATES, COLUMNS, bits=bits, n_terminals=4)
    words = np.random.default_rng(0).integers(0, 4, (9, 3)).astype(np.int32)
    keys = templates.keys(words)
    rows = [*templates.rows(keys, 2, 7), *templates.split_rows(keys, 3)]
    assert max(rows) < templates.n_rows == 6 * 5 + 9 + 2**bits
    rules = templates.rule_rows(keys, 3, 2)
    assert templates.rule_rows(keys, 3, None).tolist() == rules[:1].tolist() and len(rules) == 2
    assert max(rules) < templates.n_rule_rows == 2


def test_no_templates():
    templates = SpanTemplates((), COLUMNS)
    assert templates.n_rows == 0
    assert templates.keys(np.zeros((3, 3), dtype=np.int32)).shape == (4, 0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("first.tag", "template 'first.tag': no column 'tag'; there are terminal, form, shape"),
        ("middle.form", "template 'middle.form': 'middle.form' is no part of one"),
        ("first.form split.form", "what is seen of a split stands alone"),
        ("split.form length", "what is seen of a split stands alone"),
        ("rule", "beside 'rule' stand parts of 'split' or of 'first', and no others"),
        ("rule first.form length", "beside 'rule' stand"),
        ("rule first.form last.form", "beside 'rule' stand"),
        ("rule first.form split.form", "what is seen of a split stands alone"),
        ("split.form all.form", "what is seen of a split stands alone"),
        ("rule all.form", "beside 'rule' stand parts of 'split' or of 'first', and no others"),
        ("", "template '': it sees nothing"),
    ],
)
def test_templates_that_are_none(text, message):
    with pytest.raises(ValueError, match=message):
        SpanTemplates([text], COLUMNS)
    offsets = ["", *(f"{k:+}" for k in range(-9, 10) if k)]
    with pytest.raises(ValueError, match="361 templates are more than 256"):
        SpanTemplates([f"first{a}.form last{b}.form" for a in offsets for b in offsets], COLUMNS)
    with pytest.raises(ValueError, match="20 parts are more than 16"):
        SpanTemplates(["first.form " * 20], COLUMNS)


def test_tokens_keep_their_codes():
    token = Token("NN", (3, 4), np.array([0.5], dtype=np.float32))
    for other in (token, pickle.loads(pickle.dumps(token)), copy.deepcopy(token)):
        assert other == "NN" and hash(other) == hash("NN") and other.codes == (3, 4)
        assert other.numbers.tolist() == [0.5] and len(Token("NN", ()).numbers) == 0
