"""The statistics of promises keep them: by enumeration, by simulation, and with the numbers that they ask for."""

import tracemalloc
from itertools import product
from math import comb

import numpy as np
import pytest
from scipy.special import bdtr, logsumexp, xlogy
from scipy.stats import binom

from structsvm.risk import bounds
from structsvm.risk.bounds import (
    certified_step,
    conformal_quantile,
    conformal_rank,
    log_wealth,
    mean_quantile,
    needed_for_quantile,
    needed_for_threshold,
    says_below,
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


# --- tests of a mean loss ---------------------------------------------------------------------------


def of_rows(losses, alpha, weights=1.0):
    """The sums that tests take, one test per row of losses."""
    return lambda of: of(weights * (losses - alpha)).sum(axis=1)


def wealth(losses, alpha, level):
    """Bets on the losses of one test, as they are defined: exp of `log_wealth`."""
    n, k = len(losses), np.arange(1.0, 30.0)
    mean = alpha * (1.0 - 2.0 ** (-(k - 0.5) / 2.0))
    kl = xlogy(mean, mean / alpha) + xlogy(1.0 - mean, (1.0 - mean) / (1.0 - alpha))
    best = int((n * kl >= -np.log(level)).sum())
    sizes = (1.0 - 1e-12) / (1.0 - alpha) * 2.0 ** (-np.arange(best + 1) / 2.0)
    won = [np.prod(1.0 + b * (alpha - losses)) for b in sizes]
    return won[0] if best == 0 else 0.5 * won[-1] + 0.5 * np.mean(won[:-1])


@pytest.mark.parametrize("alpha", [0.01, 0.1, 0.5])
@pytest.mark.parametrize("n", [1, 3, 40, 300])
def test_wealth_is_that_of_the_plain_definition(n, alpha):
    rng = np.random.default_rng(0)
    losses = np.concatenate([rng.random((20, n)) * 2.0 * alpha, rng.random((20, n)) < alpha, np.zeros((1, n))])
    for level in (0.01, 0.1, 0.6):
        found = log_wealth(of_rows(losses, alpha), n, alpha, level)
        assert found == pytest.approx(np.log([wealth(own, alpha, level) for own in losses]), rel=1e-6, abs=1e-9)
        each = log_wealth(of_rows(losses, alpha), np.full(len(losses), n), alpha, level)
        assert each.tolist() == found.tolist()
        mixed = log_wealth(of_rows(losses, alpha), np.where(np.arange(len(losses)) % 2, n, 900), alpha, level)
        assert mixed[1::2].tolist() == pytest.approx(found[1::2], rel=1e-12, abs=1e-12)


def test_sizes_of_bets_are_not_held_at_once():
    excess = np.random.default_rng(0).random(20_000) - 0.3
    counts = np.arange(1, len(excess) + 1)
    tracemalloc.start()
    try:
        found = log_wealth(lambda of: np.cumsum(of(excess)), counts, 0.3, 1e-6)
        assert tracemalloc.get_traced_memory()[1] < 10 * found.nbytes
    finally:
        tracemalloc.stop()


def test_losses_that_rounding_puts_above_1():
    excess = np.array([[1.0 + 2e-12 - 0.3]])
    assert log_wealth(lambda of: of(excess).sum(axis=1), 1, 0.3, 0.1) == pytest.approx([np.log(1e-12)], rel=1e-3)


def test_tests_of_losses_of_0_and_1_are_exact():
    n, total = 30, np.arange(31)
    losses = np.arange(n) < total[:, None]
    for alpha, level in product((0.02, 0.1, 0.5), (0.01, 0.1, 0.5)):
        found = says_below(of_rows(losses * 1.0, alpha), n, alpha, level, binary=True)
        assert found.tolist() == (binom.cdf(total, n, alpha) <= level).tolist()


# Losses of an output, beside 0 and 1.
BETWEEN = (0.02, 0.3, 0.5, 0.9)


@pytest.mark.parametrize("alpha", [0.01, 0.05, 0.2, 0.5])
@pytest.mark.parametrize("n", [1, 2, 7, 25, 60])
def test_no_losses_mislead_more_often_than_the_level(n, alpha):
    """By enumeration: three losses with an expectation of alpha, in any proportions; binary where none is between.

    The binomial test of losses that happen to be 0 and 1, and bets on others, together.
    """
    counts = np.array([(one, some) for one in range(n + 1) for some in range(n + 1 - one)])
    ways = np.array([float(comb(n, one) * comb(n - one, some)) for one, some in counts.tolist()])
    one, some = counts.T
    for between, level in product(BETWEEN, (0.02, 0.1, 0.4)):
        excess = [1.0 - alpha, between - alpha, -alpha]

        def sums(of, excess=excess):
            return np.stack([one, some, n - one - some], axis=1) @ of(np.array(excess))

        says = np.where(
            some == 0, says_below(sums, n, alpha, level, binary=True), says_below(sums, n, alpha, level, binary=False)
        )
        bets = says_below(sums, n, alpha, level, binary=False)
        for share in np.linspace(0.0, min(alpha / between, 1.0), 21):  # share of losses that lie between
            p_one = alpha - share * between
            if share + p_one > 1.0:
                continue
            chance = ways * p_one**one * share**some * max(1.0 - share - p_one, 0.0) ** (n - one - some)
            assert chance.sum() == pytest.approx(1.0)
            assert max(chance[says].sum(), chance[bets].sum()) <= level + 1e-9


@pytest.mark.parametrize(("alpha", "level", "n"), [(0.01, 0.05, 900), (0.05, 0.1, 300), (0.2, 0.05, 80), (0.5, 0.3, 5)])
@pytest.mark.parametrize("spread", [0.5, 5.0, 100.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_bets_mislead_no_more_often_than_the_level(weighted, spread, alpha, level, n):
    """Losses of any spread have an expectation of alpha; with weights, under the weights."""
    rng, draws = np.random.default_rng(0), 2000
    hard, weights = (rng.random((draws, n)) < 0.3) if weighted else np.ones((draws, n), dtype=bool), 1.0
    if weighted:  # hard outputs have more losses, and are fewer here than later
        weights = np.where(hard, 1.0, 0.4)
        mass = 0.3 * 1.0 + 0.7 * 0.4
        easy = 0.4 * alpha
        mean = np.where(hard, (alpha * mass - 0.7 * 0.4 * easy) / 0.3, easy)
    else:
        mean = np.full((draws, n), alpha)
    losses = rng.beta(mean * spread, (1.0 - mean) * spread)
    says = says_below(of_rows(losses, alpha, weights), n, alpha, level, binary=False)
    assert says.sum() <= binom.ppf(0.999, draws, level)


def hoeffding_bentkus(total, n, alpha):
    """The p-value of other losses than 0 and 1 before bets."""
    mean = np.minimum(total / n, alpha)
    kl = xlogy(mean, mean / alpha) + xlogy(1.0 - mean, (1.0 - mean) / (1.0 - alpha))
    return np.minimum(np.exp(-n * kl), np.e * bdtr(np.ceil(np.round(total, 9)), n, alpha))


@pytest.mark.parametrize(
    ("n", "alpha", "mean", "spread"), [(900, 0.05, 0.042, 20.0), (200, 0.1, 0.07, 5.0), (2000, 0.05, 0.042, 3.0)]
)
def test_losses_that_vary_little_need_fewer_outputs(n, alpha, mean, spread):
    """Bets see that; the bounds of Hoeffding and Bentkus go by the mean loss alone."""
    losses = np.random.default_rng(0).beta(mean * spread, (1.0 - mean) * spread, (300, n))
    bets = says_below(of_rows(losses, alpha), n, alpha, 0.05, binary=False).mean()
    assert bets > 0.3 and bets > 3.0 * (hoeffding_bentkus(losses.sum(axis=1), n, alpha) <= 0.05).mean()


def test_losses_of_0_and_1_cost_bets_little():
    """Where all that is known of losses is their mean, bets are nearly as good as Hoeffding's bound."""
    n, alpha, level = 900, 0.05, 0.05
    losses = np.arange(n) < np.arange(60)[:, None]
    by_bets = says_below(of_rows(losses * 1.0, alpha), n, alpha, level, binary=False).sum()
    by_bound = (hoeffding_bentkus(np.arange(60.0), n, alpha) <= level).sum()
    assert by_bound - 4 <= by_bets <= by_bound


def test_no_losses_at_all_say_as_much_as_ever():
    """The number of outputs that an error asks for suffices."""
    for alpha, delta in product((0.01, 0.05, 0.1, 0.5), (0.01, 0.1, 0.5)):
        n = needed_for_threshold(alpha, delta)
        for more in (0, 1, 2, 5, n, 10 * n):
            zeros = np.zeros((1, n + more))
            assert says_below(of_rows(zeros, alpha), n + more, alpha, delta, binary=False).all()
        if n > 1:
            assert not says_below(of_rows(np.zeros((1, n - 1)), alpha), n - 1, alpha, delta, binary=False).any()


def test_great_numbers():
    rng = np.random.default_rng(0)
    losses = rng.beta(2.0, 60.0, 200_000)
    assert np.isfinite(logsumexp(log_wealth(of_rows(np.ones((1, 10**5)), 0.01), 10**5, 0.01, 0.05)))
    assert says_below(of_rows(losses[None], 0.033), len(losses), 0.033, 1e-9, binary=False).all()
    assert not says_below(of_rows(losses[None], 0.0322), len(losses), 0.0322, 0.5, binary=False).any()
    assert certified_step(of_rows(losses[None], 0.5), 10**12, 0.5, 0.1, binary=False) == 0


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


@pytest.mark.parametrize("levels", [0, 4], ids=["all confidences", "four confidences"])
@pytest.mark.parametrize(("alpha", "delta", "n"), [(0.05, 0.1, 300), (0.1, 0.2, 60), (0.3, 0.3, 12), (0.5, 0.3, 3)])
def test_the_mean_loss_of_answers_is_kept(levels, alpha, delta, n):
    """Losses that vary little: a share delta of thresholds is too low, and no more."""
    rng, draws, broken = np.random.default_rng(0), 300, 0
    mean = np.where(GRID > 0.7, alpha * 1.02, np.where(GRID > 0.3, 0.93 * alpha, 1.0))
    for _ in range(draws):
        place = rng.integers(0, len(GRID), n)
        c, own = GRID[place], np.minimum(mean[place], 0.999)
        sure = np.floor(levels * c) / levels if levels else c
        threshold = selective_threshold(sure, rng.beta(20.0 * own, 20.0 * (1.0 - own)), alpha, delta)
        real = threshold + 1.0 / levels if levels and np.isfinite(threshold) else threshold
        above = mean[real < GRID]
        broken += len(above) > 0 and above.mean() > alpha
    assert broken <= binom.ppf(0.999, draws, delta)


def test_the_order_of_outputs_plays_no_part():
    rng = np.random.default_rng(0)
    sure, losses = rng.permutation(600) / 600.0, rng.beta(1.0, 20.0, 600)
    losses *= 2.0 * (1.0 - sure)
    wanted = selective_threshold(sure, losses, 0.04, 0.1)
    assert np.isfinite(wanted)
    for _ in range(5):
        order = rng.permutation(600)
        assert selective_threshold(sure[order], losses[order], 0.04, 0.1) == wanted


def test_equal_weights_of_answers_change_nothing():
    """Losses of 0 and 1 keep their exact test."""
    rng = np.random.default_rng(0)
    for alpha in (0.05, 0.07, 0.1):
        sure, wrong = rng.random(400), (rng.random(400) < 0.04).astype(float)
        wanted = selective_threshold(sure, wrong, alpha, 0.1)
        assert selective_threshold(sure, wrong, alpha, 0.1, np.full(400, 0.3)) == wanted


def test_starts_share_delta_and_weights_are_tested_by_bets(monkeypatch):
    asked = []

    def noted(sums, n, alpha, level, *, binary):
        asked.append((level, binary))
        return says_below(sums, n, alpha, level, binary=binary)

    monkeypatch.setattr(bounds, "says_below", noted)
    least = needed_for_threshold(0.05, 0.1)
    for n, n_starts in ((least, 1), (4 * least, 2), (15 * least, 2), (64 * least, 4)):
        sure, zeros = np.linspace(0.0, 1.0, n), np.zeros(n)
        for losses, weights in ((zeros, None), (zeros, np.full(n, 2.0)), (zeros, 1.0 + sure), (zeros + 0.01, None)):
            selective_threshold(sure, losses, 0.05, 0.1, weights)
        assert asked == [(0.1 / n_starts, binary) for binary in (True, True, False, False)]
        asked.clear()


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
