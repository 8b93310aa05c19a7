"""Tokens of named features, given as attribute strings or feature dicts; the names form the vocabulary."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from structsvm.features._attributes import AttributeBuffer
from structsvm.features.columns import Vocabulary
from structsvm.features.numbering import number_features
from structsvm.features.tokens import Tokens
from structsvm.stored_values import checked_arrays, strings

if TYPE_CHECKING:
    from structsvm.arrays import AnyArray

NAMES = strings("names", "name_starts", "n_features")


class AttributeVocabulary:
    """The names of features, by feature index."""

    def __init__(self, names: list[str]) -> None:
        self._names = names
        # Indices by name, and by key and value, for the buffers; built at the first use.
        self._index: tuple[dict[str, int], dict[str, dict[str, int]]] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_index": None}

    def __len__(self) -> int:
        return len(self._names)

    @property
    def names(self) -> list[str]:
        return list(self._names)

    @classmethod
    def fit(cls, sequences: Iterable[Any], min_count: int) -> tuple[AttributeVocabulary, Tokens, NDArray[np.intp]]:
        """Assign indices to the features that occur `min_count` times or more, and encode them.

        Returns the vocabulary, the tokens, and the indices of features that are numbers.
        """
        by_arrival: dict[str, int] = {}
        buffer = AttributeBuffer(by_arrival, {}, True)
        _gather(buffer, sequences)
        kept, index_of = number_features(buffer.counted(), min_count)
        names, numbers = list(by_arrival), np.array(sorted(buffer.numbers), dtype=np.intp)
        tokens = Tokens(*buffer.finish(index_of), len(kept))
        return cls([names[i] for i in kept.tolist()]), tokens, np.flatnonzero(np.isin(kept, numbers))

    def transform(self, sequences: Iterable[Any]) -> Tokens:
        """Encode sequences; unknown features are dropped."""
        if self._index is None:
            self._index = {name: i for i, name in enumerate(self._names)}, {}
        buffer = AttributeBuffer(*self._index, False)
        _gather(buffer, sequences)
        return Tokens(*buffer.finish(), len(self))

    def to_arrays(self) -> dict[str, AnyArray]:
        """Named arrays, for model files."""
        names = Vocabulary.from_strings(self._names)
        return {"names": names.data, "name_starts": names.starts}

    @classmethod
    def from_arrays(cls, arrays: dict[str, AnyArray], n_features: int) -> AttributeVocabulary:
        """The inverse of :meth:`to_arrays`; raises ValueError or KeyError for anything else."""
        stored = checked_arrays(arrays, NAMES, n_features=n_features)
        names = Vocabulary(
            stored["names"], stored["name_starts"]
        ).tolist()  # UTF-8, or UnicodeDecodeError, a ValueError
        if len(set(names)) != len(names):
            raise ValueError("array 'names' has a name twice")
        return cls(names)


def hash_attributes(sequences: Iterable[Any], bits: int) -> tuple[Tokens, NDArray[np.intp]]:
    """Encode sequences with names of features hashed to 2**bits indices; and the indices of those that are numbers."""
    buffer = AttributeBuffer({}, {}, False, bits)
    _gather(buffer, sequences)
    return Tokens(*buffer.finish(), 2**bits), np.array(sorted(buffer.numbers), dtype=np.intp)


def _gather(buffer: AttributeBuffer, sequences: Iterable[Any]) -> None:
    for s, sequence in enumerate(sequences):
        check_no_table(sequence, f"sequence {s}")
        buffer.add(sequence.tolist() if isinstance(sequence, np.ndarray) else unwrapped(sequence))


def check_no_table(x: Any, name: str) -> None:
    """Raise TypeError for a table, which would be read as the names of its columns."""
    if hasattr(x, "columns") or hasattr(x, "column_names"):
        raise TypeError(f"{name} is a table ({type(x).__name__}): give a column of lists, or Columns.from_dataframe(X)")


def unwrapped(x: Any) -> Any:
    """A column of Arrow, pandas or polars as Python's objects; all else as it is."""
    return x.to_pylist() if hasattr(x, "to_pylist") else x.to_list() if hasattr(x, "to_list") else x
