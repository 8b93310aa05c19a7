"""Greedy label sequences against a plain Python loop."""

from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from structures_table import GreedyChains

from structsvm import LaRank
from structsvm.oracles.greedy import GreedyOracle


@st.composite
def cases(draw, masks=None):
    case = GreedyChains(
        draw(st.integers(0, 2**32 - 1)),
        draw(st.integers(1, 10)),
        draw(st.lists(st.integers(1, 7), min_size=1, max_size=3)),
        draw(st.sampled_from([0, 1, 2, 5, 12])),
        ones=draw(st.booleans()),
        masks=draw(st.booleans()) if masks is None else masks,
        n_bigrams=draw(st.integers(0, 2)),
    )
    case.w = case.weights(0)
    return case


def ambiguous(table):
    """Whether rounding to float32 could change an argmax on the way."""
    if np.shape(table)[-1] < 2:
        return False
    best = np.sort(table, axis=1)[:, -2:]
    return bool((best[:, 1] - best[:, 0] < 1e-4).any())


@given(cases())
def test_decode(case):
    chain = case.oracle.chain(case.tokens)
    for i, reference in enumerate(case.references):
        y, table = reference.decode(case.w)
        if isinstance(y, int):
            if len(table) == 0 or not ambiguous(np.array(table)):
                with pytest.raises(ValueError, match=f"sequence {i}: the masks leave no labelling from token {y} on"):
                    chain.decode(case.w, i, i + 1)
            continue
        if not ambiguous(table):
            assert list(chain.decode(case.w, i, i + 1)) == y
            scores = case.oracle.chain(case.tokens[i : i + 1]).decision_scores(case.w)
            assert np.allclose(scores, table, rtol=1e-5, atol=1e-5)
            assert list(case.oracle.argmax(case.X[i], case.w)) == y


@given(cases(), st.integers(0, 2**32 - 1))
def test_labels_allowed_by_token(case, seed):
    rng = np.random.default_rng(seed)
    allowed = [None if rng.random() < 0.3 else rng.random((len(y), case.K)) < 0.8 for y in case.Y]
    expected = []
    for reference, mask in zip(case.references, allowed, strict=True):
        reference.allowed = mask
        y, table = reference.decode(case.w)
        if len(table) and ambiguous(np.array(table)):
            return
        if isinstance(y, int):
            with pytest.raises(ValueError, match=f"the masks leave no labelling from token {y} on"):
                case.oracle.chain(case.tokens).decode(case.w, allowed=allowed)
            return
        expected += y
    assert list(case.oracle.chain(case.tokens).decode(case.w, allowed=allowed)) == expected


@given(cases(masks=False))
def test_joint_feature_and_loss(case):
    for x, y, reference in zip(case.X, case.Y, case.references, strict=True):
        psi = case.oracle.joint_feature(x, y)
        assert np.allclose(psi, reference.joint_feature(y), atol=1e-6)
        total = sum(reference.token_scores(case.w, t, y)[y[t]] for t in range(len(y)))
        assert psi @ case.w == pytest.approx(total, rel=1e-5, abs=1e-5)
        other = case.rng.integers(0, case.K, len(y))
        assert case.oracle.loss(y, other) == (y != other).sum()


def test_ties_are_decided_as_in_prediction():
    """For perceptrons a token is right if its label is the first of the best."""
    oracle = GreedyOracle(3, 2)
    problem = oracle.bind([np.ones((3, 2))], [[0, 1, 2]], rescaling=None)
    w = np.zeros(oracle.n_features)
    assert oracle.argmax(np.ones((3, 2)), w).tolist() == [0, 0, 0]
    assert [problem.separate(i, w)[1].any() for i in range(3)] == [False, True, True]


def test_sentences_stay_together():
    """The pass shuffles sentences; the tokens of one come in order."""
    rng = np.random.default_rng(0)
    lengths = [3, 1, 5, 2]
    oracle = GreedyOracle(3, 2)
    problem = oracle.bind([rng.normal(size=(n, 2)) for n in lengths], [rng.integers(0, 3, n) for n in lengths])
    assert list(problem.groups) == [0, 3, 4, 9, 11]


def test_what_is_claimed():
    oracle = GreedyOracle(3, 2)
    assert oracle.is_exact is False
    x, y = [np.eye(2)] * 2, [[0, 1], [2, 0]]
    problem = oracle.bind(x, y)
    assert problem.is_exact  # token by token, it is
    run = LaRank(C=1.0, max_iter=50, tol=1e-4, random_state=0).solve(problem)
    assert run.status == "converged"
    for rescaling in ("margin", "slack", None):
        with pytest.raises(NotImplementedError, match=r"GreedyOracle has no loss-augmented argmax .* through bind\(\)"):
            oracle.argmax(x[0], np.zeros(oracle.n_features), y_true=y[0], rescaling=rescaling)
    assert len(oracle.argmax(x[0], np.zeros(oracle.n_features))) == 2


def test_bad_arguments():
    oracle = GreedyOracle(3, 2, order=2)
    chain, w = oracle.chain([np.eye(2)] * 2), np.zeros(oracle.n_features)
    with pytest.raises(IndexError, match="out of range for 2"):
        chain.decode(w, 1, 3)
    for order in (-1, 1.5):
        with pytest.raises(ValueError, match="'order' parameter of GreedyOracle must be an integer >= 0"):
            GreedyOracle(3, 2, order=order)


@pytest.mark.parametrize("fill", [np.nan, np.inf, -np.inf])
def test_weights_that_are_not_finite_do_no_harm(fill):
    rng = np.random.default_rng(0)
    oracle = GreedyOracle(9, 2, order=3)
    w = rng.normal(size=oracle.n_features)
    w[rng.random(w.size) < 0.5] = fill
    with suppress(ValueError):  # no label may be left
        y = oracle.chain([rng.normal(size=(6, 2))]).decode(w)
        assert 0 <= y.min() <= y.max() < 9
