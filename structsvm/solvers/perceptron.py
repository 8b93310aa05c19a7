"""The structured perceptron, plain and averaged."""

from __future__ import annotations

from typing import Any

import numpy as np

from structsvm.dual._schedules import SubgradientSchedule
from structsvm.dual._weights import WeightState
from structsvm.parameters import COUNT, FLAG, Checkpoints, Jobs, Seed, declared, parameter, seed_from
from structsvm.solvers.base import Deterministic, Solver
from structsvm.solvers.run import WeightRun


@declared
class Perceptron(Seed, Jobs, Deterministic, Checkpoints, Solver):
    """The structured perceptron (Collins 2002; thesis, algorithm 6).

    Parameters
    ----------
    average : bool, default=True
        Return the average of the weights over all examples visited, which generalises better.
    max_iter : int, default=10
        Passes over the data.
    random_state : int, RandomState or None
        Seeds the order of examples.
    n_jobs : int, optional
        Threads that train, without `deterministic`; -1: all cores.
    deterministic : bool, default=True
        Whether the model is bit-identical for every `n_jobs`: one thread trains. False: `n_jobs` threads do (see
        `structsvm.dual.threads`), to weights of the same quality with other bits.
    checkpoint
        As for `LaRank`.

    Notes
    -----
    A baseline: no loss, no margin, no dual, and so no certificate.

    Examples
    --------
    >>> import numpy as np
    >>> from structsvm import Perceptron, StructuredSVM
    >>> from structsvm.oracles.viterbi import ViterbiOracle
    >>> X, Y = [np.array([[1.0], [-1.0]]), np.array([[2.0]])], [[1, 0], [1]]
    >>> model = StructuredSVM(ViterbiOracle(2, 1), Perceptron(max_iter=5, random_state=0)).fit(X, Y)
    >>> [y.tolist() for y in model.predict(X)]
    [[1, 0], [1]]
    """

    average: bool = parameter(FLAG, default=True)
    max_iter: int = parameter(COUNT, default=10)

    needs = frozenset({"constraints"})
    keeps_signs = True  # by projection

    def formulation(self) -> dict[str, Any]:
        return {"rescaling": None, "penalty": "linear"}

    def start(self, problem: Any, *, sample_weight: Any = None, base: Any = None) -> Any:
        if sample_weight is not None:
            raise ValueError("Perceptron takes no sample_weight: its steps have no weight to scale")
        state = WeightState(
            problem, seed=seed_from(self.random_state), averaging="uniform" if self.average else None, base=base
        )
        return WeightRun(self, problem, state, self.in_threads(state, np.ones(state.n_samples), SubgradientSchedule))
