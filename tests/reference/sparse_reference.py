"""Small chains, the log loss and both norms by enumeration, and the least objective by an independent minimiser."""

import numpy as np
from chain_reference import ReferenceChain
from scipy.optimize import minimize

from structsvm.oracles.viterbi import ViterbiOracle
from structsvm.solvers import SparseLikelihood


def chain_data(seed=0, n=8, K=2, F=3, T=4, **options):
    rng = np.random.default_rng(seed)
    X = [rng.normal(size=(t, F)).astype(np.float32) for t in rng.integers(1, T + 1, n)]
    return ViterbiOracle(K, F, **options), X, [rng.integers(0, K, len(x)) for x in X]


def bound(data):
    oracle, X, Y = data
    return oracle.bind(X, Y, **SparseLikelihood().formulation())


def spaces_of(data):
    oracle, X, Y = data
    references = [ReferenceChain(x, oracle.n_labels, order=oracle.order, end=oracle.end) for x in X]
    return [
        np.array([r.joint_feature(z) for z in sorted(r.labellings(), key=lambda z: z != tuple(y))])
        for r, y in zip(references, Y, strict=True)
    ]


def objective(w, spaces, C, ratio):
    """The primal objective by enumeration, and the gradient of all but the 1-norm."""
    value, gradient = ratio * np.abs(w).sum() + 0.5 * (1.0 - ratio) * w @ w, (1.0 - ratio) * w
    for weight, psi in zip(C, spaces, strict=True):
        scores = psi @ w
        total = np.exp(scores - scores.max()).sum()
        value += weight * (scores.max() + np.log(total) - scores[0])
        gradient = gradient + weight * (np.exp(scores - scores.max()) / total @ psi - psi[0])
    return value, gradient


def optimum(n_features, spaces, C, ratio):
    """The least objective by scipy, on w = p - q with p, q >= 0."""

    def split(v):
        w = v[:n_features] - v[n_features:]
        value, gradient = objective(w, spaces, C, ratio)
        norm = ratio * (v.sum() - np.abs(w).sum())
        return value + norm, np.concatenate([gradient, -gradient]) + ratio

    bounds = [(0.0, None)] * (2 * n_features)
    options = {"ftol": 1e-15, "gtol": 1e-9, "maxiter": 10000, "maxfun": 100000}
    found = minimize(split, np.zeros(2 * n_features), jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    return found.fun
