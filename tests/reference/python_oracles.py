"""A multiclass oracle in plain Python, small enough to enumerate, that records how it is used."""

import itertools

import numpy as np
import scipy.sparse as sp
from dual_reference import constraint

import structsvm

FORMS = ["pair", "shuffled", "dense", "csr_matrix", "csr_array", "coo_array"]


class Multiclass(structsvm.Oracle):
    """Psi(x, y) puts x into block y; the loss is a matrix.

    `penalty` tells argmax which constraint it is asked for: the root of the loss for "quadratic", the best
    wrong class for None.
    """

    rescalings = ("margin", "slack")
    penalties = ("linear", "quadratic", None)

    def __init__(self, n_classes, n_inputs, *, costs=None, penalty="linear", form="pair"):
        self.n_classes, self.n_inputs, self.form = n_classes, n_inputs, form
        self.n_features = n_classes * n_inputs
        self.costs = 1.0 - np.eye(n_classes) if costs is None else costs
        self.penalty = penalty
        self.calls = []

    def dense(self, x, y):
        psi = np.zeros((self.n_classes, self.n_inputs))
        psi[y] = x
        return psi.ravel()

    def joint_feature(self, x, y):
        psi = self.dense(x, y)
        if self.form == "pair":
            return np.flatnonzero(psi), psi[psi != 0]
        if self.form == "shuffled":  # out of order, every entry in two halves, and a zero
            at = np.flatnonzero(psi)[::-1]
            return np.concatenate([at, at, [0]]), np.concatenate([psi[at] / 2, psi[at] / 2, [0.0]])
        if self.form == "dense":
            return psi
        if self.form == "coo_array" and sp.coo_array(np.ones(2)).ndim == 1:
            return sp.coo_array(psi)
        return getattr(sp, "csr_array" if self.form == "coo_array" else self.form)(psi[None, :])

    def loss(self, y_true, y):
        return float(self.costs[y_true, y])

    def value(self, x, w, y_true, rescaling, y):
        """H(y), what argmax maximises; 0 for the true class, which a hard margin leaves out."""
        if y == y_true:
            return -np.inf if self.penalty is None else 0.0
        b, psi = constraint(self.dense(x, y_true) - self.dense(x, y), self.costs[y_true, y], rescaling, self.penalty)
        return b - psi @ w

    def argmax(self, x, w, y_true=None, rescaling=None):
        self.calls.append(np.array(w))
        if y_true is None:
            return int(np.argmax(w.reshape(self.n_classes, self.n_inputs) @ x))
        values = [self.value(x, w, y_true, rescaling, y) for y in range(self.n_classes)]
        return int(np.argmax(values))

    def constraints(self, X, Y, rescaling):
        """All constraints of the data, (b, psi) by example."""
        return [
            [
                constraint(self.dense(x, y) - self.dense(x, z), self.costs[y, z], rescaling, self.penalty)
                for z in range(self.n_classes)
                if z != y
            ]
            for x, y in zip(X, Y, strict=True)
        ]


class Logistic(Multiclass):
    """With the fourth verb."""

    def expect(self, x, w):
        scores = w.reshape(self.n_classes, self.n_inputs) @ x
        p = np.exp(scores - scores.max())
        return scores.max() + np.log(p.sum()), np.outer(p / p.sum(), x).ravel()


class Triangle(structsvm.Oracle):
    """Three binary nodes, all joined: Psi(x, y) = (sum_k x_k y_k, y_0 y_1, y_0 y_2, y_1 y_2), the Hamming loss.

    An output is (nodes, edges). The relaxed ones are those of the local polytope, whose corners have nodes in
    {0, 1/2, 1} and edges at one of their bounds.
    """

    inference = "relaxed"
    edges = ((0, 1), (0, 2), (1, 2))

    def __init__(self, n_inputs, inference="relaxed"):
        self.n_inputs, self.inference = n_inputs, inference
        self.n_features = n_inputs + 3
        self.whole = [self.labelling(y) for y in itertools.product((0.0, 1.0), repeat=3)]
        self.corners = [
            (y, edges)
            for y in itertools.product((0.0, 0.5, 1.0), repeat=3)
            for edges in itertools.product(
                *(sorted({max(0.0, y[i] + y[j] - 1.0), min(y[i], y[j])}) for i, j in self.edges)
            )
        ]
        self.allow(self.corners if inference == "relaxed" else self.whole)

    def allow(self, outputs):
        """Let inference be over these."""
        self.outputs = outputs
        self.nodes, self.joined = (np.array(part) for part in zip(*outputs, strict=True))

    def labelling(self, y):
        return tuple(y), tuple(y[i] * y[j] for i, j in self.edges)

    def joint_feature(self, x, y):
        return np.concatenate([np.asarray(y[0]) @ x, y[1]])

    def loss(self, y_true, y):
        return float(np.abs(np.subtract(y_true[0], y[0])).sum() + np.abs(np.subtract(y_true[1], y[1])).sum())

    def argmax(self, x, w, y_true=None, rescaling=None):
        scores = self.nodes @ (x @ w[: self.n_inputs]) + self.joined @ w[self.n_inputs :]
        if y_true is not None:
            scores += np.abs(self.nodes - y_true[0]).sum(axis=1) + np.abs(self.joined - y_true[1]).sum(axis=1)
        return self.outputs[int(np.argmax(scores))]

    def constraints(self, X, Y, outputs):
        """All constraints of margin rescaling over these outputs, (b, psi) by example."""
        return [
            [(self.loss(y, z), self.joint_feature(x, y) - self.joint_feature(x, z)) for z in outputs if z != y]
            for x, y in zip(X, Y, strict=True)
        ]


class Data:
    """A small random problem."""

    def __init__(
        self, seed=0, n=7, n_classes=3, n_inputs=4, *, costs=True, penalty="linear", form="pair", separable=False
    ):
        rng = np.random.default_rng(seed)
        self.X = rng.normal(size=(n, n_inputs))
        self.Y = [int(y) for y in rng.integers(0, n_classes, n)]
        if separable:
            self.Y = [int(y) for y in np.argmax(self.X @ rng.normal(size=(n_inputs, n_classes)), axis=1)]
        matrix = rng.integers(1, 4, (n_classes, n_classes)).astype(float)
        np.fill_diagonal(matrix, 0.0)
        self.oracle = Multiclass(n_classes, n_inputs, costs=matrix if costs else None, penalty=penalty, form=form)

    def bind(self, rescaling="margin"):
        self.oracle.calls.clear()
        return self.oracle.bind(self.X, self.Y, rescaling=rescaling, penalty=self.oracle.penalty)

    def perceptron(self):
        self.oracle.calls.clear()
        return self.oracle.bind(self.X, self.Y, rescaling=None)


def alphas_of(state, n_samples, n_features):
    """The multipliers of a saved state, and their constraints (b, psi), by example."""
    alpha, cuts = [[] for _ in range(n_samples)], [[] for _ in range(n_samples)]
    for c, i in enumerate(state["cut_example"]):
        words = state["cut_words"][state["cut_bounds"][c] : state["cut_bounds"][c + 1]]
        n = len(words) // 3
        psi = np.zeros(n_features)
        psi[words[2 * n :]] = np.ascontiguousarray(words[: 2 * n]).view(np.float64)
        a, b, scale = state["cut_numbers"][c]
        alpha[i].append(a)
        cuts[i].append((b, scale * psi))
    return alpha, cuts
