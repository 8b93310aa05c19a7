"""Probabilities of chunks: of all labellings in which exactly a chunk is read, at its place and of its type.

A chunk is `(start, stop, type)`; `share` is the probability of all labellings that have allowed labels alone, given by
a mask (length, n_labels).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import numpy as np

from structsvm.metrics._schemes import OUTSIDE, Part

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from structsvm.metrics._schemes import Scheme

# Roles after which a chunk goes on, and roles with which it does: `structsvm.metrics._schemes.chunks_of`.
OPEN, INSIDE = ("B", "I"), ("I", "E")


def parts_by(scheme: Scheme | None, labels: Sequence[Hashable]) -> list[Part]:
    """The role and the type of each label; without a scheme, each run of one label but O is a chunk of that type."""
    if scheme is not None:
        return [scheme.part(label) or OUTSIDE for label in labels]
    return [OUTSIDE if label == "O" else Part("I", label) for label in labels]  # type: ignore[arg-type]


class Chances(ABC):
    """Probabilities of the chunks of one sequence.

    Parameters
    ----------
    share : callable
    length : int
        The number of tokens.
    n_labels : int
    """

    def __init__(self, share: Callable[[NDArray[np.bool_]], float], length: int, n_labels: int) -> None:
        self.share, self.length, self.n_labels = share, length, n_labels

    def anything(self) -> NDArray[np.bool_]:
        """A mask that allows all labels."""
        return np.ones((self.length, self.n_labels), dtype=bool)

    @property
    @abstractmethod
    def types(self) -> Sequence[str]:
        """The types of chunks, sorted."""

    @abstractmethod
    def of(self, chunk: tuple[int, int, str]) -> float:
        """The probability of a chunk."""

    @abstractmethod
    def of_first(self, start: int, kind: str) -> float:
        """The probability that a chunk of a type begins at a token."""

    @abstractmethod
    def of_run(self, start: int, stop: int, kind: str) -> float:
        """A bound of the probability of all chunks that have these tokens, the first of them at the begin."""

    @abstractmethod
    def may_have(self, kind: str) -> NDArray[np.intp]:
        """The labels that tokens of chunks of a type may have."""

    def likely(self, marginals: NDArray[np.float64], least: float) -> Iterator[tuple[int, int, str, float]]:
        """Yield all chunks that have a probability of at least `least`, with it.

        A chunk is no likelier than its begin, than any of its tokens is to be one of its type, and than all of them
        together are: the longer, the less likely. So only few sums are taken.

        Parameters
        ----------
        marginals : array (length, n_labels)
            The probability of each label at each token.
        """
        for kind in self.types:
            inside = marginals[:, self.may_have(kind)].sum(axis=1) >= least
            for start in np.flatnonzero(inside).tolist():
                if self.of_first(start, kind) < least:
                    continue
                for stop in range(start + 1, self.length + 1):
                    if not inside[stop - 1] or self.of_run(start, stop, kind) < least:
                        break
                    chance = self.of((start, stop, kind))
                    if chance >= least:
                        yield start, stop, kind, chance


class ChancesOfLabels(Chances):
    """Probabilities of chunks of labels, which the neighbours decide: whether a chunk goes on after a token or not."""

    def __init__(
        self, share: Callable[[NDArray[np.bool_]], float], length: int, n_labels: int, parts: Sequence[Part]
    ) -> None:
        super().__init__(share, length, n_labels)
        self.parts = parts

    @property
    def types(self) -> Sequence[str]:
        return sorted({part.kind for part in self.parts if part.role != "O"}, key=str)

    def may_have(self, kind: str) -> NDArray[np.intp]:
        return np.flatnonzero(self._roles(kind, "BIES"))

    def _roles(self, kind: str, roles: Sequence[str]) -> NDArray[np.bool_]:
        """The labels of a type that have one of these roles."""
        return np.array([part.role in roles and part.role != "O" and part.kind == kind for part in self.parts])

    def _run(self, start: int, stop: int, kind: str) -> NDArray[np.bool_]:
        """The labellings whose labels from start to stop belong together."""
        opens, inside = self._roles(kind, OPEN), self._roles(kind, INSIDE)
        mask = self.anything()
        mask[start:stop] = self._roles(kind, "BIES")
        mask[start : stop - 1] &= opens
        mask[start + 1 : stop] &= inside
        return mask

    def _before(self, mask: NDArray[np.bool_], start: int, kind: str) -> NDArray[np.bool_]:
        """The labellings of a mask in which the chunk at `start` begins before."""
        before = mask.copy()
        before[start - 1] &= self._roles(kind, OPEN)
        before[start] &= self._roles(kind, INSIDE)
        return before

    def of_run(self, start: int, stop: int, kind: str) -> float:
        return self.share(self._run(start, stop, kind))

    def of_first(self, start: int, kind: str) -> float:
        mask = self._run(start, start + 1, kind)
        return self.share(mask) - (self.share(self._before(mask, start, kind)) if start > 0 else 0.0)

    def of(self, chunk: tuple[int, int, str]) -> float:
        """The probability of a chunk.

        With M the labellings whose labels from start to stop belong together, A those of M in which the chunk begins
        before start, and B those in which it goes on after stop: P(M) - P(A) - P(B) + P(A and B), each of which is a
        sum over labellings that only have some labels at each token.
        """
        start, stop, kind = chunk
        mask = self._run(start, stop, kind)
        found = self.share(mask)
        if start > 0:
            found -= self.share(self._before(mask, start, kind))
        if stop < self.length:
            after = mask.copy()
            after[stop] &= self._roles(kind, INSIDE)
            after[stop - 1] &= self._roles(kind, OPEN)
            found -= self.share(after)
            if start > 0:
                found += self.share(self._before(after, start, kind))
        return min(max(found, 0.0), 1.0)


class ChancesOfSegments(Chances):
    """Probabilities of segments, each of which has tags of its own: of the first, inside, last and single token."""

    def __init__(
        self, share: Callable[[NDArray[np.bool_]], float], length: int, n_labels: int, tags: Mapping[str, Sequence[int]]
    ) -> None:
        super().__init__(share, length, n_labels)
        self.tags = tags

    @property
    def types(self) -> Sequence[str]:
        return sorted(self.tags)

    def may_have(self, kind: str) -> NDArray[np.intp]:
        return np.unique(np.array(self.tags[kind], dtype=np.intp))

    def _only(self, start: int, rows: Sequence[Sequence[int]]) -> float:
        """The probability that tokens from `start` on have one of these tags each."""
        mask = self.anything()
        for t, ids in enumerate(rows, start):
            mask[t] = False
            mask[t, list(ids)] = True
        return self.share(mask)

    def of_first(self, start: int, kind: str) -> float:
        first, _, _, single = self.tags[kind]
        return self._only(start, [[first, single]])

    def of_run(self, start: int, stop: int, kind: str) -> float:
        first, inside, last, single = self.tags[kind]
        if stop == start + 1:
            return self._only(start, [[first, single]])
        return self._only(start, [[first], *[[inside]] * (stop - start - 2), [inside, last]])

    def of(self, chunk: tuple[int, int, str]) -> float:
        start, stop, kind = chunk
        first, inside, last, single = self.tags[kind]
        ids = [single] if stop == start + 1 else [first, *[inside] * (stop - start - 2), last]
        return self._only(start, [[k] for k in ids])
