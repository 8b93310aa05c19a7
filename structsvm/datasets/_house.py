"""The house of actors, objects and rooms: sentences, their meaning, and bags of meanings (Bordes 2010, section 6.2.2).

15 actions, 10 actors, 15 objects, 6 rooms and 12 pieces of furniture are 58 symbols, and 59 with the empty one.
74 words name them, four of them by a second word, or mean nothing (articles, prepositions, particles).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

__all__ = ["AmbiguousSentences", "make_ambig_house"]

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

# An action: the kinds of its arguments, and how it is said; "*" stands before the word that means the action, {k} for
# argument k, and a bar between words that can stand for one another.
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


@dataclass(frozen=True, repr=False)
class AmbiguousSentences:
    """Sentences with bags of candidate meanings.

    Attributes
    ----------
    sentences : list of str
        Words between blanks.
    bags : list of (list of str)
        The candidate meaning representations of each sentence, in random order.
    meanings : list of (list of str)
        The right ones, for evaluation only.
    alignment : list of (list of str)
        The symbol that each word of a sentence means, ``"-"`` for none; for evaluation only.
    """

    sentences: list
    bags: list
    meanings: list
    alignment: list

    def __len__(self):
        return len(self.sentences)

    def __repr__(self):
        return f"AmbiguousSentences(n={len(self.sentences)})"


def checked_rng(n, level, random_state):
    """The generator of a simulator; ValueError for a number of sentences or a level that cannot be."""
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 1:
        raise ValueError(f"n must be an integer >= 1. Got {n!r}.")
    if isinstance(level, bool) or not isinstance(level, (int, np.integer)) or level < 0:
        raise ValueError(f"level must be an integer >= 0. Got {level!r}.")
    return np.random.default_rng(random_state)


def pick(rng, options):
    """One of them, each as likely."""
    return options[int(rng.integers(len(options)))]


def noun(name, rng):
    """Words for a thing and what each of them means."""
    word = pick(rng, SYNONYMS.get(name, (name,)))
    if name in PEOPLE:
        return [(word, name)]
    if name in FOOD or name in DRINKS:
        return [(pick(rng, ("the", "some")), "-"), (word, name)]
    return [(pick(rng, ("the", "a")), "-"), (word, name)]


def said(pattern, action, arguments, rng):
    """A sentence as (word, symbol) pairs."""
    pairs: list[tuple[str, str]] = []
    for token in pattern.split():
        token = pick(rng, token.split("|"))
        if token[0] == "{":
            name = arguments[int(token[1])]
            words = noun(name, rng)
            pairs += words[1:] if pairs and pairs[-1][0] == "the" else words
        elif token[0] == "*":
            pairs.append((token[1:], action))
        else:
            pairs.append((token, "-"))
    return pairs


def draw(rng):
    """An event: its meaning, and how it is said."""
    action = pick(rng, tuple(ACTIONS))
    kinds, pattern = ACTIONS[action]
    arguments = []
    for kind in kinds:
        arguments.append(pick(rng, [name for name in kind if name not in arguments]))
    return f"{action}({','.join(arguments)})", said(pattern, action, arguments, rng)


def with_distractors(meaning, level, rng, another):
    """A bag: the right meanings and 0 to 2 * level others, `level` on average, in random order."""
    others = [another() for _ in range(int(rng.integers(2 * level + 1)))]
    bag = list(dict.fromkeys([*meaning, *others]))
    return [bag[k] for k in rng.permutation(len(bag))]


def make_ambig_house(n=2000, level=1, random_state=None):
    """Sentences about what people, animals and things do in a house, with bags of candidate meanings.

    A bag holds the right meaning and 0 to ``2 * level`` others, as many on average as `level` says (the level of
    ambiguity of the thesis), which are drawn independently of the sentence.

    Parameters
    ----------
    n : int
        Number of sentences, at least 1.
    level : int
        Level of ambiguity; 0: the right meaning alone.
    random_state : int, numpy.random.Generator or None

    Returns
    -------
    AmbiguousSentences

    Raises
    ------
    ValueError
        For an argument out of range.

    Examples
    --------
    >>> from structsvm.datasets import make_ambig_house
    >>> data = make_ambig_house(3, level=0, random_state=0)
    >>> data.bags == data.meanings
    True
    """
    rng = checked_rng(n, level, random_state)
    events = [draw(rng) for _ in range(n)]
    meanings = [[meaning] for meaning, _ in events]
    return AmbiguousSentences(
        sentences=[" ".join(word for word, _ in pairs) for _, pairs in events],
        bags=[with_distractors(meaning, level, rng, lambda: draw(rng)[0]) for meaning in meanings],
        meanings=meanings,
        alignment=[[symbol for _, symbol in pairs] for _, pairs in events],
    )
