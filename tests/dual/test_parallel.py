"""Threads over parts: how many are at work, in what order the answers come, and how an error ends them."""

import threading
import time

import numpy as np
import pytest
from python_oracles import Data

from structsvm.dual.parallel import Rounds, parallel_map
from structsvm.execution._stop import Job


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


def test_an_error_stops_what_is_at_work_and_leaves_out_the_rest():
    stopped, begun = threading.Event(), []

    def work(part):
        begun.append(part)
        if part == 0:
            raise RuntimeError("mine")
        job = Job()  # of the job that is at work on this part
        for _ in range(60_000):
            if job.stopped:
                stopped.set()
                return
            time.sleep(0.001)

    with pytest.raises(RuntimeError, match="mine"):
        parallel_map(work, range(100), 2)
    assert stopped.wait(60.0) and len(begun) < 100


def test_one_job_makes_no_shards():
    """With joblib imported, as it is once anything has been computed with more jobs."""
    problem, w = Data().bind(), np.zeros(Data().oracle.n_features)
    alone, two = Rounds(problem, 1), Rounds(problem, 2)
    np.testing.assert_array_equal(two.violations(w), alone.violations(w))
    alone.violations(w)
    alone.collect(w)
    assert alone._shards is None
    assert len(two._shards) == len(two.bounds) - 1 > 1
