"""Rules of context-free grammars, read off trees or off text.

A rule's right-hand side consists of nonterminals (`str`) and terminals (`Terminal`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

from structsvm.structures.trees import Tree

__all__ = ["format_rule", "parse_rules"]


@dataclass(frozen=True)
class Terminal:
    """A terminal symbol: a word of a sentence."""

    name: str

    def __str__(self) -> str:
        quote = '"' if "'" in self.name else "'"
        return f"{quote}{self.name}{quote}"


class Rule(NamedTuple):
    """A production ``lhs -> rhs``."""

    lhs: str
    rhs: tuple[str | Terminal, ...]

    def __str__(self) -> str:
        return f"{self.lhs} -> {' '.join(map(str, self.rhs))}"


def rules_of(tree: Tree) -> list[Rule]:
    """The rules of a tree's nodes, in preorder."""
    return [
        Rule(node.label, tuple(child.label if isinstance(child, Tree) else Terminal(child) for child in node.children))
        for node in tree.preorder()
    ]


def annotate(tree: Tree, v: int) -> Tree:
    """The tree whose labels name their v - 1 nearest ancestors: ``NP^S`` (v=2), ``NP^S^TOP`` (v=3)."""
    if v == 1:
        return tree
    names: list[str] = []
    stack: list[tuple[Tree, tuple[str, ...]]] = [(tree, ())]
    while stack:
        node, ancestors = stack.pop()
        if "^" in node.label:
            raise ValueError(f"the label {node.label!r} has a '^', which vertical Markovisation uses itself; rename it")
        if ancestors and not node.label:
            raise ValueError(f"a node below {ancestors[0]!r} has no label, to which v={v} would add its ancestors")
        names.append("^".join((node.label, *ancestors)))
        below = (node.label, *ancestors)[: v - 1]
        stack.extend((child, below) for child in reversed(node.children) if isinstance(child, Tree))
    return _renamed(tree, names)


def category_of(label: str) -> str:
    """The label without the ancestors that `annotate` adds."""
    return label.partition("^")[0] or label


def plain(tree: Tree) -> Tree:
    """The tree with categories as labels: without the annotations of `annotate`."""
    return _renamed(tree, [category_of(node.label) for node in tree.preorder()])


def _renamed(tree: Tree, names: list[str]) -> Tree:
    """The tree with new labels, given in preorder."""
    of: dict[int, list[str]] = {}
    for node, name in zip(tree.preorder(), names, strict=True):
        of.setdefault(id(node), []).append(name)
    # A node that occurs several times has one name per occurrence, in preorder; postorder visits them in that order.
    queues = {key: iter(found) for key, found in of.items()}
    return tree.map(lambda node, children: Tree(next(queues[id(node)]), children))


# ---- rules as text ------------------------------------------------------------------------------

# Characters that NLTK nonterminals cannot contain, and those that would be read as an arrow or an escape.
_ESCAPED = re.compile(r"[^\w/^<>-]|^[\^<>-]|-(?=>)|/(?=u)")
_ESCAPE = re.compile(r"/u([0-9a-f]{1,5}|10[0-9a-f]{4})/")
_COMMENT = re.compile(r"""('[^']*'|"[^"]*")|#.*""")  # outside of quotes
_WEIGHT = re.compile(r"\[[^\]]*\]")
_SYMBOL = re.compile(r"""\s*(?:'([^'\s]+)'|"([^"\s]+)"|([^\s'"|]+)|(\|))""")


def format_rule(rule: Rule) -> str:
    """Write a rule as `parse_rules` and NLTK read it.

    A character that NLTK nonterminals cannot contain is written as ``/u``, its hexadecimal code and ``/``, which
    `parse_rules` reverses: ``PRP$`` is ``PRP/u24/``, ``ADVP|PRT`` is ``ADVP/u7c/PRT``.

    Raises
    ------
    ValueError
        For a terminal with quotes of both kinds or with white space.

    Examples
    --------
    >>> from structsvm.structures.rules import Rule, Terminal, format_rule
    >>> format_rule(Rule("PRP$", (Terminal("her"),)))
    "PRP/u24/ -> 'her'"
    """
    for symbol in rule.rhs:
        if isinstance(symbol, Terminal) and _SYMBOL.fullmatch(str(symbol)) is None:
            raise ValueError(f"a grammar's text cannot contain the terminal {symbol.name!r:.80}: quotes or white space")
    lhs, *rhs = (
        str(symbol) if isinstance(symbol, Terminal) else _ESCAPED.sub(lambda match: f"/u{ord(match[0]):x}/", symbol)
        for symbol in (rule.lhs, *rule.rhs)
    )
    return f"{lhs} -> {' '.join(rhs)}"


def _unescaped(name: str) -> str:
    return _ESCAPE.sub(lambda match: chr(int(match[1], 16)), name)


def parse_rules(text: str) -> list[Rule]:
    """Read rules in NLTK's form, ``S -> NP VP | 'a'``: a left-hand side per line, quoted terminals, ``#`` comments.

    Weights (``[0.5]``) are not read. For escapes in nonterminals see `format_rule`.

    Raises
    ------
    ValueError
        For a line that is not a rule, or an empty production; the message names the line.

    Examples
    --------
    >>> from structsvm.structures.rules import format_rule, parse_rules
    >>> [format_rule(rule) for rule in parse_rules("S -> NP 'sleeps'")]
    ["S -> NP 'sleeps'"]
    """
    rules = []
    for number, line in enumerate(text.splitlines(), start=1):
        line = _COMMENT.sub(lambda match: match[1] or "", line).strip()
        if not line:
            continue
        lhs, arrow, rest = line.partition("->")
        lhs = lhs.strip()
        if not arrow or not lhs or re.search(r"[\s'\"|()]", lhs):
            raise ValueError(f"line {number}: expected a rule such as S -> NP VP, found {line!r:.80}")
        alternatives: list[list[str | Terminal]] = [[]]
        end = 0
        while end < len(rest.rstrip()):
            match = _SYMBOL.match(rest, end)
            if match is None:
                raise ValueError(f"line {number}: a quote that is empty or not closed in {line!r:.80}")
            single, double, name, bar = match.groups()
            if name == "->" or (name and _WEIGHT.fullmatch(name)):
                raise ValueError(f"line {number}: expected a rule without weights, S -> NP VP, found {line!r:.80}")
            if bar:
                alternatives.append([])
            else:
                alternatives[-1].append(_unescaped(name) if name else Terminal(single or double))
            end = match.end()
        for rhs in alternatives:
            if not rhs:
                raise ValueError(f"line {number}: an empty production of {lhs!r}; the grammar must be without them")
            rules.append(Rule(_unescaped(lhs), tuple(rhs)))
    return rules
