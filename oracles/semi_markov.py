"""Segments: the oracle for label sequences that are chains of segments (Sarawagi and Cohen 2004)."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from numbers import Integral
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from structsvm.features.tokens import Tokens, narrowed
from structsvm.oracles._semi_markov import SegmentChain, SegmentProblem, tables_of
from structsvm.oracles.chain import ExactChain, KnownLabels, as_tokens
from structsvm.oracles.enumeration.labellings import best_labellings
from structsvm.oracles.enumeration.lazily import LazyChain, check_few
from structsvm.parameters import Interval, Options, check_arguments, checked_k
from structsvm.protocol import Penalty, Rescaling
from structsvm.structures.languages import Automaton
from structsvm.structures.languages.segments import SegmentNodes, segment_nodes

if TYPE_CHECKING:
    from structsvm.arrays import AnyArray

__all__ = ["SemiMarkovOracle"]


class SegmentDecoder(SegmentChain):
    """The decoder with the methods that search the best labelling repeatedly."""

    def kbest(
        self, w: ArrayLike, i: int, k: int, allowed: NDArray[np.bool_] | None = None
    ) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """The k best labellings of sequence i, as ``(paths (m, length) int32, scores (m,) float64)``, m <= k."""
        k = checked_k(k)
        lattice = self.lattice(w, i)
        T = len(lattice)
        if allowed is not None:
            lattice += self.structure.allowed_rows(allowed, T, i)

        def best(may: NDArray[np.bool_]) -> tuple[float, NDArray[np.int32]]:
            part = lattice.copy()
            part[~may] = -np.inf
            return self.best_by(i, part)

        found = best_labellings(best, np.ones(lattice.shape, dtype=bool), k)
        paths = np.array([path for path, _ in found], dtype=np.int32).reshape(-1, T)
        return paths, np.array([score for _, score in found])

    def max_marginals(self, w: ArrayLike, i: int) -> NDArray[np.float64]:
        """Array (length, K): the score of the best labelling of sequence i with label c at token t."""
        lattice = self.lattice(w, i)
        out = np.full((len(lattice), self.K), -np.inf)
        at = np.arange(len(lattice))
        score, path = self.best_by(i, lattice)
        out[at, path] = score
        for t, c in zip(*np.nonzero(np.isneginf(out)), strict=True):
            row = lattice[t].copy()
            lattice[t] = -np.inf
            lattice[t, c] = row[c]
            score, path = self.best_by(i, lattice)
            lattice[t] = row
            if score > -np.inf:  # it may be the best with other labels, too
                out[at, path] = np.maximum(out[at, path], score)
        return out


class SemiMarkovOracle(ExactChain):
    """Chains of segments with exact inference.

    A labelling is a chain of segments: typed ones, with their own labels for the first, inner and last tokens, or for
    the single one; or one token without type. Its score is that of the label chain, plus per typed segment
    weights of its length and of its phrases: attributes of the whole segment.

    Parameters
    ----------
    n_labels : int
        Number of labels K; a labelling is an integer array with values 0 .. K - 1.
    n_token_features : int
        Number of features F of a token.
    tags : int array of shape (n_types, 4)
        The labels of each type: of the first of several tokens, of those inside, of the last, of a single one. Labels
        that are not among them are segments of one token.
    max_length : int, default=8
        The longest segments with their own weights and phrases. Longer ones share a weight: they are found as
        well, and inference costs T max_length n_types + T K^2 for any lengths.
    phrase_starts : int array of shape (max_length + 1,), optional
        The phrases of length m are those from ``phrase_starts[m - 1]`` on, up to ``phrase_starts[m]``. `Tokens.bigrams`
        holds for each token the phrases that end there. Default: there are none.
    loss : {"hamming", "log"}, default="hamming"
        Number of wrong labels. "log": as "hamming" where a loss is needed, but only for solvers of the log loss.
    label_costs : array-like of shape (n_labels,), optional
        Loss of a wrong label, by the true label. Default: 1.
    language : Automaton, optional
        Chains of segments that are allowed, as label sequences; see `structsvm.structures.languages`.
    rules : sequence of Automaton, optional
        Languages to all of which labellings belong, and which are too many for one automaton: for decoding alone.

    Attributes
    ----------
    n_features : int
        Length of w: ``n_rows * stride`` (layout: see the head of `_semi_markov.pyx`).
    allowed : tuple of bool arrays
        Labels that may follow one another, be first, be last.
    language : Automaton or None
        The smallest automaton of the chains of segments that are allowed; None: of all.

    References
    ----------
    S. Sarawagi and W. Cohen, Semi-Markov conditional random fields for information extraction, NIPS 2004.

    Examples
    --------
    >>> import numpy as np
    >>> from structsvm.oracles.semi_markov import SemiMarkovOracle
    >>> oracle = SemiMarkovOracle(5, 1, tags=[[0, 1, 2, 3]])
    >>> w = np.zeros(oracle.n_features)
    >>> w[2] = 1.0
    >>> oracle.argmax(np.array([[1.0], [-1.0]]), w).tolist()
    [3, 3]
    """

    rescalings: tuple[Rescaling, ...] = ("margin",)
    penalties: tuple[Penalty | None, ...] = ("linear",)

    def __init__(
        self,
        n_labels: int,
        n_token_features: int,
        tags: ArrayLike,
        *,
        max_length: int = 8,
        phrase_starts: ArrayLike | None = None,
        loss: str = "hamming",
        label_costs: ArrayLike | None = None,
        language: Automaton | None = None,
        rules: Sequence[Automaton] = (),
    ) -> None:
        sizes, losses = Interval(Integral, 2, 2**15 - 1, closed="both"), Options("hamming", "log")
        check_arguments("SemiMarkovOracle", locals(), max_length=sizes, loss=losses)
        self.max_length = int(max_length)
        self.tags = np.asarray(tags)
        used = self.tags.ravel()
        if (
            self.tags.ndim != 2
            or self.tags.shape[1] != 4
            or self.tags.dtype.kind not in "iu"
            or len(np.unique(used)) < len(used)
            or (len(used) and not 0 <= used.min() <= used.max() < n_labels)
        ):
            raise ValueError(
                "The 'tags' parameter of SemiMarkovOracle must be four labels per type, each of them once. "
                f"Got {tags!r:.80} instead."
            )
        self.tags = self.tags.astype(np.int32)
        starts = np.zeros(self.max_length + 1, dtype=np.int64) if phrase_starts is None else np.asarray(phrase_starts)
        if (
            starts.shape != (self.max_length + 1,)
            or starts.dtype.kind not in "iu"
            or starts[0] != 0
            or (starts[1:] < starts[:-1]).any()
        ):
            raise ValueError(
                f"The 'phrase_starts' parameter of SemiMarkovOracle must be {self.max_length + 1} integers that never "
                f"fall, the first of them 0. Got {phrase_starts!r:.80} instead."
            )
        self.phrase_starts = starts.astype(np.int64)
        super().__init__(
            n_labels,
            n_token_features,
            int(starts[-1]),
            1,
            n_labels + 2 + self.max_length + 1,
            loss,
            label_costs,
            *self._masks(n_labels),
        )
        if loss == "log":
            self.rescalings = ()
        for own in (*(() if language is None else (language,)), *rules):
            if own.n_labels != n_labels:
                raise ValueError(
                    f"The 'language' parameter of SemiMarkovOracle must have {n_labels} labels. Got {own.n_labels} "
                    "instead."
                )
        self.language = None if language is None else self._narrowed(language)
        self.rules = tuple(rule.minimal() for rule in rules)

    def _masks(self, n_labels: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_]]:
        first, inside, last, _ = self.tags.T
        begins, ends = np.ones((2, n_labels), dtype=bool)
        begins[inside] = begins[last] = False
        ends[first] = ends[inside] = False
        follows = ends[:, None] & begins
        for a in (first, inside):
            follows[a, inside] = follows[a, last] = True
        return follows, begins, ends

    def set_features(self, n_token_features: int, n_bigrams: int) -> None:
        """Set the numbers of features and phrases, and with them the rows of weights."""
        super().set_features(n_token_features, 0)
        self.n_bigrams = n_bigrams
        self.n_rows = self.first_bigram_row + n_bigrams
        self.n_features = self.n_rows * self.stride
        if self.n_features >= 2**31:
            raise ValueError(
                f"{n_token_features} features and {n_bigrams} phrases with {self.n_labels} labels need "
                f"{self.n_features} weights, more than 2**31; cut rare features (min_count)"
            )

    @cached_property
    def _chains(self) -> Automaton:
        """The chains of segments."""
        return Automaton.of_masks(*self.allowed, n_labels=self.n_labels)

    def _narrowed(self, language: Automaton) -> Automaton | None:
        """The chains of segments of a language; None if these are all."""
        both = self._chains & language
        if not (both.following >= 0).any():
            raise ValueError("The 'language' parameter of SemiMarkovOracle contains no chain of segments")
        return None if both == self._chains else both

    def without_masks(self) -> Self:
        """The same oracle, for which all chains of segments are allowed."""
        return self.within(self.allowed, None)

    def within(
        self, allowed: tuple[ArrayLike | None, ...], language: Automaton | None, rules: tuple[Automaton, ...] = ()
    ) -> Self:
        """The same oracle, which allows other chains of segments: those of masks, of a language, or of rules."""
        oracle = super().within(allowed, language, rules)
        masks = Automaton.of_masks(*oracle.allowed, n_labels=self.n_labels) if language is None else language
        oracle.allowed, oracle.language = self.allowed, self._narrowed(masks)
        for cached in ("fixed_rows", "segment_tables"):
            vars(oracle).pop(cached, None)
        return oracle

    def touched(self, tokens: Tokens) -> tuple[Self, Tokens, NDArray[np.int64]]:
        tokens, features = narrowed(tokens)
        rows, oracle = [features, np.arange(self.n_token_features, self.first_bigram_row)], copy.copy(self)
        if tokens.bigrams is not None and self.n_bigrams:
            phrases, kept = narrowed(tokens.bigrams)
            tokens = replace(tokens, bigrams=phrases)
            oracle.phrase_starts = np.searchsorted(kept, self.phrase_starts).astype(np.int64)
            rows.append(self.first_bigram_row + kept)
        oracle.set_features(tokens.n_features, tokens.n_bigrams)
        return oracle, tokens, np.concatenate(rows)

    def with_loss(self, loss: str) -> SemiMarkovOracle:
        """The same oracle with another loss."""
        return SemiMarkovOracle(
            self.n_labels,
            self.n_token_features,
            self.tags,
            max_length=self.max_length,
            phrase_starts=self.phrase_starts,
            loss=loss,
            label_costs=self.label_costs,
            language=self.language,
            rules=self.rules,
        )

    def bind(
        self, X: Any, Y: Any, *, rescaling: Rescaling | None = "margin", penalty: Penalty | None = "linear"
    ) -> SegmentProblem:
        """Bind training sequences; see `ViterbiOracle.bind`. Labellings must be chains of segments."""
        self.check_formulation(rescaling, penalty)
        check_few(self.rules, "training with whole segments")
        tokens = as_tokens(X, self.n_token_features)
        labels, known = KnownLabels.of(Y, tokens, self.n_labels)
        return SegmentProblem(self, tokens, labels, known, rescaling=rescaling, penalty=penalty)

    @cached_property
    def tables(self) -> tuple[NDArray[np.int32], ...]:
        """Tables of labels, which decoders share."""
        return tables_of(self.tags, self.n_labels)

    @cached_property
    def segment_tables(self) -> SegmentNodes:
        """The nodes of the chains of segments that are allowed."""
        _, _, _, begins, ends = self.tables
        return segment_nodes(self.language or self._chains, self.tags, begins, ends, self.max_length)

    def chain(self, X: Any) -> SegmentDecoder:
        """Return a decoder for sequences without labels."""
        if self.rules:
            lazy: Any = LazyChain(self, as_tokens(X, self.n_token_features))
            return lazy
        return SegmentDecoder(self, as_tokens(X, self.n_token_features))

    def segments(self, y: AnyArray) -> list[tuple[int, int, int]]:
        """The segments ``(start, stop, type)`` of a labelling; those without type are left out."""
        first, _, last, single = self.tags.T
        type_of = {int(label): k for k, labels in enumerate(self.tags) for label in labels}
        found, start = [], 0
        for t, label in enumerate(np.asarray(y).tolist()):
            if label in first or label in single:
                start = t
            if label in last or label in single:
                found.append((start, t + 1, type_of[label]))
        return found

    # ---- the protocol on single objects ---------------------------------------------------------

    def joint_feature(self, x: Any, y: ArrayLike) -> NDArray[np.float64]:
        tokens = as_tokens(x, self.n_token_features, single=True)
        labels = self.check_labels(tokens, y)
        psi = self.emission(tokens, np.eye(self.n_labels)[labels])
        first = self.n_token_features
        np.add.at(psi, (first + labels[:-1], labels[1:]), 1.0)
        psi[first + self.n_labels, labels[0]] += 1.0
        for start, stop, kind in self.segments(labels):
            m = min(stop - start, self.max_length + 1)
            psi[first + self.n_labels + 1 + m, kind] += 1.0
            if tokens.bigrams is not None and m <= self.max_length:
                phrases = tokens.bigrams.indices[tokens.bigrams.indptr[stop - 1] : tokens.bigrams.indptr[stop]]
                low, high = np.searchsorted(phrases, self.phrase_starts[m - 1 : m + 1])
                psi[self.first_bigram_row + phrases[low:high], kind] += 1.0
        return psi.ravel()

    def add_conjoined(self, psi: NDArray[np.float64], tokens: Any, rows: NDArray[np.float64]) -> None:
        np.add.at(psi, self.first_bigram_row + tokens.bigrams.indices, rows)
