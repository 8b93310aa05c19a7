"""Chains of segments that keep to a regular language: what `test_structures` does not compare with enumeration."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from segment_reference import labels_of, random_case, segmentations
from structures_table import Segments

from structsvm import LaRank
from structsvm.execution._stop import look_every, looks
from structsvm.oracles.semi_markov import SemiMarkovOracle
from structsvm.oracles.viterbi import ViterbiOracle
from structsvm.solvers import ConditionalLikelihood
from structsvm.structures.languages import Automaton

CLOSE = {"rel": 1e-5, "abs": 5e-5}  # scores are float32


@st.composite
def cases(draw):
    lengths = tuple(draw(st.lists(st.integers(1, 5), min_size=1, max_size=3)))
    n_types = draw(st.integers(0, 2))
    n_plain = draw(st.integers(0 if n_types else 1, 2))
    return Segments(draw(st.integers(0, 10**6)), lengths, n_types, n_plain, draw(st.integers(2, 4)), language=True)


@given(cases(), st.integers(1, 30))
def test_the_k_best_and_max_marginals(case, k):
    w, chain = case.weights(1), case.oracle.chain(case.tokens)
    for i, space in enumerate(case.spaces):
        scores = space.psi @ w
        paths, found = chain.kbest(w, i, k)
        assert found == pytest.approx(np.sort(scores)[::-1][:k], **CLOSE)
        assert [scores[space.find(path)] for path in paths] == pytest.approx(found, **CLOSE)
        assert len({tuple(path) for path in paths}) == len(paths) == min(k, len(scores))
        for t, row in enumerate(chain.max_marginals(w, i)):
            for label, best in enumerate(row):
                own = scores[[y[t] == label for y in space.outputs]]
                assert best == (pytest.approx(own.max(), **CLOSE) if len(own) else -np.inf)


@given(cases(), st.integers(0, 10**6))
def test_labels_allowed_by_token(case, seed):
    w, chain, rng = case.weights(3), case.oracle.chain(case.tokens), np.random.default_rng(seed)
    for i, space in enumerate(case.spaces):
        allowed = rng.random((len(space.outputs[0]), case.K)) < 0.7
        agree = np.array([allowed[np.arange(len(y)), y].all() for y in space.outputs])
        if not agree.any():
            assert chain.expect(w, i, allowed)[0] == -np.inf
            continue
        scores = (space.psi @ w)[agree]
        log_sum, labels, _ = chain.expect(w, i, allowed)
        assert log_sum == pytest.approx(np.logaddexp.reduce(scores), **CLOSE)
        p = np.exp(scores - np.logaddexp.reduce(scores))
        expected = np.array([np.eye(case.K)[y] for y in space.outputs])[agree]
        assert labels == pytest.approx(np.tensordot(p, expected, 1), abs=1e-4)
        paths, best = chain.kbest(w, i, 1, allowed)
        assert best == pytest.approx([scores.max()], **CLOSE)
        assert agree[space.find(paths[0])]


def chain_of(oracle, language):
    """The chain with the same scores, where lengths have no weight and there are no phrases."""
    both = Automaton.of_masks(*oracle.allowed, n_labels=oracle.n_labels) & language
    return ViterbiOracle(oracle.n_labels, oracle.n_token_features, language=both)


@pytest.mark.parametrize("seed", range(6))
def test_segments_without_lengths_are_a_chain(seed):
    rng = np.random.default_rng(seed)
    free, tokens, _ = random_case(rng, (9, 1, 14, 6), 1 + seed % 2, 1, 2 + seed % 3)
    K, n = free.n_labels, int(rng.integers(2, 5))
    following = np.where(rng.random((n, K)) < 0.9, rng.integers(0, n, (n, K)), -1)
    language = Automaton(following, np.ones(n, dtype=bool))
    ruled = free.within(free.allowed, language)
    chain = chain_of(free, language)
    w = rng.normal(size=(free.n_rows, free.stride)).astype(np.float32)
    w[free.n_token_features + K + 1 :] = 0.0
    own = w[: chain.n_rows].ravel()
    segments, labels = ruled.chain(tokens), chain.chain(tokens_alone(tokens))
    for i in range(4):
        ours, theirs = segments.kbest(w.ravel(), i, 4), labels.kbest(own, i, 4)
        assert ours[1] == pytest.approx(theirs[1], **CLOSE)
        for mine, its in zip(segments.expect(w.ravel(), i)[:2], labels.expect(own, i)[:2], strict=True):
            assert mine == pytest.approx(its, rel=1e-5, abs=1e-4)
    assert np.array_equal(segments.decode(w.ravel()), labels.decode(own))


def tokens_alone(tokens):
    return tokens.__class__(tokens.offsets, tokens.indptr, tokens.indices, tokens.values, tokens.n_features)


@pytest.mark.parametrize("loss", ["hamming", "log"])
@pytest.mark.parametrize("seed", range(3))
def test_training_compares_what_is_allowed(seed, loss):
    """Fewer competitors: a smaller optimum, which is that of all chains where they alone are counted."""
    case = Segments(seed, (4, 3, 5), 1, 1, 2, language=True)
    free = case.oracle.within(case.oracle.allowed, None)
    assert case.oracle.language is not None
    assert free.language is None
    solver = LaRank(C=1.0, max_iter=500, tol=1e-4, random_state=0)
    if loss == "log":
        solver = ConditionalLikelihood(1.0, max_iter=500, tol=1e-5, random_state=0)
    ruled, every = (
        solver.solve(one.with_loss(loss).bind(case.tokens, case.Y, rescaling=None if loss == "log" else "margin"))
        for one in (case.oracle, free)
    )
    assert ruled.primal < every.primal
    w, risk = ruled.weights.astype(np.float64), 0.0
    for space in case.spaces:
        scores = space.psi @ w
        worst = np.logaddexp.reduce(scores) if loss == "log" else (scores + space.loss).max()
        risk += worst - scores[space.true]
    assert ruled.primal == pytest.approx(0.5 * w @ w + risk, rel=1e-3)


def test_long_segments_keep_to_a_language():
    """Segments beyond `max_length` are followed token by token: an odd number of inner tokens alone."""
    tags = [[0, 1, 2, 3]]
    odd = Automaton([[1, -1, -1, 0, 0], [-1, 2, -1, -1, -1], [-1, 1, 0, -1, -1]], [True, False, False])
    oracle = SemiMarkovOracle(5, 1, tags, max_length=2, language=odd)
    for n in (1, 2, 3, 8, 9):
        x = np.ones((n, 1))
        found, _ = oracle.chain([x]).kbest(np.zeros(oracle.n_features), 0, 10**5)
        every = [labels_of(one, np.array(tags), [4]) for one in segmentations(n, 1, 1)]
        assert {tuple(y) for y in found} == {tuple(y) for y in every if odd.accepts(y)}
        w = np.zeros((oracle.n_rows, oracle.stride))
        w[0, 1] = 5.0  # the more inner tokens the better
        best = oracle.argmax(x, w.ravel()).tolist()
        assert best.count(1) == max(list(y).count(1) for y in found)


def test_segments_of_one_token_alone():
    """A language may leave no segment of several tokens."""
    single = Automaton([[-1, -1, -1, 0, 0]], [True])
    oracle = SemiMarkovOracle(5, 1, [[0, 1, 2, 3]], max_length=2, language=single)
    w = np.zeros((oracle.n_rows, oracle.stride))
    w[0, :3], w[0, 3] = 9.0, 1.0
    x = np.array([[1.0], [1.0], [-1.0]])
    assert oracle.argmax(x, w.ravel()).tolist() == [3, 3, 4]
    log_sum, labels, _ = oracle.chain([x]).expect(w.ravel(), 0)
    assert log_sum == pytest.approx(2 * np.log1p(np.e) + np.log1p(np.exp(-1.0)), rel=1e-5)
    assert labels[:, :3].max() == 0.0
    assert len(oracle.chain([x]).kbest(w.ravel(), 0, 100)[0]) == 8


def test_great_weights_and_long_sequences():
    """Nothing is lost over 2,000 tokens: one segment, of which the last place alone pays."""
    once = Automaton([[1, -1, -1, 2, 0], [-1, 1, 2, -1, -1], [-1, -1, -1, -1, 2]], [False, False, True])
    oracle = SemiMarkovOracle(5, 1, [[0, 1, 2, 3]], max_length=3, language=once)
    w = np.zeros((oracle.n_rows, oracle.stride))
    w[0, 3] = 1e3
    x = np.zeros((2000, 1))
    x[-1] = 1.0
    log_sum, labels, _ = oracle.chain([x]).expect(w.ravel(), 0)
    assert log_sum == pytest.approx(1e3, rel=1e-5)
    assert labels[-1, 3] == pytest.approx(1.0, abs=1e-4)
    assert oracle.argmax(x, w.ravel()).tolist() == [4] * 1999 + [3]
    uniform = oracle.chain([x]).expect(0.0 * w.ravel(), 0)
    assert uniform[0] == pytest.approx(np.log(2000 * 2001 / 2), rel=1e-5)
    assert uniform[1].sum(axis=1) == pytest.approx(1.0, abs=1e-3)


def test_errors(monkeypatch):
    pairs = Automaton([[-1, -1, -1, -1, 1], [-1, -1, -1, -1, 0]], [True, False])
    oracle = SemiMarkovOracle(5, 1, [[0, 1, 2, 3]], language=pairs)
    with pytest.raises(ValueError, match=r"sequence 1: the constraints allow no labelling of length 3.* 2 and 4\)"):
        oracle.chain([np.ones((2, 1)), np.ones((3, 1))])
    with pytest.raises(ValueError, match="true labelling breaks the mask at token 0"):
        oracle.bind([np.ones((2, 1))], [np.array([3, 4])])
    with pytest.raises(ValueError, match="contains no chain of segments"):
        SemiMarkovOracle(5, 1, [[0, 1, 2, 3]], language=Automaton([[-1, 0, -1, -1, -1]], [True]))
    with pytest.raises(ValueError, match=r"must have 5 labels. Got 2"):
        SemiMarkovOracle(5, 1, [[0, 1, 2, 3]], language=Automaton([[0, 0]], [True]))
    every = Automaton.of_masks(*oracle.allowed, n_labels=5)
    assert SemiMarkovOracle(5, 1, [[0, 1, 2, 3]], language=every).language is None
    rules = oracle.within(oracle.allowed, None, (pairs,))
    assert np.array_equal(rules.chain([np.ones((2, 1))]).decode(np.zeros(oracle.n_features)), [4, 4])
    with pytest.raises(ValueError, match=r"1 rules .* too many for training with whole segments"):
        rules.bind([np.ones((2, 1))], [np.array([4, 4])])
    monkeypatch.setattr("structsvm.oracles._semi_markov.MAX_CHART_BYTES", 1000)
    with pytest.raises(ValueError, match="a sequence of 100 tokens needs a chart of 4000 bytes for the 2 pairs"):
        oracle.chain([np.ones((100, 1))])


def test_charts_count_all_that_they_allocate(monkeypatch):
    """All that the best need, and for sums the probabilities beside it."""
    oracle = SemiMarkovOracle(9, 1, [[0, 1, 2, 3], [4, 5, 6, 7]], max_length=3)
    nodes, x, w = oracle.segment_tables, [np.ones((50, 1))], np.zeros(oracle.n_features)
    N, n_open, n_last = len(nodes.labels), len(nodes.on), len(nodes.last)
    of_best = 50 * (2 * 8 * N + 8 * n_open + 4 * N + 4 * n_last + 2 * 4 * n_open)
    of_sums = of_best + 50 * 8 * (2 * N + n_open + oracle.stride)
    monkeypatch.setattr("structsvm.oracles._semi_markov.MAX_CHART_BYTES", of_best - 1)
    with pytest.raises(ValueError, match=f"needs a chart of {of_best} bytes"):
        oracle.chain(x)
    monkeypatch.setattr("structsvm.oracles._semi_markov.MAX_CHART_BYTES", of_sums - 1)
    chain = oracle.chain(x)
    chain.decode(w)
    for _ in range(2):
        with pytest.raises(ValueError, match=f"needs a chart of {of_sums} bytes"):
            chain.expect(w, 0)
    monkeypatch.setattr("structsvm.oracles._semi_markov.MAX_CHART_BYTES", of_sums)
    chain.expect(w, 0)


def test_tables_of_lengths_are_limited(monkeypatch):
    """A row for each first node, a column for each length, and all of it twice."""
    oracle = SemiMarkovOracle(5, 1, [[0, 1, 2, 3]], max_length=99)
    heads = len(oracle.segment_tables.heads)
    monkeypatch.setattr("structsvm.structures.languages.segments.MAX_TABLE_BYTES", 800 * heads - 1)
    fresh = SemiMarkovOracle(5, 1, [[0, 1, 2, 3]], max_length=99)
    with pytest.raises(ValueError, match=f"up to 99 tokens .* at {heads} pairs .* tables of {800 * heads} bytes"):
        fresh.chain([np.ones((2, 1))])


def looks_of(call, work):
    before = looks()
    look_every(work)
    try:
        call()
    finally:
        look_every()
    return looks() - before


@pytest.mark.parametrize("ruled", [False, True])
def test_looks_go_by_the_steps_between_nodes(ruled):
    """80 labels before each of 80 others, at each token; sums take them twice, forwards and backwards."""
    T, K, work = 40, 80, 5000
    odd = Automaton([[1] * K, [0] * K], [False, True]) if ruled else None
    oracle = SemiMarkovOracle(K, 1, np.zeros((0, 4), np.int32), max_length=2, language=odd)
    chain, w = oracle.chain([np.ones((T - ruled, 1))]), np.zeros(oracle.n_features)
    steps = (T - 2) * K * K * (1 + ruled)
    assert looks_of(lambda: chain.decode(w), work) >= steps / (2 * work)
    assert looks_of(lambda: chain.expect(w, 0), work) >= 2 * steps / (2 * work)
