"""The parameters of `SequenceAligner`."""

from __future__ import annotations

import os
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np

from structsvm.parameters import FLAG, NONE, Interval, Kind, Options, declared, parameter
from structsvm.solvers import Solver
from structsvm.structures.substitution_matrix import SubstitutionMatrix
from structsvm.tasks.alignment.selection import MODES
from structsvm.tasks.common.parameters import OF_C, OF_SOLVER, Training
from structsvm.tasks.common.solver import AUTO

FINITE = Interval(Real, -np.inf, closed="neither")


@declared
class SequenceAlignerParameters(Training):
    """The parameters of `SequenceAligner`."""

    C: float | Literal["auto"] | None = parameter(*OF_C, default=AUTO, kw_only=False)
    solver: str | Solver = parameter(*OF_SOLVER, default="larank")
    mode: str = parameter(Options(AUTO, *MODES), default=AUTO)
    gaps: str = parameter(Options("affine", "linear"), default="affine")
    symmetric: bool = parameter(FLAG, default=True)
    letter_gaps: bool = parameter(FLAG, default=False)
    classes: Any = parameter(Options("hydrophobicity", None), Kind(tuple, "a tuple of alphabets"), default=None)
    alphabet: Any = parameter(Kind(str, "a name or a string of letters"), default="protein")
    band: Any = parameter(Interval(Integral, 0), Kind(tuple, "a pair of them"), NONE, default=None)
    loss: str = parameter(Options("q", "zero_one"), default="q")
    window: int = parameter(Interval(Integral, 0), default=0)
    prior: Any = parameter(
        Kind((str, os.PathLike, SubstitutionMatrix, np.ndarray), "a name, a path or a SubstitutionMatrix"),
        NONE,
        default=AUTO,
    )
    prior_gap_open: float | None = parameter(FINITE, NONE, default=None)
    prior_gap_extend: float | None = parameter(FINITE, NONE, default=None)
