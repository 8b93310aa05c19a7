"""The solver that the parameters of `GrammarParser` ask for."""

from __future__ import annotations

from structsvm.solvers import FrankWolfe, Perceptron, Solver
from structsvm.solvers.choice import make_solver

DEFAULT_C = 1.0


def make_grammar_solver(params):
    """The chosen solver with the formulation of the parameters; a solver object has its own.

    Raises
    ------
    ValueError
        For a formulation beside a solver object, or one that the solver does not know.
    """
    solver = make_solver(params)
    wanted = {"rescaling": params.rescaling, "penalty": params.penalty}
    changed = [name for name, value in wanted.items() if value != {"rescaling": "margin", "penalty": "linear"}[name]]
    if isinstance(params.solver, Solver):
        if changed:
            raise ValueError(
                f"The {changed[0]!r} parameter is set beside a solver object, which has its own; "
                f"set it there: solver={type(solver).__name__}({changed[0]}=...)"
            )
        return solver
    if isinstance(solver, Perceptron):
        if changed:
            raise ValueError(f"The {changed[0]!r} parameter has no meaning for solver='perceptron'")
        return solver
    if isinstance(solver, FrankWolfe) and "penalty" in changed:
        raise ValueError("penalty='quadratic' is not for solver='frank_wolfe', which needs a linear one")
    known = solver.get_params()
    solver.set_params(**{name: value for name, value in wanted.items() if name in known})
    return solver if params.C is not None else solver.set_params(C=DEFAULT_C)
