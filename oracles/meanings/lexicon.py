"""Leaves of meanings that a sentence may be about: those that its words call, spell or, by a phrase, say."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from itertools import chain, pairwise
from typing import Any, NamedTuple

from structsvm.oracles.meanings.readings import (
    Form,
    Reading,
    Readings,
    number_in,
    numbers_of,
    read_otherwise,
    readings_of,
)
from structsvm.oracles.meanings.words import is_possessive, look_of, shape_of
from structsvm.structures.meaning_units import MeaningUnits
from structsvm.structures.meanings import Meaning, format_meaning

# Prefix of the attributes of words in phrases of the lexicon.
LISTED = "g:"

# Stands between two words beside each other that call a leaf: in no token, as a blank may be.
BESIDE = "\x01"

# Maximum number of words of a name that is searched in a sentence.
LONGEST_NAME = 6
# A word calls a leaf if the leaf is in the meanings of this share of its sentences.
CALLED = 0.1
# Two words beside each other, found so in as many sentences, call a leaf that neither calls if it is in this share.
FEWEST_PAIRS, CALLED_BY_PAIR = 2, 0.9
# A leaf that is not written like its words is always looked for if it is in this share of the sentences.
COMMON = 0.02
# A look (see `look_of`) says that words are a name of a kind if they are one `LIFT` times as often as any words, and
# `FEWEST_NAMES` have it. Once such looks cover `SURE_LOOKS` of the names, words of other looks are none.
LIFT, FEWEST_NAMES, SURE_LOOKS = 2.0, 3, 0.9
# Kinds of names that words which are not known, or those of a phrase, may be: each is tried at each place.
MOST_KINDS = 1000


class Copy(NamedTuple):
    """An unknown name in the sentence: its tree, its kind, and its words [begin, end)."""

    tree: Meaning
    kind: int
    begin: int
    end: int


class Lexicon:
    """The leaves that may be meant in a sentence: those called by a word, or written there, and those of `always`.

    Parameters
    ----------
    units : MeaningUnits
    calls : dict
        From a word, or two with `BESIDE` between them, to the ids of the leaves that it calls.
    always : iterable of int
    new : iterable of int
        The kinds of names that words which are not known may be.
    phrases : dict, optional
        From tuples of words to the leaf that they say, a tree: one of the units, or a name like some of them, else
        ValueError.
    looks : dict, optional
        From kinds of names to what they look like when written, see `look_of`; "" stands for unknown words that look
        like anything, as do names of all other kinds.
    readings : dict, optional
        From kinds of names that are numbers to what words mean which are written otherwise, see `readings_of`.

    Examples
    --------
    >>> from structsvm.oracles.hybrid import Lexicon
    >>> from structsvm.structures.meaning_units import MeaningUnits
    >>> from structsvm.structures.meanings import parse_meaning
    >>> units = MeaningUnits([parse_meaning("pass(pink1,pink2)")])
    >>> Lexicon(units, {"kim": [1]}, always=[]).called(["kim", "runs"])
    {1}
    """

    def __init__(
        self,
        units: MeaningUnits,
        calls: dict[str, list[int]],
        always: Iterable[int],
        new: Iterable[int] = (),
        phrases: dict[tuple[str, ...], Meaning] | None = None,
        looks: dict[int, list[str]] | None = None,
        readings: Readings | None = None,
    ) -> None:
        self.units, self.calls, self.always, self.new = units, calls, sorted(always), sorted(new)
        self.looks = looks or {}
        self.readings = readings or {}
        self._leaf_of_number = {
            kind: {number: leaf for leaf, number in numbers_of(units, kind).items()} for kind in self.readings
        }
        self.written: dict[str, list[int]] = defaultdict(list)
        for number in range(len(units.units)):
            for text in dict.fromkeys(map("".join, units.ways_to_write(number))):
                self.written[text].append(number)
        self.phrases = phrases or {}
        self.longest_phrase = max(map(len, self.phrases), default=0)
        # Phrase -> the number of its leaf, -1 for a new one; its kinds; the attributes of its words.
        self._leaf_of: dict[tuple[str, ...], tuple[int, list[int], list[str]]] = {}
        # Attribute of a phrase's words -> the kinds or the leaf that it speaks for.
        self.listed: dict[str, list[int]] = {}
        if len(self.new) > MOST_KINDS:
            raise ValueError(f"names of {len(self.new)} kinds may be new, more than {MOST_KINDS}")
        for phrase, tree in self.phrases.items():
            kinds = units.kinds_like(tree)
            if len(kinds) > MOST_KINDS:
                raise ValueError(
                    f"the lexicon says {format_meaning(tree):.80} for {' '.join(phrase)!r:.80}, "
                    f"which is like names of {len(kinds)} kinds, more than {MOST_KINDS}"
                )
            if not kinds:
                types = ", ".join(repr(f"{before}_{behind}") for before, behind in sorted(units.typed))
                raise ValueError(
                    f"the lexicon says {format_meaning(tree):.80} for {' '.join(phrase)!r:.80}, "
                    f"which is like no name in the meanings{f': their types are {types:.200}' if types else ''}"
                )
            number = units.number.get(units.split(tree)[0], -1)
            speak = {f"{LISTED}{'' if isinstance(tree, str) else tree[0]}": kinds}
            if number >= 0:
                speak[f"{LISTED}={format_meaning(tree)}"] = [number]
            self.listed |= speak
            self._leaf_of[phrase] = number, kinds, [*speak]

    @classmethod
    def learn(
        cls,
        units: MeaningUnits,
        sentences: Sequence[Any],
        bags: Sequence[Any],
        phrases: Any = None,
        *,
        is_closed: bool = False,
        looking: Container[int] = (),
        known: Container[str] = (),
    ) -> Lexicon:
        """From sentences, lists of words, and the shares of the units in their bags: dicts from numbers to floats.

        If it `is_closed`, no name is new. Names of the kinds `looking` had looks before: the words `known`
        from there call none of them, as few sentences do not tell how rarely they go together.
        """
        self = cls(units, {}, (), (), phrases, readings=readings_of(units, sentences, bags))
        together: dict[str, Counter[int]] = defaultdict(Counter)
        n_words: Counter[str] = Counter()
        share: Counter[int] = Counter()
        seen, written = Counter[int](), Counter[int]()
        for words, bag in zip(sentences, bags, strict=True):
            leaves = {unit: p for unit, p in bag.items() if units.units[unit].n_slots == 0}
            share.update(leaves)
            seen.update(leaves.keys())
            written.update(leaves.keys() & self.called(words))
            for word in dict.fromkeys(map(str, words)):
                n_words[word] += 1
                together[word].update(leaves)
        common = COMMON * len(sentences)
        self.always = sorted(u for u, p in share.items() if p >= common and written[u] < 0.2 * seen[u])
        members: dict[int, list[int]] = defaultdict(list)
        for unit in seen:
            if units.kinds[unit] >= len(units.units):
                members[units.kinds[unit]].append(unit)
        if is_closed:
            members.clear()
        may = {k: sum(written[u] for u in of_kind) for k, of_kind in sorted(members.items()) if len(of_kind) >= 3}
        likely = [kind for kind, n in may.items() if 2 * n >= sum(share[u] for u in members[kind])]
        self.looks = self._find_looks([k for k in likely if k not in read_otherwise(self.readings)], sentences, bags)
        self.new = [k for k, n in may.items() if 2 * n >= sum(seen[u] for u in members[k]) or k in self.looks]
        had_looks = {u for u in seen if units.kinds[u] in looking}
        looked = had_looks | {u for u in seen if units.kinds[u] in self.looks}
        alone = {u for u in looked if 2 * written[u] >= share[u]}  # called by nothing else

        def refused(words: Iterable[str]) -> set[int]:
            return alone | had_looks if any(word in known for word in words) else alone

        for word, of_word in together.items():
            others = refused([word])
            called = sorted(leaf for leaf, p in of_word.items() if p >= CALLED * n_words[word] and leaf not in others)
            if called:
                self.calls[word] = called
        self.calls |= self._called_by_pairs(sentences, bags, refused)
        return self

    def _called_by_pairs(
        self, sentences: Sequence[Any], bags: Sequence[Any], refused: Callable[[tuple[str, str]], set[int]]
    ) -> dict[str, list[int]]:
        """The leaves that two words beside each other call and neither alone does, but for those `refused`."""
        n_met = Counter(pair for words in sentences for pair in dict.fromkeys(pairwise(map(str, words))))
        together: dict[tuple[str, str], Counter[int]] = defaultdict(Counter)
        for words, bag in zip(sentences, bags, strict=True):
            leaves = {unit: p for unit, p in bag.items() if self.units.units[unit].n_slots == 0}
            for pair in dict.fromkeys(pairwise(map(str, words))):
                if n_met[pair] >= FEWEST_PAIRS:
                    together[pair].update(leaves)
        found = {}
        for pair, of_pair in together.items():
            others = refused(pair).union(self.always, *[self.calls.get(word, ()) for word in pair])
            called = sorted(u for u, p in of_pair.items() if p >= CALLED_BY_PAIR * n_met[pair] and u not in others)
            if called:
                found[BESIDE.join(pair)] = called
        return found

    def _find_looks(self, kinds: Iterable[int], sentences: Sequence[Any], bags: Sequence[Any]) -> dict[int, list[str]]:
        """Looks of the names of some kinds in sentences, where these say that words are names."""
        named: dict[int, Counter[str]] = {kind: Counter() for kind in kinds}
        n_looks: Counter[str] = Counter()
        for words, bag in zip(sentences, bags, strict=True) if named else ():
            n_looks.update(look for _, _, look in looks_in(words))
            for i, j, leaf in self.written_in(words):
                kind = self.units.kinds[leaf]
                if leaf in bag and kind in named and plain(words[i : i + 1]) and plain(words[j - 1 : j]):
                    named[kind][look_of(map(shape_of, words[i:j]))] += 1
        found = {}
        for kind, of_kind in named.items():
            usual = of_kind.total() / max(n_looks.total(), 1)
            own = [look for look, n in of_kind.items() if n >= FEWEST_NAMES and n >= LIFT * usual * n_looks[look]]
            if own:
                is_sure = sum(of_kind[look] for look in own) >= SURE_LOOKS * of_kind.total()
                found[kind] = own if is_sure else ["", *own]
        return found

    def looking_in(self, units: MeaningUnits) -> set[int]:
        """The kinds of later units whose names have looks here."""
        number = {u: units.number[unit] for u, unit in enumerate(self.units.units) if unit in units.number}
        return {units.kinds[v] for u, v in number.items() if self.units.kinds[u] in self.looks}

    def with_those_of(self, other: Lexicon, units: MeaningUnits) -> Lexicon:
        """Also what an earlier lexicon of `units` calls; of its leaves no other is always looked for than was there."""
        number = {u: self.units.number[unit] for u, unit in enumerate(units.units) if unit in self.units.number}
        earlier = set(number.values())
        calls = {word: set(leaves) for word, leaves in self.calls.items()}
        for word, leaves in other.calls.items():
            calls.setdefault(word, set()).update(number[u] for u in leaves if u in number)
        always = {number[u] for u in other.always if u in number} | set(self.always) - earlier
        kinds = {units.kinds[u]: self.units.kinds[v] for u, v in number.items()}
        taken = {*self.new, *(kinds[kind] for kind in other.new if kind in kinds)}
        taken = {kind for kind in taken if kind >= len(self.units.units)}
        looks = {kinds[kind]: own for kind, own in other.looks.items() if kinds.get(kind) in taken}
        # Names that are new and have no look here may look like anything.
        looks = {kind: [*dict.fromkeys(["", *own])] if kind in self.new else own for kind, own in looks.items()}
        looks |= self.looks
        known = {word: sorted(leaves) for word, leaves in calls.items()}
        readings: dict[int, Mapping[Form, Reading]] = {
            kinds[kind]: own for kind, own in other.readings.items() if kinds.get(kind) in self.units.members
        }
        for kind, own in self.readings.items():
            readings[kind] = {**readings.get(kind, {}), **own}
        looks = {kind: own for kind, own in looks.items() if kind not in read_otherwise(readings)}
        return Lexicon(self.units, known, always, taken, self.phrases, looks, readings)

    @property
    def kinds_of_phrases(self) -> set[int]:
        """The kinds of the names that phrases say."""
        return {kind for _, kinds, _ in self._leaf_of.values() for kind in kinds}

    def phrases_in(self, words: Sequence[str]) -> Iterator[tuple[int, int, tuple[str, ...]]]:
        """``(begin, end, phrase)`` of those in a sentence."""
        for i in range(len(words)):
            for j in range(i + 1, min(i + self.longest_phrase, len(words)) + 1):
                if (phrase := tuple(words[i:j])) in self.phrases:
                    yield i, j, phrase

    def listed_at(self, words: Sequence[str]) -> dict[int, list[str]]:
        """Attributes of the words in phrases, by word: what the phrase says."""
        found: dict[int, list[str]] = defaultdict(list)
        for i, j, phrase in self.phrases_in(words):
            for t in range(i, j):
                found[t] += self._leaf_of[phrase][2]
        return found

    def new_in(self, words: Sequence[str]) -> Iterator[Copy]:
        """The names of phrases in a sentence that are not units."""
        for i, j, phrase in self.phrases_in(words):
            number, kinds, _ = self._leaf_of[phrase]
            if number < 0:
                yield from (Copy(self.phrases[phrase], kind, i, j) for kind in kinds)

    def spelt(self, sentences: Iterable[Sequence[str]]) -> dict[int, set[str]]:
        """Words that each leaf is written with in some sentences."""
        found: dict[int, set[str]] = defaultdict(set)
        for words in sentences:
            for i, j, leaf in self.written_in(words):
                found[leaf].update(word for word in words[i:j] if any(map(str.isalnum, word)))
        return found

    def written_in(self, words: Sequence[str]) -> Iterator[tuple[int, int, int]]:
        """``(begin, end, leaf)`` of the leaves that are written in a sentence."""
        spelt = [plain([word]) for word in words]
        for i in range(len(words)):
            text = ""
            for j, word in enumerate(spelt[i : i + LONGEST_NAME], start=i + 1):
                text += word
                own = (text, text[:-1]) if is_possessive(words[j - 1]) else (text,)
                for leaf in chain.from_iterable(self.written.get(way, ()) for way in own):
                    yield i, j, leaf

    def read_in(self, words: Sequence[str]) -> Iterator[int]:
        """The leaves that words mean as numbers which are written otherwise."""
        for kind, readings in self.readings.items():
            numbers = (number_in(word, readings) for word in words)
            yield from (self._leaf_of_number[kind][n] for n in numbers if n in self._leaf_of_number[kind])

    def called(self, words: Sequence[str]) -> set[int]:
        """The leaves that may be meant."""
        found = set(self.always)
        for word in {*words, *map(BESIDE.join, pairwise(words))}:
            found.update(self.calls.get(word, ()))
        found.update(leaf for _, _, leaf in self.written_in(words))
        found.update(self.read_in(words))
        found.update(self._leaf_of[phrase][0] for _, _, phrase in self.phrases_in(words))
        return found - {-1}


def plain(words: Sequence[str]) -> str:
    """Letters and digits of words."""
    return "".join(c for word in words for c in word if c.isalnum())


def looks_in(words: Sequence[str]) -> Iterator[tuple[int, int, str]]:
    """``(begin, end, look)`` of the stretches of words that may be a name."""
    shapes = [*map(shape_of, words)]
    for i in range(len(words)):
        for j in range(i + 1, min(i + LONGEST_NAME, len(words)) + 1):
            yield i, j, look_of(shapes[i:j])
