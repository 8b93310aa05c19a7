"""Oracles written in Python behind the compiled contract, with the checks that C code cannot make.

One call of the user's `argmax` and one of `joint_feature` an example; the true output's joint feature is
computed once and kept. Errors name class, method and example; exceptions of user code come out as they are.
"""

from libc.math cimport isfinite
from libc.stdint cimport int32_t, uintptr_t  # noqa: F401

from weakref import WeakValueDictionary

import numpy as np

cimport numpy as cnp

from structsvm._problem cimport PENALTY_HARD, RESCALE_NONE, RESCALE_SLACK, Cut, Problem, cut_terms

from structsvm.protocol import OracleError

cnp.import_array()

_RESCALING_NAMES = {0: None, 1: "margin", 2: "slack"}

# The true output itself must never beat the returned one by more than rounding.
cdef double SLACK = 1e-7


def sparse_feature(psi, Py_ssize_t n_features, where):
    """Return a joint feature as ``(indices int32, values float64)``, ascending, summed and without zeros.

    Raises `OracleError`, beginning with `where`, unless it is finite and in range.
    """
    if isinstance(psi, tuple):
        if len(psi) != 2:
            raise OracleError(f"{where} returned a tuple of {len(psi)}, expected (indices, values)")
        indices, values = np.asarray(psi[0]), _numbers(psi[1], where)
        if indices.size and indices.dtype.kind not in "iu":
            raise OracleError(f"{where} returned indices of type {indices.dtype}, expected integers")
        if indices.shape != values.shape or indices.ndim != 1:
            raise OracleError(f"{where} returned {indices.shape} indices with {values.shape} values")
    elif hasattr(psi, "tocoo"):
        coo = psi.tocoo()
        if coo.shape != (1, n_features) and coo.shape != (n_features,):
            raise OracleError(f"{where} returned a sparse array of shape {coo.shape}, expected (1, {n_features})")
        indices, values = coo.col, _numbers(coo.data, where)
    else:
        values = _numbers(psi, where)
        if values.shape != (n_features,):
            raise OracleError(f"{where} returned an array of shape {values.shape}, expected ({n_features},)")
        indices = np.flatnonzero(values)
        values = values[indices]
        if not np.isfinite(values).all():
            raise OracleError(f"{where} returned a value that is not finite")
        return indices.astype(np.int32), values
    if not np.isfinite(values).all():
        raise OracleError(f"{where} returned a value that is not finite")
    if indices.size and not 0 <= indices.min() <= indices.max() < n_features:
        raise OracleError(f"{where} returned indices in {indices.min()}..{indices.max()}, "
                          f"expected 0..{n_features - 1} (n_features is {n_features})")
    return _summed(indices, values)


def _numbers(values, where):
    try:
        array = np.asarray(values)
        if array.dtype.kind == "c":
            raise TypeError
        return np.asarray(array, dtype=np.float64)
    except (TypeError, ValueError):
        raise OracleError(f"{where} returned values that are not real numbers: {values!r:.80}") from None


def _summed(indices, values):
    unique, inverse = np.unique(indices, return_inverse=True)
    sums = np.bincount(inverse, weights=values, minlength=len(unique))
    keep = sums != 0.0
    return unique[keep].astype(np.int32), sums[keep]


cdef class PythonProblem(Problem):
    """A Python `Oracle` bound to examples."""

    cdef readonly object oracle
    cdef object X
    cdef object Y
    cdef list true_features
    cdef object lent            # arrays of weights that are alive, by address
    cdef object view            # the array last handed to the user, and where its data stand
    cdef const void* viewed
    cdef int32_t[::1] words
    cdef double[::1] aligned    # owner of the words: values come first and need 8 bytes

    def __init__(self, oracle, X, Y, *, rescaling="margin", penalty="linear"):
        if len(X) != len(Y):
            raise ValueError(f"X has {len(X)} examples, Y has {len(Y)}")
        n_features = getattr(oracle, "n_features", None)
        if not isinstance(n_features, (int, np.integer)) or not 0 < n_features < 2**31:
            raise OracleError(f"{type(oracle).__name__}.n_features must be an integer in 1 .. 2**31 - 1, got {n_features!r}")
        super().__init__(len(X), n_features, rescaling=rescaling, penalty=penalty, is_exact=bool(oracle.is_exact))
        self.oracle, self.X, self.Y = oracle, X, Y
        self.true_features = [None] * len(X)
        self.lent = WeakValueDictionary()
        self.grow(64)

    def lend(self, cnp.ndarray w not None):
        self.lent[<uintptr_t>cnp.PyArray_DATA(w)] = w

    cdef grow(self, Py_ssize_t n):
        self.aligned = np.empty(n + (n + 1) // 2)
        self.words = np.asarray(self.aligned).view(np.int32)

    def _where(self, method, i):
        return f"{type(self.oracle).__name__}.{method} (example {i})"

    def _feature(self, i, y):
        return sparse_feature(self.oracle.joint_feature(self.X[i], y), self.n_features,
                              self._where("joint_feature", i))

    def _difference(self, i, y):
        if self.true_features[i] is None:
            self.true_features[i] = self._feature(i, self.Y[i])
        true_indices, true_values = self.true_features[i]
        indices, values = self._feature(i, y)
        return _summed(np.concatenate([true_indices, indices]), np.concatenate([true_values, -values]))

    def _loss(self, i, y):
        value = self.oracle.loss(self.Y[i], y)
        try:
            loss = float(value)
        except (TypeError, ValueError):
            raise OracleError(
                f"{self._where('loss', i)} returned {value!r:.80}, expected a finite number >= 0") from None
        if not (isfinite(loss) and loss >= 0.0):
            raise OracleError(f"{self._where('loss', i)} returned {loss}, expected a finite number >= 0")
        return loss

    cdef int c_separate(self, Py_ssize_t i, const void* w, Cut* cut, double* violation) except -1 nogil:
        with gil:
            return self.ask(i, w, cut, violation)

    cdef int ask(self, Py_ssize_t i, const void* w, Cut* cut, double* violation) except -1:
        cdef double score
        if self.viewed != w:
            # The view owns a share of the array, so that an oracle may keep what it was given.
            self.view = self.lent[<uintptr_t>w].view()
            self.view.flags.writeable = False
            self.viewed = w
        if self.rescaling == RESCALE_NONE:
            y = self.oracle.argmax(self.X[i], self.view)
        else:
            y = self.oracle.argmax(self.X[i], self.view, y_true=self.Y[i],
                                   rescaling=_RESCALING_NAMES[self.rescaling])
        loss = self._loss(i, y)
        cut.n_words = 0
        cut.alpha = cut.b = violation[0] = 0.0
        cut.scale = 1.0
        cut.words = &self.words[0]
        indices, values = self._difference(i, y)
        if loss == 0.0:
            if len(indices):
                raise OracleError(
                    f"{self._where('loss', i)} returned 0 for an output whose joint feature differs from "
                    "the true one's; the loss must be 0 only for the true output")
            return 0
        self.write(cut, indices, values)
        cut_terms(self.rescaling, self.penalty, loss, cut)
        self.c_dots(i, cut, 1, w, False, &score)
        violation[0] = cut.b - score
        if not isfinite(violation[0]):
            raise OracleError(f"{self._where('argmax', i)}: the score of the returned output is {score}")
        if (self.is_exact and self.rescaling != RESCALE_NONE and self.penalty != PENALTY_HARD
                and violation[0] < -SLACK * (1.0 + abs(score))):
            raise OracleError(
                f"{self._where('argmax', i)} returned an output that scores {-violation[0]:.6g} worse than the "
                "true one in the loss-augmented problem; an exact oracle cannot (set is_exact = False if it searches)")
        return 0

    cdef write(self, Cut* cut, indices, values):
        cdef Py_ssize_t n = len(indices)
        if 3 * n > self.words.shape[0]:
            self.grow(2 * n)
        words = np.asarray(self.words)
        words[:2 * n] = values.view(np.int32)
        words[2 * n:3 * n] = indices
        # A constraint whose joint feature vanishes still exists (b > 0): one explicit zero stands for it.
        if n == 0:
            words[:3] = 0
            n = 1
        cut.words = &self.words[0]
        cut.n_words = 3 * n

    def __reduce__(self):
        raise TypeError("a bound problem is not picklable; pickle the oracle and its data")
