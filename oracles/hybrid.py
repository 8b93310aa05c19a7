"""Hybrid trees: a meaning is a tree of units, each of which covers words of the sentence (Lu and others 2008, Lu 2014).

A unit (a relation, a name) covers a stretch of words: its own words and, nested, those of its arguments in any order.
Some have no word. Which words say what is hidden: the score of a meaning is the log of the sum over all such
derivations.

As an oracle its outputs are derivations; what is known of a true one is its meaning, or a bag of meanings. The loss is

    the number of units that the true derivation does not have in that slot
    + the number of words of another unit than there / (n + 1),  n being the words of the sentence,

which decomposes over slots and words, and so can be added to their scores in the chart; or (`loss_name` "f1") one less
the F1 of what fills the slots, c right of m where the true derivation has N,

    1 - 2 c / (N + m)  +  the number of words of another unit than there / (2 N (n + 1)),

which is found by all numbers (m, c, words) that parts of the best derivations may have.
"""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from itertools import pairwise, product, takewhile
from math import lgamma
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from structsvm.features.word_codes import shape
from structsvm.oracles._hybrid import MOST_IN_ANY_ORDER, Chart, Forest, Kind, Layout, Order
from structsvm.oracles.meanings.lexicon import LONGEST_NAME, Copy, Lexicon, looks_in, plain
from structsvm.oracles.meanings.order import as_said
from structsvm.oracles.meanings.search import ALL, best_first, counted, ways_within
from structsvm.oracles.meanings.spelling import Spelling
from structsvm.oracles.meanings.words import as_written
from structsvm.protocol import Oracle, Rescaling
from structsvm.structures.meaning_units import ROOT, MeaningUnits, Unit
from structsvm.structures.meanings import MAX_DEPTH, Meaning, format_meaning, in_one_order

__all__ = ["Derivation", "HybridTrees", "Lexicon", "Parse", "Sentence"]

BEGIN, END, RARE = "\x02", "\x03", "\x04"
MARKS = str.maketrans({BEGIN: "the begin", END: "the end", RARE: "a rare word"})
# Kinds of items that say what fills a slot.
FILLED = int(Kind.ROOT), int(Kind.SLOT), int(Kind.NOTHING)
# Words that may be a new name: at most so many, or as many as known names have.
USUAL_COPY = 3
# Kinds of units, slots and attributes, whose weights are dense, and the words of names.
MOST_FEATURES = 1 << 28
# Kept of a search for the k best: partial derivations.
MOST_PARTIAL = 200_000
# Once the k best are found: a derivation worth less than this to the best of their derivations ends the search.
UNLIKELY = 0.01
# Bytes of forests that are kept, roughly.
KEPT = 2**25


class Derivation(NamedTuple):
    """A meaning and the words that say it.

    `nodes` are, in preorder, ``(unit's text, depth, words)``: the indices of the unit's own words.

    Examples
    --------
    >>> from structsvm.oracles.hybrid import Derivation
    >>> Derivation(("stop", ()), 0.5, [("stop()", 0, [1])]).nodes
    [('stop()', 0, [1])]
    """

    meaning: Meaning
    score: float
    nodes: list[tuple[str, int, list[int]]]


class Sentence(NamedTuple):
    """Words, and those of them that are treated as unknown.

    Examples
    --------
    >>> from structsvm.oracles.hybrid import Sentence
    >>> Sentence(["stop", "zoe"], frozenset({"zoe"})).words
    ['stop', 'zoe']
    """

    words: Sequence[str]
    unknown: Any = frozenset()


class Parse(NamedTuple):
    """A derivation as an output of the oracle.

    A unit is its number, or the tree of a name that is copied. `fillings` are pairs of a slot and the unit that fills
    it (slots that share features are one), `owners` the unit that each word belongs to, `features` the joint feature:
    its indices and values.

    Examples
    --------
    >>> import numpy as np
    >>> from structsvm.oracles.hybrid import HybridTrees, Lexicon
    >>> from structsvm.structures.meaning_units import MeaningUnits
    >>> units = MeaningUnits([("f", "a")])
    >>> trees = HybridTrees(units, Lexicon(units, {}, [1]), ["w:x"], [])
    >>> trees.argmax(["x"], np.zeros(trees.n_features)).fillings
    [(-1, 0), (0, 1)]
    """

    meaning: Meaning
    score: float
    nodes: list[tuple[str, int, list[int]]]
    fillings: list[tuple[int, Any]]
    owners: list[Any]
    features: tuple[NDArray[np.int64], NDArray[np.float64]]


class HybridTrees(Oracle):
    """Sums and best derivations of meanings for sentences.

    A sentence is a list of words. Features: of a unit with its words, and these with the words beside them; with the
    words at and beyond the ends of its span; that it has no word; of a slot with the words at and beyond the ends of
    what fills it, with the unit that does (names by kind), and that it comes before or after another; a name's words
    have features of the name and of its kind.

    Parameters
    ----------
    units : MeaningUnits
    lexicon : Lexicon
    attributes, borders : list of str
        Names of the attributes of words and of the places between words.
    depth : int, default=4
        Maximum nesting of units without words.
    inside : bool, default=False
        Whether a unit has features of all words of its span, including those of its arguments, and of their number.
    loss : {"hamming", "f1"}, default="hamming"
        See the top of the module.
    columns : dict, optional
        From the ids of names, whose kinds are others, to the attributes of words that they have features of, ascending;
        by default all, which are as many as the square of the sentences.
    shared : bool, default=True
        Whether the slots of relations of one name with several numbers of arguments (``and``) share their features. The
        arguments of those of `MeaningUnits.lists` then stand in any order: two orders are one meaning, whose
        derivations fill the slots from left to right.
    by_name : bool, default=False
        Whether relations to which constants belong share by name as well, as in model files without `has_own_slots`.
    spelt : dict, optional
        How often training's sentences spell leaves out, see `spellings`: kept for later sentences.

    Attributes
    ----------
    has_own_slots : bool
        Whether slots have rows of their own that would be shared `by_name`.

    Notes
    -----
    An input is a list of words or a `Sentence`, an output a `Parse`, or None if no tree covers the sentence.
    Inference is exact, except for bags with priors (`complete`): priors are not part of the joint feature.

    Examples
    --------
    >>> import numpy as np
    >>> from structsvm.oracles.hybrid import HybridTrees, Lexicon
    >>> from structsvm.structures.meaning_units import MeaningUnits
    >>> from structsvm.structures.meanings import parse_meaning
    >>> units = MeaningUnits([parse_meaning("f(a)"), parse_meaning("f(b)")])
    >>> trees = HybridTrees(units, Lexicon(units, {}, range(3)), ["w:x"], [])
    >>> trees.kbest(["x"], np.zeros(trees.n_features), 1)
    [(Derivation(meaning=('f', 'a'), score=0.0, nodes=[('f', 0, [0]), ('a', 1, [])]), 0.5)]
    """

    def __init__(
        self,
        units: MeaningUnits,
        lexicon: Lexicon,
        attributes: Sequence[str],
        borders: Sequence[str],
        depth: int = 4,
        *,
        inside: bool = False,
        loss: str = "hamming",
        columns: Mapping[int, Sequence[int]] | None = None,
        shared: bool = True,
        by_name: bool = False,
        spelt: Mapping[str, tuple[float, float]] | None = None,
    ) -> None:
        self.spelt = dict(spelt or {})
        self.units, self.lexicon, self.depth, self.loss_name, self.may_share = units, lexicon, depth, loss, shared
        self.attributes = {name: k for k, name in enumerate(attributes)}
        self.borders = {name: k for k, name in enumerate(borders)}
        n_present = sum(name.startswith("w:") for name in attributes)
        if any(not name.startswith("w:") for name in attributes[:n_present]):
            raise ValueError("attributes of single words must come first")
        rows, names = rows_of_kinds(units)
        of_names = None if columns is None else flat([columns.get(u, ()) for u in names])
        own, of_names_alone = (rows_of_slots(units, by_name=by) for by in (False, True))
        self.by_name = by_name and own != of_names_alone
        self.has_own_slots = shared and not by_name and own != of_names_alone
        self.slot_rows = [*range(len(units.slots))] if not shared else of_names_alone if by_name else own
        self.layout = Layout(rows, len({*self.slot_rows}), len(attributes), n_present, len(borders), inside, of_names)
        self.n_features = self.layout.n_features
        if self.layout.n_features > MOST_FEATURES:
            raise ValueError(
                f"{self.layout.n_features} features are more than {MOST_FEATURES}: too many units or words"
            )
        self._charts = threading.local()
        self.shapes = any(name.startswith("h:") for name in attributes)
        self.arity = np.array([unit.n_slots for unit in units.units], dtype=np.int64)
        self._with_slots = np.flatnonzero(self.arity)
        self.lists = units.lists if shared else set[str]()
        self._is_list = np.array([shared and self._has_one_row(u) for u in range(len(units.units))], dtype=bool)
        # Relations with more arguments than have any order in a chart: these follow the words.
        self._is_long = self.arity > MOST_IN_ANY_ORDER
        self._kinds = np.array(units.kinds, dtype=np.int64)
        self._row: list[int] = rows.tolist()
        self._inner, self._leaves = self._fillings()
        # Kinds that words may be: a name of each, and how its names are written.
        self._examples = {
            kind: units.members.get(kind, [kind])[0] for kind in {*lexicon.new, *lexicon.kinds_of_phrases}
        }
        self._written = {kind: Spelling(units, kind, lexicon.readings.get(kind)) for kind in lexicon.new}
        self._longest_copy = {
            kind: min(max(USUAL_COPY, spelling.n_words), LONGEST_NAME) for kind, spelling in self._written.items()
        }
        self.bytes_of_forest = 1000 + 20 * len(self._inner)
        self._most_kept = max(KEPT // self.bytes_of_forest, 16)
        self._free: dict[frozenset[int], Forest] = {}

    def check_arguments(self) -> None:
        """ValueError for a relation of more arguments than words say in any order, unless it is a list."""
        for number in np.flatnonzero(self._is_long & ~self._is_list).tolist():
            name, n = self.units.units[number].symbol
            raise ValueError(
                f"{name} has {n} arguments, more than {MOST_IN_ANY_ORDER}: more are served where they stand in any "
                "order, as meanings with several numbers of them show, not where each has a place of its own"
            )

    def _has_one_row(self, unit: int) -> bool:
        """Whether a unit is a list whose slots share their features, as they must where arguments change places."""
        return self.units.is_list(unit) and len({self.slot_rows[slot] for slot in self.units.slots_of(unit)}) == 1

    def _fillings(self) -> tuple[NDArray[np.int64], dict[int, NDArray[np.int64]]]:
        """Rows ``(slot, unit, pair)`` of all that may fill a slot: of units with slots, and of each leaf."""
        inner: list[Any] = []
        leaves: dict[int, list[Any]] = defaultdict(list)
        for slot in (ROOT, *range(len(self.units.slots))):
            for u in self.units.fillers.get(slot, ()):
                (leaves[u] if self.arity[u] == 0 else inner).append((slot, u, self.pair(slot, u)))
        return rows_of(inner), {u: rows_of(rows) for u, rows in leaves.items()}

    @cached_property
    def columns(self) -> dict[int, list[int]]:
        """From names to the attributes that they have features of."""
        ptr, columns = self.layout.name_ptr.tolist(), self.layout.name_columns.tolist()
        return {u: columns[a:b] for u, (a, b) in zip(rows_of_kinds(self.units)[1], pairwise(ptr), strict=True)}

    def columns_in(self, units: MeaningUnits, known: Mapping[str, int]) -> dict[int, set[int]]:
        """`columns` for names of other units, with their ids and `known` attributes; all for what was no name here."""
        names = [*self.attributes]
        found = {}
        for number, unit in enumerate(self.units.units):
            other = units.number.get(unit, -1)
            if other >= 0 and units.kinds[other] != other:
                of_name = [names[k] for k in self.columns[number]] if number in self.columns else names
                found[other] = {known[name] for name in of_name}
        return found

    @cached_property
    def _name_keys(self) -> NDArray[np.int64]:
        """Pairs of a name and an attribute that have a feature, as one number: ascending."""
        lay = self.layout
        name = np.repeat(np.arange(len(lay.name_ptr) - 1), np.diff(lay.name_ptr))
        return name * lay.n_attributes + lay.name_columns

    def word_features(self, units: ArrayLike, attributes: ArrayLike) -> NDArray[np.int64]:
        """The features of units or kinds, and attributes of their own words, both broadcast; -1 where there is none."""
        lay, keys = self.layout, self._name_keys
        row = lay.rows[np.asarray(units, dtype=np.int64)].astype(np.int64)
        key = (-1 - row) * lay.n_attributes + np.asarray(attributes, dtype=np.int64)
        place = np.searchsorted(keys, key)
        of_name = np.where(np.append(keys, -1)[place] == key, lay.name + place, -1)
        return np.where(row < 0, of_name, lay.word + row * lay.n_attributes + np.asarray(attributes, dtype=np.int64))

    def word_weights(self, unit: int, w: NDArray[np.float64]) -> NDArray[np.float64]:
        """Weight of each attribute of words for a unit or kind, without those of its kind."""
        features = self.word_features(unit, np.arange(self.layout.n_attributes))
        return np.where(features < 0, 0.0, w[features])

    @property
    def inside(self) -> bool:
        return self.layout.n_inside > 0

    @property
    def chart(self) -> Chart:
        """The chart for searches, of this thread."""
        return self._chart("searches")

    @property
    def sums(self) -> Chart:
        """The chart for sums, also in between, of this thread."""
        return self._chart("sums")

    def _chart(self, name: str) -> Chart:
        found = vars(self._charts).get(name)
        if found is None:
            found = vars(self._charts)[name] = Chart(self.layout, self.depth)
        return found

    def __reduce__(self) -> Any:
        options: Any = {"columns": self.columns, "shared": self.may_share, "by_name": self.by_name, "spelt": self.spelt}
        make = partial(HybridTrees, inside=self.inside, loss=self.loss_name, **options)
        return make, (self.units, self.lexicon, [*self.attributes], [*self.borders], self.depth)

    def with_spelt(self, spelt: Mapping[str, tuple[float, float]]) -> HybridTrees:
        """The same trees, charts included, with other counts of leaves that sentences spell out."""
        other = HybridTrees.__new__(type(self))
        vars(other).update(vars(self))
        other.spelt = dict(spelt)
        return other

    # ---- sentences and forests ------------------------------------------------------------------

    def encode(self, words: Sequence[str], unknown: Any = ()) -> tuple[NDArray[np.int32], ...]:
        """The attributes of words and of places: four arrays, as `Chart` takes them; of some words as if `unknown`."""
        of_words = encoded_words(words, self.attributes, self.lexicon, unknown, shapes=self.shapes)
        around = [BEGIN, *words, END]
        of_borders = [
            [self.borders[name] for name in border_attributes(*pair) if name in self.borders]
            for pair in pairwise(around)
        ]
        return *flat(of_words), *flat(of_borders)

    def pair(self, slot: int, unit: int) -> int:
        """The index of the feature of a slot and what fills it."""
        slot = slot if slot == ROOT else self.slot_rows[slot]
        return (slot + 1) * self.layout.n_rows + self._row[self.units.kinds[unit]]

    def copies(self, words: Sequence[str], unknown: Any = ()) -> list[Copy]:
        """The names of phrases that are not units, and those that stretches of words may be.

        Those that look like names, see `Lexicon`, known ones as well; and words which are not known, or are `unknown`,
        alone or with those beside.
        """
        listed = {copy[1:]: copy for copy in self.lexicon.new_in(words)}
        if not self.lexicon.new:
            return [*listed.values()]
        listed_at = self.lexicon.listed_at(words)
        of_look: dict[str, set[tuple[int, int]]] = defaultdict(set)
        not_known = self._unknown_spans(words, unknown, listed_at)
        for a, b, look in looks_in(words) if self.lexicon.looks else ():
            if listed_at.keys().isdisjoint(range(a, b)):
                of_look[look].add((a, b))
        spans: dict[tuple[int, int], list[int]] = defaultdict(list)
        for kind, longest in self._longest_copy.items():
            looks = self.lexicon.looks.get(kind, ("",))
            short = {(a, b) for a, b in not_known if "" in looks and b - a <= longest}
            own = {
                span for span in self._written[kind].typed_in(words, looks) if listed_at.keys().isdisjoint(range(*span))
            }
            for span in short.union(own, *[of_look.get(look, ()) for look in looks]):
                spans[span].append(kind)
        found = []
        for (a, b), kinds in sorted(spans.items()):
            for kind in kinds:
                tree = self._written[kind]([*map(as_written, words[a:b])])
                if tree is not None and self._may_be_copied(tree, kind, words[a:b], unknown):
                    found.append(Copy(tree, kind, a, b))
        return [*listed.values(), *(copy for copy in found if copy[1:] not in listed)]

    def _unknown_spans(self, words: Sequence[str], unknown: Any, listed_at: Container[int]) -> set[tuple[int, int]]:
        """Words which are not known, or are `unknown`: alone, those in a row, and with a word before or after them."""
        n = len(words)
        is_new = [
            t not in listed_at and (word in unknown or f"w:{word}" not in self.attributes)
            for t, word in enumerate(words)
        ]
        spans = set()
        for t in range(n):
            if is_new[t]:
                end = next((k for k in range(t, n) if not is_new[k]), n)
                spans |= {(t, t + 1), (t, end), (max(t - 1, 0), end), (t, min(end + 1, n))}
        return spans

    def _may_be_copied(self, tree: Meaning, kind: int, words: Sequence[str], unknown: Any) -> bool:
        """Whether a name is new, has `unknown` words, or is of a kind with looks and not known in another spelling."""
        leaf = self.units.number.get(Unit(format_meaning(tree), None))
        if kind not in self.lexicon.looks:
            return bool(unknown) or leaf is None
        known = self.lexicon.written.get(plain(words), ())
        return all(other == leaf for other in known if self.units.kinds[other] == kind)

    def hidden(self, copies: Iterable[Copy]) -> frozenset[int]:
        """Names of kinds with looks that are copied: nothing else says them."""
        units, looks = self.units, self.lexicon.looks
        leaves = {units.number.get(units.split(copy.tree)[0], -1): copy.kind for copy in copies if copy.kind in looks}
        return frozenset(leaf for leaf, kind in leaves.items() if leaf >= 0 and units.kinds[leaf] == kind)

    def free(self, leaves: Iterable[int], copies: Sequence[Copy] = ()) -> Forest:
        """The forest of all meanings with these leaves; the last nodes are the copies."""
        if copies:
            return self._forest(frozenset(leaves), copies)
        key = frozenset(leaves)
        forest = self._free.get(key)  # once: another thread may clear them
        if forest is None:
            forest = self._forest(key)
            if len(self._free) >= self._most_kept:
                self._free.clear()
            self._free[key] = forest
        return forest

    def _forest(self, leaves: frozenset[int], copies: Sequence[Copy] = ()) -> Forest:
        units = self.units
        n_units = len(self.arity)
        nodes = np.sort(np.concatenate([self._with_slots, np.fromiter(leaves, dtype=np.int64)]))
        parts = [self._inner, *(self._leaves[u] for u in sorted(leaves) if u in self._leaves)]
        for k, copy in enumerate(copies, start=n_units):
            rows = self._leaves[self._examples[copy.kind]].copy()
            rows[:, 1] = k
            parts.append(rows)
        filling = np.concatenate(parts)
        slot, unit, pairs = filling[np.argsort(filling[:, 0], kind="stable")].T
        n_roots = int(np.searchsorted(slot, ROOT, side="right"))
        fill = np.where(unit < n_units, np.searchsorted(nodes, unit), unit - n_units + len(nodes))
        own = np.array([copy.kind for copy in copies], dtype=np.int64)
        spans = np.full((len(nodes) + len(copies), 2), -1)
        spans[len(nodes) :] = np.array([(copy.begin, copy.end) for copy in copies]).reshape(-1, 2)
        return Forest.of_arrays(
            np.concatenate([nodes, own]),
            np.concatenate([self._kinds[nodes], own]),
            np.cumsum(np.concatenate([[0], self.arity[nodes], 0 * own])),
            self.slot_rows,
            np.searchsorted(slot[n_roots:], np.arange(len(units.slots) + 1)),
            fill[n_roots:],
            pairs[n_roots:],
            fill[:n_roots],
            pairs[:n_roots],
            spans,
            np.zeros(n_roots),
            np.concatenate([Order.IN_ORDER * (self._is_list | self._is_long)[nodes], 0 * own]),
        )

    def known(
        self,
        trees: Iterable[Meaning],
        copies: Sequence[Copy] = (),
        priors: dict[Meaning, float] | None = None,
        hidden: Container[int] = (),
        *,
        is_summed: bool = True,
    ) -> Forest:
        """The forest of some meanings, whose common parts are there once; KeyError if one has a unit that is not known.

        A name may be said by a copy, too; those of `hidden` by nothing else. `priors` are added to the scores of the
        meanings. Where m arguments of a list are equal, m! ways to fill its slots are one derivation: the meaning's
        prior is less by log m!, unless the forest is not `is_summed`.
        """
        units = self.units
        nodes: list[int] = []
        slots: list[Any] = []
        # From a part to its nodes, by the log of how often they have each derivation.
        place: dict[Meaning, dict[float, list[int]]] = {}
        number_of = ListNumbers(self.lists)
        spans: dict[int, tuple[int, int]] = {}
        copied: dict[Meaning, list[Copy]] = defaultdict(list)
        for copy in copies:
            copied[copy.tree].append(copy)
        roots, prior_of, unknown = [], [], []

        def filling(slot: int, filled: Iterable[int]) -> list[tuple[int, int]]:
            may = units.takes.get(slot, ())
            found = []
            for node in filled:
                unit = nodes[node] if node not in spans else self._examples[nodes[node]]
                if unit in may:
                    found.append((node, self.pair(slot, unit)))
            return found

        for tree in trees:
            waiting = [(tree, False)]
            while waiting:
                node, is_done = waiting.pop()
                if node in place:
                    continue
                own_copies = copied.get(node, ())
                ways = [way for way in units.splits(node) if way[0] not in hidden]
                if not ways and not own_copies:
                    unknown.append(units.split(node)[0])
                    place[node] = {}
                    continue
                if not is_done:
                    waiting += [(node, True), *[(part, False) for _, parts in ways for part in parts]]
                    continue
                ways = [way for way in ways if all(place[part] for part in way[1])]
                found = place[node] = defaultdict(list)
                for number, parts in ways:
                    is_free = is_summed and self._order_known(number) == Order.ANY_ORDER
                    own = log_repeated(map(number_of, parts)) if is_free else 0.0
                    # One node for each choice of how often the parts have each derivation: nearly always one.
                    for chosen in product(*[place[part].items() for part in parts]):
                        found[sum([own, *[log for log, _ in chosen]])].append(len(nodes))
                        nodes.append(number)
                        pairs = zip(units.slots_of(number), chosen, strict=True)
                        slots.append([(self.slot_rows[slot], filling(slot, filled)) for slot, (_, filled) in pairs])
                for copy in own_copies:
                    found[0.0].append(len(nodes))
                    spans[len(nodes)] = copy.begin, copy.end
                    nodes.append(copy.kind)
                    slots.append([])
            if not place[tree]:
                raise KeyError(unknown[0])
            for log, filled in place[tree].items():
                fitting = filling(ROOT, filled)
                roots += fitting
                prior_of += [(0.0 if priors is None else priors[tree]) - log] * len(fitting)
        kinds = [number if k in spans else units.kinds[number] for k, number in enumerate(nodes)]
        lists = [Order.PLAIN if k in spans else self._order_known(u) for k, u in enumerate(nodes)]
        return Forest(nodes, kinds, slots, roots, spans, prior_of, lists)

    def as_said(self, words: Sequence[str], trees: Sequence[Meaning]) -> Sequence[Meaning]:
        """Meanings whose lists of many arguments, which follow the words in a chart, do so."""
        if not (self._is_long & self._is_list).any():
            return trees
        places: dict[Meaning, int] = {}
        for i, _, leaf in self.lexicon.written_in(words):
            places.setdefault(self.units.units[leaf].tree, i)

        def is_long(tree: Meaning) -> bool:
            number = self.units.number.get(self.units.split(tree)[0], -1)
            return number >= 0 and bool(self._is_long[number] and self._is_list[number])

        return [*dict.fromkeys(as_said(tree, places, is_long) for tree in trees)]

    def _order_known(self, unit: int) -> Order:
        """The order in which the arguments of a unit are filled where the meaning is known."""
        if self._is_long[unit]:
            return Order.IN_ORDER
        return Order.ANY_ORDER if self._is_list[unit] else Order.PLAIN

    def meant(self, words: Sequence[str]) -> Forest:
        """The forest of all that a sentence may mean."""
        return self._meant(words)[0]

    def _meant(self, words: Sequence[str]) -> tuple[Forest, list[Copy]]:
        copies = self.copies(words)
        return self.free(self.lexicon.called(words) - self.hidden(copies), copies), copies

    # ---- inference ------------------------------------------------------------------------------

    def log_sum(self, words: Sequence[str], w: NDArray[np.float64], meanings: Iterable[Meaning] | None = None) -> float:
        """The log of the sum over all derivations, or over those of some meanings, of exp of their score."""
        if meanings is None:
            forest = self.meant(words)
        else:
            forest = self.known(meanings, copies := self.copies(words), hidden=self.hidden(copies))
        return self.sums.log_sum(self.encode(words), forest, w)

    def expect(self, x: Any, w: NDArray[np.float64], meanings: Iterable[Meaning] | None = None) -> tuple[float, Any]:
        """``(log_sum, expectation)`` of the joint feature, over the derivations of `log_sum`; (-inf, None) of none."""
        encoded, copies, leaves, hidden = self._read_sentence(x)
        forest = self.free(leaves, copies) if meanings is None else self.known(meanings, copies, hidden=hidden)
        return self.sums.expect(encoded, forest, w)

    def _read_sentence(self, x: Any) -> tuple[Any, list[Copy], set[int], frozenset[int]]:
        """Attributes of an input, names that may be copied, leaves that are called, names that are only copied."""
        words, unknown = x if isinstance(x, Sentence) else (x, ())
        copies = self.copies(words, unknown)
        hidden = self.hidden(copies)
        return self.encode(words, unknown), copies, self.lexicon.called(words) - hidden, hidden

    def joint_feature(self, x: Any, y: Parse) -> Any:
        return y.features

    def loss(self, y_true: Parse, y: Parse) -> float:
        true = {*y_true.fillings}
        right = sum(filling in true for filling in y.fillings)
        others = sum(a != b for a, b in zip(y_true.owners, y.owners, strict=True))
        return self._loss_of(len(y_true.fillings), len(y.owners), (len(y.fillings), right, others))

    def _loss_of(self, n_true: int, n_words: int, counts: tuple[int, int, int]) -> float:
        """The loss by the numbers of true units and of words; of units, of right ones, and of words of others."""
        n, right, others = counts
        if self.loss_name == "hamming":
            return n - right + others / (n_words + 1)
        # An item that is true once may be there several times.
        return 1.0 - 2.0 * min(right, n_true) / (n_true + n) + others / (2 * n_true * (n_words + 1))

    def complete(self, x: Any, known: Iterable[Meaning] | Parse, w: NDArray[np.float64]) -> Parse:
        """The best derivation of any of some meanings. A `Parse` is fully known.

        A dict has priors, which are added to the scores of its meanings. ValueError if no meaning has a derivation, or
        scores overflow.
        """
        if isinstance(known, Parse):
            return known
        encoded, copies, _, hidden = self._read_sentence(x)
        forest = self.known(known, copies, known if isinstance(known, dict) else None, hidden, is_summed=False)
        found = next(self._search(encoded, forest, copies, w), None)
        if found is None:
            raise ValueError("none of its meanings has a derivation over the sentence, or scores overflow")
        return self._parse(encoded, forest, *found)

    def argmax(
        self, x: Any, w: NDArray[np.float64], y_true: Parse | None = None, rescaling: Rescaling | None = None
    ) -> Parse | None:
        """The best derivation; None if there is none. With `y_true`, the best of score and loss together."""
        encoded, copies, leaves, _ = self._read_sentence(x)
        if y_true is not None:
            leaves |= {u for _, u in y_true.fillings if isinstance(u, int) and self.arity[u] == 0}
        forest = self.free(leaves, copies)
        if y_true is not None and self.loss_name == "f1":
            return self._best_by_counts(encoded, forest, copies, w, y_true)
        losses = None if y_true is None else self._losses(forest, copies, y_true)
        for found in self._search(encoded, forest, copies, w, losses=losses):
            y = self._parse(encoded, forest, *found)
            # Where a unit comes twice, another arrangement of it all may have no loss.
            if y_true is None or self.loss(y_true, y) > 0.0 or all(map(np.array_equal, y.features, y_true.features)):
                return y
        return y_true

    def _best_by_counts(
        self,
        encoded: tuple[NDArray[np.int32], ...],
        forest: Forest,
        copies: Sequence[Copy],
        w: NDArray[np.float64],
        y_true: Parse,
    ) -> Parse:
        """The best of score and F1 loss together: of each item the best derivation by what its loss counts.

        Left out is what no loss can bring up to the value of an output that is known.
        """
        first = next(self._search(encoded, forest, copies, w), None)
        if first is None:
            return y_true
        n_true, n_words = len(y_true.fillings), len(y_true.owners)
        best, score_true = first[0].score, float(w[y_true.features[0]] @ y_true.features[1])
        names, slots = self._names(forest, copies), forest.slots.tolist()
        true, owners = {*y_true.fillings}, y_true.owners

        def counts_of(item: Any, below: Any, own: Any) -> tuple[int, int, int]:
            if item[0] in FILLED:
                filler = names[-1 - own[0] if item[0] == Kind.NOTHING else below[0][1]]
                return 1, (ROOT if item[0] == Kind.ROOT else slots[item[1]], filler) in true, 0
            return 0, 0, sum(names[item[1]] != owners[t] for t in own)

        of_first = self.loss(y_true, self._parse(encoded, forest, *first))
        # Another arrangement of y_true without a loss is no output.
        least = max(score_true, best + of_first) if of_first > 0.0 else score_true
        most = best + 1.0 + 0.5 / n_true - least
        ways, lacks = ways_within(self.chart.edges, most)
        tables = counted(ways, lacks, most, counts_of)
        value, found = score_true, None
        for counts, (lost, *_) in tables[ALL].items():
            loss = self._loss_of(n_true, n_words, counts)
            if loss > 0.0 and best - lost + loss > value:
                value, found = best - lost + loss, counts
        if found is None:
            return y_true
        steps, waiting = [], [(ALL, found)]
        while waiting:
            item, counts = waiting.pop()
            _, below, own, chosen = tables[item][counts]
            steps.append((item, below, own))
            waiting += reversed([*zip(below, chosen, strict=True)])
        return self._parse(encoded, forest, *self._read(steps, names, forest.slots, value), steps)

    def best_features(
        self, encoded: tuple[NDArray[np.int32], ...], forest: Forest, w: NDArray[np.float64]
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]] | None:
        """The joint feature of the best derivation of a forest; None if there is none."""
        found = next(self._paths(encoded, forest, w, 1), None)
        return None if found is None else self._features(encoded, forest, found[1])

    def _losses(self, forest: Forest, copies: Sequence[Copy], y_true: Parse) -> tuple[NDArray[np.float64], ...]:
        """The parts of the loss: of what fills slots, of roots, of words and the nodes that they may belong to."""
        names = self._names(forest, copies)
        true, n = {*y_true.fillings}, len(y_true.owners)
        slot_of = np.repeat(forest.slots, np.diff(forest.fill_ptr)).tolist()
        of_fill = [(slot, names[u]) not in true for slot, u in zip(slot_of, forest.fill.tolist(), strict=True)]
        of_root = [(ROOT, names[u]) not in true for u in forest.roots.tolist()]
        of_words = [[name != owner for owner in y_true.owners] for name in names]
        return (
            np.array(of_fill, dtype=np.float64),
            np.array(of_root, dtype=np.float64),
            np.array(of_words, dtype=np.float64).reshape(len(names), n) / (n + 1),
        )

    def _names(self, forest: Forest, copies: Sequence[Copy]) -> list[Any]:
        """Id of the unit per node of a forest, or the tree of a name that is not a unit."""
        by_place = {copy[1:]: copy.tree for copy in copies}
        names: list[Any] = forest.units.tolist()
        for u in np.flatnonzero(forest.spans[:, 0] >= 0).tolist():
            tree = by_place[names[u], *forest.spans[u].tolist()]
            names[u] = self.units.number.get(self.units.split(tree)[0], tree)
        return names

    def _parse(
        self,
        encoded: tuple[NDArray[np.int32], ...],
        forest: Forest,
        found: Derivation,
        fillings: list[tuple[int, Any]],
        steps: Any,
    ) -> Parse:
        """The output that `_search` has found."""
        owners: list[Any] = [None] * (len(encoded[0]) - 1)
        for (_, unit), (_, _, words) in zip(fillings, found.nodes, strict=True):
            for t in words:
                owners[t] = unit
        return Parse(*found, fillings, owners, self._features(encoded, forest, steps))

    def _features(
        self, encoded: tuple[NDArray[np.int32], ...], forest: Forest, steps: Any
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The joint feature of a derivation: indices, ascending, and how often it has each."""
        lay = self.layout
        word_ptr, words, border_ptr, borders = (array.tolist() for array in encoded)
        at_word = [words[a:b] for a, b in pairwise(word_ptr)]
        at_border = [borders[a:b] for a, b in pairwise(border_ptr)]
        single = [row[0] if row and row[0] < lay.n_present else -1 for row in at_word]
        units, slots, lists = forest.units.tolist(), forest.slots.tolist(), forest.lists.tolist()
        kinds = [self._row[kind] for kind in forest.kinds.tolist()]
        found: list[int] = []

        def ends(begin: int, end: int, row: int, i: int, j: int) -> None:
            found.extend(begin + row * lay.n_borders + a for a in at_border[i])
            found.extend(end + row * lay.n_borders + a for a in at_border[j])

        def filled(slot: int, u: int) -> None:
            found.append(lay.pair + (slot + 1) * lay.n_rows + kinds[u])

        for (kind, u, x, i, j), below, own in steps:
            if kind == Kind.ROOT:
                filled(ROOT, below[0][1])
            elif kind == Kind.SLOT:
                ends(lay.slot_begin, lay.slot_end, slots[u], i, j)
                filled(slots[u], below[0][1])
            elif kind == Kind.NOTHING:
                filled(slots[u], -1 - own[0])
                found.append(lay.empty + kinds[-1 - own[0]])
            else:
                of_words = [a for t in own for a in at_word[t]]
                for row in {units[u], int(forest.kinds[u])} if of_words else ():
                    found += [k for k in self.word_features(row, of_words).tolist() if k >= 0]
            if kind == Kind.STAGE and len(below) > 1 and below[1][0] == Kind.SLOT and below[0][0] == Kind.STAGE:
                slot = below[1][1]
                rest, a = below[0][2], slot - int(forest.slot_ptr[u])
                is_after = lists[u] == Order.PLAIN and rest >> a > 0
                found.append(lay.order + 2 * slots[slot] + is_after)
            if kind == Kind.NODE:
                ends(lay.begin, lay.end, kinds[u], i, j)
                found.extend(lay.present + kinds[u] * lay.n_present + a for a in single if a >= 0)
                if x > 0:
                    found.append(lay.wordless + kinds[u])
                if lay.n_inside:
                    first = lay.inside + kinds[u] * lay.n_inside
                    found.extend(first + a for t in range(i, j) for a in (single[t], lay.n_present) if a >= 0)
        indices, counts = np.unique(np.array(found, dtype=np.int64), return_counts=True)
        return indices, counts.astype(np.float64)

    @cached_property
    def _blocks(self) -> list[tuple[int, list[str], list[str]]]:
        """Blocks of the layout: where each begins, the names of its rows, and the names of its columns."""
        lay, units = self.layout, self.units
        labels = [unit.label for unit in units.units]
        labels += [f"names like {labels[units.members[kind][0]]}" for kind in range(len(labels), units.n_kinds)]
        slots = {}
        for row, (u, s) in zip(self.slot_rows, units.slots, strict=True):
            name = f"arguments of {units.units[u].name}" if row in slots else f"argument {s + 1} of {labels[u]}"
            slots[row] = name
        kinds = [label for label, row in zip(labels, self._row, strict=True) if row >= 0]
        attributes, borders = ([name.translate(MARKS) for name in names] for names in (self.attributes, self.borders))
        begin, end = [f"begins at {name}" for name in borders], [f"ends at {name}" for name in borders]
        present = attributes[: lay.n_present]
        return [
            (lay.word, kinds, [f"has {name}" for name in attributes]),
            (lay.begin, kinds, begin),
            (lay.end, kinds, end),
            (lay.slot_begin, [*slots.values()], begin),
            (lay.slot_end, [*slots.values()], end),
            (lay.wordless, kinds, ["has no word"]),
            (lay.empty, kinds, ["has no word, nor its arguments"]),
            (lay.order, [*slots.values()], ["before another", "after another"]),
            (lay.pair, ["the whole", *slots.values()], [f"is {name}" for name in kinds]),
            (lay.present, kinds, [f"with {name}" for name in present]),
            (lay.inside, kinds, [f"around {name}" for name in [*present, "a word"]]),
        ]

    def feature_name(self, k: int) -> tuple[str, str]:
        """Name of a weight: a feature, and the unit, names or argument that has it."""
        lay = self.layout
        if k >= lay.name:
            name = int(np.searchsorted(lay.name_ptr, k - lay.name, side="right")) - 1
            attribute = [*self.attributes][lay.name_columns[k - lay.name]]
            return f"has {attribute.translate(MARKS)}", self.units.units[self._row.index(-1 - name)].label
        first, rows, columns = [block for block in self._blocks if block[0] <= k and block[2]][-1]
        row, column = divmod(k - first, len(columns))
        return columns[column], rows[row]

    def derivations(
        self, words: Sequence[str], w: NDArray[np.float64], *, most: int = MOST_PARTIAL, least: float = 0.0
    ) -> Iterator[Derivation]:
        """All derivations, best first; of a search that holds `most` partial ones, or has taken up ten times as many,
        no more. Uses the chart.

        Ways to make a part that are worth less than `least` times its best are not followed. It ends at one of a
        meaning that is deeper than text may be.
        """
        found = self._search(self.encode(words), *self._meant(words), w, most, least)
        return (derivation for derivation, *_ in takewhile(is_text, found))

    def kbest(
        self,
        words: Sequence[str],
        w: NDArray[np.float64],
        k: int,
        *,
        considered: int | None = None,
        accepts: Any = None,
        most: int = MOST_PARTIAL,
        least: float = 0.0,
    ) -> list[tuple[Derivation, float]]:
        """The k most probable of the meanings of the best derivations, each with its probability, in descending order.

        Parameters
        ----------
        words, w
        k : int
        considered : int, optional
            Distinct meanings to search for, by default k; fewer if no other can be among the k best, or if the
            remaining derivations have less than a hundredth of the best one's probability.
        accepts : callable, optional
            Returns whether a meaning may be predicted.
        most, least
            As for `derivations`.
        """
        found: list[tuple[Derivation, float]] = []
        met: set[Meaning] = set()
        total, left, lowest = None, 1.0, -np.inf
        encoded, (forest, copies) = self.encode(words), self._meant(words)
        hidden = self.hidden(copies)
        search = self._search(encoded, forest, copies, w, most, least, is_distinct=True)
        for derivation, *_ in takewhile(is_text, search):
            meaning = derivation.meaning
            if len(found) >= k and derivation.score < lowest:
                break
            canonical = in_one_order(meaning, self.lists)
            if canonical in met:
                continue
            met.add(canonical)
            if accepts is not None and not accepts(meaning):
                continue
            if total is None:
                total = self.sums.log_sum(encoded, forest, w)
                lowest = derivation.score + np.log(UNLIKELY)
            p = min(
                float(np.exp(self.sums.log_sum(encoded, self.known([meaning], copies, hidden=hidden), w) - total)), 1.0
            )
            found = sorted([*found, (derivation, p)], key=lambda pair: -pair[1])
            left -= p
            if len(found) >= (considered or k) or (len(found) >= k and found[k - 1][1] >= left):
                break
        return found[:k]

    def _search(
        self,
        encoded: tuple[NDArray[np.int32], ...],
        forest: Forest,
        copies: Sequence[Copy],
        w: NDArray[np.float64],
        most: int = MOST_PARTIAL,
        least: float = 0.0,
        losses: Any = None,
        is_distinct: bool = False,
    ) -> Iterator[tuple[Derivation, list[tuple[int, Any]], Any]]:
        """``(derivation, fillings, steps)`` of a forest, best first, losses included; fillings as its nodes.

        With `is_distinct`, of derivations that fill the same slots in the same order the first.
        """
        names, met = self._names(forest, copies), set()
        for score, steps in self._paths(encoded, forest, w, most, least, losses):
            if is_distinct:
                filled = tuple(
                    [
                        (item[1], below[0][1] if item[0] != Kind.NOTHING else own[0])
                        for item, below, own in steps
                        if item[0] in FILLED
                    ]
                )
                if filled in met:
                    continue
                met.add(filled)
            yield *self._read(steps, names, forest.slots, score), steps

    def _paths(
        self,
        encoded: tuple[NDArray[np.int32], ...],
        forest: Forest,
        w: NDArray[np.float64],
        most: int,
        least: float = 0.0,
        losses: Any = None,
    ) -> Iterator[tuple[float, list[Any]]]:
        """``(score, steps)`` of derivations, best first; steps as `best_first` has them."""
        best = self.chart.log_sum(encoded, forest, w, best=True, losses=losses)
        if best == -np.inf:
            return
        for share, steps in best_first(lambda k, u, x, i, j: self.chart.edges(k, u, x, i, j, least), most):
            yield best + float(np.log(share)), steps

    def _read(
        self, steps: Any, units: Sequence[Any], slots: Any, score: float
    ) -> tuple[Derivation, list[tuple[int, Any]]]:
        nodes: list[tuple[str, int, list[int]]] = []
        fillings: list[tuple[int, Any]] = []
        following = iter(steps)
        # Nodes on the way down: unit or copy, words, arguments by slot, items still to come, and the slot to fill.
        open_nodes: list[tuple[Any, list[int], dict[int, Meaning], list[Any], int]] = []
        slot = ROOT
        while True:
            (kind, node, *_), below, own = next(following)
            while kind in (Kind.ROOT, Kind.SLOT):
                (kind, node, *_), below, own = next(following)
            is_empty = kind == Kind.NOTHING
            number = units[-1 - own[0] if is_empty else node]
            words: list[int] = [] if is_empty else [*own]
            name = self.units.units[number].label if isinstance(number, int) else format_meaning(number)
            nodes.append((name, len(open_nodes), words))
            fillings.append((slot if slot == ROOT else int(slots[slot]), number))
            open_nodes.append((number, words, {}, [*reversed(below)], slot))
            while True:
                number, words, parts, waiting, slot = open_nodes[-1]
                if not waiting:
                    words.sort()
                    meaning = number
                    if isinstance(number, int):
                        meaning = self.units.join(number, [parts[s] for s in sorted(parts)])
                    open_nodes.pop()
                    if not open_nodes:
                        return Derivation(meaning, score, nodes), fillings
                    open_nodes[-1][2][slot] = meaning
                    continue
                part = waiting.pop()
                if part[0] in (Kind.SLOT, Kind.NOTHING):
                    slot = part[1]
                    break
                _, below, own = next(following)
                words += own
                waiting += reversed(below)


class ListNumbers:
    """Numbers of meanings: equal for those that differ in the order of the arguments of lists."""

    def __init__(self, names: Container[str]) -> None:
        self.names = names
        self._number: dict[Any, int] = {}
        self._met: dict[Meaning, int] = {}

    def __call__(self, tree: Meaning) -> int:
        found = self._met.get(tree)
        if found is None:
            key: Any = tree
            if not isinstance(tree, str):
                parts = [*map(self, tree[1:])]
                key = tree[0], *(sorted(parts) if tree[0] in self.names else parts)
            found = self._met[tree] = self._number.setdefault(key, len(self._number))
        return found


def log_repeated(numbers: Iterable[int]) -> float:
    """The sum of log m! over the numbers that are there m times."""
    return sum(lgamma(m + 1) for m in Counter(numbers).values())


def is_text(found: tuple[Derivation, Any, Any]) -> bool:
    """Whether its meaning is no deeper than text may be."""
    return all(depth < MAX_DEPTH for _, depth, _ in found[0].nodes)


def rows_of_kinds(units: MeaningUnits) -> tuple[NDArray[np.int64], list[int]]:
    """Rows of a `Layout`: of each unit and kind, the names' being -1, -2 ...; and the ids of these."""
    is_name = np.zeros(units.n_kinds, dtype=bool)
    is_name[: len(units.units)] = np.array(units.kinds, dtype=np.int64) != np.arange(len(units.units))
    rows = np.where(is_name, -np.cumsum(is_name), np.cumsum(~is_name) - 1)
    return rows, np.flatnonzero(is_name).tolist()


def rows_of_slots(units: MeaningUnits, *, by_name: bool = False) -> list[int]:
    """Rows of features of slots: of relations of one name with several numbers of arguments, one for all of theirs.

    Where constants belong to a relation, as in ``call(filter,_1,_2)``, its name says too little: each slot has its own
    row, unless `by_name`. Those of a list share one, as any argument may fill any.
    """
    arities: dict[str, set[int]] = defaultdict(set)
    is_plain = [by_name or unit.label == unit.name for unit in units.units]
    for unit, may in zip(units.units, is_plain, strict=True):
        if unit.n_slots and may:
            arities[unit.name].add(len(unit.places or ()))
    rows: dict[Any, int] = {}
    owners = [(units.units[u].name, u, s) for u, s in units.slots]
    is_list = [not by_name and units.is_list(u) for u in range(len(units.units))]
    may_share = [is_list[u] or (is_plain[u] and len(arities[name]) > 1) for name, u, _ in owners]
    return [rows.setdefault(o[0] if share else o[1:], len(rows)) for o, share in zip(owners, may_share, strict=True)]


def word_attributes(around: Sequence[str], t: int, known: Any, shapes: bool = False) -> list[str]:
    """Names of the attributes of word t, of a sentence between its two marks; `known` are those that have a feature.

    Itself, what it begins and ends with, its pairs with the words beside it, and with `shapes` its shape.
    """
    word = around[t]
    own = f"w:{word}" if f"w:{word}" in known else f"w:{RARE}"
    names = [own, f"p:{word[:4]}", f"s:{word[-3:]}", f"l:{around[t - 1]} {word}", f"r:{word} {around[t + 1]}"]
    return [*names, f"h:{shape(word)}"] if shapes else names


def encoded_words(
    words: Sequence[str], known: Mapping[str, int], lexicon: Lexicon, unknown: Any = (), *, shapes: bool = False
) -> list[list[int]]:
    """The attributes of each word that are `known`, with `shapes` among them; of some words as if `unknown`."""
    around = [BEGIN, *words, END]
    found = [
        [
            known[name]
            for name in word_attributes(around, t, () if words[t - 1] in unknown else known, shapes)
            if name in known
        ]
        for t in range(1, len(around) - 1)
    ]
    for t, names in lexicon.listed_at(words).items():
        found[t] += [known[name] for name in dict.fromkeys(names) if name in known]
    return found


def border_attributes(before: str, after: str) -> list[str]:
    """Names of the attributes of the place between two words."""
    return [f"l:{before}", f"r:{after}"]


def rows_of(triples: Any) -> NDArray[np.int64]:
    """An array of three columns."""
    return np.array(triples, dtype=np.int64).reshape(-1, 3)


def flat(lists: Any) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """``(ptr, values)`` of lists of integers."""
    values = [value for one in lists for value in one]
    return np.cumsum([0, *map(len, lists)], dtype=np.int32), np.array(values, dtype=np.int32)
