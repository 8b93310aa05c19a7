"""Compiled inference oracles, one structure per module."""

from structsvm import _distribution

_distribution.check()
