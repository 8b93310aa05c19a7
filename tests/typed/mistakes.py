"""Lines that type checkers must refuse: an ignore that nothing needs is an error, so each of them is one."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import structsvm
import structsvm.tasks
from structsvm import LaRank
from structsvm.structures.trees import Tree, parse_tree
from structsvm.tasks import SequenceLabeler, TaxonomyClassifier
from structsvm.testing import check_oracle

SequenceLabeler(c=0.1)  # type: ignore[call-arg]
SequenceLabeler(C="0.1")  # type: ignore[arg-type]
SequenceLabeler().fit()  # type: ignore[call-arg]
TaxonomyClassifier(taxonomie=None)  # type: ignore[call-arg]
LaRank(c=0.1)  # type: ignore[call-arg]
structsvm.LaRanc(C=0.1)  # type: ignore[attr-defined]
structsvm.tasks.SequenceLabeller()  # type: ignore[attr-defined]
structsvm.StructuredSVM(oracle=None, C=1.0)  # type: ignore[call-arg]
structsvm.StructuredSVM("oracle")  # type: ignore[arg-type]
structsvm.StructuredSVM().load("model")  # type: ignore[call-arg]
LaRank(tol="0.1")  # type: ignore[arg-type]
structsvm.load()  # type: ignore[call-arg]

check_oracle(3, [], [])  # type: ignore[arg-type]
parse_tree(b"(S x)")  # type: ignore[arg-type]
Tree(0, ["x"])  # type: ignore[arg-type]
structsvm.Result(primal=1.0, dual=1.0)  # type: ignore[call-arg]
structsvm.Oracle()  # type: ignore[abstract]


class WithoutLoss(structsvm.Oracle):
    n_features: int = 1

    def joint_feature(self, x: float, y: int) -> tuple[list[int], list[float]]:
        return [0], [x * y]

    def argmax(self, x: float, w: NDArray[np.float64], y_true: int | None = None, rescaling: str | None = None) -> int:
        return int(w[0] * x > 0.0)


class Wrong(WithoutLoss):
    n_features: str = "one"  # type: ignore[assignment]
    rescalings = ("margn",)  # type: ignore[assignment]

    def loss(self, y_true: int, y: int) -> str:  # type: ignore[override]
        return str(y_true != y)


WithoutLoss()  # type: ignore[abstract]
Wrong().bind([1.0], [0], rescaling="slak")  # type: ignore[arg-type]
Wrong().loss(0, 1) + 1  # type: ignore[operator]
