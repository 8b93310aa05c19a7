"""Losses between the nodes of a rooted DAG, for one true node and all others in one pass down the graph.

Nodes are numbered so that parents come before their children. With A(z) the ancestors of z, itself among them,
every loss but zero-one is a minimum over the common ancestors a of g and z, and A(z) is z with the A(p) of its
parents p. So from seeds s(a), infinite but on A(g),

    loss(z) = min(s(z), min_p loss(p) + step):

    tree    s(a) = height of a, step = 0        path    s(a) = edges from g up to a, step = 1.
"""

from libc.math cimport INFINITY

import numpy as np

from structsvm._typedefs cimport float32_t, int32_t

NODE_LOSSES = {"zero_one": LOSS_ZERO_ONE, "tree": LOSS_TREE, "path": LOSS_PATH}


cdef class Lattice:
    """A rooted DAG in arrays; see `structsvm.structures.taxonomy.Taxonomy`, which has checked them."""

    def __init__(self, indptr, parents, height):
        self.indptr = self.first = np.ascontiguousarray(indptr, dtype=np.int32)
        self.parents = self.above = np.ascontiguousarray(parents, dtype=np.int32)
        self.height = self.heights = np.ascontiguousarray(height, dtype=np.int32)
        n = len(self.height)
        self.queue = np.empty(n, dtype=np.int32)
        self.seeds = np.full(n, np.inf, dtype=np.float32)

    def __reduce__(self):
        return Lattice, (self.indptr, self.parents, self.height)

    def losses(self, loss, Py_ssize_t true):
        """Loss of every node where node `true` is right: float32 array (n_nodes,).

        Parameters
        ----------
        loss : {"zero_one", "tree", "path"}
        true : int
        """
        cdef Py_ssize_t n = self.heights.shape[0]
        cdef float32_t[::1] out = np.empty(n, dtype=np.float32)
        cdef NodeLoss kind = NODE_LOSSES[loss]
        if not 0 <= true < n:
            raise IndexError(f"node {true} is out of range for {n} nodes")
        self.fill(kind, true, &out[0])
        return np.asarray(out)

    cdef void fill(self, NodeLoss loss, Py_ssize_t true, float32_t* out) noexcept nogil:
        cdef Py_ssize_t n = self.heights.shape[0], z, e, head = 0, tail = 1
        cdef int32_t a, p
        cdef float32_t step = 1.0 if loss == LOSS_PATH else 0.0, best
        if loss == LOSS_ZERO_ONE:
            for z in range(n):
                out[z] = 1.0
            out[true] = 0.0
            return
        # Breadth first from g: the first way to an ancestor is a shortest one.
        self.queue[0] = <int32_t>true
        self.seeds[true] = 0.0
        while head < tail:
            a = self.queue[head]
            head += 1
            for e in range(self.first[a], self.first[a + 1]):
                p = self.above[e]
                if self.seeds[p] == INFINITY:
                    self.seeds[p] = self.seeds[a] + <float32_t>1.0
                    self.queue[tail] = p
                    tail += 1
        if loss == LOSS_TREE:
            for head in range(tail):
                self.seeds[self.queue[head]] = <float32_t>self.heights[self.queue[head]]
        for z in range(n):
            best = self.seeds[z]
            for e in range(self.first[z], self.first[z + 1]):
                best = min(best, out[self.above[e]] + step)
            out[z] = best
        out[true] = 0.0
        for head in range(tail):
            self.seeds[self.queue[head]] = INFINITY
