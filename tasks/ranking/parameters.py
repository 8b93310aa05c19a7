"""The parameters of `Ranker`."""

from __future__ import annotations

from typing import Literal

from structsvm.parameters import COUNT, FLAG, NONE, Options, declared, parameter
from structsvm.solvers import Solver
from structsvm.tasks.common.parameters import OF_C, OF_SOLVER, Training
from structsvm.tasks.common.solver import AUTO
from structsvm.tasks.ranking.model import RANKER_LOSSES


@declared
class RankerParameters(Training):
    """The parameters of `Ranker`."""

    loss: Literal["pairs", "map", "ndcg"] = parameter(Options(*RANKER_LOSSES), default="ndcg", kw_only=False)
    k: int | None = parameter(COUNT, NONE, default=None)
    C: float | Literal["auto"] | None = parameter(*OF_C, default=AUTO)
    solver: str | Solver = parameter(*OF_SOLVER, default="larank")
    standardize: bool = parameter(FLAG, default=True)
