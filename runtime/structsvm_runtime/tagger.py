"""Labels of sequences."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from typing import Any, ClassVar

from structsvm_runtime.native import MOST_BYTES, SIZE, Model, as_array, check
from structsvm_runtime.tokens import attributes, check_columns, columns

__all__ = ["SegmentTagger", "Tagger"]

Token = object


class Tagger(Model):
    """A model of label sequences; see `Model`."""

    structure = "sequences"
    _has_texts: ClassVar[bool] = False

    def predict(self, tokens: Iterable[Token]) -> list[str]:
        """Return the best labels of a sequence; tokens are as for `SequenceLabeler.predict`."""
        texts, starts, n = self._texts(tokens)
        found = (ctypes.c_uint32 * n)()
        self._call("predict", texts, starts, n, found)
        return [self.labels[y] for y in found]

    def kbest(self, tokens: Iterable[Token], k: int) -> list[tuple[list[str], float]]:
        """Return the k best ``(labels, score)`` of a sequence, best first; fewer where there are no more."""
        texts, starts, n = self._texts(tokens)
        if k < 1:
            raise ValueError(f"k must be at least 1, got {k}")
        if 4 * k * (n + 2) > MOST_BYTES:
            check(SIZE)
        found, scores = (ctypes.c_uint32 * (k * n))(), (ctypes.c_double * k)()
        m = self._call("kbest", texts, starts, n, k, found, scores)
        return [([self.labels[y] for y in found[i * n : (i + 1) * n]], scores[i]) for i in range(m)]

    def probability(self, tokens: Iterable[Token]) -> list[list[float]]:
        """Return a row per token of the probability of each of `labels`."""
        texts, starts, n = self._texts(tokens)
        K = len(self.labels)
        found = (ctypes.c_float * (K * n))()
        self._call("probability", texts, starts, n, found)
        return [found[t * K : (t + 1) * K] for t in range(n)]

    def _texts(self, tokens: Iterable[Token]) -> tuple[Any, Any, int]:
        if isinstance(tokens, (str, bytes, dict)):
            raise TypeError(f"tokens must be a list, got {tokens!r:.80}")
        tokens = list(tokens)
        if self.n_columns:
            return as_array(columns(tokens, self.n_columns)), None, len(tokens)
        texts: list[tuple[bytes, int, float]] = []
        starts = [0]
        for t, token in enumerate(tokens):
            texts += attributes(token, t, has_texts=self._has_texts)
            starts.append(len(texts))
        check_columns(tokens, self._required)
        return as_array(texts), (ctypes.c_uint32 * len(starts))(*starts), len(tokens)


class SegmentTagger(Tagger):
    """A model of label sequences that scores whole segments."""

    structure = "segments"
    _has_texts = True
