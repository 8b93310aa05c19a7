"""Sums of models that were trained with several losses, with the scales of each chosen on held-out examples.

The scores of model k are log-odds at a temperature T_k, fitted to held-out examples, and their sum is at one of its
own, T. So the whole is one linear model of log-odds, with weights

    w = sum_k w_k / (T_k T).

Models of sequences and, in a taxonomy, of dense columns are summed. For sparse texts a margin stands alone.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from structsvm.solvers.larank import LaRank
from structsvm.tasks.common.likelihood import HELD_OUT
from structsvm.tasks.common.model import rows_of
from structsvm.tasks.common.selection.choice import Choice, ChosenSum
from structsvm.tasks.common.selection.search import LOWEST_OF_LOG, LossSearch, Search, joined, ratio
from structsvm.tasks.common.solver import is_log

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from structsvm.arrays import Integers
    from structsvm.progress import Monitor
    from structsvm.tasks.common.examples import Examples
    from structsvm.tasks.common.model import TaskModel
    from structsvm.tasks.common.selection.search import Held

# Numbers that the log loss may store in all to be tried: 1 GB of them.
MOST_MOMENTS = 1 << 28


class SumSearch(LossSearch):
    """The choice of C for each loss, and the scales at which models are added.

    Training continues with the loss of the first search.

    Attributes
    ----------
    scales : dict of float
        By loss, what its weights are multiplied by in the sum.
    sums : list of TaskModel
        Per split of the examples, the sum.
    """

    scales: dict[str, float]
    sums: list[TaskModel]

    def __init__(self, searches: Sequence[Search], n_jobs: int | None = None) -> None:
        super().__init__(searches, n_jobs)
        for search in searches:
            solver = search.model.solver_of_loss(search.loss)
            search.grows = search.model.grows and type(solver) is LaRank and solver.deterministic
            if search.examples.groups is not None and self.search.examples.groups is None:
                search.whole = self.search
            if is_log(search.model.loss):
                search.lowest, search.patience = LOWEST_OF_LOG, 1

    @property
    def held_out(self) -> list[tuple[TaskModel, Examples]]:
        """Per split, the sum of the models at their best values and the examples that they were not trained on."""
        return [(model, part.others) for model, part in zip(self.sums, self.search.parts, strict=True)]

    def choose(self, monitor: Monitor) -> Choice | None:
        return super().choose(monitor) if all(list(search.divisions()) for search in self.searches) else None

    def compared(self) -> Choice:
        first = self.search = self.first_search
        temperature = self._temperatures()
        self.scales = {search.loss: 1.0 / temperature(search.models) for search in self.searches}
        self.sums = sums = self._added(self.searches)
        total = temperature(sums)
        for part, model in zip(first.parts, sums, strict=True):
            part.model = model
        self.held = held = joined([part.held_out_scores() for part in first.parts])
        found = ChosenSum(
            first.model.loss,
            self.losses,
            {loss: scale / total for loss, scale in self.scales.items()},
            ratio(*held[1:]),
            {search.loss: search.choice.table for search in self.searches},
        )
        return dataclasses.replace(first.choice, others=(found,))

    def more(self, monitor: Monitor) -> Held:
        others = [search.elsewhere(monitor) for search in self.searches]
        for part, model in zip(others[0].parts, self._added(others), strict=True):
            part.model = model
        return joined([part.held_out_scores() for part in others[0].parts])

    def _added(self, searches: Sequence[Search]) -> list[TaskModel]:
        """The sum of the models of each part, one of each search."""
        sums = []
        for models in zip(*(search.models for search in searches), strict=True):
            weights, *others = (self.scales[model.loss] * model.weights for model in models)
            for other in others:
                weights += other
            sums.append(models[0].copy())
            sums[-1].weights = weights
        return sums

    def _temperatures(self) -> Callable[[Sequence[TaskModel]], float]:
        """A function that fits the temperature of a model per part to some examples that the part holds out.

        Temperatures scale weights: of these it takes those that the examples touch.
        """
        first = self.first_search
        chosen = [part.held_out[:: -(-len(part.held_out) // HELD_OUT)] for part in first.parts]
        model, examples, rows = first.model.narrowed(first.examples.take(np.concatenate(chosen)))
        places: list[Integers] = np.split(np.arange(len(examples)), np.cumsum([len(one) for one in chosen])[:-1])
        if rows is None:
            examples, places = first.examples, chosen
        problem, weight = model.bind(examples, first.solver)

        def narrowed(one: TaskModel) -> TaskModel:
            if rows is None:
                return one
            other = model.copy()
            other.weights = rows_of(one.weights, rows, model.oracle.n_features)
            return other

        def temperature(models: Sequence[TaskModel]) -> float:
            turns = list(zip(map(narrowed, models), places, strict=True))
            return model.calibration.temperature(model, turns, problem, weight)

        return temperature
