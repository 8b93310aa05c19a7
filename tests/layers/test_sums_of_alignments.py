"""Alignments in the range of double and beyond it: sums, samples and threads, beside all alignments."""

from itertools import product

import numpy as np
import pytest

from structsvm.layers import Alignment, log_loss
from structsvm.layers.alignment import MODES
from structsvm.layers.structure import NoOutput

SAMPLES = 20_000


def alignments(mode, n, m):
    structure = Alignment(mode)
    scores = structure.check((np.zeros((1, n, m)),), None)
    for row in product(range(m + 2), repeat=n):
        try:
            structure.check_output([row], scores)
        except ValueError:
            continue
        yield row


def parts_of(kind):
    rng = np.random.default_rng(0)
    parts = [rng.normal(size=(1, 4, 3)), *(rng.normal(size=(1, size)) for size in (4, 4, 3, 3))]
    if kind == "masked":
        parts[0][0, 1] = parts[3][0, 1] = -np.inf
    elif kind == "in logs":
        parts[0][0, 2, 1] += 900.0  # alone too much for sums of exponentials
    return parts


@pytest.mark.parametrize("kind", ["plain", "masked", "in logs"])
@pytest.mark.parametrize("mode", MODES)
def test_alignments_are_drawn_by_their_probabilities(mode, kind):
    structure, parts, every = Alignment(mode), parts_of(kind), list(alignments(mode, 4, 3))
    values = np.array([structure.score([y], *parts)[0] for y in every])
    wanted = np.exp(values - np.logaddexp.reduce(values))
    drawn, counts = np.unique(structure.sample(*parts, n_samples=SAMPLES, seed=0)[0], axis=0, return_counts=True)
    found = np.zeros(len(every))
    found[[every.index(tuple(y)) for y in drawn.tolist()]] = counts
    assert (np.abs(found / SAMPLES - wanted) <= 5 * np.sqrt(wanted * (1 - wanted) / SAMPLES) + 1 / SAMPLES).all()
    marginals = structure.marginals(*parts)[0][0]
    pairs = (np.array(every)[:, :, None] == np.arange(3)) * wanted[:, None, None]
    np.testing.assert_allclose(marginals, pairs.sum(axis=0), atol=1e-9)


@pytest.mark.parametrize("mode", MODES)
def test_sums_in_logs_are_those_of_exponentials(mode):
    rng, structure = np.random.default_rng(1), Alignment(mode)
    parts = [rng.normal(size=(2, 30, 25)), *(rng.normal(size=(2, size)) for size in (30, 30, 25, 25))]
    parts[0][:, 3, 4] = -np.inf  # masks leave the range as it is
    within = structure.log_partition(*parts), structure.marginals(*parts)
    parts[0][:, 3, 4] = -1e4  # as good as a mask, and beyond the range
    np.testing.assert_allclose(structure.log_partition(*parts), within[0], rtol=1e-12)
    for mine, its in zip(structure.marginals(*parts), within[1], strict=True):
        np.testing.assert_allclose(mine, its, atol=1e-12)


@pytest.mark.parametrize("scale", [1.0, 300.0])
def test_threads_and_the_rest_of_a_batch_change_nothing(scale):
    rng = np.random.default_rng(0)
    pairs = (scale * rng.normal(size=(5, 6, 7))).astype(np.float32)
    lengths = [[6, 7], [0, 3], [2, 0], [5, 7], [1, 1]]
    for call in (
        lambda one, few: one.sample(pairs[:few], -1.0, n_samples=9, seed=2, lengths=lengths[:few]),
        lambda one, few: one.argmax(pairs[:few], -1.0, lengths=lengths[:few]),
        lambda one, few: one.marginals(pairs[:few], -1.0, lengths=lengths[:few])[0],
        lambda one, few: one.log_partition(pairs[:few], -1.0, lengths=lengths[:few]),
    ):
        whole = call(Alignment("local"), 5)
        np.testing.assert_array_equal(call(Alignment("local", n_threads=3), 5), whole)
        np.testing.assert_array_equal(call(Alignment("local"), 2), whole[:2])


def test_an_entry_without_alignments_is_named_by_samples():
    pairs = np.zeros((3, 1, 1))
    pairs[1] = -np.inf
    with pytest.raises(NoOutput, match="Batch entry 1 has no output"):
        Alignment().sample(pairs, -np.inf, n_samples=1, seed=0)


@pytest.mark.parametrize("scale", [1e6, 1e9, 1e17, 1e30])
@pytest.mark.parametrize("mode", MODES)
def test_marginals_of_large_scores_are_shares(mode, scale):
    rng = np.random.default_rng(5)
    pairs = np.concatenate([np.ones((1, 5, 5)), rng.integers(-2, 3, (3, 5, 5)), rng.normal(size=(2, 5, 5))]) * scale
    structure = Alignment(mode)
    found, open_x, extend_x, *_ = structure.marginals(pairs, *[np.full((6, 5), -7.0)] * 4)
    of_letters = found.sum(axis=2) + open_x + extend_x
    assert found.min() >= 0 and of_letters.max() <= 1 + 1e-9
    assert mode != "global" or of_letters.min() >= 1 - 1e-9
    entropy = structure.entropy(pairs, -7.0, -7.0, -7.0, -7.0)
    # No more than of equally probable alignments, but for the rounding of scores.
    assert entropy.min() >= 0 and entropy.max() < np.log(1683 * 9) + 1e-13 * scale


def test_ties_of_large_scores_are_shared():
    masked = np.full((1, 2, 2), -np.inf)
    masked[0, 0, 0], masked[0, 1, 1] = 7.0, 1e17
    np.testing.assert_allclose(Alignment().marginals(masked, *[-np.inf] * 4)[0], [np.eye(2)])
    np.testing.assert_allclose(Alignment().marginals(np.full((1, 1, 2), 1e17), 0, 0, -7.0, -7.0)[0], [[[0.5, 0.5]]])
    np.testing.assert_allclose(Alignment().marginals(np.full((1, 6, 6), 1e25))[0].sum(), 6.0)


def test_no_bit_depends_on_the_longest_string():
    """Nor whether an entry is summed in logs, which its own letters decide."""
    rng, lengths = np.random.default_rng(0), np.full((100, 2), 13)
    pairs, letters = rng.normal(size=(100, 13, 13)), rng.normal(size=(4, 100, 13)) * rng.uniform(5, 15, (100, 1))
    y = Alignment().argmax(pairs, *letters)
    wider = np.pad(pairs, [(0, 0), (0, 20), (0, 20)]), *np.pad(letters, [(0, 0), (0, 0), (0, 20)])
    padded = np.where(y == 13, 33, y)
    padded = np.pad(padded, [(0, 0), (0, 20)], constant_values=-1)
    short = log_loss(Alignment(), (pairs, *letters), y, lengths)
    long = log_loss(Alignment(), wider, padded, lengths)
    assert short[0].tolist() == long[0].tolist()
    for own, same in zip(short[1], long[1], strict=True):
        np.testing.assert_array_equal(own, same[tuple(slice(size) for size in own.shape)])
        assert np.count_nonzero(same) == np.count_nonzero(own)
