"""Matrices of substitution scores, and their text form as NCBI tools and Biopython read it."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from structsvm.features.sources import load_text

if TYPE_CHECKING:
    from structsvm.arrays import AnyArray

__all__ = ["SubstitutionMatrix"]


_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


def is_number(text: str) -> bool:
    """Whether a text is a finite number."""
    return _NUMBER.fullmatch(text) is not None and math.isfinite(float(text))


class SubstitutionMatrix:
    """Scores of pairs of letters.

    Parameters
    ----------
    alphabet : str or sequence of hashable
        Its letters, or words, without repetitions.
    values : array-like of shape (n_letters, n_letters)
        ``values[a, b]``: the score of letter a of x with letter b of z; finite.

    Examples
    --------
    >>> from structsvm.structures.substitution_matrix import SubstitutionMatrix
    >>> matrix = SubstitutionMatrix("AC", [[2, -1], [-1, 3]])
    >>> matrix["C", "C"], matrix.shape
    (3.0, (2, 2))
    """

    def __init__(self, alphabet: str | Sequence[Hashable], values: ArrayLike) -> None:
        self.alphabet: Any = str(alphabet) if isinstance(alphabet, str) else tuple(alphabet)
        self.values = np.array(values, dtype=np.float64)
        n = len(self.alphabet)
        if n == 0 or len(set(self.alphabet)) != n:
            raise ValueError(f"the alphabet {self.alphabet!r} must contain each of its letters once")
        if self.values.shape != (n, n):
            raise ValueError(f"a matrix of {n} letters must be {n} x {n} numbers, got shape {self.values.shape}")
        if not np.isfinite(self.values).all():
            a, b = (self.alphabet[k] for k in np.argwhere(~np.isfinite(self.values))[0])
            raise ValueError(f"the score of {a} with {b} is not finite")

    @property
    def shape(self) -> tuple[int, ...]:
        return self.values.shape

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> AnyArray:
        return np.array(self.values, dtype=dtype)

    def __getitem__(self, pair: Sequence[str]) -> float:
        a, b = pair
        for letter in pair:
            if letter not in self.alphabet or (isinstance(self.alphabet, str) and len(letter) != 1):
                raise KeyError(letter)
        return float(self.values[self.alphabet.index(a), self.alphabet.index(b)])

    def __repr__(self) -> str:
        return f"SubstitutionMatrix({self.alphabet!r})"

    def to_ncbi(self, *, digits: int | None = None, comments: Iterable[str] = ()) -> str:
        """The text form: comment lines with #, a line of letters, then one line per letter.

        `digits`: decimals, 0 for BLAST and parasail, which read whole numbers (see `to_integers`); None: at least
        four, and as many as give the largest score six digits.
        """
        if not isinstance(self.alphabet, str):
            raise ValueError("NCBI's format is of letters, and this matrix is of words")
        if digits is None:
            digits = max(4, 5 - math.floor(math.log10(np.abs(self.values).max() or 1.0)))
        cells = [[f"{value:.{digits}f}" for value in row] for row in self.values.round(digits) + 0.0]
        width = 1 + max(len(cell) for row in cells for cell in row)
        lines = [f"# {comment}" for comment in comments]
        lines.append(" " + "".join(f"{letter:>{width}}" for letter in self.alphabet))
        lines += [a + "".join(f"{cell:>{width}}" for cell in row) for a, row in zip(self.alphabet, cells, strict=True)]
        return "\n".join(lines) + "\n"

    def to_integers(self, largest: int = 15) -> tuple[SubstitutionMatrix, float]:
        """The matrix times a factor, rounded to integers of at most `largest`, and the factor.

        BLAST, parasail and other aligners read such scores; those of gaps are multiplied by the same factor.

        Examples
        --------
        >>> from structsvm.structures.substitution_matrix import SubstitutionMatrix
        >>> matrix, factor = SubstitutionMatrix("AC", [[0.2, -0.1], [-0.1, 0.3]]).to_integers(3)
        >>> print(matrix.to_ncbi(digits=0))
           A  C
        A  2 -1
        C -1  3
        <BLANKLINE>
        """
        size = float(np.abs(self.values).max())
        factor = largest / size if size > 0.0 else 1.0
        return SubstitutionMatrix(self.alphabet, np.rint(factor * self.values)), factor

    @classmethod
    def from_ncbi(cls, text: str, name: str = "the text") -> SubstitutionMatrix:
        """The inverse of `to_ncbi`; raises ValueError, with the line number, for any other text.

        Rows may begin with their letters, as in files of NCBI, or not; what follows ``#`` is a comment.
        """
        alphabet = ""
        rows: list[list[float]] = []
        for number, line in enumerate(text.splitlines(), start=1):
            fields = line.partition("#")[0].split()
            if not fields:
                continue
            if not alphabet:
                if any(len(letter) != 1 for letter in fields):
                    raise ValueError(f"{name}, line {number}: a line of single letters was expected, got {line!r:.80}")
                alphabet = "".join(fields)
                if len(set(alphabet)) < len(alphabet):
                    raise ValueError(
                        f"{name}, line {number}: the alphabet {alphabet!r} must contain each of its letters once"
                    )
                continue
            if len(rows) == len(alphabet):
                raise ValueError(f"{name}, line {number}: expected the end after {len(rows)} rows, got {line!r:.80}")
            if len(fields) == len(alphabet) and is_number(fields[0]):  # rows need no letters
                fields = [alphabet[len(rows)], *fields]
            if (
                fields[0] != alphabet[len(rows)]
                or len(fields) != len(alphabet) + 1
                or not all(map(is_number, fields[1:]))
            ):
                raise ValueError(
                    f"{name}, line {number}: expected the row of {alphabet[len(rows)]!r} with {len(alphabet)} "
                    f"numbers (finite), got {line!r:.80}"
                )
            rows.append([float(field) for field in fields[1:]])
        if len(rows) != len(alphabet) or not rows:
            raise ValueError(f"{name}: {len(rows)} rows for {len(alphabet)} letters")
        return cls(alphabet, rows)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> SubstitutionMatrix:
        """Read a file in NCBI's text format (BLOSUM62 and the like)."""
        return cls.from_ncbi(*load_text(path, ValueError, "{}, line {}"))

    @classmethod
    def published(cls, name: str) -> SubstitutionMatrix:
        """A published matrix, such as BLOSUM62 or GONNET1992, out of Biopython's package data.

        Raises
        ------
        ImportError
            Without Biopython.
        ValueError
            For a name that it does not have.
        """
        try:
            from Bio.Align import substitution_matrices
        except ImportError:
            message = "published matrices come with Biopython: pip install 'structured-svm[alignment]'"
            raise ImportError(message) from None
        known = substitution_matrices.load()
        name = name.upper() if name.upper() in known else name
        if name not in known:
            raise ValueError(f"there is no substitution matrix {name!r}, neither a file nor one of {', '.join(known)}")
        matrix = substitution_matrices.load(name)
        return cls("".join(matrix.alphabet), matrix)

    def to_biopython(self) -> Any:
        """The matrix as `Bio.Align.substitution_matrices.Array`, for Biopython's `PairwiseAligner`."""
        try:
            from Bio.Align.substitution_matrices import Array
        except ImportError:
            raise ImportError("matrices of Biopython need it: pip install 'structured-svm[alignment]'") from None
        return Array(self.alphabet, dims=2, data=self.values.copy())

    def over(self, alphabet: Any, missing: float = 0.0) -> SubstitutionMatrix:
        """The matrix over another alphabet, of letters in either case; its pairs with unknown letters score `missing`.

        ValueError if the alphabets have no letter in common.
        """
        index = {letter: k for k, letter in enumerate(self.alphabet)}
        if isinstance(alphabet, str):
            place = [index.get(letter, index.get(letter.swapcase(), -1)) for letter in alphabet]
        else:
            place = [index.get(word, -1) for word in alphabet]
        known = np.array(place) >= 0
        if not known.any():
            raise ValueError(f"a matrix of the letters {self.alphabet!r:.80} has no scores of {alphabet!r:.80}")
        values = np.where(np.outer(known, known), self.values[np.ix_(place, place)], missing)
        return SubstitutionMatrix(alphabet, values)
