"""The kernel and the views of the support patterns, for all kernel classifiers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from structsvm.tasks.common.classifier import Classifier
from structsvm.tasks.common.kernel_machine import KernelRows, kernel_of
from structsvm.tasks.kernel.model import KernelModel
from structsvm.tasks.kernel.soundness import check_function, check_matrix

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray

    from structsvm.tasks.common.arrays import Integers, LabelArray, Matrix, Weights


class KernelClassifier(Classifier):
    """Base of the kernel classifiers: a subclass has the parameters of a kernel, of training, and of its solver."""

    _model_class = KernelModel

    kernel: str | Callable[..., ArrayLike]

    def _start(self, X: Matrix, labels: LabelArray, before: KernelModel | None) -> tuple[KernelModel, Matrix]:
        if self.kernel == "precomputed" and X.shape[0] != X.shape[1]:
            raise ValueError(f"Precomputed matrix must be a square matrix. Input is a {X.shape[0]}x{X.shape[1]} matrix")
        if self.kernel == "precomputed":
            check_matrix(X)
        elif callable(self.kernel):
            check_function(kernel_of(self, X), X)
        if before is None:
            return self._model_class(labels, kernel_of(self, X)), X
        before.check_kernel(self, X)
        return before, X

    def _examples(self, X: Matrix, label_ids: Integers, weight: Weights | None) -> KernelRows:
        return KernelRows(X, label_ids, are_values=self.kernel == "precomputed", weight=weight)

    @property
    def _accepted(self) -> dict[str, object]:
        accepted = super()._accepted
        return accepted | {"accept_sparse": False} if self.kernel == "precomputed" else accepted

    # ---- views, files ---------------------------------------------------------------------------

    @property
    def support_(self) -> NDArray[np.int64]:
        return self._fitted().support

    @property
    def support_vectors_(self) -> Matrix:
        return self._fitted().vectors

    @property
    def dual_coef_(self) -> Matrix:
        return self._fitted().coef

    @property
    def n_support_(self) -> NDArray[np.intp]:
        return np.bincount(self._fitted().support_labels, minlength=len(self.classes_))

    @property
    def gamma_(self) -> float:
        """The kernel's gamma, as given or as chosen."""
        return self._fitted().kernel.gamma

    @property
    def n_kernel_(self) -> int:
        return self._fitted().n_kernel

    @property
    def hit_rate_(self) -> float:
        return self._fitted().hit_rate

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags
