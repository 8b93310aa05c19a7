"""Models whose problems may keep the weights in another order: those of `DenseRows`, see `structsvm.features.dense`."""

from __future__ import annotations

from typing import Any

from structsvm.features.dense import DenseRows
from structsvm.tasks.common.model import TaskModel

# The arrays of a training state that are vectors of weights.
VECTORS = ("weights", "average_sum", "base", "latent_under")


class ReorderedModel(TaskModel):
    """Base of the models whose problems have `to_oracle` and `from_oracle`.

    Weights and state are in the oracle's order.
    """

    def touched(self, examples: Any) -> tuple[Any, Any, Any]:
        return super().touched(examples) if isinstance(examples.inputs, DenseRows) else self.narrowed(examples)

    def weights_of(self, run: Any) -> Any:
        return run.problem.to_oracle(run.weights)

    def around(self, problem: Any, sample_weight: Any, solver: Any) -> tuple[Any, Any, Any]:
        return problem, sample_weight, problem.from_oracle(self.weights)

    def state_after(self, run: Any, passes: int | None) -> Any:
        state = super().state_after(run, passes)
        return reordered(state, run.problem.to_oracle)

    def state_for(self, problem: Any) -> Any:
        return reordered(self.state, problem.from_oracle)


def reordered(state: Any, order: Any) -> Any:
    """A training state with its vectors in another order."""
    if state is None:
        return None
    return state | {name: order(state[name]) for name in VECTORS if len(state.get(name, ()))}
