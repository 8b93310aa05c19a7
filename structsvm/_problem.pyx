"""The bound problem that solvers see, with the verbs for sparse cuts that most oracles need.

A subclass fills `c_separate`. The other verbs have default bodies for cuts written as a sparse vector:
n float64 values followed by their n int32 feature indices, ascending (so 3 n words). A compiled oracle
with a tighter encoding overrides all of them.
"""

from cython cimport final
from libc.math cimport isfinite, sqrt
from libc.string cimport memcmp, memcpy

import numpy as np

from structsvm._arrays cimport array_data, ndarray
from structsvm._typedefs cimport float32_t, float64_t, int32_t, int64_t
from structsvm.execution._stop cimport poll

from structsvm.adapter import INFERENCES, OracleError, sign_constrained
from structsvm.arrays import checksum

cdef fused real:
    float
    double

cdef enum:
    NO_SECTION = -1     # is being visited

RESCALINGS = {None: RESCALE_NONE, "margin": RESCALE_MARGIN, "slack": RESCALE_SLACK}
PENALTIES = {"linear": PENALTY_LINEAR, "quadratic": PENALTY_QUADRATIC, None: PENALTY_HARD}


cdef void cut_terms(Rescaling rescaling, Penalty penalty, double loss, Cut* cut) noexcept nogil:
    cut.alpha = cut.drift = 0.0
    cut.idle = 0
    if penalty == PENALTY_HARD:
        loss = 1.0
    elif penalty == PENALTY_QUADRATIC:
        loss = sqrt(loss)
    cut.b = loss
    cut.scale = loss if rescaling == RESCALE_SLACK else 1.0


cdef inline bint comes_before(const Cut* a, const Cut* b) noexcept nogil:
    """A fixed order of cuts, so that inner products are summed in one way only."""
    if a.n_words != b.n_words:
        return a.n_words < b.n_words
    return memcmp(a.words, b.words, a.n_words * sizeof(int32_t)) <= 0


cdef double dot(const Cut* cut, const real* w) noexcept nogil:
    cdef Py_ssize_t e, size = cut.n_words // 3
    cdef const float64_t* values = <const float64_t*>cut.words
    cdef const int32_t* indices = cut.words + 2 * size
    cdef double total = 0.0
    for e in range(size):
        total += values[e] * w[indices[e]]
    return cut.scale * total


cdef void add(const Cut* cut, double coef, real* w) noexcept nogil:
    cdef Py_ssize_t e, size = cut.n_words // 3
    cdef const float64_t* values = <const float64_t*>cut.words
    cdef const int32_t* indices = cut.words + 2 * size
    coef *= cut.scale
    for e in range(size):
        w[indices[e]] += <real>(coef * values[e])


cdef double moments_dot(const float32_t* m, const real* w, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t k
    cdef double total = 0.0
    for k in range(n):
        total += <double>m[k] * w[k]
    return total


cdef void add_moments(const float32_t* m, double coef, real* w, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t k
    for k in range(n):
        w[k] += <real>(coef * m[k])


@final
cdef class Memory:
    def __cinit__(self):
        self.arrays = []

    cdef void* take(self, int64_t n, kind) except NULL:
        cdef ndarray array = np.zeros(max(n, 1), dtype=kind)
        self.arrays.append(array)
        return array_data(array)

    cdef double* float64s(self, int64_t n) except NULL:
        return <double*>self.take(n, np.float64)

    cdef int32_t* int32s(self, int64_t n) except NULL:
        return <int32_t*>self.take(n, np.int32)

    cdef uint8_t* uint8s(self, int64_t n) except NULL:
        return <uint8_t*>self.take(n, np.uint8)


@final
cdef class Sections:
    """Runs of examples that are visited one after the other, so that memory of the others may be released.

    Parameters
    ----------
    bounds, leave, enter : see `Problem.in_sections`
        None: all examples are one section, of which nothing is released.

    Attributes
    ----------
    bounds : int64 array or None
    """

    def __init__(self, bounds=None, leave=None, enter=None):
        self.bounds = None if bounds is None else np.ascontiguousarray(bounds, dtype=np.int64)
        self.ends = np.zeros(0, dtype=np.int64) if bounds is None else self.bounds
        self.current, self.on_leave, self.on_enter = NO_SECTION, leave, enter

    def __reduce__(self):
        return Sections, (self.bounds, self.on_leave, self.on_enter)

    cdef Sections part(self, Py_ssize_t start, Py_ssize_t stop):
        """The sections of examples start .. stop - 1 alone, as a shard has them."""
        if self.bounds is None:
            return Sections()
        leave = self.on_leave
        bounds = np.unique(np.clip(self.bounds, start, stop)) - start
        return Sections(bounds, lambda a, b: leave(start + a, start + b), self.on_enter)

    cpdef int enter(self) except -1:
        if self.on_enter is not None:
            self.on_enter()
        return 0

    cdef int visited(self, Py_ssize_t i) except -1 nogil:
        cdef Py_ssize_t s = self.current
        if self.ends.shape[0] < 2:
            return 0
        if s == NO_SECTION or not self.ends[s] <= i < self.ends[s + 1]:
            self.leave_current()    # before its end, in a round of a part of each
            s = 0
            while self.ends[s + 1] <= i:
                s += 1
            self.current = s
        if i + 1 == self.ends[s + 1]:
            self.leave_current()
        return 0

    cdef int leave_current(self) except -1 nogil:
        cdef Py_ssize_t s = self.current
        if s != NO_SECTION:
            self.current = NO_SECTION
            with gil:
                self.leave(self.ends[s], self.ends[s + 1])
        return 0

    cdef int leave(self, Py_ssize_t start, Py_ssize_t stop) except -1:
        self.on_leave(start, stop)
        return 0


cdef class BoundProblem:
    """Training examples as solvers see them, and what they offer: the base of all problems.

    Attributes
    ----------
    n_samples : int
        Number of examples.
    n_features : int
        Length of the weight vector.
    inference : {"exact", "relaxed", "approximate"}
        Whether `Problem.separate` returns the most violated constraint, that of a larger set of outputs whose
        constraints are the problem's own, or one that a search has found. See `structsvm.Oracle`.
    is_exact : bool
        Whether `inference` is ``"exact"``.
    has_primal : bool
        Whether the primal objective can be computed, of the relaxed problem where inference is relaxed: whether
        `inference` is not ``"approximate"``. Certificates need it.
    nonnegative : ndarray of int64 or None
        Ascending indices of the weights that must be >= 0. Solvers that cannot keep them so refuse the problem.
    formulation : dict
        The ``rescaling`` and the ``penalty`` of the constraints.
    offers : frozenset of str
        What a solver can build on, of ``"constraints"`` (`Problem.separate`), ``"expectations"`` (`Problem.expect`),
        ``"completions"`` (`Problem.complete`), ``"marginals"`` (of outputs known in part `expect` tells the likelihood
        of what is known), ``"kernel"`` (a kernel and labels),
        ``"feature rows"`` (rows of features and labels; ``"dense rows"``: as a float64 array), and, with labels,
        ``"two classes"``, ``"zero-one loss"``, ``"independent labels"``; or what a task's own solver knows. A
        solver's ``needs`` must be among them.
    n_before : int
        How many of the examples, the first ones, stand for earlier batches of a stream.
    possible : ndarray of bool, shape (n_features,), or None
        The weights that may differ from 0; None: all. Solvers that cannot leave the others at 0 refuse the problem.
    """

    offers = frozenset()
    n_before = 0
    possible = None

    def __init__(self, Py_ssize_t n_samples, Py_ssize_t n_features, *, inference="exact", nonnegative=None):
        if inference not in INFERENCES:
            raise OracleError(f"{self.owner}.inference must be one of {', '.join(INFERENCES)}, got {inference!r:.80}")
        self.n_samples, self.n_features, self.inference = n_samples, n_features, inference
        self.has_primal = inference != "approximate"
        self.nonnegative = sign_constrained(nonnegative, n_features, self.owner)

    def __reduce__(self):
        arguments = type(self), self.n_samples, self.n_features, self.inference, self.nonnegative
        return restored, arguments, vars(self)

    @property
    def is_exact(self):
        return self.inference == "exact"

    @property
    def owner(self):
        """The name of the class that errors are about: the user's oracle, where there is one."""
        return type(self).__name__

    def structure_fingerprint(self):
        """A checksum that distinguishes losses and kernels, for any data; 0 if unknown."""
        return 0

    def to_oracle(self, w):
        """Weights in the order of the oracle, from those in the problem's own: the same, unless a problem says more."""
        return w

    def from_oracle(self, w):
        """The inverse of `to_oracle`."""
        return w


cdef class Problem(BoundProblem):
    """An oracle bound to its training examples.

    Attributes
    ----------
    weight_dtype : numpy.dtype
        Type of the weights.
    """

    offers = frozenset({"constraints"})

    def __init__(self, Py_ssize_t n_samples, Py_ssize_t n_features, *, rescaling="margin",
                 penalty="linear", weight_dtype=np.float64, inference="exact", groups=None,
                 nonnegative=None):
        super().__init__(n_samples, n_features, inference=inference, nonnegative=nonnegative)
        self.weight_dtype = np.dtype(weight_dtype)
        self.single = self.weight_dtype == np.float32
        self.groups = groups
        self.sections = Sections()
        self.rescaling = RESCALINGS[rescaling]
        self.penalty = PENALTIES[penalty]

    @property
    def formulation(self):
        rescalings = {int(code): name for name, code in RESCALINGS.items()}
        penalties = {int(code): name for name, code in PENALTIES.items()}
        return {"rescaling": rescalings[int(self.rescaling)], "penalty": penalties[int(self.penalty)]}

    def examples(self, Py_ssize_t start, Py_ssize_t stop):
        """The constructor's positional arguments for a problem of examples start .. stop - 1 alone."""
        raise NotImplementedError(f"{type(self).__name__} does not implement examples, and so neither shards nor "
                                  "pickles: n_jobs needs it")

    def fingerprint(self):
        """A checksum that tells these training data from others.

        Here: of the most violated constraints of some examples at w = 0. A problem that can look at its data
        does better.
        """
        arrays = [np.array([self.n_samples])]
        w = np.zeros(self.n_features, dtype=self.weight_dtype)
        for i in sorted({k * (self.n_samples - 1) // 15 for k in range(16)} if self.n_samples else ()):
            b, psi = self.separate(i, w)
            indices = np.flatnonzero(psi)
            arrays += [np.array([b]), indices, psi[indices]]
        return checksum(arrays)

    def rebuilt(self, *arguments):
        """The problem of other arguments of the constructor, with the formulation and the first example's number."""
        return rebuild(type(self), arguments, self.formulation, self.first)

    def shard(self, Py_ssize_t start, Py_ssize_t stop):
        """A problem of examples start .. stop - 1, with scratch memory of its own: one thread's part."""
        cdef Problem part = rebuild(type(self), self.examples(start, stop), self.formulation, self.first + start)
        part.sections = self.sections.part(start, stop)
        return part

    def in_sections(self, bounds, leave, enter=None):
        """Let training visit one run of examples after the other.

        Parameters
        ----------
        bounds : int64 array
            From 0 to n_samples; where there are `groups`, bounds of these.
        leave : callable
            Called with the first example of a section and the one after its last, when these will not be visited for a
            while: their memory may be released.
        enter : callable, optional
            Called without arguments before sections are visited: they may be checked.
        """
        self.sections = Sections(bounds, leave, enter)

    def __reduce__(self):
        return rebuild, (type(self), self.examples(0, self.n_samples), self.formulation, self.first)

    @property
    def notes(self):
        """Facts found out about examples, for `note` of the problem that this is a copy of; None: there are none."""
        return None

    def note(self, Py_ssize_t start, notes):
        """Take the notes of a copy of the examples from `start` on."""

    def lend(self, w):
        """Called with each array of weights before its address goes to the other verbs.

        A problem that shows the weights to code it does not know keeps the array alive through this.
        """

    cdef int c_separate(self, Py_ssize_t i, const void* w, Cut* cut, double* violation) except -1 nogil:
        with gil:
            raise NotImplementedError(f"{type(self).__name__} does not implement c_separate")

    cdef int c_dots(self, Py_ssize_t i, const Cut* cuts, Py_ssize_t n, const void* w, bint fresh,
                    double* out) except -1 nogil:
        cdef Py_ssize_t k
        for k in range(n):
            out[k] = dot(&cuts[k], <const float*>w) if self.single else dot(&cuts[k], <const double*>w)
        return 0

    cdef int c_add(self, Py_ssize_t i, const Cut* cut, double coef, void* w) except -1 nogil:
        if self.single:
            add(cut, coef, <float*>w)
        else:
            add(cut, coef, <double*>w)
        return 0

    cdef int c_add_cuts(self, Py_ssize_t i, const Cut* cuts, Py_ssize_t n, void* w) except -1 nogil:
        cdef Py_ssize_t k
        for k in range(n):
            self.c_add(i, &cuts[k], cuts[k].alpha, w)
        return 0

    cdef int c_accumulate(self, Py_ssize_t i, const Cut* cut, double coef, float64_t* w) except -1 nogil:
        add(cut, coef, w)
        return 0

    cdef int c_accumulate_window(self, Py_ssize_t i, const Cut* cut, double coef, float64_t* w, Py_ssize_t low,
                                 Py_ssize_t high) except -1 nogil:
        return self.c_accumulate(i, cut, coef, w)

    cdef double c_inner(self, Py_ssize_t i, const Cut* a, const Cut* b) except? -1 nogil:
        cdef Py_ssize_t size_a = a.n_words // 3, size_b = b.n_words // 3, p = 0, q = 0
        cdef const float64_t* values_a = <const float64_t*>a.words
        cdef const float64_t* values_b = <const float64_t*>b.words
        cdef const int32_t* index_a = a.words + 2 * size_a
        cdef const int32_t* index_b = b.words + 2 * size_b
        cdef double total = 0.0
        while p < size_a and q < size_b:
            if index_a[p] == index_b[q]:
                total += values_a[p] * values_b[q]
                p += 1
                q += 1
            elif index_a[p] < index_b[q]:
                p += 1
            else:
                q += 1
        return a.scale * b.scale * total

    cdef int c_inners(self, Py_ssize_t i, const Cut* cuts, Py_ssize_t n, const Cut* cut, double* out) except -1 nogil:
        cdef Py_ssize_t k
        for k in range(n):
            if comes_before(&cuts[k], cut):
                out[k] = self.c_inner(i, &cuts[k], cut)
            else:
                out[k] = self.c_inner(i, cut, &cuts[k])
        return 0

    cdef bint c_valid(self, Py_ssize_t i, const Cut* cut) noexcept nogil:
        cdef Py_ssize_t e, size = cut.n_words // 3
        cdef const int32_t* indices = cut.words + 2 * size
        cdef double value
        if cut.n_words % 3 != 0:
            return False
        for e in range(size):
            memcpy(&value, cut.words + 2 * e, sizeof(double))   # the words need not be aligned yet
            if not isfinite(value):
                return False
            if indices[e] < 0 or indices[e] >= self.n_features or (e > 0 and indices[e] <= indices[e - 1]):
                return False
        return True

    cdef void c_prefetch(self, Py_ssize_t i, int stage) noexcept nogil:
        pass

    cdef void c_prefetch_add(self, Py_ssize_t i, const Cut* cut, const void* w, int stage) noexcept nogil:
        pass

    cdef double c_cost(self, Py_ssize_t i) noexcept nogil:
        return <double>self.n_features

    cdef Py_ssize_t c_moments(self, Py_ssize_t i) noexcept nogil:
        return self.n_features

    cdef int c_expect(self, Py_ssize_t i, const void* w, float32_t* m, double* loss, double* entropy) except -1 nogil:
        with gil:
            raise NotImplementedError(f"{type(self).__name__} does not implement c_expect")

    cdef double c_moments_dot(self, Py_ssize_t i, const float32_t* m, const void* w) except? -1 nogil:
        return moments_dot(m, <const float*>w, self.n_features) if self.single else \
            moments_dot(m, <const double*>w, self.n_features)

    cdef double c_moments_square(self, Py_ssize_t i, const float32_t* m) except? -1 nogil:
        return moments_dot(m, m, self.n_features)

    cdef int c_moments_add(self, Py_ssize_t i, const float32_t* m, double coef, bint again, void* w) except -1 nogil:
        if self.single:
            add_moments(m, coef, <float*>w, self.n_features)
        else:
            add_moments(m, coef, <double*>w, self.n_features)
        return 0

    cdef int c_moments_accumulate(self, Py_ssize_t i, const float32_t* m, double coef, float64_t* w) except -1 nogil:
        add_moments(m, coef, w, self.n_features)
        return 0

    def sum_of_moments(self, const double[::1] coefs, const int64_t[::1] offsets, const float32_t[::1] moments):
        """sum_i coefs[i] F_i(m_i), in float64: array (n_features,).

        Parameters
        ----------
        coefs : float64 array of shape (n_samples,)
        offsets : int64 array of shape (n_samples + 1,)
            Where the moments of each example begin.
        moments : float32 array
        """
        cdef ndarray total = np.zeros(self.n_features)
        cdef float64_t* w = <float64_t*>array_data(total)
        cdef Py_ssize_t i
        with nogil:
            for i in range(self.n_samples):
                if coefs[i] != 0.0:
                    self.c_moments_accumulate(i, &moments[offsets[i]], coefs[i], w)
                    poll(4 * (offsets[i + 1] - offsets[i]))
        return total

    cdef int c_complete(self, Py_ssize_t i, const void* w, Target* target) except -1 nogil:
        with gil:
            raise NotImplementedError(f"{type(self).__name__} does not implement c_complete")

    cdef bint c_retarget(self, Py_ssize_t i, const Target* target, bint take) except -1 nogil:
        with gil:
            raise NotImplementedError(f"{type(self).__name__} does not implement c_retarget")

    @property
    def targets(self):
        """The true outputs as ``(bounds, words)``: those of example i are ``words[bounds[i]:bounds[i + 1]]``."""
        raise NotImplementedError(f"{type(self).__name__} does not implement targets")

    def with_targets(self, targets):
        """The same problem with these true outputs, which agree with what is known; see `targets`."""
        raise NotImplementedError(f"{type(self).__name__} does not implement with_targets")

    def outputs(self, words):
        """The words of `c_complete` as `targets` has them."""
        return words

    def differ(self, targets):
        """Return whether each target differs from the problem's own: bool array (n_samples,)."""
        (bounds, words), (new_bounds, new_words) = self.targets, targets
        sizes = np.diff(bounds)
        found = sizes != np.diff(new_bounds)
        same = np.flatnonzero(~found & (sizes > 0))
        if len(same):
            # Words, in order, of the examples that have the same size in both.
            kept, new_kept = (np.repeat(~found, np.diff(ends)) for ends in (bounds, new_bounds))
            starts = np.concatenate([[0], np.cumsum(sizes[same])[:-1]])
            found[same] = np.logical_or.reduceat(words[kept] != new_words[new_kept], starts)
        return found

    def separate(self, Py_ssize_t i, w):
        """Return the most violated constraint of example `i` under `w`.

        Parameters
        ----------
        i : int
            Index of the example, ``0 <= i < n_samples``.
        w : ndarray of shape (n_features,)
            Weights; converted to `weight_dtype`.

        Returns
        -------
        b : float
            Right-hand side.
        psi : ndarray of shape (n_features,), float64
            Left-hand side, dense: the constraint is ``<w, psi> >= b - xi_i``.
        """
        cdef Cut cut
        cdef double violation
        cdef ndarray weights = self._check_weights(w)
        cdef ndarray psi = np.zeros(self.n_features)
        self._check_example(i)
        self.lend(weights)
        self.c_separate(i, array_data(weights), &cut, &violation)
        if cut.n_words > 0:
            self.c_accumulate(i, &cut, 1.0, <float64_t*>array_data(psi))
        return cut.b, psi

    def separated_norm(self, Py_ssize_t i, w):
        """Return ``(b, |psi|^2)`` of the constraint that `separate` returns, without a dense vector."""
        cdef Cut cut
        cdef double violation
        cdef ndarray weights = self._check_weights(w)
        self._check_example(i)
        self.lend(weights)
        self.c_separate(i, array_data(weights), &cut, &violation)
        return cut.b, self.c_inner(i, &cut, &cut) if cut.n_words > 0 else 0.0

    def expect(self, Py_ssize_t i, w):
        """Return what example `i` adds to the log loss under `w`, and its gradient.

        Parameters
        ----------
        i : int
            Index of the example, ``0 <= i < n_samples``.
        w : ndarray of shape (n_features,)
            Weights; converted to `weight_dtype`.

        Returns
        -------
        loss : float
            ``log sum_y exp <w, Psi(x_i, y)> - <w, Psi(x_i, y_i)>``, >= 0.
        entropy : float
            That of the distribution proportional to ``exp <w, Psi(x_i, y)>``.
        gradient : ndarray of shape (n_features,), float64
            The expectation of Psi(x_i, y) under it, less Psi(x_i, y_i).
        """
        cdef double loss, entropy
        cdef ndarray weights = self._check_weights(w)
        cdef ndarray gradient = np.zeros(self.n_features)
        self._check_example(i)
        cdef ndarray moments = np.zeros(self.c_moments(i), dtype=np.float32)
        self.lend(weights)
        self.c_expect(i, array_data(weights), <float32_t*>array_data(moments), &loss, &entropy)
        self.c_moments_accumulate(i, <float32_t*>array_data(moments), 1.0, <float64_t*>array_data(gradient))
        return loss, entropy, gradient

    def complete(self, Py_ssize_t i, w):
        """Return the best output of example `i` under `w` that agrees with what is known of the true one.

        Parameters
        ----------
        i : int
            Index of the example, ``0 <= i < n_samples``.
        w : ndarray of shape (n_features,)
            Weights; converted to `weight_dtype`.

        Returns
        -------
        words : ndarray
            In the problem's own encoding, as `targets` has it.
        """
        cdef Target target
        cdef ndarray weights = self._check_weights(w)
        self._check_example(i)
        self.lend(weights)
        self.c_complete(i, array_data(weights), &target)
        cdef ndarray words = np.empty(target.n_words, dtype=np.int32)
        memcpy(array_data(words), target.words, target.n_words * sizeof(int32_t))
        return self.outputs(words)

    def _check_example(self, i):
        if not 0 <= i < self.n_samples:
            raise IndexError(f"example {i} is out of range for {self.n_samples} examples")

    def _check_weights(self, w):
        weights = np.require(w, dtype=self.weight_dtype, requirements="CA")
        if weights.shape != (self.n_features,):
            raise ValueError(f"w has shape {weights.shape}, expected ({self.n_features},)")
        return weights


def restored(kind, n_samples, n_features, inference, nonnegative):
    """The inverse of `BoundProblem.__reduce__`, but for the attributes of a class in Python."""
    problem = kind.__new__(kind)
    BoundProblem.__init__(problem, n_samples, n_features, inference=inference, nonnegative=nonnegative)
    return problem


def rebuild(kind, arguments, formulation, first):
    """The inverse of `Problem.__reduce__`."""
    cdef Problem problem = kind(*arguments, **formulation)
    problem.first = first
    return problem
