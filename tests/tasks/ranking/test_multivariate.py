"""MultivariateClassifier: against machines of rows, by all losses, choices, files, bad input."""

import warnings
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import accuracy_score, f1_score, roc_auc_score
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

import structsvm
from structsvm import AdviceWarning, CuttingPlane, FrankWolfe, LaRank
from structsvm.metrics import break_even_point, precision_at_k
from structsvm.model_file import ModelFileError, read_model, write_model
from structsvm.tasks import MultivariateClassifier
from structsvm.tasks.common.selection.choice import ChosenLoss, ChosenThreshold
from structsvm.tasks.common.selection.search import Held
from structsvm.tasks.ranking.model import BoundSearch, SampleSearch, judged_rows
from structsvm.tasks.ranking.thresholds import best_cut, threshold_of_f1

LOSSES = ["f1", "error", "prec_at_k", "prbep", "roc_area"]


def few_positives(seed=0, n=600, share=0.1, noise=1.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6))
    s = X @ [2.0, -1.0, 1.0, 0.0, 0.0, 0.0] + noise * rng.normal(size=n)
    return X, np.where(s > np.quantile(s, 1.0 - share), "yes", "no")


def made(loss, **params):
    return MultivariateClassifier(loss, k=40 if loss == "prec_at_k" else None, **{"random_state": 0} | params)


X, y = few_positives()


def test_the_error_is_that_of_a_linear_machine():
    model = made("error", C=0.3, tol=1e-5, standardize=False).fit(X, y)
    machine = LinearSVC(C=0.3, loss="hinge", tol=1e-8, max_iter=10**6, intercept_scaling=1.0, random_state=0).fit(X, y)
    np.testing.assert_allclose(model.coef_, machine.coef_, atol=0.02)
    np.testing.assert_allclose(model.intercept_, machine.intercept_, atol=0.02)
    hinges = np.maximum(0.0, 1.0 - np.where(y == "yes", 1.0, -1.0) * machine.decision_function(X)).sum()
    primal = 0.5 * (machine.coef_**2).sum() + 0.5 * machine.intercept_[0] ** 2 + 0.3 * hinges
    assert model.result_.primal == pytest.approx(primal, rel=1e-4)


@pytest.mark.parametrize("loss", LOSSES)
def test_solvers_and_forms_of_rows_agree(loss):
    primal = []
    for solver, data in (
        (CuttingPlane(C=0.1, tol=1e-3), X),
        (CuttingPlane(C=0.1, tol=1e-3, form="one_slack"), sp.csr_array(X)),
        (LaRank(C=0.1, tol=1e-3, random_state=0), X.astype(np.float32)),
        (FrankWolfe(C=0.1, tol=1e-2, max_iter=3000, random_state=0), X),
    ):
        model = made(loss, solver=solver, standardize=False, random_state=None).fit(data, y)
        assert model.result_.status == "converged"
        assert model.decision_function(data).dtype == np.float64
        primal.append(model.result_.primal)
    assert primal == pytest.approx([primal[0]] * 4, rel=0.011)


@pytest.mark.parametrize("loss", LOSSES)
def test_scores_are_what_the_loss_is_of(loss):
    model = made(loss, C=1.0).fit(X, y)
    scores, ids, found = model.decision_function(X), y == "yes", model.predict(X) == "yes"
    np.testing.assert_array_equal(found, scores > 0.0)
    np.testing.assert_allclose(scores, X @ model.coef_[0] + model.intercept_[0])
    wanted = {
        "f1": f1_score(ids, found),
        "error": accuracy_score(ids, found),
        "prec_at_k": precision_at_k(ids, scores, 40),
        "prbep": break_even_point(ids, scores),
        "roc_area": roc_auc_score(ids, scores),
    }
    assert model.score(X, y) == pytest.approx(wanted[loss])
    if loss in ("prec_at_k", "prbep", "roc_area"):
        assert found.sum() == ids.sum()
        assert not made(loss, C=1.0, fit_intercept=False).fit(X, y).intercept_.any()
    weight = np.random.default_rng(0).integers(0, 3, len(y))
    copies = np.repeat(np.arange(len(y)), weight)
    assert model.score(X, y, weight) == pytest.approx(model.score(X[copies], y[copies]))


def test_f1_finds_what_is_rare():
    """Chosen C and all: the machine of rows says "no", the one of F1 does not."""
    train, test = few_positives(1, 1500, 0.04, 2.0), few_positives(2, 3000, 0.04, 2.0)
    model = made("f1").fit(*train)
    assert model.validation_["metric"] == "F1"
    assert model.validation_["n_held_out"] == 1500  # each fifth, as 60 rows of the class are few
    error = made("error").fit(*train)
    assert model.score(*test) > f1_score(test[1] == "yes", error.predict(test[0]) == "yes") + 0.05


@pytest.mark.parametrize("loss", LOSSES)
def test_weights_count_copies(loss):
    weight = np.random.default_rng(0).integers(0, 3, len(y))
    copies = np.repeat(np.arange(len(y)), weight)
    one = made(loss, C=0.1).fit(X, y, weight)
    two = made(loss, C=0.1).fit(X[copies], y[copies])
    np.testing.assert_array_equal(one.coef_, two.coef_)
    np.testing.assert_array_equal(one.intercept_, two.intercept_)
    with pytest.raises(ValueError, match=r"whole numbers are wanted, got 0.5 for row 1"):
        made(loss).fit(X, y, np.where(np.arange(len(y)) == 1, 0.5, 2.0))


@pytest.mark.parametrize("loss", ["f1", "prec_at_k"])
def test_files(loss, tmp_path):
    model = made(loss, C=0.1).fit(X, y)
    model.save(tmp_path / "m")
    loaded = structsvm.load(tmp_path / "m")
    np.testing.assert_array_equal(loaded.decision_function(X), model.decision_function(X))
    file = read_model(tmp_path / "m")
    for meta, arrays in (
        ({"loss": "pairs"}, {}),
        ({"k": -1}, {}),
        ({"labels": ["a"]}, {}),
        ({"labels": ["a", "b", "c"]}, {}),
        ({"n_features_in": 7}, {}),
        ({"fit_intercept": 1}, {}),
        ({}, {"weights": file.arrays["weights"][:-1]}),
        ({}, {"threshold": np.array([np.nan])}),
    ):
        write_model(tmp_path / "bad", "multivariate", file.meta | meta, file.arrays | arrays)
        with pytest.raises(ModelFileError, match="bad"):
            structsvm.load(tmp_path / "bad")


def test_bad_input():
    for params, words in (
        ({"loss": "auc"}, "'loss' parameter of MultivariateClassifier must be"),
        ({"loss": "prec_at_k"}, "'k' parameter belongs to loss='prec_at_k', which needs it. Got k=None"),
        ({"k": 3}, "'k' parameter belongs to loss='prec_at_k'"),
        ({"loss": "prec_at_k", "k": 601}, "k = 601 rows are to be found of 600"),
        ({"solver": "perceptron"}, "'solver' parameter"),
        ({"solver": CuttingPlane(rescaling="slack")}, "RankingOracle"),
        ({"C": 1.0, "solver": CuttingPlane()}, "'C' parameter is set beside a solver"),
    ):
        with pytest.raises(ValueError, match=words):
            MultivariateClassifier(**params).fit(X, y)
    for rows, labels, weight, words in (
        (X[:3], ["no"] * 3, None, "only one class"),
        (X[:1], ["no"], None, "only one class"),
        (X[:3], ["no", "yes", "no"], [1, 0, 1], "only one class, 'no'"),
        (X[:3], ["a", "b", "c"], None, "Only binary classification"),
        (np.full((2, 1), np.nan), [0, 1], None, "NaN"),
    ):
        with pytest.raises(ValueError, match=words):
            MultivariateClassifier(C=1.0).fit(rows, labels, weight)
    model = made("prec_at_k", C=1.0).fit(X, y)
    with pytest.raises(ValueError, match="k must be from 1 to the number of rows, 10, got 40"):
        model.score(X[:10], y[:10])
    with pytest.raises(ValueError, match="trained with another 'loss'"):
        model.set_params(loss="prbep", k=None, warm_start=True).fit(X, y)


def test_slack_rescaling_of_losses_that_have_it():
    model = MultivariateClassifier("prbep", solver=CuttingPlane(C=0.1, rescaling="slack")).fit(X, y)
    assert model.result_.status == "converged"
    assert model.score(X, y) > 0.6


ORDER = "sums of rows in another order differ in the last digit, and training stops before it (see the test of copies)"


@parametrize_with_checks(
    [MultivariateClassifier("f1", C=1.0, max_iter=50, random_state=0)],
    expected_failed_checks=lambda _: {
        "check_sample_weight_equivalence_on_dense_data": ORDER,
        "check_sample_weight_equivalence_on_sparse_data": ORDER,
    },
)
@pytest.mark.filterwarnings("ignore::structsvm.ConvergenceWarning", "ignore::sklearn.exceptions.SkipTestWarning")
def test_checks_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.parametrize("loss", ["f1", "prbep"])
def test_a_loss_that_nothing_bounds_has_the_hinge_of_the_roc_area(loss, tmp_path):
    """Its own hinge is best at w = 0 where classes overlap; the choice is by its own measure, and stays."""
    train, test = few_positives(7, 1500, 0.03, 3.0), few_positives(8, 3000, 0.03, 3.0)
    model = made(loss).fit(*train)
    own, area = (model.validation_["losses"][name] for name in (loss, "roc_area"))
    assert model.validation_["loss"] == "roc_area" and area[1] > own[1]
    assert model.validation_["metric"] == {"f1": "F1", "prbep": "break-even point"}[loss]
    assert area[0] == model.C_
    alone = made(loss, C=0.1).fit(*train)  # with a given C a loss has its own
    assert not hasattr(alone, "validation_") or "losses" not in alone.validation_
    assert roc_auc_score(test[1], model.decision_function(test[0])) > 0.02 + roc_auc_score(
        test[1], alone.decision_function(test[0])
    )
    primal = made("roc_area", C=model.C_).fit(*train).result_.primal
    assert model.result_.primal == pytest.approx(primal, rel=2e-3)
    model.save(tmp_path / "m", training_state=True)
    loaded = structsvm.load(tmp_path / "m").set_params(warm_start=True)
    loaded.fit(*train)
    np.testing.assert_allclose(loaded.coef_, model.coef_, rtol=0.05, atol=0.03)
    file = read_model(tmp_path / "m")
    write_model(tmp_path / "bad", "multivariate", file.meta | {"bound": "error"}, file.arrays)
    with pytest.raises(ModelFileError, match="the hinge of 'error'"):
        structsvm.load(tmp_path / "bad")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AdviceWarning)  # without the other hinge no C is better than chance
        assert not made(loss, fit_intercept=False).fit(*train).validation_.get("losses")


@pytest.mark.parametrize(
    ("n_steep", "n_smooth", "bound"), [(60, 20, "f1"), (21, 20, "roc_area"), (20, 20, "roc_area"), (5, 20, "roc_area")]
)
def test_the_steep_hinge_is_used_where_it_is_surely_better(n_steep, n_smooth, bound):
    """Each finds 100 rows, n of which are right, with the steep hinge five others than with the smooth one."""
    rows = np.arange(100)
    searches = [
        SimpleNamespace(loss=loss, seed=0, held=Held("F1", 1.0 * ((rows >= first) & (rows < first + n)), np.ones(100)))
        for loss, first, n in (("f1", 5, n_steep), ("roc_area", 0, n_smooth))
    ]
    assert BoundSearch(searches)._preferred({}).loss == bound


def test_the_threshold_is_of_held_out_rows():
    """Where features outnumber rows, those of training are far from it."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1300, 300)) / 300**0.5
    y = X[:, :5].sum(axis=1) * 60**0.5 + 0.3 * rng.normal(size=1300) > 1.2
    n = y[300:].sum()
    model = made("roc_area", standardize=False).fit(X[:300], y[:300])
    found = model.predict(X[300:]).sum()
    fixed = made("roc_area", C=model.C_, standardize=False).fit(X[:300], y[:300]).predict(X[300:]).sum()
    assert fixed < n / 3 < n / 2 < found < 1.5 * n
    # The same rows more than once.
    weighted = made("roc_area").fit(X[:300], y[:300], 1 + np.arange(300) % 2)
    assert n / 2 < weighted.predict(X[300:]).sum() < 1.5 * n
    # A checkpoint keeps it, and so does training that goes on.
    choice = model._fitted().choice
    assert type(choice).from_json(choice.to_json()) == choice and choice.get(ChosenThreshold) is not None
    for bad in (np.nan, "x"):
        with pytest.raises(ValueError):
            type(choice).from_json(choice.to_json() | {"threshold": bad})
    warm = model.set_params(warm_start=True).fit(X[:300], y[:300])
    above = warm.validation_["threshold"] * np.linalg.norm(warm.coef_)
    assert warm.intercept_[0] == pytest.approx(-above - (X[:300] @ warm.coef_[0]).mean())


@pytest.mark.parametrize(
    ("loss", "params"), [(loss, {}) for loss in LOSSES if loss != "error"] + [("f1", {"standardize": False})]
)
def test_a_threshold_is_of_columns_wherever_they_lie(loss, params):
    """Other weights shift it too: the means of rows are far apart."""
    train, test = few_positives(1, 200, 0.3), few_positives(2, 400, 0.3)
    near = made(loss, **params).fit(*train).predict(test[0]) == "yes"
    for kind in (np.asarray, sp.csr_array):
        far = made(loss, **params).fit(kind(train[0] + 50.0), train[1]).predict(kind(test[0] + 50.0)) == "yes"
        assert 0.8 * near.sum() < far.sum() < 1.25 * near.sum()
        assert np.mean(far == (test[1] == "yes")) > np.mean(near == (test[1] == "yes")) - 0.03


@pytest.mark.parametrize("seed", range(6))
def test_the_threshold_of_the_best_f1(seed):
    """Against all cuts between rows; equal scores are found together or not at all."""
    rng = np.random.default_rng(seed)
    scores, positive = rng.integers(-4, 5, size=12) / 2.0, rng.random(12) < (0.3, 0.9)[seed % 2]
    positive[rng.integers(12)] = True
    weights = rng.integers(1, 4, size=12).astype(float)
    copies = np.repeat(np.arange(12), weights.astype(int))
    found = best_cut(scores, 1.0 * positive, weights)
    assert np.isfinite(found) and found not in scores
    best = max(f1_score(positive[copies], scores[copies] > cut) for cut in [*(np.unique(scores) + 0.25), -9.0])
    assert f1_score(positive[copies], scores[copies] > found) == pytest.approx(best)
    assert best_cut(np.zeros(12), 1.0 * positive, weights) == -0.5
    assert threshold_of_f1(np.zeros(12), positive, weights) == -0.5


@pytest.mark.parametrize("share", [0.03, 0.3])
def test_f1_has_the_threshold_of_held_out_rows(share, monkeypatch):
    """The threshold is that of the chosen C; with few rows of the class, three fifths of all are held out."""
    monkeypatch.setattr("structsvm.tasks.ranking.model.FEW_POSITIVES", 100)
    train, kept = few_positives(3, 1000, share, 1.0), {}
    keep = SampleSearch.keep

    def spy(search):
        keep(search)
        kept[search.model.bound] = judged_rows(search.parts)

    monkeypatch.setattr(SampleSearch, "keep", spy)
    model = made("f1").fit(*train)
    own = model._fitted()
    rows, chosen = kept[own.choice.get(ChosenLoss).loss], own.choice.get(ChosenThreshold).threshold
    assert chosen == threshold_of_f1(*rows)
    assert own.choice.n_held_out == len(rows[0]) == (1000 if share < 0.1 else 200)
    mean = own.scores_of(own.rows(train[0])).mean()
    assert own.threshold == pytest.approx(mean + chosen * np.linalg.norm(own.weights))
    assert own.threshold != 0.0
    assert not made("f1", C=1.0).fit(*train)._fitted().threshold
    assert made("error").fit(*train)._fitted().choice.get(ChosenThreshold) is None


@pytest.mark.parametrize("loss", LOSSES)
def test_held_out_rows_count_as_often_as_their_weights_say(loss):
    """The score by which C is chosen: of rows with weights, that of as many copies."""
    weight = np.random.default_rng(3).integers(1, 5, len(X))
    copies = np.repeat(np.arange(len(X)), weight)
    estimator = made(loss, C=0.1).fit(X, y, weight)
    model, once = estimator.model_, estimator._prepare(X, y, weight, None)[1]
    often = replace(once, rows=once.rows.take(copies), label_ids=once.label_ids[copies], weight=None)
    found, wanted = model.held_out_scores(once), model.held_out_scores(often)
    assert found.metric == wanted.metric
    assert weight @ found.numerator == pytest.approx(wanted.numerator.sum())
    assert weight @ found.denominator == pytest.approx(wanted.denominator.sum())
