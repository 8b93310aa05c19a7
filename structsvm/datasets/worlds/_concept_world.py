"""A simulated world for concept labelling: events change it, sentences describe them (Bordes 2010, appendix C.5).

58 concepts: 15 verbs, 10 actors, 15 small objects, 6 rooms and 12 pieces of furniture. A thing has a name and a
pronoun, which is only used where the state of the world leaves a single possible referent.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

import numpy as np

from structsvm.datasets._draws import SHARE, RandomState, pick
from structsvm.datasets.worlds._house import ANIMALS, DRINKS, FOOD, FURNITURE, OBJECTS, ROOMS, Words, sentence
from structsvm.parameters import COUNT, check_arguments

MALES, FEMALES = ("john", "mark", "harry"), ("gina", "francoise", "maggie")
PEOPLE = MALES + FEMALES
ACTORS = PEOPLE + ANIMALS
NAMES = {
    "john": "father", "mark": "brother", "harry": "grandfather",
    "gina": "mother", "francoise": "sister", "maggie": "grandmother",
}  # fmt: skip
SEATS, BEDS = ("couch", "chair", "armchair", "stool"), ("bed", "couch")


@dataclass
class Universe:
    """The state of the world.

    Attributes
    ----------
    location : dict of str to str
        The room of each actor, object and piece of furniture.
    containedby : dict of str to str
        The actor who holds an object, or the furniture it lies on; for actors, the furniture they sit or sleep on.
    state : dict of str to str
        "standing", "sitting" or "sleeping", for each actor.

    Examples
    --------
    >>> from structsvm.datasets import make_concept_world
    >>> words, concepts, worlds = make_concept_world(1, random_state=0)
    >>> sorted(worlds[0].location) == sorted(worlds[0].copy().location)
    True
    """

    location: dict[str, str] = field(default_factory=dict)
    containedby: dict[str, str] = field(default_factory=dict)
    state: dict[str, str] = field(default_factory=dict)

    def copy(self) -> Universe:
        return Universe(dict(self.location), dict(self.containedby), dict(self.state))

    def held(self, actor: str) -> list[str]:
        """Return the objects that an actor holds."""
        return [thing for thing in OBJECTS if self.containedby.get(thing) == actor]

    def lying(self, room: str) -> list[str]:
        """Return the objects in a room that nobody holds."""
        return [t for t in OBJECTS if self.location[t] == room and self.containedby.get(t) not in ACTORS]

    def furniture(self, room: str) -> list[str]:
        return [name for name in FURNITURE if self.location[name] == room]

    def present(self, actor: str) -> list[str]:
        """Return the other actors in the same room."""
        return [name for name in ACTORS if name != actor and self.location[name] == self.location[actor]]


def start(rng: np.random.Generator) -> Universe:
    """Draw a world in which all actors stand, and nobody holds an object."""
    world = Universe()
    for name in FURNITURE + ACTORS + OBJECTS:
        world.location[name] = pick(rng, ROOMS)
    for name in OBJECTS:
        places = world.furniture(world.location[name])
        if places:
            world.containedby[name] = pick(rng, places)
    world.state = dict.fromkeys(ACTORS, "standing")
    return world


def events(world: Universe) -> list[tuple[str, tuple[str, ...]]]:
    """Return all coherent events, a verb and its arguments, in the current state of the world."""
    found: list[tuple[str, tuple[str, ...]]] = []
    for actor in ACTORS:
        room, state = world.location[actor], world.state[actor]
        if state == "sleeping":
            found.append(("wake_up", (actor,)))
            continue
        if state == "sitting":
            found.append(("stand_up", (actor, world.containedby[actor])))
        taken = {world.containedby.get(name) for name in ACTORS}
        free = [place for place in world.furniture(room) if place not in taken]
        held = world.held(actor)
        found += [("drink", (actor, t)) for t in held if t in DRINKS]
        found += [("eat", (actor, t)) for t in held if t in FOOD]
        found += [("play", (actor, t)) for t in held if t not in DRINKS and t not in FOOD]
        found += [("give", (actor, t, other)) for t in held for other in world.present(actor)]
        if state != "standing":
            continue
        found += [("move", (actor, room, other)) for other in ROOMS if other != room]
        found += [("get", (actor, t, world.containedby.get(t, room))) for t in world.lying(room)]
        found += [("put", (actor, t, place)) for t in held for place in world.furniture(room)]
        found += [("drop", (actor, t, room)) for t in held]
        found += [("bring", (actor, t, other)) for t in held for other in ROOMS if other != room]
        found += [("sit", (actor, place)) for place in free if place in SEATS]
        found += [("sleep", (actor, place)) for place in free if place in BEDS]
        if actor in PEOPLE:
            found += [("cook", (actor, t)) for t in held if t in FOOD and room == "kitchen"]
            found.append(("work", (actor, room)))
    return found


def execute(world: Universe, verb: str, arguments: tuple[str, ...]) -> None:
    """Update the world by an event."""
    actor = arguments[0]
    if verb in ("move", "bring"):
        room = arguments[-1]
        for name in (actor, *world.held(actor)):
            world.location[name] = room
    if verb == "get":
        world.containedby[arguments[1]] = actor
    elif verb == "give" or verb == "put":
        world.containedby[arguments[1]] = arguments[2]
    elif verb == "drop" or verb == "bring":
        del world.containedby[arguments[1]]
    elif verb in ("sit", "sleep"):
        world.containedby[actor] = arguments[1]
        world.state[actor] = "sitting" if verb == "sit" else "sleeping"
    elif verb in ("stand_up", "wake_up"):
        world.containedby.pop(actor, None)
        world.state[actor] = "standing"


# The sentence of each verb, written as in the house.
PATTERNS = {
    "move": "{0} *goes|*walks from {1} to {2}",
    "get": "{0} *gets|*takes {1} from {2}",
    "give": "{0} *gives|*hands {1} to {2}",
    "put": "{0} *puts {1} on {2}",
    "sleep": "{0} *sleeps on {1}",
    "wake_up": "{0} *wakes up",
    "play": "{0} *plays with {1}",
    "drink": "{0} *drinks {1}",
    "eat": "{0} *eats {1}",
    "bring": "{0} *brings {1} to {2}",
    "drop": "{0} *drops {1} in {2}",
    "sit": "{0} *sits on {1}",
    "stand_up": "{0} *stands up from {1}",
    "cook": "{0} *cooks {1}",
    "work": "{0} *works in {1}",
}


def pronoun(name: str, position: int) -> str:
    """Return the pronoun of a thing; that of an actor depends on its position, subject (0) or object."""
    if name in MALES:
        return "he" if position == 0 else "him"
    if name in FEMALES:
        return "she" if position == 0 else "her"
    return "there" if name in ROOMS else "it"


def resolvable(world: Universe, verb: str, arguments: tuple[str, ...], hidden: Collection[int]) -> bool:
    """Whether the world resolves the pronouns: no other coherent event has the same words."""
    for other, candidates in events(world):
        if other == verb and candidates != arguments and len(candidates) == len(arguments):
            same = all(
                (pronoun(a, k) == pronoun(b, k) if k in hidden else a == b)
                for k, (a, b) in enumerate(zip(arguments, candidates, strict=True))
            )
            if same:
                return False
    return True


def describe(world: Universe, verb: str, arguments: tuple[str, ...], rng: np.random.Generator, rate: float) -> Words:
    """Return the words of an event."""
    hidden = {k for k in range(len(arguments)) if rng.random() < rate}
    while hidden and not resolvable(world, verb, arguments, hidden):
        hidden.remove(pick(rng, sorted(hidden)))

    def noun(name: str) -> Words:
        position = arguments.index(name)
        if position in hidden:
            return [(pronoun(name, position), name)]
        return [("some" if name in FOOD or name in DRINKS else "the", "-"), (NAMES.get(name, name), name)]

    return sentence(PATTERNS[verb], verb, arguments, noun, rng)


def make_concept_world(
    n: int = 1000, ambiguity: float = 0.4, random_state: RandomState = None
) -> tuple[list[list[str]], list[list[str]], list[Universe]]:
    """Draw sentences about events in a house, with the concept of each word and the world at that moment.

    Appendix C.5 of the thesis: draw a coherent event, describe it, then update the universe by it. All verbs that are
    possible have equal odds.

    Parameters
    ----------
    n : int
        Number of sentences, at least 1.
    ambiguity : float
        Probability, from 0 to 1, that an actor or object becomes a pronoun, where the world resolves it.
    random_state : int, numpy.random.Generator or None

    Returns
    -------
    words : list of (list of str)
    concepts : list of (list of str)
        The concept of each word, ``"-"`` for none.
    universes : list of Universe
        The world before each event.

    Examples
    --------
    >>> from structsvm.datasets import make_concept_world
    >>> words, concepts, universes = make_concept_world(3, random_state=0)
    >>> [len(sentence) for sentence in words] == [len(labels) for labels in concepts]
    True
    """
    check_arguments("make_concept_world", locals(), n=COUNT, ambiguity=SHARE)
    rng = np.random.default_rng(random_state)
    world = start(rng)
    words: list[list[str]] = []
    concepts: list[list[str]] = []
    universes: list[Universe] = []
    for _ in range(n):
        possible = events(world)
        verb = pick(rng, sorted({verb for verb, _ in possible}))
        arguments = pick(rng, [arguments for name, arguments in possible if name == verb])
        pairs = describe(world, verb, arguments, rng, ambiguity)
        words.append([word for word, _ in pairs])
        concepts.append([concept for _, concept in pairs])
        universes.append(world.copy())
        execute(world, verb, arguments)
    return words, concepts, universes
