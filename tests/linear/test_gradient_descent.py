"""SVMSGD2 and SGD-QN: losses, steps against the algorithm written out, optima against L-BFGS and liblinear."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.svm import LinearSVC

from structsvm.datasets import make_ill_conditioned
from structsvm.kernel._kernels import Rows
from structsvm.linear._gradient_descent import LOSSES, GradientDescent, loss_values
from structsvm.linear.problem import LinearProblem
from structsvm.solvers import SGDQN


@pytest.mark.parametrize("loss", LOSSES)
def test_losses_and_their_slopes(loss):
    """Slopes by finite differences, away from kinks; smooth losses have none, and lie between 0 and their model."""
    s = np.linspace(-3.0, 3.0, 601) + 1e-3
    values, slopes = loss_values(loss, s)
    np.testing.assert_allclose(np.diff(values)[:-1], (slopes[1:-1] + slopes[:-2]) * 0.005, atol=6e-3)
    u = np.maximum(0.0, 1.0 - s)
    wanted = u**2 / 2 if "squared" in loss else u
    if loss in ("hinge", "squared_hinge"):
        np.testing.assert_allclose(values, wanted)
    else:
        assert (values <= wanted + 1e-12).all() and (values >= 0.0).all()
        for edge in (1.0, 0.0):
            for found in loss_values(loss, edge + np.array([-1e-9, 0.0, 1e-9])):
                np.testing.assert_allclose(np.diff(found), 0.0, atol=3e-9)


def reference(X, signs, weight, order, *, ridge, t0, loss, skip, method, intercept, average):
    """Algorithm 8 with implicit regularisation, and the averaged diagonal or ratios; one machine, in float64."""
    X = np.column_stack([X, np.full(len(X), float(intercept))])
    d = X.shape[1]
    w, h, r, due, estimate = np.zeros(d), np.full(d, ridge), t0 / skip, 0, False
    B = np.full(d, 1.0 / ridge)
    path = []

    def slope(s):
        return -loss_values(loss, [s])[1][0]

    for t, i in enumerate(order):
        gain = (1.0 + t / t0) ** -0.75 / t0 if average else 1.0 / (t + t0)
        x, y, old = X[i], signs[i], w
        before = y * (w @ x)
        pull = weight[i] * slope(before)
        w = w + gain * pull * y * B * x
        if estimate:
            after = y * (w @ x)
            c = (pull - weight[i] * slope(after)) / (after - before) if pull and after != before else 0.0
            curved = X[i].copy()
            curved[-1] = 1.0
            h = h + min(1.0, 2.0 / r) * (ridge + c * curved**2 - h)
            ratios, moved = np.full(d, 1.0 / ridge), w != old
            change = ridge * (w - old) - weight[i] * (slope(after := y * (w @ x)) - slope(before)) * y * x
            ratios[moved] = (w - old)[moved] / change[moved]
            if method == "sgdqn":
                B = np.clip(8.0 / h, 1e-2 / ridge, 1.0 / ridge)
            else:
                B = np.maximum(B + min(1.0, 2.0 / r) * (ratios - B), 1e-2 / ridge)
            r, estimate = r + 1, False
        due += 1
        if due == skip or t == len(order) - 1:
            w = w / (1.0 + due * gain * ridge * B)
            due, estimate = 0, method != "svmsgd2"
        path.append(w)
    return np.mean(path, axis=0) if average else w


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix])
@given(
    seed=st.integers(0, 10**6),
    loss=st.sampled_from(sorted(LOSSES)),
    method=st.sampled_from(["sgdqn", "svmsgd2", "sgdqn-2009"]),
    intercept=st.booleans(),
    average=st.booleans(),
    skip=st.sampled_from([0, 1, 7]),
)
@settings(max_examples=15)
def test_steps_are_those_of_the_algorithm(make, dtype, seed, loss, method, intercept, average, skip):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(20, 120)), int(rng.integers(1, 40))
    X = (rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.5)).astype(dtype)
    y, weight, order = rng.integers(0, 2, n), rng.choice([0.0, 1.0, 2.5], n), rng.permutation(n)
    params = {"ridge": 0.01, "t0": 500.0, "loss": loss, "method": method, "intercept": intercept}
    state = GradientDescent(Rows(make(X)), y, 2, weight, average=average, skip=skip, **params)
    assert skip in (0, state.skip)
    state.run(order)
    wanted = reference(X, 2 * y - 1, weight, order, skip=state.skip, average=average, **params)
    tolerance = 1e-9 if dtype == np.float64 else 2e-3
    np.testing.assert_allclose(state.weights(average)[0], wanted, rtol=tolerance, atol=tolerance)
    assert (state.rescaling <= 1.0 / 0.01 * (1 + 1e-6)).all()
    assert (state.rescaling >= 1.0 * (1 - 1e-6)).all()
    X1 = np.column_stack([X, np.full(n, float(intercept))]).astype(np.float64)
    w = state.weights(average)[0].astype(np.float64)
    primal = 0.005 * w @ w + np.mean(weight * loss_values(loss, (2 * y - 1) * (X1 @ w))[0])
    assert state.primal(averaged=average) == pytest.approx(primal, rel=1e-4 if dtype == np.float32 else 1e-9)


def test_several_labels_are_one_against_the_rest():
    rng = np.random.default_rng(0)
    X, y, order = rng.normal(size=(60, 5)), rng.integers(0, 3, 60), rng.permutation(60)
    params = {"ridge": 0.01, "t0": 100.0, "average": True}
    together = GradientDescent(Rows(X), y, 3, np.ones(60), **params)
    together.run(order)
    total = 0.0
    for label in range(3):
        alone = GradientDescent(Rows(X), (y == label).astype(int), 2, np.ones(60), **params)
        alone.run(order)
        total += alone.primal(averaged=True)
        np.testing.assert_allclose(alone.weights(True)[0], together.weights(True)[label], rtol=1e-12)
    assert together.primal(averaged=True) == pytest.approx(total)


def test_sparse_data_are_regularised_seldom():
    """Every 16 visits over the share of numbers that are not zero, and 16 times a pass at least."""
    X = sp.random(3200, 50, density=0.1, format="csr", random_state=0)
    for rows, skip in ((X, 160), (X[:160], 10), (X[:8], 1), (X.toarray(), 16)):
        n = rows.shape[0]
        assert GradientDescent(Rows(rows), np.arange(n) % 2, 2, np.ones(n), ridge=0.1, t0=10.0).skip == skip


def test_large_dense_data_are_visited_in_runs():
    X, y = np.zeros((10_000, 64), dtype=np.float64), np.arange(10_000) % 2
    X[:, 0] = np.arange(10_000)
    params = {"ridge": 0.1, "t0": 10.0}
    groups = GradientDescent(Rows(X), y, 2, np.ones(10_000), **params).groups
    assert groups[0] == 0 and groups[-1] == 10_000 and set(np.diff(groups)) == {16}
    for other in (X[:100], sp.csr_matrix(X)):
        n = other.shape[0]
        assert GradientDescent(Rows(other), y[:n], 2, np.ones(n), **params).groups is None


# ---- optima ------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("method", ["sgdqn", "svmsgd2"])
def test_the_optimum_is_that_of_a_batch_method(loss, method):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 4))
    y = (X @ [1.0, -2.0, 0.5, 0.0] + 0.3 + rng.normal(size=300) > 0).astype(np.int32)
    X1, signs = np.column_stack([X, np.ones(300)]), 2 * y - 1

    def cost(w):
        values, slopes = loss_values(loss, signs * (X1 @ w))
        return 0.05 * w @ w + values.mean(), 0.1 * w + (slopes * signs) @ X1 / 300

    wanted = min(minimize(cost, rng.normal(size=5), jac=True, method="L-BFGS-B").fun for _ in range(5))
    run = SGDQN(0.1, loss=loss, method=method, max_iter=60, average=True, random_state=0).solve(
        LinearProblem(Rows(X), y, 2)
    )
    assert wanted - 1e-6 <= run.primal <= wanted * 1.01
    assert np.isnan(run.dual) and run.result().certificate().startswith("no duality gap claimed")


def test_liblinear_agrees():
    """LinearSVC's squared hinge has no factor 1/2: its C is half of ours."""
    X, y = make_ill_conditioned(2000, 10, condition=10.0, dtype=np.float64, random_state=1)
    ours = SGDQN(1e-2, max_iter=50, average=True, random_state=0).solve(LinearProblem(Rows(X), (y + 1) // 2, 2))
    theirs = LinearSVC(C=0.5 / (1e-2 * 2000), tol=1e-8, dual=False).fit(X, y)
    w = np.append(theirs.coef_, theirs.intercept_)
    primal = 0.005 * w @ w + np.mean(loss_values("squared_hinge", y * theirs.decision_function(X))[0])
    assert primal - 1e-9 <= ours.primal <= primal * 1.002


def test_rescaling_pays_where_features_differ():
    X, y = make_ill_conditioned(4000, 40, condition=1e4, random_state=1)
    problem = LinearProblem(Rows(X), (y + 1) // 2, 2)
    primal = {
        method: SGDQN(1e-5, method=method, max_iter=1, random_state=0).solve(problem).primal
        for method in ("sgdqn", "svmsgd2")
    }
    assert primal["sgdqn"] < primal["svmsgd2"] - 0.02


def test_the_ratios_as_printed_are_one_ratio_on_dense_data():
    """By equation 3.7 all B_kk stay equal there, and nothing is gained over SVMSGD2; on sparse data they differ."""
    X, y = make_ill_conditioned(4000, 40, condition=1e4, dtype=np.float64, random_state=1)
    problem = LinearProblem(Rows(X), (y + 1) // 2, 2)
    runs = {
        method: SGDQN(1e-5, method=method, max_iter=1, random_state=0).solve(problem)
        for method in ("sgdqn", "svmsgd2", "sgdqn-2009")
    }
    B = runs["sgdqn-2009"].state.rescaling
    assert np.ptp(B) < 1e-9 * B.max()
    assert runs["sgdqn-2009"].primal > runs["sgdqn"].primal + 0.02
    assert runs["sgdqn-2009"].primal > runs["svmsgd2"].primal - 0.01
    X[np.random.default_rng(0).random(X.shape) < 0.5] = 0.0
    run = SGDQN(1e-5, method="sgdqn-2009", max_iter=1, random_state=0).solve(LinearProblem(Rows(X), (y + 1) // 2, 2))
    assert np.ptp(run.state.rescaling) > 1e-3 * run.state.rescaling.max()


def test_t0_is_chosen_and_a_bad_one_is_worse():
    X, y = make_ill_conditioned(3000, 20, condition=10.0, random_state=1)
    problem = LinearProblem(Rows(X), (y + 1) // 2, 2)
    chosen = SGDQN(1e-4, max_iter=1, random_state=0).solve(problem)
    for factor in (0.1, 1e4):
        other = SGDQN(1e-4, t0=chosen.state.t0 * factor, max_iter=1, random_state=0).solve(problem)
        assert chosen.primal < other.primal  # both are finite


@pytest.mark.parametrize(
    ("name", "value"),
    [("alpha", 0.0), ("loss", "log"), ("method", "adam"), ("t0", -1.0), ("max_iter", 0), ("average", 2)],
)
def test_bad_parameters_are_named(name, value):
    with pytest.raises(ValueError, match=f"'{name}' parameter of SGDQN must be"):
        SGDQN(**{name: value}).solve(LinearProblem(Rows(np.eye(2)), [0, 1], 2))
