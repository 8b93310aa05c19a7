"""Vectorizers of texts in files of the runtime in C: units, terms, and how their counts become values."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from structsvm.export.binary import StringTable
from structsvm.export.letters import LetterTable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sklearn.feature_extraction.text import CountVectorizer

    from structsvm.arrays import Floats
    from structsvm.export.binary import RuntimeFile

__all__ = ["NUMBERS", "TOKEN_PATTERNS", "TermValues", "add_terms", "check_vectorizer", "refusal", "shown", "units_of"]

# Regular expressions of words that take linear time, as others may not: scikit-learn's default, words of one letter
# too, whatever stands between blanks.
TOKEN_PATTERNS = (r"(?u)\b\w\w+\b", r"(?u)\b\w+\b", r"\S+")
READ = ("CountVectorizer", "TfidfVectorizer")
# Units of terms, as the runtime numbers them: words by their pattern, letters. Rows of numbers have none.
UNITS = {**{pattern: number for number, pattern in enumerate(TOKEN_PATTERNS)}, "char": 3, "char_wb": 4}
NUMBERS = 5
NORMS = {None: 0, "l1": 1, "l2": 2}
IS_BINARY, IS_NARROW = 1, 2
N_LOGS = 256  # logarithms of counts that are in a file, as NumPy rounds them
N_SHOWN = 12  # words on a page


def refusal(model: str, what: str) -> str:
    """The message for a model with something that the runtime does not have."""
    article = "an" if model[0] in "AEIOU" else "a"
    return f"{article} {model} with {what} cannot be exported: the runtime does not support them"


def check_vectorizer(vectorizer: CountVectorizer, model: str) -> None:
    """Raise ValueError, naming the model's class, for a vectorizer that reads texts otherwise than the runtime."""
    name = type(vectorizer).__name__
    if name not in READ:
        raise ValueError(refusal(model, f"texts of a {name}"))
    if vectorizer.input != "content":
        raise ValueError(refusal(model, f"the input={vectorizer.input!r} of its vectorizer"))
    for key in ("preprocessor", "tokenizer", "strip_accents"):
        if (value := getattr(vectorizer, key)) is not None:
            raise ValueError(refusal(model, f"the {key}={value!r:.60} of its vectorizer"))
    if vectorizer.analyzer not in ("word", "char", "char_wb"):
        raise ValueError(refusal(model, f"the analyzer={vectorizer.analyzer!r:.60} of its vectorizer"))
    if vectorizer.analyzer == "word" and vectorizer.token_pattern not in TOKEN_PATTERNS:
        raise ValueError(refusal(model, f"the token_pattern={vectorizer.token_pattern!r:.60} of its vectorizer"))
    if name == "TfidfVectorizer" and vectorizer.use_idf and not np.isfinite(vectorizer.idf_).all():
        raise ValueError(refusal(model, "infinite inverse document frequencies"))


def shown(vectorizer: CountVectorizer) -> str:
    """A text of terms that the model knows."""
    names = vectorizer.get_feature_names_out()
    return " ".join(names[:: -(-len(names) // N_SHOWN)])


def units_of(vectorizer: CountVectorizer) -> int:
    """The number of the units that terms consist of."""
    return UNITS[vectorizer.token_pattern if vectorizer.analyzer == "word" else vectorizer.analyzer]


class TermValues(NamedTuple):
    """How the counts of terms become values.

    Attributes
    ----------
    flags : int
    norm : int
    logs : ndarray
        1 + log(count) of the counts 1, 2, ...; empty: counts as they are.
    idf : ndarray
        Factors of terms; empty: there are none.
    """

    flags: int
    norm: int
    logs: Floats
    idf: Floats

    @classmethod
    def of(cls, vectorizer: CountVectorizer) -> TermValues:
        """The values of a vectorizer's terms."""
        flags, none = IS_BINARY * bool(vectorizer.binary), np.zeros(0)
        if type(vectorizer).__name__ == "CountVectorizer":
            return cls(flags, NORMS[None], none, none)
        is_narrow = np.dtype(vectorizer.dtype) == np.float32
        counts: Floats = np.arange(1.0, N_LOGS + 1.0).astype(np.float32 if is_narrow else np.float64)
        logs: Floats = np.log(counts) + 1.0
        idf = np.asarray(vectorizer.idf_, dtype=np.float64) if vectorizer.use_idf else none
        flags += IS_NARROW * is_narrow
        return cls(flags, NORMS[vectorizer.norm], logs if vectorizer.sublinear_tf else none, idf)


def add_terms(file: RuntimeFile, vectorizer: CountVectorizer) -> None:
    """Properties of letters, terms with their features, stop words, and what values are computed from."""
    LetterTable.of_python().add_to(file)
    values = TermValues.of(vectorizer)
    table = table_of(sorted(vectorizer.vocabulary_, key=vectorizer.vocabulary_.get))
    table.add_to(file)
    table_of(sorted((vectorizer.analyzer == "word" and vectorizer.get_stop_words()) or ())).add_to(file)
    file.add("<u4", table.order)
    file.add("<f8", values.logs)
    file.add("<f8", values.idf)


def table_of(texts: Sequence[str]) -> StringTable:
    """The table of distinct texts."""
    coded = [text.encode("utf-8", "surrogatepass") for text in texts]
    data = np.frombuffer(b"".join(coded), dtype=np.uint8)
    return StringTable.of(data, np.cumsum([0, *map(len, coded)], dtype=np.int64))
