"""The multiclass support vector machine of Crammer and Singer (2001), solved to a certified optimum."""

from __future__ import annotations

from structsvm.solvers.crammer_singer import CrammerSinger
from structsvm.tasks.kernel.classifier import KernelClassifier


class CrammerSingerClassifier(KernelClassifier):
    """MCSVM: the problem of `LaRankClassifier`, solved with its full gradient.

    Its memory grows with n_samples times n_classes. LaRank is measured against it; where the kernel matrix fits into
    the cache, it reaches small gaps fast.

    Parameters
    ----------
    C, kernel, gamma, degree, coef0, class_weight, random_state, verbose
        As for `LaRankClassifier`.
    tol, max_iter, cache_size
        As for `structsvm.solvers.CrammerSinger`.

    Attributes
    ----------
    classes_, support_, support_vectors_, dual_coef_, n_support_, n_kernel_, hit_rate_, result_, n_iter_, n_features_in_
        As for `LaRankClassifier`.
    """

    _constraints = KernelClassifier._constraints | {
        "C": CrammerSinger._constraints["C"],
        "tol": CrammerSinger._constraints["tol"],
        "max_iter": CrammerSinger._constraints["max_iter"],
    }
    _solver_class = CrammerSinger

    def __init__(
        self,
        C=1.0,
        *,
        kernel="rbf",
        gamma="scale",
        degree=3,
        coef0=0.0,
        tol=1e-3,
        max_iter=10000,
        cache_size=200,
        class_weight=None,
        random_state=None,
        warm_start=False,
        n_jobs=None,
        checkpoint=None,
        checkpoint_every=1,
        verbose=False,
    ):
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
        self.verbose = verbose
