"""Encoding of text and records as tokens of numbered features."""
