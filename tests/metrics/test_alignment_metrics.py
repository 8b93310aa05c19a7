"""Alignment scores against sets of pairs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from structsvm.metrics import alignment_scores, homologue_error, pair_f1, q_score, total_column
from structsvm.structures.gapped import join_rows


def test_identical_alignments():
    y = [("AC-GT", "ACTGA"), ("aCGT-", "-CG-T")]
    assert alignment_scores(y, y) == (1.0, 1.0, 1.0, 1.0, 1.0)


def test_by_hand():
    # Wanted (0,0), (1,1), (2,3), (3,4); found (0,0), (1,1), (2,2), (3,4).
    scores = alignment_scores([("AC-GT", "ACTGA")], [("ACG-T", "ACTGA")])
    assert scores == pytest.approx((0.75, 0.75, 0.75, 0.75, 0.0))
    assert alignment_scores([("AC-GT", "ACTGA")], [("ACG-T", "ACTGA")], window=1).q == 1.0
    # Two alignments: pairs together, Q by alignment.
    y, z = [("AC-GT", "ACTGA"), ("W", "W")], [("ACG-T", "ACTGA"), ("W", "W")]
    assert pair_f1(y, z) == pytest.approx(0.8)
    assert q_score(y, z) == pytest.approx(0.875)
    assert total_column(y, z) == 0.5


def test_lower_case_is_not_assessed():
    reference = [("aaCD", "ccCD")]
    assert alignment_scores(reference, [("aa--CD", "--ccCD")]) == (1.0, 1.0, 1.0, 1.0, 1.0)
    # A letter that is assessed may not be paired with another.
    scores = alignment_scores(reference, [("AACD-", "-CCCD")])
    assert scores.pair_recall == 0.0 and scores.pair_precision == 0.0 and scores.pair_f1 == 0.0


def test_gaps_are_not_assessed():
    assert alignment_scores([("A-C", "-GC")], [("AC", "GC")]) == (1.0, 1.0, 1.0, 1.0, 1.0)
    assert alignment_scores([("AC-D", "A-GD")], [("ACD", "AGD")]) == (1.0, 1.0, 1.0, 1.0, 1.0)
    assert alignment_scores([("ACD", "A-D")], [("ACD", "AD-")]) == (0.5, 0.5, 0.5, 0.5, 0.0)


@settings(max_examples=50)
@given(st.integers(0, 2**32 - 1))
def test_against_sets(seed):
    rng = np.random.default_rng(seed)

    def draw():
        operations = "".join(rng.permutation(list("M" * 4 + "X" * 2 + "Z" * 3)))
        while "ZX" in operations:
            operations = operations.replace("ZX", "XZ")
        return join_rows("ACDEFG", "ACDEFGH", 0, 0, operations.encode()), operations

    def pairs(operations):
        cells = np.cumsum([[o in "MX", o in "MZ"] for o in operations], axis=0)
        return {tuple(c) for c, o in zip(cells.tolist(), operations, strict=True) if o == "M"}

    (true, a), (pred, b) = draw(), draw()
    hits = len(pairs(a) & pairs(b))
    xs, zs = ({p[k] for p in pairs(a)} for k in (0, 1))
    counted = [p for p in pairs(b) if p[0] in xs or p[1] in zs]
    scores = alignment_scores([true], [pred])
    assert scores.pair_recall == scores.q == hits / 4
    assert scores.pair_precision == pytest.approx(hits / len(counted) if counted else 0.0)
    assert scores.pair_f1 == pytest.approx(2 * hits / (4 + len(counted)))


def test_bad_input():
    for y_true, y_pred, message in [
        ([], [], "no alignments to score"),
        ([("A", "A")], [], "y_true has 1 alignments and y_pred has 0"),
        ([("A", "A")], [("C", "A")], "alignment 0: y_true and y_pred have different strings"),
        ([("AC", "A-")], [("A--C", "A---")], "alignment 0 of y_pred: column 2 is a gap in both rows"),
        ([("A", "A"), ("A", "A", "A")], [("A", "A")] * 2, "alignment 1 of y_true: expected a pair of rows, got"),
        ([("A", "A")], [None], "alignment 0 of y_pred: expected a pair of rows, got None"),
        ([("a", "A")], [("A", "A")], "alignment 0: the reference has no column of two upper-case letters"),
    ]:
        with pytest.raises(ValueError, match=message):
            alignment_scores(y_true, y_pred)
    with pytest.raises(ValueError, match="window must not be negative, got -1"):
        alignment_scores([("A", "A")], [("A", "A")], window=-1)


def test_homologue_error():
    assert homologue_error([2.0, 1.0, 1.0], [[1.0, 0.0], [1.5], [1.0]]) == pytest.approx(2 / 3)  # a tie is no choice
    with pytest.raises(ValueError, match="example 1 has no decoys"):
        homologue_error([1.0, 1.0], [[0.0], []])
    for scores in (([1.0, np.nan], [[0.0], [0.0]]), ([1.0, 1.0], [[0.0], [0.0, np.nan]])):
        with pytest.raises(ValueError, match="example 1 has a score that is NaN"):
            homologue_error(*scores)
    with pytest.raises(ValueError, match="1 homologues and 0 lists"):
        homologue_error([1.0], [])
