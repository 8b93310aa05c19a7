"""What a run says of itself: its history, and the time that it took."""

import itertools
import time

import numpy as np
import pytest

from structsvm.kernel._kernels import Gram, Kernel, Rows
from structsvm.kernel.problem import KernelProblem
from structsvm.linear.problem import LinearProblem
from structsvm.oracles.viterbi import ViterbiOracle
from structsvm.progress import Monitor
from structsvm.result import History
from structsvm.solvers import SGDQN, CrammerSinger, CuttingPlane, FrankWolfe, KernelLaRank, LaRank, LaSVM
from structsvm.solvers.kernel import KernelSolver


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
