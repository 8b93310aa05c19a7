"""Weights of a problem, the running average of them, and the perceptron's step.

Weights that must be >= 0 (`BoundProblem.nonnegative`) have multipliers mu_j >= 0 in the dual,

    max_{alpha, mu >= 0} sum alpha b - 1/2 |w|^2,     w = sum alpha psi + mu,

whose optimum given alpha is mu_j = max(0, -v_j), v = sum alpha psi: then w_j = max(0, v_j). Between two such steps
the dual is the quadratic that it is without them, and after each the rest of the formulas hold as they are: mu_j w_j =
0, so that |w|^2 = sum alpha <w, psi>.
"""

import numpy as np

from structsvm._problem cimport Cut, Problem
from structsvm._random cimport random_seed
from structsvm._arrays cimport array_data, ndarray
from structsvm._prefetch cimport in_large_pages
from structsvm._typedefs cimport float32_t, float64_t, int64_t, uint64_t
from structsvm.dual._state cimport State
from structsvm.execution._stop cimport poll

cdef fused real:
    float32_t
    float64_t

cdef Py_ssize_t PIECE = 1 << 16     # weights that stay in the cache
cdef Py_ssize_t CACHE_LINE = 64     # bytes

AVERAGINGS = {None: AVERAGE_NONE, "uniform": AVERAGE_UNIFORM, "linear": AVERAGE_LINEAR}


cdef void add_products(const float64_t[::1] a, const float64_t[::1] b, double* lanes) noexcept nogil:
    """Add to eight sums that do not wait for each other, and to one of the rest.

    If pieces of long vectors have a multiple of eight numbers, all but the last, the sums are those of the whole.
    """
    cdef Py_ssize_t k, lane, wholes = a.shape[0] - a.shape[0] % 8
    for k in range(0, wholes, 8):
        for lane in range(8):
            lanes[lane] += a[k + lane] * b[k + lane]
    for k in range(wholes, a.shape[0]):
        lanes[8] += a[k] * b[k]


cdef double sum_of_lanes(const double* lanes) noexcept nogil:
    cdef double total = lanes[8]
    cdef Py_ssize_t lane
    for lane in range(8):
        total += lanes[lane]
    return total


cdef double sum_of_products(const float64_t[::1] a, const float64_t[::1] b) noexcept:
    cdef double[9] lanes = [0.0] * 9
    with nogil:
        add_products(a, b, lanes)
    return sum_of_lanes(lanes)


cdef double squared_distance(const real* w, const float64_t* base, Py_ssize_t n) except -1.0 nogil:
    """|w - base|^2 in float64, in the order of `add_products` in each piece; base NULL: 0."""
    cdef Py_ssize_t start = 0, stop, k, lane
    cdef double[9] lanes
    cdef double x, total = 0.0
    while start < n:
        stop = min(start + PIECE, n)
        for lane in range(9):
            lanes[lane] = 0.0
        for k in range(start, stop - 7, 8):
            for lane in range(8):
                x = w[k + lane] if base == NULL else w[k + lane] - base[k + lane]
                lanes[lane] += x * x
        for k in range(stop - (stop - start) % 8, stop):
            x = w[k] if base == NULL else w[k] - base[k]
            lanes[8] += x * x
        total += sum_of_lanes(lanes)
        poll(4 * PIECE)
        start = stop
    return total


def half_norm(weights, base=None):
    """1/2 |w - base|^2 in float64; base None: 0."""
    cdef const float64_t[::1] origin = base
    cdef const float32_t[::1] single
    cdef const float64_t[::1] full
    cdef Py_ssize_t n = len(weights)
    cdef const float64_t* start = NULL if base is None or n == 0 else &origin[0]
    cdef double square
    if n == 0:
        return 0.0
    if weights.dtype == np.float32:
        single = weights
        with nogil:
            square = squared_distance(&single[0], start, n)
    else:
        full = weights
        with nogil:
            square = squared_distance(&full[0], start, n)
    return 0.5 * square


cdef double sum_up_at(const int64_t* where, real* values, const int64_t* bounds, int64_t* at, Py_ssize_t n_vectors,
                      real* sums, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t start = 0, stop, k, c
    cdef double total = 0.0
    while start < n:
        stop = start + PIECE
        for k in range(n_vectors):
            c = at[k]
            while c < bounds[k + 1] and where[c] < stop:
                sums[where[c] - start] += values[c]
                c += 1
        for k in range(n_vectors):
            while at[k] < bounds[k + 1] and where[at[k]] < stop:
                c = at[k]
                values[c] = sums[where[c] - start]
                sums[where[c] - start] = 0.0
                total += <double>values[c] * values[c]
                at[k] += 1
        start = stop
    return total


def sum_up(const int64_t[::1] where, ndarray values not None, const int64_t[::1] bounds, Py_ssize_t n):
    """Turn sparse vectors of length n, each sorted, vector k from bounds[k] on, into their sum; return its square.

    Each number of the sum takes the place that the first of the vectors has for it; the other places become 0.
    """
    cdef int64_t[::1] at = np.array(bounds)
    cdef ndarray sums = np.zeros(PIECE, dtype=values.dtype)
    cdef Py_ssize_t n_vectors = bounds.shape[0] - 1
    if where.shape[0] == 0:
        return 0.0
    if values.dtype == np.float32:
        return sum_up_at(&where[0], <float32_t*>array_data(values), &bounds[0], &at[0], n_vectors,
                         <float32_t*>array_data(sums), n)
    return sum_up_at(&where[0], <float64_t*>array_data(values), &bounds[0], &at[0], n_vectors,
                     <float64_t*>array_data(sums), n)


cdef void add_sparse_at(const int64_t* where, const real* values, Py_ssize_t n, real* w, real* copy, real* u,
                        double tick) noexcept nogil:
    cdef Py_ssize_t c
    for c in range(n):
        w[where[c]] += values[c]
        copy[where[c]] = w[where[c]]
        if u != NULL:
            u[where[c]] += <real>tick * values[c]


def add_sparse(const int64_t[::1] where, ndarray values not None, ndarray w not None, ndarray copy not None, u,
               double tick):
    """Add to w the result of `sum_up`, and to u (None: there is none) tick times that; `copy` follows w."""
    cdef void* sums = NULL if u is None else array_data(u)
    if where.shape[0] == 0:
        return
    if values.dtype == np.float32:
        add_sparse_at(&where[0], <const float32_t*>array_data(values), where.shape[0], <float32_t*>array_data(w),
                      <float32_t*>array_data(copy), <float32_t*>sums, tick)
    else:
        add_sparse_at(&where[0], <const float64_t*>array_data(values), where.shape[0], <float64_t*>array_data(w),
                      <float64_t*>array_data(copy), <float64_t*>sums, tick)


def put(out, vector, base=None):
    """out = vector + base (None: 0), in pieces between which Ctrl-C is heard; returns `out`."""
    for start in range(0, len(vector), PIECE):
        piece = slice(start, start + PIECE)
        out[piece] = vector[piece] if base is None else vector[piece] + base[piece]
        poll(4 * PIECE)
    return out


def zeros(n, dtype):
    """A vector of zeros that begins with a line of the cache, so that no row of weights lies on more than it must.

    Long ones are in large pages, as steps read rows from anywhere.
    """
    cdef ndarray memory = np.zeros(n + CACHE_LINE, dtype=dtype)
    in_large_pages(array_data(memory), memory.nbytes)
    first = -memory.ctypes.data % CACHE_LINE // memory.itemsize
    return memory[first:first + n]


def copied(vector):
    """A copy of a long vector."""
    return put(zeros(len(vector), vector.dtype), vector)


cdef int overflow(Py_ssize_t i) except -1 nogil:
    with gil:
        raise ValueError(f"example {i}: its scores overflow; scale the features down")


cdef double lift(real* w, real* u, const int64_t* signs, Py_ssize_t n, double* mu, bint has_mu,
                 double tick) noexcept nogil:
    """w_j = max(0, v_j) for the n signs j; u (unless NULL) += tick times the change. Returns the fall of 1/2 |w|^2.

    v = w - mu. With `has_mu`, mu_j becomes max(0, -v_j); else it is 0 and stays so.
    """
    cdef Py_ssize_t k
    cdef double old, v, new, fall = 0.0
    for k in range(n):
        old = w[signs[k]]
        v = old - mu[k]
        new = 0.0 if v < 0.0 else v     # not a number stays that
        if has_mu:
            mu[k] = -v if v < 0.0 else 0.0
        if new != old:
            w[signs[k]] = <real>new
            fall += 0.5 * (old * old - new * new)
            if u != NULL:
                u[signs[k]] += <real>(tick * (new - old))
    return fall


cdef class WeightState(State):
    """Weights of a bound problem, their running average, and the counters.

    Parameters
    ----------
    problem : Problem
        The bound problem.
    seed : int
        Seed of the state's own random generator.
    averaging : {None, "uniform", "linear"}
        Which average of the weights over examples visited `averaged` returns.
    base : ndarray of shape (n_features,), optional
        Weights to start from.
    on : ndarray of shape (n_features,), problem.weight_dtype, optional
        Weights to work on, which belong to others, too.
    """

    kind = "weights"
    steps = frozenset({"subgradient_step"})
    has_multipliers = False     # whether a projection of the weights is a step of a dual

    def __init__(self, Problem problem not None, *, uint64_t seed=0, averaging=None, base=None, on=None):
        self.problem, self.n_samples, self.groups = problem, problem.n_samples, problem.groups
        self.sections = problem.sections.bounds
        self.weights = zeros(problem.n_features, problem.weight_dtype) if on is None else on
        self.is_lent = on is not None
        problem.lend(self.weights)
        if base is not None:
            shape = np.shape(base)
            with np.errstate(over="ignore"):
                if shape != self.weights.shape or not np.isfinite(np.asarray(base, self.weights.dtype)).all():
                    raise ValueError(f"base must be {len(self.weights)} finite numbers, one per feature, as "
                                     f"{self.weights.dtype}; got shape {shape}")
                self.weights[:] = base
        self.w = array_data(self.weights)
        self.averaging = AVERAGINGS[averaging]
        if self.averaging != AVERAGE_NONE:
            self.average_sum = zeros(problem.n_features, problem.weight_dtype)
            self.u = array_data(self.average_sum)
        if problem.nonnegative is not None:
            self.signs = problem.nonnegative
            self.n_signs = self.signs.shape[0]
            self.mu = np.zeros(self.n_signs)
            self.has_mu, self.counts_mu, self.n_projected = self.has_multipliers, True, -1
            self.project()
        random_seed(&self.random, seed)

    cdef int enter_section(self, Py_ssize_t a, Py_ssize_t b) except -1:
        if self.entered[1] > self.entered[0]:
            self.problem.sections.leave(self.entered[0], self.entered[1])
        self.entered[0], self.entered[1] = a, b
        return self.problem.sections.enter()

    cdef void project(self) noexcept nogil:
        """Best multipliers of the weights that must be >= 0, which then are, if w has changed since the last time."""
        cdef double fall, tick = 0.0
        cdef void* u = NULL
        if self.n_signs == 0 or self.n_projected == self.n_updates:
            return
        if self.averaging != AVERAGE_NONE and self.n_visits > self.average_from and self.counts_mu:
            u = self.u
            tick = self.tick()
        if self.problem.single:
            fall = lift(<float32_t*>self.w, <float32_t*>u, &self.signs[0], self.n_signs, &self.mu[0], self.has_mu, tick)
        else:
            fall = lift(<float64_t*>self.w, <float64_t*>u, &self.signs[0], self.n_signs, &self.mu[0], self.has_mu, tick)
        if self.has_mu and self.counts_mu:
            self.dual += fall
        self.n_projected = self.n_updates

    cdef double tick(self) noexcept nogil:
        """Factor of an update made now in the sum from which the average is taken.

        With t visits before this one, the weights w_s after visit s have the average
            1/T sum_s w_s   = w_T - u / T,             u = sum of updates, each times t,
            sum_s s w_s / S = w_T - u / S, S = T(T+1)/2, each times t (t + 1) / 2.
        """
        cdef double t = <double>(self.n_visits - self.average_from - 1)
        return 0.5 * t * (t + 1.0) if self.averaging == AVERAGE_LINEAR else t

    cdef int update(self, Py_ssize_t i, Cut* cut, double coef) except -1 nogil:
        """w += coef psi; the average follows."""
        self.problem.c_add(i, cut, coef, self.w)
        self.n_updates += 1
        if self.averaging != AVERAGE_NONE:
            self.problem.c_add(i, cut, coef * self.tick(), self.u)
        return 0

    cdef int subgradient_step(self, Py_ssize_t i) except -1 nogil:
        """Thesis, algorithm 6, the perceptron's: decode; on a mistake add dPsi."""
        cdef Cut cut
        cdef double violation
        self.n_argmax += 1
        self.problem.c_separate(i, self.w, &cut, &violation)
        self.n_visits += 1
        if cut.n_words > 0:
            self.update(i, &cut, 1.0)
            self.project()
        return 0

    def count_argmax(self, int64_t n):
        """Count calls of the oracle that were not made by the state itself."""
        self.n_argmax += n

    def restart_average(self):
        """Let the average begin here."""
        self.average_from = self.n_visits
        if self.average_sum is not None and self.n_visits + self.n_updates > 0:     # else 0: touch no page
            self.average_sum[:] = 0.0

    @property
    def averages(self):
        """Whether the average is of more visits than one, after which it is the weights."""
        return self.averaging != AVERAGE_NONE and self.n_visits - self.average_from != 1

    def averaged(self):
        """Return the average of the weights (the last weights if averaging is off)."""
        cdef double t = <double>(self.n_visits - self.average_from)
        if self.averaging == AVERAGE_NONE or t == 0.0:
            return copied(self.weights)
        return self.average_to(zeros(len(self.weights), self.weights.dtype), t)

    cdef average_to(self, average, double t):
        """`averaged` of t visits, in an array, which may be that of the sum."""
        if self.averaging == AVERAGE_LINEAR:
            t *= 0.5 * (t + 1.0)
        for start in range(0, len(average), PIECE):
            piece = slice(start, start + PIECE)
            np.divide(self.average_sum[piece], -t, out=average[piece])
            average[piece] += self.weights[piece]
            poll(4 * PIECE)
        if self.n_signs > 0:    # but for rounding they are
            average[self.problem.nonnegative] = np.maximum(average[self.problem.nonnegative], 0.0)
        return average

    def end_average(self):
        """Say that no further step belongs to the average, so that it needs no memory beside its sum."""

    def renew(self):
        """Go on with a copy of the weights: those so far belong to who took them."""
        self.weights = copied(self.weights)
        self.problem.lend(self.weights)
        self.w = array_data(self.weights)

    def get_state(self):
        """Return the state as a dict of arrays; training that resumes from it gives bit-identical results."""
        state = {
            "random": self.random_words(),
            "counters": np.array([self.n_argmax, self.n_updates, self.n_visits, self.average_from], dtype=np.int64),
        }
        return state | self._vectors()

    def _vectors(self):
        vectors = {"weights": copied(self.weights)}
        if self.average_sum is not None:
            vectors["average_sum"] = copied(self.average_sum)
        return vectors

    def _set_vectors(self, state, adapt):
        weights, average_sum = fitting(state, "weights", self.weights), 0.0
        if self.average_sum is not None:
            if not adapt or "average_sum" in state:
                average_sum = fitting(state, "average_sum", self.weights)
            self.average_sum[:] = average_sum
        self.weights[:] = weights

    def set_state(self, state, *, adapt=False):
        """Restore the arrays returned by `get_state`.

        Parameters
        ----------
        state : dict of ndarray
            As their table has them: `structsvm.checkpoint.checked_state`.
        adapt : bool
            Whether they may come from a run with other parameters: alphas that do not fit C any more are scaled down,
            and an average that did not exist begins here.

        Raises
        ------
        ValueError
            If an array is damaged or belongs to another problem; the state is unchanged.
        """
        counters = state["counters"]
        if counters[3] > counters[2]:
            raise ValueError("array 'counters' of the training state averages over more visits than there were")
        self._set_vectors(state, adapt)
        self.set_random(state["random"])
        self.n_argmax, self.n_updates, self.n_visits, self.average_from = counters
        self.n_projected = -1
        self.project()
        if adapt and "average_sum" not in state:
            self.average_from = self.n_visits

    def reweigh(self, C):
        """Go on with other weights of the examples' losses; False, and nothing is changed, where it cannot."""
        return False


def fitting(state, name, like):
    """Return an array of a training state; ValueError, naming it, unless it has the dtype and shape of `like`."""
    array = state.get(name)
    if array is None:
        raise ValueError(f"training state: array {name!r} is missing")
    if array.dtype != like.dtype or array.shape != like.shape:
        raise ValueError(f"training state: array {name!r} has dtype {array.dtype} and shape {array.shape}, expected "
                         f"{like.dtype} and {like.shape}")
    return array
