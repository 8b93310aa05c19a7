"""The kernel classifiers: what they learn, what they take, and scikit-learn's contract."""

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_reference import Machine, kernel_matrix
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris, make_blobs, make_classification
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

import structsvm
from structsvm import ConvergenceWarning, ModelFileError
from structsvm.model_file import read_model, write_model
from structsvm.tasks import (
    CrammerSingerClassifier,
    KernelPerceptronClassifier,
    LaRankClassifier,
    WestonWatkinsClassifier,
)

X, y = load_digits(return_X_y=True)
X, X_test, y, y_test = X[:600] / 16.0, X[1200:] / 16.0, y[:600], y[1200:]
CLASSIFIERS = [LaRankClassifier, CrammerSingerClassifier, KernelPerceptronClassifier]
DUAL = CLASSIFIERS[:2]


# ---- scikit-learn's own checks -----------------------------------------------------------------

# Checks that scikit-learn's SVC does not pass either, for the same reason.
COPIES = "sample_weight is not equivalent to copies, to the last digit (test_weights_count_copies: the optimum is)"
EXEMPT = {
    "check_sample_weight_equivalence_on_dense_data": COPIES,
    "check_sample_weight_equivalence_on_sparse_data": COPIES,
}
CHECKS = parametrize_with_checks(
    [
        LaRankClassifier(
            C=1.0, kernel="poly", gamma="scale", coef0=1.0, schedule="decode-once", selection="gain", random_state=0
        ),
        CrammerSingerClassifier(C=1.0, gamma="scale", random_state=0),
    ],
    expected_failed_checks=lambda estimator: EXEMPT,
)


@pytest.mark.parametrize(CHECKS.args[0], list(CHECKS.args[1]), **CHECKS.kwargs)
def test_checks_of_scikit_learn(estimator, check):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=sklearn.exceptions.SkipTestWarning)
        warnings.filterwarnings("ignore", category=structsvm.ConvergenceWarning)  # labels at random
        check(estimator)


# ---- what is learnt ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"schedule": "decode-once", "n_reprocess": 10},
        {"schedule": "adaptive"},
        {"schedule": "adaptive", "selection": "gain"},
        {"schedule": (1.94, 36.7), "selection": "gain"},
        {"kernel": "poly", "gamma": 0.1, "degree": 2, "coef0": 1.0},
        {"kernel": "linear", "C": 1.0, "max_iter": 4},
    ],
    ids=str,
)
def test_digits(params):
    model = LaRankClassifier(**{"C": 10.0, "random_state": 0} | params).fit(X, y)
    assert model.score(X_test, y_test) > 0.9
    assert model.result_.dual <= model.result_.primal
    assert model.result_.n_support == model.dual_coef_.nnz
    assert model.n_iter_ == params.get("max_iter", 2)


def test_larank_reaches_the_optimum_of_crammer_and_singer():
    online = LaRankClassifier(C=10.0, tol=1e-6, random_state=0).fit(X, y)
    batch = CrammerSingerClassifier(C=10.0, tol=1e-6, random_state=0).fit(X, y)
    assert online.result_.status == batch.result_.status == "converged"
    assert online.result_.dual == pytest.approx(batch.result_.dual, rel=2e-6)
    np.testing.assert_allclose(online.decision_function(X_test), batch.decision_function(X_test), atol=2e-2)
    assert batch.result_.n_argmax == 0


def test_two_classes_are_a_support_vector_machine_without_bias():
    """1/2 |w_1|^2 + 1/2 |w_0|^2 with w_1 = -w_0 = v: 1/2 |u|^2 / 2 + C xi for u = 2 v, whose margin is the score's."""
    some = y < 2
    ours = LaRankClassifier(C=0.5, kernel="rbf", gamma=0.1, tol=1e-7, random_state=0).fit(X[some], y[some])
    K = kernel_matrix("rbf", X[some], X[some], gamma=0.1)
    sign = np.where(y[some] == 1, 1.0, -1.0)
    # max sum a - a' Q a, 0 <= a <= C, by projected coordinate ascent.
    Q, a = 2.0 * K * np.outer(sign, sign), np.zeros(len(sign))
    for _ in range(500):
        for i in range(len(a)):
            a[i] = np.clip(a[i] + (1.0 - Q[i] @ a) / Q[i, i], 0.0, 0.5)
    assert ours.result_.dual == pytest.approx(a.sum() - 0.5 * a @ Q @ a, rel=1e-5)
    scores = 2.0 * kernel_matrix("rbf", X_test, X[some], gamma=0.1) @ (a * sign)
    found = ours.decision_function(X_test)
    assert found.shape == (len(X_test),)
    np.testing.assert_allclose(found, scores, atol=1e-3)


def test_attributes():
    model = LaRankClassifier(C=5.0, gamma=0.05, random_state=0).fit(X, y)
    assert model.support_.tolist() == sorted(set(model.support_.tolist()))
    np.testing.assert_array_equal(model.support_vectors_, X[model.support_])
    np.testing.assert_array_equal(model.n_support_, np.bincount(y[model.support_], minlength=10))
    beta = model.dual_coef_.toarray()
    assert beta.shape == (10, len(model.support_))
    np.testing.assert_allclose(beta.sum(axis=0), 0.0, atol=1e-12)
    scores = kernel_matrix("rbf", X_test, model.support_vectors_, gamma=0.05) @ beta.T
    np.testing.assert_allclose(model.decision_function(X_test), scores, atol=1e-4)
    np.testing.assert_array_equal(model.predict(X_test), model.classes_[model.decision_function(X_test).argmax(axis=1)])
    machine = Machine(kernel_matrix("rbf", X, X, gamma=0.05), y, np.full(len(y), 5.0), 10)
    B = np.zeros((len(y), 10))
    B[model.support_] = beta.T
    assert model.result_.primal == pytest.approx(machine.primal(B), rel=1e-5)
    assert model.result_.dual == pytest.approx(machine.dual(B), rel=1e-5)
    assert model.n_kernel_ > 0 and model.hit_rate_ == 1.0


def test_rows_of_every_kind_give_the_same_model():
    machine = LaRankClassifier(C=5.0, gamma="scale", tol=1e-3, random_state=0)
    wanted = clone(machine).fit(X, y)
    sparse = sp.csr_matrix(X)
    wide = sp.csr_array(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    for data in (sparse, wide, sp.csc_array(X), np.asfortranarray(X), X.tolist(), X.astype(np.float32)):
        model = clone(machine).fit(data, y)
        assert model.result_.dual == pytest.approx(wanted.result_.dual, rel=1e-3)
        assert np.mean(model.predict(X_test) == wanted.predict(X_test)) > 0.99
        assert np.mean(model.predict(sp.csr_array(X_test)) == model.predict(X_test)) > 0.99
    assert sp.issparse(LaRankClassifier().fit(sparse, y).support_vectors_)
    assert LaRankClassifier().fit(X.astype(np.float32), y).support_vectors_.dtype == np.float32


def product(A, B):
    return np.einsum("ik,jk", A, B)


def test_callable_and_precomputed_kernels():
    some, labels = X[:200], y[:200]
    wanted = LaRankClassifier(1.0, kernel="linear", random_state=0, tol=1e-3).fit(some, labels)
    called = LaRankClassifier(1.0, kernel=product, random_state=0, tol=1e-3).fit(some, labels)
    given_matrix = LaRankClassifier(1.0, kernel="precomputed", random_state=0, tol=1e-3).fit(some @ some.T, labels)
    for model, test in ((called, X_test), (given_matrix, X_test @ some.T)):
        assert model.result_.dual == pytest.approx(wanted.result_.dual, rel=1e-3)
        assert np.mean(model.predict(test) == wanted.predict(X_test)) > 0.98
    assert given_matrix.support_vectors_.shape == (0, 200)
    with pytest.raises(ValueError, match="200 features"):
        given_matrix.predict(X_test)


def test_the_same_seed_gives_the_same_model_whatever_the_cache():
    for params in ({}, {"schedule": "adaptive"}, {"selection": "gain", "schedule": "decode-once"}):
        one = LaRankClassifier(random_state=3, **params).fit(X, y)
        two = LaRankClassifier(random_state=3, cache_size=0.05, **params).fit(X, y)
        np.testing.assert_array_equal(one.dual_coef_.toarray(), two.dual_coef_.toarray())
        assert two.hit_rate_ < 1.0 and two.n_kernel_ > one.n_kernel_
        other = LaRankClassifier(random_state=4, **params).fit(X, y)
        assert other.dual_coef_.shape != one.dual_coef_.shape or (other.dual_coef_ != one.dual_coef_).nnz


# ---- weights -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", DUAL)
def test_weights_count_copies(kind):
    some = slice(0, 120)
    weight = np.random.default_rng(0).integers(0, 4, 120)
    weighted = kind(tol=1e-6, random_state=0).fit(X[some], y[some], sample_weight=weight)
    copied = kind(tol=1e-6, gamma=weighted.model_.kernel.gamma, random_state=0).fit(
        np.repeat(X[some], weight, axis=0), np.repeat(y[some], weight)
    )
    assert weighted.result_.dual == pytest.approx(copied.result_.dual, rel=2e-6)
    np.testing.assert_allclose(weighted.decision_function(X_test), copied.decision_function(X_test), atol=2e-2)
    assert not set(weighted.support_) & set(np.flatnonzero(weight == 0))


@pytest.mark.parametrize("kind", DUAL)
def test_class_weights_are_sample_weights(kind):
    costs = {k: 1.0 + k for k in range(10)}
    by_class = kind(class_weight=costs, random_state=0).fit(X, y)
    by_sample = kind(random_state=0).fit(X, y, sample_weight=1.0 + y)
    np.testing.assert_array_equal(by_class.dual_coef_.toarray(), by_sample.dual_coef_.toarray())
    balanced = kind(class_weight="balanced", random_state=0).fit(X, y)
    weight = (len(y) / (10 * np.bincount(y)))[y]
    equal = kind(random_state=0).fit(X, y, sample_weight=weight)
    np.testing.assert_array_equal(balanced.dual_coef_.toarray(), equal.dual_coef_.toarray())
    with pytest.raises(ValueError, match="class_weight names 12"):
        kind(class_weight={12: 1.0}).fit(X, y)


# ---- going on ----------------------------------------------------------------------------------


@pytest.mark.parametrize("params", [{}, {"schedule": "adaptive", "selection": "gain"}, {"schedule": (0.5, 3.3)}])
def test_warm_start_goes_on_bit_for_bit(params, tmp_path):
    whole = LaRankClassifier(max_iter=3, random_state=0, **params).fit(X, y)
    model = LaRankClassifier(max_iter=1, warm_start=True, random_state=0, **params).fit(X, y)
    model.save(tmp_path / "m")
    for again in (model, structsvm.load(tmp_path / "m")):
        again.set_params(max_iter=2).fit(X, y)
        assert again.n_iter_ == 3
        np.testing.assert_array_equal(again.dual_coef_.toarray(), whole.dual_coef_.toarray())
    with pytest.raises(ValueError, match="label 10, none of the classes"):
        model.fit(X[:500], y[:500] + 1)
    model.fit(X[:500], y[:500])  # other data: the support patterns so far stay in the problem
    assert (model.support_ == -1).any()
    assert (model.support_ >= 0).any()
    assert model.result_.dual <= model.result_.primal


def test_partial_fit():
    model, sizes = LaRankClassifier(C=10.0, random_state=0), []
    for first in range(0, 600, 100):
        model.partial_fit(X[first : first + 100], y[first : first + 100], classes=range(10))
        sizes.append(len(model.support_))
        new = model.support_ >= 0
        np.testing.assert_array_equal(model.support_vectors_[new], X[first : first + 100][model.support_[new]])
        assert model.result_.dual <= model.result_.primal
    assert model.score(X_test, y_test) > 0.93
    assert sizes[-1] < 600
    before = pickle.dumps(model.dual_coef_)
    with pytest.raises(ValueError, match="label 'x', none of the classes"):
        model.partial_fit(X[:2], np.array(["x", "y"]))
    with pytest.raises(ValueError, match="NaN"):
        model.partial_fit(np.full((2, 64), np.nan), [0, 1])
    with pytest.raises(ValueError, match="not the same as on the last call"):
        model.partial_fit(X[:2], y[:2], classes=[1, 2])
    with pytest.raises(ValueError, match="63 features"):
        model.partial_fit(X[:2, :63], y[:2])
    assert pickle.dumps(model.dual_coef_) == before
    with pytest.raises(ValueError, match="only one class"):
        LaRankClassifier().partial_fit(X[:3], [1, 1, 1])
    with pytest.raises(ValueError, match="precomputed"):
        LaRankClassifier(kernel="precomputed").partial_fit(np.eye(4), [0, 1, 0, 1])
    with pytest.raises(ValueError, match="balanced"):
        LaRankClassifier(class_weight="balanced").partial_fit(X, y)
    model.set_params(warm_start=True, max_iter=1).fit(X, y)
    assert model.score(X_test, y_test) > 0.93


def test_partial_fit_on_sparse_batches_and_one_example_at_a_time():
    sparse, single = LaRankClassifier(random_state=0), LaRankClassifier(random_state=0)
    for first in range(0, 200, 50):
        sparse.partial_fit(sp.csr_array(X[first : first + 50]), y[first : first + 50], classes=range(10))
    for i in range(60):
        single.partial_fit(X[i : i + 1], y[i : i + 1], classes=range(10))
    assert sparse.score(X_test, y_test) > 0.85
    assert single.score(X_test, y_test) > 0.6


# ---- the perceptron ----------------------------------------------------------------------------


@given(seed=st.integers(0, 10**6), average=st.booleans(), is_weighted=st.booleans())
@settings(max_examples=20)
def test_the_perceptron_is_the_plain_one(seed, average, is_weighted):
    """One pass, beside explicit weights of a linear kernel on whole numbers, where nothing rounds."""
    rng = np.random.default_rng(seed)
    n, k, blocks = 40, 3, []
    data, labels = rng.integers(-3, 4, (n, 3)).astype(float), np.arange(n) % k

    def kernel(A, B):  # fresh examples come in the order of their visits, all of them in one block
        blocks.append(A)
        return A @ B.T

    data[:, 2] = np.arange(n)
    weight = rng.integers(0, 4, n).astype(float) if is_weighted else None
    model = KernelPerceptronClassifier(kernel=kernel, average=average, max_iter=1, random_state=seed)
    model.fit(data, labels, sample_weight=weight)
    w, total = np.zeros((k, 3)), np.zeros((k, 3))
    for x in blocks[1]:  # after those on which the kernel was tried
        true = int(x[2]) % k
        scores = w @ x
        rival = max((z for z in range(k) if z != true), key=lambda z: (scores[z], -z))
        if scores[rival] >= scores[true]:
            step = 1.0 if weight is None else weight[int(x[2])]
            w[true] += step * x
            w[rival] -= step * x
        total += w
    if is_weighted:
        assert (weight[model.support_] > 0.0).all()
    found = model.dual_coef_ @ model.support_vectors_
    np.testing.assert_allclose(found, total / n if average else w, atol=1e-9)


@given(seed=st.integers(0, 10**6), k=st.integers(2, 3), budget=st.integers(1, 12), margin=st.sampled_from([0.0, 4.0]))
@settings(max_examples=20)
def test_the_perceptron_on_a_budget(seed, k, budget, margin):
    """Algorithm 4, for two classes and more: one pass, beside a list of patterns, on whole numbers."""
    rng = np.random.default_rng(seed)
    n, blocks = 40, []
    data, labels = rng.integers(-3, 4, (n, 3)).astype(float), np.arange(n) % k

    def kernel(A, B):  # as above
        blocks.append(A)
        return A @ B.T

    data[:, 2] = np.arange(n)
    model = KernelPerceptronClassifier(
        kernel=kernel, average=False, budget=budget, margin=margin, max_iter=1, random_state=seed
    )
    model.fit(data, labels)
    kept = []  # pattern, coefficients by label; the last takes the place of one that leaves
    for x in blocks[1]:  # after those on which the kernel was tried
        true = int(x[2]) % k
        scores = sum((beta * (z @ x) for z, beta in kept), np.zeros(k))
        rival = max((z for z in range(k) if z != true), key=lambda z: (scores[z], -z))
        if scores[true] - scores[rival] > margin:
            continue
        kept.append((x, np.eye(k)[true] - np.eye(k)[rival]))
        if len(kept) > budget:
            ahead = []
            for x_i, beta_i in kept:
                scores = sum((beta * (z @ x_i) for z, beta in kept), np.zeros(k)) - beta_i * (x_i @ x_i)
                own = int(x_i[2]) % k
                ahead.append(scores[own] - np.delete(scores, own).max())
            kept[int(np.argmax(ahead))] = kept[-1]
            kept.pop()
    found = {
        int(x[2]): beta.tolist() for x, beta in zip(model.support_vectors_, model.dual_coef_.toarray().T, strict=True)
    }
    assert found == {int(x[2]): beta.tolist() for x, beta in kept}


def test_a_budget_has_no_average():
    with pytest.raises(ValueError, match="budget=5 needs average=False"):
        KernelPerceptronClassifier(budget=5).fit(X, y)


def test_the_average_of_the_perceptron_predicts_better():
    plain = KernelPerceptronClassifier(average=False, max_iter=1, random_state=0).fit(X, y)
    averaged = KernelPerceptronClassifier(max_iter=1, random_state=0).fit(X, y)
    assert averaged.score(X_test, y_test) > plain.score(X_test, y_test)
    assert np.isnan(averaged.result_.dual)
    assert "no duality gap claimed" in averaged.result_.certificate()


# ---- files and copies --------------------------------------------------------------------------


@pytest.mark.parametrize("kind", CLASSIFIERS)
@pytest.mark.parametrize("layout", ["dense", "sparse", "precomputed"])
def test_model_files(kind, layout, tmp_path):
    names = np.array([f"class {label}" for label in range(10)])[y]
    train, test = {"dense": (X, X_test), "sparse": (sp.csr_array(X), X_test), "precomputed": (X @ X.T, X_test @ X.T)}[
        layout
    ]
    params = {"kernel": "precomputed"} if layout == "precomputed" else {"gamma": 0.1}
    model = kind(random_state=0, **params).fit(train, names)
    model.save(tmp_path / "m")
    loaded, mapped = structsvm.load(tmp_path / "m"), structsvm.load(tmp_path / "m", mmap=True)
    copied = pickle.loads(pickle.dumps(model))
    for other in (loaded, mapped, copied):
        assert type(other) is kind and repr(other) == repr(model)
        np.testing.assert_array_equal(other.predict(test), model.predict(test))
        np.testing.assert_array_equal(other.support_, model.support_)
        assert other.result_.certificate() == model.result_.certificate()
        assert other.n_kernel_ == model.n_kernel_
    with pytest.raises(NotFittedError):
        clone(model).predict(test)
    wrong = CLASSIFIERS[CLASSIFIERS.index(kind) - 1]
    with pytest.raises(ModelFileError, match=f"a model of '{kind.__name__}'"):
        wrong.load(tmp_path / "m")


def test_parameters_of_every_kind_come_back(tmp_path):
    model = LaRankClassifier(
        schedule=(1.5, 20), class_weight={1: 2.0}, gamma="auto", random_state=np.random.RandomState(0)
    ).fit(X, y)
    model.save(tmp_path / "m")
    loaded = structsvm.load(tmp_path / "m")
    assert loaded.schedule == (1.5, 20.0) and loaded.class_weight == {1: 2.0} and loaded.gamma == "auto"
    assert loaded.random_state is None


def test_what_no_file_can_hold(tmp_path):
    model = LaRankClassifier(C=1.0, kernel=lambda A, B: A @ B.T, random_state=0).fit(X, y)
    with pytest.raises(TypeError, match="Python function"):
        model.save(tmp_path / "m")
    assert not (tmp_path / "m").exists()


def test_files_that_are_not_sound(tmp_path):
    model = LaRankClassifier(random_state=0).fit(X, y)
    model.save(tmp_path / "m")
    file = read_model(tmp_path / "m")
    meta, arrays = file.meta, file.arrays
    nan = arrays["coef.data"].copy()
    nan[0] = np.nan
    far = arrays["coef.indices"].copy()
    far[0] = 10**6
    for changed in [
        (meta | {"labels": meta["labels"][:-1]}, arrays),
        (meta | {"labels": [0] * 10}, arrays),
        (meta | {"kernel": {"name": "magic"}}, arrays),
        (meta | {"params": None}, arrays),
        (meta | {"params": {"C": -1.0}}, arrays),
        (meta | {"n_features": 3}, arrays),
        (meta | {"n_kernel": "many"}, arrays),
        (meta | {"estimator": "SequenceLabeler"}, arrays),
        (meta | {"estimator": "os"}, arrays),
        (meta, arrays | {"coef.data": nan}),
        (meta, arrays | {"coef.indices": far}),
        (meta, arrays | {"vectors": arrays["vectors"][:-1]}),
        (meta, arrays | {"vectors": arrays["vectors"].astype(np.int64)}),
        (meta, arrays | {"support_labels": arrays["support_labels"] + 10}),
        (meta, {name: array for name, array in arrays.items() if name != "support"}),
    ]:
        write_model(tmp_path / "bad", "multiclass", *changed)
        with pytest.raises(ModelFileError, match="bad"):
            structsvm.load(tmp_path / "bad")


# ---- bad input ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_bad_data(kind):
    with pytest.raises(ValueError, match="only one class: 1"):
        kind().fit(X[:4], [1, 1, 1, 1])
    bad = X.copy()
    bad[3, 5] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        kind().fit(bad, y)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        kind().fit(X, y[:-1])
    with pytest.raises(ValueError, match="Unknown label type"):
        kind().fit(X, np.linspace(0.0, 1.0, 600))
    with pytest.raises(ValueError, match=r"square matrix\. Input is a 600x64"):
        kind(kernel="precomputed").fit(X, y)
    with pytest.raises(ValueError, match="MB is less than one row"):
        kind(cache_size=1e-4).fit(X, y)
    with pytest.raises(ValueError, match=r"shape \(64, 64\)|shape \(\d+, \d+\) for matrices"):
        kind(kernel=lambda A, B: np.zeros((3, 3))).fit(X, y)
    model = kind(random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="64 features"):
        model.predict(X[:, :5])
    with pytest.raises(ValueError, match=r"add up to more than float64 can hold|variance of X, which overflows"):
        kind().fit(X * 1e170, y)
    with pytest.raises(ValueError, match="no finite float32"):
        kind(kernel="linear").fit(X * 1e30, y)
    with pytest.raises(NotFittedError):
        kind().predict(X)
    with pytest.raises(NotFittedError):
        _ = kind().support_


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("C", -1.0),
        ("C", 0),
        ("gamma", 0.0),
        ("gamma", "wide"),
        ("kernel", "magic"),
        ("degree", -1),
        ("coef0", np.inf),
        ("cache_size", 0),
        ("tol", 0.0),
        ("max_iter", 0),
        ("schedule", "slow"),
        ("schedule", (1.0,)),
        ("schedule", (1.0, -2.0)),
        ("selection", "best"),
        ("n_reprocess", -1),
        ("class_weight", "heavy"),
        ("random_state", "x"),
        ("warm_start", 1),
        ("verbose", 1),
    ],
)
def test_bad_parameters(name, value):
    with pytest.raises(ValueError, match=f"The '{name}' parameter of .*LaRank.* must be|'{name}' parameter"):
        LaRankClassifier(**{name: value}).fit(X, y)


def test_bad_weights():
    for weight, message in [
        (np.ones(3), "shape"),
        (-np.ones(600), "not negative"),
        (np.zeros(600), "zero for every sample"),
        (np.full(600, np.nan), "finite"),
    ]:
        with pytest.raises(ValueError, match=message):
            LaRankClassifier().fit(X, y, sample_weight=weight)


def test_copies_with_different_labels():
    model = LaRankClassifier(C=1.0, gamma=1.0, tol=1e-6, random_state=0).fit([[0.0], [0.0], [1.0]], [0, 1, 1])
    machine = Machine(
        kernel_matrix("rbf", [[0.0], [0.0], [1.0]], [[0.0], [0.0], [1.0]]), np.array([0, 1, 1]), np.ones(3), 2
    )
    assert model.result_.dual == pytest.approx(machine.optimum(), rel=1e-5)


@pytest.mark.filterwarnings("ignore::structsvm.AdviceWarning")
def test_thousands_of_classes():
    rng = np.random.default_rng(0)
    data, labels = rng.normal(size=(4000, 5)).astype(np.float32), np.arange(4000)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The number of unique classes")
        model = LaRankClassifier(C=10.0, gamma=50.0, schedule=(0, 1), max_iter=1, random_state=0).fit(data, labels)
    assert model.dual_coef_.shape == (4000, len(model.support_))
    assert np.mean(model.predict(data[:200]) == labels[:200]) > 0.9


@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_a_fit_that_fails_leaves_the_model(kind):
    model = kind(random_state=0).fit(X, y)
    before = model.decision_function(X[:20])
    for data, labels, params in [(X[:, :2], np.ones(600), {}), (X[:, :2], y, {"cache_size": 1e-4})]:
        with pytest.raises(ValueError, match=r"only one class|less than one row"):
            model.set_params(**params).fit(data, labels)
        np.testing.assert_array_equal(model.decision_function(X[:20]), before)


@pytest.mark.parametrize("params", [{"gamma": 5.0}, {"kernel": "linear"}, {"kernel": "poly", "degree": 2}])
def test_warm_start_with_another_kernel_is_refused(params):
    model = LaRankClassifier(gamma=0.1, warm_start=True, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="training began with another kernel"):
        model.set_params(**params).fit(X, y)


def test_not_converged_is_a_warning():
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        LaRankClassifier(C=100.0, max_iter=1, tol=1e-9).fit(X, y)
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        CrammerSingerClassifier(C=100.0, max_iter=1).fit(X, y)


# ---- in scikit-learn's company -----------------------------------------------------------------


def test_as_accurate_as_svc():
    for data, labels in (load_iris(return_X_y=True), make_classification(400, 8, n_informative=5, random_state=0)):
        svc = SVC(C=1.0).fit(data[::2], labels[::2]).score(data[1::2], labels[1::2])
        ours = LaRankClassifier(C=1.0, tol=1e-3, random_state=0).fit(data[::2], labels[::2])
        assert ours.score(data[1::2], labels[1::2]) >= svc - 0.04


def test_grid_search_with_a_precomputed_kernel():
    search = GridSearchCV(LaRankClassifier(kernel="precomputed", random_state=0), {"C": [1e-4, 1.0]}, cv=2)
    assert search.fit(X[:200] @ X[:200].T, y[:200]).best_params_ == {"C": 1.0}


def test_callbacks_see_every_pass():
    callback = pytest.importorskip("sklearn.callback")
    monitor = callback.ScoringMonitor(scoring="accuracy")
    model = LaRankClassifier(max_iter=3, random_state=0).set_callbacks(monitor).fit(X, y)
    scores = [row["accuracy"] for row in monitor.get_logs().data]
    assert len(scores) == 3 and scores[-1] == pytest.approx(model.score(X, y))


@pytest.mark.parametrize("kind", [CrammerSingerClassifier, WestonWatkinsClassifier])
def test_batch_solvers_bound_their_coefficients(kind, monkeypatch):
    monkeypatch.setattr("structsvm.solvers.kernel.base.LARGEST_MATRIX", 1000)
    with pytest.raises(ValueError, match=r"600 examples times .* classes are more than the 1000 coefficients"):
        kind(1.0, gamma="scale").fit(X, y)


@pytest.mark.parametrize("offset", [1e3, 1e4])
def test_an_offset_costs_nothing_in_single_precision(offset):
    data, labels = make_blobs(400, centers=4, random_state=0)
    near = LaRankClassifier(gamma=0.5, random_state=0).fit(data[:200].astype(np.float32), labels[:200])
    shifted = (data + offset).astype(np.float32)
    far = LaRankClassifier(gamma=0.5, random_state=0).fit(shifted[:200], labels[:200])
    assert abs(far.score(shifted[200:], labels[200:]) - near.score(data[200:], labels[200:])) <= 0.02
