"""Scores in a taxonomy against their definitions over sets."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import make_scorer
from taxonomy_reference import ReferenceTaxonomy, hierarchical_scores, random_edges

from structsvm import metrics
from structsvm.structures.taxonomy import Taxonomy


@st.composite
def predictions(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    edges = random_edges(rng, draw(st.integers(2, 9)), tree=draw(st.booleans()))
    taxonomy, n = Taxonomy(edges), draw(st.integers(1, 12))
    y_true, y_pred = rng.choice(taxonomy.nodes, (2, n))
    return taxonomy, ReferenceTaxonomy(edges), y_true.tolist(), y_pred.tolist(), rng.integers(1, 4, n)


@given(predictions())
def test_scores(case):
    taxonomy, reference, y_true, y_pred, counts = case
    for kind, metric in (("tree", metrics.tree_loss), ("path", metrics.path_loss)):
        losses = np.array([reference.loss(kind, t, p) for t, p in zip(y_true, y_pred, strict=True)])
        assert metric(y_true, y_pred, taxonomy) == pytest.approx(losses.mean())
        assert metric(np.array(y_true), np.array(y_pred), taxonomy.edges, sample_weight=counts) == pytest.approx(
            np.average(losses, weights=counts)
        )
    wanted = hierarchical_scores(reference, y_true, y_pred)
    assert metrics.hierarchical_scores(y_true, y_pred, taxonomy) == pytest.approx(wanted)
    copies = [np.repeat(y, counts).tolist() for y in (y_true, y_pred)]
    assert metrics.hierarchical_scores(y_true, y_pred, taxonomy, sample_weight=counts) == pytest.approx(
        hierarchical_scores(reference, *copies)
    )


def test_by_hand():
    paths = [["comp", "mac"], ["comp", "pc"], ["rec", "autos"]]
    scores = metrics.hierarchical_scores(["mac", "pc"], ["pc", "pc"], paths)
    assert scores == (0.75, 0.75, 0.75)
    assert metrics.hierarchical_scores(["mac"], ["autos"], paths) == (0.0, 0.0, 0.0)
    assert metrics.hierarchical_scores(["mac"], ["ROOT"], paths).precision == 0.0
    assert metrics.hierarchical_scores(["mac"], ["comp"], paths) == (1.0, 0.5, pytest.approx(2 / 3))
    assert metrics.tree_loss(["mac", "mac"], ["autos", "comp"], paths) == 1.5
    assert metrics.path_loss(["mac", "mac"], ["autos", "comp"], paths) == 2.5


def test_hiclass_finds_the_same():
    """Precision, recall and F1 of hiclass.metrics 5.0.8 for the same labels as paths."""
    paths = [["comp", "mac"], ["comp", "pc"], ["rec", "autos"], ["rec", "motor"], ["rec", "sport", "hockey"]]
    names = ["mac", "pc", "autos", "motor", "hockey", "comp", "sport", "rec"]
    y_true, y_pred = (
        [names[int(k)] for k in numbers]
        for numbers in ("6542200016574475544726503640656106040233", "3000054524633767357565537145643233570742")
    )
    found = metrics.hierarchical_scores(y_true, y_pred, paths)
    assert found == pytest.approx((0.4084507042253521, 0.3717948717948718, 0.389261744966443))


def test_as_scorer():
    class Always(ClassifierMixin, BaseEstimator):
        classes_ = ("mac", "pc")

        def predict(self, X):
            return ["pc"] * len(X)

    scorer = make_scorer(metrics.tree_loss, greater_is_better=False, taxonomy=[["comp", "mac"], ["comp", "pc"]])
    assert scorer(Always(), [[0], [0]], ["mac", "pc"]) == -0.5


def test_bad_input():
    paths = [["a", "b"], ["a", "c"]]
    for message, arguments, weight in (
        ("y_true has 1 labels and y_pred has 2", (["b"], ["b", "c"]), None),
        ("no labels to score", ([], []), None),
        ("'x' is no node of the taxonomy", (["b"], ["x"]), None),
        ("sample_weight must be 1 finite numbers", (["b"], ["b"]), [1.0, 2.0]),
        ("sample_weight must be 1 finite numbers", (["b"], ["b"]), [0.0]),
    ):
        for metric in (metrics.tree_loss, metrics.path_loss, metrics.hierarchical_scores):
            with pytest.raises(ValueError, match=message):
                metric(*arguments, paths, sample_weight=weight)
