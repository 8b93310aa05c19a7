"""Threads that train one model together: each with weights of its own, told of what the others do to theirs.

A thread owns the alphas of some examples, so they stay feasible, and a copy of w. Each change of its w, a cut times a
number, goes into its log, those of one example together; before it solves an old example, and from time to time before
it decodes, it applies what the others' logs have that is new. So no memory that one thread writes is read by another
but the logs, which grow at their end: the words of an entry are written before the count that makes it visible
(release), and read after it (acquire); pages that all have read are used again. Rows of w that every example touches
(transitions, frequent words) stay in each thread's own cache, and w is behind by what the others have done since the
last look. The sum that the average is made of is one, behind a lock: it changes seldom.
A perceptron adds to it with each mistake: there each thread has its own, and these are added up when threads rest.
"""

from cpython.pythread cimport (
    PyThread_acquire_lock, PyThread_allocate_lock, PyThread_free_lock, PyThread_release_lock, PyThread_type_lock,
    WAIT_LOCK,
)
from libc.math cimport INFINITY
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy

import numpy as np

from structsvm._arrays cimport array_data, ndarray
from structsvm._problem cimport Cut, Problem
from structsvm._typedefs cimport int32_t, int64_t
from structsvm.dual._dual cimport DualState, WorkingSet
from structsvm.dual._weights cimport AVERAGE_LINEAR, AVERAGE_NONE, WeightState

cdef extern from *:
    """
    typedef struct page {
        struct page *next;      /* NULL in the last one; set once `used` is final */
        int64_t used;           /* bytes that are whole */
        int64_t size;
        char *bytes;            /* behind this struct */
    } page;

    /* How far a reader is in a log (it has left the pages before `at`), and how many examples a thread has visited;
       apart from those of others by two cache lines. */
    typedef struct place { page *at; int64_t byte; char pad[112]; } place;
    typedef struct tally { int64_t visits; char pad[120]; } tally;

    static page *page_next(page *p) { return __atomic_load_n(&p->next, __ATOMIC_ACQUIRE); }
    static int64_t page_used(page *p) { return __atomic_load_n(&p->used, __ATOMIC_ACQUIRE); }
    static void page_link(page *p, page *next) { __atomic_store_n(&p->next, next, __ATOMIC_RELEASE); }
    static page *place_get(place *r) { return __atomic_load_n(&r->at, __ATOMIC_ACQUIRE); }
    static void place_set(place *r, page *at) { __atomic_store_n(&r->at, at, __ATOMIC_RELEASE); }
    static void page_use(page *p, int64_t used) { __atomic_store_n(&p->used, used, __ATOMIC_RELEASE); }
    static int64_t tally_get(tally *t) { return __atomic_load_n(&t->visits, __ATOMIC_RELAXED); }
    static void tally_set(tally *t, int64_t visits) { __atomic_store_n(&t->visits, visits, __ATOMIC_RELAXED); }
    """
    ctypedef struct page:
        page* next
        int64_t used
        int64_t size
        char* bytes
    ctypedef struct place:
        page* at
        int64_t byte
    ctypedef struct tally:
        int64_t visits
    page* page_next(page* p) noexcept nogil
    int64_t page_used(page* p) noexcept nogil
    void page_link(page* p, page* next) noexcept nogil
    page* place_get(place* r) noexcept nogil
    void place_set(place* r, page* at) noexcept nogil
    void page_use(page* p, int64_t used) noexcept nogil
    int64_t tally_get(tally* t) noexcept nogil
    void tally_set(tally* t, int64_t visits) noexcept nogil


cdef struct Entry:          # its words follow it
    int64_t i
    Cut cut                 # alpha: how much of it was added

cdef int64_t PAGE = 1 << 16

cdef enum:
    BLOCK = 32              # entries

# Between two decodes before which a thread looks at what the others have done: work in units of `c_cost`, and the part
# of a pass, at most.
cdef double LOOK_WORK = 200.0, LOOK_PART = 1e-3


cdef inline int64_t size_of(const Entry* entry) noexcept nogil:
    return <int64_t>sizeof(Entry) + (entry.cut.n_words * <int64_t>sizeof(int32_t) + 7) // 8 * 8


cdef class Exchange:
    """The logs of `n_members` threads, and how far each thread has read in those of the others."""

    cdef readonly int n_members
    cdef page** first           # the first page of each log
    cdef page** last
    cdef place* places          # [reader * n_members + writer]
    cdef tally* tallies
    cdef PyThread_type_lock average     # its holder may add to the sum that the average is made of

    def __init__(self, int n_members):
        cdef int k, other
        self.n_members = n_members
        self.first = <page**>calloc(n_members, sizeof(page*))
        self.last = <page**>calloc(n_members, sizeof(page*))
        self.places = <place*>calloc(n_members * n_members, sizeof(place))
        self.tallies = <tally*>calloc(n_members, sizeof(tally))
        self.average = PyThread_allocate_lock()
        if (self.first == NULL or self.last == NULL or self.places == NULL or self.tallies == NULL
                or self.average == NULL):
            raise MemoryError()
        for k in range(n_members):
            self.first[k] = self.last[k] = new_page(PAGE)
            for other in range(n_members):
                self.places[other * n_members + k].at = self.first[k]

    def __dealloc__(self):
        cdef int k
        if self.first != NULL:
            for k in range(self.n_members):
                free_pages(self.first[k])
        free(self.first)
        free(self.last)
        free(self.places)
        free(self.tallies)
        if self.average != NULL:
            PyThread_free_lock(self.average)

    cdef int post(self, int member, Py_ssize_t i, const Cut* cut, double coef) except -1 nogil:
        """Append to a member's log that its w has changed by coef times the cut of example i."""
        cdef page* p = self.last[member]
        cdef int64_t words = cut.n_words * <int64_t>sizeof(int32_t)
        cdef int64_t size = <int64_t>sizeof(Entry) + (words + 7) // 8 * 8
        cdef Entry* entry
        if p.used + size > p.size:
            p = self.turn(member, size)
        entry = <Entry*>(p.bytes + p.used)
        entry.i, entry.cut, entry.cut.alpha = i, cut[0], coef
        memcpy(entry + 1, cut.words, words)
        page_use(p, p.used + size)
        return 0

    cdef page* turn(self, int member, int64_t size) except NULL nogil:
        """The page that a member's log goes on with, with room for an entry: its first one, if all have left that."""
        cdef page* p = self.first[member]
        cdef bint left = p.size >= size
        cdef int other
        for other in range(self.n_members):
            left = left and (other == member or place_get(&self.places[other * self.n_members + member]) != p)
        if left and p != self.last[member]:
            self.first[member] = p.next
            p.next, p.used = NULL, 0
        else:
            p = new_page(max(PAGE, size))
        page_link(self.last[member], p)
        self.last[member] = p
        return p

    cdef int read(self, int member, Problem problem, void* w) except -1 nogil:
        """Apply to a member's w what the other logs have that it has not read.

        Examples and weights are those of another thread: a block of entries is fetched into the caches before it is
        applied.
        """
        cdef int other, stage
        cdef place* here
        cdef page* following
        cdef int64_t used
        cdef Py_ssize_t k, n, first
        cdef Entry* entries[BLOCK]
        cdef Cut cuts[BLOCK]
        for other in range(self.n_members):
            if other == member:
                continue
            here = &self.places[member * self.n_members + other]
            while True:
                following = page_next(here.at)      # before the count, which is final if there is one
                used = page_used(here.at)
                while here.byte < used:
                    n = 0
                    while n < BLOCK and here.byte < used:
                        entries[n] = <Entry*>(here.at.bytes + here.byte)
                        cuts[n] = entries[n].cut
                        cuts[n].words = <int32_t*>(entries[n] + 1)
                        here.byte += size_of(entries[n])
                        n += 1
                    for stage in range(3):
                        for k in range(n):
                            if stage < 2:
                                problem.c_prefetch(entries[k].i, stage)
                            problem.c_prefetch_add(entries[k].i, &cuts[k], w, stage)
                    first = 0
                    for k in range(1, n + 1):
                        if k == n or entries[k].i != entries[first].i:
                            problem.c_add_cuts(entries[first].i, &cuts[first], k - first, w)
                            first = k
                if following == NULL:
                    break
                here.byte = 0
                place_set(here, following)
        return 0

    @property
    def n_pages(self):
        """Pages of all logs; to be asked while no thread is at work."""
        cdef int k, n = 0
        cdef page* p
        for k in range(self.n_members):
            p = self.first[k]
            while p != NULL:
                n += 1
                p = p.next
        return n

    cdef double visits(self) noexcept nogil:
        """Examples that all members have visited in this pass."""
        cdef int k
        cdef int64_t total = 0
        for k in range(self.n_members):
            total += tally_get(&self.tallies[k])
        return <double>total

    def __reduce__(self):
        raise TypeError("an Exchange belongs to the threads that use it")


cdef page* new_page(int64_t size) except NULL nogil:
    cdef page* p = <page*>malloc(sizeof(page) + size)
    if p == NULL:
        with gil:
            raise MemoryError("no memory for the changes of the weights")
    p.next, p.used, p.size = NULL, 0, size
    p.bytes = <char*>(p + 1)
    return p


cdef void free_pages(page* p) noexcept nogil:
    cdef page* following
    while p != NULL:
        following = p.next
        free(p)
        p = following


cdef class ThreadPart(DualState):
    """One thread's part of a state: some examples and, of a dual, their alphas; and weights of its own.

    Parameters
    ----------
    problem : Problem
        All examples, with scratch memory of its own; the first thread's may be the whole's.
    C, seed : see `DualState`.
    whole : WeightState
        Whose steps these are; of a dual also its working sets and its average.
    exchange : Exchange
    member : int
        The thread's number there.
    runs : int64 array of shape (n_runs, 2), contiguous
        Its examples, from one number to before another, ascending; bounds of groups where there are groups.
    visited : int64 array
        Its groups, or else examples.
    work : float
        What a visit of each of them takes, see `costs`.
    """

    cdef WeightState whole
    cdef Exchange exchange
    cdef int member
    cdef bint is_dual
    cdef ndarray runs           # the array that `bounds` points into
    cdef const int64_t* bounds
    cdef Py_ssize_t n_runs
    cdef int64_t begun          # visits of the whole before this pass
    cdef int64_t counted        # visits that the whole knows of
    cdef double looked          # `cost` when `catch_up` was called last
    cdef double seen            # visits of the others in this pass, at the last look
    cdef double look_work       # and how much more it has to be
    cdef Py_ssize_t changed_last    # example
    cdef double[::1] owed       # change of its alphas that is not in the log yet; else 0
    cdef object exact           # float64 weights, for `total`

    def __init__(self, Problem problem not None, const double[::1] C, WeightState whole not None,
                 Exchange exchange not None, int member, ndarray runs not None, visited, double work, *, seed=0):
        self.whole, self.exchange, self.member = whole, exchange, member    # needed by `project`
        self.is_dual = isinstance(whole, DualState)
        super().__init__(problem, C, seed=seed)
        self.averaging, self.u = whole.averaging, whole.u
        if self.is_dual:
            free(self.sets)
            self.sets, self.n_sets = (<DualState>whole).sets, 0
        elif self.averaging != AVERAGE_NONE and member > 0:
            self.average_sum = np.zeros_like(self.weights)
            self.u = array_data(self.average_sum)
        # Each thread projects what it knows of all alphas; into the average goes what the first one sees of that, when
        # it sees it.
        self.counts_mu = member == 0
        self.runs, self.bounds, self.n_runs = runs, <const int64_t*>array_data(runs), len(runs)
        self.owed, self.changed_last = np.zeros(0), self.bounds[0]
        self.looked, self.look_work = -INFINITY, min(LOOK_WORK, LOOK_PART * work)
        self.visited = visited

    def __dealloc__(self):
        if self.is_dual:
            self.sets = NULL    # they are the whole's

    @property
    def steps(self):
        return self.whole.steps

    @property
    def has_multipliers(self):
        return self.whole.has_multipliers

    cdef double tick(self) noexcept nogil:
        """As in `WeightState`, at the time of all threads."""
        cdef double t = <double>(self.begun - self.whole.average_from) + self.seen + <double>self.n_visits - 1.0
        return 0.5 * t * (t + 1.0) if self.averaging == AVERAGE_LINEAR else t

    cdef int update(self, Py_ssize_t i, Cut* cut, double coef) except -1 nogil:
        if not self.is_dual:
            WeightState.update(self, i, cut, coef)
            return self.exchange.post(self.member, i, cut, coef)
        DualState.update(self, i, cut, coef)
        if i != self.changed_last:
            self.tell()
            self.changed_last = i
        if self.owed.shape[0] < self.slope_capacity:
            with gil:
                self.owed = np.concatenate([self.owed, np.zeros(self.slope_capacity - self.owed.shape[0])])
        self.owed[cut - self.sets[i].cuts] += coef
        return 0

    cdef int tell(self) except -1 nogil:
        """Log what has been done to the cuts of the example that was changed last: one entry each."""
        cdef WorkingSet* s = &self.sets[self.changed_last]
        cdef Py_ssize_t k
        for k in range(min(s.n, self.owed.shape[0])):
            if self.owed[k] != 0.0:
                self.exchange.post(self.member, self.changed_last, &s.cuts[k], self.owed[k])
                self.owed[k] = 0.0
        return 0

    cdef int remove(self, Py_ssize_t i, Py_ssize_t k) except -1 nogil:
        self.tell()
        PyThread_acquire_lock(self.exchange.average, WAIT_LOCK)
        try:
            return DualState.remove(self, i, k)
        finally:
            PyThread_release_lock(self.exchange.average)

    cdef void project(self) noexcept nogil:
        if self.n_signs > 0:
            PyThread_acquire_lock(self.exchange.average, WAIT_LOCK)
            DualState.project(self)
            PyThread_release_lock(self.exchange.average)

    cdef int catch_up(self) except -1 nogil:
        """Apply what the others have done since the last look."""
        self.exchange.read(self.member, self.problem, self.w)
        self.seen = self.exchange.visits() - <double>tally_get(&self.exchange.tallies[self.member])
        self.n_projected = -1
        self.project()
        return 0

    cdef int decode(self, Py_ssize_t i, Cut* cut, double* violation) except -1 nogil:
        self.tell()
        if self.cost >= self.looked + self.look_work:
            self.looked = self.cost
            self.catch_up()
        DualState.decode(self, i, cut, violation)
        tally_set(&self.exchange.tallies[self.member], self.n_visits)
        return 0

    cdef int solve_old(self) except -1 nogil:
        """On weights that are behind by a step of the others, not by a visit: then the dual rises as one thread's."""
        self.tell()
        self.catch_up()
        return DualState.solve_old(self)

    cdef int subgradient_step(self, Py_ssize_t i) except -1 nogil:
        self.catch_up()
        tally_set(&self.exchange.tallies[self.member], self.n_visits + 1)
        return WeightState.subgradient_step(self, i)

    def begin(self):
        """Take the whole's weights and this part's working sets as they are: a pass begins."""
        cdef Py_ssize_t i, r
        if self.member == 0:    # the whole's own: nobody else looks at them during a pass
            self.weights, self.w = self.whole.weights, self.whole.w
            self.problem.lend(self.weights)
        else:
            self.weights[:] = self.whole.weights
        if self.is_dual or self.member == 0:
            self.u = self.whole.u
        if self.n_signs > 0:
            self.mu[:] = self.whole.mu
        tally_set(&self.exchange.tallies[self.member], 0)
        self.begun, self.seen = self.whole.n_visits, 0.0
        self.n_visits = self.counted = self.n_cuts = self.n_patterns = 0
        for r in range(self.n_runs):
            for i in range(self.bounds[2 * r], self.bounds[2 * r + 1]):
                self.n_cuts += self.sets[i].n
                self.make_room(self.sets[i].n)
                self.position[i] = -1
                if self.sets[i].n > 0:
                    self.position[i] = self.n_patterns
                    self.support[self.n_patterns] = i
                    self.n_patterns += 1
        self.n_near = self.n_patterns

    def rest(self):
        """A pass, or a part of it, ends: let the log be whole."""
        with nogil:
            self.tell()

    def meet(self):
        """Bring this part's weights up to date with the logs of all, which rest."""
        with nogil:
            self.catch_up()

    def total(self):
        """`DualState.sums` of this part's examples; empty if there is no dual."""
        cdef Py_ssize_t r
        cdef double linear = 0.0, ridge = 0.0
        if not self.is_dual:
            return ()
        if self.exact is None:
            self.exact = np.empty(len(self.weights))
        self.exact[:] = 0.0
        for r in range(self.n_runs):
            _, more, rest = self.sums(self.bounds[2 * r], self.bounds[2 * r + 1], self.exact, 0)
            linear += more
            ridge += rest
        return self.exact, linear, ridge


def gather(WeightState whole not None, parts, found=()):
    """Bring the counters of a state, and a perceptron's average, up to date with its parts'. No thread is at work.

    `found`: what each part's `total` has returned, with the vectors added to the first one; `DualState.settle` makes
    its weights of that.
    """
    cdef ThreadPart part
    cdef DualState dual = whole if isinstance(whole, DualState) else None
    if dual is not None:
        dual.n_cuts = dual.n_patterns = 0
    for part in parts:
        part.tell()
    for part in parts:
        part.catch_up()
        if dual is not None:
            dual.n_cuts += part.n_cuts
            dual.n_patterns += part.n_patterns
        elif part.average_sum is not None:
            np.add(whole.average_sum, part.average_sum, out=whole.average_sum)
            part.average_sum[:] = 0.0
        whole.dual += part.dual
        whole.cost += part.cost
        whole.n_argmax += part.n_argmax
        whole.n_updates += part.n_updates
        whole.n_visits += part.n_visits - part.counted
        part.dual = part.cost = 0.0
        part.looked = -INFINITY
        part.n_argmax = part.n_updates = 0
        part.counted = part.n_visits
    if dual is not None and found:
        sums, linear, ridge = zip(*found)
        dual.summed = sums[0], sum(linear), sum(ridge)


def costs(Problem problem not None):
    """Cost of one visit of each example, by the problem's own count: array (n_samples,)."""
    cdef Py_ssize_t i
    cdef double[::1] cost = np.empty(problem.n_samples)
    for i in range(problem.n_samples):
        cost[i] = problem.c_cost(i)
    return np.asarray(cost)
