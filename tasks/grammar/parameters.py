"""The solver that the parameters of `GrammarParser` ask for, and those that a trained model keeps."""

from __future__ import annotations

from typing import Any

from structsvm.solvers import ConditionalLikelihood, FrankWolfe, Perceptron, Solver
from structsvm.tasks.common.solver import check_alone, make_solver
from structsvm.tasks.grammar.templates import default_templates, lines

DEFAULT_C = 1.0
# Passes of LaRank where nothing says how many, and from so many trees on: later ones raise the dual, and hardly F1.
PASSES, MANY, PASSES_OF_MANY = 6, 1000, 3
# Parameters that grammar and features depend on, beside the trees.
SETTLED = (
    *("terminals", "min_count", "h", "v", "max_unary", "span_features", "span_bits", "max_length"),
    "max_chart_bytes",
)


def make_grammar_solver(params: Any) -> Any:
    """The chosen solver with the formulation of the parameters; a solver object has its own.

    Raises
    ------
    ValueError
        For smoothing, a formulation beside a solver object, or one that the solver does not know.
    """
    if params.smoothing:
        raise ValueError("The 'smoothing' parameter is only for solver='pcfg'; large-margin weights have none")
    solver = make_solver(params, DEFAULT_C)
    if isinstance(solver, ConditionalLikelihood) and (params.rescaling, params.penalty) != ("margin", "linear"):
        raise ValueError("'rescaling' and 'penalty' have no meaning with loss='log', which has no margin")
    wanted = {"rescaling": params.rescaling, "penalty": params.penalty}
    changed = [name for name, value in wanted.items() if value != {"rescaling": "margin", "penalty": "linear"}[name]]
    check_alone(params.solver, changed)
    if isinstance(params.solver, Solver):
        return solver
    if isinstance(solver, Perceptron):
        if changed:
            raise ValueError(f"The {changed[0]!r} parameter has no meaning for solver='perceptron'")
        return solver
    if isinstance(solver, FrankWolfe) and "penalty" in changed:
        raise ValueError("penalty='quadratic' is not for solver='frank_wolfe', which needs a linear one")
    known = solver.get_params()
    return solver.set_params(**{name: value for name, value in wanted.items() if name in known})


def make_templates(params: Any, terminals: Any) -> tuple[str, ...]:
    """The templates of span features that parameters ask for."""
    given = params.span_features
    if given is None or isinstance(given, bool):
        wanted = params.solver != "pcfg" if given is None else given
        # The log loss stores a number per feature that the trees of a sentence can have.
        own = terminals.own
        return default_templates(terminals.kind, own.names, own.vectors, rules=params.loss != "log") if wanted else ()
    texts = lines(given) if isinstance(given, str) else tuple(given)
    for text in texts:
        if not isinstance(text, str):
            raise ValueError(f"The 'span_features' parameter must have str for templates. Got {text!r:.80} instead.")
    return texts
