"""The multiclass support vector machine of Weston and Watkins, with biases (Guermeur 2023)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from structsvm.kernel.parameters import KernelParameters
from structsvm.parameters import POSITIVE, Options, declared, parameter
from structsvm.solvers.kernel.weston_watkins import METHODS, WestonWatkins, WestonWatkinsParameters
from structsvm.tasks.common.parameters import ClassWeight, MachineRunning
from structsvm.tasks.common.solver import AUTO
from structsvm.tasks.kernel.classifier import KernelClassifier

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from numpy.typing import ArrayLike

    from structsvm.arrays import Floats
    from structsvm.solvers import Solver
    from structsvm.tasks.common.examples import LabeledRows
    from structsvm.tasks.common.model import TaskModel


@declared
class WestonWatkinsClassifier(KernelParameters, WestonWatkinsParameters, ClassWeight, MachineRunning, KernelClassifier):
    r"""Multiclass support vector machine of Weston and Watkins, with biases.

    One machine for all classes: it minimises

        1/2 sum_k |h_k|^2 + C sum_i sum_{k != y_i} (1 - (f_{y_i}(x_i) - f_k(x_i)))_+,   f_k(x) = <h_k, phi(x)> + b_k

    (problem 1 of Guermeur 2023), by its dual (problem 2), to a certified duality gap. With two classes it is
    `sklearn.svm.SVC` with twice this C.

    Parameters
    ----------
    C, kernel, gamma, degree, coef0, class_weight, warm_start, n_jobs, checkpoint, probability,
    verbose
        As for `LaRankClassifier`. Kernel values are rounded to float32, so relative gaps below about 1e-6 may be
        out of reach if the kernel matrix does not have full rank.
    tol, max_iter, cache_size
        As for `structsvm.solvers.WestonWatkins`. Training is deterministic.
    solver : {"cycles", "frank_wolfe"}, default="cycles"
        How a working set is improved: by pair steps and their generalisation to cycles of classes, or by Frank-Wolfe
        (section 5 of the paper), which has the same optimum and a long tail.

    Attributes
    ----------
    classes_, support_, support_vectors_, dual_coef_, n_support_, n_kernel_, hit_rate_, C_, gamma_,
    validation_, result_, n_iter_, n_features_in_
        As for `LaRankClassifier`.
    intercept_ : ndarray of shape (n_classes,)
        The biases b: the middle of the optimal ones, with sum zero. With a linear kernel one per row of `coef_`.

    References
    ----------
    J. Weston and C. Watkins, Multi-class support vector machines, Royal Holloway CSD-TR-98-04, 1998.

    Y. Guermeur, Technical documentation of the WW-M-SVM, 2023.

    Examples
    --------
    >>> from structsvm.tasks import WestonWatkinsClassifier
    >>> X, y = [[0.0], [1.0], [3.0], [4.0]], ["low", "low", "high", "high"]
    >>> WestonWatkinsClassifier(C=10.0, gamma=1.0).fit(X, y).predict([[0.5], [3.5]]).tolist()
    ['low', 'high']
    """

    C: float | Literal["auto"] = parameter(POSITIVE, Options(AUTO), default=AUTO, kw_only=False)
    solver: str = parameter(Options(*METHODS), default="cycles")

    _solver_class = WestonWatkins

    def _make_solver(self, before: TaskModel[LabeledRows] | None = None) -> Solver:
        return super()._make_solver().set_params(method=self.solver)

    def _prepare(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None,
        before: TaskModel[LabeledRows] | None,
        **options: Iterable[Hashable] | None,
    ) -> tuple[Any, LabeledRows]:
        model, examples = super()._prepare(X, y, sample_weight, before, **options)
        if examples.weight is not None:
            total = np.bincount(examples.label_ids, weights=examples.weight, minlength=len(model.labels))
            if not total.all():
                label = model.labels[np.argmin(total)].item()
                raise ValueError(
                    f"sample_weight is zero for all examples of the class {label!r}, and nothing would hold its bias; "
                    "leave the class out"
                )
        return model, examples

    @property
    def intercept_(self) -> Floats:
        """The biases of the classes; with a linear kernel a value per row of `coef_`."""
        model = self._fitted()
        return super().intercept_ if model.kernel.name == "linear" else model.intercept
