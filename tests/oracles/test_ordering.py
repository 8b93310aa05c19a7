"""Inference over orders against the enumeration of all permutations, exact and relaxed."""

import itertools
import math
import pickle

import numpy as np
import ordering_reference as reference
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp

from structsvm import CuttingPlane, FrankWolfe, LaRank, LatentSVM
from structsvm.dual._rounds import violations
from structsvm.execution._stop import Job, look_every
from structsvm.oracles.ordering import FractionalOrder, OrderingOracle
from structsvm.solvers import ConditionalLikelihood
from structsvm.testing import check_oracle


class Relaxing(OrderingOracle):
    """An oracle of few items that treats them as many."""

    most_exact = 1
    has_expect = False


def random_case(seed, n, d=2, p=2):
    """``(x, y, w, A)``: an input, an order, weights, and the scores of pairs."""
    rng = np.random.default_rng(seed)
    rows, table = reference.random_input(rng, n, d, p)
    w = rng.normal(size=d + p) * [1.0] * (d + p)
    own = rows @ w[:d]
    A = own[:, None] - own + (table - table.transpose(1, 0, 2)) @ w[d:] / 2.0
    return (rows, table) if p else rows, rng.permutation(n), w, A


def scores_of(A):
    """The scores of all permutations, and their places: arrays (n!,) and (n!, n)."""
    n = len(A)
    place = np.argsort(reference.permutations_of(n), axis=1)
    i, j = np.triu_indices(n, 1)
    return np.where(place[:, i] < place[:, j], 1.0, -1.0) @ A[i, j], place


def losses(place, y):
    i, j = np.array([*itertools.combinations(y, 2)]).T
    return (place[:, i] > place[:, j]).mean(axis=1)


# --- exact ----------------------------------------------------------------------------------------


@settings(max_examples=25)
@given(seed=st.integers(0, 10**6), n=st.integers(2, 7), loss=st.sampled_from(["kendall", "zero_one"]))
def test_best_orders(seed, n, loss):
    x, y, w, A = random_case(seed, n)
    oracle = OrderingOracle(2, 2, loss)
    scores, place = scores_of(A)
    assert oracle.argmax(x, w).tolist() == np.argsort(place[scores.argmax()]).tolist()
    cost = losses(place, y)
    augmented = scores + (cost if loss == "kendall" else cost > 0.0)
    found = oracle.argmax(x, w, y, "margin")
    indices, values = oracle.joint_feature(x, found)
    assert w[indices] @ values + oracle.loss(y, found) == pytest.approx(augmented.max(), abs=1e-9)


@pytest.mark.parametrize("n", [8, 9, 10])
def test_up_to_ten_items(n):
    """The last number of items with exact inference is 10."""
    x, y, w, A = random_case(n, n)
    for truth in (None, y):
        if truth is not None:
            i, j = np.array([*itertools.combinations(y, 2)]).T
            A[i, j] -= 0.5 / len(i)
            A[j, i] += 0.5 / len(i)
        found = OrderingOracle(2, 2).argmax(x, w, truth, truth if truth is None else "margin")
        a, b = np.array([*itertools.combinations(found, 2)]).T
        assert A[a, b].sum() == pytest.approx(reference.best_score(A))


def test_sums_count_orders():
    """At w = 0 all n! of them, and with precedences the linear extensions."""
    for n in range(1, 11):
        oracle, x = OrderingOracle(2), np.zeros((n, 2))
        assert oracle.expect(x, np.zeros(2))[0] == pytest.approx(math.log(math.factorial(n)))
        half = n // 2
        chains = [[k, k + 1] for k in range(n - 1) if k + 1 != half]  # two of them
        known = np.array(chains, dtype=int).reshape(-1, 2)
        log_sum, _ = oracle.expect_known(x, known, np.zeros(2))
        assert log_sum == pytest.approx(math.log(math.comb(n, half)), abs=1e-12)
        assert oracle.expect_known(x, np.arange(n), np.zeros(2))[0] == 0.0


@settings(max_examples=25)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 6), scale=st.sampled_from([0.3, 300.0]))
def test_sums_over_all_orders(seed, n, scale):
    """And the losses, entropies and gradients of what is known in part."""
    x, y, w, _ = random_case(seed, n)
    w = scale * w
    rng, oracle = np.random.default_rng(seed), OrderingOracle(2, 2)
    outputs = reference.permutations_of(n)
    psi = np.array([reference.joint_feature(*x, z) for z in outputs])
    pairs = np.array([*itertools.combinations(y, 2)], dtype=int).reshape(-1, 2)
    known = pairs[rng.random(len(pairs)) < 0.4]
    agree = np.array([reference.agrees(z, known) for z in outputs])
    sums, means, entropies = [], [], []
    for part in (np.ones(len(psi), dtype=bool), agree):
        scores = psi[part] @ w
        sums.append(logsumexp(scores))
        p = np.exp(scores - sums[-1])
        means.append(p @ psi[part])
        entropies.append(sums[-1] - p @ scores)
    for answer, log_sum, mean in zip((oracle.expect(x, w), oracle.expect_known(x, known, w)), sums, means, strict=True):
        assert answer[0] == pytest.approx(log_sum, rel=1e-9, abs=1e-9)
        assert np.bincount(answer[1][0], answer[1][1], 4) == pytest.approx(mean, abs=1e-8)
    loss, entropy, gradient = oracle.bind([x], [known], rescaling=None).expect(0, w)
    assert loss == pytest.approx(sums[0] - sums[1], rel=1e-9, abs=1e-8 * scale)
    assert entropy == pytest.approx(entropies[0] - entropies[1], abs=1e-7 * scale)
    assert gradient == pytest.approx(means[0] - means[1], abs=1e-4)


@settings(max_examples=15)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 5), k=st.integers(1, 130))
def test_the_k_best(seed, n, k):
    x, _, w, A = random_case(seed, n)
    found = OrderingOracle(2, 2).kbest(x, w, k)
    scores, _ = scores_of(A)
    assert len({tuple(y.tolist()) for y, _ in found}) == len(found) == min(k, len(scores))
    assert [score for _, score in found] == pytest.approx(np.sort(scores)[::-1][: len(found)].tolist(), abs=1e-9)
    for y, score in found:
        assert reference.joint_feature(*x, y) @ w == pytest.approx(score, abs=1e-9)


# --- relaxed --------------------------------------------------------------------------------------


@settings(max_examples=25)
@given(seed=st.integers(0, 10**6), n=st.integers(2, 6))
def test_the_relaxation(seed, n):
    """Its value is that of the assignment problem, not below the best order's; its cut is that of its output."""
    x, y, w, A = random_case(seed, n)
    oracle = Relaxing(2, 2)
    found = oracle.argmax(x, w, y, "margin")
    b, psi = oracle.bind([x], [y]).separate(0, w)
    assert oracle.loss(y, found) == pytest.approx(b)
    dense = [np.bincount(*feature, 4) for feature in (oracle.joint_feature(x, y), oracle.joint_feature(x, found))]
    assert dense[0] - dense[1] == pytest.approx(psi, abs=1e-9)
    i, j = np.array([*itertools.combinations(y, 2)]).T
    costs = np.zeros_like(A)
    costs[j, i], costs[i, j] = 0.5 / len(i), -0.5 / len(i)
    scores, place = scores_of(A)
    true = A[i, j].sum()
    assert b - psi @ w == pytest.approx(reference.relaxed_value(A + costs) + 0.5 - true, abs=1e-9)
    assert b - psi @ w >= (scores + losses(place, y)).max() - true - 1e-9
    plain = oracle.argmax(x, w)
    indices, values = oracle.joint_feature(x, plain)
    assert w[indices] @ values == pytest.approx(reference.relaxed_value(A), abs=1e-9)
    if isinstance(plain, FractionalOrder):
        assert set(np.unique(plain.before)) <= {0.0, 0.5, 1.0}
        assert (plain.before % 1.0 != 0.0).any() or not reference.is_transitive(plain.before)


@settings(max_examples=25)
@given(seed=st.integers(0, 10**6), n=st.integers(2, 40))
def test_the_relaxation_of_a_sort_is_exact(seed, n):
    """The oracle takes it for more than 10 items."""
    x, _, w, _ = random_case(seed, n, d=3, p=0)
    best = np.argsort(-(x @ w), kind="stable")
    for oracle in (Relaxing(3), OrderingOracle(3)):
        for rows in (x, sp.csr_array(x)):
            found = oracle.argmax(rows, w)
            indices, values = oracle.joint_feature(rows, found)
            best_indices, best_values = oracle.joint_feature(rows, best)
            assert w[indices] @ values == pytest.approx(w[best_indices] @ best_values, rel=1e-9, abs=1e-9)
            (order,), gaps = oracle.predict([rows], w)
            assert (np.diff((x @ w)[order]) <= 1e-9).all() and gaps == pytest.approx([0.0], abs=1e-7)


@settings(max_examples=25)
@given(seed=st.integers(0, 10**6), n=st.integers(2, 7))
def test_predictions_of_the_search(seed, n):
    """They agree with what is known, no swap of neighbouring blocks gains, and the gap bounds what is missing."""
    x, y, w, A = random_case(seed, n)
    pairs = np.array([*itertools.combinations(y, 2)])
    for known in (np.zeros((0, 2), dtype=int), pairs[np.random.default_rng(seed).random(len(pairs)) < 0.3], y):
        (found,), (gap,) = Relaxing(2, 2).predict([x], w, [known])
        precedences = known if np.ndim(known) == 2 else pairs
        assert reference.agrees(found, precedences)
        scores, place = scores_of(A)
        orders = np.argsort(place, axis=1)
        agree = np.array([reference.agrees(z, precedences) for z in orders])
        score = scores[(orders == found).all(axis=1)][0]
        if np.ndim(known) == 2:
            assert gap == pytest.approx(reference.relaxed_value(A) - score, abs=1e-9)
            assert score + gap >= scores[agree].max() - 1e-9
        for a, b, c in itertools.combinations(range(n + 1), 3):
            other = np.concatenate([found[:a], found[b:c], found[a:b], found[c:]])
            if reference.agrees(other, precedences):
                assert scores[(orders == other).all(axis=1)][0] <= score + 1e-9


def test_a_search_begins_where_all_that_is_known_holds():
    """Swaps alone would not lead there: each exchange of blocks that puts 4 before 0 parts another pair."""
    known = np.array([[4, 0], [0, 2], [1, 3], [1, 4]])
    (found,), _ = Relaxing(1).predict([np.arange(5.0)[::-1, None]], np.ones(1), [known])
    assert reference.agrees(found, known)


def training_data(seed, sizes, d=2, p=1):
    """Noisy orders of items under preferences of their own, some of them cyclic."""
    rng = np.random.default_rng(seed)
    X = [reference.random_input(rng, n, d, p) for n in sizes]
    v = rng.normal(size=d)
    Y = [np.argsort(-(rows @ v + rng.normal(size=len(rows)))) for rows, _ in X]
    return X, Y


def test_training_on_fractional_orders():
    """Solvers agree, the dual is the dual recomputed, and states and copies have the same cuts."""
    rng, oracle = np.random.default_rng(1), Relaxing(2, 2)
    X = [reference.random_input(rng, n, 2, 2) for n in (6, 4, 2, 5, 6, 6, 3, 6)]
    Y, _ = oracle.predict(X, rng.normal(size=4))
    problem = oracle.bind(X, Y)
    assert problem.inference == "relaxed"
    solvers = [LaRank, CuttingPlane, FrankWolfe]
    runs = [kind(C=0.3, tol=1e-3, max_iter=3000, random_state=0).solve(problem) for kind in solvers]
    for run in runs:
        assert run.dual <= run.primal and run.primal == pytest.approx(runs[0].primal, rel=2e-3)
    w, state = runs[0].weights, runs[0].state
    assert any(isinstance(oracle.argmax(x, w, y, "margin"), FractionalOrder) for x, y in zip(X, Y, strict=True))
    dual = state.dual
    assert state.settle() == pytest.approx(dual, rel=1e-9)
    again = LaRank(C=0.3, random_state=0).start(pickle.loads(pickle.dumps(problem)))
    again.set_state(runs[0].get_state())
    assert again.state.dual == pytest.approx(dual, rel=1e-9)
    best = LaRank(C=0.3, tol=1e-3, max_iter=3000, random_state=0).solve(OrderingOracle(2, 2).bind(X, Y))
    assert runs[0].primal > 1.1 * best.primal  # whose outputs are fewer


def test_problems_say_which_inference_they_have():
    """Relaxed if an example has more than 10 items; no sums over all orders then."""
    X, Y = training_data(0, [10, 2])
    oracle = OrderingOracle(2, 1)
    exact, relaxed = oracle.bind(X, Y), oracle.bind(*training_data(0, [10, 11]))
    assert (exact.inference, relaxed.inference) == ("exact", "relaxed")
    assert exact.offers == {"constraints", "completions", "expectations"}
    assert relaxed.offers == {"constraints", "completions"}
    solver = LaRank(C=1.0, max_iter=2, random_state=0)
    assert "relaxed" in solver.solve(relaxed).result().certificate()
    assert "relaxed" not in solver.solve(exact).result().certificate()
    unknown = [np.zeros((0, 2), dtype=int)] * 2
    assert oracle.bind(X, unknown).offers == {"completions", "expectations", "marginals"}
    with pytest.raises(ValueError, match="does not offer expectations"):
        ConditionalLikelihood(C=1.0).solve(oracle.bind(*training_data(0, [11]), rescaling=None))
    x = np.zeros((11, 2)), np.zeros((11, 11, 1))
    for call in (oracle.expect, lambda x, w: oracle.kbest(x, w, 2), lambda x, w: relaxed.expect(1, w)):
        with pytest.raises(ValueError, match="at most 10 items, got 11"):
            call(x, np.zeros(3))


def test_the_protocol():
    """Completions of the relaxed oracle are those of a search, which training gets along with."""
    X, Y = training_data(0, [5, 4, 5, 1, 6])
    known = [np.column_stack([y[:-2], y[2:]]) for y in Y[:3]] + Y[3:]
    check_oracle(OrderingOracle(2, 1), X, Y, known=known)
    check_oracle(Relaxing(2, 1), X, Y)
    run = LatentSVM(LaRank(C=1.0, random_state=0), rounds=3).solve(Relaxing(2, 1).bind(X, known))
    assert run.primal >= run.dual


@pytest.mark.parametrize("loss", ["kendall", "log"])
def test_orders_known_in_part_train(loss):
    """On half of the pairs nearly as good a model as on all of them."""
    X, Y = training_data(1, [6] * 40)
    rng, oracle = np.random.default_rng(0), OrderingOracle(2, 1, loss)
    pairs = [np.array([*itertools.combinations(y, 2)]) for y in Y]
    known = [own[rng.random(len(own)) < 0.5] for own in pairs]
    solver = LaRank(C=1.0, random_state=0) if loss == "kendall" else ConditionalLikelihood(C=1.0, random_state=0)
    wrong = []
    for orders in (Y, known):
        latent = LatentSVM(solver) if loss == "kendall" and orders is known else solver
        w = latent.solve(oracle.bind(X, orders, **solver.formulation())).weights
        wrong.append(np.mean([reference.loss(y, oracle.argmax(x, w)) for x, y in zip(X, Y, strict=True)]))
    assert max(wrong) < 0.4 and wrong[1] <= wrong[0] + 0.05


def test_long_work_is_interrupted():
    """In the assignment and in the search; nothing is half written afterwards."""
    x, y, w, _ = random_case(0, 150, d=1, p=1)
    oracle = OrderingOracle(1, 1)
    problem, open_problem = oracle.bind([x], [y]), oracle.bind([x], [np.zeros((0, 2), dtype=int)], rescaling=None)
    expected = problem.separate(0, w), open_problem.decoded(w)
    job = Job()
    job.stop()
    try:
        for work in (20_000, 2_000_000):
            look_every(work)
            for call in (lambda: problem.separate(0, w), lambda: open_problem.decoded(w)):
                with pytest.raises(KeyboardInterrupt, match="the job was stopped"):
                    job.run(call)
        look_every(1000)
        for found, of_one in zip((problem.separate(0, w), open_problem.decoded(w)), expected, strict=True):
            np.testing.assert_array_equal(found[0], of_one[0])
            np.testing.assert_array_equal(found[1], of_one[1])
    finally:
        look_every()


# --- bad input ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            (-1,),
            r"The 'n_item_features' parameter of OrderingOracle must be an int in the range \[0, 1073741823\]. Got -1",
        ),
        ((2, 1.5), "The 'n_pair_features' parameter"),
        ((2, True), "The 'n_pair_features' parameter"),
        ((0, 0), "needs features of items or of pairs"),
        ((2, 2, "hamming"), "The 'loss' parameter of OrderingOracle must be 'kendall' or 'zero_one' or 'log'"),
    ],
)
def test_what_an_oracle_refuses(arguments, message):
    with pytest.raises(ValueError, match=message):
        OrderingOracle(*arguments)


TABLE = np.zeros((2, 2, 1))


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (np.zeros((2, 2)), r"example 1: expected \(rows, pair_features\), got ndarray"),
        ((np.zeros((1025, 2)), np.zeros((1, 1, 1))), "example 1: there are 1025 items, expected at most 1024"),
        (([[1.0, 2.0], [3.0]], TABLE), "example 1: .*inhomogeneous"),
        (([1.0, 2.0], TABLE), "example 1: X must be 2-D"),
        ((np.zeros((2, 3)), TABLE), "example 1: X has shape .*expected 2 columns"),
        (([[0.0, np.nan], [0.0, 0.0]], TABLE), "example 1: X holds NaN or infinity"),
        ((sp.csr_array([[0.0, np.inf], [0.0, 0.0]]), TABLE), "example 1: X holds NaN or infinity"),
        ((np.zeros((2, 2)), np.full((2, 2, 1), np.nan)), "example 1: X holds NaN or infinity"),
        ((np.zeros((2, 2)), np.zeros((2, 2, 2))), r"pair features of 2 items have shape \(2, 2, 2\)"),
        ((np.full((2, 2), 1e200), TABLE), "example 1: the squares of X overflow"),
    ],
    ids=lambda value: value[:25] if isinstance(value, str) else "x",
)
def test_inputs_that_are_refused(x, message):
    good = np.zeros((2, 2)), TABLE
    with pytest.raises(ValueError, match=message):
        OrderingOracle(2, 1).bind([good, x], [[0, 1], [0, 1]])


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([0, 1], r"example 1: expected an order, a permutation of the items 0 \.\. 2, got \[0, 1\]"),
        ([0, 1, 1], "example 1: expected an order"),
        ([0, 1, 3], "example 1: expected an order"),
        ([-1, 0, 1], "example 1: expected an order"),
        ([0.0, 1.0, 2.0], "example 1: expected an order"),
        ("abc", "example 1: expected an order"),
        ([[0, 1], [2]], "example 1: .*inhomogeneous"),
        ([[0, 1, 2]], "example 1: expected precedences, integers"),
        ([[0.0, 1.0]], "example 1: expected precedences, integers"),
        ([[0, 3]], "example 1: precedences are of items 0 to 3, expected 0 to 2"),
        ([[0, 1], [1, 2], [2, 0]], "example 1: the precedences have a cycle"),
        ([[1, 1]], "example 1: the precedences have a cycle"),
    ],
    ids=str,
)
def test_orders_that_are_refused(y, message):
    x = np.zeros((3, 2))
    with pytest.raises(ValueError, match=message):
        OrderingOracle(2).bind([x, x], [[0, 1, 2], y])


def test_sets_taken_by_their_indices():
    oracle, rng = OrderingOracle(2, 2), np.random.default_rng(0)
    X = [reference.random_input(rng, n, 2, 2, sparse=0.5) for n in (4, 1, 3, 5)]
    some, same = oracle.item_sets(X).take(np.array([3, 1, 0])), oracle.item_sets([X[3], X[1], X[0]])
    for one, other in zip(some.arrays, same.arrays, strict=True):
        np.testing.assert_array_equal(one, other)


def test_what_binding_refuses():
    oracle, x = OrderingOracle(2), np.arange(22.0).reshape(11, 2)
    with pytest.raises(ValueError, match="X has 1 examples, y has 2"):
        oracle.bind([x], [np.arange(11)] * 2)
    with pytest.raises(ValueError, match="X has 2 features of items and 0 of pairs, expected 3 and 0"):
        OrderingOracle(3).bind(oracle.item_sets([x]), [np.arange(11)])
    for loss in ("zero_one", "log"):
        with pytest.raises(ValueError, match=f"loss='{loss}' is for at most 10 items, example 1 has 11"):
            OrderingOracle(2, 0, loss).bind([x[:10], x], [np.arange(10), np.arange(11)], rescaling=None)
    with pytest.raises(ValueError, match="the order of example 0 is not known: train with LatentSVM"):
        oracle.bind([x], [[[0, 1]]]).separate(0, np.zeros(2))
    for rows in (x, x[:4]):
        problem = oracle.bind([rows], [[[0, 1]]], rescaling=None)
        for w in ([np.nan, 0.0], [1e308, 1e308]):
            with pytest.raises(ValueError, match="example 0: the scores overflow, or w has values that are not finite"):
                problem.decoded(np.array(w))
            whole = oracle.bind([rows], [np.arange(len(rows))])
            b, psi = whole.separate(0, np.array(w))
            assert b == 0.0 and not psi.any()
            with pytest.raises(ValueError, match="example 0"):
                violations(whole, np.array(w))
            if len(rows) == 4:
                assert np.isnan(whole.expect(0, np.array(w))[0])
