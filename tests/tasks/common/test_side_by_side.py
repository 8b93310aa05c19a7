"""Sums of losses with threads: what waits for what, the same bits, and how errors, Ctrl-C and callbacks end them."""

import threading
import time

import numpy as np
import pytest

from structsvm import tasks
from structsvm.datasets import make_sequences
from structsvm.execution._stop import Job
from structsvm.progress import Monitor
from structsvm.solvers import ConditionalLikelihood
from structsvm.tasks.common.selection.choice import ChosenSum
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


def test_the_first_training_does_not_wait_for_the_choice_of_the_others(monkeypatch):
    alone, begun, waited = labeler().fit(X, y), threading.Event(), []
    watched(monkeypatch, ConditionalLikelihood, "solve", begun.set)
    watched(monkeypatch, SumSearch, "choose_others", lambda: waited.append(begun.wait(60.0)))
    together = labeler(n_jobs=2).fit(X, y)
    assert waited == [True] and together.model_.choice.get(ChosenSum) is not None
    assert_same(together, alone)


def test_the_others_do_not_wait_for_the_choice_of_the_first(monkeypatch):
    chosen, waited = threading.Event(), []
    choose_others = SumSearch.choose_others
    monkeypatch.setattr(SumSearch, "choose_others", lambda *given: choose_others(*given) or chosen.set())
    watched(monkeypatch, SumSearch, "choose_first", lambda: waited.append(chosen.wait(60.0)))
    labeler(n_jobs=2).fit(X, y)
    assert waited == [True]


def fail():
    raise ValueError("in the thread")


@pytest.mark.parametrize("name", ["choose_others", "compared", "provisional", "choose_first"])
def test_an_error_of_either_thread_is_raised(name, monkeypatch):
    watched(monkeypatch, SumSearch, name, fail)
    model, n = labeler(n_jobs=2), threading.active_count()
    with pytest.raises(ValueError, match="in the thread"):
        model.fit(X, y)
    assert not hasattr(model, "model_") and threading.active_count() == n


class Interrupted(Monitor):
    def end_pass(self, run):
        raise KeyboardInterrupt


def test_ctrl_c_before_the_choice_is_made(monkeypatch):
    """The model that was trained on all examples is kept, with its C."""

    def wait(*given):
        job = Job()  # within that of the thread
        while not job.stopped:
            time.sleep(0.001)
        raise KeyboardInterrupt

    solve, model = ConditionalLikelihood.solve, labeler(n_jobs=2)
    monkeypatch.setattr(SumSearch, "choose_others", wait)
    monkeypatch.setattr(
        ConditionalLikelihood, "solve", lambda self, *a, **o: solve(self, *a, **o | {"monitor": Interrupted()})
    )
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    monkeypatch.undo()
    whole = labeler().fit(X, y)
    assert model.loss_ == "log" and model.results_.keys() == {"log"} and model.result_.status == "interrupted"
    assert model.C_ == whole.C_ and model.validation_["losses"].keys() == {"log"}
    assert [len(labels) for labels in model.predict(X)] == [len(labels) for labels in y]
    assert_same(model.fit(X, y), whole)


class Stopped(Monitor):
    def end_pass(self, run):
        return run.n_iter == 2


def test_a_callback_that_stops_the_first_training_stops_the_other_one_there(monkeypatch):
    solve, found = ConditionalLikelihood.solve, []
    monkeypatch.setattr(
        ConditionalLikelihood, "solve", lambda self, *a, **o: solve(self, *a, **o | {"monitor": Stopped()})
    )
    for n_jobs in (1, 2):
        found.append(labeler(n_jobs=n_jobs).fit(X, y))
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
