"""The features of a word for a semantic parser's two taggers: its window, and, for roles, the symbols around it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from structsvm.features._attributes import AttributeBuffer
from structsvm.features.sparse import SparseRows
from structsvm.oracles.meanings.words import Folded

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

# A sentence: for each word a tuple of it and of what else was given with it.
Tokens = Sequence[tuple[str, ...]]

MAX_WINDOW = 1000  # words on either side, or in an n-gram
PADDING = "\x02"  # stands for what is outside of the sentence


def split_sentence(sentence: object, where: str, *, lowercase: bool, allow_empty: bool = False) -> Tokens:
    """The tokens of a sentence, tuples of strings: a word, then what else was given with it (tag, chunk).

    A sentence is a str, cut at its blanks, or a list of words or of tuples that begin with the word. Raises ValueError
    or TypeError, beginning with `where`.
    """
    words = sentence.split() if isinstance(sentence, str) else sentence
    if not isinstance(words, (list, tuple)):
        raise TypeError(f"{where} must be a str or a list of words, got {sentence!r:.80}")
    tokens = [(word,) if isinstance(word, str) else word for word in words]
    if not tokens and not allow_empty:
        raise ValueError(f"{where} has no words")
    for token in tokens:
        if not (isinstance(token, tuple) and token and all(isinstance(part, str) for part in token)):
            raise TypeError(f"{where} has the token {token!r:.80}, expected a str or a tuple of str")
        if len(token) != len(tokens[0]):
            raise ValueError(f"{where} has tokens of {len(tokens[0])} and of {len(token)} columns")
    return [(Folded(token[0]), *token[1:]) for token in tokens] if lowercase else tokens


def symbol_attributes(tokens: Tokens, window: int, ngrams: int) -> list[list[str]]:
    """Attributes of each word: every column within `window` words, and the words' n-grams that end with this word."""
    n = len(tokens)
    if window == 0 and ngrams == 1 and len(tokens[0]) == 1:
        return [[str(word)] for (word,) in tokens]
    columns = [[PADDING] * window + [token[c] for token in tokens] + [PADDING] * window for c in range(len(tokens[0]))]
    words = [PADDING] * (ngrams - 1) + [token[0] for token in tokens]
    out = []
    for t in range(n):
        found = [f"{c}:{o - window}:{column[t + o]}" for c, column in enumerate(columns) for o in range(2 * window + 1)]
        sizes = range(2, ngrams + 1)
        found += [f"{size}:" + "\x01".join(words[t + ngrams - size : t + ngrams]) for size in sizes]
        out.append(found)
    return out


def role_attributes(tokens: Tokens, meant: list[str], relation: int, others: list[int], window: int) -> list[list[str]]:
    """Attributes of the words `others` as arguments of the relation that word `relation` means.

    `meant` holds, per word, the name of the symbol that it means, or "". Attributes are the relation together with: the
    symbol; the side of it on which the word stands, and its place among the words there that mean something; the words
    around; and the nearest symbols to the left and right.
    """
    name = meant[relation]
    out = []
    for t in others:
        low, high = min(t, relation), max(t, relation)
        between = sum(1 for k in range(low + 1, high) if meant[k])
        place = f"{'L' if t < relation else 'R'}{min(between, 3)}"
        left = next((meant[k] for k in range(t - 1, -1, -1) if meant[k]), PADDING)
        right = next((meant[k] for k in range(t + 1, len(tokens)) if meant[k]), PADDING)
        found = [f"{name}", f"{name}|s:{meant[t]}", f"{name}|p:{place}", f"{name}|sp:{meant[t]}|{place}"]
        found += [f"{name}|l:{left}", f"{name}|r:{right}"]
        for o in range(-window, window + 1):
            if o:
                word = tokens[t + o][0] if 0 <= t + o < len(tokens) else PADDING
                found.append(f"{name}|{o}:{word}")
        out.append(found)
    return out


class Encoder:
    """Numbers attributes as they come; a number, once given, stays."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        self.index = {name: k for k, name in enumerate(names)}

    def __len__(self) -> int:
        return len(self.index)

    def number(self, attributes: Iterable[str]) -> list[int]:
        """The numbers of a word's attributes, ascending; new attributes get the next ones."""
        index = self.index
        return sorted([index.setdefault(name, len(index)) for name in attributes])

    def encode(
        self, sequences: Iterable[Sequence[Sequence[str]]], *, grow: bool
    ) -> tuple[SparseRows, NDArray[np.int64]]:
        """``(rows, offsets)`` of sequences of attribute lists; without `grow`, unknown attributes are left out.

        The words of sequence s are ``rows[offsets[s]:offsets[s + 1]]``.
        """
        buffer = AttributeBuffer(self.index, grow)
        for sequence in sequences:
            buffer.add(sequence)
        offsets, indptr, indices, values = buffer.finish()
        numbers = np.ones(len(indices)) if values is None else values.astype(np.float64)
        return SparseRows(indptr, indices, numbers, len(self.index)), offsets
