"""Tokens of named features, given as attribute strings or feature dicts; the names form the vocabulary."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import compress
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from structsvm.features._attributes import AttributeBuffer, KnownNames
from structsvm.features.columns import Vocabulary
from structsvm.features.numbering import number_features
from structsvm.features.tokens import Tokens
from structsvm.stored_values import INTEGERS, Array, checked_arrays, least

if TYPE_CHECKING:
    from structsvm.arrays import AnyArray

# Names are at most so many times as long as the arrays of their parts: a forged file must not unfold to more.
MOST_SHARED = 64


class AttributeVocabulary:
    """The names of features, by feature index."""

    def __init__(self, names: list[str]) -> None:
        self._names = names
        self._known: KnownNames | None = None  # for the buffers; made at the first use

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_known": None}

    def __len__(self) -> int:
        return len(self._names)

    @property
    def n_features(self) -> int:
        return len(self._names)

    @property
    def names(self) -> list[str]:
        return list(self._names)

    @property
    def known(self) -> KnownNames:
        """The names as a table."""
        if self._known is None:
            self._known = KnownNames(self._names)
        return self._known

    def _index(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self._names)}

    def positions(self, other: AttributeVocabulary) -> NDArray[np.int64]:
        """The index here of each feature of another vocabulary, -1 for unknown ones."""
        index_of = self._index()
        return np.array([index_of.get(name, -1) for name in other.names], dtype=np.int64)

    def grown(self, sequences: Iterable[Any]) -> AttributeVocabulary:
        """The vocabulary with the features of more sequences, which come last; itself if all are known."""
        index_of = self._index()
        new = [name for name in AttributeVocabulary.fit(sequences, 1)[0].names if name not in index_of]
        return AttributeVocabulary(self._names + new) if new else self

    @classmethod
    def fit(cls, sequences: Iterable[Any], min_count: int) -> tuple[AttributeVocabulary, Tokens, NDArray[np.intp]]:
        """Assign indices to the features that occur `min_count` times or more, and encode them.

        Returns the vocabulary, the tokens, and the indices of features that are numbers.
        """
        by_arrival: dict[str, int] = {}
        buffer = AttributeBuffer(by_arrival, True)
        _gather(buffer, sequences)
        kept, index_of = number_features(buffer.counted(), min_count)
        names, numbers = list(by_arrival), np.array(sorted(buffer.numbers), dtype=np.intp)
        tokens = Tokens(*buffer.finish(index_of), len(kept))
        return cls([names[i] for i in kept.tolist()]), tokens, np.flatnonzero(np.isin(kept, numbers))

    def narrowed(self, kept: NDArray[np.bool_]) -> AttributeVocabulary:
        """The vocabulary of some features alone, renumbered."""
        return AttributeVocabulary(list(compress(self._names, kept.tolist())))

    def transform(self, sequences: Iterable[Any], first: int = 0) -> Tokens:
        """Encode sequences; unknown features are dropped. Messages number sequences from `first` on.

        Threads may encode parts of a list side by side: one walks through its tokens while others look up the names of
        theirs.
        """
        buffer = AttributeBuffer(self.known, first=first)
        _gather(buffer, sequences, first)
        return Tokens(*buffer.finish(), len(self))

    def to_arrays(self) -> dict[str, AnyArray]:
        """Named arrays, for model files: names, or their beginnings and ends, which many of them share."""
        whole = Vocabulary.from_strings(self._names)
        cuts = [max(name.rfind(":"), name.rfind("=")) + 1 for name in self._names]
        shared: dict[str, AnyArray] = {}
        for part, texts in (
            ("keys", [name[:cut] for name, cut in zip(self._names, cuts, strict=True)]),
            ("values", [name[cut:] for name, cut in zip(self._names, cuts, strict=True)]),
        ):
            number = {text: k for k, text in enumerate(dict.fromkeys(texts))}
            shared |= Vocabulary.from_strings(number).to_arrays(part)
            shared[f"{part}.ids"] = least(np.array([number[text] for text in texts], dtype=np.int64))
        size = sum(array.nbytes for array in shared.values())
        is_smaller = size < len(whole.data) + len(whole) and len(whole.data) <= MOST_SHARED * size
        return shared if is_smaller else whole.to_arrays("names")

    def to_plain_arrays(self) -> dict[str, AnyArray]:
        """Named arrays, for training states and models with a table of them: each name by itself."""
        names = Vocabulary.from_strings(self._names)
        return {"names": names.data, "name_starts": names.starts}

    @classmethod
    def from_arrays(cls, arrays: dict[str, AnyArray], n_features: int) -> AttributeVocabulary:
        """The inverse of :meth:`to_arrays` and :meth:`to_plain_arrays`; ValueError or KeyError for others."""
        if "keys" in arrays:
            names = _joined(arrays, n_features)
        else:
            names = Vocabulary.from_arrays(arrays, "names", "name_starts", n_features).tolist()
        if len(set(names)) != len(names):
            raise ValueError("the name of a feature is there twice")
        return cls(names)


def _joined(arrays: dict[str, AnyArray], n_features: int) -> list[str]:
    """Names from their beginnings and ends; ValueError for what no vocabulary has written."""
    parts, n_bytes, size = [], 0, 0
    for part in ("keys", "values"):
        texts, name = Vocabulary.from_arrays(arrays, part, "", f"n_{part}"), f"{part}.ids"
        ids = checked_arrays(arrays, {name: Array(INTEGERS, (n_features,), within=(0, len(texts)))})[name]
        parts.append((texts.tolist(), ids.tolist()))  # UTF-8, or UnicodeDecodeError, a ValueError
        n_bytes += int(np.diff(texts.starts)[ids].sum())
        size += len(texts.data) + ids.nbytes + len(texts)
    if n_bytes > MOST_SHARED * size:
        raise ValueError(f"names of {n_bytes} bytes from arrays of {size}")
    (keys, key_ids), (values, value_ids) = parts
    return [keys[k] + values[v] for k, v in zip(key_ids, value_ids, strict=True)]


def hash_attributes(sequences: Iterable[Any], bits: int) -> tuple[Tokens, NDArray[np.intp]]:
    """Encode sequences with names of features hashed to 2**bits indices; and the indices of those that are numbers."""
    buffer = AttributeBuffer({}, hash_bits=bits)
    _gather(buffer, sequences)
    return Tokens(*buffer.finish(), 2**bits), np.array(sorted(buffer.numbers), dtype=np.intp)


def _gather(buffer: AttributeBuffer, sequences: Iterable[Any], first: int = 0) -> None:
    for s, sequence in enumerate(sequences, first):
        if type(sequence) is list:
            buffer.add(sequence)
            continue
        check_no_table(sequence, f"sequence {s}")
        buffer.add(sequence.tolist() if isinstance(sequence, np.ndarray) else unwrapped(sequence))


def check_no_table(x: Any, name: str) -> None:
    """Raise TypeError for a table, which would be read as the names of its columns."""
    if hasattr(x, "columns") or hasattr(x, "column_names"):
        raise TypeError(
            f"{name} is a table ({type(x).__name__}): give a column of lists, or "
            "structsvm.features.columns.Columns.from_dataframe(X, [WORDS], sequence=NAME) for a token in each row"
        )


def if_text(sequence: Any) -> str:
    """The end of a message about a sequence that is a text; empty for others."""
    return "; text.split() makes one, and X of one alone is [tokens]" if isinstance(sequence, str) else ""


def unwrapped(x: Any) -> Any:
    """A column of Arrow, pandas or polars as Python's objects; all else as it is."""
    return x.to_pylist() if hasattr(x, "to_pylist") else x.to_list() if hasattr(x, "to_list") else x
