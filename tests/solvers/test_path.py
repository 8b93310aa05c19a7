"""The regularisation path: its bound holds between the grid points, and the search finds C in one walk."""

import pickle
from contextlib import suppress
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from dual_reference import primal, solve_dual
from hypothesis import given, settings
from hypothesis import strategies as st
from python_oracles import Data
from sklearn.base import clone

from structsvm import Checkpoint, CuttingPlane, LaRank, ModelFileError, PathSearch, StructuredSVM, checkpoint
from structsvm.datasets import make_sequences
from structsvm.features.columns import Columns
from structsvm.model_file import read_model, write_model
from structsvm.oracles.viterbi import ViterbiOracle
from structsvm.solvers.choosing import PathPoint
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


@pytest.mark.parametrize("dual_norm", [0.0, 0.2, 1.0, 4.0])
@pytest.mark.parametrize("larger", [2.0, 3.0, 40.0])
def test_the_bound_is_that_of_the_best_multiple_of_alpha(dual_norm, larger):
    result = SimpleNamespace(primal=10.0, primal_norm=1.5, dual=3.0, dual_norm=dual_norm)
    above = 1.5 + larger * (10.0 - 1.5) / 2.0
    s = np.linspace(0.0, larger / 2.0, 10001)
    below = max((s * (3.0 + dual_norm) - s * s * dual_norm).max(), 3.0)
    assert gap_at(result, 2.0, larger) == pytest.approx((above - below) / above, abs=1e-6)


def sequences(n=60):
    X, y = make_sequences(n, random_state=0)
    return Columns.from_sequences(X), y


def test_a_walk_chooses_C():
    X, y = sequences(30)
    search = PathSearch(SequenceLabeler(random_state=0), C_min=1e-3, C_max=0.03, random_state=0).fit(X, y)
    C = [point.C for point in search.path_]
    assert C[0] == 1e-3
    assert all(a < b for a, b in pairwise(C))
    for point, later in pairwise(search.path_):
        assert point.result.relative_gap <= 0.05
        assert max(point.reach, point.C * 1.05) >= later.C
    assert search.path_[-1].reach == 0.03 and all(point.reach < 0.03 for point in search.path_[:-1])
    assert search.best_score_ == max(point.score for point in search.path_)
    assert search.best_C_ == search.best_estimator_.C
    assert search.predict(X) == search.best_estimator_.predict(X)
    assert search.score(X, y) == search.best_estimator_.score(X, y)
    assert search.best_estimator_.temperature_ > 0.0  # probabilities, which the walk does without
    # Passes over the data: what one training with the largest C takes, and little more.
    alone = SequenceLabeler(C=0.03, tol=0.05, random_state=0).fit(X, y)
    assert search.path_[-1].result.n_iter <= 3 * alone.n_iter_ + len(C)


def test_a_path_ends_with_its_greatest_C():
    """A training that ended far from its optimum reaches no farther than its C, which rounding makes a little less."""
    search = of_chains(C_max=0.7)
    search.path_ = [PathPoint(0.7, np.nextafter(0.7, 0.0), 0.5, None)]
    assert not any(search._values())


def test_a_solver_object_and_no_refit():
    data = Data(0, n=30)
    model = StructuredSVM(data.oracle, CuttingPlane(random_state=0))
    search = PathSearch(clone(model), C_min=0.01, C_max=1.0, refit=False, random_state=0).fit(data.X, data.Y)
    assert search.best_C_ == search.best_estimator_.solver.C
    assert len(search.predict(data.X)) == 30


# ---- checkpoints ---------------------------------------------------------------------------------


def chains(n=40):
    rng = np.random.default_rng(0)
    labels = [rng.integers(0, 3, t) for t in rng.integers(1, 6, n)]
    return [rng.normal(size=(len(y), 5)) + np.eye(5)[y] for y in labels], labels


def of_chains(solver=None, **options):
    model = StructuredSVM(ViterbiOracle(3, 5), LaRank(random_state=0) if solver is None else solver)
    return PathSearch(model, **{"C_min": 1e-2, "C_max": 1.0, "random_state": 0} | options)


SEARCHES = [
    of_chains(),
    of_chains(CuttingPlane(random_state=0), tol=0.3, refit=False),
    of_chains(LaRank(random_state=0, max_iter=2), tol=1e-2),
]


class Killed(Exception):
    pass


def killed_after(monkeypatch, n):
    """Let the n-th file that is written be the last deed of a search."""
    written = []

    def write(*args):
        write_model(*args)
        written.append(args)
        if len(written) == n:
            raise Killed

    monkeypatch.setattr(checkpoint, "write_model", write)
    return written


@pytest.mark.filterwarnings("ignore::structsvm.ConvergenceWarning")
@pytest.mark.parametrize("search", SEARCHES)
def test_a_search_that_is_killed_after_each_pass(search, tmp_path, monkeypatch):
    X, y = chains()
    whole = clone(search).fit(X, y)
    kept = clone(search).set_params(checkpoint=tmp_path / "c")
    kills = 0
    while not hasattr(kept, "best_estimator_"):
        kept = clone(kept)
        killed_after(monkeypatch, 1)
        try:
            kept.fit(X, y)
        except Killed:
            kills += 1
    assert kills > len(whole.path_)
    again = clone(kept).fit(X, y)  # the file of a search that has ended
    for other in (kept, again):
        assert len(other.path_) == len(whole.path_)
        for mine, its in zip(other.path_, whole.path_, strict=True):
            assert mine[:3] == its[:3]
            assert mine.result.to_dict() | {"seconds": 0} == its.result.to_dict() | {"seconds": 0}
            assert mine.result.history["n_iter"][-1] == its.result.history["n_iter"][-1] == its.result.n_iter
        assert (other.best_C_, other.best_score_) == (whole.best_C_, whole.best_score_)
        np.testing.assert_array_equal(other.best_estimator_.coef_, whole.best_estimator_.coef_)
        assert other.best_estimator_.solver.checkpoint is None


def test_a_search_without_a_seed_keeps_its_parts(tmp_path, monkeypatch):
    X, y = chains()
    search = of_chains(LaRank(), random_state=None, checkpoint=tmp_path / "c")
    killed_after(monkeypatch, 2)
    with pytest.raises(Killed):
        search.fit(X, y)
    order = read_model(tmp_path / "c").arrays["order"]
    monkeypatch.undo()
    search.fit(X, y)
    np.testing.assert_array_equal(read_model(tmp_path / "c").arrays["order"], order)
    pickle.loads(pickle.dumps(search))


@pytest.mark.parametrize("after", [1, 3, 10**9])
def test_other_data_and_other_searches_are_refused(after, tmp_path, monkeypatch):
    X, y = chains()
    search = of_chains(checkpoint=tmp_path / "c")
    killed_after(monkeypatch, after)
    with suppress(Killed):
        search.fit(X, y)
    monkeypatch.undo()
    before = (tmp_path / "c").read_bytes()
    for others in (([-x for x in X], y), (X[:30], y[:30])):
        with pytest.raises(ModelFileError, match=r"of another problem|not a sound checkpoint: array 'order'"):
            clone(search).fit(*others)
    for params in ({"C_max": 2.0}, {"tol": 0.2}, {"validation_fraction": 0.3}, {"refit": False}, {"random_state": 1}):
        with pytest.raises(ModelFileError, match="of another search"):
            clone(search).set_params(**params).fit(X, y)
    with pytest.raises(ModelFileError, match="of another solver"):
        clone(search).set_params(estimator__solver__n_reprocess=3).fit(X, y)
    assert (tmp_path / "c").read_bytes() == before
    for damage in (before[: len(before) // 2], b""):
        (tmp_path / "c").write_bytes(damage)
        with pytest.raises(ModelFileError):
            clone(search).fit(X, y)


def test_how_often_it_is_written(tmp_path, monkeypatch):
    X, y = chains()
    counts = []
    for every in (1, 3):
        written = killed_after(monkeypatch, None)
        clone(SEARCHES[0]).set_params(checkpoint=Checkpoint(tmp_path / f"c{every}", every)).fit(X, y)
        passes = [meta["is_finished"] or int(arrays["state.run"][0]) for _, _, meta, arrays in written]
        assert all(n is True or n % every == 0 for n in passes)
        counts.append(len(passes))
    assert counts[1] < counts[0]


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


def test_a_search_with_a_checkpoint_is_pickled(tmp_path):
    """Its estimator was given the search's file, which knows the run."""
    X, y = sequences(20)
    search = PathSearch(SequenceLabeler(random_state=0), C_max=0.01, random_state=0, checkpoint=tmp_path / "c")
    search.fit(X, y)
    assert search.best_estimator_.checkpoint is None
    assert pickle.loads(pickle.dumps(search)).predict(X) == search.predict(X)
