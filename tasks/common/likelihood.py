"""Probabilities of structures: all outputs compete, and the oracle's `expect` sums over them.

``P(y | x) = exp(<w, Psi(x, y)> / T) / Z``, with the temperature T of `structsvm.tasks.common.calibration`; a model that
was trained with the log loss has T = 1.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from numbers import Real
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from structsvm.dual._rounds import log_losses
from structsvm.parameters import Interval, check_arguments
from structsvm.tasks.common.calibration import Calibration, check_evidence, fit_temperature, held_out, surest_loss

T = TypeVar("T")

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from structsvm._problem import Problem
    from structsvm.arrays import Floats, Integers, Weights
    from structsvm.tasks.common.model import TaskModel
    from structsvm.tasks.common.training import Job

# Examples that a temperature is fitted on at once, and the largest size of its logarithm.
HELD_OUT, LARGEST = 500, math.log(64.0)


class StructureCalibration(Calibration):
    """Calibration of structures whose oracle sums over all outputs.

    Attributes
    ----------
    limit : float
        The largest size of the logarithm of the temperature.
    """

    limit = LARGEST

    def fit(self, job: Job) -> None:
        """Fit the temperature of a margin, where the dual has multipliers of examples that can be set to 0."""
        model, run = job.learner, job.run
        if model.oracle.loss_name == "log":
            return
        penalty = run.last_solver.penalty if run.has_dual else None
        can = penalty is not None and run.state.problem is run.problem
        if not model.can_sum or (job.before is None and not (can and run.problem.n_samples > 1)):
            model.temperature = None
        else:
            super().fit(job)

    def held_out(self, model: TaskModel, problem: Problem) -> Iterator[Integers]:
        first = problem.n_before
        return (first + np.sort(chosen[:HELD_OUT]) for chosen in held_out(problem.n_samples - first, 1))

    def temperature(
        self,
        model: TaskModel,
        turns: Sequence[tuple[Any, Any]],
        problem: Any,
        weight: Weights | None,
        *,
        is_batch: bool = False,
        **search: float,
    ) -> float | None:
        """The temperature of least log loss, of what is known where it is not all."""
        problem = model.incomplete(problem)
        weights = [np.ones(len(chosen)) if weight is None else weight[chosen] for _, chosen in turns]

        def loss(beta: float) -> tuple[float, float]:
            value = slope = 0.0
            for (one, chosen), of_each in zip(turns, weights, strict=True):
                losses, slopes = log_losses(problem, one.weights * one.weights.dtype.type(beta), chosen)
                value += float(of_each @ losses)
                slope += float(of_each @ slopes) / beta
            return value, slope

        least = 0.0 if is_batch else surest_loss(np.concatenate(weights))
        return fit_temperature(loss, limit=self.limit, least=least, **search)


def calibrate_on(model: Any, problem: Any) -> None:
    """Fit the temperature of a model to the examples of a problem, none of which it was trained on."""
    check_evidence(problem.n_samples)
    model.temperature = model.calibration.temperature(model, [(model, np.arange(problem.n_samples))], problem, None)


def probabilities_in(model: Any, problem: Any) -> NDArray[np.float64]:
    """The probability of what is known of each output of a problem: of all outputs that agree with it, together."""
    weights = probable_weights(model, "probability_of")
    losses = log_losses(model.incomplete(problem), weights, np.arange(problem.n_samples))[0]
    return np.exp(-np.maximum(losses, 0.0))


def check_least(least: float, asked: str) -> None:
    """Raise ValueError unless the least probability that is asked for is over 0, and at most 1."""
    check_arguments(asked, locals(), least=Interval(Real, 0.0, 1.0, closed="right"))


def check_sums(model: TaskModel, asked: str) -> None:
    """Raise ValueError, naming what asks, where inference is greedy, or constraints are too many."""
    if not model.can_sum:
        raise ValueError(model.no_sums(asked))


def probable_weights(model: TaskModel, asked: str) -> Floats:
    """The weights whose scores are logarithms of probabilities; ValueError, naming what asks, without them."""
    check_sums(model, asked)
    if model.temperature is None:
        raise ValueError(
            f"{asked} needs probabilities, and the scores of this model are margins: train with loss='log', or by "
            "fit with probability=True and a solver that has a dual, or call calibrate on labelled data"
        )
    if model.temperature == 1.0:
        return model.weights
    scaled = model.scaled
    if scaled is None or scaled[0] is not model.weights or scaled[1] != model.temperature:
        weights = model.weights / model.weights.dtype.type(model.temperature)
        scaled = model.scaled = model.weights, model.temperature, weights
    return scaled[2]


def ranking_weights(model: TaskModel, *, probabilities: bool) -> Floats:
    """The weights that rank outputs; with `probabilities` see `probable_weights`."""
    return probable_weights(model, "probabilities=True") if probabilities else model.weights


def with_probabilities(ranked: Iterable[tuple[T, float]], log_sum: float) -> list[tuple[T, float]]:
    """Outputs with their probabilities, from outputs with their scores and the log of the sum over all outputs."""
    return [(output, math.exp(min(score - log_sum, 0.0))) for output, score in ranked]


def temperature_of_loss(oracle: Any) -> float | None:
    """1 for the log loss, whose scores are logarithms of probabilities."""
    return 1.0 if oracle.loss_name == "log" else None
