"""Oracles written in Python behind the compiled contract, with the checks that C code cannot make.

One call of the user's `argmax` and one of `joint_feature` per example; the true output's joint feature is computed once
and kept, as a copy: an oracle may fill the same arrays again. Errors name class, method and example; exceptions of user
code come out as they are.
"""

from libc.math cimport isfinite
from libc.stdint cimport int32_t, int64_t, uintptr_t
from libc.stdlib cimport qsort

from copy import deepcopy
from functools import partial
from weakref import WeakValueDictionary

import numpy as np

from structsvm._problem cimport PENALTY_HARD, RESCALE_NONE, Cut, Problem, Target, cut_terms
from structsvm._arrays cimport array_data, ndarray
from structsvm._typedefs cimport float32_t
from structsvm.execution._stop cimport look

from structsvm.adapter import OracleError, check_numbers, checked_expect, feature_arrays, fingerprint

_RESCALING_NAMES = {0: None, 1: "margin", 2: "slack"}

# The true output itself must never beat the returned one by more than rounding.
cdef double SLACK = 1e-7


cdef enum Verb:
    SEPARATE
    EXPECT
    COMPLETE


cdef int by_value(const void* a, const void* b) noexcept nogil:
    return (<const int32_t*>a)[0] - (<const int32_t*>b)[0]


cdef class PythonProblem(Problem):
    """A Python `Oracle` bound to examples.

    Parameters
    ----------
    known : sequence, optional
        What is known of the true outputs, which Y completes. None: Y itself.
    is_open : bool, optional
        Whether outputs of Y are known in part, and the oracle sums over what agrees. None: to be determined.
    """

    cdef readonly object oracle
    cdef object X
    cdef object Y
    cdef object known
    cdef object opened          # `is_open`, or None before it is asked for
    cdef object completed       # the output that c_complete found last, and its word
    cdef int32_t word
    cdef list true_features
    cdef object lent            # arrays of weights that are alive, by address
    cdef object view            # the array last handed to the user, and where its data stand
    cdef const void* viewed
    cdef double[::1] sums       # (n_features,) zero between calls: where dPsi is added up
    cdef int32_t[::1] touched   # its places that a call has written, each once
    cdef Py_ssize_t n_touched
    cdef unsigned char[::1] seen
    cdef int32_t[::1] words
    cdef double[::1] aligned    # owner of the words: values come first and need 8 bytes

    def __init__(self, oracle, X, Y, known=None, is_open=None, *, rescaling="margin", penalty="linear"):
        if len(X) != len(Y):
            raise ValueError(f"X has {len(X)} examples, Y has {len(Y)}")
        n_features = getattr(oracle, "n_features", None)
        if not isinstance(n_features, (int, np.integer)) or not 0 < n_features < 2**31:
            raise OracleError(
                f"{type(oracle).__name__}.n_features must be an integer in 1 .. 2**31 - 1, got {n_features!r}")
        self.oracle = oracle    # whose class errors name
        super().__init__(len(X), n_features, rescaling=rescaling, penalty=penalty, inference=oracle.inference,
                         nonnegative=oracle.nonnegative)
        self.X, self.Y, self.known, self.opened = X, Y, known, is_open
        self.completed = []
        self.true_features = [None] * len(X)
        self.lent = WeakValueDictionary()
        self.sums = np.zeros(n_features)
        self.seen = np.zeros(n_features, dtype=np.uint8)
        self.touched = np.empty(n_features, dtype=np.int32)
        self.grow(64)

    def lend(self, ndarray w not None):
        self.lent[<uintptr_t>array_data(w)] = w

    cdef grow(self, Py_ssize_t n):
        self.aligned = np.empty(n + (n + 1) // 2)
        self.words = np.asarray(self.aligned).view(np.int32)

    def _where(self, method, i):
        return f"{type(self.oracle).__name__}.{method} (example {self.first + i})"

    cdef int scatter(self, tuple feature, double sign, where) except -1:
        """sums += sign * feature, with the checks that read every number."""
        cdef ndarray indices = feature[0]
        cdef ndarray values = feature[1]
        cdef const int64_t* index = <const int64_t*>array_data(indices)
        cdef const double* value = <const double*>array_data(values)
        cdef Py_ssize_t e, size = len(indices), j
        for e in range(size):
            j = index[e]
            if not (0 <= j < self.n_features and isfinite(value[e])):
                check_numbers(indices, values, self.n_features, where())
            if not self.seen[j]:
                self.seen[j] = 1
                self.touched[self.n_touched] = <int32_t>j
                self.n_touched += 1
            self.sums[j] += sign * value[e]
        return 0

    def _true_feature(self, i, where):
        """Psi(x, y_true) in arrays of its own."""
        loss = self._loss(i, self.Y[i])
        if loss != 0.0:
            raise OracleError(f"{self._where('loss', i)} returned {loss} for the true output itself, expected 0")
        indices, values = feature_arrays(self.oracle.joint_feature(self.X[i], self.Y[i]), self.n_features, where)
        return indices.copy(), values.copy()

    cdef Py_ssize_t difference(self, Py_ssize_t i, y) except -1:
        """Write Psi(x, y_true) - Psi(x, y) into the words; returns how many features it has."""
        cdef Py_ssize_t k, n = 0
        cdef int32_t j
        cdef double* values
        where = partial(self._where, "joint_feature", i)
        true_feature = self.true_features[i]
        if true_feature is None:
            true_feature = self._true_feature(i, where)
        feature = feature_arrays(self.oracle.joint_feature(self.X[i], y), self.n_features, where)
        try:
            self.scatter(true_feature, 1.0, where)
            self.true_features[i] = true_feature
            self.scatter(feature, -1.0, where)
            for k in range(self.n_touched):
                n += self.sums[self.touched[k]] != 0.0
            # A constraint whose joint feature vanishes still exists: one explicit zero stands for it.
            if 3 * max(n, 1) > self.words.shape[0]:
                self.grow(2 * n)
            values = <double*>&self.words[0]
            values[0] = 0.0
            self.words[2] = 0
            n, k = 0, 0
            if self.n_touched > 0:
                qsort(&self.touched[0], self.n_touched, sizeof(int32_t), by_value)
            for k in range(self.n_touched):
                j = self.touched[k]
                if self.sums[j] != 0.0:
                    values[n] = self.sums[j]
                    n += 1
            self.pack(n)
        finally:
            for k in range(self.n_touched):
                self.sums[self.touched[k]] = 0.0
                self.seen[self.touched[k]] = 0
            self.n_touched = 0
        return n

    cdef void pack(self, Py_ssize_t n) noexcept nogil:
        """The indices behind the n values."""
        cdef Py_ssize_t k, e = 0
        for k in range(self.n_touched):
            if self.sums[self.touched[k]] != 0.0:
                self.words[2 * n + e] = self.touched[k]
                e += 1

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
        return self.asked(SEPARATE, i, w, cut, violation, NULL)

    cdef int c_expect(self, Py_ssize_t i, const void* w, float32_t* m, double* loss, double* entropy) except -1 nogil:
        return self.asked(EXPECT, i, w, m, loss, entropy)

    cdef int c_complete(self, Py_ssize_t i, const void* w, Target* target) except -1 nogil:
        return self.asked(COMPLETE, i, w, target, NULL, NULL)

    cdef int asked(self, Verb verb, Py_ssize_t i, const void* w, void* out, double* a, double* b) except -1 nogil:
        """Ask the oracle's code; what comes back goes to `out`, `a` and `b`, as the verb has them."""
        with gil:
            try:
                if verb == SEPARATE:
                    self.ask(i, w, <Cut*>out, a)
                elif verb == EXPECT:
                    self.ask_expect(i, w, <float32_t*>out, a, b)
                else:
                    self.ask_complete(i, w, <Target*>out)
                return look()
            except Exception as error:
                self.note(error, i)
                raise

    cdef note(self, error, Py_ssize_t i):
        """Add the example to an error of the user's code; those of the protocol name it themselves."""
        if not isinstance(error, OracleError):
            error.add_note(f"while {type(self.oracle).__name__} was asked about example {self.first + i}")

    cdef int look_at(self, const void* w) except -1:
        if self.viewed != w:
            # The view owns a share of the array, so that an oracle may keep what it was given.
            self.view = self.lent[<uintptr_t>w].view()
            self.view.flags.writeable = False
            self.viewed = w
        return 0

    cdef int ask(self, Py_ssize_t i, const void* w, Cut* cut, double* violation) except -1:
        cdef double score
        cdef Py_ssize_t n
        self.look_at(w)
        if self.rescaling == RESCALE_NONE:
            y = self.oracle.argmax(self.X[i], self.view)
        else:
            y = self.oracle.argmax(self.X[i], self.view, y_true=self.Y[i],
                                   rescaling=_RESCALING_NAMES[self.rescaling])
        if y is None:
            raise OracleError(f"{self._where('argmax', i)} returned None, expected an output: is its 'return' missing?")
        loss = self._loss(i, y)
        cut.n_words = 0
        cut.alpha = cut.b = violation[0] = 0.0
        cut.scale = 1.0
        n = self.difference(i, y)
        if loss == 0.0:
            if n:
                raise OracleError(
                    f"{self._where('loss', i)} returned 0 for an output whose joint feature differs from "
                    "the true one's; the loss must be 0 only for the true output")
            return 0
        cut.words = &self.words[0]
        cut.n_words = 3 * max(n, 1)
        cut_terms(self.rescaling, self.penalty, loss, cut)
        self.c_dots(i, cut, 1, w, False, &score)
        violation[0] = cut.b - score
        if not isfinite(violation[0]):
            raise OracleError(f"{self._where('argmax', i)}: the score of the returned output is {score}")
        if (self.has_primal and self.rescaling != RESCALE_NONE and self.penalty != PENALTY_HARD
                and violation[0] < -SLACK * (1.0 + abs(score))):
            raise OracleError(
                f"{self._where('argmax', i)} returned an output that scores {-violation[0]:.6g} worse than the "
                f"true one in the loss-augmented problem; {'an exact' if self.is_exact else 'a relaxed'} oracle cannot "
                "(set inference = 'approximate' if it searches)")
        return 0

    @property
    def owner(self):
        return type(self.oracle).__name__

    @property
    def is_open(self):
        """Whether outputs are known in part, and the oracle sums over what agrees.

        With weights of 0 that is the log of their number: 0 of one that is fully known, and of no other.
        """
        if self.opened is None:
            asked = self.n_samples if self.known is None and self.oracle.has_expect_known else 0
            is_open, i, w = False, 0, np.zeros(self.n_features)
            try:
                while i < asked and not is_open:
                    is_open = abs(self._of_known(i, w)[0]) > SLACK
                    i += 1
            except Exception as error:
                self.note(error, i)
                raise
            self.opened = is_open
        return self.opened

    @property
    def offers(self):
        has = {"expectations": self.oracle.has_expect, "completions": self.oracle.has_complete,
               "marginals": self.is_open, "constraints": not self.is_open}
        return frozenset(name for name, there in has.items() if there)

    def _of_known(self, i, w):
        """`expect_known` of example i, checked."""
        answer = self.oracle.expect_known(self.X[i], self.Y[i], w)
        return checked_expect(answer, self.n_features, partial(self._where, "expect_known", i))

    cdef int ask_expect(self, Py_ssize_t i, const void* w, float32_t* m, double* loss, double* entropy) except -1:
        cdef double score, true_score, inside, of_all
        self.look_at(w)
        where = partial(self._where, "expect", i)
        log_sum, expectation = checked_expect(self.oracle.expect(self.X[i], self.view), self.n_features, where)
        if self.is_open:
            inside, (indices, values) = self._of_known(i, self.view)
            what = "that of what agrees"
        else:
            if self.true_features[i] is None:
                self.true_features[i] = self._true_feature(i, partial(self._where, "joint_feature", i))
            indices, values = self.true_features[i]
            check_numbers(indices, values, self.n_features, self._where("joint_feature", i))
            what = "the true output's score"
        true_score, score = values @ self.view[indices], expectation[1] @ self.view[expectation[0]]
        if not self.is_open:
            inside = true_score
        of_all = log_sum - score
        for below, what in ((log_sum - inside, what), (of_all, "the expected score")):
            if not isfinite(below) or below < -SLACK * (1.0 + abs(log_sum) + abs(log_sum - below)):
                raise OracleError(f"{where()} returned the log-sum {log_sum:.6g}, and {what} is {log_sum - below:.6g}; "
                                  "the sum over all outputs cannot be less")
        loss[0], entropy[0] = max(log_sum - inside, 0.0), max(of_all, 0.0) - (inside - true_score)
        if m != NULL:
            moments = np.zeros(self.n_features)
            moments[expectation[0]] = expectation[1]
            np.subtract.at(moments, indices, values)
            np.asarray(<float32_t[:self.n_features]>m)[:] = moments
        return 0

    cdef int ask_complete(self, Py_ssize_t i, const void* w, Target* target) except -1:
        """Add the completion to `completed`, an object of its own: an oracle may fill the same one again."""
        self.look_at(w)
        known = self.Y if self.known is None else self.known
        y = deepcopy(self.oracle.complete(self.X[i], known[i], self.view))
        score = self._score(i, y, partial(self._where, "complete", i))
        if self.known is not None and self.has_primal:
            before = self._score(i, self.Y[i], partial(self._where, "joint_feature", i))
            if before - score > SLACK * (1.0 + abs(before) + abs(score)):
                raise OracleError(
                    f"{self._where('complete', i)} returned an output with the score {score:.6g}, but one that it "
                    f"found under other weights has {before:.6g}; "
                    f"{'an exact' if self.is_exact else 'a relaxed'} oracle cannot (set inference = 'approximate' if "
                    "it searches)")
        self.word = <int32_t>len(self.completed)
        self.completed.append(y)
        target.words = &self.word
        target.n_words = 1
        return 0

    cdef bint c_retarget(self, Py_ssize_t i, const Target* target, bint take) except -1 nogil:
        cdef bint differs = True
        with gil:
            y = self.completed[target.words[0]]
            if take:
                self.Y[i], self.true_features[i] = y, None
            else:
                differs = self._loss(i, y) != 0.0
            if take or not differs:
                self.completed.clear()
        return differs

    def _score(self, i, y, where):
        """<w, Psi(x, y)> under the last weights; OracleError for an output without a score."""
        loss = self.oracle.loss(y, y)
        if loss != 0.0:
            raise OracleError(f"{self._where('loss', i)} returned {loss!r:.80} for an output of {where()} and itself, "
                              "expected 0")
        indices, values = feature_arrays(self.oracle.joint_feature(self.X[i], y), self.n_features, where)
        check_numbers(indices, values, self.n_features, where())
        return float(values @ self.view[indices])

    @property
    def targets(self):
        return np.arange(self.n_samples + 1), as_objects(self.Y)

    def with_targets(self, targets):
        return self.rebuilt(self.oracle, self.X, list(targets[1]), self.Y if self.known is None else self.known)

    def outputs(self, words):
        found = as_objects([self.completed[k] for k in words.tolist()])
        self.completed.clear()
        return found

    def differ(self, targets):
        return np.array([self._loss(i, y) != 0.0 for i, y in enumerate(targets[1])], dtype=bool)

    def fingerprint(self):
        return fingerprint(*self.examples(0, self.n_samples), self._where)

    def examples(self, Py_ssize_t start, Py_ssize_t stop):
        rows = [None if all_rows is None else [all_rows[i] for i in range(start, stop)]
                for all_rows in (self.X, self.Y, self.known)]
        return self.oracle, *rows, self.is_open


def as_objects(outputs):
    """A list as an array of objects, whatever they are."""
    array = np.empty(len(outputs), dtype=object)
    for i, output in enumerate(outputs):
        array[i] = output
    return array
