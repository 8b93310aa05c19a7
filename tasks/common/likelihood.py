"""Probabilities of structures: all outputs compete, and the oracle's `expect` sums over them.

``P(y | x) = exp(<w, Psi(x, y)> / T) / Z``, with the temperature T of `structsvm.tasks.common.calibration`; a model that
was trained with the log loss has T = 1.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from structsvm.dual._rounds import log_losses
from structsvm.tasks.common.calibration import CalibratedModel, check_evidence, fit_temperature, held_out
from structsvm.tasks.common.model import ChoosingModel

# Examples that a temperature is fitted on at once, and the largest size of its logarithm.
HELD_OUT, LARGEST = 500, math.log(64.0)


class CalibratedStructures(CalibratedModel, ChoosingModel):
    """Base of the models of structures.

    Attributes
    ----------
    oracle : Oracle
    weights : ndarray of shape (n_features,)
    """

    calibrates = False
    oracle: Any
    weights: Any

    @property
    def can_sum(self) -> bool:
        """Whether all outputs compete: greedy search has no others to compare."""
        return True

    def finish(self, solver: Any, run: Any, weight: Any, before: Any) -> None:
        """Fit the temperature of a margin, where the dual has multipliers of examples that can be set to 0."""
        if self.oracle.loss_name == "log":
            return
        can = run.has_dual and solver.penalty is not None and run.state.problem is run.problem
        if not self.can_sum or (before is None and not (can and run.problem.n_samples > 1)):
            self.temperature = None
        else:
            super().finish(solver, run, weight, before)

    def held_out(self, problem: Any) -> Iterator[Any]:
        first = problem.n_before
        return (first + np.sort(chosen[:HELD_OUT]) for chosen in held_out(problem.n_samples - first, 1))

    def incomplete(self, problem: Any) -> Any:
        """The problem whose outputs are known as far as the data tell, of one that completions may have changed."""
        return problem

    def calibrate_on(self, problem: Any) -> None:
        """Fit the temperature to the examples of a problem, none of which the model was trained on."""
        check_evidence(problem.n_samples)
        self.temperature = self.temperature_of([(self, np.arange(problem.n_samples))], problem, None)

    def temperature_of(self, turns: Any, problem: Any, weight: Any, **search: float) -> float | None:
        """The temperature of least log loss, of what is known where it is not all."""
        problem = self.incomplete(problem)
        weights = [np.ones(len(chosen)) if weight is None else weight[chosen] for _, chosen in turns]

        def loss(beta: float) -> tuple[float, float]:
            value = slope = 0.0
            for (model, chosen), of_each in zip(turns, weights, strict=True):
                losses, slopes = log_losses(problem, model.weights * model.weights.dtype.type(beta), chosen)
                value += float(of_each @ losses)
                slope += float(of_each @ slopes) / beta
            return value, slope

        return fit_temperature(loss, limit=LARGEST, **search)

    def check_sums(self, asked: str) -> None:
        """Raise ValueError, naming what asks, where inference is greedy."""
        if not self.can_sum:
            raise ValueError(f"{asked} needs inference='exact'; greedy search has no other labellings to compare")

    def probable_weights(self, asked: str) -> Any:
        """The weights whose scores are logarithms of probabilities; ValueError, naming what asks, without them."""
        self.check_sums(asked)
        if self.temperature is None:
            raise ValueError(
                f"{asked} needs probabilities, and the scores of this model are margins: train with loss='log', or by "
                "fit with probability=True and a solver that has a dual, or call calibrate on labelled data"
            )
        return self.weights / self.weights.dtype.type(self.temperature)


def temperature_of_loss(oracle: Any) -> float | None:
    """1 for the log loss, whose scores are logarithms of probabilities."""
    return 1.0 if oracle.loss_name == "log" else None
