"""Kernel machines: multiclass, and the online machines of two classes."""
