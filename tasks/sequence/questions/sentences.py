"""A pool of sequences: how sure a chain is of their labellings, and how far an answer can have changed that.

With D the change of weights since the last query, an output y of a sequence has changed by

    Delta(y) = sum_t e_t(y_t) + sum_t d(y_t-1, y_t),

e_t(k) = sum over the features f of token t of x_tf D[f, k], and d the change of transitions. It is at most the sum over
t of ``max_k (e_t(k) + max_j d(j, k))``, and that of the labelling that was best is known. Only tokens whose features
have changed have an e_t: an index from features to tokens finds them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array

from structsvm.features.encoder import FeatureEncoder, words_as_columns
from structsvm.oracles.viterbi import ViterbiOracle
from structsvm.tasks.common.likelihood import check_sums, probable_weights
from structsvm.tasks.common.questions.reading import Reader
from structsvm.tasks.common.questions.strategies import Change, Reading, log_of
from structsvm.tasks.sequence.questions.doubts import Chunks, doubts
from structsvm.tasks.sequence.questions.scores import ROUNDING, ChainScores, Index, can_score

if TYPE_CHECKING:
    from collections.abc import Hashable
    from typing import TypeAlias

    from numpy.typing import NDArray

    from structsvm.arrays import Floats, Integers
    from structsvm.features.tokens import Tokens
    from structsvm.structures._labels import LabelLattice
    from structsvm.tasks.sequence.examples import SequencesLike
    from structsvm.tasks.sequence.model import SequenceModel

    Table: TypeAlias = NDArray[np.float32]


class Places:
    """Features of the pool among those of a model, which may be fewer, and become more.

    Attributes
    ----------
    index : int64 array
        Index in the model of each feature of the pool, -1 where it has none.
    """

    def __init__(self, index: NDArray[np.int64]) -> None:
        self.index = index

    def add(self, found: Integers) -> None:
        """Features of a model by their indices in the pool, which are -1 for those that it does not have."""
        theirs = np.flatnonzero(found >= 0)
        self.index[found[theirs]] = theirs

    def of_tokens(self, tokens: Tokens, n_features: int) -> Tokens:
        """Tokens of the pool with the features of the model alone."""
        indices = self.index[tokens.indices]
        rows = np.repeat(np.arange(tokens.n_tokens), np.diff(tokens.indptr))
        order = np.lexsort((indices, rows))
        order = order[indices[order] >= 0]
        counts = np.bincount(rows[order], minlength=tokens.n_tokens)
        return type(tokens)(
            tokens.offsets,
            np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
            indices[order].astype(np.int32),
            None if tokens.values is None else tokens.values[order],
            n_features,
        )


class SentenceReader(Reader["SequenceModel"]):
    """Encoded sequences, the best labelling of each when it was read, and the weights of the last query."""

    strategies = ("margin", "confidence", "entropy", "span", "risk")

    def __init__(self, model: SequenceModel, X: SequencesLike) -> None:
        check_sums(model, "query")
        self.can_follow = model.segments is None and model.units is None and model.encoder.can_grow
        self.encoder = model.encoder
        self.places: Places | None = None
        self.pairs: Places | None = None
        if self.can_follow:
            self._encode(model, X)
        else:
            self.tokens = model.encode(X)
        self.parts = self.tokens.lengths
        if not self.parts.all():
            raise ValueError(f"sequence {int(self.parts.argmin())} of the pool is empty: there is nothing to ask")
        self.sequence = np.repeat(np.arange(len(self.tokens)), self.parts)
        self.best = np.zeros(self.tokens.n_tokens, dtype=np.int64)
        self.index = Index.of(self.tokens)
        self.pair_index = None if self.tokens.bigrams is None else Index.of(self.tokens.bigrams)
        self.scores = ChainScores(self.tokens, self.index)
        self.scored: list[Hashable] = []
        self.oracle, self.weights, self.labels = model.oracle, model.weights[:0], [*model.labels]

    # ---- features -------------------------------------------------------------------------------

    def _encode(self, model: SequenceModel, X: SequencesLike) -> None:
        """Encode the pool by all features of its own."""
        own = FeatureEncoder(model.encoder.templates)
        self.tokens = own.fit_transform(X)
        self.own, self._X = own, words_as_columns(X) if own.kind == "columns" else X
        self._find(model)

    def _find(self, model: SequenceModel) -> None:
        """Find the features of a model in the pool."""
        index, pairs = model.encoder.positions(self.own, self._X)
        self.places = Places(index)
        self.pairs = Places(pairs if len(pairs) else np.full(self.own.n_bigrams, -1, dtype=np.int64))
        self.encoder = model.encoder

    def fits(self, model: SequenceModel) -> bool:
        """Whether the model's features are those of the pool, some of them, or more."""
        encoder = model.encoder
        can_follow = model.segments is None and model.units is None and encoder.can_grow
        if not can_follow or not self.can_follow:
            return encoder is self.encoder and not can_follow
        return encoder.kind == self.own.kind and encoder.templates == self.own.templates

    def _follow(self, model: SequenceModel) -> bool:
        """Take up the features that the model has added; False if it is another model."""
        before, encoder = self.encoder, model.encoder
        if encoder is before:
            return True
        if self.places is None or self.pairs is None:
            return False
        if not has_grown(encoder, before):
            self._find(model)
            return False
        for X in encoder.growth[len(before.growth) :]:
            found, pairs = self.own.positions(encoder, X)
            self.places.add(found)
            if len(pairs):
                self.pairs.add(pairs)
        self.encoder = encoder
        return True

    def tokens_of(self, model: SequenceModel, chosen: Integers) -> Tokens:
        """Some sequences, with the features of the model."""
        tokens = self.tokens.take(chosen)
        if self.places is None or self.pairs is None:
            return tokens
        found = self.places.of_tokens(tokens, model.oracle.n_token_features)
        if not model.oracle.n_bigrams or tokens.bigrams is None:
            return found
        pairs = self.pairs.of_tokens(tokens.bigrams, model.oracle.n_bigrams)
        return type(found)(found.offsets, found.indptr, found.indices, found.values, found.n_features, pairs)

    def vectors(self, chosen: Integers) -> csr_array:
        tokens = self.tokens.take(chosen)
        values = np.ones(tokens.n_entries) if tokens.values is None else tokens.values.astype(np.float64)
        shape = len(tokens), tokens.n_features
        rows = csr_array((values, tokens.indices, tokens.indptr[tokens.offsets]), shape)
        rows.sum_duplicates()
        return rows

    # ---- values ---------------------------------------------------------------------------------

    def read(self, model: SequenceModel, chosen: Integers, strategy: str) -> Reading:
        self._follow(model)
        weights = model.weights if strategy == "margin" else probable_weights(model, f"strategy={strategy!r}")
        tokens = self.tokens_of(model, chosen)
        chain = model.oracle.chain(tokens)
        value, margin = np.empty(len(chosen)), np.empty(len(chosen))
        starts = self.tokens.offsets[chosen].tolist()
        for i, (start, length) in enumerate(zip(starts, tokens.lengths.tolist(), strict=True)):
            paths, scores = chain.kbest(model.weights, i, 2)
            if not len(paths):
                raise ValueError(f"sequence {int(chosen[i])} of the pool: the constraints leave no labelling")
            self.best[start : start + length] = paths[0]
            margin[i] = scores[0] - scores[1] if len(scores) > 1 else np.inf
            if strategy != "margin":
                value[i] = VALUES[strategy](model, chain, weights, i, paths[0])
        return Reading(-margin if strategy == "margin" else value, margin)

    # ---- bounds ---------------------------------------------------------------------------------

    def change(self, model: SequenceModel) -> Change | None:
        before, oracle = self.oracle, model.oracle
        is_same = self._follow(model) and self.labels == model.labels and len(self.weights) > 0
        is_chain = isinstance(oracle, ViterbiOracle) and oracle.order == 1 and not oracle.rules
        if not is_same or not is_chain or model.segments is not None:
            self._keep(model)
            return None
        n, pairs = oracle.n_token_features, oracle.n_bigrams * oracle.n_labels
        old: Table
        new: Table
        old, new = (one.reshape(-1, oracle.stride)[:, : oracle.n_labels] for one in (self.weights, model.weights))
        first, last = before.n_token_features, before.first_bigram_row
        known = np.concatenate([old[:first], np.zeros((n - first, oracle.n_labels), np.float32)])
        history = new[n : oracle.first_bigram_row] - old[first:last]
        added = np.zeros((pairs - (before.n_bigrams * oracle.n_labels), oracle.n_labels), np.float32)
        of_pairs = new[oracle.first_bigram_row :] - np.concatenate([old[last:], added])
        change = self._bounds(oracle, new[:n] - known, history, of_pairs)
        size = float(np.abs(model.weights).max(initial=0.0)) + float(np.abs(self.weights).max(initial=0.0))
        self._keep(model)
        rounding = np.where(change.spread > 0.0, ROUNDING * size * self._entries(), 0.0)
        return change.plus(Change(rounding, rounding))

    def upper(self, model: SequenceModel, strategy: str) -> Floats | None:
        if not can_score(model):
            return None
        if strategy != "margin":
            probable_weights(model, f"strategy={strategy!r}")
        is_same = self._follow(model) and self.scored == model.labels
        places, pairs = (None if one is None else one.index for one in (self.places, self.pairs))
        self.scores.follow(model, places, is_same=is_same)
        self.scored = [*model.labels]
        margins = self.scores.margins(model, pairs)
        if strategy == "margin":
            return -margins
        if np.isneginf(margins).any():  # no labelling: whoever reads it says so
            return None
        values = doubts(self.scores.potentials(model, pairs), strategy, Chunks(model.parts_of_tags))
        spread = 2.0 * self.scores.rounding(model) / (model.temperature or 1.0) + ROUNDING * self.parts
        upper = np.logaddexp(log_of(values) + spread, np.log(spread))
        if strategy in ("confidence", "span"):
            upper = np.minimum(upper, log_of(1.0 - (1.0 - values) * np.exp(-spread)))
        # Where the best two come near to each other, the decoder may take the other one.
        is_known = (margins > 0.0) | (strategy == "entropy")
        return np.where(is_known & ~np.isnan(upper), upper, np.inf)

    def _keep(self, model: SequenceModel) -> None:
        """Remember the weights of a query."""
        self.oracle, self.weights, self.labels = model.oracle, model.weights.copy(), [*model.labels]

    def _entries(self) -> Floats:
        """How many weights enter the score of each sequence."""
        ends = self.tokens.indptr[self.tokens.offsets]
        return np.diff(ends) + 2.0 * self.parts

    def _bounds(self, oracle: ViterbiOracle, of_tokens: Table, history: Table, of_pairs: Table) -> Change:
        """Bounds from the changes of weights: rows of features, of histories, and of bigrams by the label before."""
        K, offsets, best = oracle.n_labels, self.tokens.offsets, self.best
        starts, ends = offsets[:-1], offsets[1:] - 1
        e = self._changes_of_tokens(of_tokens)
        own = e[np.arange(len(best)), best]
        moves, begin, end = history[:K], history[K], history[K + 1]
        d_high, d_low = (np.tile(reduce(moves, axis=0), (len(best), 1)) for reduce in (np.max, np.min))
        own[1:] += moves[best[:-1], best[1:]]
        own[starts] = e[starts, best[starts]] + begin[best[starts]]
        for rows in (d_high, d_low):
            rows[starts] = begin
            rows += e
        if oracle.end:
            own[ends] += end[best[ends]]
            d_high[ends] += end
            d_low[ends] += end
        high, low = d_high.max(axis=1), d_low.min(axis=1)
        if len(of_pairs):
            self._add_pairs(of_pairs.reshape(-1, K, K), own, high, low)
        top, bottom, now = (np.add.reduceat(one.astype(np.float64), starts) for one in (high, low, own))
        return Change(np.maximum(top - now, 0.0), np.maximum(top - bottom, 0.0))

    def _changes_of_tokens(self, of_tokens: Table) -> Table:
        """e of the head of this file: array (n_tokens, n_labels)."""
        e = np.zeros((self.tokens.n_tokens, of_tokens.shape[1]), dtype=np.float32)
        self.index.add(e, np.ascontiguousarray(of_tokens), None if self.places is None else self.places.index)
        return e

    def _add_pairs(self, of_pairs: Table, own: Table, high: Table, low: Table) -> None:
        """Add bigrams, arrays (n_bigrams, label before, label); no sequence's first token has any."""
        if self.pair_index is None:
            return
        changed: NDArray[np.bool_] = np.any(of_pairs != 0.0, axis=(1, 2))
        places = np.arange(len(changed)) if self.pairs is None else self.pairs.index
        features = np.flatnonzero((places >= 0) & changed[places])
        for f, (tokens, values) in zip(features, self.pair_index.having(features), strict=True):
            block, x = of_pairs[places[f]], values
            ends = np.stack([x * block.max(), x * block.min()])
            high[tokens] += ends.max(axis=0)
            low[tokens] += ends.min(axis=0)
            own[tokens] += x * block[self.best[tokens - 1], self.best[tokens]]


def has_grown(encoder: FeatureEncoder, before: FeatureEncoder) -> bool:
    """Whether an encoder is another one with more features behind."""
    n = len(before.growth)
    is_kin = encoder.lineage is before.lineage and len(encoder.growth) >= n
    return is_kin and all(a is b for a, b in zip(before.growth, encoder.growth[:n], strict=True))


# ---- values of strategies that need probabilities ---------------------------------------------------


def _log_chance(chain: LabelLattice, weights: Floats, i: int, path: Integers) -> float:
    """The logarithm of the probability of a labelling."""
    may = np.eye(chain.K, dtype=bool)[path]
    return min(chain.expect(weights, i, may)[0] - chain.expect(weights, i)[0], 0.0)


def _confidence(model: SequenceModel, chain: LabelLattice, weights: Floats, i: int, path: Integers) -> float:
    return float(log_of(-np.expm1(_log_chance(chain, weights, i, path))))


def _entropy(model: SequenceModel, chain: LabelLattice, weights: Floats, i: int, path: Integers) -> float:
    """``log H``, ``H = log Z - E[<w, Psi>]``."""
    offsets, oracle = chain.tokens.offsets, model.oracle
    x = chain.tokens[i : i + 1]
    log_sum, psi = oracle.expect(x, weights)
    return float(log_of(log_sum - psi @ np.asarray(weights, dtype=np.float64))) if len(offsets) else -np.inf


def _risk(model: SequenceModel, chain: LabelLattice, weights: Floats, i: int, path: Integers) -> float:
    labels = chain.expect(weights, i)[1]
    return float(log_of((1.0 - labels[np.arange(len(path)), path]).sum()))


def _span(model: SequenceModel, chain: LabelLattice, weights: Floats, i: int, path: Integers) -> float:
    """The least certain span; of a labelling without spans, the least certain label."""
    length = len(path)
    (spans,) = model.spans_of(path, np.array([0, length]))
    if not spans:
        labels = chain.expect(weights, i)[1]
        return float(log_of((1.0 - labels[np.arange(length), path]).max()))
    chances = [chance for *_, chance in model.with_chances(chain, weights, i, length, spans)]
    return float(log_of(1.0 - np.min(chances)))


VALUES = {"confidence": _confidence, "entropy": _entropy, "risk": _risk, "span": _span}
