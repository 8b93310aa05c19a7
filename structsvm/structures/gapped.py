"""Alignments as users write them: two rows of equal length with gaps.

A gap is ``-`` or ``.`` (A2M). A column of two upper-case letters is assessed by losses and metrics; a column with a
lower-case letter stands in the alignment but is not assessed: what is true of its letters is left open. Removing the
gaps and upper-casing gives the strings.
"""

from __future__ import annotations

from itertools import groupby

GAPS = "-."


def split_rows(row_x: str, row_z: str) -> tuple[str, str, bytes]:
    """Return ``(x, z, operations)``: the strings without gaps, and one of ``MXZmxz`` per column.

    M is a pair of letters, X a letter of x against a gap, Z one of z; in lower case where a letter is no upper-case
    one. Where gaps in both rows meet, the columns are sorted, X before Z: their order has no meaning.

    Raises
    ------
    ValueError
        If the rows differ in length, contain no letter, or have a column of two gaps.
    """
    if len(row_x) != len(row_z):
        raise ValueError(f"the rows have {len(row_x)} and {len(row_z)} columns")
    operations = []
    for column, (a, b) in enumerate(zip(row_x, row_z, strict=True), start=1):
        if a in GAPS and b in GAPS:
            raise ValueError(f"column {column} is a gap in both rows")
        operation = "Z" if a in GAPS else "X" if b in GAPS else "M"
        is_assessed = all(letter.isupper() or letter in GAPS for letter in (a, b))
        operations.append(operation if is_assessed else operation.lower())
    x, z = strip_gaps(row_x), strip_gaps(row_z)
    if not x or not z:
        raise ValueError("a row is empty, or contains only gaps")
    runs = ("".join(run) for _, run in groupby(operations, key=lambda c: c in "Mm"))
    return x, z, "".join(run if run[0] in "Mm" else "".join(sorted(run, key=str.upper)) for run in runs).encode()


def strip_gaps(row: str) -> str:
    """The string of a row: without gaps, in upper case."""
    return row.translate(_NO_GAPS).upper()


_NO_GAPS = str.maketrans("", "", GAPS)


def join_rows(x: str, z: str, x_start: int, z_start: int, operations: bytes, *, local: bool = False) -> tuple[str, str]:
    """The inverse of `split_rows`, for operations that begin at letters x_start and z_start (counted from 0).

    Letters outside the operations are put against gaps; with ``local`` in lower case, as they are not aligned.
    """
    a, b = [], []
    i, j = x_start, z_start
    for operation in operations.decode().upper():
        a.append("-" if operation == "Z" else x[i])
        b.append("-" if operation == "X" else z[j])
        i += operation != "Z"
        j += operation != "X"
    ends = [x[:x_start], z[:z_start], x[i:], z[j:]]
    ends = [end.lower() for end in ends] if local else ends
    heads, tails = ends[:2], ends[2:]
    return (
        heads[0] + "-" * len(heads[1]) + "".join(a) + tails[0] + "-" * len(tails[1]),
        "-" * len(heads[0]) + heads[1] + "".join(b) + "-" * len(tails[0]) + tails[1],
    )


def assessed_pairs(row_x: str, row_z: str) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """The assessed pairs (index in x, index in z) as a list; and all other pairs."""
    _, _, operations = split_rows(row_x, row_z)
    i = j = 0
    assessed: list[tuple[int, int]] = []
    others: list[tuple[int, int]] = []
    for operation in operations.decode():
        if operation in "Mm":
            (assessed if operation == "M" else others).append((i, j))
        i += operation not in "Zz"
        j += operation not in "Xx"
    return assessed, others
