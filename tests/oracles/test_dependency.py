"""Dependency trees: Eisner's chart and arborescences beside all trees, sums over them, k best ones, what is refused."""

import tracemalloc

import numpy as np
import pytest
from dependency_reference import all_heads
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from structures_table import ARC_TEMPLATES, LABEL_TEMPLATES, Dependencies

from structsvm.features.arc_templates import ArcTemplates
from structsvm.oracles.arborescence import ArborescenceOracle
from structsvm.oracles.dependency._dependency import TreeFinder
from structsvm.oracles.eisner import EisnerOracle, LossChart
from structsvm.protocol import UnsupportedFormulation
from structsvm.solvers import ConditionalLikelihood
from structsvm.structures.dependencies import what_is_no_tree

TREES = {(n, projective): np.array(all_heads(n, projective)) for n in range(1, 6) for projective in (True, False)}
BOTH = pytest.mark.parametrize("projective", [True, False])


def test_there_are_as_many_trees_as_there_should_be():
    """Cayley: n^(n - 1) with one root; projective ones with one root: 1, 2, 7, 30, 143, binomial(3n - 2, n - 1) / n."""
    for n in range(1, 6):
        assert len(TREES[n, False]) == n ** (n - 1)
    assert [len(TREES[n, True]) for n in range(1, 6)] == [1, 2, 7, 30, 143]


@given(st.integers(1, 5), st.booleans(), st.integers(0, 2**32 - 1), st.sampled_from(["real", "whole", "holes", "huge"]))
def test_the_best_tree_and_sums_over_all(n, projective, seed, kind):
    rng, trees = np.random.default_rng(seed), TREES[n, projective]
    scores = rng.normal(size=(n + 1, n + 1))
    if kind == "whole":
        scores = np.round(2.0 * scores)
    elif kind == "holes":
        scores[rng.random(scores.shape) < 0.4] = -np.inf
    elif kind == "huge":
        scores *= 10.0 ** rng.integers(0, 5)
    scores = scores.astype(np.float32).astype(float)
    totals = scores[trees, np.arange(1, n + 1)].sum(axis=1)
    finder = TreeFinder(projective, n + int(rng.integers(3)))
    found = finder.tree(scores.astype(np.float32))
    log_sum, arcs = finder.log_sum(scores)
    best = totals.max()
    if best == -np.inf:
        assert found is None and log_sum == -np.inf
        return
    heads, score = found
    assert heads.tolist() in trees.tolist()
    assert scores[heads, np.arange(1, n + 1)].sum() == pytest.approx(best, rel=1e-5, abs=1e-5)
    assert score == pytest.approx(best, rel=1e-5, abs=1e-5)
    if np.abs(scores[np.isfinite(scores)]).max() > 300.0:  # weights underflow
        return
    p = np.exp(totals - best)
    assert log_sum == pytest.approx(best + np.log(p.sum()), rel=1e-9, abs=1e-9)
    expected = np.zeros((n + 1, n + 1))
    for tree, share in zip(trees, p / p.sum()):
        expected[tree, np.arange(1, n + 1)] += share
    np.testing.assert_allclose(arcs, expected, atol=1e-8)


@BOTH
def test_probabilities_are_the_gradient_of_the_log_of_the_sum(projective):
    rng, n, h = np.random.default_rng(0), 7, 1e-5
    scores, finder = rng.normal(size=(n + 1, n + 1)), TreeFinder(projective, n)
    arcs = finder.log_sum(scores)[1]
    np.testing.assert_allclose(arcs[:, 1:].sum(axis=0), 1.0)
    assert arcs[0].sum() == pytest.approx(1.0)
    for _ in range(20):
        i, j = int(rng.integers(n + 1)), int(rng.integers(1, n + 1))
        if i != j:
            step = np.zeros_like(scores)
            step[i, j] = h
            slope = (finder.log_sum(scores + step)[0] - finder.log_sum(scores - step)[0]) / (2.0 * h)
            assert arcs[i, j] == pytest.approx(slope, abs=1e-7)


@BOTH
@pytest.mark.parametrize("n", [40, 150])
def test_long_sentences(projective, n):
    """Scores that make one tree best by far; and trees that are trees, with one word below the root."""
    rng = np.random.default_rng(n)
    finder = TreeFinder(projective, n)
    scores = rng.normal(size=(n + 1, n + 1)).astype(np.float32)
    heads, score = finder.tree(scores)
    assert what_is_no_tree(heads.tolist()) is None
    assert score == pytest.approx(scores[heads, np.arange(1, n + 1)].sum(dtype=np.float64), rel=1e-4)
    scores[heads, np.arange(1, n + 1)] += 3.0
    again, better = finder.tree(scores)
    np.testing.assert_array_equal(again, heads)
    assert better == pytest.approx(score + 3.0 * n, rel=1e-4)
    if not projective:  # no more of the root's arcs than there must be, however good they are
        scores[0, 1:] = 1000.0
        heads, _ = finder.tree(scores)
        assert (heads == 0).sum() == 1
        assert finder.tree(np.where(np.arange(n + 1)[:, None] == 0, scores, -np.inf).astype(np.float32)) is None


@BOTH
@pytest.mark.parametrize("root", [False, True])
def test_the_best_trees_in_their_order(projective, root):
    case = Dependencies(3, (3, 4), 2, projective, root=root)
    w = case.weights(0)
    for x, space in zip(case.X, case.spaces):
        scores = np.sort(space.psi @ w)[::-1]
        found = list(case.oracle.kbest(x, w, None if len(x) < 4 else 40))
        assert len(found) == min(len(scores), 10**6 if len(x) < 4 else 40)
        np.testing.assert_allclose([score for _, score in found], scores[: len(found)], rtol=1e-5, atol=1e-5)
        indices = [space.find(y) for y, _ in found]
        assert len(set(indices)) == len(indices)
        np.testing.assert_allclose((space.psi @ w)[indices], scores[: len(found)], rtol=1e-5, atol=1e-5)
    with pytest.raises(ValueError, match="k must be an integer of at least 1"):
        case.oracle.kbest(case.X[0], w, 0)


def test_the_best_trees_of_a_long_sentence_take_no_more_memory_than_its_scores():
    oracle, n = make(ArborescenceOracle, 60), 40
    x = np.random.default_rng(0).integers(2, 9, (n, 2)).astype(np.int32)
    w = np.random.default_rng(1).normal(size=oracle.n_features)
    table = 4 * (n + 1) * n * 60
    tracemalloc.start()
    found = list(oracle.kbest(x, w, 3))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(found) == 3 and peak < 12 * table  # one a word for each of three would be 120


def test_an_arc_is_scored_by_what_is_near():
    """As in the sentence without its first words, whatever multiple of words is looked at at once."""
    templates = ArcTemplates(("word", "tag"), ["h-2.tag m.word dist", "h.tag b.tag m+2.word"], ["h+1.word m-1.tag dir"])
    oracle, rng = EisnerOracle(2, templates, arc_bits=8, row_bits=6), np.random.default_rng(0)
    x, w = rng.integers(2, 9, (21, 2)).astype(np.int32), rng.normal(size=oracle.n_features).astype(np.float32)
    whole = oracle.decoder(21).table(x, w)
    for left_out in range(1, 9):
        part = oracle.decoder(21).table(x[left_out:], w)
        np.testing.assert_allclose(part[3:, 2:], whole[left_out + 3 :, left_out + 2 :], rtol=1e-5, atol=1e-5)


@BOTH
@pytest.mark.parametrize("value", [3e38, -3e38])
def test_weights_that_overflow_are_an_error(projective, value):
    oracle = make(EisnerOracle if projective else ArborescenceOracle)
    x = np.arange(2, 12, dtype=np.int32).reshape(5, 2)
    w = np.full(oracle.n_features, value, dtype=np.float32)
    w[: 2**oracle.arc_bits] *= -1.0
    with pytest.raises(ValueError, match=r"sentence 0: no tree has a finite score; the model's weights overflow"):
        oracle.argmax(x, w)


def test_true_trees_that_cross_are_what_is_trained_towards():
    """Beside all projective trees: the most violated constraint is theirs, or the zero one."""
    rng = np.random.default_rng(0)
    case = Dependencies(0, (4,), 1, projective=True)
    crossing = np.array([[3, 0], [4, 0], [0, 0], [3, 0]], dtype=np.int32)
    problem = case.oracle.bind(case.X, [crossing])
    true = case.oracle.joint_feature(case.X[0], crossing)
    space, n_zero = case.spaces[0], 0
    loss = np.array([(y != crossing).any(axis=1).sum() for y in space.outputs])
    w = rng.normal(size=case.oracle.n_features)
    for _ in range(50):
        w = w.astype(np.float32)
        b, psi = problem.separate(0, w)
        best = (loss + (space.psi - true) @ w).max()
        assert b - psi @ w == pytest.approx(max(best, 0.0), rel=1e-4, abs=1e-4)
        n_zero += b == 0.0
        w = w + psi
    assert 0 < n_zero < 50


def test_true_trees_that_cross_are_one_more_tree_of_the_log_loss():
    case = Dependencies(0, (4,), 2, projective=True)
    crossing = np.array([[3, 0], [4, 1], [0, 0], [3, 1]], dtype=np.int32)
    problem, space = case.oracle.bind(case.X, [crossing], rescaling=None), case.spaces[0]
    differences = space.psi - case.oracle.joint_feature(case.X[0], crossing)

    def objective(w, C=3.0):
        return 0.5 * w @ w + C * np.logaddexp(0.0, np.logaddexp.reduce(differences @ w))

    run = ConditionalLikelihood(C=3.0, tol=1e-6, max_iter=1000).solve(problem)
    best = minimize(objective, np.zeros(case.oracle.n_features), tol=1e-10)
    assert run.status == "converged" and 0.5 < best.fun < 10.0
    assert run.primal == pytest.approx(best.fun, rel=1e-4) and run.dual == pytest.approx(best.fun, rel=1e-4)
    assert objective(run.weights.astype(float)) == pytest.approx(best.fun, rel=1e-4)


def test_what_is_known_may_cross():
    case = Dependencies(0, (5,), 2, projective=True)
    every = Dependencies(0, (5,), 2, projective=False)
    rng, known = np.random.default_rng(0), np.array([[3, -1], [4, -1], [-1, 0], [-1, -1], [-1, 1]], dtype=np.int32)
    agrees = np.array([((known < 0) | (known == tree)).all() for tree in every.trees[0]])
    for _ in range(5):
        w = rng.normal(size=case.oracle.n_features).astype(np.float32)
        scores = np.where(agrees, every.spaces[0].psi @ w, -np.inf)
        np.testing.assert_array_equal(case.oracle.complete(case.X[0], known, w), every.trees[0][scores.argmax()])


def test_the_best_tree_of_each_number_of_wrong_words():
    """The best among all projective trees; and slack rescaling is not what a sum over arcs finds."""
    n_other = 0
    for seed in range(4):
        case = Dependencies(seed, (4,), 2, projective=True)
        x, true, space, w = case.X[0], case.Y[0], case.spaces[0], case.weights(seed)
        for rescaling in ("margin", "slack"):
            values = space.values(w, rescaling)
            found = space.find(case.oracle.argmax(x, w, true, rescaling))
            assert values[found] == pytest.approx(values.max(), abs=1e-4)
            n_other += rescaling == "slack" and found != space.values(w, "margin").argmax()
        table = case.oracle.decoder(4).table(x, w.astype(np.float32))
        wrong, arcs = table.astype(float), np.full((5, 5, 2), -np.inf)
        wrong[true[:, 0], np.arange(4), true[:, 1]] = -np.inf
        arcs[:, 1:, 1] = wrong.max(axis=2)
        arcs[true[:, 0], np.arange(1, 5), 0] = table[true[:, 0], np.arange(4), true[:, 1]]
        chart, scores = LossChart(arcs), space.psi @ w
        for d in range(5):
            assert chart.best[d] == pytest.approx(scores[space.loss == d].max(initial=-np.inf), abs=1e-4)
            heads, is_wrong = chart.tree(d) if np.isfinite(chart.best[d]) else (true[:, 0], np.arange(4) < d)
            assert heads.tolist() in TREES[4, True].tolist() and is_wrong.sum() == d
    assert n_other
    with pytest.raises(UnsupportedFormulation, match="ArborescenceOracle does not declare"):
        make(ArborescenceOracle).bind([], [], rescaling="slack")


def make(kind=EisnerOracle, n_labels=2, **options):
    templates = ArcTemplates(("word", "tag"), ARC_TEMPLATES, LABEL_TEMPLATES)
    return kind(n_labels, templates, **{"arc_bits": 4, "row_bits": 3} | options)


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        ([(2, 0), (1, 0)], r"sentence 0: word \d is below itself"),
        ([(0, 0), (0, 0)], r"sentence 0: words 1 and 2 both have the root"),
        ([(3, 0), (0, 0)], r"sentence 0: word 1 has head 3, expected one below 3"),
        ([(-2, 0), (0, 0)], r"sentence 0: word 1 has head -2"),
        ([(2, 2), (0, 0)], r"sentence 0: word 1 has label 2, expected one below 2"),
        ([(2, 0), (3, 0), (2, 0)], r"sentence 0 has 2 words, and its tree 3"),
        ([], r"sentence 0 has 2 words, and its tree 0"),
        ([(2, 0), (0, 1)], r"sentence 0: word 1 has a label that is not for its head"),
        ([(0, 0), (1, 0)], r"sentence 0: word 2 has a label that is not for its head"),
    ],
)
def test_what_is_no_tree(tree, message):
    x = np.full((2, 2), 2, dtype=np.int32)
    with pytest.raises(ValueError, match=message):
        make(root_label=0).bind([x], [np.array(tree, dtype=np.int32).reshape(-1, 2)])


def test_bad_parameters():
    for options in ({"n_labels": 0}, {"arc_bits": 29}, {"row_bits": 0}, {"loss": "f1"}, {"root_label": 2}):
        with pytest.raises(ValueError, match=f"The '{next(iter(options))}' parameter of ArborescenceOracle"):
            make(ArborescenceOracle, **options)
    with pytest.raises(ValueError, match="must be None where there is only one label"):
        make(n_labels=1, root_label=0)
    with pytest.raises(ValueError, match=r"more than 2\*\*31"):
        make(n_labels=200, row_bits=28)
    oracle = make()
    with pytest.raises(ValueError, match="sentence 0 has no words"):
        oracle.bind([np.zeros((0, 2), dtype=np.int32)], [np.zeros((0, 2), dtype=np.int32)])
    with pytest.raises(ValueError, match=r"expected \(n_words, 2\)"):
        oracle.bind([np.zeros((1, 3), dtype=np.int32)], [np.zeros((1, 2), dtype=np.int32)])
    with pytest.raises(ValueError, match="not finite"):
        oracle.argmax(np.zeros((1, 2), dtype=np.int32), np.full(oracle.n_features, np.nan))
    known = np.array([[2, -1], [3, -1], [4, -1], [1, -1]])
    with pytest.raises(ValueError, match="is below itself"):
        oracle.complete(np.full((4, 2), 2), known, np.zeros(oracle.n_features))
    no_root = np.array([[-1, 1]] * 4)
    with pytest.raises(ValueError, match="sentence 0: no tree agrees with what is known"):
        make(root_label=0).complete(np.full((4, 2), 2), no_root, np.zeros(oracle.n_features))
    crossing = np.array([[3, -1], [4, -1], [-1, -1], [-1, -1]])
    for kind in (EisnerOracle, ArborescenceOracle):
        found = make(kind).complete(np.full((4, 2), 2), crossing, np.zeros(oracle.n_features))
        assert found[:2, 0].tolist() == [3, 4]


@pytest.mark.parametrize("known", [[[-1, 0], [0, 1], [2, 0]], [[2, 0], [0, -1], [2, 0]], [[2, 0], [0, 1], [-1, -1]]])
def test_a_tree_known_in_part_is_no_truth_yet(known):
    oracle = make()
    problem = oracle.bind([np.full((3, 2), 2)], [np.array(known)])
    for asked in (problem.separate, problem.expect, problem.most_violated):
        with pytest.raises(ValueError, match="the tree of sentence 0 is known in part: train with LatentSVM"):
            asked(0, np.zeros(oracle.n_features, dtype=np.float32))


@pytest.mark.parametrize("gap", [30.0, 37.0, 40.0, 100.0, 300.0])
def test_sums_around_a_cycle_that_is_better_than_any_tree(gap):
    scores = np.zeros((4, 4))
    scores[2, 3] = scores[3, 2] = gap  # words 2 and 3 prefer each other
    log_sum, arcs = TreeFinder(False, 3).log_sum(scores)
    trees = TREES[3, False]
    totals = scores[trees, np.arange(1, 4)].sum(axis=1)
    assert log_sum == pytest.approx(totals.max() + np.log(np.exp(totals - totals.max()).sum()), rel=1e-12)
    np.testing.assert_allclose(arcs[:, 1:].sum(axis=0), 1.0, atol=1e-12)
    assert arcs[2, 3] + arcs[3, 2] == pytest.approx(1.0, abs=1e-9 + 10.0 * np.exp(-gap))


def test_sums_over_long_sentences():
    rng = np.random.default_rng(0)
    for n, scale in ((60, 1.0), (60, 10.0), (200, 5.0), (60, 50.0)):
        scores = scale * rng.normal(size=(n + 1, n + 1))
        _log_sum, arcs = TreeFinder(False, n).log_sum(scores)
        np.testing.assert_allclose(arcs[:, 1:].sum(axis=0), 1.0, atol=1e-9)
        assert arcs[0].sum() == pytest.approx(1.0, abs=1e-9) and (arcs >= 0.0).all()  # a single root
        (h, m), step = np.unravel_index(np.argmax(np.minimum(arcs, 1.0 - arcs)), arcs.shape), 1e-5
        ends = []
        for sign in (1.0, -1.0):
            moved = scores.copy()
            moved[h, m] += sign * step
            ends.append(TreeFinder(False, n).log_sum(moved)[0])
        assert (ends[0] - ends[1]) / (2.0 * step) == pytest.approx(arcs[h, m], abs=1e-5)
