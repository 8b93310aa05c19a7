"""Numbers that compiled code cannot hold are a ValueError that names the parameter."""

import pytest

from structsvm import FrankWolfe, LaRank
from structsvm.structures.substitution_matrix import SubstitutionMatrix
from structsvm.tasks import LaRankClassifier, SequenceAligner

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
