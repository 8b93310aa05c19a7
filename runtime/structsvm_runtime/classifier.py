"""Classes of documents: texts, or rows of numbers."""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Iterable, Sequence
from typing import Any

from structsvm_runtime.native import Model, as_array
from structsvm_runtime.tokens import coded

__all__ = ["Classifier"]


class Classifier(Model):
    """A model of the classes of texts, or of rows of `n_numbers` numbers; see `Model`."""

    structure = "documents"

    def predict(self, texts: Iterable[str] | Iterable[Sequence[float]]) -> list[str]:
        """Return the best label of each text, or row."""
        given, n = self._given(texts)
        found = (ctypes.c_uint32 * n)()
        self._call("predict", given, None, n, found)
        return [self.labels[y] for y in found]

    def kbest(self, text: str | Sequence[float], k: int) -> list[tuple[str, float]]:
        """Return the k best ``(label, score)`` of a text, or row, best first; fewer where there are no more."""
        if k < 1:
            raise ValueError(f"k must be at least 1, got {k}")
        k = min(k, len(self.labels))
        given, _ = self._given([text])
        found, scores = (ctypes.c_uint32 * k)(), (ctypes.c_double * k)()
        n = self._call("kbest", given, None, 1, k, found, scores)
        return [(self.labels[found[i]], scores[i]) for i in range(n)]

    def probability(self, texts: Iterable[str] | Iterable[Sequence[float]]) -> list[list[float]]:
        """Return a row per text, or row, of the probability of each of `labels`."""
        given, n = self._given(texts)
        K = len(self.labels)
        found = (ctypes.c_float * (K * n))()
        self._call("probability", given, None, n, found)
        return [found[t * K : (t + 1) * K] for t in range(n)]

    def _given(self, documents: Any) -> tuple[Any, int]:
        """Texts or rows as C has them, and how many; TypeError or ValueError for what the model does not read."""
        return _rows(documents, self.n_numbers) if self.n_numbers else _texts(documents)


def _rows(rows: Iterable[Sequence[float]], n_numbers: int) -> tuple[Any, int]:
    """Rows of numbers as C has them, and how many."""
    if isinstance(rows, (str, bytes, dict)):
        raise TypeError(f"rows must be a list of lists of numbers, got {rows!r:.80}")
    found = []
    for i, row in enumerate(rows):
        try:
            numbers = array("d", [float(x) for x in row])
        except (TypeError, ValueError):
            raise TypeError(f"row {i} must be a list of numbers, got {row!r:.80}") from None
        if len(numbers) != n_numbers:
            raise ValueError(f"row {i} has {len(numbers)} numbers, and the model reads {n_numbers}")
        found.append((numbers.tobytes(), 0, 1.0))
    return as_array(found), len(found)


def _texts(texts: Iterable[str]) -> tuple[Any, int]:
    """Texts as C has them, and how many; TypeError for what is no list of str."""
    if isinstance(texts, (str, bytes, dict)):
        raise TypeError(f"texts must be a list of str, got {texts!r:.80}")
    texts = list(texts)
    for i, text in enumerate(texts):
        if not isinstance(text, str):
            raise TypeError(f"text {i} must be a str, got {text!r:.80}")
    return as_array([(coded(text), 0, 1.0) for text in texts]), len(texts)
