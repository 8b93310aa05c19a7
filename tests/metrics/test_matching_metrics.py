"""Scores of matchings against counts of sets of pairs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from structsvm.metrics import matching_f1, matching_scores


def links(y):
    return {(i, int(j)) for i, j in enumerate(y) if j >= 0}


@settings(max_examples=30)
@given(seed=st.integers(0, 10**6))
def test_scores_count_pairs(seed):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(0, 4, 3)
    true, pred = ([rng.integers(-1, 3, n) for n in sizes] for _ in range(2))
    possible = [[(int(i), int(j)) for i, j in zip(rng.integers(0, 3, 2), rng.integers(0, 3, 2))] for _ in sizes]
    sure = [links(y) for y in true]
    allowed = [s | (set(p) - s) for s, p in zip(sure, possible)]
    found = [links(y) for y in pred]
    a = sum(map(len, found))
    s = sum(map(len, sure))
    hits = sum(len(f & t) for f, t in zip(found, sure))
    near = sum(len(f & t) for f, t in zip(found, allowed))
    scores = matching_scores(true, pred, possible=possible)
    assert scores.precision == pytest.approx(near / a if a else 0.0)
    assert scores.recall == pytest.approx(hits / s if s else 0.0)
    assert scores.alignment_error_rate == pytest.approx(1.0 - (hits + near) / (a + s) if a + s else 0.0)
    assert scores.exact == np.mean([f == t for f, t in zip(found, sure)])
    plain = matching_scores(true, pred)
    assert plain.f1 == matching_f1(true, pred) == pytest.approx(1.0 - plain.alignment_error_rate if a + s else 0.0)
    assert plain == matching_scores(true, pred, possible=[[]] * 3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([[0]], []), "y_true has 1 matchings and y_pred has 0"),
        (([], []), "no matchings to score"),
        (([[0], [1]], [[0], [1, 2]]), r"matching 1: y_true has shape \(1,\), y_pred \(2,\)"),
        (([[0]], [[0]], [[], []]), "1 matchings and 2 lists of possible pairs"),
    ],
)
def test_wrong_input(arguments, message):
    with pytest.raises(ValueError, match=message):
        matching_scores(*arguments[:2], possible=arguments[2] if len(arguments) > 2 else None)
