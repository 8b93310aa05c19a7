"""Machines that threads train: bit for bit those of one thread."""

from functools import partial

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from structsvm.kernel._kernels import Rows
from structsvm.linear.machines import MachineSchedule, parts_of
from structsvm.linear.problem import LinearProblem
from structsvm.solvers import SGDQN
from structsvm.tasks import SGDQNClassifier


def data(kind, n_labels=31):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 520))
    if kind == "sparse":
        X = csr_matrix(np.where(rng.random(X.shape) < 0.97, X, 0.0))
    return X.astype(np.float32 if kind == "single" else np.float64), rng.integers(0, n_labels, 2000).astype(np.int32)


@pytest.fixture(scope="module", params=["single", "double", "sparse"])
def problem(request):
    X, y = data(request.param)
    return LinearProblem(Rows(X), y, 31)


def trained(problem, n_jobs, n_passes=2, **given):
    solver = SGDQN(alpha=1e-3, t0=1e5, random_state=0, n_jobs=n_jobs, **given)
    run = solver.start(problem)
    assert isinstance(run.schedule, MachineSchedule) == (n_jobs > 1)
    while run.n_iter < n_passes:
        run.advance(1.0)
    return run


def assert_same(a, b):
    for name, array in a.state.get_state().items():
        np.testing.assert_array_equal(b.state.get_state()[name], array, err_msg=name)
    np.testing.assert_array_equal(b.weights, a.weights)
    a.certify()
    b.certify()
    assert a.primal == b.primal


@pytest.mark.parametrize("given", [{}, {"average": True, "method": "svmsgd2"}], ids=str)
def test_weights_are_those_of_one_thread(problem, given):
    one = trained(problem, 1, **given)
    assert one.state.n_argmax == 31 * one.state.n_visits == 31 * 4000
    for n_jobs in (2, 3):
        many = trained(problem, n_jobs, **given)
        assert len(many.schedule.parts) == n_jobs
        assert_same(one, many)


def test_runs_over_some_examples(problem):
    solver = SGDQN(alpha=1e-3, t0=1e5, random_state=0)
    one, parted = (solver.start(problem).state for _ in range(2))
    order = np.arange(0, 2000, 7)
    one.run(order)
    for part in parts_of(parted, 3, 10**9, partial(solver._state, problem, np.ones(2000), 0, 1.0)):
        part.run(order)
    np.testing.assert_array_equal(parted.weights(), one.weights())
    assert np.isfinite(one.weights()).all() and one.weights().any()


def test_passes_in_slices(monkeypatch):
    X, y = data("single")
    problem = LinearProblem(Rows(X), y, 31)
    monkeypatch.setattr("structsvm.linear.machines.LEAST_SECONDS", 0.0)
    run, slices = SGDQN(alpha=1e-3, t0=1e5, random_state=0, n_jobs=2).start(problem), 0
    while run.n_iter < 2:
        assert 0 <= run.schedule.next <= run.schedule.n_samples == 2000
        run.advance(1e-6)
        slices += 1
    assert slices > 2
    assert_same(trained(problem, 1), run)


def test_where_threads_do_not_pay():
    X, y = data("double")
    few = Rows(X[:100])
    cases = [(few, y[:100], 31), (Rows(X), y % 2, 2)]
    for rows, labels, n_labels in cases:
        run = SGDQN(random_state=0, n_jobs=4).start(LinearProblem(rows, labels, n_labels))
        assert not isinstance(run.schedule, MachineSchedule)
    solver, three = SGDQN(random_state=0), LinearProblem(Rows(X), y % 3, 3)
    make = partial(solver._state, three, np.ones(2000), 0, 1.0)
    for n, sizes in ((8, [1, 1, 1]), (2, [1, 2])):
        assert [part.n_machines for part in parts_of(solver.start(three).state, n, 10**9, make)] == sizes


def test_a_checkpoint_goes_from_threads_to_one_and_back(tmp_path):
    X, y = data("double")
    problem = LinearProblem(Rows(X), y, 31)
    for first, second in ((1, 2), (2, 1)):
        path = tmp_path / str(first)
        how = {"alpha": 1e-3, "t0": 1e5, "random_state": 0, "checkpoint": path}
        SGDQN(max_iter=1, n_jobs=first, **how).solve(problem)
        run = SGDQN(max_iter=3, n_jobs=second, **how).solve(problem)
        assert_same(trained(problem, 1, 3), run)


def test_an_error_leaves_whole_counts():
    X, y = data("double")
    run = trained(LinearProblem(Rows(X), y, 31), 2, 1)

    class Stopped:
        n_samples, next = 2000, 0

        def start_pass(self, n_before):
            pass

        def run(self, seconds):
            raise KeyboardInterrupt

    run.schedule.schedules[1] = Stopped()
    with pytest.raises(KeyboardInterrupt):
        run.advance()
    assert all(part.n_argmax == 0 for part in run.schedule.parts)
    assert 31 * 2000 <= run.state.n_argmax <= 31 * 4000
    assert np.isfinite(run.weights).all()


def test_the_classifier_does_not_depend_on_them():
    X, y = data("single")
    one, two = (SGDQNClassifier(n_jobs=n, max_iter=2, random_state=0).fit(X, y) for n in (None, 2))
    np.testing.assert_array_equal(two.coef_, one.coef_)
    assert (two.t0_, two.result_.primal) == (one.t0_, one.result_.primal)
