"""Structured layers: the same scores to each program, in a process of its own per number of threads."""
