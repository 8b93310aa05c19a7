"""The parameters of `SequenceAligner`."""

from __future__ import annotations

import os
from numbers import Integral, Real
from typing import TYPE_CHECKING, Literal

import numpy as np

from structsvm.parameters import FLAG, NONE, Interval, Kind, Options, declared, parameter
from structsvm.solvers import Solver
from structsvm.structures.substitution_matrix import SubstitutionMatrix
from structsvm.tasks.alignment.selection import LETTERS_AROUND, MODES, NO_CONTEXT
from structsvm.tasks.common.parameters import OF_C, OF_SOLVER, Training
from structsvm.tasks.common.solver import AUTO

if TYPE_CHECKING:
    from structsvm.tasks.alignment.selection import Prior

FINITE = Interval(Real, -np.inf, closed="neither")
MATRIX = Kind((str, os.PathLike, SubstitutionMatrix, np.ndarray), "a name, a path or a SubstitutionMatrix")


class WithGaps:
    """Accepts a matrix with the scores of a gap's first and of its further letters, one of them None if left open."""

    def accepts(self, value: object) -> bool:
        if not isinstance(value, tuple) or len(value) != 3 or not MATRIX.accepts(value[0]):
            return False
        return all(score is None or FINITE.accepts(score) for score in value[1:])

    def __str__(self) -> str:
        return "a tuple of such a matrix, gap_open and gap_extend (finite, or None)"


@declared
class SequenceAlignerParameters(Training):
    """The parameters of `SequenceAligner`."""

    C: float | Literal["auto"] | None = parameter(*OF_C, default=AUTO, kw_only=False)
    solver: str | Solver = parameter(*OF_SOLVER, default="larank")
    mode: str = parameter(Options(AUTO, *MODES), default=AUTO)
    gaps: str = parameter(Options("affine", "linear"), default="affine")
    symmetric: bool = parameter(FLAG, default=True)
    letter_gaps: bool = parameter(FLAG, default=False)
    classes: str | tuple[str, ...] | None = parameter(
        Options("hydrophobicity", None), Kind(tuple, "a tuple of alphabets"), default=None
    )
    context: str = parameter(Options(AUTO, LETTERS_AROUND, NO_CONTEXT), default=AUTO)
    alphabet: str = parameter(Kind(str, "a name or a string of letters"), default="protein")
    band: int | tuple[int, int] | None = parameter(
        Interval(Integral, 0), Kind(tuple, "a pair of them"), NONE, default=None
    )
    loss: str = parameter(Options("q", "zero_one"), default="q")
    window: int = parameter(Interval(Integral, 0), default=0)
    prior: Prior = parameter(MATRIX, WithGaps(), NONE, default=AUTO)
