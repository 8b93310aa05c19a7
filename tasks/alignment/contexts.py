"""Contexts of letters in their strings: what the letters around say beside the letters themselves.

For proteins: hydropathy of a window, and of the faces that a helix and a strand would have; the share of letters that
loops are made of; how the letters of a window like helices and strands; the groups of the letters on both sides. For
alphabets of a few letters, those on both sides. Of larger ones nothing is known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from structsvm.structures.alignments import Context
from structsvm.tasks.alignment.letters import HYDROPATHY

if TYPE_CHECKING:
    from structsvm.tasks.alignment.letters import LetterEncoder
    from structsvm.tasks.alignment.words import WordEncoder

# Larger alphabets have no contexts, unless they are proteins.
MOST_LETTERS = 8

# Chou and Fasman (1978): how much more often than others a letter is in a helix, and in a strand, in hundredths.
_HELIX = {
    "E": 151, "M": 145, "A": 142, "L": 121, "K": 116, "F": 113, "Q": 111, "W": 108, "I": 108, "V": 106, "D": 101,
    "H": 100, "R": 98, "T": 83, "S": 77, "C": 70, "Y": 69, "N": 67, "P": 57, "G": 57, "X": 100,
}  # fmt: skip
_STRAND = {
    "V": 170, "I": 160, "Y": 147, "F": 138, "W": 137, "L": 130, "C": 119, "T": 119, "Q": 110, "M": 105, "R": 93,
    "N": 89, "H": 87, "A": 83, "S": 75, "G": 75, "K": 74, "P": 55, "D": 54, "E": 37, "X": 100,
}  # fmt: skip
_TENTHS = {letter: round(10 * value) for letter, value in HYDROPATHY.items()}
_LOOP = dict.fromkeys("GPNSD", 100)
_GROUPS = {letter: k for k, group in enumerate(("AVLIMC", "FWYH", "STNQX", "KR", "DE", "GP")) for letter in group}

_BETWEEN = (0.5, 1.5, 2.5, 3.5, 4.5)

# Name, scale, positions of the window, limits of its mean.
_Row = tuple[str, Mapping[str, int], Sequence[int], Sequence[float]]
_PROTEIN: tuple[_Row, ...] = (
    ("hydropathy", _TENTHS, range(-3, 4), (-15, -7, 0, 8)),
    ("loop", _LOOP, range(-3, 4), (7, 21, 36, 50)),
    ("helix", _HELIX, range(-4, 5), (90, 98, 104, 110)),
    ("strand", _STRAND, range(-3, 4), (85, 95, 105, 115)),
    ("helix face", _TENTHS, (-4, -3, 0, 3, 4), (-15, -5, 5, 15)),
    ("strand face", _TENTHS, (-2, 0, 2), (-20, -5, 10, 25)),
    ("left", _GROUPS, (-1,), _BETWEEN),
    ("right", _GROUPS, (1,), _BETWEEN),
)


def contexts_of(encoder: LetterEncoder | WordEncoder) -> tuple[Context, ...]:
    """The contexts of an encoder's strings; none where nothing is known of the letters."""
    if encoder.words is not None:
        return ()
    letters = encoder.letters
    if encoder.alphabet == "protein":
        found: tuple[_Row, ...] = _PROTEIN
    elif 2 <= len(letters) <= MOST_LETTERS:
        scale = {letter: k for k, letter in enumerate(letters)}
        limits = tuple((a + b) / 2 for a, b in pairwise(range(len(letters))))
        found = (("left", scale, (-1,), limits), ("right", scale, (1,), limits))
    else:
        return ()
    symbols_per_letter = int(np.prod(encoder.sizes[1:], dtype=np.int64))
    return tuple(
        Context(name, _by_symbol(scale, letters, symbols_per_letter), tuple(offsets), tuple(map(float, limits)))
        for name, scale, offsets, limits in found
    )


def _by_symbol(scale: Mapping[str, int], letters: str, symbols_per_letter: int) -> tuple[int, ...]:
    return tuple(scale.get(letter, 0) for letter in letters for _ in range(symbols_per_letter))
