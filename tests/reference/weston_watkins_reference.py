"""The machine of Weston and Watkins written out: its objectives, and independent solvers of what it optimises."""

import numpy as np
from scipy.optimize import linprog, minimize


def arcs(y, n_classes):
    """The dual variables: pairs of an example and a class that is not its own."""
    return [(i, k) for i in range(len(y)) for k in range(n_classes) if k != y[i]]


def primal(K, y, C, beta, b):
    """The objective of problem 1 for h_k = sum_i beta_ki phi(x_i); `beta` and the scores are (n_classes, n)."""
    F = beta @ K
    slacks = sum(C[i] * max(0.0, 1.0 - F[y[i], i] - b[y[i]] + F[k, i] + b[k]) for i, k in arcs(y, len(beta)))
    return 0.5 * np.sum(beta * F) + slacks


def dual(K, alpha, y, n_classes):
    """Minus J_d, with the matrix H of equation 3."""
    return alpha.sum() - 0.5 * alpha @ hessian(K, y, n_classes) @ alpha


def hessian(K, y, n_classes):
    pairs = arcs(y, n_classes)
    return np.array(
        [
            [(float(y[i] == y[j]) - float(y[i] == l) - float(y[j] == k) + float(k == l)) * K[i, j] for j, l in pairs]
            for i, k in pairs
        ]
    )


def divergence(y, n_classes):
    """The matrix of the equality constraints: what leaves each class."""
    return np.array([[float(y[i] == c) - float(k == c) for i, k in arcs(y, n_classes)] for c in range(n_classes)])


def solve_dual(K, y, C, n_classes):
    """The optimum of problem 2 by a general-purpose solver of smooth problems (SLSQP)."""
    H = hessian(K, y, n_classes)
    bounds = [(0.0, C[i]) for i, _ in arcs(y, n_classes)]
    A = divergence(y, n_classes)[:-1]
    scale = max(1.0, np.abs(np.diag(H)).max()) * max(C)
    found = minimize(
        lambda a: (0.5 * a @ H @ a - a.sum()) / scale,
        np.zeros(len(H)),
        method="SLSQP",
        jac=lambda a: (H @ a - 1.0) / scale,
        bounds=bounds,
        constraints={"type": "eq", "fun": lambda a: A @ a, "jac": lambda a: A},
        options={"maxiter": 2000, "ftol": 1e-15},
    )
    return -found.fun * scale


def solve_programme(F, y, C, supply):
    """The optimum of the linear programme over flows (HiGHS)."""
    g = [1.0 - F[y[i], i] + F[k, i] for i, k in arcs(y, len(F))]
    bounds = [(0.0, C[i]) for i, _ in arcs(y, len(F))]
    found = linprog(-np.array(g), A_eq=divergence(y, len(F)), b_eq=supply, bounds=bounds, method="highs")
    return -found.fun


def corner(slope, y, C, n_classes):
    """A solution of problem 3 (HiGHS): the point of the feasible set that is least along the gradient of J_d."""
    A = divergence(y, n_classes)
    return linprog(slope, A_eq=A, b_eq=np.zeros(n_classes), bounds=[(0.0, C)] * len(slope), method="highs").x


def potentials(F, y, C, supply, b):
    """The dual objective of that programme."""
    slacks = sum(C[i] * max(0.0, 1.0 - F[y[i], i] + F[k, i] - b[y[i]] + b[k]) for i, k in arcs(y, len(F)))
    return slacks + supply @ b
