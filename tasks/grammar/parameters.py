"""The solver that the parameters of `GrammarParser` ask for."""

from __future__ import annotations

from structsvm.solvers import FrankWolfe, Perceptron, Solver
from structsvm.tasks.common.solver import make_solver

DEFAULT_C = 1.0


def make_grammar_solver(params):
    """The chosen solver with the formulation of the parameters; a solver object has its own.

    Raises
    ------
    ValueError
        For smoothing, a formulation beside a solver object, or one that the solver does not know.
    """
    if params.smoothing:
        raise ValueError("The 'smoothing' parameter is only for solver='pcfg'; large-margin weights have none")
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


def check_unchanged(model, other):
    """Raise ValueError, naming the parameter, if one that settles grammar or loss differs from the other model's."""
    oracle, grammar = model.oracle, model.oracle.grammar
    for name, mine, its in [
        ("terminals", model.terminals.kind, other.terminals.kind),
        ("min_count", model.terminals.known, other.terminals.known),
        ("h", grammar.h, other.oracle.grammar.h),
        ("v", model.v, other.v),
        ("max_unary", grammar.max_unary, other.oracle.grammar.max_unary),
        ("span_features", oracle.span_features, other.oracle.span_features),
        ("loss", oracle.loss_name, other.oracle.loss_name),
        ("max_length", oracle.max_length, other.oracle.max_length),
        ("max_chart_bytes", oracle.max_chart_bytes, other.oracle.max_chart_bytes),
    ]:
        if mine != its:
            raise ValueError(
                f"the model was trained with another {name!r} or on other trees, and training cannot go on with new "
                "ones; train afresh (warm_start=False), or set it back"
            )
