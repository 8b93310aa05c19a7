"""Training examples with a kernel: what the solvers of kernel machines see."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from structsvm._problem import BoundProblem
from structsvm.arrays import Floats, MatrixLike, checksum
from structsvm.features.matrices import is_sparse
from structsvm.kernel._kernels import Gram


class KernelProblem(BoundProblem):
    """Examples, their kernel and their labels, with losses and similarities of labels.

    Parameters
    ----------
    gram : Gram
    y : ndarray of shape (n_samples,), int32
        Indices of the true labels.
    n_labels : int
    loss : ndarray of shape (n_labels, n_labels), optional
        Delta(y_i, y); None: zero-one.
    attributes : ndarray or scipy sparse matrix of shape (n_labels, n_attributes), optional
        L of the joint kernel ``k(x, x') <L(y), L(y')>``; None: the identity.

    Attributes
    ----------
    similarity : scipy CSR matrix of shape (n_labels, n_labels), or None
        ``L L'``.
    examples : ndarray or CSR matrix of shape (n_samples, n_features)
        The examples as they came.
    n_before : int
        Examples at the beginning that are support patterns of earlier batches.
    """

    formulation = {"rescaling": "margin", "penalty": "linear"}

    def __init__(
        self,
        gram: Gram,
        y: ArrayLike,
        n_labels: int,
        *,
        loss: Floats | None = None,
        attributes: MatrixLike | None = None,
    ) -> None:
        super().__init__(gram.n_rows, gram.rows.n_features)
        self.gram, self.y, self.n_labels, self.loss = gram, np.asarray(y, dtype=np.int32), n_labels, loss
        self.similarity, self.examples = None, gram.rows.data
        if attributes is not None:
            from scipy.sparse import csr_array

            sparse = csr_array(attributes, dtype=np.float64)
            self.similarity = csr_array(sparse @ sparse.T)
            self.similarity.sort_indices()

    @property
    def offers(self) -> frozenset[str]:
        given = {"two classes": self.n_labels == 2, "zero-one loss": self.loss is None}
        given["independent labels"] = self.similarity is None
        return frozenset({"kernel"} | {name for name, is_so in given.items() if is_so})

    def fingerprint(self) -> int:
        """A checksum that identifies these training data, their losses and their kernel.

        Similarities of labels are in `structure_fingerprint` alone.
        """
        kernel = self.gram.kernel
        numbers = np.array([kernel.gamma, kernel.degree, kernel.coef0], dtype=np.float64)
        data = self.gram.rows.data
        parts = [data.data, data.indices, data.indptr] if is_sparse(data) else [data]
        parts += [self.y, numbers]
        if callable(kernel.name):  # a function has no name that outlives the process: what it returns tells
            some = np.arange(min(self.n_samples, 16))
            parts.append(kernel.block(self.gram.rows, some, self.gram.rows, some))
        else:
            parts.append(np.frombuffer(repr(kernel.name).encode(), dtype=np.uint8))
        return checksum(parts if self.loss is None else [*parts, self.loss])

    def structure_fingerprint(self) -> int:
        """A checksum of kernel, losses and similarities, whatever the data."""
        kernel = self.gram.kernel
        name = "" if callable(kernel.name) else kernel.name
        parts = [np.array([kernel.gamma, kernel.degree, kernel.coef0]), np.frombuffer(name.encode(), dtype=np.uint8)]
        if self.similarity is not None:
            parts += [self.similarity.data, self.similarity.indices, self.similarity.indptr]
        return checksum(parts if self.loss is None else [*parts, self.loss])
