"""A pool of sequences: how sure a chain is of their labellings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array

from structsvm.features.encoder import FeatureEncoder, words_as_columns
from structsvm.tasks.common.likelihood import check_sums, probable_weights
from structsvm.tasks.common.questions.reading import Reader
from structsvm.tasks.common.questions.strategies import log_of
from structsvm.tasks.sequence.likely import chance_of, is_markov, labels_of_kinds, marginals_of
from structsvm.tasks.sequence.questions.scores import UNIT, ChainScores, Index, can_score, chunk_tables

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence
    from typing import TypeAlias

    from numpy.typing import NDArray

    from structsvm.arrays import Floats, Integers
    from structsvm.features.tokens import Tokens
    from structsvm.structures._labels import LabelLattice
    from structsvm.tasks.sequence.examples import SequencesLike
    from structsvm.tasks.sequence.model import SequenceModel

    Table: TypeAlias = NDArray[np.float32]


# Error of a token's probabilities in float32.
ROUNDING = 1e-6


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
        known = np.flatnonzero(indices >= 0)
        places, values = rows[known] * n_features + indices[known], tokens.values
        if values is None:
            places.sort()
        else:
            order = np.argsort(places, kind="stable")
            places, values = places[order], values[known[order]]
        counts = np.bincount(rows[known], minlength=tokens.n_tokens)
        indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        return type(tokens)(tokens.offsets, indptr, (places % n_features).astype(np.int32), values, n_features)


class SentenceReader(Reader["SequenceModel"]):
    """Encoded sequences, and the scores of their tokens under the weights of the last query."""

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
        self.scores = ChainScores(self.tokens, Index.of(self.tokens))
        self.scored: list[Hashable] = []

    # ---- features -------------------------------------------------------------------------------

    def _encode(self, model: SequenceModel, X: SequencesLike) -> None:
        """Encode the pool by all features of its own."""
        self.own, self.tokens = model.encoder.refitted(X)
        self._X = words_as_columns(X) if self.own.kind == "columns" else X
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
            self.scored = []  # scores of other features
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

    def read(self, model: SequenceModel, chosen: Integers, strategy: str) -> Floats:
        self._follow(model)
        weights = model.weights if strategy == "margin" else probable_weights(model, f"strategy={strategy!r}")
        tokens = self.tokens_of(model, chosen)
        chain = model.oracle.chain(tokens)
        values: Floats = np.empty(len(chosen))
        best = []
        n_best = 2 if strategy == "margin" else 1
        is_product = strategy == "span" and model.segments is None and is_markov(model.oracle)
        for i in range(len(chosen)):
            paths, scores = chain.kbest(model.weights, i, n_best)
            if not len(paths):
                raise ValueError(f"sequence {int(chosen[i])} of the pool: the constraints leave no labelling")
            best.append(paths[0])
            with np.errstate(invalid="ignore"):  # refused below
                if strategy == "margin":
                    values[i] = scores[1] - scores[0] if len(scores) > 1 else -np.inf
                elif not is_product:
                    values[i] = VALUES[strategy](model, chain, weights, i, paths[0])
        if is_product:
            values = _spans(model, weights, tokens, best)
        if np.isnan(values).any():
            i = int(chosen[np.isnan(values).argmax()])
            raise ValueError(f"sequence {i} of the pool: its scores overflow")
        return values

    # ---- bounds ---------------------------------------------------------------------------------

    def upper(self, model: SequenceModel, strategy: str) -> Floats | None:
        if not can_score(model):
            return None
        if strategy != "margin":
            probable_weights(model, f"strategy={strategy!r}")
        is_same = self._follow(model) and self.scored == model.labels
        places, pairs = (None if one is None else one.index for one in (self.places, self.pairs))
        self.scores.follow(model, places, is_same=is_same)
        self.scored = [*model.labels]
        chunks = chunk_tables(model.parts_of_tags)
        values, margins, near = self.scores.doubts(model, strategy, chunks, pairs)
        if strategy == "margin":
            with np.errstate(invalid="ignore"):  # not a number: the pool reads it
                return np.minimum(near - margins, 0.0)
        if np.isneginf(margins).any():  # no labelling: whoever reads it says so
            return None
        logs = 4.0 * UNIT * np.log(model.oracle.n_labels) * self.parts**2
        spread = near / (model.temperature or 1.0) + ROUNDING * self.parts + logs
        with np.errstate(invalid="ignore"):  # inf - inf, where scores overflow
            upper = np.logaddexp(log_of(values) + spread, np.log(spread))
        if strategy in ("confidence", "span"):
            upper = np.minimum(upper, log_of(1.0 - (1.0 - values) * np.exp(-spread)))
        return np.where(np.isfinite(near) & ~np.isnan(upper), upper, np.inf)


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


def _spans(model: SequenceModel, weights: Floats, tokens: Tokens, best: Sequence[Integers]) -> Floats:
    """As `_span`, from the probabilities of neighbouring labels.

    A span is wrong no more often than the labels that decide on it together: its own, and its neighbours'. So few have
    a probability of their own.
    """
    values, kinds = np.empty(len(best)), labels_of_kinds(model.parts_of_tags)
    found = model.spans_of(np.concatenate(best), tokens.offsets)
    for chosen, lengths, labels, pairs in marginals_of(model.oracle, weights, tokens):
        for i, (at, n) in enumerate(zip(chosen.tolist(), lengths.tolist(), strict=True)):
            p, spans = labels[i, :n], found[at]
            wrong = 1.0 - p[np.arange(n), best[at]]
            sums = np.concatenate([[0.0], np.cumsum(wrong)]).tolist()
            most = [sums[min(stop + 1, n)] - sums[max(start - 1, 0)] for start, stop, _ in spans]
            worst = 0.0 if spans else float(wrong.max())
            for bound, (start, stop, kind) in sorted(zip(most, spans), reverse=True):
                if bound + ROUNDING < worst:
                    break
                worst = max(worst, 1.0 - chance_of(p, pairs[i, : n - 1], start, stop, *kinds[kind]))
            values[at] = worst
    return log_of(values)


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
