"""Sums of models that were trained with several losses, with the scales of each chosen on held-out examples.

The scores of model k are log-odds at a temperature T_k, fitted to held-out examples, and their sum is at one of its
own, T. So the whole is one linear model of log-odds, with weights

    w = sum_k w_k / (T_k T).

Models of sequences and, in a taxonomy, of dense columns are summed. For sparse texts a margin stands alone.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from structsvm.tasks.common.likelihood import HELD_OUT
from structsvm.tasks.common.selection.choice import Choice, ChosenLoss, ChosenSum
from structsvm.tasks.common.selection.search import LOWEST_OF_LOG, LossSearch, Search, joined, ratio
from structsvm.tasks.common.solver import is_log

if TYPE_CHECKING:
    from collections.abc import Sequence

    from structsvm.progress import Monitor
    from structsvm.tasks.common.examples import Examples
    from structsvm.tasks.common.model import TaskModel

# Numbers that the log loss may store in all to be tried: 1 GB of them.
MOST_MOMENTS = 1 << 28


class SumSearch(LossSearch):
    """The choice of C for each loss, and the scales at which models are added.

    Training continues with the loss of the first search.
    """

    def __init__(self, searches: Sequence[Search], n_jobs: int | None = None) -> None:
        super().__init__(searches, n_jobs)
        for search in searches:
            search.grows = search.may_grow
            if search.examples.groups is not None and self.search.examples.groups is None:
                search.whole = self.search
            if is_log(search.model.loss):
                search.lowest, search.patience = LOWEST_OF_LOG, 1

    @property
    def held_out(self) -> list[tuple[TaskModel, Examples]]:
        """Per split, the sum of the models at their best values and the examples that they were not trained on."""
        return [(model, part.others) for model, part in zip(self.sums, self.search.parts, strict=True)]

    def choose(self, monitor: Monitor) -> Choice | None:
        if not all(list(search.divisions()) for search in self.searches):
            return None
        choice = super().choose(monitor)
        compared = None if choice is None else choice.get(ChosenLoss)
        if compared is None:
            return None
        first = self.search = self.searches[0]
        calibration = first.model.calibration
        problem, weight = first.model.bind(first.examples, first.solver)
        chosen = [part.held_out[:: -(-len(part.held_out) // HELD_OUT)].copy() for part in first.parts]

        def temperature(models: list[TaskModel]) -> float:
            return calibration.temperature(first.model, list(zip(models, chosen, strict=True)), problem, weight)

        scales = {search.model.loss: 1.0 / temperature(search.models) for search in self.searches}
        sums = [part.model.copy() for part in first.parts]
        for k, model in enumerate(sums):
            weights, *others = (scales[search.model.loss] * search.models[k].weights for search in self.searches)
            for other in others:
                weights += other
            model.weights = weights
        total = temperature(sums)
        for part, model in zip(first.parts, sums, strict=True):
            part.model = model
        self.sums = sums
        self.held = held = joined([part.held_out_scores() for part in first.parts])
        found = ChosenSum(
            first.model.loss,
            compared.losses,
            {loss: scale / total for loss, scale in scales.items()},
            ratio(*held[1:]),
            {search.model.loss: search.choice.table for search in self.searches},
        )
        return dataclasses.replace(first.choice, others=(found,))
