"""ItemOrderer: forms of X and y, what it learns, what it says of orders, and what it refuses."""

import itertools

import numpy as np
import ordering_reference as reference
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.special import expit

import structsvm
from structsvm import CuttingPlane, LatentSVM
from structsvm.datasets import make_orderings
from structsvm.tasks import ItemOrderer
from structsvm.tasks.ordering.model import OrderedSets

X, Y = make_orderings(200, 4, 2, noise=0.5, random_state=0)
X_TEST, Y_TEST = make_orderings(100, 4, 2, noise=0.5, random_state=1)
ROWS, ROWS_TEST = ([rows for rows, _ in sets] for sets in (X, X_TEST))
PARTLY = [[(y[0], y[-1])] if k % 3 == 0 else None if k % 3 == 1 else y for k, y in enumerate(Y)]
LONG = [np.random.default_rng(0).normal(size=(11, 3))] * 2
LONG_Y = [np.arange(11)] * 2


def fitted(X=X, y=Y, **params):
    return ItemOrderer(**{"C": 0.01, "random_state": 0} | params).fit(X, y)


def scores_of(model, x):
    """The scores of all orders, by the order."""
    weights, n = np.concatenate([model.coef_, model.pair_coef_]), len(x[0])
    return {tuple(y): weights @ reference.joint_feature(*x, y) for y in itertools.permutations(range(n))}


def test_the_best_order_by_the_weights():
    model = fitted()
    for x, found in zip(X_TEST, model.predict(X_TEST), strict=True):
        if len(found) <= 5:
            scores = scores_of(model, x)
            assert scores[tuple(found.tolist())] == pytest.approx(max(scores.values()), abs=1e-12)
    assert model.result_.inference == "exact" and model.n_features_in_ == 4


def test_pairs_say_what_items_do_not():
    both, alone = fitted(), fitted(ROWS)
    of_pairs = [(np.zeros((len(rows), 0)), P) for rows, P in X]
    assert alone.pair_coef_.shape == (0,) and fitted(of_pairs).coef_.shape == (0,)
    assert both.score(X_TEST, Y_TEST) > alone.score(ROWS_TEST, Y_TEST) + 0.02 > 0.85
    for rows, found in zip(ROWS_TEST, alone.predict(ROWS_TEST), strict=True):
        np.testing.assert_array_equal(found, np.argsort(-(rows @ alone.coef_)))


def test_forms_of_sets():
    model = fitted(ROWS)
    for form in (sp.csr_array, lambda rows: rows.tolist()):
        other = fitted(list(map(form, ROWS)))
        np.testing.assert_array_equal(other.coef_, model.coef_)
        for one, same in zip(model.predict(ROWS_TEST), other.predict(map(form, ROWS_TEST)), strict=True):
            np.testing.assert_array_equal(one, same)
    cube = np.random.default_rng(0).normal(size=(30, 4, 3))
    orders = np.argsort(-cube[:, :, 0], axis=1)
    assert fitted(cube, orders).score(cube, orders.tolist()) > 0.9


def test_units_of_columns_and_means_of_sets_make_no_difference():
    factors, pair_factors = 2.0 ** np.array([-9, 0, 8, 3]), 2.0 ** np.array([7, -5])
    model, other = fitted(), fitted([(rows * factors, P * pair_factors) for rows, P in X])
    np.testing.assert_array_equal(other.coef_ * factors, model.coef_)
    np.testing.assert_array_equal(other.pair_coef_ * pair_factors, model.pair_coef_)
    assert other.result_.primal == model.result_.primal
    shifted = [(rows + 8.0 * k, P) for k, (rows, P) in enumerate(X)]
    assert fitted(shifted).result_.primal == pytest.approx(model.result_.primal, rel=1e-3)
    uneven = [(rows, P + np.triu(np.full(P.shape[:2], 3.0))[:, :, None]) for rows, P in X]  # by the number of an item
    numbered = fitted(uneven).model_
    pairs = numbered.oracle.item_sets(uneven).pairs
    np.testing.assert_allclose(numbered.pair_units.scale, np.sqrt((pairs**2).mean(axis=0)))
    raw = fitted(standardize=False)
    assert raw.model_.units is None and raw.model_.pair_units is None
    assert raw.result_.primal != model.result_.primal
    sparse = [sp.csr_array(rows * (np.random.default_rng(k).random(rows.shape) < 0.1)) for k, rows in enumerate(ROWS)]
    assert fitted(sparse).model_.units is None


def test_sets_without_weight_have_no_part_in_units():
    weight = np.r_[np.ones(200), 0.0]
    far = [*X, (1e3 * X[0][0], 1e3 * X[0][1])]
    model = ItemOrderer(C=0.01, random_state=0).fit(far, [*Y, Y[0]], sample_weight=weight)
    np.testing.assert_allclose(model.coef_, fitted().coef_, rtol=0.2, atol=0.05)


# --- orders known in part ---------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["kendall", "log"])
def test_orders_known_in_part_are_completed(loss):
    C = 0.1 if loss == "log" else 0.01
    whole = [y for y in PARTLY if y is not None and not isinstance(y, list)]
    of_whole = fitted([x for k, x in enumerate(X) if k % 3 == 2], whole, loss=loss, C=C)
    model = fitted(y=PARTLY, loss=loss, C=C)
    assert model.result_.n_rounds > 0
    assert model.score(X_TEST, Y_TEST) > 0.9 * of_whole.score(X_TEST, Y_TEST) > 0.8
    assert fitted(y=PARTLY, loss=loss, C="auto").validation_["n_held_out"] == len(whole)  # few: all, in turn
    latent = fitted(y=PARTLY, loss="kendall", C=None, random_state=None, solver=LatentSVM(CuttingPlane(C=0.01)))
    assert latent.score(X_TEST, Y_TEST) > 0.8


def test_predictions_agree_with_what_is_known():
    model = fitted()
    known = [None if k % 2 else [(y[-1], y[0])] for k, y in enumerate(model.predict(X_TEST))]
    found = model.predict(X_TEST, known=known)
    for k, (y, free) in enumerate(zip(found, model.predict(X_TEST), strict=True)):
        assert np.array_equal(y, free) if known[k] is None else reference.agrees(y, known[k])
    with pytest.raises(ValueError, match="X has 100 sets of items, known has 1 orders"):
        model.predict(X_TEST, known=[None])


def test_score_is_the_share_of_pairs_in_the_right_order():
    model = fitted()
    found = model.predict(X_TEST)
    right = np.array([1.0 - reference.loss(y, own) for y, own in zip(Y_TEST, found, strict=True)])
    assert model.score(X_TEST, Y_TEST) == pytest.approx(right.mean())
    weight = np.arange(100.0)
    assert model.score(X_TEST, Y_TEST, weight) == pytest.approx(np.average(right, weights=weight))
    one = (np.ones((1, 4)), np.zeros((1, 1, 2)))
    assert model.score([one, *X_TEST], [[0], *Y_TEST]) == pytest.approx(right.mean())
    best, worst = [[y.tolist()[:2]] for y in found], [[y.tolist()[1::-1]] for y in found]
    assert (model.score(X_TEST, best), model.score(X_TEST, worst)) == (1.0, 0.0)
    with pytest.raises(ValueError, match="y has no known order"):
        model.score([one], [[0]])


# --- probabilities, k best, explanations --------------------------------------------------------------


def test_probabilities_are_sums_over_all_orders():
    model = fitted(loss="log", C=0.1)
    sets = [x for x in X_TEST if len(x[0]) == 4][:5]
    for x, before, preference, ranked, scored in zip(
        sets,
        model.predict_proba(sets),
        model.decision_function(sets),
        model.predict_kbest(sets, 24, probabilities=True),
        model.predict_kbest(sets, 24),
        strict=True,
    ):
        scores = scores_of(model, x)
        total = np.log(np.sum(np.exp([*scores.values()])))
        assert len(ranked) == 24 and sum(p for _, p in ranked) == pytest.approx(1.0)
        for (y, p), (same, score) in zip(ranked, scored, strict=True):
            assert np.array_equal(y, same) and score == pytest.approx(scores[tuple(y)])
            assert p == pytest.approx(np.exp(scores[tuple(y)] - total))
        for i, j in itertools.permutations(range(4), 2):
            assert before[i, j] == pytest.approx(sum(p for y, p in ranked if [*y].index(i) < [*y].index(j)))
            rest = tuple({0, 1, 2, 3} - {i, j})
            assert preference[i, j] == pytest.approx(scores[i, j, *rest] - scores[j, i, *rest])
        assert not np.diag(before).any() and not np.diag(preference).any()


@pytest.mark.parametrize("loss", ["kendall", "zero_one"])
def test_the_temperature_of_a_margin(loss):
    """Held-out sets determine it as others would, though losses are shares of pairs."""
    model = fitted(loss=loss, probability=True)
    found = model.temperature_
    assert 0.5 < found / model.calibrate(X_TEST, Y_TEST).temperature_ < 2.0
    before = np.concatenate([p[y[:-1], y[1:]] for p, y in zip(model.predict_proba(X_TEST), Y_TEST, strict=True)])
    log = fitted(loss="log", C=0.1).predict_proba(X_TEST)
    of_log = np.concatenate([p[y[:-1], y[1:]] for p, y in zip(log, Y_TEST, strict=True)])
    assert -np.log(before).mean() < -np.log(of_log).mean() + 0.1
    assert fitted(loss=loss, C=1e-6, probability=True).temperature_ < 1.0 / 64.0
    with pytest.raises(ValueError, match="predict_proba needs probabilities"):
        fitted(loss=loss).predict_proba(X_TEST)


def test_what_speaks_for_an_order():
    model = fitted()
    for x, ranked in zip(X_TEST[:10], model.predict_kbest(X_TEST[:10], 2), strict=True):
        found = model.explain(x)
        assert (found.winner, found.runner_up) == tuple(y.tolist() for y, _ in ranked)
        assert found.margin == pytest.approx(ranked[0][1] - ranked[1][1])
        assert {part.feature for part in found.contributions} & {"pair feature 0", "pair feature 1"}
    assert {name for name, _ in model.top_features()[None]} >= {"feature 3", "pair feature 1"}
    with pytest.raises(ValueError, match="the set has one item only"):
        model.explain((np.ones((1, 4)), np.zeros((1, 1, 2))))


# --- the choice of C, long sets -----------------------------------------------------------------------


@pytest.mark.parametrize(("loss", "metric"), [("kendall", "Kendall loss"), ("zero_one", "zero-one loss")])
def test_c_is_chosen_by_the_loss(loss, metric):
    model = fitted(loss=loss, C="auto")
    assert model.validation_["metric"] == metric and model.C_ in model.validation_["C"]
    one = (np.ones((1, 4)), np.zeros((1, 1, 2)))
    sets = model.model_.in_units(model.model_.oracle.item_sets([one, *X]))
    held, found = model.model_.held_out_scores(OrderedSets(sets, [np.array([0]), *Y])), model.predict(X)
    wanted = np.mean([reference.loss(y, own, loss) for y, own in zip(Y, found, strict=True)])
    assert held.numerator.sum() / held.denominator.sum() == pytest.approx(wanted)


def test_c_of_the_log_loss_is_chosen_by_it():
    model = fitted(loss="log", C="auto")
    best = model.validation_["score"].min()
    assert model.validation_["metric"] == "log loss"
    logs = [-np.log(p) for ranked in model.predict_kbest(X_TEST, 1, probabilities=True) for _, p in ranked if p < 1.0]
    assert 0.0 < np.mean(logs) < best  # the best order is likelier than the true one


def test_more_than_ten_items_are_relaxed():
    sets, orders = make_orderings(40, 4, max_items=14, noise=0.1, random_state=0)
    model = fitted(sets, orders)
    assert model.result_.inference == "relaxed" and model.score(sets, orders) > 0.95
    assert fitted([rows[:10] for rows in LONG], [y[:10] for y in LONG_Y]).result_.inference == "exact"
    model = fitted(LONG, LONG_Y)
    with pytest.raises(ValueError, match="example 0: the k best orders are of at most 10 items, got 11"):
        model.predict_kbest(LONG, 2)
    with pytest.raises(ValueError, match="probability=True is for sets of at most 10 items, example 0 has 11"):
        fitted(LONG, LONG_Y, probability=True)
    for loss in ("zero_one", "log"):
        with pytest.raises(ValueError, match=f"loss='{loss}' is for at most 10 items, example 0 has 11"):
            fitted(LONG, LONG_Y, loss=loss)
    short = fitted(ROWS, loss="log", C=0.1)
    long = [np.tile(rows, (8, 1)) for rows in ROWS_TEST[:2]]
    assert list(map(len, short.predict(long))) == list(map(len, long))  # predicted by any model
    with pytest.raises(ValueError, match="sums over all orders are of at most 10 items"):
        short.predict_proba(long)


# --- what is refused, files -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([[0, 1, 1]], "example 0: expected an order, a permutation of the items 0 .. 2"),
        ([[2, 3, 1]], "example 0: expected an order.*: of places, 1 the first, np.argsort is the order"),
        ([["a", "b", "c"]], "example 0: expected an order"),
        ([3], "example 0: expected an order"),
        ([[(0, 1), (1, 2), (2, 0)]], "example 0: the precedences have a cycle"),
        ([[(0, 3)]], "example 0: precedences are of items 0 to 3, expected 0 to 2"),
        ([[(0, 1), 2]], "example 0: expected an order or precedences, got"),
        ([None], "y has no known order"),
        ([[]], "y has no known order"),
        ([[0, 1, 2]] * 2, "X has 1 sets of items, y has 2 orders"),
        ("abc", "y must be a list of orders"),
    ],
    ids=str,
)
def test_orders_that_are_none(y, message):
    with pytest.raises(ValueError, match=message):
        fitted([np.eye(3)], y)


@pytest.mark.parametrize(
    ("sets", "message"),
    [
        ([], "X has no sets of items"),
        ([[1.0, 2.0]], r"example 0: expected an array \(n_items, n_features\)"),
        ([np.eye(3), np.ones((3, 2))], "example 1: X has shape"),
        ([np.eye(3), (np.eye(3), np.zeros((3, 3, 1)))], "example 1: "),
        ([(np.eye(3), np.zeros((3, 2, 1)))], "example 0: pair features of 3 items have shape"),
        ([np.full((3, 3), np.nan)], "NaN or infinity"),
    ],
    ids=str,
)
def test_sets_that_are_none(sets, message):
    with pytest.raises(ValueError, match=message):
        fitted(sets, [[0, 1, 2]] * len(sets))


def test_other_features_and_losses_are_refused():
    model = fitted(ROWS, warm_start=True)
    for sets in (X, [rows[:, :3] for rows in ROWS]):
        with pytest.raises(ValueError, match="example 0"):
            model.fit(sets, Y)
        with pytest.raises(ValueError, match="example 0"):
            model.predict(sets)
    with pytest.raises(ValueError, match="the model was trained with another 'loss'"):
        model.set_params(loss="zero_one").fit(ROWS, Y)
    with pytest.raises(ValueError, match="has no meaning here: orders have no labels"):
        ItemOrderer().partial_fit(ROWS, Y, classes=[1])


@pytest.mark.parametrize("params", [{}, {"standardize": False}, {"probability": True}], ids=str)
def test_files(params, tmp_path):
    model = fitted(**params)
    model.save(tmp_path / "m")
    loaded = structsvm.load(tmp_path / "m")
    np.testing.assert_array_equal(loaded.coef_, model.coef_)
    np.testing.assert_array_equal(loaded.pair_coef_, model.pair_coef_)
    assert loaded.temperature_ == model.temperature_
    assert loaded.model_.columns == {"n_features_in_": 4}


# --- the simulator ----------------------------------------------------------------------------------------


def test_simulated_orders():
    for one, same in zip(*(make_orderings(20, random_state=0)[1] for _ in range(2)), strict=True):
        np.testing.assert_array_equal(one, same)
    sets, orders = make_orderings(4000, 2, 1, max_items=2, noise=0.5, random_state=0)
    truth = np.random.default_rng([2, 1])
    w, v = truth.normal(size=2), truth.normal(size=1)
    w, v = w / np.linalg.norm(w), v / np.linalg.norm(v)
    score = np.array([w @ (rows[0] - rows[1]) + v @ (P[0, 1] - P[1, 0]) / 2.0 for rows, P in sets])
    first, p = np.array([y[0] == 0 for y in orders]), expit(2.0 * score / 0.5)
    for part in (score > 0.5, np.abs(score) < 0.2, score < -0.5):
        assert first[part].mean() == pytest.approx(p[part].mean(), abs=0.04)
    sizes = [len(y) for y in make_orderings(300, random_state=0)[1]]
    assert {*sizes} == {*range(2, 9)} and make_orderings(1, random_state=0)[0][0].shape[1] == 5
    for wrong in ({"n_sets": 0}, {"n_pair_features": -1}, {"max_items": 1}, {"noise": 0.0}):
        with pytest.raises(ValueError, match=f"The '{next(iter(wrong))}' parameter of make_orderings"):
            make_orderings(**wrong)


def test_columns_of_data_frames(tmp_path):
    """In the order of training, by name, also of a model from a file."""
    own = np.random.default_rng(0)
    X = [pd.DataFrame(own.normal(size=(4, 3)), columns=list("abc")) for _ in range(20)]
    y = [np.argsort(-x.a.to_numpy()) for x in X]
    model = ItemOrderer(C=0.1, random_state=0).fit(X, y)
    assert model.feature_names_in_.tolist() == ["a", "b", "c"] and model.score(X, y) > 0.9
    model.save(tmp_path / "m")
    for one in (model, ItemOrderer.load(tmp_path / "m")):
        assert one.score([x.to_numpy() for x in X], y) > 0.9
        for name in ("predict", "decision_function", "partial_fit"):
            about = (y,) if name == "partial_fit" else ()
            with pytest.raises(ValueError, match=r"example 0: its columns are c, b, a, those of training a, b, c"):
                getattr(one, name)([x[["c", "b", "a"]] for x in X], *about)
    with pytest.raises(ValueError, match=r"example 1: its columns are b, a, c"):
        ItemOrderer().fit([X[0], X[1][["b", "a", "c"]]], y[:2])
