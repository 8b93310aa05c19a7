"""Regular expressions over labels, and their automata by positions (Glushkov's construction, then subsets).

An expression consists of labels and classes of labels, separated by blanks:

    O   "a label"           a label; in quotes if it has blanks or any of ( ) | * + ? { } [ ], or is a full stop
    .                       any label
    [B-PER I-*]  [^O]       one of some labels, or all others; * stands for any text
    e f    e | f    ( e )   one after the other, either, a group
    e*  e+  e?  e{2}  e{2,}  e{2,4}
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

import numpy as np

from structsvm.structures.languages.automaton import MOST_STATES, Automaton, TooLarge

# Places of labels in an expression, with those of counted repetitions written out.
MOST_PLACES = 4096

# Most groups within groups, and operators after one label or group.
MOST_GROUPS = 60
MOST_OPERATORS = 3

TOKENS = re.compile(
    r"""\s*(?: (?P<quoted>'[^']*'|"[^"]*") | (?P<count>\{\s*\d+\s*(?:,\s*\d*\s*)?\}) | (?P<sign>[()|*+?\[\]])
           | (?P<name>[^\s()|*+?{}\[\]'"]+) )""",
    re.VERBOSE,
)
# A sign with which a label could be read as an expression, or as several ones.
SIGNS = re.compile(r"""[\s()|*+?{}\[\]'"]""")
IN_CLASS = re.compile(r"""\s*(?: (?P<quoted>'[^']*'|"[^"]*") | (?P<sign>\]) | (?P<name>[^\s\[\]'"]+) )""", re.VERBOSE)


@dataclass(frozen=True)
class OneOf:
    """A label of a set."""

    label_ids: frozenset[int]


@dataclass(frozen=True)
class Then:
    """One expression after the other."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True)
class Either:
    """One of some expressions."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True)
class Repeated:
    """An expression `least` to `most` times; None: any number of times."""

    part: Expression
    least: int = 0
    most: int | None = None


Expression = OneOf | Then | Either | Repeated

# The empty sequence alone: repetitions of it are not written out.
NOTHING = Then(())


def parse(text: str, names: Sequence[str]) -> Expression:
    """Return the expression of a text over labels with some names.

    Raises ValueError, with the position, for a text that is no expression, for labels that do not occur, and where a
    label with signs of expressions could be meant as well: ``NAME?`` is a NAME that may be left out, or the label
    "NAME?"; ``.`` any label, or the full stop of a treebank; ``[^ N]`` all labels but N, or one of "^" and N.
    """
    found = label_within(text, names)
    try:
        expression = _Parser(text, names).whole()
    except ValueError as failed:
        if found is None:
            raise
        raise ValueError(f"{failed}; the label {found[0]!r} stands in quotes, as it has signs of expressions") from None
    if found is not None:
        name, at, other = found
        raise ValueError(
            f"the expression {text!r:.200}, at character {at + 1}: this may be the label {name!r}, which stands in "
            f"quotes, or {other}"
        )
    return expression


def label_within(text: str, names: Sequence[str]) -> tuple[str, int, str] | None:
    """The first label with signs of expressions that a text could mean, where it is, and what else could be meant."""
    labels = [name for name in names if SIGNS.search(name) or name == "." or name.startswith("^")]
    at, tokens = 0, TOKENS
    while labels and (found := tokens.match(text, at)) and found.lastgroup is not None:
        kind, (start, at) = found.lastgroup, (found.start(found.lastgroup), found.end())
        in_class = tokens is IN_CLASS
        for name in labels if kind != "quoted" else ():
            is_alone = in_class and kind == "name" and matching(text[start:at], names) == {names.index(name)}
            if not is_alone and could_be(name, text, start, at, kind, in_class=in_class):
                return name, start, meaning(name, text[start:at], names, in_class=in_class)
        if kind == "sign" and text[start:at] in "[]":
            tokens = TOKENS if text[start:at] == "]" else IN_CLASS
            if text[start : at + 1] == "[^":
                if (name := label_after(text, at)) in labels:
                    return name, at, "all labels but some: put the first of these in quotes"
                at += 1
    return None


def label_after(text: str, at: int) -> str:
    """The name that begins in a class at a place, up to a blank or the end of the class; "" before quotes."""
    found = IN_CLASS.match(text, at)
    return "" if found is None or found["name"] is None or text[found.end() :][:1] in ("'", '"') else found["name"]


def could_be(name: str, text: str, start: int, end: int, kind: str, *, in_class: bool) -> bool:
    """Whether a label begins where a token of an expression does, and may be what is meant."""
    stop, token = start + len(name), text[start:end]
    if stop < end or not text.startswith(name, start):
        return False
    is_apart = start == 0 or text[start - 1].isspace()
    if stop == end:
        if kind == "name":
            return "*" in name if in_class else name == "."
        return is_apart and (end == len(text) or text[end].isspace())
    ends_here = stop == len(text) or bool(SIGNS.match(text[stop])) or bool(SIGNS.match(name[-1]))
    return ends_here and (is_apart or token not in tuple("*+?|)]"))


def meaning(name: str, token: str, names: Sequence[str], *, in_class: bool) -> str:
    """How the other meaning of a token, which could be a label, is written."""
    if name != token:
        return "an expression: put ( ) around its first label, or blanks between its signs"
    if name == ".":
        return f"any label: write [{no_label('*', names)}]"
    if in_class and "*" in name:
        return f"some labels: name them, or write {no_label(name, names)}"
    return "an operator or a group: write it without blanks around it"


def no_label(pattern: str, names: Sequence[str]) -> str:
    """A pattern with the same meaning that is no label itself."""
    while pattern in names:
        pattern = pattern.replace("*", "**", 1)
    return pattern


def matching(pattern: str, names: Sequence[str]) -> set[int]:
    """The labels that a pattern of a class matches."""
    exact = pattern.replace("?", "[?]")
    return {k for k, name in enumerate(names) if fnmatchcase(name, exact)}


def automaton_of(expression: Expression, n_labels: int) -> Automaton:
    """The smallest automaton of an expression. Raises TooLarge."""
    return _Places(expression, n_labels).automaton().minimal()


class _Parser:
    """Recursive descent over the tokens of a text."""

    def __init__(self, text: str, names: Sequence[str]) -> None:
        self.text, self.names, self.at, self.depth = text, names, 0, 0
        self.ids = {name: k for k, name in enumerate(names)}

    def wrong(self, at: int, wanted: str) -> ValueError:
        """The error of a position."""
        came = "its end" if at >= len(self.text) else repr(self.text[at : at + 20])
        return ValueError(f"the expression {self.text!r:.200}, at character {at + 1}: expected {wanted}, got {came}")

    def peek(self, tokens: re.Pattern[str] = TOKENS) -> tuple[str, str, int, int]:
        """The next token: kind, text, where it starts and ends; the kind "" at the end."""
        found = tokens.match(self.text, self.at)
        if found is None or found.lastgroup is None:
            rest = self.text[self.at :]
            at = self.at + len(rest) - len(rest.lstrip())
            if at < len(self.text):
                raise self.wrong(at, "a label, a class or an operator (labels with other signs stand in quotes)")
            return "", "", at, at
        return found.lastgroup, found[found.lastgroup], found.start(found.lastgroup), found.end()

    def whole(self) -> Expression:
        expression = self.either()
        kind, _, at, _ = self.peek()
        if kind:
            raise self.wrong(at, "an operator or the end")
        return expression

    def either(self) -> Expression:
        parts = [self.then()]
        while self.peek()[1:2] == ("|",) and self.peek()[0] == "sign":
            self.at = self.peek()[3]
            parts.append(self.then())
        return parts[0] if len(parts) == 1 or all(part == NOTHING for part in parts) else Either(tuple(parts))

    def then(self) -> Expression:
        parts = [self.repeated()]
        while True:
            kind, sign, _, _ = self.peek()
            if not kind or (kind == "sign" and sign in "|)]"):
                parts = [part for part in parts if part != NOTHING]
                return parts[0] if len(parts) == 1 else Then(tuple(parts))
            parts.append(self.repeated())

    def repeated(self) -> Expression:
        part = self.atom()
        for _ in range(MOST_OPERATORS + 1):
            kind, sign, at, end = self.peek()
            if kind == "count":
                least, comma, most = (piece.strip() for piece in sign[1:-1].partition(","))
                upper = int(least) if not comma else int(most) if most else None
                if upper is not None and upper < int(least):
                    raise self.wrong(at, f"at least {least} repetitions as the most")
                part = _repeated(part, int(least), upper)
            elif kind == "sign" and sign in "*+?":
                part = _repeated(part, int(sign == "+"), 1 if sign == "?" else None)
            else:
                return part
            self.at = end
        raise self.wrong(at, f"at most {MOST_OPERATORS} operators one after another")

    def atom(self) -> Expression:
        kind, sign, at, end = self.peek()
        self.at = end
        if kind == "quoted":
            return OneOf(frozenset([self.label(sign[1:-1], at)]))
        if kind == "name":
            return OneOf(frozenset(range(len(self.names))) if sign == "." else frozenset([self.label(sign, at)]))
        if kind == "sign" and sign == "[":
            return self.of_class(at)
        if kind == "sign" and sign == "(":
            self.depth += 1
            if self.depth > MOST_GROUPS:
                raise self.wrong(at, f"at most {MOST_GROUPS} groups within groups")
            inner = self.either()
            self.depth -= 1
            _, sign, at_end, end = self.peek()
            if sign != ")":
                raise self.wrong(at_end, f"a ) for the ( at character {at + 1}")
            self.at = end
            return inner
        raise self.wrong(at, "a label or a class of labels")

    def of_class(self, start: int) -> OneOf:
        found, is_other, count = set[int](), self.text[self.at : self.at + 1] == "^", 0
        self.at += is_other
        while True:
            kind, token, at, end = self.peek(IN_CLASS)
            if not kind:
                raise self.wrong(at, f"a ] for the [ at character {start + 1}")
            self.at = end
            if kind == "sign":
                break
            count += 1
            found |= self.matching(token, at) if kind == "name" else {self.label(token[1:-1], at)}
        if not count:
            raise self.wrong(start, "a class with labels")
        return OneOf(frozenset(range(len(self.names))) - found if is_other else frozenset(found))

    def matching(self, pattern: str, at: int) -> set[int]:
        if "*" not in pattern:
            return {self.label(pattern, at)}
        found = matching(pattern, self.names)
        if not found:
            raise ValueError(self.unknown(pattern, at))
        return found

    def label(self, name: str, at: int) -> int:
        if name not in self.ids:
            raise ValueError(self.unknown(name, at))
        return self.ids[name]

    def unknown(self, name: str, at: int) -> str:
        return (
            f"the expression {self.text!r:.200}, at character {at + 1}: {name!r} is none of the labels "
            f"{', '.join(self.names):.300}"
        )


def _repeated(part: Expression, least: int, most: int | None) -> Expression:
    return NOTHING if most == 0 or part == NOTHING else Repeated(part, least, most)


class _Places:
    """The places of labels in an expression: which may come first, last, and one after the other, as sets of bits."""

    def __init__(self, expression: Expression, n_labels: int) -> None:
        self.following: list[int] = []
        self.of_label = [0] * n_labels
        self.is_nullable, self.first, self.last = self.visit(expression)

    def visit(self, e: Expression) -> tuple[bool, int, int]:
        """``(nullable, first, last)`` of an expression, whose places are added."""
        if isinstance(e, OneOf):
            bit = 1 << len(self.following)
            self.following.append(0)
            if len(self.following) > MOST_PLACES:
                raise TooLarge(f"it has more than {MOST_PLACES} labels, counted repetitions written out")
            for label in e.label_ids:
                self.of_label[label] |= bit
            return False, bit, bit
        if isinstance(e, Either):
            found = [self.visit(part) for part in e.parts]
            first = last = 0
            for _, starts, ends in found:
                first, last = first | starts, last | ends
            return any(part[0] for part in found), first, last
        so_far = (True, 0, 0)
        if isinstance(e, Then):
            for one in e.parts:
                so_far = self.joined(so_far, self.visit(one))
            return so_far
        for _ in range(e.least - (e.most is None)):
            so_far = self.joined(so_far, self.visit(e.part))
        if e.most is None:  # the last one comes again and again
            is_nullable, first, last = self.visit(e.part)
            self.join(last, first)
            return self.joined(so_far, (is_nullable or e.least == 0, first, last))
        # e{0,2} is (e (e)?)?: nested from the last one on, so that places that are left out leave out the later ones.
        rest = [self.visit(e.part) for _ in range(e.most - e.least)]
        tail = (True, 0, 0)
        for places in reversed(rest):
            tail = (True, *self.joined(places, tail)[1:])
        return self.joined(so_far, tail)

    def join(self, ends: int, starts: int) -> None:
        for place in _bits(ends):
            self.following[place] |= starts

    def joined(self, a: tuple[bool, int, int], b: tuple[bool, int, int]) -> tuple[bool, int, int]:
        self.join(a[2], b[1])
        return a[0] and b[0], a[1] | (b[1] if a[0] else 0), b[2] | (a[2] if b[0] else 0)

    def automaton(self) -> Automaton:
        """Subsets of places: a state is the set of those at which a prefix may just have been."""
        seen, sets, rows = {-1: 0}, [-1], list[list[int]]()
        k = 0
        while k < len(sets):
            after = self.first if sets[k] < 0 else 0
            for place in _bits(max(sets[k], 0)):
                after |= self.following[place]
            row = []
            for of in self.of_label:
                now = after & of
                if now and now not in seen:
                    seen[now] = len(sets)
                    sets.append(now)
                row.append(seen[now] if now else -1)
            rows.append(row)
            k += 1
            if len(sets) > MOST_STATES:
                raise TooLarge(f"its automaton has more than {MOST_STATES} states")
        ends = [self.is_nullable if one < 0 else bool(one & self.last) for one in sets]
        return Automaton(np.array(rows), ends)


def _bits(number: int) -> list[int]:
    found = []
    while number:
        low = number & -number
        found.append(low.bit_length() - 1)
        number ^= low
    return found
