"""Compiled inference oracles, one structure a module."""
