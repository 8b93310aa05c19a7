"""The solver that a task's parameters ask for: a name, to which the common parameters apply, or an object.

The parameters are read as attributes: of an estimator, or of what the command line makes of its options.
"""

from __future__ import annotations

from structsvm.solvers import CuttingPlane, FrankWolfe, LaRank, PassiveAggressive, Perceptron, Solver

SOLVERS = {
    "larank": LaRank,
    "cutting_plane": CuttingPlane,
    "frank_wolfe": FrankWolfe,
    "passive_aggressive": PassiveAggressive,
    "perceptron": Perceptron,
}
DEFAULT_C = 0.1


def make_solver(params, default_C=DEFAULT_C):
    """The solver that parameters ask for."""
    given = {name: getattr(params, name) for name in ("C", "max_iter", "tol", "random_state", "checkpoint")}
    given = {name: value for name, value in given.items() if value is not None}
    if isinstance(params.solver, Solver):
        if given:
            raise ValueError(
                f"The {min(given)!r} parameter is set beside a solver object, which has its own; "
                f"set it there: solver={type(params.solver).__name__}({min(given)}=...)"
            )
        return params.solver
    kind = SOLVERS[params.solver]
    given["checkpoint_every"] = params.checkpoint_every
    if kind is Perceptron:
        wrong = sorted(given.keys() & {"C", "tol"})
        if wrong:
            raise ValueError(f"The {wrong[0]!r} parameter has no meaning for solver='perceptron'")
        return Perceptron(**given)
    return kind(**{"C": default_C, "n_jobs": params.n_jobs} | given)
