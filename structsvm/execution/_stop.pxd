"""Part of the C contract: long loops without the GIL say how much they have done, and hear when to stop."""

from structsvm._typedefs cimport int64_t

# Count `work`, in units of about a nanosecond; every few milliseconds of it, `look`. Call it before anything is
# half written, after some 50,000 units (`poll` itself takes three or four).
cdef int poll(int64_t work) except -1 nogil

# Raise KeyboardInterrupt if the thread's job was stopped, or, in a thread at work on no job, whatever a signal's
# handler raises. For loops whose steps are no matter of nanoseconds.
cdef int look() except -1 nogil
