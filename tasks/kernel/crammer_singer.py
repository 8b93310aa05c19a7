"""The multiclass support vector machine of Crammer and Singer (2001), solved to a certified optimum."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from structsvm.solvers.kernel.crammer_singer import CrammerSinger
from structsvm.tasks.kernel.classifier import KernelClassifier


class CrammerSingerClassifier(KernelClassifier):
    """MCSVM: the problem of `LaRankClassifier`, solved with its full gradient.

    Its memory grows with n_samples times n_classes. It is the reference for LaRank; if the kernel matrix fits into
    the cache, it reaches small gaps fast.

    Parameters
    ----------
    C, kernel, gamma, degree, coef0, class_weight, random_state
        As for `LaRankClassifier`.
    tol, max_iter, cache_size
        As for `structsvm.solvers.CrammerSinger`.
    warm_start, n_jobs, checkpoint, checkpoint_every, probability, verbose
        As for `LaRankClassifier`.

    Attributes
    ----------
    classes_, support_, support_vectors_, dual_coef_, n_support_, n_kernel_, hit_rate_, C_, gamma_,
    validation_, result_, n_iter_, n_features_in_
        As for `LaRankClassifier`.

    Examples
    --------
    >>> from structsvm.tasks import CrammerSingerClassifier
    >>> X, y = [[0.0], [1.0], [3.0], [4.0]], ["low", "low", "high", "high"]
    >>> CrammerSingerClassifier(C=10.0, gamma=1.0, random_state=0).fit(X, y).predict([[0.5], [3.5]]).tolist()
    ['low', 'high']
    """

    _solver_class = CrammerSinger
    _may_choose = True

    def __init__(
        self,
        C: float | Literal["auto"] = "auto",
        *,
        kernel: str | Callable[..., Any] = "rbf",
        gamma: str | float = "auto",
        degree: int = 3,
        coef0: float = 0.0,
        tol: float = 1e-3,
        max_iter: int = 10000,
        cache_size: float = 200,
        class_weight: str | dict[Any, float] | None = None,
        random_state: int | np.random.RandomState | None = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: int = 1,
        probability: bool = False,
        verbose: bool = False,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.tol = tol
        self.max_iter = max_iter
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.random_state = random_state
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.checkpoint = checkpoint
        self.checkpoint_every = checkpoint_every
        self.probability = probability
        self.verbose = verbose
