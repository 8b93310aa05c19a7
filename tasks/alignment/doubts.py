"""Warnings of strings, alignments and matrices that are read as they stand, and that may be meant otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from structsvm._warnings import AdviceWarning, warn
from structsvm.tasks.alignment.letters import DNA

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from structsvm.arrays import Floats
    from structsvm.structures.alignments import References
    from structsvm.structures.substitution_matrix import SubstitutionMatrix
    from structsvm.tasks.alignment.letters import LetterEncoder
    from structsvm.tasks.alignment.words import WordEncoder

# Fewer letters, or alignments, are no matter of doubt.
FEW_LETTERS, FEW_ALIGNMENTS = 100, 10


def warn_of_alphabet(letters: Sequence[Hashable], encoder: LetterEncoder | WordEncoder, n_letters: int) -> None:
    """Warn of DNA that is read as protein."""
    if encoder.alphabet == "protein" and encoder.words is None and n_letters >= FEW_LETTERS and {*letters} <= {*DNA}:
        warn(
            f"the strings have the letters {', '.join(map(str, letters))} alone, and are read as proteins: "
            "alphabet='dna' (--alphabet dna) reads them as DNA",
            AdviceWarning,
        )


def warn_of_lacking(letters: Sequence[Hashable], prior: SubstitutionMatrix) -> None:
    """Warn of letters that a given prior has no scores for."""
    known = {form for own in prior.alphabet for form in ((own, own.swapcase()) if isinstance(own, str) else (own,))}
    if lacking := [str(letter) for letter in letters if letter not in known]:
        warn(
            f"the prior has no scores of {', '.join(lacking):.80}, {len(lacking)} of the {len(letters)} letters of the "
            "strings: those of their pairs begin at 0",
            AdviceWarning,
        )


def letters_in(references: References, encoder: LetterEncoder | WordEncoder) -> list[Hashable]:
    """The letters that strings have, as they are read; of words none, most of which share their scores."""
    if encoder.words is not None:
        return []
    ids = np.unravel_index(references.strings.symbols, encoder.sizes)[0]
    return [encoder.letters[k] for k in np.unique(ids).tolist()]


def warn_of_gaps(n: int, *, has_gaps: bool) -> None:
    """Warn of n alignments that seem to be strings without their gaps."""
    if n >= FEW_ALIGNMENTS and not has_gaps:
        warn(
            f"none of the {n} alignments has a gap: are these strings that have not been aligned, or "
            "whose gaps were lost?",
            AdviceWarning,
        )


def have_gaps(references: References) -> bool:
    """Whether there are alignments that do not put each letter of a string on the other's at its place."""
    lengths = np.diff(references.strings.offsets)
    n_x, n_z = lengths[references.x], lengths[references.z]
    return bool((n_x != n_z).any() or (np.diff(references.bounds) != n_x).any())


def warn_of_two_scores(values: Floats, letters: str | Sequence[Hashable]) -> None:
    """Warn of a matrix with two scores for a pair of letters, where one is learnt."""
    apart = np.abs(values - values.T)
    if len(apart) and apart.max() > 1e-6 * np.abs(values).max():
        a, b = divmod(int(apart.argmax()), len(apart))
        warn(
            f"the matrix scores {letters[a]!r} with {letters[b]!r} by {values[a, b]:g} and {letters[b]!r} with "
            f"{letters[a]!r} by {values[b, a]:g}, and symmetric=True takes their mean: symmetric=False (--asymmetric) "
            "keeps both",
            AdviceWarning,
        )
