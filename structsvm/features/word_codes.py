"""What templates see of words: codes of strings, the shape of a form, columns of the user's, clusters of vectors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from zlib import crc32

import numpy as np

LONGEST_SHAPE = 6
MOST_COLUMNS = 256  # of the user's own
# What a user's callable makes of a sentence: of each word a str, or a str per column.
OwnFeatures = Callable[[list[str]], Sequence[str | Sequence[str]]]


def code(text: str) -> int:
    """The code of a string, from 2 up: the same in every process."""
    return (crc32(text.encode("utf-8", "surrogatepass")) & 0x3FFFFFFF) + 2


def shape(form: str) -> str:
    """The kinds of a word's letters, runs of one kind as one: ``Xx-d`` of *Boeing-747*."""
    found: list[str] = []
    for letter in form:
        kind = "X" if letter.isupper() else "x" if letter.isalpha() else "d" if letter.isdigit() else letter
        if not found or found[-1] != kind:
            found.append(kind)
            if len(found) == LONGEST_SHAPE:
                break
    return "".join(found)


class OwnColumns:
    """Columns of words that a callable of the user's makes of whole sentences: ``own1``, ``own2`` ...

    Parameters
    ----------
    features : callable or None
        From the words of a sentence, a list of str, to a str per word, or as many for each word as there are columns.
        None: none, or the callable of a model that was read from a file, which no file holds.
    n : int
        The number of columns, or -1 until the first sentence says it.
    """

    def __init__(self, features: OwnFeatures | None = None, n: int = 0) -> None:
        self.features, self.n = features, n

    def with_features(self, features: OwnFeatures | None) -> OwnColumns:
        """The same columns of another callable; ValueError where there is one and no columns, or the reverse."""
        if (features is None) != (self.n == 0):
            how = "without" if self.n == 0 else "with"
            raise ValueError(f"the model was trained {how} 'features': set it back, or train afresh")
        return OwnColumns(features, self.n)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"own{k + 1}" for k in range(self.n))

    def codes(self, words: list[str]) -> list[tuple[int, ...]]:
        """The codes of the columns, a tuple per word; ValueError for what is no such thing as `features` returns."""
        if self.n == 0 or not words:
            return [()] * len(words)
        if self.features is None:
            raise ValueError(
                "the model was trained with a callable 'features', which no file holds; set_params(features=...)"
            )
        rows: list[Any] = [(row,) if isinstance(row, str) else row for row in self.features(list(words))]
        if self.n < 0 and rows and isinstance(rows[0], (tuple, list)):
            self.n = len(rows[0])
        are_whole = (
            isinstance(row, (tuple, list)) and len(row) == self.n > 0 and all(isinstance(value, str) for value in row)
            for row in rows
        )
        if len(rows) != len(words) or self.n > MOST_COLUMNS or not all(are_whole):
            wanted = self.n if 0 < self.n <= MOST_COLUMNS else f"1 to {MOST_COLUMNS}"
            raise ValueError(f"'features' must return {wanted} str for each of {len(words)} words, got {rows!r:.80}")
        return [tuple(map(code, row)) for row in rows]


class VectorClusters:
    """Vectors of words as attributes, for the `features` of parsers: the clusters that a word's vector is in.

    Linear weights of a vector's numbers say little of two words at once, which is what attachment is about; clusters
    are conjoined with one another and with tags by templates (Guo and others 2014, "Revisiting embedding features for
    simple semi-supervised learning").

    Parameters
    ----------
    vectors : mapping of str to ndarray of shape (n_dimensions,)
        Of a word, or of its lower case.
    sizes : sequence of int, default=(16, 64, 256)
        Numbers of clusters: an attribute each.
    random_state : int, default=0
        Of `sklearn.cluster.MiniBatchKMeans`, on vectors of length 1.

    Examples
    --------
    >>> import numpy as np
    >>> from structsvm.features.word_codes import VectorClusters
    >>> clusters = VectorClusters({"cat": np.array([1.0, 0.1]), "dog": np.array([1, 0]), "of": np.array([0, 1])}, [2])
    >>> cat, dog, of, unknown = clusters(["Cat", "dog", "of", "zebra"])
    >>> cat == dog, cat == of, unknown
    (True, False, ('_',))
    """

    def __init__(self, vectors: Mapping[str, Any], sizes: Sequence[int] = (16, 64, 256), random_state: int = 0) -> None:
        from sklearn.cluster import MiniBatchKMeans

        rows = np.array([np.asarray(row, dtype=np.float64) for row in vectors.values()])
        if rows.ndim != 2 or not np.isfinite(rows).all() or not len(sizes):
            raise ValueError("'vectors' must be finite rows of one length, and there must be 'sizes'")
        rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
        found = [
            MiniBatchKMeans(min(size, len(rows)), n_init=3, batch_size=4096, random_state=random_state).fit_predict(
                rows
            )
            for size in sizes
        ]
        self.unknown = ("_",) * len(sizes)
        self.clusters = dict(zip(vectors, (tuple(map(str, row)) for row in zip(*found, strict=True)), strict=True))

    def __call__(self, words: list[str]) -> list[tuple[str, ...]]:
        known, unknown = self.clusters, self.unknown
        return [known.get(word) or known.get(word.lower(), unknown) for word in words]
