"""Trainings that are alike alone and on any cluster, for the tests of each engine."""

import numpy as np
import pytest

from structsvm import CuttingPlane, LaRank
from structsvm.oracles.viterbi import ViterbiOracle

SOLVERS = [
    pytest.param(CuttingPlane(C=0.1, tol=1e-2, random_state=0), id="n_slack"),
    pytest.param(CuttingPlane(C=0.01, form="one_slack", tol=5e-2, random_state=0), id="one_slack"),
    pytest.param(LaRank(C=0.1, tol=1e-2, random_state=0), id="larank"),
]


def problem(n=600):
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(t, 8)) for t in rng.integers(1, 10, n)]
    w = rng.normal(size=(8, 3))
    return ViterbiOracle(3, 8).bind(X, [np.argmax(x @ w + rng.normal(size=(len(x), 3)), axis=1) for x in X])


def same(run, other):
    np.testing.assert_array_equal(run.weights, other.weights)
    assert run.result().to_dict() | {"seconds": 0} == other.result().to_dict() | {"seconds": 0}
