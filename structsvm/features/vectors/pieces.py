"""Rows of sub-words, a token classifier's states or logits, brought to rows of words."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from structsvm.arrays import AnyArray, Floats

POOLS = ("mean", "first", "last", "max")


def pool_word_ids(states: ArrayLike, word_ids: Sequence[int | None], n_words: int, *, pool: str = "mean") -> Floats:
    """Return a row per word of a sentence, from rows of its pieces and the word that each piece belongs to.

    Parameters
    ----------
    states : array of shape (n_pieces, n_dimensions)
        States or logits of the pieces, as many as the tokenizer returned, special ones included.
    word_ids : sequence of int or None, one per piece
        The piece's word, from 0; None where it belongs to none, as special pieces do. So returns
        ``BatchEncoding.word_ids()`` of Hugging Face's tokenizers.
    n_words : int
        Words of the sentence.
    pool : {"mean", "first", "last", "max"}, default="mean"
        Which pieces of a word count.

    Returns
    -------
    array of shape (n_words, n_dimensions), float32 or float64

    Raises
    ------
    ValueError
        Shapes do not fit, a number is not finite, or a word has no piece: where the tokenizer has truncated the
        sentence, its last words would otherwise silently go without.

    Examples
    --------
    >>> from structsvm.features.vectors import pool_word_ids
    >>> states = [[9.0, 9.0], [1.0, 0.0], [3.0, 0.0], [0.0, 5.0], [9.0, 9.0]]
    >>> pool_word_ids(states, [None, 0, 0, 1, None], n_words=2)  # [CLS] Gra ##z is [SEP], less its last word
    array([[2., 0.],
           [0., 5.]])
    """
    rows = _rows(states)
    if len(word_ids) != len(rows):
        raise ValueError(f"word_ids must have one entry per row of states, {len(rows)}. Got {len(word_ids)}.")
    inside = [k for k, word in enumerate(word_ids) if word is not None]
    words = np.array([word_ids[k] for k in inside], dtype=np.int64)
    if words.size and not 0 <= words.min() <= words.max() < n_words:
        raise ValueError(f"word_ids must be from 0 to {n_words - 1}, or None. Got {words.min()} to {words.max()}.")
    return _pooled(rows, np.array(inside, dtype=np.int64), words, n_words, pool)


def pool_offsets(states: ArrayLike, pieces: ArrayLike, words: ArrayLike, *, pool: str = "mean") -> Floats:
    """Return a row per word of a sentence, by where pieces and words begin and end in the text.

    A piece belongs to each word that it shares a character with, an empty one (as special pieces are) to none.

    Parameters
    ----------
    states : array of shape (n_pieces, n_dimensions)
    pieces : array of int of shape (n_pieces, 2)
        First character of a piece, and the one behind its last: a tokenizer's ``offset_mapping``.
    words : array of int of shape (n_words, 2)
        The same of the words.
    pool : {"mean", "first", "last", "max"}, default="mean"

    Returns
    -------
    array of shape (n_words, n_dimensions), float32 or float64

    Raises
    ------
    ValueError
        As of `pool_word_ids`, and for offsets that end before they begin.

    Examples
    --------
    >>> from structsvm.features.vectors import pool_offsets
    >>> pieces, words = [(0, 0), (0, 3), (3, 4), (5, 7)], [(0, 4), (5, 7)]
    >>> pool_offsets([[9.0], [1.0], [3.0], [5.0]], pieces, words, pool="first")  # Gra|z is
    array([[1.],
           [5.]])
    """
    rows, of_pieces, of_words = _rows(states), _offsets("pieces", pieces), _offsets("words", words)
    if len(of_pieces) != len(rows):
        raise ValueError(f"pieces must have one entry per row of states, {len(rows)}. Got {len(of_pieces)}.")
    first, last = of_pieces[:, :1], of_pieces[:, 1:]
    shared = (np.maximum(first, of_words[:, 0]) < np.minimum(last, of_words[:, 1])) & (first < last)
    inside, found = np.nonzero(shared)
    order = np.argsort(found, kind="stable")
    return _pooled(rows, inside[order], found[order], len(of_words), pool)


def _rows(states: ArrayLike) -> Floats:
    """Finite rows; halves become float32."""
    found: AnyArray = np.asarray(states)
    if found.ndim != 2 or found.dtype.kind not in "fiu":
        raise ValueError(f"states must be an array (n_pieces, n_dimensions). Got {found.dtype} {found.shape}.")
    rows: Floats = found.astype(np.float32 if found.dtype in (np.float16, np.float32) else np.float64, copy=False)
    bad = np.flatnonzero(~np.isfinite(rows).all(axis=1))
    if len(bad):
        raise ValueError(f"states must be finite. Row {bad[0]} is not.")
    return rows


def _offsets(name: str, pairs: ArrayLike) -> NDArray[np.int64]:
    found: AnyArray = np.asarray(pairs)
    if found.size == 0:
        return np.zeros((0, 2), np.int64)
    if found.ndim != 2 or found.shape[1] != 2 or found.dtype.kind not in "iu":
        raise ValueError(f"{name} must be integers of shape (n, 2). Got {found.dtype} {found.shape}.")
    offsets = found.astype(np.int64)
    bad = np.flatnonzero((offsets[:, 0] > offsets[:, 1]) | (offsets[:, 0] < 0))
    if len(bad):
        raise ValueError(f"{name} must begin at 0 or later and not after their end. Got {offsets[bad[0]].tolist()}.")
    return offsets


def _pooled(rows: Floats, pieces: NDArray[np.int64], words: NDArray[np.int64], n_words: int, pool: str) -> Floats:
    """Rows of words, from the pieces that belong to each: pairs of a piece and a word."""
    if pool not in POOLS:
        raise ValueError(f"pool must be one of {', '.join(POOLS)}. Got {pool!r}.")
    counts = np.bincount(words, minlength=n_words)
    empty = np.flatnonzero(counts == 0)
    if len(empty):
        raise ValueError(
            f"word {empty[0]} has no piece. Did the tokenizer truncate the sentence? Raise its maximal length, or "
            "split the sentence."
        )
    out = np.zeros((n_words, rows.shape[1]), rows.dtype)
    if pool == "mean":
        np.add.at(out, words, rows[pieces])
        out /= counts[:, None].astype(rows.dtype)
    elif pool == "max":
        out[:] = -np.inf
        np.maximum.at(out, words, rows[pieces])
    else:
        chosen = np.zeros(n_words, np.int64)
        order = slice(None, None, -1) if pool == "first" else slice(None)
        chosen[words[order]] = pieces[order]  # the last one that is written stays
        out[:] = rows[chosen]
    return out
