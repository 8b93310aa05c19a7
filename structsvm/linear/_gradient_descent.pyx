"""SVMSGD2 and SGD-QN: stochastic gradient descent on the primal of linear machines (thesis, sections 3.1 and 3.2).

    min_w  lambda / 2 |w|^2 + 1/n sum_i s_i l(y_i <w, x_i>)

A visit moves w by - gain(t) l'(y <w, x>) y B x (algorithm 8, line 4). The regularisation is one more example that is
visited once in `skip` times with `skip` times the weight (table 3.2), by an implicit step: w / (1 + skip gain lambda B)
instead of (1 - skip gain lambda B) w, which agrees to first order and is stable for any gain.

B is lambda^-1 for SVMSGD2. For SGD-QN it follows a leaky average h of the diagonal of the Hessian,

    h_k <- h_k + 2/r (lambda + c [x]_k^2 - h_k),  c = (l'(s') - l'(s)) / (s' - s),  B_kk = min(SCALE / h_k, 1 / lambda),

with the margins s and s' of an example before and after its step: c x x' + lambda is the secant Hessian of that
example's cost. The factor SCALE is for theorem 1, which asks that all eigenvalues of H B be above 1/2: those of
H diag(H)^-1 are 1 in the mean. Equation (3.7) of the thesis ("sgdqn-2009") averages ratios
[w' - w]_k / [g(w') - g(w)]_k instead. With
p = (l'(s') - l'(s)) / -l'(s) they are (lambda + p / (gain B_kk))^-1 where [x]_k is not 0, and 1 / lambda elsewhere: for
dense examples the same for all features as long as B is.

All labels (one against the rest) are trained while an example is at hand, each with weights of its own.
"""

from libc.math cimport pow

import numpy as np

from structsvm._prefetch cimport prefetch
from structsvm.execution._processor cimport kernel_set
from structsvm._random cimport random_seed
from structsvm._arrays cimport array_data, ndarray
from structsvm.execution._stop cimport poll
from structsvm._typedefs cimport int32_t, int64_t, uint64_t
from structsvm.dual._state cimport State
from structsvm.kernel._kernels cimport Rows

from structsvm.dual._weights import fitting

cdef extern from "descent.h" nogil:
    ctypedef struct descent:
        double (*dot_float)(const float* x, const float* w, int64_t d) noexcept nogil
        double (*dot_double)(const double* x, const double* w, int64_t d) noexcept nogil
        void (*move_float)(float* w, const float* B, const float* x, int64_t d, double step) noexcept nogil
        void (*move_double)(double* w, const double* B, const double* x, int64_t d, double step) noexcept nogil
        void (*add_float)(double* u, const float* B, const float* x, int64_t d, double step) noexcept nogil
        void (*add_double)(double* u, const double* B, const double* x, int64_t d, double step) noexcept nogil
        void (*decay_float)(float* w, const float* B, double* u, int64_t d, double amount, double when) noexcept nogil
        void (*decay_double)(double* w, const double* B, double* u, int64_t d, double amount,
                             double when) noexcept nogil
        void (*curve_float)(float* h, float* B, const float* x, int64_t d, double ridge, double curvature, double rate,
                            double scale, double least, double most) noexcept nogil
        void (*curve_double)(double* h, double* B, const double* x, int64_t d, double ridge, double curvature,
                             double rate, double scale, double least, double most) noexcept nogil
    const descent* descent_of(int set)

cdef enum Loss:
    HINGE
    SQUARED_HINGE
    SMOOTH_HINGE
    SMOOTH_SQUARED_HINGE

cdef enum Method:
    SVMSGD2
    SGDQN
    SGDQN_2009

METHODS = {"sgdqn": SGDQN, "svmsgd2": SVMSGD2, "sgdqn-2009": SGDQN_2009}

LOSSES = {
    "hinge": HINGE,
    "squared_hinge": SQUARED_HINGE,
    "smooth_hinge": SMOOTH_HINGE,
    "smooth_squared_hinge": SMOOTH_SQUARED_HINGE,
}

# Visits between two regularisation steps on dense data (c of section 3.1.2); with a share s of numbers that are not
# zero c / s; but so many of them in a pass at least.
cdef double SKIP = 16.0
cdef double LEAST_OFTEN = 16.0

# B is this over the estimated curvature, and at least this share of 1 / lambda (algorithm 8, line 8).
cdef double SCALE = 8.0
cdef double LEAST_STEP = 1e-2

# The power of the gain's decay where weights are averaged (Bottou 2010).
cdef double AVERAGED_POWER = 0.75

# Dense rows of more bytes than this in all are visited in runs of neighbours, which memory delivers faster than rows in
# random order; the runs are shuffled.
cdef Py_ssize_t LARGE = 1 << 22
cdef Py_ssize_t RUN = 16

# How many rows ahead a row is fetched, how many bytes of it, and bytes in a cache line.
cdef Py_ssize_t ROWS_AHEAD = 4
cdef Py_ssize_t AHEAD = 4096
cdef Py_ssize_t LINE = 64

ctypedef fused real:
    float
    double


cdef inline double value_of(Loss loss, double s) noexcept nogil:
    """l(s); with u = max(0, 1 - s) u, u^2 / 2, and for smoothed losses the integral of their slope."""
    cdef double u = 1.0 - s
    if u <= 0.0:
        return 0.0
    if loss == HINGE:
        return u
    if loss == SQUARED_HINGE:
        return 0.5 * u * u
    if loss == SMOOTH_HINGE:
        return 0.5 * u * u if u < 1.0 else u - 0.5
    return u * u * u / 6.0 if u < 1.0 else 0.5 * u * u - 0.5 * u + 1.0 / 6.0


cdef inline double slope_of(Loss loss, double s) noexcept nogil:
    """- l'(s): 1 or u; smoothed min(u, 1), and u^2 / 2 up to u = 1, u - 1/2 beyond."""
    cdef double u = 1.0 - s
    if u <= 0.0:
        return 0.0
    if loss == HINGE:
        return 1.0
    if loss == SQUARED_HINGE:
        return u
    if loss == SMOOTH_HINGE:
        return min(u, 1.0)
    return 0.5 * u * u if u < 1.0 else u - 0.5


def loss_values(loss, margins):
    """``l(s)`` and ``l'(s)`` of an array of margins."""
    cdef Loss kind = LOSSES[loss]
    return (np.array([value_of(kind, s) for s in margins]), np.array([-slope_of(kind, s) for s in margins]))


cdef class GradientDescent(State):
    """Weights of linear machines, one against the rest, and the steps on them.

    Parameters
    ----------
    rows : Rows
    y : ndarray of shape (n_samples,), int32
        Label indices. Of two labels the second is y = 1, and there is one machine.
    n_labels : int
    weight : ndarray of shape (n_samples,), float64
        Factor on each example's loss.
    ridge : float
        lambda.
    t0 : float
        The gain of visit t is ``1 / (t + t0)``; of averaged weights ``(1 + t / t0)^(-3/4) / t0``. 0: `set_t0` follows.
    loss : {"hinge", "squared_hinge", "smooth_hinge", "smooth_squared_hinge"}
    method : {"sgdqn", "svmsgd2", "sgdqn-2009"}
    intercept : bool
        Whether examples have one more feature, of value 1.
    average : bool
    skip : int
        Visits between two regularisation steps; 0: as many as pay, 1: plain SGD.
    seed : int
    whole, machines : GradientDescent, (int, int), optional
        The state whose weights these are, and the labels of the first machine and of the one after the last.
    """

    kind = "descent"
    steps = frozenset({"subgradient_step"})

    cdef readonly Rows rows
    cdef readonly Py_ssize_t n_machines
    cdef Py_ssize_t first               # the label of the first machine
    cdef readonly Py_ssize_t skip
    cdef readonly double ridge
    cdef readonly double t0
    cdef readonly double t              # visits before this one
    cdef const descent* fast
    cdef Loss loss
    cdef Method method
    cdef bint intercept, average, estimate
    cdef Py_ssize_t width               # weights of a machine
    cdef Py_ssize_t due                 # visits since the last regularisation step
    cdef double r
    cdef int32_t[::1] y
    cdef double[::1] weight
    cdef object arrays                  # the arrays that the pointers below point into
    cdef void* w                        # (n_machines, width)
    cdef void* h
    cdef void* B
    cdef double* u                      # sums of when times the change of w, or NULL
    cdef double n_averaged
    cdef const int64_t* order
    cdef Py_ssize_t n_order
    cdef Py_ssize_t at
    cdef readonly int64_t work      # work of a visit, in the units of `poll`

    def __init__(self, Rows rows not None, y, Py_ssize_t n_labels, weight, *, double ridge, double t0,
                 loss="squared_hinge", method="sgdqn", bint intercept=True, bint average=False,
                 Py_ssize_t skip=0, uint64_t seed=0, GradientDescent whole=None, machines=None):
        cdef double filled
        n = rows.n_rows
        self.rows, self.n_samples, self.width = rows, n, rows.n_features + 1
        self.y, self.weight = np.array(y, dtype=np.int32), np.array(weight, dtype=np.float64)
        if self.y.shape[0] != n or self.weight.shape[0] != n:
            raise ValueError(f"y has {self.y.shape[0]} and weight {self.weight.shape[0]} entries for {n} examples")
        filled = rows.data.nnz / max(n * rows.n_features, 1) if rows.is_sparse else 1.0
        self.skip = skip if skip > 0 else max(<Py_ssize_t>min(SKIP / max(filled, 1e-9), n / LEAST_OFTEN), 1)
        if not rows.is_sparse and rows.data.nbytes > LARGE:
            self.groups = np.append(np.arange(0, n, RUN), n)
        self.first, end = machines or ([1, 2] if n_labels == 2 else [0, n_labels])
        self.n_machines = end - self.first
        self.work = <int64_t>(self.n_machines * (8.0 + filled * rows.n_features))
        self.ridge, self.loss = ridge, LOSSES[loss]
        self.method, self.intercept, self.average = METHODS[method], intercept, average
        self.fast = descent_of(kernel_set())
        dtype, shape = np.float32 if rows.is_single else np.float64, (self.n_machines, self.width)
        arrays = [np.zeros(shape, dtype), np.full(shape, ridge, dtype), np.full(shape, 1.0 / ridge, dtype)]
        if average:
            arrays.append(np.zeros(shape))
        if whole is not None:
            arrays = [array[self.first:end] for array in whole.arrays]
        self.arrays = arrays
        self.w, self.h = array_data(arrays[0]), array_data(arrays[1])
        self.B = array_data(arrays[2])
        self.u = <double*>array_data(self.arrays[3]) if average else NULL
        random_seed(&self.random, seed)
        self.set_t0(t0)

    def set_t0(self, double t0):
        """Set t0 and, unless there is one, the rate of the average of curvatures."""
        self.t0 = t0
        if self.r == 0.0:
            self.r = t0 / self.skip

    def follow(self, GradientDescent other not None, parts=()):
        """Be where another state of the same examples is in its visits; count those of `parts` as one's own."""
        cdef GradientDescent part
        self.t, self.t0, self.r, self.due, self.estimate = other.t, other.t0, other.r, other.due, other.estimate
        self.n_averaged, self.n_visits, self.random = other.n_averaged, other.n_visits, other.random
        for part in parts:
            self.n_argmax += part.n_argmax
            part.n_argmax = 0

    # ---- visits ---------------------------------------------------------------------------------

    cdef int expect(self, const int64_t* order, Py_ssize_t n) except -1:
        self.order, self.n_order, self.at = order, n, 0
        return 0

    cdef int subgradient_step(self, Py_ssize_t i) except -1 nogil:
        """Algorithm 8, one round."""
        if self.at + ROWS_AHEAD < self.n_order:
            self.fetch(self.order[self.at + ROWS_AHEAD])
        self.at += 1
        if self.rows.is_single:
            visit(self, i, <float*>NULL)
        else:
            visit(self, i, <double*>NULL)
        self.n_argmax += self.n_machines
        self.n_visits += 1
        return 0

    cdef void fetch(self, Py_ssize_t i) noexcept nogil:
        """Ask for the beginning of a dense row."""
        cdef Py_ssize_t k, size = self.rows.n_features * (sizeof(float) if self.rows.is_single else sizeof(double))
        if not self.rows.is_sparse:
            for k in range(min(size, AHEAD) // LINE):
                prefetch(<const char*>self.rows.values + i * size + k * LINE)

    cdef double gain(self) noexcept nogil:
        return pow(1.0 + self.t / self.t0, -AVERAGED_POWER) / self.t0 if self.average else 1.0 / (self.t + self.t0)

    def run(self, const int64_t[::1] order):
        """Visit examples in this order."""
        cdef Py_ssize_t k
        if order.shape[0] == 0:
            return
        self.expect(&order[0], order.shape[0])
        with nogil:
            for k in range(order.shape[0]):
                self.subgradient_step(order[k])
                poll(self.work)

    def restart_average(self):
        """The average is that of the weights after each visit from now on."""
        if self.average:
            self.arrays[3][:] = 0.0
        self.n_averaged = 0.0

    # ---- what has been learnt -------------------------------------------------------------------

    def primal(self, const int64_t[::1] order=None, *, averaged=False):
        """The objective over all examples, or over chosen ones; summed over machines.

        Weights are the last ones, or the average.
        """
        cdef Py_ssize_t k, n = self.n_samples if order is None else order.shape[0]
        cdef double total = 0.0
        cdef ndarray w = self.weights(averaged)
        cdef void* data = array_data(w)
        with nogil:
            for k in range(n):
                if self.rows.is_single:
                    total += losses(self, order[k] if order is not None else k, <const float*>data)
                else:
                    total += losses(self, order[k] if order is not None else k, <const double*>data)
                poll(self.work)
        with np.errstate(over="ignore", invalid="ignore"):  # an overflow is reported by whoever uses the weights
            return 0.5 * self.ridge * float(np.sum(w.astype(np.float64) ** 2)) + total / max(n, 1)

    def weights(self, averaged=False):
        """Array (n_machines, n_features + 1); the last column is the intercept."""
        w = self.arrays[0].copy()
        if averaged and self.average and self.n_averaged > 0.0:
            w -= (self.arrays[3] / self.n_averaged).astype(w.dtype)
        return w

    def get_state(self):
        """Return the state between two passes as a dict of arrays; training that resumes from it gives bit-identical
        results. (An average is of one pass alone.)"""
        return {
            "weights": self.arrays[0].copy(), "curvature": self.arrays[1].copy(), "rescaling": self.arrays[2].copy(),
            "numbers": np.array([self.t, self.t0, self.r, <double>self.estimate]),
            "descent": np.array([self.ridge, <double>self.method]), "random": self.random_words(),
            "counters": np.array([self.n_argmax, self.n_visits, self.due], dtype=np.int64),
        }

    def set_state(self, state, *, adapt=False):
        """Restore the arrays returned by `get_state`; see `WeightState.set_state`.

        With another ridge or method, which `adapt` allows, the gain begins anew, and so does the rescaling.
        """
        counters = state["counters"]
        if counters[2] >= self.skip:
            raise ValueError(f"array 'counters' of the training state has {counters[2]} visits since the last "
                             f"regularisation step, of which there is one in {self.skip}")
        ridge, method = state["descent"].tolist()
        same = ridge == self.ridge and method == self.method
        if not (same or adapt):
            raise ValueError("array 'descent' of the training state is of another ridge or method")
        t, t0 = self.t, self.t0
        self.restart(state)
        if not same:
            self.t, self.t0 = t, t0
            self.rescale()
        self.set_random(state["random"])
        self.n_argmax, self.n_visits, self.due = counters

    def restart(self, state):
        """Restore the weights, their rescaling and the gain; other arrays of `get_state` need not be there."""
        t, t0, r, estimate = state["numbers"].tolist()
        if estimate not in (0.0, 1.0):
            raise ValueError(f"array 'numbers' of the training state has {estimate:g} for whether r is an estimate")
        names = "weights", "curvature", "rescaling"
        found = [fitting(state, name, array) for array, name in zip(self.arrays, names)]
        for array, value in zip(self.arrays, found):
            array[:] = value
        self.t, self.t0, self.r, self.estimate = t, t0, r, estimate != 0.0

    def rescale(self):
        """B from the curvatures."""
        h = self.arrays[1].astype(np.float64)
        most = 1.0 / self.ridge
        self.arrays[2][:] = np.clip(SCALE / np.maximum(h, SCALE * self.ridge), LEAST_STEP * most, most) \
            if self.method == SGDQN else most

    @property
    def rescaling(self):
        """The diagonals of B: array (n_machines, n_features + 1)."""
        return self.arrays[2].copy()


# ---- one example, in the type of its numbers -----------------------------------------------------


cdef inline double dot(GradientDescent m, Py_ssize_t i, const real* w) noexcept nogil:
    """<w, x_i>."""
    cdef Py_ssize_t d = m.rows.n_features
    cdef int64_t e
    cdef double total = 0.0
    cdef const real* values = <const real*>m.rows.values
    if m.rows.is_sparse:
        for e in range(m.rows.indptr[i], m.rows.indptr[i + 1]):
            total += <double>values[e] * w[m.rows.indices[e]]
    elif real is float:
        total = m.fast.dot_float(values + i * d, w, d)
    else:
        total = m.fast.dot_double(values + i * d, w, d)
    return total + w[d] if m.intercept else total


cdef inline void move(GradientDescent m, Py_ssize_t i, real* w, double* u, const real* B, double step,
                      double when) noexcept nogil:
    """w += step B x_i; u += when times that."""
    cdef Py_ssize_t d = m.rows.n_features
    cdef int64_t e
    cdef const real* values = <const real*>m.rows.values
    if m.rows.is_sparse:
        for e in range(m.rows.indptr[i], m.rows.indptr[i + 1]):
            w[m.rows.indices[e]] += <real>(step * B[m.rows.indices[e]] * values[e])
        if u != NULL:
            for e in range(m.rows.indptr[i], m.rows.indptr[i + 1]):
                u[m.rows.indices[e]] += when * step * B[m.rows.indices[e]] * values[e]
    elif real is float:
        m.fast.move_float(w, B, values + i * d, d, step)
        if u != NULL:
            m.fast.add_float(u, B, values + i * d, d, when * step)
    else:
        m.fast.move_double(w, B, values + i * d, d, step)
        if u != NULL:
            m.fast.add_double(u, B, values + i * d, d, when * step)
    if m.intercept:
        w[d] += <real>(step * B[d])
        if u != NULL:
            u[d] += when * step * B[d]


cdef void curve(GradientDescent m, Py_ssize_t i, real* h, real* B, double c, double rate) noexcept nogil:
    """h_k += rate (lambda + c x_k^2 - h_k); B = SCALE / h, bounded."""
    cdef Py_ssize_t k, d = m.rows.n_features
    cdef int64_t e
    cdef double least = LEAST_STEP / m.ridge, most = 1.0 / m.ridge
    cdef const real* values = <const real*>m.rows.values
    if m.rows.is_sparse:
        for k in range(d):
            h[k] += <real>(rate * (m.ridge - h[k]))
        for e in range(m.rows.indptr[i], m.rows.indptr[i + 1]):
            h[m.rows.indices[e]] += <real>(rate * c * values[e] * values[e])
        for k in range(d):
            B[k] = <real>max(min(SCALE / h[k], most), least)
    elif real is float:
        m.fast.curve_float(h, B, values + i * d, d, m.ridge, c, rate, SCALE, least, most)
    else:
        m.fast.curve_double(h, B, values + i * d, d, m.ridge, c, rate, SCALE, least, most)
    h[d] += <real>(rate * (m.ridge + c - h[d]))
    B[d] = <real>max(min(SCALE / h[d], most), least)


cdef void average_ratios(GradientDescent m, Py_ssize_t i, real* B, double p, double rate) noexcept nogil:
    """Equation 3.7: B_k += rate ((lambda + p / B_k)^-1 - B_k), and (lambda^-1 - B_k) where x_k is 0; bounded."""
    cdef Py_ssize_t k, d = m.rows.n_features
    cdef int64_t e = 0, end = d
    cdef double least = LEAST_STEP / m.ridge, ratio
    cdef const real* values = <const real*>m.rows.values + (0 if m.rows.is_sparse else i * d)
    if m.rows.is_sparse:
        e, end = m.rows.indptr[i], m.rows.indptr[i + 1]
    for k in range(d + 1):
        ratio = 1.0 / m.ridge
        if k == d or not m.rows.is_sparse or (e < end and m.rows.indices[e] == k):
            if k == d or values[e] != 0.0:
                ratio = 1.0 / (m.ridge + p / B[k])
            e += 1
        B[k] = <real>max(B[k] + rate * (ratio - B[k]), least)


cdef int visit(GradientDescent m, Py_ssize_t i, real* _) except -1 nogil:
    cdef Py_ssize_t k, at
    cdef real* w = <real*>m.w
    cdef real* h = <real*>m.h
    cdef real* B = <real*>m.B
    cdef double* u
    cdef double sign, s, after, slope, c, gain = m.gain()
    for k in range(m.n_machines):
        at = k * m.width
        u = NULL if m.u == NULL else m.u + at
        sign = 1.0 if m.y[i] == m.first + k else -1.0
        s = sign * dot(m, i, w + at)
        slope, c = m.weight[i] * slope_of(m.loss, s), 0.0
        if slope != 0.0:
            move(m, i, w + at, u, B + at, gain * slope * sign, m.n_averaged)
        if m.estimate:
            after = sign * dot(m, i, w + at) if slope != 0.0 else s
            if m.method == SGDQN_2009:
                if slope != 0.0:
                    c = (slope - m.weight[i] * slope_of(m.loss, after)) / (gain * slope)
                average_ratios(m, i, B + at, c, min(1.0, 2.0 / m.r))
            else:
                if after != s:
                    c = (slope - m.weight[i] * slope_of(m.loss, after)) / (after - s)
                curve(m, i, h + at, B + at, c, min(1.0, 2.0 / m.r))
    if m.estimate:
        m.r += 1.0
        m.estimate = False
    m.due += 1
    if m.due == m.skip or m.at == m.n_order:
        for k in range(m.n_machines):
            at = k * m.width
            u = NULL if m.u == NULL else m.u + at
            if real is float:
                m.fast.decay_float(w + at, B + at, u, m.width, m.due * gain * m.ridge, m.n_averaged)
            else:
                m.fast.decay_double(w + at, B + at, u, m.width, m.due * gain * m.ridge, m.n_averaged)
        m.due, m.estimate = 0, m.method != SVMSGD2
    m.t += 1.0
    m.n_averaged += 1.0
    return 0


cdef double losses(GradientDescent m, Py_ssize_t i, const real* w) noexcept nogil:
    """The example's loss, summed over machines."""
    cdef Py_ssize_t k
    cdef double total = 0.0, sign
    for k in range(m.n_machines):
        sign = 1.0 if m.y[i] == m.first + k else -1.0
        total += value_of(m.loss, sign * dot(m, i, w + k * m.width))
    return m.weight[i] * total
