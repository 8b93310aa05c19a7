"""Chunks and segments with their probabilities: of those that are given, and of all that are likely."""
