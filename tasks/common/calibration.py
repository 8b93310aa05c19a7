"""Probabilities from scores: a softmax at a temperature that is fitted to held-out examples.

With class scores s a model says ``P(y | x) = exp(s_y / T) / sum_z exp(s_z / T)``. Scores of a margin-trained machine
are measured in margins, whatever the noise; T > 0 is the unit in which they are log-odds. It changes no order, so the
most probable class is the predicted one. (Two classes with one score f: a softmax over 0 and f, Platt's sigmoid without
an offset.)
"""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from structsvm.result import relative_gap

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from structsvm._problem import BoundProblem
    from structsvm.arrays import Floats, Integers, Weights
    from structsvm.solvers import Solver
    from structsvm.solvers.run import Run
    from structsvm.tasks.common.model import TaskModel
    from structsvm.tasks.common.training import Job

# Held out at once are a fifth of the examples and no more than LARGEST, with no more than VALUES scores; with fewer
# than FEW examples all of them are in turn.
FEW, FOLDS, LARGEST, VALUES = 500, 5, 2000, 1 << 20

# Passes that make up for the examples held out; of a machine that is trained to a gap each pass does little.
PASSES, PASSES_TO_GAP = 1, 20

# Temperatures lie in exp(-LIMIT) .. exp(LIMIT): scores that tell everything, or nothing, have no finite one.
LIMIT = 20.0
PRECISION, LEAST_PRECISION = 1e-3, 0.5  # in their logarithms: usual, and coarsest for batches that count little

# Examples of a stream after which half of the temperature is that of the last batch.
STREAM = 500


def check_evidence(is_there: object) -> None:
    """Raise ValueError if data say nothing of the temperature."""
    if not is_there:
        raise ValueError("calibrate needs labelled examples, and there are none")


def fit_temperature(
    loss: Callable[[float], tuple[float, float]],
    precision: float = PRECISION,
    start: float = 1.0,
    limit: float = LIMIT,
    least: float = 0.0,
) -> float:
    """The temperature of least loss, or where this would be below `least`, the one at which it is that.

    Parameters
    ----------
    loss : callable
        Takes beta = 1 / T > 0 and returns a negative log-likelihood and its derivative by beta. For each example the
        first is ``log sum_y exp(beta s_y) - beta s_true``, and so the second ``E_beta[s] - s_true``: convex in beta,
        for class scores as for chains and trees, whose sum runs over all labellings.
    precision : float
        Of the logarithm of T, about.
    start : float
        What it probably is near to.
    limit : float
        The largest size of the logarithm of T.
    least : float
        A loss that the examples are too few to tell from 0; see `surest_loss`.

    Returns
    -------
    float
        T.
    """
    values: dict[float, float] = {}

    def slope(log_beta: float) -> float:
        values[log_beta], found = loss(math.exp(log_beta))
        return found

    found = _of_least_loss(slope, precision, start, limit)
    if min(values.values()) >= least:
        return found
    return math.exp(-_above(least, lambda b: loss(math.exp(b))[0], -math.log(found), limit, precision))


def surest_loss(weight: Floats) -> float:
    """The least total loss of held-out examples that says something: a mean of 1 / (n + 2).

    If all of n predictions are right, the temperature of least loss is the lowest that there is, and what is predicted
    is certain. By Laplace's rule of succession the next one is wrong with probability 1 / (n + 2), and a model of
    log-odds that says so has about that loss. The n examples of unequal weights count as ``(sum w)^2 / sum w^2``.
    """
    total = float(weight.sum())
    if not total:
        return 0.0
    parts = weight / total
    return total / (1.0 / float(parts @ parts) + 2.0)


def _above(least: float, loss: Callable[[float], float], log_beta: float, limit: float, precision: float) -> float:
    """The greatest log beta below one, of a lower loss, at which the loss is not below `least`; or -limit.

    Where the loss is 0 even there, no temperature makes a difference: the one that there is.
    """
    low, high, step = log_beta - 1.0, log_beta, 1.0
    while loss(max(low, -limit)) < least:
        if low <= -limit:
            return -limit if loss(-limit) > 0.0 else log_beta
        low, high, step = low - 2.0 * step, low, 2.0 * step
    low = max(low, -limit)
    while high - low > precision / 4:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if loss(middle) >= least else (low, middle)
    return low


def _of_least_loss(slope: Callable[[float], float], precision: float, start: float, limit: float) -> float:
    """The temperature at which the slope of a convex loss, by the logarithm of beta, is 0, or nearest to it."""
    # A bracket of the slope's zero, and false position in it (Illinois).
    a, step = -math.log(start), 1.0
    slope_a = slope(a)
    if slope_a == 0.0:
        return start
    direction = -1.0 if slope_a > 0.0 else 1.0
    while True:
        b = max(-limit, min(a + direction * step, limit))
        slope_b = slope(b)
        if (slope_b > 0.0) != (slope_a > 0.0):
            break
        if abs(b) == limit:
            return math.exp(-b)
        a, slope_a, step = b, slope_b, 2.0 * step
    while True:
        middle = b - slope_b * (b - a) / (slope_b - slope_a)
        if abs(b - a) <= 2.0 * precision or slope_b == 0.0:
            return math.exp(-middle)
        if abs(b - a) <= 8.0 * precision:  # halves are as good, whatever the curvature
            middle = 0.5 * (a + b)
        found = slope(middle)
        if (found > 0.0) != (slope_b > 0.0):
            a, slope_a = b, slope_b
        else:
            slope_a *= 0.5
        done = abs(middle - b) < precision / 4
        b, slope_b = middle, found
        if done:
            return math.exp(-b)


def softmax_loss(
    scores: Floats, known: NDArray[np.bool_], weight: Weights | None = None
) -> Callable[[float], tuple[float, float]]:
    """The loss of `fit_temperature` for class scores.

    One more example, with average scores and an unknown class, keeps the temperature finite if all predictions are
    right.

    Parameters
    ----------
    scores : array of shape (n_samples, n_classes)
    known : bool array of shape (n_samples, n_classes)
        Which classes each example may have: its own, or those of its bag.
    weight : array of shape (n_samples,), optional
    """
    scores = np.asarray(scores, dtype=np.float64)
    scores = scores - scores.max(axis=1, keepdims=True)
    right = np.where(known, scores, -np.inf)
    best = right.max(axis=1, keepdims=True)
    right = np.where(known, scores - best, 0.0)
    weight = np.ones(len(scores)) if weight is None else np.asarray(weight, dtype=np.float64)
    share = weight / weight.sum()
    centre = scores.mean(axis=1)

    def loss(beta: float) -> tuple[float, float]:
        p = np.exp(beta * scores)
        total = p.sum(axis=1)
        q = np.exp(beta * right) * known
        inside = q.sum(axis=1)
        log_total, mean = np.log(total), (p * scores).sum(axis=1) / total
        mean_right = (q * right).sum(axis=1) / inside + best[:, 0]
        value = weight @ (log_total - np.log(inside) - beta * best[:, 0]) + share @ (log_total - beta * centre)
        return float(value), float(weight @ (mean - mean_right) + share @ (mean - centre))

    return loss


def probabilities(scores: ArrayLike, temperature: float) -> NDArray[np.float64]:
    """Class probabilities, float64 array of the shape of `scores`, rows of which sum to 1."""
    p = np.asarray(scores, dtype=np.float64) / temperature
    p -= p.max(axis=1, keepdims=True)
    np.exp(p, out=p)
    p /= p.sum(axis=1, keepdims=True)
    return p


def held_out(n_samples: int, n_classes: int) -> Iterator[NDArray[np.intp]]:
    """The examples to hold out, in one part or in several turns; the same ones whatever the seed of training."""
    order = np.random.default_rng(0).permutation(n_samples)
    if n_samples < FEW:
        yield from np.array_split(order, min(FOLDS, n_samples))
    else:
        yield np.sort(order[: max(min(n_samples // FOLDS, LARGEST, VALUES // n_classes), FEW // FOLDS)])


class Calibration(ABC):
    """How the temperature of a kind of models is fitted after training.

    Some examples are removed from the trained dual, one more pass trains on the others, and the scores of the removed
    ones determine the temperature. If there are no multipliers to set to 0, another model is trained without them. On a
    stream, each batch is scored before it is trained on.
    """

    @abstractmethod
    def temperature(
        self, model: Any, turns: Any, problem: Any, weight: Weights | None, *, is_batch: bool = False, **search: float
    ) -> float | None:
        """The temperature of least loss over turns, each a model and its held-out examples; see `fit_temperature`.

        Those of a batch are not all that is known.
        """

    @abstractmethod
    def held_out(self, model: Any, problem: Any) -> Iterator[Integers]:
        """The examples of a problem to hold out, by their indices, in one part or in several turns."""

    def resumes(self, model: TaskModel) -> bool:
        """Whether examples can be removed from the trained dual; otherwise another model is trained without them."""
        return True

    def fit(self, job: Job) -> None:
        """Fit the temperature of what a job has trained; see `structsvm.tasks.common.training`."""
        model, run = job.learner, job.run
        known = None if job.before is None else job.before.temperature
        if not model.params.get("probability", model.calibrates):
            model.temperature = None
        elif run.status == "interrupted":
            model.temperature = known
        else:
            model.temperature = self._fitted(job, known)

    def _fitted(self, job: Job, known: float | None) -> float | None:
        """The temperature after training; that which was `known` before if Ctrl-C ends this."""
        model, run, problem = job.learner, job.run, job.run.problem
        solver = run.last_solver
        try:
            if job.before is None:
                turns = [(self.without(job, solver, chosen), chosen) for chosen in self.held_out(model, problem)]
            else:
                turns = [(job.before, np.arange(problem.n_before, problem.n_samples))]
            # Batches that were small say little: halfway, in logarithms, after STREAM examples.
            n = sum(len(chosen) for _, chosen in turns)
            share = 1.0 if known is None else n / (n + STREAM)
            precision = min(PRECISION / max(share, PRECISION), LEAST_PRECISION)
            found = self.temperature(
                model, turns, problem, job.weight, is_batch=known is not None, precision=precision, start=known or 1.0
            )
        except KeyboardInterrupt:
            run.status = "interrupted"
            return known
        if found is None:
            return model.temperature
        if known is not None:
            found = math.exp(share * math.log(found) + (1.0 - share) * math.log(known))
        return found

    def without(self, job: Job, solver: Solver, chosen: Integers) -> TaskModel:
        """The model without training on some examples."""
        run = job.run
        weight = np.ones(run.problem.n_samples) if job.weight is None else np.array(job.weight)
        weight[chosen] = 0.0
        solver = copy.copy(solver)
        solver.checkpoint, solver.random_state = None, 0
        other = self.run_without(job.learner, chosen, solver, run.problem, weight)
        last = run.n_iter  # no more than were needed for all examples
        if other.has_dual and self.resumes(job.learner):
            other.set_state(run.get_state(), adapt=True)
            last = other.n_iter + (PASSES if solver.gap_tol is None else PASSES_TO_GAP)
        try:
            while other.n_iter < last and not other.is_solved:
                if other.advance() and solver.gap_tol is not None:
                    other.certify()  # finds the best biases, too
                    if relative_gap(other.primal, other.dual) <= solver.gap_tol:
                        break
        finally:
            other.close()
        model = job.learner.copy()
        model.set_weights_from(other)
        return model

    def run_without(
        self, model: TaskModel, chosen: Integers, solver: Solver, problem: BoundProblem, weight: Weights
    ) -> Run:
        """A fresh run of a solver on a problem in which some examples have weight 0."""
        return solver.start(problem, sample_weight=weight)


class LabelCalibration(Calibration):
    """Calibration of classifiers: a softmax over the scores of labels."""

    def temperature(
        self,
        model: TaskModel,
        turns: list[tuple[TaskModel, Integers]],
        problem: BoundProblem,
        weight: Weights | None,
        *,
        is_batch: bool = False,
        **search: float,
    ) -> float | None:
        found = [self._scored(model, one, problem, chosen, weight) for one, chosen in turns]
        if not found:  # without any example another model would know no second class
            return None
        scores, known, weights = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return fit_temperature(softmax_loss(scores, known, weights), **search) if weights.any() else None

    def held_out(self, model: Any, problem: BoundProblem) -> Iterator[Integers]:
        first = problem.n_before
        return (first + chosen for chosen in held_out(problem.n_samples - first, len(model.labels)))

    def _scored(
        self, model: TaskModel, one: TaskModel, problem: BoundProblem, chosen: Integers, weight: Weights | None
    ) -> tuple[Floats, NDArray[np.bool_], Floats]:
        X, known = model.examples_of(problem, chosen)
        return one.class_scores(X), known, np.ones(len(chosen)) if weight is None else weight[chosen]


class RetrainedCalibration(LabelCalibration):
    """Calibration of classifiers from whose training no examples can be removed."""

    def resumes(self, model: TaskModel) -> bool:
        return False


def class_probabilities(model: TaskModel, scores: Floats) -> NDArray[np.float64]:
    """Probabilities of labels from their scores by a model; ValueError if it has no temperature."""
    if model.temperature is None:
        raise ValueError(
            "the model has no temperature, which probabilities need: its training was interrupted, or did without "
            "probability=True (structsvm train: --probability); train it again"
        )
    return probabilities(scores, model.temperature)


def one_hot(label_ids: Integers, n_labels: int) -> NDArray[np.bool_]:
    """Return label indices as indicators: bool array (n_samples, n_labels), one True per row."""
    return np.asarray(label_ids)[:, None] == np.arange(n_labels)
