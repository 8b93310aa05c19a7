"""Parameters of estimators in model files: what goes around, what is left out, and what is refused."""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array

from structsvm import LaRank
from structsvm.solvers import KernelLaRank
from structsvm.structures.substitution_matrix import SubstitutionMatrix
from structsvm.tasks.common.parameters import bits_for, params_from_json, params_to_json


def around(params):
    header, arrays = params_to_json(params)
    prefix = "params."
    assert all(name.startswith(prefix) for name in arrays)
    return params_from_json(json.loads(json.dumps(header)), {n.removeprefix(prefix): a for n, a in arrays.items()})


PLAIN = {"tol": None, "C": 0.5, "max_iter": 3, "warm_start": True, "solver": "perceptron", "window": (1, None)}


def test_values_go_around():
    assert around(PLAIN) == PLAIN
    numpy = {"C": np.float32(0.5), "max_iter": np.int64(3), "average": np.True_, "window": [np.int32(1), 2]}
    assert around(numpy) == {"C": 0.5, "max_iter": 3, "average": True, "window": (1, 2)}
    assert around({"grammar": Path("g.txt")}) == {"grammar": "g.txt"}
    weights = {"a": 1.0, ("b", 2): 0.5, np.int64(3): np.float32(2.0)}
    assert around({"class_weight": weights}) == {"class_weight": weights}
    prior = SubstitutionMatrix("AB", [[1.0, -1.0], [-1.0, 2.0]])
    again = around({"prior": prior})["prior"]
    assert again.alphabet == prior.alphabet
    np.testing.assert_array_equal(again.values, prior.values)


@pytest.mark.parametrize("kind", [np.array, csr_array])
def test_matrices_are_arrays(kind):
    matrix = [[0, 1], [2, 0]]
    header, arrays = params_to_json({"loss": kind(matrix)})
    assert header == {} and arrays["params.loss"].dtype == np.float64
    np.testing.assert_array_equal(around({"loss": kind(matrix)})["loss"], matrix)


def test_solvers_go_around_without_their_checkpoint():
    for solver in (LaRank(C=0.5, tol=0.1, random_state=3), KernelLaRank(schedule="fixed")):
        again = around({"solver": solver})["solver"]
        assert type(again) is type(solver) and again.get_params() == solver.get_params()
    assert around({"solver": LaRank(checkpoint="c")})["solver"].checkpoint is None


def test_what_no_file_holds_is_left_out():
    class Mine(LaRank):
        pass

    left_out = {"random_state": np.random.RandomState(0), "solver": Mine(), "kernel": np.dot, "checkpoint": "c"}
    assert around(left_out | {"verbose": False}) == {"verbose": False}


@pytest.mark.parametrize(
    "header",
    [
        [],
        {"solver": {"solver": "LaRank", "params": {"C": -1.0}}},
        {"solver": {"solver": "LaRank", "params": {"depth": 2}}},
        {"class_weight": {"weights": [["a", "heavy"]]}},
        {"class_weight": {"weights": [[["a"], 1.0]]}},
    ],
)
def test_headers_that_are_refused(header):
    with pytest.raises((KeyError, TypeError, ValueError)):
        params_from_json(header, {})


@pytest.mark.parametrize("name", ["Solver", "Run", "os", "larank"])
def test_what_is_no_solver_is_not_made(name):
    with pytest.raises(ValueError, match=f"a solver '{name}', which this version does not know"):
        params_from_json({"solver": {"solver": name, "params": {}}}, {})


def test_bits_of_a_hash_by_the_number_of_things_and_the_bytes_of_a_row():
    assert [bits_for(n, 1, 6, 16) for n in (0, 1, 1000, 10**6)] == [6, 6, 11, 16]
    assert bits_for(10**6, 1, 6, 18, row=4 * 128) == 18
    assert bits_for(10**6, 1, 6, 18, row=4 * 129) == 17
    assert bits_for(10**6, 1, 6, 18, row=4 * 10_000) == 11
    assert bits_for(10**6, 1, 6, 18, row=2**30) == 6
