"""Benchmarks of dependency parsing."""
