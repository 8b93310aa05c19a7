"""The limited-memory quasi-Newton direction of a smooth function plus a multiple of the 1-norm (OWL-QN).

    F(w) = f(w) + l |w|_1

On one orthant the norm is linear: a step follows L-BFGS of f from the gradient of F there, the steepest one of all
orthants that w touches, and ends where it would leave the orthant, at exact zeros (Andrew and Gao 2007).
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from structsvm.arrays import Floats

# Pairs of steps and changes of the gradient that the direction is made of.
MEMORY = 10


def steepest(w: Floats, gradient: Floats, l1: float) -> Floats:
    """The least subgradient of F at w, from the gradient of f."""
    at_zero = np.sign(gradient) * np.maximum(np.abs(gradient) - l1, 0.0)
    return np.where(w == 0.0, at_zero, gradient + l1 * np.sign(w))


def within(w: Floats, orthant: Floats) -> Floats:
    """w, with zeros where its signs are not those of the orthant."""
    return np.where(w * orthant > 0.0, w, 0.0)


class Memory:
    """The last steps and changes of the gradient of f."""

    def __init__(self) -> None:
        self.pairs: deque[tuple[Floats, Floats, float]] = deque(maxlen=MEMORY)

    def add(self, step: Floats, change: Floats) -> None:
        """Add a pair, unless rounding leaves no curvature."""
        product = float(step @ change)
        if product > 1e-12 * float(np.linalg.norm(step) * np.linalg.norm(change)):
            self.pairs.append((step, change, product))

    def direction(self, slope: Floats) -> Floats:
        """The direction from the least subgradient, along which every coordinate descends (two loops, Nocedal 1980)."""
        found, shares = -slope, []
        for step, change, product in reversed(self.pairs):
            shares.append(float(step @ found) / product)
            found -= shares[-1] * change
        if self.pairs:
            _, change, product = self.pairs[-1]
            found *= product / float(change @ change)
        else:
            found /= max(float(np.linalg.norm(slope)), 1.0)
        for (step, change, product), share in zip(self.pairs, reversed(shares), strict=True):
            found += (share - float(change @ found) / product) * step
        return np.where(found * slope < 0.0, found, 0.0)
