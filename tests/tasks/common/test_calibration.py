"""Temperatures: found where the likelihood is highest, from examples that were not trained on."""

import inspect

import numpy as np
import pytest
from cases import CASES
from sklearn.datasets import make_classification
from sklearn.metrics import log_loss

import structsvm
from structsvm.model_file import ModelFileError
from structsvm.tasks import (
    AmbiguousClassifier,
    LaRankClassifier,
    MultilabelClassifier,
    SequenceLabeler,
    SGDQNClassifier,
    TaxonomyClassifier,
)
from structsvm.tasks.common import calibration
from structsvm.tasks.common.calibration import (
    FEW,
    Calibration,
    fit_temperature,
    held_out,
    one_hot,
    probabilities,
    softmax_loss,
    surest_loss,
)
from structsvm.tasks.registry import names_of


def noisy(n, K=3, seed=0, flip=0.15):
    """Points of K clouds, some with another's label."""
    rng = np.random.default_rng(seed)
    centres = np.random.default_rng(7).normal(size=(K, 6)) * 1.2
    y = rng.integers(0, K, n)
    X = (centres[y] + rng.normal(size=(n, 6))).astype(np.float32)
    return X, np.where(rng.random(n) < flip, rng.integers(0, K, n), y)


# --- the temperature of scores ----------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1e-4, 1.0, 30.0, 1e4])
def test_it_is_the_unit_of_the_scores(scale):
    rng = np.random.default_rng(0)
    s = rng.normal(size=(5000, 4)) * 2.0
    y = (np.cumsum(probabilities(s, 1.0), axis=1) < rng.random((5000, 1))).sum(axis=1)
    assert fit_temperature(softmax_loss(scale * s, one_hot(y, 4))) == pytest.approx(scale, rel=0.05)


def logistic(margins, weight=None):
    """The loss of two outputs each, the right one better by a margin."""
    weight = np.ones(len(margins)) if weight is None else weight

    def loss(beta):
        z = beta * margins
        return float(weight @ np.logaddexp(0.0, -z)), float(-(weight * margins) @ np.exp(-np.logaddexp(0.0, z)))

    return loss


@pytest.mark.parametrize("scale", [1e-3, 1.0, 50.0, 2e4])
@pytest.mark.parametrize("n", [1, 20, 500])
def test_a_sure_model_is_as_sure_as_its_examples_say(n, scale):
    """All right: the mean loss is 1 / (n + 2), whatever the unit of the scores."""
    margins = scale * np.random.default_rng(n).uniform(0.5, 2.0, n)
    loss = logistic(margins)
    T = fit_temperature(loss, least=surest_loss(np.ones(n)))
    assert loss(1.0 / T)[0] / n == pytest.approx(1.0 / (n + 2), rel=0.01)
    assert 100.0 * fit_temperature(loss) < T
    twice = logistic(margins, np.full(n, 2.0))
    assert fit_temperature(twice, least=surest_loss(np.full(n, 2.0))) == pytest.approx(T, rel=1e-3)


def test_a_model_that_errs_has_the_temperature_of_least_loss():
    for seed in range(10):
        margins = np.random.default_rng(seed).normal(1.0, 1.5, 60)
        assert (margins < 0.0).any()
        loss = logistic(margins)
        assert fit_temperature(loss, least=surest_loss(np.ones(60))) == fit_temperature(loss)


def test_limits_of_a_sure_model():
    huge, none = logistic(np.full(9, 2e3)), logistic(np.zeros(9))
    assert fit_temperature(huge, limit=np.log(64.0), least=surest_loss(np.ones(9))) == pytest.approx(64.0)
    assert fit_temperature(none, limit=np.log(64.0), least=surest_loss(np.ones(9))) == 1.0  # no temperature matters
    assert surest_loss(np.zeros(3)) == 0.0
    # Three examples, one of which counts almost alone.
    assert surest_loss(np.array([1.0, 1e-9, 1e-9])) == pytest.approx(1.0 / 3.0)


def test_sequences_that_are_all_right_leave_some_doubt():
    """Two words, each of which is its label: every held-out sequence is right, and none is certain."""
    rng = np.random.default_rng(0)
    y = [[str(label) for label in rng.integers(0, 2, 4)] for _ in range(60)]
    X = [[[f"w{label}"] for label in row] for row in y]
    for params in ({"loss": "hamming"}, {"loss": "hamming", "C": "auto"}, {"C": "auto"}):
        model = SequenceLabeler(random_state=0, **({"C": 1.0} | params)).fit(X, y)
        assert model.predict(X) == y
        chances = model.probability_of(X, y)
        assert 0.9 < chances.min() <= chances.max() < 0.9999
        assert np.abs(model.model_.weights).max() / model.temperature_ < 20.0


def test_it_is_where_the_loss_is_least():
    rng = np.random.default_rng(1)
    for _ in range(20):
        s, y = rng.normal(size=(40, 3)) * rng.exponential(), rng.integers(0, 3, 40)
        s[np.arange(40), y] += rng.normal()
        loss = softmax_loss(s, one_hot(y, 3), rng.random(40))
        T = fit_temperature(loss)
        least = min(loss(beta)[0] for beta in np.geomspace(1e-6, 1e6, 4000))
        assert loss(1.0 / T)[0] <= least + 1e-4 * abs(least)


def test_a_coarse_temperature_takes_fewer_calls():
    rng, calls = np.random.default_rng(1), []
    loss = softmax_loss(8.0 * rng.normal(size=(40, 3)), one_hot(rng.integers(0, 3, 40), 3))

    def counted(beta):
        calls.append(beta)
        return loss(beta)

    T, n = fit_temperature(counted), len(calls)
    coarse = fit_temperature(counted, 0.5)
    assert abs(np.log(coarse / T)) < 0.5
    assert len(calls) - n <= n - 2
    n = len(calls)
    near = fit_temperature(counted, 0.5, 1.1 * T)
    assert abs(np.log(near / T)) < 0.5 and len(calls) - n <= 4


def test_a_stream_asks_for_what_counts(monkeypatch):
    """The temperature of a batch is as exact as its share of the model's."""
    asked = []

    def answer(loss, precision, start):
        asked.append((precision, start))
        return 2.0

    monkeypatch.setattr(calibration, "fit_temperature", answer)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(1000, 2)), rng.integers(0, 2, 1000)
    machine = LaRankClassifier(probability=True)
    for batch in (slice(0, 2), slice(2, 3), slice(3, 1000)):
        machine.partial_fit(X[batch], y[batch], classes=[0, 1])
    precision = calibration.PRECISION * (997 + 500) / 997
    assert asked == [(calibration.PRECISION, 1.0), (calibration.LEAST_PRECISION, 2.0), (pytest.approx(precision), 2.0)]


@pytest.mark.parametrize("beta", [0.1, 1.0, 3.0])
def test_the_slope_is_the_derivative(beta):
    rng = np.random.default_rng(2)
    s, known = rng.normal(size=(30, 4)), rng.random((30, 4)) < 0.4
    known[:, 0] = True
    loss = softmax_loss(s, known, rng.random(30))
    numeric = (loss(beta + 1e-5)[0] - loss(beta - 1e-5)[0]) / 2e-5
    assert loss(beta)[1] == pytest.approx(numeric, rel=1e-5, abs=1e-7)


def test_scores_that_tell_all_or_nothing():
    y = np.arange(30) % 3
    certain = fit_temperature(softmax_loss(10.0 * one_hot(y, 3), one_hot(y, 3)))
    assert 0.0 < certain < 10.0 and probabilities([[10.0, 0.0, 0.0]], certain)[0, 0] > 0.9
    assert fit_temperature(softmax_loss(np.zeros((30, 3)), one_hot(y, 3))) == 1.0
    wrong = fit_temperature(softmax_loss(10.0 * one_hot(y, 3), one_hot((y + 1) % 3, 3)))
    np.testing.assert_allclose(probabilities([[10.0, 0.0, 0.0]], wrong), 1 / 3, atol=1e-6)


def test_turns_take_no_more_passes_than_the_training(monkeypatch):
    runs, start = [], Calibration.run_without
    monkeypatch.setattr(Calibration, "run_without", lambda *args: runs.append(start(*args)) or runs[-1])
    model = AmbiguousClassifier(loss="log", C=0.1, tol=1e-2, max_iter=500, random_state=0).fit(*noisy(60))
    assert runs and model.temperature_ > 0.0
    assert all(1 <= run.n_iter <= model.n_iter_ < 500 for run in runs)


def test_few_calls():
    calls = []

    def loss(beta):
        calls.append(beta)
        return (beta - 40.0) ** 2, 2.0 * (beta - 40.0)

    assert fit_temperature(loss) == pytest.approx(1 / 40, rel=2e-3)
    assert len(calls) < 20


@pytest.mark.parametrize("n", [1, 3, 50, FEW - 1, FEW, 5000, 10**6])
def test_what_is_held_out(n):
    parts = list(held_out(n, 10))
    together = np.concatenate(parts)
    assert len(np.unique(together)) == len(together) and (np.sort(together) < n).all()
    assert len(together) == n if n < FEW else len(parts) == 1 and FEW // 5 <= len(together) <= min(n // 5, 2000)


# --- classifiers --------------------------------------------------------------------------------------

CHOSEN = {"gamma": "auto", "alpha": 1e-2}  # where cases have widths of kernels and regularisers for data of their own


def probable(case, **params):
    """The estimator of a case, with probabilities."""
    names = inspect.signature(case.kind).parameters
    usual = {name: value for name, value in CHOSEN.items() if name in names and "kernel" not in case.params}
    return case.make(**usual | ({"probability": True} if "probability" in names else {}) | params)


def n_labels(case):
    """How many labels a case has: of sets, or labels known in part, three."""
    return len(np.unique(case.y)) if isinstance(case.y, np.ndarray) and case.y.dtype != object else 3


ALL = {
    name: (case, n_labels(case), {})
    for name, case in CASES.items()
    if case.has_rows and case.kind is not MultilabelClassifier and hasattr(probable(case), "predict_proba")
} | {
    "taxonomy, perceptron": (CASES["taxonomy"], 3, {"solver": "perceptron"}),
    "taxonomy, cutting planes": (CASES["taxonomy"], 3, {"solver": "cutting_plane", "max_iter": 20}),
    "taxonomy of two classes": (CASES["taxonomy"], 2, {}),
}


def test_machines_of_classes_have_probabilities():
    names = {case.kind.__name__ for case, _, _ in ALL.values()}
    assert names >= {*names_of("binary"), *names_of("multiclass"), "TaxonomyClassifier", "AmbiguousClassifier"}


@pytest.mark.parametrize("C", [1.0, 10.0])
@pytest.mark.parametrize("gamma", [0.02, 0.2])
@pytest.mark.parametrize("name", ["crammer singer", "weston watkins"])
def test_machines_without_the_examples_held_out_are_trained_to_their_end(name, gamma, C):
    """Machines of a few steps were worse and had other biases: their temperature was up to five times the best."""
    (X, y), (chosen,) = noisy(800, 3, seed=2), held_out(800, 3)
    model = probable(CASES[name], C=C, gamma=gamma).fit(X, y)
    others = np.delete(np.arange(800), chosen)
    afresh = probable(CASES[name], C=C, gamma=gamma, probability=False).fit(X[others], y[others])
    best = fit_temperature(softmax_loss(afresh.decision_function(X[chosen]), one_hot(y[chosen], 3)))
    assert 0.88 < model.temperature_ / best < 1.12


@pytest.mark.filterwarnings("ignore::structsvm.ConvergenceWarning")
@pytest.mark.parametrize(("case", "K", "params"), ALL.values(), ids=ALL.keys())
def test_probabilities_are_calibrated(case, K, params, tmp_path):
    X, y = noisy(800, K)
    X_test, y_test = noisy(2000, K, seed=1)
    model = probable(case, **params).fit(X, y)
    p = model.predict_proba(X_test)
    assert p.shape == (2000, K) and (p >= 0.0).all()
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.classes_[p.argmax(axis=1)], model.predict(X_test))
    np.testing.assert_allclose(model.predict_log_proba(X_test), np.log(p))
    # Near to the best that one temperature can do on the test data themselves.
    scores = model.decision_function(X_test)
    scores = np.column_stack([0.0 * scores, scores]) if scores.ndim == 1 else scores
    best = fit_temperature(softmax_loss(scores, one_hot(y_test, K)))
    assert log_loss(y_test, p) < 1.05 * log_loss(y_test, probabilities(scores, best))
    model.save(tmp_path / "m")
    again = structsvm.load(tmp_path / "m")
    assert again.temperature_ == model.temperature_
    np.testing.assert_array_equal(again.predict_proba(X_test), p)


@pytest.mark.parametrize("make", [LaRankClassifier, SGDQNClassifier])
def test_probabilities_are_asked_for(make):
    X, y = noisy(200)
    plain, asked = make(random_state=0).fit(X, y), make(random_state=0, probability=True).fit(X, y)
    assert not hasattr(plain, "predict_proba") and plain.temperature_ is None and asked.temperature_ > 0.0
    assert not hasattr(make(), "predict_proba") and hasattr(make(probability=True), "predict_proba")
    np.testing.assert_array_equal(plain.decision_function(X), asked.decision_function(X))
    with pytest.raises(AttributeError, match="has no attribute 'predict_proba'") as error:
        plain.predict_proba(X)
    assert "probability=True" in str(error.value.__cause__)


def test_streams_are_scored_before_they_are_learnt():
    model = TaxonomyClassifier(random_state=0)
    X_test, y_test = noisy(2000, seed=9)
    for k in range(8):
        model.partial_fit(*noisy(300, seed=k), classes=[0, 1, 2])
        assert model.temperature_ > 0.0
    scores = model.decision_function(X_test)
    best = fit_temperature(softmax_loss(scores, one_hot(y_test, 3)))
    assert log_loss(y_test, model.predict_proba(X_test)) < 1.1 * log_loss(y_test, probabilities(scores, best))


def test_bags_tell_a_temperature_too():
    X, y = noisy(800, flip=0.0)
    rng = np.random.default_rng(0)
    bags = [{int(a), int(b)} for a, b in zip(y, rng.integers(0, 3, len(y)), strict=True)]
    model = AmbiguousClassifier(random_state=0).fit(X, bags)
    X_test, y_test = noisy(2000, seed=1, flip=0.0)
    scores = model.decision_function(X_test)
    best = fit_temperature(softmax_loss(scores, one_hot(y_test, 3)))
    assert log_loss(y_test, model.predict_proba(X_test)) < 1.1 * log_loss(y_test, probabilities(scores, best))


def test_ctrl_c_while_it_is_fitted(monkeypatch):
    """The trained model is put in place, without a temperature."""
    X, y = noisy(100)
    weights = TaxonomyClassifier(loss="tree", random_state=0).fit(X, y).coef_

    def interrupted(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(Calibration, "without", interrupted)
    model = TaxonomyClassifier(loss="tree", random_state=0)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert model.temperature_ is None
    np.testing.assert_array_equal(model.coef_, weights)


def test_a_forged_temperature(tmp_path):
    model = TaxonomyClassifier(random_state=0).fit(*noisy(60))
    for wrong in (0.0, -1.0, "warm", True):
        model.model_.temperature = wrong
        model.save(tmp_path / "m")
        with pytest.raises(ModelFileError, match="'temperature' must be a number from"):
            structsvm.load(tmp_path / "m")


def test_a_model_without_a_temperature():
    X, y = make_classification(60, random_state=0)
    model = TaxonomyClassifier(random_state=0).fit(X, y)
    model.model_.temperature = None
    with pytest.raises(ValueError, match="the model has no temperature, which probabilities need"):
        model.predict_proba(X)
