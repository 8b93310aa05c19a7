"""Encoded documents with what is known of their labels."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Self, TypeAlias

import numpy as np

from structsvm.features.dense import DenseRows
from structsvm.oracles.taxonomy import Candidates
from structsvm.shards.tokens import StoredTokens
from structsvm.tasks.common.examples import SHARED, LabeledRows
from structsvm.tasks.common.labels import summed

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from structsvm.arrays import Integers, MatrixLike
    from structsvm.features.tokens import Tokens
    from structsvm.tasks.common.labels import Not
    from structsvm.tasks.taxonomy.shards import DocumentShards

    # Texts, or rows of numbers.
    DocumentsLike: TypeAlias = "MatrixLike | DocumentShards"
    # Per document a label, labels of which it has one, a dict of their weights, the levels of a label, or labels
    # that are wrong.
    KnownLabels: TypeAlias = "ArrayLike | Sequence[Hashable | Collection[Hashable] | Not]"
    # Ids of labels, one of which is a document's, or their weights.
    IdSet: TypeAlias = "Integers | dict[int, float]"


@dataclass(frozen=True, eq=False)
class Documents(LabeledRows):
    """Documents as rows, with one label each, or a set of labels one of which is right.

    Attributes
    ----------
    label_ids : ndarray of shape (n_documents,), int
        From n_labels on: the document's set.
    n_labels : int
    sets : list of ndarray or dict
        Ids of labels; see `known_labels`.
    """

    n_labels: int = field(metadata=SHARED)
    sets: Sequence[IdSet] = field(default=(), metadata=SHARED)

    @property
    def is_stored(self) -> bool:
        return isinstance(self.rows, StoredTokens)

    def in_memory(self) -> Self:
        """As many documents as one shard may have, in memory."""
        rows, label_ids, weight = self.rows.in_memory(self.label_ids, self.weight)
        return replace(self, rows=rows, label_ids=label_ids, weight=weight)

    @property
    def output_ids(self) -> Integers | None:
        if not self.has_unknown:
            return self.label_ids
        if self.n_unknown < np.count_nonzero(self.label_ids >= self.n_labels):
            return None  # sets of labels tell of others
        return np.where(self.label_ids < self.n_labels, self.label_ids, -1)

    @property
    def has_unknown(self) -> bool:
        return bool(len(self.label_ids)) and int(self.label_ids.max()) >= self.n_labels

    @property
    def n_unknown(self) -> int:
        open_sets = np.array([*[False] * self.n_labels, *(len(own) == self.n_labels for own in self.sets)], dtype=bool)
        return int(np.count_nonzero(open_sets[self.label_ids])) if self.has_unknown else 0

    def fully_known(self) -> Self:
        return self.take(np.flatnonzero(self.label_ids < self.n_labels)) if self.has_unknown else self

    @property
    def known(self) -> Integers | Candidates:
        """Labels as the oracle takes them: ids, or `Candidates` where some are sets."""
        if not self.has_unknown:
            return self.label_ids
        return Candidates.of([*([k] for k in range(self.n_labels)), *self.sets], self.label_ids)

    def merged(self) -> Self:
        """The documents with equal ones merged, in an order that depends on them alone."""
        total = summed(zip(self.label_ids.tolist(), bytes_of(self.rows)), self.weight)
        chosen = [total[key] for key in sorted(total)]
        places = np.array([first for first, _ in chosen])
        return replace(self.take(places), weight=np.array([weight for _, weight in chosen]))


def bytes_of(documents: Tokens | DenseRows) -> list[bytes]:
    """For each document, bytes in which equal ones are equal: indices and values of what is not zero."""
    if isinstance(documents, DenseRows):
        if documents.values.all():
            return documents.values.view(f"V{documents.values[0].nbytes}").ravel().tolist()
        documents = documents.tokens()
    bounds, indices = (4 * documents.indptr).tolist(), documents.indices.tobytes()
    values = b"" if documents.values is None else documents.values.tobytes()
    return [indices[a:b] + values[a:b] for a, b in pairwise(bounds)]
