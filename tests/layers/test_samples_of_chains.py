"""Samples of chains: their frequencies against the probabilities of all labellings, by scores of every kind."""

from itertools import product

import numpy as np
import pytest

from structsvm.layers import Chain
from structsvm.layers.structure import NoOutput

K, TOKENS, SAMPLES = 3, 4, 20_000


def scores(order, form, dtype, kind):
    rng = np.random.default_rng(order)
    shape = {"one": (), "each": (2, 1), "steps": (2, TOKENS - order)}[form]
    emissions, edges = rng.normal(size=(2, TOKENS, K)), rng.normal(size=(2, K))
    table = rng.normal(size=(*shape, *(K,) * (order + 1)))
    if kind == "masked":
        table[..., 0, 1] = -np.inf
        edges[1, 2] = emissions[1, 2, 0] = -np.inf
    elif kind == "wide":  # transitions further apart than scaled sums allow: everything is in logs
        table[..., 2, 2] -= 1000.0
        emissions[:, 1] *= 50.0
    return [part.astype(dtype) for part in (emissions, table, *edges)]


def probabilities(parts, order, entry):
    emissions, table, start, end = (part.astype(np.float64) for part in parts)
    if table.ndim > order + 1:
        table = table[entry]
    every = list(product(range(K), repeat=TOKENS))
    totals = np.zeros(len(every))
    for number, y in enumerate(every):
        totals[number] = start[y[0]] + end[y[-1]] + emissions[entry, range(TOKENS), y].sum()
        for t in range(TOKENS - order):
            step = table if table.ndim == order + 1 else table[t if len(table) > 1 else 0]
            totals[number] += step[y[t : t + order + 1]]
    chances = np.exp(totals - totals.max())
    return chances / chances.sum()


@pytest.mark.parametrize("kind", ["plain", "masked", "wide"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("form", ["one", "each", "steps"])
@pytest.mark.parametrize("order", [1, 2])
def test_labellings_are_drawn_by_their_probabilities(order, form, dtype, kind):
    parts = scores(order, form, dtype, kind)
    found = Chain(order=order).sample(*parts, n_samples=SAMPLES, seed=1)
    for entry in (0, 1):
        wanted = probabilities(parts, order, entry)
        places = found[entry] @ K ** np.arange(TOKENS - 1, -1, -1)
        counts = np.bincount(places, minlength=len(wanted))
        assert (counts[wanted == 0] == 0).all()
        deviation = np.abs(counts / SAMPLES - wanted)
        assert (deviation <= 5 * np.sqrt(wanted * (1 - wanted) / SAMPLES) + 1 / SAMPLES).all()


@pytest.mark.parametrize("kind", ["plain", "wide"])
def test_threads_and_the_rest_of_a_batch_change_no_sample(kind):
    rng = np.random.default_rng(0)
    emissions, table = rng.normal(size=(7, 9, K)).astype(np.float32), rng.normal(size=(K, K)).astype(np.float32)
    table[0, 0] -= 500.0 * (kind == "wide")
    lengths = [9, 0, 1, 5, 9, 2, 7]
    one, two = (Chain(n_threads=n).sample(emissions, table, n_samples=6, seed=4, lengths=lengths) for n in (1, 3))
    np.testing.assert_array_equal(one, two)
    for n in (1, 4):
        some = Chain().sample(emissions[:n], table, n_samples=6, seed=4, lengths=lengths[:n])
        np.testing.assert_array_equal(some, one[:n])
    assert ((one >= 0) == (np.arange(9) < np.array(lengths)[:, None])[:, None]).all()


def test_an_entry_without_labellings_is_named():
    emissions = np.zeros((3, 2, 2))
    emissions[2, 1] = -np.inf
    with pytest.raises(NoOutput, match="Batch entry 2 has no output"):
        Chain(n_threads=2).sample(emissions, np.zeros((2, 2)), n_samples=1, seed=0)
