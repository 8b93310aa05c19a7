"""Substitution matrices and their text."""

import numpy as np
import pytest

from structsvm.structures.substitution_matrix import SubstitutionMatrix


def test_there_and_back(tmp_path):
    values = np.round(np.random.default_rng(0).normal(size=(3, 3)), 4)
    matrix = SubstitutionMatrix("ACX", values)
    assert matrix["A", "X"] == values[0, 2]
    assert np.array_equal(np.asarray(matrix), values)
    path = tmp_path / "matrix.txt"
    path.write_text(matrix.to_ncbi(comments=["learnt"]))
    again = SubstitutionMatrix.read(path)
    assert again.alphabet == "ACX" and np.array_equal(again.values, values)
    assert np.array_equal(
        matrix.over("XAN").values, [[values[2, 2], values[2, 0], 0], [values[0, 2], values[0, 0], 0], [0] * 3]
    )
    with pytest.raises(KeyError, match="N"):
        matrix["A", "N"]


@pytest.mark.parametrize("scale", [1e-9, 1.0, 12.0])
def test_scores_of_any_scale_are_written(scale):
    values = scale * np.random.default_rng(0).uniform(-1.0, 1.0, (3, 3))
    again = SubstitutionMatrix.from_ncbi(SubstitutionMatrix("ACX", values).to_ncbi())
    assert np.abs(again.values - values).max() <= 1e-5 * scale
    assert SubstitutionMatrix("A", [[0.0]]).to_ncbi().split() == ["A", "A", "0.00000"]


def test_letters_in_either_case():
    matrix = SubstitutionMatrix("ac", [[1.0, 2.0], [3.0, 4.0]])
    assert (matrix.over("CAN").values == [[4.0, 3.0, 0.0], [2.0, 1.0, 0.0], [0.0, 0.0, 0.0]]).all()
    both = SubstitutionMatrix("aA", [[1.0, 2.0], [3.0, 4.0]])
    assert both.over("A").values == 4.0 and both.over("a").values == 1.0
    with pytest.raises(ValueError, match="a matrix of the letters 'ac' has no scores of 'GT'"):
        matrix.over("GT")


def test_biopython_reads_it(tmp_path):
    matrices = pytest.importorskip("Bio.Align.substitution_matrices")
    values = np.round(np.random.default_rng(0).normal(size=(4, 4)), 4)
    path = tmp_path / "matrix.txt"
    path.write_text(SubstitutionMatrix("ACGT", values).to_ncbi())
    read = matrices.read(path)
    assert read.alphabet == "ACGT" and np.array_equal(np.array(read), values)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "0 rows for 0 letters"),
        ("# only\n", "0 rows for 0 letters"),
        ("AC C\n", "line 1: a line of single letters was expected"),
        ("# x\n  A C\nA 1 2\nC 1\n", "line 4: expected the row of 'C' with 2 numbers"),
        ("  A C\nA 1 2\nD 1 2\n", "line 3: expected the row of 'C'"),
        ("  A C\nA 1 x\nC 1 2\n", "line 2: expected the row of 'A'"),
        ("  A\nA 1\nC 1\n", "line 3: expected the end after 1 rows"),
        ("  A C\nA 1 2\n", "1 rows for 2 letters"),
        ("  A A\nA 1 2\nA 1 2\n", "must contain each of its letters once"),
        ("  A\nA nan\n", "finite"),
    ],
)
def test_texts_that_are_none(text, message):
    with pytest.raises(ValueError, match=message):
        SubstitutionMatrix.from_ncbi(text)


def test_matrices_as_aligners_read_and_write_them(tmp_path):
    """Whole numbers, rows without letters, comments behind numbers, and bytes that are no ASCII in comments."""
    matrix, factor = SubstitutionMatrix("AR", [[0.5, -0.21], [-0.21, 1.0]]).to_integers(10)
    text = matrix.to_ncbi(digits=0)
    assert text == "   A  R\nA  5 -2\nR -2 10\n" and factor == 10.0
    assert "-0" not in SubstitutionMatrix("AR", [[0.1, -0.1], [-0.1, 0.1]]).to_ncbi(digits=0)
    assert SubstitutionMatrix("A", [[0.0]]).to_integers()[1] == 1.0
    for form in (text, "# Müller\n A R # x\n 5 -2\n-2 10 # R\n"):
        (tmp_path / "m").write_text(form, encoding="utf-8")
        np.testing.assert_array_equal(SubstitutionMatrix.read(tmp_path / "m").values, [[5, -2], [-2, 10]])
    with pytest.raises(ValueError, match="line 2: expected the row of 'A' with 2 numbers"):
        SubstitutionMatrix.from_ncbi("A R\n1 2 3\n")
