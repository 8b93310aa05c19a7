"""Simulated English: addresses, recipe lines, citations, product titles and sentences, which a reader understands."""
