"""The value types of the whole package, in one place.

Sums, multipliers and objectives are float64. Weights are float64 too, but a problem may keep its own
in float32 where its kernels are bound by memory traffic (the chains: half the traffic, no drift).
Feature indices are int32, counters and offsets signed 64-bit.
"""

from libc.stdint cimport int32_t, int64_t, uint64_t  # noqa: F401

ctypedef double float64_t
ctypedef float float32_t
