"""Files of the runtime in C: arrays one after the other, tables of strings and of tuples of codes.

The layout is at the head of `structsvm/export/runtime/structsvm_core.h`.
"""

from __future__ import annotations

import struct
from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple
from zlib import crc32

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeAlias

    from numpy.typing import ArrayLike, NDArray

    Codes: TypeAlias = NDArray[np.int64]

__all__ = ["Kind", "RuntimeFile", "StringTable", "tuple_table"]

MAGIC, VERSION = b"\x89SVMRUN\n", 3
# Strings whose start is stored; beginnings that strings share, so that their number takes a byte.
STRINGS, MOST_BEGINS = 8, 255
# Dtype of each kind of items, and the number that stands for it.
Kind = {"u1": 1, "i1": 1, "<u2": 2, "<i2": 2, "<u4": 4, "<i4": 4, "<f4": 20, "<f8": 24}


class RuntimeFile:
    """The arrays of a file, in the order in which they are added.

    Examples
    --------
    >>> from structsvm.export.binary import RuntimeFile
    >>> file = RuntimeFile()
    >>> file.add("<u4", [1, 2, 3])
    >>> len(file.contents())
    56
    """

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def add(self, dtype: str, items: ArrayLike) -> None:
        """Add an array, of one of the dtypes in `Kind`."""
        array = np.ascontiguousarray(items, dtype=dtype).ravel()
        data = array.tobytes()
        self._parts += [struct.pack("<IIQ", Kind[dtype], 0, len(array)), data, bytes(-len(data) % 8)]

    def add_indices(self, items: ArrayLike) -> None:
        """Add numbers >= 0 in 1, 2 or 4 bytes each, as few as hold them."""
        array = np.ravel(np.asarray(items, dtype=np.int64))
        top = int(array.max(initial=0))
        self.add("u1" if top < 1 << 8 else "<u2" if top < 1 << 16 else "<u4", array)

    def add_texts(self, texts: Sequence[str]) -> None:
        """Add texts with a zero behind each: where each begins, and their bytes."""
        coded = [text.encode("utf-8", "surrogatepass") + b"\0" for text in texts]
        self.add("<u4", np.cumsum([0, *map(len, coded)]))
        self.add("u1", np.frombuffer(b"".join(coded), dtype=np.uint8))

    def contents(self) -> bytes:
        """The bytes of the file."""
        body = b"".join(self._parts)
        rest = struct.pack("<Q", 24 + len(body)) + body
        return MAGIC + struct.pack("<II", VERSION, crc32(rest)) + rest


class StringTable(NamedTuple):
    """Distinct strings in the order of their hashes.

    Attributes
    ----------
    order : ndarray of shape (n,)
        The strings, by their places before.
    place : ndarray of shape (n,)
        The place of each.
    starts, buckets : ndarray
        Where strings begin, and the first string of each value of a hash's last bits.
    data : ndarray of uint8
    """

    order: NDArray[np.intp]
    place: NDArray[np.intp]
    starts: NDArray[np.int64]
    buckets: NDArray[np.int64]
    data: NDArray[np.uint8]

    @classmethod
    def of(cls, data: NDArray[np.uint8], starts: NDArray[np.int64]) -> StringTable:
        """The table of the strings ``data[starts[i]:starts[i + 1]]``."""
        lengths = np.diff(starts)
        order, buckets = _bucketed(_hashes_of_strings(data, starts))
        ends = np.concatenate([[0], np.cumsum(lengths[order])])
        pieces = [data[a : a + n] for a, n in zip(starts[order].tolist(), lengths[order].tolist(), strict=True)]
        return cls(order, _inverse(order), ends, buckets, np.concatenate([np.zeros(0, np.uint8), *pieces]))

    def add_to(self, file: RuntimeFile, *, divides: bool = False) -> None:
        """Add the table; with `divides`, beginnings up to a colon that many strings have stand there once."""
        begins, number = _beginnings(self.data, self.starts) if divides else ([b""], np.zeros(0, np.int64))
        cuts = np.array([len(begin) for begin in begins])[number] if len(number) else 0
        firsts = self.starts[:-1] + cuts
        sizes = self.starts[1:] - firsts
        file.add_indices(sizes)
        file.add("<u4", (np.cumsum(sizes) - sizes)[::STRINGS])
        file.add_indices(self.buckets)
        owner = np.repeat(firsts - (np.cumsum(sizes) - sizes), sizes)
        file.add("u1", self.data[owner + np.arange(len(owner))])
        file.add("<u4", np.cumsum([0, *map(len, begins)]))
        file.add("u1", np.frombuffer(b"".join(begins), dtype=np.uint8))
        if len(begins) > 1:
            file.add_indices(number)


def _beginnings(data: NDArray[np.uint8], starts: NDArray[np.int64]) -> tuple[list[bytes], NDArray[np.int64]]:
    """The beginnings that save bytes, the empty one first, and the number of each string's."""
    whole, ends = data.tobytes(), starts.tolist()
    own = [whole[a : whole.rfind(b":", a, b) + 1] if whole.rfind(b":", a, b) >= a else b"" for a, b in pairwise(ends)]
    counts = Counter(own)
    saves = sorted((begin for begin in counts if begin), key=lambda begin: (-counts[begin] * len(begin), begin))
    begins = [b"", *(begin for begin in saves[:MOST_BEGINS] if counts[begin] > 1)]
    if sum(counts[begin] * len(begin) - len(begin) - 4 for begin in begins[1:]) <= len(own):
        return [b""], np.zeros(0, np.int64)
    place = {begin: k for k, begin in enumerate(begins)}
    return begins, np.array([place.get(begin, 0) for begin in own], dtype=np.int64)


def tuple_table(file: RuntimeFile, codes: Codes, ids: NDArray[np.int32], n_codes: int) -> None:
    """Add the table from tuples of codes to features; of single codes, below `n_codes`, a bit for each that has one."""
    n, arity = codes.shape
    if arity == 1:
        known = np.zeros(-(-n_codes // 32) * 32, dtype=np.uint32)
        known[codes[:, 0]] = 1
        counts = known.reshape(-1, 32).sum(axis=1)
        file.add_indices(ids[np.argsort(codes[:, 0])])
        file.add("<u4", (known.reshape(-1, 32) << np.arange(32, dtype=np.uint32)).sum(axis=1))
        file.add("<u4", np.cumsum(counts) - counts)
        return
    by_feature = np.argsort(ids)
    codes, ids, hashes = codes[by_feature], ids[by_feature], np.zeros(n, dtype=np.uint32)
    for k in range(arity):
        hashes = (hashes ^ codes[:, k].astype(np.uint32)) * np.uint32(0x9E3779B1)
        hashes ^= hashes >> np.uint32(15)
    order, buckets = _bucketed(hashes)
    is_wide = bool(codes.max(initial=0) >= 1 << 16)
    file.add_indices(ids[order])
    file.add_indices(buckets)
    file.add("<u4", [is_wide])
    file.add("<u4" if is_wide else "<u2", codes[order])


def _bucketed(hashes: NDArray[np.uint32]) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
    """The order of items by the last bits of their hashes, and where each value of these begins: one per two items."""
    n_buckets = 1 << max(len(hashes) // 2, 1).bit_length() - 1
    last = hashes & np.uint32(n_buckets - 1)
    order = np.argsort(last, kind="stable")
    return order, np.concatenate([[0], np.cumsum(np.bincount(last, minlength=n_buckets))])


def _hashes_of_strings(data: NDArray[np.uint8], starts: NDArray[np.int64]) -> NDArray[np.uint32]:
    """FNV-1a of each string, its upper half mixed into the lower one."""
    lengths = np.diff(starts)
    hashes = np.full(len(lengths), 2166136261, dtype=np.uint32)
    left = np.flatnonzero(lengths)
    place = 0
    while len(left):
        hashes[left] = (hashes[left] ^ data[starts[left] + place]) * np.uint32(16777619)
        place += 1
        left = left[lengths[left] > place]
    return hashes ^ (hashes >> np.uint32(15))


def _inverse(order: NDArray[np.intp]) -> NDArray[np.intp]:
    place = np.empty(len(order), dtype=np.intp)
    place[order] = np.arange(len(order))
    return place
