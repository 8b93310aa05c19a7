"""Chains that keep to a regular language: what `test_structures` does not compare with enumeration, and masks."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from structures_table import Chains

from structsvm import LaRank
from structsvm.oracles.viterbi import ViterbiOracle
from structsvm.solvers import ConditionalLikelihood
from structsvm.structures.languages import Automaton

CLOSE = {"rel": 1e-5, "abs": 2e-5}  # scores are float32


@st.composite
def cases(draw):
    lengths = tuple(draw(st.lists(st.integers(1, 5), min_size=1, max_size=3)))
    options = {"end": draw(st.booleans()), "n_bigrams": draw(st.integers(0, 2)), "language": True}
    seed, K, order = draw(st.integers(0, 10**6)), draw(st.integers(1, 4)), draw(st.sampled_from([1, 2]))
    return Chains(seed, K, lengths, order, **options)


@given(cases(), st.integers(1, 30))
def test_the_k_best(case, k):
    w, chain = case.weights(1), case.oracle.chain(case.tokens)
    for i, space in enumerate(case.spaces):
        scores = space.psi @ w
        paths, found = chain.kbest(w, i, k)
        assert found == pytest.approx(np.sort(scores)[::-1][:k], **CLOSE)
        assert [scores[space.find(path)] for path in paths] == pytest.approx(found, **CLOSE)
        assert len({tuple(path) for path in paths}) == len(paths) == min(k, len(scores))


@given(cases())
def test_max_marginals(case):
    w, chain = case.weights(2), case.oracle.chain(case.tokens)
    for i, space in enumerate(case.spaces):
        scores, found = space.psi @ w, chain.max_marginals(w, i)
        for t, row in enumerate(found):
            for label, best in enumerate(row):
                own = scores[[y[t] == label for y in space.outputs]]
                assert best == (pytest.approx(own.max(), **CLOSE) if len(own) else -np.inf)


@given(cases(), st.integers(0, 10**6))
def test_labels_allowed_by_token(case, seed):
    w, chain, rng = case.weights(3), case.oracle.chain(case.tokens), np.random.default_rng(seed)
    for i, space in enumerate(case.spaces):
        allowed = rng.random((len(space.outputs[0]), case.K)) < 0.6
        agree = np.array([allowed[np.arange(len(y)), y].all() for y in space.outputs])
        masks = [None] * i + [allowed]
        if not agree.any():
            assert chain.expect(w, i, allowed)[0] == -np.inf
            with pytest.raises(ValueError, match=f"sequence {i}: the masks leave no labelling"):
                chain.decode(w, 0, i + 1, allowed=masks)
            continue
        scores = (space.psi @ w)[agree]
        start = case.tokens.offsets[i]
        y = chain.decode(w, 0, i + 1, allowed=masks)[start:]
        assert (space.psi @ w)[space.find(y)] == pytest.approx(scores.max(), **CLOSE)
        assert chain.expect(w, i, allowed)[0] == pytest.approx(np.logaddexp.reduce(scores), **CLOSE)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("seed", range(4))
def test_masks_as_a_language(seed, order):
    """Margins by the same maxima, bit for bit; likelihoods but for the order of sums."""
    case = Chains(seed, 5, (6, 3, 1, 8), order, masks=True, n_bigrams=seed % 2, end=True)
    transitions, first, last = case.oracle.allowed
    language = Automaton.of_masks(transitions, first, last, case.K)
    structure = {"order": order, "end": True, "n_bigrams": case.oracle.n_bigrams}
    oracle = ViterbiOracle(case.K, case.F, language=language, **structure)
    assert oracle.language is not None
    w = case.weights(seed)
    ours, theirs = oracle.chain(case.tokens), case.oracle.chain(case.tokens)
    assert np.array_equal(ours.decode(w), theirs.decode(w))
    for i in range(4):
        for mine, its in zip(ours.kbest(w, i, 5), theirs.kbest(w, i, 5), strict=True):
            assert np.array_equal(mine, its)
        assert np.array_equal(ours.max_marginals(w, i), theirs.max_marginals(w, i))
        for mine, its in zip(ours.expect(w, i), theirs.expect(w, i), strict=True):
            assert mine == pytest.approx(its, rel=1e-5, abs=1e-5)
    for rescaling, penalty in (("margin", "linear"), ("slack", "linear"), ("margin", "quadratic")):
        weights = [
            LaRank(C=1.0, max_iter=5, tol=None, rescaling=rescaling, penalty=penalty, random_state=0)
            .solve(one.bind(case.tokens, case.Y, rescaling=rescaling, penalty=penalty))
            .weights
            for one in (oracle, case.oracle)
        ]
        assert np.array_equal(*weights)
    results = [
        ConditionalLikelihood(1.0, max_iter=30, tol=None, random_state=0).solve(
            one.with_loss("log").bind(case.tokens, case.Y, rescaling=None)
        )
        for one in (oracle, case.oracle)
    ]
    assert results[0].primal == pytest.approx(results[1].primal, rel=1e-5)


@pytest.mark.parametrize("scale", [1e2, 1e4])
def test_great_weights_and_long_sequences(scale):
    """Nothing is lost over 3,000 tokens: label 1 once, at the last place, which is the only one that pays."""
    oracle = ViterbiOracle(2, 1, language=Automaton([[0, 1], [1, -1]], [False, True]))
    w = np.zeros((oracle.n_rows, oracle.stride))
    w[0, 1] = scale
    x = np.zeros((3000, 1))
    x[-1] = 1.0
    log_sum, labels, _ = oracle.chain([x]).expect(w.ravel(), 0)
    assert log_sum == pytest.approx(scale, rel=1e-5)
    assert labels[-1, 1] == pytest.approx(1.0, abs=1e-4)
    assert labels.sum(axis=1) == pytest.approx(1.0, abs=1e-4)
    assert oracle.argmax(x, w.ravel()).tolist() == [0] * 2999 + [1]
    uniform = oracle.chain([x]).expect(0.0 * w.ravel(), 0)
    assert uniform[0] == pytest.approx(np.log(3000), rel=1e-5)
    assert uniform[1][:, 1] == pytest.approx(1.0 / 3000, rel=2e-3)


def test_lengths_and_labellings_that_no_sequence_has():
    pairs = Automaton([[-1, 1], [0, -1]], [True, False])  # 1 0 1 0 ...
    oracle = ViterbiOracle(2, 1, language=pairs)
    with pytest.raises(ValueError, match=r"sequence 1: the constraints allow no labelling of length 3.* 2 and 4\)"):
        oracle.chain([np.ones((2, 1)), np.ones((3, 1))])
    with pytest.raises(ValueError, match="sequence 0: the true labelling breaks the mask at token 1"):
        oracle.bind([np.ones((2, 1))], [np.array([1, 1])])
    with pytest.raises(ValueError, match=r"sequence 0: the mask allows no labelling that agrees .* at token 1"):
        oracle.bind([np.ones((2, 1))], [np.array([[True, True], [False, True]])], rescaling=None)
    with pytest.raises(ValueError, match="contains no sequence of labels"):
        ViterbiOracle(2, 1, language=Automaton([[-1, -1]], [True]))
    with pytest.raises(ValueError, match=r"must have 3 labels. Got 2"):
        ViterbiOracle(3, 1, language=pairs)
    with pytest.raises(ValueError, match="masks or a language"):
        ViterbiOracle(2, 1, language=pairs, allowed_first=np.array([True, False]))


def test_charts_that_are_too_large(monkeypatch):
    monkeypatch.setattr("structsvm.oracles._viterbi.MAX_CHART_BYTES", 1000)
    oracle = ViterbiOracle(2, 1, language=Automaton([[0, 1], [1, -1]], [True, True]))
    with pytest.raises(
        ValueError, match="a sequence of 100 tokens needs a chart of 1200 bytes for the 3 pairs of labels"
    ):
        oracle.chain([np.ones((100, 1))])


def test_a_language_is_part_of_the_oracle():
    case = Chains(0, 3, (4, 2), 1, language=True)
    w = case.weights(0)
    again = pickle.loads(pickle.dumps(case.oracle))
    assert again.language == case.oracle.language == case.oracle.with_loss("log").language
    assert np.array_equal(again.chain(case.tokens).decode(w), case.oracle.chain(case.tokens).decode(w))
    free = case.oracle.without_masks()
    assert free.language is None
    assert case.oracle.is_constrained
    assert not free.is_constrained
