"""How the names of a kind are written, from which words of a sentence that name a new one are written alike."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from structsvm.oracles.meanings.lexicon import looks_in
from structsvm.oracles.meanings.readings import Form, Reading, number_in
from structsvm.oracles.meanings.words import END_MARKS, as_written, is_possessive
from structsvm.structures.meaning_units import MeaningUnits, around, words_of
from structsvm.structures.meanings import Meaning

# No constant may have them in it, but for an apostrophe in one with quotes around it.
OF_TERMS = frozenset("(),'\"")
# Joins words of a name, unless there is another mark.
JOINTS = " _"
# From quotation marks to how an apostrophe may be written between them.
ESCAPED = {"'": ("\\'", "''"), '"': ("\\'",)}
QUOTES = "".join(ESCAPED)
# Signs at the begin and the end of names that are no part of a number.
SIGNS_BEFORE, SIGNS_BEHIND = re.compile(r"[^\w\s'\"+.-]*"), re.compile(r"[^\w\s'\"+.-]*$")
BRACKETS = "[]", "{}", "<>"
NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?")
# Share of the names that begin with a capital from which on all of their kind do.
TITLED = 0.9


class Spelling:
    """From words to a name of a kind.

    With their case, unless no name has capitals, or nothing else, or nearly all begin with one and the words have none;
    between words stands what most names of several words have there, and around a mark that is a word of its own what
    names with that mark have. The mark that ends a question is no part of a name, nor is the 's of *Kim's* unless names
    are quoted. A word that is read as a number is that number. Quotation marks are those of most names, apostrophes
    between them as in some; the type of the kind stands beside the name, as do marks that all names begin or end with.
    Words with the mark of that type, which is in no name, have their own type.

    Parameters
    ----------
    units : MeaningUnits
    kind : int
    readings : dict, optional
        Those of the kind, see `readings_of`.

    Examples
    --------
    >>> from structsvm.oracles.meanings.spelling import Spelling
    >>> from structsvm.structures.meaning_units import MeaningUnits
    >>> from structsvm.structures.meanings import parse_meaning
    >>> names = ("'Upper Mill'", "'Stoke-on-Trent'", "'Rome'")
    >>> units = MeaningUnits([parse_meaning(f"in({name})") for name in names])
    >>> spelling = Spelling(units, max(units.kinds))
    >>> spelling(["Old", "Mill?"]), spelling(["Ashton", "-", "in", "-", "Fell"])
    ("'Old Mill'", "'Ashton-in-Fell'")
    """

    def __init__(self, units: MeaningUnits, kind: int, readings: Mapping[Form, Reading] | None = None) -> None:
        self.readings = readings or {}
        trees = [units.units[unit].tree for unit in units.members[kind]]
        self.wrapper = around(trees[0])
        before, _, behind = units.parted(trees[0])
        constants = [units.parted(tree)[1] for tree in trees]
        quotes = Counter(constant[0] for constant in constants if constant[0] in QUOTES)
        self.is_quoted = quotes.total() == len(constants)
        self.quote = max(QUOTES, key=lambda quote: quotes[quote])
        quoted = [constant[1:-1] for constant in constants if constant[0] == self.quote]
        forms = (form for form in ESCAPED[self.quote] if any(form in text for text in quoted))
        self.apostrophe = next(forms, "'")
        names = [constant.strip(QUOTES).replace(self.apostrophe, "'") for constant in constants]
        begin = shared({found[0] for found in map(SIGNS_BEFORE.match, names) if found})
        end = shared({found[0] for found in map(SIGNS_BEHIND.search, names) if found})
        names = [name.removeprefix(begin).removesuffix(end) for name in names]
        self.before, self.behind = before + begin, end + behind
        self.refused = OF_TERMS - ({"'"} if self.is_quoted else set())
        joints = JOINTS if self.is_quoted else f"{JOINTS}-"  # a hyphen between quotes may be the name's own
        if (self.before or self.behind) and not self.is_quoted:
            joints = joints.removeprefix(" ")  # no quotes beside a type
        self.joint = max(joints, key=lambda joint: sum(joint in name[1:-1] for name in names))
        self.tight = tight_sides(names, self.joint)
        marks = {text for text in (before[-1:], behind[:1]) if is_mark(text)} - {"", self.joint}
        self.own_marks = "".join(sorted(mark for mark in marks if not any(mark in name for name in names)))
        self.pairs = [pair for pair in BRACKETS if all(is_closed(constant, pair) for constant in constants)]
        self.numbers = {name.isdecimal() for name in names}
        self.is_folded = all(name == name.casefold() for name in names)
        self.is_upper = not self.is_folded and all(name == name.upper() for name in names)
        self.n_words = max(len(words_of(name)) for name in names)
        self.small = words_in_lower_case(names, self.joint)
        n_titled = sum(name[:1] != name[:1].lower() or not name[:1].isalpha() for name in names)
        self.is_titled = not (self.is_folded or self.is_upper) and n_titled >= TITLED * len(names)
        self.ends = "".join(mark for mark in END_MARKS if not any(name.endswith(mark) for name in names))

    def __call__(self, words: Sequence[str]) -> Meaning | None:
        """Return the tree of a name, None for words that make no name."""
        stripped = [part for word in words for part in word.strip(QUOTES).split()] or [""]
        stripped[-1] = stripped[-1].rstrip(self.ends)
        if is_possessive(stripped[-1]) and not self.is_quoted:
            stripped[-1] = stripped[-1][:-2]
        if not all(self.may_stand(word) for word in stripped) or is_mark(stripped[0]) or is_mark(stripped[-1]):
            return None
        number = number_in(stripped[0], self.readings) if len(stripped) == 1 else None
        if number is not None:
            return None if number < 0 else self.leaf(str(number))
        if self.is_titled and not any(map(str.isupper, "".join(stripped))):
            stripped = [word if t and word in self.small else titled(word) for t, word in enumerate(stripped)]
        whole = self.joined(stripped)
        text = self.untyped(whole)
        if text.isdecimal() not in self.numbers and not (True in self.numbers and NUMBER.fullmatch(text)):
            return None
        # A part that begins or ends with the mark of the type, or a joint beside the type.
        parts = text.split(self.joint)
        if any(part.strip(self.own_marks) != part for part in parts) or (text != whole and "" in parts):
            return None
        text = text.casefold() if self.is_folded else text.upper() if self.is_upper else text
        return self.leaf(text) if all(is_closed(text, pair) for pair in self.pairs) else None

    def typed_in(self, words: Sequence[str], looks: Container[str]) -> Iterator[tuple[int, int]]:
        """Stretches of words with the type of the kind: a word that has it, and those of some looks without it."""
        bare = {}
        for t, word in enumerate(words) if self.before or self.behind else ():
            plain = as_written(word).rstrip(self.ends)
            if self.untyped(plain) != plain:
                bare[t] = self.untyped(plain)
        for a, b, look in looks_in([bare.get(t, word) for t, word in enumerate(words)]) if bare else ():
            at = b - 1 if self.behind else a
            if at in bare and (b - a == 1 or look in looks):
                yield a, b

    def untyped(self, text: str) -> str:
        """A text without the type of the kind, if it has it."""
        inner = text[len(self.before) : len(text) - len(self.behind)]
        return inner if f"{self.before}{inner}{self.behind}" == text and not is_mark(inner) else text

    def leaf(self, name: str) -> Meaning:
        """The tree of a name, with its type, unless it has another one."""
        if not any(mark in name for mark in self.own_marks):
            name = f"{self.before}{name}{self.behind}"
        if self.is_quoted or " " in name:
            own = name.replace("'", self.apostrophe)
            name = f"{self.quote}{own}{self.quote}"
        return (*self.wrapper, name) if self.wrapper else name

    def may_stand(self, word: str) -> bool:
        """Whether a word may be a part of a name: one of letters or digits, or a mark that names of the kind have."""
        return self.refused.isdisjoint(word) and (not is_mark(word) or (word, "left") in self.tight)

    def joined(self, words: Sequence[str]) -> str:
        """Words, with what stands between them."""
        text = words[0]
        for left, right in pairwise(words):
            is_tight = self.tight.get((left, "right"), False) or self.tight.get((right, "left"), False)
            text += right if is_tight else self.joint + right
        return text


def shared(texts: set[str]) -> str:
    """The text that all are; "" if they differ."""
    return next(iter(texts)) if len(texts) == 1 else ""


def is_closed(text: str, pair: str) -> bool:
    """Whether a text has as many closing as opening brackets of a pair."""
    return text.count(pair[0]) == text.count(pair[1])


def titled(word: str) -> str:
    """A word with a capital."""
    return word[:1].title() + word[1:]


def is_mark(word: str) -> bool:
    """Whether a word has neither letters nor digits."""
    return re.search(r"[^\W_]", word) is None


def tight_sides(names: Iterable[str], joint: str) -> dict[tuple[str, str], bool]:
    """For both sides of each mark in some names, whether most have no joint there."""
    tight: Counter[tuple[str, str]] = Counter()
    for name in names:
        for found in re.finditer(r"(?<=.)[^\w\s](?=.)", name):
            mark, i = found[0], found.start()
            tight[mark, "left"] += 1 if name[i - 1] != joint else -1
            tight[mark, "right"] += 1 if name[i + 1] != joint else -1
    return {side: n > 0 for side, n in tight.items()}


def words_in_lower_case(names: Iterable[str], joint: str) -> set[str]:
    """Words that names of several words mostly have without a capital."""
    lower: Counter[str] = Counter()
    for name in names:
        for word in name.split(joint)[1:]:
            lower[word.casefold()] += 1 if word == word.casefold() else -1
    return {word for word, n in lower.items() if n > 0}
