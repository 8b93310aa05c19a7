"""Solvers of linear machines: stochastic gradient descent, and tracking a stream."""
