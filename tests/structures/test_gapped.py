"""Gapped rows, there and back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from structsvm.structures.gapped import assessed_pairs, join_rows, split_rows, strip_gaps


@pytest.mark.parametrize(
    ("rows", "wanted"),
    [
        (("AC-G", "A-TG"), ("ACG", "ATG", b"MXZM")),
        (("A-CG", "AT-G"), ("ACG", "ATG", b"MXZM")),  # the same alignment: X before Z
        (("Acg.", "aCGT"), ("ACG", "ACGT", b"mmmZ")),
        (("A-c-dG", "AT-g-g"), ("ACDG", "ATGG", b"MxxZzm")),
        (("--A-B-", "CDEF-G"), ("AB", "CDEFG", b"ZZMXZZ")),
    ],
)
def test_split(rows, wanted):
    assert split_rows(*rows) == wanted


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (("AC", "A"), "the rows have 2 and 1 columns"),
        (("A-C", "A-C"), "column 2 is a gap in both rows"),
        (("", ""), "a row is empty"),
        (("--", "AC"), "contains only gaps"),
    ],
)
def test_rows_that_are_none(rows, message):
    with pytest.raises(ValueError, match=message):
        split_rows(*rows)


@given(st.text("MXZ", min_size=1).filter(lambda o: "M" in o), st.integers(0, 3), st.integers(0, 3), st.booleans())
def test_join_is_the_inverse(operations, head, tail, local):
    while "ZX" in operations:
        operations = operations.replace("ZX", "XZ")
    x = "ACD" * 40
    m, n = operations.count("M") + operations.count("X"), operations.count("M") + operations.count("Z")
    rows = join_rows(x[: head + m + tail], x[:n], head, 0, operations.encode(), local=local)
    assert [strip_gaps(row) for row in rows] == [x[: head + m + tail], x[:n]]
    whole = "X" * head + operations + "X" * tail
    while "ZX" in whole:
        whole = whole.replace("ZX", "XZ")
    assert split_rows(*rows)[2].upper() == whole.encode()
    assert (rows[0] != rows[0].upper()) == (local and head + tail > 0)


def test_assessed_pairs():
    assert assessed_pairs("AcD-E", "ACdFE") == ([(0, 0), (3, 4)], [(1, 1), (2, 2)])


def test_letters_beyond_ascii_stay():
    assert strip_gaps("a-ß.c") == "AßC"


def test_letters_without_case_are_assessed():
    assert split_rows("1*-B", "12C-") == ("1*B", "12C", b"MMXZ")
    assert assessed_pairs("B1111----", "B----1111") == ([(0, 0)], [])
