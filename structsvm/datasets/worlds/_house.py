"""The house of actors, objects and rooms: sentences, their meaning, and bags of meanings (Bordes 2010, section 6.2.2).

15 actions, 10 actors, 15 objects, 6 rooms and 12 pieces of furniture are 58 symbols, and 59 with the empty one. There
are 74 words: names of these (four have a synonym), and words without meaning (articles, prepositions, particles).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from numbers import Integral

import numpy as np

from structsvm.datasets._draws import RandomState, pick, shuffled
from structsvm.parameters import COUNT, Interval, check_arguments

PEOPLE = ("john", "mark", "harry", "gina", "francoise", "maggie")
ANIMALS = ("cat", "dog", "hamster", "rabbit")
ACTORS = PEOPLE + ANIMALS
FOOD = ("yoghurt", "chocolate", "salad", "cake", "rice")
DRINKS = ("water", "milk", "coffee")
THINGS = ("doll", "football", "toy", "videogame", "hat", "book", "newspaper")
OBJECTS = FOOD + DRINKS + THINGS
ROOMS = ("kitchen", "livingroom", "bedroom", "bathroom", "garden", "hall")
FURNITURE = (
    "couch", "chair", "table", "desk", "bed", "sideboard", "fridge", "shelf", "cupboard", "armchair", "stool", "carpet",
)  # fmt: skip

# An action: the kinds of its arguments, and the pattern of its sentence. "*" marks the word that means the action, {k}
# is argument k, and bars separate interchangeable words.
ACTIONS = {
    "move": ((ACTORS, ROOMS), "{0} *goes|*walks to|into the {1}"),
    "get": ((ACTORS, OBJECTS, FURNITURE), "{0} *gets|*takes {1} from the {2}"),
    "give": ((ACTORS, OBJECTS, ACTORS), "{0} *gives|*hands {1} to {2}"),
    "put": ((ACTORS, OBJECTS, FURNITURE), "{0} *puts {1} on|in|near the {2}"),
    "sleep": ((ACTORS, FURNITURE), "{0} *sleeps on|near the {1}"),
    "wake_up": ((ACTORS, ROOMS), "{0} *wakes up in the {1}"),
    "play": ((ACTORS, THINGS), "{0} *plays with|near {1}"),
    "drink": ((ACTORS, DRINKS), "{0} *drinks {1}"),
    "eat": ((ACTORS, FOOD), "{0} *eats {1}"),
    "bring": ((ACTORS, OBJECTS, ROOMS), "{0} *brings {1} to|into the {2}"),
    "drop": ((ACTORS, OBJECTS, ROOMS), "{0} *drops {1} in the {2}"),
    "sit": ((ACTORS, FURNITURE), "{0} *sits on|at|near the {1}"),
    "stand_up": ((ACTORS, FURNITURE), "{0} *stands up from the {1}"),
    "cook": ((ACTORS, FOOD), "{0} *cooks {1}"),
    "work": ((ACTORS, ROOMS), "{0} *works in the {1}"),
}
SYNONYMS = {"couch": ("couch", "sofa")}


# Words with the symbol that each means, "-" for none; an event is a meaning and its sentence.
Words = list[tuple[str, str]]
Event = tuple[str, Words]


@dataclass(frozen=True, repr=False)
class AmbiguousSentences:
    """Sentences with bags of candidate meanings.

    Attributes
    ----------
    sentences : list of str
        Words separated by blanks.
    bags : list of (list of str)
        The candidate meaning representations of each sentence, in random order.
    meanings : list of (list of str)
        The true ones, for evaluation only.
    alignment : list of (list of str)
        The symbol that each word of a sentence means, ``"-"`` for none; for evaluation only.

    Examples
    --------
    >>> from structsvm.datasets import make_ambig_house
    >>> house = make_ambig_house(10, level=2, random_state=0)
    >>> len(house.sentences), len(house.bags)
    (10, 10)
    """

    sentences: list[str]
    bags: list[list[str]]
    meanings: list[list[str]]
    alignment: list[list[str]]

    @classmethod
    def of(cls, events: Sequence[Event], bags: list[list[str]]) -> AmbiguousSentences:
        """Sentences of events, with the bag of each."""
        return cls(
            sentences=[" ".join(word for word, _ in pairs) for _, pairs in events],
            bags=bags,
            meanings=[[meaning] for meaning, _ in events],
            alignment=[[symbol for _, symbol in pairs] for _, pairs in events],
        )

    def __len__(self) -> int:
        return len(self.sentences)

    def __repr__(self) -> str:
        return f"AmbiguousSentences(n={len(self.sentences)})"


LEVEL = Interval(Integral, 0)


def noun(name: str, rng: np.random.Generator) -> Words:
    """Return the words for a thing."""
    word = pick(rng, SYNONYMS.get(name, (name,)))
    if name in PEOPLE:
        return [(word, name)]
    if name in FOOD or name in DRINKS:
        return [(pick(rng, ("the", "some")), "-"), (word, name)]
    return [(pick(rng, ("the", "a")), "-"), (word, name)]


def sentence(
    pattern: str, symbol: str, arguments: Sequence[str], noun: Callable[[str], Words], rng: np.random.Generator
) -> Words:
    """Return a sentence whose marked word means `symbol`; ``noun(name)`` returns the words for an argument."""
    pairs: Words = []
    for token in pattern.split():
        token = pick(rng, token.split("|"))
        if token[0] == "{":
            words = noun(arguments[int(token[1])])
            pairs += words[1:] if pairs and pairs[-1][0] == "the" else words
        else:
            pairs.append((token[1:], symbol) if token[0] == "*" else (token, "-"))
    return pairs


def draw_arguments(rng: np.random.Generator, kinds: Iterable[Sequence[str]], used: Sequence[str] = ()) -> list[str]:
    """Draw a thing of each kind; all of them differ, also from those already used."""
    arguments: list[str] = []
    for kind in kinds:
        arguments.append(pick(rng, [name for name in kind if name not in arguments and name not in used]))
    return arguments


def draw(rng: np.random.Generator) -> Event:
    """Draw an event."""
    action = pick(rng, tuple(ACTIONS))
    kinds, pattern = ACTIONS[action]
    arguments = draw_arguments(rng, kinds)
    return f"{action}({','.join(arguments)})", sentence(pattern, action, arguments, lambda name: noun(name, rng), rng)


def with_distractors(meaning: str, level: int, rng: np.random.Generator) -> list[str]:
    """Return a bag: the true meaning and 0 to 2 * level others, `level` on average, in random order."""
    return shuffled(rng, [meaning, *(draw(rng)[0] for _ in range(int(rng.integers(2 * level + 1))))])


def make_ambig_house(n: int = 2000, level: int = 1, random_state: RandomState = None) -> AmbiguousSentences:
    """Draw sentences about people and animals in a house, with bags of candidate meanings.

    A bag contains the true meaning and 0 to ``2 * level`` others, `level` on average (the level of ambiguity of the
    thesis), drawn independently of the sentence.

    Parameters
    ----------
    n : int
        Number of sentences, at least 1.
    level : int
        Level of ambiguity; 0: the true meaning alone.
    random_state : int, numpy.random.Generator or None

    Returns
    -------
    AmbiguousSentences

    Examples
    --------
    >>> from structsvm.datasets import make_ambig_house
    >>> data = make_ambig_house(3, level=0, random_state=0)
    >>> data.bags == data.meanings
    True
    """
    check_arguments("make_ambig_house", locals(), n=COUNT, level=LEVEL)
    rng = np.random.default_rng(random_state)
    events = [draw(rng) for _ in range(n)]
    return AmbiguousSentences.of(events, [with_distractors(meaning, level, rng) for meaning, _ in events])
