"""The binary machine with a bias: its objectives written out, and an independent solver of its dual."""

import numpy as np
from scipy.optimize import minimize


class BinaryMachine:
    """max sum alpha y - 1/2 alpha K alpha, sum alpha = 0, 0 <= y alpha <= C; y is 1 or -1."""

    def __init__(self, K, y, C):
        self.K, self.y, self.C = K, np.asarray(y, dtype=float), np.asarray(C, dtype=float)

    def dense(self, coefficients):
        members, slots, _, alpha = coefficients[:4]
        out = np.zeros(len(self.y))
        out[members[slots]] = alpha
        return out

    def gradient(self, alpha):
        return self.y - self.K @ alpha

    def dual(self, alpha):
        return alpha @ self.y - 0.5 * alpha @ self.K @ alpha

    def primal(self, alpha, bias):
        score = self.K @ alpha
        return 0.5 * alpha @ score + self.C @ np.maximum(0.0, 1.0 - self.y * (score + bias))

    def feasible(self, alpha):
        scale = max(1.0, self.C.max())
        beta = self.y * alpha
        return abs(alpha.sum()) <= 1e-9 * scale and (beta >= 0.0).all() and (beta <= self.C).all()

    def violation(self, alpha):
        """The largest g_i - g_j of a pair that a step can move; -inf without one."""
        g = self.gradient(alpha)
        up = g[alpha < np.maximum(0.0, self.C * self.y)]
        down = g[alpha > np.minimum(0.0, self.C * self.y)]
        return up.max() - down.min() if len(up) and len(down) else -np.inf

    def optimum(self):
        """The largest dual value, by SLSQP over beta = y alpha."""
        Q, scale = self.K * np.outer(self.y, self.y), max(1.0, np.abs(np.diag(self.K)).max())
        found = minimize(
            lambda b: (0.5 * b @ Q @ b - b.sum()) / scale,
            np.zeros(len(self.y)),
            method="SLSQP",
            jac=lambda b: (Q @ b - 1.0) / scale,
            bounds=[(0.0, c) for c in self.C],
            constraints=[{"type": "eq", "fun": lambda b: self.y @ b, "jac": lambda b: self.y}],
            options={"maxiter": 3000, "ftol": 1e-16},
        )
        return self.dual(self.y * np.clip(found.x, 0.0, self.C))
