"""The greedy label sequences against a plain Python loop, and their per-token problem against enumeration."""

from contextlib import suppress

import numpy as np
import pytest
from chain_reference import ReferenceGreedy
from dual_reference import constraint, dual
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from structsvm import LaRank
from structsvm.features.tokens import Tokens
from structsvm.oracles.greedy import GreedyOracle

FORMULATIONS = [(rescaling, penalty) for rescaling in ("margin", "slack") for penalty in ("linear", "quadratic", None)]
ORDERS = [0, 1, 2, 5, 12]


def tokens_of(arrays, n_features, *, ones=False):
    rows = np.concatenate([np.asarray(a, dtype=np.float64) for a in arrays])
    there = rows != 0.0
    return Tokens(
        np.concatenate([[0], np.cumsum([len(a) for a in arrays])]).astype(np.int64),
        np.concatenate([[0], np.cumsum(there.sum(axis=1))]).astype(np.int64),
        np.nonzero(there)[1].astype(np.int32),
        None if ones else rows[there].astype(np.float32),
        n_features,
    )


class Case:
    """Some sequences, their oracle, their references, labels and weights."""

    def __init__(self, seed, K, lengths, order, ones, masks, **options):
        rng = np.random.default_rng(seed)
        self.rng, self.K, self.F = rng, K, int(rng.integers(1, 4))
        self.x = [
            (rng.integers(0, 2, (n, self.F)) if ones else rng.normal(size=(n, self.F))).astype(np.float32)
            for n in lengths
        ]
        structure = {"order": order}
        if masks:
            structure |= {
                "allowed_transitions": rng.random((K, K)) < 0.7,
                "allowed_first": rng.random(K) < 0.7,
                "allowed_last": rng.random(K) < 0.7,
            }
        self.oracle = GreedyOracle(K, self.F, **structure, **options)
        self.references = [ReferenceGreedy(x, K, **structure) for x in self.x]
        self.tokens = tokens_of(self.x, self.F, ones=ones)
        self.gold = [rng.integers(0, K, n) for n in lengths]
        self.w = rng.normal(size=self.oracle.n_features).astype(np.float32).astype(np.float64)


@st.composite
def cases(draw, masks=None, max_K=10, **options):
    masks = draw(st.booleans()) if masks is None else masks
    return Case(
        draw(st.integers(0, 2**32 - 1)),
        draw(st.integers(1, max_K)),
        draw(st.lists(st.integers(1, 7), min_size=1, max_size=3)),
        draw(st.sampled_from(ORDERS)),
        draw(st.booleans()),
        masks,
        **options,
    )


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
            assert list(case.oracle.argmax(case.x[i], case.w)) == y


@given(cases(), st.integers(0, 2**32 - 1))
def test_labels_allowed_by_token(case, seed):
    rng = np.random.default_rng(seed)
    allowed = [None if rng.random() < 0.3 else rng.random((len(x), case.K)) < 0.8 for x in case.x]
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
    for x, y, reference in zip(case.x, case.gold, case.references, strict=True):
        psi = case.oracle.joint_feature(x, y)
        assert np.allclose(psi, reference.joint_feature(y), atol=1e-6)
        total = sum(reference.token_scores(case.w, t, y)[y[t]] for t in range(len(y)))
        assert psi @ case.w == pytest.approx(total, rel=1e-5, abs=1e-5)
        other = case.rng.integers(0, case.K, len(y))
        assert case.oracle.loss(y, other) == (y != other).sum()


@pytest.mark.parametrize(("rescaling", "penalty"), FORMULATIONS)
@given(data=st.data())
@settings(max_examples=25)
def test_separate_token_by_token(rescaling, penalty, data):
    costs = data.draw(st.booleans())
    case = data.draw(cases(max_K=4))
    if costs:
        values = case.rng.uniform(0.3, 2.0, case.K)
        case.oracle = GreedyOracle(case.K, case.F, order=case.oracle.order, label_costs=values)
    else:
        values = np.ones(case.K)
    problem = case.oracle.bind(case.tokens, case.gold, rescaling=rescaling, penalty=penalty)
    assert problem.n_samples == sum(map(len, case.gold))
    i = 0
    for y, reference in zip(case.gold, case.references, strict=True):
        for t in range(len(y)):
            true = reference.token_feature(t, y[t], y)
            table = [
                constraint(true - reference.token_feature(t, c, y), values[y[t]], rescaling, penalty)
                for c in range(case.K)
                if c != y[t]
            ]
            violations = [b - psi @ case.w for b, psi in table]
            b, psi = problem.separate(i, case.w)
            if penalty is None and not violations:
                assert b == 0.0 and not psi.any()
            else:
                best = max(violations) if penalty is None else max([0.0, *violations])
                assert b - psi @ case.w == pytest.approx(best, rel=1e-5, abs=1e-4)
            i += 1


@pytest.mark.parametrize(("rescaling", "penalty"), FORMULATIONS)
@pytest.mark.parametrize("schedule", ["decode-once", "fixed"])
@given(data=st.data())
@settings(max_examples=10)
def test_arithmetic_of_cuts(rescaling, penalty, schedule, data):
    case = data.draw(cases(max_K=4, masks=False))
    # A token without any feature has the joint feature 0, which no hard margin can serve.
    assume(penalty is not None or case.oracle.order > 0)
    solver = LaRank(C=0.7, rescaling=rescaling, penalty=penalty, schedule=schedule, n_reprocess=3, random_state=0)
    problem = case.oracle.bind(case.tokens, case.gold, rescaling=rescaling, penalty=penalty)
    run = solver.start(problem)
    for _ in range(2):
        run.schedule.start_pass()
        run.schedule.run(np.inf)
    tracked, state = run.state.dual, run.state.get_state()
    alpha, cuts = [[] for _ in range(problem.n_samples)], [[] for _ in range(problem.n_samples)]
    place = [(s, t) for s, y in enumerate(case.gold) for t in range(len(y))]
    for c, i in enumerate(state["cut_example"]):
        (label,) = state["cut_words"][state["cut_bounds"][c] : state["cut_bounds"][c + 1]]
        a, b, scale = state["cut_numbers"][c]
        s, t = place[i]
        reference, y = case.references[s], case.gold[s]
        psi = reference.token_feature(t, y[t], y) - reference.token_feature(t, label, y)
        b_expected, psi = constraint(psi, 1.0, rescaling, penalty)
        assert (b, scale) == (b_expected, 1.0)
        alpha[i].append(a)
        cuts[i].append((b, psi))
    w = sum(
        (a * psi for of_a, of_c in zip(alpha, cuts, strict=True) for a, (_, psi) in zip(of_a, of_c, strict=True)),
        np.zeros(case.oracle.n_features),
    )
    exact = dual(alpha, cuts, np.full(problem.n_samples, 0.7), penalty)
    size = max(1.0, abs(exact), np.abs(w).max())
    assert np.abs(run.state.weights - w).max() <= 2e-5 * size
    assert run.state.settle() == pytest.approx(exact, rel=1e-9, abs=1e-9)
    assert tracked == pytest.approx(exact, rel=1e-4, abs=1e-4 * size)


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
    with pytest.raises(NotImplementedError, match="token by token"):
        oracle.argmax(x[0], np.zeros(oracle.n_features), y_true=y[0], rescaling="margin")


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
