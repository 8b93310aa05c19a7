"""The parameters of `GraphLabeler`."""

from __future__ import annotations

from numbers import Integral
from typing import Literal

from structsvm.parameters import FLAG, Interval, Options, declared, parameter
from structsvm.solvers import Solver
from structsvm.tasks.common.parameters import CLASS_WEIGHT, MARK, OF_C, OF_SOLVER, ByLabel, Training
from structsvm.tasks.common.solver import AUTO


@declared
class GraphLabelerParameters(Training):
    """The parameters of `GraphLabeler`."""

    C: float | Literal["auto"] | None = parameter(*OF_C, default=AUTO, kw_only=False)
    solver: str | Solver = parameter(*OF_SOLVER, default="larank")
    interactions: Literal["auto", "none", "potts", "associative", "symmetric", "full"] = parameter(
        Options(AUTO, "none", "potts", "associative", "symmetric", "full"), default=AUTO
    )
    method: Literal["auto", "junction", "cut", "relaxed", "expansion"] = parameter(
        Options(AUTO, "junction", "cut", "relaxed", "expansion"), default=AUTO
    )
    loss: Literal["hamming", "log"] = parameter(Options("hamming", "log"), default="hamming")
    max_table: int = parameter(Interval(Integral, 2, 2**28, closed="both"), default=2**16)
    neighbours: Literal[4, 8] = parameter(Options(4, 8), default=4)
    contrast: bool = parameter(FLAG, default=True)
    probability: bool = parameter(FLAG, default=False)
    class_weight: str | ByLabel | None = parameter(*CLASS_WEIGHT, default=None)
    unknown: object = parameter(*MARK, default=AUTO)
