"""The dual of the log loss: a distribution over the outputs of each example, kept as its moments.

    P(w) = 1/2 |w - w0|^2 + sum_i C_i (log Z_i(w) - <w, Psi(x_i, y_i)>)
    D(p) = sum_i C_i H(p_i) - <w0, u> - 1/2 |u|^2,    u = - sum_i C_i F_i(m_i),    w = w0 + u,

where m_i are the moments of p_i (see `Problem`). At p_i = p_w, the distribution under w itself, an example adds

    C_i gap_i,    gap_i = log Z_i(w) - <w, E_p[Psi]> - H(p_i) = loss_i(w) - <w, F_i(m_i)> - H(p_i) >= 0,

to P - D, and nothing else does. p_w is the corner that Frank-Wolfe steps to: it maximises H(q) - <w, F_i(m(q))>, the
dual linearised in u alone. The entropy of the mixture of p_i and p_w is not known (it would take the marginals of all
pairs), but it is at least the mixture of theirs: with h_i <= H(p_i) in place of H(p_i), every D here is a lower
bound on the true dual, the step of length g gains g C gap - g^2 / 2 C^2 |F(m_w - m)|^2, and h_i tends to H(p_i) as
steps are repeated. (Lacoste-Julien and others 2013, algorithm 4, with soft corners; Le Priol, Piche and Lacoste-Julien
2018.)

Of an output known in part (a problem that offers "marginals") the loss is log Z_i less the log-sum over what agrees,
and F_i(m_w) the difference of the two expectations: not convex, and D is no bound. With p_i and q_i the distributions
over all outputs and over what agrees, m_i stands for their difference and h_i for that of their entropies. The gap is
then that of p_i less that of q_i, and may be 0 or less while the two are not yet those of w; so there is a least length
of steps. They follow the gradients of the present losses, as those of dual-free SDCA (Shalev-Shwartz 2016) do:
completing is a part of each. With d = m_w - m, a step moves m_w as well, against itself, by about C |F(d)|^2 / |d|^2 of
its own length: up to 1 / (1 + C |F(d)|^2 / |d|^2) steps are stable, and none longer is forced. See `gradient`.

Constants that a problem adds to its losses (`constant`, sum_i C_i times those) count in P and D alike.

With the 1-norm, l1 |w|_1 = max <mu, w> over |mu_j| <= l1 is a part of P, and (with w0 = 0) w = u - mu, D(p, mu) =
sum_i C_i H(p_i) - 1/2 |u - mu|^2. Steps at a fixed mu are those above. Between them mu, given u, is where D is
greatest: mu_j = u_j within [-l1, l1], so that w is u with soft thresholds, and a weight is 0 as long as |u_j| <= l1.
(The proximal dual ascent of Shalev-Shwartz and Zhang 2014, with mu as one more block.) A weight that is not possible
has no bound on mu_j.

Steps round w and D. `exact` computes both anew from the moments, in float64, for about a third of the price of a pass.
"""

import numpy as np

from libc.float cimport FLT_MIN

from structsvm._arrays cimport array_data, ndarray
from structsvm._problem cimport Problem
from structsvm._typedefs cimport float32_t, float64_t, int64_t, uint64_t
from structsvm.dual._weights cimport WeightState, overflow, sum_of_products
from structsvm.execution._stop cimport poll

from structsvm.dual._weights import copied, half_norm, put

cdef extern from *:
    """
    /* y += a x, in vectors: compilers that make small code leave such loops as they are. */
    static void structsvm_add_scaled(float *y, const float *x, float a, Py_ssize_t n) {
        typedef float four __attribute__((vector_size(16), aligned(4), may_alias));
        Py_ssize_t k = 0;
        for (; k + 8 <= n; k += 8) {
            *(four *)(y + k) += a * *(const four *)(x + k);
            *(four *)(y + k + 4) += a * *(const four *)(x + k + 4);
        }
        for (; k < n; k++) y[k] += a * x[k];
    }
    """
    void add_scaled "structsvm_add_scaled" (float32_t* y, const float32_t* x, float32_t a, Py_ssize_t n) noexcept nogil

# Most memory of the moments of all examples; beyond this they are refused.
MAX_BYTES = 16 << 30

cdef Py_ssize_t PIECE = 1 << 16     # moments between two polls

cdef fused real:
    float32_t
    float64_t

# The least length of the first step of an output known in part.
cdef double LEAST_LENGTH = 0.01
# Visits of a pass between which mu stays as it is: a quarter of it.
cdef Py_ssize_t THRESHOLDS = 4
# Passes after which its least lengths fall as one over their number: they alone would keep w moving for ever.
cdef double FREE_PASSES = 16.0


cdef double soften(real* w, float64_t* mu, Py_ssize_t n, const unsigned char* possible, double l1) noexcept nogil:
    """Make mu what it is best, given w + mu, which stays; returns the fall of 1/2 |w|^2."""
    cdef Py_ssize_t j
    cdef double v, old, fall = 0.0
    for j in range(n):
        old = w[j]
        v = old + mu[j]
        mu[j] = v if possible != NULL and not possible[j] else max(-l1, min(v, l1))
        w[j] = <real>(v - mu[j])
        fall += 0.5 * (old * old - <double>w[j] * w[j])
    return fall


cdef class ExpectationState(WeightState):
    """Distributions over the outputs of each example, as moments, and w.

    Parameters
    ----------
    problem : Problem
        Which offers expectations.
    C : ndarray of shape (n_samples,), float64
        Weight of each example's loss.
    seed : int
    base : ndarray of shape (n_features,), optional
        w0.
    stores : bool, default=True
        Whether there are moments. Without, there are rounds (`losses`) alone, and no steps.
    l1 : float, default=0.0
        The weight of the 1-norm; not with w0.
    """

    kind = "expectations"
    steps = frozenset({"corner_step"})

    cdef readonly object base
    cdef public double constant     # the part that does not depend on w
    cdef const float64_t[::1] C
    cdef int64_t[::1] offsets       # where the moments of each example begin
    cdef float32_t[::1] moments
    cdef bint is_lent               # whether `get_state` has handed the moments out: the next step makes a copy
    cdef readonly bint drifts       # whether steps have rounded w and the dual since the last `settle`
    cdef float64_t[::1] entropy     # h_i
    cdef float32_t[::1] corner      # the moments of p_w, and the way there
    cdef readonly double l1
    cdef float64_t[::1] mu_of_norm  # mu of the 1-norm; empty without
    cdef const unsigned char[::1] possible    # whether each weight may leave 0; empty: all may
    cdef Py_ssize_t softened            # visits before the last thresholds
    cdef float64_t[::1] least           # least lengths of steps of outputs known in part, 0 before the first; or empty

    def __init__(self, Problem problem not None, const float64_t[::1] C, *, uint64_t seed=0, base=None,
                 bint stores=True, double l1=0.0):
        cdef Py_ssize_t i
        super().__init__(problem, seed=seed, base=base)
        self.base = None if base is None else np.array(base, dtype=np.float64)
        self.C = C
        self.offsets = np.zeros(problem.n_samples + 1, dtype=np.int64)
        for i in range(problem.n_samples):
            self.offsets[i + 1] = self.offsets[i] + problem.c_moments(i)
            poll(self.offsets[i + 1] - self.offsets[i])
        size = 4 * int(self.offsets[problem.n_samples]) if stores else 0
        if size > MAX_BYTES:
            raise ValueError(f"the moments of {problem.n_samples} examples of this {type(problem).__name__} would take "
                             f"{size} bytes, more than {MAX_BYTES}: train on fewer, or by partial_fit")
        self.moments = np.zeros(size // 4, dtype=np.float32)
        self.entropy = np.zeros(problem.n_samples)
        self.least = np.zeros(problem.n_samples if "marginals" in problem.offers else 0)
        self.l1 = l1
        self.mu_of_norm = np.zeros(problem.n_features if l1 > 0.0 else 0)
        self.possible = np.zeros(0, dtype=np.uint8) if problem.possible is None else problem.possible.view(np.uint8)
        self.corner = np.empty(np.diff(self.offsets).max(initial=0), dtype=np.float32)

    cdef double corner_step(self, Py_ssize_t i) except -1 nogil:
        """Step from p_i towards p_w by the length that gains most; returns what the example had added to the gap."""
        cdef double C = self.C[i], loss, entropy, gap, curvature, length = 1.0, reached = 0.0, square = 0.0
        cdef float32_t* m
        cdef float32_t* corner = &self.corner[0]
        cdef Py_ssize_t k, start, n = self.offsets[i + 1] - self.offsets[i]
        if self.is_lent:
            with gil:
                self.moments, self.is_lent = copied(np.asarray(self.moments)), False
        if self.l1 > 0.0 and THRESHOLDS * (self.n_visits - self.softened) >= self.n_samples:
            self.dual += self.threshold_at(self.w, self.mu_of_norm, self.problem.single)
            self.softened = self.n_visits
        m = &self.moments[self.offsets[i]]
        self.n_argmax += 1
        self.problem.c_expect(i, self.w, corner, &loss, &entropy)
        self.n_visits += 1
        if loss != loss:
            overflow(self.problem.first + i)
        gap = loss - self.problem.c_moments_dot(i, m, self.w) - self.entropy[i]
        if C == 0.0 or (gap <= 0.0 and self.least.shape[0] == 0):
            return 0.0
        for start in range(1 + n // PIECE):
            add_scaled(corner + start * PIECE, m + start * PIECE, -1.0, min(PIECE, n - start * PIECE))
            poll(PIECE)
        curvature = C * self.problem.c_moments_square(i, corner)
        if gap < curvature:
            length = gap / curvature
        if self.least.shape[0] > 0:
            # Half of the first step, and less where the gap asks for less; where it tells nothing, more with time, if
            # that is stable.
            for k in range(n):
                square += <double>corner[k] * corner[k]
            if self.least[i] == 0.0:
                self.least[i] = 0.5 * max(length, LEAST_LENGTH)
            elif 0.0 < length < self.least[i]:
                self.least[i] = max(length, 0.5 * self.least[i])
            elif length <= 0.0:
                self.least[i] = 1.2 * self.least[i]
            self.least[i] = min(self.least[i], square / (square + curvature) if square > 0.0 else 1.0)
            self.least[i] = min(self.least[i], FREE_PASSES * self.n_samples / self.n_visits)
            length = max(length, self.least[i])
            reached = length * curvature
        self.problem.c_moments_add(i, corner, -C * length, True, self.w)    # Ctrl-C may leave w on the way
        self.dual += C * length * (gap - 0.5 * length * curvature)
        self.entropy[i] += length * (entropy - self.entropy[i])
        add_scaled(m, corner, <float32_t>length, n)
        self.n_updates += 1
        self.drifts = True
        return C * max(gap, reached)

    cdef double threshold_at(self, void* w, float64_t[::1] mu, bint is_single) noexcept nogil:
        """Set mu of the 1-norm to its best, given w + mu, in place; returns by how much the dual gains."""
        cdef Py_ssize_t n = mu.shape[0]
        cdef const unsigned char* possible = NULL
        if self.possible.shape[0] > 0:
            possible = &self.possible[0]
        if is_single:
            return soften(<float32_t*>w, &mu[0], n, possible, self.l1)
        return soften(<float64_t*>w, &mu[0], n, possible, self.l1)

    def settle(self):
        """Recompute w and the dual objective from the moments in float64; returns the dual (a lower bound on it)."""
        exact, dual, self.mu_of_norm = self._exact()
        self.softened = self.n_visits
        with np.errstate(over="ignore"):  # the certificate tells that weights are not finite
            self.weights[:] = exact     # at once: Ctrl-C leaves no half of them
        self.dual, self.drifts = dual, False
        return self.dual

    def exact(self):
        """``(weights, dual)`` as `settle` would leave them."""
        if not self.drifts:
            return copied(self.weights), self.dual
        exact, dual, _ = self._exact()
        with np.errstate(over="ignore"):
            return exact.astype(self.weights.dtype), dual

    def _exact(self):
        """w in float64, the dual, and mu of the 1-norm, from the moments."""
        mu = np.zeros(self.mu_of_norm.shape[0])
        exact = self.problem.sum_of_moments(-np.asarray(self.C), self.offsets, self.moments)
        if self.l1 > 0.0:
            self.threshold_at(array_data(exact), mu, is_single=False)
        dual = sum_of_products(self.C, self.entropy) - 0.5 * sum_of_products(exact, exact) + self.constant
        if self.base is not None:
            dual -= sum_of_products(self.base, exact)
            put(exact, exact, self.base)
        return exact, dual, mu

    def primal(self, w, losses):
        """The primal objective at `w`, where the examples have these losses."""
        total = half_norm(w, self.base) + float(np.multiply(self.C, losses).sum()) + self.constant
        return total if self.l1 == 0.0 else total + self.l1 * float(np.abs(w).sum(dtype=np.float64))

    cdef ndarray _round(self, ndarray weights, float64_t* gradient, float64_t* gaps):
        """The examples' losses at `weights`, by one round of expectations.

        Adds the gradient of sum_i C_i loss_i, and stores what each example adds to the gap, where these are not NULL.
        """
        cdef const void* w = array_data(weights)
        cdef ndarray found = np.zeros(self.problem.n_samples)
        cdef float64_t* losses = <float64_t*>array_data(found)
        cdef float32_t* m = &self.corner[0] if self.corner.shape[0] > 0 else NULL
        cdef double entropy, gap
        cdef Py_ssize_t i
        self.problem.lend(weights)
        self.problem.sections.enter()
        with nogil:
            for i in range(self.problem.n_samples):
                self.problem.sections.visited(i)
                if self.C[i] == 0.0:
                    continue
                self.problem.c_expect(i, w, m, &losses[i], &entropy)
                if losses[i] != losses[i]:
                    overflow(self.problem.first + i)
                if gradient != NULL:
                    self.problem.c_moments_accumulate(i, m, self.C[i], gradient)
                if gaps != NULL:
                    gap = losses[i] - self.problem.c_moments_dot(i, &self.moments[self.offsets[i]], w) - self.entropy[i]
                    gaps[i] = self.C[i] * max(gap, 0.0)
                poll(4 * (self.offsets[i + 1] - self.offsets[i]))
        self.count_argmax(self.problem.n_samples)
        return found

    def shares(self, weights):
        """``(primal, shares)`` at weights, by one round: each example's part of the gap, array (n_samples,)."""
        cdef ndarray gaps = np.zeros(self.problem.n_samples)
        losses = self._round(self.problem._check_weights(weights), NULL, <float64_t*>array_data(gaps))
        return self.primal(weights, losses), gaps

    def losses(self, weights):
        """``(losses, gradient)`` at `weights`, by one round: of each example, and of sum_i C_i loss_i."""
        cdef ndarray gradient = np.zeros(self.problem.n_features)
        losses = self._round(self.problem._check_weights(weights), <float64_t*>array_data(gradient), NULL)
        return losses, gradient

    def gradient(self, weights):
        """``(primal, dual, gradient)`` at `weights`, by one round of expectations.

        P(v) = 1/2 |v - w0|^2 + f(v) for convex f is at least 1/2 |v - w0|^2 + f(w) + <f'(w), v - w>, which is no less
        than P(w) - 1/2 |P'(w)|^2. Of outputs known in part, f is the loss with the distributions over what agrees as
        they are at w, where it is the loss itself: the bound is on the objective of this convex problem. No loss is
        below 0, as what agrees is a part of all outputs and weighs no more there: far from the optimum that says more.
        """
        cdef ndarray array = self.problem._check_weights(weights)
        losses, gradient = self.losses(array)
        primal = self.primal(array, losses)
        gradient += array
        if self.base is not None:
            gradient -= self.base
        return primal, max(primal - 0.5 * sum_of_products(gradient, gradient), self.constant), gradient

    def _vectors(self):
        if not self.drifts or self.l1 > 0.0:
            return {}       # w follows from the moments, bit for bit after `settle`; with the 1-norm mu does as well
        return super()._vectors() | {"objective": np.array([self.dual])}

    def _set_vectors(self, state, adapt):
        self.drifts = self.l1 == 0.0 and "weights" in state and "objective" in state
        if self.drifts:
            super()._set_vectors(state, adapt)
            self.dual = state["objective"][0]

    def get_state(self):
        self.is_lent = True
        state = super().get_state() | {
            "moments": np.asarray(self.moments), "entropy": np.array(self.entropy), "C": np.array(self.C),
        }
        if len(self.least):
            state["least"] = np.array(self.least)
        return state if self.base is None else state | {"base": copied(self.base)}

    def without(self, others):
        """`get_state` for a problem in which some examples (a mask) have other true outputs: without their moments."""
        state = self.get_state()
        state["moments"] = copied(state["moments"])
        state["moments"][np.repeat(others, np.diff(self.offsets))] = 0.0
        state["entropy"][others] = 0.0
        return {name: array for name, array in state.items() if name not in ("weights", "objective")}

    def set_state(self, state, *, adapt=False):
        """Restore the arrays returned by `get_state`; with `adapt` those of a run with another C, see `shrink`."""
        if len(state["moments"]) != len(self.moments):
            raise ValueError(f"array 'moments' of the training state has {len(state['moments'])} numbers, expected "
                             f"{len(self.moments)}")
        if (state["entropy"] < 0.0).any() and "marginals" not in self.problem.offers:
            raise ValueError("array 'entropy' of the training state has numbers below 0")
        super().set_state(state, adapt=adapt)
        if len(self.least) and "least" in state:
            self.least = state["least"].copy()
        self.base = state["base"].copy() if "base" in state else None
        self.moments, self.is_lent = copied(state["moments"]), False
        np.asarray(self.entropy)[:] = state["entropy"]
        if adapt and not np.array_equal(state["C"], self.C):
            self.shrink(state["C"])
        elif not self.drifts:
            self.settle()

    def reweigh(self, const float64_t[::1] C not None):
        """Go on with other weights of the losses, as a copy of the state would that has them; False with the 1-norm."""
        if self.l1 > 0.0:
            return False
        if self.is_lent:  # first: where memory ends here, the state is as it was
            self.moments, self.is_lent = copied(np.asarray(self.moments)), False
        before, self.C = np.asarray(self.C), C
        self.problem.lend(self.weights)
        if not np.array_equal(before, C):
            self.shrink(before)
        elif not self.drifts:
            self.settle()
        self.average_from = self.n_visits
        return True

    cdef int shrink(self, C_before) except -1:
        """Mix each p_i, of a run with another C, with the true output, so that w hardly moves if C has grown.

        Kept as they are, C' / C times the same moments would overshoot. At shares s C / C' of p_i, u is s times the old
        one and, as entropies are concave, the dual at least

            s sum_i C_i h_i - s <w0, u> - s^2 / 2 |u|^2,

        which is greatest at s = (sum_i C_i h_i - <w0, u>) / |u|^2: a number from 1 on, as w grows with C.
        """
        cdef double gain, square, scale = 1.0
        cdef float64_t[::1] shares
        cdef Py_ssize_t i, k
        if self.drifts and self.l1 == 0.0:
            u = put(np.empty(len(self.weights)), self.weights, None if self.base is None else -self.base)
        else:
            u = self.problem.sum_of_moments(-C_before, self.offsets, self.moments)
        gain, square = sum_of_products(C_before, self.entropy), sum_of_products(u, u)
        if self.base is not None:
            gain -= sum_of_products(self.base, u)
        if gain > square > 0.0 and self.l1 == 0.0:
            scale = gain / square
        has_weight = np.asarray(self.C) > 0.0
        with np.errstate(over="ignore"):
            ratios = np.divide(C_before, self.C, out=np.ones(self.n_samples), where=has_weight)
        shares = np.minimum(scale * ratios, 1.0)
        with nogil:
            for i in range(self.n_samples):
                for k in range(self.offsets[i], self.offsets[i + 1]):
                    self.moments[k] *= <float32_t>shares[i]
                self.entropy[i] *= shares[i]
                poll(self.offsets[i + 1] - self.offsets[i])
        # Moments that underflow, in float32, are no longer so many times what they were.
        if not (self.l1 == 0.0 and has_weight.all() and shares[0] >= FLT_MIN and ratios.max() <= 1.0 / FLT_MIN
                and np.ptp(ratios) <= 1e-12 * ratios[0]):
            self.settle()
            return 0
        # All shares are equal: u becomes so many times what it was.
        u *= shares[0] / ratios[0]
        self.dual = sum_of_products(self.C, self.entropy) - 0.5 * sum_of_products(u, u) + self.constant
        if self.base is not None:
            self.dual -= sum_of_products(self.base, u)
        with np.errstate(over="ignore"):
            self.weights[:] = put(u, u, self.base)
        self.drifts = True
        return 0

    def start_from(self, state, rows):
        """Start from the moments in the state of a run, with the same C, on the examples of ascending rows.

        Raises ValueError, and changes nothing, for arrays that cannot be of such a run.
        """
        included = np.zeros(self.n_samples, dtype=bool)
        included[rows] = True
        included = np.repeat(included, np.diff(self.offsets))
        shapes = {"moments": (np.count_nonzero(included),), "entropy": (len(rows),)}
        for name, shape in shapes.items():
            array = state[name]
            if array.shape != shape or array.dtype.kind != "f":
                raise ValueError(f"array {name!r} of a point of {len(rows)} examples has shape {array.shape} and dtype "
                                 f"{array.dtype}, expected floats of shape {shape}")
            if not np.isfinite(array).all():
                raise ValueError(f"array {name!r} of a point has numbers that are not finite")
        if (state["entropy"] < 0.0).any() and "marginals" not in self.problem.offers:
            raise ValueError("array 'entropy' of a point has numbers below 0")
        np.asarray(self.moments)[included] = state["moments"]
        np.asarray(self.entropy)[rows] = state["entropy"]
        self.settle()
