"""Multiclass kernel machines: one part per file, with their data and a process per peer."""
