"""LaRank for classification with kernels (Bordes and others 2007; thesis, section 5.2)."""

from __future__ import annotations

from typing import Literal

from structsvm.kernel.parameters import KernelParameters
from structsvm.parameters import POSITIVE, Options, Seed, declared, parameter
from structsvm.solvers.kernel.larank import KernelLaRank, KernelLaRankParameters
from structsvm.tasks.common.parameters import ClassWeight, MachineRunning
from structsvm.tasks.common.solver import AUTO
from structsvm.tasks.kernel.online import OnlineKernelClassifier


@declared
class LaRankClassifier(
    KernelParameters, KernelLaRankParameters, ClassWeight, Seed, MachineRunning, OnlineKernelClassifier
):
    """Multiclass support vector machine with kernels, trained in few passes.

    Minimises ``1/2 |w|^2 + C sum_i xi_i`` subject to ``S(x_i, y_i) >= S(x_i, y) + 1 - xi_i`` for all other classes y
    (Crammer and Singer 2001), in the dual. One pass nearly reaches the accuracy of the optimum.

    Parameters
    ----------
    C : float or "auto", default="auto"
        Weight of the sum of slacks. "auto": chosen on held-out examples (`validation_`), see
        `structsvm.tasks.common.selection.kernels`; 1 with fewer than 20 examples, and in `partial_fit` before any
        `fit`.
    kernel : {"linear", "poly", "rbf", "sigmoid", "precomputed"} or callable, default="rbf"
        A callable takes matrices of shapes (n, d) and (m, d) and returns their kernel values, of shape (n, m). X may
        then also be a list of n objects of any kind (strings, graphs), of which the callable gets lists.
    gamma : {"auto", "scale"} or float, default="auto"
        Of "rbf", "poly" and "sigmoid". "scale" is ``1 / (n_features * X.var())``; "auto": chosen like C, "scale" if
        nothing can be chosen; the RBF kernel then gets dense columns in units of their standard deviations if that
        brings examples of one class together, and "scale" is that of centred ones where they lie far apart.
    degree : int, default=3
        Of "poly".
    coef0 : float, default=0.0
        Of "poly" and "sigmoid".
    schedule, n_reprocess, selection, max_iter, tol, cache_size
        As for `structsvm.solvers.KernelLaRank`.
    class_weight : dict or "balanced", optional
        Factor on C by class (default 1); "balanced": ``n_samples / (n_classes * count)``.
    warm_start : bool, default=False
        Whether `fit` resumes from the current model, of `fit` or `partial_fit`: the same run on the same data; on other
        data the support patterns stay in the problem.
    n_jobs : int, optional
        Threads for prediction, -1 for one per processor; scores do not depend on it.
    checkpoint
        As for the solver.
    random_state : int, RandomState or None
        Seeds the order of examples and the choice of old ones.
    probability : bool, default=False
        Fit a temperature for `predict_proba` on held-out examples: costs about one more training, on small data five.
    verbose : bool, default=False
        Show a progress bar.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    support_ : ndarray of shape (n_SV,)
        Indices of the support patterns in the training data; -1 for those of earlier batches of `partial_fit`.
    support_vectors_ : ndarray or CSR matrix of shape (n_SV, n_features)
        Empty for a precomputed kernel.
    dual_coef_ : csr_array of shape (n_classes, n_SV)
        beta: the scores of x are ``dual_coef_ @ k(support_vectors_, x)``.
    coef_, intercept_ : ndarray of shape (n_classes, n_features) and (n_classes,); one row for two classes
        With ``kernel="linear"`` only: the weights of features.
    n_support_ : ndarray of shape (n_classes,)
        Support patterns of each class.
    n_kernel_ : int
        Kernel values computed, including those of the certificate.
    hit_rate_ : float
        Share of the requested kernel rows that were in the cache.
    C_, gamma_ : float
        Those of the last training.
    validation_ : dict
        The table from which they were chosen: arrays "C", "score", "error" (standard errors of the scores) and
        "passes", the "metric", the number of examples "n_held_out"; "gamma", and "gammas": rows of gamma, its best C,
        score, error.
    result_ : Result
    n_iter_ : int
    n_features_in_ : int

    Notes
    -----
    Kernel values are float32, from products summed in the type of X: float32 data train faster. The model
    does not depend on `cache_size`.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from structsvm.tasks import LaRankClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> model = LaRankClassifier(C=10, random_state=0).fit(X[:1000], y[:1000])
    >>> bool(model.score(X[1000:], y[1000:]) > 0.94)
    True
    """

    C: float | Literal["auto"] = parameter(POSITIVE, Options(AUTO), default=AUTO, kw_only=False)

    _solver_class = KernelLaRank
