"""Promises over many draws of held-out outputs are kept as often as they say: few outputs, ties, any alpha."""

import numpy as np
import pytest
from scipy.stats import betabinom, binom
from sklearn.base import BaseEstimator, ClassifierMixin

from structsvm.risk import ConformalOutputs, ConformalSets, LossController, RiskController
from structsvm.risk.bounds import conformal_rank

SIZES = [(0.01, 99), (0.01, 130), (0.05, 19), (0.1, 9), (0.1, 25), (0.2, 30), (0.5, 1), (0.5, 6)]
DRAWS, LATER = 100, 100


class Given(ClassifierMixin, BaseEstimator):
    """A classifier whose inputs are the probabilities of three classes."""

    classes_ = np.arange(3)

    def __sklearn_is_fitted__(self):
        return True

    def fit(self, X, y):
        return self

    def predict_proba(self, X):
        return X

    def predict(self, X):
        return X.argmax(axis=1)

    def predict_kbest(self, X, k, *, probabilities):
        return [[(int(c), row[c]) for c in np.argsort(-row, kind="stable")[:k]] for row in X]


def drawn(rng, n, *, tied=False, hard=0.0):
    """Inputs and true classes, which the probabilities overrate; `hard`: the share for which they say nothing."""
    p = rng.dirichlet([0.5, 0.5, 0.5], n)
    p = (p + 0.02) / 1.06
    own = np.where(rng.random((n, 1)) < hard, 1.0 / 3.0, np.sqrt(p))
    y = (rng.random((n, 1)) * own.sum(axis=1, keepdims=True) > np.cumsum(own, axis=1)).sum(axis=1).clip(max=2)
    return (np.ceil(4.0 * p) / 4.0 if tied else p), y


@pytest.mark.parametrize("tied", [False, True], ids=["continuous", "tied"])
@pytest.mark.parametrize(("alpha", "n"), SIZES)
def test_classes_are_in_their_sets(alpha, n, tied):
    """Without ties as often as the beta-binomial distribution says, which is 1 - alpha or a little more."""
    rng, inside, scores = np.random.default_rng(0), [], []
    for _ in range(DRAWS):
        X, y = drawn(rng, n + LATER, tied=tied)
        sets = ConformalSets(Given(), alpha=alpha).calibrate(X[:n], y[:n])
        inside.append((1.0 - X[np.arange(n, n + LATER), y[n:]] <= sets.quantile_).sum())
        scores.append(LATER * sets.score(X[n:], y[n:]))
        assert scores[-1] >= inside[-1] - 1e-9  # the best class, too, is in its set
    k = conformal_rank(n, alpha)
    law = betabinom(LATER, k, n + 1 - k)
    error = 4.0 * law.std() / DRAWS**0.5
    assert law.mean() >= LATER * (1.0 - alpha) - 1e-9
    assert np.mean(inside) >= law.mean() - error
    assert tied or np.mean(inside) <= law.mean() + error


@pytest.mark.parametrize("tied", [False, True], ids=["continuous", "tied"])
@pytest.mark.parametrize(("alpha", "n"), SIZES)
def test_outputs_are_in_their_sets(alpha, n, tied):
    rng, inside = np.random.default_rng(0), []
    for _ in range(DRAWS):
        X, y = drawn(rng, n + LATER, tied=tied)
        inside.append(ConformalOutputs(Given(), alpha=alpha, k=3).calibrate(X[:n], y[:n]).score(X[n:], y[n:]))
    k = conformal_rank(n, alpha)
    law = betabinom(LATER, k, n + 1 - k)
    assert LATER * np.mean(inside) >= law.mean() - 4.0 * law.std() / DRAWS**0.5


@pytest.mark.parametrize("alpha", [0.05, 0.3, 0.5])
@pytest.mark.parametrize("by", ["class", "group"])
def test_the_truth_is_inside_within_each_part(by, alpha):
    rng, found = np.random.default_rng(0), {k: [] for k in range(3)}
    for _ in range(DRAWS):
        X, y = drawn(rng, 150 + LATER, hard=0.3)
        groups = y if by == "class" else rng.integers(0, 3, len(y))
        if by == "group":  # they differ in how well the classes are known
            y = np.where(groups == 2, rng.integers(0, 3, len(y)), y)
        sets = ConformalSets(Given(), alpha=alpha, by_label=by == "class")
        given = {} if by == "class" else {"groups": groups[:150]}
        masks = sets.calibrate(X[:150], y[:150], **given).predict_masks(
            X[150:], **({"groups": groups[150:]} if given else {})
        )
        right = masks[np.arange(LATER), y[150:]]
        for k in range(3):
            found[k].append(right[groups[150:] == k].mean())
    for own in found.values():
        assert np.mean(own) >= 1.0 - alpha - 4.0 * np.std(own) / DRAWS**0.5


def losses_at(loss, X, y, threshold):
    """The losses of sets of the classes that have at least a probability, as they are defined."""
    is_found = threshold <= X
    found, right = is_found.sum(axis=1), is_found[np.arange(len(y)), y]
    if loss == "f1":
        return 1.0 - 2.0 * right / (found + 1.0)
    return 1.0 * ~right if loss == "missed" else np.where(found > 0, 1.0 - right / found.clip(1), 0.0)


@pytest.mark.parametrize("tied", [False, True], ids=["continuous", "tied"])
@pytest.mark.parametrize(("alpha", "n"), SIZES)
@pytest.mark.parametrize("loss", ["missed", "wrong"])
def test_the_mean_loss_is_controlled(loss, alpha, n, tied):
    rng, risks, idle = np.random.default_rng(0), [], 0
    X, y = drawn(rng, 4000, tied=tied)
    for _ in range(DRAWS):
        held = drawn(rng, n, tied=tied)
        found = LossController(Given(), loss=loss, alpha=alpha).calibrate(*held)
        risks.append(losses_at(loss, X, y, found.threshold_).mean())
        idle += found.threshold_ == np.inf
    assert np.mean(risks) <= alpha + 4.0 * np.std(risks) / DRAWS**0.5 + 0.01 * alpha
    assert loss == "missed" or alpha < 0.5 or idle < DRAWS


@pytest.mark.parametrize(
    ("loss", "alpha", "delta", "n"),
    [
        *[("missed", *own) for own in [(0.05, 0.1, 100), (0.2, 0.1, 40), (0.3, 0.3, 12), (0.5, 0.2, 8)]],
        *[("wrong", *own) for own in [(0.05, 0.1, 100), (0.2, 0.1, 40), (0.3, 0.3, 12), (0.5, 0.2, 8)]],
        *[("f1", *own) for own in [(0.5, 0.1, 200), (0.55, 0.3, 60)]],
    ],
)
def test_few_draws_break_a_promise_with_delta(loss, alpha, delta, n):
    rng, risks, X, y = np.random.default_rng(0), [], *drawn(np.random.default_rng(1), 4000)
    for seed in range(DRAWS):
        found = LossController(Given(), loss=loss, alpha=alpha, delta=delta, random_state=seed)
        try:
            found.calibrate(*drawn(rng, n))
        except ValueError:  # no threshold keeps it, of a loss that is small at neither end
            assert loss == "f1"
            continue
        risks.append(losses_at(loss, X, y, found.threshold_).mean())
    assert (np.array(risks) > alpha + 0.01).sum() <= binom.ppf(0.999, DRAWS, delta)
    assert len(risks) == DRAWS or (loss == "f1" and len(risks) > DRAWS / 10)


def test_weights_follow_a_drift_of_losses():
    """Later there are more hard outputs: with weights the mean loss is controlled, and without it is not."""
    rng, risks = np.random.default_rng(0), []
    easy, hard = drawn(rng, 4000), drawn(rng, 4000, hard=1.0)
    for _ in range(DRAWS):
        is_hard = rng.random(150) < 0.1
        X, y = drawn(rng, 150)
        X[is_hard], y[is_hard] = drawn(rng, int(is_hard.sum()), hard=1.0)
        weight = np.where(is_hard, 0.5 / 0.1, 0.5 / 0.9)
        for own in (weight, None):
            found = LossController(Given(), loss="missed", alpha=0.2).calibrate(X, y, own)
            risks.append([losses_at("missed", *part, found.threshold_).mean() for part in (easy, hard)])
    with_weights, without = np.mean(risks, axis=1).reshape(-1, 2).T
    error = 4.0 * with_weights.std() / DRAWS**0.5
    assert with_weights.mean() <= 0.2 + error and without.mean() > 0.2 + error


@pytest.mark.filterwarnings("ignore::structsvm.AdviceWarning")  # no threshold keeps some draws
@pytest.mark.parametrize("tied", [False, True], ids=["continuous", "tied"])
@pytest.mark.parametrize(("alpha", "delta", "n"), [(0.05, 0.1, 150), (0.2, 0.1, 60), (0.3, 0.3, 10), (0.5, 0.2, 5)])
def test_answers_are_right_as_often_as_promised(alpha, delta, n, tied):
    rng, broken = np.random.default_rng(0), 0
    X, y = drawn(rng, 4000, tied=tied)
    right = X.argmax(axis=1) == y
    for _ in range(DRAWS):
        careful = RiskController(Given(), alpha=alpha, delta=delta).calibrate(*drawn(rng, n, tied=tied))
        passed = X.max(axis=1) > careful.threshold_
        broken += passed.any() and (1.0 - right[passed].mean()) > alpha + 0.01
    assert broken <= binom.ppf(0.999, DRAWS, delta)
