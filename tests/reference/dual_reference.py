"""The structural SVM's objectives over all constraints written out, and independent solvers of them."""

import numpy as np
from scipy.optimize import minimize


def constraint(difference, loss, rescaling, penalty):
    """(b, psi) of an output with joint feature difference dPsi and loss > 0: the table of formulations."""
    if penalty is None:
        return 1.0, difference
    size = np.sqrt(loss) if penalty == "quadratic" else loss
    return size, difference * (size if rescaling == "slack" else 1.0)


def primal(w, constraints, C, penalty, base=None):
    """``constraints`` is one list of (b, psi) an example; C one number an example."""
    slacks = np.array([max([0.0] + [b - psi @ w for b, psi in of_one]) for of_one in constraints])
    distance = w - (0.0 if base is None else base)
    if penalty == "quadratic":
        return 0.5 * distance @ distance + 0.5 * np.sum(C * slacks**2)
    return 0.5 * distance @ distance + np.sum(C * slacks)


def dual(alpha, constraints, C, penalty, base=None):
    """``alpha`` is one list of multipliers an example."""
    linear = sum(
        a * b for of_a, of_c in zip(alpha, constraints, strict=True) for a, (b, _) in zip(of_a, of_c, strict=True)
    )
    w = sum(
        a * psi for of_a, of_c in zip(alpha, constraints, strict=True) for a, (_, psi) in zip(of_a, of_c, strict=True)
    )
    value = linear - 0.5 * np.sum(w * w) - (0.0 if base is None else np.sum(base * w))
    if penalty == "quadratic":
        value -= 0.5 * sum(sum(of_a) ** 2 / c for of_a, c in zip(alpha, C, strict=True) if c > 0)
    return value


def solve_dual(constraints, C, penalty, base=None):
    """The optimum of the dual by a general-purpose solver of smooth problems (SLSQP)."""
    owner = np.repeat(np.arange(len(constraints)), [len(of_one) for of_one in constraints])
    b = np.array([b for of_one in constraints for b, _ in of_one])
    Psi = np.array([psi for of_one in constraints for _, psi in of_one])
    H = Psi @ Psi.T
    if base is not None:
        b = b - Psi @ base
    member = (owner[None, :] == np.arange(len(constraints))[:, None]).astype(float)
    if penalty == "quadratic":
        H = H + member.T @ np.diag(1.0 / np.asarray(C)) @ member
    rules = [] if penalty != "linear" else [{"type": "ineq", "fun": lambda a: C - member @ a, "jac": lambda a: -member}]
    scale = max(1.0, np.abs(np.diag(H)).max())
    found = minimize(
        lambda a: (0.5 * a @ H @ a - b @ a) / scale,
        np.zeros(len(b)),
        method="SLSQP",
        jac=lambda a: (H @ a - b) / scale,
        bounds=[(0.0, None)] * len(b),
        constraints=rules,
        options={"maxiter": 2000, "ftol": 1e-16},
    )
    return -found.fun * scale


def solve_primal(constraints, C, penalty, *, nonnegative=(), base=None):
    """The optimum of the primal with slacks as variables (SLSQP), where some weights must be >= 0."""
    n, m = len(constraints[0][0][1]), len(constraints)
    rows = np.array([np.concatenate([psi, np.eye(m)[i]]) for i, of_one in enumerate(constraints) for _, psi in of_one])
    b = np.array([b for of_one in constraints for b, _ in of_one])
    centre = np.zeros(n) if base is None else base
    power = 2 if penalty == "quadratic" else 1
    found = minimize(
        lambda z: 0.5 * np.sum((z[:n] - centre) ** 2) + np.sum(C * z[n:] ** power) / power,
        np.concatenate([np.zeros(n), np.full(m, b.max())]),
        method="SLSQP",
        jac=lambda z: np.concatenate([z[:n] - centre, C * z[n:] ** (power - 1)]),
        bounds=[(0.0, None) if j in nonnegative else (None, None) for j in range(n)] + [(0.0, None)] * m,
        constraints=[{"type": "ineq", "fun": lambda z: rows @ z - b, "jac": lambda z: rows}],
        options={"maxiter": 1000, "ftol": 1e-14},
    )
    return found.fun


class PlainPerceptron:
    """Collins' perceptron with the average over all visits, on dense joint features."""

    def __init__(self, n_features):
        self.w = np.zeros(n_features)
        self.total = np.zeros(n_features)
        self.visits = 0

    def visit(self, true_feature, predicted_feature):
        self.w = self.w + (true_feature - predicted_feature)
        self.total = self.total + self.w
        self.visits += 1

    @property
    def average(self):
        return self.total / self.visits
