"""Benchmarks of learning from what is only partly known."""
