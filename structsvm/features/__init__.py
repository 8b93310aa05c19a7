"""Encoding of text and records as tokens of indexed features."""
