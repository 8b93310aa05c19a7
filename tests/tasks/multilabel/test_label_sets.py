"""Inference over label sets against enumeration, and the Chow-Liu tree against all trees."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import mutual_info_score

from structsvm.tasks.multilabel.label_sets import LabelSetOracle, all_pairs, chow_liu, forest_of
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
    """Beyond 20 labels all pairs are searched; a tree is not."""
    rng = np.random.default_rng(0)
    oracle = LabelSetOracle(24, 2, all_pairs(24))
    assert oracle.inference == "approximate" and LabelSetOracle(20, 2, all_pairs(20)).inference == "exact"
    tree = LabelSetOracle(24, 2, [(k, k + 1) for k in range(23)])
    assert tree.inference == "exact"
    x = rng.normal(size=2)
    w = rng.normal(size=oracle.n_features)
    found = oracle.argmax(x, w)
    flipped = [np.where(np.arange(24) == j, 1 - found, found) for j in range(24)]
    best = oracle.joint_feature(x, found) @ w
    assert best >= max(oracle.joint_feature(x, y) @ w for y in flipped) - 1e-9
    # Where no pairs repel, the bound leaves nothing to search.
    w[48:] = np.abs(w[48:])
    assert oracle.argmax(x, w).sum() >= 20


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
        ((0, 2), "The 'n_labels' parameter of LabelSetOracle must be an integer >= 1"),
        ((2, 1.5), "The 'n_input_features' parameter"),
        ((2, 2, [(0, 2)]), "edges join labels 0 to 2, expected 0 .. 1"),
        ((2, 2, [(1, 1)]), "edges must join different labels, each pair once"),
        ((2, 2, [(0, 1), (1, 0)]), "edges must join different labels, each pair once"),
        ((2, 2, (), "exact"), "The 'loss' parameter of LabelSetOracle must be one of"),
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
