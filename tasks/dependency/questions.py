"""The learning loop of dependency trees: pools of sentences."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array

from structsvm.tasks.common.likelihood import probable_weights
from structsvm.tasks.common.questions.reading import Reader
from structsvm.tasks.common.questions.strategies import log_of
from structsvm.tasks.dependency.model import DependencyModel

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Sequence

    from numpy.typing import NDArray

    from structsvm.arrays import Floats, Integers
    from structsvm.tasks.dependency.words import SentenceLike


class TreeReader(Reader[DependencyModel]):
    """Encoded sentences, and how sure a parser is of their trees; probabilities are those of arcs alone.

    A span is an arc with its label, an error a word with a wrong head or label.
    """

    strategies = ("margin", "confidence", "entropy", "span", "risk")

    def __init__(self, model: DependencyModel, X: Collection[SentenceLike]) -> None:
        self.codes, self.offsets = model.encode(X)
        self.coarse, self.own, self.seen, self.max_length = model.coarse, model.own, model.seen, model.max_length
        self.parts = np.diff(self.offsets)
        if not self.parts.all():
            raise ValueError(f"sentence {int(self.parts.argmin())} of the pool is empty: there is nothing to ask")

    def fits(self, model: DependencyModel) -> bool:
        """Whether codes are as the model was trained on them; a fit chooses anew."""
        own, its = self.own, model.own
        is_own = its.features is own.features and its.sizes == own.sizes and its.units is own.units
        is_alike = model.coarse == self.coarse and model.max_length == self.max_length
        return is_own and is_alike and model.seen is self.seen

    def read(self, model: DependencyModel, chosen: Integers, strategy: str) -> Floats:
        values = np.empty(len(chosen))
        for j, i in enumerate(chosen.tolist()):
            codes = self.codes[self.offsets[i] : self.offsets[i + 1]]
            ranked = model.ranked(codes, 2 if strategy == "margin" else 1)
            if strategy == "margin":
                values[j] = ranked[1][1] - ranked[0][1] if len(ranked) > 1 else -np.inf
            else:
                values[j] = value_of(model, codes, ranked[0][0], strategy)
        return values

    def vectors(self, chosen: Integers) -> csr_array:
        ends = self.offsets[chosen + 1]
        words = np.concatenate([self.codes[a:b, 0] for a, b in zip(self.offsets[chosen], ends, strict=True)])
        _, ids = np.unique(words, return_inverse=True)
        starts = np.concatenate([[0], np.cumsum(self.parts[chosen])])
        rows = csr_array((np.ones(len(ids)), ids.ravel(), starts), (len(chosen), int(ids.max(initial=0)) + 1))
        rows.sum_duplicates()
        return rows


def value_of(model: DependencyModel, codes: NDArray[np.int32], best: Integers, strategy: str) -> float:
    """The value of a sentence under a strategy that needs probabilities."""
    weights = probable_weights(model, f"strategy={strategy!r}")
    decoder = model.oracle.decoder(len(codes))
    table = decoder.table(codes, weights)
    log_sum, chances = decoder.chances(table)
    arcs = best[:, 0], np.arange(len(best)), best[:, 1]
    if strategy == "confidence":
        return float(log_of(-np.expm1(min(float(table[arcs].sum(dtype=np.float64)) - log_sum, 0.0))))
    if strategy == "entropy":
        return float(log_of(log_sum - float((chances * np.where(chances > 0.0, table, 0.0)).sum())))
    wrong: Floats = np.maximum(1.0 - chances[arcs], 0.0)
    return float(log_of(wrong.max() if strategy == "span" else wrong.sum()))


def labels_in(Y: Sequence[object]) -> set[Hashable]:
    """The labels of arcs."""
    trees = (getattr(y, "arcs", y) for y in Y)
    pairs = chain.from_iterable(tree for tree in trees if hasattr(tree, "__iter__") and not isinstance(tree, str))
    labels = (pair[1] for pair in pairs if isinstance(pair, (tuple, list)) and len(pair) == 2)
    return {label for label in labels if isinstance(label, str) and label != "_"}
