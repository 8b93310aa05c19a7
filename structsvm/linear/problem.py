"""Training examples as rows of features: what the solvers of linear machines see."""

from __future__ import annotations

import numpy as np

from structsvm.checksum import checksum
from structsvm.kernel._kernels import Rows


class LinearProblem:
    """Rows and their labels.

    Parameters
    ----------
    rows : Rows
    y : ndarray of shape (n_samples,), int32
        Numbers of the labels.
    n_labels : int
    """

    is_exact = True
    formulation = {"rescaling": "margin", "penalty": "linear"}

    def __init__(self, rows: Rows, y, n_labels):
        self.rows, self.y, self.n_labels = rows, np.asarray(y, dtype=np.int32), n_labels

    @property
    def n_samples(self):
        return self.rows.n_rows

    @property
    def n_features(self):
        return self.rows.n_features

    def fingerprint(self):
        """A checksum that tells these training data from others."""
        data = self.rows.data
        parts = [data.data, data.indices, data.indptr] if self.rows.is_sparse else [data]
        return checksum([*parts, self.y, np.array([self.n_labels])])
