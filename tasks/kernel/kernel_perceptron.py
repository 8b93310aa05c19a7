"""The averaged kernel perceptron, as a classifier."""

from __future__ import annotations

from structsvm.kernel.parameters import KernelParameters
from structsvm.parameters import Seed, declared
from structsvm.solvers.kernel.perceptron import KernelPerceptron, KernelPerceptronParameters
from structsvm.tasks.common.parameters import MachineRunning
from structsvm.tasks.kernel.classifier import KernelClassifier


@declared
class KernelPerceptronClassifier(KernelParameters, KernelPerceptronParameters, Seed, MachineRunning, KernelClassifier):
    """Multiclass perceptron with kernels (thesis, algorithms 2 and 4): a baseline.

    Parameters
    ----------
    kernel, gamma, degree, coef0, random_state, warm_start, n_jobs, checkpoint, probability,
    verbose
        As for `LaRankClassifier`.
    average : bool, default=True
        Predict with the average of the expansions after each visit of an example.
    budget : int, optional
        Maximum number of support patterns: beyond it, the one whose class would be farthest ahead without it is
        removed. Needs ``average=False``.
    margin : float, default=0
        An example makes a step unless the score of its class is ahead of all others by more than this.
    max_iter : int, default=10
        Passes over the data.
    cache_size : float, default=200

    Notes
    -----
    A sample weight is the length of the steps that its example makes: 0 makes none.

    Attributes
    ----------
    classes_, support_, support_vectors_, dual_coef_, n_support_, n_kernel_, hit_rate_, result_, n_iter_, n_features_in_
        As for `LaRankClassifier`; `result_` claims nothing.

    Examples
    --------
    >>> from structsvm.tasks import KernelPerceptronClassifier
    >>> X, y = [[0.0], [1.0], [3.0], [4.0]], ["low", "low", "high", "high"]
    >>> KernelPerceptronClassifier(gamma=1.0, random_state=0).fit(X, y).predict([[0.5], [3.5]]).tolist()
    ['low', 'high']
    """

    _solver_class = KernelPerceptron
