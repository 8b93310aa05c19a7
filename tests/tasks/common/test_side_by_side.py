"""Sums of losses with threads: what waits for what, the same bits, and how errors, Ctrl-C and callbacks end them."""

import itertools
import os
import signal
import threading
import time

import numpy as np
import pytest

from structsvm import LaRank, tasks
from structsvm.datasets import make_sequences
from structsvm.execution._stop import Job
from structsvm.progress import Monitor
from structsvm.solvers import ConditionalLikelihood
from structsvm.tasks.common import training
from structsvm.tasks.common.selection.choice import ChosenSum
from structsvm.tasks.common.selection.search import Search
from structsvm.tasks.common.selection.sums import SumSearch

X, y = make_sequences(60, n_labels=5, n_words=100, mean_length=8.0, random_state=0)
pytestmark = pytest.mark.filterwarnings("ignore::structsvm.ConvergenceWarning")


def labeler(**params):
    return tasks.SequenceLabeler(random_state=0, **params)


def assert_same(one, other):
    np.testing.assert_equal(one.validation_, other.validation_)
    np.testing.assert_array_equal(one.emission_, other.emission_)
    assert {loss: (r.primal, r.dual, r.n_iter) for loss, r in one.results_.items()} == {
        loss: (r.primal, r.dual, r.n_iter) for loss, r in other.results_.items()
    }


def watched(monkeypatch, kind, name, first):
    """Call `first` before each call of a method."""
    method = getattr(kind, name)
    monkeypatch.setattr(kind, name, lambda *given, **named: first() or method(*given, **named))


def test_the_others_do_not_wait_for_the_choice_of_the_first(monkeypatch):
    chosen, waited = threading.Event(), []
    choose_others = SumSearch.choose_others
    monkeypatch.setattr(SumSearch, "choose_others", lambda *given: choose_others(*given) or chosen.set())
    watched(monkeypatch, SumSearch, "choose_first", lambda: waited.append(chosen.wait(60.0)))
    labeler(n_jobs=2).fit(X, y)
    assert waited == [True]


def fail():
    raise ValueError("in the thread")


@pytest.mark.parametrize("name", ["choose_others", "compared", "choose_first"])
def test_an_error_of_either_thread_is_raised(name, monkeypatch):
    watched(monkeypatch, SumSearch, name, fail)
    model, n = labeler(n_jobs=2), threading.active_count()
    with pytest.raises(ValueError, match="in the thread"):
        model.fit(X, y)
    assert not hasattr(model, "model_") and threading.active_count() == n


def interrupt_main():
    """Send Ctrl-C from another thread, and wait until it has stopped this thread's job.

    One that comes between the main thread's last look and its sleep at a lock is seen when it wakes; so comes another.
    """
    stop = Job()  # within that of the thread
    for turn in itertools.count():
        if turn % 5000 == 0:
            os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.001)
        if stop.stopped:
            return


@pytest.mark.parametrize("name", ["start", "solve", "store"])
def test_ctrl_c_while_the_other_loss_is_trained_keeps_the_first(name, monkeypatch):
    step, main, n = getattr(training, name), threading.get_ident(), threading.active_count()
    model, stopped = labeler(n_jobs=2), []

    def wait(job, *given):
        if threading.get_ident() == main:
            return step(job, *given)
        while not first.is_set():
            time.sleep(0.001)
        interrupt_main()
        stopped.append(True)
        raise KeyboardInterrupt

    first, attempt = threading.Event(), training.attempt
    monkeypatch.setattr(training, name, wait)
    monkeypatch.setattr(training, "attempt", lambda *given: first.set() or attempt(*given))
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    monkeypatch.undo()
    whole = labeler().fit(X, y)
    assert stopped == [True] and threading.active_count() == n
    assert model.results_.keys() == {"log"} and model.result_.status == "interrupted"
    assert model.result_.n_iter == whole.results_["log"].n_iter and model.C_ == whole.C_
    assert [len(labels) for labels in model.predict(X)] == [len(labels) for labels in y]
    assert_same(model.fit(X, y), whole)


def test_ctrl_c_while_the_other_loss_is_trained_in_one_thread_keeps_the_first(monkeypatch):
    store, model = training.store, labeler(warm_start=True)

    def interrupt(job):
        if job.learner.loss != "log":
            raise KeyboardInterrupt
        store(job)

    monkeypatch.setattr(training, "store", interrupt)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    monkeypatch.undo()
    assert model.results_.keys() == {"log"} and model.result_.status == "interrupted"
    assert model.fit(X, y).results_.keys() == {"log", "hamming"}


def test_ctrl_c_while_others_are_searched_keeps_a_model_of_a_part(monkeypatch):
    walk, model, begun = Search._walk, labeler(n_jobs=2), []

    def wait(search, *given):
        if search.loss == "log":
            return walk(search, *given)
        walk(search, *given)
        released.wait(60.0)
        time.sleep(0.1)  # until the main thread waits
        interrupt_main()
        begun.append(True)
        raise KeyboardInterrupt

    released, release = threading.Event(), Search.release
    monkeypatch.setattr(Search, "_walk", wait)
    monkeypatch.setattr(Search, "release", lambda search: release(search) or released.set())
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert begun == [True] and model.loss_ == "hamming" and model.result_.status == "interrupted"
    assert [len(labels) for labels in model.predict(X)] == [len(labels) for labels in y]


class Interrupted(Monitor):
    def end_pass(self, run):
        raise KeyboardInterrupt


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_interrupted_first_training_becomes_the_sum_when_it_resumes(n_jobs, monkeypatch):
    solve, model = ConditionalLikelihood.solve, labeler(n_jobs=n_jobs, warm_start=True)
    monkeypatch.setattr(
        ConditionalLikelihood, "solve", lambda self, *a, **o: solve(self, *a, **o | {"monitor": Interrupted()})
    )
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    monkeypatch.undo()
    assert model.loss_ == "log" and model.results_.keys() == {"log"} and model.result_.status == "interrupted"
    assert model.fit(X, y).results_.keys() == {"log", "hamming"}


class Stopped(Monitor):
    def end_pass(self, run):
        return run.n_iter == 2


@pytest.mark.parametrize("seed", [0, None])
def test_a_callback_that_stops_the_first_training_stops_the_other_one_there(seed, monkeypatch):
    """A thread that has trained the other one before has drawn no seed of a random state."""
    solve, ended, found = ConditionalLikelihood.solve, threading.Event(), []
    larank = LaRank.solve

    def after(self, *given, **named):
        if self.n_jobs == 2:
            ended.wait(60.0)
        return solve(self, *given, **named | {"monitor": Stopped()})

    def before(self, *given, **named):
        ended.set()
        return larank(self, *given, **named)

    monkeypatch.setattr(ConditionalLikelihood, "solve", after)
    monkeypatch.setattr(LaRank, "solve", before)
    for n_jobs in (1, 2):
        random_state = np.random.RandomState(0) if seed is None else seed
        found.append(tasks.SequenceLabeler(random_state=random_state, n_jobs=n_jobs).fit(X, y))
    assert [r.n_iter for r in found[0].results_.values()] == [2, 2]
    assert_same(*found)


def test_a_choice_at_the_edge_is_said_once(monkeypatch):
    monkeypatch.setattr(ChosenSum, "edges", ["C = 1 of the loss 'log'"])
    for n_jobs in (1, 2):
        with pytest.warns(match="at the edge") as said:
            labeler(n_jobs=n_jobs).fit(X, y)
        assert len(said) == 1


def test_a_random_state_draws_the_same_seeds_with_threads():
    """The margin may be ready to begin before the log loss."""
    alone, together = (labeler(n_jobs=n).set_params(random_state=np.random.RandomState(0)).fit(X, y) for n in (1, 2))
    assert_same(alone, together)
