"""Strings, contexts of their letters, alignments, and reference alignments in arrays that compiled code reads."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from structsvm.arrays import AnyArray

Indices = NDArray[np.int64]

# Codes of the operations b"M", b"X", b"Z", as in align.h; FREE is added to those that need not be kept.
PAIR, SKIP_X, SKIP_Z = range(3)
FREE = 4

_CODES = np.full(256, 255, dtype=np.uint8)
_CODES[list(b"MXZmxz")] = [PAIR, SKIP_X, SKIP_Z, PAIR + FREE, SKIP_X + FREE, SKIP_Z + FREE]


class Alignment(NamedTuple):
    """An alignment of two strings x and z, from letter x_start of x and z_start of z on.

    Attributes
    ----------
    x_start, z_start : int
        0 in global alignments.
    operations : bytes
        ``M`` a pair of letters, ``X`` a letter of x against a gap, ``Z`` a letter of z against a gap. In a reference
        alignment those in lower case are not assessed: losses ignore them, and completions need not keep them. Between
        two pairs, X comes before Z.
    """

    x_start: int
    z_start: int
    operations: bytes

    @property
    def codes(self) -> NDArray[np.uint8]:
        """The operations as an array of PAIR, SKIP_X and SKIP_Z; raises ValueError for other bytes."""
        return self.known & np.uint8(FREE - 1)

    @property
    def known(self) -> NDArray[np.uint8]:
        """`codes`, with FREE added to those that are not assessed."""
        codes = _CODES[np.frombuffer(self.operations, dtype=np.uint8)]
        if (codes == 255).any():
            raise ValueError(f"operations must be M, X, Z, m, x or z, got {self.operations!r:.80}")
        return codes

    def whole(self, m: int, n: int) -> Alignment:
        """The same alignment of strings of m and n letters, whole: letters outside stand against gaps."""
        i, j = self.stop
        before, after = b"X" * self.x_start + b"Z" * self.z_start, b"X" * (m - i) + b"Z" * (n - j)
        return Alignment(0, 0, before + self.operations + after)

    @property
    def is_assessed(self) -> bool:
        """Whether all operations are."""
        return self.operations.isupper()

    @property
    def assessed(self) -> NDArray[np.bool_]:
        """Bool array: which operations are pairs that losses assess."""
        return np.frombuffer(self.operations, dtype=np.uint8) == ord("M")

    @property
    def pairs(self) -> NDArray[np.int64]:
        """The pairs (index in x, index in z): int64 array (n_pairs, 2)."""
        return _cells(self)[self.codes == PAIR] - 1

    @property
    def stop(self) -> tuple[int, int]:
        """The indices in x and z just after the last aligned letters."""
        codes = self.codes
        return self.x_start + int((codes != SKIP_Z).sum()), self.z_start + int((codes != SKIP_X).sum())

    @classmethod
    def from_codes(cls, x_start: int, z_start: int, codes: NDArray[np.uint8]) -> Alignment:
        """The inverse of `known`."""
        return cls(int(x_start), int(z_start), np.frombuffer(b"MXZ?mxz", dtype=np.uint8)[codes].tobytes())


def _cells(alignment: Alignment) -> NDArray[np.int64]:
    """The cell (i, j) reached by each operation."""
    codes = alignment.codes
    steps = np.column_stack([codes != SKIP_Z, codes != SKIP_X])
    return np.cumsum(steps, axis=0) + np.array([alignment.x_start, alignment.z_start])


class Strings:
    """Strings of symbols, concatenated.

    Attributes
    ----------
    symbols : ndarray of int32
    offsets : ndarray of shape (n_strings + 1,), int64
    sources : ndarray of shape (n_strings,), int64
        Strings of one source, such as a list of words whose symbols depend on the example, have the same number.
    """

    def __init__(
        self, symbols: NDArray[np.int32], offsets: NDArray[np.int64], sources: NDArray[np.int64] | None = None
    ) -> None:
        self.symbols, self.offsets = symbols, offsets
        self.sources = np.arange(len(offsets) - 1) if sources is None else sources

    @classmethod
    def of(cls, arrays: Sequence[Sequence[int] | AnyArray], sources: NDArray[np.int64] | None = None) -> Strings:
        """From a list of integer arrays."""
        offsets = np.concatenate([[0], np.cumsum([len(a) for a in arrays])]).astype(np.int64)
        symbols = np.concatenate([np.asarray(a) for a in arrays]) if len(arrays) else np.empty(0, dtype=np.int32)
        return cls(np.ascontiguousarray(symbols, dtype=np.int32), offsets, sources)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, k: int) -> NDArray[np.int32]:
        return self.symbols[self.offsets[k] : self.offsets[k + 1]]


@dataclass(frozen=True)
class Context:
    """A value for each position of a string, by the mean of a scale over some of the letters around it.

    The scale is in integers, so that the value does not depend on the order of the sum.

    Parameters
    ----------
    name : str
        Name of the context in tables of weights.
    scale : tuple of int
        A number per symbol.
    offsets : tuple of int
        Positions of the letters, from that of the letter itself; those outside of the string are left out.
    limits : tuple of float
        Ascending; the value is the number of limits that the mean exceeds. Where no letter is left, it is the middle
        one.

    Examples
    --------
    >>> from structsvm.structures.alignments import Context, Strings
    >>> left = Context("left", scale=(0, 10), offsets=(-1,), limits=(5.0,))
    >>> left.values(Strings.of([[0, 1, 1, 0]])).tolist()
    [1, 0, 1, 1]
    """

    name: str
    scale: tuple[int, ...]
    offsets: tuple[int, ...]
    limits: tuple[float, ...]

    @property
    def size(self) -> int:
        """Number of values."""
        return len(self.limits) + 1

    def values(self, strings: Strings) -> NDArray[np.int64]:
        """The values at all letters of the strings: array like `strings.symbols`."""
        numbers = np.array(self.scale, dtype=np.int64)[strings.symbols]
        lengths = np.diff(strings.offsets)
        start, stop = (np.repeat(ends, lengths) for ends in (strings.offsets[:-1], strings.offsets[1:]))
        total, count = np.zeros((2, len(numbers)), dtype=np.int64)
        for offset in self.offsets:
            at = np.arange(len(numbers)) + offset
            inside = (start <= at) & (at < stop)
            total[inside] += numbers[at[inside]]
            count += inside
        found = sum((total > limit * count for limit in self.limits), np.zeros(len(numbers), dtype=np.int64))
        return np.where(count > 0, found, self.size // 2)


class References:
    """Pairs of strings with their reference alignments, and the decoys of each.

    Attributes
    ----------
    strings : Strings
    x, z : ndarrays of shape (n,), int64
        Indices of the strings.
    x_start, z_start : ndarrays of shape (n,), int64
    codes : ndarray of uint8
        The operations of all alignments, concatenated.
    assessed : ndarray of bool
        Whether each operation is a pair that losses assess.
    bounds : ndarray of shape (n + 1,), int64
        Start of each alignment's operations.
    decoys, decoy_bounds : ndarrays of int64
        Indices of the decoys, and the start of each example's.
    known : list of (ndarray of uint8, or None)
        Where columns are not assessed: the operations of both strings, whole, with FREE added to those that are free.
    """

    def __init__(
        self,
        strings: Strings,
        x: Indices,
        z: Indices,
        x_start: Indices,
        z_start: Indices,
        codes: NDArray[np.uint8],
        assessed: NDArray[np.bool_],
        bounds: Indices,
        decoys: Indices,
        decoy_bounds: Indices,
        known: Sequence[NDArray[np.uint8] | None],
    ) -> None:
        self.strings = strings
        self.x, self.z, self.x_start, self.z_start = x, z, x_start, z_start
        self.codes, self.assessed, self.bounds = codes, assessed, bounds
        self.decoys, self.decoy_bounds = decoys, decoy_bounds
        self.known = known

    @classmethod
    def of(
        cls,
        strings: Strings,
        pairs: Sequence[Sequence[int]] | AnyArray,
        alignments: Sequence[Alignment],
        decoys: Sequence[Sequence[int] | Indices] | None = None,
        known: Sequence[NDArray[np.uint8] | None] | None = None,
    ) -> References:
        """From pairs of string indices, with an `Alignment` and (unless None) a list of decoy indices per pair."""
        if len(pairs) != len(alignments):
            raise ValueError(f"there are {len(pairs)} pairs of strings and {len(alignments)} alignments")
        pairs = np.asarray(pairs, dtype=np.int64).reshape(-1, 2)
        decoys = [()] * len(pairs) if decoys is None else decoys
        if len(decoys) != len(pairs):
            raise ValueError(f"there are {len(pairs)} pairs of strings and {len(decoys)} lists of decoys")
        return cls(
            strings,
            pairs[:, 0].copy(),
            pairs[:, 1].copy(),
            np.array([a.x_start for a in alignments], dtype=np.int64),
            np.array([a.z_start for a in alignments], dtype=np.int64),
            np.concatenate([np.empty(0, np.uint8), *(a.codes for a in alignments)]),
            np.concatenate([np.empty(0, bool), *(a.assessed for a in alignments)]),
            np.concatenate([[0], np.cumsum([len(a.operations) for a in alignments])]).astype(np.int64),
            np.concatenate([np.empty(0, np.int64), *(np.asarray(d, dtype=np.int64) for d in decoys)]),
            np.concatenate([[0], np.cumsum([len(d) for d in decoys])]).astype(np.int64),
            [None] * len(pairs) if known is None else known,
        )

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, part: slice) -> References:
        start, stop, _ = part.indices(len(self))
        a, b = self.bounds[start], self.bounds[stop]
        c, d = self.decoy_bounds[start], self.decoy_bounds[stop]
        return References(
            self.strings,
            self.x[start:stop],
            self.z[start:stop],
            self.x_start[start:stop],
            self.z_start[start:stop],
            self.codes[a:b],
            self.assessed[a:b],
            self.bounds[start : stop + 1] - a,
            self.decoys[c:d],
            self.decoy_bounds[start : stop + 1] - c,
            self.known[start:stop],
        )

    def with_alignments(self, alignments: Sequence[Alignment]) -> References:
        """The same examples with other alignments."""
        return References.of(self.strings, self.pairs, alignments, self._decoy_lists(), self.known)

    @property
    def words(self) -> tuple[Indices, NDArray[np.int32]]:
        """The alignments in one array, and where each begins: its start, and its operations as `Alignment.known`."""
        bounds = self.bounds + 2 * np.arange(len(self.bounds))
        words = np.empty(bounds[-1], dtype=np.int32)
        is_code = np.ones(len(words), dtype=bool)
        for k, start in enumerate((self.x_start, self.z_start)):
            words[bounds[:-1] + k] = start
            is_code[bounds[:-1] + k] = False
        words[is_code] = self.codes + FREE * ((self.codes == PAIR) & ~self.assessed)
        return bounds, words

    def with_words(self, targets: tuple[Indices, NDArray[np.int32]]) -> References:
        """The same examples with the alignments of these `words`."""
        bounds, words = targets
        is_code = np.ones(len(words), dtype=bool)
        is_code[bounds[:-1]] = is_code[bounds[:-1] + 1] = False
        codes = words[is_code].astype(np.uint8)
        found = self.with_codes(codes & np.uint8(FREE - 1), codes == PAIR, bounds - 2 * np.arange(len(bounds)))
        found.x_start, found.z_start = (words[bounds[:-1] + k].astype(np.int64) for k in (0, 1))
        return found

    def with_codes(self, codes: NDArray[np.uint8], assessed: NDArray[np.bool_], bounds: Indices) -> References:
        """The same examples, and starts, with these operations."""
        found = copy.copy(self)
        found.codes, found.assessed, found.bounds = codes, assessed, bounds.astype(np.int64)
        return found

    def chosen(self, part: Sequence[int] | Indices) -> References:
        """The examples of these indices."""
        decoys = self._decoy_lists()
        return References.of(
            self.strings,
            self.pairs[part],
            [self.alignment(k) for k in part],
            None if decoys is None else [decoys[k] for k in part],
            [self.known[k] for k in part],
        )

    def _decoy_lists(self) -> list[Indices] | None:
        if len(self.decoys) == 0:
            return None
        return [self.decoys[a:b] for a, b in pairwise(self.decoy_bounds)]

    @property
    def pairs(self) -> Indices:
        """The indices of the strings, array (n, 2)."""
        return np.column_stack([self.x, self.z])

    @property
    def is_whole(self) -> bool:
        """Whether all columns are assessed."""
        return all(known is None for known in self.known)

    @property
    def has_unknown(self) -> bool:
        """Whether there are examples without an alignment, of which nothing is known."""
        return bool((np.diff(self.bounds) == 0).any())

    def alignment(self, k: int) -> Alignment:
        """The reference alignment of example k."""
        a, b = self.bounds[k], self.bounds[k + 1]
        free = FREE * ((self.codes[a:b] == PAIR) & ~self.assessed[a:b])
        return Alignment.from_codes(self.x_start[k], self.z_start[k], self.codes[a:b] + free)

    def core(self) -> tuple[NDArray[np.int32], NDArray[np.int32], Indices]:
        """The assessed pairs, counted from 1: ``(letters of x, letters of z, start of each example's)``."""
        bounds = np.concatenate([[0], np.cumsum(self.assessed)])[self.bounds].astype(np.int64)
        cells = []
        for other, start in ((SKIP_Z, self.x_start), (SKIP_X, self.z_start)):
            steps = np.concatenate([[0], np.cumsum(self.codes != other)])
            place = steps[1:] + np.repeat(start - steps[self.bounds[:-1]], np.diff(self.bounds))
            cells.append(place[self.assessed].astype(np.int32))
        return cells[0], cells[1], bounds

    def check_assessed(self) -> None:
        """Raise ValueError if an example has no assessed pair."""
        assessed = np.concatenate([[0], np.cumsum(self.assessed)])[self.bounds]
        bare = np.flatnonzero(np.diff(assessed) == 0)
        if len(bare):
            raise ValueError(f"example {bare[0]}: its reference alignment has no pair that the loss assesses")

    def decoy_pairs(self) -> Indices:
        """Pairs of each x and its decoys, as string indices (n_decoys, 2)."""
        return np.column_stack([np.repeat(self.x, np.diff(self.decoy_bounds)), self.decoys])

    def arrays(self) -> list[AnyArray]:
        """All arrays that identify these examples: of alignments that are known in part, what is known."""
        whole = np.array([known is None for known in self.known], dtype=bool)
        codes = np.repeat(whole, np.diff(self.bounds))
        parts = [self.bounds] if whole.all() else [whole, *(known for known in self.known if known is not None)]
        return [
            self.strings.symbols,
            self.strings.offsets,
            *(self.x, self.z, self.x_start[whole], self.z_start[whole], self.codes[codes], self.assessed[codes]),
            *parts,
            *(self.decoys, self.decoy_bounds),
        ]
