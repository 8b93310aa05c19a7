"""Alignments as users write them: two rows of equal length with gaps.

A gap is ``-`` or ``.`` (A2M). A column of two upper-case letters is assessed by losses and metrics; a column with a
lower-case letter is part of the alignment but not assessed: what is true of its letters is left open. Removing the
gaps and upper-casing gives the strings. Where all letters are in lower case, all are assessed: `in_upper`.

Rows of words are lists, in which None is a gap; so is ``-``, if neither row has a None. All their columns are assessed.

Biopython's objects stand for strings and rows wherever these are taken: `as_string`, `as_rows`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from itertools import combinations, groupby, pairwise
from typing import Any

__all__ = ["pairs_of_alignment"]

GAPS = "-."


def split_rows(row_x: Any, row_z: Any) -> tuple[Any, Any, bytes]:
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
    of_words = not isinstance(row_x, str)
    for column, (a, b) in enumerate(zip(row_x, row_z, strict=True), start=1):
        x_has_gap, z_has_gap = (a is None, b is None) if of_words else (a in GAPS, b in GAPS)
        if x_has_gap and z_has_gap:
            raise ValueError(f"column {column} is a gap in both rows")
        operation = "Z" if x_has_gap else "X" if z_has_gap else "M"
        is_assessed = of_words or not (a.islower() or b.islower())
        operations.append(operation if is_assessed else operation.lower())
    x, z = strip_gaps(row_x), strip_gaps(row_z)
    if not x or not z:
        raise ValueError("a row is empty, or contains only gaps")
    runs = ("".join(run) for _, run in groupby(operations, key=lambda c: c in "Mm"))
    return x, z, "".join(run if run[0] in "Mm" else "".join(sorted(run, key=str.upper)) for run in runs).encode()


def strip_gaps(row: Any) -> Any:
    """The string of a row: without gaps, in upper case; of a row of words, the list."""
    if not isinstance(row, str):
        return [word for word in row if word is not None]
    return upper_case(row.translate(_NO_GAPS))


_NO_GAPS = str.maketrans("", "", GAPS)


def upper_case(text: str) -> str:
    """The text in upper case, letter by letter: one whose upper-case form is not one letter stays as it is."""
    if text.isascii():
        return text.upper()
    return "".join(letter.upper() if len(letter.upper()) == 1 else letter for letter in text)


def in_upper(alignments: Iterable[Any]) -> list[Any]:
    """Alignments as a list: in upper case if none of them has an upper-case letter, and so none says what is assessed.

    Examples
    --------
    >>> from structsvm.structures.gapped import in_upper
    >>> in_upper([("ac-t", "aggt")]), in_upper([("ac-t", "aggt"), ("a", "A")])[0]
    ([('AC-T', 'AGGT')], ('ac-t', 'aggt'))
    """
    found = list(alignments)
    rows = [row for pair in found if isinstance(pair, (tuple, list)) for row in map(as_string, pair)]
    if not rows or not all(isinstance(row, str) and row == row.lower() for row in rows):
        return found
    return [pair if pair is None else tuple(upper_case(as_string(row)) for row in pair) for pair in found]


def padded(names: list[str], rows: list[str]) -> list[str]:
    """Rows of A3M, or of A2M without dots, in columns: lower-case letters are insertions, filled up with dots.

    Raises ValueError, naming it, for a row that has more or fewer upper-case letters and dashes than the first one.
    """
    bare = [row.replace(".", "") for row in rows]
    parts, kept = [re.split("[A-Z*-]", row) for row in bare], [re.findall("[A-Z*-]", row) for row in bare]
    for name, letters in zip(names, kept, strict=True):
        if len(letters) != len(kept[0]):
            raise ValueError(
                f"the row of {name!r} has {len(letters)} columns that are no insertions, that of {names[0]!r} "
                f"{len(kept[0])}"
            )
    widths = [max(map(len, column)) for column in zip(*parts, strict=True)]
    return [
        "".join(text.ljust(n, ".") + letter for text, n, letter in zip(inserted, widths, [*letters, ""], strict=True))
        for inserted, letters in zip(parts, kept, strict=True)
    ]


def is_row_of_words(row: Any) -> bool:
    """Whether a sequence, or a row, is one of words: a list, a tuple or an array, and no text."""
    return isinstance(row, (list, tuple)) or getattr(row, "ndim", 0) == 1


def join_rows(x: Any, z: Any, x_start: int, z_start: int, operations: bytes, *, local: bool = False) -> tuple[Any, Any]:
    """The inverse of `split_rows`, for operations that begin at letters x_start and z_start (counted from 0).

    Letters outside the operations are put against gaps; with ``local`` in lower case, as they are not aligned. Lists of
    words become lists, with ``-`` as gaps, or None where a word is ``-``.
    """
    if not isinstance(x, str):
        return _join_words(x, z, x_start, z_start, operations)
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


def _join_words(x: list[Any], z: list[Any], x_start: int, z_start: int, operations: bytes) -> tuple[Any, Any]:
    """`join_rows` of lists of words."""
    inner = operations.decode().upper()
    n_x, n_z = x_start + len(inner) - inner.count("Z"), z_start + len(inner) - inner.count("X")
    steps = "X" * x_start + "Z" * z_start + inner + "X" * (len(x) - n_x) + "Z" * (len(z) - n_z)
    gap = None if "-" in x or "-" in z else "-"
    words_x, words_z = iter(x), iter(z)
    return (
        [gap if step == "Z" else next(words_x) for step in steps],
        [gap if step == "X" else next(words_z) for step in steps],
    )


def assessed_pairs(row_x: Any, row_z: Any) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
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


# ---- Biopython ----------------------------------------------------------------------------------


def as_string(value: Any) -> Any:
    """The string of a Seq or SeqRecord of Biopython; anything else as it is."""
    value = value if isinstance(value, (str, tuple, list)) else getattr(value, "seq", value)
    module = sys.modules.get("Bio.Seq")  # it is there if the value is of a class of its
    return str(value) if module is not None and isinstance(value, (module.Seq, module.MutableSeq)) else value


def as_rows(alignment: Any) -> Any:
    """The pair of rows of a pair (of strings, Seqs or SeqRecords), or of Biopython's alignment of two sequences.

    Letters that an `Alignment` leaves out, as local ones do, are in lower case, against gaps.

    Raises
    ------
    ValueError
        If an alignment is of other than two sequences, on a reverse strand, or pairs runs of different lengths.
    """
    if isinstance(alignment, (tuple, list)):
        return _with_gaps(tuple(map(as_string, alignment)))
    module = sys.modules.get("Bio.Align")
    if module is None or not isinstance(alignment, (module.Alignment, module.MultipleSeqAlignment)):
        return alignment
    if len(alignment) != 2:
        raise ValueError(f"an alignment of {len(alignment)} sequences is no pair; pairs_of_alignment makes pairs of it")
    if isinstance(alignment, module.MultipleSeqAlignment):
        return next(pairs_of_alignment(alignment))
    x, z = (as_string(sequence) for sequence in alignment.sequences)
    operations = ""
    for (i, j), (i_next, j_next) in pairwise(alignment.coordinates.T.tolist()):
        n_x, n_z = i_next - i, j_next - j
        if min(n_x, n_z) < 0 or (n_x != n_z and n_x and n_z):
            raise ValueError(
                "an alignment on a reverse strand, or of runs of different lengths, is not one of two rows"
            )
        operations += "M" * n_x if n_x == n_z else "X" * n_x + "Z" * n_z
    x_start, z_start = alignment.coordinates[:, 0].tolist()
    return join_rows(x, z, x_start, z_start, operations.encode(), local=True)


def _with_gaps(rows: tuple[Any, ...]) -> tuple[Any, ...]:
    """Rows; those of words as lists with None as gaps."""
    if not rows or not all(map(is_row_of_words, rows)):
        return rows
    lists = [row.tolist() if hasattr(row, "tolist") else list(row) for row in rows]
    if any(word is None for row in lists for word in row):
        return tuple(lists)
    return tuple([None if isinstance(word, str) and word == "-" else word for word in row] for row in lists)


def pairs_of_alignment(alignment: Any, pairs: str = "all") -> Iterator[tuple[str, str]]:
    """The rows of pairs of sequences out of an alignment of several, without the columns that are gaps in both.

    Parameters
    ----------
    alignment : MultipleSeqAlignment, Alignment or list of str
    pairs : {"all", "first", "adjacent"}
        Each sequence with each other one, the first with each other one, or each with the next one.

    Examples
    --------
    >>> from structsvm.structures.gapped import pairs_of_alignment
    >>> list(pairs_of_alignment(["AC-GT", "A--GT", "ACCGT"], pairs="first"))
    [('ACGT', 'A-GT'), ('AC-GT', 'ACCGT')]
    """
    for x, z in chosen_pairs([as_string(alignment[k]) for k in range(len(alignment))], pairs):
        kept = [(a, b) for a, b in zip(x, z, strict=True) if a not in GAPS or b not in GAPS]
        yield "".join(a for a, _ in kept), "".join(b for _, b in kept)


def chosen_pairs(rows: list[Any], pairs: str) -> Iterator[tuple[Any, Any]]:
    """Pairs of a list's elements; see `pairs_of_alignment`."""
    chosen: dict[str, Iterator[tuple[Any, Any]]] = {
        "all": combinations(rows, 2),
        "first": ((rows[0], other) for other in rows[1:]),
        "adjacent": pairwise(rows),
    }
    if pairs not in chosen:
        raise ValueError(f"pairs must be one of {', '.join(map(repr, chosen))}, got {pairs!r:.80}")
    return chosen[pairs]


def to_biopython(x: Any, z: Any, rows: tuple[str, str], *, local: bool = False) -> Any:
    """The `Bio.Align.Alignment` of two sequences with these rows; with ``local`` from the first pair of letters to the
    last one.

    Raises ImportError without Biopython.
    """
    try:
        from Bio.Align import Alignment
    except ImportError:
        raise ImportError("alignments of Biopython need it: pip install 'structured-svm[alignment]'") from None
    import numpy as np

    columns = list(zip(*rows, strict=True))
    steps = np.array([[a not in GAPS, b not in GAPS] for a, b in columns], dtype=np.int64).reshape(-1, 2)
    places = np.concatenate([[[0, 0]], np.cumsum(steps, axis=0)])
    if local:
        pairs = np.flatnonzero(steps.all(axis=1))
        first, last = (pairs[0], pairs[-1] + 1) if len(pairs) else (0, 0)
        steps, places = steps[first:last], places[first : last + 1]
    turns = np.flatnonzero((steps[1:] != steps[:-1]).any(axis=1)) + 1
    return Alignment([x, z], places[[0, *turns, *([len(steps)] if len(steps) else [])]].T)
