"""Weights of features with a linear kernel, for every kernel classifier: what scikit-learn's selectors ask for."""

import numpy as np
import pytest
from kernel_kinds import KINDS, machine
from scipy.sparse import csr_array
from sklearn.feature_selection import RFE, SelectFromModel

from structsvm.tasks import TaxonomyClassifier

rng = np.random.default_rng(0)
LABELS = rng.integers(0, 3, 90)
X = rng.normal(size=(90, 6)).astype(np.float32)
X[np.arange(90), LABELS] += 9.0


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_scores_are_those_of_the_weights(kind, is_sparse):
    rows = csr_array(X) if is_sparse else X
    for y in (LABELS > 0, *([] if kind._is_binary else [LABELS])):
        model = machine(kind, kernel="linear").fit(rows, y)
        scores = X @ model.coef_.T + model.intercept_
        if len(model.classes_) == 2:
            assert model.coef_.shape == (1, 6) and model.intercept_.shape == (1,)
            np.testing.assert_allclose(scores[:, 0], model.decision_function(rows), rtol=1e-4, atol=1e-4)
            continue
        assert model.coef_.shape == (3, 6)
        if kind.__name__ == "PairwiseClassifier":  # rows are of pairs, and the second class has the positive side
            for row, (k, m) in zip(scores.T, [(0, 1), (0, 2), (1, 2)], strict=True):
                assert np.mean((row > 0.0) == (y == m), where=np.isin(y, [k, m])) > 0.9
        else:
            np.testing.assert_allclose(scores, model.decision_function(rows), atol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_selection_of_features(kind):
    y = (LABELS == 0) if kind._is_binary else LABELS
    linear = machine(kind, kernel="linear")
    assert RFE(linear, n_features_to_select=1).fit(X, y).support_[:3].sum() == 1
    kept = SelectFromModel(linear).fit(X, y).get_support()
    assert kept[:3].any() and not kept[3:].any()


@pytest.mark.parametrize("kind", KINDS)
def test_other_kernels_have_none(kind):
    model = machine(kind, kernel="rbf").fit(X, LABELS > 0)
    assert not hasattr(model, "coef_")
    with pytest.raises(AttributeError, match="with kernel='linear' only"):
        _ = model._linear()


@pytest.mark.parametrize(
    "kind", [kind for kind in [*KINDS, TaxonomyClassifier] if kind().get_params().get("C") == "auto"]
)
def test_weights_are_of_columns_as_given(kind, tmp_path):
    """Where the kernel sees columns in units of their deviations, and from files."""
    rows = X * [1.0, 1e4, 1.0, 1e-2, 1.0, 1.0]
    model = kind(kernel="linear").fit(rows, LABELS > 0)
    machine = model.model_ if kind is not TaxonomyClassifier else model.model_.machine
    assert machine.column_scale is not None
    scores = rows @ model.coef_.T + getattr(model, "intercept_", 0.0)
    found = model.decision_function(rows)
    scores = scores[:, 0] if scores.shape[1] == 1 else scores[:, 1] - scores[:, 0]
    found = found if found.ndim == 1 else found[:, 1] - found[:, 0]
    np.testing.assert_allclose(scores, found, atol=1e-3 * np.abs(found).max())
    model.save(tmp_path / "m")
    np.testing.assert_array_equal(kind.load(tmp_path / "m").coef_, model.coef_)
