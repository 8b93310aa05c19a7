"""Numbers that compiled code cannot hold are a ValueError that names the parameter."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from structsvm import FrankWolfe, LaRank
from structsvm.structures.substitution_matrix import SubstitutionMatrix
from structsvm.tasks import (
    AmbiguousClassifier,
    GraphLabeler,
    LaRankClassifier,
    MultilabelClassifier,
    MultivariateClassifier,
    Ranker,
    SequenceAligner,
    SequenceLabeler,
    TaxonomyClassifier,
)

PAIRS = [("ACD", "AC")], [("ACD", "AC-")]


@pytest.mark.parametrize(
    ("solver", "name"),
    [
        (LaRank(C=10**400), "C"),
        (LaRank(max_iter=2**63), "max_iter"),
        (LaRank(n_reprocess=10**400), "n_reprocess"),
        (FrankWolfe(n_cached=2**31), "n_cached"),
    ],
)
def test_solvers(solver, name):
    with pytest.raises(ValueError, match=f"The '{name}' parameter of"):
        solver.validate()


def test_schedules():
    with pytest.raises(ValueError, match="'schedule' parameter"):
        LaRankClassifier(schedule=(10**400, 1)).fit([[0.0], [1.0]], [0, 1])


@pytest.mark.parametrize("params", [{"prior_gap_open": 10**400}, {"band": (10**400, 1)}, {"window": 2**63}], ids=str)
def test_aligners(params):
    with pytest.raises(ValueError, match=f"The '{next(iter(params))}' parameter of"):
        SequenceAligner(**params).fit(*PAIRS)


@pytest.mark.parametrize("cost", [10**400, "x", None, float("nan"), float("inf")])
def test_costs(cost):
    matrix = SubstitutionMatrix("ACDEFGHIKLMNPQRSTVWY", [[0.0] * 20] * 20)
    with pytest.raises(ValueError, match="gap_open must be a finite number"):
        SequenceAligner.from_costs(matrix, cost)


@pytest.mark.parametrize("kind", [np.asarray, csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize(
    ("model", "y"),
    [
        (Ranker("pairs", C=1.0), [0, 1, 2]),
        (Ranker("ndcg", C=1.0, solver="cutting_plane"), [0, 1, 2]),
        (MultivariateClassifier("f1", C=1.0), [0, 1, 1]),
        (MultilabelClassifier(C=1.0), [{0}, {1}, {0, 1}]),
        (AmbiguousClassifier(C=1.0), [{0}, {1}, {0, 1}]),
    ],
    ids=lambda v: type(v).__name__ if hasattr(v, "fit") else "y",
)
def test_features_whose_squares_overflow(model, y, kind):
    """They would leave weights at 0, and say so by nothing but a gap."""
    with pytest.raises(ValueError, match="the squares of X overflow; scale the features down"):
        model.fit(kind([[1.0, 1e160], [2.0, 1.0], [0.5, 3.0]]), y)


@pytest.mark.filterwarnings("ignore::structsvm.ConvergenceWarning")
@pytest.mark.parametrize("k", [0, -1, 1.5, "a", True, None], ids=str)
def test_how_many_best_are_wanted(k):
    X, y = [[("a", "b")] * 3] * 3, [["x", "y", "x"]] * 3
    points, labels = np.eye(3), ["a", "b", "c"]
    for model, inputs in (
        (SequenceLabeler(C=1.0, max_iter=1).fit(X, y), X),
        (SequenceLabeler(segments=True, C=1.0, max_iter=1).fit(X, [[(0, 2, "a"), (2, 3, "b")]] * 3), X),
        (TaxonomyClassifier(C=1.0, max_iter=1).fit(points, labels), points),
    ):
        with pytest.raises(ValueError, match="k must be an integer of at least 1, got"):
            model.predict_kbest(inputs, k)


def test_more_labels_than_a_table_of_pairs_holds():
    with pytest.raises(ValueError, match="'n_labels' parameter of GraphOracle must be an integer from 1 to 4096"):
        GraphLabeler(C=1.0).fit([(np.zeros((5000, 1)), [(0, 1)])], [np.arange(5000)])


def test_weights_that_are_counts():
    with pytest.raises(ValueError, match=r"sample_weight makes 3e\+18 rows of 3: more than 2\*\*31"):
        MultivariateClassifier(C=1.0).fit(np.eye(3), [0, 1, 1], sample_weight=[1e18] * 3)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ({"group": [2**62] * 4 + [3]}, "group adds up to 18446744073709551619 rows, X has 3"),
        ({"group": [2**63]}, "group adds up to 9223372036854775808 rows, X has 3"),
        ({"group": [[1], [2, 3]]}, "group must hold the number of rows of each query"),
        ({"qid": [{}, {}, {}]}, "qid of row 0 is {}, which is no id"),
        ({"qid": [[1], [2, 3], [4]]}, r"qid of row 0 is \[1\], which is no id"),
    ],
    ids=str,
)
def test_queries(query, message):
    with pytest.raises(ValueError, match=message):
        Ranker(C=1.0).fit(np.eye(3), [0, 1, 2], **query)
