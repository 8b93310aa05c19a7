"""Scores of the tokens of a pool under the weights of the last query, and what they tell of its sequences.

Answers change the weights of few features: scores follow by these alone. Sums of float32 in another order than the
decoder's, margins and values from them are right within a tolerance; they say which sequences the decoder has to read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from structsvm.oracles.viterbi import ViterbiOracle
from structsvm.tasks.sequence.chances import INSIDE, OPEN
from structsvm.tasks.sequence.questions._margins import add_rows, doubts

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeAlias

    from numpy.typing import NDArray

    from structsvm.arrays import Floats
    from structsvm.features.tokens import Tokens
    from structsvm.metrics._schemes import Part
    from structsvm.tasks.sequence.model import SequenceModel

    ChunkTables: TypeAlias = tuple[
        NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.uint8], NDArray[np.uint8]
    ]

# Rounding of a number in float32, and a little more for products of roundings; scores whose error is greater than the
# second number may have overflowed.
UNIT, TOO_FAR = 6e-8, 1e30
# Scores are summed anew after so many changes, and once more than so many sums per feature of a token: each adds its
# rounding, and wider bounds make the decoder read more.
MOST_CHANGES, MOST_SUMS = 64, 2


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

    def add(
        self,
        scores: NDArray[np.float32],
        sizes: NDArray[np.float32],
        changes: NDArray[np.float32],
        places: NDArray[np.int64] | None,
    ) -> int:
        """Add to the scores of tokens the changes of rows of weights; `places` are the rows of features, or -1.

        Returns the number of sums; for `sizes` see `add_rows`.
        """
        changed: NDArray[np.bool_] = np.any(changes != 0.0, axis=1)
        places = np.arange(len(changed)) if places is None else places
        features = np.flatnonzero((places >= 0) & changed[places])
        add_rows(scores, sizes, self.starts, self.tokens, self.values, features, changes[places[features]])
        return int((self.starts[features + 1] - self.starts[features]).sum())


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
        self.sizes, self.n_sums = np.zeros((0, 2), dtype=np.float32), 0
        self.of_pairs = None if tokens.bigrams is None else sizes_of(tokens.bigrams)

    def follow(self, model: SequenceModel, places: NDArray[np.int64] | None, *, is_same: bool) -> None:
        """Bring the scores to the weights of a model; `is_same`: it is the one of the last call, with more features."""
        oracle = model.oracle
        now = model.weights.reshape(-1, oracle.stride)[: oracle.n_token_features]
        before, n_changes, n_sums = self.weights, self.n_changes, self.n_sums
        self.n_changes = MOST_CHANGES  # whoever is interrupted from here on starts anew
        is_blurred = n_changes == MOST_CHANGES or n_sums > MOST_SUMS * self.tokens.n_entries
        if not is_same or is_blurred or self.scores.shape[1] != oracle.stride:
            self.scores = np.zeros((self.tokens.n_tokens, oracle.stride), dtype=np.float32)
            self.scores += oracle.padding_row
            self.sizes = np.zeros((self.tokens.n_tokens, 2), dtype=np.float32)
            before, n_changes, n_sums = np.zeros((0, oracle.stride), dtype=np.float32), 0, 0
        n = len(before)
        changes = np.concatenate([now[:n] - before, now[n:]])
        self.n_sums = n_sums + self.index.add(self.scores, self.sizes, changes, places)
        self.weights, self.n_changes = now.copy(), n_changes + 1

    def doubts(
        self, model: SequenceModel, strategy: str, chunks: ChunkTables, pairs: NDArray[np.int64] | None
    ) -> tuple[Floats, Floats, Floats]:
        """Return ``(values, margins, near)`` of all sequences: what a strategy ranks by, margins, and their error.

        Values are right as far as the scores are; of "risk" and "confidence" also where the two best labellings come
        near to each other, when the decoder may take the other one. They are not a number where there are no sums.

        Parameters
        ----------
        chunks : tuple of arrays
            See `chunk_tables`.
        pairs : array, optional
            The places of bigrams.
        """
        out, values = np.empty(len(self.tokens)), np.empty(len(self.tokens))
        moves, begin, end = edges_of(model)
        moves[:, model.oracle.n_labels :] = -np.inf
        own, bigrams, near = None, self._bigrams(model), 2.0 * self.rounding(model)
        if bigrams is not None:
            own = bigrams.indptr, self._blocks(bigrams, pairs), bigrams.values, self._of_pairs(model)
        heat = 1.0 / (model.temperature or 1.0)
        doubts(self.scores, self.tokens.offsets, moves, begin, end, out, values, str(strategy), heat, near, chunks, own)
        near[~(near < TOO_FAR)] = np.inf
        return values, out, near

    def rounding(self, model: SequenceModel) -> Floats:
        """The error of the scores of tokens and of moves to them, summed over a sequence: at most, with the decoder's.

        `add_rows` says how far the scores of a token are wrong. With u for `UNIT`, and z for the sizes of all its
        changes, which its weights do not exceed, the decoder, which sums each of m features once, is wrong by
        ``u (m + 1) z``. Moves have weights of at most W; features x of pairs are summed to
        ``u W m (|x|_1 + 4 max |x|)``.
        """
        size = float(np.abs(model.weights).max(initial=0.0))
        sizes, errors = self.sizes.T.astype(np.float64)
        each = 4.0 * size + errors + (np.diff(self.tokens.indptr) + 1) * sizes
        bigrams = self._bigrams(model)
        if bigrams is not None and self.of_pairs is not None:  # summed anew, by the decoder and here
            each += 2.0 * size * (np.diff(bigrams.indptr) + 1) * (self.of_pairs + 1.0)
        sums: Floats = np.add.reduceat(each, self.tokens.offsets[:-1])
        return UNIT * sums

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


def sizes_of(tokens: Tokens) -> Floats:
    """``|x|_1 + 4 |x|_2``, not less than ``|x|_1 + 4 max |x|``, of the features x of each token."""
    counts = np.diff(tokens.indptr)
    if tokens.values is None:
        return counts + 4.0 * np.minimum(counts, 1)
    rows, values = np.repeat(np.arange(tokens.n_tokens), counts), np.abs(tokens.values.astype(np.float64))
    squares = np.bincount(rows, values * values, tokens.n_tokens)
    sizes: Floats = np.bincount(rows, values, tokens.n_tokens) + 4.0 * np.sqrt(squares)
    return sizes


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


def chunk_tables(parts: Sequence[Part]) -> ChunkTables:
    """Types of labels and how chunks of them go on, for `doubts`: see there.

    Parameters
    ----------
    parts : list of Part
        Role and type of each label.
    """
    names = list(dict.fromkeys(part.kind for part in parts if part.role != "O"))
    kind = np.array([-1 if part.role == "O" else names.index(part.kind) for part in parts], dtype=np.int64)
    members = np.argsort(kind, kind="stable")[np.sum(kind < 0) :]
    starts = np.searchsorted(kind[members], np.arange(len(names) + 1)).astype(np.int64)
    after, within = (np.array([part.role in roles for part in parts], dtype=np.uint8) for roles in (OPEN, INSIDE))
    return kind, members.astype(np.int64), starts, after, within
