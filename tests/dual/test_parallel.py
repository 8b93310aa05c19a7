"""Threads over parts: how many are at work, in what order the answers come, and how an error ends them."""

import os
import sys
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest
from python_oracles import Data

from structsvm.dual.parallel import Rounds, beside, cut_points, noted, parallel_map, parallel_parts, renumbered_parts
from structsvm.execution._stop import Job
from structsvm.oracles.viterbi import ViterbiOracle


def test_parts_are_at_work_at_once_and_answers_keep_their_order():
    both = threading.Barrier(2, timeout=60.0)  # nobody passes alone

    def work(part):
        both.wait()
        return 10 * part

    assert parallel_map(work, [3, 1, 2, 0], 2) == [30, 10, 20, 0]


@pytest.mark.parametrize(("parts", "n_threads"), [([1, 2, 3], 1), ([1], 4), ([], 4)])
def test_one_thread_or_one_part_starts_no_threads(parts, n_threads):
    me = threading.get_ident()
    assert parallel_map(lambda part: (part, threading.get_ident()), parts, n_threads) == [(part, me) for part in parts]


def test_a_call_is_made_beside_the_body():
    both = threading.Barrier(2, timeout=60.0)
    with beside(lambda: both.wait() and threading.get_ident(), 2) as result:
        both.wait()
        assert result() != threading.get_ident()


def test_with_one_thread_a_call_waits_until_the_body_asks():
    called = []
    with beside(lambda: called.append(threading.get_ident()), 1):
        pass
    assert called == []
    with beside(lambda: called.append(threading.get_ident()), 1) as result:
        assert called == [] and result() is None
    assert called == [threading.get_ident()]


@pytest.mark.parametrize("error", [None, ValueError("in the body")])
def test_a_call_that_nobody_asks_for_is_stopped(error):
    begun, ended = threading.Event(), []

    def work():
        job = Job()
        begun.set()
        while not job.stopped:
            time.sleep(0.01)
        ended.append(True)

    def body():
        with beside(work, 2):
            begun.wait(60.0)
            if error is not None:
                raise error

    if error is None:
        body()
    else:
        with pytest.raises(ValueError, match="in the body"):
            body()
    assert ended == [True]


def test_the_error_of_a_call_is_raised_where_its_result_is_asked_for():
    with pytest.raises(KeyError, match="in the call"), beside(lambda: {}["in the call"], 2) as result:
        result()


@pytest.mark.parametrize("n", [0, 1, 3, 10])
@pytest.mark.parametrize("n_threads", [1, 2, 3])
def test_parts_are_joined(n, n_threads):
    assert parallel_parts(lambda a, b: list(range(a, b)), n, n_threads) == list(range(n))
    np.testing.assert_array_equal(parallel_parts(np.arange, n, n_threads), np.arange(n))


@pytest.mark.parametrize("n_threads", [1, 2])
def test_an_error_has_the_number_of_all_examples(n_threads):
    called = []

    def work(a, b):
        called.append((a, b))
        for k in range(a, b):
            if k == 7:
                raise ValueError(f"example {k - a}")

    with pytest.raises(ValueError, match="example 7"):
        renumbered_parts(work, 10, n_threads)
    assert (0, 10) in called


@pytest.mark.parametrize("wrong", [0, 1])
def test_an_error_stops_what_is_at_work_and_leaves_out_the_rest(wrong):
    stopped, begun = threading.Event(), []

    def work(part):
        begun.append(part)
        if part == wrong:
            raise RuntimeError("mine")
        job = Job()  # the job that is at work on this part
        for _ in range(60_000):
            if job.stopped:
                stopped.set()
                return
            time.sleep(0.001)

    with pytest.raises(RuntimeError, match="mine"):
        parallel_map(work, range(100), 2)
    assert stopped.wait(60.0) and len(begun) < 100


@pytest.mark.parametrize("late", [0.0, 0.05])
def test_no_thread_is_at_work_after_ctrl_c_in_its_start(monkeypatch, late):
    """The pool does not know of a thread that runs, but whose start has not returned."""
    start, at_work, ended = threading.Thread.start, [], []

    def interrupted(thread):
        start(thread)
        time.sleep(late)  # it has taken its part, or is about to
        raise KeyboardInterrupt

    def work(part):
        at_work.append(part)
        time.sleep(0.1)
        ended.append(part)

    monkeypatch.setattr(threading.Thread, "start", interrupted)
    with pytest.raises(KeyboardInterrupt):
        parallel_map(work, [0, 1], 2, wait=True)
    then = list(ended)
    assert at_work == then
    time.sleep(0.15)
    assert at_work == ended == then


def test_one_job_makes_no_copies():
    """With joblib imported, as it is once anything has been computed with more jobs."""
    problem, w = Data().bind(), np.zeros(Data().oracle.n_features)
    alone, two = Rounds(problem, 1), Rounds(problem, 2)
    np.testing.assert_array_equal(two.violations(w), alone.violations(w))
    alone.violations(w)
    alone.collect(w)
    assert len(alone.copies) == 1 and len(two.copies) == 2


def test_there_are_no_more_threads_than_shards():
    problem, w = Data().bind(), np.zeros(Data().oracle.n_features)
    alone, many = Rounds(problem, 1), Rounds(problem, 10**4)
    np.testing.assert_array_equal(many.violations(w), alone.violations(w))
    assert len(many.copies) == len(many.bounds) - 1 <= problem.n_samples


def test_processes_are_asked_where_a_backend_has_no_shared_memory():
    joblib = pytest.importorskip("joblib")
    problem = ViterbiOracle(2, 3).bind([np.eye(3)] * 4, [np.array([0, 1, 0])] * 4)
    rounds, me = Rounds(problem, 2), os.getpid()

    def process(problem, w, start, stop, k):  # not of this module, which other processes cannot import
        return os.getpid(), stop - start, problem.n_samples >= stop, w.sum(), k

    numbers = [(0, 1, k) for k in range(len(rounds.shards))]
    with joblib.parallel_config(backend="threading"):
        here = rounds._map(process, np.ones(5), numbers)
    with joblib.parallel_config(backend="loky"):
        there = rounds._map(process, np.ones(5), numbers)
    assert here == [(me, 1, True, 5.0, k) for k in range(4)]
    assert [answer[1:] for answer in there] == [answer[1:] for answer in here]
    assert me not in {pid for pid, *_ in there}


@pytest.mark.parametrize(("n", "shards"), [(10, 10), (2000, 16), (20000, 39), (10**6, 256)])
def test_the_number_of_shards_follows_from_the_examples(n, shards):
    bounds = cut_points(n, None)
    assert len(bounds) == shards + 1 and bounds[0] == 0 and bounds[-1] == n
    assert max(np.diff(bounds)) - min(np.diff(bounds)) <= 1


def test_a_cluster_keeps_its_shards_until_the_client_is_another(monkeypatch):
    joblib = pytest.importorskip("joblib")
    made, closed = [], []

    class Cluster:
        def __init__(self, client, shards):
            self.client = client
            made.append(client)

        def map(self, function, w, arguments):
            return [((self.client, function, w, *rest), None) for rest in arguments]

        def close(self):
            closed.append(self.client)

    monkeypatch.setitem(sys.modules, "structsvm.shards.cluster", SimpleNamespace(Cluster=Cluster))
    rounds = Rounds(Data().bind(), 2)
    for client in ("one", "one", "other", "one"):
        backend = SimpleNamespace(client=client)
        monkeypatch.setattr(joblib.parallel, "get_active_backend", lambda prefer=None, b=backend: (b, 2))
        assert rounds._map("function", "w", [(0, 3), (1, 2)]) == [
            (client, noted, "w", "function", *span) for span in ((0, 3), (1, 2))
        ]
    assert made == ["one", "other", "one"] and closed == ["one", "other"]
    for _ in range(2):  # the second time nothing is held
        rounds.close()
        assert closed == made
