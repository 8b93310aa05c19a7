"""What the classifiers of two classes share."""

from __future__ import annotations

from typing import Any

import numpy as np

from structsvm.tasks.kernel.model import BinaryKernelModel
from structsvm.tasks.kernel.online import OnlineKernelClassifier


class BinaryKernelClassifier(OnlineKernelClassifier):
    """Base of the kernel classifiers for two classes; the second one is y = 1."""

    _model_class = BinaryKernelModel
    _is_binary = True

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
