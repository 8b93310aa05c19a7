"""Hybrid trees: a meaning is a tree of units, each of which covers words of the sentence (Lu and others 2008, Lu 2014).

A unit (a relation, a name) covers a stretch of words: its own words and, nested, those of its arguments in any order.
Some have no word. Which words say what is hidden: the score of a meaning is the log of the sum over all such
derivations.
"""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import count, pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from structsvm.oracles._hybrid import Chart, Forest, Kind, Layout
from structsvm.structures.meaning_units import ROOT, Units
from structsvm.structures.meanings import MAX_DEPTH, Meaning

__all__ = ["Derivation", "HybridTrees", "Lexicon"]

BEGIN, END, RARE = "\x02", "\x03", "\x04"

# Of a name that is looked for in a sentence: words at most.
LONGEST_NAME = 6
# A word calls a leaf if the leaf is in the meanings of this share of its sentences.
CALLED = 0.1
# A leaf that is not written like its words is always looked for if it is in this share of the sentences.
COMMON = 0.02
# Of all units, slots and attributes: weights are dense.
MOST_FEATURES = 1 << 28
# Kept of a search for the k best: partial derivations.
MOST_PARTIAL = 200_000


class Derivation(NamedTuple):
    """A meaning and the words that say it.

    `nodes` are, in preorder, ``(unit's text, depth, words)``: the indices of the unit's own words.
    """

    meaning: Meaning
    score: float
    nodes: list[tuple[str, int, list[int]]]


class Lexicon:
    """Which leaves may be meant in a sentence: those called by a word, or written there, and those of `always`.

    Parameters
    ----------
    units : Units
    calls : dict
        From a word to the numbers of the leaves that it calls.
    always : iterable of int
    """

    def __init__(self, units: Units, calls: dict[str, list[int]], always: Iterable[int]) -> None:
        self.calls, self.always = calls, sorted(always)
        self.written: dict[str, list[int]] = defaultdict(list)
        for number, unit in enumerate(units.units):
            if unit.n_slots == 0 and unit.words:
                self.written["".join(unit.words)].append(number)

    @classmethod
    def learn(cls, units: Units, sentences: Sequence[Any], bags: Sequence[Any]) -> Lexicon:
        """From sentences, lists of words, and the shares of the units in their bags: dicts from numbers to floats."""
        self = cls(units, {}, ())
        together: dict[str, Counter[int]] = defaultdict(Counter)
        n_words: Counter[str] = Counter()
        share: Counter[int] = Counter()
        seen, written = Counter[int](), Counter[int]()
        for words, bag in zip(sentences, bags, strict=True):
            leaves = {unit: p for unit, p in bag.items() if units.units[unit].n_slots == 0}
            share.update(leaves)
            seen.update(leaves.keys())
            written.update(leaves.keys() & self.called(words))
            for word in set(words):
                n_words[word] += 1
                together[word].update(leaves)
        for word, of_word in together.items():
            called = sorted(leaf for leaf, p in of_word.items() if p >= CALLED * n_words[word])
            if called:
                self.calls[word] = called
        common = COMMON * len(sentences)
        self.always = sorted(u for u, p in share.items() if p >= common and written[u] < 0.2 * seen[u])
        return self

    def called(self, words: Sequence[str]) -> set[int]:
        """The leaves that may be meant."""
        found = set(self.always)
        for word in words:
            found.update(self.calls.get(word, ()))
        plain = ["".join(c for c in word if c.isalnum()) for word in words]
        for i in range(len(words)):
            text = ""
            for word in plain[i : i + LONGEST_NAME]:
                text += word
                found.update(self.written.get(text, ()))
        return found


class HybridTrees:
    """Sums and best derivations of meanings for sentences.

    A sentence is a list of words. Features: of a unit with its words, and these with the words beside them; with the
    words at and beyond the ends of its span; that it has no word; of a slot with the words at and beyond the ends of
    what fills it, with the unit that does (names by kind), and that it comes before or after another; a name's words
    have features of the name and of its kind.

    Parameters
    ----------
    units : Units
    lexicon : Lexicon
    attributes, borders : list of str
        Names of the attributes of words and of the places between words.
    depth : int, default=4
        Units without words that may stand one above the other.
    """

    def __init__(
        self, units: Units, lexicon: Lexicon, attributes: Sequence[str], borders: Sequence[str], depth: int = 4
    ) -> None:
        self.units, self.lexicon, self.depth = units, lexicon, depth
        self.attributes = {name: k for k, name in enumerate(attributes)}
        self.borders = {name: k for k, name in enumerate(borders)}
        n_kinds = units.n_kinds
        self.layout = Layout(n_kinds, len(units.slots), len(attributes), len(borders), (len(units.slots) + 1) * n_kinds)
        if self.layout.n_features > MOST_FEATURES:
            raise ValueError(
                f"{self.layout.n_features} features are more than {MOST_FEATURES}: too many units or words"
            )
        self.chart = Chart(self.layout, depth)
        self._free: dict[frozenset[int], tuple[Forest, list[int]]] = {}

    @property
    def n_features(self) -> int:
        return self.layout.n_features

    def again(self) -> HybridTrees:
        """The same with a chart of its own, for another thread."""
        return HybridTrees(self.units, self.lexicon, [*self.attributes], [*self.borders], self.depth)

    def __reduce__(self) -> Any:
        return HybridTrees, (self.units, self.lexicon, [*self.attributes], [*self.borders], self.depth)

    # ---- sentences and forests ------------------------------------------------------------------

    def encode(self, words: Sequence[str]) -> tuple[NDArray[np.int32], ...]:
        """The attributes of words and of places: four arrays, as `Chart` takes them."""
        around = [BEGIN, *words, END]
        of_words = [
            [self.attributes[name] for name in names if name in self.attributes]
            for names in (word_attributes(around, t, self.attributes) for t in range(1, len(around) - 1))
        ]
        of_borders = [
            [self.borders[name] for name in border_attributes(*pair) if name in self.borders]
            for pair in pairwise(around)
        ]
        return *flat(of_words), *flat(of_borders)

    def pair(self, slot: int, unit: int) -> int:
        """The index of the feature of a slot and what fills it."""
        return (slot + 1) * self.units.n_kinds + self.units.kinds[unit]

    def free(self, leaves: Iterable[int]) -> tuple[Forest, list[int]]:
        """The forest of all meanings with these leaves, and the unit of each node."""
        key = frozenset(leaves)
        if key not in self._free:
            units = self.units
            nodes = [u for u, unit in enumerate(units.units) if unit.n_slots or u in key]
            place = {unit: k for k, unit in enumerate(nodes)}

            def filling(slot: int) -> list[tuple[int, int]]:
                return [(place[u], self.pair(slot, u)) for u in units.fillers.get(slot, ()) if u in place]

            slots = [[(slot, filling(slot)) for slot in units.slots_of(u)] for u in nodes]
            forest = Forest(nodes, [units.kinds[u] for u in nodes], slots, filling(ROOT))
            if len(self._free) >= 4096:
                self._free.clear()
            self._free[key] = forest, nodes
        return self._free[key]

    def known(self, trees: Iterable[Meaning]) -> Forest:
        """The forest of some meanings, whose common parts are there once; KeyError for a unit that is not known."""
        units = self.units
        nodes: list[int] = []
        slots: list[Any] = []
        place: dict[Meaning, list[int]] = {}
        roots = []

        def filling(slot: int, part: Meaning) -> list[tuple[int, int]]:
            may = units.fillers.get(slot, ())
            return [(node, self.pair(slot, nodes[node])) for node in place[part] if nodes[node] in may]

        for tree in trees:
            waiting = [(tree, False)]
            while waiting:
                node, is_done = waiting.pop()
                if node in place:
                    continue
                ways = units.splits(node)
                if not ways:
                    raise KeyError(units.split(node)[0])
                if not is_done:
                    waiting += [(node, True), *[(part, False) for _, parts in ways for part in parts]]
                    continue
                place[node] = list(range(len(nodes), len(nodes) + len(ways)))
                for number, parts in ways:
                    nodes.append(number)
                    own = zip(units.slots_of(number), parts, strict=True)
                    slots.append([(slot, filling(slot, part)) for slot, part in own])
            roots += filling(ROOT, tree)
        return Forest(nodes, [units.kinds[u] for u in nodes], slots, roots)

    # ---- verbs ----------------------------------------------------------------------------------

    def log_sum(self, words: Sequence[str], w: NDArray[np.float64], meanings: Iterable[Meaning] | None = None) -> float:
        """The log of the sum over all derivations, or over those of some meanings, of exp of their score."""
        forest = self.free(self.lexicon.called(words))[0] if meanings is None else self.known(meanings)
        return self.chart.log_sum(self.encode(words), forest, w)

    def expect(
        self, words: Sequence[str], w: NDArray[np.float64], meanings: Iterable[Meaning] | None = None
    ) -> tuple[float, Any]:
        """``(log_sum, expectation)`` of the joint feature, over the derivations of `log_sum`; (-inf, None) of none."""
        forest = self.free(self.lexicon.called(words))[0] if meanings is None else self.known(meanings)
        return self.chart.expect(self.encode(words), forest, w)

    def complete(self, words: Sequence[str], known: Iterable[Meaning], w: NDArray[np.float64]) -> Derivation | None:
        """The best derivation of any of some meanings; None if there is none."""
        forest = self.known(known)
        return next(self._search(words, forest, forest.units.tolist(), w, 1), None)

    def argmax(self, words: Sequence[str], w: NDArray[np.float64]) -> Derivation | None:
        """The best derivation; None if there is none."""
        return next(self.derivations(words, w, most=1), None)

    def derivations(
        self, words: Sequence[str], w: NDArray[np.float64], *, most: int = MOST_PARTIAL
    ) -> Iterator[Derivation]:
        """All derivations, best first; of a search that has met `most` partial ones, no more. Uses the chart.

        It ends at one of a meaning that is deeper than text may be.
        """
        return self._search(words, *self.free(self.lexicon.called(words)), w, most)

    def kbest(
        self, words: Sequence[str], w: NDArray[np.float64], k: int, *, accepts: Any = None, most: int = MOST_PARTIAL
    ) -> list[tuple[Derivation, float]]:
        """Meanings of the best derivations, each with its probability, by falling probability.

        Parameters
        ----------
        words, w
        k : int
            The number of distinct meanings whose best derivations are looked for.
        accepts : callable, optional
            Tells of a meaning whether it may be returned.
        most : int
            Partial derivations to keep in the search.
        """
        found: dict[Meaning, Derivation] = {}
        refused: set[Meaning] = set()
        for derivation in self.derivations(words, w, most=most):
            meaning = derivation.meaning
            if meaning in found or meaning in refused:
                continue
            if accepts is None or accepts(meaning):
                found[meaning] = derivation
                if len(found) == k:
                    break
            else:
                refused.add(meaning)
        total = self.log_sum(words, w) if found else 0.0
        scored = [(d, min(float(np.exp(self.log_sum(words, w, [m]) - total)), 1.0)) for m, d in found.items()]
        return sorted(scored, key=lambda pair: -pair[1])

    def _search(
        self, words: Sequence[str], forest: Forest, units: Sequence[int], w: NDArray[np.float64], most: int
    ) -> Iterator[Derivation]:
        """Derivations of a forest, best first: A* whose bounds, from the chart, are exact."""
        best = self.chart.log_sum(self.encode(words), forest, w, best=True)
        if best == -np.inf:
            return
        chart, order = self.chart, count()
        edges: dict[Any, Any] = {}

        def ways(item: Any) -> Any:
            if item not in edges:
                edges[item] = sorted(chart.edges(*item), key=lambda edge: -edge[0])
            return edges[item]

        # A partial derivation: minus its bound, its items in preorder as a list linked from the last one, what waits,
        # and the rank of the edge that its first waiting item is to have.
        root = (int(Kind.ROOT), 0, 0, 0, 0)
        agenda: list[Any] = [(-1.0, next(order), None, (root, None), 0)]
        while agenda:
            bound, _, done, waiting, rank = heapq.heappop(agenda)
            while waiting is not None:
                item, rest = waiting
                options = ways(item)
                if not options:  # of a value so small that none of its ways is above 0
                    break
                if rank + 1 < len(options) and len(agenda) < most - 1:
                    loss = options[rank + 1][0] / options[rank][0]
                    heapq.heappush(agenda, (bound * loss, next(order), done, waiting, rank + 1))
                _, below, own = options[rank]
                done, waiting, rank = (done, item, below, own), rest, 0
                for part in reversed(below):
                    waiting = part, waiting
            if waiting is None and bound < 0.0:
                found = self._read(done, units, best + float(np.log(-bound)))
                if any(depth >= MAX_DEPTH for _, depth, _ in found.nodes):
                    return
                yield found

    def _read(self, done: Any, units: Sequence[int], score: float) -> Derivation:
        steps = []
        while done is not None:
            done, item, below, own = done
            steps.append((item, below, own))
        steps.reverse()
        nodes: list[tuple[str, int, list[int]]] = []
        following = iter(steps)
        # Of each node on the way down: its unit, words, arguments by slot, items still to come, and the slot it fills.
        open_nodes: list[tuple[int, list[int], dict[int, Meaning], list[Any], int]] = []
        slot = ROOT
        while True:
            (kind, node, *_), below, own = next(following)
            while kind in (Kind.ROOT, Kind.SLOT):
                (kind, node, *_), below, own = next(following)
            is_empty = kind == Kind.NOTHING
            number = units[-1 - own[0] if is_empty else node]
            words: list[int] = [] if is_empty else [*own]
            nodes.append((self.units.units[number].name, len(open_nodes), words))
            open_nodes.append((number, words, {}, [*reversed(below)], slot))
            while True:
                number, words, parts, waiting, slot = open_nodes[-1]
                if not waiting:
                    words.sort()
                    meaning = self.units.join(number, [parts[s] for s in sorted(parts)])
                    open_nodes.pop()
                    if not open_nodes:
                        return Derivation(meaning, score, nodes)
                    open_nodes[-1][2][slot] = meaning
                    continue
                part = waiting.pop()
                if part[0] in (Kind.SLOT, Kind.NOTHING):
                    slot = part[1]
                    break
                _, below, own = next(following)
                words += own
                waiting += reversed(below)


def word_attributes(around: Sequence[str], t: int, known: Any) -> list[str]:
    """Names of the attributes of word t, of a sentence between its two marks; `known` are those that have a feature."""
    word = around[t]
    own = [f"w:{word}"] if f"w:{word}" in known else rare_attributes(word)
    return [*own, f"l:{around[t - 1]} {word}", f"r:{word} {around[t + 1]}"]


def rare_attributes(word: str) -> list[str]:
    """Names of the attributes of a word that is not known, or was seen once."""
    return [f"w:{RARE}", f"s:{word[-3:]}"]


def border_attributes(before: str, after: str) -> list[str]:
    """Names of the attributes of the place between two words."""
    return [f"l:{before}", f"r:{after}"]


def flat(lists: Any) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """``(ptr, values)`` of lists of integers."""
    values = [value for one in lists for value in one]
    return np.cumsum([0, *map(len, lists)], dtype=np.int32), np.array(values, dtype=np.int32)
