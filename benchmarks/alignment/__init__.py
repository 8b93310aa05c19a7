"""Learnt alignment costs: one part per file."""
