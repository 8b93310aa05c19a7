"""A run's account of itself: its history, and the time that it took."""

import itertools
import time

import numpy as np
import pytest

from structsvm.kernel._kernels import Gram, Kernel, Rows
from structsvm.kernel.problem import KernelProblem
from structsvm.linear.problem import LinearProblem
from structsvm.oracles.viterbi import ViterbiOracle
from structsvm.progress import Monitor
from structsvm.result import History, Result, relative_gap
from structsvm.solvers import SGDQN, CrammerSinger, CuttingPlane, FrankWolfe, KernelLaRank, LaRank, LaSVM
from structsvm.solvers.kernel.base import KernelSolver


@pytest.mark.parametrize("n", [10, History.MAX_ROWS, History.MAX_ROWS + 1, 5 * History.MAX_ROWS])
def test_a_long_history_is_thinned_between_its_ends(n):
    history = History()
    for k in range(n):
        history.add(n_iter=k, dual=-k)
    columns = history.arrays()
    passes = columns["n_iter"]
    assert passes[0] == 0 and passes[-1] == n - 1
    assert min(n, History.MAX_ROWS // 2) <= len(passes) <= History.MAX_ROWS
    assert (np.diff(passes) > 0).all()
    np.testing.assert_array_equal(columns["dual"], -passes)
    again = History.from_arrays(columns)
    again.add(n_iter=n)
    assert again.arrays()["n_iter"][0] == 0 and again.arrays()["n_iter"][-1] == n


rng = np.random.default_rng(0)
Y = np.arange(40, dtype=np.int32) % 2
X = rng.normal(size=(40, 5)) + np.eye(5)[Y]


def problem_of(solver):
    if isinstance(solver, SGDQN):
        return LinearProblem(Rows(X), Y, 2)
    if isinstance(solver, KernelSolver):
        return KernelProblem(Gram(Kernel("rbf", gamma=0.3), Rows(X)), Y, 2)
    return ViterbiOracle(2, 5).bind([X[i : i + 1] for i in range(40)], Y[:, None], **solver.formulation())


@pytest.mark.filterwarnings("ignore::structsvm.ConvergenceWarning")
@pytest.mark.parametrize(
    "solver",
    [
        LaRank(tol=1e-9, random_state=0),
        LaRank(random_state=0),
        CuttingPlane(tol=1e-9, random_state=0),
        FrankWolfe(tol=1e-9, random_state=0),
        KernelLaRank(tol=1e-9, random_state=0),
        CrammerSinger(tol=1e-9, random_state=0),
        LaSVM(tol=1e-9, random_state=0),
        SGDQN(random_state=0),
    ],
    ids=repr,
)
def test_certificates_take_time_too(solver, monkeypatch):
    """By a clock that ticks whenever it is read: each slice of a pass and each certificate takes one second."""
    run = solver.start(problem_of(solver))
    ticks, calls = itertools.count(), []

    def count(name, method):
        setattr(run, name, lambda *args: calls.append(name) or method(*args))

    count("advance", run.advance)
    count("certify", run.certify)
    monkeypatch.setattr(time, "perf_counter", lambda: float(next(ticks)))
    solver.solve(run.problem, run=run, passes=3)
    assert calls.count("certify") == (1 if solver.tol is None else 3)
    assert run.result().seconds == len(calls)


@pytest.mark.parametrize("solver", [LaRank(tol=1e-9, random_state=0), CrammerSinger(tol=1e-9)], ids=repr)
def test_an_interrupted_run_claims_no_gap(solver):
    """Even if Ctrl-C comes just after a certificate."""

    class Interrupt(Monitor):
        def end_pass(self, run):
            assert run.primal > run.dual
            raise KeyboardInterrupt

    result = solver.solve(problem_of(solver), monitor=Interrupt()).result()
    assert (result.status, result.n_iter) == ("interrupted", 1)
    assert np.isnan([result.primal, result.gap, result.history["primal"][-1]]).all()
    assert result.dual == result.history["dual"][-1] > 0.0


def test_no_primal_objective_is_stale():
    """A pass begins with none: that of the last one belongs to other weights."""
    begun, ended = [], []

    class Watch(Monitor):
        def begin_pass(self, run):
            begun.append(run.primal)

        def end_pass(self, run):
            ended.append(run.primal)
            return len(ended) == 3

    solver = LaRank(tol=1e-9, random_state=0)
    solver.solve(problem_of(solver), monitor=Watch())
    assert np.isnan(begun).all() and np.isfinite(ended).all() and len(begun) == 3


NAN = np.nan


@pytest.mark.parametrize(
    ("primal", "dual", "n_iter", "n_argmax", "text"),
    [
        (2.0, 1.5, 3, 70, "primal 2, dual 1.5, gap 0.5 (25 %); 3 passes (max_iter), 7 support vectors, 70 argmax"),
        (2.0, 1.5, 1, 0, "primal 2, dual 1.5, gap 0.5 (25 %); 1 pass (max_iter), 7 support vectors"),
        (np.inf, 1.5, 2, 9, "dual 1.5; no weights that keep every margin were found; 2 passes (max_iter), 7 support"),
        (NAN, 1.5, 2, 9, "dual 1.5, no duality gap claimed; 2 passes (max_iter), 7 support vectors, 9 argmax calls"),
        (NAN, NAN, 2, 9, "no duality gap claimed; 2 passes (max_iter), 9 argmax calls"),
    ],
)
def test_a_certificate_claims_what_is_known(primal, dual, n_iter, n_argmax, text):
    result = Result(primal, dual, primal - dual, n_iter, n_argmax, 7, 0.256, "max_iter")
    said = result.certificate()
    assert said.startswith(text) and said.endswith(", 0.26 s")
    again = Result.from_dict(result.to_dict(), {})
    np.testing.assert_equal(vars(again), vars(result))


@pytest.mark.parametrize(
    ("primal", "dual", "gap"),
    [(2.0, 1.5, 0.25), (0.0, 0.0, 0.0), (np.inf, 1.0, 1.0), (-2.0, -3.0, 0.5), (np.inf, np.inf, 0.0)],
)
def test_relative_gap(primal, dual, gap):
    assert relative_gap(primal, dual) == gap
    assert relative_gap(0.0, -1.0) > 1e300  # no division by 0
    assert np.isnan(relative_gap(NAN, 1.0)) and np.isnan(relative_gap(1.0, NAN))


@pytest.mark.parametrize("name", ["primal", "n_iter", "n_argmax", "n_support", "seconds", "status"])
def test_numbers_that_are_no_result(name):
    good = Result(2.0, 1.5, 0.5, 3, 70, 7, 0.25, "converged").to_dict()
    for value in ("much", True, [1]) + ((1.5, -1, None) if name.startswith("n_") else ()):
        with pytest.raises((TypeError, ValueError), match=name):
            Result.from_dict(good | {name: value}, {})
    with pytest.raises((KeyError, TypeError)):
        Result.from_dict({key: value for key, value in good.items() if key != "n_iter"}, {})
    with pytest.raises(ValueError, match="history of the training state must be float64 arrays of one length"):
        Result.from_dict(good, {"seconds": np.zeros(2)})
