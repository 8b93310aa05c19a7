"""The parameters of `DependencyParser`, the solver and templates they ask for, and those a trained model keeps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Integral
from types import SimpleNamespace
from typing import TYPE_CHECKING, Literal

from structsvm.features.arc_templates import ArcTemplates, PairTemplates
from structsvm.features.word_codes import OwnColumns
from structsvm.parameters import (
    CALLABLE,
    COUNT,
    FLAG,
    NONE,
    Interval,
    Kind,
    Options,
    ParameterGroup,
    declared,
    group_of,
    parameter,
)
from structsvm.solvers import Solver
from structsvm.solvers.base import DualSolver
from structsvm.tasks.common.parameters import OF_C, OF_SOLVER, Training, lines
from structsvm.tasks.common.solver import AUTO, make_solver
from structsvm.tasks.dependency.templates import ARCS, LABELS, OWN_ARCS, OWN_LABELS, OWN_VECTORS, PAIRS
from structsvm.tasks.dependency.words import COLUMNS

if TYPE_CHECKING:
    from structsvm.features.word_codes import OwnFeatures
    from structsvm.tasks.dependency.estimator import DependencyParser

# Passes of LaRank where nothing says how many: later ones raise the dual, and hardly the accuracy. With a second stage
# it starts from what it has found on halves of the sentences, and the dual is as high after fewer.
PASSES = {1: 6, 2: 4}  # by order
# Parameters that features and loss depend on, beside the trees: the parser's, and those of its features.
SETTLED = ("projective", "subtypes", "loss", "max_length")
OF_FEATURES = ("arcs", "labels", "arc_bits", "row_bits")

# The constraints of parameters: bits of a hash, templates.
BITS = Interval(Integral, 1, 28, closed="both")
TEXTS = (Kind((str, list, tuple), "a str or a list of str"), NONE)


@declared
class ArcFeatures(ParameterGroup):
    """The features of arcs: the parameter `features` of `DependencyParser`.

    Parameters
    ----------
    arcs, labels : str or sequence of str, optional
        Templates of features of arcs, and of their labels, one per line; see
        `structsvm.features.arc_templates.ArcTemplates`. Columns: form, lemma, upos, xpos, feats, prefix, suffix, shape.
        None: those of `structsvm.tasks.dependency.templates`.
    pairs : str or sequence of str, optional
        The same for pairs of arcs; see `structsvm.features.arc_templates.PairTemplates`.
    arc_bits, row_bits : int, optional
        Features are hashed, to ``2**arc_bits`` numbers for arcs and ``2**row_bits`` rows of labels. None: by the number
        of words, up to 22 and 18.
    columns : callable, optional
        From the words of a sentence, a list of str, to attributes of each: a str, or a vector, a 1-D array of as many
        numbers for each word, or a list of these. They are columns ``own1``, ``own2`` ..., with default templates,
        those of vectors for labels. Model files do not contain it: call ``set_params(features__columns=...)`` after
        `load`. See `structsvm.features.word_codes` for `WordVectors` and `VectorClusters`.

    Examples
    --------
    >>> from structsvm.tasks import ArcFeatures, DependencyParser
    >>> X, y = [[("cats", "NOUN"), ("sleep", "VERB")]], [[(2, "nsubj"), (0, "root")]]
    >>> features = ArcFeatures(arcs="h.upos m.upos dir", labels="m.upos", arc_bits=4, row_bits=3)
    >>> DependencyParser(features=features, random_state=0).fit(X, y).predict(X)
    [[(2, 'nsubj'), (0, 'root')]]
    """

    arcs: str | Sequence[str] | None = parameter(*TEXTS, default=None)
    labels: str | Sequence[str] | None = parameter(*TEXTS, default=None)
    pairs: str | Sequence[str] | None = parameter(*TEXTS, default=None)
    arc_bits: int | None = parameter(BITS, NONE, default=None)
    row_bits: int | None = parameter(BITS, NONE, default=None)
    columns: OwnFeatures | None = parameter(CALLABLE, NONE, default=None)


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
    features: ArcFeatures | None = group_of(ArcFeatures)
    max_length: int = parameter(COUNT, default=1000)


# The parameters of a parser, or what the command line has read of them.
Params = DependencyParserParameters | SimpleNamespace


def make_dependency_solver(params: DependencyParser | SimpleNamespace) -> Solver:
    """The chosen solver; a solver object has its own parameters."""
    solver = make_solver(params)
    is_open = not solver.is_likelihood and solver.max_iter is None and solver.tol is None
    if is_open and isinstance(solver, DualSolver) and params.solver in ("larank", "frank_wolfe"):
        solver.usual_passes, solver.least_passes = PASSES[params.order], math.inf
    return solver


def features_of(params: Params) -> ArcFeatures:
    """The features of arcs."""
    return params.features or ArcFeatures()


def make_templates(features: ArcFeatures, own: OwnColumns) -> ArcTemplates:
    """The templates of features, with columns of the user's own."""
    given = []
    for wanted, default, more, of_vectors in (
        (features.arcs, ARCS, OWN_ARCS, ""),
        (features.labels, LABELS, OWN_LABELS, OWN_VECTORS),
    ):
        if wanted is None:
            wanted = default + "".join(more.replace("own", name) for name in own.names)
            wanted += "".join(of_vectors.replace("own", name) for name in own.vectors)
        given.append(lines(wanted) if isinstance(wanted, str) else tuple(wanted))
    arcs, labels = given
    if not arcs and not labels:
        raise ValueError("templates of arcs and of labels are both empty: there is nothing to learn from")
    return ArcTemplates(COLUMNS + own.names, arcs, labels, own.vectors)


def make_pair_templates(params: Params, own: OwnColumns) -> PairTemplates | None:
    """The templates of pairs of arcs that parameters ask for; None: no second stage."""
    if params.order == 1 or params.loss == "log":
        return None
    pairs = features_of(params).pairs
    wanted = PAIRS if pairs is None else pairs
    texts = lines(wanted) if isinstance(wanted, str) else tuple(wanted)
    return PairTemplates(COLUMNS + own.names, texts, own.vectors)
