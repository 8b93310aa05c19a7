"""Solvers of kernel machines: of two classes, and of several."""
