"""The parameters that name a kernel: of machines, or as a group."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, Never

import numpy as np
from numpy.typing import ArrayLike

from structsvm.kernel._kernels import KERNELS
from structsvm.parameters import CALLABLE, POSITIVE, Interval, Options, ParameterGroup, declared, parameter

# The value of gamma that has it chosen on the training data.
AUTO = "auto"
# Kernels with a gamma.
WITH_GAMMA = ("rbf", "poly", "sigmoid")


@declared
class KernelNumbers:
    """The numbers of a kernel."""

    gamma: str | float = parameter(Options(AUTO, "scale"), POSITIVE, default=AUTO)
    degree: int = parameter(Interval(Integral, 0, 2**31 - 1), default=3)
    coef0: float = parameter(Interval(Real, -np.inf, closed="neither"), default=0.0)


@declared
class KernelParameters(KernelNumbers):
    """The kernel of a machine."""

    kernel: str | Callable[[Never, Never], ArrayLike] = parameter(Options(*KERNELS), CALLABLE, default="rbf")


@declared
class KernelFunction(KernelNumbers, ParameterGroup):
    """A kernel with its numbers, where an estimator may do without one.

    Parameters
    ----------
    kernel : {"rbf", "linear", "poly", "sigmoid"}, default="rbf"
    gamma : {"auto", "scale"} or float, default="auto"
        As for `LaRankClassifier`, as are the others.
    degree : int, default=3
    coef0 : float, default=0.0

    Examples
    --------
    >>> from structsvm.tasks import KernelFunction, TaxonomyClassifier
    >>> X, y = [[0.0], [0.1], [1.0], [1.1], [2.0], [2.1]], ["a", "a", "b", "b", "a", "a"]
    >>> TaxonomyClassifier(C=10.0, kernel=KernelFunction("rbf", gamma=5.0), random_state=0).fit(X, y).gamma_
    5.0
    """

    kernel: str = parameter(Options("rbf", "linear", "poly", "sigmoid"), default="rbf", kw_only=False)


def kernel_params(params: Any) -> Any:
    """The object that has the kernel and its numbers: parameters of a machine, or the group of another estimator."""
    if getattr(params, "gamma", None) is not None:
        return params
    return params.kernel if isinstance(params.kernel, KernelFunction) else KernelFunction(params.kernel)


def leaves_gamma(params: Any) -> bool:
    """Whether a kernel's gamma is chosen on the training data."""
    params = kernel_params(params)
    return isinstance(params.gamma, str) and params.gamma == AUTO and params.kernel in WITH_GAMMA
