"""Alignments of two lists of words: frequent words have weights of their own, all others share what they weigh."""

from __future__ import annotations

import copy
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from structsvm.oracles._smith_waterman import Aligner, AlignmentProblem, DecoyProblem
from structsvm.oracles.smith_waterman import SmithWatermanOracle
from structsvm.protocol import Penalty, Rescaling
from structsvm.structures.alignments import References, Strings

__all__ = ["WordAlignmentOracle"]

# Symbols of other words that two lists have in common; beyond MOST_SLOTS the table of scores takes too much memory.
FEWEST_SLOTS, MOST_SLOTS = 2, 2048


class WordAlignmentOracle(SmithWatermanOracle):
    """Alignments of two lists of words.

    A symbol below `n_words` is a frequent word, `n_words` itself any other word that one of the lists alone has. The
    symbols above are other words that both have, numbered anew for each example: the weights do not depend on them.

    Parameters
    ----------
    n_words : int
        Number of frequent words, 0 or more.
    settings
        Those of `SmithWatermanOracle`, but for `classes`.

    Attributes
    ----------
    n_features : int
        Length of w: as of `SmithWatermanOracle` with a letter per frequent word and one for all others, whose pair is
        that of two different ones; last the weight of another word with itself.
    """

    def __init__(self, n_words: int, **settings: Any) -> None:
        self.n_words, self.n_slots = n_words, FEWEST_SLOTS
        super().__init__(n_words + 1, **settings)

    def _lay_out(self) -> None:
        super()._lay_out()
        self.n_features += 1
        self._base = self.pair_features.reshape(self.n_words + 1, -1), self.open_features, self.extend_features
        self._unfold()

    def _unfold(self) -> None:
        """List the features of operations on all symbols, from those of words."""
        self.n_symbols = self.n_words + 1 + self.n_slots
        word = np.minimum(np.arange(self.n_symbols), self.n_words)
        pairs, opening, extension = self._base
        table = pairs[np.ix_(word, word)]
        slots = np.arange(self.n_words + 1, self.n_symbols)
        table[slots, slots] = self.n_features - 1
        self.pair_features = np.ascontiguousarray(table.reshape(-1, 1))
        self.open_features, self.extend_features = opening[word], extension[word]

    def pair_ids(self, track: int = 0) -> NDArray[np.int64]:
        shown = np.delete(np.arange(self.n_words + 3), self.n_words)
        return self.pair_features.reshape(self.n_symbols, -1)[np.ix_(shown, shown)].astype(np.int64)

    def holding(self, strings: Strings) -> Self:
        """The same oracle with as many symbols as strings have."""
        n_slots = int(strings.symbols.max(initial=0)) - self.n_words
        if n_slots <= self.n_slots:
            return self
        if n_slots > MOST_SLOTS:
            raise ValueError(
                f"two lists have {n_slots} different words in common that are not frequent, more than {MOST_SLOTS}: "
                "align parts of them"
            )
        oracle = copy.copy(self)
        oracle.n_slots = n_slots
        oracle._unfold()  # noqa: SLF001 (a copy)
        return oracle

    def encode(self, string: ArrayLike) -> NDArray[np.int32]:
        symbols = np.asarray(string)
        if symbols.ndim != 1 or symbols.dtype.kind not in "iu" or not len(symbols) or symbols.min() < 0:
            raise ValueError(f"a list of words must be an array of symbols from 0 up, got {symbols!r:.80}")
        return symbols.astype(np.int32)

    def bind_references(
        self, references: References, *, rescaling: Rescaling | None = "margin", penalty: Penalty | None = "linear"
    ) -> AlignmentProblem | DecoyProblem:
        oracle = self.holding(references.strings)
        return SmithWatermanOracle.bind_references(oracle, references, rescaling=rescaling, penalty=penalty)

    def completed(self, references: References, w: ArrayLike) -> References:
        return SmithWatermanOracle.completed(self.holding(references.strings), references, w)

    def aligner(self, strings: Strings, pairs: ArrayLike, *, traceback: bool = True) -> Aligner:
        return SmithWatermanOracle.aligner(self.holding(strings), strings, pairs, traceback=traceback)
