"""Segmentations: known numbers of them, long sequences, sums in logs, outputs that are none."""

import numpy as np
import pytest

from structsvm.layers import Chain, SemiMarkov, hinge, log_loss
from structsvm.layers._spans import Segments
from structsvm.layers.semi_markov import _log_sums, _tables


def parts_of(longest, L=3, K=2, n=2, dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    return tuple(rng.normal(size=size).astype(dtype) for size in ((n, longest, L, K), (K, K), K, K))


def test_equal_scores_count_segmentations():
    for K, expected in ((1, 2.0**9), (2, 2 * 3.0**9)):  # each gap is a bound or none; a bound takes any of K labels
        log_z = SemiMarkov().log_partition(np.zeros((1, 10, 10, K)), np.zeros((K, K)))
        assert np.exp(log_z) == pytest.approx(expected)
    bounded = SemiMarkov().log_partition(np.zeros((1, 10, 2, 1)), np.zeros((1, 1)))
    assert np.exp(bounded) == pytest.approx(89.0)  # Fibonacci


def test_segments_of_one_token_are_a_chain():
    segments, transitions, start, end = parts_of(50, L=1, K=5)
    emissions = segments[:, :, 0]
    for verb in ("log_partition", "argmax", "max_marginals"):
        one = getattr(Chain(), verb)(emissions, transitions, start, end, lengths=[50, 7])
        two = getattr(SemiMarkov(), verb)(segments, transitions, start, end, lengths=[50, 7])
        np.testing.assert_allclose(two.reshape(one.shape), one, rtol=1e-12)
    pairs = zip(
        Chain().marginals(emissions, transitions, start, end),
        SemiMarkov().marginals(segments, transitions, start, end),
        strict=True,
    )
    for one, two in pairs:
        np.testing.assert_allclose(two.reshape(one.shape), one, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_ten_thousand_tokens(dtype):
    wide, own = parts_of(10_000, n=1), parts_of(10_000, n=1, dtype=dtype)
    assert SemiMarkov().log_partition(*own) == pytest.approx(SemiMarkov().log_partition(*wide), rel=1e-6)
    segments, transitions, start, end = SemiMarkov().marginals(*own)
    np.testing.assert_allclose((segments.sum(axis=(1, 3)) * [1, 2, 3]).sum(), 10_000, rtol=1e-5)
    assert transitions.sum() == pytest.approx(segments.sum() - 1, rel=1e-5)
    assert start.sum() == pytest.approx(1, rel=1e-5) and end.sum() == pytest.approx(1, rel=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_huge_scores_have_finite_gradients(dtype):
    parts, y = [part * dtype(1e30) for part in parts_of(6, dtype=dtype)], np.zeros((2, 6), int)
    for loss in (log_loss, hinge):
        values, gradients = loss(SemiMarkov(), parts, y)
        assert np.isfinite(values).all() and all(np.isfinite(g).all() for g in gradients)


def test_what_is_lost_to_underflow_behind_a_mask_is_found_again():
    segments, transitions = np.zeros((1, 3, 2, 2)), np.array([[-np.inf, -np.inf], [0.0, 0.0]])
    segments[0, 0, :, 1] = -900.0  # nothing may follow label 0
    segments[0, :2, 0, 0] = 0.0
    segments[0, 0, 1, 0] = segments[0, 1, 1, 0] = -np.inf
    log_z = SemiMarkov().log_partition(segments, transitions)
    values = SemiMarkov().kbest(segments, transitions, k=20)[1]
    assert log_z == pytest.approx(np.logaddexp.reduce(values[0]))
    marginals = SemiMarkov().marginals(segments, transitions)[0]
    assert np.isfinite(marginals).all() and marginals[0, 0].sum() == pytest.approx(1.0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", ["plain", "masked", "in logs"])
def test_segmentations_are_drawn_by_their_probabilities(kind, dtype):
    segments, transitions, start, end = parts_of(4, L=3, K=2, dtype=dtype)
    if kind != "plain":
        segments[0, 1, 0, 1] = transitions[0, 0] = start[1] = -np.inf
    if kind == "in logs":  # a label that is almost lost, and that alone goes on
        segments[:, 0, :, 0] -= 900.0
        segments[:, 0, :, 1], start[1] = -np.inf, 0.0
    parts, n_samples = (segments, transitions, start, end), 20_000
    found = SemiMarkov().sample(*parts, n_samples=n_samples, seed=0)
    np.testing.assert_array_equal(SemiMarkov(n_threads=2).sample(*parts, n_samples=n_samples, seed=0), found)
    every, values = SemiMarkov().kbest(*parts, k=200)
    for entry in (0, 1):
        there = values[entry] > -np.inf
        wanted = np.exp(values[entry][there] - np.logaddexp.reduce(values[entry][there]))
        rows = [tuple(y) for y in every[entry][there].tolist()]
        counts = dict.fromkeys(rows, 0)
        for y in found[entry].tolist():
            counts[tuple(y)] += 1
        share = np.array(list(counts.values())) / n_samples
        assert len(rows) < 200 and (np.abs(share - wanted) <= 5 * np.sqrt(wanted / n_samples) + 1 / n_samples).all()


def test_samples_where_only_logs_will_do():
    segments, transitions = np.zeros((1, 3, 2, 2)), np.array([[-np.inf, -np.inf], [0.0, 0.0]])
    segments[0, 0, :, 1] = -900.0  # nothing may follow label 0
    segments[0, :2, 0, 0] = 0.0
    segments[0, 0, 1, 0] = segments[0, 1, 1, 0] = -np.inf
    parts, shared = (segments, transitions), [np.zeros((1, 2, 2)), np.zeros((1, 2)), np.zeros((1, 2))]
    shared[0][0] = transitions
    y, log_z = np.full((1, 4000, 3), -1, np.int32), np.empty(1)
    random = [np.random.default_rng(0)]
    assert Segments(segments, tuple(shared), np.array([3])).draws(0, 1, random, log_z, y) == [0]
    found = SemiMarkov().sample(*parts, n_samples=4000, seed=0)[0]
    shares = np.array([SemiMarkov().score(row[None], *parts)[0] for row in np.unique(found, axis=0)])
    assert np.isfinite(shares).all()
    for label in range(4):
        marginal = (found[:, 2] == label).mean()
        own = SemiMarkov().marginals(*parts)[0][0]
        wanted = own[2, 0, label] if label < 2 else own[1, 1, label - 2]
        assert marginal == pytest.approx(wanted, abs=0.04)


def test_samples_name_the_entry_without_segmentations():
    segments = np.full((2, 5, 2, 1), -np.inf)
    segments[:, :, 1] = 0.5  # two tokens each
    with pytest.raises(ValueError, match="Batch entry 1 has no output"):
        SemiMarkov().sample(segments, np.zeros((1, 1)), n_samples=2, seed=0, lengths=[4, 5])


def test_unreachable_places_and_lengths_that_no_segments_fill():
    segments = np.full((2, 5, 2, 1), -np.inf)
    segments[:, :, 1] = 0.5  # two tokens each
    transitions = np.zeros((1, 1))
    assert SemiMarkov().argmax(segments[:1], transitions, lengths=[4]).tolist() == [[0, 1, 0, 1, -1]]
    assert SemiMarkov().log_partition(segments, transitions, lengths=[4, 5]).tolist() == [1.0, -np.inf]
    with pytest.raises(ValueError, match="Batch entry 1 has no output"):
        SemiMarkov().marginals(segments, transitions, lengths=[4, 5])


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([[0, 2, 1, 3], [2, 2, 0, 0]], "goes on with a segment of label 0 at batch entry 1, token 0"),
        ([[0, 2, 1, 3], [0, 3, 0, 0]], "goes on with a segment of label 1 at batch entry 1, token 1"),
        (
            [[0, 2, 1, 3], [0, 2, 2, 2]],
            "segment of 4 tokens at batch entry 1, token 0; segments have scores for at most 3",
        ),
        ([[0, 2, 1, 3], [0, 4, 0, 0]], "Got 4 at batch entry 1, token 1"),
        ([[0, 2, 1, 3], [0, -1, 0, 0]], "Got -1 at batch entry 1, token 1"),
        ([0, 1], r"y must be an array of integers of shape \(2, 4\)"),
    ],
)
def test_outputs_that_are_no_segmentation(y, message):
    with pytest.raises(ValueError, match=message):
        hinge(SemiMarkov(), parts_of(4), y)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda parts: (parts[0][0], *parts[1:]), r"segments must have shape \(B, T, L, K\)"),
        (lambda parts: (parts[0][:, :, :0], *parts[1:]), "L >= 1"),
        (lambda parts: (parts[0], parts[1][:1], *parts[2:]), r"transitions must have shape \(2, 2\) or \(2, 2, 2\)"),
        (lambda parts: (*parts[:2], np.zeros(3)), r"start must have shape \(2,\) or \(2, 2\)"),
        (lambda parts: parts[:1], "2 to 4"),
    ],
)
def test_parts_that_do_not_fit_are_named(change, message):
    with pytest.raises(ValueError, match=message):
        SemiMarkov().argmax(*change(parts_of(4)))


def test_a_segment_may_be_known_by_a_token_inside():
    parts = parts_of(5)
    outputs, values = SemiMarkov().kbest(*parts, k=2000)
    known = np.array([-1, 2, -1, -1, -1])
    agrees = (outputs[0, :, 1] == 2) & (outputs[0, :, 0] >= 0)
    expected = np.logaddexp.reduce(values[0]) - np.logaddexp.reduce(values[0][agrees])
    assert log_loss(SemiMarkov(), parts, [known, known])[0][0] == pytest.approx(expected)


@pytest.mark.parametrize("low", [-1e4, -np.inf])
def test_transitions_as_low_as_masks(low):
    segments, transitions, start, end = parts_of(30, K=3)
    transitions[[0, 2], 2] = start[2] = low  # label 2 follows label 1 alone
    segments[:, 10] = np.where(np.arange(3) == 1, segments[:, 10], low)
    parts = segments, transitions, start, end
    log_z, marginals = SemiMarkov().log_partition(*parts), SemiMarkov().marginals(*parts)
    for b in range(2):
        expected, *counts = _log_sums(*_tables(SemiMarkov().check(parts, None), b))
        assert log_z[b] == pytest.approx(expected)
        for found, wanted in zip(marginals[:2], counts, strict=True):
            np.testing.assert_allclose(found[b], wanted, atol=1e-9)


@pytest.mark.parametrize("by_transition", [False, True])
def test_a_label_whose_gains_come_later_is_not_lost(by_transition):
    first, low = int(by_transition), -np.inf
    segments, transitions = np.zeros((1, 8 + first, 1, 3)), np.full((3, 3), low)
    transitions[range(3), range(3)] = 0.0
    segments[0, 1 + first :, 0] = [low, 100.0, 0.0]  # label 0 ends
    if by_transition:
        segments[0, 0, 0, 1:] = low
        transitions[0, 1:] = [-800.0, -200.0]
    else:
        segments[0, 0, 0] = [0.0, -800.0, -200.0]
    n_best = 1 + by_transition  # token 1 may be labelled 0 or 1 then
    assert SemiMarkov().log_partition(segments, transitions) == pytest.approx(np.log(n_best) - 100.0)
