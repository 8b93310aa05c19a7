"""The weights that a large model has: full rows for frequent features, lists for rare ones.

The joint feature has a weight for every feature and every node, and so have small models. Of 100,000
features and 10,000 classes it would be 10^9. Then the features that occur in the most documents get full rows, as
many as fit, and each of the others only the weights of those attributes that it was seen with: of the classes, and
their ancestors, of the training documents that it occurs in. All other weights are zero, and training is exact for
the model that is left. A feature that occurs in no training document has no weights.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from structsvm.features.dense import DenseRows, padded
from structsvm.features.tokens import Tokens

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from structsvm.arrays import Integers
    from structsvm.oracles._taxonomy import OutputAttributes


class WeightRows:
    """The rows of a model's weights.

    Attributes
    ----------
    row : ndarray of shape (n_features,), int32, or None
        Row of each input feature, -1 for none. None: the features' own numbers, all of them full.
    n_rows : int
    lists : (int64 array, int32 array) or None
        Attributes of the last rows; see `TaxonomyOracle`.
    """

    def __init__(self, n_rows: int, row: NDArray[np.int32] | None = None, lists: Any = None) -> None:
        self.n_rows, self.row, self.lists = n_rows, row, lists

    @classmethod
    def fit(
        cls, documents: Tokens | DenseRows, labels: Integers, attributes: OutputAttributes, max_weights: int
    ) -> Self:
        """For training documents.

        Parameters
        ----------
        documents : Tokens or DenseRows
        labels : ndarray of shape (n_documents,), int
            Ids of their labels.
        attributes : OutputAttributes
        max_weights : int
            Full rows are made while all weights together are no more than this.
        """
        n_features, stride = documents.n_features, padded(attributes.n_attributes)
        if n_features * stride <= max_weights:
            return cls(n_features)
        from scipy.sparse import csr_array

        documents = as_tokens(documents)
        present = np.ones(len(documents.indices), dtype=np.int32)
        occurs = csr_array((present, documents.indices, documents.indptr), shape=(len(documents), n_features))
        used, number = np.unique(labels, return_inverse=True)
        label = csr_array((np.ones(len(labels), np.int32), number, np.arange(len(labels) + 1)))
        columns = [np.flatnonzero(attributes.vector(k)) for k in used]
        nonzero = csr_array(
            (np.ones(sum(map(len, columns)), np.int32), np.concatenate(columns), np.cumsum([0, *map(len, columns)])),
            shape=(len(used), attributes.n_attributes),
        )
        seen = csr_array(occurs.T @ label @ nonzero)
        seen.sort_indices()

        frequency = np.bincount(documents.indices, minlength=n_features)
        order = np.argsort(-frequency, kind="stable")[: np.count_nonzero(frequency)]
        sizes = np.diff(seen.indptr)[order].astype(np.int64)
        # Weights if the first m rows are full: m * stride and the lists of the others.
        total = stride * np.arange(len(order) + 1) + np.concatenate([[0], np.cumsum(sizes[::-1])])[::-1]
        n_full = int(np.flatnonzero(total <= max_weights).max(initial=0))
        row = np.full(n_features, -1, dtype=np.int32)
        row[order] = np.arange(len(order))
        rest = seen[order[n_full:]]
        return cls(len(order), row, (rest.indptr.astype(np.int64), rest.indices.astype(np.int32)))

    def encode(self, documents: Tokens | DenseRows) -> Tokens | DenseRows:
        """Documents whose features are rows; features without a row are left out."""
        if self.row is None:
            return documents
        documents = as_tokens(documents)
        rows = self.row[documents.indices]
        keep = rows >= 0
        owner = np.repeat(np.arange(len(documents)), np.diff(documents.indptr))[keep]
        order = np.lexsort((rows[keep], owner))
        return Tokens(
            documents.offsets,
            np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=len(documents)))]).astype(np.int64),
            rows[keep][order],
            None if documents.values is None else documents.values[keep][order],
            self.n_rows,
        )


def as_tokens(documents: Tokens | DenseRows) -> Tokens:
    """Documents as `Tokens`."""
    return documents.tokens() if isinstance(documents, DenseRows) else documents
