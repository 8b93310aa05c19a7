"""`Tokens` whose arrays are files, read shard by shard."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from structsvm.arrays import checksum
from structsvm.features.ranges import take_ranges
from structsvm.features.tokens import Tokens
from structsvm.shards.spread import cluster_client, spread
from structsvm.shards.storage import Vector

if TYPE_CHECKING:
    from structsvm.arrays import AnyArray


@dataclass(frozen=True, slots=True, eq=False)
class StoredTokens(Tokens):
    """Sequences of sparse tokens in the files of a folder.

    Attributes
    ----------
    bounds : int64 array
        Begins of the shards: sequences ``bounds[k]:bounds[k + 1]`` are visited one after another.
    max_memory : int
        Bytes of a shard at most.
    checksums : int64 array
        Checksum of each shard, when it was made.
    by_sequence, by_token, by_entry : tuple of Vector
        The files that have numbers per sequence: starts; per token: starts and label ids; and per entry of a token:
        indices, and values if there are some.
    """

    bounds: NDArray[np.int64] = field(kw_only=True)
    max_memory: int = field(kw_only=True)
    checksums: NDArray[np.int64] = field(kw_only=True)
    by_sequence: tuple[Vector, ...] = field(kw_only=True)
    by_token: tuple[Vector, ...] = field(kw_only=True)
    by_entry: tuple[Vector, ...] = field(kw_only=True)

    def __getitem__(self, sequences: slice) -> Tokens:
        self.check_files()
        i, j, step = sequences.indices(len(self))
        part = super(StoredTokens, self).__getitem__(sequences)
        return part if step != 1 else StoredRun(*_fields(part), whole=Tokens(*_fields(self)), run=(i, j))

    @property
    def label_ids(self) -> NDArray[np.int32]:
        found: NDArray[np.int32] = self.by_token[1].array
        return found

    def check_files(self) -> None:
        """ValueError, naming it, if a file has become shorter since it was mapped."""
        for vector in (*self.by_sequence, *self.by_token, *self.by_entry):
            vector.check()

    def checksums_now(self, *, locally: bool = False) -> NDArray[np.int64]:
        """Checksum of each shard as its files are now; computed on the cluster, if there is one, or `locally`."""
        self.check_files()
        runs = list(pairwise(self.bounds.tolist()))
        arrays = self.offsets, *([vector.array for vector in vectors] for vectors in (self.by_token, self.by_entry))
        if not locally and cluster_client() is not None:
            return np.array(spread(_checksum, runs, *arrays))
        found = []
        for run in runs:
            found.append(_checksum(run, *arrays))
            if found[-1] >= 0:
                self.release(*run)
        return np.array(found)

    def release(self, start: int, stop: int) -> None:
        """Release the memory of sequences start .. stop - 1; ValueError as `check_files`."""
        self.check_files()
        a, b = self.offsets[[start, stop]].tolist()
        first, last = self.indptr[[a, b]].tolist()
        for vector in self.by_entry:
            vector.release(first, last)
        for vector in self.by_token:
            vector.release(a, b)

    def parts(self) -> Iterator[Tokens]:
        for start, stop in pairwise(self.bounds.tolist()):
            yield self[start:stop]
            self.release(start, stop)

    def fingerprint(self, labels: NDArray[np.int32]) -> int:
        self.check_files()

        def arrays() -> Iterator[AnyArray]:
            yield labels
            yield self.offsets
            for vector in self.by_entry:
                for start, stop in pairwise(self.indptr[self.offsets[self.bounds]].tolist()):
                    yield vector.array[start:stop]
                    vector.release(start, stop)

        return checksum(arrays())

    def take(self, sequences: Any) -> Tokens:
        self.check_files()
        index = np.asarray(sequences)
        index = np.flatnonzero(index) if index.dtype == bool else index
        if (np.diff(index) <= 0).any():
            return super(StoredTokens, self).take(index)
        found = []
        for start, stop in pairwise(self.bounds.tolist()):
            chosen = index[np.searchsorted(index, start) : np.searchsorted(index, stop)]
            found.append(self[start:stop].take(chosen - start))
            self.release(start, stop)
        return Tokens.joined(found)

    def in_memory(self, label_ids: Any, weight: Any) -> tuple[Any, Any, Any]:
        """As many sequences as a shard may have, drawn if there are more, with their labels and weights."""
        n, size = len(self), sum(vector.array.nbytes for vector in (*self.by_token, *self.by_entry))
        k = min(n, max(n * self.max_memory // max(size, 1), 1))
        chosen = np.arange(n) if k == n else np.sort(np.random.default_rng(0).choice(n, k, replace=False))
        rows = take_ranges(self.offsets, chosen)[1]
        return self.take(chosen), label_ids[rows], None if weight is None else weight[chosen]

    def set_sections(self, problem: Any) -> None:
        """Let training on these, bound by an oracle, go from shard to shard."""
        self.release(0, len(self))
        if problem.groups is None:  # a sequence is an example
            problem.in_sections(self.bounds, self.release, self.check_files)
            return

        def leave(start: int, stop: int) -> None:
            self.check_files()
            self.release(*np.searchsorted(self.offsets, [start, stop]).tolist())

        problem.in_sections(self.offsets[self.bounds], leave, self.check_files)


@dataclass(frozen=True, slots=True, eq=False)
class StoredRun(Tokens):
    """A run of sequences of `StoredTokens`, which travels as that: where the files are, and which sequences."""

    whole: Tokens = field(kw_only=True)
    run: tuple[int, int] = field(kw_only=True)

    def __reduce__(self) -> Any:
        return _run_of, (self.whole, *self.run)


def _run_of(whole: Tokens, start: int, stop: int) -> Tokens:
    return whole[start:stop]


def _fields(tokens: Tokens) -> tuple[Any, ...]:
    return tokens.offsets, tokens.indptr, tokens.indices, tokens.values, tokens.n_features


def _checksum(run: tuple[int, int], offsets: Any, by_token: Any, by_entry: Any) -> int:
    """The checksum of a run of sequences; -1 if its tokens or entries are not where they should be."""
    i, j = run
    try:
        a, b = offsets[[i, j]].tolist()
        first, last = by_token[0][[a, b]].tolist()
    except IndexError:
        return -1
    of_tokens = by_token[0][a : b + 1], by_token[1][a:b]
    return checksum([offsets[i : j + 1], *of_tokens, *(array[first:last] for array in by_entry)])


def shard_bounds(sizes: NDArray[np.int64], most: float) -> NDArray[np.int64]:
    """Bounds of runs of sequences that take no more than `most` together, but for a sequence that alone does."""
    ends, bounds = np.cumsum(sizes), [0]
    while bounds[-1] < len(sizes):
        before = ends[bounds[-1] - 1] if bounds[-1] else 0
        bounds.append(max(int(np.searchsorted(ends, before + most, side="right")), bounds[-1] + 1))
    return np.array(bounds, dtype=np.int64)
