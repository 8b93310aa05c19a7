"""Batch solvers that are named end as LaRank does, by counts of calls of the oracle."""

import pytest
from cases import TABLE

from structsvm import CuttingPlane, FrankWolfe, tasks
from structsvm.tasks.common.solver import Settings, make_solver

BATCH = {"cutting_plane": CuttingPlane, "frank_wolfe": FrankWolfe}
SOLVED = tasks.Ranker, tasks.MultivariateClassifier  # they close the gap, whatever the solver

# Calls as a multiple of LaRank's, at most: its passes are few where parsers fix them, at gaps that stay wide.
MOST, MOST_OF_PARSERS = 6, 11


def takes_names(case):
    """Whether an estimator takes the names of these solvers, and its case maximises the dual of a margin."""
    model = case.make()
    is_margin = not getattr(model, "kernel", None) and getattr(model, "loss", None) != "log"
    return is_margin and getattr(model, "solver", None) == "larank" and not isinstance(model, SOLVED)


NAMED = [name for name, case in TABLE.items() if takes_names(case)]


@pytest.mark.filterwarnings("ignore::structsvm.ConvergenceWarning", "ignore::structsvm.AdviceWarning")
@pytest.mark.parametrize("solver", BATCH)
@pytest.mark.parametrize("C", [0.1, 10.0])
@pytest.mark.parametrize("name", NAMED)
def test_calls_of_the_oracle(name, C, solver):
    case = TABLE[name]
    calls, of_larank = (case.fit(C=C, solver=each).result_.n_argmax for each in (solver, "larank"))
    assert calls <= (MOST_OF_PARSERS if case.kind is tasks.DependencyParser else MOST) * of_larank


def named(solver, closes_gap=False, **given):
    usual = {"loss": "hamming", "C": 1.0, "max_iter": None, "tol": None, "random_state": 0, "checkpoint": None}
    made = make_solver(Settings(**usual | {"solver": solver} | given), closes_gap=closes_gap)
    return made.max_iter, made.tol


@pytest.mark.parametrize(("solver", "kind"), BATCH.items())
def test_a_limit_that_is_given_rules(solver, kind):
    own = kind()
    assert named(solver) == (None, None)
    assert named(solver, max_iter=7) == (7, own.tol)
    assert named(solver, tol=0.3) == (own.max_iter, 0.3)
    assert named(solver, closes_gap=True) == (own.max_iter, own.tol)
