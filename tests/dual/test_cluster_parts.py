"""The two sides of a cluster, without one: who has which shard, answers that are lost, arrays that have travelled."""

import pickle
import threading

import numpy as np
import pytest

pytest.importorskip("distributed")

from structsvm.shards import cluster as module
from structsvm.shards.cluster import HELD, Cluster, ClusterError, aligned, answer, release

W = np.arange(3.0)


class Client:
    """Two workers that answer at once; `faults` are what the next answers raise instead, None: nothing."""

    def __init__(self, faults=()):
        self.faults, self.homes, self.asked, self.asked_at = list(faults), [], [], []

    def scheduler_info(self, n_workers):
        assert n_workers == -1
        return {"workers": {"tcp://b": {"nthreads": 2}, "tcp://a": {"nthreads": 1}}}

    def sync(self, function, callback_timeout):
        assert callback_timeout == module.WAIT_SECONDS  # Dask waits for ever for a worker that dies on the way
        return function()

    def scatter(self, data, workers=None, **options):
        assert options == {"hash": False, "asynchronous": True}  # equal data of two problems are two things
        if workers is not None:
            self.homes.append(workers)
        return data

    def submit(self, function, name, data, *arguments, pure, workers):
        assert pure is False  # the same question later is asked again
        self.asked_at.append(workers)
        self.asked.append(int(name.rpartition("-")[2]))
        return Future(self.faults.pop(0) if self.faults else None, lambda: function(name, data, *arguments))


class Future:
    def __init__(self, fault, work):
        self.fault, self.work = fault, work

    def result(self):
        if self.fault is not None:
            raise self.fault
        return self.work()


def double(shard, w, more):
    return shard, w.sum(), more


@pytest.fixture(autouse=True)
def nothing_held():
    HELD.clear()
    yield
    HELD.clear()


def test_what_is_answered_after_the_end_is_not_held():
    data = pickle.dumps("p")
    assert answer("one-0", data, double, W, 1) == answer("two-0", data, double, W, 1) == ("p", 3.0, 1)
    release("one")
    assert list(HELD) == ["two-0"]
    assert answer("one-1", data, double, W, 1) == ("p", 3.0, 1)
    assert list(HELD) == ["two-0"]


def test_shards_stay_with_workers_in_turn():
    client = Client()
    cluster = Cluster(client, ["p", "q", "r"])
    expected = [("p", 3.0, 1), ("q", 3.0, 2), ("r", 3.0, 3)]
    assert cluster.map(double, W, [(1,), (2,), (3,)]) == expected
    assert client.homes == [["tcp://a"], ["tcp://b"], ["tcp://a"]]
    assert cluster.map(double, W, [(1,), (2,), (3,)]) == expected
    assert len(client.homes) == 3 and client.asked == [0, 1, 2] * 2
    assert client.asked_at == client.homes * 2  # nowhere else, whoever is idle
    assert Cluster(client, []).name != cluster.name


def test_what_was_lost_is_sent_and_asked_again():
    lost = OSError("the worker is gone")
    client = Client([None, lost, None])
    cluster = Cluster(client, ["p", "q", "r"])
    assert cluster.map(double, W, [(1,), (2,), (3,)]) == [("p", 3.0, 1), ("q", 3.0, 2), ("r", 3.0, 3)]
    assert client.asked == [0, 1, 2, 1] and client.homes[3:] == [["tcp://b"]]
    assert cluster.last is lost


@pytest.mark.parametrize("fault", [OSError("no connection"), TimeoutError()])
def test_a_scatter_that_fails_is_done_again(monkeypatch, fault):
    client, tries = Client(), []

    def scatter(self, *data, **options):
        tries.append(options)
        if len(tries) == 2:
            raise fault
        return Client.scatter(client, *data, **options)

    monkeypatch.setattr(client, "scatter", scatter.__get__(client))
    assert Cluster(client, ["p", "q"]).map(double, W, [(1,), (2,)]) == [("p", 3.0, 1), ("q", 3.0, 2)]


def test_who_is_lost_ten_times_is_given_up():
    client = Client([OSError(f"loss {k}") for k in range(10)])
    with pytest.raises(ClusterError, match=r"1 of 1 shards were lost 10 times in a row, .*OSError\('loss 9'\)"):
        Cluster(client, ["p"]).map(double, W, [(1,)])
    assert len(client.asked) == 10


def test_an_error_of_the_task_is_no_loss():
    client = Client([ValueError("from the oracle")])
    with pytest.raises(ValueError, match="from the oracle"):
        Cluster(client, ["p"]).map(double, W, [(1,)])
    assert client.asked == [0]


def test_an_error_at_a_file_is_no_loss():
    def read(shard, w):
        raise FileNotFoundError(2, "No such file", shard)

    client = Client()
    with pytest.raises(FileNotFoundError, match="No such file: 'p'"):
        Cluster(client, ["p", "q"]).map(read, None, [(), ()])
    assert client.asked == [0, 1]


def test_a_cluster_without_workers(monkeypatch):
    client, looks = Client(), []
    monkeypatch.setattr(module, "WAIT_SECONDS", 0.0)
    monkeypatch.setattr(client, "scheduler_info", lambda n_workers: looks.append(0) or {"workers": {}})
    with pytest.raises(ClusterError, match="has had no worker for 0 seconds"):
        Cluster(client, ["p"]).map(double, W, [(1,)])
    monkeypatch.setattr(module, "WAIT_SECONDS", 60.0)
    monkeypatch.setattr(module.time, "sleep", lambda seconds: monkeypatch.undo())  # one joins meanwhile
    assert Cluster(client, ["p"]).map(double, W, [(1,)]) == [("p", 3.0, 1)]


def test_a_worker_holds_the_shards_that_came_last(monkeypatch):
    monkeypatch.setattr(module, "MOST_HELD", 2)
    for name in "abc":
        assert answer(name, pickle.dumps(name), double, W, 0) == (name, 3.0, 0)
    assert list(HELD) == ["b", "c"]
    for name in "bc":  # held: not unpickled again
        assert answer(name, b"no pickle", double, W, 0)[0] == name
    assert answer("a", pickle.dumps("anew"), double, W, 0)[0] == "anew"
    assert list(HELD) == ["c", "a"]


def test_a_shard_serves_one_thread_at_a_time():
    inside, overlaps = [], []
    entered = threading.Event()

    def slow(shard, w):
        inside.append(0)
        overlaps.append(len(inside))
        entered.set()
        threading.Event().wait(0.1)  # in which the other thread would come in
        inside.pop()

    HELD["a"] = threading.Lock(), None
    threads = [threading.Thread(target=answer, args=("a", b"", slow, W)) for _ in range(2)]
    threads[0].start()
    assert entered.wait(10.0)
    threads[1].start()
    for thread in threads:
        thread.join()
    assert overlaps == [1, 1]


def test_arrays_are_aligned_wherever_they_arrive():
    odd = np.frombuffer(b"x" + W.tobytes(), dtype=np.uint8)[1:].view(np.float64)
    columns = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    assert not odd.flags.aligned
    name, one, (two, rest) = aligned(("name", odd, (odd, columns)))
    for array in (one, two, rest, aligned(odd)):
        assert array.flags.aligned and array.flags.c_contiguous
    assert name == "name" and np.array_equal(one, W) and np.array_equal(two, W) and np.array_equal(rest, columns)
    assert answer("a", pickle.dumps(None), lambda shard, *items: items, odd, (odd,), 2)[1][0].flags.aligned
