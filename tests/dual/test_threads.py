"""Threads that train one model: the optimum of one thread, exact certificates, whole states."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from python_oracles import Data, Multiclass
from structures_table import Taxonomies

from structsvm import FrankWolfe, LaRank, PassiveAggressive, Perceptron
from structsvm.datasets import make_alignment, make_dependency_trees, make_treebank
from structsvm.dual.threads import ThreadedSchedule, equal_shares
from structsvm.oracles.greedy import GreedyOracle
from structsvm.oracles.viterbi import ViterbiOracle
from structsvm.result import relative_gap
from structsvm.tasks import DependencyParser, GrammarParser, SequenceAligner, TaxonomyClassifier


def chains(n=120, oracle=ViterbiOracle, seed=0, **formulation):
    rng = np.random.default_rng(seed)
    X = [rng.normal(size=(t, 6)) for t in rng.integers(1, 9, n)]
    w = rng.normal(size=(6, 3))
    labels = [np.argmax(x @ w + rng.normal(size=(len(x), 3)), axis=1) for x in X]
    return oracle(3, 6).bind(X, labels, **formulation)


def start(solver, problem):
    run = solver.start(problem)
    assert isinstance(run.schedule, ThreadedSchedule)
    return run


def in_turn(run):
    """The run, its threads working one after the other: what they reach does not depend on their pace."""
    run.schedule._together = lambda function: [function(k) for k in range(len(run.schedule.parts))]
    return run


def advance(run, n_passes=1):
    last = run.n_iter + n_passes
    while run.n_iter < last:
        run.advance(1.0)


SOLVERS = [
    LaRank(C=0.3, tol=1e-3, max_iter=1000, random_state=0),
    LaRank(C=0.3, tol=1e-3, max_iter=1000, schedule="fixed", random_state=0),
    LaRank(C=0.3, tol=1e-2, max_iter=1000, schedule="adaptive", random_state=0),
    LaRank(C=0.3, tol=1e-2, max_iter=1000, penalty="quadratic", random_state=0),
    LaRank(C=0.3, tol=1e-2, max_iter=1000, rescaling="slack", average=False, random_state=0),
    FrankWolfe(C=0.3, tol=1e-2, random_state=0),
    FrankWolfe(C=0.3, tol=1e-2, sampling="gap", random_state=0),
]


@pytest.mark.parametrize("n_threads", [2, 3])
@pytest.mark.parametrize("solver", SOLVERS, ids=repr)
def test_the_optimum_is_that_of_one_thread(solver, n_threads):
    problem = chains(**solver.formulation())
    alone = solver.solve(problem)
    run = type(solver)(**solver.get_params() | {"deterministic": False, "n_jobs": n_threads}).solve(problem)
    assert run.status == "converged"
    assert run.dual == pytest.approx(alone.dual, rel=2.0 * solver.tol)
    assert run.primal == pytest.approx(run.primal_at(run.weights), rel=1e-9)
    assert run.dual == pytest.approx(run.state.settle(), rel=1e-12)
    assert relative_gap(run.primal, run.dual) <= solver.tol


def grammar(solver):
    trees = make_treebank(60, max_length=10, random_state=0)
    return GrammarParser(solver=solver).fit([str(tree) for tree in trees])


def dependency(solver):
    trees = make_dependency_trees(60, max_length=10, crossing=0.2, random_state=0)
    return DependencyParser(solver=solver).fit(trees, [tree.arcs for tree in trees])


def taxonomy(solver):
    X = np.random.default_rng(0).normal(size=(200, 5))
    classes = np.array(["a", "b", "c"])[np.argmax(X[:, :3], axis=1)]
    return TaxonomyClassifier(taxonomy=[("p", "a"), ("p", "b"), ("root", "p"), ("root", "c")], solver=solver).fit(
        X, classes
    )


def alignment(solver):
    return SequenceAligner(solver=solver).fit(*make_alignment(20, random_state=0)[:2])


@pytest.mark.parametrize("train", [grammar, dependency, taxonomy, alignment])
def test_structures_reach_the_optimum_of_one_thread(train):
    alone, run = (
        train(LaRank(C=0.1, tol=2e-2, max_iter=300, random_state=0, **how)).result_
        for how in ({}, {"deterministic": False, "n_jobs": 2})
    )
    assert run.status == alone.status == "converged"
    assert run.dual == pytest.approx(alone.dual, rel=4e-2)


def test_certificates_of_approximate_inference():
    oracle, X = Multiclass(3, 4), np.random.default_rng(0).normal(size=(60, 4))
    oracle.inference = "approximate"
    options = {"C": 0.3, "tol": 1e-3, "max_iter": 100, "random_state": 0}
    alone, run = (
        LaRank(n_jobs=n, deterministic=n == 1, **options).solve(oracle.bind(X, np.arange(60) % 3)) for n in (1, 2)
    )
    assert run.status == "settled" and np.isnan(run.primal)
    assert run.dual == pytest.approx(alone.dual, rel=3e-3) and run.primal_found >= run.dual


def test_every_example_is_visited_once_in_a_pass():
    problem = chains()
    run = start(LaRank(C=0.3, deterministic=False, n_jobs=3, random_state=0), problem)
    for n_passes in (1, 2, 3):
        while not run.advance(0.001):
            assert 0 <= run.schedule.next <= run.schedule.n_samples == problem.n_samples
        assert run.state.n_visits == run.state.n_argmax == n_passes * problem.n_samples
        assert run.n_iter == n_passes


@pytest.mark.parametrize("solver", [LaRank, FrankWolfe])
@pytest.mark.parametrize("n_passes", [1, 12])
def test_all_threads_end_with_the_weights_of_the_alphas(n_passes, solver):
    """Messages between the threads fill many pages of their logs, which are used again."""
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(20, 50)) for _ in range(150)]
    problem = ViterbiOracle(4, 50).bind(X, [rng.integers(0, 4, 20) for _ in X])
    run = start(solver(C=1.0, deterministic=False, n_jobs=3, random_state=0), problem)
    advance(run, n_passes)
    words = np.diff(run.state.get_state()["cut_bounds"]).mean()
    assert run.schedule.exchange.n_pages < 5 + 0.3 * run.state.n_updates * (4 * words + 80) / 2**16
    for part in run.schedule.parts:
        np.testing.assert_allclose(part.weights, run.state.weights, rtol=1e-3, atol=1e-4)
    examples, alpha = run.state.alphas()
    assert (alpha > 0.0).all()
    assert (np.bincount(examples, alpha, problem.n_samples) <= 1.0 + 1e-9).all()
    assert run.state.n_cuts == len(alpha)
    assert run.state.n_patterns == len(np.unique(examples))


@pytest.mark.parametrize("form", ["dense", "sparse", "lists"])
@pytest.mark.parametrize("attributes", ["ancestors", "normalized", "flat"])
def test_cuts_of_documents_reach_all_weights(form, attributes):
    """All cuts of one example reach them together."""
    case = Taxonomies(0, n_nodes=30, n_samples=200, lists=form == "lists", attributes=attributes, loss="zero_one")
    X = case.X if form == "dense" else sp.csr_array(case.X)
    run = start(LaRank(C=1.0, deterministic=False, n_jobs=3, random_state=0), case.oracle.bind(X, case.Y))
    advance(run, 3)
    assert run.state.n_cuts > run.state.n_patterns
    for part in run.schedule.parts:
        np.testing.assert_allclose(part.weights, run.state.weights, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("n_threads", [2, 3])
def test_the_average_is_that_of_the_passes_time(n_threads):
    problem = chains(200)
    alone = LaRank(C=5.0, max_iter=2, random_state=0).solve(problem)
    solver = LaRank(C=5.0, max_iter=2, random_state=0, deterministic=False, n_jobs=n_threads)
    run = solver.solve(problem, run=in_turn(start(solver, problem)))
    assert alone.use_average and run.use_average
    assert run.primal == pytest.approx(alone.primal, rel=0.1)
    assert run.primal < 0.8 * run.primal_at(run.state.weights)


def test_passive_aggressive_threads():
    problem = chains()
    alone = PassiveAggressive(C=0.3, random_state=0).solve(problem)
    solver = PassiveAggressive(C=0.3, deterministic=False, n_jobs=2, random_state=0)
    for run in (start(solver, problem), in_turn(start(solver, problem))):
        run = solver.solve(problem, run=run)
        assert run.state.n_visits == problem.n_samples
        assert 0.0 < run.dual < run.primal
    assert run.dual == pytest.approx(alone.dual, rel=0.1)


class TestPerceptron:
    """Threads that visit their examples one after the other do what one thread does in that order."""

    def trained(self, n_threads, *, nonnegative=None, average=True):
        data = Data(0, n=60)
        data.oracle.nonnegative = nonnegative
        solver = Perceptron(average=average, n_jobs=n_threads, deterministic=False, random_state=0)
        run = in_turn(start(solver, data.perceptron()))
        advance(run, 3)
        return run, data.oracle.calls

    @pytest.mark.parametrize("n_threads", [2, 3])
    def test_average_is_of_the_weights_after_each_visit(self, n_threads):
        run, seen = self.trained(n_threads)
        assert len(seen) == run.state.n_visits == run.state.n_argmax == 180
        after = np.array([*seen[1:], run.state.weights])
        assert run.state.n_updates == np.count_nonzero((after != seen).any(axis=1)) > 10
        np.testing.assert_allclose(run.weights, after.mean(axis=0), rtol=1e-9, atol=1e-12)
        for part in run.schedule.parts:
            np.testing.assert_allclose(part.weights, run.state.weights, rtol=1e-9, atol=1e-12)

    def test_without_average_the_last_weights(self):
        run, seen = self.trained(2, average=False)
        np.testing.assert_array_equal(run.weights, run.state.weights)
        assert np.abs(seen[-90] - run.weights).max() > 0.0

    def test_weights_that_must_not_be_negative(self):
        run, _ = self.trained(2, nonnegative=np.arange(12) % 3 != 1)
        for weights in (run.weights, run.state.weights, *(part.weights for part in run.schedule.parts)):
            assert weights.reshape(-1, 3)[:, ::2].min() >= 0.0

    def test_at_the_same_time(self):
        problem = chains(400, **Perceptron().formulation())
        alone = Perceptron(random_state=0, n_jobs=2).solve(problem)
        np.testing.assert_array_equal(alone.weights, Perceptron(random_state=0).solve(problem).weights)
        run = start(Perceptron(random_state=0, n_jobs=2, deterministic=False), problem)
        while not run.advance(0.001):
            pass
        advance(run, 9)
        assert run.state.n_visits == 4000
        for part in run.schedule.parts:
            np.testing.assert_allclose(part.weights, run.state.weights, rtol=1e-3, atol=1e-3)
        cosine = run.weights @ alone.weights / np.linalg.norm(run.weights) / np.linalg.norm(alone.weights)
        assert cosine > 0.97


def test_deterministic_training_is_one_threads():
    problem = chains()
    one, two = (LaRank(C=0.3, random_state=0, n_jobs=n).solve(problem) for n in (1, 2))
    np.testing.assert_array_equal(one.weights, two.weights)
    one, two = (LaRank(C=0.3, random_state=0, n_jobs=1, deterministic=free).solve(problem) for free in (True, False))
    np.testing.assert_array_equal(one.weights, two.weights)


@pytest.mark.parametrize("n_threads", [2, 5])
def test_groups_stay_together(n_threads):
    problem = chains(oracle=GreedyOracle)
    assert problem.groups is not None
    run = start(LaRank(C=0.3, deterministic=False, n_jobs=n_threads, random_state=0), problem)
    for part in run.schedule.parts:
        assert len(part.visited) > 0
    own = np.concatenate([part.visited for part in run.schedule.parts])
    assert sorted(own.tolist()) == list(range(len(problem.groups) - 1))
    advance(run)
    assert run.state.n_visits == problem.n_samples


@pytest.mark.parametrize("n_threads", [2, 3])
def test_every_thread_has_examples_from_everywhere(n_threads):
    """Data may be sorted, by label say."""
    run = start(LaRank(C=0.3, deterministic=False, n_jobs=n_threads, random_state=0), chains(300))
    for part in run.schedule.parts:
        of_tenths = np.bincount(part.visited // 30, minlength=10)
        assert of_tenths.min() > 0.5 * of_tenths.max()


@pytest.mark.parametrize(("solver", "how"), [(LaRank, {}), (FrankWolfe, {"sampling": "gap"})])
def test_sections_of_which_a_thread_has_no_example(solver, how):
    problem = chains(30)
    problem.in_sections(np.arange(31), lambda start, stop: None)
    run = start(solver(C=0.3, deterministic=False, n_jobs=3, random_state=0, **how), problem)
    for _ in range(3):
        before = run.state.n_visits
        advance(run)
        assert run.state.n_visits == before + 30


@pytest.mark.parametrize("n_parts", [1, 2, 3, 10])
def test_shares_are_about_equal(n_parts):
    cost = np.random.default_rng(0).uniform(0.5, 2.0, 200)
    bounds = equal_shares(cost, None, n_parts)
    assert bounds[0] == 0 and bounds[-1] == 200 and len(bounds) == n_parts + 1
    shares = [cost[a:b].sum() for a, b in pairwise(bounds)]
    assert max(shares) - min(shares) <= 4.0
    assert equal_shares(np.zeros(3), None, 2) in ([0, 3], [0, 1, 3], [0, 2, 3])
    assert equal_shares(np.ones(2), None, 5) == [0, 1, 2]


def test_more_threads_than_examples():
    problem = chains(3)
    run = LaRank(C=0.3, deterministic=False, n_jobs=8, tol=1e-3, max_iter=1000, random_state=0).solve(problem)
    assert run.status == "converged"


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_perceptrons_checkpoint_goes_from_threads_to_one_and_back(tmp_path, n_jobs):
    problem, path = chains(rescaling=None), tmp_path / "run"
    how = {"random_state": 0, "checkpoint": path, "deterministic": False}
    first = Perceptron(max_iter=2, n_jobs=3 - n_jobs, **how).solve(problem)
    run = Perceptron(max_iter=6, n_jobs=n_jobs, **how).solve(problem)
    assert (run.n_iter, run.state.n_visits) == (6, 720)
    assert np.abs(run.weights - first.weights).max() > 0.0


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_checkpoint_goes_from_threads_to_one_and_back(tmp_path, n_jobs):
    problem, path = chains(), tmp_path / "run"
    first = LaRank(C=0.3, max_iter=2, random_state=0, checkpoint=path, deterministic=False, n_jobs=3 - n_jobs)
    dual = first.solve(problem).dual
    second = LaRank(C=0.3, max_iter=6, random_state=0, checkpoint=path, deterministic=False, n_jobs=n_jobs)
    run = second.solve(problem)
    assert run.n_iter == 6
    assert run.dual > dual


def test_an_error_of_the_oracle_comes_out_and_leaves_a_whole_state():
    data = Data(0, n=40)
    oracle, calls = type(data.oracle), []

    class Failing(oracle):
        def argmax(self, x, w, y_true=None, rescaling=None):
            calls.append(0)
            if len(calls) > 60:
                raise RuntimeError("out of order")
            return super().argmax(x, w, y_true, rescaling)

    data.oracle.__class__ = Failing
    run = start(LaRank(C=0.3, deterministic=False, n_jobs=2, random_state=0), data.bind())
    with pytest.raises(RuntimeError, match="out of order"):
        advance(run, 3)
    dual, n_cuts = run.state.dual, run.state.n_cuts
    assert run.state.settle() == pytest.approx(dual)
    assert len(run.state.alphas()[0]) == n_cuts > 0


def test_ctrl_c_leaves_the_weights_of_the_alphas(monkeypatch):
    problem = chains(400)
    solver = LaRank(C=0.3, deterministic=False, n_jobs=2, random_state=0)
    run = start(solver, problem)
    advance(run)
    last = run.schedule.schedules[1]

    class Stopped:
        n_samples, next = last.n_samples, 0

        def start_pass(self, n_before):
            last.start_pass(n_before)

        def run(self, seconds):
            raise KeyboardInterrupt

    run.schedule.schedules[1] = Stopped()
    run = solver.solve(problem, run=run)
    assert run.status == "interrupted"
    weights = run.state.weights.copy()
    run.state.settle()
    np.testing.assert_array_equal(run.state.weights, weights)
