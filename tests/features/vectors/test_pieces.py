"""Rows of sub-words pooled to words, against a loop over words; and truncated sentences, which are refused."""

import numpy as np
import pytest

from structsvm.features.vectors import pool_offsets, pool_word_ids

BY_HAND = {
    "mean": lambda rows: rows.mean(axis=0),
    "first": lambda rows: rows[0],
    "last": lambda rows: rows[-1],
    "max": lambda rows: rows.max(axis=0),
}
WORD_IDS = [None, 0, 0, 1, 3, 2, 2, 2, None]


@pytest.mark.parametrize("pool", BY_HAND)
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_pieces_of_words_against_a_loop(pool, dtype):
    states = np.random.default_rng(0).normal(size=(len(WORD_IDS), 3)).astype(dtype)
    found = pool_word_ids(states, WORD_IDS, 4, pool=pool)
    wanted = [BY_HAND[pool](states[[k for k, w in enumerate(WORD_IDS) if w == word]]) for word in range(4)]
    assert found == pytest.approx(np.array(wanted, np.float64), abs={2: 2e-3, 4: 1e-6, 8: 1e-14}[states.itemsize])
    assert found.dtype == (np.float64 if dtype == np.float64 else np.float32)


@pytest.mark.parametrize("pool", BY_HAND)
def test_offsets_are_word_ids_where_pieces_stay_within_words(pool):
    text, words, pieces, word_ids = "unbelievable cats sat", [], [(0, 0)], [None]
    for word, cuts in (("unbelievable", [2, 7]), ("cats", [3]), ("sat", [])):
        start = text.index(word)
        words.append((start, start + len(word)))
        for a, b in zip([0, *cuts], [*cuts, len(word)], strict=True):
            pieces.append((start + a, start + b))
            word_ids.append(len(words) - 1)
    states = np.random.default_rng(0).normal(size=(len(pieces), 2))
    by_ids = pool_word_ids(states, word_ids, 3, pool=pool)
    assert pool_offsets(states, pieces, words, pool=pool).tolist() == by_ids.tolist()


def test_a_piece_over_two_words_belongs_to_both():
    assert pool_offsets([[1.0], [3.0]], [(0, 4), (4, 6)], [(0, 2), (3, 6)]).tolist() == [[1.0], [2.0]]


def test_sentences_without_words_or_pieces():
    assert pool_word_ids(np.zeros((2, 3)), [None, None], 0).shape == (0, 3)
    assert pool_offsets(np.zeros((0, 3)), [], []).shape == (0, 3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: pool_word_ids(np.zeros((3, 2)), [0, 1, 1], 3), "word 2 has no piece. Did the tokenizer truncate"),
        (lambda: pool_offsets([[1.0]], [(0, 2)], [(0, 2), (3, 5)]), "word 1 has no piece"),
        (lambda: pool_word_ids(np.zeros((3, 2)), [0, 1], 2), "one entry per row of states, 3. Got 2"),
        (lambda: pool_word_ids(np.zeros((2, 2)), [0, 2], 2), "word_ids must be from 0 to 1, or None. Got 0 to 2"),
        (lambda: pool_word_ids(np.zeros(2), [0, 1], 2), r"states must be an array \(n_pieces, n_dimensions\)"),
        (lambda: pool_word_ids([["a"]], [0], 1), "states must be an array"),
        (lambda: pool_word_ids([[0.0], [np.nan]], [0, 0], 1), "states must be finite. Row 1 is not"),
        (lambda: pool_word_ids([[0.0]], [0], 1, pool="sum"), "pool must be one of mean, first, last, max. Got 'sum'"),
        (lambda: pool_offsets([[1.0]], [(2, 1)], [(0, 2)]), r"pieces must begin at 0 or later .* Got \[2, 1\]"),
        (lambda: pool_offsets([[1.0]], [(0, 1)], [0, 1]), r"words must be integers of shape \(n, 2\)"),
        (lambda: pool_offsets([[1.0]], [(0, 1), (1, 2)], [(0, 2)]), "pieces must have one entry per row of states"),
    ],
)
def test_what_does_not_fit_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
