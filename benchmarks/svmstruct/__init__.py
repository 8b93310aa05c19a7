"""Batch solvers: one part per file, with the oracles that they are tried on."""
