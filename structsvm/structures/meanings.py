"""Meaning representations: trees of relations and constants, their text, and the grammars that define valid ones.

A constant is a str, a relation a tuple of its name and its arguments: ``pass(purple9,purple2)`` is
``("pass", "purple9", "purple2")`` and ``ballstopped()`` is ``("ballstopped",)``.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

__all__ = ["MeaningGrammar", "Nonterminal", "Symbol", "format_list", "format_meaning", "parse_meaning"]

# A constant, or a relation: its name, then its arguments.
Meaning = str | tuple[Any, ...]

MAX_DEPTH = 100
# Symbols of a grammar in each category and argument where they may stand: quadratic in its lines at worst.
MOST_HEADS = 2_000_000
# Brackets that are a part of names.
BRACKETS = {"[": "]", "{": "}"}
# Beginning of the line of a grammar that names relations whose arguments may stand in any order.
ANY_ORDER = "%any_order "
# An order of two arguments is read from meanings if it is so sure, one half of a meaning being added for each order,
# and if so many meanings have two kinds of arguments in the relation: fewer may be all that `minus(a,b)` was met with.
SURE_ORDER, FEWEST_ORDERED = 0.9, 20

# A quote ends where a comma, a closing bracket or the end follows: that of 'McDonald's' is the last.
_TOKEN = re.compile(
    r"""\s*(?:([(),])|('(?:[^']|'(?!\s*(?:[,)]|$)))*'|"(?:[^"]|"(?!\s*(?:[,)]|$)))*")|([^\s(),'"]+)|(\S))"""
)
# In lists, ``(f a "b c")``, a quote ends before a blank, a bracket or the end; quotes inside stand within a word.
_LIST_QUOTED = "|".join(rf"{q}(?:[^{q}]|(?<=[^\s{q}]){q}(?=[^\s(){q}]))*{q}(?=[\s()]|$)" for q in ("'", '"'))
_LIST_TOKEN = re.compile(rf"""\s*(?:([()])|({_LIST_QUOTED})|([^\s(),'"]+)([('"])?|(\S))""")
_PLAIN = re.compile(r"""[^\s(),'"]+""")


class Nonterminal(str):
    """A place in a production, to be filled by a tree of this category.

    Examples
    --------
    >>> from structsvm.structures.meanings import Nonterminal, parse_meaning
    >>> parse_meaning("kick(Player)", nonterminal=str.istitle)
    ('kick', 'Player')
    """

    __slots__ = ()


def parse_meaning(text: str, nonterminal: Callable[[str], bool] | None = None) -> Meaning:
    """Return the tree of the text of a meaning representation.

    Blanks between its parts are ignored; a name with blanks, brackets or commas is quoted, and the quotes are part of
    it (``'south carolina'``); a quote inside (``'McDonald's'``) is one that no comma or closing bracket follows. Text
    that begins with a bracket is a list of Lisp, the name of a relation first: ``(pass pink1 (next pink2))``; there a
    quote inside of a quotation stands within a word. Raises ValueError, with the position, for unbalanced brackets and
    other errors.

    Parameters
    ----------
    text : str
    nonterminal : callable, optional
        Whether a name is a nonterminal of a grammar.

    Examples
    --------
    >>> from structsvm.structures.meanings import parse_meaning
    >>> parse_meaning("pass(pink1, pink2)")
    ('pass', 'pink1', 'pink2')
    >>> parse_meaning("(pass pink1 (next pink2))")
    ('pass', 'pink1', ('next', 'pink2'))
    """
    if nonterminal is None and text.lstrip().startswith("("):
        return _parse_list(text)
    stack: list[list[Any]] = []
    done: Any = None
    name: str | None = None
    # `name` may be followed by an argument list, a comma or the end; `done` is the argument before this position.
    for match in _TOKEN.finditer(text.rstrip()):
        mark, quoted, plain, other = match.groups()
        place = match.start(match.lastindex or 0)
        if other is not None:
            raise _wrong(text, place, "a quote that is not closed")
        if mark is None:
            if name is not None or done is not None:
                raise _wrong(text, place, "a name where a comma or a bracket should stand")
            if quoted is not None:
                done = _quoted(quoted)
            elif nonterminal is not None and nonterminal(plain):
                done = Nonterminal(plain.removeprefix("@"))
            else:
                name = plain
        elif mark == "(":
            if name is None:
                raise _wrong(text, place, "an opening bracket without the name of a relation")
            if len(stack) == MAX_DEPTH:
                raise _wrong(text, place, f"brackets deeper than {MAX_DEPTH}")
            stack.append([name])
            name = None
        else:
            argument = done if name is None else name
            done = name = None
            if not stack:
                raise _wrong(text, place, f"{mark!r} outside of all brackets: they are unbalanced")
            if argument is not None:
                stack[-1].append(argument)
            elif mark == "," or len(stack[-1]) > 1:
                raise _wrong(text, place, "an argument that is missing")
            if mark == ")":
                done = tuple(stack.pop())
    if stack:
        raise _wrong(text, len(text), f"the end, with {len(stack)} brackets open: they are unbalanced")
    tree = done if name is None else name
    if tree is None:
        raise ValueError("a meaning representation is empty")
    return tree


def _quoted(text: str) -> str:
    """A quotation with single blanks."""
    return f"{text[0]}{' '.join(text[1:-1].split())}{text[0]}"


def _parse_list(text: str) -> Meaning:
    """The tree of a list of Lisp."""
    stack: list[list[Any]] = []
    done: Any = None
    for match in _LIST_TOKEN.finditer(text.rstrip()):
        mark, quoted, plain, bracket, other = match.groups()
        place = match.start(match.lastindex or 0)
        if done is not None:
            raise _wrong(text, place, "something after the last bracket of the list that the text begins with")
        if other is not None or bracket:
            raise _wrong(text, place, f"{other or bracket!r} where a list, as in '(f a (g b))', has blanks")
        if mark == "(":
            if stack and not stack[-1]:
                raise _wrong(text, place, "a list that begins with a list, not with the name of a relation")
            if len(stack) == MAX_DEPTH:
                raise _wrong(text, place, f"brackets deeper than {MAX_DEPTH}")
            stack.append([])
            continue
        part: Any = _quoted(quoted) if quoted else plain
        if mark == ")":
            if not stack[-1]:
                raise _wrong(text, place, "an opening bracket without the name of a relation")
            part = tuple(stack.pop())
        elif quoted and not stack[-1]:
            raise _wrong(text, place, "a list that begins with a quotation, not with the name of a relation")
        if stack:
            stack[-1].append(part)
        else:
            done = part
    if done is None:
        raise _wrong(text, len(text), f"the end, with {len(stack)} brackets open: they are unbalanced")
    return done


def format_list(tree: Meaning) -> str:
    """Return the text of a tree as a list of Lisp, as `parse_meaning` reads it.

    Raises ValueError for a quotation that no list can hold: with a quote inside that stands at an end of a word.

    Examples
    --------
    >>> from structsvm.structures.meanings import format_list, parse_meaning
    >>> format_list(parse_meaning("pass(pink1,next(pink2))"))
    '(pass pink1 (next pink2))'
    """
    if not isinstance(tree, str):
        return f"({' '.join([tree[0], *map(format_list, tree[1:])])})"
    if not (_PLAIN.fullmatch(tree) or re.fullmatch(_LIST_QUOTED, tree)):
        raise ValueError(f"{tree!r:.80} cannot stand in a list: a quote inside of it is at an end of a word")
    return tree


def _wrong(text: str, place: int, what: str) -> ValueError:
    return ValueError(f"{what}, at character {place + 1} of the meaning representation {text!r:.200}")


def format_meaning(tree: Meaning) -> str:
    """Return the text of a tree, without blanks.

    Examples
    --------
    >>> from structsvm.structures.meanings import format_meaning, parse_meaning
    >>> format_meaning(parse_meaning("pass( pink1, pink2 )"))
    'pass(pink1,pink2)'
    """
    if isinstance(tree, str):
        return str(tree)
    return f"{tree[0]}({','.join(map(format_meaning, tree[1:]))})"


def as_meaning(meaning: Meaning) -> Meaning:
    """A tree from text or nested tuples; raises ValueError or TypeError for anything else."""
    if isinstance(meaning, str):
        return parse_meaning(meaning)
    if not isinstance(meaning, tuple):
        raise TypeError(f"a meaning representation is text or nested tuples, got {meaning!r:.80}")
    _check_tree(meaning, 1)
    return meaning


def _check_tree(tree: tuple[Any, ...], depth: int) -> None:
    if depth > MAX_DEPTH:
        raise ValueError(f"a meaning representation is deeper than {MAX_DEPTH}")
    if not tree or not isinstance(tree[0], str):
        raise TypeError(f"a relation is a tuple of a name and its arguments, got {tree!r:.80}")
    if not _PLAIN.fullmatch(tree[0]):
        raise ValueError(f"{tree[0]!r:.80} is no name of a relation: it holds blanks, brackets, commas or quotes")
    for part in tree[1:]:
        if isinstance(part, tuple):
            _check_tree(part, depth + 1)
        elif not isinstance(part, str):
            raise TypeError(f"an argument is a str or a tuple, got {part!r:.80}")
        elif not _PLAIN.fullmatch(part) and parse_meaning(part) != part:
            raise ValueError(f"{part!r:.80} is no name of a constant as it would be read; write it as text")


def half_of_list(tree: Meaning) -> str | None:
    """The first constant of a tree that a square or curly bracket opens which is not closed in it; None without one.

    Examples
    --------
    >>> from structsvm.structures.meanings import half_of_list, parse_meaning
    >>> half_of_list(parse_meaning("f(a[1],[b,c])"))
    '[b'
    """
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if not isinstance(node, str):
            waiting += reversed(node[1:])
        elif node[0] in BRACKETS and node.count(node[0]) > node.count(BRACKETS[node[0]]):
            return node
    return None


def in_one_order(tree: Meaning, names: Container[str]) -> Meaning:
    """The same meaning with the arguments of some relations in alphabetical order.

    Examples
    --------
    >>> from structsvm.structures.meanings import in_one_order, parse_meaning
    >>> in_one_order(parse_meaning("f(and(b,a),c)"), {"and"})
    ('f', ('and', 'a', 'b'), 'c')
    """
    if isinstance(tree, str):
        return tree
    parts = [in_one_order(part, names) for part in tree[1:]]
    return tree[0], *(sorted(parts, key=format_meaning) if tree[0] in names else parts)


def head(tree: Meaning) -> tuple[str, ...]:
    """The relation at the root, with the constants before its last argument if it has no others there; or a constant.

    Examples
    --------
    >>> from structsvm.structures.meanings import head, parse_meaning
    >>> head(parse_meaning("has(a,food,greek)")), head(parse_meaning("not(has(a,food,greek))"))
    (('has', 'a', 'food'), ('not',))
    """
    if isinstance(tree, str):
        return (tree,)
    before = tree[:-1] or tree
    return before if all(isinstance(part, str) for part in before) else tree[:1]


def ordered_pairs(heads: Sequence[tuple[str, ...]]) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Each pair of what `head` returns of arguments, in order; and that of their relations, if it is another one."""
    for a, b in combinations(heads, 2):
        yield a, b
        if len(a) > 1 or len(b) > 1:
            yield a[:1], b[:1]


# A number in a text: a constant, with its sign, or digits.
_NUMBER = re.compile(r"(?<=[(,])[+-]?\d+(?:\.\d+)?(?=[),])|\d+")


def by_number(text: str) -> list[str | float]:
    """A key that sorts texts by the numbers in them, and else by their letters.

    Examples
    --------
    >>> from structsvm.structures.meanings import by_number
    >>> by_number("year(800)"), sorted(["f(x10)", "f(x9)", "f(-1)", "f(-2.5)"], key=by_number)
    (['year(', 800.0, ')'], ['f(-2.5)', 'f(-1)', 'f(x9)', 'f(x10)'])
    """
    found: list[str | float] = []
    end = 0
    for number in _NUMBER.finditer(text):
        found += [text[end : number.start()], float(number[0])]
        end = number.end()
    return [*found, text[end:]]


def by_letters(text: str) -> list[str | float]:
    """A key that sorts texts as such."""
    return [text]


# How texts may be sorted: of two that hold as often the first.
_KEYS = by_number, by_letters


def with_sorted(parts: Sequence[Meaning], places: Sequence[int], by: int) -> list[Meaning]:
    """Arguments of which those at some places change places with one another, so that a key of `_KEYS` sorts them."""
    out, texts = [*parts], {k: format_meaning(parts[k]) for k in places}
    for k, other in zip(places, sorted(places, key=lambda k: (_KEYS[by](texts[k]), texts[k])), strict=True):
        out[k] = parts[other]
    return out


def turned(first: Meaning, second: Meaning) -> list[bool]:
    """For each key of `_KEYS`, whether it sorts the second argument before the first one."""
    texts = format_meaning(first), format_meaning(second)
    a, b = ([(key(text), text) for key in _KEYS] for text in texts)
    return [later < earlier for earlier, later in zip(a, b, strict=True)]


def surely(n: int, n_other: int) -> bool:
    """Whether what was met so often holds, but for one of ten: half a time is added to either count."""
    return n + 0.5 >= SURE_ORDER * (n + n_other + 1.0)


def alike(parts: Sequence[Meaning]) -> dict[tuple[str, ...], list[int]]:
    """From kinds of arguments, see `head`, of which two differ to their places; constants are of none.

    Examples
    --------
    >>> from structsvm.structures.meanings import alike
    >>> alike([("f", "a"), ("g", "b"), ("f", "c"), ("g", "b")])
    {('f',): [0, 2]}
    """
    places: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for k, part in enumerate(parts):
        if not isinstance(part, str):
            places[head(part)].append(k)
    return {kind: own for kind, own in places.items() if any(parts[k] != parts[own[0]] for k in own)}


class Symbol(NamedTuple):
    """A meaning of a word: a relation with `arity` arguments, or a constant (arity None).

    Examples
    --------
    >>> from structsvm.structures.meanings import parse_meaning, symbol_of
    >>> symbol_of(parse_meaning("pass(pink1,pink2)"))
    Symbol(name='pass', arity=2)
    """

    name: str
    arity: int | None


def symbol_of(tree: Meaning) -> Symbol:
    """The symbol at the root of a tree."""
    return Symbol(tree, None) if isinstance(tree, str) else Symbol(tree[0], len(tree) - 1)


class ArgumentOrder:
    """The order in which arguments stand that could stand in any.

    They are those of relations that are seen with several numbers of arguments, two or more (``intersection``), none of
    them a constant: where one is (``call(size,...)``), it may say what the others are by their places. Of two
    of their kinds, see `head`, one comes first if it does in nine of ten meanings, half a meaning being added to either
    count: in four that agree. There are `FEWEST_ORDERED` meanings or more with two kinds in the relation. Kinds that no
    meaning shows the other way stand as their relations do. Arguments of one kind are sorted, in the places that they
    have, by the numbers in their texts, or else as texts: where nine of ten meanings have them so, and nine of ten of
    those whose words say them otherwise, `FEWEST_ORDERED` or more; four, if those of all relations are so, and as many.

    Parameters
    ----------
    trees : iterable of meanings
    but : container of str, optional
        Relations whose arguments stay as they are.
    free : container of str, optional
        Relations whose arguments are known to stand in any order: fewer than `FEWEST_ORDERED` meanings do for them.
    against_words : dict, optional
        From a relation, a kind and a key's place in `_KEYS` to in how many meanings two arguments that the key sorts
        otherwise than the words do stand as the key has them, and in how many as the words do.
    """

    def __init__(
        self,
        trees: Iterable[Meaning],
        but: Container[str] = (),
        free: Container[str] = (),
        against_words: Mapping[tuple[str, tuple[str, ...], int], Sequence[int]] | None = None,
    ) -> None:
        met: dict[str, set[int]] = defaultdict(set)
        placed: set[str] = set()
        n_before: Counter[tuple[str, tuple[str, ...], tuple[str, ...]]] = Counter()
        n_ordered: Counter[str] = Counter()
        # By relation and kind: in how many meanings several arguments are there, and sorted.
        n_alike: Counter[tuple[str, tuple[str, ...]]] = Counter()
        n_sorted: dict[tuple[str, tuple[str, ...]], Counter[int]] = defaultdict(Counter)
        waiting = list(trees)
        while waiting:
            node = waiting.pop()
            if isinstance(node, str):
                continue
            if len(node) > 2:
                met[node[0]].add(len(node))
                if any(isinstance(part, str) for part in node[1:]):
                    placed.add(node[0])
                heads = [head(part) for part in node[1:] if not isinstance(part, str)]
                n_before.update((node[0], *pair) for pair in ordered_pairs(heads))
                n_ordered[node[0]] += len({*heads}) > 1
                for kind, places in alike(node[1:]).items():
                    is_sorted = [with_sorted(node[1:], places, k) == [*node[1:]] for k in range(len(_KEYS))]
                    n_alike[node[0], kind] += 1
                    n_sorted[node[0], kind].update(k for k, is_so in enumerate(is_sorted) if is_so)
            waiting += node[1:]
        sure = {name for name, n in n_ordered.items() if n >= FEWEST_ORDERED or name in free}
        several = {name for name, sizes in met.items() if len(sizes) > 1 and name not in but and name not in placed}
        self.n_before = Counter({key: n for key, n in n_before.items() if key[0] in sure & several})
        self.before = {
            (name, a, b) for (name, a, b), n in self.n_before.items() if a != b and surely(n, self.n_before[name, b, a])
        }
        # From a relation and a kind of its arguments to the place in `_KEYS` of what sorts these.
        self.sorted_by: dict[tuple[str, tuple[str, ...]], int] = {}
        against = against_words or {}
        sums = [
            [sum(own[i] for (*_, key), own in against.items() if key == k) for i in (0, 1)] for k in range(len(_KEYS))
        ]
        for (name, kind), n in n_alike.items():
            k = max(range(len(_KEYS)), key=lambda k: (n_sorted[name, kind][k], -k))
            n_so, n_words = against.get((name, kind, k), (0, 0))
            is_sure = surely(n_sorted[name, kind][k], n - n_sorted[name, kind][k]) and surely(n_so, n_words)
            is_usual = sums[k][0] >= FEWEST_ORDERED and surely(*sums[k])
            if name in several and is_sure and (is_usual or min(n_sorted[name, kind][k], n_so) >= FEWEST_ORDERED):
                self.sorted_by[name, kind] = k

    def sorted(self, tree: Meaning) -> Meaning:
        """The same meaning with its arguments in order."""
        if isinstance(tree, str) or not (self.before or self.sorted_by):
            return tree
        name, *parts = tree[0], *map(self.sorted, tree[1:])
        heads = [() if isinstance(part, str) else head(part) for part in parts]
        ahead = [sum(self._sign(name, a, b) for b in heads) for a in heads]
        parts = [parts[k] for k in sorted(range(len(parts)), key=lambda k: -ahead[k])]
        for kind, places in alike(parts).items() if self.sorted_by else ():
            if (name, kind) in self.sorted_by:
                parts = with_sorted(parts, places, self.sorted_by[name, kind])
        return name, *parts

    def _sign(self, name: str, a: tuple[str, ...], b: tuple[str, ...]) -> int:
        """1 if a comes first, -1 if b does, else 0."""
        sign = self._sure(name, a, b)
        if not sign and (sign := self._sure(name, a[:1], b[:1])):
            # Not if a meaning shows the kinds the other way.
            sign *= not self.n_before[(name, b, a) if sign > 0 else (name, a, b)]
        return sign

    def _sure(self, name: str, a: tuple[str, ...], b: tuple[str, ...]) -> int:
        return ((name, a, b) in self.before) - ((name, b, a) in self.before)


class MeaningGrammar:
    r"""A context-free grammar of meaning representations.

    Parameters
    ----------
    text : str
        Productions, one per line, ``LHS -> RHS``; empty lines and lines that begin with # are skipped. Either terminals
        are quoted and other names are nonterminals (``S -> 'kick' '(' Player ')'``), or nonterminals begin with @
        and all other tokens are terminals (``City -> loc_2 ( @State )``; a count and a tab may precede it).
        The first production's left-hand side is the start symbol. A line ``%any_order and or`` names relations whose
        arguments may stand in any order.
    name : str
        Its name in messages.

    Attributes
    ----------
    any_order : set of str
        Relations whose arguments may stand in any order, for scores.

    Raises
    ------
    ValueError
        For a line that is not a production; the message names it.

    Examples
    --------
    >>> from structsvm.structures.meanings import MeaningGrammar, parse_meaning
    >>> grammar = MeaningGrammar("S -> 'kick' '(' Player ')'\nPlayer -> 'pink1'\nPlayer -> 'pink2'")
    >>> grammar.accepts(parse_meaning("kick(pink2)")), grammar.accepts(parse_meaning("kick(kick)"))
    (True, False)
    """

    def __init__(self, text: str, name: str = "grammar") -> None:
        self.text = text
        lines = [(k, line.strip()) for k, line in enumerate(text.splitlines(), start=1)]
        lines = [(k, line) for k, line in lines if line and not line.startswith("#")]
        marked = any("@" in line.split("->")[-1] for _, line in lines)
        self.start: str | None = None
        self.any_order: set[str] = set()
        self.by_symbol: dict[Symbol, list[tuple[str, Meaning]]] = defaultdict(
            list
        )  # symbol at the root -> (category, pattern)
        # Right-hand sides in prefix order: symbol or category -> what may follow; at the end, the left-hand sides.
        self._patterns: dict[Any, Any] = {}
        # category -> categories derived from it by unit productions
        self.units: dict[str, set[str]] = defaultdict(set)
        for number, line in lines:
            try:
                self._add(line, marked)
            except ValueError as error:
                raise ValueError(f"{name}, line {number}: {error}") from None
        if self.start is None:
            raise ValueError(f"{name}: holds no productions")
        try:
            self._heads: dict[tuple[Symbol, int], set[Symbol]] = self._find_heads()
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None

    def _add(self, line: str, marked: bool) -> None:
        if line.startswith(ANY_ORDER) and "->" not in line:
            self.any_order |= {*line.split()[1:]}
            return
        left, arrow, right = line.rsplit("\t", maxsplit=1)[-1].partition("->")
        left, right = left.strip(), right.strip()
        if not arrow or not left or not right:
            raise ValueError(f"{line!r:.80} is no production LHS -> RHS")
        if marked:
            pattern = parse_meaning(right, lambda word: word.startswith("@"))
        else:
            if right.count("'") % 2:
                raise ValueError("a quote that is not closed")
            words = re.findall(r"'[^']*'|[^\s']+", right)
            text = " ".join(word[1:-1] if word[0] == "'" else f"@{word}" for word in words)
            pattern = parse_meaning(text, lambda word: word.startswith("@"))
        if self.start is None:
            self.start = left
        if isinstance(pattern, Nonterminal):
            self.units[str(pattern)].add(left)
        else:
            self.by_symbol[symbol_of(pattern)].append((left, pattern))
            self._remember(left, pattern)

    def _remember(self, left: str, pattern: Meaning) -> None:
        """Add a right-hand side, from left to right, to the tree of patterns."""
        node, waiting = self._patterns, [pattern]
        while waiting:
            part = waiting.pop()
            if not isinstance(part, str):
                waiting += part[:0:-1]
            node = node.setdefault(str(part) if isinstance(part, Nonterminal) else symbol_of(part), {})
        node[left] = None

    def categories(self, tree: Meaning) -> set[str]:
        """The set of categories that a tree belongs to."""
        return self._categories(tree, {})

    def _categories(self, tree: Meaning, known: dict[Meaning, set[str]]) -> set[str]:
        if tree not in known:
            known[tree] = self._closed(self._matching(tree, known))
        return known[tree]

    def _matching(self, tree: Meaning, known: dict[Meaning, set[str]]) -> set[str]:
        """The categories of the productions whose right-hand sides a tree fits.

        A walk over the subtrees from left to right, and with them down the tree of patterns: a subtree is its root
        symbol, followed by its parts, or a category. No two walks reach the same pattern, and patterns that differ in
        what the tree has are ignored, however many a relation has.
        """
        found: set[str] = set()
        waiting: list[tuple[dict[Any, Any], Any]] = [(self._patterns, (tree, None))]
        while waiting:
            node, rest = waiting.pop()
            if rest is None:
                found |= node.keys()
                continue
            part, rest = rest
            symbol = symbol_of(part)
            if len(node) > (symbol in node) and node is not self._patterns:
                waiting += [(node[category], rest) for category in node.keys() & self._categories(part, known)]
            if symbol in node:
                for below in () if isinstance(part, str) else part[:0:-1]:
                    rest = (below, rest)
                waiting.append((node[symbol], rest))
        return found

    def _closed(self, categories: Iterable[str]) -> set[str]:
        """The categories, and all that unit productions derive from them."""
        waiting, closed = list(categories), set(categories)
        while waiting:
            new = self.units.get(waiting.pop(), set()) - closed
            closed |= new
            waiting += new
        return closed

    def accepts(self, tree: Meaning) -> bool:
        """Whether a tree belongs to the start symbol."""
        return self.start in self.categories(tree)

    def _find_heads(self) -> dict[tuple[Symbol, int], set[Symbol]]:
        """(relation, argument) -> the symbols that may be the root of that argument."""
        roots: dict[str, set[Symbol]] = defaultdict(set)
        n_held = 0

        def count(n: int) -> None:
            nonlocal n_held
            n_held += n
            if n_held > MOST_HEADS:
                raise ValueError(f"symbols may stand in more than {MOST_HEADS} places, categories and arguments")

        for symbol, productions in self.by_symbol.items():
            closed = self._closed({left for left, _ in productions})
            count(len(closed))
            for category in closed:
                roots[category].add(symbol)
        heads: dict[tuple[Symbol, int], set[Symbol]] = defaultdict(set)
        waiting = [pattern for productions in self.by_symbol.values() for _, pattern in productions]
        while waiting:
            pattern = waiting.pop()
            if isinstance(pattern, str):
                continue
            for k, part in enumerate(pattern[1:]):
                found = roots[str(part)] if isinstance(part, Nonterminal) else {symbol_of(part)}
                count(len(found))
                heads[symbol_of(pattern), k] |= found
                waiting.append(part)
        return heads

    def allows(self, relation: Symbol, argument: int, symbol: Symbol) -> bool:
        """Whether `symbol` may be the root of an argument (an index from 0) of a relation."""
        return symbol in self.heads(relation, argument)

    def heads(self, relation: Symbol, argument: int) -> set[Symbol]:
        """The symbols that may be the root of an argument (an index from 0) of a relation."""
        return self._heads.get((relation, argument), set())
