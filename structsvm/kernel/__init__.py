"""The kernel dual and the machines on it: kernels, the cache of their rows, expansions and steps."""
