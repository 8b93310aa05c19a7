"""The Huller for classification with kernels (thesis, section 4.1)."""

from __future__ import annotations

from structsvm.kernel.parameters import KernelParameters
from structsvm.parameters import Seed, declared
from structsvm.solvers.kernel.huller import Huller, HullerParameters
from structsvm.tasks.common.parameters import MachineRunning
from structsvm.tasks.kernel.online import BinaryKernelClassifier


@declared
class HullerClassifier(KernelParameters, HullerParameters, Seed, MachineRunning, BinaryKernelClassifier):
    """Hard-margin support vector machine with a kernel and a bias, trained online.

    ``f(x) = <X_P - X_N, Phi(x)> + b`` of the nearest points of the two classes' convex hulls, scaled so that f is 1 and
    -1 there. It has no slacks: on data that a hard margin cannot separate use `LaSVMClassifier`.

    Parameters
    ----------
    kernel, gamma, degree, coef0, warm_start, n_jobs, checkpoint
        As for `LaRankClassifier`.
    max_iter : int, default=2
        Passes over the data.
    cache_size : float, default=200
    random_state : int, RandomState or None
    probability : bool, default=False
        Fit a temperature for `predict_proba` on held-out examples: costs about one more training, on small data five.
    verbose : bool, default=False

    Attributes
    ----------
    classes_, support_, support_vectors_, dual_coef_, intercept_, n_support_, n_kernel_, hit_rate_
        As for `LaSVMClassifier`.
    result_, n_iter_, n_features_in_
        As for `LaRankClassifier`; `result_` claims nothing.

    Notes
    -----
    With a hard margin the weight of an example has no meaning, except 0: such examples are left out.

    Examples
    --------
    >>> from structsvm.tasks import HullerClassifier
    >>> X, y = [[0.0], [1.0], [3.0], [4.0]], ["low", "low", "high", "high"]
    >>> HullerClassifier(gamma=1.0, random_state=0).fit(X, y).predict([[0.5], [3.5]]).tolist()
    ['low', 'high']
    """

    _solver_class = Huller
