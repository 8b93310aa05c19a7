"""Kernel classifiers that learn from streams, and what those of two classes share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import ArrayLike

from structsvm.callbacks import with_callbacks
from structsvm.tasks.common.labels import check_stream_weight
from structsvm.tasks.kernel.classifier import KernelClassifier
from structsvm.tasks.kernel.model import BinaryKernelModel

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from numpy.typing import NDArray

    from structsvm.arrays import MatrixLike
    from structsvm.solvers import Solver
    from structsvm.tasks.common.examples import LabeledRows
    from structsvm.tasks.common.model import TaskModel


class OnlineKernelClassifier(KernelClassifier):
    """Base of the kernel classifiers that support `partial_fit`."""

    @with_callbacks
    def partial_fit(
        self,
        X: MatrixLike,
        y: ArrayLike,
        classes: Iterable[Hashable] | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """One pass over a batch of new examples.

        The current support patterns stay in the problem with their coefficients and may change or vanish; other earlier
        examples are dropped. `result_` certifies the problem of the batch and those patterns. `max_iter` and `tol`
        are ignored.

        Parameters
        ----------
        X, y, sample_weight : see `fit`
        classes : array-like, optional
            All classes, in the first call; default: those of its y. Any other label is an error.
        """
        self._check_stream()
        metadata = {"sample_weight": sample_weight}
        return self._train(X, y, sample_weight, passes=1, metadata=metadata, classes=classes)

    def _stream_solver(self, before: TaskModel[LabeledRows] | None = None) -> Solver:
        """The solver of one batch of a stream."""
        solver = super()._make_solver()
        return solver.set_params(**{"tol": None} if "tol" in solver.get_params() else {})

    def _check_stream(self) -> None:
        """Raise ValueError for parameters that streams do not support."""
        check_stream_weight(self.class_weight)
        if self.kernel == "precomputed":
            raise ValueError("partial_fit cannot work with kernel='precomputed': the kernel of two batches is unknown")


class BinaryKernelClassifier(OnlineKernelClassifier):
    """Base of the kernel classifiers for two classes; the second one is y = 1."""

    _model_class = BinaryKernelModel
    _is_binary = True

    @property
    def dual_coef_(self) -> NDArray[np.float64]:
        """alpha: array (1, n_SV)."""
        return self._fitted().coef[[1]].toarray()

    @property
    def intercept_(self) -> NDArray[np.float64]:
        """b: array (1,)."""
        return self._fitted().intercept[1:]

    @property
    def n_support_(self) -> NDArray[np.intp]:
        model = self._fitted()
        return np.bincount(model.support_labels[self.dual_coef_[0] != 0.0], minlength=2)
