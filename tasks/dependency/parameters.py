"""The solver and the templates that the parameters of `DependencyParser` ask for, and those a trained model keeps."""

from __future__ import annotations

from typing import Any

from structsvm.features.arc_templates import ArcTemplates, PairTemplates
from structsvm.features.word_codes import OwnColumns
from structsvm.solvers import LaRank
from structsvm.tasks.common.solver import make_solver
from structsvm.tasks.dependency.templates import ARCS, LABELS, OWN_ARCS, OWN_LABELS, OWN_VECTORS, PAIRS, lines
from structsvm.tasks.dependency.words import COLUMNS

DEFAULT_C = 0.1
# Passes of LaRank where nothing says how many: later ones raise the dual, and hardly the accuracy. With a second stage
# it starts from what it has found on halves of the sentences, and the dual is as high after fewer.
PASSES = {1: 6, 2: 4}  # by order
# Parameters that features and loss depend on, beside the trees.
SETTLED = ("projective", "subtypes", "arc_templates", "label_templates", "arc_bits", "row_bits", "loss", "max_length")


def make_dependency_solver(params: Any) -> Any:
    """The chosen solver; a solver object has its own parameters."""
    solver = make_solver(params, DEFAULT_C)
    if params.solver == "larank" and isinstance(solver, LaRank) and solver.max_iter is None and solver.tol is None:
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
