"""The multiclass support vector machine of Crammer and Singer (2001), solved to a certified optimum."""

from __future__ import annotations

from typing import Literal

from structsvm.kernel.parameters import KernelParameters
from structsvm.parameters import POSITIVE, Options, Seed, declared, parameter
from structsvm.solvers.kernel.crammer_singer import CrammerSinger, CrammerSingerParameters
from structsvm.tasks.common.parameters import ClassWeight, MachineRunning
from structsvm.tasks.common.solver import AUTO
from structsvm.tasks.kernel.classifier import KernelClassifier


@declared
class CrammerSingerClassifier(
    KernelParameters, CrammerSingerParameters, ClassWeight, Seed, MachineRunning, KernelClassifier
):
    """MCSVM: the problem of `LaRankClassifier`, solved with its full gradient.

    Its memory grows with n_samples times n_classes. It is the reference for LaRank; if the kernel matrix fits into
    the cache, it reaches small gaps fast.

    Parameters
    ----------
    C, kernel, gamma, degree, coef0, class_weight, random_state
        As for `LaRankClassifier`.
    tol, max_iter, cache_size
        As for `structsvm.solvers.CrammerSinger`.
    warm_start, n_jobs, checkpoint, probability, verbose
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

    C: float | Literal["auto"] = parameter(POSITIVE, Options(AUTO), default=AUTO, kw_only=False)

    _solver_class = CrammerSinger
