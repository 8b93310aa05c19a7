"""Ranker: queries, solvers, streams, choices, bad input; real rankings."""

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.model_selection import GridSearchCV, GroupKFold

import structsvm
from structsvm import AdviceWarning, CuttingPlane, FrankWolfe, LaRank
from structsvm.datasets import make_rankings
from structsvm.metrics import ranking_scores
from structsvm.model_file import ModelFileError, read_model, write_model
from structsvm.tasks import MultivariateClassifier, Ranker

LOSSES = ["pairs", "map", "ndcg"]


def queries(seed=0, n=60, noise=0.5):
    """Rows, grades 0 to 3 and sizes of queries; each query adds a number of its own, which says nothing."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 12, n)
    X = rng.normal(size=(sizes.sum(), 5))
    s = X @ [1.0, 1.0, -0.5, 0.0, 0.0] + noise * rng.normal(size=len(X))
    X[:, 4] += np.repeat(rng.normal(size=n), sizes)
    return X, np.clip(np.round(s + 0.5), 0, 3), sizes


X, y, SIZES = queries()


@pytest.mark.parametrize("loss", LOSSES)
def test_solvers_and_forms_of_rows_agree(loss):
    qid = np.repeat([f"q{k}" for k in range(len(SIZES))], SIZES)
    primal = []
    for params, data, given in (
        ({"tol": 1e-3, "C": 0.3}, X, {"group": SIZES}),
        ({"solver": CuttingPlane(C=0.3, form="one_slack")}, sp.csr_array(X), {"qid": qid}),
        ({"solver": FrankWolfe(C=0.3, tol=1e-2, max_iter=1000, random_state=0)}, X.astype(np.float32), {"qid": qid}),
    ):
        model = Ranker(loss, **params).fit(data, y, **given)
        assert model.result_.status == "converged"
        primal.append(model.result_.primal)
    assert primal == pytest.approx([primal[0]] * 3, rel=0.011)


@pytest.mark.parametrize("loss", LOSSES)
def test_rankings_are_learnt(loss):
    test, grades, sizes = queries(1, 200)
    model = Ranker(loss, random_state=0).fit(X, y, group=SIZES)
    scores = ranking_scores(grades, model.predict(test), group=sizes)
    best = {"pairs": scores.pairs, "map": scores.map, "ndcg": scores.ndcg}[loss]
    assert model.score(test, grades, group=sizes) == pytest.approx(best)
    truth = ranking_scores(grades, test @ [1.0, 1.0, -0.5, 0.0, 0.0], group=sizes)
    assert best > {"pairs": truth.pairs, "map": truth.map, "ndcg": truth.ndcg}[loss] - 0.02
    assert model.validation_["metric"] == {"pairs": "ordered pairs", "map": "average precision", "ndcg": "NDCG"}[loss]
    assert model.validation_["n_held_out"] == len(SIZES)
    for solver in ("passive_aggressive", "perceptron"):
        params = {} if solver == "perceptron" else {"C": 0.3}
        other = Ranker(loss, solver=solver, random_state=0, **params).fit(X, y, group=SIZES)
        assert other.score(test, grades, group=sizes) > best - 0.05


def test_the_gap_is_small_beside_the_gain():
    """With a small C the primal is hardly below its value at w = 0, and any gap is small beside it."""
    X, grades, qid = make_rankings(60, random_state=0)
    for C in (1e-5, 1e-3, 0.1):
        scores = []
        for seed in range(3):
            model = Ranker(C=C, random_state=seed).fit(X, grades, qid=qid)
            result = model.result_
            assert result.status == "converged"
            at_zero = C * 60  # the hinge of a query at w = 0 is its largest loss, 1 at most
            assert result.gap <= 1.001e-3 * (at_zero - result.dual)
            scores.append(model.coef_)
        for other in scores[1:]:
            assert np.corrcoef(scores[0], other)[0, 1] > 0.995
    assert Ranker(C=0.1, max_iter=2, random_state=0).fit(X, grades, qid=qid).n_iter_ == 2
    solver = LaRank(C=0.1, random_state=0)
    Ranker(solver=solver).fit(X, grades, qid=qid)
    assert solver.usual_passes == 20 and "run_type" not in vars(solver)


def test_the_choice_hardly_depends_on_the_seed():
    """Three divisions of few queries choose C, and the least within 0.3 standard errors of the best."""
    X, grades, qid = make_rankings(100, 50, noise=2.0, random_state=5)
    test, right, of = make_rankings(600, 50, noise=2.0, random_state=6)
    scores = []
    for seed in range(4):
        model = Ranker(random_state=seed).fit(X, grades, qid=qid)
        table = model.validation_
        assert table["n_held_out"] == 100
        best = int(np.argmax(table["score"]))
        near = table["C"][np.abs(table["score"] - table["score"][best]) <= 0.3 * table["error"][best]]
        assert near.min() == model.C_
        scores.append(model.score(test, right, qid=of))
    assert np.std(scores) < 0.002


def test_pairs_of_ranks_are_those_of_a_machine_of_differences():
    """By hand: the mean hinge of pairs of each query."""
    model = Ranker("pairs", C=0.5, tol=1e-4, max_iter=1000, standardize=False, random_state=0).fit(X, y, group=SIZES)
    w, ends, total = model.coef_, np.cumsum(SIZES), 0.0
    for a, b in zip(ends - SIZES, ends, strict=True):
        s, grade = X[a:b] @ w, y[a:b]
        hinges = np.maximum(0.0, 1.0 - (s[:, None] - s))[grade[:, None] > grade]
        total += hinges.mean() if len(hinges) else 0.0
    assert model.result_.primal == pytest.approx(0.5 * w @ w + 0.5 * total)
    np.testing.assert_allclose(model.predict(X), X @ w)


def test_streams_and_weights():
    ends, rows = np.cumsum(SIZES), np.repeat(np.arange(len(SIZES)), SIZES)
    stream = Ranker("pairs", C=0.3, random_state=0)
    for a in range(0, 60, 20):
        part = slice(ends[a] - SIZES[a], ends[a + 19])
        stream.partial_fit(X[part], y[part], group=SIZES[a : a + 20])
    assert stream.score(X, y, group=SIZES) > 0.85
    with pytest.raises(ValueError, match="has no meaning here: grades"):
        stream.partial_fit(X, y, classes=[0, 1], group=SIZES)
    settings = {"C": 0.3, "tol": 1e-6, "max_iter": 3000, "random_state": 0}
    weight = np.arange(60) % 3
    copies = np.concatenate([np.flatnonzero(rows == q) for q in range(60) for _ in range(weight[q])])
    one = Ranker("pairs", **settings).fit(X, y, weight[rows], group=SIZES)
    two = Ranker("pairs", **settings).fit(X[copies], y[copies], group=np.repeat(SIZES, weight))
    np.testing.assert_allclose(one.coef_, two.coef_, atol=0.01)
    assert one.result_.primal == pytest.approx(two.result_.primal, rel=1e-5)
    assert one.score(X, y, weight[rows], group=SIZES) == pytest.approx(
        one.score(X[copies], y[copies], group=np.repeat(SIZES, weight))
    )
    with pytest.raises(ValueError, match="the same for all rows of a query"):
        one.fit(X, y, np.arange(len(y)), group=SIZES)


@pytest.mark.parametrize("grade", [0, 2])
def test_queries_that_say_nothing_change_nothing(grade):
    settings = {"C": 0.3, "tol": 1e-3, "random_state": 0, "standardize": False}
    one = Ranker("ndcg", **settings).fit(X, y, group=SIZES)
    others = np.random.default_rng(1).normal(size=(4, 5))
    more = np.concatenate([X, others]), np.concatenate([y, [grade] * 4])
    two = Ranker("ndcg", **settings).fit(*more, group=[*SIZES, 3, 1])
    assert two.result_.primal == pytest.approx(one.result_.primal, rel=2e-3)
    for loss in LOSSES:
        model = Ranker(loss, **settings).fit(X, y, group=SIZES)
        assert model.score(*more, group=[*SIZES, 3, 1]) == model.score(X, y, group=SIZES)
        assert np.isnan([model.score(X[:n], [grade] * n, group=[n]) for n in (1, 4)]).all()


def test_files(tmp_path):
    model = Ranker("ndcg", k=3, C=0.3, random_state=0).fit(X, y, group=SIZES)
    model.save(tmp_path / "m")
    loaded = structsvm.load(tmp_path / "m")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    assert loaded.score(X, y, group=SIZES) == model.score(X, y, group=SIZES)
    file = read_model(tmp_path / "m")
    for meta, arrays in (
        ({"loss": "f1"}, {}),
        ({"k": 0}, {}),
        ({"n_features_in": 6}, {}),
        ({}, {"weights": np.full(5, np.nan)}),
    ):
        write_model(tmp_path / "bad", "ranking", file.meta | meta, file.arrays | arrays)
        with pytest.raises(ModelFileError, match="bad"):
            structsvm.load(tmp_path / "bad")


@pytest.mark.parametrize("loss", LOSSES)
def test_rows_without_queries_are_refused(loss):
    """They would be ranked as one query: all rows against all others."""
    model, message = Ranker(loss, C=0.3, max_iter=2, random_state=0), r"queries are not known.*group=\[\d+\] says"
    for train in (model.fit, model.partial_fit):
        with pytest.raises(ValueError, match=message):
            train(X, y)
    with pytest.raises(ValueError, match=message):
        model.fit(X, y, group=SIZES).score(X, y)
    qid = np.repeat(np.arange(len(SIZES)), SIZES)
    search = GridSearchCV(model, {"C": [0.1, 1.0]}, cv=GroupKFold(3))
    with pytest.raises(ValueError, match=r"groups= of a search .* reaches no ranker: set_fit_request"):
        search.fit(X, y, groups=qid)
    with sklearn.config_context(enable_metadata_routing=True):
        search.estimator.set_fit_request(qid=True).set_score_request(qid=True)
        assert search.fit(X, y, groups=qid, qid=qid).best_score_ > 0.8


def test_bad_input():
    for params, grades, given, words in (
        ({"k": 3, "loss": "pairs"}, y, {"group": SIZES}, "'k' parameter belongs to loss='ndcg'. Got k=3, loss='pairs'"),
        ({"loss": "auc"}, y, {"group": SIZES}, "'loss' parameter of Ranker"),
        ({}, y, {"group": [3, 4]}, "group adds up to 7 rows, X has"),
        ({}, y, {"qid": np.arange(len(y)) % 2}, "query 0 begins in row 0 and again in row 2"),
        ({}, y, {"qid": [1, 2]}, r"qid has shape \(2,\)"),
        ({}, y, {"qid": [0.0, np.nan] * (len(y) // 2)}, "qid of row 1 is nan, which is no id"),
        ({}, np.ones(len(y)), {"group": SIZES}, "all rows have the same grade"),
        ({"loss": "map"}, y + 1.0, {"group": SIZES}, "all rows have the same grade"),
        ({"loss": "ndcg"}, y - 1.0, {"group": SIZES}, "from 0 to 50 for loss='ndcg'"),
        ({}, np.where(y > 2, np.nan, y), {"group": SIZES}, "NaN"),
        ({}, None, {}, "requires y"),
    ):
        with pytest.raises(ValueError, match=words):
            Ranker(**{"C": 1.0} | params).fit(X, grades, **given)
    with pytest.raises(ValueError, match="all rows have the same grade"):
        Ranker(C=1.0).fit(X[:1], y[:1], group=[1])
    with pytest.raises(ValueError, match="NaN"):
        Ranker(C=1.0).fit(np.where(X > 1.0, np.nan, X), y, group=SIZES)
    model = Ranker(C=1.0, random_state=0).fit(X, y, group=[len(y)])
    assert np.isnan(model.score(X[:4], [1, 0, 0, 0], group=[2, 2], sample_weight=[0, 0, 1, 1]))
    with pytest.raises(ValueError, match=r"X has 3 rows, y has \(2,\) grades"):
        model.score(X[:3], y[:2], group=[3])


@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize(("factor", "message"), [(1e160, "overflow; scale the features down"), (1e-160, "features up")])
def test_rows_whose_squares_are_no_numbers(factor, message, standardize):
    for rows in (X * factor, sp.csr_array(X * factor)):
        with pytest.raises(ValueError, match=f"the squares of X .*{message}"):
            Ranker(standardize=standardize).fit(rows, y, group=SIZES)
        with pytest.raises(ValueError, match=f"the squares of X .*{message}"):
            MultivariateClassifier(standardize=standardize).fit(rows, y > 0)
    assert Ranker(C=0.3, random_state=0).fit(X * 1e100, y, group=SIZES).score(X * 1e100, y, group=SIZES) > 0.8


@pytest.mark.parametrize("first", [0, 1])
def test_places_in_the_place_of_grades_are_asked_about(first):
    rng = np.random.default_rng(0)
    sizes = [4, 3, 5, 1, 2]
    places = np.concatenate([rng.permutation(n) for n in sizes]) + first
    rows = rng.normal(size=(len(places), 2))
    with pytest.warns(AdviceWarning, match=rf"each of the 5 queries of n rows has the grades {first} .. n.* once"):
        Ranker("pairs", C=1.0, random_state=0).fit(rows, places, group=sizes)
    for other in (np.minimum(places, 3), places + 2, np.where(places == places.max(), 7, places)):
        Ranker("pairs", C=1.0, random_state=0).fit(rows, other, group=sizes)  # warnings are errors


def test_marks_of_rows_that_were_not_judged():
    rows = np.random.default_rng(0).normal(size=(12, 2))
    grades = np.tile([0.0, 1.0, 2.0], 4)
    model = Ranker(loss="pairs", C=1.0, random_state=0).fit(rows, grades, group=[6, 6])
    for train in (model.fit, model.score):
        with pytest.raises(ValueError, match="y is -100 in 2 rows, the mark of labels that are not known"):
            train(rows, np.r_[-100, -100, grades[2:]], group=[6, 6])
        with pytest.warns(AdviceWarning, match="y is -1 in 1 rows, which is a grade below 0"):
            train(rows, np.r_[-1, grades[1:]], group=[6, 6])
    Ranker(loss="pairs", C=1.0).fit(rows, np.tile([-1.0, 1.0], 6), group=[6, 6])  # disliked and liked: no warning
    Ranker(loss="pairs", C=1.0).fit(rows, grades - 2.0, group=[6, 6])


def test_weight_on_queries_of_equal_grades_alone():
    rows = np.random.default_rng(0).normal(size=(12, 2))
    grades = np.r_[np.ones(6), np.tile([0.0, 1.0], 3)]
    with pytest.raises(ValueError, match="in each query whose weight is not 0 all rows have the same grade"):
        Ranker().fit(rows, grades, group=[6, 6], sample_weight=np.repeat([1.0, 0.0], 6))
    Ranker(C=1.0).fit(rows, grades, group=[6, 6], sample_weight=np.repeat([0.0, 1.0], 6))
