"""The solver that the parameters of `GrammarParser` ask for, and those that a trained model keeps."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import TYPE_CHECKING, Any, Literal

from structsvm.parameters import CALLABLE, COUNT, FLAG, NONE, Interval, Kind, Options, declared, parameter
from structsvm.solvers import ConditionalLikelihood, FrankWolfe, Perceptron, Solver
from structsvm.tasks.common.parameters import OF_C, Training
from structsvm.tasks.common.solver import AUTO, SOLVERS, check_alone, make_solver
from structsvm.tasks.grammar.templates import default_templates, lines
from structsvm.tasks.grammar.terminals import KINDS

if TYPE_CHECKING:
    from structsvm.tasks.grammar.terminals import Terminals

GRAMMAR_C = 1.0
# Passes of LaRank where nothing says how many, and from so many trees on: later ones raise the dual, and hardly F1.
PASSES, MANY_TREES, PASSES_OF_MANY = 6, 1000, 3
# Parameters that grammar and features depend on, beside the trees.
SETTLED = (
    *("terminals", "min_count", "h", "v", "max_unary", "span_features", "span_bits", "max_length"),
    "max_chart_bytes",
)
# The prior of relative frequencies.
PCFG = "pcfg"
# How scores become a tree: the best one, or the one of the likeliest brackets.
TREE, BRACKETS = "tree", "brackets"


@declared
class GrammarParserParameters(Training):
    """The parameters of `GrammarParser`."""

    C: float | Literal["auto"] | None = parameter(*OF_C, default=AUTO, kw_only=False)
    solver: str | Solver = parameter(Options(*SOLVERS), Kind(Solver, "a Solver"), default="larank")
    loss: str = parameter(Options("hamming", "f1", "zero_one", "log"), default="hamming")
    probability: bool = parameter(FLAG, default=False)
    rescaling: str = parameter(Options("margin", "slack"), default="margin")
    penalty: str = parameter(Options("linear", "quadratic"), default="linear")
    terminals: str = parameter(Options(*KINDS), default="tags")
    min_count: int = parameter(COUNT, default=2)
    h: int | Literal["auto"] | None = parameter(Interval(Integral, 0), Options(AUTO, None), default=AUTO)
    v: int = parameter(COUNT, default=1)
    span_features: bool | str | Sequence[str] | None = parameter(
        FLAG, NONE, Kind((str, list, tuple), "a str or a list of str"), default=None
    )
    features: Any = parameter(CALLABLE, NONE, default=None)
    span_bits: int | None = parameter(Interval(Integral, 1, 24, closed="both"), NONE, default=None)
    max_unary: int | None = parameter(Interval(Integral, 0), NONE, default=None)
    clean: bool = parameter(FLAG, default=True)
    on_no_parse: str = parameter(Options("fragments", "flat", "raise"), default="fragments")
    decode: str | None = parameter(Options(BRACKETS, TREE), NONE, default=None)
    prior: str | None = parameter(Options(PCFG, None), default=PCFG)
    max_length: int = parameter(COUNT, default=500)
    max_chart_bytes: int = parameter(Interval(Integral, 1, 2**63 - 1, closed="both"), default=2**31)


def make_grammar_solver(params: Any) -> Solver:
    """The chosen solver with the formulation of the parameters; a solver object has its own.

    Raises
    ------
    ValueError
        For a formulation beside a solver object, or one that the solver does not know.
    """
    solver = make_solver(params, GRAMMAR_C)
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


def make_templates(params: Any, terminals: Terminals) -> tuple[str, ...]:
    """The templates of span features that parameters ask for."""
    given = params.span_features
    if given is False:
        return ()
    if given is None or given is True:
        # The log loss stores a number per feature that the trees of a sentence can have.
        own = terminals.own
        return default_templates(terminals.kind, own.names, own.vectors, rules=params.loss != "log")
    texts = lines(given) if isinstance(given, str) else tuple(given)
    for text in texts:
        if not isinstance(text, str):
            raise ValueError(f"The 'span_features' parameter must have str for templates. Got {text!r:.80} instead.")
    return texts
