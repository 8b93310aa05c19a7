"""The schedule of rounds: the one number that it stores, and what it refuses."""

from itertools import pairwise

import numpy as np
import pytest
from python_oracles import Data

from structsvm import CuttingPlane
from structsvm.dual.cutting_plane_schedules import FIRST_PORTIONS


@pytest.mark.parametrize("form", ["n_slack", "one_slack"])
def test_the_state_of_a_schedule(form):
    run = CuttingPlane(form=form, random_state=0).start(Data().bind())
    schedule = run.schedule
    np.testing.assert_array_equal(schedule.get_state(), [0.0])
    schedule.ask()
    np.testing.assert_array_equal(schedule.get_state(), [1.0])
    calls = run.state.n_argmax
    assert calls == run.problem.n_samples
    schedule.ask()
    assert run.state.n_argmax == calls  # a question is asked once
    for numbers in ([2.0], [0.5], [], [0.0, 1.0]):
        with pytest.raises(ValueError, match=r"must be one number, 0.0 or 1.0"):
            schedule.set_state(numbers)
        np.testing.assert_array_equal(schedule.get_state(), [1.0])
    schedule.set_state(np.zeros(1))
    assert not schedule.asked


@pytest.mark.parametrize("form", ["n_slack", "one_slack"])
def test_after_a_round_nothing_is_known_of_the_next(form):
    run = CuttingPlane(form=form, random_state=0).start(Data().bind())
    for _ in range(2):
        run.certify()
        assert run.schedule.gap == run.primal - run.state.dual > 0.0
        assert run.schedule.asked
        run.advance()
        assert (run.schedule.answers, run.schedule.asked, run.schedule.gap) == (None, False, 0.0)


def test_the_first_round_of_n_slack_is_in_portions(monkeypatch):
    run = CuttingPlane(random_state=0).start(Data().bind())
    collect, parts = run.rounds.collect, []
    run.schedule.rounds.collect = lambda w, *part: parts.append(part) or collect(w, *part)
    run.advance()
    assert len(parts) == FIRST_PORTIONS and parts[0][0] == 0.0 and parts[-1][1] == 1.0
    assert all(a[1] == b[0] for a, b in pairwise(parts))
    assert run.state.n_argmax == run.problem.n_samples
    assert run.schedule.joined == run.state.n_cuts > 0
    run.advance()
    assert parts[FIRST_PORTIONS:] == [()]
