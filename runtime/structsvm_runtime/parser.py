"""Dependency trees."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Mapping
from typing import Any

from structsvm_runtime.native import MOST_BYTES, SIZE, Model, as_array, check
from structsvm_runtime.tokens import coded

__all__ = ["Parser"]

Word = object
COLUMNS = ("form", "lemma", "upos", "xpos", "feats")
OTHERS = ("head", "deprel", "deps", "misc")


class Parser(Model):
    """A model of dependency trees; see `Model`."""

    structure = "trees"

    def predict(self, words: Iterable[Word]) -> list[tuple[int, str]]:
        """Return the ``(head, label)`` of each word, head 0 being the root; words are as for `DependencyParser`."""
        texts, n = _texts(words)
        found = (ctypes.c_uint32 * (2 * n))()
        self._call("predict", texts, None, n, found)
        return self._arcs(found, 0, n)

    def kbest(self, words: Iterable[Word], k: int) -> list[tuple[list[tuple[int, str]], float]]:
        """Return the k best ``(arcs, score)`` of a sentence, best first; fewer where there are no more."""
        texts, n = _texts(words)
        if k < 1:
            raise ValueError(f"k must be at least 1, got {k}")
        if 8 * k * (n + 1) > MOST_BYTES:
            check(SIZE)
        found, scores = (ctypes.c_uint32 * (2 * k * n))(), (ctypes.c_double * k)()
        m = self._call("kbest", texts, None, n, k, found, scores)
        return [(self._arcs(found, 2 * n * i, n), scores[i]) for i in range(m)]

    def probability(self, words: Iterable[Word]) -> list[list[float]]:
        """Return a row per word of the probability of each head, the root's first."""
        texts, n = _texts(words)
        found = (ctypes.c_float * (n * (n + 1)))()
        self._call("probability", texts, None, n, found)
        return [found[t * (n + 1) : (t + 1) * (n + 1)] for t in range(n)]

    def _arcs(self, found: Any, first: int, n: int) -> list[tuple[int, str]]:
        return [(found[first + 2 * i], self.labels[found[first + 2 * i + 1]]) for i in range(n)]


def _texts(words: Iterable[Word]) -> tuple[Any, int]:
    """The columns of words as C has them, and how many words."""
    if isinstance(words, (bytes, Mapping)):
        raise TypeError(f"a sentence must be a list of words, got {words!r:.80}")
    given = words.split() if isinstance(words, str) else list(words)
    texts = [text for i, word in enumerate(given) for text in _columns(word, i)]
    return as_array([(coded(text), 0, 1.0) for text in texts]), len(given)


def _columns(word: Word, i: int) -> tuple[str, ...]:
    """The columns of a str, a pair (form, tag), or a dict of CoNLL-U's columns; TypeError for anything else."""
    columns = dict.fromkeys(COLUMNS, "_")
    if isinstance(word, str):
        columns["form"] = word
    elif isinstance(word, Mapping):
        if "form" not in word or not word.keys() <= {*COLUMNS, *OTHERS}:
            raise TypeError(f"word {i} must have a form, and no columns but {', '.join(COLUMNS)}, got {word!r:.80}")
        columns |= {name: word[name] for name in COLUMNS if name in word}
    elif isinstance(word, (tuple, list)) and len(word) == 2:
        columns["form"], columns["upos"] = word
    else:
        raise TypeError(f"word {i} must be a str, a pair (form, tag) or a dict of columns, got {word!r:.80}")
    if not all(isinstance(value, str) for value in columns.values()):
        raise TypeError(f"word {i}: columns must be str, got {word!r:.80}")
    if not columns["form"]:
        raise ValueError(f"word {i} must have a form, got ''")
    return tuple(columns.values())
