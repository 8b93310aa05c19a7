"""The multiclass kernel machine's objectives written out, and an independent solver of its dual."""

import numpy as np
from scipy.optimize import minimize


def kernel_matrix(name, X, Z, gamma=1.0, degree=3, coef0=0.0):
    X, Z = np.asarray(X, dtype=np.float64), np.asarray(Z, dtype=np.float64)
    if name == "linear":
        return X @ Z.T
    if name == "poly":
        return (gamma * X @ Z.T + coef0) ** degree
    if name == "sigmoid":
        return np.tanh(gamma * X @ Z.T + coef0)
    return np.exp(-gamma * ((X[:, None, :] - Z[None, :, :]) ** 2).sum(axis=2))


class Machine:
    """max - sum Delta beta - 1/2 sum beta (K beta M), beta (n, k) with zero row sums and beta <= C delta."""

    def __init__(self, K, y, C, n_labels, loss=None, similarity=None):
        self.K, self.y, self.C, self.n, self.k = K, y, np.asarray(C, dtype=float), len(y), n_labels
        self.loss = 1.0 - np.eye(n_labels) if loss is None else loss
        self.M = np.eye(n_labels) if similarity is None else similarity

    def dense(self, coefficients):
        members, slots, labels, beta = coefficients[:4]
        B = np.zeros((self.n, self.k))
        B[members[slots], labels] = beta
        return B

    def scores(self, B):
        return self.K @ B @ self.M

    def gradient(self, B):
        return -self.loss[self.y] - self.scores(B)

    def dual(self, B):
        return -np.sum(self.loss[self.y] * B) - 0.5 * np.sum(B * self.scores(B))

    def primal(self, B):
        S = self.scores(B)
        slack = (self.loss[self.y] + S - S[np.arange(self.n), self.y][:, None]).max(axis=1)
        return 0.5 * np.sum(B * S) + float(self.C @ np.maximum(slack, 0.0))

    def feasible(self, B):
        bound = np.where(np.arange(self.k) == self.y[:, None], self.C[:, None], 0.0)
        return (bound * (1.0 + 1e-9) >= B).all() and np.abs(B.sum(axis=1)).max() <= 1e-10 * max(1.0, self.C.max())

    def optimum(self):
        """The largest dual value, by SLSQP over alpha = - beta of the wrong labels: alpha >= 0, row sums <= C."""
        wrong = [(i, z) for i in range(self.n) for z in range(self.k) if z != self.y[i] and self.C[i] > 0.0]
        owner = np.array([i for i, _ in wrong])
        lift = np.zeros((self.n * self.k, len(wrong)))
        for column, (i, z) in enumerate(wrong):
            lift[i * self.k + z, column] = -1.0
            lift[i * self.k + self.y[i], column] = 1.0
        H = lift.T @ np.kron(self.K, self.M) @ lift
        b = np.array([self.loss[self.y[i], z] for i, z in wrong])
        member = (owner[None, :] == np.arange(self.n)[:, None]).astype(float)
        scale = max(1.0, np.abs(np.diag(H)).max())
        found = minimize(
            lambda a: (0.5 * a @ H @ a - b @ a) / scale,
            np.zeros(len(b)),
            method="SLSQP",
            jac=lambda a: (H @ a - b) / scale,
            bounds=[(0.0, None)] * len(b),
            constraints=[{"type": "ineq", "fun": lambda a: self.C - member @ a, "jac": lambda a: -member}],
            options={"maxiter": 3000, "ftol": 1e-16},
        )
        # SLSQP keeps the constraints up to some tolerance only; the value is that of a feasible point.
        a = np.maximum(found.x, 0.0)
        a *= np.minimum(1.0, self.C / np.maximum(member @ a, 1e-300))[owner]
        return b @ a - 0.5 * a @ H @ a
