"""A trained multiclass kernel machine without scikit-learn: kernel, support vectors, coefficients, labels.

The classifiers of `structsvm.tasks` wrap it for Python users; the command line uses it as it is.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array

from structsvm.checkpoint import resumed
from structsvm.kernel._kernels import KERNELS, Gram, Kernel, Rows
from structsvm.kernel.problem import KernelProblem
from structsvm.model_file import ModelFileError, read_model, write_model
from structsvm.parameters import plain
from structsvm.result import read_result, result_arrays
from structsvm.tasks.common.labels import label_array, label_from_json, label_to_json

# Kernel values that a block of predictions takes at a time.
BLOCK_VALUES = 1 << 20


class KernelModel:
    """Scores ``S(x, y) = sum_i beta_i^y k(x_i, x) + b_y`` of labels.

    With output attributes these are what ``sum_z <L(y), L(z)> S(x, z)`` is made of.

    Attributes
    ----------
    labels : ndarray of shape (n_labels,)
    kernel : Kernel
    loss, attributes : as `KernelProblem` takes them
    support : ndarray of shape (n_vectors,), int64
        Numbers of the support patterns in the training data; -1 for those of earlier batches.
    vectors : ndarray or CSR matrix of shape (n_vectors, n_features)
        The support patterns themselves; (0, n_features) for a precomputed kernel.
    coef : csr_array of shape (n_labels, n_vectors), float64
        beta.
    intercept : ndarray of shape (n_labels,), float64
        b, 0 for most machines.
    support_labels : ndarray of shape (n_vectors,), int32
        Numbers of the support patterns' true labels.
    result : Result
    n_kernel : int
        Kernel values computed by training, the certificate's included.
    hit_rate : float
        Share of the rows of support patterns that training found in its cache.
    state : dict of ndarray, or None
        Where training stands, for `train(resume=...)`.
    fingerprint : int
        Tells the training data of `state` from others.
    box : ndarray of shape (n_vectors,), float64
        C of each support pattern.
    params : dict
        The estimator's parameters.
    estimator : str
        The name of its class.
    """

    kind = "multiclass"  # what files call it

    def __init__(
        self, labels, kernel: Kernel, *, loss=None, attributes=None, estimator="LaRankClassifier", params=None
    ):
        self.labels, self.kernel = labels, kernel
        self.loss, self.attributes = loss, attributes
        self.estimator, self.params = estimator, {} if params is None else params
        self.result: Any = None
        self.state: dict[str, np.ndarray] | None = None
        self.fingerprint = self.n_kernel = 0
        self.hit_rate = 1.0
        self.support = np.empty(0, dtype=np.int64)
        self.intercept = np.zeros(len(labels))

    @property
    def n_features(self):
        return self.vectors.shape[1]

    # ---- training -------------------------------------------------------------------------------

    def problem(self, X, numbers):
        """The problem of these examples."""
        gram = Gram(self.kernel, Rows(precise(self.kernel, X)))
        return KernelProblem(gram, numbers, len(self.labels), loss=self.loss, attributes=self.attributes)

    def train(self, X, numbers, solver, *, sample_weight=None, monitor=None, resume=None):
        """Fit to examples; returns the run, which may have been interrupted.

        Parameters
        ----------
        X : ndarray or CSR matrix of shape (n_samples, n_features), float32 or float64
        numbers : ndarray of shape (n_samples,), int32
            Numbers of the labels.
        solver : KernelSolver
        sample_weight : ndarray of shape (n_samples,), optional
        monitor : see `Solver.solve`
        resume : KernelModel, optional
            Go on with the training of this one; ValueError if it was of other data.
        """
        problem = self.problem(X, numbers)
        run = None
        if resume is not None:
            run = resumed(solver, problem, resume.state, resume.fingerprint, sample_weight=sample_weight)
        run = solver.solve(problem, sample_weight=sample_weight, run=run, monitor=monitor)
        self.take(run)
        if run.has_dual and hasattr(run.state, "get_state"):
            self.state, self.fingerprint = run.get_state(), problem.fingerprint()
        return run

    def train_on(self, X, numbers, solver, *, sample_weight=None, monitor=None):
        """One pass over a batch; the support patterns so far take part in the problem, but are not visited."""
        n = len(self.support)
        problem, weight, base = self.going_on(X, numbers, sample_weight, solver)
        run = solver.start(problem, sample_weight=weight, base=base)
        run = solver.solve(problem, sample_weight=weight, run=run, monitor=monitor, passes=1)
        self.take(run, first=n)
        self.state = None
        return run

    def going_on(self, X, numbers, sample_weight, solver):
        """The problem of the support patterns so far and a batch behind them.

        Returns
        -------
        problem, weight, base
            The `KernelProblem`, its rows' factors on C, and the point to start from, None for 0.
        """
        weight, base = np.ones(X.shape[0]) if sample_weight is None else sample_weight, None
        n = len(self.support)
        if n > 0:
            X = stack(self.vectors, X)
            numbers = np.concatenate([self.support_labels, numbers])
            weight = np.concatenate([self.box / solver.C, weight])
            coef = self.coef.T.tocoo()
            base = (np.arange(n), coef.row, coef.col, coef.data)
        return self.problem(X, numbers), weight, base

    def take(self, run, first=0):
        """Take over what a run has learnt from its rows, of which those before `first` are of earlier batches."""
        X = run.problem.gram.rows.data
        members, slots, labels, beta = run.weights[:4]
        order = np.argsort(members)
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        self.support = members[order]
        self.vectors = X[:0] if self.kernel.name == "precomputed" else X[self.support]
        self.coef = csr_array((beta, (labels, place[slots])), shape=(len(self.labels), len(members)))
        self.intercept = run.intercept
        self.support_labels = run.problem.y[self.support]
        self.box = np.ones(len(members)) if run.C is None else run.C[self.support]
        self.support = np.where(self.support < first, -1, self.support - first)
        self.result = run.result()
        self.n_kernel, self.hit_rate = int(run.problem.gram.n_values), float(run.state.cache.hit_rate)

    # ---- prediction -----------------------------------------------------------------------------

    def scores(self, X):
        """Yield ``(first, scores)`` of blocks of rows: float64 arrays (rows of the block, n_labels)."""
        # The columns of a precomputed kernel are training examples.
        precomputed = self.kernel.name == "precomputed"
        vectors, columns = Rows(self.vectors), self.support if precomputed else np.arange(len(self.support))
        size = max(1, BLOCK_VALUES // max(1, len(columns)))
        for first in range(0, X.shape[0], size):
            part = Rows(alike(X[first : first + size], self.vectors))
            values = self.kernel.block(part, np.arange(part.n_rows), vectors, columns)
            yield first, (self.coef @ values.T.astype(np.float64)).T + self.intercept

    def decision_function(self, X):
        """Scores of all labels: array (n_samples, n_labels)."""
        out = np.empty((X.shape[0], len(self.labels)))
        for first, scores in self.scores(X):
            out[first : first + len(scores)] = scores
        return out

    def predict_numbers(self, X):
        """Numbers of the labels of highest score: array (n_samples,)."""
        out = np.empty(X.shape[0], dtype=np.int64)
        for first, scores in self.scores(X):
            out[first : first + len(scores)] = scores.argmax(axis=1)
        return out

    def predict(self, X):
        """Labels of highest score."""
        return self.labels[self.predict_numbers(X)]

    # ---- model files ----------------------------------------------------------------------------

    def save(self, path):
        """Write the model file; see `structsvm.model_file`.

        Raises
        ------
        TypeError
            For a kernel that is a Python function, and labels that a file cannot hold. No file has been touched.
        """
        learnt, arrays = self.learnt()
        meta = {
            "estimator": self.estimator,
            "params": {name: param_to_json(value) for name, value in self.params.items()},
            "labels": [label_to_json(label) for label in self.labels.tolist()],
            **learnt,
            "fingerprint": self.fingerprint,
            "result": None if self.result is None else self.result.to_dict(),
        }
        write_model(path, self.kind, meta, arrays | result_arrays(self.result, self.state))

    def learnt(self):
        """Kernel, support patterns and coefficients, for a file: a dict for its header, and arrays."""
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

    @classmethod
    def load(cls, path, *, mmap=False):
        """Read a model file; ModelFileError if it is not a whole, sound model of this kind."""
        file = read_model(path, kind=cls.kind, mmap=mmap)
        try:
            return cls._from_file(file)
        except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
            raise ModelFileError(f"{path}: not a sound {cls.kind} model: {error}") from error

    @classmethod
    def _from_file(cls, file):
        meta, arrays = file.meta, file.arrays
        labels = label_array([label_from_json(label) for label in meta["labels"]])
        if len(set(labels.tolist())) != len(labels) or len(labels) < 2:
            raise ValueError("two labels or more, none of them twice, are wanted")
        model = cls.with_learnt(labels, meta, arrays, estimator=meta["estimator"])
        model.params = {name: param_from_json(value) for name, value in meta["params"].items()}
        if meta["result"] is not None:
            model.result, model.state = read_result(file)
            if model.state is not None:
                model.fingerprint = int(meta["fingerprint"])
        return model

    @classmethod
    def with_learnt(cls, labels, meta, arrays, **options):
        """A model with what `learnt` returned; ValueError, TypeError or KeyError for what it cannot have."""
        if meta["kernel"]["name"] not in KERNELS:
            raise ValueError(f"a kernel {meta['kernel']['name']!r:.80}")
        model = cls(labels, Kernel(**meta["kernel"]), **options)
        n_features = meta["n_features"]
        if type(n_features) is not int or type(meta["n_kernel"]) is not int or type(meta["hit_rate"]) is not float:
            raise TypeError("counts that are no numbers")
        model.n_kernel, model.hit_rate = meta["n_kernel"], meta["hit_rate"]
        model.support = checked(arrays, "support", np.int64, None)
        n = len(model.support)
        model.support_labels = checked(arrays, "support_labels", np.int32, (n,))
        model.box = checked(arrays, "box", np.float64, (n,))
        model.intercept = checked(arrays, "intercept", np.float64, (len(labels),))
        model.coef = csr_from_arrays("coef", arrays, (len(labels), n))
        if n and not 0 <= model.support_labels.min() <= model.support_labels.max() < len(labels):
            raise ValueError("numbers of labels out of range")
        precomputed = model.kernel.name == "precomputed"
        shape = (0 if precomputed else n, n_features)
        if "vectors" in arrays:
            model.vectors = arrays["vectors"]
            if model.vectors.shape != shape or not np.isfinite(model.vectors).all():
                raise ValueError(f"support vectors of shape {model.vectors.shape}, or not finite")
        else:
            model.vectors = csr_from_arrays("vectors", arrays, shape)
        Rows(model.vectors)
        if precomputed and n and not 0 <= model.support.min() <= model.support.max() < n_features:
            raise ValueError("numbers of support patterns out of range")
        return model


def kernel_of(params, X):
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


def variance_of(X):
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


def precise(kernel, X):
    """X, in double precision where distances in single precision would be lost (far from 0, close together)."""
    if kernel.name != "rbf" or X.dtype != np.float32 or X.shape[0] == 0:
        return X
    squares = X.multiply(X).sum(axis=1) if hasattr(X, "indptr") else np.einsum("ij,ij->i", X, X)
    return X.astype(np.float64) if kernel.gamma * float(np.max(squares)) > LARGEST_RADIUS else X


def alike(X, vectors):
    """Rows of the layout and the type of the support vectors."""
    if hasattr(vectors, "indptr"):
        return csr_array(X, dtype=vectors.dtype)
    X = X.toarray() if hasattr(X, "toarray") else np.asarray(X)
    return np.ascontiguousarray(X, dtype=vectors.dtype)


def stack(old, new):
    """Support patterns so far, and a batch of their kind behind them."""
    new = alike(new, old)
    if not hasattr(old, "indptr"):
        return np.concatenate([old, new])
    from scipy.sparse import vstack

    return vstack([csr_array(old), new], format="csr")


# ---- what files hold ------------------------------------------------------------------------------


def param_to_json(value):
    """A parameter for a header: class weights by label, pairs as lists; None for what is an object."""
    if isinstance(value, dict):
        return {"weights": [[label_to_json(plain(label)), float(weight)] for label, weight in value.items()]}
    if isinstance(value, (tuple, list)):
        return [float(number) for number in value]
    return plain(value)


def param_from_json(value):
    """The inverse of `param_to_json`."""
    if isinstance(value, dict):
        return {label_from_json(label): float(weight) for label, weight in value["weights"]}
    return tuple(value) if isinstance(value, list) else value


def csr_to_arrays(name, matrix):
    """The arrays of a sparse matrix, by name."""
    parts = {"data": matrix.data, "indices": matrix.indices, "indptr": matrix.indptr}
    return {f"{name}.{part}": np.asarray(array) for part, array in parts.items()}


def csr_from_arrays(name, arrays, shape):
    """The inverse; ValueError unless it is a sound matrix of this shape with finite numbers."""
    data, indices, indptr = (np.array(arrays[f"{name}.{part}"]) for part in ("data", "indices", "indptr"))
    if data.dtype not in (np.float32, np.float64) or not np.isfinite(data).all() or data.shape != indices.shape:
        raise ValueError(f"the numbers of {name} are not sound")
    if indices.dtype.kind != "i" or indptr.dtype.kind != "i" or indptr.shape != (shape[0] + 1,):
        raise ValueError(f"the indices of {name} are not sound")
    matrix: Any = csr_array((data, indices, indptr), shape=shape)
    matrix.check_format(full_check=True)
    return matrix


def checked(arrays, name, dtype, shape):
    """An array of a file; ValueError unless it has this dtype, this shape (None: a vector), and finite numbers."""
    array = arrays[name]
    if array.dtype != dtype or array.ndim != 1 or (shape is not None and array.shape != shape):
        raise ValueError(f"array {name!r} has dtype {array.dtype} and shape {array.shape}")
    if not np.isfinite(array).all():
        raise ValueError(f"array {name!r} holds values that are not finite")
    return array
