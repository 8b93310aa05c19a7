"""Orderings of n items: the best permutation under scores of pairs, by dynamic programming over sets or relaxed.

With phi_ij = (x_i - x_j, (P_ij - P_ji) / 2) = -phi_ji, an order scores the sum of A_ij = <w, phi_ij> over its pairs (i
before j). A pair i < j has z_ij = 1 if i comes first, else 0, and with z* of the true order

    Psi = sum_{i < j} (2 z_ij - 1) phi_ij,    dPsi = sum_{i < j} (z*_ij - z_ij) (2 phi_ij),
    loss = sum_{i < j} |z*_ij - z_ij| / (n (n - 1) / 2)

are linear in z. The loss is added to A, so training and prediction share their inference:

    up to MOST_EXACT items  f(S) = max_{i in S} f(S - i) + sum_{j in S} A_ji over all sets S of items that come first
                            (Held and Karp 1962); with log-sums for sums over all orders. An order other than the true
                            one: the same over the sets with which the true order begins, the only ones that it visits;
    more items              the bound of Gilmore (1962) and Lawler (1963). An item i at place p chooses by itself the p
                            others that come before it, those of the least A_ij, and pays their sum c_ip; the places are
                            those of the best assignment, by shortest augmenting paths. Where i and j disagree on which
                            of them is first, z_ij is 1/2. All permutations are among these outputs.

Prediction of more items starts from the assignment's places, and swaps two neighbouring blocks as long as that gains.

A known precedence, i before j, makes A_ji minus infinity.
"""

from libc.math cimport INFINITY, NAN, exp, fabs, isfinite, log
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.stdlib cimport qsort
from libc.string cimport memcpy, memmove, memset

import numpy as np

from structsvm._problem cimport RESCALE_NONE, Cut, Memory, Problem, Target, cut_terms
from structsvm._arrays cimport array_data, ndarray
from structsvm._typedefs cimport float32_t
from structsvm.execution._stop cimport poll

from structsvm.adapter import offers_of
from structsvm.arrays import checksum

MOST_EXACT = 10     # items up to which inference is exact

cdef double ROUNDING = 1e-12    # least gain of a swap, relative to the sum of all scores
cdef double LEAST_WIDE = 1e6    # logs of sums from which on their rounding is seen in probabilities

ctypedef struct Other:
    double score        # for coming after this item
    int32_t item


cdef int ascending(const void* a, const void* b) noexcept nogil:
    cdef const Other* x = <const Other*>a
    cdef const Other* y = <const Other*>b
    if x.score != y.score:
        return 1 if x.score > y.score else -1
    return (x.item > y.item) - (x.item < y.item)


cdef inline Py_ssize_t n_pairs(Py_ssize_t n) noexcept nogil:
    return n * (n - 1) // 2


cdef class OrderingProblem(Problem):
    """Sets of items and their orders.

    Parameters
    ----------
    oracle : OrderingOracle
    data : ItemSets
    orders : int32 array of shape (n_items,)
        The items of each set in their order; -1 where it is not known whole.
    known : tuple (bounds, pairs), optional
        Precedences, int32 array of shape (n_precedences, 2), and where those of each set begin, int64.
    """

    cdef readonly object oracle, data
    cdef object order_array, known_arrays
    cdef int32_t[::1] truth
    cdef const int64_t[::1] bounds, pair_bounds, known_bounds, column_bounds, indptr
    cdef const int32_t[:, ::1] precedences
    cdef const int32_t[::1] columns, indices
    cdef const double[::1] values
    cdef const double[:, ::1] pairs             # P_ij - P_ji of pairs i < j
    cdef Py_ssize_t d, most_exact
    cdef bint has_known, zero_one
    # scratch, for the largest set of items; `s` is that of the last example
    cdef Memory memory
    cdef double* item_score
    cdef double* s                              # A_ij of pairs i < j
    cdef double* A                              # (n, n)
    cdef double* before                         # (n, n): probabilities, or c
    cdef double* amount                         # (n_pairs,): what `sum_pairs` adds up
    cdef double* coefficient                    # (n_items,)
    cdef double* pair_sum                       # (n_pair_features,)
    cdef double* vector                         # (n_features,)
    cdef double* packed                         # values and columns of a cut
    cdef uint8_t* halves                        # 2 z of pairs
    cdef uint8_t* true_halves
    cdef int32_t* order
    cdef int32_t* block
    # tables of dynamic programming, by set
    cdef double* gain                           # (2^n, n): sum over j in the set of A_ji
    cdef double* prefix                         # best or log-sum of the orders of the set
    cdef double* suffix                         # log-sum of the orders of the others, after it
    cdef uint8_t* last
    # scratch of the relaxation
    cdef Other* others                          # (n, n)
    cdef double* potential                      # (3, n + 1): of items and of places, and slacks
    cdef int32_t* match                         # (2, n + 1): the item of a place, and the place before it on a path
    cdef uint8_t* is_reached                    # (n + 1,)
    cdef double gap

    def __init__(self, oracle, data, orders, known=None, *, rescaling="margin", penalty="linear"):
        cdef Py_ssize_t n, size, exact
        sizes = np.diff(data.bounds)
        n = sizes.max(initial=1)
        self.most_exact = oracle.most_exact
        super().__init__(len(data), oracle.n_features, rescaling=rescaling, penalty=penalty,
                         inference="relaxed" if n > self.most_exact else "exact")
        self.oracle, self.data, self.known_arrays = oracle, data, known
        self.order_array = np.array(orders, dtype=np.int32)
        self.truth, self.bounds, self.pair_bounds = self.order_array, data.bounds, data.pair_bounds
        self.has_known = known is not None
        if self.has_known:
            self.known_bounds, self.precedences = known
        self.indptr, self.indices, self.values = data.rows.arrays
        self.pairs = data.pairs
        self.column_bounds, self.columns = columns = data.columns()
        self.d, self.zero_one = oracle.n_item_features, oracle.loss_name == "zero_one"
        cdef Memory memory = Memory()
        self.memory = memory
        self.item_score, self.coefficient = memory.float64s(n), memory.float64s(n)
        self.s, self.amount = memory.float64s(n_pairs(n)), memory.float64s(n_pairs(n))
        self.A, self.before = memory.float64s(n * n), memory.float64s(n * n)
        self.pair_sum = memory.float64s(oracle.n_pair_features)
        self.vector = memory.float64s(self.n_features)
        size = np.diff(columns[0]).max(initial=0)
        self.packed = memory.float64s((3 * size + 1) // 2)
        self.halves = memory.uint8s(n_pairs(n))
        self.true_halves = memory.uint8s(n_pairs(n))
        self.order, self.block = memory.int32s(n), memory.int32s(n)
        exact = sizes[sizes <= self.most_exact].max(initial=1)
        self.gain = memory.float64s(exact << exact)
        self.prefix = memory.float64s(1 << exact)
        self.suffix = memory.float64s(1 << exact)
        self.last = memory.uint8s(1 << exact)
        if n > self.most_exact:
            self.others = <Other*>memory.uint8s(n * n * sizeof(Other))
            self.potential = memory.float64s(3 * (n + 1))
            self.match, self.is_reached = (
                memory.int32s(2 * (n + 1)), memory.uint8s(n + 1))

    @property
    def offers(self):
        return offers_of((self.order_array < 0).any(), self.inference == "exact")

    def examples(self, Py_ssize_t start, Py_ssize_t stop):
        known = None
        if self.has_known:
            bounds, pairs = self.known_arrays
            known = bounds[start:stop + 1] - bounds[start], pairs[bounds[start]:bounds[stop]]
        return self.oracle, self.data[start:stop], self.order_array[self.bounds[start]:self.bounds[stop]], known

    def fingerprint(self):
        return checksum([*self.data.arrays, *((self.order_array,) if self.known_arrays is None else self.known_arrays)])

    # ---- scores ---------------------------------------------------------------------------------------

    cdef inline Py_ssize_t size(self, Py_ssize_t i) noexcept nogil:
        return self.bounds[i + 1] - self.bounds[i]

    cdef bint fill(self, Py_ssize_t i, const double* w) noexcept nogil:
        """Set `s`, the A_ij of pairs i < j; return whether they are finite."""
        cdef Py_ssize_t a, b, k = 0, f, n = self.size(i), row = self.bounds[i], pair = self.pair_bounds[i]
        cdef int64_t e
        cdef double total, size = 0.0
        for a in range(n):
            total = 0.0
            for e in range(self.indptr[row + a], self.indptr[row + a + 1]):
                total += self.values[e] * w[self.indices[e]]
            self.item_score[a] = total
        for a in range(n):
            for b in range(a + 1, n):
                total = 0.0
                for f in range(self.pairs.shape[1]):
                    total += self.pairs[pair + k, f] * w[self.d + f]
                self.s[k] = self.item_score[a] - self.item_score[b] + 0.5 * total
                size += fabs(self.s[k])
                k += 1
        return isfinite(size)

    cdef int check_scores(self, Py_ssize_t i, const double* w) except -1 nogil:
        poll(<int64_t>self.c_cost(i))
        if not self.fill(i, w):
            with gil:
                raise ValueError(f"example {self.first + i}: the scores overflow, or w has values that are not finite")
        return 0

    cdef int check_size(self, Py_ssize_t i) except -1 nogil:
        if self.size(i) > self.most_exact:
            with gil:
                raise ValueError(f"example {self.first + i}: sums over all orders are of at most {self.most_exact} "
                                 f"items, got {self.size(i)}")
        return 0

    cdef void lay(self, Py_ssize_t n, const int32_t* truth) noexcept nogil:
        """Set A from `s`, and add the loss for a true order: each pair costs or saves half of its share."""
        cdef Py_ssize_t a, b, k = 0
        cdef double cost = 0.5 / n_pairs(n) if truth != NULL else 0.0
        for a in range(n):
            self.A[a * n + a] = 0.0
            for b in range(a + 1, n):
                self.A[a * n + b], self.A[b * n + a] = self.s[k], -self.s[k]
                k += 1
        if truth != NULL:
            for a in range(n):
                for b in range(a + 1, n):
                    self.A[truth[a] * n + truth[b]] -= cost
                    self.A[truth[b] * n + truth[a]] += cost

    cdef void restrict(self, Py_ssize_t i) noexcept nogil:
        """Forbid orders that contradict what is known."""
        cdef Py_ssize_t e, n = self.size(i)
        for e in range(self.known_bounds[i], self.known_bounds[i + 1]):
            self.A[self.precedences[e, 1] * n + self.precedences[e, 0]] = -INFINITY

    cdef void mark(self, const int32_t* order, Py_ssize_t n, uint8_t* halves) noexcept nogil:
        """Set `halves` to 2 z of an order."""
        cdef Py_ssize_t a, b, i, j
        for a in range(n):
            for b in range(a + 1, n):
                i, j = order[a], order[b]
                if i < j:
                    halves[i * (2 * n - i - 1) // 2 + j - i - 1] = 2
                else:
                    halves[j * (2 * n - j - 1) // 2 + i - j - 1] = 0

    # ---- dynamic programming over sets ----------------------------------------------------------------

    cdef void sum_gains(self, Py_ssize_t n) noexcept nogil:
        """Set `gain`."""
        cdef Py_ssize_t S, low, j
        memset(self.gain, 0, n * sizeof(double))
        for S in range(1, 1 << n):
            low = 0
            while not S >> low & 1:
                low += 1
            for j in range(n):
                self.gain[S * n + j] = self.gain[(S & (S - 1)) * n + j] + self.A[low * n + j]

    cdef void decode(self, Py_ssize_t n, const int32_t* truth) noexcept nogil:
        """Set `order` to the best order; if the true one is given, to the best other one."""
        cdef Py_ssize_t S, j, k, whole = (1 << n) - 1
        cdef double value, best, other = -INFINITY
        self.sum_gains(n)
        self.prefix[0] = 0.0
        for S in range(1, whole + 1):
            best = -INFINITY
            for j in range(n):
                if S >> j & 1:
                    value = self.prefix[S ^ (1 << j)] + self.gain[S * n + j]
                    if value > best or best == -INFINITY:
                        best = value
                        self.last[S] = <uint8_t>j
            self.prefix[S] = best
        if truth != NULL:   # block[k]: the last of the first k + 1 items, in the best order of these that is not true
            S = 0
            for k in range(n):
                S |= 1 << truth[k]
                best = other + self.gain[S * n + truth[k]]
                self.block[k] = truth[k]
                for j in range(n):
                    if S >> j & 1 and j != truth[k]:
                        value = self.prefix[S ^ (1 << j)] + self.gain[S * n + j]
                        if value > best:
                            best = value
                            self.block[k] = <int32_t>j
                other = best
        S = whole
        for k in range(n - 1, -1, -1):
            j = self.last[S] if truth == NULL else self.block[k]
            if truth != NULL and j != truth[k]:
                truth = NULL
            self.order[k] = <int32_t>j
            S ^= 1 << j

    cdef double sum_last(self, Py_ssize_t S, Py_ssize_t n, double* most) noexcept nogil:
        """The sum over the last items of a set, as a multiple of the exponential of the greatest score; sets `most`."""
        cdef Py_ssize_t j
        cdef double* row = self.gain + S * n
        cdef double total = 0.0
        most[0] = -INFINITY
        for j in range(n):
            if S >> j & 1:
                most[0] = max(most[0], self.prefix[S ^ (1 << j)] + row[j])
        for j in range(n):
            if S >> j & 1 and most[0] > -INFINITY:
                total += exp(self.prefix[S ^ (1 << j)] + row[j] - most[0])
        return total

    cdef double sums(self, Py_ssize_t n, bint pairs) noexcept nogil:
        """Return the log-sum over all orders; on request, set the probabilities `before` of all pairs."""
        cdef Py_ssize_t S, i, j, whole = (1 << n) - 1
        cdef double total, most, log_sum, greatest = 0.0
        cdef double* row
        self.sum_gains(n)
        self.prefix[0] = self.suffix[whole] = 0.0
        for S in range(1, whole + 1):
            total = self.sum_last(S, n, &most)
            self.prefix[S] = most + log(total) if most > -INFINITY else most
            greatest = max(greatest, fabs(most) if most > -INFINITY else 0.0)
        log_sum = self.prefix[whole]
        if not pairs:
            return log_sum
        if greatest > LEAST_WIDE:
            self.share_pairs(n)
            return log_sum
        memset(self.before, 0, n * n * sizeof(double))
        for S in range(whole - 1, -1, -1):
            most, total = -INFINITY, 0.0
            row = self.gain + S * n
            for j in range(n):
                if not S >> j & 1:
                    most = max(most, row[j] + self.suffix[S | (1 << j)])
            self.suffix[S] = most
            if most == -INFINITY:
                continue
            for j in range(n):
                if not S >> j & 1:      # the probability of orders that begin with S, then j
                    row[j] = exp(row[j] + self.suffix[S | (1 << j)] - most)
                    total += row[j]
            self.suffix[S] += log(total)
            total = exp(self.prefix[S] + most - log_sum)
            for i in range(n):
                if S >> i & 1:
                    for j in range(n):
                        if not S >> j & 1:
                            self.before[i * n + j] += row[j] * total
        return log_sum

    cdef void share_pairs(self, Py_ssize_t n) noexcept nogil:
        """Set `before` from the last item on: what `prefix` sums has shares of 1, also where their log was rounded.

        `suffix` gets the probabilities of orders that begin with the items of a set.
        """
        cdef Py_ssize_t S, i, j, whole = (1 << n) - 1
        cdef double total, most, share
        cdef double* row
        memset(self.before, 0, n * n * sizeof(double))
        memset(self.suffix, 0, whole * sizeof(double))
        self.suffix[whole] = 1.0 if self.prefix[whole] > -INFINITY else 0.0
        for S in range(whole, 0, -1):
            if self.suffix[S] == 0:
                continue
            row = self.gain + S * n
            total = self.sum_last(S, n, &most)
            for j in range(n):
                if S >> j & 1:
                    share = self.suffix[S] * exp(self.prefix[S ^ (1 << j)] + row[j] - most) / total
                    self.suffix[S ^ (1 << j)] += share
                    for i in range(n):
                        if i != j and S >> i & 1:
                            self.before[i * n + j] += share

    # ---- the relaxation -------------------------------------------------------------------------------

    cdef double relax(self, Py_ssize_t n) except? -1 nogil:
        """Set `order`, by the places of the best assignment, and `halves`; return the bound.

        As A_ij = -A_ji, an assignment scores - sum_i c_ip.
        """
        cdef Py_ssize_t i, j, p
        cdef double total
        cdef double* cost = self.before
        for i in range(n):
            for j in range(n):
                self.others[i * n + j].score = self.A[i * n + j] if j != i else INFINITY
                self.others[i * n + j].item = <int32_t>j
            qsort(self.others + i * n, n, sizeof(Other), ascending)
            total = 0.0
            for p in range(n):
                cost[i * n + p] = total
                total += self.others[i * n + p].score
            poll(64 * n)
        total = -self.assign(n)
        memset(self.halves, 1, n_pairs(n))
        for p in range(n):
            i = self.order[p]
            for j in range(p):
                self.agree(i, self.others[i * n + j].item, n)
        return total

    cdef inline void agree(self, Py_ssize_t i, Py_ssize_t j, Py_ssize_t n) noexcept nogil:
        """Add 1/2 to z_ji: item i has chosen j to come before it."""
        if i < j:
            self.halves[i * (2 * n - i - 1) // 2 + j - i - 1] -= 1
        else:
            self.halves[j * (2 * n - j - 1) // 2 + i - j - 1] += 1

    cdef double assign(self, Py_ssize_t n) except? -1 nogil:
        """Set `order` to the items at the places of the assignment of least cost; return the cost.

        Items enter one after the other, along the shortest path to a free place under the reduced costs
        cost_ip - u_i - v_p >= 0 (Jonker and Volgenant 1987, without their initialisation). Numbers begin at 1; place 0
        is where an item comes from.
        """
        cdef Py_ssize_t i, p, at, near, enters
        cdef double reduced, least, total = 0.0
        cdef double* u = self.potential
        cdef double* v = u + n + 1
        cdef double* slack = v + n + 1
        cdef int32_t* item = self.match
        cdef int32_t* back = item + n + 1
        memset(u, 0, 2 * (n + 1) * sizeof(double))
        memset(item, 0, (n + 1) * sizeof(int32_t))
        for enters in range(1, n + 1):
            item[0] = <int32_t>enters
            at = near = 0
            memset(self.is_reached, 0, n + 1)
            for p in range(n + 1):
                slack[p] = INFINITY
            while item[at] != 0:
                self.is_reached[at] = 1
                i, least = item[at], INFINITY
                for p in range(1, n + 1):
                    if not self.is_reached[p]:
                        reduced = self.before[(i - 1) * n + p - 1] - u[i] - v[p]
                        if reduced < slack[p]:
                            slack[p] = reduced
                            back[p] = <int32_t>at
                        if slack[p] < least:
                            least, near = slack[p], p
                for p in range(n + 1):
                    if self.is_reached[p]:
                        u[item[p]] += least
                        v[p] -= least
                    else:
                        slack[p] -= least
                at = near
                poll(4 * n)
            while at != 0:
                item[at] = item[back[at]]
                at = back[at]
        for p in range(n):
            self.order[p] = item[p + 1] - 1
            total += self.before[self.order[p] * n + p]
        return total

    # ---- prediction of more items ---------------------------------------------------------------------

    cdef void swap(self, Py_ssize_t start, Py_ssize_t middle, Py_ssize_t end) noexcept nogil:
        """Exchange the blocks start .. middle - 1 and middle .. end - 1 of the order."""
        memcpy(self.block, self.order + start, (middle - start) * sizeof(int32_t))
        memmove(self.order + start, self.order + middle, (end - middle) * sizeof(int32_t))
        memcpy(self.order + start + end - middle, self.block, (middle - start) * sizeof(int32_t))

    cdef void obey(self, Py_ssize_t n) noexcept nogil:
        """Make `order` agree with what is known: next comes the first item that may precede all others left."""
        cdef Py_ssize_t place, at, k
        cdef bint may
        for place in range(n):
            for at in range(place, n):
                may = True
                for k in range(place, n):
                    may &= self.A[self.order[at] * n + self.order[k]] > -INFINITY
                if may:
                    self.swap(place, at, at + 1)
                    break

    cdef int improve(self, Py_ssize_t n) except -1 nogil:
        """Swap two neighbouring blocks, the best two at each border, until no swap gains."""
        cdef Py_ssize_t middle, start, end, best_start, best_end
        cdef double total, best, least = 0.0
        cdef double* sums = self.coefficient        # by item of the left block: the right one's gains
        cdef bint gained = True
        for start in range(n_pairs(n)):
            least += ROUNDING * fabs(self.s[start])
        while gained:
            gained = False
            for middle in range(1, n):
                best, best_start, best_end = least, 0, 0
                memset(sums, 0, middle * sizeof(double))
                for end in range(middle, n):
                    total = 0.0
                    for start in range(middle - 1, -1, -1):
                        sums[start] += (self.A[self.order[end] * n + self.order[start]]
                                        - self.A[self.order[start] * n + self.order[end]])
                        total += sums[start]
                        if total > best:
                            best, best_start, best_end = total, start, end + 1
                    poll(2 * middle)
                if best > least:
                    self.swap(best_start, middle, best_end)
                    gained = True
        return 0

    # ---- constraints ----------------------------------------------------------------------------------

    cdef int c_separate(self, Py_ssize_t i, const void* w, Cut* cut, double* violation) except -1 nogil:
        cdef Py_ssize_t k, n = self.size(i)
        cdef const int32_t* truth = &self.truth[self.bounds[i]]
        cdef bint augmented = self.rescaling != RESCALE_NONE
        cdef double wrong = 0.0, margin = 0.0
        if truth[0] < 0:
            with gil:
                raise ValueError(f"the order of example {self.first + i} is not known: train with LatentSVM")
        poll(<int64_t>self.c_cost(i))
        cut.alpha = cut.drift = cut.b = violation[0] = 0.0
        cut.idle = cut.n_words = 0
        cut.scale = 1.0
        self.mark(truth, n, self.true_halves)
        if not self.fill(i, <const double*>w):
            violation[0] = NAN      # the solver says it
            return 0
        self.lay(n, truth if augmented and not self.zero_one else NULL)
        if n <= self.most_exact:
            self.decode(n, truth if augmented and self.zero_one else NULL)
            self.mark(self.order, n, self.halves)
        else:
            self.relax(n)
        for k in range(n_pairs(n)):
            self.amount[k] = 0.5 * (self.true_halves[k] - <double>self.halves[k])
            wrong += fabs(self.amount[k])
            margin += 2.0 * self.amount[k] * self.s[k]
        if wrong == 0.0:        # a single item, say
            return 0
        cut_terms(self.rescaling, self.penalty, 1.0 if self.zero_one else wrong / n_pairs(n), cut)
        violation[0] = cut.b - cut.scale * margin
        if augmented and violation[0] < 0.0:    # "zero_one": the true order itself is the maximiser
            cut.b = violation[0] = 0.0
            return 0
        cut.n_words = 3 * self.gather(i)
        cut.words = <int32_t*>self.packed
        return 0

    cdef void sum_pairs(self, Py_ssize_t i) noexcept nogil:
        """Set `coefficient` (of items) and `pair_sum` (of pair features) to sum_k amount_k (2 phi_k)."""
        cdef Py_ssize_t a, b, f, k = 0, n = self.size(i), pair = self.pair_bounds[i]
        memset(self.coefficient, 0, n * sizeof(double))
        memset(self.pair_sum, 0, self.pairs.shape[1] * sizeof(double))
        for a in range(n):
            for b in range(a + 1, n):
                if self.amount[k] != 0.0:
                    self.coefficient[a] += 2.0 * self.amount[k]
                    self.coefficient[b] -= 2.0 * self.amount[k]
                    for f in range(self.pairs.shape[1]):
                        self.pair_sum[f] += self.amount[k] * self.pairs[pair + k, f]
                k += 1

    cdef void spread(self, Py_ssize_t i, double coef, double* w) noexcept nogil:
        """Add the sum of `sum_pairs` to w."""
        cdef Py_ssize_t a, f, row = self.bounds[i]
        cdef int64_t e
        for a in range(self.size(i)):
            for e in range(self.indptr[row + a], self.indptr[row + a + 1]):
                w[self.indices[e]] += coef * self.coefficient[a] * self.values[e]
        for f in range(self.pairs.shape[1]):
            w[self.d + f] += coef * self.pair_sum[f]

    cdef Py_ssize_t gather(self, Py_ssize_t i) noexcept nogil:
        """Write sum_k amount_k (2 phi_k) into `packed`, values before columns; return their number."""
        cdef Py_ssize_t c, at = self.column_bounds[i], m = self.column_bounds[i + 1] - at
        cdef int32_t* columns = <int32_t*>(self.packed + m)
        for c in range(m):
            columns[c] = self.columns[at + c]
            self.vector[columns[c]] = 0.0
        self.sum_pairs(i)
        self.spread(i, 1.0, self.vector)
        for c in range(m):
            self.packed[c] = self.vector[columns[c]]
        return m

    cdef double c_cost(self, Py_ssize_t i) noexcept nogil:
        cdef Py_ssize_t n = self.size(i)
        cdef double entries = self.indptr[self.bounds[i + 1]] - self.indptr[self.bounds[i]]
        entries = 2.0 * entries + 2.0 * n_pairs(n) * (self.pairs.shape[1] + 2)
        return entries + (2.0 * n * (1 << n) if n <= self.most_exact else 2.0 * n * n * n)

    # ---- orders that are known in part ------------------------------------------------------------------

    cdef int c_complete(self, Py_ssize_t i, const void* w, Target* target) except -1 nogil:
        cdef Py_ssize_t a, b, n = self.size(i)
        target.n_words = n
        target.words = &self.truth[self.bounds[i]] if n > 0 else NULL
        self.gap = 0.0
        if not self.has_known or n == 0:
            return 0
        target.words = self.order
        self.check_scores(i, <const double*>w)
        self.lay(n, NULL)
        if n <= self.most_exact:
            self.restrict(i)
            self.decode(n, NULL)
            return 0
        self.gap = self.relax(n)
        self.restrict(i)
        self.obey(n)
        self.improve(n)
        for a in range(n):
            for b in range(a + 1, n):
                self.gap -= self.A[self.order[a] * n + self.order[b]]
        self.gap = max(self.gap, 0.0)
        return 0

    cdef bint c_retarget(self, Py_ssize_t i, const Target* target, bint take) except -1 nogil:
        cdef Py_ssize_t k, start = self.bounds[i]
        cdef bint differs = False
        for k in range(target.n_words):
            differs |= self.truth[start + k] != target.words[k]
            if take:
                self.truth[start + k] = target.words[k]
        return differs

    @property
    def targets(self):
        return self.data.bounds, self.order_array

    def with_targets(self, targets):
        return self.rebuilt(self.oracle, self.data, targets[1], self.known_arrays)

    # ---- sums over all orders ---------------------------------------------------------------------------

    cdef int c_expect(self, Py_ssize_t i, const void* w, float32_t* m, double* loss, double* entropy) except -1 nogil:
        """The moments are the probabilities of pairs i < j, less those of what is known."""
        cdef Py_ssize_t a, b, k, turn, n = self.size(i)
        cdef double log_sum, level, sign
        self.check_size(i)
        poll(<int64_t>(20.0 * self.c_cost(i)))
        loss[0] = entropy[0] = 0.0
        if not self.fill(i, <const double*>w):
            loss[0] = NAN
            return 0
        self.lay(n, NULL)
        if m != NULL:
            memset(m, 0, self.c_moments(i) * sizeof(float32_t))
        for turn in range(2):
            sign = -1.0 if turn else 1.0
            if turn and self.has_known:
                self.restrict(i)
            if turn and not self.has_known:
                log_sum = self.set_known(i)
            else:
                log_sum = self.sums(n, m != NULL)
            loss[0] += sign * log_sum
            if m == NULL:
                continue
            level, k = 0.0, 0
            for a in range(n):
                for b in range(a + 1, n):
                    level += (self.before[a * n + b] - self.before[b * n + a]) * self.s[k]
                    m[k] += <float32_t>(sign * self.before[a * n + b])
                    k += 1
            entropy[0] += sign * (log_sum - level)
        loss[0] = max(loss[0], 0.0)
        return 0

    cdef double set_known(self, Py_ssize_t i) noexcept nogil:
        """Set `before` of the true order; return its score."""
        cdef Py_ssize_t a, b, n = self.size(i)
        cdef const int32_t* truth = &self.truth[self.bounds[i]]
        cdef double score = 0.0
        for a in range(n):
            for b in range(a + 1, n):
                self.before[truth[a] * n + truth[b]], self.before[truth[b] * n + truth[a]] = 1.0, 0.0
                score += self.A[truth[a] * n + truth[b]]
        return score

    cdef Py_ssize_t c_moments(self, Py_ssize_t i) noexcept nogil:
        return max(n_pairs(self.size(i)), 1)    # a single item has no pairs: one that stays 0

    cdef void take(self, Py_ssize_t i, const float32_t* m) noexcept nogil:
        cdef Py_ssize_t k
        for k in range(n_pairs(self.size(i))):
            self.amount[k] = m[k]

    cdef double c_moments_dot(self, Py_ssize_t i, const float32_t* m, const void* w) except? -1 nogil:
        cdef Py_ssize_t k
        cdef double total = 0.0
        for k in range(n_pairs(self.size(i))):
            total += 2.0 * m[k] * self.s[k]
        return total

    cdef double c_moments_square(self, Py_ssize_t i, const float32_t* m) except? -1 nogil:
        cdef Py_ssize_t c
        cdef double total = 0.0
        self.take(i, m)
        for c in range(self.gather(i)):
            total += self.packed[c] * self.packed[c]
        return total

    cdef int c_moments_add(self, Py_ssize_t i, const float32_t* m, double coef, bint again, void* w) except -1 nogil:
        return self.c_moments_accumulate(i, m, coef, <double*>w)

    cdef int c_moments_accumulate(self, Py_ssize_t i, const float32_t* m, double coef, double* w) except -1 nogil:
        self.take(i, m)
        self.sum_pairs(i)
        self.spread(i, coef, w)
        return 0

    def moments(self, Py_ssize_t i, w):
        """Return the log-sum over orders that agree with what is known, and the probabilities of pairs i < j."""
        cdef ndarray weights = self._check_weights(w)
        self._check_example(i)
        cdef Py_ssize_t a, b, n = self.size(i)
        cdef ndarray before = np.empty(n_pairs(n))
        cdef double* at = <double*>array_data(before)
        cdef double log_sum
        self.check_size(i)
        self.check_scores(i, <const double*>array_data(weights))
        self.lay(n, NULL)
        if self.has_known:
            self.restrict(i)
            log_sum = self.sums(n, True)
        else:
            log_sum = self.set_known(i)
        for a in range(n):
            for b in range(a + 1, n):
                at[0] = self.before[a * n + b]
                at += 1
        return log_sum, before

    # ---- prediction -----------------------------------------------------------------------------------

    def answer(self, Py_ssize_t i, w):
        """Return the output found by `separate`: z of pairs i < j, float64."""
        cdef ndarray weights = self._check_weights(w)
        cdef Py_ssize_t k
        cdef Cut cut
        cdef double violation
        self._check_example(i)
        cdef ndarray z = np.empty(n_pairs(self.size(i)))
        cdef double* at = <double*>array_data(z)
        self.c_separate(i, array_data(weights), &cut, &violation)
        cdef uint8_t* found = self.halves if cut.n_words > 0 else self.true_halves
        for k in range(n_pairs(self.size(i))):
            at[k] = 0.5 * found[k]
        return z

    def decoded(self, w):
        """Return each set's best order that agrees with what is known, and how much higher another may score.

        Returns
        -------
        orders : int32 array of shape (n_items,)
        gaps : float64 array of shape (n_samples,)
            0: the order is the best one. Otherwise the relaxation's value less the order's score.
        """
        cdef ndarray weights = self._check_weights(w)
        cdef const void* at = array_data(weights)
        cdef int32_t[::1] orders = np.empty_like(self.order_array)
        cdef double[::1] gaps = np.empty(self.n_samples)
        cdef Py_ssize_t i
        cdef Target target
        with nogil:
            for i in range(self.n_samples):
                self.c_complete(i, at, &target)
                if target.n_words > 0:
                    memcpy(&orders[self.bounds[i]], target.words, target.n_words * sizeof(int32_t))
                gaps[i] = self.gap
        return np.asarray(orders), np.asarray(gaps)
