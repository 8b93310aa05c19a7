"""Probabilities of models that were trained on a margin: the temperature that their scores are divided by."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from structsvm.dual.parallel import Rounds
from structsvm.solvers.base import DualRun

# A temperature is fitted on this share of the sequences, on so many at most; of few sequences on all of them, in folds.
SHARE, MOST = 0.1, 500
FEW, FOLDS = 200, 5

# The share of its passes that a run goes on for without them, and how many at most.
PASSES, MOST_PASSES = 0.1, 10

# Temperatures lie between 1 / LARGEST and LARGEST, and are found to this precision of their logarithm.
LARGEST, PRECISION = 64.0, 0.02

GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0


def fit_temperature(oracle: Any, parts: Any) -> float:
    """The temperature tau of the greatest likelihood of labelled sequences, ``p(y) ~ exp(<w, Psi(x, y)> / tau)``.

    `parts` is a list of ``(weights, tokens, label_ids)``. The loss is convex in 1 / tau: a golden-section search finds
    its least value.
    """
    rounds = [(weights, Rounds(oracle.bind(tokens, ids, rescaling=None))) for weights, tokens, ids in parts]

    def loss(log: float) -> float:
        return sum(float(part.losses(weights * np.float32(math.exp(-log))).sum()) for weights, part in rounds)

    low, high = -math.log(LARGEST), math.log(LARGEST)
    a, b = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    at_a, at_b = loss(a), loss(b)
    while high - low > PRECISION:
        if at_a < at_b:
            high, b, at_b = b, a, at_a
            a = high - GOLDEN * (high - low)
            at_a = loss(a)
        else:
            low, a, at_a = a, b, at_b
            b = low + GOLDEN * (high - low)
            at_b = loss(b)
    return math.exp(0.5 * (low + high))


def held_out_temperature(oracle: Any, run: Any, tokens: Any, label_ids: Any) -> float | None:
    """The temperature on sequences of the training data, under weights that have not learnt from them.

    The run's dual point without what these sequences have added to it, and a tenth of its passes (at least one) over
    the others: close to the optimum without them, for a part of the price of a second training. None where there is
    only one sequence, no dual, or one whose multipliers are not those of sequences.
    """
    n = len(tokens)
    if n < 2 or not isinstance(run, DualRun) or run.solver.penalty is None or run.state.problem is not run.problem:
        return None
    order = np.random.default_rng(0).permutation(n)
    folds = np.array_split(order, min(n, FOLDS)) if n < FEW else [order[: min(MOST, round(SHARE * n))]]
    solver = type(run.solver)(**run.solver.get_params() | {"checkpoint": None})
    reached, parts = run.get_state(), []
    for fold in folds:
        held_out, weight = np.sort(fold), run.C / solver.C
        weight[held_out] = 0.0
        if not weight.any():
            continue
        other = solver.start(run.problem, sample_weight=weight)
        other.set_state(reached, adapt=True)
        for _ in range(max(1, min(MOST_PASSES, round(PASSES * run.n_iter)))):
            while not other.advance():
                pass
        ends = zip(tokens.offsets[held_out], tokens.offsets[held_out + 1])
        places = np.concatenate([np.arange(a, b) for a, b in ends])
        parts.append((other.weights, tokens.take(held_out), label_ids[places]))
    return fit_temperature(oracle, parts) if parts else None


def stored_temperature(value: Any) -> float | None:
    """A temperature out of a model file; ValueError for what is none."""
    if value is None or (isinstance(value, (int, float)) and 0.0 < value < math.inf):
        return value
    raise ValueError(f"a temperature of {value!r:.80}")
