"""Simulated homologues and decoys, for learning alignment costs (Tsochantaridis and others 2004, section 5.4).

The letters evolve by laws that are fixed once and for all (`random_state` only draws examples): they fall into five
families of four, and a letter that changes mostly stays in its family. A homologue is a stretch of the native
sequence with letters changed, left out and put in, between random letters; decoys are random letters, of the same
frequencies and the homologue's length.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

__all__ = ["Homologues", "make_alignment", "write_alignments"]

_LETTERS = np.array(list("ACDEFGHIKLMNPQRSTVWY"))
_FAMILY = 4


class Homologues(NamedTuple):
    """What `make_alignment` draws.

    Attributes
    ----------
    X : list of (str, str)
        Native sequences and homologues.
    y : list of (str, str)
        Their alignments as gapped rows; what does not descend from one another is in lower case.
    decoys : list of (list of str)
    """

    X: list
    y: list
    decoys: list


def make_alignment(
    n_examples=100,
    *,
    length=50,
    n_decoys=10,
    divergence=0.6,
    kinship=0.9,
    gap_rate=0.04,
    gap_length=2.0,
    random_state=None,
):
    """Draw native sequences, each with a homologue, their alignment, and decoys.

    Parameters
    ----------
    n_examples : int
        At least 1.
    length : int
        Letters of a native sequence, at least 10.
    n_decoys : int
        Decoys of each, at least 0.
    divergence : float
        Probability, from 0 to 1, that a letter of the homologue is drawn anew.
    kinship : float
        Probability, from 0 to 1, that such a letter is drawn from the family of the old one, not from all letters.
    gap_rate : float
        Probability, from 0 to 1, that letters are left out before a letter, and that letters are put in.
    gap_length : float
        Mean number of them, at least 1 (geometric).
    random_state : int, numpy.random.Generator or None

    Returns
    -------
    Homologues

    Raises
    ------
    ValueError
        A parameter is out of its range.

    Examples
    --------
    >>> from structsvm.datasets import make_alignment
    >>> data = make_alignment(5, random_state=0)
    >>> len(data.X), len(data.decoys[0]), len(data.y[0][0]) == len(data.y[0][1])
    (5, 10, True)
    """
    for name, value, low, high in (
        ("n_examples", n_examples, 1, np.inf),
        ("length", length, 10, np.inf),
        ("n_decoys", n_decoys, 0, np.inf),
        ("divergence", divergence, 0.0, 1.0),
        ("kinship", kinship, 0.0, 1.0),
        ("gap_rate", gap_rate, 0.0, 1.0),
        ("gap_length", gap_length, 1.0, np.inf),
    ):
        if not low <= value <= high:
            limits = f"at least {low}" if high == np.inf else f"between {low} and {high}"
            raise ValueError(f"The {name!r} parameter of make_alignment must be {limits}. Got {value}.")
    rng = np.random.default_rng(random_state)
    data = Homologues([], [], [])
    for _ in range(n_examples):
        rows = _related(rng, length, divergence, kinship, gap_rate, gap_length)
        pair = tuple("".join(c for c in row if c != "-").upper() for row in rows)
        data.X.append(pair)
        data.y.append(rows)
        data.decoys.append([_text(_draw(rng, len(pair[1]))) for _ in range(n_decoys)])
    return data


def _draw(rng, size):
    """Random letters; the first of a family are more frequent than the last."""
    upper = np.cumsum(np.tile(1.0 / np.arange(2, 2 + _FAMILY), len(_LETTERS) // _FAMILY))
    return np.searchsorted(upper, rng.random(size) * upper[-1], side="right")


def _text(letters):
    return "".join(_LETTERS[letters])


def _related(rng, length, divergence, kinship, gap_rate, gap_length):
    """Gapped rows of a native sequence and a homologue, at least one pair among them."""
    native = _draw(rng, length)
    share = rng.uniform(0.6, 0.9)
    size = max(int(share * length), 1)
    start = int(rng.integers(0, length - size + 1))
    ends = [_text(_draw(rng, int(k))).lower() for k in rng.integers(0, length - size + 1, 2)]
    row_x = [_text(native[:start]).lower(), "-" * len(ends[0])]
    row_z = ["-" * start, ends[0]]
    i, paired = start, False
    while i < start + size or not paired:
        if paired and rng.random() < gap_rate:
            left_out = min(int(rng.geometric(1.0 / gap_length)), start + size - i - 1)
            row_x.append(_text(native[i : i + left_out]))
            row_z.append("-" * left_out)
            i += left_out
        if paired and rng.random() < gap_rate:
            put_in = _text(_draw(rng, int(rng.geometric(1.0 / gap_length))))
            row_x.append("-" * len(put_in))
            row_z.append(put_in)
        letter = native[i]
        if rng.random() < divergence:
            family = letter // _FAMILY * _FAMILY
            letter = family + rng.integers(_FAMILY) if rng.random() < kinship else _draw(rng, 1)[0]
        row_x.append(_text(native[i : i + 1]))
        row_z.append(_text(np.array([letter])))
        paired = True
        i += 1
    row_x += [_text(native[i:]).lower(), "-" * len(ends[1])]
    row_z += ["-" * (length - i), ends[1]]
    return "".join(row_x), "".join(row_z)


def write_alignments(path, y, decoys=None):
    """Write alignments, and decoys, as an A2M file that the command line reads.

    Parameters
    ----------
    path : path-like
        File to write; a name that ends in ``.gz`` is compressed.
    y : list of (str, str)
        Gapped rows.
    decoys : list of (list of str), optional

    Raises
    ------
    ValueError
        If y and decoys differ in length.
    """
    import gzip

    if decoys is not None and len(decoys) != len(y):
        raise ValueError(f"y has {len(y)} alignments, and there are {len(decoys)} lists of decoys")
    with (gzip.open if str(path).endswith(".gz") else open)(path, "wt", encoding="ascii", newline="\n") as file:
        for k, (row_x, row_z) in enumerate(y):
            file.write(f">E{k + 1} x\n{row_x}\n>E{k + 1} z\n{row_z}\n")
            for number, decoy in enumerate(decoys[k] if decoys is not None else (), start=1):
                file.write(f">E{k + 1} decoy{number}\n{decoy}\n")
