"""LatentSVM: completions by enumeration, an objective that never rises, and runs like those of all solvers."""

import dataclasses
import os
import warnings
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from python_oracles import Logistic, Multiclass
from sklearn.base import clone

import structsvm
from structsvm import (
    ConvergenceWarning,
    CuttingPlane,
    FrankWolfe,
    LaRank,
    LatentSVM,
    OracleError,
    PassiveAggressive,
    Perceptron,
)
from structsvm.dual._rounds import completions
from structsvm.oracles.ambiguous import AmbiguousOracle
from structsvm.oracles.taxonomy import TaxonomyOracle
from structsvm.progress import Monitor
from structsvm.solvers import ConditionalLikelihood
from structsvm.structures.taxonomy import Taxonomy
from structsvm.tasks.common.solver import solver_from_json, solver_to_json
from structsvm.testing import check_oracle

pytestmark = pytest.mark.filterwarnings("ignore::structsvm.ConvergenceWarning")


class Candidates(Multiclass):
    """The known part is a class, or a tuple of those that it may be."""

    penalties = ("linear", "quadratic")

    def candidates(self, known):
        return known if isinstance(known, tuple) else (known,)

    def complete(self, x, known, w):
        scores = w.reshape(self.n_classes, self.n_inputs) @ x
        return max(self.candidates(known), key=lambda y: (scores[y], -y))


class SoftCandidates(Candidates, Logistic):
    pass


class SummedCandidates(SoftCandidates):
    """With the sum over the candidates."""

    def expect_known(self, x, known, w):
        agree = list(self.candidates(known))
        scores = w.reshape(self.n_classes, self.n_inputs)[agree] @ x
        p = np.exp(scores - scores.max())
        mean = np.zeros((self.n_classes, self.n_inputs))
        mean[agree] = np.outer(p / p.sum(), x)
        return scores.max() + np.log(p.sum()), mean.ravel()


def data(seed=0, n=24, n_classes=4, n_inputs=3, whole=0.4, kind=Candidates, metric=False):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_inputs))
    Y = np.argmax(X @ rng.normal(size=(n_inputs, n_classes)) + 0.5 * rng.normal(size=(n, n_classes)), axis=1).tolist()
    known = [
        y if rng.random() < whole else tuple(sorted({y, *rng.integers(0, n_classes, rng.integers(1, 4)).tolist()}))
        for y in Y
    ]
    costs = rng.integers(1, 4, (n_classes, n_classes)) * (1.0 - np.eye(n_classes))
    return kind(n_classes, n_inputs, costs=None if metric else costs), X, known, Y


def objective(oracle, X, known, w, C, *, completed=None):
    """L(w), or with completions the bound that they give, by enumeration."""
    total = 0.5 * w @ w
    for i, (x, k) in enumerate(zip(X, known, strict=True)):
        scores = w.reshape(oracle.n_classes, -1) @ x
        c = oracle.complete(x, k, w) if completed is None else completed[i]
        total += C * (np.max(oracle.costs[c] + scores) - scores[c])
    return total


SOLVERS = {
    "larank": LaRank(C=0.3, random_state=0),
    "larank, passes": LaRank(C=0.3, max_iter=2, random_state=0),
    "larank, tol": LaRank(C=0.3, tol=1e-2, random_state=0),
    "slack": LaRank(C=0.3, rescaling="slack", random_state=0),
    "quadratic": LaRank(C=0.3, penalty="quadratic", random_state=0),
    "adaptive": LaRank(C=0.3, schedule="adaptive", random_state=0),
    "passive aggressive": PassiveAggressive(C=0.3, random_state=0),
    "cutting plane": CuttingPlane(C=0.3, random_state=0),
    "one slack": CuttingPlane(C=0.3, form="one_slack", random_state=0),
    "frank-wolfe": FrankWolfe(C=0.3, random_state=0),
    "gap sampling": FrankWolfe(C=0.3, sampling="gap", random_state=0),
    "log": ConditionalLikelihood(C=0.3, random_state=0),
}
EACH = pytest.mark.parametrize("solver", [clone(s) for s in SOLVERS.values()], ids=SOLVERS.keys())


def kind_for(solver):
    return SoftCandidates if isinstance(solver, ConditionalLikelihood) else Candidates


def bound(solver, oracle, X, Y):
    if solver.formulation()["penalty"] == "quadratic":
        oracle.penalty = "quadratic"
    return oracle.bind(X, Y, **solver.formulation())


class Objectives(Monitor):
    """The objective at the beginning of each round after the first that all examples take part in."""

    def __init__(self):
        self.found = []

    def end_pass(self, run):
        assert run.chosen is not None or not run.primal > run.objective
        if run.round > run.joined + len(self.found) and run.chosen is None and run.status == "running":
            self.found.append(run.objective)
        return False


# --- the objective ----------------------------------------------------------------------------------


@EACH
@pytest.mark.parametrize("start", ["uniform", "easiest", "random"])
def test_the_objective_never_rises(solver, start):
    n_rounds = []
    for seed in range(3):
        oracle, X, known, _ = data(seed, kind=kind_for(solver))
        monitor = Objectives()
        run = LatentSVM(solver, start=start).solve(bound(solver, oracle, X, known), monitor=monitor)
        found = np.array([*monitor.found, run.primal])
        assert (np.diff(found) <= 0.0).all()
        if solver.tol is None and start == "random":  # then the history has the primal objective of ends of rounds
            primal = run.history.arrays()["primal"]
            primal = primal[np.isfinite(primal)]
            assert (np.diff(primal) <= 0.0).all()
            assert len(primal) >= len(found)
        assert run.status in ("converged", "settled", "max_iter")
        assert len(monitor.found) == run.round - run.joined - 1
        assert run.primal == run.history.arrays()["primal"][-1]
        assert run.dual <= run.primal * (1.0 + 1e-6)
        n_rounds.append(run.round)
    assert max(n_rounds) > 1


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(["uniform", "random", "easiest"]), st.booleans())
def test_the_objective_is_that_of_the_definition(seed, start, metric):
    oracle, X, known, _ = data(seed % 1000, n=12, metric=metric)
    run = LatentSVM(CuttingPlane(C=0.5, tol=1e-6, random_state=seed), start=start).solve(oracle.bind(X, known))
    w, completed = run.weights, run.problem.targets[1].tolist()
    assert run.primal == pytest.approx(objective(oracle, X, known, w, 0.5, completed=completed), rel=1e-9)
    if metric and run.status != "max_iter":
        # The 0-1 loss never loses by a better completion.
        assert objective(oracle, X, known, w, 0.5) <= run.primal * (1.0 + 1e-9)
    for c, k in zip(completed, known, strict=True):
        assert c in oracle.candidates(k)


def test_completions_that_stay_end_it():
    for seed in range(4):
        oracle, X, known, _ = data(seed, metric=True)
        run = LatentSVM(CuttingPlane(C=0.5, tol=1e-8, random_state=0), tol=0.0, rounds=100).solve(oracle.bind(X, known))
        assert run.status == "converged"
        w = run.weights
        assert [oracle.complete(x, k, w) for x, k in zip(X, known, strict=True)] == run.problem.targets[1].tolist()


@EACH
def test_what_is_known_whole_is_trained_on_as_ever(solver):
    for seed in range(3):
        oracle, X, _, Y = data(seed, kind=kind_for(solver))
        ordinary = clone(solver).solve(bound(solver, oracle, X, Y))
        run = LatentSVM(clone(solver)).solve(bound(solver, oracle, X, Y))
        assert run.weights.tobytes() == ordinary.weights.tobytes()
        for name in ("primal", "dual", "n_iter"):
            assert getattr(run, name) == getattr(ordinary, name)
        assert run.result().n_argmax == ordinary.result().n_argmax
        assert run.status == ordinary.status


@pytest.mark.parametrize("solver", [LaRank(max_iter=1), LaRank(max_iter=1, tol=1e-9), PassiveAggressive(), LaRank()])
def test_the_status_is_that_of_the_convex_problem(solver):
    """Completions that stay are no optimum."""
    oracle, X, _, Y = data(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        ordinary = clone(solver).set_params(random_state=0).solve(oracle.bind(X, Y))
        run = LatentSVM(clone(solver).set_params(random_state=0)).solve(oracle.bind(X, Y))
    assert (run.n_iter, run.status) == (ordinary.n_iter, ordinary.status)
    assert run.status == ("settled" if solver.max_iter is None else "max_iter")


def test_a_random_state_is_drawn_from_as_ever():
    oracle, X, _, Y = data(0)
    weights = [
        make(LaRank(C=0.3, random_state=np.random.RandomState(3))).solve(oracle.bind(X, Y)).weights
        for make in (lambda solver: solver, LatentSVM)
    ]
    assert weights[0].tobytes() == weights[1].tobytes()


def test_it_learns_more_than_what_is_known_whole():
    """An eighth of 300 examples is known whole: accuracy on others."""
    oracle, X, known, Y = data(1, n=900, n_classes=4, n_inputs=8, whole=0.03, metric=True)
    train, test = slice(0, 300), slice(300, None)
    whole = [i for i in range(300) if not isinstance(known[i], tuple)]

    def accuracy(w):
        return np.mean([oracle.argmax(x, w) == y for x, y in zip(X[test], Y[test], strict=True)])

    alone = LaRank(C=1.0, random_state=0).solve(oracle.bind(X[whole], [Y[i] for i in whole])).weights
    latent = LatentSVM(LaRank(C=1.0, random_state=0)).solve(oracle.bind(X[train], known[train])).weights
    assert accuracy(latent) > accuracy(alone) + 0.05


# --- the run ----------------------------------------------------------------------------------------


class Counting(Candidates):
    n_complete = 0

    def complete(self, x, known, w):
        self.n_complete += 1
        return super().complete(x, known, w)


def test_counts():
    oracle, X, known, _ = data(3, kind=Counting)
    problem = oracle.bind(X, known)
    oracle.calls.clear()
    run = LatentSVM(LaRank(C=0.3, random_state=0)).solve(problem)
    assert run.result().n_argmax == len(oracle.calls)
    assert run.round > 1
    # Each example twice at first, and once at the end of each round.
    assert oracle.n_complete == len(X) * (2 + run.round)


def test_rounds():
    oracle, X, known, _ = data(3)
    run = LatentSVM(LaRank(C=0.3, random_state=0), rounds=1, start="random").solve(oracle.bind(X, known))
    assert (run.round, run.status, run.result().n_rounds) == (1, "max_iter", 1)
    assert "of the problem as completed in 1 round;" in run.result().certificate()
    solver = LatentSVM(LaRank(C=0.3, max_iter=3, random_state=0), rounds=2, tol=0.0, start="random")
    run = solver.solve(oracle.bind(X, known))
    assert (run.round, run.joined, run.n_iter, run.status) == (2, 0, 6, "max_iter")
    assert run.n_iter <= solver.n_passes == 21


class Watch(Monitor):
    """The examples that take part in each pass."""

    def __init__(self):
        self.taken = []

    def begin_pass(self, run):
        self.taken.append(np.ones(run.problem.n_samples, bool) if run.chosen is None else run.chosen)


@pytest.mark.parametrize("start", ["uniform", "easiest"])
def test_examples_join_from_round_to_round(start):
    """First those that are known whole; without any an eighth."""
    oracle, X, known, _ = data(4, n=80, whole=0.0)
    alone = [i for i, k in enumerate(known) if len(k) == 1]
    for Y, n_first in ((known, len(alone)), ([k if len(k) > 1 else (0, 1) for k in known], 10)):
        watch = Watch()
        run = LatentSVM(LaRank(C=0.3, random_state=0), start=start).solve(oracle.bind(X, Y), monitor=watch)
        counts = [int(chosen.sum()) for chosen in watch.taken]
        expected = [n_first]
        while expected[-1] < 80:
            expected.append(min(max(2 * expected[-1], 10), 80))
        assert [n for k, n in enumerate(counts) if k == 0 or n != counts[k - 1]] == expected
        for before, chosen in pairwise(watch.taken):
            assert (chosen | ~before).all()
        if n_first != 10:
            assert np.flatnonzero(watch.taken[0]).tolist() == alone
        assert run.joined == len(expected) - 1
    weight = np.arange(80) % 2.0
    run = LatentSVM(LaRank(C=0.3, random_state=0), start=start).start(oracle.bind(X, Y), sample_weight=weight)
    assert (run.chosen.sum(), (run.chosen * weight).sum()) == (5, 5)


def test_weights_to_start_from_settle_the_first_completions():
    oracle, X, known, _ = data(5)
    w = np.random.default_rng(0).normal(size=oracle.n_features)
    run = LatentSVM(LaRank(random_state=0)).start(oracle.bind(X, known), base=w)
    assert run.problem.targets[1].tolist() == [oracle.complete(x, k, w) for x, k in zip(X, known, strict=True)]


def test_uniform_completes_each_candidate_about_as_often():
    oracle = Candidates(4, 3)
    X = np.random.default_rng(0).normal(size=(400, 3))
    counts = np.zeros(4)
    for seed in range(5):
        run = LatentSVM(LaRank(random_state=seed)).start(oracle.bind(X, [(0, 1, 2, 3)] * 400))
        counts += np.bincount(run.problem.targets[1].astype(int), minlength=4)
    assert (counts / counts.sum() > 0.15).all()


@pytest.mark.parametrize("start", ["uniform", "easiest", "random"])
def test_one_example_and_examples_without_weight(start):
    oracle, X, _, _ = data(6)
    solver = LatentSVM(LaRank(C=0.3, random_state=0), start=start)
    run = solver.solve(oracle.bind(X[:1], [(1, 2)]))
    assert run.status == "settled" and run.weights.any()
    run = solver.solve(oracle.bind(X[:2], [(1, 2), (0, 1)]), sample_weight=np.zeros(2))
    assert run.status == "settled" and not run.weights.any()


def test_sample_weights_of_zero_leave_examples_out():
    oracle, X, known, _ = data(6)
    weight = np.arange(len(X)) % 2.0
    run = LatentSVM(CuttingPlane(C=0.3, tol=1e-6, random_state=0)).solve(oracle.bind(X, known), sample_weight=weight)
    completed = run.problem.targets[1].tolist()
    odd = slice(1, None, 2)
    wanted = objective(oracle, X[odd], known[odd], run.weights, 0.3, completed=completed[odd])
    assert run.primal == pytest.approx(wanted)


@EACH
@pytest.mark.parametrize("start", ["uniform", "easiest"])
def test_a_checkpoint_resumes_bit_for_bit(solver, start, tmp_path):
    oracle, X, known, _ = data(7, kind=kind_for(solver))
    whole = LatentSVM(clone(solver), start=start).solve(bound(solver, oracle, X, known))

    class Stop(Monitor):
        def __init__(self, after):
            self.after = after

        def end_pass(self, run):
            return run.n_iter >= self.after

    assert whole.n_iter >= 2
    for after in sorted({1, whole.n_iter // 2, whole.n_iter - 1} - {0}):
        path = tmp_path / f"run{after}"
        stored = LatentSVM(clone(solver).set_params(checkpoint=path), start=start)
        stored.solve(bound(solver, oracle, X, known), monitor=Stop(after))
        assert os.path.exists(path)
        again = stored.solve(bound(solver, oracle, X, known))
        assert again.weights.tobytes() == whole.weights.tobytes(), after
        for name in ("primal", "dual", "n_iter", "round", "status"):
            assert getattr(again, name) == getattr(whole, name), (name, after)


def test_a_checkpoint_of_other_knowledge_or_solver_is_refused(tmp_path):
    oracle, X, known, Y = data(7)
    path = tmp_path / "run"

    class Stop(Monitor):
        def end_pass(self, run):
            return True

    LatentSVM(LaRank(C=0.3, random_state=0, checkpoint=path)).solve(oracle.bind(X, known), monitor=Stop())
    for other in (LatentSVM(LaRank(C=0.4, random_state=0, checkpoint=path)), LaRank(random_state=0, checkpoint=path)):
        with pytest.raises(structsvm.ModelFileError, match="another solver"):
            other.solve(oracle.bind(X, Y))
    with pytest.raises(structsvm.ModelFileError, match="another problem"):
        LatentSVM(LaRank(C=0.3, random_state=0, checkpoint=path)).solve(oracle.bind(X[::-1], known[::-1]))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("latent", np.zeros(2)),
        ("latent", np.array([0.5, 0.0, 1.0, 1.0])),
        ("latent", np.array([np.nan, 0.0, 1.0, 1.0])),
        ("latent_seed", np.zeros(1)),
        ("latent_under", np.zeros(1)),
        ("latent_under", np.full(12, np.inf)),
        ("latent_chosen", np.zeros(2, np.uint8)),
        ("latent_targets", np.zeros(2)),
        ("latent_online", np.zeros(1)),
        ("latent_online", np.array([21])),
    ],
)
def test_states_that_are_damaged(name, value):
    oracle, X, known, _ = data(8)
    solver = LatentSVM(LaRank(C=0.3, random_state=0))
    run = solver.solve(oracle.bind(X, known))
    state = run.get_state()
    other = solver.start(oracle.bind(X, known))
    before = other.get_state()
    with pytest.raises(ValueError, match=name):
        other.set_state(state | {name: value})
    assert all(np.array_equal(before[k], v, equal_nan=True) for k, v in other.get_state().items())
    other.set_state(state)
    assert all(np.array_equal(state[k], v, equal_nan=True) for k, v in other.get_state().items())


@pytest.mark.parametrize("after", [1, 40, 90, 200])
def test_ctrl_c_leaves_a_usable_state(after):
    class Interrupted(Counting):
        def complete(self, x, known, w):
            if self.n_complete == after:
                self.n_complete += 1
                raise KeyboardInterrupt
            return super().complete(x, known, w)

    oracle, X, known, _ = data(9, kind=Interrupted)
    solver = LatentSVM(LaRank(C=0.3, random_state=0))
    if after < 2 * len(X):  # nothing has begun
        with pytest.raises(KeyboardInterrupt):
            solver.solve(oracle.bind(X, known))
        return
    run = solver.solve(oracle.bind(X, known))
    if oracle.n_complete > after:
        assert run.status == "interrupted"
        assert np.isnan(run.primal)
    assert np.isfinite(run.weights).all()
    assert run.result().n_rounds >= 1


@pytest.mark.parametrize("n_jobs", [2])
def test_jobs_make_no_difference(n_jobs):
    oracle, X, known, _ = data(10, n=50)
    runs = [
        LatentSVM(LaRank(C=0.3, random_state=0, n_jobs=jobs)).solve(oracle.bind(X, known)) for jobs in (None, n_jobs)
    ]
    assert runs[0].weights.tobytes() == runs[1].weights.tobytes()
    assert runs[0].problem.targets[1].tolist() == runs[1].problem.targets[1].tolist()


# --- StructuredSVM ----------------------------------------------------------------------------------


def test_structured_svm(tmp_path):
    oracle, X, known, Y = data(11, n=60)
    svm = structsvm.StructuredSVM(oracle, LatentSVM(LaRank(C=0.3, random_state=0)), warm_start=True).fit(X, known)
    assert svm.result_.n_rounds > 1
    assert svm.score(X, Y) > -1.0
    svm.save(tmp_path / "model")
    loaded = structsvm.load(tmp_path / "model", oracle=oracle)
    assert isinstance(loaded.solver, LatentSVM)
    assert loaded.solver.solver.C == 0.3
    # As texts: from Python 3.13 on dataclasses compare field by field, and what is not found is nan.
    assert repr(loaded.result_) == repr(dataclasses.replace(svm.result_, history=loaded.result_.history))
    primal = svm.result_.primal
    for model in (svm, loaded):
        assert model.fit(X, known).result_.primal <= primal * (1.0 + 1e-9)
    assert svm.coef_.tobytes() == loaded.coef_.tobytes()
    svm.partial_fit(X[:10], known[:10])
    assert svm.n_iter_ == 1


# --- parameters, and what is refused ----------------------------------------------------------------


def test_parameters():
    solver = LatentSVM(LaRank(C=0.3), rounds=5, start="random")
    assert solver.get_params(deep=False) == {
        "solver": solver.solver, "rounds": 5, "tol": 1e-3, "start": "random", "online": False,
    }  # fmt: skip
    assert solver.get_params()["solver__C"] == solver.C == 0.3
    assert repr(solver) == "LatentSVM(solver=LaRank(C=0.3), rounds=5, start='random')"
    solver.set_params(solver__C=0.5, start="easiest", rounds=7)
    assert (solver.solver.C, solver.rounds, solver.start_from) == (0.5, 7, "easiest")
    other = clone(solver)
    assert repr(other) == repr(solver)
    assert other.solver is not solver.solver
    assert LatentSVM().set_params(C=2.0).solver.C == 2.0
    svm = structsvm.StructuredSVM(Candidates(3, 4), solver).set_params(solver__solver__C=0.7)
    assert svm.solver.solver.C == 0.7
    with pytest.raises(ValueError, match="LatentSVM has no parameter 'D'"):
        solver.set_params(D=1)
    with pytest.raises(ValueError, match="LatentSVM has no parameter 'solver__D'"):
        solver.set_params(solver__D=1)
    with pytest.raises(AttributeError, match="gamma"):
        _ = solver.gamma


def test_json():
    solver = LatentSVM(LaRank(C=0.3), rounds=5, start="random", online=True)
    again = solver_from_json(solver_to_json(solver))
    assert repr(again) == repr(solver)
    assert again.start_from == "random" and again.online is True

    class Own(LaRank):
        pass

    assert solver_to_json(LatentSVM(Own())) is None


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"solver": Perceptron()}, "'solver' parameter of LatentSVM must be a solver of the dual"),
        ({"solver": "larank"}, "'solver' parameter of LatentSVM must be a solver of the dual"),
        ({"solver": LatentSVM()}, "'solver' parameter of LatentSVM must be a solver of the dual"),
        ({"solver": LaRank(penalty=None)}, "must have a linear or a quadratic penalty"),
        ({"solver": LaRank(C=-1.0)}, "'C' parameter of LaRank"),
        ({"rounds": 0}, "'rounds' parameter of LatentSVM"),
        ({"tol": -1.0}, "'tol' parameter of LatentSVM"),
        ({"online": 1}, "'online' parameter of LatentSVM must be"),
        ({"online": True, "solver": CuttingPlane()}, "with online=True needs LaRank, FrankWolfe or PassiveAggressive"),
        ({"online": True, "solver": ConditionalLikelihood()}, "with online=True needs LaRank, FrankWolfe or"),
        ({"online": True, "solver": LaRank(deterministic=False)}, "with deterministic=True, whose steps can complete"),
        ({"start": "else"}, "'start' parameter of LatentSVM must be 'uniform' or 'random' or 'easiest' or 'soft'"),
    ],
)
def test_parameters_that_are_refused(params, message):
    oracle, X, known, _ = data(0)
    with pytest.raises(ValueError, match=message):
        LatentSVM(**params).solve(oracle.bind(X, known))


def test_an_oracle_without_the_verb():
    oracle, X, known, Y = data(0, kind=Multiclass)
    with pytest.raises(NotImplementedError, match="Multiclass does not implement complete, the verb"):
        LatentSVM().solve(oracle.bind(X, Y))
    with pytest.raises(NotImplementedError, match="Multiclass does not implement complete, the verb"):
        oracle.complete(X[0], known[0], np.zeros(oracle.n_features))
    with pytest.raises(NotImplementedError, match="Multiclass does not implement complete"):
        oracle.bind(X, Y).complete(0, np.zeros(oracle.n_features))


class Wrong(Candidates):
    """Whose answers are made by a function."""

    make = None

    def complete(self, x, known, w):
        return self.make(super().complete(x, known, w), x, known, w)


def wrong(make):
    kind = type("Wrong", (Wrong,), {"make": staticmethod(make)})
    return data(0, kind=kind, metric=True)


def test_the_adapter_checks_what_complete_returns():
    class Tired(Candidates):
        is_tired = False

        def complete(self, x, known, w):
            return super().complete(x, known, -w if self.is_tired else w)

    oracle, X, known, _ = data(0, kind=Tired)
    w = np.random.default_rng(0).normal(size=oracle.n_features)
    problem = oracle.bind(X, known)
    problem = problem.with_targets(completions(problem, w))
    assert not problem.differ(completions(problem, w)).any()
    oracle.is_tired = True
    with pytest.raises(OracleError, match=r"Tired.complete \(example \d+\) .*found under other weights"):
        completions(problem, w)
    oracle.inference = "approximate"  # completion searches, and may
    problem = oracle.bind(X, known)
    problem = problem.with_targets(completions(problem, -w))
    assert problem.differ(completions(problem, w)).any()
    oracle, X, known, _ = wrong(lambda y, x, known, w: 1 / 0)
    with pytest.raises(ZeroDivisionError) as caught:
        LatentSVM().solve(oracle.bind(X, known))
    assert "while Wrong was asked about example 0" in caught.value.__notes__

    class Infinite(Candidates):
        def joint_feature(self, x, y):
            return np.full(self.n_features, np.inf)

    oracle, X, known, _ = data(0, kind=Infinite)
    with pytest.raises(OracleError, match=r"Infinite.complete \(example 0\) returned a value that is not finite"):
        LatentSVM().solve(oracle.bind(X, known))


def test_outputs_are_copied():
    class Reusing(Candidates):
        last = np.zeros(1, int)

        def loss(self, y_true, y):
            return super().loss(int(np.ravel(y_true)[0]), int(np.ravel(y)[0]))

        def joint_feature(self, x, y):
            return super().joint_feature(x, int(np.ravel(y)[0]))

        def complete(self, x, known, w):
            self.last[0] = super().complete(x, known, w)
            return self.last

        def argmax(self, x, w, y_true=None, rescaling=None):
            return super().argmax(x, w, None if y_true is None else int(np.ravel(y_true)[0]), rescaling)

    oracle, X, known, _ = data(0)
    plain = LatentSVM(LaRank(random_state=0)).solve(oracle.bind(X, known))
    oracle, X, known, _ = data(0, kind=Reusing)
    assert LatentSVM(LaRank(random_state=0)).solve(oracle.bind(X, known)).weights.tobytes() == plain.weights.tobytes()


def test_check_oracle_tries_it():
    oracle, X, known, Y = data(0, metric=True)
    check_oracle(oracle, X, Y, known=known)
    check_oracle(oracle, X, Y)
    for make, message in [
        (lambda y, x, known, w: (y + 1) % 4, "returned another output where all of the true one was known"),
        (lambda y, x, known, w: np.ravel(known)[0], "has .*: return the best one that agrees"),
    ]:
        oracle, X, known, Y = wrong(make)
        with pytest.raises(OracleError, match=message):
            check_oracle(oracle, X, Y, known=known, n_trials=60)

    def writes(y, x, known, w):
        w[0] = 1.0
        return y

    oracle, X, known, Y = wrong(writes)
    with pytest.raises(OracleError, match=r"Wrong.complete \(example \d+\) modified the weights"):
        check_oracle(oracle, X, Y)
    rng = np.random.default_rng(0)
    oracle, X, known, Y = wrong(lambda y, x, known, w: int(rng.choice(oracle.candidates(known))))
    with pytest.raises(OracleError, match="returned two different outputs for the same weights"):
        check_oracle(oracle, X, Y, known=known, n_trials=60)
    with pytest.raises(ValueError, match="known has 3"):
        check_oracle(oracle, X, Y, known=known[:3])


class WrongSums(SummedCandidates):
    """Whose sums are changed by a function."""

    make = None

    def expect_known(self, x, known, w):
        found = super().expect_known(x, known, w)
        return found if self.make is None else self.make(*found)


class Narrow(SummedCandidates):
    """Forgets all candidates but the first."""

    def expect_known(self, x, known, w):
        return super().expect_known(x, self.candidates(known)[0], w)


class Wide(SummedCandidates):
    """Counts all classes twice where something is open."""

    def expect_known(self, x, known, w):
        if not isinstance(known, tuple):
            return super().expect_known(x, known, w)
        total, mean = self.expect(x, w)
        return total + np.log(2.0), mean


# --- sums over what agrees, of an oracle in Python --------------------------------------------------------


def log_sum(scores):
    """``(log-sum, probabilities, entropy)``."""
    total = scores.max() + np.log(np.exp(scores - scores.max()).sum())
    p = np.exp(scores - total)
    return total, p, total - p @ scores


def likelihood(oracle, x, known, w):
    """Loss, gradient and entropy of one example, by enumeration."""
    psi = np.array([oracle.dense(x, y) for y in range(oracle.n_classes)])
    agree = list(oracle.candidates(known))
    (total, p, entropy), (inside, q, entropy_inside) = log_sum(psi @ w), log_sum(psi[agree] @ w)
    return total - inside, p @ psi - q @ psi[agree], entropy - entropy_inside


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6))
def test_the_likelihood_of_what_is_known(seed):
    oracle, X, known, _ = data(seed, n=6, kind=SummedCandidates)
    known[0] = (0, 2)
    w = np.random.default_rng(seed).normal(size=oracle.n_features)
    problem = oracle.bind(X, known, rescaling=None)
    assert problem.offers == {"expectations", "completions", "marginals"}
    shards = [problem.shard(i, i + 1) for i in range(6)]
    for i, part in enumerate(shards):
        loss, slope, entropy = likelihood(oracle, X[i], known[i], w)
        for found, found_entropy, gradient in (problem.expect(i, w), part.expect(0, w)):
            assert (found, found_entropy) == pytest.approx((loss, entropy), abs=1e-9)
            assert gradient == pytest.approx(slope, abs=1e-6)  # moments are float32
    completed = problem.with_targets(completions(problem, w))
    assert completed.offers == {"expectations", "completions", "constraints"}
    assert completed.fingerprint() == problem.fingerprint()


def test_training_on_the_likelihood_of_what_is_known():
    """Ends where the gradient vanishes; of an oracle that cannot complete, too."""

    class Uncompleted(SummedCandidates):
        complete = structsvm.Oracle.complete

    oracle, X, known, _ = data(2, kind=SummedCandidates)
    run = ConditionalLikelihood(1.0, max_iter=300, random_state=0).solve(oracle.bind(X, known, rescaling=None))
    found = [likelihood(oracle, x, k, run.weights) for x, k in zip(X, known, strict=True)]
    gradient = run.weights + sum(slope for _, slope, _ in found)
    assert run.primal == pytest.approx(0.5 * run.weights @ run.weights + sum(loss for loss, _, _ in found), rel=1e-6)
    assert np.linalg.norm(gradient) < 0.02
    other, X, known, _ = data(2, kind=Uncompleted)
    problem = other.bind(X, known, rescaling=None)
    assert problem.offers == {"expectations", "marginals"}
    short = ConditionalLikelihood(1.0, max_iter=20, random_state=0)
    same = short.solve(oracle.bind(X, known, rescaling=None))
    assert short.solve(problem).weights.tobytes() == same.weights.tobytes()
    assert problem.fingerprint() == other.bind(X, known).fingerprint() != other.bind(X, known[::-1]).fingerprint()
    with pytest.raises(ValueError, match="known in part, which LatentSVM trains on"):
        LaRank().solve(oracle.bind(X, known))
    # A soft start is that likelihood's.
    run = LatentSVM(LaRank(C=0.3, random_state=0), start="soft").solve(oracle.bind(X, known))
    assert run.status == "settled" and run.joined == 1


def test_sums_where_all_is_known_change_nothing():
    oracle, X, _, Y = data(3, kind=SummedCandidates)
    plain, _, _, _ = data(3, kind=SoftCandidates)
    problem = oracle.bind(X, Y, rescaling=None)
    assert problem.offers == {"expectations", "completions", "constraints"}
    run, ordinary = (
        ConditionalLikelihood(random_state=0).solve(p) for p in (problem, plain.bind(X, Y, rescaling=None))
    )
    assert run.weights.tobytes() == ordinary.weights.tobytes()
    assert (run.primal, run.dual) == (ordinary.primal, ordinary.dual)


def test_sums_that_cannot_be():
    """Sums that the adapter refuses and that check_oracle finds."""
    oracle, X, known, Y = data(4, kind=SummedCandidates, metric=True)
    check_oracle(oracle, X, Y, known=known)
    oracle, X, known, Y = data(4, kind=WrongSums, metric=True)
    known[0] = (0, 2)
    problem, w = oracle.bind(X, known, rescaling=None), np.zeros(oracle.n_features)
    for make, asked, refused, found in [
        (lambda s, mean: (s + 2.0, mean), "expect .*that of what agrees is", None, "it alone agrees"),
        (lambda s, mean: (np.nan, mean), "expect_known .*the log-sum nan", "the log-sum nan", "the log-sum nan"),
        (lambda s, mean: (s, 2.0 * mean), None, None, "is not the log-sum's gradient"),
        (lambda s, mean: s, "expect_known .*expected \\(log_sum", "expected .log_sum", "expected .log_sum"),
    ]:
        oracle.make = None
        assert "marginals" in problem.offers
        oracle.make = make
        if asked is not None:
            with pytest.raises(OracleError, match=asked):
                problem.expect(0, w)
        if refused is not None:
            with pytest.raises(OracleError, match=refused):
                _ = oracle.bind(X, known).offers
        with pytest.raises(OracleError, match=found):
            check_oracle(oracle, X, Y, known=known)

    for kind, message in [(Narrow, "over all outputs that agree"), (Wide, "all outputs together have")]:
        oracle, X, known, Y = data(4, kind=kind, metric=True)
        with pytest.raises(OracleError, match=message):
            check_oracle(oracle, X, Y, known=known, n_trials=60)
    with pytest.raises(NotImplementedError, match="Multiclass does not implement expect_known, the verb"):
        Multiclass(2, 2).expect_known(X[0], 0, w)


# --- completions in the step ----------------------------------------------------------------------------

STEPS = ["larank", "slack", "quadratic", "adaptive", "passive aggressive", "gap sampling"]
IN_STEPS = pytest.mark.parametrize("solver", [clone(SOLVERS[name]) for name in STEPS], ids=STEPS)


class Passes(Monitor):
    """Watch passes: passes left whose steps complete, and how many examples have another completion after it."""

    def __init__(self):
        self.left, self.objectives = [], Objectives()

    def begin_pass(self, run):
        assert run.completes == (len(run.state.changed) > 0)
        self.left.append(run.online)

    def end_pass(self, run):
        return self.objectives.end_pass(run)


@IN_STEPS
def test_steps_that_complete(solver):
    """First come passes that complete in their steps, at most 20; then rounds, whose objective never rises."""
    most = 0
    for seed in range(2):
        oracle, X, known, _ = data(seed, whole=0.1)
        watch = Passes()
        run = LatentSVM(solver, online=True).solve(bound(solver, oracle, X, known), monitor=watch)
        left = np.array(watch.left)
        assert left[0] == 20 and run.online == 0
        assert (np.diff(left) <= 0).all()
        assert (np.diff([*watch.objectives.found, run.primal]) <= 0.0).all()
        assert run.status in ("converged", "settled", "max_iter") and run.dual <= run.primal * (1.0 + 1e-6)
        completed = run.problem.targets[1].tolist()
        assert all(c in oracle.candidates(k) for c, k in zip(completed, known, strict=True))
        if solver.rescaling == "margin" and solver.formulation()["penalty"] == "linear":
            assert run.primal == pytest.approx(objective(oracle, X, known, run.weights, 0.3, completed=completed))
        most = max(most, int((left < 20).sum()))
    assert most > 0


def test_steps_end_where_rounds_do():
    """With one optimum: of each example one candidate is good, and the same one whatever the others are."""
    rng = np.random.default_rng(0)
    Y = rng.integers(4, size=30)
    X = 3.0 * np.eye(4)[Y] + 0.3 * rng.normal(size=(30, 4))
    oracle, known = Candidates(4, 4), [tuple({int(y), int(rng.integers(4))}) for y in Y]
    solver = LaRank(C=0.3, tol=1e-4, random_state=0)
    rounds, steps = (LatentSVM(solver, online=online).solve(oracle.bind(X, known)) for online in (False, True))
    assert rounds.problem.targets[1].tolist() == steps.problem.targets[1].tolist() == Y.tolist()
    assert steps.primal == pytest.approx(rounds.primal, rel=2e-4)


@IN_STEPS
@pytest.mark.parametrize("start", ["uniform", "random"])
def test_steps_where_all_is_known(solver, start):
    oracle, X, _, Y = data(1)
    ordinary = clone(solver).solve(bound(solver, oracle, X, Y))
    run = LatentSVM(clone(solver), start=start, online=True).solve(bound(solver, oracle, X, Y))
    assert run.weights.tobytes() == ordinary.weights.tobytes()
    assert (run.primal, run.dual, run.n_iter) == (ordinary.primal, ordinary.dual, ordinary.n_iter)


def test_each_step_completes_once():
    oracle, X, known, _ = data(3, kind=Counting)
    run = LatentSVM(LaRank(C=0.3, random_state=0, n_reprocess=0), online=True, start="random").start(
        oracle.bind(X, known)
    )
    before, calls = oracle.n_complete, len(oracle.calls)
    while not run.inner.advance():
        pass
    assert oracle.n_complete - before == len(X) == len(oracle.calls) - calls
    assert run.state.changed.any()


@IN_STEPS
def test_steps_resume_bit_for_bit(solver, tmp_path):
    oracle, X, known, _ = data(7, whole=0.1)

    def latent(**params):
        return LatentSVM(clone(solver).set_params(**params), online=True, start="random")

    watch = Passes()
    whole = latent().solve(bound(solver, oracle, X, known), monitor=watch)
    n_online = int((np.array(watch.left) > 0).sum())

    class Stop(Monitor):
        def __init__(self, after):
            self.after = after

        def end_pass(self, run):
            return run.n_iter >= self.after

    for after in {1, n_online}:
        stored = latent(checkpoint=tmp_path / f"run{after}")
        half = stored.solve(bound(solver, oracle, X, known), monitor=Stop(after))
        assert half.dual <= half.primal * (1.0 + 1e-6)
        again = stored.solve(bound(solver, oracle, X, known))
        assert again.weights.tobytes() == whole.weights.tobytes(), after
        assert (again.primal, again.n_iter, again.round) == (whole.primal, whole.n_iter, whole.round), after


def test_ctrl_c_among_steps():
    """State learnt from completions that are not those of the pass's begin is left out."""

    class Impatient(Candidates):
        left = 10**9

        def complete(self, x, known, w):
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt
            return super().complete(x, known, w)

    oracle, X, known, _ = data(5, n=40, whole=0.0, kind=Impatient)
    for after in (1, 20, 39, 60):
        problem = oracle.bind(X, known)
        solver = LatentSVM(LaRank(C=0.3, random_state=0), online=True, start="random")
        run = solver.start(problem)
        oracle.left = after
        solver.solve(problem, run=run)
        assert run.status == "interrupted" and run.completes
        before = run.state.dual
        assert run.state.settle() == pytest.approx(before)
        again = solver.start(problem)
        again.set_state(run.get_state())
        assert again.completes and again.dual <= again.primal_at(again.weights)
        again.set_state(run.get_state(), adapt=True)
        assert solver.solve(problem, run=again).status == "settled"
        assert solver.solve(problem, run=run).status == "settled"


def test_jobs_make_no_difference_to_steps():
    oracle, X, known, _ = data(5, n=40, whole=0.1)
    one, two = (
        LatentSVM(LaRank(C=0.3, random_state=0, n_jobs=n_jobs), online=True).solve(oracle.bind(X, known))
        for n_jobs in (1, 2)
    )
    assert one.weights.tobytes() == two.weights.tobytes()


def test_steps_pass_over_what_weighs_nothing():
    oracle, X, known, _ = data(6, n=40, whole=0.0)
    weight = np.arange(40) % 2.0
    run = LatentSVM(LaRank(C=0.3, random_state=0), online=True, start="random").start(
        oracle.bind(X, known), sample_weight=weight
    )
    while not run.inner.advance():
        pass
    assert run.state.changed.any() and not run.state.changed[weight == 0.0].any()


# --- the soft start -----------------------------------------------------------------------------------


def bags(seed=0, n=40, n_labels=5):
    """Rows whose label is one of two or three: as "max" of a bag has them."""
    rng = np.random.default_rng(seed)
    y = rng.integers(n_labels, size=n)
    X = 2.0 * np.eye(n_labels)[y] + rng.normal(size=(n, n_labels))
    sets = [{int(k), *rng.integers(n_labels, size=2).tolist()} for k in y]
    return AmbiguousOracle(n_labels, n_labels, "max").bind(X, sets)


def test_a_soft_start_completes_by_the_likelihood():
    """Its passes and oracle calls are those of the likelihood; the first completions are under its weights."""
    for seed in range(5):
        problem, watch = bags(seed), Objectives()
        solver = LatentSVM(LaRank(C=0.3, tol=1e-3, random_state=0), start="soft", tol=0.0)
        run = solver.start(problem)
        likelihood = ConditionalLikelihood(0.3, random_state=run.seed).start(problem)
        while not likelihood.is_near:
            likelihood.advance()
        while run.is_soft:
            run.advance()
        assert run.n_iter == likelihood.n_iter > 1
        np.testing.assert_array_equal(run.under, likelihood.weights)
        np.testing.assert_array_equal(run.problem.targets[1], completions(problem, likelihood.weights)[1])
        run = solver.solve(problem, monitor=watch)
        assert (run.status, run.joined) == ("converged", 1)
        assert (np.diff([*watch.found, run.primal]) <= 0.0).all()


@pytest.mark.parametrize("after", [-7, -1, 0, 1])
def test_a_soft_start_resumes_bit_for_bit(after, tmp_path):
    """Stopped so many passes after its last one with the likelihood."""
    problem, path = bags(), tmp_path / "run"
    solver = LatentSVM(LaRank(C=0.3, random_state=0), start="soft")
    soft = solver.start(problem)
    while soft.is_soft:
        soft.advance()

    class Stop(Monitor):
        def end_pass(self, run):
            return run.n_iter >= soft.n_iter + after

    whole = solver.solve(problem)
    stored = LatentSVM(LaRank(C=0.3, random_state=0, checkpoint=path), start="soft")
    half = stored.solve(problem, monitor=Stop())
    assert half.is_soft == (after < 0) and half.n_iter == soft.n_iter + after > 0
    again = stored.solve(problem)
    assert again.weights.tobytes() == whole.weights.tobytes()
    assert (again.n_iter, again.primal, again.round) == (whole.n_iter, whole.primal, whole.round)


def test_soft_starts_where_there_are_no_sums():
    ordinary = LaRank(C=0.3, random_state=0).solve(bags_known())
    latent = LatentSVM(LaRank(C=0.3, random_state=0), start="soft").solve(bags_known())
    assert latent.weights.tobytes() == ordinary.weights.tobytes()
    with pytest.raises(ValueError, match="LatentSVM with start='soft' needs a margin and a problem with sums"):
        LatentSVM(ConditionalLikelihood(), start="soft").check(bags_of_log())


def bags_known():
    return AmbiguousOracle(3, 3, "max").bind(np.eye(3), [{0}, {1}, {2}])


def bags_of_log():
    return TaxonomyOracle(Taxonomy.flat("abc"), 3).bind(np.eye(3), [{0, 1}, 1, 2], rescaling=None)
