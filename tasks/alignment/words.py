"""Lists of words to align: which words have costs of their own, and how lists become symbols.

Words that training saw in `LEAST_COUNT` lists or more have weights with each other, the `MOST_WORDS` most frequent of
them. All other words share three: with a frequent one, with another one, with themselves. So words that training never
saw are aligned as well, and 5,000 words have no more weights than 200.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from structsvm.structures.gapped import is_row_of_words

if TYPE_CHECKING:
    from structsvm.arrays import Integers

# Weights of pairs are quadratic in the number of words; costs of rare ones are not worth learning.
MOST_WORDS, LEAST_COUNT = 200, 5
# Names of the other words in matrices and explanations: one of them, and a second one.
OTHER, ANOTHER = "(other)", "(another)"


class WordEncoder:
    """Lists of words as symbols; see `WordAlignmentOracle`.

    Parameters
    ----------
    alphabet : str
        The parameter, of which words take no notice.
    words : sequence of hashable
        Words with costs of their own.

    Attributes
    ----------
    letters : tuple
        What has scores in a matrix: the words, and two others.
    """

    classes = stored_classes = None
    is_annotated = False

    def __init__(self, alphabet: str, words: Sequence[Hashable]) -> None:
        self.alphabet, self.words = alphabet, tuple(words)
        self.letters = (*self.words, OTHER, ANOTHER)
        # As `SmithWatermanOracle` has them: the two others are one.
        self.sizes = (len(self.words) + 1,)
        self.index = {word: k for k, word in enumerate(self.words)}

    @classmethod
    def of_lists(cls, alphabet: str, lists: Iterable[Sequence[Hashable]]) -> WordEncoder:
        """The encoder of the frequent words of some lists; what are none is left to be named when it is encoded."""
        counts: Counter[Hashable] = Counter()
        for words in lists:
            with suppress(ValueError):
                counts.update(set(checked_words(words)))
        frequent = (word for word, n in counts.most_common(MOST_WORDS) if n >= LEAST_COUNT)
        return cls(alphabet, [word.item() if isinstance(word, np.generic) else word for word in frequent])

    def letters_of(self, words: Any) -> list[Hashable]:
        """The words of a list; ValueError for what is none."""
        return checked_words(words)

    def encode_all(self, lists: Sequence[Any]) -> list[Integers]:
        """The symbols of a list and of those that it is aligned with, each an integer array."""
        lists = [checked_words(words) for words in lists]
        if not all(lists):
            raise ValueError("the list of words is empty")
        n, rest = len(self.words), set().union(*lists[1:])
        shared = [word for word in dict.fromkeys(lists[0]) if word in rest and word not in self.index]
        slots = {word: n + 1 + k for k, word in enumerate(shared)}
        return [
            np.array([self.index.get(word, slots.get(word, n)) for word in words], dtype=np.int64) for words in lists
        ]


def checked_words(words: Any) -> list[Hashable]:
    """A sequence of words as a list; ValueError unless it is one of hashable objects other than None."""
    if not is_row_of_words(words):
        raise ValueError(f"expected a list of words, as the first example has, got {words!r:.80}")
    found = words.tolist() if hasattr(words, "tolist") else list(words)
    for place, word in enumerate(found):
        try:
            hash(word)
        except TypeError:
            raise ValueError(f"word {place + 1} of a list must be hashable, got {word!r:.80}") from None
        if word is None or word in (OTHER, ANOTHER):
            raise ValueError(f"word {place + 1} of a list is {word!r}, which stands for something else")
    return found
