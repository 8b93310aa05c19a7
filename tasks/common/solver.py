"""The solver of a task's parameters: a name, to which the common parameters apply, or an object.

The parameters are read as attributes: of an estimator, or of the command line's settings. Model files
store a solver by its name and parameters, so a loaded model trains as before.
"""

from __future__ import annotations

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

from structsvm import solvers
from structsvm.kernel.parameters import leaves_gamma
from structsvm.parameters import plain
from structsvm.solvers import (
    ConditionalLikelihood,
    CuttingPlane,
    ElasticLikelihood,
    FrankWolfe,
    LaRank,
    LatentSVM,
    PassiveAggressive,
    Perceptron,
    Solver,
    SparseLikelihood,
)

SOLVERS = {
    "larank": LaRank,
    "cutting_plane": CuttingPlane,
    "frank_wolfe": FrankWolfe,
    "passive_aggressive": PassiveAggressive,
    "perceptron": Perceptron,
}
# Solvers of the log loss by name, beside the usual one.
LIKELIHOODS = {"sparse_likelihood": SparseLikelihood, "elastic_likelihood": ElasticLikelihood}
DEFAULT_C = 0.1
LOG_C = 1.0  # for loss="log"
# Parameters that say when training ends.
LIMITS = ("max_iter", "tol")
# The value of C that has it chosen on the training data.
AUTO = "auto"
# Values of C that name the criterion, too: outputs that are wholly right, or right labels of tokens.
RECORDS, TOKENS = CRITERIA = ("records", "tokens")


class Usual:
    """The values of parameters that some estimators do not have."""

    loss: Any  # only where the parameters name a solver
    C: Any = None
    gamma: Any = None
    kernel: Any = None
    solver: Any = None
    n_jobs: int | None = None
    warm_start: bool = False
    verbose: bool = False


class Settings(Usual, SimpleNamespace):
    """Parameters as attributes, which estimators have as well."""


# Parameters as attributes: of an estimator, or of the command line.
Params = Usual | SimpleNamespace


def is_auto(value: object) -> bool:
    """Whether a parameter is to be chosen."""
    return isinstance(value, str) and value == AUTO


def is_open(C: object) -> bool:
    """Whether C is to be chosen, by the criterion of the task or by one that it names."""
    return isinstance(C, str) and C in (AUTO, *CRITERIA)


def given_to_solver(params: object) -> dict[str, Any]:
    """The given parameters of solvers, without a C that is to be chosen."""
    given = {name: getattr(params, name) for name in ("C", "max_iter", "tol", "random_state", "checkpoint")}
    given["C"] = None if is_open(given["C"]) else given["C"]
    return {name: value for name, value in given.items() if value is not None}


def leaves_C(params: Params, solver: Solver) -> bool:  # noqa: N802
    """Whether the C of the solver is chosen on the training data."""
    return is_open(params.C) and solver is not params.solver and "C" in solver.get_params()


def is_to_choose(params: Params, solver: Solver) -> bool:
    """Whether C or gamma is chosen on the training data."""
    return leaves_C(params, solver) or leaves_gamma(params)


def is_log(loss: object) -> bool:
    """Whether a loss is the log loss, which has its own solver."""
    return isinstance(loss, str) and loss == "log"


def is_likelihood(solver: object) -> bool:
    """Whether a solver, a name or an object, minimises the log loss."""
    return solver.is_likelihood if isinstance(solver, Solver) else solver in LIKELIHOODS


def check_alone(solver: object, given: Iterable[str]) -> None:
    """Raise ValueError for the first of given parameters beside a solver object, which has its own."""
    name = min(given, default=None)
    if isinstance(solver, Solver) and name is not None:
        its = setting(solver, name)
        where = f"its own; set it there and not here: solver={its}" if its else "no such parameter; leave it out"
        raise ValueError(f"The {name!r} parameter is set beside a solver object, which has {where}")


def setting(solver: Solver, name: str) -> str | None:
    """The expression that sets a parameter of a solver, or of the one that it wraps; None: there is no such one."""
    kind = type(solver).__name__
    if name in solver.get_params(deep=False):
        return f"{kind}({name}=...)"
    wrapped = None if solver.inner is solver else setting(solver.inner, name)
    return wrapped and f"{kind}({wrapped})"


def limits_of(kind: object, given: Iterable[str]) -> dict[str, None]:
    """The limits of a solver that is named, beside given parameters: open ones, unless one is given.

    `CuttingPlane` and `FrankWolfe` have a `tol` of their own, at which LaRank's model has long been as good: by name,
    they end as LaRank does, once the dual has stopped rising.
    """
    is_open = kind in (CuttingPlane, FrankWolfe) and not set(LIMITS) & set(given)
    return dict.fromkeys(LIMITS) if is_open else {}


def make_solver(params: Params, default_C: float = DEFAULT_C, *, closes_gap: bool = False) -> Solver:
    """The solver that the parameters name, with a default C if it is not given or is to be chosen.

    Parameters
    ----------
    params : object
    default_C : float
    closes_gap : bool
        Whether `CuttingPlane` and `FrankWolfe` go on to the `tol` of their own, see `limits_of`.
    """
    given, of_log = given_to_solver(params), is_log(params.loss)
    check_alone(params.solver, given)
    if is_likelihood(params.solver) and not of_log:
        raise ValueError(f"solver={params.solver!r} minimises the log loss; use it with loss='log'")
    if of_log and params.solver != "larank" and not is_likelihood(params.solver):
        name = type(params.solver).__name__ if isinstance(params.solver, Solver) else params.solver
        raise ValueError(
            f"solver={name!r} trains a margin, and loss='log' has a solver of its own, ConditionalLikelihood: leave "
            "'solver' alone, or pass such an object"
        )
    if isinstance(params.solver, Solver):
        return params.solver
    kind = LIKELIHOODS.get(params.solver, ConditionalLikelihood) if of_log else SOLVERS[params.solver]
    if kind is Perceptron:
        wrong = sorted(given.keys() & {"C", "tol"})
        if wrong:
            raise ValueError(f"The {wrong[0]!r} parameter has no meaning for solver='perceptron'")
        return Perceptron(**given)
    limits = {} if closes_gap else limits_of(kind, given)
    return kind(**{"C": LOG_C if of_log else default_C, "n_jobs": params.n_jobs} | limits | given)


def solver_of(params: dict[str, Any], loss: str) -> Solver:
    """The solver that parameters, a dict, name for a loss."""
    return make_solver(Settings(**params | {"loss": loss}))


def named(loss: object) -> str:
    """The name of a loss; that of a matrix of losses is "matrix"."""
    return loss if isinstance(loss, str) else "matrix"


def solver_to_json(solver: Solver) -> dict[str, object] | None:
    """Return ``{"solver": name, "params": {...}}``; None for a class that is not one of `structsvm.solvers`."""
    name = type(solver).__name__
    if getattr(solvers, name, None) is not type(solver):
        return None
    params: dict[str, object] = {key: plain(value) for key, value in solver.get_params(deep=False).items()}
    if isinstance(solver, LatentSVM):
        inner = solver_to_json(solver.inner)
        return None if inner is None else {"solver": name, "params": params | {"solver": inner}}
    return {"solver": name, "params": params | {"checkpoint": None}}  # a checkpoint belongs to one run


def solver_from_json(value: Any) -> Solver | None:
    """The inverse of `solver_to_json`; ValueError or TypeError for anything that it cannot have written."""
    if value is None:
        return None
    kind = getattr(solvers, value["solver"], None) if value["solver"] in solvers.__all__ else None
    if not (isinstance(kind, type) and issubclass(kind, Solver) and kind is not Solver):
        raise ValueError(f"a solver {value['solver']!r}, which this version does not know")
    params = value["params"]
    given = {"solver": solver_from_json(params["solver"])} if kind is LatentSVM else {"checkpoint": None}
    solver = kind(**params | given)
    solver.validate()
    return solver
