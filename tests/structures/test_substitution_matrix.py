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
        ("  A\nA 1\nC 1\n", "line 3: expected the row of ''"),
        ("  A C\nA 1 2\n", "1 rows for 2 letters"),
        ("  A A\nA 1 2\nA 1 2\n", "must contain each of its letters once"),
        ("  A\nA nan\n", "finite"),
    ],
)
def test_texts_that_are_none(text, message):
    with pytest.raises(ValueError, match=message):
        SubstitutionMatrix.from_ncbi(text)
