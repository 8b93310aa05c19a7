"""A column a thousand times the size of the others is named, and does not drown them where it is in units."""

import warnings

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import is_classifier
from sklearn.utils import get_tags

import structsvm
from structsvm import tasks
from structsvm.tasks import registry

OF_ROWS = {
    entry.name: kind
    for entry in registry.ESTIMATORS
    if is_classifier((kind := getattr(tasks, entry.name))()) and get_tags(kind()).input_tags.two_d_array
}
SWITCHES = {name: kind for name, kind in OF_ROWS.items() if "standardize" in kind().get_params()}
own = np.random.default_rng(1)
X = own.normal(size=(150, 4))
y = np.where(X[:, 0] > 0.0, "p", "q")
X[:, 1] = 1.7e9 + 1e4 * own.normal(size=150)
FORMS = {"numbers": csr_array(X), "with words": csr_array(np.c_[X, np.eye(150)])}


def fitted(name, X, **params):
    """The model, the share of rows that it has right, and what is said of sizes."""
    targets = [[label] for label in y.tolist()] if name in ("AmbiguousClassifier", "MultilabelClassifier") else y
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model = OF_ROWS[name](**params).fit(X, targets)
        found = [label[0] if isinstance(label, tuple) and label else label for label in model.predict(X)]
    texts = [text for one in said if (text := str(one.message)).startswith("numbers a thousand times")]
    return model, np.mean([str(one) == other for one, other in zip(found, y.tolist(), strict=True)]), texts


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", OF_ROWS)
def test_sparse_rows_with_a_date(name, form, tmp_path):
    model, right, said = fitted(name, FORMS[form])
    assert len(said) == 1 and "1' (1.7e+09)" in said[0]
    if name not in SWITCHES:
        assert "drown these: scale them" in said[0]
        return
    assert right > 0.9 and "divided by their size" in said[0]
    model.save(tmp_path / "m")
    assert repr(structsvm.load(tmp_path / "m").predict(FORMS[form])) == repr(model.predict(FORMS[form]))
    if hasattr(model, "decision_function") and hasattr(model, "intercept_") and name != "MultilabelClassifier":
        scores = np.asarray(FORMS[form] @ model.coef_.T) + model.intercept_
        scores = scores[:, -1] - (scores[:, 0] if scores.shape[1] == 2 else 0.0)
        found = model.decision_function(FORMS[form])
        np.testing.assert_allclose(scores, found if found.ndim == 1 else found[:, 1] - found[:, 0], atol=1e-3)


@pytest.mark.parametrize("name", SWITCHES)
def test_columns_as_they_are(name):
    said = fitted(name, X, standardize=False)[2]
    assert len(said) == 1 and "drown these: scale them" in said[0]


@pytest.mark.parametrize("name", OF_ROWS)
@pytest.mark.parametrize("form", ["dense", "counts", "shares"])
def test_ordinary_columns_are_not_named(name, form):
    counts = own.zipf(1.7, (150, 30)).clip(max=500) * (own.random((150, 30)) < 0.2)
    shares = counts / np.maximum(np.linalg.norm(counts, axis=1, keepdims=True), 1)
    rows = {"dense": X[:, [0, 2, 3]], "counts": csr_array(counts.astype(float)), "shares": csr_array(shares)}[form]
    assert not fitted(name, rows)[2]


@pytest.mark.parametrize("name", sorted(set(OF_ROWS) - set(SWITCHES)))
def test_kernels_are_not_said_to_be_constant_where_columns_are_scaled(name):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model = OF_ROWS[name]().fit(X, y)
    if model.model_.column_scale is not None:
        assert model.score(X, y) > 0.9 and not any("for all rows tried" in str(one.message) for one in said)
