"""Rows of the kernel matrix over the examples that take part: the members, which come and go."""

from structsvm._typedefs cimport int64_t
from structsvm.kernel._kernels cimport Gram


cdef class RowCache:
    cdef readonly Gram gram
    cdef readonly Py_ssize_t n_members
    cdef readonly int64_t n_asked   # rows of members asked for
    cdef readonly int64_t n_missed  # rows that were not there and have been computed
    cdef readonly int64_t n_blocks  # blocks of fresh examples
    cdef readonly int64_t n_alone   # fresh examples whose row was computed alone
    cdef int64_t[::1] member        # (n_members used) slot -> example
    cdef int64_t[::1] slot          # (n,) example -> slot, or -1
    cdef float[::1] diagonal        # (n_members used) slot -> k(x, x)

    cdef object memory
    cdef float* buffer              # n_places rows of `width` values: row p at buffer + p * width
    cdef Py_ssize_t size            # length of the buffer, in values
    cdef Py_ssize_t width
    cdef Py_ssize_t n_places
    cdef Py_ssize_t n_taken         # places that have been taken; the free ones among them are listed in `free`
    cdef int64_t[::1] place         # slot -> place of its row, or -1
    cdef int64_t[::1] holder        # place -> slot, or -1
    cdef int64_t[::1] used          # place -> when its row was last asked for
    cdef int64_t[::1] free
    cdef Py_ssize_t n_free
    cdef int64_t now

    cdef const int64_t* order       # in which examples are expected
    cdef Py_ssize_t n_order
    cdef Py_ssize_t at              # place in it of the example asked for
    cdef int64_t[65] fresh          # (n_fresh used) examples of the block; one more has a row of its own behind them
    cdef int64_t[64] fresh_at       # their places in the order
    cdef Py_ssize_t n_fresh
    cdef Py_ssize_t n_passed        # how many of them have been passed
    cdef float* ahead               # their values with the members, stride n_members at the time + n_fresh
    cdef float* within              # and with one another, stride n_fresh + 1
    cdef Py_ssize_t ahead_stride
    cdef Py_ssize_t ahead_size

    # The row of a member, k(member[slot], member[s]) for s < n_members; good until the next call of another method.
    cdef const float* row(self, Py_ssize_t slot) except NULL nogil
    # Have the rows of several members at hand: those that are not there, as far as they fit, from one product.
    cdef int fetch(self, const int64_t* slots, Py_ssize_t n) except -1 nogil
    # Examples will be asked for in this order; the array outlives the asking.
    cdef void expect(self, const int64_t* order, Py_ssize_t n) noexcept nogil
    # The place in the block of example i, which is no member. Those before it are not asked for any more, and the
    # place is good until the next example is asked for.
    cdef Py_ssize_t find_fresh(self, Py_ssize_t i) except -1 nogil
    cdef const float* fresh_row(self, Py_ssize_t b) noexcept nogil
    cdef double fresh_diagonal(self, Py_ssize_t b) noexcept nogil
    # The b-th of the block becomes a member, in a new slot, the last.
    cdef int enter(self, Py_ssize_t b) except -1 nogil
    # A member leaves; the one in the last slot moves into its slot.
    cdef int leave(self, Py_ssize_t slot) except -1 nogil

    cdef Py_ssize_t take_place(self) noexcept nogil
    cdef int take_block(self) except -1 nogil
    cdef int take_one(self, int64_t i) except -1 nogil
    cdef void hold(self, Py_ssize_t p, Py_ssize_t slot) noexcept nogil
    cdef void widen(self, Py_ssize_t width) noexcept nogil
