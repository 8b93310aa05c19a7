"""Label chains against the enumeration of all labellings."""

import pickle
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from chain_reference import ReferenceChain
from hypothesis import given
from hypothesis import strategies as st
from structures_table import FORMULATIONS, Chains, single, tokens_of

from structsvm import LaRank, UnsupportedFormulation
from structsvm.features.tokens import Tokens
from structsvm.oracles._viterbi import MAX_CHART_BYTES
from structsvm.oracles.viterbi import ViterbiOracle
from structsvm.testing import check_oracle

CLOSE = {"rel": 1e-5, "abs": 2e-5}  # the chains' scores are float32
MANY_PAIRS = 4096  # differing tokens, as in `_viterbi.pyx`
WINDOW = 1 << 23  # weights, as in `_dual.pyx`


class Case(Chains):
    """One sequence, and weights."""

    def __init__(self, seed, K, T, order, end, ones, masks, *, whole=False, n_bigrams=0):
        super().__init__(seed, K, (T,), order, end=end, ones=ones, masks=masks, n_bigrams=n_bigrams)
        self.T, (self.x,), (self.reference,) = T, self.X, self.references
        self.w = self.weights(seed, whole=whole)

    def scores(self):
        """All labellings with their scores, best first."""
        table = [(self.reference.score(self.w, y), y) for y in self.reference.labellings()]
        return sorted(table, reverse=True)


@st.composite
def cases(draw, **options):
    seed = draw(st.integers(0, 2**32 - 1))
    K, T = draw(st.integers(1, 4)), draw(st.integers(1, 5))
    order = draw(st.sampled_from([1, 2]))
    end, ones, masks = draw(st.booleans()), draw(st.booleans()), draw(st.booleans())
    return Case(seed, K, T, order, end, ones, masks, n_bigrams=draw(st.integers(0, 2)), **options)


# --- decoding -------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize(
    ("K", "T"), [(7, 3), (8, 3), (9, 3), (16, 2), (17, 2), (24, 2), (25, 2), (33, 2), (1, 5), (40, 1)]
)
def test_widths_of_rows(K, T, order):
    for seed in range(3):
        case = Case(seed, K, T, order, True, False, seed == 2)
        assert case.oracle.n_features == case.reference.n_rows * case.reference.stride
        y = case.oracle.chain(case.tokens).decode(case.w)
        assert tuple(y) == case.scores()[0][1]
        margins = case.oracle.chain(case.tokens).max_marginals(case.w, 0)
        assert margins.shape == (T, K)
        assert margins.max() == pytest.approx(case.scores()[0][0], **CLOSE)


@given(cases(whole=True))
def test_ties_are_broken_in_one_way(case):
    decode = case.oracle.chain(case.tokens).decode
    y = decode(case.w)
    assert case.reference.score(case.w, y) == pytest.approx(case.scores()[0][0], **CLOSE)
    for _ in range(3):
        assert np.array_equal(case.oracle.chain(case.tokens).decode(case.w), y)
    # Sequences do not disturb one another.
    many = Tokens.joined([case.tokens] * 3)
    assert np.array_equal(case.oracle.chain(many).decode(case.w), np.tile(y, 3))
    assert np.array_equal(case.oracle.chain(many).decode(case.w, 1, 2), y)


@pytest.mark.parametrize("spread", [0.0, 0.3, 1.0, 3.0, 10.0, 100.0])
@pytest.mark.parametrize("K", [48, 61])
def test_labels_that_cannot_matter_are_left_out(K, spread):
    random, T, F = np.random.default_rng(int(spread) + K), 12, 30
    oracle = ViterbiOracle(K, F)
    w = np.zeros((oracle.n_features // oracle.stride, oracle.stride), dtype=np.float32)
    w[:, :K] = random.normal(size=(len(w), K))
    w[:F] *= spread
    if spread == 3.0:
        w = np.round(w)  # ties
    features, y = random.integers(0, F, T), random.integers(0, K, T)
    x = np.eye(F, dtype=np.float32)[features]
    for gold, rescaling in ((None, None), (y, "margin")):
        E = w[features, :K] + (0 if gold is None else (np.arange(K) != y[:, None]).astype(np.float32))
        V, back = E[0] + w[F + K, :K], []
        for t in range(1, T):
            sums = V[:, None] + w[F : F + K, :K]
            back.append(sums.argmax(axis=0))
            V = sums.max(axis=0) + E[t]
        path = [int(V.argmax())]
        for before in back[::-1]:
            path.append(int(before[path[-1]]))
        assert oracle.argmax(x, w.ravel(), gold, rescaling).tolist() == path[::-1]
        if gold is None:
            # One decoder for short sequences and long ones, with other weights before.
            chain = oracle.chain([x[:2], x, x[:3], x])
            chain.decode((w - 100.0 * (w[:, :1] != 0)).ravel())
            assert chain.decode(w.ravel(), 3).tolist() == path[::-1]
            assert chain.decode(w.ravel(), 0, 2)[2:].tolist() == path[::-1]
            short = [oracle.argmax(x[:n], w.ravel()) for n in (2, 3)]
            assert np.array_equal(chain.decode(w.ravel())[:2], short[0])
            assert np.array_equal(chain.decode(w.ravel())[14:17], short[1])


@given(cases(), st.integers(0, 2**32 - 1))
def test_labels_allowed_by_token(case, seed):
    allowed = np.random.default_rng(seed).random((case.T, case.K)) < 0.6
    case.reference.allowed = allowed
    table = case.scores()
    chain = case.oracle.chain(case.tokens)
    if not table:
        with pytest.raises(ValueError, match="sequence 0: the masks leave no labelling from token 0 on"):
            chain.decode(case.w, allowed=[allowed])
        return
    y = chain.decode(case.w, allowed=[allowed])
    assert case.reference.possible(tuple(y))
    assert case.reference.score(case.w, y) == pytest.approx(table[0][0], **CLOSE)
    paths, scores = chain.kbest(case.w, 0, 3, allowed=allowed)
    assert scores == pytest.approx([s for s, _ in table[:3]], **CLOSE)
    assert all(case.reference.possible(tuple(p)) for p in paths)


def test_forced_labels_of_one_sequence_among_others():
    oracle = ViterbiOracle(3, 2)
    rng = np.random.default_rng(0)
    chain = oracle.chain([rng.normal(size=(4, 2)) for _ in range(3)])
    w = rng.normal(size=oracle.n_features)
    forced = np.zeros((4, 3), dtype=bool)
    forced[:, 1] = True
    free = chain.decode(w)
    y = chain.decode(w, allowed=[None, forced, None])
    assert np.array_equal(y[4:8], [1, 1, 1, 1])
    assert np.array_equal(np.delete(y, slice(4, 8)), np.delete(free, slice(4, 8)))
    with pytest.raises(ValueError, match=r"sequence 2 must be a boolean array of shape \(4, 3\)"):
        chain.decode(w, allowed=[None, None, forced[:3]])


def test_unreachable_masks():
    oracle = ViterbiOracle(2, 1, allowed_transitions=np.array([[False, True], [False, False]]))
    w = np.zeros(oracle.n_features)
    assert np.array_equal(oracle.chain([np.ones((2, 1))]).decode(w), [0, 1])
    with pytest.raises(ValueError, match="sequence 1: the masks leave no labelling from token 0 on"):
        oracle.chain([np.ones((2, 1)), np.ones((3, 1))]).decode(w)
    with pytest.raises(ValueError, match=r"sequence 0: the true labelling breaks the mask at token 1 \(label 0\)"):
        oracle.bind([np.ones((2, 1))], [[1, 0]])


@pytest.mark.parametrize("order", [1, 2])
def test_a_long_sequence(order):
    rng = np.random.default_rng(order)
    oracle = ViterbiOracle(3, 2, order=order)
    x = rng.normal(size=(100_000, 2))
    w = rng.normal(size=oracle.n_features)
    y = oracle.chain([x]).decode(w)
    reference = ReferenceChain(x, 3, order=order)
    score = reference.score(w, y)
    # No single change can improve it.
    for t in rng.integers(0, len(x), 1):
        for label in range(3):
            z = y.copy()
            z[t] = label
            assert reference.score(w, z) <= score + 1e-2
    assert oracle.bind([x], [y]).separate(0, w)[0] >= 0.0


@pytest.mark.parametrize("ones", [False, True])
def test_inner_products_of_cuts_with_many_differences(ones):
    """They are taken feature by feature; what the steps track is still the dual of the dense constraints."""
    rng = np.random.default_rng(0)
    n = 2 * int(MANY_PAIRS**0.5)
    X = [np.zeros((n, 5)) for _ in range(2)]
    for x, columns in zip(X, ([0, 1, 2], [0, 3, 4]), strict=True):  # features that the sequences share, and others
        x[:, columns] = rng.integers(0, 2, (n, 3)) if ones else rng.normal(size=(n, 3))
    oracle = ViterbiOracle(3, 5)
    # No token has label 2: the constraints alone have features of it.
    problem = oracle.bind(tokens_of(X, 5, ones=ones), [rng.integers(0, 2, n) for _ in X])
    run = LaRank(C=0.01, schedule="fixed", n_reprocess=3, random_state=0).start(problem)
    for _ in range(4):
        run.schedule.start_pass()
        run.schedule.run(np.inf)
        tracked = run.state.dual
        assert run.state.n_cuts > 2
        _, b, rows = run.state.constraints()
        alpha = run.state.alphas()[1]
        w = np.zeros(oracle.n_features)
        for a, (indices, values) in zip(alpha, rows, strict=True):
            w[indices] += a * values
        assert tracked == pytest.approx(alpha @ b - 0.5 * w @ w, rel=1e-4)


def test_inner_products_take_memory_for_the_features_of_a_sequence():
    rng = np.random.default_rng(0)
    n, F = 2 * int(MANY_PAIRS**0.5), 100_000
    X = [tokens_of([rng.integers(0, 2, (n, 3)).astype(float)], 3, ones=True) for _ in range(2)]
    tokens = Tokens(
        np.array([0, n, 2 * n]),
        np.concatenate([X[0].indptr, X[0].indptr[-1] + X[1].indptr[1:]]),
        np.concatenate([X[0].indices, F - 3 + X[1].indices]),
        None,
        F,
    )
    run = LaRank(C=0.01, schedule="fixed", n_reprocess=3, random_state=0, average=False).start(
        ViterbiOracle(3, F).bind(tokens, rng.integers(0, 2, 2 * n))
    )
    run.schedule.start_pass()
    tracemalloc.start()
    try:
        run.schedule.run(np.inf)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert run.state.n_cuts > 2
    # A number per feature; no row.
    assert 4 * F <= peak < 8 * F


def test_counting_has_a_cap():
    oracle = ViterbiOracle(3, 1)
    x, y = np.ones((20_000, 1)), np.zeros(20_000, dtype=int)
    assert MAX_CHART_BYTES < 20_000**2 * 8 * 4
    with pytest.raises(UnsupportedFormulation, match=r"20000 tokens needs a chart of .* bytes"):
        oracle.bind([x], [y], rescaling="slack")
    with pytest.raises(UnsupportedFormulation, match="use rescaling='margin' with penalty='linear'"):
        oracle.bind([x], [y], penalty="quadratic")
    assert oracle.bind([x], [y]).n_samples == 1
    assert ViterbiOracle(3, 1, loss="zero_one").bind([x], [y], rescaling="slack").n_samples == 1


@pytest.mark.parametrize("K", [3, 8, 16, 20, 24, 33, 40, 56])
def test_rows_without_zeros_are_summed_many_at_a_time(K):
    """The same bits as token by token, and at any place in a sequence."""
    rng = np.random.default_rng(K)
    x = rng.normal(size=(11, 10))
    x[:, 0] = 0.0  # so that no row is whole
    x[3, 4] = x[9, 9] = 0.0
    oracle, whole = ViterbiOracle(K, 10), ViterbiOracle(K, 9)
    rows = rng.normal(size=(oracle.n_rows, oracle.stride)).astype(np.float32)
    rows[:, K:] = 0.0
    for a, b in [(0, 11), (4, 9), (4, 8), (4, 7), (5, 9)]:
        found = whole.chain([x[a:b, 1:]]).max_marginals(rows[1:].ravel(), 0)
        assert np.array_equal(found, oracle.chain([x[a:b]]).max_marginals(rows.ravel(), 0))
        allowed = rng.random((b - a, K)) < 0.8
        allowed[:, 0] = True
        y = whole.chain([x[a:b, 1:]]).decode(rows[1:].ravel(), allowed=[allowed])
        assert np.array_equal(y, oracle.chain([x[a:b]]).decode(rows.ravel(), allowed=[allowed]))
        assert allowed[np.arange(b - a), y].all()


@pytest.mark.parametrize("F", [1, 7, 8, 25])
def test_inner_products_of_rows_without_zeros(F):
    rng = np.random.default_rng(F)
    x = single(rng.normal(size=(9, F)))
    oracle = ViterbiOracle(3, F)
    run = LaRank(C=0.1, schedule="fixed", n_reprocess=3, random_state=0).start(
        oracle.bind([x], [rng.integers(0, 3, 9)])
    )
    for _ in range(5):
        run.schedule.start_pass()
        run.schedule.run(np.inf)
        tracked = run.state.dual
        _, b, psi = run.state.constraints()
        alpha = run.state.alphas()[1]
        w = np.zeros(oracle.n_features)
        for a, (indices, values) in zip(alpha, psi, strict=True):
            w[indices] += a * values
        assert tracked == pytest.approx(alpha @ b - 0.5 * w @ w, rel=1e-4)


# --- the k best, max-marginals, counts ------------------------------------------------------------


@given(cases(), st.integers(1, 40))
def test_kbest(case, k):
    table = case.scores()
    paths, scores = case.oracle.chain(case.tokens).kbest(case.w, 0, k)
    assert len(paths) == len(scores) == min(k, len(table))
    assert len({tuple(p) for p in paths}) == len(paths)
    assert list(scores) == sorted(scores, reverse=True)
    assert scores == pytest.approx([s for s, _ in table[:k]], **CLOSE)
    for path, score in zip(paths, scores, strict=True):
        assert case.reference.possible(tuple(path))
        assert case.reference.score(case.w, path) == pytest.approx(score, **CLOSE)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize(("K", "T"), [(1, 4), (2, 5), (3, 4), (9, 2)])
def test_there_are_K_to_the_T_labellings(K, T, order):
    oracle = ViterbiOracle(K, 1, order=order)
    paths, _ = oracle.chain([np.ones((T, 1))]).kbest(np.zeros(oracle.n_features), 0, K**T + 7)
    assert len(paths) == K**T == len({tuple(p) for p in paths})


@given(cases())
def test_max_marginals(case):
    table = case.scores()
    margins = case.oracle.chain(case.tokens).max_marginals(case.w, 0)
    for t in range(case.T):
        for label in range(case.K):
            best = max([s for s, y in table if y[t] == label], default=-np.inf)
            assert margins[t, label] == pytest.approx(best, **CLOSE)


def test_arguments_out_of_range():
    oracle = ViterbiOracle(3, 2)
    chain, w = oracle.chain([np.ones((2, 2))] * 2), np.zeros(oracle.n_features)
    for wrong in (-1, 2, 10**9):
        with pytest.raises(IndexError, match="out of range for 2"):
            chain.kbest(w, wrong, 1)
        with pytest.raises(IndexError, match="out of range for 2"):
            chain.max_marginals(w, wrong)
    for bounds in ((-1, 1), (1, 3), (2, 1)):
        with pytest.raises(IndexError, match="out of range for 2"):
            chain.decode(w, *bounds)
    with pytest.raises(ValueError, match="k must be at least 1, got 0"):
        chain.kbest(w, 0, 0)
    for k in (2**40, 2**59, 2**61, 2**62):
        with pytest.raises(ValueError, match="bytes, more than"):
            chain.kbest(w, 0, k)
    with pytest.raises(ValueError, match=r"w has shape \(3,\), expected"):
        chain.decode(np.zeros(3))
    problem = oracle.bind([np.ones((2, 2))] * 2, [[0, 1]] * 2)
    for call in (problem.separate, problem.most_violated):
        with pytest.raises(IndexError, match="out of range for 2"):
            call(2, w)
    with pytest.raises(ValueError, match="w has shape"):
        problem.separate(0, w[1:])


def test_weights_that_are_not_finite_do_no_harm():
    """Overflow in training must stay inside the tables; what comes out means nothing."""
    rng = np.random.default_rng(0)
    for order in (1, 2):
        oracle = ViterbiOracle(9, 2, order=order)
        x, y = [rng.normal(size=(6, 2))] * 2, [rng.integers(0, 9, 6)] * 2
        for fill in (np.nan, np.inf, -np.inf):
            for share in (0.3, 1.0):
                w = rng.normal(size=oracle.n_features)
                w[rng.random(w.size) < share] = fill
                for rescaling, penalty in [*FORMULATIONS, (None, "linear")]:
                    problem = oracle.bind(x, y, rescaling=rescaling, penalty=penalty)
                    path = problem.most_violated(1, w)
                    assert path.min() >= 0 and path.max() < 9
                oracle.chain(x).max_marginals(w, 0)
                paths, _ = oracle.chain(x).kbest(w, 0, 3)
                assert paths.size == 0 or 0 <= paths.min() <= paths.max() < 9


# --- parameters and data --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_labels": 0}, "'n_labels' parameter of ViterbiOracle must be an integer of at least 1. Got 0"),
        ({"n_labels": 2.0}, "'n_labels' parameter"),
        ({"n_token_features": 0}, "'n_token_features' parameter"),
        ({"n_bigrams": -1}, "'n_bigrams' parameter of ViterbiOracle must be an integer of at least 0. Got -1"),
        ({"n_bigrams": 2**30}, "3 features and 1073741824 bigrams with 2 labels need 17179869240 weights"),
        ({"order": 3}, "'order' parameter of ViterbiOracle must be 1 or 2. Got 3"),
        ({"loss": "l2"}, "'loss' parameter of ViterbiOracle must be 'hamming', 'zero_one' or 'log'"),
        ({"label_costs": [1.0, 0.0]}, "'label_costs' parameter must be 2 positive finite numbers"),
        ({"label_costs": [1.0, np.nan]}, "'label_costs'"),
        ({"label_costs": [1.0]}, "'label_costs'"),
        ({"allowed_first": [1, 0]}, r"'allowed_first' parameter must be a boolean array of shape \(2,\)"),
        ({"allowed_transitions": np.ones((2, 3), dtype=bool)}, "'allowed_transitions'"),
        ({"n_labels": 1000, "n_token_features": 3_000_000}, "cut rare features"),
        ({"n_labels": np.int32(70_000), "n_token_features": np.int32(70_000)}, "cut rare features"),
    ],
)
def test_parameters(arguments, message):
    with pytest.raises(ValueError, match=message):
        ViterbiOracle(**{"n_labels": 2, "n_token_features": 3, **arguments})


def test_units_of_label_costs():
    for costs, unit, units in (
        (None, 1.0, [1, 1]),
        ([3.0, 1.0], 1.0, [3, 1]),
        ([1.0, 2.5], 0.5, [2, 5]),
        ([0.1, 0.3], 0.1, [1, 3]),
        ([1.0, 100.0], 1.0, [1, 100]),
    ):
        found = ViterbiOracle(2, 1, label_costs=costs).cost_units
        assert found[0] == pytest.approx(unit)
        assert found[1].tolist() == units
    for costs in ([1.0, np.pi], [1.0, 101.0]):
        oracle = ViterbiOracle(2, 1, label_costs=costs)
        assert oracle.cost_units is None
        with pytest.raises(UnsupportedFormulation, match="costs that are multiples of one unit, up to 100"):
            oracle.bind([np.ones((2, 1))], [[0, 1]], rescaling="slack")


@pytest.mark.parametrize("loss", ["hamming", "zero_one"])
@pytest.mark.parametrize("costs", [None, [1.0, 2.0], [1.0, np.pi]])
def test_what_is_declared_is_what_bind_accepts(loss, costs):
    oracle = ViterbiOracle(2, 1, loss=loss, label_costs=costs)
    X, Y = [np.ones((2, 1)), np.ones((3, 1))], [np.array([0, 1]), np.array([1, 1, 0])]
    for rescaling in ("margin", "slack", None):
        for penalty in ("linear", "quadratic", None):
            if rescaling is None or (rescaling in oracle.rescalings and penalty in oracle.penalties):
                oracle.bind(X, Y, rescaling=rescaling, penalty=penalty)
            else:
                with pytest.raises(UnsupportedFormulation, match=r"label costs \(class_weight\) need the Hamming loss"):
                    oracle.bind(X, Y, rescaling=rescaling, penalty=penalty)
    assert len(oracle.rescalings) * len(oracle.penalties) == (
        6 if costs is None or (loss == "hamming" and costs[1] == 2.0) else 1 if loss == "hamming" else 0
    )
    check_oracle(oracle, X, Y)


def test_decoders_do_not_pickle():
    with pytest.raises(TypeError, match="pickle"):
        pickle.dumps(ViterbiOracle(3, 2).chain([np.ones((3, 2))]))


@pytest.mark.parametrize(
    ("Y", "message"),
    [
        ([[0, 1]], "X has 2 sequences, Y has 1"),
        ([[0, 1], [0]], "sequence 1 has 2 tokens but 1 labels"),
        ([[0, 1], [0, 3]], r"labels lie in 0..3, expected 0..2"),
        ([[0, 1], [0, -1]], r"labels lie in -1..1"),
        ([[0, 1], [0, 2**32]], "labels lie in"),
        ([[0, 1], [0, 1.5]], "labels are of type float64, expected integers"),
        (np.zeros(3, dtype=int), r"labels have shape \(3,\), expected \(4,\)"),
    ],
)
def test_labels_that_do_not_fit(Y, message):
    with pytest.raises(ValueError, match=message):
        ViterbiOracle(3, 2).bind([np.ones((2, 2))] * 2, Y)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"offsets": [0, 3, 2]}, "offsets must ascend from 0 to 2"),
        ({"offsets": [0, 5]}, "offsets must ascend from 0 to 2"),
        ({"offsets": [1, 2]}, "offsets must ascend"),
        ({"offsets": [0, 0, 2]}, "sequence 0 is empty"),
        ({"indptr": [0, 3, 2]}, "indptr must ascend from 0 to 2"),
        ({"indptr": [0, 1, 10**12]}, "indptr must ascend"),
        ({"indices": [0, 4]}, r"feature indices outside 0..3"),
        ({"indices": [-1, 0]}, "feature indices outside"),
        ({"values": [1.0]}, "2 indices and 1 values"),
        ({"n_features": 5}, "the sequences have 5 features, the oracle 4"),
        ({"indptr": np.array([0, 1, 2], dtype=np.int32)}, "indptr must be a contiguous array of int64"),
        ({"indices": np.array([0, 1], dtype=np.int64)}, "indices must be a contiguous array of int32"),
        ({"values": np.array([0.5, 1.0])}, "values must be a contiguous array of float32"),
        ({"indices": np.arange(4, dtype=np.int32)[::2]}, "indices must be a contiguous"),
    ],
)
def test_tokens_that_would_lead_astray(change, message):
    types = {"offsets": np.int64, "indptr": np.int64, "indices": np.int32, "values": np.float32}
    good = {"offsets": [0, 2], "indptr": [0, 1, 2], "indices": [0, 1], "values": [0.5, 1.0], "n_features": 4}
    parts = {
        name: v if name == "n_features" or isinstance(v, np.ndarray) else np.array(v, dtype=types[name])
        for name, v in (good | change).items()
    }
    with pytest.raises(ValueError, match=message):
        ViterbiOracle(2, 4).chain(Tokens(**parts))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (None, "the sequences have no bigrams, the oracle 3"),
        ({"n_features": 4}, "the sequences' bigrams have 4 features, the oracle 3"),
        ({"indices": [0, 3]}, r"bigrams have feature indices outside 0..2"),
        ({"indices": [0, 1, 2]}, "bigrams' indptr must ascend from 0 to 3"),
        ({"values": [1.0]}, "bigrams have 2 indices and 1 values"),
        ({"offsets": [0, 1, 2]}, "bigrams must have the offsets of the sequences"),
        ({"offsets": [0, 3]}, "bigrams' offsets must ascend from 0 to 2"),
    ],
)
def test_bigrams_that_would_lead_astray(change, message):
    tokens = tokens_of([np.ones((2, 4))], 4)
    types = {"offsets": np.int64, "indptr": np.int64, "indices": np.int32, "values": np.float32}
    if change is not None:
        good = {"offsets": [0, 2], "indptr": [0, 0, 2], "indices": [0, 1], "values": [0.5, 1.0], "n_features": 3}
        parts = {k: v if k == "n_features" else np.array(v, dtype=types[k]) for k, v in (good | change).items()}
        tokens = replace(tokens, bigrams=Tokens(**parts))
    with pytest.raises(ValueError, match=message):
        ViterbiOracle(2, 4, n_bigrams=3).chain(tokens)


def test_tables_of_bigrams_have_a_bound():
    n, K = 40_000, 120
    assert 4 * n * K**2 > MAX_CHART_BYTES
    tokens = tokens_of([np.ones((n, 1))], 1, ones=True)
    tokens = replace(tokens, bigrams=tokens.conjoined(np.zeros(1, dtype=np.int32), 1))
    with pytest.raises(ValueError, match="a sequence of 40000 tokens with bigrams needs tables of 2304057600 bytes"):
        ViterbiOracle(K, 1, n_bigrams=1).chain(tokens)


def test_dense_sparse_and_weightless_tokens_agree():
    rng = np.random.default_rng(3)
    x = [rng.integers(0, 2, (n, 5)).astype(float) for n in (3, 1, 6)]
    oracle = ViterbiOracle(4, 5, order=2, end=True)
    w = rng.normal(size=oracle.n_features)
    labels = [oracle.chain(data).decode(w) for data in (x, tokens_of(x, 5), tokens_of(x, 5, ones=True))]
    assert np.array_equal(labels[0], labels[1]) and np.array_equal(labels[0], labels[2])
    assert np.array_equal(np.concatenate([oracle.argmax(a, w) for a in x]), labels[0])


def test_exact_sums_by_windows():
    """With more weights than a window, w and the dual are those of the dense constraints."""
    rng = np.random.default_rng(0)
    K, stride, n, size = 9, 16, 10, 8
    F = WINDOW // stride + 20_000
    indices = np.sort(rng.integers(0, F // 2, (n * size, 2)) * [1, 2] + [0, 1], axis=1)
    indices[0], indices[1] = [0, F - 1], [WINDOW // stride - 1, WINDOW // stride]
    bounds = np.arange(0, n * size + 1)
    tokens = Tokens(bounds[::size].copy(), 2 * bounds, indices.ravel().astype(np.int32), None, F)
    oracle = ViterbiOracle(K, F)
    run = LaRank(C=0.1, random_state=0, average=False).start(oracle.bind(tokens, rng.integers(0, K, n * size)))
    run.schedule.start_pass()
    run.schedule.run(np.inf)
    tracemalloc.start()
    try:
        dual = run.state.settle()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8 * WINDOW + 2**20 < 8 * oracle.n_features
    _, b, rows = run.state.constraints()
    alpha, w = run.state.alphas()[1], np.zeros(oracle.n_features)
    for a, (at, values) in zip(alpha, rows, strict=True):
        w[at] += a * values
    np.testing.assert_allclose(run.state.weights, w, rtol=1e-6, atol=1e-7)
    for row in (0, WINDOW // stride - 1, WINDOW // stride, F - 1, F + 1):
        assert w[row * stride : (row + 1) * stride].any()
    assert dual == pytest.approx(alpha @ b - 0.5 * w @ w, rel=1e-9)
