"""The world of a child: sentences and their meaning from a synchronous grammar (Bordes 2010, section 6.2.2).

A meaning is a relation of one to three arguments; one that says what somebody sees, thinks or says has a relation as
its last argument, so that one to four relations are nested.
"""

from __future__ import annotations

from structsvm.datasets._house import AmbiguousSentences, checked_rng, pick

__all__ = ["make_ambig_child_world"]

PEOPLE = ("mommy", "daddy", "daisy", "mary", "john", "anna", "peter", "grandma")
ANIMALS = ("mouse", "dog", "cat", "bunny", "pig", "duck", "bear")
THINGS = ("clock", "hammer", "box", "ball", "bag", "chair", "table", "cake", "apple", "window", "spoon", "drum")
PLACES = ("park", "school", "house", "garden", "shop")
WHO = PEOPLE + ANIMALS

# A relation: its arguments' kinds, and ways to say it (the patterns are those of the house). {2} of a relation with a
# clause is the clause.
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
ODDS = (0.4, 0.3, 0.2, 0.1)  # of one to four relations


def noun(name):
    """Words for a thing and what each of them means."""
    return [(name, name)] if name in PEOPLE else [("the", "-"), (name, name)]


def spoken(pattern, relation, arguments, rng):
    """A pattern as (word, symbol) pairs."""
    pairs = []
    for token in pattern.split():
        token = pick(rng, token.split("|"))
        if token[0] == "{":
            pairs += noun(arguments[int(token[1])])
        else:
            pairs.append((token[1:], relation) if token[0] == "*" else (token, "-"))
    return pairs


def draw(rng):
    """A meaning, and how it is said."""
    prefixes, used, pairs = [], [], []
    for _ in range(int(rng.choice(4, p=ODDS))):
        relation = pick(rng, [name for name in CLAUSES if name not in prefixes])
        who = pick(rng, [name for name in PEOPLE if name not in used])
        used.append(who)
        prefixes.append(relation)
        pairs += spoken(pick(rng, CLAUSES[relation]), relation, [who], rng)
    relation = pick(rng, tuple(SIMPLE))
    kinds, patterns = SIMPLE[relation]
    arguments = []
    for kind in kinds:
        arguments.append(pick(rng, [name for name in kind if name not in arguments and name not in used]))
    pairs += spoken(pick(rng, patterns), relation, arguments, rng)
    meaning = f"{relation}({','.join(arguments)})"
    for clause, who in zip(reversed(prefixes), reversed(used), strict=True):
        meaning = f"{clause}({who},{meaning})"
    return meaning, pairs


def make_ambig_child_world(n=900, level=1, random_state=None):
    """Sentences such as a child hears, with bags of candidate meanings of one to four nested relations.

    As occasional commentary on what happens, a sentence's bag holds its own meaning and those of up to `level`
    sentences before and after it, `level` others on average (Kate and Mooney 2007).

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

    References
    ----------
    R. Kate and R. Mooney, Learning language semantics from ambiguous supervision, AAAI 2007.

    Examples
    --------
    >>> from structsvm.datasets import make_ambig_child_world
    >>> make_ambig_child_world(2, level=0, random_state=0).meanings
    [['saw(john,kissed(anna,pig))'], ['went(dog,house)']]
    """
    rng = checked_rng(n, level, random_state)
    events = [draw(rng) for _ in range(n + 2 * level)]
    bags = []
    for i in range(level, level + n):
        before, after = rng.integers(level + 1, size=2)
        near = dict.fromkeys(meaning for meaning, _ in events[i - before : i + after + 1])
        bags.append([list(near)[k] for k in rng.permutation(len(near))])
    events = events[level : level + n]
    return AmbiguousSentences(
        sentences=[" ".join(word for word, _ in pairs) for _, pairs in events],
        bags=bags,
        meanings=[[meaning] for meaning, _ in events],
        alignment=[[symbol for _, symbol in pairs] for _, pairs in events],
    )
