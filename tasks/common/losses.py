"""Models that train with one of several losses: with "auto" these are compared on held-out examples, or added.

The scores of model k are log-odds at a temperature T_k, fitted to held-out examples, and their sum is at one of its
own, T. So the whole is one linear model of log-odds, with weights

    w = sum_k w_k / (T_k T).

Sequences: on 13 draws of parts of training data (chunks, entities, tags, letters; 300 to 2,700 sequences) the sum
predicts better than either part in 11, and 0.1 % worse than the better one in two. Dense columns in a taxonomy: on 12
draws (images, intents, reviews; 500 to 12,000 rows) it is 0.6 to 2.8 % better than the margin, and at most 0.5 % behind
the better part. For sparse texts a margin stands alone: on 8 draws the log loss is 0.2 % ahead to 10 % behind it, and
the sum 0.6 % ahead to 2.5 % behind.
"""

from __future__ import annotations

import copy
import dataclasses
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

from structsvm.progress import Monitor
from structsvm.shards.tokens import StoredTokens
from structsvm.solvers import ConditionalLikelihood
from structsvm.stored_values import Record, Stored, Text
from structsvm.tasks.common.likelihood import HELD_OUT
from structsvm.tasks.common.model import TRAINING, ChoosingModel
from structsvm.tasks.common.selection import LOWEST, Choice, LossSearch, Search, joined, ratio
from structsvm.tasks.common.solver import Settings, is_auto, is_log, make_solver

# Numbers that the log loss may store in all to be tried: 1 GB of them.
MOST_MOMENTS = 1 << 28
# Where the path of the log loss begins: below, hardly anything is learnt.
LOWEST_OF_LOG = 10.0 * LOWEST

# What a file contains of the part of a sum that was trained on a margin.
MARGIN = Record({"loss": Text(), **TRAINING.fields}, needed=False)


def solver_of(params: Any, loss: str) -> Any:
    """The solver that parameters, a dict, name for a loss."""
    return make_solver(Settings(**params | {"loss": loss}))


def named(loss: Any) -> str:
    """The name of a loss; that of a matrix of losses is "matrix"."""
    return loss if isinstance(loss, str) else "matrix"


class LossModel(ChoosingModel):
    """Base of the models whose loss can be chosen.

    Attributes
    ----------
    oracle : Oracle
        With a method `with_loss`.
    loss : str
        The name of the loss.
    compares_always : bool
        Whether losses are compared even if C is given.
    compared : callable
        Makes one search of those for all losses.
    """

    oracle: Any
    loss: Any
    compares_always: ClassVar[bool] = False
    compared: ClassVar[Any] = LossSearch

    @abstractmethod
    def losses_to_compare(self, data: Any) -> Sequence[str]:
        """The losses to choose from on encoded data, in the order of preference; none if the loss is fixed."""

    @abstractmethod
    def search_for_loss(self, data: Any, sample_weight: Any, solver: Any) -> Search:
        """The choice of C for the current loss."""

    def first_loss(self, data: Any) -> str:
        """The loss of a first training on encoded data if none is chosen."""
        return self.loss

    def solver_of_loss(self, loss: str) -> Any:
        """The solver that the model's parameters name for a loss."""
        return solver_of(self.params, loss)

    def set_loss(self, loss: str) -> None:
        """Train with a loss from now on."""
        if loss != self.loss:
            self.oracle = self.oracle.with_loss(loss)

    def with_loss(self, loss: str) -> Any:
        """The same model, to be trained with another loss."""
        model = self.again()
        model.set_loss(loss)
        return model

    def train(
        self,
        data: Any,
        solver: Any,
        *,
        passes: int | None = None,
        resume: bool = False,
        choose: bool = False,
        **options: Any,
    ) -> Any:
        """As `ChoosingModel.train`; if the loss can be chosen, a first `fit` chooses it with C."""
        if is_auto(self.params.get("loss")):
            goes_on = self.is_trained and (resume or passes is not None)
            if not goes_on:
                self.set_loss(self.first_loss(data))
            if not goes_on or is_log(self.loss) != isinstance(solver, ConditionalLikelihood):
                solver = self._own_solver(solver)
            if not goes_on and passes is None and (choose or self.compares_always):
                if self.choice is None:
                    monitor = options.get("monitor") or Monitor()
                    partial = self._choose(data, solver, options.get("sample_weight"), monitor)
                    if partial is not None:
                        return partial
                if choose and self.choice is None:
                    self.provide_for_few(solver)
                choose = self.choice is not None
                if self.choice is not None and self.choice.loss is not None:
                    self.set_loss(self.choice.loss)
                    solver = self._own_solver(solver)
        return super().train(data, solver, passes=passes, resume=resume, choose=choose, **options)

    def _own_solver(self, solver: Any) -> Any:
        """The solver of the current loss, with the checkpoint of another."""
        own = copy.copy(self.solver_of_loss(self.loss))
        own.checkpoint = solver.checkpoint
        return own

    def search(self, data: Any, sample_weight: Any, solver: Any) -> Any:
        losses = self.losses_to_compare(data)
        if not losses:
            return self.search_for_loss(data, sample_weight, solver)
        models = [self.with_loss(loss) for loss in losses]
        return self.compared([m.search_for_loss(data, sample_weight, self.solver_of_loss(m.loss)) for m in models])

    def _adopt_part(self, part: Any) -> Any:
        self.oracle = part.model.oracle
        return super()._adopt_part(part)


class PartSearch(Search):
    """The choice of C for one of the models.

    Attributes
    ----------
    models : list of AddedModel
        Per split of the examples, the model at the best value.
    """

    def keep(self) -> None:
        super().keep()
        self.models = [part.model.again() for part in self.parts]


class SumSearch(LossSearch):
    """The choice of C for each loss, and the scales at which models are added.

    Training continues with the loss of the first search.
    """

    def __init__(self, searches: Any) -> None:
        super().__init__(searches)
        for search in searches:
            if is_log(search.model.loss):
                search.lowest, search.patience = LOWEST_OF_LOG, 1

    def choose(self, monitor: Any) -> Choice | None:
        choice = super().choose(monitor)
        if choice is None:
            return None
        first = self.searches[0]
        problem, weight = first.model.bind(first.data, first.solver, first.weight)
        chosen = [part.held_out[:: -(-len(part.held_out) // HELD_OUT)].copy() for part in first.parts]

        def temperature(models: Any) -> Any:
            return first.model.temperature_of(list(zip(models, chosen, strict=True)), problem, weight)

        scales = {search.model.loss: 1.0 / temperature(search.models) for search in self.searches}
        sums = [part.model.again() for part in first.parts]
        for k, model in enumerate(sums):
            model.weights = sum(scales[search.model.loss] * search.models[k].weights for search in self.searches)
        total = temperature(sums)
        for part, model in zip(first.parts, sums, strict=True):
            part.model = model
        held = joined([part.judged() for part in first.parts])
        return dataclasses.replace(
            first.choice,
            loss=first.model.loss,
            losses=choice.losses,
            scales={loss: scale / total for loss, scale in scales.items()},
            total=ratio(*held[1:]),
            tables={search.model.loss: search.choice.table for search in self.searches},
        )


class AddedModel(LossModel):
    """Base of the models that may be a sum: of one that was trained with the log loss, and of one with a margin.

    Attributes
    ----------
    weights : ndarray
        Of the sum.
    margin : AddedModel or None
        The part of a sum that was trained on a margin; `result` and `state` are then those of the log loss's part.
        None: there is one part.
    """

    compared = SumSearch
    weights: Any
    margin: Any = None

    @property
    def results(self) -> dict[str, Any]:
        """The outcome of each training, by its loss."""
        trained = [model for model in (self, self.margin) if model is not None and model.is_trained]
        return {named(model.loss): model.result for model in trained}

    def train(self, data: Any, solver: Any, *, passes: int | None = None, resume: bool = False, **options: Any) -> Any:
        """As `LossModel.train`; the models of several losses are added. On other data, a sum continues as one model."""
        margin, self.margin = self.margin, None
        before = self.fingerprint if resume and self.is_trained else None
        run = super().train(data, solver, passes=passes, resume=resume, **options)
        adds = passes is None and self.choice is not None and self.choice.scales and before in (None, self.fingerprint)
        return self._with_margin(margin, data, options.get("sample_weight"), run, resume=resume) if adds else run

    def _with_margin(self, margin: Any, data: Any, sample_weight: Any, run: Any, *, resume: bool) -> Any:
        """Train the other part of a sum, or resume `margin`, and add it; returns the run that has ended last."""
        choice: Any = self.choice
        scales = choice.scales
        if run.status != "interrupted":
            if margin is None or not resume:
                (loss,) = scales.keys() - {self.loss}
                margin = self.with_loss(loss)
                margin.result = margin.state = None
            margin, solver = margin.again(), self.solver_of_loss(margin.loss)
            margin.params, solver.checkpoint = self.params | {"loss": margin.loss, "probability": False}, None
            solver.set_params(C=choice.losses[margin.loss][0])
            if run.status == "stopped":  # by a callback, which sees the first training alone
                solver.set_params(max_iter=self.result.n_iter)
            run = margin.train(data, solver, sample_weight=sample_weight, resume=resume)
            if run.status == "interrupted":
                self.result = dataclasses.replace(self.result, status=run.status)
        if margin is not None:
            self.margin = margin
            self.weights = scales[self.loss] * self.weights + scales[margin.loss] * margin.weights
        return run

    def search(self, data: Any, sample_weight: Any, solver: Any) -> Any:
        """Of shards, C is chosen on as many examples as one may have, and the loss is not."""
        if isinstance(data[0], StoredTokens):
            *data, sample_weight = data[0].in_memory(data[1], sample_weight)
            return self.search_for_loss(tuple(data), sample_weight, solver)
        return super().search(data, sample_weight, solver)

    def losses_to_compare(self, data: Any) -> Any:
        losses = self.possible_losses(data)
        return () if len(losses) < 2 or self.is_open(data) else losses

    @abstractmethod
    def possible_losses(self, data: Any) -> Sequence[str]:
        """The losses that may be added: no log loss if it takes much memory."""

    def search_for_loss(self, data: Any, sample_weight: Any, solver: Any) -> Search:
        return PartSearch(self, data, sample_weight, solver)

    # ---- model files ----------------------------------------------------------------------------

    def set_margin(self, stored: Stored | None) -> None:
        """Restore the margin's training, if a file has one."""
        if stored is None:
            return
        self.margin = self.with_loss(stored.loss)
        self.margin.set_training(stored)
        if None in (self.margin.C, self.margin.result, self.margin.state):
            raise ValueError("a part of a sum without its training")
