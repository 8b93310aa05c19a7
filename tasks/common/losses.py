"""Models that train with one of several losses: with "auto" these are compared on held-out examples."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

from structsvm.progress import Monitor
from structsvm.tasks.common.model import ChoosingModel
from structsvm.tasks.common.selection import LossSearch, Search
from structsvm.tasks.common.solver import AUTO, Settings, make_solver


def solver_of(params: Any, loss: str) -> Any:
    """The solver that parameters, a dict, ask for, for a loss."""
    return make_solver(Settings(**params | {"loss": loss}))


class LossModel(ChoosingModel):
    """Base of the models whose oracle has a loss that is to be chosen.

    Attributes
    ----------
    oracle : Oracle
        With a method `with_loss`.
    compares_always : bool
        Whether losses are compared where C is given, too.
    compared : callable
        Makes one search of those for all losses.
    """

    oracle: Any
    compares_always: ClassVar[bool] = False
    compared: ClassVar[Any] = LossSearch

    @property
    @abstractmethod
    def loss(self) -> str:
        """The name of the loss."""

    @abstractmethod
    def losses_to_compare(self, data: Any) -> Sequence[str]:
        """The losses to choose from on encoded data, in the order of preference; none where the loss is settled."""

    @abstractmethod
    def search_for_loss(self, data: Any, sample_weight: Any, solver: Any) -> Search:
        """The choice of C for the present loss."""

    def first_loss(self, data: Any) -> str:
        """The loss that a first training on encoded data has where it is not chosen."""
        return self.loss

    def solver_of_loss(self, loss: str) -> Any:
        """The solver that the model's parameters ask for, for a loss."""
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
        """As `ChoosingModel.train`; where the loss is to be chosen, a first `fit` chooses it with C."""
        if self.params.get("loss") == AUTO:
            goes_on = self.is_trained and (resume or passes is not None)
            if not goes_on:
                self.set_loss(self.first_loss(data))
            solver = self._own_solver(solver)
            if not goes_on and passes is None and (choose or self.compares_always):
                if self.choice is None:
                    monitor = options.get("monitor") or Monitor()
                    partial = self._choose(data, solver, options.get("sample_weight"), monitor)
                    if partial is not None:
                        return partial
                choose = self.choice is not None
                if self.choice is not None and self.choice.loss is not None:
                    self.set_loss(self.choice.loss)
                    solver = self._own_solver(solver)
        return super().train(data, solver, passes=passes, resume=resume, choose=choose, **options)

    def _own_solver(self, solver: Any) -> Any:
        """The solver of the present loss, with the checkpoint of another."""
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
