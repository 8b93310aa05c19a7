"""Dense columns in units of their own: the same model whatever the columns' units."""

from types import SimpleNamespace

import numpy as np
import pytest
from cases import CASES, taking_part
from scipy.sparse import csr_array
from sklearn.base import clone

import structsvm
from structsvm import LaRank
from structsvm.features.dense import DenseRows
from structsvm.stored_values import Record
from structsvm.tasks import (
    AmbiguousClassifier,
    HullerClassifier,
    LaRankClassifier,
    LaSVMClassifier,
    MultilabelClassifier,
    MultivariateClassifier,
    Ranker,
    TaxonomyClassifier,
)
from structsvm.tasks.common.selection.search import LEAST_EXAMPLES, total_variance
from structsvm.tasks.common.units import UNITS, Units, units_of
from structsvm.tasks.taxonomy import linear

rng = np.random.default_rng(0)
X = rng.normal(size=(300, 6)).astype(np.float32)
y = np.argmax(X[:, :3] + 0.5 * rng.normal(size=(300, 3)), axis=1)
X_test = rng.normal(size=(200, 6)).astype(np.float32)
LINEAR = list({case.kind: None for case in CASES.values() if case.room == "linear"})
FACTORS = 10.0 ** rng.uniform(-3.0, 3.0, 6)


def fit(X=X, y=y, **params):
    return TaxonomyClassifier(random_state=0, **params).fit(X, y)


@taking_part("units", {name: case for name, case in CASES.items() if case.has_columns})
@pytest.mark.parametrize("offset", [0.0, 5.0])
def test_models_do_not_depend_on_units(case, offset):
    """Kernels have to choose a width: one that is given sees the columns as they came."""
    factors = 10.0 ** np.linspace(-3.0, 3.0, case.n_columns)
    params = {"gamma": "auto"} if "gamma" in case.params else {}
    X = case.scaled(factors, offset)
    one, other = case.fit(**params), case.fit_on(X, case.y, **params)
    told, found = one.predict(case.X), other.predict(X)
    if isinstance(one, Ranker):  # scores
        assert np.corrcoef(told, found)[0, 1] > 0.99
        return
    same = [np.mean(np.equal(a, b)) for a, b in zip(told, found, strict=True)]
    assert np.mean(same) > 0.9
    assert other.score(X, case.y) == pytest.approx(one.score(case.X, case.y), abs=0.1)


def test_units():
    rows = DenseRows(np.column_stack([X, np.full(300, 7.0, np.float32)]), has_intercept=True)
    units = Units.of_rows(rows)
    values = units.applied(rows).values
    np.testing.assert_allclose(values[:, :6].mean(axis=0), 0.0, atol=1e-6)
    np.testing.assert_allclose(values[:, :6].std(axis=0), 1.0, rtol=1e-5)
    assert (values[:, 6] == 0.0).all() and units.scale[6] == 1.0 and values.dtype == np.float32
    alone = Units.of_rows(DenseRows(X))
    assert not alone.centre.any() and (alone.scale != 1.0).all()
    assert Units.of_rows(rows[: LEAST_EXAMPLES - 1]) is None and Units.of_rows(rows.tokens()) is None
    table = rng.normal(size=(8, 3))
    scores = np.column_stack([values, np.ones(300)]) @ table
    np.testing.assert_allclose(np.column_stack([rows.values, np.ones(300)]) @ units.undone(table), scores, atol=1e-4)
    holder = Record({"units": UNITS})
    _, arrays = holder.write(SimpleNamespace(units=units))
    np.testing.assert_array_equal(units_of(holder.read({}, arrays).units, 7)[:2], units[:2])
    assert holder.write(SimpleNamespace(units=None)) == ({}, {}) and units_of(holder.read({}, {}).units, 7) is None
    for name, wrong in (("units.scale", -units.scale), ("units.centre", units.centre[:6])):
        with pytest.raises(ValueError, match="units"):
            units_of(holder.read({}, arrays | {name: wrong}).units, 7)


def test_one_unit_for_all_columns():
    units = Units.of_rows(DenseRows(X * FACTORS, has_intercept=True), short=True, alike=True)
    assert (units.scale == units.scale[0]).all()
    values = (X * FACTORS - units.centre) / units.scale
    assert values.var(axis=0).sum() == pytest.approx(1.0, rel=1e-4)
    np.testing.assert_allclose(values.var(axis=0), (X * FACTORS).var(axis=0) / units.scale**2, rtol=1e-4)


def test_columns_far_from_0_are_constant_only_by_rounding():
    """float64 has more digits than float32."""
    for offset in (1e7, 1e10):
        units = Units.of_rows(DenseRows(X.astype(float) + offset, has_intercept=True))
        np.testing.assert_allclose(units.scale, X.std(axis=0), rtol=1e-4)
        assert total_variance(DenseRows(X.astype(float) + offset)) == pytest.approx(X.var(axis=0).sum(), rel=1e-4)
        constant = DenseRows(np.full((50, 1), offset + 0.1), has_intercept=True)
        assert Units.of_rows(constant).scale[0] == 1.0 and total_variance(constant) > 0.9 * offset**2


@pytest.mark.parametrize("estimator", [kind(random_state=0) for kind in LINEAR], ids=repr)
@pytest.mark.parametrize(("offset", "factor"), [(0.0, 1e-6), (0.0, 1e4), (1e3, 1.0)])
def test_a_common_unit_or_offset_makes_no_difference(estimator, offset, factor):
    """Nearest neighbours see neither; with columns as given accuracy was that of chance."""
    rows = X.astype(float)
    labels = (rows @ np.arange(6) + rng.normal(size=len(rows)) > 0.5).astype(int)
    one, other = (clone(estimator).fit(values, labels) for values in (rows, offset + factor * rows))
    assert np.mean(other.predict(offset + factor * rows) == one.predict(rows)) > 0.99
    assert one.score(rows, labels) > 0.9


@pytest.mark.parametrize("params", [{}, {"loss": "log"}, {"fit_intercept": False}], ids=str)
def test_units_make_no_difference(params):
    one, other = fit(**params), fit(X * FACTORS, **params)
    assert np.mean(other.predict(X_test * FACTORS) == one.predict(X_test)) > 0.93
    params |= {"C": 0.1, "tol": 1e-4, "max_iter": 1000}
    one, other = fit(**params), fit(X * FACTORS, **params)
    np.testing.assert_allclose(other.decision_function(X_test * FACTORS), one.decision_function(X_test), atol=0.05)
    np.testing.assert_allclose(other.coef_ * FACTORS, one.coef_, atol=0.05)
    if "fit_intercept" not in params:
        far = fit(X * FACTORS + 100.0 * FACTORS, **params)
        assert np.mean(far.predict(X_test * FACTORS + 100.0 * FACTORS) == one.predict(X_test)) > 0.98
    raw = fit(X * FACTORS, standardize=False, C=0.1, max_iter=20)  # this is what the parameter is for
    assert raw.score(X * FACTORS, y) < other.score(X * FACTORS, y) - 0.1


def test_coefficients_are_of_the_columns_as_given(tmp_path):
    model = fit(X * FACTORS + 5.0)
    scores = (X_test * FACTORS + 5.0) @ model.coef_.T.astype(float) + model.intercept_
    np.testing.assert_allclose(model.decision_function(X_test * FACTORS + 5.0), scores, rtol=1e-3, atol=1e-3)
    model.save(tmp_path / "m", training_state=True)
    loaded = structsvm.load(tmp_path / "m")
    assert loaded.standardize is True
    for rows in (X_test, csr_array(X_test), np.where(rng.random(X_test.shape) < 0.9, 0.0, X_test)):
        np.testing.assert_array_equal(loaded.decision_function(rows), model.decision_function(rows))
    resumed = loaded.set_params(warm_start=True, max_iter=1).fit(X * FACTORS + 5.0, y)
    assert resumed.n_iter_ == model.n_iter_ + 1


@pytest.mark.filterwarnings("ignore:.* (are they in its|perhaps in other) units:structsvm.AdviceWarning")
def test_the_first_batch_settles_them():
    model = TaxonomyClassifier(random_state=0).partial_fit(X[:100], y[:100])
    units = model.model_.units
    model.partial_fit(1e3 * X[100:], y[100:])
    assert model.model_.units is units
    np.testing.assert_allclose(units.scale, Units.of_rows(DenseRows(X[:100])).scale)


def test_copies_weights_and_order_make_no_difference():
    again = rng.integers(0, len(X), 150)
    order = rng.permutation(len(X) + 150)
    weight = 1.0 + np.bincount(again, minlength=len(X))
    copies = np.concatenate([X, X[again]])[order], np.concatenate([y, y[again]])[order]
    model = TaxonomyClassifier(random_state=0).fit(X, y, sample_weight=weight)
    np.testing.assert_array_equal(fit(*copies).coef_, model.coef_)
    none = np.concatenate([np.ones(300), np.zeros(50)])
    data = np.concatenate([X, 1e6 * X[:50]]), np.concatenate([y, y[:50]])
    np.testing.assert_array_equal(TaxonomyClassifier(random_state=0).fit(*data, sample_weight=none).coef_, fit().coef_)


def test_passes():
    """Over such columns eight at least, where nobody says how many."""
    assert fit(C=1e-3).n_iter_ >= 8 > fit(C=1e-3, standardize=False).n_iter_
    assert fit(max_iter=3).n_iter_ == 3 and fit(C=1e-3, tol=0.5).n_iter_ < 8
    solver = LaRank(C=1e-3, random_state=0)
    assert TaxonomyClassifier(solver=solver).fit(X, y).n_iter_ >= 8 and solver.least_passes == 0


@pytest.mark.parametrize(("turns", "options"), [(2, {}), (1, {"standardize": False}), (1, {"loss": "log"})])
def test_parts_that_judge(turns, options):
    table = fit(**options).validation_
    assert table["n_held_out"] == turns * len(X) // 5
    if "loss" in options:
        assert table["metric"] == "log loss" and (table["error"] > 0.0).all()
        return
    error = np.sqrt(table["score"] * (1.0 - table["score"]) / (table["n_held_out"] - 1))
    np.testing.assert_allclose(table["error"], error)  # all have as many examples


def test_of_many_rows_one_part_judges(monkeypatch):
    monkeypatch.setattr(linear, "MANY_ROWS", len(X))
    assert fit().validation_["n_held_out"] == len(X) // 5


def test_where_columns_are_as_given():
    few = {"max_weights": 8}
    sparse, kernel, short = fit(csr_array(X)), fit(kernel="linear", C=1.0), fit(**few)
    assert sparse.model_.units is None and short.model_.units is None and kernel.model_.units is None
    np.testing.assert_array_equal(fit(standardize=False, **few).coef_.toarray(), short.coef_.toarray())
    assert fit(standardize=False).model_.units is None
    assert fit(X[: LEAST_EXAMPLES - 1], y[: LEAST_EXAMPLES - 1]).model_.units is None


@pytest.mark.parametrize("kind", LINEAR)
def test_machines_of_a_stream(kind, tmp_path):
    """Whatever the units and the means; coefficients are of the columns as given, and the stream keeps the units."""
    signs, near = X.sum(axis=1) > 0.0, X.astype(np.float64) * FACTORS[::-1]
    far, rows = (part * FACTORS + 3.0 * FACTORS for part in (X.astype(np.float64), X_test))
    model, other = (kind(random_state=0, probability=True).fit(part, signs) for part in (near, far))
    scores = other.decision_function(rows)
    np.testing.assert_allclose(model.decision_function(X_test * FACTORS[::-1]), scores, atol=1e-6)
    np.testing.assert_allclose(other.coef_ * FACTORS, model.coef_ * FACTORS[::-1], atol=1e-6)
    np.testing.assert_allclose(rows @ other.coef_[0] + other.intercept_, scores, atol=1e-9)
    np.testing.assert_allclose(other.predict_proba(rows), model.predict_proba(X_test * FACTORS[::-1]), atol=1e-6)
    other.save(tmp_path / "m")
    loaded = structsvm.load(tmp_path / "m").partial_fit(csr_array(far[:50]), signs[:50])
    np.testing.assert_array_equal(loaded.coef_, other.partial_fit(far[:50], signs[:50]).coef_)
    raw = kind(standardize=False, random_state=0).fit(far, signs)
    assert raw.model_.units is None and other.score(far, signs) > raw.score(far, signs) + 0.1
    assert kind(random_state=0).fit(csr_array(far), signs).model_.units is None


@pytest.mark.parametrize("factors", [1.0, FACTORS], ids=["alike", "scaled"])
@pytest.mark.parametrize("kind", [LaRankClassifier, HullerClassifier])
def test_a_gamma_is_chosen_wherever_columns_lie(kind, factors):
    """Means that differ by more than columns do are not what the RBF kernel sees."""
    rows, signs = X.astype(float), X[:, :3].argmax(axis=1) == 0
    rows = rows * factors
    far = rows + 100.0 * np.arange(6) * rows.std(axis=0)
    one, other = (kind(random_state=0).fit(values, signs) for values in (rows, far))
    assert other.gamma_ == pytest.approx(one.gamma_, rel=0.05)
    assert np.mean(other.predict(far) == one.predict(rows)) > 0.95 and one.score(rows, signs) > 0.85


def test_a_kernel_without_a_choice():
    signs, truth = y == 0, X_test[:, :3].argmax(axis=1) == 0
    other = HullerClassifier(random_state=0).fit(X * FACTORS, signs)
    raw = HullerClassifier(gamma="scale", random_state=0).fit(X * FACTORS, signs)
    assert other.model_.column_scale is not None and raw.model_.column_scale is None
    assert other.score(X_test * FACTORS, truth) > raw.score(X_test * FACTORS, truth) + 0.1


def test_labels_from_bags():
    """Whatever the units, and as good as where they are the same; what is stored and shown is of the columns given."""
    bags = [{k, (k + 1) % 3} if i % 2 else {k} for i, k in enumerate(y.tolist())]
    settings = {"loss": "pairwise", "C": 1.0, "random_state": 0}
    model, other = AmbiguousClassifier(**settings).fit(X, bags), AmbiguousClassifier(**settings).fit(X * FACTORS, bags)
    np.testing.assert_allclose(other.coef_ * FACTORS, model.coef_, atol=1e-3)
    rows = X_test * FACTORS
    np.testing.assert_allclose(other.decision_function(rows), model.decision_function(X_test), atol=1e-3)
    np.testing.assert_allclose(rows @ other.coef_.T + other.intercept_, other.decision_function(rows), atol=1e-9)
    np.testing.assert_array_equal(other.decision_function(csr_array(rows)), other.decision_function(rows))
    assert other.result_.n_iter < 10
    raw = AmbiguousClassifier(standardize=False, max_iter=50, **settings).fit(X * FACTORS, bags)
    assert raw.model_.units is None and raw.result_.status == "max_iter"
    assert other.score(X * FACTORS, y.tolist()) > raw.score(X * FACTORS, y.tolist()) + 0.1


def test_bags_in_files_and_batches(tmp_path):
    bags = [{k} for k in y.tolist()]
    model = AmbiguousClassifier(random_state=0).partial_fit(X[:100] * FACTORS, bags[:100])
    units = model.model_.units
    model.partial_fit(X[100:] * FACTORS, bags[100:])
    assert model.model_.units is units
    model.save(tmp_path / "m")
    loaded = structsvm.load(tmp_path / "m")
    np.testing.assert_array_equal(loaded.decision_function(X_test), model.decision_function(X_test))
    np.testing.assert_array_equal(loaded.coef_, model.coef_)
    assert loaded.standardize is True


def kernel_data(n, seed):
    """Rows whose first two columns tell the class, beside eight of noise."""
    noise = np.random.default_rng(seed)
    rows = noise.normal(size=(n, 10))
    return rows, (np.hypot(rows[:, 0], rows[:, 1]) > 1.2).astype(int)


UNEQUAL = np.array([1.0, 1.0, *[0.2] * 8])  # the columns that tell in larger units: best left so
DROWNED = np.array([1.0, 1.0, *[30.0] * 8])


@pytest.mark.parametrize("kind", [LaRankClassifier, LaSVMClassifier], ids=lambda kind: kind.__name__)
def test_kernels_see_columns_in_their_units_where_that_helps(kind, tmp_path):
    (rows, labels), (fresh, truth) = kernel_data(400, 1), kernel_data(300, 2)
    usual = kind(random_state=0).fit(rows, labels)
    helped = kind(random_state=0).fit(rows * DROWNED, labels)
    model = helped.model_
    np.testing.assert_allclose(model.column_scale, (rows * DROWNED).std(axis=0))
    assert helped.score(fresh * DROWNED, truth) > usual.score(fresh, truth) - 0.06  # the choice is another one
    assert kind(gamma="scale", random_state=0).fit(rows * DROWNED, labels).score(fresh * DROWNED, truth) < 0.8
    np.testing.assert_array_equal(helped.support_vectors_, (rows * DROWNED)[helped.support_])
    helped.save(tmp_path / "m")
    loaded = structsvm.load(tmp_path / "m")
    for form in (fresh * DROWNED, csr_array(fresh * DROWNED)):
        np.testing.assert_array_equal(loaded.decision_function(form), helped.decision_function(fresh * DROWNED))
    scale = model.column_scale
    before = helped.score(fresh * DROWNED, truth)
    helped.partial_fit(fresh[:100] * DROWNED, truth[:100])
    assert helped.model_.column_scale is scale and helped.score(fresh * DROWNED, truth) > before - 0.03
    for factors in (np.ones(10), UNEQUAL):
        assert kind(random_state=0).fit(rows * factors, labels).model_.column_scale is None
    assert kind(random_state=0).fit(csr_array(rows * DROWNED), labels).model_.column_scale is None


@pytest.mark.filterwarnings("ignore:KernelLaRank stopped:structsvm.ConvergenceWarning")
def test_kernels_of_a_width_that_is_given_see_columns_as_they_came():
    rows, labels = kernel_data(100, 1)
    for given in ({"gamma": 0.1}, {"gamma": "scale"}, {"kernel": "poly"}, {"kernel": "linear"}):
        assert LaRankClassifier(C=1.0, random_state=0, **given).fit(rows * DROWNED, labels).model_.column_scale is None
    assert LaRankClassifier(random_state=0).partial_fit(rows * DROWNED, labels).model_.column_scale is None
    assert LaRankClassifier(random_state=0).fit(rows[:15] * DROWNED, labels[:15]).model_.column_scale is None


@pytest.mark.parametrize("estimator", [Ranker(C=0.1), MultivariateClassifier("roc_area"), MultivariateClassifier("f1")])
def test_scores_of_rows(estimator, tmp_path):
    """Whatever the units; what is stored and shown is of the columns given."""
    settings = {"qid": np.arange(300) // 10} if isinstance(estimator, Ranker) else {}
    truth = (X[:, 0] + X[:, 1] > 0.5).astype(int)
    model, other = (clone(estimator).set_params(random_state=0).fit(X * by, truth, **settings) for by in (1.0, FACTORS))
    rows = X_test * FACTORS
    found = other.predict(rows) if settings else other.decision_function(rows)
    wanted = model.predict(X_test) if settings else model.decision_function(X_test)
    assert np.corrcoef(found, wanted)[0, 1] > 0.999
    np.testing.assert_allclose(
        rows @ other.coef_.ravel() + getattr(other, "intercept_", 0.0), found, rtol=1e-9, atol=1e-9
    )
    other.save(tmp_path / "m")
    loaded = structsvm.load(tmp_path / "m")
    np.testing.assert_array_equal(loaded.coef_, other.coef_)
    assert loaded.model_.units is not None
    raw = clone(estimator).set_params(standardize=False, random_state=0).fit(X, truth, **settings)
    assert raw.model_.units is None


@pytest.mark.parametrize("interactions", ["none", "full"])
def test_sets_of_labels(interactions, tmp_path):
    sets = np.column_stack([X[:, 0] > 0.0, X[:, 1] > 0.3, X[:, 0] + X[:, 1] > 0.5]).astype(int)
    settings = {"C": 10.0, "interactions": interactions, "random_state": 0}
    model, other = (MultilabelClassifier(**settings).fit(X * by, sets) for by in (1.0, FACTORS))
    rows = X_test * FACTORS
    assert np.mean(other.predict(rows) == model.predict(X_test)) > 0.99
    if interactions == "none":
        found = 2.0 * (rows @ other.coef_.T + other.intercept_)
        np.testing.assert_allclose(
            found / other.decision_function(rows), found[0, 0] / other.decision_function(rows)[0, 0]
        )
    units = other.model_.units
    values = units.applied(DenseRows(X * FACTORS)).values
    np.testing.assert_allclose(np.mean(np.sum(values**2, axis=1)), 1.0)
    other.save(tmp_path / "m")
    loaded = structsvm.load(tmp_path / "m")
    np.testing.assert_array_equal(loaded.predict(csr_array(rows)), other.predict(rows))
    np.testing.assert_array_equal(loaded.coef_, other.coef_)
    raw = MultilabelClassifier(standardize=False, **settings).fit(X, sets)
    assert raw.model_.units is None
