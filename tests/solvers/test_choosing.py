"""Walks over values of C: how many are tried, and which is the best."""

from types import SimpleNamespace

import pytest

from structsvm.solvers.choosing import PathPoint, Row, rank, walk


def row(C, score):
    return Row(C, score, 0.1, 1)


def of_path(C, score):
    return PathPoint(C, 2.0 * C, score, SimpleNamespace())


@pytest.mark.parametrize("trial", [row, of_path])
@pytest.mark.parametrize(
    ("metric", "best"), [("F1", 2.0), ("score", 2.0), ("tree loss", 1.0), ("error", 1.0), ("loss of 3", 2.0)]
)
def test_the_best_is_that_of_the_metric_and_of_equal_ones_the_least_C(trial, metric, best):
    trials = [trial(3.0, 0.7), trial(2.0, 0.7), trial(1.0, 0.6), trial(4.0, 0.6)]
    assert best == min(trials, key=lambda one: rank(one, metric)).C


SCORES = [0.5, 0.7, 0.6, 0.7, 0.65, 0.9]


@pytest.mark.parametrize(("patience", "n", "bests"), [(0, 1, [1]), (1, 3, [1, 2, 2]), (4, 6, [1, 2, 2, 2, 2, 6])])
def test_a_walk_ends_when_so_many_values_follow_the_best(patience, n, bests):
    asked, trials = [], []

    def try_value(C):
        asked.append(C)
        return row(C, SCORES[int(C) - 1])

    found = [best.C for best in walk(range(1, 7), try_value, trials, rank, patience)]
    assert asked == [one.C for one in trials] == list(range(1, n + 1)) and found == bests


@pytest.mark.parametrize(
    ("scores", "n", "best"),
    [
        ([0.0, 0.0, 0.0, 0.0, 0.3, 0.5, 0.4, 0.4, 0.9], 8, 6),
        ([0.0, 0.0, 0.0, 0.0, 0.0], 5, 1),
        ([0.3, 0.0, 0.0, 0.5], 3, 1),
    ],
    ids=["rises", "level", "falls"],
)
def test_blank_trials_at_the_beginning_are_no_end(scores, n, best):
    trials = []

    def try_value(C):
        return row(C, scores[C - 1])

    found = list(walk(range(1, 1 + len(scores)), try_value, trials, rank, 2, lambda trial: trial.score == 0.0))
    assert len(trials) == n and best == found[-1].C


def test_values_may_depend_on_the_trials_so_far():
    trials = [row(1.0, 0.5)]

    def values():
        while trials[-1].C < 100.0:
            yield 3.0 * trials[-1].C

    assert [best.C for best in walk(values(), lambda C: row(C, -C), trials)] == [1.0] * 5
    assert [one.C for one in trials] == [1.0, 3.0, 9.0, 27.0, 81.0, 243.0]
