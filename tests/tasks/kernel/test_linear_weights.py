"""Weights of features with a linear kernel, for every kernel classifier: what scikit-learn's selectors ask for."""

import numpy as np
import pytest
from kernel_kinds import KINDS, machine
from scipy.sparse import csr_array
from sklearn.feature_selection import RFE, SelectFromModel

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
