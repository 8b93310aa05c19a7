"""The regularisation path: its bound holds between the grid points, and the search finds C in one walk."""

from itertools import pairwise

import numpy as np
import pytest
from dual_reference import primal, solve_dual
from hypothesis import given, settings
from hypothesis import strategies as st
from python_oracles import Data
from sklearn.base import clone

from structsvm import CuttingPlane, LaRank, PathSearch, StructuredSVM
from structsvm.datasets import make_sequences
from structsvm.features.columns import Columns
from structsvm.solvers.path import gap_at, reach_of
from structsvm.tasks import SequenceLabeler


@given(st.integers(0, 10**6), st.sampled_from([0.01, 0.1, 1.0]), st.sampled_from([1e-1, 1e-3]), st.booleans())
@settings(max_examples=25)
def test_the_bound_holds_at_every_larger_C(seed, C, tol, average):
    data = Data(seed, n=6, n_inputs=6)
    constraints = data.oracle.constraints(data.X, data.Y, "margin")
    run = LaRank(C=C, tol=tol, average=average, random_state=0).solve(data.bind())
    result = run.result()
    assert gap_at(result, C, C) <= tol + 1e-9
    reach = reach_of(result, C, 0.2, 50.0)
    assert C <= reach <= 50.0
    for larger in (C, 1.3 * C, reach, 10 * C):
        above = primal(run.weights, constraints, np.full(6, larger), "linear")
        optimum = solve_dual(constraints, np.full(6, larger), "linear")
        assert (above - optimum) / above <= gap_at(result, C, larger) + 1e-7
    if reach < 50.0:
        assert gap_at(result, C, reach * 1.01) > 0.2


def sequences(n=120):
    X, y = make_sequences(n, random_state=0)
    return Columns.from_sequences(X), y


def test_a_walk_chooses_C():
    X, y = sequences()
    search = PathSearch(SequenceLabeler(random_state=0), C_min=1e-3, C_max=1.0, random_state=0).fit(X, y)
    C = [point.C for point in search.path_]
    assert C[0] == 1e-3
    assert all(a < b for a, b in pairwise(C))
    for point, later in pairwise(search.path_):
        assert point.result.relative_gap <= 0.05
        assert max(point.reach, point.C * 1.05) >= later.C
    assert search.path_[-1].reach == 1.0
    assert search.best_score_ == max(point.score for point in search.path_)
    assert search.best_C_ == search.best_estimator_.C
    assert search.predict(X) == search.best_estimator_.predict(X)
    assert search.score(X, y) == search.best_estimator_.score(X, y)
    # Passes over the data: what one training with the largest C takes, and little more.
    alone = SequenceLabeler(C=1.0, tol=0.05, random_state=0).fit(X, y)
    assert search.path_[-1].result.n_iter <= 3 * alone.n_iter_ + len(C)


def test_a_solver_object_and_no_refit():
    data = Data(0, n=30)
    model = StructuredSVM(data.oracle, CuttingPlane(random_state=0))
    search = PathSearch(clone(model), C_min=0.01, C_max=1.0, refit=False, random_state=0).fit(data.X, data.Y)
    assert search.best_C_ == search.best_estimator_.solver.C
    assert len(search.predict(data.X)) == 30


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"C_min": 0.0}, "The 'C_min' parameter of PathSearch must be a float in the range"),
        ({"C_min": 2.0, "C_max": 1.0}, "C_max=1.0 is less than C_min=2.0"),
        ({"tol": 1.0}, "The 'tol' parameter of PathSearch"),
        ({"validation_fraction": 1e-6}, "of 20 examples leaves a part empty"),
        ({"estimator": SequenceLabeler(solver=LaRank(penalty="quadratic"))}, "with a C and penalty='linear'"),
    ],
)
def test_what_cannot_be(options, message):
    X, y = sequences(20)
    with pytest.raises(ValueError, match=message):
        PathSearch(**{"estimator": SequenceLabeler(random_state=0)} | options).fit(X, y)
