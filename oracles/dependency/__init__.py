"""Dependency trees: scores of single arcs, which the exact oracles share, and of pairs of arcs."""
