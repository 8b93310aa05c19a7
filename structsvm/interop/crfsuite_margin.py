"""Margins for CRFsuite's other algorithms: averaged perceptron, and LaRank for passive-aggressive and AROW.

LaRank takes the steps of passive-aggressive training, and goes on with the examples that it has seen.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from structsvm._warnings import AdviceWarning, warn
from structsvm.interop.crfsuite_parameters import PASSES, Value
from structsvm.interop.crfsuite_problem import Problem
from structsvm.progress import Monitor
from structsvm.protocol import Oracle, Rescaling
from structsvm.solvers import LaRank, Perceptron, Solver

if TYPE_CHECKING:
    from structsvm.arrays import Floats


class PossibleChain(Oracle):
    """Chains of a problem whose other than possible weights are 0; inputs are numbers of sequences.

    Each sequence has an oracle of the rows of weights that it touches, so that steps cost nothing of the others.
    """

    def __init__(self, problem: Problem, loss: str) -> None:
        chain = problem.oracle.with_loss(loss)
        self.n_features, self.possible, self.stride = chain.n_features, problem.possible, chain.stride
        self.rescalings, self.penalties = ("margin",), ("linear", None)
        self.own = [chain.touched(problem.tokens[i : i + 1]) for i in range(len(problem.tokens))]
        self.losses = 0.0  # sum for the labellings that were found since the last report

    def joint_feature(self, x: int, y: Any) -> tuple[NDArray[np.int64], Floats]:
        chain, tokens, rows = self.own[x]
        psi = chain.joint_feature(tokens, y)
        places = np.flatnonzero(psi)
        numbers = rows[places // self.stride] * self.stride + places % self.stride
        kept = self.possible[numbers]
        order = np.argsort(numbers[kept])
        return numbers[kept][order], psi[places[kept]][order]

    def loss(self, y_true: Any, y: Any) -> float:
        loss = self.own[0][0].loss(y_true, y)
        self.losses += loss
        return loss

    def argmax(self, x: int, w: Any, y_true: Any = None, rescaling: Rescaling | None = None) -> Any:
        chain, tokens, rows = self.own[x]
        own = np.asarray(w).reshape(-1, self.stride)[rows]
        return chain.argmax(tokens, own.ravel().astype(np.float32), y_true, rescaling)


def margin_weights(problem: Problem, algorithm: str, values: dict[str, Value], report: Callable[..., None]) -> Floats:
    """Weights of an averaged perceptron ("ap"), or of a margin by LaRank, for "pa" from its steps on."""
    solver: Solver = Perceptron(max_iter=int(values["max_iterations"]))
    loss = "hamming"
    if algorithm == "pa":
        if values["type"] not in (0, 1):
            raise ValueError(f"type={values['type']}: passive-aggressive training here has type 0 or 1")
        loss = "hamming" if values["error_sensitive"] else "zero_one"
        solver = LaRank(
            C=float(values["c"]),
            penalty="linear" if values["type"] else None,
            average=bool(values["averaging"]),
            max_iter=_passes(values),
        )
    elif algorithm == "arow":
        warn("arow: there is no such algorithm here; LaRank trains the same margin instead", AdviceWarning)
        solver = LaRank(C=1.0 / (2.0 * float(values["gamma"])), max_iter=_passes(values))
    oracle = PossibleChain(problem, loss)
    inputs = list(range(len(problem.tokens)))
    true = np.split(problem.labels, problem.tokens.offsets[1:-1])
    run = solver.solve(oracle.bind(inputs, true, **solver.formulation()), monitor=Passes(oracle, report))
    return run.weights.astype(np.float64)


def _passes(values: dict[str, Value]) -> int | None:
    """LaRank's passes: until training has settled, unless another number than the default is given."""
    most = int(values["max_iterations"])
    return None if most == PASSES.default else most


class Passes(Monitor):
    """Reports the figures of each pass; the loss is the sum of those of the labellings that were found."""

    def __init__(self, oracle: PossibleChain, report: Callable[..., None]) -> None:
        self.oracle, self.report = oracle, report

    def end_pass(self, run: Any) -> bool:
        weights = np.asarray(run.weights, dtype=np.float64)
        self.report(self.oracle.losses, weights, feature_norm=float(np.linalg.norm(weights)))
        self.oracle.losses = 0.0
        return False
