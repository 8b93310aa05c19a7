"""Training of chains as CRFsuite's parameters ask for: which pairs have weights, the objective, when to end.

    P(w) = c1 |w|_1 + c2 |w|^2 + sum_i (log sum_y exp <w, Psi(x_i, y)> - <w, Psi(x_i, y_i)>)

over the weights of attributes with labels, and of pairs of labels, that training has seen (or of all). There are no
weights of first and last labels.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from structsvm._warnings import AdviceWarning, warn
from structsvm.execution.products import product_threads
from structsvm.interop.chain_model import ChainModel, Weights
from structsvm.interop.crfsuite_log import iteration_lines, scored
from structsvm.interop.crfsuite_margin import margin_weights
from structsvm.interop.crfsuite_parameters import UNLIMITED, Value, check, unused
from structsvm.interop.crfsuite_problem import Problem, by_sequence, problem_of
from structsvm.solvers.elastic_likelihood import ElasticLikelihood
from structsvm.solvers.quasi_newton import steepest
from structsvm.solvers.sparse_likelihood import (
    Point,
    SparseLikelihood,
    SparseLikelihoodRun,
    SparseObjective,
    SparseState,
)

if TYPE_CHECKING:
    from structsvm.arrays import Floats
    from structsvm.interop.pycrfsuite.trainer import Instances
    from structsvm.oracles.viterbi import ViterbiOracle

Say: TypeAlias = Callable[..., None]
Report: TypeAlias = Callable[..., None]  # takes the loss, the weights, further figures


PRECISE = 1e-9  # relative gap that precision ends before
NEAR = 0.05  # relative gap at which passes in the dual end


def trained(data: Instances, algorithm: str, values: dict[str, Value], holdout: int, say: Say) -> ChainModel:
    """Train on the sequences that are not of the holdout group.

    Parameters
    ----------
    data : Instances
    algorithm : str
    values : dict
        All parameters of the algorithm.
    holdout : int
    say : callable
        ``say(line, event=None, **figures)`` receives each line of the log.
    """
    groups = np.array(data.groups, dtype=np.int64)
    check(algorithm, values)
    if not (groups != holdout).any():
        raise ValueError("there are no sequences to train on: append some, of another group than holdout")
    if holdout >= 0 and not (groups == holdout).any():
        raise ValueError(f"holdout={holdout}: there are no sequences of this group; append some, or leave holdout out")
    for name in unused(algorithm, values):
        warn(f"{name}: {algorithm} here has no such parameter; it is left out", AdviceWarning)
    if holdout >= 0:
        say(f"Holdout group: {holdout}\n")
        say("\n")
    say("Feature generation\n", "start")
    begin = time.perf_counter()
    problem, held = problem_of(data, groups != holdout, values)
    for name in ("minfreq", "possible_states", "possible_transitions"):
        say(f"feature.{name}: {float(values[f'feature.{name}']):g}\n")
    say("type: CRF1d\n")
    seconds, n_features = time.perf_counter() - begin, int(problem.possible.sum())
    say(f"Number of features: {n_features}\n", featgen_num_features=n_features)
    say(f"Seconds required: {seconds:.3f}\n", "featgen_end", featgen_percent=100, featgen_seconds=seconds)
    say("\n")
    say(f"{algorithm}\n")
    for name, value in values.items():
        if not name.startswith("feature."):
            say(f"{name}: {value}\n")
    say("\n", "prepared")
    begin = time.perf_counter()
    report = Reporter(problem, list(data.labels), held, say).iteration
    with product_threads(1):
        if algorithm in ("lbfgs", "l2sgd"):
            weights = _likelihood_weights(problem, values, report)
        else:
            weights = margin_weights(problem, algorithm, values, report)
    seconds = time.perf_counter() - begin
    say(f"Total seconds required for training: {seconds:.3f}\n", training_seconds=seconds)
    say("\n", "optimization_end")
    weights = np.where(problem.possible, weights, 0.0)
    if not weights.any():
        reason = "there is one label" if len(data.labels) == 1 else "feature.minfreq, c1 or c2 may be too large"
        warn(f"all weights of the model are 0, and it tells no labels apart: {reason}", AdviceWarning)
    return _chain(data, problem.oracle, weights)


def _chain(data: Instances, oracle: ViterbiOracle, weights: Floats) -> ChainModel:
    """The trained chain; attributes without weights are left out when it is written."""
    table = weights.reshape(oracle.n_rows, oracle.stride)[:, : oracle.n_labels]
    states = table[: len(data.attributes)]
    rows, targets = np.nonzero(states)
    return ChainModel(
        "crfsuite",
        list(data.labels),
        list(data.attributes),
        Weights.of_entries(rows, targets, states[rows, targets].astype(np.float64), len(states)),
        transitions=table[oracle.n_token_features : oracle.n_token_features + oracle.n_labels].astype(np.float64),
    )


class Reporter:
    """Says the figures of each iteration."""

    def __init__(self, problem: Problem, labels: list[str], held: Any, say: Say) -> None:
        self.labels, self.say, self.n = labels, say, 0
        self.begin = time.perf_counter()
        self.decoder = None if held is None else problem.oracle.chain(held[0])
        self.held = held
        self.true = [] if held is None else by_sequence(held[1], held[0])

    def iteration(self, loss: float, weights: Floats, **more: float) -> None:
        """Say an iteration's figures."""
        self.n += 1
        now = time.perf_counter()
        figures = {
            "num": self.n,
            "scores": {},
            "loss": loss,
            "active_features": int(np.count_nonzero(weights)),
            "time": now - self.begin,
            **more,
        }
        if self.decoder is not None:
            predicted = self.decoder.decode(weights.astype(np.float32))
            figures |= scored(self.labels, self.true, by_sequence(predicted, self.held[0]))
        for line in iteration_lines(figures):
            self.say(line)
        self.say("\n", "iteration", last_iteration=figures)
        self.begin = time.perf_counter()


# ------------------------------------------------------------------------------------- likelihood


class Objective(SparseObjective):
    """The objective over the possible weights, without the dual: training ends by the program's tests."""

    def __init__(self, problem: Problem, c1: float, c2: float) -> None:
        bound = problem.oracle.bind(problem.tokens, problem.labels, rescaling=None)
        super().__init__(bound, np.ones(len(problem.tokens)), c1, 2.0 * c2)
        self.bound, self.possible = bound, problem.possible

    def dual(self, losses: Floats, u: Floats, entropy: float) -> float:
        """Return 0, a bound that costs nothing and ends nothing."""
        return 0.0


class Ending:
    """When to end, by the parameters."""

    def __init__(self, values: dict[str, Value]) -> None:
        self.epsilon, self.delta = float(values.get("epsilon", 0.0)), float(values["delta"])
        self.before: deque[float] = deque(maxlen=int(values["period"]))
        self.most, self.n = int(values["max_iterations"]) or UNLIMITED, 0

    def reached(self, point: Point, error: float, size: float) -> bool:
        """Whether this point, with these norms of the steepest descent and of the weights, is the last."""
        self.n += 1
        is_full = 0 < len(self.before) == self.before.maxlen
        fell = (self.before[0] - point.primal) / max(abs(point.primal), 1e-300) if is_full else np.inf
        self.before.append(point.primal)
        return self.n >= self.most or fell < self.delta or error <= self.epsilon * max(size, 1.0)


def _likelihood_weights(problem: Problem, values: dict[str, Value], report: Report) -> Floats:
    """Weights of the log loss: L-BFGS, with c1 on the orthant that the weights are in."""
    c1, c2 = float(values.get("c1", 0.0)), float(values["c2"])
    objective, ending = Objective(problem, c1, c2), Ending(values)
    possible = objective.possible

    def ends(point: Point) -> bool:
        w = point.weights[possible].astype(np.float64)
        error, size = (float(np.linalg.norm(x)) for x in (steepest(w, point.gradient[possible], c1), w))
        report(point.primal, point.weights, feature_norm=size, error_norm=error)
        return ending.reached(point, error, size)

    if c1 > 0.0:
        return _sparse(objective, ends, from_near=ending.most == UNLIMITED)
    return _smooth(objective, ends, int(values.get("num_memories", 6)))


def _smooth(objective: Objective, ends: Callable[[Point], bool], memories: int) -> Floats:
    from scipy.optimize import minimize

    possible = objective.possible
    last: list[Point] = []

    def at(x: Floats) -> tuple[float, Floats]:
        w = np.zeros(len(possible), dtype=np.float32)
        w[possible] = x
        last[:] = [objective.at(w)]
        return last[0].primal, last[0].gradient[possible]

    def end_iteration(intermediate_result: Any) -> None:
        if ends(last[0]):
            raise StopIteration

    options = {"maxcor": memories, "maxiter": 10**6, "maxfun": 10**6, "ftol": 0.0, "gtol": 0.0}
    found = minimize(
        at, np.zeros(int(possible.sum())), jac=True, method="L-BFGS-B", callback=end_iteration, options=options
    )
    w = np.zeros(len(possible))
    w[possible] = found.x
    return w


def _sparse(objective: Objective, ends: Callable[[Point], bool], *, from_near: bool) -> Floats:
    """OWL-QN; with both norms `from_near` the optimum, where passes in the dual are soon."""
    state = SparseState(objective.bound)
    if from_near and objective.l2 > 0.0:
        solver = ElasticLikelihood(1.0 / objective.l2, l1=objective.l1 / objective.l2, tol=NEAR, random_state=0)
        state.weights[:] = solver.solve(objective.bound).weights
        state.weights[~objective.possible] = 0.0
    run = SparseLikelihoodRun(SparseLikelihood(tol=PRECISE), objective.bound, state, objective)
    run.advance(0.0)
    before = point = run.point
    while not run.stuck:
        run.advance(0.0)
        point = run.point
        if point is not None and point is not before and ends(point):
            break
        before = point
    return run.weights.astype(np.float64)
