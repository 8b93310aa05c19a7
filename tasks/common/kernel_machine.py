"""Kernel machines of labels: support patterns with a coefficient per label, for any task."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from structsvm._adapter import as_objects
from structsvm._warnings import AdviceWarning, warn
from structsvm.arrays import MAX_COUNT
from structsvm.features.inputs.outliers import TINY
from structsvm.features.matrices import is_sparse
from structsvm.kernel._kernels import KERNELS, Gram, Kernel, Rows
from structsvm.kernel.parameters import WITH_GAMMA, kernel_params
from structsvm.kernel.problem import KernelProblem
from structsvm.kernel.soundness import Values
from structsvm.stored_values import FLOAT_MAX, Array, Count, Number, OneOf, Record, Stored, csr, optional
from structsvm.tasks.common.examples import SHARED, LabeledRows
from structsvm.tasks.common.labels import summed
from structsvm.tasks.common.parameters import check_settled
from structsvm.tasks.common.selection.search import LEAST_EXAMPLES
from structsvm.tasks.common.units import moments

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from structsvm.arrays import Arrays, Floats, Integers, Matrix, Weights
    from structsvm.solvers.kernel.base import KernelRun

    # A point that training starts from, as `KernelDual.restart` takes it.
    KernelPoint = tuple[Integers, Integers, Integers, Floats]


# The error of a file of a machine whose kernel is a function.
NO_FUNCTIONS = "a model file cannot hold a kernel that is a Python function"


def stored_name(kernel: Kernel) -> str:
    """The name of a kernel in a file; TypeError for one that is a Python function."""
    if callable(kernel.name):
        raise TypeError(NO_FUNCTIONS)
    return str(kernel.name)


# A sum of squares of X over which gamma is no number.
LEAST_SQUARES = 1e-290

MACHINE = Record({
    "kernel": Record({
        "name": OneOf(tuple(KERNELS), of=stored_name),
        "gamma": Number(-FLOAT_MAX),
        "degree": Count(),
        "coef0": Number(-FLOAT_MAX),
    }),
    "n_features": Count(1),
    "n_kernel": Count(high=2**63 - 1),
    "hit_rate": Number(0.0, 1.0),
    "support": Array("i8", ("n",), within=(-1, MAX_COUNT)),
    "support_labels": Array("i4", ("n",), within=(0, "n_labels")),
    "box": Array("f8", ("n",), within=(0.0, None)),
    "intercept": Array("f8", ("n_labels",), or_shape=("n_labels", "n_labels")),
    **csr("coef", "n_labels", "n"),
    # Support vectors, sparse or dense. A precomputed kernel has none: the indices of its rows are enough.
    **optional(csr("vectors", "n_vectors", "n_features", of="sparse_vectors")),
    "column_scale": Array("f4 f8", ("n_features",), within=(TINY, None), needed=False),
    "vectors": Array("f4 f8", ("n_vectors", "n_features"), needed=False, of="dense_vectors"),
    "kernel_values": Record({
        "own": Array("f8", ("n_vectors",)),
        "largest": Array("f8", ("n_vectors",)),
        "least": Array("f8", (1,)),
    }, needed=False),
})  # fmt: skip

# The log-odds that a machine of two labels is right, in units of its margin.
SURE = 12.0

# Coefficients of machines of two labels that are not zero, from which on a dense matrix of all is no bomb, and quicker.
DENSE_ENOUGH = 0.1

# Examples whose nearest neighbours are looked at, and how many of these.
NEIGHBOURS, NEAREST = 1000, 5

# The share of the variance of all entries that is within columns, below which it does not say how far rows lie apart.
OWN_SHARE = 0.25

# Deviations that many times others are those of columns that drown them.
WIDE = 10.0

# Kernel values that a block of predictions takes at a time.
BLOCK_VALUES = 1 << 20
# Kernel values that count as one score of a pair, whose temporary arrays are to stay in the processor's cache.
PAIR_VALUES = 8


@dataclass(frozen=True, eq=False)
class KernelRows(LabeledRows):
    """Rows that a kernel compares, with their labels.

    Attributes
    ----------
    are_values : bool
        Whether the rows are those of a kernel matrix: of a precomputed kernel.
    """

    are_values: bool = field(default=False, metadata=SHARED)

    def merged(self) -> Self:
        if self.are_values:
            return self
        total = summed(zip(self.label_ids.tolist(), bytes_of(self.rows)), self.weight)
        places, weights = map(np.array, zip(*total.values()))
        return replace(self.take(places), weight=weights)


class KernelMachine:
    """Scores ``S(x, y) = sum_i beta_i^y k(x_i, x) + b_y`` of labels.

    With output attributes these are the terms of ``sum_z <L(y), L(z)> S(x, z)``.

    Attributes
    ----------
    n_labels : int
    kernel : Kernel
    losses : callable or None
        Returns the matrix of losses for `KernelProblem`, which only training needs; None: zero-one.
    attributes : as `KernelProblem` takes them
    objects : list or None
        Training inputs that are no rows of numbers, where the kernel is a function of these: the kernel is
        "precomputed", of their values.
    kernel_values : Values or None
        Of a precomputed kernel: what the values of the support patterns were in training.
    column_scale : ndarray of shape (n_features,), or None
        Divisors of the columns in the kernel, see `adapt`.
    support : ndarray of shape (n_vectors,), int64
        Indices of the support patterns in the training data; -1 for those of earlier batches.
    vectors : ndarray or CSR matrix of shape (n_vectors, n_features)
        The support patterns themselves; (0, n_features) for a precomputed kernel.
    coef : csr_array of shape (n_labels, n_vectors), float64
        beta.
    intercept : ndarray of shape (n_labels,) or (n_labels, n_labels), float64
        b, 0 for most machines. A matrix: there is a machine for each pair of labels, see `pair_scores`.
    support_labels : ndarray of shape (n_vectors,), int32
        Label ids of the support patterns.
    box : ndarray of shape (n_vectors,), float64
        C of each support pattern.
    n_kernel : int
        Kernel values computed by training, including those of the certificate.
    hit_rate : float
        Share of the rows of support patterns that training found in its cache.
    """

    objects: list[Any] | None = None
    kernel_values: Values | None = None

    def __init__(
        self,
        n_labels: int,
        kernel: Kernel,
        *,
        losses: Callable[[], Floats] | None = None,
        attributes: Matrix | None = None,
    ) -> None:
        self.n_labels, self.kernel, self.losses, self.attributes = n_labels, kernel, losses, attributes
        self.column_scale: Floats | None = None
        self.n_kernel, self.hit_rate = 0, 1.0
        self.support = np.empty(0, dtype=np.int64)
        self.intercept = np.zeros(n_labels)

    @property
    def n_features(self) -> int:
        return self.vectors.shape[1]

    @property
    def vector_sizes(self) -> Floats | None:
        """The largest size of each column in the support patterns (of zeros: of all columns); None: no patterns."""
        if not self.vectors.shape[0]:
            return None
        largest = abs(self.vectors).max(axis=0)
        largest = np.asarray(largest.todense() if is_sparse(largest) else largest, dtype=np.float64).ravel()
        return np.where(largest > 0.0, largest, largest.max(initial=0.0)) if largest.any() else None

    @property
    def linear_vectors(self) -> Matrix:
        """Vectors whose products with rows as given are the linear kernel of the support patterns."""
        return self.vectors if self.column_scale is None else self.vectors / self.column_scale.astype(np.float64) ** 2

    @property
    def support_objects(self) -> NDArray[np.object_]:
        """The support patterns, where they are no rows of numbers."""
        objects = [] if self.objects is None else self.objects
        return as_objects([objects[k] for k in self.support.tolist()])

    # ---- training -------------------------------------------------------------------------------

    def check_kernel(self, params: object, X: Matrix, trained: Mapping[str, object]) -> None:
        """Raise ValueError if parameters ask for another kernel than those that it was `trained` with.

        A gamma that was left open stays as it was chosen.
        """
        wanted, mine = kernel_of(params, X), self.kernel
        if kernel_params(params).gamma == "scale":
            check_settled([("gamma", "scale", kernel_params(SimpleNamespace(**trained)).gamma)])
        gamma = mine.gamma if isinstance(kernel_params(params).gamma, str) else wanted.gamma
        if (wanted.name, gamma, wanted.degree, wanted.coef0) != (mine.name, mine.gamma, mine.degree, mine.coef0):
            raise ValueError(
                "training began with another kernel: set 'kernel' and its parameters back, or train a new model"
            )

    def adapt(self, X: Floats, label_ids: Integers) -> None:
        """Let the kernel use dense columns in units of their deviations, unless nearest neighbours suffer.

        Unscaled, columns in large units drown the others; but pixels, for example, are better left unscaled. Then, and
        where columns lie far apart, the gamma of RBF is that of "scale" for centred ones: it does not see where they
        lie.
        """
        if deviations_bring_labels_together(X, label_ids):
            self.column_scale = deviations(X).astype(X.dtype)
            self.grow(scale_gamma(self.seen(X)) if self.kernel.name in WITH_GAMMA else None)
        if self.kernel.name != "rbf":
            return
        variance = float(np.sum(moments(self.seen(X))[1] ** 2))
        most = OWN_SHARE if self.column_scale is None else np.inf
        if len(X) >= LEAST_EXAMPLES and 0.0 < variance * self.kernel.gamma < most:
            self.kernel = Kernel("rbf", gamma=1.0 / variance)

    def seen(self, X: Matrix) -> Matrix:
        """Rows as the kernel sees them."""
        return precise(self.kernel, X if self.column_scale is None else X / self.column_scale.astype(X.dtype))

    def problem(self, X: Matrix, label_ids: Integers) -> KernelProblem:
        """The problem of these examples."""
        gram = Gram(self.kernel, Rows(self.seen(X)))
        loss = None if self.losses is None else self.losses()
        problem = KernelProblem(gram, label_ids, self.n_labels, loss=loss, attributes=self.attributes)
        if self.column_scale is not None:
            problem.examples = X
        return problem

    def problem_around(
        self, X: Matrix, label_ids: Integers, sample_weight: Weights | None, C: float | None
    ) -> tuple[KernelProblem, Weights | None, KernelPoint | None]:
        """The problem of the current support patterns, followed by a batch.

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

    def set_weights_from(self, run: KernelRun) -> None:
        """Set support patterns and coefficients to those of a run; those of earlier batches lose their index."""
        first, X = run.problem.n_before, run.problem.examples
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

    def settle_values(self, X: Matrix) -> None:
        """Store what the values of a precomputed kernel were."""
        if self.kernel.name == "precomputed" and self.objects is None:
            self.kernel_values = Values.of(X, self.support)

    def warn_of_far(self, X: Matrix) -> None:
        """Warn of rows so far from 0 that an RBF kernel is of rounding errors."""
        if self.kernel.name == "rbf" and radius(self.kernel, self.seen(X)) > FARTHEST:
            warn(
                "rows are so far from 0, beside their distances, that the RBF kernel keeps too few digits of these: "
                "subtract the means of columns",
                AdviceWarning,
            )

    def widest_columns(self, X: Matrix) -> list[int]:
        """Dense columns whose deviations in the kernel are `WIDE` times those of a quarter, the widest first."""
        if is_sparse(X) or self.kernel.name == "precomputed" or len(X) < 2:
            return []
        size = moments(self.seen(X))[1]
        usual = np.quantile(size[size > 0.0], 0.25) if size.any() else np.inf
        return [j for j in np.argsort(-size, kind="stable").tolist() if size[j] >= WIDE * usual]

    # ---- choosing C and gamma -------------------------------------------------------------------

    def adopt(self, part: Any) -> None:
        """Convert a model trained on the kernel values of a `KernelPart` into one on its examples."""
        self.kernel, self.support = part.kernel, part.rows[self.support]
        if self.kernel.name != "precomputed":
            vectors = precise(self.kernel, part.X)[self.support]
            self.vectors = vectors if self.column_scale is None else vectors * self.column_scale.astype(vectors.dtype)

    def grow(self, gamma: float | None) -> None:
        """Set gamma, if one was chosen."""
        if gamma is not None:
            self.kernel = Kernel(self.kernel.name, gamma=gamma, degree=self.kernel.degree, coef0=self.kernel.coef0)

    def kernel_scale(self, X: Matrix) -> float:
        """The mean squared distance of two examples in the kernel's space, over at most 512 of them."""
        n = X.shape[0]
        chosen = np.linspace(0, n - 1, min(n, 512)).astype(np.intp)
        rows = Rows(precise(self.kernel, X))
        values = self.kernel.block(rows, chosen, rows, chosen)
        return float(np.mean(np.diagonal(values)) - np.mean(values))

    # ---- prediction -----------------------------------------------------------------------------

    def scores(self, X: Matrix) -> Iterator[tuple[int, Floats]]:
        """Yield ``(first, scores)`` of blocks of rows: float64 arrays (rows of the block, n_labels)."""
        # The columns of a precomputed kernel are training examples.
        precomputed = self.kernel.name == "precomputed"
        seen = self.vectors if self.column_scale is None else self.seen(self.vectors)
        columns = self.support if precomputed else np.arange(len(self.support))
        vectors = Rows(seen)
        size = max(1, BLOCK_VALUES // max(1, len(columns), PAIR_VALUES * self.intercept.size))
        for first in range(0, X.shape[0], size):
            part = alike(X[first : first + size], self.vectors)
            part = Rows(part if self.column_scale is None else alike(self.seen(part), seen))
            values = self.kernel.block(part, np.arange(part.n_rows), vectors, columns)
            values = np.array(values.T, dtype=np.float64, order="C")
            yield (
                first,
                (self.coef @ values).T + self.intercept if self.intercept.ndim == 1 else self.pair_scores(values),
            )

    def pair_scores(self, values: Floats) -> Floats:
        """Scores of labels from kernel values of support patterns (n_vectors, n_samples): array (n_samples, n_labels).

        In the machine of k and l, ``f = sum_{i in l} coef_ki k(x_i, x) - sum_{i in k} coef_li k(x_i, x) + b_kl`` is for
        l. The score of l is how likely it is that all of its machines are right, with 12 f as log-odds of each: ``-1/12
        sum_k log(1 + exp(-12 f))``; of two labels, +-f/2.
        """
        parts = np.empty((self.n_labels, self.n_labels, values.shape[1]))
        filled = self.coef.nnz / max(1, self.n_labels * len(self.support))
        coef = self.coef.toarray() if filled > DENSE_ENOUGH else self.coef.tocsc()
        for label in range(self.n_labels):
            own = np.flatnonzero(self.support_labels == label)
            parts[label] = coef[:, own] @ values[own]
        f = parts.transpose(1, 0, 2) - parts + self.intercept[:, :, None]
        if self.n_labels == 2:
            return 0.5 * f.sum(axis=0).T
        f[np.diag_indices(self.n_labels)] = np.inf
        f *= SURE
        against = np.minimum(f, 0.0)
        np.exp(np.negative(np.abs(f, out=f), out=f), out=f)
        against -= np.log(np.add(f, 1.0, out=f), out=f)  # log(1 + exp(-x)) = log(1 + exp(-|x|)) - min(x, 0)
        return against.sum(axis=0).T / SURE

    def decision_function(self, X: Matrix) -> NDArray[np.float64]:
        """Scores of all labels: array (n_samples, n_labels)."""
        out = np.empty((X.shape[0], self.n_labels))
        for first, scores in self.scores(X):
            out[first : first + len(scores)] = scores
        return out

    def predict_ids(self, X: Matrix) -> NDArray[np.int64]:
        """Ids of the labels of highest score: array (n_samples,)."""
        out = np.empty(X.shape[0], dtype=np.int64)
        for first, scores in self.scores(X):
            out[first : first + len(scores)] = scores.argmax(axis=1)
        return out

    # ---- in model files -------------------------------------------------------------------------

    @property
    def sparse_vectors(self) -> csr_array | None:
        """The support patterns, if they are sparse rows."""
        return self.vectors if is_sparse(self.vectors) else None

    @property
    def dense_vectors(self) -> Floats | None:
        """The support patterns, if they are dense rows."""
        return None if is_sparse(self.vectors) else self.vectors

    def check_stored(self) -> None:
        """Raise TypeError for a machine that a file cannot hold."""
        if self.objects is not None:
            raise TypeError(NO_FUNCTIONS)

    def set_from_record(self, stored: Stored) -> None:
        """Set what a file contains; ValueError for what it cannot have."""
        self.n_kernel, self.hit_rate = stored.n_kernel, stored.hit_rate
        found = stored.arrays(n_labels=self.n_labels)
        for name in ("support", "support_labels", "box", "intercept", "column_scale"):
            setattr(self, name, found[name])
        n, n_features = len(self.support), stored.n_features
        self.coef = csr_of("coef", found, (self.n_labels, n))
        n_vectors = n
        if self.kernel.name == "precomputed":
            n_vectors = 0
            if n and not 0 <= self.support.min() <= self.support.max() < n_features:
                raise ValueError(f"array 'support' has indices beyond the {n_features} examples of the kernel")
        self.vectors = found["vectors"]
        if self.vectors is None:
            self.vectors = csr_of("vectors", found, (len(found["vectors.indptr"]) - 1, n_features))
        if self.vectors.shape[0] != n_vectors:
            raise ValueError(f"array 'vectors' has {self.vectors.shape[0]} rows, expected {n_vectors}")
        Rows(self.seen(self.vectors))
        if stored.kernel_values is not None:
            self.kernel_values = Values(**stored.kernel_values.arrays(n_vectors=n))


def kernel_of(params: Any, X: Matrix) -> Kernel:
    """The `Kernel` that the parameters name; gamma="auto" is that of "scale" until it is chosen."""
    params = kernel_params(params)
    gamma = params.gamma
    if X.shape[1] == 0:
        raise ValueError("X has no features")
    if isinstance(gamma, str):
        gamma = scale_gamma(X) if params.kernel in WITH_GAMMA else 1.0
    return Kernel(params.kernel, gamma=float(gamma), degree=int(params.degree), coef0=float(params.coef0))


def scale_gamma(X: Matrix) -> float:
    """The gamma of "scale", 1 if all entries are equal."""
    variance = variance_of(X)
    return 1.0 / (X.shape[1] * variance) if variance > 0.0 else 1.0


def variance_of(X: Matrix) -> float:
    """The variance of all entries of a matrix, zeros included; ValueError if no float holds it."""
    with np.errstate(over="ignore", invalid="ignore"):
        if is_sparse(X):
            variance = float(X.multiply(X).mean() - X.mean() ** 2)
        else:
            variance = float(np.var(X, dtype=np.float64))
    if not np.isfinite(variance):
        raise ValueError("gamma='scale' and 'auto' ask for the variance of X, which overflows; scale the features down")
    if 0.0 < max(X.max(), -X.min()) < LEAST_SQUARES**0.5:
        raise ValueError("gamma='scale' and 'auto' ask for the variance of X, which underflows; scale the features up")
    return variance


# ---- units of columns ------------------------------------------------------------------------------


def deviations(X: Floats) -> NDArray[np.float64]:
    """Standard deviations of columns, 1 for those that are constant."""
    size = moments(X)[1]
    return np.where(size > 0.0, size, 1.0)


def deviations_bring_labels_together(X: Floats, label_ids: Integers) -> bool:
    """Whether, in units of columns' deviations, no fewer of an example's nearest neighbours have its label.

    Over at most `NEIGHBOURS` examples; fewer by no more than a standard error are no fewer. False for few examples, and
    where neighbours stay the same.
    """
    if len(X) < LEAST_EXAMPLES:
        return False
    chosen = np.linspace(0, len(X) - 1, min(len(X), NEIGHBOURS)).astype(np.intp)
    own, rows = label_ids[chosen], X[chosen].astype(np.float64)
    alike = [np.mean(own[:, None] == own[nearest(part)], axis=1) for part in (rows / deviations(X), rows)]
    gains = alike[0] - alike[1]
    return bool(gains.mean() > -gains.std() / math.sqrt(len(gains)))


def nearest(rows: Floats) -> Integers:
    """The `NEAREST` other rows of each: array (n_rows, NEAREST)."""
    rows = rows - rows.mean(axis=0)
    squares = np.einsum("ij,ij->i", rows, rows)
    distances = squares[:, None] + squares - 2.0 * (rows @ rows.T)
    np.fill_diagonal(distances, np.inf)
    return np.argpartition(distances, NEAREST, axis=1)[:, :NEAREST]


# ---- rows of one kind -----------------------------------------------------------------------------

# Largest gamma |x|^2 in single precision: |a|^2 + |b|^2 - 2 <a, b> is wrong by about a millionth of it.
LARGEST_RADIUS = 4096.0
# The same in double precision: from there on an exponent of the RBF kernel is wrong by a thousandth.
FARTHEST = 1e12


def precise(kernel: Kernel, X: Matrix) -> Matrix:
    """X, in double precision where distances in single precision would be lost (far from 0, close together)."""
    if kernel.name != "rbf" or X.dtype != np.float32 or X.shape[0] == 0:
        return X
    return X.astype(np.float64) if radius(kernel, X) > LARGEST_RADIUS else X


def radius(kernel: Kernel, X: Matrix) -> float:
    """gamma |x|^2 of the row farthest from 0."""
    squares = X.multiply(X).sum(axis=1) if is_sparse(X) else np.einsum("ij,ij->i", X, X)
    return kernel.gamma * float(np.max(squares))


def alike(X: Matrix, vectors: Matrix) -> Matrix:
    """Rows of the layout and the type of the support vectors."""
    if is_sparse(vectors):
        return csr_array(X, dtype=vectors.dtype)
    X = X.toarray() if is_sparse(X) else np.asarray(X)
    return np.ascontiguousarray(X, dtype=vectors.dtype)


def stack(old: Matrix, new: Matrix) -> Matrix:
    """The current support patterns, followed by a batch of their kind."""
    new = alike(new, old)
    if not is_sparse(old):
        return np.concatenate([old, new])
    from scipy.sparse import vstack

    return vstack([csr_array(old), new], format="csr")


def bytes_of(X: Matrix) -> list[bytes]:
    """For each row, bytes in which equal ones are equal."""
    if not is_sparse(X):
        return [row.tobytes() for row in X]
    bounds = [slice(*ends) for ends in pairwise(X.indptr.tolist())]
    return [X.indices[entries].tobytes() + X.data[entries].tobytes() for entries in bounds]


# ---- arrays of model files ------------------------------------------------------------------------


def csr_of(name: str, arrays: Arrays, shape: tuple[int, int]) -> csr_array:
    """A sparse matrix of arrays that the table `csr` has checked; ValueError if they are missing."""
    if arrays[f"{name}.data"] is None:
        raise ValueError(f"array {name!r} is missing")
    data, indices, indptr = (np.array(arrays[f"{name}.{part}"]) for part in ("data", "indices", "indptr"))
    return csr_array((data, indices, indptr), shape=shape)
