"""Defaults: one part per file, with their data."""
