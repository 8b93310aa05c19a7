"""Needs of solvers and offers of problems, steps of schedules and states: a mismatch is refused before the run."""

import copy

import numpy as np
import pytest
from python_oracles import Data, Logistic
from scipy.sparse import csr_array

from structsvm._problem import BoundProblem, Problem
from structsvm.dual._dual import DualState
from structsvm.dual._expectations import ExpectationState
from structsvm.dual._schedules import (
    AdaptiveSchedule,
    FixedSchedule,
    FrankWolfeSchedule,
    SolveSchedule,
    SubgradientSchedule,
)
from structsvm.dual._state import State
from structsvm.dual._weights import WeightState
from structsvm.kernel._full_gradient import FullGradient
from structsvm.kernel._huller import HullerState
from structsvm.kernel._kernel_dual import KernelDual, WorkingSetSchedule
from structsvm.kernel._kernel_perceptron import KernelPerceptronState
from structsvm.kernel._kernels import Gram, Kernel, Rows
from structsvm.kernel._lasvm import LaSVMState, OnlineSchedule
from structsvm.kernel.problem import KernelProblem
from structsvm.kernel.support_vectors import SupportVectors
from structsvm.linear._gradient_descent import GradientDescent
from structsvm.linear._tracking import TrackingState
from structsvm.linear.problem import LinearProblem
from structsvm.progress import Monitor
from structsvm.solvers import (
    SGDQN,
    ConditionalLikelihood,
    CrammerSinger,
    CuttingPlane,
    ElasticLikelihood,
    FrankWolfe,
    Huller,
    KernelLaRank,
    KernelPerceptron,
    LaRank,
    LaSVM,
    Pairwise,
    PassiveAggressive,
    Perceptron,
    SparseLikelihood,
    Tracking,
    WestonWatkins,
)

X = np.random.default_rng(0).normal(size=(12, 3))
KERNEL = ["KernelLaRank", "KernelPerceptron", "CrammerSinger", "WestonWatkins", "Pairwise", "LaSVM", "Huller"]
CONSTRAINTS = ["LaRank", "CuttingPlane", "FrankWolfe", "PassiveAggressive", "Perceptron"]
SOLVERS = {
    kind.__name__: kind
    for kind in (
        LaRank,
        CuttingPlane,
        FrankWolfe,
        PassiveAggressive,
        Perceptron,
        KernelLaRank,
        KernelPerceptron,
        CrammerSinger,
        WestonWatkins,
        Pairwise,
        LaSVM,
        Huller,
        SGDQN,
        Tracking,
        ConditionalLikelihood,
        SparseLikelihood,
        ElasticLikelihood,
    )
}
LINEAR = ["SGDQN", "Tracking"]
LIKELIHOODS = ["ConditionalLikelihood", "SparseLikelihood", "ElasticLikelihood"]


def gram():
    return Gram(Kernel("rbf", gamma=0.5), Rows(X))


def problems(name):
    n = 2 if "two" in name else 3
    y = np.arange(12) % n
    if name == "constraints":
        return Data(0, penalty="linear").bind()
    if name == "expectations":
        data = Data(0)
        return Logistic(3, 4).bind(data.X, data.Y, rescaling=None)
    if "rows" in name:
        return LinearProblem(Rows(csr_array(X) if "sparse" in name else X), y, n)
    loss = 1.0 - np.eye(n) if "loss" in name else None
    attributes = csr_array(np.eye(n)) if "similar" in name else None
    return KernelProblem(gram(), y, n, loss=loss, attributes=attributes)


# Offers that each problem lacks; a problem that a solver is not named with has all that it needs.
MISSING = {
    "expectations": dict.fromkeys(["KernelLaRank", "KernelPerceptron"], "kernel")
    | dict.fromkeys(["LaSVM", "Huller"], "two classes")
    | dict.fromkeys(["CrammerSinger", "WestonWatkins", "Pairwise"], "independent labels")
    | {"SGDQN": "feature rows", "Tracking": "dense rows"},
    "constraints": dict.fromkeys(["KernelLaRank", "KernelPerceptron"], "kernel")
    | dict.fromkeys(["LaSVM", "Huller"], "two classes")
    | dict.fromkeys(["CrammerSinger", "WestonWatkins", "Pairwise"], "independent labels")
    | {"SGDQN": "feature rows", "Tracking": "dense rows"},
    "rows": dict.fromkeys(CONSTRAINTS, "constraints") | dict.fromkeys(KERNEL, "kernel") | {"Tracking": "two classes"},
    "rows of two": dict.fromkeys(CONSTRAINTS, "constraints") | dict.fromkeys(KERNEL, "kernel"),
    "sparse rows of two": dict.fromkeys(CONSTRAINTS, "constraints")
    | dict.fromkeys(KERNEL, "kernel")
    | {"Tracking": "dense rows"},
    "three": dict.fromkeys(CONSTRAINTS, "constraints")
    | dict.fromkeys(["LaSVM", "Huller"], "two classes")
    | {"SGDQN": "feature rows", "Tracking": "dense rows"},
    "two": dict.fromkeys(CONSTRAINTS, "constraints") | {"SGDQN": "feature rows", "Tracking": "dense rows"},
    "two, loss": dict.fromkeys(["CrammerSinger", "WestonWatkins", "Pairwise", "LaSVM", "Huller"], "zero-one loss"),
    "two, similar": dict.fromkeys(
        ["CrammerSinger", "WestonWatkins", "Pairwise", "LaSVM", "Huller", "KernelPerceptron"], "independent labels"
    ),
}
for lacking in MISSING.keys() - {"expectations"}:
    MISSING[lacking] |= dict.fromkeys(LIKELIHOODS, "expectations")


class Untouched(Monitor):
    def begin_pass(self, run):
        raise AssertionError("a pass has begun")


@pytest.mark.parametrize(
    ("solver", "problem", "missing"),
    [(solver, problem, missing) for problem, solvers in MISSING.items() for solver, missing in solvers.items()],
)
def test_what_is_missing_is_named_before_the_run(solver, problem, missing):
    found = problems(problem)
    message = rf"^{solver} needs a problem with .*{missing}.*; this {found.owner} does not offer .*{missing}"
    with pytest.raises(ValueError, match=message):
        SOLVERS[solver]().solve(found, monitor=Untouched())


@pytest.mark.parametrize(
    ("solver", "problem"),
    [
        (solver, problem)
        for problem, solvers in MISSING.items()
        for solver in SOLVERS
        if solver not in solvers and not (problem.startswith("two, ") and solver in [*CONSTRAINTS, *LINEAR])
        if problem != "expectations" or solver in LIKELIHOODS  # the others want another formulation
    ],
)
def test_what_is_offered_is_enough(solver, problem):
    found = problems(problem)
    if solver == "Perceptron":
        found = Data(0).perceptron()
    SOLVERS[solver]().check(found)
    run = SOLVERS[solver]().start(found)
    assert run.advance(10.0)


def test_an_oracle_is_no_problem():
    with pytest.raises(TypeError, match=r"^LaRank solves a bound problem, got Multiclass; see Oracle\.bind"):
        LaRank().solve(Data(0).oracle)


def test_every_problem_declares():
    for name in MISSING:
        problem = problems(name)
        assert isinstance(problem, BoundProblem)
        assert isinstance(problem, Problem) == ("constraints" in problem.offers)


def test_a_problem_is_copied_with_what_it_offers():
    problem = problems("two, loss")
    again = copy.copy(problem)
    assert (again.n_samples, again.n_features, again.inference) == (12, 3, "exact")
    assert again.gram is problem.gram and again.offers == problem.offers


# ---- steps --------------------------------------------------------------------------------------


def states():
    y, ones = (np.arange(12) % 2).astype(np.int32), np.ones(12)
    problem = Data(0, penalty="linear").bind()
    return [
        WeightState(Data(0).perceptron()),
        DualState(problem, np.ones(problem.n_samples)),
        KernelDual(gram(), y, ones, 2),
        KernelPerceptronState(gram(), y, 2),
        FullGradient(gram(), y, ones, 2),
        LaSVMState(gram(), y, ones),
        HullerState(gram(), y, ones),
        GradientDescent(Rows(X), y, 2, ones, ridge=0.1, t0=10.0),
        TrackingState(X, y, ones),
        ExpectationState(problems("expectations"), np.ones(7)),
    ]


SCHEDULES = {
    "subgradient": (SubgradientSchedule, {"subgradient_step"}),
    "new": (lambda state: FixedSchedule(state, 0, 0), {"process_new"}),
    "new, old": (lambda state: FixedSchedule(state, 0.5, 0), {"process_new", "process_old"}),
    "new, optimize": (lambda state: FixedSchedule(state, 0, 2), {"process_new", "optimize"}),
    "adaptive": (AdaptiveSchedule, {"process_new", "process_old", "optimize"}),
    "solve": (lambda state: SolveSchedule(state, 0), {"solve_example"}),
    "solve, old": (lambda state: SolveSchedule(state, 1), {"solve_example", "solve_old"}),
    "corners": (FrankWolfeSchedule, {"corner_step"}),
    "known corners": (lambda state: FrankWolfeSchedule(state, n_cached=2), {"corner_step", "known_corner_step"}),
}


@pytest.mark.parametrize("state", states(), ids=lambda state: type(state).__name__)
@pytest.mark.parametrize("name", SCHEDULES)
def test_a_schedule_takes_the_states_that_have_its_steps(name, state):
    """And no others; what a state declares, it does."""
    make, needed = SCHEDULES[name]
    missing = sorted(needed - state.steps)
    if missing:
        with pytest.raises(TypeError, match=f"needs a state with {', '.join(missing)}; {type(state).__name__} has "):
            make(state)
        return
    schedule = make(state)
    for _ in range(3):
        schedule.start_pass()
        assert schedule.run(np.inf)
    assert state.n_visits > 0


def test_schedules_of_one_machine():
    _, dual, kernel, _, _, lasvm, *_ = states()
    assert WorkingSetSchedule(kernel).n_samples == OnlineSchedule(lasvm).n_samples == 12
    for make, other in ((WorkingSetSchedule, dual), (OnlineSchedule, kernel)):
        with pytest.raises(TypeError, match="has incorrect type"):
            make(other)
    with pytest.raises(TypeError, match="State has no steps"):
        SolveSchedule(State(), 0)


# ---- what runs return ---------------------------------------------------------------------------


def test_weights_are_arrays_and_expansions_are_support_vectors():
    for solver in CONSTRAINTS:
        problem = Data(0).perceptron() if solver == "Perceptron" else problems("constraints")
        run = SOLVERS[solver](max_iter=1).start(problem)
        assert run.weights.shape == (problem.n_features,)
        assert not hasattr(run, "support_vectors")
    assert SGDQN(max_iter=1).start(problems("rows")).weights.shape == (3, 4)
    for solver in KERNEL:
        run = SOLVERS[solver]().start(problems("two"))
        run.advance(10.0)
        vectors = run.support_vectors
        assert isinstance(vectors, SupportVectors)
        assert len(vectors.slots) == len(vectors.labels) == len(vectors.beta) >= run.n_support > 0
        assert vectors.members[vectors.slots].max() < 12
        assert not hasattr(run, "weights")
        assert run.intercept.shape == ((2, 2) if solver == "Pairwise" else (2,))


# Parameters that solvers of the dual have in common, and those that one of them lacks: a quadratic penalty leaves
# Frank and Wolfe no corner to go to, and a likelihood has no slacks. To resume is for estimators, by `warm_start`.
SHARED = ("C", "rescaling", "penalty", "max_iter", "tol", "random_state", "n_jobs", "checkpoint")
LACKING = {"FrankWolfe": {"penalty"}} | dict.fromkeys(LIKELIHOODS, frozenset({"rescaling", "penalty"}))


@pytest.mark.parametrize("name", ["LaRank", "CuttingPlane", "PassiveAggressive", *LACKING])
def test_parameters_of_the_dual_are_there_or_refused_by_name(name):
    kind = SOLVERS[name]
    lacking = set(SHARED) - set(kind.parameter_names())
    assert lacking == LACKING.get(name, set())
    for parameter in (*lacking, "warm_start"):
        with pytest.raises(TypeError, match=rf"{name}\.__init__\(\) got an unexpected keyword argument '{parameter}'"):
            kind(**{parameter: "quadratic"})
        with pytest.raises(ValueError, match=f"{name} has no parameter '{parameter}'"):
            kind().set_params(**{parameter: "quadratic"})
