"""The world of a child: sentences and their meaning from a synchronous grammar (Bordes 2010, section 6.2.2).

A meaning is a relation of one to three arguments; the last argument of seeing, thinking, saying and knowing is itself a
relation, so one to four relations are nested.
"""

from __future__ import annotations

import numpy as np

from structsvm.datasets._draws import RandomState, pick, shuffled
from structsvm.datasets.worlds._house import LEVEL, AmbiguousSentences, Event, Words, draw_arguments, sentence
from structsvm.parameters import COUNT, check_arguments

PEOPLE = ("mommy", "daddy", "daisy", "mary", "john", "anna", "peter", "grandma")
ANIMALS = ("mouse", "dog", "cat", "bunny", "pig", "duck", "bear")
THINGS = ("clock", "hammer", "box", "ball", "bag", "chair", "table", "cake", "apple", "window", "spoon", "drum")
PLACES = ("park", "school", "house", "garden", "shop")
WHO = PEOPLE + ANIMALS

# A relation: its arguments' kinds, and its patterns (written as in the house). A clause follows the pattern of its
# relation.
SIMPLE = {
    "gave": ((WHO, THINGS, WHO), ("{0} *gave {1} to {2}", "{0} *handed {1} to {2}")),
    "threw": ((WHO, THINGS, WHO), ("{0} *threw {1} at|to {2}",)),
    "broke": ((WHO, THINGS), ("{0} *broke {1}",)),
    "moved": ((WHO, THINGS), ("{0} *moved {1}", "{0} *pushed {1}")),
    "ate": ((WHO, ("cake", "apple")), ("{0} *ate {1}",)),
    "hit": ((WHO, WHO), ("{0} *hit {1}",)),
    "kissed": ((WHO, WHO), ("{0} *kissed {1}",)),
    "chased": ((WHO, WHO), ("{0} *chased {1}", "{0} *ran after {1}")),
    "went": ((WHO, PLACES), ("{0} *went to {1}", "{0} *walked to {1}")),
    "slept": ((WHO,), ("{0} *slept",)),
    "cried": ((WHO,), ("{0} *cried",)),
    "carried": ((WHO, THINGS, PLACES), ("{0} *carried {1} to {2}",)),
}
CLAUSES = {
    "saw": ("{0} *saw that", "{0} *noticed that"),
    "thinks": ("{0} *thinks that",),
    "said": ("{0} *said that",),
    "knows": ("{0} *knows that",),
}
ODDS = (0.4, 0.3, 0.2, 0.1)  # one to four relations


def noun(name: str) -> Words:
    """Return the words for a thing."""
    return [(name, name)] if name in PEOPLE else [("the", "-"), (name, name)]


def draw(rng: np.random.Generator) -> Event:
    """Draw an event."""
    prefixes: list[str] = []
    used: list[str] = []
    pairs: Words = []
    for _ in range(int(rng.choice(4, p=ODDS))):
        relation = pick(rng, [name for name in CLAUSES if name not in prefixes])
        who = pick(rng, [name for name in PEOPLE if name not in used])
        used.append(who)
        prefixes.append(relation)
        pairs += sentence(pick(rng, CLAUSES[relation]), relation, [who], noun, rng)
    relation = pick(rng, tuple(SIMPLE))
    kinds, patterns = SIMPLE[relation]
    arguments = draw_arguments(rng, kinds, used)
    pairs += sentence(pick(rng, patterns), relation, arguments, noun, rng)
    meaning = f"{relation}({','.join(arguments)})"
    for clause, who in zip(reversed(prefixes), reversed(used), strict=True):
        meaning = f"{clause}({who},{meaning})"
    return meaning, pairs


def make_ambig_child_world(n: int = 900, level: int = 1, random_state: RandomState = None) -> AmbiguousSentences:
    """Draw sentences such as a child hears, with bags of candidate meanings of one to four nested relations.

    As in occasional commentary on events, a sentence's bag contains its own meaning and those of up to `level`
    sentences before and after it, `level` others on average (Kate and Mooney 2007).

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

    References
    ----------
    R. Kate and R. Mooney, Learning language semantics from ambiguous supervision, AAAI 2007.

    Examples
    --------
    >>> from structsvm.datasets import make_ambig_child_world
    >>> make_ambig_child_world(2, level=0, random_state=0).meanings
    [['said(daisy,moved(mommy,clock))'], ['said(grandma,thinks(john,carried(bunny,cake,house)))']]
    """
    check_arguments("make_ambig_child_world", locals(), n=COUNT, level=LEVEL)
    rng = np.random.default_rng(random_state)
    events = [draw(rng) for _ in range(n + 2 * level)]
    bags = []
    for i in range(level, level + n):
        before, after = rng.integers(level + 1, size=2)
        bags.append(shuffled(rng, (meaning for meaning, _ in events[i - before : i + after + 1])))
    return AmbiguousSentences.of(events[level : level + n], bags)
