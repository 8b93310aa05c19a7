"""Encoded sentences with what is known of their trees."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from structsvm.features.ranges import take_ranges
from structsvm.tasks.common.examples import Examples

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from typing import TypeAlias

    from structsvm.oracles.dependency._dependency import DependencyProblem
    from structsvm.oracles.dependency.arcs import DependencyOracle
    from structsvm.protocol import Penalty, Rescaling
    from structsvm.structures.dependencies import DependencyTree

    # Head and label of each word of a sentence; and what users give, where None is what is not known.
    Arcs: TypeAlias = list[tuple[int, str]]
    ArcLike: TypeAlias = Sequence[int | SupportsIndex | str | None]
    ArcsLike: TypeAlias = DependencyTree | Collection[ArcLike]


@dataclass(frozen=True, eq=False)
class ParsedSentences(Examples):
    """Sentences with their trees.

    Attributes
    ----------
    codes : ndarray of shape (n_words, n_columns)
        What templates see of words.
    offsets : ndarray of shape (n_sentences + 1,), int64
    outputs : ndarray of shape (n_words, 2), int32
        Heads and label ids, -1 where they are not known.
    """

    codes: NDArray[np.int32]
    offsets: NDArray[np.int64]
    outputs: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def take(self, chosen: NDArray[np.intp]) -> Self:
        offsets, words = take_ranges(self.offsets, chosen)
        weight = None if self.weight is None else self.weight[chosen]
        return replace(self, codes=self.codes[words], offsets=offsets, outputs=self.outputs[words], weight=weight)

    @property
    def has_unknown(self) -> bool:
        return bool((self.outputs < 0).any())

    @property
    def n_unknown(self) -> int:
        """The number of words of which the head, or the label, is not known."""
        return int((self.outputs < 0).any(axis=1).sum())

    @property
    def whole(self) -> NDArray[np.intp]:
        """The indices of the sentences whose trees are fully known."""
        unknown = np.concatenate([[0], np.cumsum((self.outputs < 0).any(axis=1))])
        return np.flatnonzero(np.diff(unknown[self.offsets]) == 0)

    def fully_known(self) -> Self:
        return self.take(self.whole)

    def bound(
        self, oracle: DependencyOracle, *, rescaling: Rescaling | None = "margin", penalty: Penalty | None = "linear"
    ) -> DependencyProblem:
        """A problem of the sentences."""
        return oracle.bind((self.codes, self.offsets), self.outputs, rescaling=rescaling, penalty=penalty)
