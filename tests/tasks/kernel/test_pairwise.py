"""Machines of all pairs of classes: SVC's, joined."""

from itertools import combinations

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import load_wine
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import scale
from sklearn.svm import SVC

import structsvm
from structsvm.kernel._kernels import Gram, Kernel, Rows
from structsvm.kernel.problem import KernelProblem
from structsvm.solvers import Pairwise
from structsvm.tasks import PairwiseClassifier
from structsvm.tasks.common import kernel_machine

X, y = load_wine(return_X_y=True)
X = scale(X)
NOISE = np.random.default_rng(0).integers(0, 3, len(y))
y = np.where(np.arange(len(y)) % 5 == 0, NOISE, y)
GAMMA = 0.1


def pair_values(model, K):
    """Values of all machines, as the head of `structsvm.solvers.kernel.pairwise` has them; K: (n, n_SV)."""
    coef, own = model.dual_coef_.toarray(), np.asarray(y)[model.support_]
    values = {}
    for k, l in combinations(range(len(model.classes_)), 2):
        signed = np.where(own == l, coef[k], np.where(own == k, -coef[l], 0.0))
        values[k, l] = K @ signed + model.intercept_[k, l]
    return values


@pytest.mark.parametrize("C", [0.1, 10.0])
def test_each_machine_is_that_of_svc(C):
    model = PairwiseClassifier(C, gamma=GAMMA, tol=1e-6).fit(X, y)
    peer = SVC(C=C, gamma=GAMMA, tol=1e-6, decision_function_shape="ovo").fit(X, y)
    values = pair_values(model, rbf_kernel(X, X[model.support_], gamma=GAMMA))
    for column, pair in zip(peer.decision_function(X).T, values, strict=True):
        np.testing.assert_allclose(values[pair], -column, atol=2e-3)
    scores = np.zeros((len(X), 3))
    primal = 0.0
    K = rbf_kernel(X, gamma=GAMMA)
    for (k, l), f in values.items():
        scores[:, l] -= np.log1p(np.exp(-12.0 * f)) / 12.0
        scores[:, k] -= np.log1p(np.exp(12.0 * f)) / 12.0
        among = (y == k) | (y == l)
        primal += C * np.maximum(0.0, 1.0 - np.where(y == l, f, -f))[among].sum()
        signed = np.zeros(len(y))
        own = y[model.support_]
        coef = model.dual_coef_.toarray()
        signed[model.support_] = np.where(own == l, coef[k], np.where(own == k, -coef[l], 0.0))
        primal += 0.5 * signed @ K @ signed
    np.testing.assert_allclose(model.decision_function(X), scores, atol=1e-5)
    np.testing.assert_array_equal(model.predict(X), model.classes_[model.decision_function(X).argmax(axis=1)])
    result = model.result_
    assert result.status == "converged" and result.gap >= 0.0
    assert result.primal == pytest.approx(primal, rel=1e-5)
    assert result.gap <= 1e-6 * result.primal
    np.testing.assert_array_equal(model.intercept_, -model.intercept_.T)


def test_of_two_classes_the_score_is_the_machine_s_value():
    model = PairwiseClassifier(1.0, gamma=GAMMA, tol=1e-6).fit(X, y == 1)
    peer = SVC(gamma=GAMMA, tol=1e-6).fit(X, y == 1)
    np.testing.assert_allclose(model.decision_function(X), peer.decision_function(X), atol=2e-3)
    assert model.predict(X).dtype == bool


def test_the_cache_changes_nothing_but_the_count_of_kernel_values():
    whole = PairwiseClassifier(1.0, gamma=GAMMA, tol=1e-7).fit(X, y)
    counts = np.bincount(y)
    assert whole.n_iter_ > 1
    # Blocks of each class and of each pair, once; in the certificate none.
    assert whole.n_kernel_ == sum(counts**2) + sum(a * b for a, b in combinations(counts.tolist(), 2))
    assert whole.hit_rate_ > 0.5
    least = PairwiseClassifier(1.0, gamma=GAMMA, tol=1e-7, cache_size=1e-3).fit(X, y)
    np.testing.assert_allclose(least.decision_function(X), whole.decision_function(X), atol=1e-4)
    assert least.n_kernel_ > whole.n_kernel_
    some = PairwiseClassifier(1.0, gamma=GAMMA, tol=1e-7, cache_size=0.08).fit(X, y)
    np.testing.assert_array_equal(some.decision_function(X), whole.decision_function(X))
    assert whole.n_kernel_ < some.n_kernel_ and whole.hit_rate_ > some.hit_rate_


def test_kernels_and_layouts():
    dense = PairwiseClassifier(1.0, gamma=GAMMA).fit(X, y)
    sparse = PairwiseClassifier(1.0, gamma=GAMMA).fit(csr_array(X), y)
    np.testing.assert_allclose(sparse.decision_function(csr_array(X)), dense.decision_function(X), atol=1e-5)
    K = rbf_kernel(X, gamma=GAMMA)
    function = PairwiseClassifier(1.0, kernel=lambda a, b: rbf_kernel(a, b, gamma=GAMMA)).fit(X, y)
    for cache in (200, 1e-3):
        precomputed = PairwiseClassifier(1.0, kernel="precomputed", cache_size=cache).fit(K, y)
        np.testing.assert_allclose(precomputed.decision_function(K), function.decision_function(X), atol=5e-3)


def test_weights():
    weight = np.where(np.arange(len(y)) % 3 == 0, 0.0, 1.0)
    weighted = PairwiseClassifier(1.0, gamma=GAMMA).fit(X, y, weight)
    plain = PairwiseClassifier(1.0, gamma=GAMMA).fit(X[weight > 0], y[weight > 0])
    np.testing.assert_array_equal(weighted.decision_function(X), plain.decision_function(X))
    by_class = PairwiseClassifier(1.0, gamma=GAMMA, class_weight={1: 2.0}).fit(X, y)
    by_example = PairwiseClassifier(1.0, gamma=GAMMA).fit(X, y, np.where(y == 1, 2.0, 1.0))
    np.testing.assert_array_equal(by_class.decision_function(X), by_example.decision_function(X))
    # A class of weight 0 is never predicted; a single one of weight is refused.
    without = PairwiseClassifier(1.0, gamma=GAMMA).fit(X, y, 1.0 * (y != 1))
    assert 1 not in without.predict(X) and abs(without.intercept_[0, 1]) == 1.0
    with pytest.raises(ValueError, match="2 classes or more are needed"):
        PairwiseClassifier(1.0, gamma=GAMMA).fit(X, y, 1.0 * (y == 2))


def test_files(tmp_path):
    model = PairwiseClassifier(1.0, gamma=GAMMA, probability=True).fit(X, y)
    model.save(tmp_path / "m")
    loaded = structsvm.load(tmp_path / "m")
    assert type(loaded) is PairwiseClassifier
    np.testing.assert_array_equal(loaded.intercept_, model.intercept_)
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    assert loaded.predict_proba(X).shape == (len(X), 3)


def problem(y=y):
    return KernelProblem(Gram(Kernel("rbf", gamma=GAMMA), Rows(X)), y, 3)


def test_a_run_goes_on_bit_for_bit_and_elsewhere_from_0():
    solver = Pairwise(10.0, tol=1e-6)
    run = solver.start(problem())
    run.advance()
    run.certify()
    arrays = run.get_state()
    other = Pairwise(10.0, tol=1e-6).start(problem())
    other.set_state(arrays)
    done, again = (Pairwise(10.0, tol=1e-6).solve(problem(), run=r) for r in (run, other))
    np.testing.assert_array_equal(done.state.beta, again.state.beta)
    np.testing.assert_array_equal(done.intercept, again.intercept)
    larger = Pairwise(30.0, tol=1e-6).start(problem())
    larger.set_state(arrays, adapt=True)
    np.testing.assert_array_equal(larger.state.beta, arrays["beta"])
    for fresh in (Pairwise(0.01).start(problem()), Pairwise(10.0).start(problem(), sample_weight=1.0 * (y != 1))):
        with pytest.raises(ValueError, match=r"array '(beta|support)' of the training state is"):
            fresh.set_state(arrays)
        fresh.set_state(arrays, adapt=True)
        assert not fresh.state.beta.any() and fresh.state.dual == 0.0
    unbalanced = arrays | {"beta": np.where(arrays["beta"] > 0.0, 0.5 * arrays["beta"], 0.0)}
    unbalanced["beta"][0, -1] = 5.0
    with pytest.raises(ValueError, match="array 'beta' of the training state is not feasible"):
        Pairwise(10.0).start(problem()).set_state(unbalanced)
    with pytest.raises(ValueError, match="'tau' of the training state is 3"):
        Pairwise(10.0).start(problem()).set_state(arrays | {"tau": np.array([3.0])})


def test_what_is_refused():
    with pytest.warns(structsvm.ConvergenceWarning, match="Pairwise stopped after 1 passes"):
        PairwiseClassifier(10.0, gamma=GAMMA, tol=1e-9, max_iter=1).fit(X, y)
    with pytest.raises(ValueError, match="Pairwise takes no base"):
        Pairwise().start(problem(), base=(np.arange(2), *[np.empty(0)] * 3))


def test_coefficients_of_a_file_unfold_to_nothing_that_is_not_there(monkeypatch):
    """Coefficients of many labels, nearly all 0, are not made dense: a file of some MB would take many GB."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 2)), np.arange(200) % 40
    model = PairwiseClassifier(C=1.0, max_iter=1).fit(X, y).model_
    dense = model.decision_function(X)
    assert model.coef.nnz > 0.1 * model.coef.shape[0] * model.coef.shape[1]
    monkeypatch.setattr(kernel_machine, "DENSE_ENOUGH", 1.0)
    monkeypatch.setattr(csr_array, "toarray", None)
    np.testing.assert_allclose(model.decision_function(X), dense, rtol=0, atol=1e-12)
