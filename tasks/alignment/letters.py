"""Letters and position features of strings to align: what the letters are, what becomes of unknown ones, classes.

The rule for letters, of any script: upper and lower case are the same letter. Proteins have the 20 amino acids and X;
selenocysteine U is read as C, pyrrolysine O as K, and B, J, Z and * as X. DNA has A, C, G, T and N; U is read as T, the
other IUPAC codes as N. With an alphabet of one's own, any other letter is an error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from structsvm.structures.gapped import GAPS, as_string, upper_case

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from structsvm.arrays import Integers
    from structsvm.tasks.alignment.examples import String

PROTEIN = "ACDEFGHIKLMNPQRSTVWYX"
DNA = "ACGTN"

_READ_AS = {
    "protein": (PROTEIN, {"U": "C", "O": "K", "B": "X", "J": "X", "Z": "X", "*": "X"}),
    "dna": (DNA, {"U": "T"} | dict.fromkeys("RYSWKMBDHV", "N")),
}

# Signs of gaps elsewhere: ~ of GCG, _, and the dashes and the minus of Unicode.
OTHER_GAPS = "~_\N{HYPHEN}\N{NON-BREAKING HYPHEN}\N{EN DASH}\N{EM DASH}\N{MINUS SIGN}"

# Kyte and Doolittle (1982): hydropathy of the amino acids; other letters 0.
HYDROPATHY = {
    "A": 1.8, "R": -4.5, "N": -3.5, "D": -3.5, "C": 2.5, "Q": -3.5, "E": -3.5, "G": -0.4, "H": -3.2, "I": 4.5,
    "L": 3.8, "K": -3.9, "M": 1.9, "F": 2.8, "P": -1.6, "S": -0.8, "T": -0.7, "W": -0.9, "Y": -1.3, "V": 4.2,
}  # fmt: skip
_WINDOW = 7
_LIMITS = (-0.8, 0.4)


def hydrophobicity(letters: str) -> str:
    """The class of each letter of a protein: L, M or H, by the mean hydropathy of the seven letters around it."""
    values = np.array([HYDROPATHY.get(letter, 0.0) for letter in letters.upper()])
    ones = np.ones(_WINDOW)
    half = _WINDOW // 2
    sums, counts = (np.convolve(v, ones)[half : half + len(values)] for v in (values, np.ones(len(values))))
    return "".join("LMH"[k] for k in np.searchsorted(_LIMITS, sums / counts))


class LetterEncoder:
    """Strings as integer arrays.

    Parameters
    ----------
    alphabet : {"protein", "dna"} or str
        A name, or all letters.
    classes : None, "hydrophobicity" or tuple of str
        Position features: none; made of the letters by `hydrophobicity`; or, with the alphabets of annotations, strings
        are given as tuples of the letters and of as many annotations of the same length.

    Attributes
    ----------
    letters : str
    class_alphabets : tuple of str
    sizes : tuple of int
        Of letters and classes.
    """

    def __init__(self, alphabet: str = "protein", classes: str | tuple[str, ...] | None = None) -> None:
        self.alphabet, self.classes = alphabet, classes
        self.letters, read_as = _READ_AS.get(alphabet, (upper_case(alphabet), {}))
        annotations: Sequence[str] = ("LMH",) if classes == "hydrophobicity" else (classes or ())
        self.class_alphabets = tuple(annotations)
        for name, letters in (("alphabet", self.letters), *(("classes", c) for c in self.class_alphabets)):
            if not isinstance(letters, str) or not letters or len(set(letters)) != len(letters):
                raise ValueError(f"The {name!r} parameter must hold each letter once. Got {letters!r}.")
        wrong = [letter for letter in self.letters if letter in GAPS or letter.isspace() or letter.islower()]
        if wrong:
            raise ValueError(
                "The 'alphabet' parameter must be letters without - and ., blanks and letters that have no upper case. "
                f"Got {alphabet!r}, with {wrong[0]!r}."
            )
        self.sizes = (len(self.letters), *map(len, self.class_alphabets))
        self._table = _table(self.letters, read_as | {a.lower(): b for a, b in read_as.items()}, both_cases=True)
        self._class_tables = [_table(letters, {}) for letters in self.class_alphabets]

    # Strings have no words.
    words = None

    @property
    def stored_classes(self) -> str | Sequence[str] | None:
        """The classes as a file stores them."""
        return list(self.class_alphabets) if self.is_annotated else self.classes

    @property
    def is_annotated(self) -> bool:
        """Whether strings are tuples of letters and annotations."""
        return bool(self.class_alphabets) and self.classes != "hydrophobicity"

    def letters_of(self, string: object) -> str:
        """The letters of a string that may be annotated; ValueError if it is not what the encoder was made for."""
        if not self.is_annotated:
            string = as_string(string)
            if not isinstance(string, str):
                raise ValueError(
                    f"expected a string of letters, got {string!r:.80}; lists of words are aligned where all examples, "
                    "those of training too, are such lists"
                )
            return upper_case(string)
        if (
            not isinstance(string, (tuple, list))
            or len(string) != len(self.sizes)
            or not all(isinstance(t, str) for t in string)
        ):
            raise ValueError(
                f"expected a tuple of {len(self.sizes)} strings, letters and annotations, got {string!r:.80}"
            )
        if len({len(text) for text in string}) != 1:
            raise ValueError(f"the letters and their annotations have different lengths: {[len(t) for t in string]}")
        return upper_case(string[0])

    def read_as_others(self, letters: str) -> str:
        """Letters in upper case that are read as none of `letters`."""
        known = {self.letters.index(letter) for letter in letters}
        ids = enumerate(self._table[:-1].tolist())
        return "".join(chr(code) for code, k in ids if k >= 0 and k not in known and chr(code) == chr(code).upper())

    def encode_all(self, strings: Sequence[String]) -> list[Integers]:
        """Strings, each an integer array (length, 1 + n_classes)."""
        return [self.encode(string) for string in strings]

    def encode(self, string: String) -> Integers:
        """An integer array (length, 1 + n_classes)."""
        letters = self.letters_of(string)
        if not letters:
            raise ValueError("the string is empty")
        annotations = string[1:] if self.is_annotated else [hydrophobicity(letters)] if self.class_alphabets else []
        tables = [self._table, *self._class_tables]
        return np.stack([_look_up(text, table) for text, table in zip([letters, *annotations], tables)], axis=1)


def _table(letters: str, read_as: Mapping[str, str], both_cases: bool = False) -> Integers:
    # The last place is for all letters beyond.
    table = np.full(
        max(256, *map(ord, letters), *(ord(letter.lower()[0]) for letter in letters)) + 2, -1, dtype=np.int64
    )
    for k, letter in enumerate(letters):
        table[ord(letter)] = k
        if both_cases:
            table[ord(letter.lower()[0])] = k
    for letter, other in read_as.items():
        table[ord(letter)] = letters.index(other.upper())
    return table


def _look_up(text: str, table: Integers) -> Integers:
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")
    letter_ids = table[np.minimum(codes, len(table) - 1)]
    if (letter_ids < 0).any():
        place = int((letter_ids < 0).argmax())
        hint = ": gaps are written - or ." if text[place] in OTHER_GAPS else ""
        raise ValueError(f"the letter {text[place]!r} at position {place + 1} is not in the alphabet{hint}")
    return letter_ids
