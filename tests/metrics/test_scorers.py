"""Scorers of all kinds of outputs: each is its metric, of what the estimator predicts."""

import pickle

import numpy as np
import pytest
import sklearn
from sklearn.base import BaseEstimator
from sklearn.model_selection import GroupKFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from structsvm import metrics
from structsvm.datasets import make_rankings
from structsvm.structures.taxonomy import Taxonomy
from structsvm.structures.trees import parse_tree
from structsvm.tasks import Ranker

PATHS = [["comp", "mac"], ["comp", "pc"], ["rec", "autos"]]
TREES = [parse_tree(text) for text in ("(S (NP (D a) (N b)) (V c))", "(S (D a) (VP (N b) (V c)))")]
ARCS = [[(0, "root"), (1, "obj")], [(0, "root"), (1, "det")]], [[(0, "root"), (1, "nsubj")], [(2, "x"), (0, "root")]]
LABELS = [["B-X", "I-X", "O"], ["B-Y"]], [["B-X", "O", "O"], ["B-Y"]]
ROWS = [("AC-G", "ACTG")], [("ACG-", "ACTG")]
NODES = ["mac", "pc", "autos"], ["pc", "pc", "mac"]
MATCHINGS = [[0, 1, -1]], [[0, -1, 2]]
GRADES = [2, 0, 1, 1, 0], [0.1, 0.2, 0.0, 3.0, 2.0]
CASES = {
    "token_accuracy": (*LABELS, 0.75),
    "flat_f1": (*LABELS, metrics.flat_f1_score(*LABELS)),
    "flat_precision": (*LABELS, metrics.flat_precision_score(*LABELS)),
    "flat_recall": (*LABELS, metrics.flat_recall_score(*LABELS)),
    "record_accuracy": ([["a", "b"], ["a"]], [["a", "a"], ["a"]], 0.5),
    "field_f1": (*LABELS, 0.5),
    "chunk_f1": (*LABELS, 0.5),
    "chunk_precision": (*LABELS, 0.5),
    "chunk_recall": (*LABELS, 0.5),
    "bracket_f1": (TREES[:1], TREES[1:], 0.5),
    "uas": (*ARCS, 0.5),
    "las": (*ARCS, 0.25),
    "pair_f1": (*ROWS, 2 / 3),
    "q": (*ROWS, 2 / 3),
    "hierarchical_f1": (*NODES, 0.5),
    "hierarchical_precision": (*NODES, 0.5),
    "hierarchical_recall": (*NODES, 0.5),
    "tree_loss": (*NODES, -1.0),
    "path_loss": (*NODES, -2.0),
    "node_accuracy": ([["a", "b"], ["a", "a"]], [["a", "b"], ["b", "a"]], 0.75),
    "mean_jaccard": ([["a", "b"], ["a", "a"]], [["a", "b"], ["b", "a"]], (2 / 3 + 1 / 2) / 2),
    "meaning_f1": (["a(b)", "c"], ["a(b)", "d"], 0.5),
    "matching_f1": (*MATCHINGS, 0.5),
    "alignment_error_rate": (*MATCHINGS, -0.5),
    "ndcg": (*GRADES, None),
    "map": (*GRADES, None),
    "ordered_pairs": (*GRADES, None),
    "break_even_point": (["b", "b", "a", "a"], [0.0, 3.0, 1.0, -1.0], 0.5),
}


class Says(BaseEstimator):
    """Predicts what it was made with."""

    taxonomy_ = Taxonomy.from_paths(PATHS)
    classes_ = np.array(["a", "b"])
    _seen = ()  # labels of tokens and nodes are not looked at

    def __init__(self, predicted=None):
        self.predicted = self.fitted_ = predicted

    def fit(self, X, y):
        return self

    def predict(self, X):
        return self.predicted

    decision_function = predict


@pytest.mark.parametrize("name", metrics.SCORERS)
def test_is_its_metric(name):
    y, predicted, value = CASES[name]
    scorer, about = metrics.SCORERS[name], {}
    if value is None:
        about = {"qid": [1, 1, 1, 2, 2]}
        found = metrics.ranking_scores(y, predicted, **about)
        value = getattr(found, {"ordered_pairs": "pairs"}.get(name, name))
        assert scorer(Says(predicted), y, y, group=[len(y)]) != value
        with pytest.raises(ValueError, match="queries are not known"):
            scorer(Says(predicted), y, y)
    assert scorer(Says(predicted), y, y, **about) == pytest.approx(value)
    assert scorer(make_pipeline(FunctionTransformer(), Says(predicted)), y, y, **about) == pytest.approx(value)
    assert scorer(Says(y if name != "break_even_point" else [1, 1, 0, 0]), y, y, **about) == max(value, 1.0) * (
        value > 0
    )
    assert repr(scorer) == f"{name}_scorer" and getattr(metrics, repr(scorer)) is scorer
    assert pickle.loads(pickle.dumps(scorer)) == scorer
    with pytest.raises(TypeError, match=f"{name}_scorer takes no 'sample_weight'"):
        scorer(Says(predicted), y, y, sample_weight=np.ones(len(y)))


def test_queries_are_handed_on_in_cross_validation():
    X, y, qid = make_rankings(30, random_state=0)
    with sklearn.config_context(enable_metadata_routing=True):
        model = Ranker(C=0.01, random_state=0).set_fit_request(qid=True)
        scoring = {"ndcg": metrics.ndcg_scorer, "map": metrics.map_scorer}
        found = cross_validate(model, X, y, scoring=scoring, cv=GroupKFold(3), params={"qid": qid, "groups": qid})
    for k, (train, test) in enumerate(GroupKFold(3).split(X, y, qid)):
        scores = Ranker(C=0.01, random_state=0).fit(X[train], y[train], qid=qid[train]).predict(X[test])
        assert found["test_ndcg"][k] == metrics.ranking_scores(y[test], scores, qid=qid[test]).ndcg
