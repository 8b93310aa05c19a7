"""Lines of labelled pieces of text, with typing errors and wrong labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias, TypeVar

import numpy as np

from structsvm.datasets._draws import RandomState, pick

# A piece of a line and the label of its words; marks stand with the word that they follow.
Line: TypeAlias = list[tuple[str, str]]
T = TypeVar("T")
Labelled: TypeAlias = tuple[list[list[str]], list[list[str]]]

LEAST_LETTERS = 4  # shorter words are not mistyped


class Writer:
    """Draws what a line is made of.

    Attributes
    ----------
    rng : numpy.random.Generator
    ambiguity : float
        Chance that `name` takes a word that other fields have as well.
    """

    def __init__(self, rng: np.random.Generator, ambiguity: float) -> None:
        self.rng = rng
        self.ambiguity = ambiguity

    def pick(self, options: Sequence[T]) -> T:
        """Draw one of the options, all equally likely."""
        return pick(self.rng, options)

    def chance(self, share: float) -> bool:
        """Draw True with this probability."""
        return bool(self.rng.random() < share)

    def number(self, low: int, high: int) -> int:
        """Draw an integer from `low` to `high`, both included."""
        return int(self.rng.integers(low, high + 1))

    def name(self, own: Sequence[str], shared: Sequence[str]) -> str:
        """Draw a name from a field's own words, or from those that it shares with other fields."""
        return self.pick(shared if self.chance(self.ambiguity) else own)


class Errors:
    """Mistypes words and mixes up labels, by draws of its own: the texts are the same without them."""

    def __init__(self, rng: np.random.Generator, typos: float, noise: float, labels: Sequence[str]) -> None:
        (own,) = rng.spawn(1)
        self.writer = Writer(own, 0.0)
        self.typos, self.noise = typos, noise
        self.labels = labels

    def word(self, word: str) -> str:
        """The word, perhaps with two letters exchanged, or with one left out or doubled, but for the first."""
        if not self.writer.chance(self.typos) or len(word) < LEAST_LETTERS or not word.isalpha():
            return word
        k = self.writer.number(1, len(word) - 2)
        a, b = word[k], word[k + 1]
        return word[:k] + self.writer.pick((b + a, a + a + b, b)) + word[k + 2 :]

    def label(self, label: str) -> str:
        """The label, perhaps replaced by one drawn at random."""
        return self.writer.pick(self.labels) if self.writer.chance(self.noise) else label


def labelled_lines(
    write: Callable[[Writer], Line],
    labels: Sequence[str],
    n: int,
    *,
    ambiguity: float,
    typos: float,
    noise: float,
    random_state: RandomState,
) -> Labelled:
    """Words and labels of n lines that `write` draws; see `make_addresses` for the parameters."""
    rng = np.random.default_rng(random_state)
    errors, writer = Errors(rng, typos, noise, labels), Writer(rng, ambiguity)
    lines = [[(word, label) for text, label in write(writer) for word in text.split()] for _ in range(n)]
    X = [[errors.word(word) for word, _ in line] for line in lines]
    return X, [[errors.label(label) for _, label in line] for line in lines]
