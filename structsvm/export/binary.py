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

__all__ = ["Kind", "PairTable", "RuntimeFile", "StringTable", "TupleTable"]

MAGIC, VERSION = b"\x89SVMRUN\n", 6
# Strings whose start is stored; beginnings that strings share, so that their number takes a byte.
STRINGS, MOST_BEGINS = 8, 255
MOST_IN_BUCKET = 4  # pairs of codes, on average
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
        """Add an array, of one of the dtypes in `Kind`.

        Raises
        ------
        ValueError
            For whole numbers that the dtype does not hold.
        """
        given = np.asarray(items)
        array = np.ascontiguousarray(given, dtype=dtype).ravel()
        if given.dtype.kind in "iu" and not np.array_equal(given.ravel(), array):
            raise ValueError(f"a model with numbers beyond those of {np.dtype(dtype)} cannot be exported")
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


class PairTable(NamedTuple):
    """Distinct pairs of numbers, in buckets by the first bits of a permutation of all pairs.

    The permutation is the one of `pair_in` in structsvm_sequences.c. The bits that are not the bucket's are stored, so
    that pairs that are not in the table are told apart from those that are.

    Attributes
    ----------
    place : ndarray of shape (n,)
        The place of each pair in the table.
    rests, buckets : ndarray
        Bits of the pairs in the order of the table; where buckets begin.
    second_bits, bits, rest_bits : int
        Bits of a second number, of a pair, and those that are stored.
    """

    place: NDArray[np.intp]
    rests: NDArray[np.uint64]
    buckets: NDArray[np.int64]
    second_bits: int
    bits: int
    rest_bits: int

    @classmethod
    def of(cls, first: Codes, second: Codes, n_first: int, n_second: int) -> PairTable:
        """The table of pairs of numbers below `n_first` and `n_second`."""
        second_bits = (n_second - 1).bit_length()
        bits = max((n_first - 1).bit_length() + second_bits, 1)
        mask, half = np.uint64((1 << bits) - 1), np.uint64((bits + 1) // 2)
        x = (first << second_bits | second).astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) & mask
        x = (x ^ (x >> half)) * np.uint64(0xBF58476D1CE4E5B9) & mask
        rest_bits = cls.best_rest_bits(len(x), bits)
        bucket = (x >> np.uint64(rest_bits)).astype(np.int64)
        order = np.argsort(bucket, kind="stable")
        ends = np.cumsum(np.bincount(bucket, minlength=1 << (bits - rest_bits)))
        rests = (x & np.uint64((1 << rest_bits) - 1))[order]
        return cls(_inverse(order), rests, np.concatenate([[0], ends]), second_bits, bits, rest_bits)

    @staticmethod
    def best_rest_bits(n: int, bits: int) -> int:
        """The bits to be stored of each of n pairs, so that the table has the fewest bytes."""
        fewest = max((-(-n // MOST_IN_BUCKET) - 1).bit_length() if n else 0, bits - 32)
        return min(
            (bits - own for own in range(fewest, max(min(bits, fewest + 8), fewest) + 1)),
            key=lambda rest: n * _width(rest) + ((1 << (bits - rest)) + 1) * _width(n.bit_length()),
        )

    def add_to(self, file: RuntimeFile) -> None:
        file.add("<u4", [self.second_bits, self.bits, self.rest_bits])
        file.add_indices(self.rests)
        file.add_indices(self.buckets)


def _width(bits: int) -> int:
    """Bytes of numbers of so many bits."""
    return 1 if bits <= 8 else 2 if bits <= 16 else 4


class TupleTable(NamedTuple):
    """The table from tuples of codes to features.

    Of single codes it has a bit for each that has a feature; of more a table of the pairs of the first two, then of the
    pairs of a pair's number and the next code.

    Attributes
    ----------
    ids : ndarray of shape (n,)
        The features in the order of the table.
    known : ndarray or None
        Of single codes whether each has a feature.
    pairs : list of PairTable
    """

    ids: NDArray[np.int32]
    known: NDArray[np.uint32] | None
    pairs: list[PairTable]

    @classmethod
    def of(cls, codes: Codes, ids: NDArray[np.int32], sizes: Sequence[int]) -> TupleTable:
        """The table of tuples of codes, each below its size."""
        if len(sizes) == 1:
            known = np.zeros(-(-sizes[0] // 32) * 32, dtype=np.uint32)
            known[codes[:, 0]] = 1
            return cls(ids[np.argsort(codes[:, 0])], known, [])
        tables: list[PairTable] = []
        place, n_first = (codes[:, 0], sizes[0]) if sizes else (np.arange(len(ids)), 1)
        for second, n_second in zip(codes.T[1:], sizes[1:], strict=True):
            pairs, place = np.unique(place * n_second + second, return_inverse=True)
            table = PairTable.of(pairs // n_second, pairs % n_second, n_first, n_second)
            place, n_first = table.place[place], len(pairs)
            tables.append(table)
        return cls(ids[_inverse(place)], None, tables)

    @property
    def is_run(self) -> bool:
        """Whether the features are some that follow one another, in any order."""
        return len(self.ids) > 0 and np.array_equal(np.sort(self.ids), self.ids.min() + np.arange(len(self.ids)))

    def add_to(self, file: RuntimeFile, *, as_run: bool) -> None:
        """Add the table; `as_run`: features are numbered from the first of the run on in the order of the table."""
        file.add_indices([self.ids.min()] if as_run else self.ids)
        if self.known is not None:
            counts = self.known.reshape(-1, 32).sum(axis=1)
            file.add("<u4", (self.known.reshape(-1, 32) << np.arange(32, dtype=np.uint32)).sum(axis=1))
            file.add("<u4", np.cumsum(counts) - counts)
        for table in self.pairs:
            table.add_to(file)


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
