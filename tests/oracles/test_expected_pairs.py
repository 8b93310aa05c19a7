"""Alignments with the most expected right pairs, against the enumeration of all alignments and against layers."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from structures_table import Alignments

from structsvm.layers import Alignment as Layer
from structsvm.oracles.smith_waterman import SmithWatermanOracle
from structsvm.structures.alignments import Alignment, Context, Strings

MODES = ("global", "semi_global", "local")
LEAST = 0.01
CLOSE = {"rel": 1e-9, "abs": 1e-9}


def pairs(alignment):
    return list(map(tuple, alignment.pairs.tolist()))


def probabilities(scored):
    """The probability of each pair of letters, by (score, alignment) of all alignments."""
    scores = np.array([score for score, _ in scored])
    shares = np.exp(scores - scores.max())
    found = Counter()
    for share, (_, alignment) in zip(shares / shares.sum(), scored, strict=True):
        for pair in pairs(alignment):
            found[pair] += share
    return found


def expected(alignment, of_pairs):
    """The expected number of right pairs; none of them may be improbable."""
    return sum(of_pairs[pair] if of_pairs[pair] >= LEAST else -np.inf for pair in pairs(alignment))


def decoded(oracle, x, w, beta):
    aligner = oracle.aligner(Strings.of([oracle.encode(string) for string in x]), [[0, 1]])
    x_start, z_start, codes, score = aligner.align(w, 0, 1, beta)
    found = Alignment.from_codes(x_start, z_start, codes)
    if pairs(found):
        oracle.check_alignment(found, len(x[0]), len(x[1]))
    return found, score


@settings(max_examples=80)
@given(st.integers(0, 2**32 - 1), st.sampled_from(MODES), st.sampled_from(["affine", "linear"]), st.floats(0.1, 3.0))
def test_expected_pairs_by_enumeration(seed, mode, gaps, beta):
    case = Alignments(seed, mode, gaps)
    w = case.weights(seed)
    for x, all_of_x, space in zip(case.X, case.alignments, case.spaces, strict=True):
        every = [Alignment(i, j, path.encode()) for i, j, path in all_of_x]
        of_pairs = probabilities([(beta * (psi @ w), a) for psi, a in zip(space.psi, every, strict=True)])
        best = max(expected(a, of_pairs) for a in every)
        found, score = decoded(case.oracle, x, w, beta)
        if best > 0.0:
            assert score == pytest.approx(best, **CLOSE)
            assert expected(found, of_pairs) == pytest.approx(best, **CLOSE)
        else:
            assert found == case.oracle.argmax(x, w)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("band", [None, (1, 2)])
def test_bands_and_contexts(mode, band):
    rng = np.random.default_rng(0)
    contexts = [Context("left", (0, 10, 20), (-1,), (5.0, 15.0))]
    oracle = SmithWatermanOracle(3, mode=mode, band=band, contexts=contexts, letter_gaps=True)
    n_compared = 0
    for _ in range(30):
        w = rng.normal(scale=2.0, size=oracle.n_features)
        x = [rng.integers(0, 3, rng.integers(1, 6)) for _ in "xz"]
        scored = [(0.7 * score, a) for score, a in oracle.alignments(x, w)]
        of_pairs = probabilities(scored)
        best = max(expected(a, of_pairs) for _, a in scored)
        found, score = decoded(oracle, x, w, 0.7)
        if best > 0.0:
            n_compared += 1
            assert score == pytest.approx(best, **CLOSE) and expected(found, of_pairs) == pytest.approx(best, **CLOSE)
    assert n_compared > 20


@pytest.mark.parametrize("mode", ["global", "local"])
def test_long_strings_against_sums_of_logarithms(mode):
    """Sums beyond the range of floats: 120 letters that score up to 60 each, and parts in another order."""
    rng = np.random.default_rng(1)
    a, b = rng.integers(0, 4, 70), rng.integers(0, 4, 50)
    oracle = SmithWatermanOracle(4, mode=mode)
    w = np.concatenate([(np.where(np.eye(4, dtype=bool), 60.0, -20.0) + rng.normal(size=(4, 4))).ravel(), [-9.0, -2.0]])
    for x, z in (((a, b), (b, a)), ((a, b), (a[::-1], b)), ((b, a), (b, a[:40]))):
        x, z = np.concatenate(x), np.concatenate(z)
        gaps = np.full(1, -9.0), np.full(1, -2.0)
        of_pairs = Layer(mode).marginals(oracle.pair_table(w)[x][:, z][None], *(float(g[0]) for g in gaps * 2))[0][0]
        found, score = decoded(oracle, (x, z), w, 1.0)
        i, j = found.pairs.T
        assert score == pytest.approx(of_pairs[i, j].sum(), rel=1e-7)
        total = np.zeros((len(x) + 1, len(z) + 1))  # the most expected pairs, without any gap's cost
        probable = np.where(of_pairs >= LEAST, of_pairs, 0.0)
        for k, row in enumerate(probable):
            for n, p in enumerate(row):
                total[k + 1, n + 1] = max(total[k, n] + p, total[k, n + 1], total[k + 1, n])
        assert score == pytest.approx(total[-1, -1], rel=1e-7) and score > 30


def test_hits_count_decoded_pairs():
    case = Alignments(3, "semi_global", "affine", n=12)
    w = case.weights(3)
    references = case.oracle.bind(case.X, case.Y).references
    aligner = case.oracle.aligner(references.strings, references.pairs)
    found = [decoded(case.oracle, x, w, 0.5)[0] for x in case.X]
    losses = [case.oracle.loss(y, a) for y, a in zip(case.Y, found, strict=True)]
    counts = np.array([y.assessed.sum() for y in case.Y])
    assert aligner.hits(w, references, 0.5) == pytest.approx(counts * (1.0 - np.array(losses)))


def test_scores_out_of_bounds_have_the_best_alignment():
    oracle = SmithWatermanOracle(2)
    w = np.array([2.0, -1.0, -1.0, 2.0, -2.0, -1.0])
    x = ([0, 1, 1, 0, 1], [0, 1, 0, 1])
    assert decoded(oracle, x, w, 500.0)[0] == oracle.argmax(x, w)
    assert decoded(oracle, x, 1e-3 * w, 1.0)[0].operations.count(b"M") > 0
