"""Simulated English: addresses, recipe lines, citations and product titles, which a reader understands."""
