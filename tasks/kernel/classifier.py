"""The kernel and the views of the support patterns, for all kernel classifiers."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, Never

import numpy as np

from structsvm.kernel.objects import are_objects, values_for, values_of
from structsvm.kernel.soundness import check_inputs
from structsvm.tasks.common.classifier import Classifier
from structsvm.tasks.common.kernel_machine import KernelRows, kernel_of
from structsvm.tasks.kernel.model import KernelModel

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable

    from numpy.typing import ArrayLike, NDArray
    from sklearn.utils import Tags

    from structsvm.arrays import Floats, Integers, LabelArray, Matrix, MatrixLike, Weights
    from structsvm.tasks.common.examples import LabeledRows


class KernelClassifier(Classifier):
    """Base of the kernel classifiers: a subclass has the parameters of a kernel, of training, and of its solver."""

    _model_class = KernelModel

    kernel: str | Callable[[Never, Never], ArrayLike]

    def _start(self, X: Matrix, labels: LabelArray, before: KernelModel | None) -> tuple[KernelModel, Matrix]:
        if self.kernel == "precomputed" and X.shape[0] != X.shape[1]:
            raise ValueError(f"Precomputed matrix must be a square matrix. Input is a {X.shape[0]}x{X.shape[1]} matrix")
        kernel = kernel_of(self, X)
        check_inputs(kernel, X, None if before is None else before.vector_sizes)
        if before is None:
            return self._model_class(labels, kernel), X
        before.check_kernel(self, X, before.params)
        return before, X

    def _examples(self, X: Matrix, label_ids: Integers, weight: Weights | None) -> KernelRows:
        return KernelRows(X, label_ids, are_values=self.kernel == "precomputed", weight=weight)

    @property
    def _accepted(self) -> dict[str, object]:
        accepted = super()._accepted
        return accepted | {"accept_sparse": False} if self.kernel == "precomputed" else accepted

    # ---- inputs that are no rows of numbers --------------------------------------------------------

    def _prepare(
        self, X: Any, y: Any, sample_weight: ArrayLike | None, before: Any, *, classes: Iterable[Hashable] | None = None
    ) -> tuple[KernelModel, LabeledRows]:
        if not callable(self.kernel) or not are_objects(X):
            return super()._prepare(X, y, sample_weight, before, classes=classes)
        objects = list(X)
        values = values_of(self.kernel, objects, is_new=before is None)
        by_values = copy.copy(self)
        by_values.kernel = "precomputed"
        model, examples = by_values._prepare(values, y, sample_weight, None, classes=classes)  # noqa: SLF001 (a copy)
        model.objects = objects
        return model, examples

    def _test(self, model: Any, X: MatrixLike) -> Matrix:
        if model.objects is None or not callable(self.kernel):
            X = super()._test(model, X)
            if model.kernel_values is not None:
                model.kernel_values.warn_of_others(X, model.support)
            return X
        return values_for(self.kernel, X, model.objects, model.support)  # type: ignore[arg-type]

    # ---- views, files ---------------------------------------------------------------------------

    @property
    def support_(self) -> NDArray[np.int64]:
        return self._fitted().support

    @property
    def support_vectors_(self) -> Matrix | NDArray[np.object_]:
        model = self._fitted()
        return model.vectors if model.objects is None else model.support_objects

    @property
    def coef_(self) -> Floats:
        """Weights of a linear kernel: array (n_classes, n_features), of two classes (1, n_features).

        `PairwiseClassifier` has a row per pair of classes, (0, 1), (0, 2), ..., (1, 2), ..., positive for the second.
        """
        return self._linear().linear_weights()[0]

    @property
    def intercept_(self) -> Floats:
        """Intercepts of a linear kernel, one per row of `coef_`."""
        return self._linear().linear_weights()[1]

    def _linear(self) -> KernelModel:
        """The model, if its kernel is linear; AttributeError for another one."""
        model = self._fitted()
        if model.kernel.name != "linear":
            raise AttributeError("there are weights of features with kernel='linear' only")
        return model

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

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags
