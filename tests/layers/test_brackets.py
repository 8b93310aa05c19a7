"""Binary trees over spans: known numbers of them, long sentences, sums in logs, grammars, outputs that are none."""

import tracemalloc
from itertools import combinations
from math import comb

import numpy as np
import pytest

from structsvm.layers import Spans, hinge, log_loss
from structsvm.layers._spans import known_trees
from structsvm.layers.spans import _log_sums, _tables


def parts_of(n, K=2, B=2, rules=True, dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    return tuple(rng.normal(size=size).astype(dtype) for size in ((B, n, n, K), (K, K, K))[: 1 + rules])


def logs_of(parts, lengths=None):
    """Sums by the recursion in logs: log partitions, expected spans, expected rules."""
    scores = Spans().check(parts, lengths)
    return [
        np.array(found) for found in zip(*(_log_sums(*_tables(scores, b)) for b in range(len(parts[0]))), strict=True)
    ]


@pytest.mark.parametrize("n", [1, 2, 7, 20])
@pytest.mark.parametrize("rules", [False, True])
def test_equal_scores_count_trees(n, rules):
    K, trees = 3, comb(2 * n - 2, n - 1) / n
    parts = (np.zeros((1, n, n, K)), np.zeros((K, K, K)))[: 1 + rules]
    assert Spans().log_partition(*parts) == pytest.approx(np.log(trees) + (2 * n - 1) * np.log(K))


@pytest.mark.parametrize(("n", "K", "rules"), [(40, 5, False), (30, 9, True), (3, 1, True)])
@pytest.mark.parametrize(("dtype", "tol"), [(np.float32, 1e-4), (np.float64, 1e-9)])
def test_sums_are_those_in_logs(n, K, rules, dtype, tol):
    parts = parts_of(n, K, rules=rules, dtype=dtype)
    log_z, *expected = logs_of(parts)
    np.testing.assert_allclose(Spans().log_partition(*parts), log_z, rtol=tol)
    for found, wanted in zip(Spans().marginals(*parts), expected, strict=False):
        np.testing.assert_allclose(found, wanted, rtol=tol, atol=tol)
    assert Spans().marginals(*parts)[0].sum() == pytest.approx(2 * (2 * n - 1), rel=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("spread", [0.0, 1.0, 12.0, 100.0])
@pytest.mark.parametrize(("n", "K"), [(1, 9), (2, 1), (3, 7), (5, 8), (23, 4), (23, 16), (40, 17)])
def test_products_are_as_exact_as_logs(n, K, spread, dtype):
    """Products are scaled as they grow or shrink; what is too sharp for them is summed in logs."""
    rng = np.random.default_rng(n)
    spans = (spread * rng.normal(size=(3, n + 2, n + 2, K)) - rng.normal(size=(3, n + 2, n + 2, 1))).astype(dtype)
    spans[0] += 1000
    spans[1, :, -1] = np.nan
    if n > 3:
        spans[2, 1, 2:], spans[2, 0, 1, 0], spans[1, 2, :n] = -np.inf, -np.inf, spans[1, 2, :n] - 60
    lengths = [n, n, max(n - 1, 1)]
    (found,), (log_z, chances) = Spans().marginals(spans, lengths=lengths), logs_of_sizes(spans, lengths)
    tol = 1e-9 if dtype == np.float64 else 2e-5
    np.testing.assert_allclose(Spans().log_partition(spans, lengths=lengths), log_z, rtol=tol * 0.1, atol=tol)
    np.testing.assert_allclose(found, chances, atol=tol)
    assert found.sum(axis=(1, 2, 3)) == pytest.approx(2 * np.array(lengths) - 1, rel=1e-5)
    np.testing.assert_array_equal(Spans(n_threads=2).marginals(spans, lengths=lengths)[0], found)


def logs_of_sizes(spans, lengths):
    """Log partitions and probabilities by the recursion in logs, with zeros beyond the lengths."""
    scores, chances = Spans().check((spans,), lengths), np.zeros(spans.shape)
    log_z = np.zeros(len(lengths))
    for entry, size in enumerate(lengths):
        log_z[entry], chances[entry, :size, :size], _ = _log_sums(*_tables(scores, entry))
    return log_z, chances


def test_what_no_span_is_does_not_matter():
    """Below the diagonal stands anything: probabilities are 0 there."""
    rng, below = np.random.default_rng(0), np.tri(5, k=-1, dtype=bool)
    spans = 30 * rng.normal(size=(2, 5, 5, 3))
    log_z, wanted, _ = logs_of((spans,))
    spans[:, below] = rng.choice([np.nan, np.inf, -np.inf], size=(2, 10, 3))
    for found in (logs_of((spans,))[:2], (Spans().log_partition(spans), *Spans().marginals(spans))):
        np.testing.assert_allclose(found[0], log_z, rtol=1e-12)
        np.testing.assert_allclose(found[1], wanted, atol=1e-12)
        assert (found[1][:, below] == 0).all()


@pytest.mark.parametrize("low", [0.0, -200.0, -320.0, -720.0])
def test_products_that_would_be_lost_are_summed_in_logs(low):
    """The whole sentence's parts are far below others, which are as far above: all three trees cost the same."""
    spans = np.zeros((1, 4, 4, 1))
    spans[0, 0, 1], spans[0, 2, 3], spans[0, 1, 2] = 2 * low, -low, low
    spans[0, 0, 2], spans[0, 1, 3] = -low, -low
    values = Spans().kbest(spans, k=5)[1][0]
    assert Spans().log_partition(spans) == pytest.approx([np.logaddexp.reduce(values)], rel=1e-13)
    assert Spans().marginals(spans)[0][0, ..., 0] == pytest.approx(logs_of((spans,))[1][0, ..., 0], abs=1e-12)


def test_whole_trees_need_no_second_sum(monkeypatch):
    """A truth of all spans within the lengths is one tree: no masks, and no sum over what agrees with it."""
    parts, lengths = parts_of(6, B=4, rules=False), [6, 0, 1, 4]
    y = Spans().sample(*parts, n_samples=1, seed=0, lengths=lengths)[:, 0]
    monkeypatch.setattr(Spans, "restrict", None)
    for labels in (y, y.astype(np.int64)):
        values, (gradients,) = log_loss(Spans(), parts, labels, lengths)
        log_z, score = Spans().log_partition(*parts, lengths=lengths), Spans().score(y, *parts, lengths=lengths)
        assert values == pytest.approx(log_z - score, abs=1e-12)
        wanted = Spans().marginals(*parts, lengths=lengths)[0]
        wanted[(*np.nonzero(y >= 0), y[y >= 0])] -= 1
        np.testing.assert_array_equal(gradients, wanted)


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_labels_are_known_as_trees_only_where_they_are(n):
    """All tables with the right number of labels, and some with labels where no span is."""
    rng, trees = np.random.default_rng(0), comb(2 * n - 2, n - 1) // n
    checked, places = np.empty((1, n, n), np.int32), np.empty((1, 2 * n), np.int32)
    upper, found = np.argwhere(~np.tri(n, k=-1, dtype=bool)), 0
    for chosen in combinations(upper.tolist(), 2 * n - 1):
        y = np.full((1, n, n), -1, np.int32)
        for i, j in chosen:
            y[0, i, j] = rng.integers(3)
        if known_trees(y, np.array([n]), 3, checked, places, 1):
            flat = np.flatnonzero(y >= 0)
            assert sorted(places[0, :-1].tolist()) == (3 * flat + y.ravel()[flat]).tolist()
            found += 1
            assert (
                checked.tolist()
                == y.tolist()
                == Spans().check_output(y, Spans().check((np.zeros((1, n, n, 3)),), None)).tolist()
            )
            for place, wrong in (((0, 0, n - 1), 3), ((0, 0, n - 1), -2), ((0, n - 1, 0), 0)):
                bad = y.copy()
                bad[place] = wrong
                assert not known_trees(bad, np.array([n]), 3, checked, places, 1) or (n == 1 and wrong == 0)
    assert found == trees


def test_a_long_sentence():
    spans = parts_of(150, 3, 1, rules=False)
    marginals = Spans().marginals(*spans)[0]
    assert marginals.sum() == pytest.approx(299) and marginals[0, 0, -1].sum() == pytest.approx(1)
    best = Spans().argmax(*spans)
    assert (best >= 0).sum() == 299
    assert Spans().score(best, *spans) <= Spans().log_partition(*spans)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_log_partitions_need_exponentials_of_one_row(dtype):
    spans = np.random.default_rng(0).normal(size=(1, 60, 60, 40)).astype(dtype)
    tracemalloc.start()
    Spans().log_partition(spans)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < spans.nbytes / 2


@pytest.mark.parametrize("scale", [1e6, 1e12, 1e16])
def test_trees_of_one_huge_score_are_equally_likely(scale):
    """Sums in logs, where the scores leave no place for the log of the number of trees."""
    spans, one_out = np.full((1, 6, 6, 2), scale), np.zeros((1, 6, 6, 2))
    spans[0, 0, 3], one_out[0, 0, 3] = -scale, -1e3
    wanted = Spans().marginals(one_out)[0]
    np.testing.assert_allclose(Spans().marginals(spans)[0], wanted, atol=1e-12)
    n_samples = 4000
    share = (Spans().sample(spans, n_samples=n_samples, seed=0)[0] >= 0).mean(axis=0)
    np.testing.assert_allclose(share, wanted[0].sum(axis=2), atol=5 * np.sqrt(0.25 / n_samples))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("scale", [1e16, 4e37])
def test_huge_scores_have_probabilities(scale, dtype):
    for seed in range(5):
        spans = np.random.default_rng(seed).choice([-scale, 0, scale], size=(1, 9, 9, 2)).astype(dtype)
        chances = Spans().marginals(spans)[0]
        assert chances.max() <= 1 + 1e-5 and chances.sum() == pytest.approx(17, rel=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rules", [False, True])
def test_huge_scores_have_finite_gradients(dtype, rules):
    parts = [part * dtype(1e30) for part in parts_of(5, rules=rules, dtype=dtype)]
    y = Spans().argmax(*parts_of(5))
    for loss in (log_loss, hinge):
        values, gradients = loss(Spans(), parts, y)
        assert np.isfinite(values).all() and all(np.isfinite(g).all() for g in gradients)


def test_a_sparse_grammar_with_sharp_scores():
    rng = np.random.default_rng(1)
    spans, rules = 30 * rng.normal(size=(3, 12, 12, 4)), np.where(rng.random((4, 4, 4)) < 0.3, 0.0, -np.inf)
    rules[0, 1, 2] = rules[1, 0, 0] = rules[2, 3, 3] = rules[3, 2, 0] = 0.0
    log_z, *expected = logs_of((spans, rules))
    np.testing.assert_allclose(Spans().log_partition(spans, rules), log_z, rtol=1e-12)
    for found, wanted in zip(Spans().marginals(spans, rules), expected, strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-9)
    y = Spans().argmax(spans, rules)
    assert Spans().kbest(spans, rules, k=1)[1][:, 0] == pytest.approx(Spans().score(y, spans, rules))


@pytest.mark.parametrize("low", [-400.0, -900.0])
def test_a_label_lost_to_underflow_behind_a_mask_is_found_again(low):
    spans, rules = np.zeros((1, 3, 3, 3)), np.full((3, 3, 3), -np.inf)
    spans[0, range(3), range(3), 1:] = -np.inf  # words are labelled 0, two words 1 or 2, and all three only above 2
    spans[0, 0, 1, 2] = low
    rules[1, 0, 0] = rules[2, 0, 0] = rules[1, 2, 0] = 0.0
    assert Spans().log_partition(spans, rules) == pytest.approx(low)
    marginals, used = Spans().marginals(spans, rules)
    assert marginals[0, 0, 1, 2] == pytest.approx(1.0) and marginals.sum() == pytest.approx(5.0)
    assert used[0, 1, 2, 0] == pytest.approx(1.0) and used.sum() == pytest.approx(2.0)


TREE = [[0, -1, 1], [-1, 0, 1], [-1, -1, 0]]


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        ([[0, 1, 1], [-1, 0, -1], [-1, -1, -1]], "of 5 spans for the 3 words of batch entry 1. Got 4"),
        ([[0, 1, 1], [-1, 0, 1], [-1, -1, 0]], r"Span \(0, 1\) of batch entry 1 crosses another"),
        ([[0, -1, 1], [0, 0, 1], [-1, -1, 0]], r"Got 0 at batch entry 1, span \(1, 0\)"),
        ([[0, -1, 2], [-1, 0, 1], [-1, -1, 0]], r"Got 2 at batch entry 1, span \(0, 2\)"),
        ([[0, -1, 1], [-1, -2, 1], [-1, -1, 0]], r"Got -2 at batch entry 1, span \(1, 1\)"),
    ],
)
def test_outputs_that_are_no_trees(tree, message):
    with pytest.raises(ValueError, match=message):
        hinge(Spans(), parts_of(3), [TREE, tree])
    hinge(Spans(), parts_of(3), [TREE, TREE])


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ((np.zeros((2, 3, 4, 2)),), r"spans must have shape \(B, n, n, K\)"),
        ((np.zeros((2, 3, 3, 0)),), "K >= 1"),
        ((np.zeros((2, 3, 3, 2)), np.zeros((2, 2))), r"rules must have shape \(2, 2, 2\) or \(2, 2, 2, 2\)"),
        ((np.zeros((2, 3, 3, 2)), np.full((2, 2, 2), np.nan)), "rules must be finite"),
        ((), "1 to 2"),
    ],
)
def test_parts_that_do_not_fit_are_named(parts, message):
    with pytest.raises(ValueError, match=message):
        Spans().argmax(*parts)


def test_spans_that_no_tree_has_and_words_beyond_the_length_do_not_matter():
    spans, rules = parts_of(5)
    wild, lengths = spans.copy(), [5, 3]
    wild[:, np.tri(5, k=-1, dtype=bool)] = np.nan
    wild[1, :, 3:] = np.inf
    for one, other in zip(
        Spans().marginals(spans, rules, lengths=lengths), Spans().marginals(wild, rules, lengths=lengths), strict=True
    ):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(
        Spans().max_marginals(spans, rules, lengths=lengths), Spans().max_marginals(wild, rules, lengths=lengths)
    )


def test_no_words_and_one():
    spans, rules = parts_of(1)
    assert Spans().argmax(spans, rules, lengths=[0, 1])[0].tolist() == [[-1]]
    assert Spans().log_partition(spans, rules, lengths=[0, 1])[1] == pytest.approx(np.logaddexp(*spans[1, 0, 0]))
    nothing = np.zeros((2, 0, 0, 2))
    assert Spans().log_partition(nothing, rules).tolist() == [0.0, 0.0]
    assert Spans().argmax(nothing).shape == Spans().sample(nothing, n_samples=3, seed=0)[:, 0].shape == (2, 0, 0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", ["plain", "masked", "wide"])
def test_trees_without_rules_are_drawn_by_their_probabilities(kind, dtype):
    spans, n_samples = np.random.default_rng(0).normal(size=(2, 4, 4, 2)).astype(dtype), 20_000
    if kind != "plain":
        spans[0, 1, 2] = spans[1, 0, 0, 1] = -np.inf
    if kind == "wide":
        spans[:, 0, 1] -= 900.0
        spans[:, 2, 3, 1] += 895.0
    found = Spans().sample(spans, n_samples=n_samples, seed=0)
    np.testing.assert_array_equal(Spans(n_threads=2).sample(spans, n_samples=n_samples, seed=0), found)
    np.testing.assert_array_equal(Spans().sample(spans[:1], n_samples=n_samples, seed=0), found[:1])
    every, values = Spans().kbest(spans, k=1000)
    for entry in (0, 1):
        there = values[entry] > -np.inf
        wanted = np.exp(values[entry][there] - np.logaddexp.reduce(values[entry][there]))
        counts = dict.fromkeys(map(np.ndarray.tobytes, every[entry][there]), 0)
        assert len(counts) < 1000
        for tree in found[entry]:
            counts[tree.tobytes()] += 1
        share = np.array(list(counts.values())) / n_samples
        assert len(share) == len(wanted)
        assert (np.abs(share - wanted) <= 5 * np.sqrt(wanted / n_samples) + 1 / n_samples).all()


@pytest.mark.parametrize("rules", [(), (np.zeros((1, 1, 1)),)])
def test_samples_name_the_entry_without_trees(rules):
    spans = np.zeros((3, 2, 2, 1))
    spans[1, 0, 0] = -np.inf
    with pytest.raises(ValueError, match="Batch entry 1 has no output"):
        Spans(n_threads=2).sample(spans, *rules, n_samples=2, seed=0, lengths=[0, 2, 1])
