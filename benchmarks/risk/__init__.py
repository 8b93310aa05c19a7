"""Benchmarks of promises."""
