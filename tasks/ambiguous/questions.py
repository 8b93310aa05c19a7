"""The learning loop of labels learnt from sets of candidates: pools of rows, and models that grow with the answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from structsvm.metrics._counts import is_unknown
from structsvm.oracles.ambiguous import AmbiguousOracle
from structsvm.tasks.ambiguous.model import AmbiguousModel, as_bag
from structsvm.tasks.common.labels import is_hashable, sort_labels
from structsvm.tasks.common.questions.reading import RowReader

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from structsvm.arrays import Floats, Matrix


class BagReader(RowReader[AmbiguousModel]):
    """Rows, and the scores of their labels."""

    def scores(self, model: AmbiguousModel, rows: Matrix) -> Floats:
        return model.scores(rows)


def labels_in(Y: Sequence[object], unknown: object) -> set[Hashable]:
    """The labels among the candidates."""
    bags = (as_bag(y) for y in Y)
    return {label for bag in bags for label in bag or () if is_hashable(label) and not is_unknown(label, unknown)}


def grown(model: AmbiguousModel, new: set[Hashable]) -> AmbiguousModel:
    """A copy of the model with new labels, which have no weight yet."""
    more = model.copy()
    if not new:
        return more
    more.labels = sort_labels([*model.labels, *new])
    places = [more.labels.index(label) for label in model.labels]
    table = np.zeros((model.oracle.n_input_features, len(more.labels)))
    table[:, places] = model.weights.reshape(-1, len(model.labels))
    more.oracle = AmbiguousOracle(len(more.labels), len(table), model.loss)
    more.weights, more.state, more.margin, more.fingerprint = table.ravel(), None, None, 0
    return more
