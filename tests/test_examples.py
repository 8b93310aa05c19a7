"""The examples run as they are, and show what they say."""

import importlib.util
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest

import structsvm
from structsvm.testing import check_oracle

EXAMPLES = Path(__file__).parent.parent / "examples"


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_it_runs(path, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr().out


@pytest.fixture
def new_oracle(monkeypatch):
    spec = importlib.util.spec_from_file_location("example_new_oracle", EXAMPLES / "new_oracle.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    return module


def test_new_oracle(new_oracle):
    """Learning the weights beats equal ones; the solver stops with a true certificate."""
    rng = np.random.default_rng(1)
    X, Y = new_oracle.make_matchings(60, rng)
    oracle = new_oracle.MatchingOracle(8)
    check_oracle(oracle, X, Y, n_trials=40)
    model = structsvm.StructuredSVM(oracle=oracle, solver=structsvm.LaRank(C=0.1, tol=0.01, random_state=0)).fit(X, Y)
    assert model.result_.status == "converged"
    assert 0.0 <= model.result_.relative_gap <= 0.01
    assert np.abs(model.coef_[:3]).min() > np.abs(model.coef_[3:]).max()
    slacks = [max(0.0, oracle.loss(y, z) - model.coef_ @ (oracle.joint_feature(x, y) - oracle.joint_feature(x, z)))
              for x, y in zip(X, Y, strict=True) for z in [oracle.argmax(x, model.coef_, y, "margin")]]
    assert model.result_.primal == pytest.approx(0.5 * model.coef_ @ model.coef_ + 0.1 * sum(slacks))
    X_test, Y_test = new_oracle.make_matchings(100, rng)
    equal = [oracle.loss(y, oracle.argmax(x, np.ones(8))) for x, y in zip(X_test, Y_test, strict=True)]
    assert model.score(X_test, Y_test) > -np.mean(equal)
