"""Units of a meaning language, found in meanings: relations with slots for their arguments, and leaves without any.

Some arguments select what the others may be, as the key in ``tag('cuisine','greek')``: these belong to their relation.
They are found by description length, see `selectors`. Terms of constants that stand nearly always together, as
``get(all(recipe),type)``, are leaves as well, see `fixed_terms`. Constants may name their type, as ``boston:city``: see
`type_splits`.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain, combinations
from math import lgamma, log
from typing import Any, NamedTuple

from structsvm.structures.meanings import Meaning, MeaningGrammar, Symbol, format_meaning, parse_meaning, symbol_of

# The slot of whole meanings.
ROOT = -1
# Ways to fill a slot, of all slots; and pairs of slots that take the same unit: what is quadratic in the meanings.
MOST_FILLINGS, MOST_PAIRS = 2_000_000, 50_000_000
# Share of constants among the values of an argument that may belong to its relation; and the number of meanings from
# which on an argument that is the same constant in all of them does.
CONSTANT, FEWEST_ROWS = 0.9, 20
# Share of pairs of arguments that stand in the rarer order, from which on the order is free.
DISAGREEING = 0.02
# A term is one leaf if it holds this share of all occurrences of one of its parts, and is in so many meanings.
TOGETHER, FEWEST_TERMS = 0.9, 5
# Marks within a constant, more than the joints of words ``_`` and ``-``. One with more of them than that names no type.
WITHIN, MOST_MARKS = re.compile(r"(?<=[^\W_])[_-]*[^\w\s'\"-](?:[^\w\s'\"]|_)*(?=[^\W_])"), 8
# Marks at the ends of a constant, and marks that no type may have.
AT_BEGIN, AT_END, OF_TERMS = re.compile(r"^\W*"), re.compile(r"\W*$"), re.compile(r"[\s(),'\"]")
# How readily a code expects new symbols.
NOVELTY = 0.1, 1.0, 10.0, 100.0, 1000.0


class Unit(NamedTuple):
    """The label of a node of a hybrid tree.

    `name` is a relation, or the text of a leaf; `places` has the slot of each argument, an int, or the constant that it
    always is: equal arguments share a slot. A leaf has None there, or nothing if it is a relation without arguments.
    """

    name: str
    places: tuple[Any, ...] | None

    @property
    def n_slots(self) -> int:
        return len({place for place in self.places or () if isinstance(place, int)})

    @property
    def tree(self) -> Meaning:
        """The tree of a leaf."""
        return parse_meaning(self.name) if self.places is None else (self.name,)

    @property
    def symbol(self) -> Symbol:
        return symbol_of(self.tree) if self.places is None else Symbol(self.name, len(self.places))

    @property
    def pattern(self) -> str:
        """Its text, with `_1`, `_2` ... for its slots."""
        if not self.places:
            return format_meaning(self.tree)
        return format_meaning((self.name, *[f"_{s + 1}" if isinstance(s, int) else s for s in self.places]))

    @property
    def label(self) -> str:
        """Its name; with constants that belong to it, its pattern."""
        return self.name if all(isinstance(place, int) for place in self.places or ()) else self.pattern

    @property
    def words(self) -> list[str]:
        """The words that the constant of a leaf is written with; none for a term that ends with another relation."""
        return words_of(constant_of(self.tree))


def constant_of(tree: Meaning) -> str:
    """The constant of a leaf; "" for a term that ends with another relation."""
    constant = tree if isinstance(tree, str) else tree[-1]
    return constant if isinstance(constant, str) else ""


def words_of(text: str) -> list[str]:
    """Runs of letters and digits in a text, case folded."""
    return re.findall(r"[^\W_]+", text.casefold())


# The type of a name: the texts before and behind it in a constant, one of which has letters.
Type = tuple[str, str]


def type_splits(constant: str) -> list[tuple[str, str, str]]:
    """Ways to part a constant into a text before a name, the name, and a text behind it; the longest name first.

    One of the texts, up to a mark or from one on, may be the name's type; the other one has no letters. The name has
    the quotation marks of the constant.

    Examples
    --------
    >>> from structsvm.structures.meaning_units import type_splits
    >>> type_splits("oslo:city"), type_splits("'a:x'"), type_splits("oslo")
    ([('', 'oslo', ':city'), ('oslo:', 'city', '')], [('', "'a'", ':x'), ('a:', "'x'", '')], [])
    """
    quote = constant[0] if constant[0] in "'\"" else ""
    text = constant[1:-1] if quote else constant
    marks = [*WITHIN.finditer(text)]
    if not marks or len(marks) > MOST_MARKS:
        return []
    begin, end = (len(own[0]) if own else 0 for own in (AT_BEGIN.search(text), AT_END.search(text)))
    places = [(begin, mark.start()) for mark in marks] + [(mark.end(), len(text) - end) for mark in marks]
    found = [(text[:i], f"{quote}{text[i:j]}{quote}", text[j:]) for i, j in places]
    found = [
        (before, name, behind)
        for before, name, behind in found
        if words_of(name) and any(map(str.isalpha, before + behind)) and not OF_TERMS.search(before + behind)
    ]
    return sorted(found, key=lambda parts: -len(parts[1]))


class MeaningUnits:
    """Units and their slots, numbered, and which unit may fill which slot.

    Parameters
    ----------
    trees : iterable of meanings
    grammar : MeaningGrammar, optional
        Its constants are units, too, and its slots take all that they may.
    opened : iterable of str, optional
        Leaves that are names of one kind however often they were met, as ``tag('name',_)``: see `around_text`.
    terms : iterable of str, optional
        Terms of constants that are one leaf: see `fixed_terms`.
    typed : iterable of pairs of str, optional
        The types that constants name, as texts before and behind names: names of different types are of different
        kinds.

    Attributes
    ----------
    units : list of Unit
    fixed : list of str
        The terms, sorted.
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

    def __init__(
        self,
        trees: Iterable[Meaning],
        grammar: MeaningGrammar | None = None,
        opened: Iterable[str] = (),
        terms: Iterable[str] = (),
        typed: Iterable[Type] = (),
    ) -> None:
        trees = list(dict.fromkeys(trees))
        self.typed = frozenset(typed)
        self._parted: dict[str, tuple[str, str, str]] = {}
        self.opened = frozenset(opened)
        self.fixed = sorted(terms)
        self.terms = frozenset(map(parse_meaning, self.fixed))
        self.names = wrappers(trees)
        self.selectors = selectors(trees, self.names)
        self.lists = lists(trees)
        self.units: list[Unit] = []
        self.number: dict[Unit, int] = {}
        self.slots: list[tuple[int, int]] = []
        self.first_slot: list[int] = []
        self.alike: dict[tuple[str, int], list[int]] = defaultdict(list)
        self.pairs: dict[tuple[int, int], None] = {}
        self.n_met: Counter[int] = Counter()
        for tree in trees:
            self._register(tree)
        self.fillers: dict[int, list[int]] = defaultdict(list)
        self.n_fillings = 0
        for slot, unit in self.pairs:
            self._fill(slot, [unit])
        if grammar is not None:
            self._add_constants(grammar)
        self._widen()
        self._join_lists()
        if grammar is not None:
            self._follow(grammar)
            self._join_lists()
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
        if tree in self.terms or is_name(tree, self.names):
            return Unit(format_meaning(tree), None), []
        is_fixed = self._are_fixed(tree)
        if self._selects(tree, is_fixed):
            return Unit(format_meaning(tree), None), []
        slots: dict[Meaning, int] = {}
        places = tuple(
            [part if own else slots.setdefault(part, len(slots)) for part, own in zip(tree[1:], is_fixed, strict=True)]
        )
        return Unit(tree[0], places), list(slots)

    def _are_fixed(self, tree: Meaning) -> list[bool]:
        """For each argument of a relation, whether it is a constant that belongs to it."""
        fixed = self.selectors.get(symbol_of(tree), ())
        return [k in fixed and is_constant(part, self.names) for k, part in enumerate(tree[1:])]

    def _selects(self, tree: Meaning, is_fixed: Sequence[bool]) -> bool:
        """Whether all arguments but the last, a constant, belong to their relation: the tree is a leaf."""
        return symbol_of(tree) in self.selectors and isinstance(tree[-1], str) and all(is_fixed[:-1])

    def splits(self, tree: Meaning) -> list[tuple[int, list[Meaning]]]:
        """The ids of all units that may be at the root of a tree, each with what fills its slots.

        Beside the unit of `split`, those that do not ask for its equal arguments to be equal. A relation of constants
        that is no known leaf has the relation's units: their slots may take constants from other places.
        """
        unit, parts = self.split(tree)
        if not unit.places and (isinstance(tree, str) or unit in self.number):
            return [(self.number[unit], parts)] if unit in self.number else []
        found = []
        for number in self.alike.get((tree[0], len(tree) - 1), ()):
            places = self.units[number].places or ()
            filled = {s: part for s, part in zip(places, tree[1:], strict=True) if isinstance(s, int)}
            if all(filled.get(place, place) == part for place, part in zip(places, tree[1:], strict=True)):
                found.append((number, [filled[s] for s in sorted(filled)]))
        return found

    def join(self, unit: int, parts: Sequence[Meaning]) -> Meaning:
        """The inverse of `split`: the tree of a unit whose slots are filled."""
        name, places = self.units[unit]
        return self._leaves[unit] if not places else (name, *[parts[s] if isinstance(s, int) else s for s in places])

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
        """The kinds of names that a leaf may be of: its own, or those with the same relation around and of its type."""
        unit, parts = self.split(tree)
        if unit in self.number and not parts:
            return [self.kinds[self.number[unit]]]
        return [] if parts else self._kinds_around.get(self._frame(tree), [])

    @cached_property
    def _kinds_around(self) -> dict[Any, list[int]]:
        """From what stands around names, see `_frame`, to their kinds."""
        found: dict[Any, list[int]] = defaultdict(list)
        for kind, units in sorted(self.members.items()):
            found[self._frame(self.units[units[0]].tree)].append(kind)
        return found

    def parted(self, tree: Meaning) -> tuple[str, str, str]:
        """The type before the name of a leaf, the name, and the type behind it; nothing where a term ends the leaf."""
        constant = constant_of(tree)
        if not constant:
            return "", "", ""
        if not self.typed:
            return "", constant, ""
        if constant not in self._parted:
            ways = (way for way in type_splits(constant) if (way[0], way[2]) in self.typed)
            self._parted[constant] = next(ways, ("", constant, ""))
        return self._parted[constant]

    def words(self, unit: int) -> list[str]:
        """The words that the name of a leaf is written with."""
        return words_of(self.parted(self.units[unit].tree)[1])

    def ways_to_write(self, unit: int) -> list[list[str]]:
        """The words of a unit without slots: those of its name, and with them those of its type; none without words."""
        if self.units[unit].n_slots:
            return []
        return [*filter(None, (self.words(unit), self.units[unit].words if self.typed else []))]

    def tokens(self, unit: int) -> list[str]:
        """The words that the name of a leaf is written with, and with its type, if it has one, as one token."""
        tree = self.units[unit].tree
        before, _, behind = self.parted(tree)
        whole = [constant_of(tree).strip("'\"").casefold()] if before or behind else []
        return [*self.words(unit), *whole]

    def _frame(self, tree: Meaning) -> tuple[tuple[str, ...], str, str]:
        """The terms around the name of a leaf, and its type."""
        before, _, behind = self.parted(tree)
        return around(tree), before, behind

    def described(self) -> dict[str, list[str]]:
        """From texts of units to names: relations with `_1`, `_2` ... for their slots, names of a kind as one unit."""
        found: dict[str, list[str]] = {}
        for unit, kind in zip(self.units, self.kinds, strict=True):
            if kind < len(self.units):
                found.setdefault(unit.pattern, [])
                continue
            before = around(unit.tree)
            first = self.units[self.members[kind][0]].tree
            text = around_text(before) if before else f"names like {first}"
            found.setdefault(text, []).append(unit.tree if isinstance(unit.tree, str) else unit.tree[-1])
        return found

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
            self.n_met[number] += 1
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
        places: dict[tuple[str, tuple[str, ...]], list[int]] = defaultdict(list)
        categories: dict[Meaning, set[str]] = {}
        n_places = 0
        for number, unit in enumerate(self.units):
            if unit.places is None:
                tree = unit.tree
                name, constant = around(tree), tree if isinstance(tree, str) else tree[-1]
                if not isinstance(constant, str):
                    continue
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
                unit = Unit(format_meaning((*name, constant)) if name else constant, None)
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

    def is_list(self, unit: int) -> bool:
        """Whether a unit's arguments stand in any order, each in a slot of its own."""
        name, places = self.units[unit]
        return name in self.lists and len(places or ()) > 1 and places == (*range(len(places or ())),)

    def _join_lists(self) -> None:
        """Let all slots of a list take what one of them takes."""
        slots_of: dict[str, list[int]] = defaultdict(list)
        for number, unit in enumerate(self.units):
            if self.is_list(number):
                slots_of[unit.name] += self.slots_of(number)
        for slots in slots_of.values():
            taken = dict.fromkeys(chain.from_iterable(self.fillers[slot] for slot in slots))
            for slot in slots:
                self._fill(slot, sorted(taken.keys() - {*self.fillers[slot]}))

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

        Names of a kind are of one type, stand in the same relation of `wrappers`, or none, and fill most often one of
        the same slots; or arguments that belong to their relation select them, and new ones keep coming or they are
        `opened`. The terms are no names, unless they are so selected.
        """
        leaves = {number for number, unit in enumerate(self.units) if unit.places is None and unit.words}
        terms = {k: self.units[k].tree for k in leaves if self.units[k].tree in self.terms}
        leaves -= {k for k, term in terms.items() if not self._selects(term, self._are_fixed(term))}
        taken = {slot: frozenset(units) & leaves for slot, units in self.fillers.items()}
        group = {slot: min([slot, *others]) for slot, others in similar_slots(taken).items()}
        for slot in sorted(group):
            group[slot] = group[group[slot]]
        alike: dict[Any, list[int]] = defaultdict(list)
        kinds = list(range(len(self.units)))
        groups_of: dict[int, list[int]] = defaultdict(list)
        for slot in sorted(taken):
            for leaf in taken[slot]:
                groups_of[leaf].append(group[slot])
        for leaf in sorted(leaves):
            (before, *of_type), slots = self._frame(self.units[leaf].tree), Counter(groups_of[leaf])
            alike[before, None if len(before) > 1 else slots.most_common(1)[0][0], *of_type].append(leaf)
        for (before, *_), leaves_alike in alike.items():
            if len(before) < 2 or around_text(before) in self.opened or self._is_open(leaves_alike):
                kind = len(self.units) + len(self.members)
                self.members[kind] = leaves_alike
                for leaf in leaves_alike:
                    kinds[leaf] = kind
        of_leaf = {leaf: k for k, leaves_alike in enumerate(alike.values()) for leaf in leaves_alike}
        of_group = [*alike.values()]
        for slot, units in self.fillers.items():
            present = set(units)
            for k in sorted({of_leaf[unit] for unit in present & leaves}):
                self._fill(slot, [unit for unit in of_group[k] if unit not in present])
        return kinds

    def _is_open(self, leaves: Sequence[int]) -> bool:
        """Whether half of the leaves, or more, were met once: others will come."""
        return 2 * sum(self.n_met[leaf] <= 1 for leaf in leaves) >= len(leaves)


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


def lists(trees: Iterable[Meaning]) -> set[str]:
    """Relations whose arguments may stand in any order, as ``and``: found with several numbers of them, all relations.

    Meanings disagree about the order: of pairs of two relations among the arguments, `DISAGREEING` stand as fewer do;
    or there is no such pair.
    """
    sizes: dict[str, set[int]] = defaultdict(set)
    pairs: dict[str, Counter[tuple[str, str]]] = defaultdict(Counter)
    refused: set[str] = set()
    waiting = list(trees)
    while waiting:
        node = waiting.pop()
        if isinstance(node, str):
            continue
        sizes[node[0]].add(len(node))
        if any(isinstance(part, str) for part in node[1:]):
            refused.add(node[0])
        else:
            pairs[node[0]].update(combinations([part[0] for part in node[1:]], 2))
        waiting += node[1:]
    found = set()
    for name, of_name in pairs.items():
        different = {pair: n for pair, n in of_name.items() if pair[0] != pair[1]}
        fewer = sum(min(n, different.get(pair[::-1], 0)) for pair, n in different.items()) / 2
        if len(sizes[name]) > 1 and name not in refused and fewer >= DISAGREEING * sum(different.values()):
            found.add(name)
    return found


def is_constant(tree: Meaning, names: Container[str]) -> bool:
    """Whether a tree is a constant, or a name with its relation of `names` around it."""
    return isinstance(tree, str) or is_name(tree, names)


def is_name(tree: Meaning, names: Container[str]) -> bool:
    """Whether a tree is a relation of `names` around a constant."""
    return not isinstance(tree, str) and tree[0] in names and len(tree) == 2 and isinstance(tree[1], str)


def fixed_terms(trees: Iterable[Meaning], before: MeaningUnits | None = None) -> set[str]:
    """Terms of constants that are one leaf, as ``get(all(recipe),type)``: their parts say nothing by themselves.

    A term's parts are constants or such terms; no quotations or numbers, nor names in their relation (see `wrappers`),
    as new ones may come. It is in `FEWEST_TERMS` meanings, and `TOGETHER` of what one of its parts is in are this term.

    With units from `before`, their terms and those of the same relations, where these were met in terms alone: a new
    ``go(to,away)`` is a leaf beside the leaf ``go(to,home)``. A relation with slots would compete with that leaf.
    """
    trees = list(dict.fromkeys(trees))
    names = wrappers(trees)
    n_met = Counter(chain.from_iterable(map(subtrees, trees)))
    found: set[Meaning] = set() if before is None else {*before.terms}
    relations = {term[0] for term in found} - {name for name, _ in (before.alike if before else ())}
    for term in sorted(n_met, key=depth):
        parts = () if isinstance(term, str) or is_name(term, names) else term[1:]
        if not parts or not all(part in found or (isinstance(part, str) and is_plain(part)) for part in parts):
            continue
        is_frequent = n_met[term] >= FEWEST_TERMS and any(n_met[term] >= TOGETHER * n_met[part] for part in parts)
        if is_frequent if before is None else term[0] in relations:
            found.add(term)
    return {*map(format_meaning, found)}


def subtrees(tree: Meaning) -> set[Meaning]:
    """A tree and all below it, each once."""
    found, waiting = set(), [tree]
    while waiting:
        node = waiting.pop()
        if node not in found:
            found.add(node)
            waiting += () if isinstance(node, str) else node[1:]
    return found


def is_plain(constant: str) -> bool:
    """Whether a constant is no quotation and no number, as ``-1.5``."""
    return constant[0] not in "'\"" and not constant.lstrip("+-.")[:1].isdigit()


def depth(tree: Meaning) -> int:
    """The number of relations above the deepest constant of a tree."""
    return 0 if isinstance(tree, str) else 1 + max(map(depth, tree[1:]), default=0)


def around(tree: Meaning) -> tuple[str, ...]:
    """The relation of a name, with the arguments before its constant; nothing for a bare one."""
    return () if isinstance(tree, str) else tree[:-1]


def around_text(before: tuple[str, ...]) -> str:
    """Text of what stands around names: ``tag('name',_)``."""
    return format_meaning((*before, "_"))


def selectors(trees: Iterable[Meaning], names: Container[str] = ()) -> dict[Symbol, frozenset[int]]:
    """From relations to the arguments, by index, that belong to them: constants that select what the others may be.

    Constants are names, too, with the relations `names` around them. An argument that is the same constant in all of
    `FEWEST_ROWS` meanings belongs to its relation, as well.
    """
    rows: dict[Symbol, list[list[Any]]] = defaultdict(list)
    waiting = list(trees)
    while waiting:
        node = waiting.pop()
        if not isinstance(node, str):
            rows[symbol_of(node)].append([described(node, k, names) for k in range(1, len(node))])
            waiting += node[1:]
    new = log(1 + len({part for of_symbol in rows.values() for row in of_symbol for part in row}))
    found = {symbol: selecting([*zip(*of_symbol, strict=True)], new) for symbol, of_symbol in rows.items()}
    return {symbol: columns for symbol, columns in found.items() if columns}


def described(node: Meaning, k: int, names: Container[str]) -> Any:
    """The k-th argument as `selectors` counts it: a constant's text, another relation, or equal to an earlier one."""
    part, first = node[k], node.index(node[k], 1)
    if first < k:
        return "=", first
    return format_meaning(part) if is_constant(part, names) else (part[0], None)


def selecting(columns: Sequence[Sequence[Any]], new: float) -> frozenset[int]:
    """The columns, of constants, that shorten the description of the others: one by one the best, until none does.

    A column's choice costs the log of the number of rows for each of its values; `new` is the cost of a new symbol.
    """
    open_ones, n_rows = [*range(len(columns))], len(columns[0]) if columns else 0
    constants = {k for k in open_ones if CONSTANT * n_rows <= sum(isinstance(part, str) for part in columns[k])}
    single = {k for k in constants if len({*columns[k]}) == 1}
    chosen: list[int] = []
    values: list[Any] = [()] * n_rows
    while True:
        gains = {}
        for k in sorted(constants - single - {*chosen}):
            selected = [(*value, part) for value, part in zip(values, columns[k], strict=True)]
            others = [columns[j] for j in open_ones if j != k]
            gains[k] = sum(bits(other, values, new) - bits(other, selected, new) for other in others)
            gains[k] -= len({*columns[k]}) * log(n_rows)
        best = max(gains, key=lambda k: (gains[k], -k), default=-1)
        if best < 0 or gains[best] <= 0.0:
            break
        values = [(*value, part) for value, part in zip(values, columns[best], strict=True)]
        open_ones.remove(best)
        chosen.append(best)
    is_whole = len(single) == len(columns) or n_rows < FEWEST_ROWS
    return frozenset(chosen if is_whole else [*chosen, *single])


def bits(column: Sequence[Any], values: Sequence[Any], new: float) -> float:
    """Description length of a column given values, in nats: each value has a code of its own, learnt as it goes.

    After n symbols of a value the next one costs log(n + a) - log c if c of them are equal to it, and
    log(n + a) - log a + `new` if none is; a, of `NOVELTY`, is the best for the column.
    """
    counts: dict[Any, Counter[Any]] = defaultdict(Counter)
    for value, part in zip(values, column, strict=True):
        counts[value][part] += 1
    sizes = [(of_value.total(), len(of_value)) for of_value in counts.values()]
    repeated = sum(lgamma(n) for of_value in counts.values() for n in of_value.values())
    apart = min(sum(lgamma(n + a) - lgamma(a) - d * log(a) for n, d in sizes) for a in NOVELTY)
    return apart - repeated + new * sum(d for _, d in sizes)
