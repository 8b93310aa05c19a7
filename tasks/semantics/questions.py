"""The learning loop of semantic parsing: pools of sentences."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array

from structsvm.tasks.common.questions.reading import Reader
from structsvm.tasks.common.questions.strategies import log_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from structsvm.arrays import Floats, Integers
    from structsvm.tasks.semantics.bags import SentenceLike
    from structsvm.tasks.semantics.hybrid import HybridModel


class MeaningReader(Reader["HybridModel"]):
    """Sentences, and the two most probable meanings of each by hybrid trees; one without a known word has none.

    The margin is the log of the ratio of their probabilities.
    """

    strategies = ("margin", "confidence")

    def __init__(self, model: HybridModel, X: Iterable[SentenceLike]) -> None:
        self.tokens, self.settings = model.tokens_of([*X]), settings_of(model)
        self.parts = np.array([len(sentence) for sentence in self.tokens])
        if not self.parts.all():
            raise ValueError(f"sentence {int(self.parts.argmin())} of the pool is empty: there is nothing to ask")

    def fits(self, model: HybridModel) -> bool:
        """Whether words are split as the model was trained on them, and the same meanings may be run."""
        return settings_of(model) == self.settings

    def read(self, model: HybridModel, chosen: Integers, strategy: str) -> Floats:
        found = model.kbest([self.tokens[i] for i in chosen.tolist()], 2)
        p = np.array([[p for _, p in ranked] + [0.0] * (2 - len(ranked)) for ranked in found]).reshape(-1, 2)
        if strategy == "confidence":
            return log_of(1.0 - p[:, 0])
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(p[:, 0] > 0.0, log_of(p[:, 1]) - log_of(p[:, 0]), 0.0)

    def vectors(self, chosen: Integers) -> csr_array:
        words = [[token[0] for token in self.tokens[i]] for i in chosen.tolist()]
        number = {word: j for j, word in enumerate(dict.fromkeys(chain.from_iterable(words)))}
        ids = np.array([number[word] for word in chain.from_iterable(words)])
        starts = np.concatenate([[0], np.cumsum([len(sentence) for sentence in words])])
        rows = csr_array((np.ones(len(ids)), ids, starts), (len(chosen), len(number)))
        rows.sum_duplicates()
        return rows


def settings_of(model: HybridModel) -> tuple[object, ...]:
    """The settings that values depend on beside a model's weights: its method, and parameters that it follows."""
    return model.method, model.settings.lowercase, getattr(model.settings, "executor", None)
