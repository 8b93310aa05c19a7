"""The learning loop of documents in a taxonomy: pools of documents, and models that grow with the answers."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

import numpy as np

from structsvm.metrics._counts import is_unknown
from structsvm.structures.taxonomy import PATH_SEPARATOR, joined_levels, rows_of_levels
from structsvm.tasks.common.labels import is_hashable, sort_labels
from structsvm.tasks.common.questions.reading import RowReader
from structsvm.tasks.common.questions.strategies import log_of
from structsvm.tasks.taxonomy.known import SETS
from structsvm.tasks.taxonomy.linear import LinearTaxonomyModel
from structsvm.tasks.taxonomy.model import BLOCK, TaxonomyModel

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from structsvm.arrays import Floats, Integers, Matrix
    from structsvm.tasks.taxonomy.estimator import TaxonomyClassifier
    from structsvm.tasks.taxonomy.examples import DocumentsLike


class DocumentReader(RowReader[TaxonomyModel]):
    """Documents, and the scores of their labels; the risk is the expected loss in the taxonomy."""

    def __init__(self, model: TaxonomyModel, X: Matrix) -> None:
        super().__init__(model, X)
        self.vectorizer, self.objects = model.vectorizer, objects_of(model)

    def fits(self, model: TaxonomyModel) -> bool:
        """A fit makes the features of texts anew, and those of objects, which are compared with those of training."""
        is_same = model.vectorizer is self.vectorizer and objects_of(model) is self.objects
        return is_same and super().fits(model)

    def scores(self, model: TaxonomyModel, rows: Matrix) -> Floats:
        return model.label_scores(rows)

    def read(self, model: TaxonomyModel, chosen: Integers, strategy: str) -> Floats:
        parts = [self._read(model, chosen[a : a + BLOCK], strategy) for a in range(0, len(chosen), BLOCK)]
        return np.concatenate(parts)

    def _read(self, model: TaxonomyModel, chosen: Integers, strategy: str) -> Floats:
        if strategy != "risk":
            return super().read(model, chosen, strategy)
        scores = np.asarray(self.scores(model, self.rows[chosen]), dtype=np.float64)
        losses = np.stack([model.targets.losses(k) for k in range(len(model.labels))])
        expected = (self.probabilities(model, scores) * losses[:, scores.argmax(axis=1)].T).sum(axis=1)
        return log_of(expected)


def objects_of(model: TaxonomyModel) -> object:
    """The objects that a kernel compares documents with; None without a kernel of objects."""
    return getattr(getattr(model, "machine", None), "objects", None)


def labels_in(separator: str | None, Y: Sequence[object], unknown: object) -> set[Hashable]:
    """The nodes that answers name, also in sets; rows of levels by their joined names."""
    rows = rows_of_levels([*Y])
    names = Y if rows is None else joined_levels(rows, separator or PATH_SEPARATOR)
    found = (one for name in names for one in (name if isinstance(name, SETS) else (name,)))
    plain = (one.item() if isinstance(one, np.generic) else one for one in found)
    return {one for one in plain if is_hashable(one) and not is_unknown(one, unknown)}


def grown(
    estimator: TaxonomyClassifier, model: TaxonomyModel, X: DocumentsLike, Y: Sequence[object], new: set[Hashable]
) -> TaxonomyModel | None:
    """A copy of the model with new labels, whose nodes have no weight yet; None where weights are not by node.

    Nodes above several labels keep their weights: a new label begins with what is known of its ancestors.
    """
    if not new:
        return model.copy()
    is_plain = isinstance(model, LinearTaxonomyModel) and isinstance(model.attributes, str)
    if not isinstance(model, LinearTaxonomyModel) or not is_plain or model.rows.row is not None:
        return None
    if not isinstance(model.loss, str):
        return None
    scratch = copy.copy(estimator)
    if model.vectorizer is not None:
        scratch.vectorizer, X = None, model.vectorizer.transform(X)
    labels = sort_labels([*model.labels.tolist(), *new])
    more = scratch._prepare(X, Y, None, None, classes=labels)[0]  # noqa: SLF001 (a copy)
    if not isinstance(more, LinearTaxonomyModel):
        return None
    if more.rows.row is not None or more.rows.n_rows != model.rows.n_rows or more.leaf_only != model.leaf_only:
        return None
    more.set_loss(model.loss)
    table, own, its = _by_node(more), names_of(more), names_of(model)
    table[:, [own.index(name) for name in its]] = _by_node(model)[:, : len(its)]
    more.weights = table.ravel()
    for name in ("columns", "vectorizer", "units", "largest", "temperature", "choice", "reading", "first_index", "C"):
        setattr(more, name, getattr(model, name))
    more.result = model.result
    return more


def names_of(model: LinearTaxonomyModel) -> list[Hashable]:
    """The nodes that attributes are named after."""
    nodes = model.nodes
    return nodes[len(nodes) - model.oracle.attributes.n_attributes :]


def _by_node(model: LinearTaxonomyModel) -> Floats:
    """The weights as an array (n_features, stride), copied."""
    oracle = model.oracle
    table: Floats = model.weights[: oracle.n_full * oracle.stride].reshape(oracle.n_full, oracle.stride)
    return table.copy()
