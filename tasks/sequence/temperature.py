"""Probabilities of models that were trained on a margin: the temperature that their scores are divided by."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from structsvm.dual.parallel import Rounds

# The share of the sequences that a temperature is fitted on, how many at most, and the share of the passes for a model
# without them.
SHARE, MOST = 0.2, 2000
PASSES = 0.1

# Temperatures lie between 1 / LARGEST and LARGEST, and are found to this precision of their logarithm.
LARGEST, PRECISION = 256.0, 0.01

GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0


def fit_temperature(oracle: Any, weights: Any, tokens: Any, label_ids: Any, n_jobs: int | None = None) -> float:
    """The temperature tau of the greatest likelihood of labelled sequences, ``p(y) ~ exp(<w, Psi(x, y)> / tau)``.

    The loss is convex in 1 / tau, so that a golden-section search finds its least value.
    """
    rounds = Rounds(oracle.bind(tokens, label_ids, rescaling=None), n_jobs)

    def loss(log: float) -> float:
        return float(rounds.losses(weights * np.float32(math.exp(-log))).sum())

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


def held_out_temperature(model: Any, run: Any, data: Any) -> float | None:
    """The temperature on sequences of the training data, under weights that have not learnt from them.

    The run's dual point without what these sequences have added to it, and a tenth of its passes (at least one) over
    the others: close to the optimum without them, for a part of the price of a second training. None with a single
    sequence.
    """
    tokens, label_ids = data
    n = len(tokens)
    if n < 2:
        return None
    held_out = np.sort(np.random.default_rng(0).permutation(n)[: max(1, min(MOST, round(SHARE * n)))])
    weight = run.C / run.solver.C
    weight[held_out] = 0.0
    solver = type(run.solver)(**run.solver.get_params() | {"checkpoint": None})
    other = solver.start(run.problem, sample_weight=weight)
    other.set_state(run.get_state(), adapt=True)
    for _ in range(max(1, round(PASSES * run.n_iter))):
        while not other.advance():
            pass
    places = np.concatenate([np.arange(a, b) for a, b in zip(tokens.offsets[held_out], tokens.offsets[held_out + 1])])
    return fit_temperature(model.oracle, other.weights, tokens.take(held_out), label_ids[places], solver.n_jobs)


def stored_temperature(value: Any) -> float | None:
    """A temperature out of a model file; ValueError for what is none."""
    if value is None or (isinstance(value, (int, float)) and 0.0 < value < math.inf):
        return value
    raise ValueError(f"a temperature of {value!r:.80}")
