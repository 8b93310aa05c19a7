"""How SGD-QN chooses its gain."""

import numpy as np
import pytest

from structsvm.kernel._kernels import Rows
from structsvm.linear.problem import LinearProblem
from structsvm.solvers import SGDQN
from structsvm.solvers.linear.sgdqn import FACTOR


@pytest.mark.parametrize("scale", [0.01, 1.0, 100.0])
def test_the_gain_is_the_best_of_those_tried(scale, monkeypatch):
    rng = np.random.default_rng(0)
    y = np.arange(2000, dtype=np.int32) % 2
    problem = LinearProblem(Rows(scale * (rng.normal(size=(2000, 5)) + np.eye(5)[y])), y, 2)
    costs, sizes, make = {}, set(), SGDQN._state

    class Watched:
        def __init__(self, t0, state):
            self.t0, self.state, self.run, self.n_machines = t0, state, state.run, 1

        def primal(self, order):
            sizes.add(len(order))
            costs[self.t0] = self.state.primal(order)
            return costs[self.t0]

    monkeypatch.setattr(SGDQN, "_state", lambda self, *args: Watched(args[-1], make(self, *args)))
    solver = SGDQN(alpha=1e-3, random_state=0)
    chosen = solver.chosen_t0(problem, np.ones(2000), 0)
    assert sizes == {1000}  # a tenth of 2000 examples, at least FEWEST_EXAMPLES
    first, *others = costs
    powers = np.log(np.array(others) / first) / np.log(FACTOR)
    np.testing.assert_allclose(powers, np.round(powers), atol=1e-9)
    assert len(others) >= 2 and set(np.round(powers)) >= {-1.0}
    assert costs[chosen] == min(costs.values())
