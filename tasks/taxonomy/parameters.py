"""The parameters of `TaxonomyClassifier`."""

from __future__ import annotations

import collections.abc
from numbers import Integral
from typing import TYPE_CHECKING, Any, Literal, Never

from structsvm.kernel.parameters import KernelFunction
from structsvm.parameters import CALLABLE, FLAG, Interval, Kind, Options, declared, parameter
from structsvm.solvers import Solver
from structsvm.tasks.common.parameters import CLASS_WEIGHT, MARK, OF_C, OF_SOLVER, ByLabel, Training
from structsvm.tasks.common.solver import AUTO

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from sklearn.base import BaseEstimator

    from structsvm.arrays import MatrixLike


class AnyMatrix:
    """Accepts arrays, lists of rows and sparse matrices; `fit` checks their numbers."""

    def accepts(self, value: object) -> bool:
        return hasattr(value, "shape") or (isinstance(value, list) and bool(value))

    def __str__(self) -> str:
        return "a matrix"


@declared
class TaxonomyClassifierParameters(Training):
    """The parameters of `TaxonomyClassifier`."""

    taxonomy: Any = parameter(default=None, kw_only=False)
    loss: MatrixLike = parameter(Options(AUTO, "tree", "path", "zero_one", "log"), AnyMatrix(), default=AUTO)
    attributes: MatrixLike = parameter(Options("ancestors", "normalized", "flat"), AnyMatrix(), default="ancestors")
    leaf_only: bool | Literal["auto"] = parameter(FLAG, Options(AUTO), default=AUTO)
    C: float | Literal["auto"] | None = parameter(*OF_C, default=AUTO)
    solver: str | Solver = parameter(*OF_SOLVER, default="larank")
    fit_intercept: bool = parameter(FLAG, default=True)
    standardize: bool = parameter(FLAG, default=True)
    kernel: str | KernelFunction | collections.abc.Callable[[Never, Never], ArrayLike] | None = parameter(
        Options("linear", "poly", "rbf", "sigmoid", None),
        Kind(KernelFunction, "a KernelFunction"),
        CALLABLE,
        default=None,
    )
    class_weight: str | ByLabel | None = parameter(*CLASS_WEIGHT, default=None)
    vectorizer: BaseEstimator | None = parameter(default=None)
    unknown: object = parameter(*MARK, default=AUTO)
    max_weights: int = parameter(Interval(Integral, 1, 2**63 - 1, closed="both"), default=2**25)
