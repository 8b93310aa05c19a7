"""Part of the C contract: long loops without the GIL say how much they have done, hear when to stop, and share work."""

from structsvm._typedefs cimport int64_t

# Count `work`, in units of about a nanosecond; every few milliseconds of it, `look`. Call it before anything is
# half written, after some 50,000 units (`poll` itself takes three or four).
cdef int poll(int64_t work) except -1 nogil

# Raise KeyboardInterrupt if the thread's job was stopped, or, in a thread at work on no job, whatever a signal's
# handler raises. For loops whose steps are no matter of nanoseconds.
cdef int look() except -1 nogil

# Computes a part. `slot` is the number of the thread among those at work, from 0: scratch of its own. It counts its
# work by `poll`, and takes the GIL only where it must.
ctypedef int (*pool_body)(void* context, int slot, int64_t part) except -1 nogil

# The number of threads, of so many at most, that parts of so many nanoseconds of work in all are worth.
cdef int threads_for(int n_threads, int64_t n_parts, int64_t work) noexcept nogil

# Compute parts 0 .. n_parts - 1 by up to n_threads threads, one of them the caller's; all are done, or none is at work
# any more, when it returns or raises. What a part raises is raised here; the other threads stop at their next look.
cdef int each_part(pool_body body, void* context, int64_t n_parts, int n_threads) except -1
