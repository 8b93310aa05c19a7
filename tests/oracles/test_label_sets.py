"""Inference over label sets against enumeration, and the Chow-Liu tree against all trees."""

import itertools
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from sklearn.metrics import mutual_info_score

from structsvm import CuttingPlane, FrankWolfe, LaRank
from structsvm.dual._rounds import completions
from structsvm.features.sparse import as_rows
from structsvm.oracles.label_sets import LabelSetOracle, all_pairs, chow_liu, forest_of
from structsvm.testing import check_oracle


@settings(max_examples=20)
@given(seed=st.integers(0, 10**6), n_labels=st.integers(1, 6), loss=st.sampled_from(["hamming", "subset", "f1"]))
def test_margins_are_differences_of_best_sets(seed, n_labels, loss):
    rng = np.random.default_rng(seed)
    pairs = all_pairs(n_labels)
    for edges in (pairs[rng.random(len(pairs)) < 0.7], chow_liu(rng.integers(0, 2, (6, n_labels)))):
        oracle = LabelSetOracle(n_labels, 2, edges, loss)
        w, x = rng.normal(size=oracle.n_features), rng.normal(size=2)
        sets = np.array(list(itertools.product((0, 1), repeat=n_labels)))
        scores = np.array([oracle.joint_feature(x, y) @ w for y in sets])
        (margins,) = oracle.bind([x], [np.full(n_labels, -1)]).margins(w)
        for j in range(n_labels):
            has = sets[:, j] == 1
            assert margins[j] == pytest.approx(scores[has].max() - scores[~has].max(), abs=1e-9)
        assert np.array_equal(margins > 0.0, oracle.argmax(x, w) > 0)


@pytest.mark.parametrize("loss", ["hamming", "subset", "f1"])
@pytest.mark.parametrize("edges", [(), [(0, 1), (1, 2)], all_pairs(4)], ids=["none", "forest", "graph"])
def test_the_protocol(edges, loss):
    rng = np.random.default_rng(0)
    Y = rng.integers(0, 2, (5, 4)).astype(np.int8)
    known = np.where(rng.random((5, 4)) < 0.5, -1, Y).astype(np.int8)
    check_oracle(LabelSetOracle(4, 2, edges, loss), list(rng.normal(size=(5, 2))), list(Y), known=list(known))


def test_many_labels():
    """Beyond 20 labels all pairs are relaxed, or searched; a tree is neither."""
    rng = np.random.default_rng(0)
    oracle = LabelSetOracle(24, 2, all_pairs(24))
    assert oracle.inference == "relaxed" and LabelSetOracle(20, 2, all_pairs(20)).inference == "exact"
    assert LabelSetOracle(24, 2, all_pairs(24), "subset").inference == "approximate"
    tree = [(k, k + 1) for k in range(23)]
    assert LabelSetOracle(24, 2, tree).inference == "exact"
    x = rng.normal(size=2)
    w = rng.normal(size=oracle.n_features)
    found = oracle.complete(x, np.full(24, -1), w)
    flipped = [np.where(np.arange(24) == j, 1 - found, found) for j in range(24)]
    best = oracle.joint_feature(x, found) @ w
    assert best >= max(oracle.joint_feature(x, y) @ w for y in flipped) - 1e-9
    # Where no pairs repel, the relaxation is whole; and of a tree F1's predictions are no search.
    w[48:] = np.abs(w[48:])
    assert oracle.argmax(x, w).sum() >= 20
    w = rng.normal(size=48 + 23)
    exact, searched = (LabelSetOracle(24, 2, tree, loss).complete(x, np.full(24, -1), w) for loss in ("hamming", "f1"))
    assert np.array_equal(exact, searched)


def relaxing(n_labels, n_input_features, edges, nodes=10**6):
    """An oracle of few labels that does as one of many."""
    oracle = LabelSetOracle(n_labels, n_input_features, edges)
    oracle.inference, oracle.budget, oracle.can_sum = "relaxed", nodes, False
    return oracle


def best_relaxed(scores, edges, t):
    """The value of the linear relaxation, by HiGHS."""
    L, E = len(scores), len(edges)
    rows = np.zeros((3 * E, L + E))
    for e, (a, b) in enumerate(edges):
        for k, ends in enumerate(((a,), (b,), (a, b))):
            rows[3 * e + k, list(ends)], rows[3 * e + k, L + e] = (1, -1) if k == 2 else (-1, 1)
    found = linprog(-np.concatenate([scores, t]), rows, np.tile([0, 0, 1], E), bounds=(0, 1))
    return -found.fun


@settings(max_examples=25)
@given(seed=st.integers(0, 10**6), n_labels=st.integers(3, 6))
def test_the_relaxation_is_the_linear_programme(seed, n_labels):
    """Its value, its cut, and the whole sets that are left to the search."""
    rng = np.random.default_rng(seed)
    edges = all_pairs(n_labels)
    edges = edges[rng.random(len(edges)) < 0.8]
    if forest_of(edges, n_labels) is not None:
        edges = all_pairs(3)
    oracle, n = relaxing(n_labels, 2, edges), 2 * n_labels
    x, y = rng.normal(size=2).round(1), rng.integers(0, 2, n_labels)
    w = np.concatenate([0.5 * rng.normal(size=n), rng.normal(size=len(edges))])
    scores = x @ w[:n].reshape(2, -1)
    b, psi = oracle.bind([x], [y]).separate(0, w)
    value = best_relaxed(scores + 1 - 2 * y, edges, w[n:]) + y.sum() - oracle.joint_feature(x, y) @ w
    assert b - psi @ w == pytest.approx(value, abs=1e-9)
    found = oracle.argmax(x, w, y, "margin")
    assert oracle.loss(y, found) == b
    np.testing.assert_allclose(oracle.joint_feature(x, y) - oracle.joint_feature(x, found), psi, atol=1e-12)
    known = np.where(rng.random(n_labels) < 0.3, y, -1)
    exact = LabelSetOracle(n_labels, 2, edges)
    for one in (known, np.full(n_labels, -1)):
        sets = (one_of.complete(x, one, w) for one_of in (oracle, exact))
        assert len({round(float(oracle.joint_feature(x, z) @ w), 9) for z in sets}) == 1


def test_training_on_fractional_sets():
    """Solvers agree, the dual is the dual recomputed, and states and copies have the same cuts."""
    rng = np.random.default_rng(1)
    X, Y = rng.normal(size=(12, 3)), rng.integers(0, 2, (12, 5)).astype(np.int8)
    Y[np.arange(12), rng.integers(0, 5, 12)] = 1
    problem = relaxing(5, 3, all_pairs(5)).bind(as_rows(X, 3), Y)
    runs = [
        kind(C=3.0, tol=1e-5, max_iter=500, random_state=0).solve(problem)
        for kind in (LaRank, CuttingPlane, FrankWolfe)
    ]
    for run in runs:
        assert run.primal == pytest.approx(runs[0].primal, rel=2e-5) and run.dual <= run.primal
    w = runs[0].weights
    halves = [b % 1.0 for b, _ in (problem.separate(i, w) for i in range(12))]
    assert 0.5 in halves
    dual = runs[0].state.dual
    assert runs[0].state.settle() == pytest.approx(dual, rel=1e-9)
    np.testing.assert_allclose(runs[0].state.weights, w, atol=1e-9)
    again = LaRank(C=3.0, random_state=0).start(pickle.loads(pickle.dumps(problem)))
    again.set_state(runs[0].get_state())
    assert again.state.dual == pytest.approx(dual, rel=1e-9)
    exact = LabelSetOracle(5, 3, all_pairs(5)).bind(X, Y)
    best = LaRank(C=3.0, tol=1e-5, max_iter=500, random_state=0).solve(exact)
    assert runs[0].primal > 1.001 * best.primal  # whose outputs are fewer


def test_log_losses_are_those_of_what_is_known():
    """Also of a problem that completions have changed; of what is known whole, the sum is its score."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(6, 2)), rng.integers(-1, 2, (6, 4))
    Y[0] = 1
    for edges in ((), [(0, 1), (1, 2)], all_pairs(4)):
        oracle = LabelSetOracle(4, 2, edges, "log")
        w = rng.normal(size=oracle.n_features)
        problem = oracle.bind(X, Y, rescaling=None)
        completed = problem.with_targets(completions(problem, w))
        for i, (x, y) in enumerate(zip(X, Y, strict=True)):
            scores, agree = [], []
            for z in itertools.product((0, 1), repeat=4):
                scores.append(oracle.joint_feature(x, z) @ w)
                agree.append(((y < 0) | (y == z)).all())
            loss = np.log(np.exp(scores).sum()) - np.log(np.exp(scores)[agree].sum())
            assert problem.expect(i, w)[0] == pytest.approx(loss)
            assert completed.expect(i, w)[0] == pytest.approx(loss)


@pytest.mark.parametrize(
    "words", [[5, 2], [4, 5 + 4], [5 + 1, 10], [5, 10], [20], [5 + 1, 5 + 2, 10 + 4, 10 + 4], [-1]], ids=str
)
def test_states_with_other_words_are_refused(words):
    """Descending or doubled, a label whole and half, a pair of whole labels, no number of a pair."""
    problem = relaxing(5, 1, all_pairs(5)).bind([[1.0]], [[1, 0, 1, 0, 1]])
    state = LaRank(C=1.0, max_iter=1, random_state=0).solve(problem).get_state()
    state |= {"cut_words": np.array(words, dtype=np.int32), "cut_bounds": np.array([0, len(words)])}
    with pytest.raises(ValueError, match="is none of example 0"):
        LaRank(C=1.0, random_state=0).start(problem).set_state(state)
    state["cut_words"] = np.array([5 + 1, 5 + 2, 10 + 4], dtype=np.int32)
    state["cut_bounds"] = np.array([0, 3])
    LaRank(C=1.0, random_state=0).start(problem).set_state(state)


def test_the_tree_of_most_information():
    rng = np.random.default_rng(0)
    Y = rng.integers(0, 2, (200, 5))
    Y[:, 3] = Y[:, 0] ^ (rng.random(200) < 0.1)
    Y[:, 4] = 1 - (Y[:, 3] ^ (rng.random(200) < 0.2))
    information = {(a, b): mutual_info_score(Y[:, a], Y[:, b]) for a, b in all_pairs(5).tolist()}
    best = max(
        (edges for edges in itertools.combinations(information, 4) if forest_of(np.array(edges), 5) is not None),
        key=lambda edges: sum(information[edge] for edge in edges),
    )
    assert sorted(map(tuple, chow_liu(Y).tolist())) == sorted(best)
    assert {(0, 3), (3, 4)} <= set(best)
    # Weights count rows, and what is not known counts for nothing.
    weight = rng.integers(0, 3, 200).astype(float)
    copies = np.repeat(np.arange(200), weight.astype(int))
    assert np.array_equal(chow_liu(Y, weight), chow_liu(Y[copies]))
    noise = np.vstack([Y, np.where(np.arange(5) == 1, 1, -1) * np.ones((50, 1), int)])
    assert np.array_equal(chow_liu(Y), chow_liu(noise))
    assert len(chow_liu(np.ones((4, 3), int))) == 0  # constant labels tell nothing


def test_forests():
    order, parent, link = forest_of(np.array([(0, 1), (1, 4), (2, 3)]), 5)
    assert sorted(order.tolist()) == list(range(5))
    place = {j: k for k, j in enumerate(order.tolist())}
    assert all(place[j] < place[p] for j, p in enumerate(parent.tolist()) if p >= 0)
    assert (parent < 0).sum() == 2 and sorted(link[link >= 0].tolist()) == [0, 1, 2]
    assert forest_of(all_pairs(3), 3) is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 2), r"The 'n_labels' parameter of LabelSetOracle must be an int in the range \[1, 16777215\]"),
        ((2, 1.5), "The 'n_input_features' parameter"),
        ((2, 2, [(0, 2)]), "edges join labels 0 to 2, expected 0 .. 1"),
        ((2, 2, [(1, 1)]), "edges must join different labels, each pair once"),
        ((2, 2, [(0, 1), (1, 0)]), "edges must join different labels, each pair once"),
        ((2, 2, (), "exact"), "The 'loss' parameter of LabelSetOracle must be 'hamming' or"),
    ],
)
def test_what_an_oracle_refuses(arguments, message):
    with pytest.raises(ValueError, match=message):
        LabelSetOracle(*arguments)


def test_what_binding_refuses():
    oracle, X = LabelSetOracle(3, 2, [(0, 1)]), np.zeros((2, 2))
    for Y, message in [
        (np.zeros((3, 3)), "X has 2 examples, y has 3"),
        (np.full((2, 3), 2), "sets are rows of 0 and 1"),
    ]:
        with pytest.raises(ValueError, match=message):
            oracle.bind(X, Y)
    with pytest.raises(ValueError, match="X has 3 columns, expected 2"):
        oracle.bind(np.zeros((2, 3)), np.zeros((2, 3)))
    with pytest.raises(ValueError, match="labels of example 0 are not known: train with LatentSVM"):
        oracle.bind(X, np.full((2, 3), -1)).separate(0, np.zeros(oracle.n_features))
