"""Batches of a stream of sparse rows: trained on the weights that they touch, in place, at a cost of their own size."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

from structsvm import LaRank
from structsvm.tasks import AmbiguousClassifier, TaxonomyClassifier
from structsvm.tasks.ambiguous.model import AmbiguousModel, BaggedRows
from structsvm.tasks.common.training import Job, start
from structsvm.tasks.taxonomy.linear import LinearTaxonomyModel

D = 60
PARENTS = {"cat": "animal", "dog": "animal", "oak": "plant", "elm": "plant", "animal": "life", "plant": "life"}
TAXONOMY = [(parent, child) for child, parent in PARENTS.items()]
LEAVES = ["cat", "dog", "elm", "oak"]
rng = np.random.default_rng(0)


def rows(n, d=D):
    label_ids = np.arange(n) % 4
    columns = np.column_stack([label_ids, rng.integers(4, d, (n, 5))])
    X = sp.csr_array((rng.uniform(0.1, 1.0, columns.size), (np.repeat(np.arange(n), 6), columns.ravel())), (n, d))
    return X, label_ids


BATCHES = [rows(5) for _ in range(4)]
CASES = {
    "taxonomy": (TaxonomyClassifier, {}),
    "taxonomy, few weights": (TaxonomyClassifier, {"max_weights": 200}),
    "taxonomy, lists alone": (TaxonomyClassifier, {"max_weights": 1}),
    "taxonomy, log loss": (TaxonomyClassifier, {"loss": "log"}),
    "taxonomy, perceptron": (TaxonomyClassifier, {"solver": "perceptron", "C": None}),
    "taxonomy, no intercept": (TaxonomyClassifier, {"fit_intercept": False}),
    **{f"bags, {loss}": (AmbiguousClassifier, {"loss": loss}) for loss in ("pairwise", "mean", "max", "log")},
}


def outputs(kind, label_ids):
    if kind is TaxonomyClassifier:
        return [LEAVES[k] for k in label_ids]
    return [{LEAVES[k], LEAVES[(k + i) % 3]} for i, k in enumerate(label_ids)]


def estimator(case):
    kind, params = CASES[case]
    own = {"taxonomy": TAXONOMY} if kind is TaxonomyClassifier else {}
    return kind(**own, **({"C": 0.3, "random_state": 0} | params))


def stream(case):
    """After single rows, whose order is one; with more of them, equal rows are put together in one that differs."""
    model = estimator(case)
    model.partial_fit(*first_of(case), classes=LEAVES)
    for X, label_ids in BATCHES[1:]:
        for i in range(len(label_ids)):
            model.partial_fit(X[[i]], outputs(type(model), label_ids[[i]]))
    return model


def first_of(case):
    X, label_ids = BATCHES[0]
    return X, outputs(CASES[case][0], label_ids)


@pytest.mark.parametrize("case", CASES)
def test_weights_are_those_of_training_on_all_of_them(case, monkeypatch):
    part = stream(case)
    for kind in (LinearTaxonomyModel, AmbiguousModel):
        monkeypatch.setattr(kind, "narrows", False)
    whole = stream(case)
    np.testing.assert_allclose(part._model.weights, whole._model.weights, rtol=0, atol=1e-6)
    assert part._model.weights.any()
    assert part.result_.primal == pytest.approx(whole.result_.primal, rel=1e-6, nan_ok=True)
    assert part.temperature_ == pytest.approx(whole.temperature_, rel=1e-5) if hasattr(part, "temperature_") else True
    np.testing.assert_array_equal(part.predict(BATCHES[0][0]), whole.predict(BATCHES[0][0]))


@pytest.mark.parametrize("kind", [TaxonomyClassifier, AmbiguousClassifier])
def test_a_batch_allocates_what_it_needs(kind):
    X, label_ids = rows(20, 1 << 18)
    own = {"taxonomy": TAXONOMY} if kind is TaxonomyClassifier else {"loss": "pairwise"}
    model = kind(C=0.3, random_state=0, **own).partial_fit(X, outputs(kind, label_ids), classes=LEAVES)
    weights, n = model._model.weights, model._model.weights.nbytes
    tracemalloc.start()
    model.partial_fit(X[:3], outputs(kind, label_ids[:3]))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < n / 8
    assert model._model.weights is weights  # in place


@pytest.mark.parametrize("case", ["taxonomy", "taxonomy, few weights", "bags, pairwise"])
def test_only_touched_weights_change(case):
    model = estimator(case).partial_fit(*first_of(case), classes=LEAVES)
    before = model._model.weights.copy()
    X = sp.csr_array(([1.0, 1.0], ([0, 0], [0, 7])), shape=(1, D))
    model.partial_fit(X, outputs(type(model), np.array([2])))
    changed = (model._model.weights != before).sum()
    assert 0 < changed <= 3 * model._model.oracle.n_features / D  # two features and the intercept


def test_callbacks_see_all_weights():
    model = stream("bags, pairwise")._model
    job = Job(model, BaggedRows(model.oracle.rows(sp.csr_array((1, D + 1))), [{0}]), LaRank(), passes=1)
    start(job)

    class Run:
        weights = np.arange(float(job.learner.oracle.n_features))
        problem = job.problem

    seen = job.snapshot(Run)
    assert seen.weights.shape == model.weights.shape
    np.testing.assert_array_equal(seen.table[job.rows].ravel(), Run.weights)
