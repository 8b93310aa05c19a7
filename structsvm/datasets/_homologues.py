"""Simulated homologues and decoys, for learning alignment costs (Tsochantaridis and others 2004, section 5.4).

The letters evolve by fixed laws (`random_state` only draws examples): they fall into five families of four, and a
letter that changes mostly stays in its family. A homologue is a stretch of the native sequence with letters
substituted, deleted and inserted, between random letters; decoys are random letters with the same frequencies and of
the homologue's length.
"""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from numbers import Integral, Real
from os import PathLike
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from structsvm.datasets._draws import SHARE, RandomState, draw
from structsvm.files.new_file import new_file
from structsvm.parameters import COUNT, Interval, check_arguments
from structsvm.structures.gapped import strip_gaps

_LETTERS = np.array(list("ACDEFGHIKLMNPQRSTVWY"))
_FAMILY = 4
# The first letters of a family are more frequent than the last.
_FREQUENCIES = np.tile(1.0 / np.arange(2, 2 + _FAMILY), len(_LETTERS) // _FAMILY)


class Homologues(NamedTuple):
    """Returned by `make_alignment`.

    Attributes
    ----------
    X : list of (str, str)
        Native sequences and homologues.
    y : list of (str, str)
        Their alignments as gapped rows; letters without a common ancestor are in lower case.
    decoys : list of (list of str)

    Examples
    --------
    >>> from structsvm.datasets import make_alignment
    >>> X, y, decoys = make_alignment(2, n_decoys=3, random_state=0)
    >>> len(X), len(y[0]), len(decoys[0])
    (2, 2, 3)
    """

    X: list[tuple[str, str]]
    y: list[tuple[str, str]]
    decoys: list[list[str]]


def make_alignment(
    n_examples: int = 100,
    *,
    length: int = 50,
    n_decoys: int = 10,
    divergence: float = 0.6,
    kinship: float = 0.9,
    gap_rate: float = 0.04,
    gap_length: float = 2.0,
    random_state: RandomState = None,
) -> Homologues:
    """Draw native sequences, each with a homologue, their alignment, and decoys.

    Parameters
    ----------
    n_examples : int
        At least 1.
    length : int
        Length of a native sequence, at least 10.
    n_decoys : int
        Number of decoys per example, at least 0.
    divergence : float
        Probability, from 0 to 1, that a letter of the homologue is resampled.
    kinship : float
        Probability, from 0 to 1, that a resampled letter comes from the family of the old one, not from all letters.
    gap_rate : float
        Probability, from 0 to 1, of a deletion before a letter, and of an insertion.
    gap_length : float
        Mean number of letters deleted or inserted, at least 1 (geometric).
    random_state : int, numpy.random.Generator or None

    Returns
    -------
    Homologues

    Examples
    --------
    >>> from structsvm.datasets import make_alignment
    >>> data = make_alignment(5, random_state=0)
    >>> len(data.X), len(data.decoys[0]), len(data.y[0][0]) == len(data.y[0][1])
    (5, 10, True)
    """
    check_arguments(
        "make_alignment",
        locals(),
        n_examples=COUNT,
        length=Interval(Integral, 10),
        n_decoys=Interval(Integral, 0),
        divergence=SHARE,
        kinship=SHARE,
        gap_rate=SHARE,
        gap_length=Interval(Real, 1.0),
    )
    rng = np.random.default_rng(random_state)
    data = Homologues([], [], [])
    for _ in range(n_examples):
        rows = _related(rng, length, divergence, kinship, gap_rate, gap_length)
        pair = strip_gaps(rows[0]), strip_gaps(rows[1])
        data.X.append(pair)
        data.y.append(rows)
        data.decoys.append([_random_text(rng, len(pair[1])) for _ in range(n_decoys)])
    return data


def _text(letters: ArrayLike) -> str:
    return "".join(_LETTERS[np.asarray(letters)])


def _random_text(rng: np.random.Generator, size: int) -> str:
    return _text(draw(rng, _FREQUENCIES, size))


def _related(
    rng: np.random.Generator, length: int, divergence: float, kinship: float, gap_rate: float, gap_length: float
) -> tuple[str, str]:
    """Return gapped rows of a native sequence and a homologue, with at least one aligned pair."""
    native = draw(rng, _FREQUENCIES, length)
    share = rng.uniform(0.6, 0.9)
    size = max(int(share * length), 1)
    start = int(rng.integers(0, length - size + 1))
    ends = [_random_text(rng, int(k)).lower() for k in rng.integers(0, length - size + 1, 2)]
    row_x = [_text(native[:start]).lower(), "-" * len(ends[0])]
    row_z = ["-" * start, ends[0]]
    i, paired = start, False
    while i < start + size or not paired:
        if paired and rng.random() < gap_rate:
            deleted = min(int(rng.geometric(1.0 / gap_length)), start + size - i - 1)
            row_x.append(_text(native[i : i + deleted]))
            row_z.append("-" * deleted)
            i += deleted
        if paired and rng.random() < gap_rate:
            inserted = _random_text(rng, int(rng.geometric(1.0 / gap_length)))
            row_x.append("-" * len(inserted))
            row_z.append(inserted)
        letter = native[i]
        if rng.random() < divergence:
            family = letter // _FAMILY * _FAMILY
            letter = family + rng.integers(_FAMILY) if rng.random() < kinship else draw(rng, _FREQUENCIES)
        row_x.append(_text(native[[i]]))
        row_z.append(_text([letter]))
        paired = True
        i += 1
    row_x += [_text(native[i:]).lower(), "-" * len(ends[1])]
    row_z += ["-" * (length - i), ends[1]]
    return "".join(row_x), "".join(row_z)


def write_alignments(
    path: str | PathLike[str], y: Sequence[tuple[str, str]], decoys: Sequence[Sequence[str]] | None = None
) -> None:
    """Write alignments, and decoys, as an A2M file that the command line reads.

    Parameters
    ----------
    path : path-like
        File to write, compressed if its name ends in ``.gz``.
    y : list of (str, str)
        Gapped rows.
    decoys : list of (list of str), optional

    Raises
    ------
    ValueError
        If y and decoys differ in length.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from structsvm.datasets import write_alignments
    >>> path = Path(tempfile.mkdtemp()) / "pairs.a2m"
    >>> write_alignments(path, [("AC-GT", "ACTGA")])
    >>> path.read_text().splitlines()
    ['>E1 x', 'AC-GT', '>E1 z', 'ACTGA']
    """
    if decoys is not None and len(decoys) != len(y):
        raise ValueError(f"y has {len(y)} alignments, and there are {len(decoys)} lists of decoys")
    records = []
    for k, (row_x, row_z) in enumerate(y):
        records.append(f">E{k + 1} x\n{row_x}\n>E{k + 1} z\n{row_z}\n")
        for rank, decoy in enumerate(decoys[k] if decoys is not None else (), start=1):
            records.append(f">E{k + 1} decoy{rank}\n{decoy}\n")
    content = "".join(records).encode("ascii")
    with new_file(path) as file:
        file.write(gzip.compress(content, mtime=0) if str(path).endswith(".gz") else content)
