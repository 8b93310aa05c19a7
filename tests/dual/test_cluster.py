"""Rounds and exchanges on a real Dask cluster of two workers, the same one for all tests: one of them is killed, and
Dask starts another; in the last test both go.
"""

import os
import signal
import time
import warnings

import numpy as np
import pytest
from cluster_rounds import SOLVERS, problem, same
from joblib import parallel_config
from python_oracles import Data

from structsvm import CuttingPlane, LaRank, OracleError, SequenceShards
from structsvm.datasets import make_dependency_trees, make_sequences
from structsvm.dual import cutting_plane_schedules, exchanges
from structsvm.dual._dual import DualState
from structsvm.dual.exchanges import SharedState
from structsvm.features.columns import ColumnFileError, Columns
from structsvm.tasks import DependencyParser, SequenceLabeler, TokenFeatures

dask, distributed = pytest.importorskip("dask"), pytest.importorskip("distributed")
module = pytest.importorskip("structsvm.shards.cluster")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]  # dask warns of much that is not ours


@pytest.fixture(scope="module")
def client():
    with (
        # Workers are forked from a process that has imported what they need. Dask gives a worker up that is away just
        # this long after it was lost: here the same one may be killed twice.
        dask.config.set(
            {"distributed.worker.multiprocessing-method": "forkserver", "distributed.deploy.lost-worker-timeout": "1h"}
        ),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture
def victim(client):
    """The process of one of two workers. Killed once it was asked, before its answer is read, it leaves that out."""
    client.wait_for_workers(2, timeout=60)
    return next(iter(client.run(os.getpid).values()))


@pytest.fixture(autouse=True)
def few_portions(monkeypatch):
    """Each portion of a first round is a question to each of the 16 shards."""
    monkeypatch.setattr(cutting_plane_schedules, "FIRST_PORTIONS", 4)


@pytest.mark.parametrize("solver", SOLVERS)
def test_two_workers_train_the_same_model(client, solver):
    alone = solver.solve(problem())
    with parallel_config(backend="dask"):
        same(solver.solve(problem()), alone)


@pytest.mark.parametrize("killed", [False, True])
def test_two_workers_exchange_changes_of_one_model(client, victim, monkeypatch, killed):
    solver = LaRank(C=0.1, tol=5e-2, random_state=0, deterministic=False)
    alone = LaRank(C=0.1, tol=5e-2, random_state=0).solve(problem())
    seen, held, exchange = [], [], SharedState.exchange
    n_held = lambda: len(module.HELD)  # noqa: E731 (pickled by value)

    def exchange_and_kill(self, *given):
        seen.append(self.n_lost)
        if len(seen) == 5:
            held.extend(client.run(n_held).values())
            if killed:
                os.kill(victim, signal.SIGKILL)
        exchange(self, *given)

    monkeypatch.setattr(SharedState, "exchange", exchange_and_kill)
    with parallel_config(backend="dask"):
        run = solver.solve(problem())
    assert run.status == "converged" and run.dual == pytest.approx(alone.dual, rel=0.1)
    assert (run.state.n_lost > 0) == killed
    assert held == [1, 1] and not any(client.run(n_held).values())  # released
    whole = DualState(run.problem, run.C)
    whole.set_state(run.get_state())
    assert run.dual == pytest.approx(whole.settle(), rel=1e-5)


def test_workers_hold_nothing_when_training_has_ended(client):
    """Nor of what probabilities, completions and second stages are learnt from."""
    X, y = make_sequences(40, random_state=0)
    partly = [[label if t % 2 else None for t, label in enumerate(labels)] for labels in y]
    trees = make_dependency_trees(30, random_state=0)

    def held():
        return sum(client.run(lambda: len(module.HELD)).values())

    with parallel_config(backend="dask"):
        for labels, probability in ((y, True), (partly, False)):
            solver = LaRank(C=0.1, max_iter=2, deterministic=False, random_state=0)
            SequenceLabeler(solver=solver, loss="hamming", probability=probability).fit(X, labels)
            assert held() == 0
        DependencyParser(C=0.1, max_iter=1, random_state=0).fit(trees)
        assert held() == 0


def test_answers_go_from_worker_to_worker(client, monkeypatch):
    cluster = module.Cluster(client, [3, 4, 5])
    first, then = lambda shard, _, n: (shard, np.arange(n)), lambda shard, found, n: (shard, found)
    for shard, (of, found) in zip(cluster.shards, cluster.all_to_all(first, then, (2,)), strict=True):
        assert of == shard and [k for k, _ in found] == [3, 4, 5]
        assert all(array.tolist() == [0, 1] for _, array in found)
    with pytest.raises(FileNotFoundError, match="no such file"):
        cluster.all_to_all(lambda shard, _: os.stat("no such file"), then, ())
    monkeypatch.setattr(cluster, "_outcome", lambda futures: {0: 1})
    for _ in range(module.ATTEMPTS - 1):
        assert cluster.all_to_all(first, then, (2,)) == [1, None, None] and not cluster.is_lost
    with pytest.raises(module.ClusterError, match="2 of 3 shards were lost 10 times"):
        cluster.all_to_all(first, then, (2,))
    assert cluster.is_lost


def test_an_error_of_the_oracle_comes_out(client):
    data = Data(0, n=40)
    data.X[30] = np.nan
    with parallel_config(backend="dask"), pytest.raises(OracleError, match=r"Multiclass\.\w+ \(example 30\)"):
        CuttingPlane(random_state=0).solve(data.bind())


def test_a_worker_that_is_killed_in_the_middle(victim, monkeypatch):
    solver = CuttingPlane(C=0.1, tol=1e-2, random_state=0)
    alone = solver.solve(problem())
    lost, outcome = [], module.Cluster._outcome

    def kill_and_read(self, futures):
        if len(lost) == 2:
            os.kill(victim, signal.SIGKILL)
        found = outcome(self, futures)
        lost.append(len(futures) - len(found))
        return found

    monkeypatch.setattr(module.Cluster, "_outcome", kill_and_read)
    with parallel_config(backend="dask"):
        run = solver.solve(problem())
    same(run, alone)
    assert lost[:2] == [0, 0] and max(lost) > 0 and lost[-1] == 0
    with pytest.raises(ProcessLookupError):
        os.kill(victim, 0)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    X, y = make_sequences(90, random_state=0)
    rows = [[(*token, tag) for token, tag in zip(*pair, strict=True)] for pair in zip(X, y, strict=True)]
    for k in range(3):
        (folder / f"{k}.conll").write_bytes(Columns.from_sequences(rows[30 * k : 30 * k + 30]).to_bytes())
    return sorted(folder.iterdir())


def test_workers_make_shards_and_train_on_them(client, victim, files, tmp_path, monkeypatch):
    asked, outcome = [], module.Cluster._outcome

    def kill_and_read(self, futures):
        asked.append(len(futures))
        if len(asked) == 2:
            os.kill(victim, signal.SIGKILL)
        return outcome(self, futures)

    monkeypatch.setattr(exchanges, "stride_for", lambda work, rest, n_parts: 1)  # not by the clock: equal bits
    templates = "U0:%x[0,0]\nU1:%x[-1,0]\nB\n"
    given = {"max_memory": 20_000, "templates": templates, "min_count": 2}
    here = SequenceShards.make(files, tmp_path / "here", **given)
    with parallel_config(backend="dask"):
        monkeypatch.setattr(module.Cluster, "_outcome", kill_and_read)
        there = SequenceShards.make(files, tmp_path / "there", **given)
        monkeypatch.setattr(module.Cluster, "_outcome", outcome)
        for file in here.folder.iterdir():
            assert (there.folder / file.name).read_bytes() == file.read_bytes()
        assert asked[:2] == [3, 3] and len(asked) > 4 and sum(asked) > 12  # read, counted, encoded, put together
        client.wait_for_workers(2, timeout=60)  # whose number the bits depend on
        solver = LaRank(C=0.1, tol=0.05, random_state=0, deterministic=False)
        labeler = SequenceLabeler(
            solver=solver, loss="hamming", probability=False, templates=templates, features=TokenFeatures(min_count=2)
        )
        duals = [labeler.fit(SequenceShards.open(there.folder, mmap=on)).result_.dual for on in (True, False)]
        assert labeler.result_.status == "converged" and duals[0] == duals[1]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["here", "there"]


def test_errors_of_files_come_from_workers(client, files, tmp_path):
    (tmp_path / "ragged").write_text("a b A\n\nc C\n")
    (tmp_path / "torn.parquet").write_bytes(b"PAR1 and nothing more")
    for name, error, message in (
        ("ragged", ColumnFileError, r"ragged:3: expected 3 columns, found 2"),
        ("torn.parquet", ValueError, r"torn\.parquet: "),
        ("none", FileNotFoundError, r"No such file or directory: '.*none'"),
    ):
        found = []
        for way in ("dask", "threading"):
            with parallel_config(backend=way), pytest.raises(error, match=message) as info:
                SequenceShards.make([files[0], tmp_path / name], tmp_path / "new", hash_bits=8, templates="attributes")
            found.append((type(info.value), str(info.value)))
        assert found[0] == found[1]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ragged", "torn.parquet"]


def test_a_cluster_that_vanishes(client, monkeypatch):
    monkeypatch.setattr(module, "WAIT_SECONDS", 1.0)
    with parallel_config(backend="dask"), warnings.catch_warnings():
        run = CuttingPlane(C=0.1, random_state=0).start(problem())
        run.advance()
        run.certify()
        dual = run.state.dual
        client.cluster.scale(0)
        while client.ncores():
            time.sleep(0.01)
        with pytest.raises(module.ClusterError, match="has had no worker for 1 seconds"):
            run.solver.solve(run.problem, run=run, passes=2)
    assert run.state.settle() >= dual  # the state is whole
