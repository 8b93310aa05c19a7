"""TrackingClassifier: the bounds of theorems 6 and 7 on runs, its dual."""

import copy
import pickle

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.svm import LinearSVC

import structsvm
from structsvm import ModelFileError
from structsvm.model_file import read_model, write_model
from structsvm.tasks import TrackingClassifier
from structsvm.tasks.common.estimator import CallbackMonitor


def plain(C=1.0, **params):
    """The machine of the thesis."""
    return TrackingClassifier(C, **{"standardize": False, "fit_intercept": False, "random_state": 0} | params)


def stream(n, seed):
    """Examples with |x| <= 1 and noisy labels."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    X /= np.maximum(1.0, np.linalg.norm(X, axis=1))[:, None]
    y = np.where(X @ [1.0, -1.0, 0.5, 0.0] + 0.3 * rng.normal(size=n) > 0, 1, -1)
    y[:2] = [1, -1]
    return X, y


def alphas(model):
    return model.model_.state["numbers"][1]


def primal(w, X, y, C):
    return 0.5 * w @ w + C * np.maximum(0.0, 1.0 - y * (X @ w)).sum()


def optimum(X, y, C):
    """The largest dual value, by L-BFGS over the box; it is the smallest primal value too."""
    Z = X * y[:, None]
    found = minimize(
        lambda a: (0.5 * np.sum((a @ Z) ** 2) - a.sum(), Z @ (a @ Z) - 1.0),
        np.full(len(y), 0.5 * C),
        jac=True,
        method="L-BFGS-B",
        bounds=[(0.0, C)] * len(y),
        options={"ftol": 1e-14, "gtol": 1e-10},
    )
    return -found.fun


def run_on_stream(C, K, process):
    """The mean excess over the optimum at each time, per C t, and what theorem 7 bounds it by, as means over seeds."""
    X, y = stream(60, 0)
    T, best = len(y), [optimum(X[:t], y[:t], C) for t in range(1, 61)]
    excess, tracked = [], []
    for seed in range(5):
        model = plain(C, n_reprocess=K, process=process, random_state=seed)
        total = 0.0
        for t in range(1, T + 1):
            model.partial_fit(X[t - 1 : t], y[t - 1 : t], classes=[-1, 1])
            over = primal(model.coef_[0], X[:t], y[:t], C) - best[t - 1]
            assert over >= -1e-6
            total += over / (C * t)
        excess.append(total / T)
        tracked.append(best[-1] - model.gained_)
        assert model.dual_ <= best[-1] + 1e-6
        assert model.result_.n_argmax == T * (K + process)
        assert (model.gained_ > 0.0) == process
    x = np.mean(tracked) / (K * T)
    return np.mean(excess), np.sqrt(2.0 * x) + x / C


@pytest.mark.parametrize("process", [True, False])
@pytest.mark.parametrize(("C", "K"), [(1.0, 1), (1.0, 4), (0.1, 2)])
def test_the_bound_of_the_theorems(process, C, K):
    """Theorem 7 (and 6: without Process, nothing is gained by it)."""
    excess, bound = run_on_stream(C, K, process)
    assert excess <= bound


@pytest.mark.parametrize("process", [True, False])
@pytest.mark.parametrize(("C", "epsilon"), [(0.5, 2.0), (0.1, 0.4), (1.0, 1.0), (1.0, 0.5), (4.0, 1.0)])
def test_the_number_of_steps_of_corollary_8(process, C, epsilon):
    """K = 8 C / epsilon^2 steps an example, for epsilon of at most 4 C, keep the mean excess below epsilon."""
    K = int(np.ceil(8.0 * C / epsilon**2))
    excess, bound = run_on_stream(C, K, process)
    assert excess <= bound <= epsilon + 1e-9


@pytest.mark.parametrize(("C", "n_reprocess"), [(0.1, 1), (1.0, 3), (20.0, 2)])
def test_the_duality_lemma(C, n_reprocess):
    """Lemma 5: the gap per C t is at most mu(mean gain of a best step), mu(x) = sqrt(2 x) + x / C."""
    X, y = stream(60, 3)
    Z, model = X * y[:, None], plain(C, n_reprocess=n_reprocess)
    for t in range(1, 61):
        model.partial_fit(X[t - 1 : t], y[t - 1 : t], classes=[-1, 1])
        alpha = alphas(model)
        slope, norm = 1.0 - Z[:t] @ model.coef_[0], np.sum(Z[:t] ** 2, axis=1)
        step = np.clip(slope / norm, -alpha, C - alpha)
        gain = np.mean(step * slope - 0.5 * step**2 * norm)
        gap = model.result_.primal - model.result_.dual
        assert -1e-9 <= gap / (C * t) <= np.sqrt(2.0 * gain) + gain / C + 1e-9


def test_what_is_tracked_is_what_is_true():
    X, y = stream(80, 1)
    model = plain(0.5, n_reprocess=3).fit(X, y)
    alpha, Z = alphas(model), X * y[:, None]
    assert (alpha >= 0.0).all() and (alpha <= 0.5).all()
    np.testing.assert_allclose(model.model_.state["weights"][0], alpha @ Z, atol=1e-12)
    assert model.dual_ == pytest.approx(alpha.sum() - 0.5 * np.sum((alpha @ Z) ** 2), abs=1e-10)
    assert model.result_.dual == model.dual_
    assert model.result_.primal == pytest.approx(primal(model.coef_[0], X, y, 0.5), abs=1e-10)
    assert model.result_.n_support == np.count_nonzero(alpha)


def test_many_steps_reach_liblinear():
    X, y = stream(200, 2)
    model = plain(n_reprocess=400).fit(X, y)
    theirs = LinearSVC(C=1.0, loss="hinge", fit_intercept=False, tol=1e-8, max_iter=100000).fit(X, y)
    assert primal(model.coef_[0], X, y, 1.0) <= primal(theirs.coef_[0], X, y, 1.0) * 1.01


def test_process_raises_the_dual():
    """Algorithm 16 beside 15, with the same K."""
    X, y = stream(300, 3)
    dual = {
        process: np.mean(
            [TrackingClassifier(n_reprocess=2, process=process, random_state=s).fit(X, y).dual_ for s in range(5)]
        )
        for process in (True, False)
    }
    assert dual[True] > dual[False]


def test_bad_input():
    X, y = stream(10, 0)
    with pytest.raises(ValueError, match="'n_reprocess' parameter of TrackingClassifier must be"):
        TrackingClassifier(n_reprocess=0).fit(X, y)
    with pytest.raises(ValueError, match="only one class"):
        TrackingClassifier().fit(X, np.ones(10))
    with pytest.raises(ValueError, match="Only binary classification is supported"):
        TrackingClassifier().fit(X[:3], [1, 2, 3])


def test_a_stream_goes_on_from_pickles_and_files(tmp_path):
    X, y = stream(300, 1)
    model = TrackingClassifier(0.5, n_reprocess=3, random_state=0).fit(X[:200], y[:200])
    model.save(tmp_path / "it.model")
    copies = [structsvm.load(tmp_path / "it.model", mmap=mmap) for mmap in (False, True)]
    copies += [pickle.loads(pickle.dumps(model)), copy.deepcopy(model)]
    model.partial_fit(X[200:], y[200:])
    for other in copies:
        assert type(other) is TrackingClassifier and other.get_params() == model.get_params()
        assert other.n_seen_ == 200
        other.partial_fit(X[200:], y[200:])
        np.testing.assert_array_equal(other.coef_, model.coef_)
        assert (other.dual_, other.gained_, other.n_seen_) == (model.dual_, model.gained_, 300)


def test_parameters_count_from_the_next_batch_on():
    X, y = stream(200, 1)
    model = TrackingClassifier(1.0, n_reprocess=1, random_state=0).partial_fit(X[:100], y[:100])
    model.set_params(C=0.01, n_reprocess=2).partial_fit(X[100:], y[100:])
    assert alphas(model)[100:].max() <= 0.01 < alphas(model)[:100].max()
    assert model.result_.n_argmax == 100 * 2 + 100 * 3


def test_more_passes_close_the_gap():
    X, y = stream(100, 3)
    gaps = [plain(max_iter=n).fit(X, y).result_.gap for n in (1, 3, 10)]
    assert gaps[0] > gaps[1] > gaps[2] > -1e-10
    assert gaps[2] < 1e-6 * gaps[0]


def test_a_warm_start_with_a_smaller_C_stays_in_the_box():
    X, y = stream(100, 3)
    model = plain(warm_start=True).fit(X, y)
    model.set_params(C=0.1).fit(X, y)
    alpha, Z = alphas(model), X * y[:, None]
    assert len(alpha) == 100 and alpha.max() == 0.1
    np.testing.assert_allclose(model.model_.state["weights"][0], alpha @ Z, atol=1e-12)
    assert model.dual_ == pytest.approx(alpha.sum() - 0.5 * np.sum((alpha @ Z) ** 2), abs=1e-10)
    assert model.n_iter_ == 2 and model.n_seen_ == 100


def test_a_stream_goes_on_after_ctrl_c(monkeypatch):
    X, y = stream(100, 3)
    model = TrackingClassifier(standardize=False, random_state=0)
    ticks = CallbackMonitor.tick

    def interrupt(self, run):
        ticks(self, run)
        raise KeyboardInterrupt

    monkeypatch.setattr(CallbackMonitor, "tick", interrupt)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert model.result_.status == "interrupted"
    monkeypatch.undo()
    n = model.n_seen_
    assert model.partial_fit(X[:7], y[:7]).n_seen_ == n + 7
    np.testing.assert_array_equal(model.model_.examples[n:], X[:7])


@pytest.mark.filterwarnings("ignore:.* (are they in its|perhaps in other) units:structsvm.AdviceWarning")
def test_a_batch_after_a_failed_one_finds_the_stream_as_it_was():
    X, y = stream(100, 3)
    model, other = TrackingClassifier(random_state=0), TrackingClassifier(random_state=0)
    model.fit(X[:50], y[:50])
    with pytest.raises(ValueError, match="squares of X overflow"):
        model.partial_fit(1e200 * X[50:], y[50:])
    other.fit(X[:50], y[:50])
    for one in (model, other):
        one.partial_fit(X[50:], y[50:])
    np.testing.assert_array_equal(model.coef_, other.coef_)


def test_examples_are_copied():
    X, y = stream(100, 3)
    rows = X.copy()
    model = TrackingClassifier(random_state=0).fit(rows[:50], y[:50])
    rows[:] = 0.0
    other = TrackingClassifier(random_state=0).fit(X[:50], y[:50])
    for one in (model, other):
        one.partial_fit(X[50:], y[50:])
    np.testing.assert_array_equal(model.coef_, other.coef_)


def test_a_stream_goes_on_from_a_file(tmp_path):
    X, y = stream(100, 3)
    plain().fit(X[:80], y[:80]).save(tmp_path / "m")
    model = structsvm.load(tmp_path / "m")
    assert model.dual_ > 0.0 and len(alphas(model)) == model.n_seen_ == 80
    model.partial_fit(X[80:], y[80:])
    assert model.n_seen_ == 100
    signed = model.model_.examples * (2.0 * model.model_.label_ids - 1.0)[:, None]
    np.testing.assert_allclose(model.model_.state["weights"][0], alphas(model) @ signed, atol=1e-9)


def test_squares_that_overflow():
    with pytest.raises(ValueError, match="squares of X overflow"):
        TrackingClassifier().fit(1e200 * np.eye(2), [0, 1])


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("numbers", lambda a: a - 1.0, "array 'numbers'"),
        ("random", lambda a: 0 * a, "array 'random'"),
        ("numbers", lambda a: a[:, 1:], "20 examples and the state of 19"),
        ("numbers", lambda a: np.repeat(a, 2, axis=1), "40 examples seen before"),
        ("weights", lambda a: a * np.nan, "not finite"),
        ("steps", lambda a: a.astype(np.float64), "'steps'"),
        ("steps", lambda a: np.full_like(a, 2**62), "array 'steps'"),
    ],
)
def test_files_that_are_not_sound(tmp_path, name, change, message):
    X, y = stream(20, 1)
    TrackingClassifier(random_state=0).fit(X, y).save(tmp_path / "it.model")
    file = read_model(tmp_path / "it.model")
    arrays = file.arrays | {f"state.{name}": change(file.arrays[f"state.{name}"])}
    write_model(tmp_path / "it.model", file.kind, file.meta, arrays)
    with pytest.raises(ModelFileError, match=message):
        structsvm.load(tmp_path / "it.model")


def test_rows_of_weight_0_do_not_count():
    X, y = stream(60, 1)
    wanted = TrackingClassifier(random_state=0).fit(X[:50], y[:50])
    model = TrackingClassifier(random_state=0).fit(X, y, sample_weight=1.0 * (np.arange(60) < 50))
    np.testing.assert_array_equal(model.coef_, wanted.coef_)
    assert model.n_seen_ == 50


@pytest.mark.parametrize("standardize", [True, False])
def test_the_intercept_is_a_feature_of_value_1(standardize, tmp_path):
    """Unbalanced classes need one; it is regularised as the weights are, and a stream goes on with or without."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3))
    y = X[:, 0] + 0.3 * rng.normal(size=600) > 1.2
    X[:, 1] += 2.0
    model = TrackingClassifier(max_iter=10, standardize=standardize, random_state=0).fit(X[:300], y[:300])
    without = clone(model).set_params(fit_intercept=False).fit(X[:300], y[:300])
    assert model.score(X[300:], y[300:]) > max(1.0 - y[300:].mean(), without.score(X[300:], y[300:])) + 0.02
    assert model.intercept_[0] != 0.0 and (standardize or without.intercept_[0] == 0.0)
    if not standardize:
        theirs = LinearSVC(loss="hinge", tol=1e-8, max_iter=100000).fit(X[:300], y[:300])
        np.testing.assert_allclose(
            np.r_[model.coef_[0], model.intercept_], np.r_[theirs.coef_[0], theirs.intercept_], atol=0.02
        )
    for one in (model, without):
        one.save(tmp_path / "m")
        loaded = structsvm.load(tmp_path / "m")
        loaded.partial_fit(X[300:], y[300:])
        np.testing.assert_array_equal(loaded.coef_, one.partial_fit(X[300:], y[300:]).coef_)
        np.testing.assert_array_equal(loaded.intercept_, one.intercept_)
    assert without.model_.has_intercept is False and model.model_.has_intercept is True
