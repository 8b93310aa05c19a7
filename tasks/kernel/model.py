"""A trained multiclass kernel machine without scikit-learn: labels, and the machine that scores them."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Self

import numpy as np

from structsvm.features.matrices import is_sparse
from structsvm.kernel._kernels import Kernel
from structsvm.solvers.kernel.lasvm import LaSVMSteps
from structsvm.stored_values import Record, Stored
from structsvm.tasks.common.kernel_machine import MACHINE, KernelMachine, KernelRows
from structsvm.tasks.common.labels import label_array
from structsvm.tasks.common.selection.kernels import MachineModel
from structsvm.tasks.common.selection.search import Held
from structsvm.tasks.common.stored_labels import Labels

if TYPE_CHECKING:
    from structsvm.arrays import Floats, LabelArray, Matrix


class KernelModel(KernelMachine, MachineModel):
    """A `KernelMachine` over labels.

    Attributes
    ----------
    labels : ndarray of shape (n_labels,)
    """

    kind = "multiclass"
    estimator = "LaRankClassifier"
    record = Record({"labels": Labels(2), **MACHINE.fields})
    calibrates = False  # unless asked to

    def __init__(self, labels: LabelArray, kernel: Kernel) -> None:
        MachineModel.__init__(self)
        KernelMachine.__init__(self, len(labels), kernel)
        self.labels = labels

    @property
    def machine(self) -> Self:
        return self

    @property
    def usual_sizes(self) -> Floats | None:
        return self.vector_sizes

    def linear_weights(self) -> tuple[Floats, Floats]:
        """``(weights, intercepts)`` of a linear kernel, a row per label; of two labels the second's minus the first's.

        Machines of two labels each have a row per pair.
        """
        vectors = self.linear_vectors
        if self.intercept.ndim == 1:
            weights, intercept = dense(self.coef @ vectors), self.intercept
            if self.n_labels > 2:
                return weights, intercept
            return weights[1:] - weights[:1], intercept[1:] - intercept[:1]
        of = [np.flatnonzero(self.support_labels == label) for label in range(self.n_labels)]
        pairs = list(combinations(range(self.n_labels), 2))
        rows = [
            dense(self.coef[[k]][:, of[m]] @ vectors[of[m]] - self.coef[[m]][:, of[k]] @ vectors[of[k]])
            for k, m in pairs
        ]
        return np.concatenate(rows), np.array([self.intercept[k, m] for k, m in pairs])

    def stored_params(self) -> dict[str, object]:
        self.check_stored()
        return super().stored_params()

    def class_scores(self, X: Matrix) -> Floats:
        return self.decision_function(X)

    def held_out_scores(self, examples: KernelRows) -> Held:
        right = self.predict_ids(examples.rows) == examples.label_ids
        return Held("accuracy", 1.0 * right, np.ones(len(right)))

    def scale(self, examples: KernelRows) -> float:
        return 2.0 * self.kernel_scale(examples.rows)

    def predict(self, X: Matrix) -> LabelArray:
        """Labels of highest score."""
        return self.labels[self.predict_ids(X)]

    @classmethod
    def from_record(cls, stored: Stored) -> Self:
        model = cls(label_array(stored.labels), Kernel(**stored.kernel))
        model.set_from_record(stored)
        model.columns["n_features_in_"] = model.n_features
        return model


def dense(matrix: Matrix) -> Floats:
    """A matrix as an array."""
    return matrix.toarray() if is_sparse(matrix) else np.asarray(matrix)


class BinaryKernelModel(KernelModel):
    """A kernel model of two classes: ``f(x) = sum_i alpha_i k(x_i, x) + b`` is the score of the second, 0 that of the
    first.
    """

    kind = "binary"
    groups = (LaSVMSteps,)
    estimator = "LaSVMClassifier"
