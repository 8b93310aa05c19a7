"""Solvers of kernel machines between passes, and their refusals."""

import itertools
import re
import time
import tracemalloc
from types import SimpleNamespace

import numpy as np
import pytest

from structsvm import ConvergenceWarning
from structsvm.kernel._kernels import Gram, Kernel, Rows
from structsvm.kernel.problem import KernelProblem
from structsvm.solvers import CrammerSinger, Huller, KernelLaRank, KernelPerceptron, LaSVM, WestonWatkins
from structsvm.solvers.kernel.crammer_singer import SHARE
from structsvm.solvers.kernel.weston_watkins import STRIP, WestonWatkinsState


def problem(n_labels, n=60, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n, dtype=np.int32) % n_labels
    X = rng.normal(size=(n, 5)) + np.eye(5)[y]
    return KernelProblem(Gram(Kernel("rbf", gamma=0.3), Rows(X)), y, n_labels)


def test_crammer_singer_passes_over_a_share_of_the_largest_violation():
    run = CrammerSinger(C=2.0, random_state=0).start(problem(3))
    for _ in range(4):
        worst = run.state.worst()
        assert worst > 0.0
        run.start_pass()
        assert run.state.tau == SHARE * worst
        while not run.advance():
            pass


def test_the_huller_settles_before_each_pass_and_at_the_end(monkeypatch):
    """By a clock that ticks whenever it is read: each slice of a pass and each settling takes one second."""
    run, slices, settled = Huller(max_iter=4, random_state=0).start(problem(2)), [], []
    advance, settle, ticks = run.advance, run.settle, itertools.count()
    run.advance = lambda: slices.append(run.n_iter) or advance()
    run.settle = lambda: settled.append(run.n_iter) or settle()
    monkeypatch.setattr(time, "perf_counter", lambda: float(next(ticks)))
    run.solver.solve(run.problem, run=run)
    assert settled == [0, 1, 2, 3, 4]
    assert run.seconds == len(slices) + len(settled)


def test_the_finishing_step_of_lasvm():
    class Unfinished:
        def __init__(self, state):
            self.state = state

        def finish(self):
            return False

        def __getattr__(self, name):
            return getattr(self.state, name)

    run = LaSVM(max_iter=1, random_state=0).solve(problem(2))  # says nothing
    assert run.dual == run.state.settle() > LaSVM(max_iter=1, finishing=False, random_state=0).solve(problem(2)).dual
    run.state = Unfinished(run.state)
    with pytest.warns(ConvergenceWarning, match="left a violating pair"):
        run.certify()


@pytest.mark.parametrize(
    "pair", [(1.0,), (1.0, 2.0, 3.0), (-1.0, 1.0), (1.0, np.inf), (1e308, 1.0), [1.0, "2"], (True, 1.0)]
)
def test_a_schedule_that_is_no_pair_of_numbers(pair):
    with pytest.raises(ValueError, match="'schedule' parameter of KernelLaRank, if it is a pair, must be two floats"):
        KernelLaRank(schedule=pair).validate()
    KernelLaRank(schedule=(0.0, 2.5)).validate()


@pytest.mark.parametrize("method", ["cycles", "frank_wolfe"])
def test_a_cache_of_the_size_that_is_asked_for(method):
    with pytest.raises(ValueError, match="needed for 4 classes: raise it to") as error:
        WestonWatkins(method=method, cache_size=0.004).start(problem(4, n=400))
    needed = float(re.search(r"raise it to (\S+) MB", str(error.value))[1])
    assert WestonWatkins(method=method, cache_size=needed).start(problem(4, n=400)).state.cache.capacity >= 4
    with pytest.raises(ValueError, match="raise it to"):
        WestonWatkins(method=method, cache_size=0.5 * needed).start(problem(4, n=400))


def test_a_matrix_of_coefficients_that_is_too_large(monkeypatch):
    monkeypatch.setattr("structsvm.solvers.kernel.base.LARGEST_MATRIX", 180)
    for kind in (CrammerSinger, WestonWatkins):
        kind().start(problem(3))
        with pytest.raises(ValueError, match="61 examples times 3 classes are more than the 180 coefficients"):
            kind().start(problem(3, n=61))


def test_more_passes_on_a_budget():
    """Patterns that are visited again, or come back: their scores are those of the expansion."""
    rng = np.random.default_rng(0)
    data = rng.integers(-3, 4, (50, 2)).astype(float)
    points = KernelProblem(Gram(Kernel("linear"), Rows(data)), np.arange(50) % 3, 3)
    run = KernelPerceptron(average=False, budget=7, random_state=0).start(points)
    while run.n_iter < 5:
        run.advance()
    members, slots, label_ids, beta = run.state.coefficients()
    coefficients = np.zeros((7, 3))
    coefficients[slots, label_ids] = beta
    assert len(members) == 7 and run.state.n_vectors > 2 * 7 - 1
    np.testing.assert_array_equal(run.state.own[:7], data[members] @ data[members].T @ coefficients)
    # A smaller budget leaves what is best.
    less = KernelPerceptron(average=False, budget=3).start(points, base=run.state.coefficients())
    assert set(less.state.coefficients()[0]) < set(members) and less.state.cache.n_members == 3


def test_the_kernel_perceptron_starts_from_its_base():
    base = np.arange(2), np.array([0, 1, 1]), np.array([0, 1, 2]), np.array([1.0, 1.0, -1.0])
    vectors = KernelPerceptron(average=False).start(problem(3), base=base).support_vectors
    found = sorted(zip(vectors.members[vectors.slots], vectors.labels, vectors.beta, strict=True))
    assert found == [(0, 0, 1.0), (1, 1, 1.0), (1, 2, -1.0)]
    assert len(KernelPerceptron().start(problem(3)).support_vectors.members) == 0


def test_weston_watkins_resumes_with_other_examples_only_if_asked():
    solver, weight = WestonWatkins(C=2.0, tol=1e-6), np.ones(60)
    weight[:3] = 0.0
    arrays = solver.solve(problem(3), sample_weight=weight).get_state()
    other = solver.start(problem(3))
    with pytest.raises(ValueError, match="array 'support' of the training state is of other examples"):
        other.set_state(arrays)
    assert not other.state.beta.any()
    other.set_state(arrays, adapt=True)
    assert other.state.beta.shape == (3, 60) and np.count_nonzero(other.state.beta) == np.count_nonzero(arrays["beta"])


def test_weston_watkins_adds_to_scores_in_strips():
    """Rows of the kernel are never copied as a whole: that took a third of a second, deaf to Ctrl-C."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(40, 5 * STRIP + 7)).astype(np.float32)
    change = rng.normal(size=(3, 40)) * (rng.random(40) < 0.8)
    state = SimpleNamespace(F=np.ones((3, rows.shape[1])))
    tracemalloc.start()
    WestonWatkinsState.add_scores(state, rows, change)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    np.testing.assert_allclose(state.F, 1.0 + change @ rows.astype(np.float64), rtol=1e-9, atol=1e-9)
    assert peak < 20 * 40 * STRIP  # float32, float64, and what the product takes


@pytest.mark.parametrize("kind", [CrammerSinger, KernelLaRank])
def test_examples_that_lose_their_weight_lose_what_rounding_left(kind):
    """A sum of coefficients that is 0 but for its last digit, of an example that weighs nothing now."""
    found = problem(3)
    run = kind(C=2.0, random_state=0).start(found)
    run.advance()
    state = run.get_state()
    weight = np.ones(found.n_samples)
    if kind is CrammerSinger:
        label, i = np.argwhere(state["beta"] < 0.0)[0]
        state["beta"][:, i] = 0.0
        state["beta"][label, i] = -1e-17
    else:
        i = state["support"][state["vector_slot"][0]]
        own = state["vector_slot"] == 0
        state["vector_numbers"][0, own] = np.where(state["vector_numbers"][0, own] < 0.0, -1e-17, 0.0)
    weight[i] = 0.0
    other = kind(C=2.0, random_state=0).start(found, sample_weight=weight)
    other.set_state(state, adapt=True)
    other.advance()
    assert i not in other.state.coefficients()[0]


def test_crammer_singer_starts_from_0():
    base = np.arange(1), np.array([0]), np.array([0]), np.array([1.0])
    with pytest.raises(ValueError, match="CrammerSinger takes no base"):
        CrammerSinger().start(problem(3), base=base)
