"""The example of a new oracle learns what it says, and its certificate is true."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

import structsvm
from structsvm.testing import check_oracle

PATH = Path(__file__).parents[1] / "examples" / "new_oracle.py"


@pytest.fixture
def example(monkeypatch):
    spec = importlib.util.spec_from_file_location("example_new_oracle", PATH)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    return module


def test_new_oracle(example):
    rng = np.random.default_rng(1)
    X, Y = example.make_matchings(60, rng)
    oracle = example.MatchingOracle(8)
    check_oracle(oracle, X, Y, n_trials=40)
    solver = structsvm.LaRank(C=0.1, tol=0.01, random_state=0)
    model = structsvm.StructuredSVM(oracle=oracle, solver=solver).fit(X, Y)
    assert model.result_.status == "converged"
    assert 0.0 <= model.result_.relative_gap <= 0.01
    w = model.coef_
    assert np.abs(w[:3]).min() > np.abs(w[3:]).max()
    slack = 0.0
    for x, y in zip(X, Y, strict=True):
        z = oracle.argmax(x, w, y, "margin")
        slack += max(0.0, oracle.loss(y, z) - w @ (oracle.joint_feature(x, y) - oracle.joint_feature(x, z)))
    assert model.result_.primal == pytest.approx(0.5 * w @ w + 0.1 * slack)
    X_test, Y_test = example.make_matchings(100, rng)
    equal = [oracle.loss(y, oracle.argmax(x, np.ones(8))) for x, y in zip(X_test, Y_test, strict=True)]
    assert model.score(X_test, Y_test) > -np.mean(equal)
