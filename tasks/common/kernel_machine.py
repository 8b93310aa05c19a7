"""Kernel machines of labels: support patterns with a coefficient per label, in whatever task."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from structsvm.kernel._kernels import KERNELS, Gram, Kernel, Rows
from structsvm.kernel.problem import KernelProblem

# Kernel values that a block of predictions takes at a time.
BLOCK_VALUES = 1 << 20


class KernelMachine:
    """Scores ``S(x, y) = sum_i beta_i^y k(x_i, x) + b_y`` of labels.

    With output attributes these are what ``sum_z <L(y), L(z)> S(x, z)`` is made of.

    Attributes
    ----------
    n_labels : int
    kernel : Kernel
    loss, attributes : as `KernelProblem` takes them
    support : ndarray of shape (n_vectors,), int64
        Indices of the support patterns in the training data; -1 for those of earlier batches.
    vectors : ndarray or CSR matrix of shape (n_vectors, n_features)
        The support patterns themselves; (0, n_features) for a precomputed kernel.
    coef : csr_array of shape (n_labels, n_vectors), float64
        beta.
    intercept : ndarray of shape (n_labels,), float64
        b, 0 for most machines.
    support_labels : ndarray of shape (n_vectors,), int32
        Label ids of the support patterns.
    box : ndarray of shape (n_vectors,), float64
        C of each support pattern.
    n_kernel : int
        Kernel values computed by training, the certificate's included.
    hit_rate : float
        Share of the rows of support patterns that training found in its cache.
    """

    def __init__(self, n_labels: int, kernel: Kernel, *, loss: Any = None, attributes: Any = None) -> None:
        self.n_labels, self.kernel, self.loss, self.attributes = n_labels, kernel, loss, attributes
        self.n_kernel, self.hit_rate = 0, 1.0
        self.support = np.empty(0, dtype=np.int64)
        self.intercept = np.zeros(n_labels)

    @property
    def n_features(self) -> Any:
        return self.vectors.shape[1]

    # ---- training -------------------------------------------------------------------------------

    def check_kernel(self, params: Any, X: Any) -> None:
        """Raise ValueError if parameters ask for another kernel; gamma="scale" stays that of the first data."""
        wanted, mine = kernel_of(params, X), self.kernel
        gamma = mine.gamma if params.gamma == "scale" else wanted.gamma
        if (wanted.name, gamma, wanted.degree, wanted.coef0) != (mine.name, mine.gamma, mine.degree, mine.coef0):
            raise ValueError(
                "training began with another kernel: set 'kernel' and its parameters back, or train a new model"
            )

    def problem(self, X: Any, label_ids: Any) -> Any:
        """The problem of these examples."""
        gram = Gram(self.kernel, Rows(precise(self.kernel, X)))
        return KernelProblem(gram, label_ids, self.n_labels, loss=self.loss, attributes=self.attributes)

    def problem_around(self, X: Any, label_ids: Any, sample_weight: Any, C: Any) -> tuple[Any, Any, Any]:
        """The problem of the support patterns so far and a batch behind them.

        Returns
        -------
        problem, weight, base
            The `KernelProblem`, its rows' factors on C, and the point to start from, None for 0.
        """
        weight, base, n = sample_weight, None, len(self.support)
        if n > 0:
            X = stack(self.vectors, X)
            label_ids = np.concatenate([self.support_labels, label_ids])
            if C is not None:
                weight = np.ones(len(label_ids) - n) if sample_weight is None else sample_weight
                weight = np.concatenate([self.box / C, weight])
            coef = self.coef.T.tocoo()
            base = (np.arange(n), coef.row, coef.col, coef.data)
        problem = self.problem(X, label_ids)
        problem.n_before = n
        return problem, weight, base

    def learn(self, run: Any) -> None:
        """Set support patterns and coefficients to those of a run; those of earlier batches lose their index."""
        first, X = run.problem.n_before, run.problem.gram.rows.data
        vectors = run.support_vectors
        members, slots, labels, beta = vectors.members, vectors.slots, vectors.labels, vectors.beta
        order = np.argsort(members)
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        self.support = members[order]
        self.vectors = X[:0] if self.kernel.name == "precomputed" else X[self.support]
        self.coef = csr_array((beta, (labels, place[slots])), shape=(self.n_labels, len(members)))
        self.intercept = run.intercept
        self.support_labels = run.problem.y[self.support]
        self.box = np.ones(len(members)) if run.C is None else run.C[self.support]
        self.support = np.where(self.support < first, -1, self.support - first)
        self.n_kernel, self.hit_rate = int(run.problem.gram.n_values), float(run.state.cache.hit_rate)

    # ---- prediction -----------------------------------------------------------------------------

    def scores(self, X: Any) -> Iterator[Any]:
        """Yield ``(first, scores)`` of blocks of rows: float64 arrays (rows of the block, n_labels)."""
        # The columns of a precomputed kernel are training examples.
        precomputed = self.kernel.name == "precomputed"
        vectors, columns = Rows(self.vectors), self.support if precomputed else np.arange(len(self.support))
        size = max(1, BLOCK_VALUES // max(1, len(columns)))
        for first in range(0, X.shape[0], size):
            part = Rows(alike(X[first : first + size], self.vectors))
            values = self.kernel.block(part, np.arange(part.n_rows), vectors, columns)
            yield first, (self.coef @ values.T.astype(np.float64)).T + self.intercept

    def decision_function(self, X: Any) -> Any:
        """Scores of all labels: array (n_samples, n_labels)."""
        out = np.empty((X.shape[0], self.n_labels))
        for first, scores in self.scores(X):
            out[first : first + len(scores)] = scores
        return out

    def predict_ids(self, X: Any) -> NDArray[np.int64]:
        """Ids of the labels of highest score: array (n_samples,)."""
        out = np.empty(X.shape[0], dtype=np.int64)
        for first, scores in self.scores(X):
            out[first : first + len(scores)] = scores.argmax(axis=1)
        return out

    # ---- in model files -------------------------------------------------------------------------

    def to_file(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Kernel, support patterns and coefficients for a file: a dict for its header, and arrays.

        Raises
        ------
        TypeError
            For a kernel that is a Python function.
        """
        kernel = self.kernel
        if callable(kernel.name):
            raise TypeError("a model file cannot hold a kernel that is a Python function")
        meta = {
            "kernel": {"name": kernel.name, "gamma": kernel.gamma, "degree": kernel.degree, "coef0": kernel.coef0},
            "n_features": self.n_features,
            "n_kernel": self.n_kernel,
            "hit_rate": self.hit_rate,
        }
        arrays = {"support": self.support, "support_labels": self.support_labels, "box": self.box}
        arrays |= {"intercept": self.intercept} | csr_to_arrays("coef", self.coef)
        if hasattr(self.vectors, "indptr"):
            return meta, arrays | csr_to_arrays("vectors", self.vectors)
        return meta, arrays | {"vectors": self.vectors}

    def set_from_file(self, meta: Any, arrays: dict[str, NDArray[Any]]) -> None:
        """Set what `to_file` returned; ValueError, TypeError or KeyError for what it cannot have."""
        n_features = meta["n_features"]
        if type(n_features) is not int or type(meta["n_kernel"]) is not int or type(meta["hit_rate"]) is not float:
            raise TypeError("counts that are no numbers")
        self.n_kernel, self.hit_rate = meta["n_kernel"], meta["hit_rate"]
        self.support = checked(arrays, "support", np.int64, None)
        n = len(self.support)
        self.support_labels = checked(arrays, "support_labels", np.int32, (n,))
        self.box = checked(arrays, "box", np.float64, (n,))
        self.intercept = checked(arrays, "intercept", np.float64, (self.n_labels,))
        self.coef = csr_from_arrays("coef", arrays, (self.n_labels, n))
        if n and not 0 <= self.support_labels.min() <= self.support_labels.max() < self.n_labels:
            raise ValueError("label ids out of range")
        precomputed = self.kernel.name == "precomputed"
        shape = (0 if precomputed else n, n_features)
        if "vectors" in arrays:
            self.vectors = arrays["vectors"]
            if self.vectors.shape != shape or not np.isfinite(self.vectors).all():
                raise ValueError(f"support vectors of shape {self.vectors.shape}, or not finite")
        else:
            self.vectors = csr_from_arrays("vectors", arrays, shape)
        Rows(self.vectors)
        if precomputed and n and not 0 <= self.support.min() <= self.support.max() < n_features:
            raise ValueError("indices of support patterns out of range")


def kernel_from_json(meta: Any) -> Any:
    """The `Kernel` of a header."""
    if meta["name"] not in KERNELS:
        raise ValueError(f"a kernel {meta['name']!r:.80}")
    return Kernel(**meta)


def kernel_of(params: Any, X: Any) -> Any:
    """The `Kernel` that parameters ask for; gamma as scikit-learn's SVC understands it."""
    gamma = params.gamma
    if X.shape[1] == 0:
        raise ValueError("X has no features")
    if gamma == "auto":
        gamma = 1.0 / X.shape[1]
    elif gamma == "scale":
        variance = variance_of(X) if params.kernel in ("rbf", "poly", "sigmoid") else 0.0
        gamma = 1.0 / (X.shape[1] * variance) if variance > 0.0 else 1.0
    return Kernel(params.kernel, gamma=float(gamma), degree=int(params.degree), coef0=float(params.coef0))


def variance_of(X: Any) -> Any:
    """The variance of all entries of a matrix, zeros included; ValueError if it is more than a float holds."""
    with np.errstate(over="ignore", invalid="ignore"):
        if hasattr(X, "indptr"):
            variance = float(X.multiply(X).mean() - X.mean() ** 2)
        else:
            variance = float(np.var(X, dtype=np.float64))
    if not np.isfinite(variance):
        raise ValueError("gamma='scale' asks for the variance of X, which overflows; scale the features down")
    return variance


# ---- rows of one kind -----------------------------------------------------------------------------

# Of gamma |x|^2, in single precision: |a|^2 + |b|^2 - 2 <a, b> is wrong by about a millionth of it.
LARGEST_RADIUS = 4096.0


def precise(kernel: Any, X: Any) -> Any:
    """X, in double precision where distances in single precision would be lost (far from 0, close together)."""
    if kernel.name != "rbf" or X.dtype != np.float32 or X.shape[0] == 0:
        return X
    squares = X.multiply(X).sum(axis=1) if hasattr(X, "indptr") else np.einsum("ij,ij->i", X, X)
    return X.astype(np.float64) if kernel.gamma * float(np.max(squares)) > LARGEST_RADIUS else X


def alike(X: Any, vectors: Any) -> Any:
    """Rows of the layout and the type of the support vectors."""
    if hasattr(vectors, "indptr"):
        return csr_array(X, dtype=vectors.dtype)
    X = X.toarray() if hasattr(X, "toarray") else np.asarray(X)
    return np.ascontiguousarray(X, dtype=vectors.dtype)


def stack(old: Any, new: Any) -> Any:
    """Support patterns so far, and a batch of their kind behind them."""
    new = alike(new, old)
    if not hasattr(old, "indptr"):
        return np.concatenate([old, new])
    from scipy.sparse import vstack

    return vstack([csr_array(old), new], format="csr")


# ---- arrays of model files ------------------------------------------------------------------------


def csr_to_arrays(name: Any, matrix: Any) -> dict[Any, Any]:
    """The arrays of a sparse matrix, by name."""
    parts = {"data": matrix.data, "indices": matrix.indices, "indptr": matrix.indptr}
    return {f"{name}.{part}": np.asarray(array) for part, array in parts.items()}


def csr_from_arrays(name: Any, arrays: dict[str, NDArray[Any]], shape: Any) -> Any:
    """The inverse; ValueError unless it is a sound matrix of this shape with finite numbers."""
    data, indices, indptr = (np.array(arrays[f"{name}.{part}"]) for part in ("data", "indices", "indptr"))
    if data.dtype not in (np.float32, np.float64) or not np.isfinite(data).all() or data.shape != indices.shape:
        raise ValueError(f"the numbers of {name} are not sound")
    if indices.dtype.kind != "i" or indptr.dtype.kind != "i" or indptr.shape != (shape[0] + 1,):
        raise ValueError(f"the indices of {name} are not sound")
    matrix: Any = csr_array((data, indices, indptr), shape=shape)
    matrix.check_format(full_check=True)
    return matrix


def checked(arrays: dict[str, NDArray[Any]], name: Any, dtype: Any, shape: Any) -> Any:
    """An array of a file; ValueError unless it has this dtype, this shape (None: a vector), and finite numbers."""
    array = arrays[name]
    if array.dtype != dtype or array.ndim != 1 or (shape is not None and array.shape != shape):
        raise ValueError(f"array {name!r} has dtype {array.dtype} and shape {array.shape}")
    if not np.isfinite(array).all():
        raise ValueError(f"array {name!r} holds values that are not finite")
    return array
