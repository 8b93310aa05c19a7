"""The parameters of `SemanticParser`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

from structsvm.parameters import (
    CALLABLE,
    COUNT,
    FLAG,
    NONE,
    POSITIVE,
    Interval,
    Kind,
    Options,
    Seed,
    declared,
    parameter,
)
from structsvm.solvers import LatentSVM, Solver
from structsvm.solvers.base import DualSolver
from structsvm.structures.meanings import MeaningGrammar
from structsvm.tasks.common.parameters import Running
from structsvm.tasks.common.solver import AUTO
from structsvm.tasks.semantics._ospas import STRATEGIES
from structsvm.tasks.semantics.features import MAX_WINDOW
from structsvm.tasks.semantics.hybrid import DUAL, LOSSES, HybridModel
from structsvm.tasks.semantics.likelihood import LEARNERS, USUAL
from structsvm.tasks.semantics.model import SemanticModel

WINDOW = Interval(Integral, 0, MAX_WINDOW, closed="both")


@declared
class SemanticParserParameters(Seed, Running):
    """The parameters of `SemanticParser`."""

    C: float | str = parameter(POSITIVE, Options(AUTO), default=AUTO, kw_only=False)
    method: str = parameter(Options(HybridModel.method, SemanticModel.method), default="hybrid")
    solver: str | Solver = parameter(
        Options(*LEARNERS, *DUAL), Kind((DualSolver, LatentSVM), "a solver of the dual"), default="likelihood"
    )
    loss: str = parameter(Options(*LOSSES), default="hamming")
    features: Sequence[str] = parameter(Kind((list, tuple), "a sequence of names of features"), default=USUAL)
    strategy: str = parameter(Options(*STRATEGIES), default="order_free")
    max_iter: int | None = parameter(COUNT, NONE, default=None)
    average: bool = parameter(FLAG, default=False)
    refine: int = parameter(Interval(Integral, 0), default=0)
    window: int = parameter(WINDOW, default=0)
    ngrams: int = parameter(Interval(Integral, 1, MAX_WINDOW, closed="both"), default=1)
    role_window: int = parameter(WINDOW, default=2)
    grammar: Any = parameter(
        Kind((MeaningGrammar, str, os.PathLike), "a MeaningGrammar, the text of one, or a path"), NONE, default=None
    )
    max_meanings: int | None = parameter(COUNT, NONE, default=None)
    complete: bool = parameter(FLAG, default=True)
    fold_constants: bool = parameter(FLAG, default=False)
    abstain_below: float | None = parameter(Interval(Real, 0.0, 1.0, closed="both"), NONE, default=None)
    lexicon: dict[str, str] | None = parameter(Kind(dict, "a dict from phrases to names"), NONE, default=None)
    executor: Any = parameter(CALLABLE, NONE, default=None)
    lowercase: bool = parameter(FLAG, default=True)
