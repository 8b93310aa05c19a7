"""Matchings: what enumeration does not say of them, k best ones, wrong input, training on what is known in part."""

import pickle
import signal
import threading
import tracemalloc
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from structures_table import Assignments, key

from structsvm import LaRank, LatentSVM, OracleError, StructuredSVM
from structsvm.datasets import make_word_alignments
from structsvm.execution._stop import Job
from structsvm.oracles import assignment
from structsvm.oracles.assignment import AssignmentOracle, Pairs

FORMS = st.sampled_from(
    [{}, {"capacity": 2}, {"unmatched": False}, {"unmatched": False, "capacity": 2}, {"capacity": None}, {"some": True}]
)


@settings(max_examples=25)
@given(seed=st.integers(0, 10**6), n=st.integers(0, 3), m=st.integers(0, 3), form=FORMS)
def test_the_k_best_are_all_in_order(seed, n, m, form):
    case = Assignments(seed, ((n, m),), **form)
    w, (space,) = case.weights(seed), case.spaces
    found = case.oracle.kbest(case.X[0], w, len(space.outputs) + 3)
    assert sorted(key(y) for y, _ in found) == sorted(key(y) for y in space.outputs)
    scores = [space.psi[space.find(y)] @ w for y, _ in found]
    assert [score for _, score in found] == pytest.approx(scores, abs=1e-9)
    assert scores == pytest.approx(np.sort(space.psi @ w)[::-1], abs=1e-9)
    assert [key(y) for y, _ in case.oracle.kbest(case.X[0], w, 2)] == [key(y) for y, _ in found[:2]]
    assert scores[0] == pytest.approx(space.psi[space.find(case.oracle.argmax(case.X[0], w))] @ w, abs=1e-9)


def test_pairs_are_the_array_without_what_is_forbidden(monkeypatch):
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(5, 4, 3)), rng.normal(size=4)
    every = np.argwhere(np.ones((5, 4)))
    dense, oracle = Pairs((5, 4), every, x.reshape(20, 3)), AssignmentOracle(3)
    sparse = Pairs((5, 4), every, sp.coo_matrix(x.reshape(20, 3)))
    best, y = oracle.argmax(x, w), np.array([1, -1, 0, 3, -1])
    for other in (dense, sparse, pickle.loads(pickle.dumps(oracle.encoded(x)))):
        np.testing.assert_array_equal(oracle.argmax(other, w), best)
        np.testing.assert_array_equal(oracle.argmax(other, w, y, "margin"), oracle.argmax(x, w, y, "margin"))
    # One to any number needs no assignment.
    monkeypatch.setattr(assignment, "linear_sum_assignment", None)
    many = AssignmentOracle(3, capacity=None, unmatched=False)
    np.testing.assert_array_equal(many.argmax(x, w[:3]), (x @ w[:3]).argmax(axis=1))


def test_examples_are_encoded_once(monkeypatch):
    n, encoded = [0], AssignmentOracle.encoded

    def counted(self, x):
        n[0] += not isinstance(x, assignment.AssignmentInput)
        return encoded(self, x)

    monkeypatch.setattr(AssignmentOracle, "encoded", counted)
    rng = np.random.default_rng(0)
    X, Y = [rng.normal(size=(3, 3, 2)) for _ in range(4)], [rng.permutation(3) for _ in range(4)]
    StructuredSVM(AssignmentOracle(2), LaRank(max_iter=3, random_state=0)).fit(X, Y)
    assert n == [4]


X = np.zeros((2, 3, 1))
WRONG = {
    "shape": ((np.zeros((2, 3)), [0, 1]), r"x must be Pairs or an array \(n_left, n_right, 1\).* \(2, 3\)"),
    "columns": ((np.zeros((2, 3, 2)), [0, 1]), r"got shape \(2, 3, 2\)"),
    "NaN": ((X + np.nan, [0, 1]), "NaN or infinity"),
    "overflow": ((X + 1e200, [0, 1]), "squares of features overflow"),
    "length": ((X, [0]), r"y must be 2 integers.* \(1,\)"),
    "floats": ((X, [0.5, 1.0]), "y must be 2 integers.* float64"),
    "range": ((X, [0, 3]), r"y\[1\] is 3, expected a right node from 0 to 2"),
    "below": ((X, [-3, 0]), r"y\[0\] is -3"),
    "capacity": ((X, [1, 1]), "y matches 2 nodes with node 1, whose capacity is 1"),
    "mask": ((X, np.ones((2, 3), dtype=bool)), r"a boolean array \(2, 4\), got \(2, 3\)"),
    "pair": ((Pairs((2, 3), [[0, 3]], [[1.0]]), [-1, -1]), r"pair 0 is \(0, 3\), expected .* right node from -1 to 2"),
    "twice": ((Pairs((2, 3), [[0, 1], [0, 1]], [[1.0], [2.0]]), [-1, -1]), r"the pair \(0, 1\) stands there twice"),
    "rows": ((Pairs((2, 3), [[0, 1]], np.ones((2, 1))), [-1, -1]), r"features of 1 pairs .* got \(2, 1\)"),
    "sparse": ((Pairs((2, 3), [[0, 1]], sp.csr_array([[np.inf]])), [-1, -1]), "X holds NaN or infinity"),
    "forbidden": ((Pairs((2, 3), [[0, 1]], [[1.0]]), [2, -1]), "y matches nodes 0 and 2, which are not one"),
    "capacities": ((Pairs((2, 3), [[0, 1]], [[1.0]], [1, 2]), [-1, -1]), "capacities must be 3 integers"),
    "sizes": ((Pairs((-2, 3), [], np.zeros((0, 1))), []), "a shape must be of integers >= 0, got -2"),
    "text": ((Pairs((2, 3), [["a", "b"]], [[1.0]]), [-1, -1]), "pairs must be an int array"),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_wrong_is_named_with_its_example(what):
    (x, y), message = WRONG[what]
    oracle = AssignmentOracle(1)
    with pytest.raises(ValueError, match=f"example 1: .*{message}"):
        oracle.bind([X, x], [np.array([0, 1]), y])


def test_other_errors():
    for params in ({"capacity": 0}, {"capacity": True}, {"missed_cost": 0.0}, {"false_cost": np.inf}, {"unmatched": 1}):
        with pytest.raises(ValueError, match=f"The '{next(iter(params))}' parameter of AssignmentOracle must be"):
            AssignmentOracle(2, **params)
    with pytest.raises(ValueError, match="X has 1 examples, y has 2"):
        AssignmentOracle(1).bind([X], [[0, 1], [1, 0]])
    full = AssignmentOracle(1, unmatched=False)
    with pytest.raises(ValueError, match="example 0: y leaves nodes unmatched"):
        full.bind([X], [[0, -1]])
    none = Pairs((2, 2), [[0, 1], [1, 1]], np.ones((2, 1)))
    with pytest.raises(ValueError, match="there is no matching of 2 pairs"):
        full.argmax(none, np.ones(1))
    with pytest.raises(ValueError, match="no matching that agrees with what is known"):
        AssignmentOracle(1).complete(X, np.array([[1, 0, 0, 0], [1, 0, 0, 0]], dtype=bool), np.ones(2))
    with pytest.raises(OracleError, match="known in part is trained on by LatentSVM"):
        StructuredSVM(AssignmentOracle(1), LaRank(max_iter=1)).fit([X], [[0, -2]])
    model = StructuredSVM(AssignmentOracle(1), LaRank(max_iter=1, random_state=0)).fit([X], [[0, 1]])
    with pytest.raises(ValueError, match="must be Pairs") as raised:
        model.predict([X, X[0]])
    assert raised.value.__notes__ == ["while AssignmentOracle was asked about example 1"]


def test_learns_from_alignments_known_in_part():
    """Half of the words' partners say what all of them do."""
    sentences, Y = make_word_alignments(60, n_words=30, max_length=6, reorder=0.3, random_state=0)
    rng = np.random.default_rng(0)
    X = []
    for left, right in sentences:
        same = np.array([[a[1:] == b[1:] for b in right] for a in left]).reshape(len(left), len(right))
        far = np.abs(np.arange(len(left))[:, None] - np.arange(len(right)))
        X.append(np.stack([same, -far, rng.normal(size=far.shape)], axis=2).astype(float))
    half = [np.where(rng.random(len(y)) < 0.5, y, -2) for y in Y]
    oracle, solver = AssignmentOracle(3), LaRank(C=0.1, tol=0.01, random_state=0)
    whole = StructuredSVM(oracle, solver).fit(X[:40], Y[:40]).score(X[40:], Y[40:])
    part = StructuredSVM(oracle, LatentSVM(solver)).fit(X[:40], half[:40]).score(X[40:], Y[40:])
    blind = -np.mean([oracle.loss(y, oracle.argmax(x, np.ones(4))) for x, y in zip(X[40:], Y[40:])])
    assert min(part, whole) > 0.6 * blind


def test_the_k_best_of_many_pairs_take_little_memory():
    """Each part of the matchings that are left is kept as where it begins: masks would be a gigabyte."""
    oracle, x = AssignmentOracle(1, unmatched=False), np.random.default_rng(0).random((150, 150, 1))
    tracemalloc.start()
    found = oracle.kbest(x, np.ones(1), 3)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [score for _, score in found] == sorted((score for _, score in found), reverse=True)
    assert peak < 3 * 10**6


def test_a_capacity_beyond_the_left_nodes_takes_no_memory():
    x = np.ones((2, 3, 1))
    for oracle, pairs in (
        (AssignmentOracle(1, capacity=2**31 - 1), x),
        (AssignmentOracle(1), Pairs((2, 3), np.argwhere(x[:, :, 0]), x.reshape(6, 1), np.full(3, 2**63 - 1))),
    ):
        assert oracle.encoded(pairs).n_slots == 6
        assert oracle.argmax(pairs, [1.0, 0.0]).min() >= 0


@pytest.mark.parametrize("weights", [[np.nan, 0.0], [1e308, 0.0], [0.0, np.inf], [1e307, -1.7e308]])
def test_scores_that_overflow_are_no_missing_matching(weights):
    oracle, x = AssignmentOracle(1), np.full((4, 4, 1), 10.0)
    for call in (
        lambda: oracle.argmax(x, weights),
        lambda: oracle.complete(x, np.array([0, -2, -2, -2]), weights),
        lambda: oracle.kbest(x, weights, 2),
    ):
        with pytest.raises(ValueError, match="the scores overflow, or w has values that are not finite"):
            call()


def test_a_large_table_is_interrupted(monkeypatch):
    """While scipy, which does not look up, is at work: in the main thread by a signal, in another by its job."""
    at_work, go_on, solve = threading.Event(), threading.Event(), assignment.linear_sum_assignment

    def slow(table):
        at_work.set()
        go_on.wait(60.0)
        return solve(table)

    oracle, x = AssignmentOracle(1), np.random.default_rng(0).normal(size=(40, 40, 1))
    expected = oracle.argmax(x, [1.0, 0.0])
    monkeypatch.setattr(assignment, "linear_sum_assignment", slow)
    monkeypatch.setattr(assignment, "MOST_ENTRIES", 100)
    job = Job()

    def interrupt(stop):
        at_work.wait(60.0)
        stop()

    for call, stop in (
        (oracle.argmax, lambda: signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)),
        (partial(job.run, oracle.argmax), job.stop),
    ):
        at_work.clear()
        thread = threading.Thread(target=interrupt, args=(stop,))
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            call(x, [1.0, 0.0])
        thread.join()
    go_on.set()
    np.testing.assert_array_equal(oracle.argmax(x, [1.0, 0.0]), expected)
    one = Pairs((40, 40), np.argwhere(np.ones((40, 39))), x[:, 1:].reshape(-1, 1))
    with pytest.raises(ValueError, match="there is no matching of 40 pairs"):
        AssignmentOracle(1, unmatched=False).argmax(one, [1.0])
