"""Parse trees: exact inference by CKY charts, and the margin problem over whole trees.

The joint feature of a tree counts the grammar's rules in it and, if asked for, features of its nodes' spans. A cut is
the difference of two such counts as a sparse vector, the form that `Problem` has verbs for.

Loss-augmented inference bounds before it searches. For slopes (a, mu) one chart gives

    M = max over trees but the gold one of  S + a c + mu p,

S a tree's score, p its counted nodes, c those of them in the gold tree. Hence S <= M - a c - mu p for every tree with
counts (c, p), and that, put into the objective

    f(c, p, S) = b(c, p) + scale(c, p) (S - S0),

says which cells (c, p) may hold a better tree than the one that the chart has. Where f is linear none can: the chart
has decided. Otherwise the fronts of `cky_fronts.h` do, which the same bound restricts to the few items that matter.
(More charts with other slopes leave fewer items, but cost more than they save on almost all sentences.)
"""

from libc.math cimport INFINITY, NAN, isfinite
from libc.stdlib cimport free, realloc
from libc.stdint cimport INT32_MAX, int32_t, int64_t, uint8_t, uint32_t
from libc.string cimport memcmp, memcpy, memset

import numpy as np

from structsvm._problem cimport (
    PENALTY_HARD, PENALTY_LINEAR, RESCALE_MARGIN, RESCALE_NONE, Cut, Problem, Target, cut_terms,
)
from structsvm._arrays cimport array_data, ndarray
from structsvm.execution._processor cimport kernel_set
from structsvm.execution._stop cimport poll

from structsvm.adapter import offers_of
from structsvm.arrays import checksum
from structsvm.structures.grammar import pair_tables

cdef extern from "cky_sums.h" nogil:
    enum: CKY_OK, CKY_NO_MEMORY, CKY_CAP, CKY_STOPPED, CKY_VECTORS
    ctypedef struct cky_vector:
        pass
    ctypedef struct cky_grammar:
        int64_t n_symbols, n_nodes, n_terminals, n_rules, n_chains, n_categories, span_features, n_spans, n_splits
        int64_t n_wide_categories
        const uint8_t* is_wide
        int64_t n_pairs, rule_rows, n_rule_splits, n_rests, n_keys
        const int32_t* first_row
        const int32_t* shift
        const uint32_t* length_key
        const int32_t* group
        const int32_t* group_ptr
        const int32_t* category
        const uint8_t* counted
        const int32_t* start_feature
        const int32_t* pair_left
        const int32_t* pair_right
        const int32_t* left_ptr
        const int32_t* right_ptr
        const int32_t* right_pair
        const int32_t* rule_ptr
        const int32_t* rule_pair
        const int32_t* rule_parent
        const int32_t* rule_feature
        const int32_t* lexical_ptr
        const int32_t* lexical_node
        const int32_t* lexical_feature
        const int32_t* up_ptr
        const int32_t* up_node
        const int32_t* chain_below
        const int32_t* chain_top
        const int32_t* chain_bottom
        const int32_t* chain_feature
        int64_t n_vectors, n_number_rows, number_rows
        const cky_vector* vector
    ctypedef struct cky_chart:
        int64_t n, m, n_nodes, n_rules, n_chains
        const int32_t* words
        const uint32_t* keys
        const double* w
        const int32_t* gold_ptr
        const int32_t* gold_category
        const int32_t* mask
        const uint8_t* allowed
        double a, mu
        int32_t* local
        int32_t* symbol
        int32_t* chain_bottom
        int32_t* chain
        int32_t* chain_top
    ctypedef struct cky_sums:
        double* spans
        int has_tags
    ctypedef struct cky_kernels:
        int (*inside)(cky_chart* h) except -1 nogil
        int (*sums_inside)(cky_chart* h, cky_sums* f, double* log_sum) except -1 nogil
        int (*sums_outside)(cky_chart* h, cky_sums* f, double log_sum, double* psi) except -1 nogil
    double cky_sums_bytes(const cky_chart* h)
    int cky_sums_prepare(cky_sums* f, const cky_chart* h)
    void cky_sums_free(cky_sums* f)
    void cky_look(cky_chart* h, const int32_t* words, const uint32_t* keys, int64_t n, const double* w)
    int64_t cky_support(const cky_chart* h, int32_t* mark, int32_t stamp, int32_t* out)
    const cky_kernels* cky_kernels_of(int set, int (*poll)(int64_t work) except -1 nogil)
    int64_t cky_worth(const cky_chart* h, int64_t word, int64_t k)
    void cky_multiply_back(const cky_chart* h, const double* seen, double* psi)
    int cky_init(cky_chart* h, const cky_grammar* g, int64_t max_bytes)
    void cky_free(cky_chart* h)
    int cky_prepare(cky_chart* h, const int32_t* words, const uint32_t* keys, int64_t n, const double* w)
    double cky_bytes(const cky_chart* h)
    double cky_weight(const double* w, int32_t feature)
    int64_t cky_n_chains(const cky_chart* h, int64_t i, int64_t j)
    double cky_value(const cky_chart* h, int64_t i, int64_t s, int64_t j)
    bint cky_may_start(const cky_chart* h, int64_t s)
    double cky_start(const cky_chart* h, int64_t s)
    double* cky_base(const cky_chart* h, int64_t i, int64_t j)
    int64_t cky_span(int64_t i, int64_t j)
    int64_t cky_at(const cky_chart* h, int64_t i, int64_t s, int64_t j)
    ctypedef struct cky_ways:
        int64_t B, C, rule, split
        double x
    void cky_begin(cky_ways* way, const cky_chart* h, int64_t s, int64_t i, int64_t j)
    int cky_next(cky_ways* way, const cky_chart* h)

cdef extern from "cky_expected.h" nogil:
    ctypedef struct cky_node:
        int32_t symbol, i, j, chain, rule, split
    ctypedef struct cky_item:
        int32_t symbol, i, j
    ctypedef struct cky_choice:
        double loss
        int64_t at
        int32_t chain, rule, split
    ctypedef struct cky_entry:
        double x
        int32_t c, p, rule, is_gold
    ctypedef struct cky_fronts:
        double theta
        const cky_node* gold
        const int32_t* gold_node
        int32_t* front
        double* out
        cky_entry* pool
        int64_t size, work, n_visits, n_kept
    enum: CKY_CELL_BYTES
    int64_t cky_most_nodes(int64_t n)
    int64_t cky_root(const cky_chart* h, double* best, cky_choice* other)
    int64_t cky_derive(cky_chart* h, int64_t s, const cky_choice* forced, cky_choice* cheapest, cky_item* stack,
                       cky_node* d) except -1
    int64_t cky_features(const cky_grammar* g, const uint32_t* keys, const cky_node* d, int64_t size, int64_t* out)
    double cky_see(const cky_chart* h, const cky_node* d, int64_t size, double factor, double* seen)
    void cky_count(const cky_chart* h, const cky_node* d, int64_t size, int64_t* c, int64_t* p)
    double cky_chain(const cky_chart* h, int64_t i, int64_t j, int64_t k)
    double cky_fronts_bytes(const cky_chart* h, const cky_fronts* f)
    void cky_fronts_free(cky_fronts* f)
    int cky_fronts_prepare(cky_fronts* f, const cky_chart* h, int64_t n_c, int64_t n_p)
    void cky_outside_root(cky_chart* h, cky_fronts* f)
    int cky_outside(cky_chart* h, cky_fronts* f, int64_t i, int64_t j)
    int cky_front(cky_chart* h, cky_fronts* f, int32_t* base_front, int64_t q)
    int64_t cky_unfold(const cky_chart* h, const cky_fronts* f, int64_t s, int32_t entry, cky_item* stack,
                       int32_t* entries, cky_node* d)
    int64_t cky_brackets(cky_chart* h, cky_fronts* f, double best, double cost, cky_item* stack)

cdef extern from "stdlib.h" nogil:
    void qsort(void* base, size_t nmemb, size_t size, int (*compar)(const void*, const void*) noexcept nogil)

cdef const cky_kernels* KERNELS = cky_kernels_of(kernel_set(), poll)

cdef enum:
    NODE_WORDS = 6          # numbers of a cky_node

# Bounds and values are sums of the same terms in different orders: differences below this share are rounding.
cdef double ROUNDING = 1e-10

cdef enum Loss:
    ZERO_ONE
    HAMMING
    F1

LOSSES = {"zero_one": ZERO_ONE, "hamming": HAMMING, "f1": F1, "log": ZERO_ONE}


cdef const int32_t* first(const int32_t[::1] array) noexcept:
    return &array[0] if array.shape[0] > 0 else NULL


cdef int compare(const void* a, const void* b) noexcept nogil:
    cdef int64_t x = (<const int64_t*>a)[0], y = (<const int64_t*>b)[0]
    return (x > y) - (x < y)


cdef class Parser:
    """The charts of sentences, one at a time, and the best derivations in them.

    Parameters
    ----------
    tables : Grammar
        See `structsvm.structures.grammar`.
    n_features : int
        Number of weights.
    templates : SpanTemplates
        Those of span features, whose weights come after the rules'.
    max_length : int
        Longest sentence, in words.
    max_bytes : int
        Largest chart.
    """

    cdef readonly object tables, templates
    cdef readonly Py_ssize_t n_features, max_length
    cdef readonly int64_t max_bytes
    cdef cky_grammar grammar
    cdef cky_chart chart
    cdef cky_sums sums
    cdef cky_fronts fronts              # fronts of brackets
    cdef int64_t longest_chain
    cdef int32_t[::1] nodes             # nodes of a derivation
    cdef int32_t[::1] stack
    cdef int64_t[::1] features          # features of two derivations
    cdef readonly object arrays
    cdef const int32_t[::1] words       # the sentence that was checked last
    cdef const int64_t[::1] offsets     # where sentences begin that were read
    cdef const int32_t[::1] keys, length_key    # bits of uint32
    cdef const int32_t[::1] category, vectors
    cdef const uint8_t[::1] is_wide
    cdef double[::1] seen               # numbers seen by derivations, see cky_see
    cdef int32_t* rows                  # rows of the sentences of `parse_read`
    cdef int64_t n_rows, room_rows

    def __init__(self, tables, Py_ssize_t n_features, templates, Py_ssize_t max_length, int64_t max_bytes):
        cdef cky_grammar* g = &self.grammar
        self.tables, self.n_features, self.max_length, self.max_bytes = tables, n_features, max_length, max_bytes
        self.arrays, self.templates = tables.arrays, templates
        cdef const uint8_t[::1] counted = tables.counted
        g.n_symbols, g.n_nodes, g.n_terminals = tables.n_symbols, len(tables.nodes), len(tables.terminals)
        g.n_categories, g.span_features = len(tables.categories), len(tables.features)
        self.category, g.n_wide_categories = tables.category, tables.n_wide_categories
        self.is_wide = np.array([name in tables.wide for name in tables.nodes], dtype=np.uint8)
        g.category, g.is_wide = first(self.category), &self.is_wide[0]
        g.n_spans, g.n_splits, g.n_keys = templates.n_spans, templates.n_splits, templates.n_keys
        g.n_rule_splits, g.n_rests = templates.n_rule_splits, templates.n_rests
        g.rule_rows = g.span_features + g.n_categories * templates.n_rows
        g.first_row, g.shift = first(templates.first_row), first(templates.shift)
        g.group, g.group_ptr = first(templates.group), first(templates.group_ptr)
        self.length_key = templates.length_keys
        g.length_key = <const uint32_t*>first(self.length_key)
        self.vectors = templates.of_vectors.ravel()
        g.n_vectors, g.n_number_rows = len(templates.of_vectors), templates.n_number_rows
        g.number_rows, g.vector = n_features - g.n_categories * g.n_number_rows, <const cky_vector*>first(self.vectors)
        g.counted = &counted[0]
        a = self.arrays
        g.start_feature = first(a["start_feature"])
        g.pair_left, g.pair_right = first(a["pair_left"]), first(a["pair_right"])
        g.left_ptr, g.right_ptr, g.right_pair = first(a["left_ptr"]), first(a["right_ptr"]), first(a["right_pair"])
        g.rule_ptr, g.rule_pair = first(a["rule_ptr"]), first(a["rule_pair"])
        g.rule_parent, g.rule_feature = first(a["rule_parent"]), first(a["rule_feature"])
        g.lexical_ptr, g.lexical_node = first(a["lexical_ptr"]), first(a["lexical_node"])
        g.lexical_feature = first(a["lexical_feature"])
        g.up_ptr, g.up_node = first(a["up_ptr"]), first(a["up_node"])
        g.chain_below, g.chain_top = first(a["chain_below"]), first(a["chain_top"])
        g.chain_bottom, g.chain_feature = first(a["chain_bottom"]), first(a["chain_feature"])
        g.n_rules, g.n_chains, g.n_pairs = len(a["rule_pair"]), len(a["chain_below"]), len(a["pair_left"])
        self.longest_chain = tables.longest_chain
        if cky_init(&self.chart, g, max_bytes) < 0:
            raise MemoryError("no memory for the grammar")
        self.nodes = np.empty(0, dtype=np.int32)

    def __dealloc__(self):
        cky_free(&self.chart)
        cky_sums_free(&self.sums)
        cky_fronts_free(&self.fronts)
        free(self.rows)

    def __reduce__(self):
        raise TypeError("a Parser holds charts: make another one where it is needed")

    cdef int reserve(self, Py_ssize_t n) except -1:
        """Room for derivations of n words."""
        cdef int64_t size = cky_most_nodes(n), most
        if n > self.max_length:
            raise ValueError(f"a sentence of {n} words is longer than the cap max_length={self.max_length}")
        if self.nodes.shape[0] < NODE_WORDS * size:
            self.nodes = np.empty(NODE_WORDS * size, dtype=np.int32)
            self.stack = np.empty(3 * (size + 2), dtype=np.int32)
            most = (self.grammar.n_spans + 1) * (self.longest_chain + 1) + self.grammar.n_keys + 2
            self.features = np.empty(2 * size * most + 2 + self.n_features - self.grammar.number_rows, dtype=np.int64)
            self.seen = np.empty(CKY_VECTORS * n * self.grammar.n_categories if self.grammar.n_vectors else 1)
        return 0

    cdef int failed(self, int status, Py_ssize_t n, double size) except -1 nogil:
        with gil:
            if status == CKY_NO_MEMORY:
                raise MemoryError(f"no memory for the chart of a sentence of {n} words")
            raise ValueError(
                f"the chart of a sentence of {n} words needs {size:.3g} bytes or more, above the cap "
                f"max_chart_bytes={self.max_bytes}; raise it, or markovise the grammar (h=1), which has fewer symbols")

    cdef int prepare(self, const int32_t* words, const uint32_t* keys, Py_ssize_t n, const double* w) except -1 nogil:
        cdef int status = cky_prepare(&self.chart, words, keys, n, w)
        if status < 0:
            self.failed(status, n, cky_bytes(&self.chart))
        return 0

    cdef double score(self, const uint32_t* keys, const cky_node* d, int64_t size, const double* w) noexcept nogil:
        cdef int64_t k, count = cky_features(&self.grammar, keys, d, size, &self.features[0])
        cdef double total = 0.0
        for k in range(count):
            total += w[self.features[k]]
        return total + cky_see(&self.chart, d, size, 0.0, NULL)

    cdef void add_numbers(self, const cky_node* d, int64_t size, const cky_node* other, int64_t other_size,
                          double factor, double* psi) noexcept nogil:
        """psi += factor * (the numbers that a derivation of the present sentence sees, less those of another)."""
        if self.grammar.n_vectors == 0:
            return
        memset(&self.seen[0], 0, cky_worth(&self.chart, CKY_VECTORS, 0) * sizeof(double))
        cky_see(&self.chart, d, size, factor, &self.seen[0])
        cky_see(&self.chart, other, other_size, -factor, &self.seen[0])
        cky_multiply_back(&self.chart, &self.seen[0], psi)

    def check(self, words):
        """Make a sentence the present one, or raise ValueError: its terminals, and their codes if templates need any.

        Returns its length.
        """
        self.words, self.keys = self.templates.checked(words)
        self.reserve(len(words))
        return len(words)

    def read(self, words, const int64_t[::1] offsets):
        """Take sentences for `parse_read`: words of all as `parse` takes them, and where each begins."""
        self.words, self.keys = self.templates.checked(words, np.asarray(offsets))
        self.offsets = offsets

    cdef const uint32_t* key(self) noexcept nogil:
        return <const uint32_t*>&self.keys[0] if self.keys.shape[0] > 0 else NULL

    cdef const double* weights(self, const double[::1] w) except NULL:
        if w.shape[0] != self.n_features:
            raise ValueError(f"w has shape ({w.shape[0]},), expected ({self.n_features},)")
        return &w[0]

    def parse(self, words, const double[::1] w):
        """The best derivation: ``(nodes, score)``, or None where the grammar has none.

        Parameters
        ----------
        words : int32 array of shape (n,) or (n, 1 + n_columns)
            Terminals, and the codes of the templates' columns.
        w : ndarray of shape (n_features,), float64

        Returns
        -------
        nodes : int32 array of shape (n_nodes, 6)
            In preorder: symbol, begin, end, chain, rule, split.
        score : float
        """
        self.read(words, np.array([0, len(words)]))
        _, nodes, values = self.parse_read(0, 1, w)
        return (nodes, values[0]) if len(nodes) else None

    def parse_read(self, Py_ssize_t first, Py_ssize_t stop, const double[::1] w, cost=None, double beam=3.0):
        """Parse sentences that have been read, from `first` to before `stop`, in one call without the interpreter.

        Fewer, but one, before one that fails. Returns where the rows of each end, all rows in one array of int32, and
        what each is worth: nodes and score, as `parse`; or with a `cost` the brackets whose probabilities less it have
        the largest sum, as category, begin and end, and that sum. What is in no tree whose score is within `beam` of
        the best has no probability (e^-3 of it). A sentence without a tree has no rows.
        """
        cdef const double* weights = self.weights(w)
        cdef Py_ssize_t k, n, longest = 0, width = NODE_WORDS if cost is None else 3
        cdef double price = INFINITY if cost is None else cost
        for k in range(first, stop):
            n = self.offsets[k + 1] - self.offsets[k]
            if n > self.max_length and k > first:
                stop = k
                break
            longest = max(longest, n)
        self.reserve(longest)
        ends, values = np.empty(stop - first, dtype=np.int64), np.empty(stop - first)
        cdef int64_t[::1] end = ends
        cdef double[::1] value = values
        self.n_rows, k = 0, first
        try:
            with nogil:
                while k < stop:
                    self.parse_one(k, weights, price, beam, &value[k - first])
                    end[k - first] = self.n_rows // width
                    k += 1
        except (MemoryError, ValueError):
            if k == first:
                raise
        cdef ndarray rows = np.empty((self.n_rows // width, width), dtype=np.int32)
        if self.n_rows > 0:
            memcpy(array_data(rows), self.rows, self.n_rows * sizeof(int32_t))
        return ends[:k - first], rows, values

    cdef int parse_one(self, Py_ssize_t k, const double* w, double cost, double beam, double* value) except -1 nogil:
        """Append the nodes, or brackets, of a sentence that has been read to the rows, and set what they are worth."""
        cdef cky_chart* h = &self.chart
        cdef cky_fronts* f = &self.fronts
        cdef int64_t i, j, begin, root, first = self.offsets[k], n = self.offsets[k + 1] - first
        cdef const uint32_t* keys = self.key()
        cdef cky_choice other
        cdef double best
        if keys != NULL:
            keys += (first + k) * self.grammar.n_keys
        self.prepare(&self.words[first], keys, n, w)
        KERNELS.inside(h)
        root = cky_root(h, &best, &other)
        if root < 0:
            return 0
        if cost == INFINITY:
            value[0] = best
            n = cky_derive(h, root, NULL, NULL, <cky_item*>&self.stack[0], <cky_node*>&self.nodes[0])
            return self.append(&self.nodes[0], NODE_WORDS * n)
        f.theta = best - beam - ROUNDING * (1.0 + abs(best))
        begin = cky_fronts_prepare(f, h, 1, 1)
        if begin == 0:
            cky_outside_root(h, f)
        for i in range(h.n):
            for j in range(h.n, i, -1):
                if begin == 0:
                    begin = cky_outside(h, f, i, j)
        if begin == 0:
            begin = cky_brackets(h, f, best, cost, <cky_item*>&self.stack[0])
        if begin < 0 and begin != CKY_STOPPED:
            self.failed(begin, h.n, cky_bytes(h) + cky_fronts_bytes(h, f))
        if begin < 0:
            poll(0)
        if f.size == begin:
            with gil:
                raise ValueError("the scores of a sentence are too large for probabilities; decode='tree' needs none")
        for i in range(begin, f.size):
            self.append(&f.pool[i].rule, 3)
        value[0] = f.out[cky_span(0, h.n)]
        return 0

    cdef int append(self, const int32_t* numbers, int64_t n) except -1 nogil:
        cdef void* block
        if self.n_rows + n > self.room_rows:
            block = realloc(self.rows, 2 * (self.n_rows + n) * sizeof(int32_t))
            if block == NULL:
                with gil:
                    raise MemoryError("no memory for parses")
            self.rows, self.room_rows = <int32_t*>block, 2 * (self.n_rows + n)
        memcpy(self.rows + self.n_rows, numbers, n * sizeof(int32_t))
        self.n_rows += n
        return 0

    # ---- sums over all trees -----------------------------------------------------------------------

    cdef double log_sum(self, const int32_t* words, const uint32_t* keys, Py_ssize_t n,
                        const double* w) except? -1.0 nogil:
        """Fill chart and sums; returns the log of the sum of exp(score) over all trees, -inf if there is none."""
        cdef double found
        cdef int status
        self.prepare(words, keys, n, w)
        KERNELS.inside(&self.chart)
        status = cky_sums_prepare(&self.sums, &self.chart)
        if status < 0:
            self.failed(status, n, cky_bytes(&self.chart) + cky_sums_bytes(&self.chart))
        KERNELS.sums_inside(&self.chart, &self.sums, &found)
        return found

    def total(self, words, const double[::1] w):
        """The log of the sum of exp(score) over all trees, -inf where the grammar has none; see `parse`."""
        cdef const double* weights = self.weights(w)
        cdef Py_ssize_t n = self.check(words)
        cdef double found
        with nogil:
            found = self.log_sum(&self.words[0], self.key(), n, weights)
        return found

    def expect(self, words, const double[::1] w):
        """The log-sum over all trees and the expected features under p(tree) ~ exp(score).

        Parameters
        ----------
        words, w : as `parse` takes them

        Returns
        -------
        log_sum : float
            -inf where the grammar has no tree.
        psi : float64 array (n_features,)
        """
        cdef const double* weights = self.weights(w)
        cdef Py_ssize_t n = self.check(words)
        cdef double[::1] psi = np.zeros(self.n_features)
        cdef double found
        with nogil:
            found = self.log_sum(&self.words[0], self.key(), n, weights)
            if found > -INFINITY:
                KERNELS.sums_outside(&self.chart, &self.sums, found, &psi[0])
        return found, np.asarray(psi)

    def brackets(self, words, const double[::1] w, bint has_tags):
        """The expected number of nodes of each category over each span, under p(tree) ~ exp(score).

        Parameters
        ----------
        words, w : as `parse` takes them
        has_tags : bool
            Whether a node right above a word is a tag; tags are not counted.

        Returns
        -------
        float64 array (n, n + 1, n_categories)
            By begin and end; zeros where the grammar has no tree.
        """
        cdef const double* weights = self.weights(w)
        cdef Py_ssize_t n = self.check(words)
        cdef double[::1] psi = np.zeros(self.n_features)
        cdef double[:, :, ::1] spans = np.zeros((n, n + 1, self.grammar.n_categories))
        cdef double found
        try:
            self.sums.spans, self.sums.has_tags = &spans[0, 0, 0], has_tags
            with nogil:
                found = self.log_sum(&self.words[0], self.key(), n, weights)
                if found > -INFINITY:
                    KERNELS.sums_outside(&self.chart, &self.sums, found, &psi[0])
        finally:
            self.sums.spans = NULL
        return np.asarray(spans)

    # ---- the chart of the last sentence, for k-best search ---------------------------------------

    def fill(self, words, const double[::1] w):
        """Fill the chart of a sentence, for `roots`, `chains` and `rules`. `w` must outlive its use."""
        cdef const double* weights = self.weights(w)
        cdef Py_ssize_t n = self.check(words)
        with nogil:
            self.prepare(&self.words[0], self.key(), n, weights)
            KERNELS.inside(&self.chart)

    def cover(self, words, const double[::1] w):
        """The fewest constituents and terminals side by side that the sentence has, and of these the best.

        Returns
        -------
        list of (symbol, begin, end)
            Of the chart, which is filled as by `fill`.
        """
        cdef cky_chart* h = &self.chart
        cdef cky_grammar* g = &self.grammar
        cdef int64_t i, j, s, best, n = len(words)
        cdef double x, value
        cdef int64_t[::1] begin = np.empty(n + 1, dtype=np.int64), symbol = np.empty(n + 1, dtype=np.int64)
        cdef double[::1] count = np.zeros(n + 1), score = np.zeros(n + 1)
        self.fill(words, w)
        for j in range(1, n + 1):
            count[j] = INFINITY
            for i in range(j):
                best, value = -1, -INFINITY
                for s in range(h.m):
                    if h.symbol[s] >= g.n_nodes + g.n_terminals:
                        break       # intermediates are last
                    x = cky_value(h, i, s, j)
                    if x > value:
                        best, value = s, x
                if best < 0 or count[i] + 1.0 > count[j]:
                    continue
                if count[i] + 1.0 < count[j] or score[i] + value > score[j]:
                    count[j], score[j], begin[j], symbol[j] = count[i] + 1.0, score[i] + value, i, h.symbol[best]
            poll(h.m * j)
        found, j = [], n
        while j > 0:
            found.append((symbol[j], begin[j], j))
            j = begin[j]
        return found[::-1]

    def n_applications(self):
        """Rules times the places i < k < j where both of their children have values: the work of the chart."""
        cdef cky_chart* h = &self.chart
        cdef cky_ways way
        cdef int64_t i, j, s, before, total = 0
        with nogil:
            for i in range(h.n):
                for j in range(i + 2, h.n + 1):
                    before = total
                    for s in range(h.m):
                        cky_begin(&way, h, s, i, j)
                        while cky_next(&way, h):
                            total += 1
                    poll(h.m + 2 * (total - before))
        return total

    def roots(self):
        """The start symbols that may stand over the whole sentence, as a list of (symbol, what that alone is worth)."""
        cdef cky_chart* h = &self.chart
        return [(h.symbol[s], cky_start(h, s)) for s in range(h.n_nodes) if cky_may_start(h, s)]

    def chains(self, int32_t symbol, Py_ssize_t i, Py_ssize_t j):
        """Chains that may stand on top of words i .. j - 1 as `symbol`: a list of (score, chain), chain -1 for none."""
        cdef cky_chart* h = &self.chart
        cdef int64_t k, s = h.local[symbol]
        if s < 0:
            return []
        if s >= h.n_nodes:
            return [(cky_value(h, i, s, j), -1)]
        found = [(cky_base(h, i, j)[s], -1)]
        for k in range(cky_n_chains(h, i, j)):
            if h.chain_top[k] == s:
                found.append((cky_base(h, i, j)[h.chain_bottom[k]] + cky_chain(h, i, j, k), h.chain[k]))
        return [(score, chain) for score, chain in found if score > -INFINITY]

    def rules(self, int32_t symbol, Py_ssize_t i, Py_ssize_t j):
        """Rules that base `symbol` over words i .. j - 1 may begin with: a list of (score, rule, split).

        The node's own score is left out."""
        cdef cky_chart* h = &self.chart
        cdef cky_grammar* g = &self.grammar
        cdef cky_ways way
        cdef int64_t k, t = h.words[i]
        if g.n_nodes <= symbol < g.n_nodes + g.n_terminals:
            return [(0.0, -1, -1)]
        if j - i == 1:
            return [(cky_weight(h.w, g.lexical_feature[k]), k, -1)
                    for k in range(g.lexical_ptr[t], g.lexical_ptr[t + 1]) if g.lexical_node[k] == symbol]
        found = []
        if h.local[symbol] < 0:
            return found
        cky_begin(&way, h, h.local[symbol], i, j)
        while cky_next(&way, h):
            found.append((way.x, way.rule, way.split))
        return found


cdef class TreeProblem(Problem):
    """Trees bound to a weighted grammar.

    Parameters
    ----------
    oracle : CKYOracle
    words : int32 array of shape (n_words, 1 + n_columns)
        Terminals and codes of all sentences, see `Parser.parse`.
    offsets : int64 array of shape (n_samples + 1,)
        Where each sentence's words begin.
    nodes : int32 array of shape (n_nodes, 6)
        The derivations of the gold trees.
    node_offsets : int64 array of shape (n_samples + 1,)
    twins : uint8 array of shape (n_samples,), optional
        Whether the grammar has another tree with the counted nodes of the gold one. None: find out.
    known : KnownTrees, optional
        What is known of the trees. None: all. A tree without nodes has yet to be completed.

    Attributes
    ----------
    n_charts, n_fronts, n_edges : int
        Charts filled so far; how often the fronts had to be asked; combinations of rule and split in them.
    """

    cdef readonly object known
    cdef const int64_t[::1] mask_offsets    # where what is known of each tree begins; or empty
    cdef const int32_t[::1] masks
    cdef const uint8_t[::1] allowed
    cdef bint is_open                       # whether a tree has yet to be completed
    cdef readonly object oracle, words_array, nodes_array, node_offsets_array, offsets_array, twins_array
    cdef Parser parser
    cdef const int32_t[::1] words_all
    cdef const int32_t[::1] keys_all
    cdef const int64_t[::1] offsets, node_offsets
    cdef const int32_t[::1] nodes
    cdef uint8_t[::1] twins
    cdef Loss loss
    cdef readonly int64_t n_charts, n_fronts, n_edges
    cdef cky_fronts fronts
    # the example at work
    cdef int64_t g, n_c, n_p            # gold nodes; cells by c and p
    cdef double S0, low
    cdef bint is_linear                 # whether the objective is S - S0 + g + p - 2 c, so that one chart decides
    cdef double best_b, best_scale      # the constraint's terms of the best derivation so far
    cdef int32_t[::1] gold_ptr, gold_category, gold_node, base_front, entries
    cdef double[::1] b, scale           # by cell: the constraint's terms
    cdef int64_t size                   # size of the best derivation so far, 0: none
    cdef int32_t[::1] best
    cdef double[::1] sums               # (n_features) zero between calls, unless one was interrupted
    cdef bint in_sums
    cdef int32_t[::1] cut_words
    cdef double[::1] aligned
    cdef int32_t[::1] n_moments         # features that the trees of each sentence can have; -1: nobody has asked
    cdef int32_t[::1] support           # features of the sentence `at_hand`; -1: none
    cdef int32_t[::1] mark
    cdef int32_t stamp
    cdef Py_ssize_t at_hand

    def __init__(self, oracle, words, offsets, nodes, node_offsets, twins=None, known=None, *, rescaling="margin",
                 penalty="linear"):
        cdef Py_ssize_t n = len(offsets) - 1, longest, size, chain
        super().__init__(n, oracle.n_features, rescaling=rescaling, penalty=penalty)
        self.oracle = oracle
        self.parser = oracle.parser()
        self.words_array, self.offsets_array = words, offsets
        self.nodes_array, self.node_offsets_array = nodes, node_offsets
        self.offsets, self.node_offsets = offsets, node_offsets
        self.words_all, self.keys_all = self.parser.templates.sentences(words, offsets)
        self.nodes = np.ascontiguousarray(nodes, dtype=np.int32).ravel()
        longest = int(np.diff(offsets).max()) if n else 1
        self.parser.reserve(longest)
        self.loss = LOSSES[oracle.loss_name]
        self.known, self.is_open = known, bool((np.diff(node_offsets) == 0).any())
        self.mask_offsets = np.empty(0, dtype=np.int64) if known is None else known.offsets
        if known is not None:
            self.masks, self.allowed = known.masks, known.rows.ravel()
        # Perceptrons and hard margins look at no loss, only at whether a tree is the gold one.
        if self.rescaling == RESCALE_NONE or self.penalty == PENALTY_HARD:
            self.loss = ZERO_ONE
        chain = self.parser.longest_chain + 1
        size = cky_most_nodes(longest)
        self.gold_ptr = np.empty(longest * (longest + 1) // 2 + 1, dtype=np.int32)
        self.gold_node = np.empty(longest * (longest + 1) // 2, dtype=np.int32)
        self.gold_category = np.empty(size * chain, dtype=np.int32)
        self.base_front = np.empty(2 * self.parser.grammar.n_nodes + 2, dtype=np.int32)
        self.entries = np.empty(size + 2, dtype=np.int32)
        self.best = np.empty(NODE_WORDS * size, dtype=np.int32)
        self.b, self.scale = np.empty(1), np.empty(1)
        if not self.is_open:
            self.reserve(0, n)
        self.sums = np.zeros(self.n_features)
        most = self.parser.features.shape[0]
        self.aligned = np.empty(most + (most + 1) // 2)
        self.cut_words = np.asarray(self.aligned).view(np.int32)
        self.at_hand, self.stamp = -1, 0
        self.n_moments = np.full(n, -1, dtype=np.int32)
        self.mark, self.support = np.zeros(self.n_features, dtype=np.int32), np.empty(self.n_features, dtype=np.int32)
        self.twins = np.ones(n, dtype=np.uint8) if twins is None else np.array(twins, dtype=np.uint8)
        if twins is None and not self.is_open:
            self.find_twins(0, n)
        self.twins_array = np.asarray(self.twins)

    def __dealloc__(self):
        cky_fronts_free(&self.fronts)

    cdef find_twins(self, Py_ssize_t start, Py_ssize_t stop):
        """Set `twins` of some examples."""
        cdef Py_ssize_t i
        cdef uint8_t[::1] may_have
        if self.loss == ZERO_ONE:
            return
        weights = np.zeros(self.n_features)
        may_have = self.oracle.may_have_twins(self.words_array, self.offsets_array[start:stop + 1], self.nodes_array,
                                              self.node_offsets_array[start:stop + 1])
        for i in range(start, stop):
            self.twins[i] = may_have[i - start] and self.has_twin(i, weights)

    cdef reserve(self, Py_ssize_t start, Py_ssize_t stop):
        """Make room for the pairs of counts (c, p) of some examples; ValueError if they need too many bytes."""
        if self.loss == ZERO_ONE or start == stop:
            return
        grammar = self.oracle.grammar
        links = np.array([*(len(chain) - 1 for chain in grammar.chains), 0])     # the last is chain -1's
        bounds = self.node_offsets_array[start:stop + 1]
        nodes = self.nodes_array[bounds[0]:bounds[stop - start]]
        labels = (nodes[:, 0] < len(grammar.nodes)) + links[nodes[:, 3]]
        gold = np.add.reduceat(labels, bounds[:stop - start] - bounds[0])
        lengths = np.diff(self.offsets_array[start:stop + 1])
        cells = (gold + 1) * ((2 * lengths - 1) * (grammar.longest_chain + 1) + 1)
        if CKY_CELL_BYTES * cells.max() > self.parser.max_bytes:
            raise ValueError(
                f"tree {start + np.argmax(cells)}: the counts of its nodes need "
                f"{CKY_CELL_BYTES * cells.max():.3g} bytes, above the cap max_chart_bytes={self.parser.max_bytes}; "
                "raise it, or lower max_unary"
            )
        if cells.max() > self.b.shape[0]:
            self.b, self.scale = np.empty(cells.max()), np.empty(cells.max())

    cdef void look(self, Py_ssize_t i, const double* w) noexcept nogil:
        """Select the symbols of a sentence."""
        cky_look(&self.parser.chart, &self.words_all[self.offsets[i]], self.keys(i),
                 self.offsets[i + 1] - self.offsets[i], w)

    cdef const uint32_t* keys(self, Py_ssize_t i) noexcept nogil:
        """Keys that templates see in sentence i, which has one more position than words."""
        cdef cky_grammar* g = &self.parser.grammar
        cdef Py_ssize_t at = (self.offsets[i] + i) * g.n_keys
        return <const uint32_t*>&self.keys_all[at] if self.keys_all.shape[0] > 0 else NULL

    cdef int32_t list_features(self, int32_t* support) noexcept nogil:
        """List the features that trees of the current sentence can have; returns their number."""
        if self.stamp == INT32_MAX:
            self.mark[:] = 0
            self.stamp = 0
        self.stamp += 1
        return <int32_t>cky_support(&self.parser.chart, &self.mark[0], self.stamp, support)

    cdef int poll_list(self) except -1 nogil:
        """Count the work of a list."""
        cdef cky_chart* h = &self.parser.chart
        return poll(h.m + h.n_rules + h.n * h.n_nodes)

    # ---- completions ----------------------------------------------------------------------------

    @property
    def offers(self):
        return offers_of(self.is_open)

    cdef int set_mask(self, Py_ssize_t i) noexcept nogil:
        """Let the chart hold only what agrees with what is known of tree i."""
        self.parser.chart.mask = &self.masks[self.mask_offsets[i]]
        self.parser.chart.allowed = &self.allowed[0]
        return 0

    cdef int64_t fill_known(self, Py_ssize_t i, const double* w) except -2 nogil:
        """Fill the chart with what agrees with what is known of tree i; returns the best root, -1 if there is none."""
        cdef double best
        cdef cky_choice other
        self.parser.prepare(&self.words_all[self.offsets[i]], self.keys(i), self.offsets[i + 1] - self.offsets[i], w)
        self.set_mask(i)
        KERNELS.inside(&self.parser.chart)
        return cky_root(&self.parser.chart, &best, &other)

    cdef int c_complete(self, Py_ssize_t i, const void* w, Target* target) except -1 nogil:
        cdef int64_t root, size
        target.words = <const int32_t*>self.gold(i, &size)
        if not self.is_known(i):
            root = self.fill_known(i, <const double*>w)
            if root < 0:
                self.disagrees(i)
            size = cky_derive(&self.parser.chart, root, NULL, NULL, <cky_item*>&self.parser.stack[0],
                              <cky_node*>&self.parser.nodes[0])
            target.words = &self.parser.nodes[0]
        target.n_words = NODE_WORDS * size
        return 0

    cdef bint c_retarget(self, Py_ssize_t i, const Target* target, bint take) except -1 nogil:
        """All derivations of a sentence have as many nodes."""
        cdef int32_t* nodes = <int32_t*>&self.nodes[NODE_WORDS * self.node_offsets[i]]
        cdef bint differs = memcmp(nodes, target.words, target.n_words * sizeof(int32_t)) != 0
        if take:
            memcpy(nodes, target.words, target.n_words * sizeof(int32_t))
            with gil:
                self.reserve(i, i + 1)
                self.find_twins(i, i + 1)
        return differs

    cdef bint is_known(self, Py_ssize_t i) noexcept nogil:
        """Whether tree i is fully known."""
        return self.mask_offsets.shape[0] == 0 or self.mask_offsets[i] == self.mask_offsets[i + 1]

    cdef int disagrees(self, Py_ssize_t i) except -1 nogil:
        with gil:
            raise ValueError(f"tree {self.first + i}: no tree of the grammar agrees with what is known of it, or its "
                             "weights are not finite")

    cdef int unknown(self, Py_ssize_t i) except -1 nogil:
        with gil:
            raise ValueError(f"tree {self.first + i} is known in part: train with LatentSVM or with the log loss")

    def disagreeing(self):
        """The trees known in part with which no tree of the grammar agrees, as a list of indices."""
        cdef double[::1] w = np.zeros(self.n_features)
        return [i for i in range(self.n_samples) if not self.is_known(i) and self.fill_known(i, &w[0]) < 0]

    @property
    def targets(self):
        return NODE_WORDS * self.node_offsets_array, np.asarray(self.nodes)

    def with_targets(self, targets):
        bounds, nodes = targets
        return self.rebuilt(self.oracle, self.words_array, self.offsets_array,
                            np.asarray(nodes, dtype=np.int32).reshape(-1, NODE_WORDS),
                            np.asarray(bounds, dtype=np.int64) // NODE_WORDS, None, self.known)

    def whole_nodes(self):
        """The nodes of the trees that are fully known."""
        if self.known is None:
            return self.nodes_array
        return self.nodes_array[np.repeat(np.diff(self.known.offsets) == 0, np.diff(self.node_offsets_array))]

    @property
    def incomplete(self):
        """The same problem before it was completed: its log losses are those of what is known."""
        if self.known is None or self.is_open:
            return self
        sizes = np.where(np.diff(self.known.offsets) == 0, np.diff(self.node_offsets_array), 0)
        return self.rebuilt(self.oracle, self.words_array, self.offsets_array, self.whole_nodes(),
                            np.concatenate([[0], np.cumsum(sizes)]), None, self.known)

    # ---- bounds ---------------------------------------------------------------------------------

    cdef const cky_node* gold(self, Py_ssize_t i, int64_t* size) noexcept nogil:
        size[0] = self.node_offsets[i + 1] - self.node_offsets[i]
        return <const cky_node*>(&self.nodes[0] + NODE_WORDS * self.node_offsets[i]) if size[0] > 0 else NULL

    cdef int begin(self, Py_ssize_t i, const double* w) except -1 nogil:
        """Make chart, gold nodes and cells ready for example i."""
        cdef cky_grammar* g = &self.parser.grammar
        cdef cky_chart* h = &self.parser.chart
        cdef const int32_t* words = &self.words_all[self.offsets[i]]
        cdef Py_ssize_t n = self.offsets[i + 1] - self.offsets[i]
        cdef int64_t size, k, span, spans = n * (n + 1) // 2, c, p, link, node
        cdef const cky_node* gold = self.gold(i, &size)
        self.parser.prepare(words, self.keys(i), n, w)
        memset(&self.gold_ptr[0], 0, (spans + 1) * sizeof(int32_t))
        for span in range(spans):
            self.gold_node[span] = -1
        for k in range(size):
            span = <int64_t>gold[k].j * (gold[k].j - 1) // 2 + gold[k].i
            self.gold_node[span] = <int32_t>k
        # Only one node of a derivation stands over a span: its chain's labels, in that order, are the gold nodes.
        self.g = 0
        for span in range(spans):
            self.gold_ptr[span] = <int32_t>self.g
            k = self.gold_node[span]
            if k < 0:
                continue
            link = gold[k].chain
            node = gold[k].symbol
            while True:
                if node < g.n_nodes and g.counted[node]:
                    self.gold_category[self.g] = g.category[node]
                    self.g += 1
                if link < 0:
                    break
                node = g.chain_bottom[link] if g.chain_below[link] < 0 else g.chain_top[g.chain_below[link]]
                link = g.chain_below[link]
        self.gold_ptr[spans] = <int32_t>self.g
        h.gold_ptr, h.gold_category = &self.gold_ptr[0], &self.gold_category[0]
        self.S0 = self.parser.score(h.keys, gold, size, w)
        self.size = 0
        self.n_c = self.n_p = 1
        self.is_linear = (self.loss == HAMMING and self.rescaling == RESCALE_MARGIN and self.penalty == PENALTY_LINEAR
                          and not self.twins[i])
        if self.loss != ZERO_ONE and not self.is_linear:
            self.n_c = self.g + 1
            self.n_p = (2 * n - 1) * (self.parser.longest_chain + 1) + 1
        for c in range(self.n_c):
            for p in range(c, self.n_p):
                self.terms(c, p)
            poll(8 * self.n_p)
        return 0

    cdef void terms(self, int64_t c, int64_t p) noexcept nogil:
        """b and scale of a cell. A twin, another tree with the gold one's nodes, counts as if it had one more."""
        cdef int64_t cell = c * self.n_p + p
        cdef double nodes = p, loss = 1.0
        cdef Cut cut
        if self.rescaling == RESCALE_NONE:
            self.b[cell], self.scale[cell] = 0.0, 1.0
        else:
            if c == self.g and p == self.g:
                nodes += 1.0
            if self.loss == HAMMING:
                loss = self.g + nodes - 2.0 * c
            elif self.loss == F1:
                loss = 1.0 - 2.0 * c / (self.g + nodes)
            cut_terms(self.rescaling, self.penalty, loss, &cut)
            self.b[cell], self.scale[cell] = cut.b, cut.scale

    cdef double objective(self, int64_t cell, double S) noexcept nogil:
        return self.b[cell] + self.scale[cell] * (S - self.S0)

    cdef int64_t best_other(self, Py_ssize_t i, cky_node* d) except -1 nogil:
        """Fill the chart and write its best derivation but the gold one; returns its length, 0 if there is none."""
        cdef cky_chart* h = &self.parser.chart
        cdef cky_item* stack = <cky_item*>&self.parser.stack[0]
        cdef cky_choice cheapest
        cdef int64_t size, gold_size, root
        cdef const cky_node* gold = self.gold(i, &gold_size)
        cdef double best
        KERNELS.inside(&self.parser.chart)
        self.n_charts += 1
        root = cky_root(h, &best, &cheapest)
        if root < 0:
            return 0
        size = cky_derive(h, root, NULL, &cheapest, stack, d)
        if size != gold_size or memcmp(d, gold, size * sizeof(cky_node)) != 0:
            return size
        if cheapest.loss == INFINITY:
            return 0
        if cheapest.at < 0:
            return cky_derive(h, cheapest.chain, NULL, NULL, stack, d)
        return cky_derive(h, root, &cheapest, NULL, stack, d)

    cdef bint has_twin(self, Py_ssize_t i, const double[::1] zero) except -1:
        """Whether another tree of the grammar has just the gold tree's counted nodes: 2 c - p of g, its most."""
        cdef int64_t size, c = 0, p = 0
        cdef cky_node* d = <cky_node*>&self.parser.nodes[0]
        self.begin(i, &zero[0])
        self.parser.chart.a, self.parser.chart.mu = 2.0, -1.0
        size = self.best_other(i, d)
        cky_count(&self.parser.chart, d, size, &c, &p)
        return size > 0 and c == self.g and p == self.g

    cdef void take(self, const cky_node* d, int64_t size, double value, double b, double scale) noexcept nogil:
        if value > self.low:
            self.low = value
            self.size = size
            self.best_b, self.best_scale = b, scale
            memcpy(&self.best[0], d, size * sizeof(cky_node))

    cdef void slopes(self, int64_t c, int64_t p, double* a, double* mu) noexcept nogil:
        """df/dc and df/dp at a cell and S = S0 by differences, in units of df/dS."""
        cdef int64_t c0 = max(c - 1, 0), c1 = min(c + 1, self.n_c - 1)
        cdef int64_t p0 = max(p - 1, c), p1 = min(p + 1, self.n_p - 1)
        cdef int64_t cell = c * self.n_p + p
        a[0] = mu[0] = 0.0
        if c1 > c0 and c1 <= p:
            a[0] = (self.b[c1 * self.n_p + p] - self.b[c0 * self.n_p + p]) / (c1 - c0) / self.scale[cell]
        if p1 > p0:
            mu[0] = (self.b[c * self.n_p + p1] - self.b[c * self.n_p + p0]) / (p1 - p0) / self.scale[cell]

    cdef int search(self, Py_ssize_t i, const double* w) except -1 nogil:
        """The best derivation but the gold one, into `best`, with its objective in `low` (which it has to beat)."""
        cdef cky_chart* h = &self.parser.chart
        cdef cky_node* d = <cky_node*>&self.parser.nodes[0]
        cdef int64_t size, c = 0, p = 0, cell
        cdef double S, M, theta, loss
        self.begin(i, w)
        if self.is_linear:
            h.a, h.mu = -2.0, 1.0
            size = self.best_other(i, d)
            cky_count(h, d, size, &c, &p)
            loss = <double>(self.g + p - 2 * c)
            if size > 0:
                self.take(d, size, loss + self.parser.score(h.keys, d, size, w) - self.S0, loss, 1.0)
            return 0
        # Where half of the gold nodes are missed: about there it is that the most violated trees lie.
        self.slopes((self.n_c - 1) // 2, min(self.n_c, self.n_p) - 1, &h.a, &h.mu)
        size = self.best_other(i, d)
        if size == 0:
            return 0
        S = self.parser.score(h.keys, d, size, w)
        if self.n_p > 1:
            cky_count(h, d, size, &c, &p)
        M = S + h.a * c + h.mu * p
        cell = c * self.n_p + p
        self.take(d, size, self.objective(cell, S), self.b[cell], self.scale[cell])
        theta = self.threshold(i, M)
        return 0 if theta == INFINITY else self.ask_fronts(i, theta)

    cdef double threshold(self, Py_ssize_t i, double M) except? -1.0 nogil:
        """The least S + a c + mu p with which a tree can be better than the best so far; infinite if none can, M being
        the bound."""
        cdef double a = self.parser.chart.a, mu = self.parser.chart.mu, least = INFINITY, needed
        cdef double rounding = ROUNDING * (1.0 + abs(self.low) + abs(self.S0) + abs(M))
        cdef int64_t c, p, cell
        for c in range(self.n_c):
            for p in range(c, self.n_p):
                if c == self.g and p == self.g and not self.twins[i]:
                    continue
                cell = c * self.n_p + p
                if self.objective(cell, M - a * c - mu * p) > self.low + rounding:
                    needed = self.S0 + (self.low - self.b[cell]) / self.scale[cell] + a * c + mu * p
                    least = min(least, needed)
            poll(4 * self.n_p)
        return least - rounding

    cdef int check(self, int status) except -1 nogil:
        if status == CKY_STOPPED:
            return -1
        if status < 0:
            self.parser.failed(status, self.parser.chart.n, cky_bytes(&self.parser.chart)
                               + cky_fronts_bytes(&self.parser.chart, &self.fronts))
        return 0

    cdef int ask_fronts(self, Py_ssize_t example, double theta) except -1 nogil:
        cdef cky_chart* h = &self.parser.chart
        cdef cky_fronts* f = &self.fronts
        cdef cky_node* d = <cky_node*>&self.parser.nodes[0]
        cdef cky_entry* entry
        cdef int64_t s, i, j, q, at, size, root = -1
        cdef int32_t k, found = -1
        cdef double S, value, high = self.low
        f.theta = theta
        f.gold = self.gold(example, &size)
        f.gold_node = &self.gold_node[0]
        self.n_fronts += 1
        self.check(cky_fronts_prepare(f, h, self.n_c, self.n_p))
        cky_outside_root(h, f)
        for i in range(h.n):
            for j in range(h.n, i, -1):
                self.check(cky_outside(h, f, i, j))
        for q in range(f.n_visits - 1, -1, -1):
            self.check(cky_front(h, f, &self.base_front[0], q))
        self.n_edges += f.n_kept
        for s in range(h.n_nodes):
            if not cky_may_start(h, s):
                continue
            at = 2 * cky_at(h, 0, s, h.n)
            for k in range(f.front[at], f.front[at + 1]):
                entry = f.pool + k
                if entry.is_gold:
                    continue
                S = entry.x + cky_start(h, s) - h.a * entry.c - h.mu * entry.p
                value = self.objective(entry.c * self.n_p + entry.p, S)
                if value > high:
                    high = value
                    root = s
                    found = k
        if found >= 0:
            size = cky_unfold(h, f, root, found, <cky_item*>&self.parser.stack[0], &self.entries[0], d)
            entry = f.pool + found
            at = entry.c * self.n_p + entry.p
            self.take(d, size, high, self.b[at], self.scale[at])
        return 0

    # ---- the contract ---------------------------------------------------------------------------

    cdef int c_separate(self, Py_ssize_t i, const void* weights, Cut* cut, double* violation) except -1 nogil:
        cdef const double* w = <const double*>weights
        cdef bint always = self.rescaling == RESCALE_NONE or self.penalty == PENALTY_HARD
        if self.node_offsets[i] == self.node_offsets[i + 1]:
            self.unknown(i)
        self.low = -INFINITY if always else 0.0
        self.search(i, w)
        cut.n_words = 0
        cut.words = &self.cut_words[0]
        cut.alpha = cut.drift = cut.b = violation[0] = 0.0
        cut.idle = 0
        cut.scale = 1.0
        if not isfinite(self.S0):
            violation[0] = self.S0 - self.S0    # NaN, which the caller reports
        if self.size == 0 or (self.rescaling == RESCALE_NONE and self.low < 0.0):
            self.size = 0
            return 0
        cut.b, cut.scale = self.best_b, self.best_scale
        self.write(i, cut)
        violation[0] = self.low
        return 0

    cdef void clear(self) noexcept nogil:
        """Make `sums` zero after an interrupted call."""
        if self.in_sums:
            memset(&self.sums[0], 0, self.n_features * sizeof(double))
            self.in_sums = False

    cdef void write(self, Py_ssize_t i, Cut* cut) noexcept nogil:
        """The words of Psi(x_i, y_i) - Psi(x_i, y) for the best derivation y."""
        cdef const uint32_t* keys = self.keys(i)
        cdef const cky_grammar* g = &self.parser.grammar
        cdef int64_t* features = &self.parser.features[0]
        cdef int64_t size, count, k, touched, kept = 0
        cdef const cky_node* gold = self.gold(i, &size)
        cdef double* values = &self.aligned[0]
        cdef int32_t* indices
        self.clear()
        count = cky_features(g, keys, gold, size, features)
        touched = cky_features(g, keys, <const cky_node*>&self.best[0], self.size, features + count) + count
        for k in range(touched):
            self.sums[features[k]] += 1.0 if k < count else -1.0
        qsort(features, touched, sizeof(int64_t), compare)
        for k in range(touched):
            if self.sums[features[k]] == 0.0:
                continue            # cancelled, or written already
            values[kept] = self.sums[features[k]]
            self.sums[features[k]] = 0.0
            features[kept] = features[k]
            kept += 1
        self.parser.add_numbers(gold, size, <const cky_node*>&self.best[0], self.size, 1.0, &self.sums[0])
        for k in range(g.number_rows, self.n_features):
            if self.sums[k] != 0.0:
                values[kept], features[kept] = self.sums[k], k
                self.sums[k] = 0.0
                kept += 1
        if kept == 0:       # another tree of the same rules: its constraint is there, with a zero feature
            values[0] = 0.0
            features[0] = 0
            kept = 1
        indices = &self.cut_words[0] + 2 * kept
        for k in range(kept):
            indices[k] = <int32_t>features[k]
        cut.n_words = 3 * kept

    # ---- expectations: moments are the expected features less the true ones, of those that can be there ----------

    cdef Py_ssize_t c_moments(self, Py_ssize_t i) noexcept nogil:
        if self.n_moments[i] < 0:
            self.look(i, &self.sums[0])
            self.n_moments[i] = self.list_features(NULL)
        return self.n_moments[i]

    cdef int c_expect(self, Py_ssize_t i, const void* weights, float* m, double* loss, double* entropy) except -1 nogil:
        cdef const double* w = <const double*>weights
        cdef const int32_t* words = &self.words_all[self.offsets[i]]
        cdef Py_ssize_t n = self.offsets[i + 1] - self.offsets[i]
        cdef int64_t size, count, k
        cdef const cky_node* gold = self.gold(i, &size)
        cdef double log_sum, S0, mean = 0.0
        cdef cky_chart* h = &self.parser.chart
        cdef cky_sums* f = &self.parser.sums
        log_sum = self.parser.log_sum(words, self.keys(i), n, w)
        if size == 0:
            self.set_mask(i)
            KERNELS.sums_inside(h, f, &S0)
            if S0 == -INFINITY:
                self.disagrees(i)
        else:
            S0 = self.parser.score(h.keys, gold, size, w)
        loss[0] = log_sum - S0 if isfinite(log_sum) and isfinite(S0) else NAN
        if loss[0] < 0.0:
            loss[0] = 0.0
        if m == NULL or loss[0] != loss[0]:
            return 0
        self.clear()
        self.in_sums = True
        self.n_moments[i] = self.list_features(&self.support[0])
        self.at_hand = i
        if size == 0:
            KERNELS.sums_outside(h, f, S0, &self.sums[0])
            for k in range(self.n_moments[i]):
                self.sums[self.support[k]] *= -1.0
            h.mask = NULL
            KERNELS.sums_inside(h, f, &log_sum)
        KERNELS.sums_outside(h, f, log_sum, &self.sums[0])
        if size > 0:
            count = cky_features(&self.parser.grammar, h.keys, gold, size, &self.parser.features[0])
            for k in range(count):
                self.sums[self.parser.features[k]] -= 1.0
            self.parser.add_numbers(gold, size, NULL, 0, -1.0, &self.sums[0])
        for k in range(self.n_moments[i]):
            mean += w[self.support[k]] * self.sums[self.support[k]]
            m[k] = <float>self.sums[self.support[k]]
            self.sums[self.support[k]] = 0.0
        self.in_sums = False
        entropy[0] = loss[0] - mean if size == 0 else max(loss[0] - mean, 0.0)
        return 0

    cdef double c_moments_dot(self, Py_ssize_t i, const float* m, const void* w) except? -1 nogil:
        cdef Py_ssize_t k
        cdef double total = 0.0
        for k in range(self.n_moments[i]):
            total += <double>m[k] * (<const double*>w)[self.support[k]]
        return total

    cdef double c_moments_square(self, Py_ssize_t i, const float* m) except? -1 nogil:
        cdef Py_ssize_t k
        cdef double total = 0.0
        for k in range(self.n_moments[i]):
            total += <double>m[k] * m[k]
        return total

    cdef int c_moments_add(self, Py_ssize_t i, const float* m, double coef, bint again, void* w) except -1 nogil:
        return self.c_moments_accumulate(i, m, coef, <double*>w)

    cdef int c_moments_accumulate(self, Py_ssize_t i, const float* m, double coef, double* w) except -1 nogil:
        cdef Py_ssize_t k
        if self.at_hand != i:
            self.look(i, w)
            self.poll_list()
            self.list_features(&self.support[0])
            self.at_hand = i
        for k in range(self.n_moments[i]):
            w[self.support[k]] += coef * m[k]
        return 0

    cdef double c_cost(self, Py_ssize_t i) noexcept nogil:
        cdef double n = <double>(self.offsets[i + 1] - self.offsets[i])
        return n * n * n

    def fingerprint(self):
        known = [] if self.known is None else [self.known.masks, self.known.rows]
        # Rules and categories in the order of the grammar alone: that of weights and charts is no part of the problem.
        arrays = self.parser.arrays
        pairs = arrays["rule_pair"]
        children = arrays["pair_left"][pairs], arrays["pair_right"][pairs]
        rules = np.column_stack([*children, arrays["rule_parent"], arrays["rule_feature"]])
        arrays = arrays | pair_tables(rules, np.zeros(len(rules)), len(arrays["left_ptr"]) - 1)
        number = np.argsort(np.lexsort((rules[:, 2], rules[:, 1], rules[:, 0])))
        nodes = np.array(self.whole_nodes())
        is_binary = nodes[:, 5] >= 0
        nodes[is_binary, 4] = number[nodes[is_binary, 4]]
        order = list(dict.fromkeys(np.asarray(self.parser.category).tolist()))
        category = np.argsort(np.array(order, dtype=np.int32))[self.parser.category].astype(np.int32)
        return checksum([np.array([<int>self.loss]), self.words_array, self.offsets_array, nodes,
                         category, *arrays.values(), *known, *self.parser.templates.arrays])

    def structure_fingerprint(self):
        return checksum([np.array([<int>LOSSES[self.oracle.loss_name]])])

    def examples(self, Py_ssize_t start, Py_ssize_t stop):
        cdef Py_ssize_t n = stop - start
        at = self.offsets_array[start:stop + 1]
        nodes = self.node_offsets_array[start:stop + 1]
        return (self.oracle, self.words_array[at[0]:at[n]], at - at[0], self.nodes_array[nodes[0]:nodes[n]],
                nodes - nodes[0], self.twins_array[start:stop],
                None if self.known is None else self.known.part(start, stop))

    def most_violated(self, Py_ssize_t i, w):
        """The derivation behind ``separate(i, w)``, as `Parser.parse` gives it."""
        cdef Cut cut
        cdef double violation
        cdef ndarray weights = self._check_weights(w)
        self.c_separate(i, array_data(weights), &cut, &violation)
        if self.size == 0:
            return self.nodes_array[self.node_offsets_array[i]:self.node_offsets_array[i + 1]]
        return np.asarray(self.best)[:NODE_WORDS * self.size].reshape(-1, NODE_WORDS).copy()
