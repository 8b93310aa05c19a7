"""Numbers that compiled code cannot hold are a ValueError that names the parameter."""

import re
import warnings
from functools import cache

import numpy as np
import pandas as pd
import pytest
from cases import CASES
from scipy.sparse import csr_array, lil_array

from structsvm import AdviceWarning, ConvergenceWarning, FrankWolfe, LaRank
from structsvm.structures.substitution_matrix import SubstitutionMatrix
from structsvm.tasks import (
    GraphLabeler,
    KernelFunction,
    LaRankClassifier,
    MultivariateClassifier,
    PairwiseClassifier,
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


@pytest.mark.parametrize("params", [{"prior": ("", 10**400, None)}, {"band": (10**400, 1)}, {"window": 2**63}], ids=str)
def test_aligners(params):
    with pytest.raises(ValueError, match=f"The '{next(iter(params))}' parameter of"):
        SequenceAligner(**params).fit(*PAIRS)


@pytest.mark.parametrize("cost", [10**400, "x", None, float("nan"), float("inf")])
def test_costs(cost):
    matrix = SubstitutionMatrix("ACDEFGHIKLMNPQRSTVWY", [[0.0] * 20] * 20)
    with pytest.raises(ValueError, match="gap_open must be a finite number"):
        SequenceAligner.from_costs(matrix, cost)


ROWS = {name: case for name, case in CASES.items() if case.has_rows and "sizes of numbers" not in case.apart}
# Whose inputs have several rows.
BLOCKS = {name: case for name, case in CASES.items() if case.has_columns and not case.has_rows}
FIRST = {case.kind: name for name, case in reversed(ROWS.items())}
forms = pytest.mark.parametrize("form", [np.asarray, csr_array], ids=["dense", "sparse"])

# By the rooms of tasks: what is too great for float32, and for kernels.
TOO_GREAT = {"taxonomy": "too large for dtype", "kernel": "squares of row 0 .* more than float64 can hold; scale the"}
warned = pytest.mark.filterwarnings("ignore:(overflow|invalid value) encountered", "ignore::structsvm.AdviceWarning")


@forms
@warned
@pytest.mark.parametrize("name", ROWS)
def test_features_whose_squares_overflow(name, form):
    """They would leave weights at 0, and say so by nothing but a gap."""
    case, X = ROWS[name], ROWS[name].X.copy()
    X[0, 1] = 1e160
    wanted = TOO_GREAT.get(case.room, "squares of X(, which)? overflow[;:] scale the features down")
    with pytest.raises(ValueError, match=wanted):
        case.make().fit(form(X), case.y, **case.about(len(X)))


@forms
@warned
@pytest.mark.parametrize("name", FIRST.values())
def test_sizes_that_no_float_holds(name, form):
    """With enough rows to choose C and units by: at chance, or an error that asked for the opposite."""
    case = ROWS[name]
    with pytest.raises(ValueError, match=r"overflow.*[;:] scale the features down|too large for dtype"):
        case.kind().fit(form(case.X * 1e160), case.y, **case.about(len(case.X)))
    with pytest.raises(ValueError, match=r"underflow.*; scale the features up"):
        case.kind().fit(form(case.X * 1e-160), case.y, **case.about(len(case.X)))


@warned
@pytest.mark.filterwarnings("ignore::structsvm.ConvergenceWarning")
@pytest.mark.parametrize("name", BLOCKS)
def test_sizes_of_blocks_of_rows(name):
    """At chance, without a word, for what is too small."""
    case, ones = BLOCKS[name], np.ones(BLOCKS[name].n_columns)
    for factors in (1e160 * ones, np.r_[1e160, ones[1:]]):
        with pytest.raises(ValueError, match=r"overflow; scale the features down|must be finite float32 numbers"):
            case.fit_on(case.scaled(factors), case.y)
    with pytest.raises(ValueError, match=r"underflow.*; scale the features up"):
        case.fit_on(case.scaled(1e-160 * ones), case.y)
    model = case.trained
    assert len(model.predict(case.scaled(1e-160 * ones))) == len(case.X)  # as zeros would be


@cache
def usual_score(name, form):
    """The score where numbers have their own size."""
    case, about = ROWS[name], ROWS[name].about(len(ROWS[name].X))
    with warnings.catch_warnings():
        for kind in (AdviceWarning, ConvergenceWarning):
            warnings.simplefilter("ignore", kind)
        return case.make().fit(form(case.X), case.y, **about).score(form(case.X), case.y, **about)


SAYS = r"underflow|alike to it: scale the features up|convex hulls"


@forms
@pytest.mark.filterwarnings("ignore::structsvm.ConvergenceWarning")
@pytest.mark.parametrize("size", [1e100, 1e39, 1e30, 1e-20, 1e-30, 1e-35, 1e-60])
@pytest.mark.parametrize("name", FIRST.values())
def test_sizes_are_learnt_from_or_the_way_out_is_said(name, size, form):
    """NumPy warns of nothing: all warnings but the package's own are errors."""
    case = ROWS[name]
    about, model = case.about(len(case.X)), case.make()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("error")
        for kind in (AdviceWarning, ConvergenceWarning):
            warnings.simplefilter("always", kind)
        score, error = None, ""
        try:
            score = model.fit(form(case.X * size), case.y, **about).score(form(case.X * size), case.y, **about)
        except ValueError as wrong:
            error = str(wrong)
    if score is None:
        wanted = "too large|overflow.* down" if size > 1.0 else "underflow.*; scale the features up"
        assert re.search(wanted, error)
    else:
        wanted = SAYS if size < 1.0 else "far from 0|gap of"
        assert score > usual_score(name, form) - 0.25 or any(re.search(wanted, str(one.message)) for one in said)


@pytest.mark.parametrize("form", [np.asarray, csr_array, lil_array], ids=["dense", "sparse", "lists"])
def test_sequences_of_numbers_that_float32_does_not_hold(form):
    rows, y = np.random.default_rng(0).normal(size=(20, 3, 4)), [["a", "b", "a"]] * 20
    labeler = SequenceLabeler(C=1.0, loss="hamming", max_iter=1, tol=1.0)
    with pytest.raises(ValueError, match="the values of X underflow float32; scale the features up"):
        labeler.fit([form(1e-60 * x) for x in rows], y)
    some = [form(x if k == 19 else 1e-60 * x) for k, x in enumerate(rows)]  # the others are zeros there
    assert len(labeler.fit(some, y).predict(some[:3])) == 3
    zeros = [form(0.0 * x) for x in rows]
    assert len(labeler.fit(zeros, y).predict(zeros)) == 20


@forms
@pytest.mark.parametrize(
    ("model", "size"),
    [
        (TaxonomyClassifier(), 1e-35),
        (LaRankClassifier(), 1e-200),
        (LaRankClassifier(gamma="scale", C=1.0), 1e160),
        (LaRankClassifier(gamma="scale", C=1.0), 1e-160),
    ],
    ids=str,
)
def test_sizes_that_float32_and_a_width_do_not_hold(model, size, form):
    X = np.random.default_rng(0).normal(size=(60, 4))
    way = "overflow.*; scale the features down" if size > 1.0 else "underflow.*; scale the features up"
    with pytest.raises(ValueError, match=way):
        model.fit(form(X * size), X[:, 0] > 0.0)


def test_sizes_at_which_c_is_too_great_for_the_dual():
    X = np.random.default_rng(0).normal(size=(60, 4))
    with pytest.raises(ValueError, match="the squares of X underflow float32; scale the features up"):
        MultivariateClassifier().fit(csr_array(X * 1e-30), X[:, 0] > 0.0)
    assert MultivariateClassifier().fit(X * 1e-25, X[:, 0] > 0.0).score(X * 1e-25, X[:, 0] > 0.0) > 0.95


@pytest.mark.parametrize(
    ("model", "offset", "words"),
    [
        (TaxonomyClassifier(C=1.0), 1e6, "column 'a' has values that differ by .* others likewise: float32"),
        (
            TaxonomyClassifier(C=1.0, kernel=KernelFunction("rbf", gamma=0.3)),
            2e5,
            "column 'a' has values that differ by",
        ),
        (LaRankClassifier(), 1e8, "so far from 0.*subtract the means of columns"),
        (PairwiseClassifier(C=1.0, gamma="scale"), 1e8, "so far from 0.*subtract the means of columns"),
    ],
    ids=str,
)
@pytest.mark.filterwarnings("error")
def test_columns_far_from_0_are_warned_of(model, offset, words):
    X = np.random.default_rng(0).normal(size=(60, 4))
    frame = pd.DataFrame(X, columns=list("abcd"))
    model.set_params(max_iter=1000, tol=1e-2).fit(frame, X[:, 0] > 0.0)
    model.fit(frame + 1e3, X[:, 0] > 0.0)
    with pytest.warns(AdviceWarning, match=words):
        model.fit(frame + offset, X[:, 0] > 0.0)


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
    with pytest.raises(
        ValueError, match=r"'n_labels' parameter of GraphOracle must be an int in the range \[1, 4096\]"
    ):
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
