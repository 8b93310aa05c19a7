"""Labellings of graphs: scores, inference by the method that each graph has, and the margin problem.

With K labels, node features x_v and edge features z_e, w is a matrix W (features of nodes, K) and a matrix V (features
of edges, pairs); a pair is what `GraphOracle.pair_index` makes of two labels. A graph's scores are

    unary(v, k) = <W[:, k], x_v>        theta(e, p) = <V[:, p], z_e>

and the loss is added to the unary ones. An output is a labelling, or with "relaxed" marginals of nodes and of edges.
A cut is a sparse vector as the base class has it: so those of fractional outputs are no others.
"""

from libc.math cimport INFINITY, fabs, isfinite
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.stdlib cimport qsort
from libc.string cimport memcmp, memcpy, memset

import numpy as np

from structsvm._problem cimport RESCALE_NONE, Cut, Memory, Problem, Target
from structsvm._arrays cimport array_data, ndarray
from structsvm.execution._stop cimport poll
from structsvm.structures._cuts cimport CUT_HALF, cut_solve, flow_graph

from structsvm.adapter import offers_of
from structsvm.arrays import checksum
from structsvm.features.dense import DenseRows
from structsvm.protocol import checked_weights
from structsvm.structures.graphs.elimination import JunctionTrees
from structsvm.structures.graphs.methods import Marginals, names_of, obey, weakest

cdef extern from "polytope.h" nogil:
    ctypedef struct graph_scores:
        int64_t n, n_edges, K, n_pairs, step
        const int32_t* edges
        const int32_t* pair
        const double* theta
        const double* unary
        int (*poll)(int64_t work) except -1 nogil
    double graph_value(const graph_scores* g, const int32_t* labels)
    double graph_pair(const graph_scores* g, int64_t e, int64_t a, int64_t b)
    ctypedef struct junction_tree:
        const int32_t* order
        const int64_t* bounds
        const int32_t* separators
        const int32_t* edges
        const int32_t* slots
        int64_t* offsets
        int32_t* child
        int32_t* sibling
        double* inner
        double* messages
        double* table
        double* pairs
        double* weights
        int32_t* back
    int junction_best(const graph_scores* g, junction_tree* t, int32_t* labels, double* value) except -1
    int junction_sums(const graph_scores* g, junction_tree* t, const double* features, int64_t n_features,
                      double* log_sum, double* nodes, double* counts) except -1
    void cut_potentials(const graph_scores* g, const int32_t* y, int32_t alpha, double* cost, double* couple)
    void cut_round(const flow_graph* f, int64_t n, const double* cost, uint8_t* x)
    int expansion_moves(const graph_scores* g, flow_graph* f, double* cost, double* couple, uint8_t* x,
                        int32_t* labels, int32_t* other, double* value) except -1
    ctypedef struct polytope:
        double* mu
        double* mu_old
        double* mu_sum
        double* m
        double* m_old
        double* m_sum
        double* lambda_ "lambda"
        double* lambda_sum
        double* sums
        double* rest
        double* tables
        int32_t* degree
        int32_t* first
        int32_t* incident
    int64_t polytope_steps(int64_t n, int64_t n_edges, int64_t K)
    int polytope_solve(const graph_scores* g, polytope* q, int32_t* labels, double tol, double* value,
                       double* bound) except -1

cdef enum Method:
    JUNCTION
    CUT
    RELAXED
    EXPANSION

METHODS = {"cut": CUT, "relaxed": RELAXED, "expansion": EXPANSION}

cdef double TOLERANCE = 1e-5    # gap of the relaxation of three labels and more, relative to the scale of its value

MAX_BYTES = 8 << 30             # tables of one graph


cdef int ascending(const void* a, const void* b) noexcept nogil:
    cdef int32_t x = (<const int32_t*>a)[0], y = (<const int32_t*>b)[0]
    return (x > y) - (x < y)


cdef class GraphDecoder:
    """Inference for a set of graphs.

    Parameters
    ----------
    oracle : GraphOracle
    graphs : Graphs
        As `GraphOracle.as_graphs` has checked them.
    plans : list, optional
        What `GraphOracle.plan` returned for them.
    """

    cdef readonly object oracle, graphs, plans
    cdef readonly list methods
    cdef const uint8_t[::1] has_rules
    cdef readonly list scratch              # arrays behind unary, theta, labels, and of relaxations q.mu and q.m
    cdef object standing                    # the labels that may stand, and whether others were forbidden
    cdef bint is_partial
    cdef Memory memory
    cdef Py_ssize_t n_graphs, K, F, Fe, P, first_edge_weight
    cdef const int64_t[::1] node_bounds, edge_bounds
    cdef const int32_t* edges
    cdef const double* edge_features
    cdef object kept                        # arrays behind pointers
    cdef const int64_t* indptr              # rows of nodes: CSR, or NULL and `width` numbers a row
    cdef const int32_t* indices
    cdef const double* entries
    cdef Py_ssize_t width
    cdef bint has_intercept
    cdef bint no_pairs                      # edges have no scores
    cdef int64_t edge_step
    cdef const int32_t[:, ::1] pair_index
    cdef int32_t[::1] method, plan_of
    cdef int64_t[::1] plan_nodes, plan_entries      # where the arrays of each plan begin
    cdef int32_t[::1] order, separators, tree_edges, slots
    cdef int64_t[::1] tree_bounds
    cdef int64_t message_size
    cdef graph_scores g
    cdef junction_tree t
    cdef flow_graph f
    cdef polytope q
    cdef double* unary
    cdef double* theta
    cdef int32_t* labels
    cdef int32_t* other
    cdef double* cost
    cdef double* couple
    cdef uint8_t* x
    cdef bint has_sums

    def __init__(self, oracle, graphs, plans=None):
        cdef Py_ssize_t i
        cdef Memory memory = Memory()
        self.memory = memory
        if plans is None:
            plans = oracle.plan(graphs)
        self.oracle, self.graphs, self.plans, self.methods = oracle, graphs, plans, names_of(plans)
        self.n_graphs, self.K, self.P = len(graphs), oracle.n_labels, oracle.n_pairs
        self.F, self.Fe, self.first_edge_weight = (
            oracle.n_node_features, oracle.n_edge_features, oracle.first_edge_weight)
        self.no_pairs = self.P == 0
        self.node_bounds, self.edge_bounds = graphs.node_bounds, graphs.edge_bounds
        self.pair_index = oracle.pair_index
        edges = np.ascontiguousarray(graphs.edges)
        features = np.ascontiguousarray(graphs.edge_features)
        self.edge_step = 0 if not len(features) or (features == features[0]).all() else self.P
        rows = graphs.nodes
        if isinstance(rows, DenseRows):
            values = np.ascontiguousarray(rows.values, dtype=np.float64)
            self.indptr, self.width, self.has_intercept = NULL, values.shape[1], rows.has_intercept
            self.kept = (edges, features, values)
        else:
            values = rows.values
            self.kept = (edges, features, rows.indptr, rows.indices, values)
            self.indptr = <const int64_t*>array_data(rows.indptr)
            self.indices = <const int32_t*>array_data(rows.indices)
        self.entries = <const double*>array_data(values)
        self.edges = <const int32_t*>array_data(edges)
        self.edge_features = <const double*>array_data(features)

        self.has_rules = graphs.has_rules

        n_nodes, n_edges = np.diff(graphs.node_bounds), np.diff(graphs.edge_bounds)
        cdef int64_t n = n_nodes.max(initial=0), E = 0 if self.no_pairs else n_edges.max(initial=0), K = self.K
        self.method = np.array([METHODS.get(plan, JUNCTION) if isinstance(plan, str) else JUNCTION for plan in plans],
                               dtype=np.int32)
        trees = JunctionTrees.of(plans)
        self.plan_of, self.plan_nodes, self.plan_entries = trees.of_graph, trees.nodes, trees.entries
        self.order, self.tree_bounds, self.separators = trees.order, trees.bounds, trees.separators
        self.tree_edges, self.slots = trees.edges, trees.slots

        self.unary = memory.float64s(n * K)
        self.theta = memory.float64s((E if self.edge_step else 1) * self.P)
        self.labels = memory.int32s(n)
        self.scratch = memory.arrays[:]
        self.other = memory.int32s(n)
        self.g.K, self.g.n_pairs, self.g.step = K, self.P, self.edge_step
        self.g.pair = &self.pair_index[0, 0]
        self.g.theta, self.g.unary, self.g.poll = self.theta, self.unary, poll
        # Tables of junction trees
        at, self.message_size, table = trees.sizes(K, MAX_BYTES)
        if len(trees.bounds):
            self.t.offsets = <int64_t*>memory.take(at + 1, np.int64)
            self.t.child, self.t.sibling = memory.int32s(at), memory.int32s(at)
            self.t.inner = memory.float64s(at * K)
            self.t.messages = memory.float64s(self.message_size)
            self.t.back = memory.int32s(self.message_size)
            self.t.table = memory.float64s(table)
            self.t.pairs = memory.float64s(K * K)
        # Flows and polytopes
        for i in range(self.n_graphs):
            if self.method[i] != JUNCTION:
                break
        else:
            return
        flows = np.asarray(self.method) != JUNCTION
        n, E = n_nodes[flows].max(), n_edges[flows].max()
        self.f.first, self.f.parent = memory.int32s(2 * n), memory.int32s(2 * n)
        self.f.stamp, self.f.distance = memory.int32s(2 * n), memory.int32s(2 * n)
        self.f.queue, self.f.orphans = memory.int32s(2 * n), memory.int32s(2 * n)
        self.f.terminal = memory.float64s(2 * n)
        self.f.tree, self.f.queued = memory.uint8s(2 * n), memory.uint8s(2 * n)
        self.f.orphaned = memory.uint8s(2 * n)
        self.f.next, self.f.head = memory.int32s(4 * E), memory.int32s(4 * E)
        self.f.residual = memory.float64s(4 * E)
        self.cost, self.couple = memory.float64s(n), memory.float64s(E)
        self.x = memory.uint8s(n)
        relaxed = np.asarray(self.method) == RELAXED
        if relaxed.any():
            n, E = n_nodes[relaxed].max(), n_edges[relaxed].max()
            if 8.0 * K * (n + 5.0 * E * K) > MAX_BYTES:
                raise ValueError(f"the relaxation of a graph of {E} edges takes more than {MAX_BYTES} bytes")
            if K > 2:
                self.q.lambda_ = memory.float64s(2 * E * K)
                self.q.sums = memory.float64s(n * K)
                self.q.rest = memory.float64s((4 + K) * K)
                self.q.tables = memory.float64s(2 * K * K * (E if self.edge_step else 1))
                self.q.degree = memory.int32s(n)
                self.q.first = memory.int32s(n + 1)
                self.q.incident = memory.int32s(2 * E)
                if graphs.rules is None:
                    relaxed &= [polytope_steps(a, b, K) > 0 for a, b in zip(n_nodes, n_edges)]
                n, E = n_nodes[relaxed].max(initial=0), n_edges[relaxed].max(initial=0)
                self.q.mu_old = memory.float64s(n * K)
                self.q.mu_sum = memory.float64s(n * K)
                self.q.m_old = memory.float64s(E * K * K)
                self.q.m_sum = memory.float64s(E * K * K)
                self.q.lambda_sum = memory.float64s(2 * E * K)
            self.q.mu, self.q.m = memory.float64s(n * K), memory.float64s(E * K * K)
            self.scratch += memory.arrays[-2:]

    def __reduce__(self):
        return GraphDecoder, (self.oracle, self.graphs, self.plans)

    def __len__(self):
        return self.n_graphs

    # ---- scores -----------------------------------------------------------------------------------------

    cdef int select(self, Py_ssize_t i) noexcept nogil:
        """Make graph i the current one."""
        cdef int64_t plan = self.plan_of[i]
        self.g.n = self.node_bounds[i + 1] - self.node_bounds[i]
        self.g.n_edges = 0 if self.no_pairs else self.edge_bounds[i + 1] - self.edge_bounds[i]
        self.g.edges = self.edges + 2 * self.edge_bounds[i]
        if plan >= 0:
            self.t.order = &self.order[self.plan_nodes[plan]]
            self.t.bounds = &self.tree_bounds[self.plan_nodes[plan] + plan]
            self.t.separators = &self.separators[self.plan_entries[plan]]
            self.t.edges = &self.tree_edges[self.plan_entries[plan]]
            self.t.slots = &self.slots[self.plan_entries[plan]]
        return 0

    cdef bint fill(self, Py_ssize_t i, const double* w) except -1 nogil:
        """The scores of graph i; whether all of them are finite."""
        cdef int64_t first, v, e, n
        cdef Py_ssize_t f, k, p, K = self.K
        cdef double x, finite = 0.0
        cdef double* u
        cdef const double* z
        cdef const double* row
        self.select(i)
        self.is_partial = False
        first = self.node_bounds[i]
        memset(self.unary, 0, self.g.n * K * sizeof(double))
        for v in range(self.g.n):
            u = self.unary + v * K
            if self.indptr == NULL:
                row = self.entries + (first + v) * self.width
                for f in range(self.width):
                    x = row[f]
                    for k in range(K):
                        u[k] += x * w[f * K + k]
                if self.has_intercept:
                    for k in range(K):
                        u[k] += w[self.width * K + k]
                n = self.width
            else:
                n = self.indptr[first + v + 1] - self.indptr[first + v]
                for e in range(self.indptr[first + v], self.indptr[first + v + 1]):
                    x, row = self.entries[e], w + self.indices[e] * K
                    for k in range(K):
                        u[k] += x * row[k]
            for k in range(K):
                finite += 0.0 * u[k]
            poll(8 + 2 * n * K)
        w += self.first_edge_weight
        for e in range(self.g.n_edges if self.edge_step else min(self.g.n_edges, 1)):
            z = self.edge_features + (self.edge_bounds[i] + e) * self.Fe
            u = self.theta + e * self.P
            for p in range(self.P):
                u[p] = 0.0
            for f in range(self.Fe):
                for p in range(self.P):
                    u[p] += z[f] * w[f * self.P + p]
            for p in range(self.P):
                finite += 0.0 * u[p]
            poll(4 + self.Fe * self.P)
        return isfinite(finite)

    cdef int forbid(self, Py_ssize_t i, const uint8_t* allowed) noexcept nogil:
        """Leave graph i only the labels that are allowed: others have scores that no labelling makes up for."""
        cdef int64_t v, e
        cdef Py_ssize_t p
        cdef double low = -INFINITY, total = 1.0
        self.is_partial = True
        if self.method[i] != JUNCTION:
            for v in range(self.g.n * self.K):
                total += fabs(self.unary[v])
            for e in range(self.g.n_edges):
                for p in range(self.P):
                    total += fabs(self.theta[e * self.edge_step + p])
            low = -4.0 * total
        for v in range(self.g.n * self.K):
            if not allowed[v]:
                self.unary[v] = low
        return 0

    # ---- inference --------------------------------------------------------------------------------------

    cdef void start(self) noexcept nogil:
        """The labels of the nodes alone."""
        cdef int64_t v
        cdef Py_ssize_t k
        cdef const double* u
        for v in range(self.g.n):
            u = self.unary + v * self.K
            self.labels[v] = 0
            for k in range(1, self.K):
                if u[k] > u[self.labels[v]]:
                    self.labels[v] = <int32_t>k

    cdef int best(self, Py_ssize_t i, bint whole, bint* fractional, double* excess) except -1 nogil:
        """Infer `labels` from the current scores; with a fractional relaxation q.mu and q.m, unless `whole`.

        `excess` is how far the true bound lies above the value of what is found: 0 but for relaxations.
        """
        if not self.has_rules[i] or self.g.n == 0:
            return self.infer(i, whole, fractional, excess)
        self.infer(i, False, fractional, excess)
        with gil:
            found = obey(self, i, whole, fractional[0] or excess[0] > 0.0, self.standing if self.is_partial else None)
            if found is not None:
                fractional[0], excess[0] = found, 0.0
        return 0

    cdef int infer(self, Py_ssize_t i, bint whole, bint* fractional, double* excess) except -1 nogil:
        """`best` without rules."""
        cdef int64_t v
        cdef double value = 0.0, bound = 0.0
        cdef bint half = False, is_point
        fractional[0] = False
        excess[0] = 0.0
        if self.g.n == 0:
            return 0
        if self.K == 1:
            memset(self.labels, 0, self.g.n * sizeof(int32_t))
            return 0
        if self.method[i] == JUNCTION:
            junction_best(&self.g, &self.t, self.labels, &value)
            return 0
        self.start()
        if self.method[i] == EXPANSION:
            expansion_moves(&self.g, &self.f, self.cost, self.couple, self.x, self.labels, self.other, &value)
            return 0
        if self.K == 2:
            cut_potentials(&self.g, NULL, 1, self.cost, self.couple)
            cut_solve(&self.f, self.g.n, self.g.edges, self.g.n_edges, self.cost, self.couple, self.x, poll)
            for v in range(self.g.n):
                half |= self.x[v] == CUT_HALF
            if half and self.method[i] == CUT:
                with gil:
                    raise ValueError(
                        f"graph {i}: weights of edges below 0 favour labels that differ, and method='cut' cannot have "
                        "that")
            if half and not whole:
                self.set_halves()
            else:
                cut_round(&self.f, self.g.n, self.cost, self.x)
            for v in range(self.g.n):
                self.labels[v] = self.x[v]
        else:
            is_point = polytope_solve(&self.g, &self.q, self.labels, TOLERANCE, &value, &bound)
            excess[0] = max(bound - value, 0.0)
            for v in range(self.g.n * self.K if is_point else 0):
                if self.q.mu[v] == 1.0:     # then all of this node's are 0 or 1
                    self.labels[v // self.K] = <int32_t>(v % self.K)
                elif self.q.mu[v] != 0.0:
                    half = True
        fractional[0] = half and not whole
        if whole and (half or excess[0] > 0.0):
            expansion_moves(&self.g, &self.f, self.cost, self.couple, self.x, self.labels, self.other, &value)
        return 0

    cdef void set_halves(self) noexcept nogil:
        """The half-integral optimum: pairs of two halves agree or differ as the coupling wants it."""
        cdef int64_t v, e
        cdef uint8_t a, b
        cdef double* m
        for v in range(self.g.n):
            self.q.mu[2 * v] = 0.5 if self.x[v] == CUT_HALF else 1.0 - self.x[v]
            self.q.mu[2 * v + 1] = 1.0 - self.q.mu[2 * v]
        for e in range(self.g.n_edges):
            a, b, m = self.x[self.g.edges[2 * e]], self.x[self.g.edges[2 * e + 1]], self.q.m + 4 * e
            if a == CUT_HALF and b == CUT_HALF:
                m[0] = m[3] = 0.5 if self.couple[e] >= 0.0 else 0.0
                m[1] = m[2] = 0.5 - m[0]
            else:
                for v in range(4):
                    m[v] = self.q.mu[2 * self.g.edges[2 * e] + v // 2] * self.q.mu[2 * self.g.edges[2 * e + 1] + v % 2]

    cdef int need_sums(self) except -1:
        """Make the tables that sums need beside those of maxima; ValueError for a graph without a junction tree."""
        if not self.has_sums:
            for i, plan in enumerate(self.plans):
                if isinstance(plan, str):
                    raise ValueError(f"graph {i} has no junction tree, as sums over its labellings need: it is for "
                                     f"method {plan!r}")
            self.t.weights = <double*>self.memory.take(self.message_size, np.float64)
            self.has_sums = True
        return 0

    # ---- in Python --------------------------------------------------------------------------------------

    def _weights(self, w):
        return checked_weights(w, self.oracle.n_features, np.float64)

    def _filled(self, Py_ssize_t i, ndarray w):
        if not self.fill(i, <const double*>array_data(w)):
            raise ValueError(f"graph {i}: the scores overflow, or w has values that are not finite")

    def decode(self, w, allowed=None):
        """The labels of the highest score: int32 array (n_nodes,).

        Those of relaxations and expansion moves need not be; fractional ones are rounded, and improved by moves.

        Parameters
        ----------
        w : array-like of shape (n_features,)
        allowed : bool array of shape (n_nodes, n_labels), optional
            The allowed labels; at least one at each node.
        """
        cdef Py_ssize_t i
        cdef ndarray weights = self._weights(w)
        cdef int32_t[::1] found = np.zeros(self.graphs.n_nodes + 1, dtype=np.int32)
        cdef const uint8_t[:, ::1] may
        cdef bint fractional
        cdef double excess
        if allowed is not None:
            allowed = np.ascontiguousarray(allowed)
            if allowed.shape != (self.graphs.n_nodes, self.K) or allowed.dtype != bool:
                raise ValueError(f"the allowed labels must be a boolean array of shape "
                                 f"{(self.graphs.n_nodes, self.K)}, got {allowed.dtype} {allowed.shape}")
            for node in np.flatnonzero(~allowed.any(axis=1))[:1]:
                raise ValueError("graph {}, node {}: no label may stand there".format(
                    *self.graphs.place_of_node(int(node))))
            self.standing, may = allowed, allowed.view(np.uint8)
        for i in range(self.n_graphs):
            self._filled(i, weights)
            if self.g.n == 0:
                continue
            if allowed is not None:
                self.forbid(i, &may[self.node_bounds[i], 0])
            with nogil:
                self.best(i, True, &fractional, &excess)
                memcpy(&found[self.node_bounds[i]], self.labels, self.g.n * sizeof(int32_t))
        return np.asarray(found)[:self.graphs.n_nodes]

    def at_hand(self):
        """The labels that were found last."""
        cdef ndarray found = np.zeros(self.g.n, dtype=np.int32)
        memcpy(array_data(found), self.labels, self.g.n * sizeof(int32_t))
        return found

    def marginals_at_hand(self):
        """The marginals of nodes and pairs that a relaxation found last."""
        cdef ndarray nodes = np.zeros((self.g.n, self.K)), pairs = np.zeros((self.g.n_edges, self.K, self.K))
        memcpy(array_data(nodes), self.q.mu, self.g.n * self.K * sizeof(double))
        memcpy(array_data(pairs), self.q.m, self.g.n_edges * self.K * self.K * sizeof(double))
        return nodes, pairs

    def relaxed(self, w):
        """``(marginals, bounds)``: what inference finds of each node's labels, fractional where a relaxation is.

        Returns
        -------
        marginals : float64 array of shape (n_nodes, n_labels)
        bounds : float64 array of shape (n_graphs,)
            No labelling of a graph has a higher score; NaN for "expansion".
        """
        cdef Py_ssize_t i
        cdef ndarray weights = self._weights(w)
        cdef bint fractional
        cdef double excess
        found, bounds = np.zeros((self.graphs.n_nodes, self.K)), np.zeros(self.n_graphs)
        for i in range(self.n_graphs):
            self._filled(i, weights)
            with nogil:
                self.best(i, False, &fractional, &excess)
            here = slice(self.node_bounds[i], self.node_bounds[i + 1])
            if fractional:
                found[here] = self.marginals_at_hand()[0]
                bounds[i] = self.value_at_hand() + excess
            else:
                labels = self.at_hand()
                found[here][np.arange(len(labels)), labels] = 1.0
                bounds[i] = graph_value(&self.g, self.labels) + excess
                if self.method[i] == EXPANSION:
                    bounds[i] = np.nan
        return found, bounds

    cdef double value_at_hand(self) noexcept nogil:
        cdef int64_t v, e, a, b
        cdef double total = 0.0
        for v in range(self.g.n * self.K):
            total += self.q.mu[v] * self.unary[v] if self.q.mu[v] > 0.0 else 0.0
        for e in range(self.g.n_edges):
            for a in range(self.K):
                for b in range(self.K):
                    total += self.q.m[(e * self.K + a) * self.K + b] * graph_pair(&self.g, e, a, b)
        return total

    def bounds(self, w):
        """Upper bounds of the scores of each graph's labellings: float64 array (n_graphs,); NaN for "expansion"."""
        return self.relaxed(w)[1]

    def scores(self, w):
        """The nodes' own scores: float64 array (n_nodes, n_labels)."""
        cdef Py_ssize_t i
        cdef ndarray weights = self._weights(w)
        cdef double[:, ::1] found = np.zeros((self.graphs.n_nodes + 1, self.K))
        for i in range(self.n_graphs):
            self._filled(i, weights)
            memcpy(&found[self.node_bounds[i], 0], self.unary, self.g.n * self.K * sizeof(double))
        return np.asarray(found)[:self.graphs.n_nodes]

    def values(self, labels, w):
        """The score of a labelling of each graph: float64 array (n_graphs,)."""
        cdef Py_ssize_t i
        cdef ndarray weights = self._weights(w)
        cdef const int32_t[::1] y = np.append(self.oracle.known(self.graphs, labels)[0], np.int32(0))
        found = np.zeros(self.n_graphs)
        if min(y) < 0:
            raise ValueError("labellings have scores where all labels are known")
        for i in range(self.n_graphs):
            self._filled(i, weights)
            found[i] = graph_value(&self.g, &y[self.node_bounds[i]])
        return found

    def marginals(self, w, double scale=1.0):
        """Probabilities of labels under the distribution proportional to exp(scale * score).

        Returns
        -------
        log_sums : float64 array of shape (n_graphs,)
            log sum exp(scale * score) over all labellings of each graph.
        marginals : float64 array of shape (n_nodes, n_labels)

        Raises
        ------
        ValueError
            For a graph without a junction tree that fits.
        """
        cdef Py_ssize_t i
        cdef double log_sum
        cdef ndarray weights = scale * self._weights(w)
        cdef double[:, ::1] found = np.zeros((self.graphs.n_nodes + 1, self.K))
        cdef double[::1] log_sums = np.zeros(self.n_graphs)
        if any(isinstance(plan, str) for plan in self.plans):
            plans = self.oracle.plan(self.graphs, "junction")
            return GraphDecoder(self.oracle, self.graphs, plans).marginals(w, scale)
        self.need_sums()
        for i in range(self.n_graphs):
            self._filled(i, weights)
            with nogil:
                junction_sums(&self.g, &self.t, NULL, 0, &log_sum, &found[self.node_bounds[i], 0], NULL)
            log_sums[i] = log_sum
        return np.asarray(log_sums), np.asarray(found)[:self.graphs.n_nodes]


cdef class GraphProblem(Problem):
    """Graphs with their labels.

    Parameters
    ----------
    oracle : GraphOracle
    graphs : Graphs
    labels : int32 array of shape (n_nodes,), or None
        -1: not known. None, with `allowed`: as if none were.
    allowed : bool array of shape (n_nodes, n_labels), optional
        What is known of labels. With it and labels, these are a completion, or have gaps.
    plans : list, optional
    """

    cdef readonly GraphDecoder decoder
    cdef readonly object oracle, graphs, labels, allowed
    cdef int32_t[::1] gold
    cdef const uint8_t[:, ::1] may          # or empty
    cdef bint has_sets
    cdef uint8_t[::1] is_open
    cdef double[::1] node_cost
    cdef double* vector                     # (n_features,), zeros between two uses
    cdef double* packed
    cdef int32_t* touched
    cdef int32_t* columns
    cdef uint8_t* is_touched
    cdef double* nodes                      # marginals of sums
    cdef bint is_dirty                      # Ctrl-C may have left sums in the vector

    def __init__(self, oracle, graphs, labels, allowed=None, plans=None, *, rescaling="margin", penalty="linear"):
        cdef GraphDecoder decoder = GraphDecoder(oracle, graphs, plans)
        cdef int64_t n, most
        super().__init__(len(graphs), oracle.n_features, rescaling=rescaling, penalty=penalty,
                         inference=weakest(decoder.methods), nonnegative=oracle.nonnegative)
        self.decoder, self.oracle, self.graphs, self.allowed = decoder, oracle, graphs, allowed
        n = graphs.n_nodes
        if labels is None:
            labels = np.full(n, -1, dtype=np.int32)
        if allowed is None and (labels < 0).any():
            allowed = np.ones((n, oracle.n_labels), dtype=bool)
            self.allowed = allowed
        self.labels = labels
        self.gold = np.append(labels, np.int32(0))
        self.has_sets = allowed is not None
        self.may = (np.zeros((1, 1)) if allowed is None else np.ascontiguousarray(allowed)).astype(np.uint8)
        unknown = np.concatenate([[0], np.cumsum(labels < 0)])[graphs.node_bounds]
        self.is_open = np.append(np.diff(unknown) > 0, False).view(np.uint8)
        decoder.standing = allowed
        costs = np.ones(oracle.n_labels) if oracle.label_costs is None else oracle.label_costs
        cost = costs[labels] if allowed is None else np.where(allowed, costs, np.inf).min(axis=1)
        if graphs.node_weights is not None:
            cost = cost * graphs.node_weights
        self.node_cost = np.append(cost, 0.0)
        most = decoder.F
        if decoder.indptr != NULL:
            most = min(most, int(np.diff(graphs.nodes.indptr[graphs.node_bounds]).max(initial=0)))
        self.vector = <double*>decoder.memory.take(self.n_features, np.float64)
        most = most * decoder.K + decoder.Fe * decoder.P + 1
        self.packed = <double*>decoder.memory.take((3 * most + 1) // 2, np.float64)
        self.columns = <int32_t*>decoder.memory.take(most, np.int32)
        self.touched = <int32_t*>decoder.memory.take(decoder.F, np.int32)
        self.is_touched = <uint8_t*>decoder.memory.take(decoder.F, np.uint8)
        self.nodes = NULL

    @property
    def methods(self):
        """The method used for each graph: "tree", "junction", "cut", "relaxed" or "expansion"."""
        return self.decoder.methods

    @property
    def offers(self):
        has_sums = self.graphs.rules is None and all(not isinstance(plan, str) for plan in self.decoder.plans)
        return offers_of(np.any(self.is_open), has_sums)

    def examples(self, Py_ssize_t start, Py_ssize_t stop):
        nodes = slice(self.graphs.node_bounds[start], self.graphs.node_bounds[stop])
        allowed = None if self.allowed is None else self.allowed[nodes]
        labels = np.asarray(self.gold)[nodes].copy()
        return self.oracle, self.graphs[start:stop], labels, allowed, self.decoder.plans[start:stop]

    def fingerprint(self):
        known = self.labels if self.allowed is None else self.allowed
        return checksum([*self.graphs.arrays, known, *self._about()])

    def structure_fingerprint(self):
        return checksum(self._about())

    def _about(self):
        costs = np.zeros(0) if self.oracle.label_costs is None else self.oracle.label_costs
        return [np.array([self.n_features, self.oracle.n_labels]), np.asarray(self.oracle.pair_index), costs]

    cdef double c_cost(self, Py_ssize_t i) noexcept nogil:
        cdef int64_t first = self.decoder.node_bounds[i], end = self.decoder.node_bounds[i + 1], n = end - first
        cdef int64_t entries = n * self.decoder.width
        if self.decoder.indptr != NULL:
            entries = self.decoder.indptr[end] - self.decoder.indptr[first]
        return entries + 16.0 * (n + self.decoder.edge_bounds[i + 1] - self.decoder.edge_bounds[i]) * self.decoder.K

    # ---- cuts -------------------------------------------------------------------------------------------

    cdef int unknown(self, Py_ssize_t i) except -1 nogil:
        with gil:
            raise ValueError(f"the labels of graph {self.first + i} are known in part: train with LatentSVM")

    cdef int add_losses(self, Py_ssize_t i) noexcept nogil:
        cdef int64_t v, first = self.decoder.node_bounds[i]
        cdef Py_ssize_t k, K = self.decoder.K
        cdef double* unary = self.decoder.unary
        for v in range(self.decoder.g.n):
            for k in range(K):
                if self.is_wrong(first + v, k):
                    unary[v * K + k] += self.node_cost[first + v]
        return 0

    cdef inline bint is_wrong(self, int64_t v, Py_ssize_t k) noexcept nogil:
        return not self.may[v, k] if self.has_sets else self.gold[v] != k

    cdef void add_node(self, int64_t v, Py_ssize_t k, double amount) noexcept nogil:
        """vector += amount of the features of node v of all with label k."""
        cdef int64_t e
        cdef Py_ssize_t f
        cdef const double* row
        if self.decoder.indptr == NULL:
            row = self.decoder.entries + v * self.decoder.width
            for f in range(self.decoder.width):
                self.vector[f * self.decoder.K + k] += amount * row[f]
            if self.decoder.has_intercept:
                self.vector[self.decoder.width * self.decoder.K + k] += amount
            return
        for e in range(self.decoder.indptr[v], self.decoder.indptr[v + 1]):
            self.vector[self.decoder.indices[e] * self.decoder.K + k] += amount * self.decoder.entries[e]
            self.is_touched[self.decoder.indices[e]] = 1

    cdef Py_ssize_t touch(self, Py_ssize_t i, int64_t* work) noexcept nogil:
        """The features that nodes of graph i may have added to, ascending."""
        cdef Py_ssize_t n = 0, f
        cdef int64_t e, first, end
        if self.decoder.indptr == NULL:
            for f in range(self.decoder.F):
                self.touched[f] = <int32_t>f
            return self.decoder.F
        first, end = self.decoder.node_bounds[i], self.decoder.node_bounds[i + 1]
        for e in range(self.decoder.indptr[first], self.decoder.indptr[end]):
            if self.is_touched[self.decoder.indices[e]]:
                self.is_touched[self.decoder.indices[e]] = 0
                self.touched[n] = self.decoder.indices[e]
                n += 1
        work[0] += 64 * n
        qsort(self.touched, n, sizeof(int32_t), ascending)
        return n

    cdef int pack(self, Py_ssize_t i, Cut* cut) except -1 nogil:
        """The vector as the words of a cut; leaves zeros."""
        cdef int64_t work = 0
        cdef Py_ssize_t n = self.touch(i, &work), at = 0, t, k, p
        cdef double* x
        for t in range(n):
            x = self.vector + <int64_t>self.touched[t] * self.decoder.K
            for k in range(self.decoder.K):
                if x[k] != 0.0:
                    self.packed[at] = x[k]
                    self.columns[at] = <int32_t>(self.touched[t] * self.decoder.K + k)
                    at += 1
                    x[k] = 0.0
        for p in range(self.decoder.first_edge_weight, self.n_features):
            if self.vector[p] != 0.0:
                self.packed[at] = self.vector[p]
                self.columns[at] = <int32_t>p
                at += 1
                self.vector[p] = 0.0
        if at == 0:         # no words would be the true output
            self.packed[0], self.columns[0], at = 0.0, 0, 1
        memcpy(self.packed + at, self.columns, at * sizeof(int32_t))
        cut.words, cut.n_words = <int32_t*>self.packed, 3 * at
        poll(work + 4 * (n * self.decoder.K + at))
        return 0

    cdef bint difference(self, Py_ssize_t i, bint fractional, double* loss) except -1 nogil:
        """vector += Psi of the true labelling less that of what was found; whether the two differ."""
        cdef int64_t v, e, first = self.decoder.node_bounds[i], a, b
        cdef Py_ssize_t k, other, K = self.decoder.K
        cdef const int32_t* gold = &self.gold[first]
        cdef const int32_t* y = self.decoder.labels
        cdef int32_t p, q
        cdef double amount
        cdef bint differs = False
        loss[0] = 0.0
        for v in range(self.decoder.g.n):
            if fractional:
                for k in range(K):
                    amount = self.decoder.q.mu[v * K + k]
                    if self.is_wrong(first + v, k):
                        loss[0] += amount * self.node_cost[first + v]
                    amount = (gold[v] == k) - amount
                    if amount != 0.0:
                        differs = True
                        self.add_node(first + v, k, amount)
            elif y[v] != gold[v]:
                differs = True
                if self.is_wrong(first + v, y[v]):
                    loss[0] += self.node_cost[first + v]
                self.add_node(first + v, gold[v], 1.0)
                self.add_node(first + v, y[v], -1.0)
        for e in range(self.decoder.g.n_edges):
            a, b = self.decoder.g.edges[2 * e], self.decoder.g.edges[2 * e + 1]
            p = self.decoder.g.pair[gold[a] * K + gold[b]]
            if fractional:
                self.add_edge(i, e, p, 1.0)
                for k in range(K):
                    for other in range(K):
                        self.add_edge(i, e, self.decoder.g.pair[k * K + other],
                                      -self.decoder.q.m[(e * K + k) * K + other])
                continue
            q = self.decoder.g.pair[y[a] * K + y[b]]
            if p != q:
                self.add_edge(i, e, p, 1.0)
                self.add_edge(i, e, q, -1.0)
        return differs

    cdef void clean(self) noexcept nogil:
        if self.is_dirty:
            memset(self.vector, 0, self.n_features * sizeof(double))
            memset(self.is_touched, 0, self.decoder.F * sizeof(uint8_t))
            self.is_dirty = False

    cdef inline void add_edge(self, Py_ssize_t i, int64_t e, int32_t pair, double amount) noexcept nogil:
        cdef const double* z = self.decoder.edge_features + (self.decoder.edge_bounds[i] + e) * self.decoder.Fe
        cdef double* v = self.vector + self.decoder.first_edge_weight
        cdef Py_ssize_t f
        if pair >= 0 and amount != 0.0:
            for f in range(self.decoder.Fe):
                v[f * self.decoder.P + pair] += amount * z[f]

    cdef int c_separate(self, Py_ssize_t i, const void* weights, Cut* cut, double* violation) except -1 nogil:
        cdef const double* w = <const double*>weights
        cdef bint fractional = False, differs
        cdef double loss = 0.0, excess = 0.0, margin = 0.0
        cdef Py_ssize_t c
        cdef int64_t m
        cut.alpha = cut.drift = cut.b = violation[0] = 0.0
        cut.idle = cut.n_words = 0
        cut.scale = 1.0
        cut.words = <int32_t*>self.packed
        if self.is_open[i]:
            self.unknown(i)
        if not self.decoder.fill(i, w):            # the solver says it
            violation[0] = INFINITY - INFINITY
            return 0
        if self.rescaling != RESCALE_NONE:
            self.add_losses(i)
        self.decoder.best(i, False, &fractional, &excess)
        self.clean()
        differs = self.difference(i, fractional, &loss)
        self.pack(i, cut)
        if not differs:
            cut.n_words = 0
            if self.rescaling != RESCALE_NONE:
                violation[0] = excess
            return 0
        m = cut.n_words // 3
        for c in range(m):
            margin += self.packed[c] * w[cut.words[2 * m + c]]
        if self.rescaling != RESCALE_NONE:
            cut.b = loss
            violation[0] = loss - margin + excess
            if not violation[0] > 0.0:
                cut.b = violation[0] = 0.0
                cut.n_words = 0
            return 0
        if margin > 0.0:
            cut.n_words = 0
            return 0
        cut.b, violation[0] = loss, loss - margin
        return 0

    def most_violated(self, Py_ssize_t i, w):
        """The labelling behind ``separate(i, w)``, or its `Marginals`."""
        cdef ndarray weights = self._check_weights(w)
        cdef bint fractional = False
        cdef double excess
        self._check_example(i)
        self.decoder._filled(i, weights)
        if self.rescaling != RESCALE_NONE:
            self.add_losses(i)
        self.decoder.best(i, False, &fractional, &excess)
        return Marginals(*self.decoder.marginals_at_hand()) if fractional else self.decoder.at_hand()

    cdef double c_inner(self, Py_ssize_t i, const Cut* a, const Cut* b) except? -1 nogil:
        """As the base class has it; of cuts with the same features without comparing them one by one."""
        cdef Py_ssize_t size = a.n_words // 3, e
        cdef const double* x = <const double*>a.words
        cdef const double* y = <const double*>b.words
        cdef double total = 0.0
        if a.n_words != b.n_words or memcmp(a.words + 2 * size, b.words + 2 * size, size * sizeof(int32_t)) != 0:
            return Problem.c_inner(self, i, a, b)
        for e in range(size):
            total += x[e] * y[e]
        return a.scale * b.scale * total

    # ---- completions ------------------------------------------------------------------------------------

    cdef int c_complete(self, Py_ssize_t i, const void* weights, Target* target) except -1 nogil:
        cdef int64_t first = self.decoder.node_bounds[i]
        cdef Py_ssize_t n = self.decoder.node_bounds[i + 1] - first
        cdef bint fractional = False
        cdef double excess = 0.0
        target.n_words, target.words = n, &self.gold[first]
        if not self.has_sets or n == 0:
            return 0
        if not self.decoder.fill(i, <const double*>weights):
            with gil:
                raise ValueError(f"graph {self.first + i}: the scores overflow, or w has values that are not finite")
        self.decoder.forbid(i, &self.may[first, 0])
        self.decoder.best(i, True, &fractional, &excess)
        target.words = self.decoder.labels
        return 0

    cdef bint c_retarget(self, Py_ssize_t i, const Target* target, bint take) except -1 nogil:
        cdef int32_t* gold = &self.gold[self.decoder.node_bounds[i]]
        cdef bint differs = memcmp(gold, target.words, target.n_words * sizeof(int32_t)) != 0
        if take:
            memcpy(gold, target.words, target.n_words * sizeof(int32_t))
        return differs

    @property
    def targets(self):
        return np.asarray(self.decoder.node_bounds), np.asarray(self.gold)[:self.graphs.n_nodes]

    def with_targets(self, targets):
        return self.rebuilt(self.oracle, self.graphs, targets[1].copy(), self.allowed, self.decoder.plans)

    @property
    def incomplete(self):
        """The same problem before it was completed: its log losses are those of what is known."""
        if self.allowed is None:
            return self
        known = np.asarray(self.allowed)
        labels = np.where(known.sum(axis=1) == 1, known.argmax(axis=1), -1).astype(np.int32)
        return self.rebuilt(self.oracle, self.graphs, labels, known, self.decoder.plans)

    # ---- expectations -----------------------------------------------------------------------------------

    cdef int need_sums(self) except -1 nogil:
        if self.nodes == NULL:
            with gil:
                self.decoder.need_sums()
                self.nodes = <double*>self.decoder.memory.take(
                    np.diff(self.graphs.node_bounds).max(initial=0) * self.decoder.K, np.float64)
        return 0

    cdef int add_sums(self, Py_ssize_t i, double sign, double* log_sum, double* mean, bint want) except -1 nogil:
        """vector += sign E[Psi] under the current scores, and the mean of the scores."""
        cdef int64_t v, k, first = self.decoder.node_bounds[i]
        cdef Py_ssize_t p, size = self.decoder.Fe * self.decoder.P
        cdef double* counts = self.packed
        cdef const double* features = self.decoder.edge_features + self.decoder.edge_bounds[i] * self.decoder.Fe
        mean[0] = 0.0
        memset(counts, 0, size * sizeof(double))
        junction_sums(&self.decoder.g, &self.decoder.t, features, self.decoder.Fe, log_sum,
                      self.nodes if want else NULL, counts)
        if not want:
            return 0
        for v in range(self.decoder.g.n):
            for k in range(self.decoder.K):
                if self.nodes[v * self.decoder.K + k] > 0.0:
                    mean[0] += self.nodes[v * self.decoder.K + k] * self.decoder.unary[v * self.decoder.K + k]
                    self.add_node(first + v, k, sign * self.nodes[v * self.decoder.K + k])
        for p in range(size):
            self.vector[self.decoder.first_edge_weight + p] += sign * counts[p]
        return 0

    cdef int c_expect(self, Py_ssize_t i, const void* weights, float* m, double* loss, double* entropy) except -1 nogil:
        cdef const double* w = <const double*>weights
        cdef int64_t first = self.decoder.node_bounds[i], v, e, a, b, work = 0
        cdef Py_ssize_t f, k, n, p
        cdef double log_sum = 0.0, mean = 0.0, known_sum = 0.0, known_mean = 0.0, edges = 0.0
        cdef bint fine
        self.need_sums()
        self.clean()
        fine = self.decoder.fill(i, w)
        entropy[0] = 0.0
        if not fine:
            loss[0] = INFINITY - INFINITY
            return 0
        self.is_dirty = True
        if not self.is_open[i]:
            known_sum = graph_value(&self.decoder.g, &self.gold[first])
        self.add_sums(i, 1.0, &log_sum, &mean, m != NULL)
        for p in range(self.decoder.first_edge_weight, self.n_features if m != NULL else 0):
            mean += w[p] * self.vector[p]
            edges += w[p] * self.vector[p]
        if self.is_open[i]:
            self.decoder.forbid(i, &self.may[first, 0])
            self.add_sums(i, -1.0, &known_sum, &known_mean, m != NULL)
            for p in range(self.decoder.first_edge_weight, self.n_features if m != NULL else 0):
                edges -= w[p] * self.vector[p]      # the remainder is the mean of what is known
            known_mean += edges
        elif m != NULL:
            for v in range(self.decoder.g.n):
                self.add_node(first + v, self.gold[first + v], -1.0)
            for e in range(self.decoder.g.n_edges):
                a, b = self.decoder.g.edges[2 * e], self.decoder.g.edges[2 * e + 1]
                self.add_edge(
                    i, e, self.decoder.g.pair[self.gold[first + a] * self.decoder.K + self.gold[first + b]], -1.0)
        loss[0] = max(log_sum - known_sum, 0.0)
        if m == NULL:
            self.is_dirty = False
            return 0
        entropy[0] = log_sum - mean - (known_sum - known_mean if self.is_open[i] else 0.0)
        memset(m, 0, self.n_features * sizeof(float))
        n = self.touch(i, &work)
        for f in range(n):
            for k in range(self.touched[f] * self.decoder.K, (self.touched[f] + 1) * self.decoder.K):
                m[k] = <float>self.vector[k]
                self.vector[k] = 0.0
        for p in range(self.decoder.first_edge_weight, self.n_features):
            m[p] = <float>self.vector[p]
            self.vector[p] = 0.0
        self.is_dirty = False
        poll(work + self.n_features)
        return 0

    def moments(self, Py_ssize_t i, w, bint known=False):
        """``(log_sum, expectation)`` of the joint feature of graph i, over all outputs or those that are known."""
        cdef ndarray weights = self._check_weights(w)
        cdef ndarray found = np.zeros(self.n_features)
        cdef double log_sum, mean
        cdef int64_t work = 0
        self._check_example(i)
        self.need_sums()
        self.decoder._filled(i, weights)
        if known and self.decoder.g.n:
            self.decoder.forbid(i, &self.may[self.decoder.node_bounds[i], 0])
        self.add_sums(i, 1.0, &log_sum, &mean, True)
        memcpy(array_data(found), self.vector, self.n_features * sizeof(double))
        memset(self.vector, 0, self.n_features * sizeof(double))
        self.touch(i, &work)
        return log_sum, found
