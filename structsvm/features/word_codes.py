"""Columns that templates see of words: codes of strings, shapes of forms, the user's, vectors and their clusters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from structsvm.features.functions.strings import is_combining
from structsvm.stored_values import Array, Count, Field, Record, Stored, Value

__all__ = ["VectorClusters", "WordVectors"]

LONGEST_SHAPE = 6
MOST_COLUMNS, MOST_NUMBERS = 256, 1 << 16  # limits of the user's own columns
# The result of a user's callable for a sentence: per word a value, or one per column. Values are str or 1-D arrays.
OwnFeatures = Callable[[list[str]], Sequence[Any]]


def code(text: str) -> int:
    """The code of a string, from 2 up: the same in every process."""
    return (crc32(text.encode("utf-8", "surrogatepass")) & 0x3FFFFFFF) + 2


def shape(form: str) -> str:
    """The kinds of a word's letters but combining ones, runs of one kind as one: ``Xx-d`` of *Boeing-747*."""
    found: list[str] = []
    for letter in form:
        kind = "X" if letter.isupper() else "x" if letter.isalpha() else "d" if letter.isdigit() else letter
        if (not found or found[-1] != kind) and not is_combining(kind):
            found.append(kind)
            if len(found) == LONGEST_SHAPE:
                break
    return "".join(found)


TINY = float(np.finfo(np.float32).tiny)

# The `own` columns of an object in a file: their number, and the sizes of vectors, if there are any, with their units.
OWN: dict[str, Field] = {
    "own": Count(0, MOST_COLUMNS, of=lambda one: len(one.own.sizes or ())),
    "own_sizes": Value(list, list, needed=False, of=lambda one: one.own.sizes if any(one.own.sizes or ()) else None),
    "own_units": Record(
        {name: Array("f4", ("n_numbers",), within=(TINY, None)) for name in ("scale", "limit")},
        needed=False,
        of="own.units",
    ),
}


class VectorUnits(NamedTuple):
    """The units of the numbers of vectors.

    Attributes
    ----------
    scale, limit : float32 ndarray of shape (n_numbers,)
        Each number is divided by its scale; numbers beyond plus or minus the limit are taken as that first.
    """

    scale: NDArray[np.float32]
    limit: NDArray[np.float32]

    def applied(self, numbers: NDArray[np.float32]) -> NDArray[np.float32]:
        """Numbers (n_words, n_numbers) in these units."""
        return np.clip(numbers, -self.limit, self.limit) / self.scale


class OwnColumns:
    """Columns of words that a callable of the user's makes of whole sentences: ``own1``, ``own2`` ...

    Parameters
    ----------
    features : callable or None
        From the words of a sentence, a list of str, to a value per word, or as many for each word as there are columns:
        a str, or a vector, an array of as many numbers for each word. None: none, or the callable of a model that was
        read from a file, which no file holds.
    sizes : tuple of int or None
        By column how many numbers its vectors have, 0 for str. None: the first sentence says it.
    units : VectorUnits or None
        None: numbers are taken as they are.

    Attributes
    ----------
    names : tuple of str
        The columns of str.
    vectors : dict of str to int
        The columns of vectors, and how many numbers they have.
    """

    def __init__(
        self, features: OwnFeatures | None = None, sizes: tuple[int, ...] | None = (), units: VectorUnits | None = None
    ) -> None:
        self.features, self.sizes, self.units = features, sizes, units

    def with_features(self, features: OwnFeatures | None) -> OwnColumns:
        """The same columns of another callable; ValueError where there is one and no columns, or the reverse."""
        if (features is None) != (self.sizes == ()):
            how = "without" if self.sizes == () else "with"
            raise ValueError(f"the model was trained {how} 'columns': set it back, or train afresh")
        return OwnColumns(features, self.sizes, self.units)

    @classmethod
    def from_record(cls, stored: Stored) -> OwnColumns:
        """The columns of a file; raises ValueError."""
        n = stored.own
        sizes = [0] * n if stored.own_sizes is None else stored.own_sizes
        is_one = isinstance(sizes, list) and len(sizes) == n and all(type(size) is int and size >= 0 for size in sizes)
        if not is_one or sum(sizes) > MOST_NUMBERS:
            raise ValueError(f"'own_sizes' must be {n} integers of up to {MOST_NUMBERS} together, got {sizes!r:.80}")
        units = None if stored.own_units is None else VectorUnits(**stored.own_units.arrays(n_numbers=sum(sizes)))
        return cls(None, tuple(sizes), units)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"own{k}" for k, size in enumerate(self.sizes or (), start=1) if size == 0)

    @property
    def vectors(self) -> dict[str, int]:
        return {f"own{k}": size for k, size in enumerate(self.sizes or (), start=1) if size}

    @property
    def number_names(self) -> list[str]:
        """The names of the vectors' numbers, ``own1[0]`` ..."""
        return [f"{name}[{k}]" for name, size in self.vectors.items() for k in range(size)]

    def values(self, words: list[str]) -> tuple[list[tuple[int, ...]], NDArray[np.float32]]:
        """Return ``(codes, numbers)``: a tuple of codes per word, and its vectors side by side, (n_words, n_numbers),
        in their units.

        Raises
        ------
        ValueError
            For what is no such thing as `features` returns.
        """
        if self.sizes == () or not words:
            return [()] * len(words), np.zeros((len(words), sum(self.sizes or ())), dtype=np.float32)
        if self.features is None:
            raise ValueError(
                "the model was trained with a callable 'columns', which no file holds: set_params(features__columns=f)"
            )
        found = self.features(list(words))
        found = found if hasattr(found, "__iter__") else [found]
        rows: list[Any] = [(row,) if isinstance(row, (str, np.ndarray)) else row for row in found]
        sizes = self.sizes
        if sizes is None:
            sizes = tuple(map(_size, rows[0])) if rows and isinstance(rows[0], (tuple, list)) else ()
        is_one = 0 < len(sizes) <= MOST_COLUMNS and sum(sizes) <= MOST_NUMBERS and -1 not in sizes
        are_alike = all(isinstance(row, (tuple, list)) and tuple(map(_size, row)) == sizes for row in rows)
        if len(rows) != len(words) or not is_one or not are_alike:
            wanted = len(sizes) if 0 < len(sizes) <= MOST_COLUMNS else f"1 to {MOST_COLUMNS}"
            here = ", ".join(f"own{k} of {size}" for k, size in enumerate(sizes, start=1) if size > 0)
            raise ValueError(
                f"'columns' must return {wanted} str for each of {len(words)} words, or arrays of as many numbers for "
                f"each, {MOST_NUMBERS} at most{here and ', here ' + here}; got {rows!r:.80}"
            )
        self.sizes = sizes
        codes = [tuple(code(value) for value in row if isinstance(value, str)) for row in rows]
        numbers = np.zeros((len(words), sum(sizes)), dtype=np.float32)
        if any(sizes):
            with np.errstate(over="ignore"):
                numbers[:] = [np.concatenate([x for x in row if not isinstance(x, str)]) for row in rows]
        infinite = np.flatnonzero(~np.isfinite(numbers).all(axis=1))
        if len(infinite):
            raise ValueError(f"'columns' must return finite numbers, and does not for {words[infinite[0]]!r:.80}")
        return codes, numbers if self.units is None else self.units.applied(numbers)


def _size(value: Any) -> int:
    """How many numbers a vector has, 0 for a str; -1 for anything else."""
    if isinstance(value, str):
        return 0
    is_vector = isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype.kind in "fiu" and value.size > 0
    return value.size if is_vector else -1


def _table(vectors: Mapping[str, Any]) -> NDArray[np.float64]:
    """Vectors as rows; ValueError unless they are finite and of one length."""
    rows = [np.asarray(row, dtype=np.float64) for row in vectors.values()]
    if not rows or rows[0].ndim != 1 or not rows[0].size or len({row.shape for row in rows}) > 1:
        raise ValueError("'vectors' must be finite rows of one length")
    table = np.array(rows)
    if not np.isfinite(table).all():
        raise ValueError("'vectors' must be finite rows of one length")
    return table


class WordVectors:
    """Vectors of words as numbers, for the `features` of parsers: a weight per label, place and number of the vector.

    Parameters
    ----------
    vectors : mapping of str to ndarray of shape (n_dimensions,)
        From a word, or its lower case, to its vector. Other words have zeros.
    length : float or None, default=1.0
        Vectors are multiplied so that the mean of their squared lengths is the square of this: an attribute counts 1.
        None: they stay as they are.

    Raises
    ------
    ValueError
        For vectors that are not finite or not of one length, and for a length that is not positive.

    Examples
    --------
    >>> from structsvm.features.word_codes import WordVectors
    >>> WordVectors({"cat": [3.0, 4.0], "of": [0.0, 5.0]})(["Cat", "zebra"])
    array([[0.6, 0.8],
           [0. , 0. ]], dtype=float32)
    """

    def __init__(self, vectors: Mapping[str, Any], length: float | None = 1.0) -> None:
        table = _table(vectors)
        if length is not None:
            if not 0.0 < length < np.inf:
                raise ValueError(f"The 'length' parameter of WordVectors must be positive. Got {length!r} instead.")
            table *= length / max(float(np.sqrt((table**2).sum(axis=1).mean())), 1e-12)
        self.index = {word: k for k, word in enumerate(vectors)}
        self.table = np.vstack([table, np.zeros(table.shape[1])]).astype(np.float32)

    def __call__(self, words: list[str]) -> NDArray[np.float32]:
        index = self.index
        return self.table[[index.get(word, index.get(word.lower(), -1)) for word in words]]


class VectorClusters:
    """Vectors of words as attributes, for the `features` of parsers: the clusters that a word's vector is in.

    Linear weights of a vector's numbers (`WordVectors`) say little of two words at once, which is what attachment is
    about; clusters are conjoined with one another and with tags by templates (Guo and others 2014, "Revisiting
    embedding features for simple semi-supervised learning").

    Parameters
    ----------
    vectors : mapping of str to ndarray of shape (n_dimensions,)
        From a word, or its lower case, to its vector.
    sizes : sequence of int, default=(16, 64, 256)
        Numbers of clusters: an attribute each.
    random_state : int, default=0
        Seed of `sklearn.cluster.MiniBatchKMeans`, on vectors of length 1.

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

        rows = _table(vectors)
        if not len(sizes):
            raise ValueError("the 'sizes' of VectorClusters must be one number of clusters or more")
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
