"""Compiled inference oracles, one structure per module."""
