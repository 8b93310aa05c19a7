"""What the classifiers of two classes share."""

from __future__ import annotations

from typing import Any

import numpy as np

from structsvm.tasks.kernel.model import BinaryKernelModel
from structsvm.tasks.kernel.online import OnlineKernelClassifier


class BinaryKernelClassifier(OnlineKernelClassifier):
    """Base of the kernel classifiers for two classes, of which the second counts as y = 1."""

    _model_class = BinaryKernelModel

    def _check_labels(self, labels: Any) -> None:
        super()._check_labels(labels)
        if len(labels) > 2:
            raise ValueError(
                "Only binary classification is supported. The type of the target is multiclass: "
                f"{len(labels)} classes, {labels.tolist()!r:.80}; wrap {type(self).__name__} in "
                "sklearn.multiclass.OneVsRestClassifier"
            )

    @property
    def dual_coef_(self) -> Any:
        """alpha: array (1, n_SV)."""
        return self._fitted().coef[[1]].toarray()

    @property
    def intercept_(self) -> Any:
        """b: array (1,)."""
        return self._fitted().intercept[1:]

    @property
    def n_support_(self) -> Any:
        model = self._fitted()
        return np.bincount(model.support_labels[self.dual_coef_[0] != 0.0], minlength=2)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags
