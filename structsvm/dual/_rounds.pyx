"""One round of the oracle: a block of examples, decoded at weights that stay as they are.

What a batch solver, a certificate and a worker of a cluster have in common. A round's outcome for an example
depends on the example and the weights alone, so it is the same wherever and in whatever portions it is computed.
"""

from libc.stdlib cimport free, realloc
from libc.string cimport memcpy

import numpy as np

from structsvm._problem cimport Cut, Problem, Target
from structsvm._arrays cimport array_data, ndarray
from structsvm.execution._stop cimport poll
from structsvm._typedefs cimport float32_t, float64_t, int32_t, int64_t
from structsvm.dual._weights cimport overflow


cdef ndarray lent(Problem problem, weights):
    """The weights in the problem's type; the caller keeps the array alive while it uses the address."""
    weights = problem._check_weights(weights)
    problem.lend(weights)
    problem.sections.enter()
    return weights


cdef int separate(Problem problem, Py_ssize_t i, const void* w, Cut* cut, double* violation) except -1 nogil:
    problem.c_separate(i, w, cut, violation)
    poll(<int64_t>problem.c_cost(i))
    if violation[0] != violation[0]:
        overflow(problem.first + i)
    return 0


cdef int expect(Problem problem, Py_ssize_t i, const void* w, float32_t* moments, double* loss,
                double* entropy) except -1 nogil:
    problem.c_expect(i, w, moments, loss, entropy)
    poll(<int64_t>problem.c_cost(i))
    if loss[0] != loss[0]:
        overflow(problem.first + i)
    return 0


# The words of many constraints or outputs, one behind the other.
cdef struct Words:
    int32_t* at
    int64_t size, capacity


cdef int append(Words* words, const int32_t* more, int64_t count, const char* what) except -1 nogil:
    cdef void* room
    if words.size + count > words.capacity:
        room = realloc(words.at, 2 * (words.size + count) * sizeof(int32_t))
        if room == NULL:
            with gil:
                raise MemoryError(f"no memory for the {what.decode()} of a round")
        words.at = <int32_t*>room
        words.capacity = 2 * (words.size + count)
    memcpy(words.at + words.size, more, count * sizeof(int32_t))
    words.size += count
    return 0


cdef copy_of(const Words* words):
    cdef int32_t[::1] out = np.empty(words.size, dtype=np.int32)
    if words.size > 0:
        memcpy(&out[0], words.at, words.size * sizeof(int32_t))
    return np.asarray(out)


def violations(Problem problem not None, weights, Py_ssize_t start=0, stop=None):
    """How much the most violated constraint of each of examples start .. stop - 1 is violated: float64 array."""
    cdef ndarray array = lent(problem, weights)
    cdef const void* w = array_data(array)
    cdef Py_ssize_t i, end = problem.n_samples if stop is None else stop
    cdef float64_t[::1] out = np.empty(end - start)
    cdef Cut cut
    with nogil:
        for i in range(start, end):
            separate(problem, i, w, &cut, &out[i - start])
            problem.sections.visited(i)
    return np.asarray(out)


def collect(Problem problem not None, weights, Py_ssize_t start, Py_ssize_t stop):
    """The most violated constraints of examples start .. stop - 1.

    Returns
    -------
    violations : ndarray of shape (stop - start,), float64
    terms : ndarray of shape (stop - start, 2), float64
        Right-hand side b and scale of each constraint.
    bounds : ndarray of shape (stop - start + 1,), int64
        Where each constraint's words begin; an example that violates nothing has none.
    words : ndarray of int32
    """
    cdef ndarray array = lent(problem, weights)
    cdef const void* w = array_data(array)
    cdef Py_ssize_t k, n = stop - start
    cdef float64_t[::1] violation = np.empty(n)
    cdef float64_t[:, ::1] terms = np.zeros((n, 2))
    cdef int64_t[::1] bounds = np.zeros(n + 1, dtype=np.int64)
    cdef Words words = Words(NULL, 0, 0)
    cdef Cut cut
    try:
        with nogil:
            for k in range(n):
                separate(problem, start + k, w, &cut, &violation[k])
                if violation[k] > 0.0 and cut.n_words > 0:
                    append(&words, cut.words, cut.n_words, "constraints")
                    terms[k, 0] = cut.b
                    terms[k, 1] = cut.scale
                bounds[k + 1] = words.size
                problem.sections.visited(start + k)
        out = copy_of(&words)
    finally:
        free(words.at)
    return np.asarray(violation), np.asarray(terms), np.asarray(bounds), out


def losses(Problem problem not None, weights, Py_ssize_t start=0, stop=None):
    """Log loss of each of examples start .. stop - 1: float64 array."""
    cdef ndarray array = lent(problem, weights)
    cdef const void* w = array_data(array)
    cdef Py_ssize_t i, end = problem.n_samples if stop is None else stop
    cdef float64_t[::1] out = np.empty(end - start)
    cdef double entropy
    with nogil:
        for i in range(start, end):
            expect(problem, i, w, NULL, &out[i - start], &entropy)
            problem.sections.visited(i)
    return np.asarray(out)


def log_losses(Problem problem not None, weights, const int64_t[::1] chosen):
    """The log losses of some examples, and what becomes of them as the weights grow.

    Returns
    -------
    losses, slopes : ndarrays of the shape of `chosen`, float64
        log Z - <w, Psi(x, y)>, and its derivative by s at s w for s = 1, which is <w, E[Psi] - Psi(x, y)>.
    """
    cdef ndarray array = lent(problem, weights)
    cdef const void* w = array_data(array)
    cdef float64_t[::1] found = np.empty(chosen.shape[0]), slopes = np.empty(chosen.shape[0])
    cdef Py_ssize_t k, size = 1
    cdef double entropy
    cdef float32_t[::1] moments
    for k in range(chosen.shape[0]):
        size = max(size, problem.c_moments(chosen[k]))
    moments = np.empty(size, dtype=np.float32)
    with nogil:
        for k in range(chosen.shape[0]):
            expect(problem, chosen[k], w, &moments[0], &found[k], &entropy)
            slopes[k] = found[k] - entropy
    return np.asarray(found), np.asarray(slopes)


def completions(Problem problem not None, weights, Py_ssize_t start=0, stop=None, Py_ssize_t turn=0,
                Py_ssize_t turns=1):
    """The best outputs of examples start .. stop - 1 that agree with what is known of the true ones, as
    `Problem.targets` has them.

    With `turns`, those of every so many-th example alone, of the whole problem, from number `turn` on; no words for
    the others.
    """
    cdef ndarray array = lent(problem, weights)
    cdef const void* w = array_data(array)
    cdef Py_ssize_t i, end = problem.n_samples if stop is None else stop
    cdef int64_t[::1] bounds = np.zeros(end - start + 1, dtype=np.int64)
    cdef Words words = Words(NULL, 0, 0)
    cdef Target target
    try:
        with nogil:
            for i in range(start, end):
                if (problem.first + i) % turns == turn:
                    problem.c_complete(i, w, &target)
                    poll(<int64_t>problem.c_cost(i))
                    append(&words, target.words, target.n_words, "completions")
                bounds[i - start + 1] = words.size
        out = copy_of(&words)
    finally:
        free(words.at)
    return np.asarray(bounds), problem.outputs(out)
