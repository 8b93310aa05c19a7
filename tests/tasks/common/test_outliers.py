"""A few huge values of a column of numbers do not cost the others, whatever holds the columns."""

import warnings

import numpy as np
import pytest
from cases import CASES, CHOICES, rows_of, taking_part
from scipy.sparse import csr_array
from sklearn.base import is_classifier
from sklearn.utils import get_tags

import structsvm
from structsvm import AdviceWarning, tasks
from structsvm.features.dense import DenseRows
from structsvm.features.inputs.outliers import OUTLIER, limits_of_columns, usual_of
from structsvm.tasks import GraphLabeler, ItemOrderer, Ranker, SequenceLabeler, TokenFeatures, registry
from structsvm.tasks.common.selection.search import LEAST_EXAMPLES
from structsvm.tasks.common.units import Units

rng = np.random.default_rng(0)
# Fewer rows are used as given, and kernels see columns as they came.
WITH_COLUMNS = {
    name: case
    for name, case in (CASES | {f"{name}, chosen": case for name, case in CHOICES.items()}).items()
    if case.has_columns and sum(len(np.atleast_2d(rows_of(x))) for x in case.X) >= LEAST_EXAMPLES
    if not ("kernel" in case.params or case.room == "kernel")
}


def with_value(X, value, row=0):
    """A copy of the rows of examples, as cases have them, with this value in one column of one row."""
    if isinstance(X, np.ndarray):
        X = X.copy()
        X[row, 0] = value
        return X
    first = X[0]
    rows = with_value(first[0] if isinstance(first, tuple) else first, value, row)
    return [(rows, *first[1:]) if isinstance(first, tuple) else rows, *X[1:]]


def agreement(one, other):
    """The share of equal predictions; of scores, their correlation."""
    if isinstance(one, np.ndarray) and one.dtype.kind == "f":
        return np.corrcoef(one, other)[0, 1]
    pairs = [(np.asarray(a), np.asarray(b)) for a, b in zip(one, other, strict=True)]
    return np.mean([a.shape == b.shape and np.mean(a == b) for a, b in pairs])


@taking_part("units", WITH_COLUMNS)
@pytest.mark.parametrize("value", [1e30, -1e30], ids=["high", "low"])
def test_one_huge_value_leaves_the_rest(case, value, tmp_path):
    """The others' predictions are those of the model without it, of the estimator and of its file; and it is said."""
    plain = case.trained
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model = case.fit_on(with_value(case.X, value), case.y)
    assert any("values of up to 1e+30" in str(one.message) for one in said)
    told, found = (one.score(case.X, case.y, **case.about(len(case.X))) for one in (plain, model))
    assert found > told - 0.1
    rows = with_value(case.X, value, 1)  # it may come again
    found = model.predict(rows)
    assert agreement(model.predict(case.X), found) > 0.85
    model.save(tmp_path / "m")
    assert repr(structsvm.load(tmp_path / "m", **case.load).predict(rows)) == repr(found)


@taking_part("units", WITH_COLUMNS)
def test_dates_leave_the_rest(case):
    """Columns of seconds since 1970."""
    far = np.zeros(case.n_columns)
    far[0] = 1.7e9
    factors = np.ones(case.n_columns)
    factors[0] = 1e6
    plain = case.trained
    X = case.scaled(factors)
    X = [(x[0] + far, *x[1:]) if isinstance(x, tuple) else x + far for x in X] if isinstance(X, list) else X + far
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AdviceWarning)
        found = case.fit_on(X, case.y).predict(X)
    assert agreement(plain.predict(case.X), found) > 0.85


FORMS = {
    "arrays": lambda rows: rows,
    "lists": lambda rows: [list(part) for part in rows],
    "CSR": lambda rows: [csr_array(part) for part in rows],
    "many zeros": lambda rows: [csr_array(np.where(np.abs(part) > 1.0, part, 0.0)) for part in rows],
    "dicts": lambda rows: [[{f"x{j}": v for j, v in enumerate(row)} for row in part.tolist()] for part in rows],
    "vectors": lambda rows: [[{"v": row} for row in part] for part in rows],
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("bigrams", [None, "x0"], ids=["", "bigrams"])
def test_every_form_of_numbers(form, bigrams):
    if bigrams and form != "dicts":
        return
    rows = [rng.normal(size=(5, 4)) for _ in range(60)]
    y = [np.where(part[:, 0] + part[:, 1] > 0.0, "a", "b").tolist() for part in rows]
    plain = SequenceLabeler(C=1.0, loss="hamming", random_state=0).fit(FORMS[form](rows), y)
    told = plain.score(FORMS[form](rows), y)
    rows[3] = rows[3].copy()
    rows[3][2, 0] = 1e30
    X = FORMS[form](rows)
    features = TokenFeatures(bigrams=bigrams) if bigrams else None
    with pytest.warns(AdviceWarning, match="values of up to 1e"):
        model = SequenceLabeler(C=1.0, loss="hamming", features=features, random_state=0).fit(X, y)
    assert model.score(X, y) > told - 0.03


def test_edges():
    X = [(rng.normal(size=(4, 2)), [(0, 1), (1, 2), (2, 3)], rng.normal(size=(3, 2))) for _ in range(40)]
    y = [np.where(nodes[:, 0] > 0.0, "a", "b").tolist() for nodes, _, _ in X]
    for params in ({}, {"interactions": "associative"}):
        plain = GraphLabeler(C=1.0, random_state=0, **params).fit(X, y)
        X[0][2][0, 0] = 1e30
        with pytest.warns(AdviceWarning, match="1e.30"):
            model = GraphLabeler(C=1.0, random_state=0, **params).fit(X, y)
        X[0][2][0, 0] = 0.0
        assert (model.model_.edge_units.scale < 100.0).all()
        assert np.mean(np.concatenate(model.predict(X)) == np.concatenate(plain.predict(X))) > 0.95


def test_pairs_of_items():
    X = [(rng.normal(size=(5, 2)), rng.normal(size=(5, 5, 1))) for _ in range(40)]
    y = [np.argsort(-rows[:, 0]) for rows, _ in X]
    X[0][1][0, 1] = 1e30
    with pytest.warns(AdviceWarning, match="1e.30"):
        model = ItemOrderer(C=1.0, random_state=0).fit(X, y)
    assert model.score(X[1:], y[1:]) > 0.9


def test_limits():
    """By hand: what lies a thousand times as far from the median as nine of ten do, or of those that differ."""
    values = np.zeros((100, 6))
    values[:, :2] = rng.normal(size=(100, 2))
    values[0, 0] = 1e30
    values[:, 2] = 1.7e9 + values[:, 1]
    values[5, 2] = -1e30
    values[:20, 3] = 1.0
    values[0, 3] = 1e9
    values[0, 4] = 1e9  # alone, it is a mark
    values[:, 5] = 10.0 ** rng.uniform(0.0, 2.5, 100)  # wide, and without outliers
    with pytest.warns(AdviceWarning) as said:
        low, high = limits_of_columns(values)
    assert [str(one.message).split(" has")[0] for one in said] == ["feature '0'", "feature '2'", "feature '3'"]
    np.testing.assert_array_equal(high[[0, 2, 3]], [values[1:, 0].max(), values[:, 2].max(), 1.0])
    assert low[2] > 1.6e9 and (high[[1, 4, 5]] == np.finfo(float).max).all() and low[0] == values[:, 0].min()
    with pytest.warns(AdviceWarning):
        units = Units.of_rows(DenseRows(values, has_intercept=True))
    assert (units.scale[[0, 2]] < 2.0).all() and np.abs(units.applied(DenseRows(values)).values).max() < 20.0
    assert limits_of_columns(values[:, [1, 4, 5]]) is None and limits_of_columns(values[:0]) is None
    np.testing.assert_array_equal(
        usual_of(np.array([[0.0, 1.0, 0.0], [0.0, 2.0, 0.0], [5.0, 3.0, 0.0]])), [5.0, 2.0, 0.0]
    )
    assert OUTLIER == 1000.0


def test_rows_of_many_are_sampled():
    """A sample tells which columns are looked at, and finds what few rows have."""
    values = rng.normal(size=(20000, 3)).astype(np.float32)
    values[12345, 1] = 1e20
    with pytest.warns(AdviceWarning, match="feature '1' has 1 values"):
        _, high = limits_of_columns(values)
    assert high[1] == np.delete(values[:, 1], 12345).max() and high.dtype == np.float32


def test_scores_of_a_ranker_are_cut_off_too():
    X = rng.normal(size=(200, 3))
    X[7, 0] = 1e30
    with pytest.warns(AdviceWarning, match="1e.30"):
        model = Ranker(C=0.1, random_state=0).fit(X, rng.integers(0, 3, 200), group=[10] * 20)
    assert np.isfinite(model.predict(X)).all() and np.abs(model.predict(X)).max() < 100.0


# Classifiers of rows; those without a switch are kernel machines, which see columns as they came.
OF_ROWS = {
    entry.name: kind
    for entry in registry.ESTIMATORS
    if is_classifier((kind := getattr(tasks, entry.name))()) and get_tags(kind()).input_tags.two_d_array
}


def sparse_rows(value=None, *, alone=False):
    """Rows that are mostly zeros, their labels, and maybe one huge value, beside others of its column or alone."""
    own = np.random.default_rng(1)
    X = np.round(own.random((80, 12)) * 9.0) * (own.random((80, 12)) < 0.2)
    y = np.where(X[:, 1] > X[:, 2], "a", "b")
    X[:, 0] *= not alone
    if value is not None:
        X[5, 0] = value
    return X, y


@pytest.mark.parametrize(("form", "alone"), [(csr_array, False), (csr_array, True), (np.asarray, False)])
@pytest.mark.parametrize("name", OF_ROWS)
def test_one_huge_value_of_sparse_rows(name, form, alone, tmp_path):
    """It is said by the column; models with limits are as good as without it, and so are their files."""
    estimator = OF_ROWS[name]()
    (X, y), (bad, _) = sparse_rows(alone=alone), sparse_rows(1e30, alone=alone)
    targets = [[label] for label in y.tolist()] if name == "MultilabelClassifier" else y
    told = estimator.fit(form(X), targets).score(form(X), targets)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        estimator.fit(form(bad), targets)
    assert any("feature '0' has 1 values of up to 1e+30" in str(one.message) for one in said)
    if "standardize" not in estimator.get_params():
        return
    assert estimator.score(form(X), targets) > told - 0.1
    before = [np.asarray(one).tolist() for one in estimator.predict(form(bad))]
    estimator.save(tmp_path / "m")
    after = type(estimator).load(tmp_path / "m").predict(csr_array(bad))
    assert before == [np.asarray(one).tolist() for one in after]


@pytest.mark.parametrize("kind", ["counts", "shares", "one-hot", "binary"])
def test_ordinary_sparse_rows_have_no_limits(kind):
    own = np.random.default_rng(0)
    counts = own.zipf(1.7, (400, 30)).clip(max=500) * (own.random((400, 30)) < 0.2)
    X = {
        "counts": counts,
        "shares": counts / np.maximum(np.linalg.norm(counts, axis=1, keepdims=True), 1),
        "one-hot": np.eye(30)[own.integers(0, 30, 400)],
        "binary": counts > 0,
    }[kind].astype(np.float64)
    assert Units.of_matrix(csr_array(X), has_intercept=True) is None
