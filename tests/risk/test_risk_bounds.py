"""The statistics of promises keep them: by enumeration, by simulation, and with the numbers that they ask for."""

import numpy as np
import pytest
from scipy.stats import binom

from structsvm.risk.bounds import (
    conformal_quantile,
    conformal_rank,
    mean_quantile,
    needed_for_quantile,
    needed_for_threshold,
    p_values,
    selective_threshold,
)


@pytest.mark.parametrize("alpha", [0.01, 0.05, 0.07, 0.1, 0.2, 0.29, 0.5])
@pytest.mark.parametrize("n", [9, 19, 30, 57, 99, 100, 199])
def test_the_least_rank_that_is_high_enough(n, alpha):
    """The k-th least of n uniform scores covers k / (n + 1): the rank is the first with 1 - alpha."""
    k = conformal_rank(n, alpha)
    assert k / (n + 1) >= 1.0 - alpha - 1e-12 > (k - 1) / (n + 1) - 1e-9
    assert (k - 1) / (n + 1) < 1.0 - alpha - 1e-12
    assert (k <= n) == (n >= needed_for_quantile(alpha))


def test_coverage_of_split_conformal_prediction():
    rng = np.random.default_rng(0)
    n, alpha, draws = 30, 0.1, 20_000
    found = np.array([conformal_quantile(rng.random(n), alpha) for _ in range(draws)])
    wanted = conformal_rank(n, alpha) / (n + 1)  # 0.903; one rank lower would be 0.871, one higher 0.935
    assert found.mean() == pytest.approx(wanted, abs=4.0 * found.std() / draws**0.5)
    assert wanted >= 1.0 - alpha


@pytest.mark.parametrize(("alpha", "least"), [(0.1, 9), (0.05, 19), (0.01, 99), (0.5, 1), (0.3, 3)])
def test_too_few_for_a_quantile(alpha, least):
    assert np.isfinite(conformal_quantile(np.arange(float(least)), alpha))
    with pytest.raises(ValueError, match=f"needs at least {least} held-out outputs, got {least - 1}"):
        conformal_quantile(np.arange(least - 1.0), alpha)


def test_equal_weights_change_nothing():
    scores = np.random.default_rng(0).normal(size=50)
    for alpha in (0.1, 0.2, 0.33):
        assert conformal_quantile(scores, alpha, np.full(50, 3.0)) == conformal_quantile(scores, alpha)
    with pytest.raises(ValueError, match=r"count as 1\.5"):
        conformal_quantile(scores, 0.1, np.append(1.0, np.full(49, 0.01)))


def test_weights_follow_a_drift():
    """Later outputs are harder: with weights the promise holds, without it breaks."""
    rng = np.random.default_rng(0)
    alpha, covered = 0.1, []
    for _ in range(800):
        x = rng.random(200)  # later ones have the density 2 x
        scores = rng.random(200) * x
        later = np.sqrt(rng.random(100))
        new = rng.random(100) * later
        most = [conformal_quantile(scores, alpha, weights) for weights in (2.0 * x, None)]
        covered.append([(new <= own).mean() for own in most])
    with_weights, without = np.mean(covered, axis=0)
    assert with_weights >= 1.0 - alpha - 0.003 and without < 1.0 - alpha - 0.02


def test_the_mean_share_of_units_that_are_missed():
    """Units of an output are alike, outputs are not: the promise holds as a mean over outputs."""
    rng = np.random.default_rng(0)
    alpha, n, missed = 0.1, 40, []
    for _ in range(3000):
        level, sizes = rng.random(n + 1), rng.integers(1, 6, n + 1)
        units = [np.clip(level[i] + 0.2 * rng.random(size), 0.0, 2.0) for i, size in enumerate(sizes)]
        shares = np.concatenate([np.full(len(own), 1.0 / len(own)) for own in units[:n]])
        most = mean_quantile(np.concatenate(units[:n]), shares, n, alpha)
        missed.append((units[n] > most).mean())
    assert alpha - 1.0 / n - 0.01 <= np.mean(missed) <= alpha + 0.006
    with pytest.raises(ValueError, match="needs at least 9 held-out outputs, got 8"):
        mean_quantile(np.arange(8.0), np.ones(8), 8, 0.1)
    assert mean_quantile(np.arange(9.0), np.ones(9), 9, 0.1) == 8.0


def test_probabilities_of_few_losses():
    n, total = np.array([10, 100, 300]), np.array([0.0, 1.0, 3.0])
    np.testing.assert_allclose(p_values(total, n, 0.02, binary=True), binom.cdf(total, n, 0.02))
    bound = p_values(total, n, 0.02, binary=False)
    assert (bound >= binom.cdf(total, n, 0.02) - 1e-12).all() and (bound <= 1.0).all()
    assert p_values(np.array([50.0]), np.array([100]), 0.02, binary=False) == 1.0


@pytest.mark.parametrize(
    ("alpha", "delta", "least"), [(0.01, 0.05, 299), (0.02, 0.05, 149), (0.05, 0.1, 45), (0.5, 0.5, 1)]
)
def test_too_few_for_a_threshold(alpha, delta, least):
    assert needed_for_threshold(alpha, delta) == least
    sure = np.linspace(0.0, 1.0, least)
    assert selective_threshold(sure, np.zeros(least), alpha, delta) == -np.inf
    with pytest.raises(ValueError, match=f"needs at least {least} held-out outputs, got {least - 1}"):
        selective_threshold(sure[1:], np.zeros(least - 1), alpha, delta)


def rising(c):
    return 0.2 * (1.0 - c)


def too_sure(c):
    """The surest are wrong more often than those below them."""
    return np.where(c > 0.9, 0.15, np.where(c > 0.5, 0.0, 0.3))


GRID = np.linspace(0.0, 1.0, 100_001)


def risk_above(error, threshold):
    own = GRID[threshold < GRID]
    return error(own).mean() if len(own) else 0.0


def two_values(alpha):
    """The surest are wrong a little more often than is promised; with those below them it is as often, then always."""
    return lambda c: np.where(c > 0.8, 1.3 * alpha, np.where(c > 0.6, 0.72 * alpha, 1.0))


@pytest.mark.parametrize("error", [rising, too_sure, two_values])
@pytest.mark.parametrize("levels", [0, 5, 20], ids=["all confidences", "five confidences", "ties"])
@pytest.mark.parametrize(
    ("alpha", "delta", "n"),
    [(0.05, 0.1, 600), (0.01, 0.05, 1500), (0.02, 0.2, 200), (0.1, 0.1, 60), (0.2, 0.3, 30), (0.5, 0.3, 4)],
)
def test_the_risk_of_answers_is_kept(error, levels, alpha, delta, n):
    """Over many sets of held-out outputs, a share delta of thresholds is too low, and no more; they are not idle."""
    rng = np.random.default_rng(0)
    error, draws = error(alpha) if error is two_values else error, 200
    broken, answered = 0, []
    for _ in range(draws):
        c = rng.random(n)
        sure = np.floor(levels * c) / levels if levels else c
        threshold = selective_threshold(sure, (rng.random(n) < error(c)).astype(float), alpha, delta)
        # Among tied confidences, all above the next one's are answered.
        real = threshold + 1.0 / levels if levels and np.isfinite(threshold) else threshold
        broken += risk_above(error, real) > alpha + 1e-4
        answered.append(max(1.0 - max(real, 0.0), 0.0))
    assert broken <= binom.ppf(0.999, draws, delta)
    assert n != 600 or levels == 5 or error(0.0) == 1.0 or np.mean(answered) > 0.1


def test_losses_between_0_and_1():
    rng = np.random.default_rng(0)
    alpha, delta, broken, answered = 0.1, 0.1, 0, []
    for _ in range(300):
        c = rng.random(400)
        threshold = selective_threshold(c, rng.random(400) * 2.0 * rising(c), alpha, delta)
        broken += 0.1 * (1.0 - max(threshold, 0.0)) > alpha
        answered.append(1.0 - max(min(threshold, 1.0), 0.0))
    assert broken == 0 and np.mean(answered) > 0.3


def test_weights_of_answers():
    """Later outputs are wrong more often at each confidence; the weights say so."""
    rng = np.random.default_rng(0)
    alpha, delta, draws, broken = 0.1, 0.1, 200, np.zeros(2)
    for _ in range(draws):
        c, hard = rng.random(500), rng.random(500) < 0.2
        wrong = (rng.random(500) < np.where(hard, 0.4, 0.05) * (1.0 - c)).astype(float)
        weights = np.where(hard, 0.6 / 0.2, 0.4 / 0.8)
        for k, own in enumerate((weights, None)):
            threshold = max(selective_threshold(c, wrong, alpha, delta, own), 0.0)
            broken[k] += (0.6 * 0.4 + 0.4 * 0.05) * (1.0 - threshold) / 2.0 > alpha
    assert broken[0] <= binom.ppf(0.999, draws, delta) < broken[1]


def test_several_starts_outlive_one_mistake():
    """The surest output of all is wrong: a single sequence of tests would end with it."""
    sure, wrong = np.linspace(1.0, 0.0, 2000), np.zeros(2000)
    wrong[0] = 1.0
    assert selective_threshold(sure, wrong, 0.01, 0.05) == -np.inf
