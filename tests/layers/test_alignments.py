"""Alignments on scores: strings without letters, masked gaps, and scores that are integers or numbers."""

from itertools import product

import numpy as np
import pytest

from structsvm.layers import Alignment
from structsvm.layers.alignment import MODES


def alignments(mode, n, m):
    """All outputs of strings of n and m letters: rows of partners that are not refused."""
    structure, found = Alignment(mode), []
    scores = structure.check((np.zeros((1, n, m)),), None)
    for row in product(range(m + 2), repeat=n):
        y = np.array([row], int).reshape(1, n)
        try:
            structure.check_output(y, scores)
        except ValueError:
            continue
        found.append(y)
    return found


@pytest.mark.parametrize("masked", ["nothing", "a pair", "gaps"])
@pytest.mark.parametrize(("n", "m"), list(product(range(4), repeat=2)))
@pytest.mark.parametrize("mode", MODES)
def test_short_strings_against_all_alignments(mode, n, m, masked):
    rng, structure = np.random.default_rng(0), Alignment(mode)
    parts = [rng.normal(size=(1, n, m)), *(rng.normal(size=(1, size)) for size in (n, n, m, m))]
    if masked == "a pair":
        parts[0][:, :1, :1] = -np.inf
    elif masked == "gaps":
        parts[1][:, -1:] = parts[3][:] = -np.inf
    values = np.array([structure.score(y, *parts)[0] for y in alignments(mode, n, m)])
    assert structure.log_partition(*parts) == pytest.approx(np.logaddexp.reduce(values), abs=1e-9)
    if np.isneginf(values).all():
        for verb in (structure.argmax, structure.marginals):
            with pytest.raises(ValueError, match="Batch entry 0 has no output"):
                verb(*parts)
    else:
        assert structure.score(structure.argmax(*parts), *parts) == pytest.approx(values.max(), abs=1e-9)
        assert all(np.isfinite(part).all() for part in structure.marginals(*parts))


def test_numbers_beside_scores_that_are_integers_keep_their_fractions():
    pairs = np.zeros((1, 2, 2), int)
    assert Alignment().score([[0, 2]], pairs, -0.5, -0.5, -0.25, -0.25).tolist() == [-0.75]
    assert Alignment().marginals(pairs.astype(np.float32), -0.5)[0].dtype == np.float32


def test_one_pair_that_outweighs_all_others():
    pairs = np.zeros((1, 2, 2))
    pairs[0, 1, 0] = 1e30
    assert Alignment().log_partition(pairs).tolist() == [1e30]
    assert Alignment().marginals(pairs)[0].tolist() == [[[0.0, 0.0], [1.0, 0.0]]]
