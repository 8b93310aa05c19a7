"""Checkpoints: a run that was killed at any moment ends in the same model, bit for bit."""

import os
import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from structsvm import (
    CuttingPlane,
    FrankWolfe,
    LaRank,
    ModelFileError,
    PassiveAggressive,
    Perceptron,
    StructuredSVM,
)
from structsvm.oracles.greedy import GreedyOracle
from structsvm.oracles.viterbi import ViterbiOracle
from structsvm.progress import Monitor
from structsvm.tasks import SequenceLabeler

SOLVERS = [
    LaRank(C=0.5, tol=1e-4, random_state=3),
    LaRank(C=0.5, max_iter=7, schedule="adaptive", random_state=3),
    PassiveAggressive(C=0.5, max_iter=6, average=True, random_state=1),
    CuttingPlane(C=0.5, random_state=1),
    CuttingPlane(C=0.5, rescaling="slack", penalty="quadratic", tol=1e-2, random_state=1),
    CuttingPlane(C=0.5, optimize="constraint", epsilon=0.01, tol=None, random_state=1),
    CuttingPlane(C=0.5, form="one_slack", tol=1e-2, random_state=1),
    FrankWolfe(C=0.5, random_state=1),
    Perceptron(random_state=1),
]


class Killed(Exception):
    pass


class Killer(Monitor):
    def __init__(self, after):
        self.after = after

    def end_pass(self, run):
        if run.n_iter == self.after:
            raise Killed
        return False


def chains(n=50, seed=0):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 8, n)
    return [rng.normal(size=(t, 5)) for t in lengths], [rng.integers(0, 3, t) for t in lengths]


def solve(solver, path=None, every=1, monitor=None, kind=ViterbiOracle, data=None, **options):
    solver = type(solver)(**solver.get_params()).set_params(checkpoint=path, checkpoint_every=every)
    problem = kind(3, 5).bind(*(data or chains()), **solver.formulation())
    return solver.solve(problem, monitor=monitor, **options)


def same(run, other):
    np.testing.assert_array_equal(run.weights, other.weights)
    mine, its = run.result().to_dict(), other.result().to_dict()
    assert mine | {"seconds": 0} == its | {"seconds": 0}


@pytest.mark.parametrize("solver", SOLVERS, ids=lambda s: f"{type(s).__name__}-{getattr(s, 'form', '')}")
@pytest.mark.parametrize("every", [1, 2])
def test_a_run_that_is_left_and_taken_up_again(tmp_path, solver, every):
    whole = solve(solver)
    for after in (1, 3, 4):
        if after < whole.n_iter:
            with pytest.raises(Killed):
                solve(solver, tmp_path / "c", every, Killer(after))
    same(solve(solver, tmp_path / "c", every), whole)
    same(solve(solver, tmp_path / "c", every), whole)  # the file of a run that has ended


def test_tokens_one_by_one(tmp_path):
    solver = LaRank(C=0.5, max_iter=5, random_state=0)
    with pytest.raises(Killed):
        solve(solver, tmp_path / "c", monitor=Killer(3), kind=GreedyOracle)
    same(solve(solver, tmp_path / "c", kind=GreedyOracle), solve(solver, kind=GreedyOracle))


SCRIPT = """
import sys
import numpy as np
from structsvm import CuttingPlane, LaRank
from structsvm.oracles.viterbi import ViterbiOracle
rng = np.random.default_rng(0)
lengths = rng.integers(1, 30, 400)
X, Y = [rng.normal(size=(t, 20)) for t in lengths], [rng.integers(0, 5, t) for t in lengths]
kind = {"larank": LaRank, "cutting_plane": CuttingPlane}[sys.argv[1]]
path = None if sys.argv[2] == "-" else sys.argv[2]
run = kind(C=1.0, tol=1e-3, max_iter=2000, random_state=0, checkpoint=path).solve(ViterbiOracle(5, 20).bind(X, Y))
np.save(sys.argv[3], run.weights)
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", ["larank", "cutting_plane"])
def test_sigkill_at_random_moments(tmp_path, name):
    def start(path, out):
        return subprocess.Popen([sys.executable, "-c", SCRIPT, name, path, out], cwd=tmp_path)

    assert start("-", "whole.npy").wait() == 0
    moments, kills = random.Random(0), 0
    while kills < 8:
        process = start("c", "killed.npy")
        time.sleep(moments.uniform(0.3, 1.5))
        process.send_signal(signal.SIGKILL)
        process.wait()
        kills += 1
    assert start("c", "resumed.npy").wait() == 0
    np.testing.assert_array_equal(np.load(tmp_path / "resumed.npy"), np.load(tmp_path / "whole.npy"))
    assert sorted(path.name for path in tmp_path.iterdir() if not path.name.startswith(".")) == sorted(
        {"c", "resumed.npy", "whole.npy"} | ({"killed.npy"} if (tmp_path / "killed.npy").exists() else set())
    )


def test_of_another_problem_or_solver(tmp_path):
    solver, path = LaRank(C=0.5, max_iter=4, random_state=0), tmp_path / "c"
    solve(solver, path)
    before = path.read_bytes()
    with pytest.raises(ModelFileError, match="the checkpoint is of another problem; delete it to start anew"):
        solve(solver, path, data=chains(seed=1))
    with pytest.raises(ModelFileError, match="of another problem"):
        solve(solver, path, sample_weight=np.arange(1.0, 51.0))
    with pytest.raises(ModelFileError, match="of another solver"):
        solve(LaRank(C=0.4, max_iter=4, random_state=0), path)
    with pytest.raises(ModelFileError, match="of another solver"):
        solve(CuttingPlane(C=0.5, random_state=0), path)
    with pytest.raises(ModelFileError, match="has 3 passes behind it; set max_iter higher"):
        solve(LaRank(C=0.5, max_iter=2, random_state=0), path)
    assert path.read_bytes() == before


def test_a_damaged_file_is_refused_and_kept(tmp_path):
    solver, path = LaRank(C=0.5, max_iter=4, random_state=0), tmp_path / "c"
    solve(solver, path)
    whole = path.read_bytes()
    for damage in (whole[: len(whole) // 2], b"", whole[:200] + bytes([whole[200] ^ 1]) + whole[201:]):
        path.write_bytes(damage)
        with pytest.raises(ModelFileError):
            solve(solver, path)
        assert path.read_bytes() == damage


def test_a_model_is_not_a_checkpoint(tmp_path):
    X, y = chains()
    SequenceLabeler(random_state=0).fit(X, y).save(tmp_path / "m")
    with pytest.raises(ModelFileError):
        solve(LaRank(random_state=0), tmp_path / "m")


def test_estimators(tmp_path):
    X, y = chains()
    oracle = ViterbiOracle(3, 5)
    for make in (
        lambda **options: StructuredSVM(oracle, LaRank(C=0.5, max_iter=5, random_state=0, **options)),
        lambda **options: SequenceLabeler(C=0.5, max_iter=5, random_state=0, **options),
        lambda **options: SequenceLabeler(C=0.5, solver="cutting_plane", tol=1e-2, random_state=0, **options),
    ):
        path = tmp_path / f"c{os.urandom(4).hex()}"
        plain = make().fit(X, y)
        kept = make(checkpoint=path).fit(X, y)
        again = make(checkpoint=path).fit(X, y)
        assert path.is_file()
        for other in (kept, again):
            assert other.result_.dual == plain.result_.dual
        kept.save(tmp_path / "m")
    assert SequenceLabeler.load(tmp_path / "m").checkpoint is None


@pytest.mark.parametrize("value", [3, b"c", ["c"]])
def test_what_is_no_path(value):
    with pytest.raises(ValueError, match="The 'checkpoint' parameter of LaRank must be a path or None"):
        solve(LaRank(), value)
