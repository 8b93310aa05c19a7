"""The threshold of F1 where a class has few rows, on other rows of the same distribution."""

import numpy as np
import pytest

from structsvm.tasks import MultivariateClassifier
from structsvm.tasks.ranking.thresholds import best_cut, chances, threshold_of_count, threshold_of_f1

SHIFTS = {"normal": (1.66, 1.0), "wide": (2.2, 1.6), "narrow": (1.8, 0.8)}


def f1(positive, found):
    return 2.0 * (positive & found).sum() / (positive.sum() + found.sum())


def drawn(kind, n_positive, rng, share=0.01):
    n = int(n_positive / share)
    mean, spread = SHIFTS[kind]
    positive = np.arange(n) < n_positive
    scores = np.where(positive, rng.normal(mean, spread, n), rng.normal(0.0, 1.0, n))
    return scores, positive


@pytest.mark.parametrize("kind", SHIFTS)
def test_few_rows_of_a_class(kind):
    """The mean F1 of other rows is near the best, and higher than with the best cut of the rows themselves."""
    rng = np.random.default_rng(0)
    scores, positive = drawn(kind, 1000, rng)
    best = f1(positive, scores > best_cut(scores, 1.0 * positive, np.ones(len(scores))))
    found = {name: [] for name in ("curve", "cut", "count")}
    for _ in range(30):
        rows = drawn(kind, 25, rng)
        ones = np.ones(len(rows[0]))
        cuts = threshold_of_f1(*rows, ones), best_cut(rows[0], 1.0 * rows[1], ones), threshold_of_count(*rows, ones)
        for values, cut in zip(found.values(), cuts, strict=True):
            values.append(f1(positive, scores > cut))
    curve, cut, count = (np.mean(values) for values in found.values())
    assert curve > cut and curve > count - 0.005 and curve > best - 0.012
    assert np.std(found["curve"]) < np.std(found["cut"])


def test_few_rows_count_beside_their_curve():
    """A class that begins at a score, as columns of zeros and ones make it: the curve alone finds too many others."""
    rng = np.random.default_rng(0)

    def stepped(n):
        scores = rng.normal(size=n)
        return scores, (scores > 1.5) & (rng.uniform(size=n) < 0.5)

    scores, positive = stepped(40_000)
    gains = []
    for _ in range(12):
        rows, own = stepped(1000)
        ones = np.ones(len(rows))
        cuts = threshold_of_f1(rows, own, ones), best_cut(rows, chances(rows, own, ones), ones)
        gains.append(f1(positive, scores > cuts[0]) - f1(positive, scores > cuts[1]))
    assert np.mean(gains) > 0.0 and np.min(gains) > -0.02


def test_many_rows_decide_themselves():
    """With a class of two parts the chances are no such curve."""
    rng = np.random.default_rng(1)
    scores = np.concatenate([rng.uniform(0.0, 1.0, 8000), rng.uniform(0.4, 0.45, 1500), rng.uniform(0.9, 1.0, 100)])
    positive, ones = np.arange(len(scores)) >= 8000, np.ones(len(scores))
    found = threshold_of_f1(scores, positive, ones)
    assert found == best_cut(scores, 1.0 * positive, ones)
    assert f1(positive, scores > found) > f1(positive, scores > best_cut(scores, chances(scores, positive, ones), ones))


def test_weights_are_copies():
    rng = np.random.default_rng(2)
    scores, positive = drawn("normal", 20, rng, share=0.2)
    weights = rng.integers(1, 4, len(scores)).astype(float)
    copies = np.repeat(np.arange(len(scores)), weights.astype(int))
    shift = scores[copies].mean(), scores[copies].std()
    assert shift != (scores.mean(), scores.std())
    np.testing.assert_allclose(
        chances(scores, positive, weights)[copies],
        chances(scores[copies], positive[copies], np.ones(len(copies))),
        atol=1e-4,
    )


@pytest.mark.parametrize("positive", [np.arange(9) > 5, np.arange(9) >= 0, np.arange(9) < 0])
def test_classes_that_scores_separate(positive):
    scores = np.arange(9.0)
    found = threshold_of_f1(scores, positive, np.ones(9))
    assert np.isfinite(found)
    if positive.any():
        assert ((scores > found) == positive).all()


def test_a_bound_that_zero_solves_is_not_chosen():
    """Where rows of a rare class lie among the others, w = 0 solves the bound of F1. Weights are what is left of the
    way there: by chance they rank held-out rows well, and those of the last training do not."""
    rng, y = np.random.default_rng(1), np.arange(4000) % 100 == 0
    X, others = (rng.normal(size=(4000, 5)) + 0.8 * y[:, None] for _ in range(2))
    model = MultivariateClassifier("f1", random_state=0).fit(X, y)
    C, score, _ = model.validation_["losses"]["f1"]
    solved = MultivariateClassifier("f1", C=C, random_state=0).fit(X, y).result_
    assert solved.dual == pytest.approx(C * len(y), rel=1e-3) and score == 0.0  # the primal of w = 0
    assert model.validation_["loss"] == "roc_area" and f1(y, model.predict(others)) > 0.2
