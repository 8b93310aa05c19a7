"""Bit scores and E-values: against NCBI's published parameters, Gumbel draws, and counts of chance hits."""

import math

import numpy as np
import pytest

from structsvm.tasks import SequenceAligner
from structsvm.tasks.alignment.significance import KarlinAltschul

# Robinson and Robinson 1991: how often amino acids occur, in units of 1e-5.
ROBINSON = {
    "A": 7805, "R": 5129, "N": 4487, "D": 5364, "C": 1925, "Q": 4264, "E": 6295, "G": 7377, "H": 2199, "I": 5142,
    "L": 9019, "K": 5744, "M": 2243, "F": 3856, "P": 5203, "S": 7120, "T": 5841, "W": 1330, "Y": 3216, "V": 6441,
}  # fmt: skip
BACKGROUND = ["".join(letter * n for letter, n in ROBINSON.items())]


def aligner(gap_open=-12, gap_extend=-1, **params):
    pytest.importorskip("Bio")
    return SequenceAligner.from_costs("BLOSUM62", gap_open, gap_extend, **{"mode": "local"} | params)


# BLAST's constants for BLOSUM62 with gaps of 11 and 1 (the first letter costs 12), 11 and 2, 10 and 1, and no gaps.
@pytest.mark.parametrize(
    ("gap_open", "gap_extend", "decay", "K"),
    [(-12, -1, 0.267, 0.041), (-13, -2, 0.297, 0.082), (-999, -999, 0.3176, 0.134)],
)
def test_parameters_that_ncbi_publishes(gap_open, gap_extend, decay, K):
    found = aligner(gap_open, gap_extend).significance(BACKGROUND, n_pairs=600, length=600)
    assert found.decay == pytest.approx(decay, rel=0.09)  # three standard errors
    assert math.log(found.K / K) == pytest.approx(0.0, abs=0.8)


def test_letters_of_biopython():
    Seq = pytest.importorskip("Bio.Seq").Seq
    few = {"n_pairs": 40, "length": 60}
    assert aligner().significance([Seq(BACKGROUND[0])], **few) == aligner().significance(BACKGROUND, **few)


def test_the_fit_finds_what_scores_were_drawn_from():
    rng = np.random.default_rng(0)
    areas = rng.integers(50, 500, 20_000).astype(float) ** 2
    scores = np.log(0.1 * areas / rng.exponential(size=20_000)) / 0.3  # P(S < s) = exp(-K a exp(-lambda s))
    found = KarlinAltschul.fit(scores, areas)
    assert found.decay == pytest.approx(0.3, rel=0.02) and pytest.approx(0.1, rel=0.1) == found.K


def test_as_many_chance_hits_as_evalues_say():
    model, rng = aligner(), np.random.default_rng(1)
    chance = model.significance(BACKGROUND, n_pairs=400, length=200)
    letters, shares = [*ROBINSON], np.array([*ROBINSON.values()]) / sum(ROBINSON.values())
    x, *others = ("".join(rng.choice(letters, 150, p=shares)) for _ in range(801))
    (scores,) = model.decision_function([x], [others])
    n_hits = int((chance.evalues(scores, 150, 150) < 0.05).sum())  # each pair by itself: E = 0.05
    assert 15 <= n_hits <= 75
    bits = chance.bits(scores)
    np.testing.assert_allclose(chance.evalues(scores, 150, 150), 150.0 * 150.0 * 2.0**-bits)
    np.testing.assert_array_equal(np.argsort(-bits, kind="stable"), model.rank(x, others))


def test_the_state_of_random_numbers_decides():
    model = aligner()
    first, again, other = (
        model.significance(["ACDEFGHIKLMNPQRSTVWY"], n_pairs=40, length=60, random_state=s) for s in (0, 0, 1)
    )
    assert first == again != other


@pytest.mark.parametrize(
    ("params", "options", "message"),
    [
        ({"mode": "global"}, {}, "mode='local'"),
        ({"gap_open": -2}, {}, "grow with their lengths"),
        ({}, {"n_pairs": 3}, "'n_pairs' parameter"),
        ({}, {"length": 30.5}, "'length' parameter"),
        ({}, {"background": [""]}, "no letters"),
        ({}, {"background": ["*"]}, "all scores of unrelated strings are equal"),
    ],
)
def test_what_has_no_evalues(params, options, message):
    with pytest.raises(ValueError, match=message):
        aligner(**params).significance(**{"background": BACKGROUND, "n_pairs": 60, "length": 200} | options)
