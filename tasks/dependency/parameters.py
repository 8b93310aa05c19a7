"""The solver and the templates that the parameters of `DependencyParser` ask for, and those a trained model keeps."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any, Literal

from structsvm.features.arc_templates import ArcTemplates, PairTemplates
from structsvm.features.word_codes import OwnColumns
from structsvm.parameters import CALLABLE, COUNT, FLAG, NONE, Interval, Kind, Options, declared, parameter
from structsvm.solvers import Solver
from structsvm.tasks.common.parameters import OF_C, OF_SOLVER, Training
from structsvm.tasks.common.solver import AUTO, make_solver
from structsvm.tasks.dependency.templates import ARCS, LABELS, OWN_ARCS, OWN_LABELS, OWN_VECTORS, PAIRS, lines
from structsvm.tasks.dependency.words import COLUMNS

# Passes of LaRank where nothing says how many: later ones raise the dual, and hardly the accuracy. With a second stage
# it starts from what it has found on halves of the sentences, and the dual is as high after fewer.
PASSES = {1: 6, 2: 4}  # by order
# Parameters that features and loss depend on, beside the trees.
SETTLED = ("projective", "subtypes", "arc_templates", "label_templates", "arc_bits", "row_bits", "loss", "max_length")

# The constraints of parameters: bits of a hash, templates.
BITS = Interval(Integral, 1, 28, closed="both")
TEXTS = (Kind((str, list, tuple), "a str or a list of str"), NONE)


@declared
class DependencyParserParameters(Training):
    """The parameters of `DependencyParser`."""

    C: float | Literal["auto"] | None = parameter(*OF_C, default=AUTO, kw_only=False)
    solver: str | Solver = parameter(*OF_SOLVER, default="larank")
    loss: str = parameter(Options("hamming", "log"), default="hamming")
    order: int = parameter(Interval(Integral, 1, 2, closed="both"), default=2)
    projective: bool | str = parameter(FLAG, Options(AUTO), default=AUTO)
    probability: bool = parameter(FLAG, default=False)
    subtypes: bool = parameter(FLAG, default=True)
    arc_templates: str | Sequence[str] | None = parameter(*TEXTS, default=None)
    label_templates: str | Sequence[str] | None = parameter(*TEXTS, default=None)
    pair_templates: str | Sequence[str] | None = parameter(*TEXTS, default=None)
    features: Any = parameter(CALLABLE, NONE, default=None)
    arc_bits: int | None = parameter(BITS, NONE, default=None)
    row_bits: int | None = parameter(BITS, NONE, default=None)
    max_length: int = parameter(COUNT, default=1000)


def make_dependency_solver(params: Any) -> Solver:
    """The chosen solver; a solver object has its own parameters."""
    solver = make_solver(params)
    is_named = params.solver == "larank" and not solver.is_likelihood
    if is_named and solver.max_iter is None and solver.tol is None:
        solver.set_params(max_iter=PASSES[params.order])
    return solver


def make_templates(params: Any, own: OwnColumns) -> ArcTemplates:
    """The templates that parameters ask for, with columns of the user's own."""
    given = []
    for wanted, default, more, of_vectors in (
        (params.arc_templates, ARCS, OWN_ARCS, ""),
        (params.label_templates, LABELS, OWN_LABELS, OWN_VECTORS),
    ):
        if wanted is None:
            wanted = default + "".join(more.replace("own", name) for name in own.names)
            wanted += "".join(of_vectors.replace("own", name) for name in own.vectors)
        given.append(lines(wanted) if isinstance(wanted, str) else tuple(wanted))
    arcs, labels = given
    if not arcs and not labels:
        raise ValueError("arc_templates and label_templates are both empty: there is nothing to learn from")
    return ArcTemplates(COLUMNS + own.names, arcs, labels, own.vectors)


def make_pair_templates(params: Any, own: OwnColumns) -> PairTemplates | None:
    """The templates of pairs of arcs that parameters ask for; None: no second stage."""
    if params.order == 1 or params.loss == "log":
        return None
    wanted = PAIRS if params.pair_templates is None else params.pair_templates
    texts = lines(wanted) if isinstance(wanted, str) else tuple(wanted)
    return PairTemplates(COLUMNS + own.names, texts, own.vectors)
