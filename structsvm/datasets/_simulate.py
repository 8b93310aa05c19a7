"""Simulated label sequences that look like text chunking, and their column files; graphs, label sets, orders.

The language of sequences is a hidden Markov model that depends only on how many labels and words there are
(``random_state`` draws sentences from it, so two draws can serve as training and test set). Its labels form a Markov
chain over BIO chunks. A label prefers three part-of-speech tags, which it shares with others, and each tag has its own
block of words with Zipf frequencies 1/rank, ranked differently by each label. So neither word nor tag determines the
label, and neighbours help.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Sequence
from itertools import pairwise
from numbers import Integral, Real
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from structsvm.datasets._draws import SHARE, RandomState, draw, zipf
from structsvm.files.new_file import new_file
from structsvm.parameters import COUNT, Interval, Options, check_arguments

T = TypeVar("T")

_TYPES = ["NP", "VP", "PP", "ADVP", "SBAR", "ADJP", "PRT", "CONJP", "INTJP", "LST", "UCP"]
_TAGS_PER_LABEL = 3


def make_sequences(
    n_sequences: int = 1000,
    *,
    n_labels: int = 11,
    n_words: int = 10_000,
    mean_length: float = 24.0,
    noise: float = 0.02,
    random_state: RandomState = None,
) -> tuple[list[list[tuple[str, str]]], list[list[str]]]:
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
        Probability, from 0 to 1, that a token is drawn as if it had a random label; only its neighbours then reveal the
        true one.
    random_state : int, numpy.random.Generator or None
        Draws the sentences; the language depends on ``n_labels`` and ``n_words`` only.

    Returns
    -------
    X : list of (list of (str, str))
        Sentences of tokens (word, tag).
    y : list of (list of str)
        Their labels; an I- always follows a B- or I- of its type.

    Examples
    --------
    >>> from structsvm.datasets import make_sequences
    >>> X, y = make_sequences(100, random_state=0)
    >>> len(X), len(X[0]) == len(y[0])
    (100, True)
    """
    check_arguments(
        "make_sequences",
        locals(),
        n_sequences=COUNT,
        n_labels=Interval(Integral, 2),
        n_words=Interval(Integral, n_labels + 2),
        mean_length=Interval(Real, 1),
        noise=SHARE,
    )
    rng = np.random.default_rng(random_state)
    names, transitions, tag_of, n_tags = _language(n_labels)

    lengths = 1 + rng.poisson(rng.gamma(4.0, (mean_length - 1) / 4.0, size=n_sequences))
    offsets = np.append(0, np.cumsum(lengths))
    labels = _draw_chain(transitions, offsets, rng)

    shown = labels.copy()
    wrong = rng.random(len(labels)) < noise
    shown[wrong] = rng.integers(n_labels, size=np.count_nonzero(wrong))
    tags = tag_of[shown, draw(rng, [12.0, 2.0, 1.0], len(labels))]
    n_block = n_words // n_tags
    rank = draw(rng, zipf(n_block), len(labels))
    words = tags * n_block + (rank + 7 * shown) % n_block

    tokens = np.empty(n_tags * n_block, dtype=object)
    tokens[:] = [(f"w{word}", f"T{word // n_block}") for word in range(len(tokens))]
    return _cut(tokens[words].tolist(), offsets), _cut(names[labels].tolist(), offsets)


def _language(n_labels: int) -> tuple[NDArray[np.object_], NDArray[np.float64], NDArray[np.int64], int]:
    """Return label names, transition matrix (last row: start), tags of each label, number of tags."""
    n_types = n_labels // 2
    types = [_TYPES[k] if k < len(_TYPES) else f"C{k}" for k in range(n_types)]
    names = ["O", *(f"{prefix}-{kind}" for kind in types for prefix in "BI")][:n_labels]

    rng = np.random.default_rng(n_labels)
    begins = np.arange(1, n_labels, 2)  # I-X comes right after B-X
    transitions = np.zeros((n_labels + 1, n_labels))
    transitions[:, 0] = 0.5
    transitions[:, begins] = zipf(n_types) * rng.gamma(1.0, size=(n_labels + 1, n_types))
    transitions /= transitions.sum(axis=1, keepdims=True)
    for inside in range(2, n_labels, 2):
        for before, stay in ((inside - 1, 0.6), (inside, 0.4)):
            transitions[before] *= 1 - stay
            transitions[before, inside] = stay

    n_tags = n_labels + 2
    tag_of = np.array([rng.permutation(n_tags)[:_TAGS_PER_LABEL] for _ in names])
    tag_of[:, 0] = np.arange(n_labels)
    return np.array(names, dtype=object), transitions, tag_of, n_tags


def _draw_chain(
    transitions: NDArray[np.float64], offsets: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.int64]:
    """Draw the labels of all sentences, position by position."""
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


def _cut(flat: list[T], offsets: NDArray[np.int64]) -> list[list[T]]:
    """Split a list of all tokens into lists, one per sentence."""
    return [flat[i:j] for i, j in pairwise(offsets.tolist())]


def write_columns(
    path: str | PathLike[str], X: Sequence[Sequence[str | Sequence[str]]], y: Sequence[Sequence[str]]
) -> None:
    """Write labelled sentences as a CoNLL column file: token columns, then the label.

    Parameters
    ----------
    path : path-like
        File to write, UTF-8, compressed if its name ends in ``.gz``.
    X : list of (list of (str or tuple of str))
        Sentences of tokens, a token a word, or the tuple of its columns.
    y : list of (list of str)
        Their labels.

    Raises
    ------
    ValueError
        X and y, or a pair of their sequences (the message gives its index), differ in length; or the file could not be
        read back: no sequences, an empty one, another number of columns than the first token has, a field that is
        empty or holds a blank, a tab, a line break or a lone surrogate, or begins a line with what readers leave out: a
        byte-order mark, ``-DOCSTART-`` (the message names sequence, token and column).
    TypeError
        A token or label is not of strings, or a sequence is a text (the message names it).

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from structsvm.datasets import write_columns
    >>> path = Path(tempfile.mkdtemp()) / "train.txt"
    >>> write_columns(path, [[("the", "DT"), ("cat", "NN")]], [["B-NP", "I-NP"]])
    >>> path.read_text().splitlines()
    ['the DT B-NP', 'cat NN I-NP', '']
    """
    if len(X) != len(y):
        raise ValueError(f"X has {len(X)} sequences and y has {len(y)}.")
    rows: list[tuple[str, ...]] = []
    lines = []
    for i, (tokens, labels) in enumerate(zip(X, y, strict=True)):
        _check_sequence(tokens, f"sequence {i} of X")
        _check_sequence(labels, f"sequence {i} of y")
        if len(tokens) != len(labels):
            raise ValueError(f"sequence {i}: X has {len(tokens)} tokens and y has {len(labels)} labels.")
        if len(tokens) == 0:
            raise ValueError(f"sequence {i} is empty.")
        for t, (token, label) in enumerate(zip(tokens, labels, strict=True)):
            rows.append(_fields(token, label, f"sequence {i}, token {t}"))
            if len(rows[-1]) != len(rows[0]):
                raise ValueError(
                    f"sequence {i}, token {t}: expected {len(rows[0])} columns with the label, got {len(rows[-1])}."
                )
            lines.append(" ".join(rows[-1]))
        lines.append("")
    if not rows:
        raise ValueError("X has no sequences.")
    content = ("\n".join(lines) + "\n").encode("utf-8")
    with new_file(path) as file:
        file.write(gzip.compress(content, mtime=0) if Path(path).suffix == ".gz" else content)


def _check_sequence(sequence: object, where: str) -> None:
    """Raise TypeError for a text in the place of a list, each letter of which would be a token."""
    if isinstance(sequence, str) or not hasattr(sequence, "__len__"):
        raise TypeError(f"{where} must be a list with a str or a tuple of str for each token, got {sequence!r:.40}.")


def _fields(token: str | Sequence[str], label: str, where: str) -> tuple[str, ...]:
    """A token's columns and its label; ValueError or TypeError for what cannot be read back."""
    if not hasattr(token, "__iter__"):
        raise TypeError(f"{where}: expected a str or a tuple of str, got {token!r:.40}.")
    fields = (token, label) if isinstance(token, str) else (*token, label)
    for j, field in enumerate(fields):
        name = "label" if j + 1 == len(fields) else f"column {j}"
        if not isinstance(field, str):
            raise TypeError(f"{where}, {name}: expected a str, got {field!r:.40}.")
        if not re.fullmatch("[^ \t\r\n\ud800-\udfff]+", field):
            raise ValueError(
                f"{where}, {name}: {field!r:.40} cannot be written: fields are not empty, and hold no blanks, tabs, "
                "line breaks or lone surrogates."
            )
    if fields[0].startswith(("\ufeff", "-DOCSTART-")):
        raise ValueError(f"{where}, column 0: {fields[0]!r:.40} cannot be written: readers leave it out.")
    return fields


# ---- graphs --------------------------------------------------------------------------------------

_STEPS = np.array([(-1, 0), (0, 1), (1, 0), (0, -1)])  # up, right, down, left


def make_snakes(
    n_snakes: int = 200, *, length: int = 10, size: int = 8, random_state: RandomState = None
) -> tuple[list[tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.float64]]], list[NDArray[np.int64]]]:
    """Draw snakes on grids, whose cells are to be numbered from head to tail.

    A snake is a path that does not cross itself. Each of its cells has one of four colours, the direction of the next
    one; for the last cell, of a cell outside the snake (or the border); all other cells have a fifth colour. There
    is no noise, and a cell's surroundings hardly ever give its number: only the path from the head does.

    Parameters
    ----------
    n_snakes : int
    length : int
        Cells of a snake, at least 2.
    size : int
        Cells of the grid's sides, at least 4, and so many that ``size * size >= 4 * length``.
    random_state : int, numpy.random.Generator or None

    Returns
    -------
    X : list of (nodes, edges, edge_features)
        Grids with 4 neighbours: the colours of a cell and of the 8 around it, array (n_cells, 45) of zeros and ones;
        pairs of cells, the left or the upper one first; and for each pair the colours of both ends, in columns of
        their own by its direction: array (n_edges, 20).
    y : list of ndarray of shape (n_cells,), int64
        1 for the head, up to `length` for the tail, 0 elsewhere; row by row.

    References
    ----------
    S. Nowozin, C. Rother, S. Bagon, T. Sharp, B. Yao and P. Kohli, Decision tree fields, ICCV 2011, section 6.2.

    Examples
    --------
    >>> from structsvm.datasets import make_snakes
    >>> X, y = make_snakes(3, size=7, random_state=0)
    >>> X[0][0].shape, sorted(set(y[0].tolist())) == list(range(11))
    ((49, 45), True)
    """
    check_arguments(
        "make_snakes", locals(), n_snakes=COUNT, length=Interval(Integral, 2), size=Interval(Integral, 4, 1000)
    )
    if size * size < 4 * length:
        raise ValueError(f"a grid of {size} x {size} cells is too small for a snake of length {length}")
    rng = np.random.default_rng(random_state)
    cells = np.arange(size * size).reshape(size, size)
    right = np.column_stack([cells[:, :-1].ravel(), cells[:, 1:].ravel()])
    down = np.column_stack([cells[:-1].ravel(), cells[1:].ravel()])
    X, y = [], []
    for _ in range(n_snakes):
        path, colour = _snake(rng, length, size)
        labels, colours = np.zeros((size, size), dtype=np.int64), np.full((size, size), 4)
        for k, (cell, way) in enumerate(zip(path, colour, strict=True)):
            labels[cell], colours[cell] = k + 1, way
        one_hot = np.eye(5)[colours]
        around = np.pad(one_hot, ((1, 1), (1, 1), (0, 0)))
        windows = [around[a : a + size, b : b + size] for a in range(3) for b in range(3)]
        nodes = np.concatenate(windows, axis=2).reshape(size * size, -1)
        own, features = one_hot.reshape(-1, 5), np.zeros((len(right) + len(down), 4, 5))
        features[: len(right), 0], features[: len(right), 1] = own[right[:, 0]], own[right[:, 1]]
        features[len(right) :, 2], features[len(right) :, 3] = own[down[:, 0]], own[down[:, 1]]
        X.append((nodes, np.concatenate([right, down]), features.reshape(-1, 20)))
        y.append(labels.ravel())
    return X, y


def _snake(rng: np.random.Generator, length: int, size: int) -> tuple[list[tuple[int, int]], list[int]]:
    """Cells of a snake, and the direction of each; draws that end in a corner are drawn again."""
    while True:
        path, ways = [(int(rng.integers(size)), int(rng.integers(size)))], list[int]()
        while True:
            beside = [(path[-1][0] + int(a), path[-1][1] + int(b)) for a, b in _STEPS]
            free = [k for k, (r, c) in enumerate(beside) if (r, c) not in path]
            if len(path) < length:
                free = [k for k in free if 0 <= beside[k][0] < size and 0 <= beside[k][1] < size]
            if not free:
                break
            ways.append(free[int(rng.integers(len(free)))])
            if len(path) == length:
                return path, ways
            path.append(beside[ways[-1]])


def make_noisy_grids(
    n_grids: int = 20,
    *,
    size: int = 24,
    n_labels: int = 2,
    pattern: str = "blobs",
    scale: float = 3.0,
    noise: float = 1.5,
    random_state: RandomState = None,
) -> tuple[list[NDArray[np.float64]], list[NDArray[np.int64]]]:
    """Draw grids of labels, and noisy features of them.

    Parameters
    ----------
    n_grids : int
    size : int
        Cells of the grids' sides, at least 2.
    n_labels : int
        At least 2.
    pattern : {"blobs", "checkerboard"}
        The label whose smooth random field is greatest; or the fields of a board in turn.
    scale : float
        Standard deviation of the smoothing, or width of a field (rounded), in cells.
    noise : float
        Standard deviation of the noise added to each feature.
    random_state : int, numpy.random.Generator or None

    Returns
    -------
    X : list of ndarray of shape (size, size, n_labels), float64
        1 in the column of a cell's label, and noise.
    y : list of ndarray of shape (size, size), int64

    Examples
    --------
    >>> from structsvm.datasets import make_noisy_grids
    >>> X, y = make_noisy_grids(2, size=8, n_labels=3, random_state=0)
    >>> X[0].shape, y[0].shape
    ((8, 8, 3), (8, 8))
    """
    check_arguments(
        "make_noisy_grids",
        locals(),
        n_grids=COUNT,
        size=Interval(Integral, 2),
        n_labels=Interval(Integral, 2),
        scale=Interval(Real, 0.0, closed="neither"),
        noise=Interval(Real, 0.0),
        pattern=Options("blobs", "checkerboard"),
    )
    from scipy.ndimage import gaussian_filter

    rng = np.random.default_rng(random_state)
    X, y = [], []
    for _ in range(n_grids):
        if pattern == "blobs":
            fields = rng.normal(size=(n_labels, size, size))
            labels = np.argmax([gaussian_filter(field, scale, mode="wrap") for field in fields], axis=0)
        else:
            row, column = np.indices((size, size)) // max(round(scale), 1)
            labels = (row + column) % n_labels
        X.append(np.eye(n_labels)[labels] + noise * rng.normal(size=(size, size, n_labels)))
        y.append(labels)
    return X, y


def make_label_sets(
    n_samples: int = 400,
    n_features: int = 10,
    n_labels: int = 6,
    *,
    strength: float = 1.0,
    noise: float = 1.0,
    random_state: RandomState = None,
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Draw rows and sets of labels, some of which occur together and some do not.

    A set y, as indicators, has given x a probability proportional to

        exp( 2 / noise * (sum_j <w_j, x> y_j + strength * sum_{j < k} t_jk (y_j - 1/2) (y_k - 1/2)) ),

    with standard Gaussian x, w_j of length 1 and t_jk of variance ``4 / (n_labels - 1)``; sets are drawn by 60 sweeps
    of Gibbs sampling. w and t depend on the numbers of features and labels only, so two draws can serve as training
    and test set.

    Parameters
    ----------
    n_samples, n_features, n_labels : int
    strength : float
        Strength of the pairs; at 0 a row says everything about a label.
    noise : float
        Above 0: the temperature.
    random_state : int, numpy.random.Generator or None

    Returns
    -------
    X : ndarray of shape (n_samples, n_features), float64
    y : ndarray of shape (n_samples, n_labels), int64
        0 and 1.

    Examples
    --------
    >>> from structsvm.datasets import make_label_sets
    >>> X, y = make_label_sets(50, random_state=0)
    >>> X.shape, y.shape
    ((50, 10), (50, 6))
    """
    check_arguments(
        "make_label_sets",
        locals(),
        n_samples=COUNT,
        n_features=COUNT,
        n_labels=COUNT,
        strength=Interval(Real, 0.0),
        noise=Interval(Real, 0.0, closed="neither"),
    )
    truth, rng = np.random.default_rng([n_features, n_labels]), np.random.default_rng(random_state)
    w = truth.normal(size=(n_features, n_labels))
    w /= np.linalg.norm(w, axis=0)
    pairs = np.triu(truth.normal(size=(n_labels, n_labels)), 1) * 2.0 / max(n_labels - 1, 1) ** 0.5
    pairs = strength * (pairs + pairs.T)
    X = rng.normal(size=(n_samples, n_features))
    own, y = X @ w, rng.integers(0, 2, (n_samples, n_labels))
    for _ in range(60):
        for j in range(n_labels):
            score = 2.0 / noise * (own[:, j] + (y - 0.5) @ pairs[j])
            y[:, j] = rng.logistic(size=n_samples) < score
    return X, y


def make_orderings(
    n_sets: int = 200,
    n_features: int = 5,
    n_pair_features: int = 0,
    *,
    max_items: int = 8,
    noise: float = 1.0,
    random_state: RandomState = None,
) -> tuple[list[Any], list[NDArray[np.int64]]]:
    """Draw sets of items and their orders.

    An order has a probability proportional to

        exp( 1 / noise * sum_{i before j} (<w, x_i - x_j> + <v, P_ij - P_ji> / 2) )

    with standard Gaussian x and P; orders are drawn by Gibbs sampling, 60 sweeps over neighbours from the order by
    the items' sums. w and v, of length 1 if there are such features, depend on their numbers only, so two draws can
    serve as training and test set.

    Parameters
    ----------
    n_sets, n_features, n_pair_features : int
    max_items : int
        At least 2; sets have from 2 items on, all sizes equally likely.
    noise : float
        Above 0: the temperature.
    random_state : int, numpy.random.Generator or None

    Returns
    -------
    X : list of ndarray of shape (n_items, n_features), or of tuples with an array (n_items, n_items, n_pair_features)
    y : list of ndarray of shape (n_items,), int64
        Items in their order.

    Examples
    --------
    >>> from structsvm.datasets import make_orderings
    >>> X, y = make_orderings(50, random_state=0)
    >>> X[0].shape, y[0].tolist()
    ((7, 5), [1, 2, 0, 5, 4, 3, 6])
    """
    check_arguments(
        "make_orderings",
        locals(),
        n_sets=COUNT,
        n_features=COUNT,
        n_pair_features=Interval(Integral, 0),
        max_items=Interval(Integral, 2),
        noise=Interval(Real, 0.0, closed="neither"),
    )
    truth, rng = np.random.default_rng([n_features, n_pair_features]), np.random.default_rng(random_state)
    w, v = truth.normal(size=n_features), truth.normal(size=n_pair_features)
    w, v = w / np.linalg.norm(w), v / max(float(np.linalg.norm(v)), 1e-9)
    X, y = [], []
    for n in rng.integers(2, max_items, n_sets, endpoint=True):
        rows, table = rng.normal(size=(n, n_features)), rng.normal(size=(n, n, n_pair_features))
        own = rows @ w
        scores = own[:, np.newaxis] - own + (table - table.swapaxes(0, 1)) @ v / 2.0
        order = np.argsort(-scores.sum(axis=1))
        for draws in rng.logistic(size=(60, n - 1)) * noise / 2.0:
            for t in range(n - 1):
                i, j = order[t : t + 2]
                order[t : t + 2] = (i, j) if draws[t] < scores[i, j] else (j, i)
        X.append((rows, table) if n_pair_features else rows)
        y.append(order)
    return X, y


def make_word_alignments(
    n_sentences: int = 200,
    *,
    n_words: int = 1000,
    max_length: int = 15,
    max_fertility: int = 1,
    dropped: float = 0.1,
    spurious: float = 0.15,
    reorder: float = 1.0,
    random_state: RandomState = None,
) -> tuple[list[tuple[list[str], list[str]]], list[NDArray[np.int64]]]:
    """Draw sentences with their translations, and the alignment of their words.

    Words of the second language are drawn with Zipf frequencies 1/rank. Each becomes nothing, or one to `max_fertility`
    words of the first language: its main translation, in three cases of ten its other one, which is the main one of
    another word. One word in seven is spelled the same in both languages. Their places are those of the words that they
    translate, jittered; then words that translate nothing are inserted, frequent ones most. The dictionary
    depends on `n_words` only, so two draws can serve as training and test set.

    Parameters
    ----------
    n_sentences : int
    n_words : int
        Words of each language, at least 2.
    max_length : int
        Words of the second language in a sentence, at most; from 1 on all lengths are equally likely.
    max_fertility : int
        All numbers from 1 on are equally likely.
    dropped : float
        Probability that a word has no translation in its sentence.
    spurious : float
        Probability that a word that translates nothing follows a word.
    reorder : float
        Standard deviation of the jitter, in words.
    random_state : int, numpy.random.Generator or None

    Returns
    -------
    sentences : list of (list of str, list of str)
        A sentence of the first language and one of the second.
    alignments : list of int64 array
        For each word of the first sentence the index of its word in the second, -1 if it translates nothing.

    Examples
    --------
    >>> from structsvm.datasets import make_word_alignments
    >>> (left, right), y = (found[0] for found in make_word_alignments(3, max_length=4, random_state=1))
    >>> len(left) == len(y), bool((y < len(right)).all())
    (True, True)
    """
    check_arguments(
        "make_word_alignments",
        locals(),
        n_sentences=COUNT,
        n_words=Interval(Integral, 2),
        max_length=COUNT,
        max_fertility=COUNT,
        dropped=SHARE,
        spurious=SHARE,
        reorder=Interval(Real, 0.0),
    )
    other = np.random.default_rng(n_words).permutation(n_words)
    rng, frequency = np.random.default_rng(random_state), zipf(n_words)
    sentences: list[tuple[list[str], list[str]]] = []
    alignments: list[NDArray[np.int64]] = []
    for _ in range(n_sentences):
        words = draw(rng, frequency, int(rng.integers(1, max_length, endpoint=True)))
        n_copies = rng.integers(1, max_fertility, len(words), endpoint=True) * (rng.random(len(words)) >= dropped)
        origin = np.repeat(np.arange(len(words)), n_copies)
        origin = origin[np.argsort(origin + reorder * rng.normal(size=len(origin)), kind="stable")]
        translated = np.where(rng.random(len(origin)) < 0.3, other[words[origin]], words[origin])
        places = np.flatnonzero(rng.random(len(origin) + 1) < spurious)
        left = np.insert(translated, places, draw(rng, frequency, len(places)))
        sentences.append(([_word("a", k) for k in left.tolist()], [_word("b", k) for k in words.tolist()]))
        alignments.append(np.insert(origin, places, -1).astype(np.int64))
    return sentences, alignments


def _word(language: str, k: int) -> str:
    return f"name{k}" if k % 7 == 6 else f"{language}{k}"
