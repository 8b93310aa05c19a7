"""Units of a meaning language, read off meanings: relations with slots for their arguments, and leaves without any."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple

from structsvm.structures.meanings import Meaning, MeaningGrammar, Symbol, format_meaning, parse_meaning, symbol_of

# The slot of whole meanings.
ROOT = -1
# Ways to fill a slot, of all slots; and pairs of slots that take the same unit: what is quadratic in the meanings.
MOST_FILLINGS, MOST_PAIRS = 2_000_000, 50_000_000


class Unit(NamedTuple):
    """The label of a node of a hybrid tree.

    `name` is a relation, or the text of a leaf; `places` has the slot of each argument: equal arguments share one. A
    leaf has None there, or nothing if it is a relation without arguments.
    """

    name: str
    places: tuple[int, ...] | None

    @property
    def n_slots(self) -> int:
        return len(set(self.places or ()))

    @property
    def tree(self) -> Meaning:
        """The tree of a leaf."""
        return parse_meaning(self.name) if self.places is None else (self.name,)

    @property
    def symbol(self) -> Symbol:
        return symbol_of(self.tree) if self.places is None else Symbol(self.name, len(self.places))

    @property
    def words(self) -> list[str]:
        """The words that the constant of a leaf is written with."""
        tree = self.tree
        return words_of(tree if isinstance(tree, str) else tree[-1])


def words_of(text: str) -> list[str]:
    """Runs of letters and digits in a text, case folded."""
    return re.findall(r"[^\W_]+", text.casefold())


class MeaningUnits:
    """Units and their slots, numbered, and which unit may fill which slot.

    Parameters
    ----------
    trees : iterable of meanings
    grammar : MeaningGrammar, optional
        Its constants are units, too, and its slots take all that they may.

    Attributes
    ----------
    units : list of Unit
    kinds : list of int
        The id of each unit or, for a name, `len(units)` and more: names of one kind fill the same slots.
    members : dict
        From each kind of names to the ids of its units, which ascend.
    slots : list of (unit, int)
    pairs : dict
        From (slot, unit) in the trees to None, in the order in which they came.
    fillers : dict
        From a slot to the indices of the units that may fill it.

    Raises
    ------
    ValueError
        If the meanings have more to combine than fits in memory.
    """

    def __init__(self, trees: Iterable[Meaning], grammar: MeaningGrammar | None = None) -> None:
        trees = list(dict.fromkeys(trees))
        self.names = wrappers(trees)
        self.units: list[Unit] = []
        self.number: dict[Unit, int] = {}
        self.slots: list[tuple[int, int]] = []
        self.first_slot: list[int] = []
        self.alike: dict[tuple[str, int], list[int]] = defaultdict(list)
        self.pairs: dict[tuple[int, int], None] = {}
        for tree in trees:
            self._register(tree)
        self.fillers: dict[int, list[int]] = defaultdict(list)
        self.n_fillings = 0
        for slot, unit in self.pairs:
            self._fill(slot, [unit])
        if grammar is not None:
            self._add_constants(grammar)
        self._widen()
        if grammar is not None:
            self._follow(grammar)
        self.members: dict[int, list[int]] = defaultdict(list)
        self.kinds = self._find_kinds()

    @cached_property
    def n_kinds(self) -> int:
        """Number of units and kinds; the ids of kinds follow those of units."""
        return max([len(self.units) - 1, *self.kinds]) + 1

    def slots_of(self, unit: int) -> range:
        """The ids of a unit's slots."""
        first = self.first_slot[unit]
        return range(first, first + self.units[unit].n_slots)

    def split(self, tree: Meaning) -> tuple[Unit, list[Meaning]]:
        """The unit at the root of a tree, and what fills its slots."""
        if isinstance(tree, str):
            return Unit(tree, None), []
        if tree[0] in self.names and len(tree) == 2 and isinstance(tree[1], str):
            return Unit(format_meaning(tree), None), []
        slots: dict[Meaning, int] = {}
        places = tuple([slots.setdefault(part, len(slots)) for part in tree[1:]])
        return Unit(tree[0], places), list(slots)

    def splits(self, tree: Meaning) -> list[tuple[int, list[Meaning]]]:
        """The ids of all units that may be at the root of a tree, each with what fills its slots.

        Beside the unit of `split`, those that do not ask for its equal arguments to be equal.
        """
        unit, parts = self.split(tree)
        if not unit.places:
            return [(self.number[unit], parts)] if unit in self.number else []
        found = []
        for number in self.alike[unit.name, len(unit.places)]:
            places = self.units[number].places or ()
            filled = dict(zip(places, tree[1:], strict=True))
            if all(filled[place] == part for place, part in zip(places, tree[1:], strict=True)):
                found.append((number, [filled[s] for s in sorted(filled)]))
        return found

    def join(self, unit: int, parts: Sequence[Meaning]) -> Meaning:
        """The inverse of `split`: the tree of a unit whose slots are filled."""
        name, places = self.units[unit]
        return self._leaves[unit] if not places else (name, *[parts[s] for s in places])

    @cached_property
    def _leaves(self) -> list[Any]:
        """The trees of leaves, None for other units."""
        return [None if unit.places else unit.tree for unit in self.units]

    @cached_property
    def takes(self) -> dict[int, frozenset[int]]:
        """`fillers`, as sets."""
        return {slot: frozenset(units) for slot, units in self.fillers.items()}

    def unit_ids(self, tree: Meaning) -> list[int]:
        """The ids of a tree's units, -1 for an unknown one."""
        found, waiting = [], [tree]
        while waiting:
            unit, parts = self.split(waiting.pop())
            found.append(self.number.get(unit, -1))
            waiting += parts
        return found

    def pairs_of(self, tree: Meaning) -> Iterator[tuple[int, int]]:
        """Pairs of a slot and the id of the unit that fills it: the root first."""
        waiting = [(ROOT, tree)]
        while waiting:
            slot, node = waiting.pop()
            unit, parts = self.split(node)
            number = self.number[unit]
            yield slot, number
            waiting += [(self.first_slot[number] + s, part) for s, part in enumerate(parts)]

    def kinds_like(self, tree: Meaning) -> list[int]:
        """The kinds of names that a leaf may be of: its own, or those with the same relation around."""
        unit, parts = self.split(tree)
        if unit in self.number and not parts:
            return [self.kinds[self.number[unit]]]
        if not isinstance(tree, str) and (len(tree) != 2 or not isinstance(tree[1], str)):
            return []
        return self._kinds_around.get(None if isinstance(tree, str) else tree[0], [])

    @cached_property
    def _kinds_around(self) -> dict[str | None, list[int]]:
        """From the relation around names, None for bare ones, to their kinds."""
        found: dict[str | None, list[int]] = defaultdict(list)
        for kind, units in sorted(self.members.items()):
            tree = self.units[units[0]].tree
            found[None if isinstance(tree, str) else tree[0]].append(kind)
        return found

    def spelling(self, kind: int) -> Callable[[Sequence[str]], Meaning | None]:
        """How names of a kind are written: from words to a tree, None for words that make no name."""
        trees = [self.units[unit].tree for unit in self.members[kind]]
        wrapper = trees[0][0] if not isinstance(trees[0], str) else None
        constants = [tree if isinstance(tree, str) else tree[-1] for tree in trees]
        is_quoted = all(constant[0] in "'\"" for constant in constants)
        joint = "_" if any("_" in constant for constant in constants) else " "
        numbers = {constant.strip("'\"").isdecimal() for constant in constants}

        def written(words: Sequence[str]) -> Meaning | None:
            stripped = [word.strip("'\"") for word in words]
            text = joint.join(stripped)
            if not all(re.search(r"[^\W_]", word) and not re.search(r"[(),'\"]", word) for word in stripped):
                return None
            if text.isdecimal() not in numbers:
                return None
            constant = f"'{text}'" if is_quoted or " " in text else text
            return constant if wrapper is None else (wrapper, constant)

        return written

    def _add(self, unit: Unit) -> int:
        number = self.number.get(unit)
        if number is None:
            number = self.number[unit] = len(self.units)
            self.units.append(unit)
            self.first_slot.append(len(self.slots))
            self.slots += [(number, s) for s in range(unit.n_slots)]
            if unit.places:
                self.alike[unit.name, len(unit.places)].append(number)
        return number

    def _register(self, tree: Meaning) -> None:
        waiting = [(ROOT, tree)]
        while waiting:
            slot, node = waiting.pop()
            unit, parts = self.split(node)
            number = self._add(unit)
            self.pairs[slot, number] = None
            waiting += [(self.first_slot[number] + s, part) for s, part in enumerate(parts)]

    def _fill(self, slot: int, units: list[int]) -> None:
        """Let a slot take more units."""
        self.fillers[slot] += units
        self.n_fillings += len(units)
        if self.n_fillings > MOST_FILLINGS:
            raise ValueError(f"the meanings have slots with more than {MOST_FILLINGS} ways to fill them")

    def _add_constants(self, grammar: MeaningGrammar) -> None:
        """Make the other constants of a category units like those that were seen, once enough of it were."""
        named: dict[str, list[str]] = defaultdict(list)
        for productions in grammar.by_symbol.values():
            for category, pattern in productions:
                if isinstance(pattern, str):
                    named[category].append(str(pattern))
        places: dict[tuple[str, str | None], list[int]] = defaultdict(list)
        categories: dict[Meaning, set[str]] = {}
        n_places = 0
        for number, unit in enumerate(self.units):
            if unit.places is None:
                tree = unit.tree
                name, constant = (None, tree) if isinstance(tree, str) else (tree[0], tree[1])
                if constant not in categories:
                    categories[constant] = grammar.categories(constant)
                n_places += len(categories[constant])
                if n_places > MOST_FILLINGS:
                    raise ValueError(f"the names are in more than {MOST_FILLINGS} categories of the grammar")
                for category in categories[constant]:
                    places[category, name].append(number)
        slots_of: dict[int, list[int]] = defaultdict(list)
        for slot, units in self.fillers.items():
            for number in units:
                slots_of[number].append(slot)
        for (category, name), numbers in places.items():
            slots = dict.fromkeys(chain.from_iterable(slots_of[number] for number in numbers))
            for constant in named[category] if len(numbers) > 1 else ():
                unit = Unit(constant if name is None else format_meaning((name, constant)), None)
                if unit not in self.number:
                    number = self._add(unit)
                    for slot in slots:
                        self._fill(slot, [number])

    def _widen(self) -> None:
        """Let slots take what similar slots take: those that share two of their units, and half of the fewer."""
        taken = {slot: frozenset(units) for slot, units in self.fillers.items() if slot != ROOT}
        for slot, others in similar_slots(taken).items():
            more = frozenset().union(*[taken[other] for other in others])
            self._fill(slot, sorted(more - taken[slot]))

    def _follow(self, grammar: MeaningGrammar) -> None:
        """Let slots take what the grammar says."""
        symbols = [unit.symbol for unit in self.units]
        numbers: dict[Symbol, list[int]] = defaultdict(list)
        for number, symbol in enumerate(symbols):
            numbers[symbol].append(number)
        for slot, (unit, s) in enumerate(self.slots):
            taken = set(self.fillers[slot])
            arguments = [a for a, place in enumerate(self.units[unit].places or ()) if place == s]
            allowed = set.intersection(*[grammar.heads(symbols[unit], a) for a in arguments])
            more = {number for symbol in allowed & numbers.keys() for number in numbers[symbol]}
            self._fill(slot, sorted(more - taken))

    def _find_kinds(self) -> list[int]:
        """The kind of each unit; slots that took one name of a kind take all of them.

        Names of a kind stand in the same relation of `wrappers`, or none, and fill most often one of the same slots.
        """
        leaves = {number for number, unit in enumerate(self.units) if unit.places is None and unit.words}
        taken = {slot: frozenset(units) & leaves for slot, units in self.fillers.items()}
        group = {slot: min([slot, *others]) for slot, others in similar_slots(taken).items()}
        for slot in sorted(group):
            group[slot] = group[group[slot]]
        numbers: dict[Any, int] = {}
        kinds = list(range(len(self.units)))
        groups_of: dict[int, list[int]] = defaultdict(list)
        for slot in sorted(taken):
            for leaf in taken[slot]:
                groups_of[leaf].append(group[slot])
        for leaf in sorted(leaves):
            groups = Counter(groups_of[leaf])
            tree = self.units[leaf].tree
            described = tree[0] if not isinstance(tree, str) else None, groups.most_common(1)[0][0]
            kinds[leaf] = len(self.units) + numbers.setdefault(described, len(numbers))
            self.members[kinds[leaf]].append(leaf)
        for slot, units in self.fillers.items():
            present = set(units)
            for kind in sorted({kinds[unit] for unit in present & leaves}):
                self._fill(slot, [unit for unit in self.members[kind] if unit not in present])
        return kinds


def similar_slots(taken: dict[int, frozenset[int]]) -> dict[int, list[int]]:
    """For each slot those that share two of its units, and half of the fewer."""
    slots_of: dict[int, list[int]] = defaultdict(list)
    for slot, units in taken.items():
        for unit in units if len(units) > 1 else ():
            slots_of[unit].append(slot)
    if sum(len(slots) ** 2 for slots in slots_of.values()) > MOST_PAIRS:
        raise ValueError(f"the meanings have more than {MOST_PAIRS} pairs of slots that take the same unit")
    found = {}
    for slot, units in taken.items():
        shared = Counter(chain.from_iterable(slots_of[unit] for unit in units if len(units) > 1))
        found[slot] = [o for o, n in shared.items() if n >= 2 and 2 * n >= min(len(units), len(taken[o]))]
    return found


def wrappers(trees: Iterable[Meaning]) -> set[str]:
    """Relations that are part of a name, as ``stateid('texas')``.

    Those of one argument, always a constant, that are no whole meaning and most of whose constants have no other place.
    """
    trees = list(trees)
    constants: dict[str, set[str]] = defaultdict(set)
    places: dict[str, set[Any]] = defaultdict(set)
    refused = {tree[0] for tree in trees if not isinstance(tree, str)}
    waiting = trees[:]
    while waiting:
        node = waiting.pop()
        if isinstance(node, str):
            continue
        if len(node) != 2 or not isinstance(node[1], str):
            refused.add(node[0])
        for k, part in enumerate(node[1:]):
            if isinstance(part, str):
                constants[node[0]].add(part)
                places[part].add((symbol_of(node), k))
        waiting += node[1:]
    return {
        name
        for name, of_name in constants.items()
        if name not in refused and 2 * sum(len(places[c]) == 1 for c in of_name) > len(of_name)
    }
