"""Ambiguous supervision: one part per file."""
