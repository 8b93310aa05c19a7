"""Encoded sequences with what is known of their labels."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from structsvm.features.ranges import take_ranges
from structsvm.oracles.chain import KnownLabels
from structsvm.shards.tokens import StoredTokens
from structsvm.tasks.common.examples import SHARED, Examples
from structsvm.tasks.common.selection.search import LEAST_EXAMPLES
from structsvm.tasks.sequence.labels import fragments

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from typing import TypeAlias

    from structsvm.arrays import Integers, MatrixLike
    from structsvm.features.columns import Columns

    # Sequences of tokens as users give them, or one matrix of all tokens.
    SequencesLike: TypeAlias = Columns | Iterable[object] | MatrixLike
    # The labels of each sequence, or its spans; or one flat collection of all labels.
    LabelsLike: TypeAlias = Columns | Iterable[object]
    # Labels as far as they are known: per sequence None, or per token None, a label or a collection of labels.
    AllowedLike: TypeAlias = Iterable[Collection[object] | None]
    # The same, checked: per sequence None, or an array (length, n_labels).
    Masks: TypeAlias = Sequence[NDArray[np.bool_] | None]
    # The labels that tokens may have, array (n_sets, n_labels), or their weights.
    LabelSets: TypeAlias = NDArray[np.bool_] | NDArray[np.float64]
    # A segment: start, stop, label.
    Span: TypeAlias = tuple[int, int, str]


# Tokens of a sequence on average, beyond which the ends of sentences are missing.
MOST_OF_SENTENCES = 300


@dataclass(frozen=True, eq=False)
class LabeledSequences(Examples):
    """Sequences of tokens with their labels.

    Attributes
    ----------
    tokens : Tokens or StoredTokens
    label_ids : ndarray of shape (n_tokens,), int32
        From n_labels on: the row of `sets` that tells what is known of the token's label.
    sets : ndarray of shape (n_sets, n_labels), bool or float64
        See `encode_known`.
    origin : ndarray of shape (n_sequences,), int, or None
        The sequence that each of `fragments` is of.
    """

    tokens: Any
    label_ids: NDArray[np.int32]
    sets: LabelSets = field(metadata=SHARED)
    origin: NDArray[np.intp] | None = None

    def take(self, chosen: NDArray[np.intp]) -> Self:
        return replace(
            self,
            tokens=self.tokens.take(chosen),
            label_ids=self.label_ids[take_ranges(self.tokens.offsets, chosen)[1]],
            origin=None if self.origin is None else self.origin[chosen],
            weight=None if self.weight is None else self.weight[chosen],
        )

    @property
    def is_stored(self) -> bool:
        """Whether the sequences are in shards."""
        return isinstance(self.tokens, StoredTokens)

    def in_memory(self) -> Self:
        """As many sequences as one shard may have, in memory."""
        tokens, label_ids, weight = self.tokens.in_memory(self.label_ids, self.weight)
        return replace(self, tokens=tokens, label_ids=label_ids, weight=weight)

    @property
    def known(self) -> NDArray[np.int32] | KnownLabels:
        """Labels as oracles take them: ids, or `KnownLabels` where some are known in part."""
        return KnownLabels(self.label_ids, self.sets) if self.has_unknown else self.label_ids

    @property
    def has_unknown(self) -> bool:
        return bool(len(self.sets) and (self.label_ids >= self.sets.shape[1]).any())

    @property
    def n_with_known(self) -> int:
        """The number of sequences with a token whose label is known."""
        known = np.flatnonzero(self.label_ids < self.sets.shape[1])
        return len(np.unique(np.searchsorted(self.tokens.offsets, known, side="right")))

    @property
    def share_known(self) -> float:
        """The share of the tokens whose labels are known."""
        return float((self.label_ids < self.sets.shape[1]).mean()) if self.has_unknown else 1.0

    @property
    def n_unknown(self) -> int:
        n_labels = self.sets.shape[1]
        says_nothing = np.append(np.zeros(n_labels, dtype=bool), (self.sets == 1.0).all(axis=1))
        return int(np.count_nonzero(says_nothing[self.label_ids])) if self.has_unknown else 0

    @property
    def groups(self) -> NDArray[np.intp] | None:
        return self.origin

    @property
    def output_ids(self) -> Integers | None:
        if not np.all(self.sets):
            return None  # sets of labels tell of others
        n_labels = self.sets.shape[1]
        return np.where(self.label_ids < n_labels, self.label_ids, -1) if self.has_unknown else self.label_ids

    @property
    def are_few_and_long(self) -> bool:
        """Whether sequences are as long as those of files in which the ends of sentences are missing."""
        n, n_tokens = len(self), len(self.label_ids)
        return 0 < n < LEAST_EXAMPLES and n_tokens > MOST_OF_SENTENCES * n

    @property
    def doubt(self) -> str | None:
        if self.are_few_and_long and not self.is_stored:
            return (
                f"{len(self)} sequence{'s' * (len(self) > 1)} of {len(self.label_ids) // len(self)} tokens on average: "
                'are the ends of sentences missing, such as blank lines in a file? sentence_end="." of read_columns '
                "(--sentence-end .) ends them after that token, sequence= (--sequence) with the value of a column"
            )
        return super().doubt

    def fragments(self) -> Self:
        """The runs of tokens whose labels are known."""
        tokens, label_ids, origin = fragments(self.tokens, self.label_ids, self.sets.shape[1])
        weight = None if self.weight is None else self.weight[origin]
        return replace(self, tokens=tokens, label_ids=label_ids, origin=origin, weight=weight)
