"""Claims with exact, relaxed and approximate inference."""

from functools import cache

import numpy as np
import pytest
from dual_reference import primal, solve_dual, solve_primal
from hypothesis import given, settings
from hypothesis import strategies as st
from python_oracles import Data, Multiclass, Triangle

from structsvm import (
    CuttingPlane,
    FrankWolfe,
    LaRank,
    LatentSVM,
    OracleError,
    PassiveAggressive,
    PathSearch,
    StructuredSVM,
)
from structsvm.result import Result
from structsvm.solvers import ConditionalLikelihood
from structsvm.testing import check_oracle

SOLVERS = [
    LaRank(tol=1e-4, random_state=0),
    CuttingPlane(tol=1e-4, random_state=0),
    CuttingPlane(tol=1e-4, form="one_slack", random_state=0),
    FrankWolfe(tol=1e-3, random_state=0),
]
each_solver = pytest.mark.parametrize("solver", SOLVERS, ids=["LaRank", "n_slack", "one_slack", "FrankWolfe"])


def triangles(seed, n=6, inference="relaxed"):
    rng = np.random.default_rng(seed)
    oracle = Triangle(2, inference)
    X = rng.normal(size=(n, 3, 2))
    return oracle, list(X), [oracle.labelling(y) for y in rng.integers(0, 2, (n, 3)).astype(float)]


class Lazy(Multiclass):
    """A search that looks at every second class only, and at the true one."""

    inference = "approximate"

    def argmax(self, x, w, y_true=None, rescaling=None):
        if y_true is None:
            return super().argmax(x, w)
        seen = [*range(0, self.n_classes, 2), y_true]
        return max(seen, key=lambda y: self.value(x, w, y_true, rescaling, y))


def lazy(seed, n=12):
    made = Data(seed, n=n, n_classes=5)
    made.oracle = Lazy(5, 4, costs=made.oracle.costs)
    return made


# ---- relaxed ------------------------------------------------------------------------------------


@cache
def relaxed_optimum(seed, n):
    oracle, X, Y = triangles(seed, n)
    constraints = oracle.constraints(X, Y, oracle.corners)
    return solve_primal(constraints, 1.0, "linear"), constraints, oracle.constraints(X, Y, oracle.whole)


@each_solver
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_relaxed_problem_is_solved_and_certified(solver, seed):
    oracle, X, Y = triangles(seed, n=5)
    run = solver.solve(oracle.bind(X, Y))
    optimum, constraints, whole = relaxed_optimum(seed, 5)
    room = 1e-5 * (1.0 + optimum)
    assert run.status == "converged"
    assert run.dual - room <= optimum <= run.primal + room
    # The true objective at w is not above the relaxed one, which is what is certified.
    assert primal(run.weights, whole, 1.0, "linear") <= run.primal + room
    assert run.primal == pytest.approx(primal(run.weights, constraints, 1.0, "linear"))


def test_fractional_outputs_are_cuts_too():
    """Three nodes that repel each other may all be on by halves."""
    rng = np.random.default_rng(0)
    oracle, X = Triangle(1), list(np.abs(rng.normal(size=(12, 3, 1))))
    Y = [oracle.labelling(np.eye(3)[int(np.argmax(x))]) for x in X]
    relaxed = CuttingPlane(C=10.0, tol=1e-4, random_state=0).solve(oracle.bind(X, Y))
    whole = CuttingPlane(C=10.0, tol=1e-4, random_state=0).solve(Triangle(1, "exact").bind(X, Y))
    assert relaxed.dual > 1.2 * whole.primal


def test_what_a_relaxed_certificate_says():
    oracle, X, Y = triangles(1)
    result = StructuredSVM(oracle, CuttingPlane(random_state=0)).fit(X, Y).result_
    assert result.inference == "relaxed" and result.gap >= 0.0 and np.isnan(result.primal_found)
    assert f"gap {result.gap:.3g}" in result.certificate()
    assert "of the relaxed problem, whose primal is not below the true one" in result.certificate()


def test_check_oracle_knows_relaxed_inference():
    check_oracle(*triangles(2))

    class Rounded(Triangle):
        """Inference over the labellings alone in training."""

        def argmax(self, x, w, y_true=None, rescaling=None):
            self.allow(self.corners if y_true is None else self.whole)
            return super().argmax(x, w, y_true, rescaling)

    X, Y = [np.ones((3, 2))], [Triangle(2).whole[1]]
    with pytest.raises(OracleError, match=r"Rounded.argmax \(example 0\).* returned an output with the margin-resc"):
        check_oracle(Rounded(2), X, Y, n_trials=40, random_state=7)


# ---- approximate --------------------------------------------------------------------------------


@each_solver
@settings(max_examples=6)
@given(seed=st.integers(0, 10**6))
def test_what_holds_with_approximate_inference(solver, seed):
    made = lazy(seed, n=8)
    run = solver.solve(made.oracle.bind(made.X, made.Y))
    constraints, C = made.oracle.constraints(made.X, made.Y, "margin"), np.ones(8)
    optimum = solve_dual(constraints, C, "linear")
    assert run.status == "settled" and np.isnan(run.primal)
    assert run.dual <= optimum * (1.0 + 1e-6)
    assert run.dual <= run.primal_found <= primal(run.weights, constraints, C, "linear") * (1.0 + 1e-9)
    assert run.remaining <= solver.tol


@pytest.mark.parametrize(
    "solver", [LaRank(), CuttingPlane(), CuttingPlane(form="one_slack"), FrankWolfe(), PassiveAggressive()]
)
def test_defaults_train(solver):
    made = lazy(1)
    model = StructuredSVM(made.oracle, solver).fit(made.X, made.Y)
    said = model.result_.certificate()
    assert f"dual {model.result_.dual:.6g}, primal at least {model.result_.primal_found:.6g}" in said
    assert "no duality gap claimed: inference is approximate" in said
    assert Result.from_dict(model.result_.to_dict(), {}).certificate() == said


def test_constraints_that_are_known_count():
    """Where the search misses a constraint that it once found, what is found does not fall below the dual."""
    made = lazy(2)
    solver = CuttingPlane(tol=None, max_iter=5, random_state=0)
    run = solver.solve(made.oracle.bind(made.X, made.Y))
    made.oracle.argmax = lambda x, w, y_true=None, rescaling=None: y_true
    run.schedule.answers = None
    run.certify()
    assert run.primal_found >= run.dual > 0.0


def test_latent_training_with_approximate_inference():
    class Sets(Lazy):
        def complete(self, x, known, w):
            known = {known} if isinstance(known, int) else known
            return max(sorted(known), key=lambda y: float(self.dense(x, y) @ w))

    made = lazy(3)
    oracle = Sets(5, 4)
    known = [{y, (y + 2) % 5} for y in made.Y]
    result = LatentSVM(CuttingPlane(random_state=0)).solve(oracle.bind(made.X, known)).result()
    assert np.isnan(result.gap) and result.dual > 0.0 and result.inference == "approximate"


def test_who_needs_a_gap_says_so():
    class Field(Lazy):
        def expect(self, x, w):
            return 0.0, np.zeros(self.n_features)

    made = lazy(0)
    message = r"ConditionalLikelihood with tol=0\.1 needs a duality gap, and the inference of Field is approximate"
    with pytest.raises(ValueError, match=message):
        StructuredSVM(Field(5, 4), ConditionalLikelihood(tol=0.1)).fit(made.X, made.Y)
    with pytest.raises(ValueError, match="PathSearch needs a duality gap"):
        PathSearch(StructuredSVM(made.oracle, CuttingPlane())).fit(made.X, made.Y)


# ---- how it is declared -------------------------------------------------------------------------


def test_inference_must_be_known():
    made = Data(0)
    made.oracle.inference = "greedy"
    message = "Multiclass.inference must be one of exact, relaxed, approximate, got 'greedy'"
    with pytest.raises(OracleError, match=message):
        made.bind()
    with pytest.raises(OracleError, match=message):
        check_oracle(made.oracle, made.X, made.Y)
    with pytest.raises(ValueError, match="a result whose inference is 'greedy'"):
        Result.from_dict(Result(1.0, 1.0, 0.0, 1, 1, 1, 1.0, "converged", inference="greedy").to_dict(), {})


def test_what_version_0_1_declared():
    with pytest.warns(DeprecationWarning, match=r"Old.is_exact = False is deprecated: set inference = 'approximate'"):

        class Old(Multiclass):
            is_exact = False

    class Younger(Old):
        pass

    class Searches:
        is_exact = False

    with pytest.warns(DeprecationWarning, match="Mixed.is_exact = False"):

        class Mixed(Searches, Multiclass):
            pass

    for kind in (Old, Younger, Mixed):
        assert kind(3, 4).inference == "approximate" and not kind(3, 4).is_exact
    oracle = Multiclass(3, 4)
    assert oracle.is_exact
    with pytest.warns(DeprecationWarning, match=r"Multiclass.is_exact = False"):
        oracle.is_exact = False
    assert oracle.inference == "approximate" and not oracle.is_exact
    with pytest.raises(TypeError, match=r"Odd.is_exact is .*: set inference to one of"):
        type("Odd", (Multiclass,), {"is_exact": property(lambda self: False)})
