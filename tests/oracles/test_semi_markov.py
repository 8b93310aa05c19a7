"""Chains of segments: their number, transitions too great for products of exponentials, k-best, max-marginals."""

import tracemalloc

import numpy as np
import pytest
from segment_reference import n_segmentations, random_case, segmentations
from structures_table import Segments

from structsvm.oracles.semi_markov import SemiMarkovOracle


@pytest.mark.parametrize(("T", "n_types", "n_plain"), [(1, 1, 0), (4, 2, 1), (5, 1, 2), (6, 0, 2)])
def test_the_number_of_segmentations(T, n_types, n_plain):
    assert len(segmentations(T, n_types, n_plain)) == n_segmentations(T, n_types, n_plain)
    assert n_segmentations(5, 2, 0) == 2 * 3**4  # K (K + 1)^(n - 1)


def weights_of(case, seed, scale):
    w = case.weights(seed).reshape(case.oracle.n_rows, -1)
    w[case.oracle.n_token_features : case.oracle.first_bigram_row] *= scale
    return w.ravel()


@pytest.mark.parametrize("scale", [1.0, 30.0, 1000.0])
def test_sums_whatever_the_transitions(scale):
    """Exponentials of the greatest are beyond what a double holds."""
    for seed in range(3):
        case = Segments(seed, (5, 2), 2, 1, 3)
        w = weights_of(case, seed, scale)
        for x, space in zip(case.X, case.spaces, strict=True):
            scores = space.psi @ w
            log_sum = np.logaddexp.reduce(scores)
            found, psi = case.oracle.expect(x, w)
            assert found == pytest.approx(log_sum, rel=1e-5, abs=1e-4)
            assert psi == pytest.approx(np.exp(scores - log_sum) @ space.psi, abs=scale * 2e-4)


def test_kbest_and_max_marginals():
    for seed in range(3):
        case = Segments(seed, (4, 1), 1 + seed % 2, 1, 2)
        w = weights_of(case, seed, 1.0)
        for i, space in enumerate(case.spaces):
            scores, chain = space.psi @ w, case.oracle.chain(case.tokens)
            paths, found = chain.kbest(w, i, 6)
            assert found == pytest.approx(np.sort(scores)[::-1][:6], abs=1e-4)
            assert [scores[space.find(path)] for path in paths] == pytest.approx(found, abs=1e-4)
            assert len(chain.kbest(w, i, 10**6)[1]) == len(scores)
            outputs, best = np.array(space.outputs), chain.max_marginals(w, i)
            for t, c in np.ndindex(best.shape):
                there = outputs[:, t] == c
                assert best[t, c] == pytest.approx(scores[there].max(initial=-np.inf), abs=1e-4)


def test_kbest_of_a_long_sequence_takes_little_memory():
    """Each part of the labellings that are left is kept as where it begins: lattices would be eight megabytes."""
    oracle, tokens, _ = random_case(np.random.default_rng(0), (120,), 2, 1, 2)
    chain, w = oracle.chain(tokens), np.random.default_rng(1).normal(size=oracle.n_features)
    tracemalloc.start()
    scores = chain.kbest(w, 0, 8)[1]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(scores) == 8 and peak < 3 * 10**6


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"tags": [[0, 1, 2, 2]]}, "'tags' parameter of SemiMarkovOracle must be four labels per type"),
        ({"tags": [[0, 1, 2, 9]]}, "'tags' parameter"),
        ({"max_length": 1}, "'max_length' parameter of SemiMarkovOracle"),
        ({"phrase_starts": [0, 1]}, "'phrase_starts' parameter"),
        ({"phrase_starts": [0, 3, 2]}, "'phrase_starts' parameter"),
        ({"loss": "zero_one"}, "'loss' parameter"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_bad_parameters(params, message):
    with pytest.raises(ValueError, match=message):
        SemiMarkovOracle(**{"n_labels": 5, "n_token_features": 2, "tags": [[0, 1, 2, 3]], "max_length": 2} | params)
    oracle = SemiMarkovOracle(5, 2, [[0, 1, 2, 3]], max_length=2)
    with pytest.raises(ValueError, match="true labelling breaks the mask at token 1"):
        oracle.bind([np.ones((2, 2))], [np.array([0, 4])])
