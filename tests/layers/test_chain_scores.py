"""Chains: extreme scores and lengths, shapes that do not fit, arrays of other kinds."""

import tracemalloc
from itertools import product

import numpy as np
import pytest

from structsvm.layers import Chain, hinge, log_loss, scheme_masks
from structsvm.metrics._schemes import SCHEMES, scheme_for, scheme_name

K = 4


def parts_of(longest, n=2, dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, longest, K)).astype(dtype), rng.normal(size=(K, K)).astype(dtype)


def test_a_chain_of_ten_thousand_tokens_in_float32():
    emissions, transitions = parts_of(10_000, 1, np.float32)
    wide = emissions.astype(np.float64), transitions.astype(np.float64)
    assert Chain().log_partition(emissions, transitions) == pytest.approx(Chain().log_partition(*wide), rel=1e-6)
    for narrow, exact in zip(Chain().marginals(emissions, transitions), Chain().marginals(*wide), strict=True):
        np.testing.assert_allclose(narrow, exact, rtol=1e-4, atol=1e-5)


def test_the_log_partition_of_a_chain_of_equal_scores_is_known():
    zeros = np.zeros((1, 10_000, K))
    assert Chain().log_partition(zeros, np.zeros((K, K))) == pytest.approx(10_000 * np.log(K), rel=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_huge_scores_have_finite_gradients(dtype):
    emissions, transitions = parts_of(6, dtype=dtype)
    y = np.zeros((2, 6), int)
    triples = np.random.default_rng(1).normal(size=(K, K, K)).astype(dtype)
    for loss, (chain, steps) in product((log_loss, hinge), ((Chain(), transitions), (Chain(order=2), triples))):
        values, gradients = loss(chain, (emissions * dtype(1e30), steps * dtype(1e30)), y)
        assert np.isfinite(values).all() and all(np.isfinite(g).all() for g in gradients)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_is_unlikely_at_first_may_be_all_that_is_allowed_later(dtype):
    emissions = np.array([[[0.0, -60.0, -2000.0], [0.0, 0.0, 0.0]]], dtype)
    transitions = np.array([[-np.inf, 0, 0], [0, 0, 0], [0, 0, 0]], dtype)
    end = np.array([0.0, -np.inf, -np.inf], dtype)
    nodes, *_ = Chain().marginals(emissions, transitions, None, end)
    np.testing.assert_allclose(nodes[0], [[0, 1, 0], [1, 0, 0]], atol=1e-6)
    emissions[0, 0, 1] = -1500.0
    nodes, *_ = Chain().marginals(emissions, transitions, None, end)
    np.testing.assert_allclose(nodes[0], [[0, 1, 0], [1, 0, 0]], atol=1e-6)


def test_one_label_and_no_tokens():
    emissions, transitions = np.ones((2, 3, 1)), np.full((1, 1), 2.0)
    assert Chain().log_partition(emissions, transitions).tolist() == [7.0, 7.0]
    assert Chain().argmax(emissions, transitions, lengths=[3, 0]).tolist() == [[0, 0, 0], [-1, -1, -1]]
    assert Chain().log_partition(np.ones((2, 0, 1)), transitions).tolist() == [0.0, 0.0]
    assert Chain().log_partition(np.ones((0, 3, 1)), transitions).tolist() == []
    for shape in [(12, 3, 1), (12, 0, 1)]:
        values, (nodes, pairs) = log_loss(
            Chain(), (np.ones(shape, np.float32), np.ones((1, 1), np.float32)), np.zeros(shape[:2], int), [0] * 12
        )
        assert not values.any() and not nodes.any() and not pairs.any()
    assert Chain().marginals(np.ones((0, 3, 1)), transitions)[1].shape == (0, 1, 1)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ((np.ones((2, 3)), np.ones((3, 3))), r"emissions must have shape \(B, T, K\)"),
        ((np.ones((2, 3, 4)), np.ones((3, 3))), r"transitions must have shape \(4, 4\)"),
        ((np.ones((2, 3, 4)), np.ones((4, 4)), np.ones(3)), r"start must have shape \(4,\)"),
        (
            (np.ones((2, 3, 4)), np.ones((4, 4)), None, np.full(4, np.nan)),
            r"end must be finite.*position \(\)|end must",
        ),
        ((np.ones((2, 3, 4)),), "2 to 5"),
        ((np.ones((2, 3, 4)), np.ones((4, 4)), None, None, np.ones((4, 4))), r"pairs is a part of Chain\(order=2\)"),
        ((np.array([[["a"]]]), np.ones((1, 1))), "emissions must be an array of real numbers"),
    ],
)
def test_parts_that_do_not_fit_are_named(parts, message):
    with pytest.raises(ValueError, match=message):
        Chain().argmax(*parts)


@pytest.mark.parametrize("lengths", [[1], [1, 9], [-1, 2], [1.0, 2.0]])
def test_lengths_that_do_not_fit_are_refused(lengths):
    with pytest.raises(ValueError, match="lengths must be 2 integers from 0 to 3"):
        Chain().argmax(*parts_of(3), lengths=lengths)


def test_a_mask_in_the_place_of_lengths_is_said_to_be_one():
    with pytest.raises(ValueError, match=r"Got a mask: give mask\.sum\(axis=1\)"):
        Chain().argmax(*parts_of(3), lengths=np.ones((2, 3), bool))


@pytest.mark.parametrize("label", [-1, -100, K])
def test_labels_that_do_not_fit_are_refused(label):
    y = np.zeros((2, 3), int)
    y[1, 2] = label
    with pytest.raises(ValueError, match=f"Got {label} at batch entry 1, token 2"):
        hinge(Chain(), parts_of(3), y)


def test_arrays_with_dlpack_are_taken():
    class Foreign:
        def __init__(self, array):
            self.array = array

        def __dlpack__(self, **options):
            return self.array.__dlpack__(**options)

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

    parts = parts_of(3)
    np.testing.assert_array_equal(Chain().log_partition(*map(Foreign, parts)), Chain().log_partition(*parts))


@pytest.mark.parametrize(("dtype", "start", "step"), [(np.float32, -200.0, -30.0), (np.float64, -800.0, -100.0)])
def test_a_label_lost_to_underflow_behind_a_mask_is_found_again(dtype, start, step):
    emissions = np.zeros((1, 11, 3), dtype)
    emissions[0, 0], emissions[0, 1:, 2] = [0.0, start, -10.0], step
    transitions = np.full((3, 3), -np.inf, dtype)
    transitions[1, 1] = transitions[2, 2] = 0.0
    assert Chain().log_partition(emissions, transitions) == pytest.approx(start)
    np.testing.assert_allclose(Chain().marginals(emissions, transitions)[0][0, :, 1], 1.0)


@pytest.mark.parametrize(("dtype", "start", "step"), [(np.float32, -200.0, -42.0), (np.float64, -1000.0, -320.0)])
def test_a_label_lost_to_underflow_before_low_transitions_is_found_again(dtype, start, step):
    emissions, transitions = np.zeros((1, 11, 2), dtype), np.array([[step, 9 * step], [9 * step, 0.0]], dtype)
    emissions[0, 0, 1] = start
    np.testing.assert_allclose(Chain().marginals(emissions, transitions)[0][0, :, 1], 1.0)


@pytest.mark.parametrize("n_labels", [1, 2, 9, 13, 34])
def test_entries_side_by_side_do_not_depend_on_one_another(n_labels):
    rng, longest = np.random.default_rng(n_labels), 300
    lengths = np.array([longest, 0, 1, 2, longest, *rng.integers(1, longest, 16)])
    emissions = rng.normal(size=(len(lengths), longest, n_labels)).astype(np.float32)
    emissions[np.arange(longest) >= lengths[:, None]] = np.nan
    shared = [rng.normal(size=shape).astype(np.float32) for shape in [(n_labels, n_labels), n_labels, n_labels]]
    shared[0][0, -1] = -np.inf if n_labels > 2 else 0
    y = np.maximum(np.where(rng.random((len(lengths), longest)) < 0.3, n_labels - 2, 0), 0)

    def found(emissions, entries=slice(None)):
        values, gradients = log_loss(Chain(), (emissions, *shared), y[entries], lengths[entries], per_entry=True)
        return values, *gradients

    whole = found(emissions)
    for entry in range(len(lengths)):
        alone = found(emissions[[entry]], [entry])
        for one, together in zip(alone, whole, strict=True):
            np.testing.assert_allclose(one[0], together[entry], rtol=1e-4, atol=2e-4)
    hard = emissions.copy()
    hard[[0, 5]] *= np.float32(-300.0)  # in logs, by themselves
    changed, wide = found(hard), found(hard.astype(np.float64))
    for before, after, exact in zip(whole, changed, wide, strict=True):
        np.testing.assert_array_equal(np.delete(before, [0, 5], 0), np.delete(after, [0, 5], 0))
        np.testing.assert_allclose(after, exact, rtol=1e-4, atol=2e-4)
    of_threads = [log_loss(Chain(n_threads=n), (hard, *shared), y, lengths) for n in (1, 3)]
    for values, (nodes, *summed) in of_threads:
        np.testing.assert_array_equal(values, changed[0])
        np.testing.assert_array_equal(nodes, changed[1])
        for total, exact, same in zip(summed, wide[2:], of_threads[0][1][1:], strict=True):
            np.testing.assert_array_equal(total, same)
            np.testing.assert_allclose(total, exact.sum(axis=0), rtol=1e-4, atol=2e-3)


def test_scratch_of_a_batch_is_kept_for_the_next():
    rng, y = np.random.default_rng(0), np.zeros((32, 128), np.int32)
    parts = rng.normal(size=(32, 128, 60)).astype(np.float32), rng.normal(size=(60, 60)).astype(np.float32)
    log_loss(Chain(n_threads=2), parts, y)
    tracemalloc.start()
    log_loss(Chain(n_threads=2), parts, y)
    assert tracemalloc.get_traced_memory()[1] < 2 * parts[0].nbytes  # a gradient of the emissions, but no scratch
    tracemalloc.stop()


def test_equal_entries_have_samples_of_their_own():
    first, second = Chain().sample(np.zeros((2, 9, K)), np.zeros((K, K)), n_samples=5, seed=0)
    assert (first != second).any()


@pytest.mark.parametrize("scheme", ["bio", "IOB1", "bioes", "BILUO", "bmes", "bmewo", "ioe1", "ioe2", "io"])
@pytest.mark.parametrize("form", ["{}-{}", "{}_{}", "{1}-{0}"])
def test_masks_of_a_scheme_leave_its_labellings(scheme, form):
    kind = scheme_for([form.format(tag, "X") for tag in SCHEMES[scheme_name(scheme)].tags] + ["O"], scheme)
    labels = ["O", *(form.format(tag, name) for name in "XY" for tag in kind.rules.tags)]
    transitions, start, end = scheme_masks(labels, scheme)
    assert transitions.dtype == start.dtype == end.dtype == np.float32
    for length in (0, 1, 2, 3):
        tried = [list(y) for y in product(range(len(labels)), repeat=length)]
        named = [[labels[k] for k in y] for y in tried]
        good = [y for y, names in zip(tried, named, strict=True) if kind.repaired(names) == names]
        parts = np.zeros((1, 3, len(labels))), transitions, start, end
        assert np.exp(Chain().log_partition(*parts, lengths=[length])) == pytest.approx([len(good)])
        found, values = Chain().kbest(*parts, k=len(good) + 1, lengths=[length])
        assert sorted(found[0, : len(good), :length].tolist()) == good and values[0, -1] == -np.inf


@pytest.mark.parametrize(
    ("labels", "scheme", "message"),
    [
        (["O", "B-X"], "bix", "no scheme 'bix'; there are bio, bioes"),
        (["O", "B-X", "E-X"], "bio", "the label 'E-X' is none of the scheme BIO"),
        (["O", "B-X", "<pad>"], "bio", "the label '<pad>' is none of the scheme BIO"),
    ],
)
def test_labels_without_the_scheme_are_named(labels, scheme, message):
    with pytest.raises(ValueError, match=message):
        scheme_masks(labels, scheme)


def test_order_two_with_scores_of_pairs_alone_is_order_one():
    emissions, transitions = parts_of(9)
    for parts in ((np.zeros((K, K, K)), None, None, transitions), (np.zeros((2, 1, K, K, K)), None, None, transitions)):
        for verb, options in (("log_partition", {}), ("argmax", {}), ("max_marginals", {})):
            one = getattr(Chain(), verb)(emissions, transitions, lengths=[9, 1], **options)
            two = getattr(Chain(order=2), verb)(emissions, *parts, lengths=[9, 1], **options)
            np.testing.assert_allclose(one, two, rtol=1e-12)
        found = Chain(order=2).marginals(emissions, *parts)
        for narrow, wide in zip(Chain().marginals(emissions, transitions), (found[0], found[4]), strict=True):
            np.testing.assert_allclose(narrow, wide, atol=1e-12)


def test_order_two_of_many_labels_and_tokens():
    rng = np.random.default_rng(0)
    emissions, triples = rng.normal(size=(2, 40, 11)), rng.normal(size=(11, 11, 11))
    both = [part.astype(np.float32) for part in (emissions, triples)]
    wide, narrow = (Chain(order=2).marginals(*parts) for parts in ((emissions, triples), both))
    for one, other in zip(wide, narrow, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)
    assert wide[1].sum() == pytest.approx(2 * 38)
    zeros = np.zeros((1, 5_000, 3)), np.zeros((3, 3, 3))
    assert Chain(order=2).log_partition(*zeros) == pytest.approx(5_000 * np.log(3), rel=1e-12)


@pytest.mark.parametrize("longest", [0, 1, 2])
def test_order_two_of_short_sequences(longest):
    emissions, triples = np.ones((3, longest, 1)), np.ones((1, 1, 1))
    assert Chain(order=2).log_partition(emissions, triples).tolist() == [longest] * 3
    assert Chain(order=2).argmax(emissions, triples).tolist() == [[0] * longest] * 3
    assert Chain(order=2).kbest(emissions, triples, k=1)[1].tolist() == [[longest]] * 3
    assert [part.shape for part in Chain(order=2).marginals(emissions, triples)] == [(3, longest, 1), (3, 1, 1, 1)]
    assert Chain(order=2).marginals(emissions[:0], triples)[0].shape == (0, longest, 1)


@pytest.mark.parametrize(
    ("order", "parts", "message"),
    [
        (3, parts_of(3), "order must be 1 or 2. Got 3"),
        (2, parts_of(3), r"transitions must have shape \(4, 4, 4\), \(2, 1, 4, 4, 4\) or"),
        (2, (*parts_of(3)[:1], np.zeros((K, K, K)), None, None, np.zeros(K)), r"pairs must have shape \(4, 4\)"),
    ],
)
def test_orders_and_tables_that_do_not_fit(order, parts, message):
    with pytest.raises(ValueError, match=message):
        Chain(order=order).argmax(*parts)


def test_a_pair_of_labels_whose_gains_come_later_is_not_lost():
    emissions, pairs = np.zeros((1, 14, 2)), np.array([[0.0, -1e4], [-1e4, 100.0]])
    emissions[0, 1, 1] = -1000.0
    parts = emissions, np.zeros((2, 2, 2)), None, None, pairs
    assert Chain(order=2).log_partition(*parts) == pytest.approx(300.0)
    np.testing.assert_allclose(Chain(order=2).marginals(*parts)[0][0, :, 1], 1.0)


def test_no_table_of_a_chain_of_order_2_has_all_pairs_of_pairs():
    K, rng = 40, np.random.default_rng(0)
    parts, every = (rng.normal(size=(2, 4, K)), rng.normal(size=(K, K, K))), 8 * K**4
    chain = Chain(order=2)
    for act in (
        lambda: chain.kbest(*parts, k=2),
        lambda: chain.max_marginals(*parts),
        lambda: chain.sample(*parts, n_samples=3, seed=0),
    ):
        tracemalloc.start()
        act()
        assert tracemalloc.get_traced_memory()[1] < every / 3
        tracemalloc.stop()


@pytest.mark.parametrize("order", [1, 2])
def test_maxima_with_a_label_are_those_of_masks(order):
    """Long sequences of several lengths, whose steps have transitions of their own."""
    rng = np.random.default_rng(order)
    emissions, transitions = rng.normal(size=(2, 12, 3)), rng.normal(size=(2, 12 - order, *[3] * (order + 1)))
    transitions[:, 3, 1, 2] = -np.inf
    chain, lengths = Chain(order=order), [12, 7]
    found = chain.max_marginals(emissions, transitions, lengths=lengths)
    for token in range(12):
        for label in range(3):
            masked = emissions.copy()
            masked[:, token, np.arange(3) != label] = -np.inf
            best = chain.argmax(masked, transitions, lengths=lengths)
            wanted = chain.score(best, masked, transitions, lengths=lengths)
            there = token < np.array(lengths)
            np.testing.assert_allclose(found[there, token, label], wanted[there], rtol=1e-12)
            assert np.isneginf(found[~there, token, label]).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", [1, 2])
def test_the_k_best_of_all_labellings(order, dtype):
    rng = np.random.default_rng(order)
    emissions, transitions = (rng.normal(size=shape).astype(dtype) for shape in ((1, 7, 3), [3] * (order + 1)))
    every = np.array(list(product(range(3), repeat=7)))
    scores = Chain(order=order).score(every, np.repeat(emissions, len(every), axis=0), transitions)
    found, values = Chain(order=order).kbest(emissions, transitions, k=len(every) + 3)
    np.testing.assert_allclose(values[0, :-3], np.sort(scores)[::-1], atol=1e-12)
    assert {tuple(y) for y in found[0, :-3].tolist()} == set(map(tuple, every.tolist()))
    assert (found[0, -3:] == -1).all() and np.isneginf(values[0, -3:]).all()
    few = Chain(order=order).kbest(emissions, transitions, k=40)
    assert few[0].tolist() == found[:, :40].tolist() and few[1].tolist() == values[:, :40].tolist()
