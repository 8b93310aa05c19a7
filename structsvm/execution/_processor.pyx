"""The instruction set of the kernels: the processor's best, or the one that ``STRUCTSVM_KERNELS`` names.

The variable is read once, when the first kernel is imported.
"""

import os

cdef extern from *:
    """
    /* The sets that the processor has, the first of which every processor has. */
    static int processor_sets(void) {
    #ifdef __x86_64__
        __builtin_cpu_init();
        if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return 1;
        return __builtin_cpu_supports("avx512f") ? 3 : 2;
    #else
        return 1;
    #endif
    }
    """
    int processor_sets()

VARIABLE = "STRUCTSVM_KERNELS"
SETS = ("baseline", "avx2", "avx512")


def available():
    """The instruction sets that the processor has, the best last."""
    return SETS[:processor_sets()]


cdef int chosen_set() except -1:
    wanted = os.environ.get(VARIABLE, "")
    if wanted == "":
        return processor_sets() - 1
    if wanted not in available():
        raise ImportError(f"{VARIABLE} must be one of {', '.join(available())}, which are what this processor has; "
                          f"got {wanted!r}")
    return SETS.index(wanted)

cdef int CHOSEN = chosen_set()


cdef int kernel_set() noexcept nogil:
    return CHOSEN


def instruction_set():
    """The instruction set that the kernels use: "baseline", "avx2" or "avx512".

    The best that the processor has, unless the environment variable ``STRUCTSVM_KERNELS`` names another one.

    Examples
    --------
    >>> from structsvm import instruction_set
    >>> instruction_set() in ("baseline", "avx2", "avx512")
    True
    """
    return SETS[CHOSEN]
