"""Scores of the tokens of a pool under the weights of the last query, and margins and potentials from them.

Answers change the weights of few features: scores follow by these alone. Sums of float32 in another order than the
decoder's, their margins are right within a tolerance; they say which sequences the decoder has to read.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from structsvm.features.ranges import take_ranges
from structsvm.oracles.viterbi import ViterbiOracle
from structsvm.tasks.sequence.questions._margins import add_rows, margins
from structsvm.tasks.sequence.questions.doubts import Potentials

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from structsvm.arrays import Floats, Integers
    from structsvm.features.tokens import Tokens
    from structsvm.tasks.sequence.model import SequenceModel

# Error of a score in float32, as a share of the greatest weight times the number of weights that it sums.
ROUNDING = 1e-6
# Changes after which scores are summed anew: each adds the rounding of a few more sums.
MOST_CHANGES = 64


class Index(NamedTuple):
    """The tokens that have each feature: feature f has entries ``starts[f]:starts[f + 1]``."""

    starts: NDArray[np.int64]
    tokens: NDArray[np.int64]
    values: NDArray[np.float32] | None

    @classmethod
    def of(cls, tokens: Tokens) -> Index:
        order = np.argsort(tokens.indices, kind="stable")
        counts = np.bincount(tokens.indices, minlength=tokens.n_features)
        rows = np.repeat(np.arange(tokens.n_tokens), np.diff(tokens.indptr))[order]
        values = None if tokens.values is None else tokens.values[order]
        return cls(np.concatenate([[0], np.cumsum(counts)]).astype(np.int64), rows, values)

    def having(self, features: Integers) -> Iterator[tuple[Integers, Floats]]:
        """Per feature the tokens that have it, and its values."""
        for f in features.tolist():
            a, b = self.starts[f], self.starts[f + 1]
            yield self.tokens[a:b], np.ones(b - a) if self.values is None else self.values[a:b]

    def add(self, scores: NDArray[np.float32], changes: NDArray[np.float32], places: NDArray[np.int64] | None) -> None:
        """Add to the scores of tokens the changes of rows of weights; `places` are the rows of features, or -1."""
        changed: NDArray[np.bool_] = np.any(changes != 0.0, axis=1)
        places = np.arange(len(changed)) if places is None else places
        features = np.flatnonzero((places >= 0) & changed[places])
        add_rows(scores, self.starts, self.tokens, self.values, features, changes[places[features]])


def can_score(model: SequenceModel) -> bool:
    """Whether margins can be found from scores of tokens: exact inference of order 1, and no more than masks."""
    oracle = model.oracle
    is_chain = isinstance(oracle, ViterbiOracle) and oracle.order == 1 and oracle.language is None
    return is_chain and not oracle.rules and model.segments is None


class ChainScores:
    """Scores of all tokens of a pool.

    Parameters
    ----------
    tokens : Tokens
        Of the pool, with features of its own.
    index : Index
    """

    def __init__(self, tokens: Tokens, index: Index) -> None:
        self.tokens, self.index, self.n_changes = tokens, index, 0
        self.scores = np.zeros((0, 0), dtype=np.float32)
        self.weights = np.zeros((0, 0), dtype=np.float32)

    def follow(self, model: SequenceModel, places: NDArray[np.int64] | None, *, is_same: bool) -> None:
        """Bring the scores to the weights of a model; `is_same`: it is the one of the last call, with more features."""
        oracle = model.oracle
        now = model.weights.reshape(-1, oracle.stride)[: oracle.n_token_features]
        if not is_same or self.n_changes == MOST_CHANGES or self.scores.shape[1] != oracle.stride:
            self.scores = np.zeros((self.tokens.n_tokens, oracle.stride), dtype=np.float32)
            self.scores += oracle.padding_row
            self.weights, self.n_changes = np.zeros((0, oracle.stride), dtype=np.float32), 0
        n = len(self.weights)
        changes = np.concatenate([now[:n] - self.weights, now[n:]])
        self.index.add(self.scores, changes, places)
        self.weights, self.n_changes = now.copy(), self.n_changes + 1

    def margins(self, model: SequenceModel, pairs: NDArray[np.int64] | None) -> Floats:
        """Margins, and a tolerance less; `pairs` are the places of bigrams."""
        out = np.empty(len(self.tokens))
        moves, begin, end = edges_of(model)
        moves[:, model.oracle.n_labels :] = -np.inf
        own, bigrams = None, self._bigrams(model)
        if bigrams is not None:
            own = bigrams.indptr, self._blocks(bigrams, pairs), bigrams.values, self._of_pairs(model)
        margins(self.scores, self.tokens.offsets, moves, begin, end, out, own)
        return out - self.rounding(model)

    def rounding(self, model: SequenceModel) -> Floats:
        """The error of the score of a labelling, at most."""
        ends = self.tokens.indptr[self.tokens.offsets]
        size = float(np.abs(model.weights).max(initial=0.0))
        most = 1.0 if self.tokens.values is None else float(np.abs(self.tokens.values).max(initial=1.0))
        return ROUNDING * size * most * (np.diff(ends) + 4.0 * self.tokens.lengths)

    def potentials(self, model: SequenceModel, pairs: NDArray[np.int64] | None) -> Potentials:
        """The scores over the temperature; `pairs` are the places of bigrams."""
        K, heat = model.oracle.n_labels, np.float32(model.temperature or 1.0)
        moves, begin, end = (part[..., :K] / heat for part in edges_of(model))
        bigrams, of_pairs = self._bigrams(model), None
        if bigrams is not None:
            of_pairs = partial(summed, self._of_pairs(model)[..., :K] / heat, bigrams, self._blocks(bigrams, pairs))
        return Potentials(self.scores[:, :K] / heat, moves, begin, end, self.tokens.offsets, of_pairs)

    def _bigrams(self, model: SequenceModel) -> Tokens | None:
        bigrams = self.tokens.bigrams
        return bigrams if model.oracle.n_bigrams and bigrams is not None and bigrams.n_entries else None

    @staticmethod
    def _blocks(bigrams: Tokens, pairs: NDArray[np.int64] | None) -> NDArray[np.int64]:
        """Per entry of the pool's bigrams the model's table of it, -1 if it has none."""
        return bigrams.indices.astype(np.int64) if pairs is None else pairs[bigrams.indices]

    @staticmethod
    def _of_pairs(model: SequenceModel) -> NDArray[np.float32]:
        """Tables of the model's bigrams: array (n_bigrams, n_labels, stride)."""
        oracle = model.oracle
        rows = model.weights.reshape(-1, oracle.stride)[oracle.first_bigram_row :]
        return np.ascontiguousarray(rows).reshape(-1, oracle.n_labels, oracle.stride)


def edges_of(model: SequenceModel) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]:
    """Scores of moves, of beginnings and of ends, masks included: arrays (n_labels, stride), (stride,), (stride,)."""
    oracle = model.oracle
    K, first = oracle.n_labels, oracle.n_token_features
    rows = model.weights.reshape(-1, oracle.stride)
    moves, begin = rows[first : first + K].copy(), rows[first + K].copy()
    end = rows[first + K + 1].copy() if oracle.end else np.zeros(oracle.stride, dtype=np.float32)
    if len(oracle.mask_rows):
        masks = oracle.mask_rows.reshape(K + 2, oracle.stride)
        moves, begin, end = moves + masks[:K], begin + masks[K], end + masks[K + 1]
    return moves, begin, end


def summed(table: Floats, bigrams: Tokens, blocks: NDArray[np.int64], tokens: Integers) -> Floats:
    """Sums of the tables of the bigrams of some tokens: array (n, n_labels, n_labels).

    Parameters
    ----------
    table : array of shape (n_bigrams, n_labels, n_labels)
    blocks : array of shape (n_entries,)
        The table of each entry of `bigrams`, -1 for one that has none.
    """
    starts, entries = take_ranges(bigrams.indptr, tokens)
    owner = np.repeat(np.arange(len(tokens)), np.diff(starts))
    is_there = blocks[entries] >= 0
    entries, owner = entries[is_there], owner[is_there]
    values = table[blocks[entries]]
    if bigrams.values is not None:
        values *= bigrams.values[entries][:, None, None]
    found = np.zeros((len(tokens), *table.shape[1:]), dtype=table.dtype)
    np.add.at(found, owner, values)
    return found
