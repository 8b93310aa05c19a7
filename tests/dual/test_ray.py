"""Rounds on a real Ray cluster of two cores, the same one for all tests."""

import os
import signal
import sys

import joblib
import numpy as np
import pytest
from cluster_rounds import SOLVERS, problem, same
from python_oracles import Data

from structsvm import CuttingPlane, LaRank, OracleError, SequenceShards
from structsvm._warnings import AdviceWarning
from structsvm.datasets import make_sequences, make_treebank
from structsvm.features.columns import ColumnFileError, Columns
from structsvm.tasks import GrammarParser

ray = pytest.importorskip("ray")
module = pytest.importorskip("structsvm.shards.ray_cluster")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]  # ray warns of much that is not ours


@pytest.fixture(scope="module", autouse=True)
def cores():
    from ray.util.joblib import register_ray

    register_ray()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join(sys.path))  # for the oracles of tests
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    yield
    ray.shutdown()


@pytest.fixture
def started(monkeypatch):
    """The actors that are started, from now on."""
    found, start = [], module.start
    monkeypatch.setattr(module, "start", lambda data: found.append(start(data)) or found[-1])
    return found


@pytest.mark.parametrize("solver", SOLVERS)
def test_two_actors_train_the_same_model(solver, started):
    alone = solver.solve(problem())
    with joblib.parallel_config(backend="ray"):
        run = solver.solve(problem())
    same(run, alone)
    assert len(started) == 2  # for all rounds
    assert not run.rounds._cluster  # released


def test_parsers_are_trained_alike(started):
    trees = [str(tree) for tree in make_treebank(40, max_length=10, random_state=0)]
    make = lambda: GrammarParser(solver=CuttingPlane(C=0.1, max_iter=3, tol=None, random_state=0))  # noqa: E731
    alone = make().fit(trees)
    with joblib.parallel_config(backend="ray"):
        there = make().fit(trees)
    np.testing.assert_array_equal(there.coef_, alone.coef_)
    assert len(started) > 0


def test_exchanges_become_rounds():
    with joblib.parallel_config(backend="ray"), pytest.warns(AdviceWarning, match="on Dask clusters only"):
        assert isinstance(LaRank(C=0.1, deterministic=False).start(problem()).solver, CuttingPlane)


def test_an_error_of_the_oracle_comes_out():
    data = Data(0, n=40)
    data.X[30] = np.nan
    with joblib.parallel_config(backend="ray"), pytest.raises(OracleError, match=r"Multiclass\.\w+ \(example 30\)"):
        CuttingPlane(random_state=0).solve(data.bind())


def test_a_lost_actor_is_replaced(started, monkeypatch):
    cluster = module.RayCluster([3, 4, 5])

    def asked(shard, w, n):
        return os.getpid(), shard, w.sum(), w.flags.aligned, n

    def numbers():
        found = cluster.map(asked, np.ones(5), [(7,), (8,), (9,)])
        assert [rest for _, *rest in found] == [[3, 5.0, True, 7], [4, 5.0, True, 8], [5, 5.0, True, 9]]
        return [pid for pid, *_ in found]

    first = numbers()
    assert first[0] == first[2] != first[1] and numbers() == first
    os.kill(first[0], signal.SIGKILL)
    second = numbers()
    assert second[1] == first[1] and second[0] != first[0] and len(started) == 3
    monkeypatch.setattr(module, "ATTEMPTS", 2)
    with pytest.raises(module.RayActorError):
        cluster.map(lambda shard, w: os.kill(os.getpid(), signal.SIGKILL), None, [()] * 3)
    assert len(started) == 5
    cluster.close()


def test_workers_make_shards(tmp_path, started):
    X, y = make_sequences(60, random_state=0)
    rows = [[(*token, tag) for token, tag in zip(*pair, strict=True)] for pair in zip(X, y, strict=True)]
    files = [tmp_path / "0.conll", tmp_path / "1.conll", tmp_path / "ragged"]
    for k in range(2):
        files[k].write_bytes(Columns.from_sequences(rows[30 * k : 30 * k + 30]).to_bytes())
    files[2].write_text("a b A\n\nc C\n")
    features = {"templates": "U0:%x[0,0]\nU1:%x[-1,0]\nB\n", "min_count": 2, "max_memory": 20_000}
    here = SequenceShards.make(files[:2], tmp_path / "here", **features)
    with joblib.parallel_config(backend="ray"):
        there = SequenceShards.make(files[:2], tmp_path / "there", **features)
        for file in here.folder.iterdir():
            assert (there.folder / file.name).read_bytes() == file.read_bytes()
        with pytest.raises(ColumnFileError, match=r"ragged:3: expected 3 columns, found 2"):
            SequenceShards.make(files, tmp_path / "new", **features)
    assert len(started) > 2
