"""Classes of documents."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from typing import Any

from structsvm_runtime.native import Model, as_array
from structsvm_runtime.tokens import coded

__all__ = ["Classifier"]


class Classifier(Model):
    """A model of the classes of texts; see `Model`."""

    structure = "documents"

    def predict(self, texts: Iterable[str]) -> list[str]:
        """Return the best label of each text."""
        array, n = _array(texts)
        found = (ctypes.c_uint32 * n)()
        self._call("predict", array, None, n, found)
        return [self.labels[y] for y in found]

    def kbest(self, text: str, k: int) -> list[tuple[str, float]]:
        """Return the k best ``(label, score)`` of a text, best first; fewer where there are no more."""
        if k < 1:
            raise ValueError(f"k must be at least 1, got {k}")
        k = min(k, len(self.labels))
        array, _ = _array([text])
        found, scores = (ctypes.c_uint32 * k)(), (ctypes.c_double * k)()
        n = self._call("kbest", array, None, 1, k, found, scores)
        return [(self.labels[found[i]], scores[i]) for i in range(n)]

    def probability(self, texts: Iterable[str]) -> list[list[float]]:
        """Return a row per text of the probability of each of `labels`."""
        array, n = _array(texts)
        K = len(self.labels)
        found = (ctypes.c_float * (K * n))()
        self._call("probability", array, None, n, found)
        return [found[t * K : (t + 1) * K] for t in range(n)]


def _array(texts: Iterable[str]) -> tuple[Any, int]:
    """Texts as C has them, and how many; TypeError for what is no list of str."""
    if isinstance(texts, (str, bytes, dict)):
        raise TypeError(f"texts must be a list of str, got {texts!r:.80}")
    texts = list(texts)
    for i, text in enumerate(texts):
        if not isinstance(text, str):
            raise TypeError(f"text {i} must be a str, got {text!r:.80}")
    return as_array([(coded(text), 1.0) for text in texts]), len(texts)
