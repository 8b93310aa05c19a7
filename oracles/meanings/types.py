"""Types that constants name beside a name, as ``boston:city``: found where sentences spell the name without its type.

Sentences that spell whole constants, as ``main.py`` or ``kim@corp.com``, say that these are names with a mark inside.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, chain
from typing import TYPE_CHECKING

from structsvm.oracles.meanings.readings import form_of
from structsvm.structures.meaning_units import Type, type_splits, words_of
from structsvm.structures.meanings import Meaning

if TYPE_CHECKING:
    from structsvm.oracles.meanings.opened import Spellings

# A type has so many names, and is found if sentences spell one without it so often, and in this share of the sentences
# that spell a name of the type at all.
FEWEST_TYPED, BARE = 3, 2 / 3


def key_of(of_name: Type) -> str:
    """The text of a type in `Spellings`: its two texts, with a blank for the name.

    Examples
    --------
    >>> from structsvm.oracles.meanings.types import key_of
    >>> key_of(("", ":city")), key_of(("fb:en.", ""))
    (' :city', 'fb:en. ')
    """
    return " ".join(of_name)


def is_key(text: str) -> bool:
    """Whether a text in `Spellings` is a type's: it has no bracket."""
    return "(" not in text


def types_of(meanings: Iterable[Meaning]) -> dict[Type, None]:
    """Candidates for types of the names in some meanings: those that `FEWEST_TYPED` constants have.

    Examples
    --------
    >>> from structsvm.oracles.meanings.types import types_of
    >>> [*types_of([("to", f"{name}:city") for name in ("oslo", "rome", "ulm")])]
    [('', ':city')]
    """
    ways = map(type_splits, constants_of(meanings))
    n_names = Counter(chain.from_iterable({(before, behind) for before, _, behind in of_one} for of_one in ways))
    return dict.fromkeys(sorted(of_name for of_name, n in n_names.items() if n >= FEWEST_TYPED))


def spelt_types(counts: Mapping[str, tuple[float, float]]) -> frozenset[Type]:
    """The types that names have, by the counts of `type_spellings`; no key of them has two blanks."""
    found = (key.partition(" ") for key, (n, n_all) in counts.items() if n >= max(FEWEST_TYPED, BARE * n_all))
    return frozenset((before, behind) for before, _, behind in found)


def type_spellings(
    meanings: Iterable[Meaning],
    sentences: Iterable[Sequence[str]],
    bags: Iterable[Iterable[Meaning]],
    before: Mapping[str, tuple[float, float]] | None = None,
) -> Spellings:
    """Count, by what may be a type, how often sentences spell a name without it, and how often with or without it.

    Parameters
    ----------
    meanings : iterable of meanings
        Those of all sentences so far.
    sentences : iterable of lists of words
    bags : iterable of lists of meanings
    before : dict, optional
        The counts of earlier sentences, which are added.

    Examples
    --------
    >>> from structsvm.oracles.meanings.types import spelt_types, type_spellings
    >>> trees = [("to", f"{name}:city") for name in ("oslo", "rome", "ulm")]
    >>> counts = type_spellings(trees, [["to", "oslo"], ["rome"], ["ulm", "now"]], [[tree] for tree in trees])
    >>> counts, spelt_types(counts)
    ({' :city': (3.0, 3.0)}, frozenset({('', ':city')}))
    """
    types = types_of(meanings)
    counts = {key: (before or {}).get(key, (0.0, 0.0)) for key in map(key_of, types)}
    ways: dict[str, list[tuple[str, str]]] = {}  # from a constant to the keys of its types, and its names without them
    for words, trees in zip(sentences, bags, strict=True) if types else ():
        spelt = SpeltOut(words)
        for constant in constants_of(trees):
            if constant not in ways:
                parts = type_splits(constant)
                ways[constant] = [(key_of((a, b)), name) for a, name, b in parts if (a, b) in types]
            is_whole = bool(ways[constant]) and constant in spelt
            # The longest name that is spelt, or all of a constant that is.
            bare = next((key for key, name in ways[constant] if not is_whole and spelt.may_say(name, key)), None)
            for key, _ in ways[constant]:
                if is_whole or key == bare:
                    n, n_all = counts[key]
                    counts[key] = n + (key == bare), n_all + 1.0
    return {key: pair for key, pair in counts.items() if pair[1] > 0.0}


def constants_of(meanings: Iterable[Meaning]) -> dict[str, None]:
    """The constants in some meanings, each once."""
    found, waiting = dict[str, None](), [*meanings]
    while waiting:
        node = waiting.pop()
        if isinstance(node, str):
            found[node] = None
        else:
            waiting += node[1:]
    return found


class SpeltOut:
    """Whether stretches of a sentence's words spell a text: the letters and digits of both, in order.

    Examples
    --------
    >>> from structsvm.oracles.meanings.types import SpeltOut
    >>> spelt = SpeltOut(["open", "main.py", "of", "New", "York", "now"])
    >>> [text in spelt for text in ("main.py", "main", "new_york", "york")]
    [True, False, True, True]
    """

    def __init__(self, words: Sequence[str]) -> None:
        pieces = ["".join(words_of(word)) for word in words]
        self.text = "".join(pieces)
        self.ends = {*accumulate(map(len, pieces), initial=0)}
        self.has_number = any(form_of(str(word)) is not None for word in words)

    def __contains__(self, text: str) -> bool:
        own = "".join(words_of(text))
        at = self.text.find(own) if own else -1
        while at >= 0:
            if at in self.ends and at + len(own) in self.ends:
                return True
            at = self.text.find(own, at + 1)
        return False

    def may_say(self, name: str, of_name: str) -> bool:
        """Whether a name is spelt, or is a number, and any number is; one of a type with digits is only spelt."""
        return name in self or (self.has_number and name.isdecimal() and not any(map(str.isdigit, of_name)))
