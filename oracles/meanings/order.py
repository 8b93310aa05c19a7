"""The order in which the arguments of lists are written, such as those of ``and``, which may stand in any order.

Two arguments a and b stand so by the log of how often relations like theirs do, and by the log of how often arguments
of the list stand as the words do that say them: the two are added up, as if each were all that is known. A relation
that joins several of one kind, as ``or(to(rome),to(oslo))``, stands where these would, unless meanings show another
place.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from itertools import chain, combinations
from math import exp, log
from typing import Any

from structsvm.oracles.meanings.lexicon import Lexicon
from structsvm.structures.meaning_units import subtrees
from structsvm.structures.meanings import Meaning, alike, head, ordered_pairs, turned

# The kind of an argument, by which it has its place in a list: see `kind_of`.
Kind = tuple[Any, ...]
# A relation, a kind of its arguments by `head`, and the place of a key that sorts them.
Sorting = tuple[str, tuple[str, ...], int]

# Added to what is counted.
SMOOTHING = 0.5


class ListOrder:
    """Writes the arguments of lists in the order of training.

    Parameters
    ----------
    trees : iterable of meanings
        Those of training.
    names : container of str
        The lists.
    follows : dict
        From a list to how often two of its arguments stand as their words do, and how often not.

    Examples
    --------
    >>> from structsvm.oracles.meanings.order import ListOrder
    >>> order = ListOrder([("and", ("f", "a"), ("g", "b"))], {"and"}, {})
    >>> order.sorted(("and", ("g", "c"), ("f", "d")))
    ('and', ('f', 'd'), ('g', 'c'))
    """

    def __init__(self, trees: Iterable[Meaning], names: Container[str], follows: Mapping[str, Sequence[int]]) -> None:
        self.names = names
        self.odds = {name: log((n + SMOOTHING) / (others + SMOOTHING)) for name, (n, others) in follows.items()}
        self.n_before: Counter[tuple[str, Kind, Kind]] = Counter()
        for name, *parts in chain.from_iterable(lists_in(tree, names) for tree in trees):
            self.n_before.update((str(name), *pair) for pair in ordered_pairs([*map(kind_of, parts)]))

    def sorted(self, tree: Meaning) -> Meaning:
        """The same meaning with the arguments of lists in order; they come in the order of their words."""
        if isinstance(tree, str):
            return tree
        name, *parts = tree[0], *map(self.sorted, tree[1:])
        return name, *(self._placed(name, parts) if name in self.names else parts)

    def _placed(self, name: str, parts: Sequence[Meaning]) -> list[Meaning]:
        """Arguments of a list, one after the other where it fits best between those before it."""
        kinds, placed = [*map(kind_of, parts)], list[int]()
        for k in range(len(parts)):
            # The value of each place: the arguments before it stand before k, those behind it after k.
            value, best, at = 0.0, 0.0, len(placed)
            for place in range(len(placed) - 1, -1, -1):
                value -= self.odds.get(name, 0.0) + self._log_odds(name, kinds[placed[place]], kinds[k])
                if value > best:
                    best, at = value, place
            placed.insert(at, k)
        return [parts[k] for k in placed]

    def _log_odds(self, name: str, a: Kind, b: Kind) -> float:
        """How much more often a stands before b than after it; their relations, if the two were not met together.

        What joins others stands as these do, as if one more meaning said so.
        """
        joined = joined_by(a), joined_by(b)
        if joined != (a, b):
            p = 1.0 / (1.0 + exp(-self._log_odds(name, *joined)))
            return log((self.n_before[name, a, b] + p) / (self.n_before[name, b, a] + 1.0 - p))
        if not self.n_before[name, a, b] + self.n_before[name, b, a]:
            a, b = a[:1], b[:1]
        return log((self.n_before[name, a, b] + SMOOTHING) / (self.n_before[name, b, a] + SMOOTHING))


def kind_of(tree: Meaning) -> Kind:
    """The `head` of an argument; of a relation that joins several of one kind, its name and that kind.

    Examples
    --------
    >>> from structsvm.oracles.meanings.order import kind_of
    >>> kind_of(("or", ("to", "rome"), ("to", "oslo"))), kind_of(("near", ("to", "rome"), "oslo"))
    (('or', ('to',)), ('near',))
    """
    if isinstance(tree, str) or len(tree) < 3 or any(isinstance(part, str) for part in tree[1:]):
        return head(tree)
    kinds = {*map(kind_of, tree[1:])}
    kinds = kinds if len(kinds) == 1 else {kind[:1] for kind in kinds}
    return (tree[0], *kinds) if len(kinds) == 1 else head(tree)


def joined_by(kind: Kind) -> Kind:
    """The kind of what a relation joins; for others the kind itself."""
    return kind[1] if len(kind) == 2 and isinstance(kind[1], tuple) else kind


def lists_in(tree: Meaning, names: Container[str]) -> Iterator[tuple[Meaning, ...]]:
    """The parts of a meaning that are lists."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, str):
            continue
        if node[0] in names:
            yield node
        waiting += node[1:]


def as_said(tree: Meaning, places: Mapping[Meaning, int], is_long: Callable[[Meaning], bool]) -> Meaning:
    """The same meaning, whose lists that are long have their arguments in the order of the words.

    An argument stands where the first of its names does, or else behind the one before it. `places` are those of
    names.

    Examples
    --------
    >>> from structsvm.oracles.meanings.order import as_said
    >>> as_said(("and", ("f", "a"), ("g",), ("f", "b")), {"a": 2, "b": 0}, lambda tree: tree[0] == "and")
    ('and', ('f', 'b'), ('f', 'a'), ('g',))
    """
    if isinstance(tree, str):
        return tree
    parts = [as_said(part, places, is_long) for part in tree[1:]]
    if is_long(tree):
        place, keys = -1, []
        for part in parts:
            place = min((places[name] for name in subtrees(part) if name in places), default=place)
            keys.append(place)
        parts = [parts[k] for k in sorted(range(len(parts)), key=lambda k: keys[k])]
    return tree[0], *parts


def following(
    lexicon: Lexicon, sentences: Iterable[Sequence[str]], bags: Iterable[Iterable[Meaning]], names: Container[str]
) -> dict[str, list[int]]:
    """How often two arguments of each list stand as the names in them do in the sentence, and how often not."""
    counts: Counter[tuple[str, bool]] = Counter()
    for words, trees in zip(sentences, bags, strict=True):
        lists = [*chain.from_iterable(lists_in(tree, names) for tree in trees)]
        at = said_at(lexicon, words) if lists else {}
        for name, *parts in lists:
            known = [place for place in places_of(lexicon, parts, at) if place is not None]
            counts.update((str(name), a < b) for a, b in combinations(known, 2) if a != b)
    return {name: [counts[name, True], counts[name, False]] for name in sorted({name for name, _ in counts})}


def sorting(
    lexicon: Lexicon, sentences: Iterable[Sequence[str]], bags: Iterable[Iterable[Meaning]], but: Container[str]
) -> dict[Sorting, list[int]]:
    """How often arguments of relations, `but` some, are sorted against the words, and how often not: see `Sorting`.

    A meaning counts, once for a sentence, that has two arguments which stand in one order in the sentence and in the
    other one where the key sorts them: as sorted if they stand as the key has them, or else as not.
    """
    counts: dict[Sorting, list[int]] = defaultdict(lambda: [0, 0])
    for words, trees in dict.fromkeys(zip(map(tuple, sentences), map(tuple, bags), strict=True)):
        relations = [node for node in chain.from_iterable(map(subtrees, trees)) if not isinstance(node, str)]
        several = [(node, kinds) for node in relations if node[0] not in but and (kinds := alike(node[1:]))]
        at = said_at(lexicon, words) if several else {}
        found = set[tuple[Sorting, bool]]()
        for (name, *parts), kinds in several:
            places = {i: place for i, place in enumerate(places_of(lexicon, parts, at)) if place is not None}
            for kind, own in kinds.items():
                for i, j in combinations([i for i in own if i in places], 2):
                    is_said = places[i] < places[j]
                    for key, is_turned in enumerate(turned(parts[i], parts[j])):
                        if places[i] != places[j] and parts[i] != parts[j] and is_turned == is_said:
                            found.add(((str(name), kind, key), is_said))
        for sort, is_said in found:
            counts[sort][is_said] += 1
    return dict(sorted(counts.items()))


def said_at(lexicon: Lexicon, words: Sequence[str]) -> dict[int, int]:
    """From leaves that are written in a sentence to where the first time."""
    at: dict[int, int] = {}
    for i, _, leaf in lexicon.written_in(words):
        at.setdefault(leaf, i)
    return at


def places_of(lexicon: Lexicon, parts: Iterable[Meaning], at: Mapping[int, int]) -> list[int | None]:
    """Where the first name of each argument is, by `said_at`; None if none is written."""
    return [min((at[u] for u in lexicon.units.unit_ids(part) if u in at), default=None) for part in parts]
