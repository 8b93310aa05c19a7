"""Simulated label sequences that look like text chunking, and their column files.

The language is a hidden Markov model that the numbers of labels and words fix once and for all
(``random_state`` only draws sentences from it, so that two draws can serve as training and test
set). Its labels form a Markov chain over BIO chunks. A label prefers three part-of-speech tags,
which it shares with others, and each tag has its own block of words with Zipf frequencies 1/rank,
ranked differently by each label. So neither word nor tag tells the label for sure, and neighbours
help.
"""

from __future__ import annotations

import gzip
from itertools import pairwise
from pathlib import Path

import numpy as np

__all__ = ["make_sequences", "write_columns"]

_TYPES = ["NP", "VP", "PP", "ADVP", "SBAR", "ADJP", "PRT", "CONJP", "INTJP", "LST", "UCP"]
_TAGS_PER_LABEL = 3


def make_sequences(
    n_sequences=1000,
    *,
    n_labels=11,
    n_words=10_000,
    mean_length=24.0,
    noise=0.02,
    random_state=None,
):
    """Draw labelled sentences from a hidden Markov model over BIO chunks.

    Parameters
    ----------
    n_sequences : int
        Number of sentences, at least 1.
    n_labels : int
        Number of labels, at least 2: the first of O, B-NP, I-NP, B-VP, I-VP, B-PP and so on.
    n_words : int
        Size of the vocabulary, at least one word per tag (there are ``n_labels + 2`` tags).
    mean_length : float
        Mean number of tokens of a sentence, at least 1; the shortest has one token.
    noise : float
        Probability, from 0 to 1, that a token is drawn as if its label were another, which can
        only be told from its neighbours.
    random_state : int, numpy.random.Generator or None
        Draws the sentences; the language depends on ``n_labels`` and ``n_words`` only.

    Returns
    -------
    X : list of (list of (str, str))
        Sentences of tokens (word, tag).
    y : list of (list of str)
        Their labels; no I- comes without the B- or I- of its type before it.

    Raises
    ------
    ValueError
        A parameter is out of its range.

    Examples
    --------
    >>> from structsvm.datasets import make_sequences
    >>> X, y = make_sequences(100, random_state=0)
    >>> len(X), len(X[0]) == len(y[0])
    (100, True)
    """
    _check("n_sequences", n_sequences, 1, np.inf)
    _check("n_labels", n_labels, 2, np.inf)
    _check("n_words", n_words, n_labels + 2, np.inf)
    _check("mean_length", mean_length, 1, np.inf)
    _check("noise", noise, 0, 1)
    rng = np.random.default_rng(random_state)
    names, transitions, tag_of, n_tags = _language(n_labels)

    lengths = 1 + rng.poisson(rng.gamma(4.0, (mean_length - 1) / 4.0, size=n_sequences))
    offsets = np.append(0, np.cumsum(lengths))
    labels = _draw_chain(transitions, offsets, rng)

    shown = labels.copy()
    wrong = rng.random(len(labels)) < noise
    shown[wrong] = rng.integers(n_labels, size=np.count_nonzero(wrong))
    tags = tag_of[shown, _draw(np.array([12.0, 2.0, 1.0]), len(labels), rng)]
    n_block = n_words // n_tags
    rank = _draw(1.0 / np.arange(1, n_block + 1), len(labels), rng)
    words = tags * n_block + (rank + 7 * shown) % n_block

    tokens = np.empty(n_tags * n_block, dtype=object)
    tokens[:] = [(f"w{word}", f"T{word // n_block}") for word in range(len(tokens))]
    return _cut(tokens[words], offsets), _cut(names[labels], offsets)


def _check(name, value, low, high):
    if not low <= value <= high:
        limits = f"at least {low}" if high == np.inf else f"between {low} and {high}"
        raise ValueError(f"The {name!r} parameter of make_sequences must be {limits}. Got {value}.")


def _language(n_labels):
    """Label names, transition matrix (last row: start), tags of each label, number of tags."""
    n_types = n_labels // 2
    types = [_TYPES[k] if k < len(_TYPES) else f"C{k}" for k in range(n_types)]
    names = ["O", *(f"{prefix}-{kind}" for kind in types for prefix in "BI")][:n_labels]

    rng = np.random.default_rng(n_labels)
    begins = np.arange(1, n_labels, 2)  # B-X is followed in the numbering by I-X
    transitions = np.zeros((n_labels + 1, n_labels))
    transitions[:, 0] = 0.5
    frequency = 1.0 / np.arange(1, n_types + 1)
    transitions[:, begins] = frequency * rng.gamma(1.0, size=(n_labels + 1, n_types))
    transitions /= transitions.sum(axis=1, keepdims=True)
    for inside in range(2, n_labels, 2):
        for before, stay in ((inside - 1, 0.6), (inside, 0.4)):
            transitions[before] *= 1 - stay
            transitions[before, inside] = stay

    n_tags = n_labels + 2
    tag_of = np.array([rng.permutation(n_tags)[:_TAGS_PER_LABEL] for _ in names])
    tag_of[:, 0] = np.arange(n_labels)
    return np.array(names, dtype=object), transitions, tag_of, n_tags


def _draw(weights, size, rng):
    """Indices drawn in proportion to the weights."""
    upper = np.cumsum(weights)
    return np.searchsorted(upper, rng.random(size) * upper[-1], side="right")


def _draw_chain(transitions, offsets, rng):
    """Labels of all sentences, one position of every sentence that is long enough at a time."""
    upper = np.cumsum(transitions, axis=1)[:, :-1]
    begins = offsets[np.argsort(offsets[:-1] - offsets[1:], kind="stable")]  # longest first
    lengths = np.sort(np.diff(offsets))
    labels = np.empty(offsets[-1], dtype=np.int64)
    before = np.full(len(begins), len(transitions) - 1)
    for t in range(lengths[-1]):
        n_alive = len(lengths) - np.searchsorted(lengths, t, side="right")
        chance = rng.random(n_alive)
        before = np.count_nonzero(upper[before[:n_alive]] <= chance[:, None], axis=1)
        labels[begins[:n_alive] + t] = before
    return labels


def _cut(flat, offsets):
    """Lists of the sentences of an object array of all tokens."""
    items, offsets = flat.tolist(), offsets.tolist()
    return [items[i:j] for i, j in pairwise(offsets)]


def write_columns(path, X, y):
    """Write labelled sentences as a CoNLL column file: token columns, then the label.

    Parameters
    ----------
    path : path-like
        File to write, UTF-8; a name that ends in ``.gz`` is compressed.
    X : list of (list of tuple of str)
        Sentences of tokens, a token the tuple of its columns.
    y : list of (list of str)
        Their labels.

    Raises
    ------
    ValueError
        X and y, or one of their sequences (the message names which), differ in length.
    """
    lines = []
    if len(X) != len(y):
        raise ValueError(f"X has {len(X)} sequences and y has {len(y)}.")
    for i, (tokens, labels) in enumerate(zip(X, y, strict=True)):
        if len(tokens) != len(labels):
            raise ValueError(f"sequence {i}: X has {len(tokens)} tokens and y has {len(labels)} labels.")
        lines += [" ".join((*token, label)) for token, label in zip(tokens, labels, strict=True)]
        lines.append("")
    open_text = gzip.open if Path(path).suffix == ".gz" else open
    with open_text(path, "wt", encoding="utf-8", newline="\n") as file:
        file.write("\n".join(lines) + "\n")
