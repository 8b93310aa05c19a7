"""Sums and expectations over all labellings of a chain, against their enumeration."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from structures_table import Chains

from structsvm.execution._stop import look_every
from structsvm.oracles.viterbi import ViterbiOracle

CLOSE = {"rel": 2e-5, "abs": 2e-5}  # the chains' scores are float32


class Case(Chains):
    """One sequence, weights, and all of its labellings with their probabilities."""

    def __init__(self, seed, K, T, order, end, ones, masks, scale=1.0, allowed=None, n_bigrams=0):
        super().__init__(seed, K, (T,), order, end=end, ones=ones, masks=masks, n_bigrams=n_bigrams)
        self.T, (self.x,), (self.reference,) = T, self.X, self.references
        self.reference.allowed = allowed
        self.w = (scale * self.weights(seed)).astype(np.float32).astype(float)
        self.ys = np.array(self.reference.labellings()).reshape(-1, T)
        self.psi = np.array([self.reference.joint_feature(y) for y in self.ys])
        self.scores = np.array([self.reference.score(self.w, y) for y in self.ys])
        if len(self.ys):
            best = self.scores.max()
            self.log_sum = best + np.log(np.exp(self.scores - best).sum())
            self.p = np.exp(self.scores - self.log_sum)

    @property
    def entropy(self):
        return -float(self.p @ np.log(np.maximum(self.p, 1e-300)))

    @property
    def marginals(self):
        return np.array([[self.p[self.ys[:, t] == c].sum() for c in range(self.K)] for t in range(self.T)])


@st.composite
def cases(draw, **options):
    seed = draw(st.integers(0, 2**32 - 1))
    K, T = draw(st.integers(1, 4)), draw(st.integers(1, 5))
    order = draw(st.sampled_from([1, 2]))
    end, ones, masks = draw(st.booleans()), draw(st.booleans()), draw(st.booleans())
    scale, n_bigrams = draw(st.sampled_from([0.0, 0.1, 1.0, 5.0])), draw(st.integers(0, 2))
    return Case(seed, K, T, order, end, ones, masks, scale, n_bigrams=n_bigrams, **options)


@given(cases())
def test_sums_and_expectations(case):
    log_sum, labels, transitions = case.oracle.chain(case.tokens).expect(case.w, 0)
    assert log_sum == pytest.approx(case.log_sum, **CLOSE)
    assert labels == pytest.approx(case.marginals, **CLOSE)
    expected = (case.p @ case.psi).reshape(case.oracle.n_rows, -1)
    n_edges = case.oracle.first_bigram_row - case.F
    assert transitions[:n_edges] == pytest.approx(expected[case.F : case.F + n_edges], **CLOSE)
    pairs = transitions[n_edges:].reshape(-1, case.K, case.oracle.stride)[:, :, : case.K]
    assert len(pairs) == (case.T if case.oracle.n_bigrams else 0)
    if len(pairs):
        assert not pairs[0].any()
    for t in range(1, len(pairs)):
        both = np.zeros((case.K, case.K))
        np.add.at(both, (case.ys[:, t - 1], case.ys[:, t]), case.p)
        assert pairs[t] == pytest.approx(both, **CLOSE)
    assert case.oracle.expect(case.x, case.w)[1] == pytest.approx(expected.ravel(), **CLOSE)


@given(cases(), st.integers(0, 2**32 - 1))
def test_the_loss_and_its_gradient(case, seed):
    gold = case.ys[np.random.default_rng(seed).integers(len(case.ys))]
    problem = case.oracle.bind(case.tokens, [gold], rescaling=None)
    loss, entropy, gradient = problem.expect(0, case.w)
    true = case.reference.joint_feature(gold)
    assert 0.0 <= loss == pytest.approx(case.log_sum - case.w @ true, **CLOSE)
    assert 0.0 <= entropy == pytest.approx(case.entropy, **CLOSE)
    assert gradient == pytest.approx(case.p @ case.psi - true, **CLOSE)
    # The loss is convex: its differences on both sides hold the gradient between them.
    d = 0.02 * case.weights(seed)
    for way in (d, -d):
        assert problem.expect(0, case.w + way)[0] - loss >= gradient @ way - 1e-4 * (1.0 + abs(case.log_sum))


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize(("K", "T"), [(7, 3), (8, 3), (9, 3), (16, 2), (17, 2), (24, 2), (25, 2), (33, 2), (40, 1)])
def test_widths_of_rows(K, T, order):
    for seed in range(2):
        case = Case(seed, K, T, order, True, False, seed == 1)
        log_sum, labels, _ = case.oracle.chain(case.tokens).expect(case.w, 0)
        assert log_sum == pytest.approx(case.log_sum, **CLOSE)
        assert labels == pytest.approx(case.marginals, **CLOSE)


@given(cases(), st.integers(0, 2**32 - 1))
def test_labels_allowed_by_token(case, seed):
    allowed = np.random.default_rng(seed).random((case.T, case.K)) < 0.6
    some = case.reference
    some.allowed = allowed
    ys = some.labellings()
    log_sum, labels, _ = case.oracle.chain(case.tokens).expect(case.w, 0, allowed=allowed)
    if not ys:
        assert log_sum == -np.inf
        return
    scores = np.array([some.score(case.w, y) for y in ys])
    best = scores.max()
    expected = best + np.log(np.exp(scores - best).sum())
    assert log_sum == pytest.approx(expected, **CLOSE)
    p = np.exp(scores - expected)
    marginals = [[p[[y[t] == c for y in ys]].sum() for c in range(case.K)] for t in range(case.T)]
    assert labels == pytest.approx(np.array(marginals), **CLOSE)
    assert (labels[~allowed] == 0.0).all()


@given(st.integers(0, 10**6), st.sampled_from([1, 2]), st.booleans(), st.sampled_from([1e2, 1e3, 1e4]))
def test_great_weights(seed, order, masks, scale):
    """With weights up to 1e4 the best labelling takes all, unless another is near."""
    case = Case(seed, 3, 4, order, True, False, masks, scale)
    log_sum, labels, _ = case.oracle.chain(case.tokens).expect(case.w, 0)
    assert log_sum == pytest.approx(case.log_sum, rel=1e-5, abs=1e-6 * scale)
    assert labels.sum(axis=1) == pytest.approx(1.0, abs=1e-5)
    gaps = np.sort(case.scores)[::-1]
    if len(gaps) == 1 or gaps[0] - gaps[1] > 50.0:
        assert labels == pytest.approx(case.marginals, abs=1e-5)


@pytest.mark.parametrize("masked", [False, True])
def test_paths_that_a_scaled_sum_would_lose(masked):
    """At each token label 0 is ahead by 60, and at the end only label 1 may stand, which follows label 0
    never, or at a price."""
    transitions = np.array([[True, not masked], [True, True]])
    oracle = ViterbiOracle(2, 1, end=True, allowed_transitions=transitions)
    w = np.zeros((oracle.n_rows, oracle.stride))
    w[0, 0] = 60.0
    w[1, 1] = 0.0 if masked else -1000.0
    w[4, 0] = -1e4
    T = 40
    log_sum, labels, _ = oracle.chain([np.ones((T, 1))]).expect(w.ravel(), 0)
    assert labels[-1, 1] == pytest.approx(1.0, abs=1e-6)
    assert labels[:-1, 1] == pytest.approx(1.0 if masked else 0.0, abs=1e-6)
    assert log_sum == pytest.approx(0.0 if masked else 60.0 * (T - 1) - 1000.0, abs=1e-3)


@pytest.mark.parametrize("n", [1, 2, 6])
def test_a_share_that_is_lost_behind_a_mask_decides_later(n):
    """Label 0 is ahead by 60 a token, then label 1 by 80, and neither may follow the other."""
    oracle = ViterbiOracle(2, 2, allowed_transitions=np.eye(2, dtype=bool))
    w = np.zeros((oracle.n_rows, oracle.stride))
    w[0, 0], w[1, 1] = 60.0, 80.0
    x = np.repeat(np.eye(2), n, axis=0)
    log_sum, labels, transitions = oracle.chain([x]).expect(w.ravel(), 0)
    assert log_sum == pytest.approx(80.0 * n, rel=1e-6)
    assert labels[:, 1] == pytest.approx(1.0, abs=1e-6)
    assert transitions[:2, :2] == pytest.approx(np.diag([0.0, 2.0 * n - 1.0]), abs=1e-5)


def test_masked_chains_are_summed_without_logarithms():
    """Sums in logarithms, which `log_sum` takes, round otherwise."""
    rng, differ = np.random.default_rng(0), []
    inside = np.array([[True, True, False], [True, True, True], [True, True, True]])  # I does not follow O
    for masks in ({}, {"allowed_transitions": inside, "allowed_first": inside[0]}):
        oracle = ViterbiOracle(3, 3, **masks)
        chain = oracle.chain([rng.normal(size=(30, 3)) for _ in range(10)])
        w = rng.normal(size=oracle.n_features)
        sums = np.array([[chain.expect(w, i)[0], chain.log_sum(w, i)] for i in range(10)])
        np.testing.assert_allclose(sums[:, 0], sums[:, 1], rtol=1e-5)
        differ.append((sums[:, 0] != sums[:, 1]).any())
    assert differ == [True, True]


@pytest.mark.parametrize("order", [1, 2])
def test_a_long_sequence(order):
    """100,000 tokens: the sum by a matrix product in float64, and the counts of transitions by the label marginals."""
    rng = np.random.default_rng(order)
    K, T = 3, 100_000
    oracle = ViterbiOracle(K, 2, order=order)
    x = rng.normal(size=(T, 2)).astype(np.float32)
    w = rng.normal(size=oracle.n_features).astype(np.float32)
    log_sum, labels, transitions = oracle.chain([x]).expect(w, 0)
    assert labels.sum(axis=1) == pytest.approx(1.0, abs=1e-5)
    counts = transitions[:K, :K]
    assert counts.sum() == pytest.approx(T - 1, rel=1e-6)
    assert counts.sum(axis=0) == pytest.approx(labels[1:].sum(axis=0), rel=1e-5)
    assert counts.sum(axis=1) == pytest.approx(labels[:-1].sum(axis=0), rel=1e-5)
    if order == 1:
        rows = w.astype(float).reshape(oracle.n_rows, -1)[:, :K]
        emission, alpha, total = x.astype(float) @ rows[:2], np.exp(rows[2 + K]), 0.0
        for t in range(T):
            alpha = (alpha if t == 0 else alpha @ np.exp(rows[2 : 2 + K])) * np.exp(emission[t])
            total += np.log(alpha.sum())
            alpha /= alpha.sum()
        assert log_sum == pytest.approx(total, rel=1e-6)
    y = oracle.chain([x]).decode(w)
    loss, entropy, gradient = oracle.bind([x], [y], rescaling=None).expect(0, w)
    assert loss == pytest.approx(log_sum - w.astype(float) @ oracle.joint_feature(x, y), rel=1e-4)
    assert entropy == pytest.approx(log_sum - w.astype(float) @ oracle.expect(x, w)[1], rel=1e-4)
    assert np.isfinite(gradient).all()


@pytest.mark.parametrize("order", [1, 2])
def test_long_sums_are_left_at_ctrl_c(order):
    class Stop(Exception):
        pass

    def stop():
        raise Stop

    oracle = ViterbiOracle(30, 1, order=order)
    chain = oracle.chain([np.ones((3000, 1))])
    look_every(1, stop)
    try:
        with pytest.raises(Stop):
            chain.expect(np.zeros(oracle.n_features), 0)
    finally:
        look_every()


def test_scores_that_overflow_are_no_loss():
    oracle = ViterbiOracle(2, 1)
    problem = oracle.bind([np.full((3, 1), 1e30)], [[0, 1, 0]], rescaling=None)
    assert np.isnan(problem.expect(0, np.full(oracle.n_features, 1e30))[0])


def log_sums(emission, transition):
    """Log Z, label marginals and expected transitions of a chain, in logs and in float64."""
    T, K = emission.shape
    forward, backward = np.empty((T, K)), np.zeros((T, K))
    for t in range(T):
        before = 0.0 if t == 0 else np.logaddexp.reduce(forward[t - 1][:, None] + transition, axis=0)
        forward[t] = before + emission[t]
    for t in range(T - 2, -1, -1):
        backward[t] = np.logaddexp.reduce(transition + (emission[t + 1] + backward[t + 1])[None, :], axis=1)
    total = np.logaddexp.reduce(forward[-1])
    pairs = sum(
        np.exp(forward[t - 1][:, None] + transition + (emission[t] + backward[t])[None, :] - total) for t in range(1, T)
    )
    return total, np.exp(forward + backward - total), pairs


# Transitions up to 40 apart are summed by scaled products, others in logs.
@pytest.mark.parametrize("spread", [1.0, 30.0, 39.0, 41.0, 80.0])
@pytest.mark.parametrize(("K", "T"), [(1, 5), (2, 30), (9, 30), (24, 20), (45, 12), (3, 600)])
@pytest.mark.parametrize("end", [False, True])
def test_scaled_sums_are_those_of_logs(K, T, spread, end):
    rng = np.random.default_rng(K * T)
    oracle = ViterbiOracle(K, K, end=end)
    rows = np.zeros((oracle.n_rows, oracle.stride), dtype=np.float32)
    rows[:K, :K] = np.eye(K)
    between = rng.random((K, K))
    between[0, 0], between[-1, -1] = 0.0, 1.0
    rows[K : 2 * K, :K] = spread * (between - 0.3)
    rows[2 * K :, :K] = rng.normal(size=(len(rows) - 2 * K, K))
    x = (4.0 * rng.normal(size=(T, K))).astype(np.float32)
    emission = x.astype(float)
    emission[0] += rows[2 * K, :K]
    if end:
        emission[-1] += rows[2 * K + 1, :K]
    transition = rows[K : 2 * K, :K].astype(float)
    total, marginals, pairs = log_sums(emission, transition)
    y = rng.integers(K, size=T)
    score = emission[np.arange(T), y].sum() + transition[y[:-1], y[1:]].sum()
    mean = (marginals * emission).sum() + np.sum(pairs * transition)

    log_sum, labels, others = oracle.chain([x]).expect(rows.ravel(), 0)
    assert log_sum == pytest.approx(total, rel=1e-6, abs=1e-5)
    assert labels == pytest.approx(marginals, abs=2e-5)
    assert others[:K, :K] == pytest.approx(pairs, abs=1e-4)
    loss, entropy, gradient = oracle.bind([x], [y], rescaling=None).expect(0, rows.ravel())
    assert loss == pytest.approx(total - score, rel=1e-5, abs=1e-4)
    # The rounding that a sum of products may have is taken off.
    assert entropy == pytest.approx(total - mean, rel=1e-5, abs=1e-4 + (1e-6 if spread < 20.0 else 3e-6) * T)
    counts = np.zeros((K, K))
    np.add.at(counts, (y[:-1], y[1:]), 1.0)
    assert gradient.reshape(rows.shape)[K : 2 * K, :K] == pytest.approx(pairs - counts, abs=1e-4)


def test_the_loss_of_labels_that_are_next_to_impossible():
    oracle = ViterbiOracle(2, 1)
    w = np.zeros((oracle.n_rows, oracle.stride))
    w[0, 0] = 100.0
    problem = oracle.bind([np.ones((5, 1))], [[0, 1, 0, 1, 1]], rescaling=None)
    loss, entropy, gradient = problem.expect(0, w.ravel())
    assert loss == pytest.approx(300.0, rel=1e-6) and 0.0 <= entropy < 1e-6
    assert gradient.reshape(w.shape)[0, :2] == pytest.approx([3.0, -3.0], abs=1e-6)


@pytest.mark.parametrize("seed", range(6))
def test_the_entropy_of_long_chains_is_not_above_the_true_one(seed):
    """Tokens that repeat are rounded alike: their errors add up."""
    rng, T = np.random.default_rng(seed), 4000
    oracle = ViterbiOracle(2, 3)
    rows = np.zeros((oracle.n_rows, oracle.stride), dtype=np.float32)
    rows[:3, :2], rows[3:5, :2] = 3.0 * rng.normal(size=(3, 2)), 4.0 * rng.normal(size=(2, 2))
    x = np.tile(rng.normal(size=(4, 3)), (T // 4, 1)).astype(np.float32)
    emission, transition = x.astype(float) @ rows[:3, :2], rows[3:5, :2].astype(float)
    total, marginals, pairs = log_sums(emission, transition)
    true = total - (marginals * emission).sum() - np.sum(pairs * transition)
    y = marginals.argmax(axis=1)
    entropy = oracle.bind([x], [y], rescaling=None).expect(0, rows.ravel())[1]
    assert true - 5e-6 * T <= entropy <= true * (1.0 + 1e-9)


@pytest.mark.parametrize("T", [1, 2, 50])
def test_one_label_has_no_entropy(T):
    oracle = ViterbiOracle(1, 3, end=True)
    rng = np.random.default_rng(T)
    for _ in range(5):
        problem = oracle.bind([rng.normal(size=(T, 3))], [[0] * T], rescaling=None)
        assert problem.expect(0, 10.0 * rng.normal(size=oracle.n_features))[1] == 0.0
