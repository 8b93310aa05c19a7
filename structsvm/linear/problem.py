"""Training examples as rows of features: what the solvers of linear machines see."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from structsvm._problem import BoundProblem
from structsvm.arrays import checksum
from structsvm.features.matrices import is_sparse
from structsvm.kernel._kernels import Rows


class LinearProblem(BoundProblem):
    """Rows and their labels.

    Parameters
    ----------
    rows : Rows
    y : ndarray of shape (n_samples,), int32
        Indices of the labels.
    n_labels : int
    """

    formulation = {"rescaling": "margin", "penalty": "linear"}

    def __init__(self, rows: Rows, y: ArrayLike, n_labels: int) -> None:
        if n_labels * (rows.n_features + 1) >= 2**31:
            raise ValueError(f"{n_labels} labels x {rows.n_features} features are more than 2**31 - 1 weights")
        super().__init__(rows.n_rows, rows.n_features)
        self.rows, self.y, self.n_labels = rows, np.asarray(y, dtype=np.int32), n_labels

    @property
    def offers(self) -> frozenset[str]:
        is_dense = not (self.rows.is_sparse or self.rows.is_single)
        given = {"two classes": self.n_labels == 2, "dense rows": is_dense}
        return frozenset({"feature rows"} | {name for name, is_so in given.items() if is_so})

    def fingerprint(self) -> int:
        """A checksum that identifies these training data."""
        data = self.rows.data
        parts = [data.data, data.indices, data.indptr] if is_sparse(data) else [data]
        return checksum([*parts, self.y, np.array([self.n_labels])])
