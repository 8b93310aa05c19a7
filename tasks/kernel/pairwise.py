"""A kernel machine for each pair of classes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from structsvm.kernel.parameters import KernelParameters
from structsvm.parameters import POSITIVE, Options, declared, parameter
from structsvm.solvers.kernel.pairwise import Pairwise, PairwiseParameters
from structsvm.tasks.common.parameters import ClassWeight, MachineRunning
from structsvm.tasks.common.solver import AUTO
from structsvm.tasks.kernel.classifier import KernelClassifier

if TYPE_CHECKING:
    from structsvm.arrays import Floats


@declared
class PairwiseClassifier(KernelParameters, PairwiseParameters, ClassWeight, MachineRunning, KernelClassifier):
    """Support vector machines of all pairs of classes: the machines of scikit-learn's SVC, each at its optimum.

    Each minimises ``1/2 |w|^2 + C sum_i max(0, 1 - y_i (<w, Phi(x_i)> + b))`` over the examples of its two classes. The
    score of a class says how likely it is that all of its machines are right, see
    `structsvm.tasks.common.kernel_machine.KernelMachine.pair_scores`. Training is deterministic.

    Parameters
    ----------
    C, kernel, gamma, degree, coef0, class_weight, warm_start, n_jobs, checkpoint, probability,
    verbose
        As for `LaRankClassifier`. C and gamma are the same for all pairs.
    tol, max_iter, cache_size
        As for `structsvm.solvers.Pairwise`.

    Attributes
    ----------
    classes_, support_, support_vectors_, n_support_, n_kernel_, hit_rate_, C_, gamma_, validation_, result_, n_iter_,
    n_features_in_
        As for `LaRankClassifier`; `result_` is of the sum of all machines.
    dual_coef_ : csr_array of shape (n_classes, n_SV)
        Row k has the coefficients, >= 0, of the other classes' support vectors in their machines against class k.
    intercept_ : ndarray of shape (n_classes, n_classes)
        ``b[k, l]`` of the machine of k and l, where positive values mean l; ``b[l, k] = -b[k, l]``. With a linear
        kernel one value per pair, as in `coef_`, whose rows are those of (0, 1), (0, 2), ..., (1, 2), ...

    Examples
    --------
    >>> from structsvm.tasks import PairwiseClassifier
    >>> X, y = [[0.0], [1.0], [3.0], [4.0]], ["low", "low", "high", "high"]
    >>> PairwiseClassifier(C=10.0, gamma=1.0).fit(X, y).predict([[0.5], [3.5]]).tolist()
    ['low', 'high']
    """

    C: float | Literal["auto"] = parameter(POSITIVE, Options(AUTO), default=AUTO, kw_only=False)

    _solver_class = Pairwise

    @property
    def intercept_(self) -> Floats:
        """``b[k, l]`` of each two classes; with a linear kernel a value per row of `coef_`."""
        model = self._fitted()
        return super().intercept_ if model.kernel.name == "linear" else model.intercept
