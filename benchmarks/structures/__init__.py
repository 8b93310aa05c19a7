"""Measurements of structures: losses of whole samples, rankings."""
