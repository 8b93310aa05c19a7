from structsvm._typedefs cimport float32_t, int32_t


cdef enum NodeLoss:
    LOSS_ZERO_ONE
    LOSS_TREE       # height of the first common ancestor
    LOSS_PATH       # edges up to a common ancestor and down again


cdef class Lattice:
    cdef readonly object indptr         # (n + 1,) int32: the parents of node z are parents[indptr[z]:indptr[z + 1]]
    cdef readonly object parents        # int32, each less than the node it belongs to
    cdef readonly object height         # (n,) int32
    cdef const int32_t[::1] first
    cdef const int32_t[::1] above
    cdef const int32_t[::1] heights
    cdef int32_t[::1] queue             # scratch: a node and its ancestors
    cdef float32_t[::1] seeds           # infinite between two calls

    # out[z] = loss of node z where node `true` is right, for all n nodes. Uses scratch memory: one thread's object.
    cdef void fill(self, NodeLoss loss, Py_ssize_t true, float32_t* out) noexcept nogil
