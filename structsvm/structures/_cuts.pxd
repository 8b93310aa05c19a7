# Minimum cuts of graphs of two labels, for the oracles of graphs and of label sets (oracles/simd/polytope.h).

from libc.stdint cimport int32_t, int64_t, uint8_t

cdef extern from "polytope.h" nogil:
    ctypedef struct flow_graph:
        int32_t* first
        int32_t* next
        int32_t* head
        double* residual
        double* terminal
        int32_t* parent
        int32_t* stamp
        int32_t* distance
        int32_t* queue
        int32_t* orphans
        uint8_t* tree
        uint8_t* queued
        uint8_t* orphaned
    int CUT_HALF
    int cut_solve(flow_graph* f, int64_t n, const int32_t* edges, int64_t n_edges, const double* cost,
                  const double* couple, uint8_t* x, int (*poll)(int64_t work) except -1 nogil) except -1
