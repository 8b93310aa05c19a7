"""Labels that taggers learn from meanings: the symbols in trees, and their roles as arguments of relations."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from structsvm.structures.meanings import Symbol, format_meaning, symbol_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from structsvm.structures.meanings import Meaning

# Indices of the arguments of a relation that a symbol is.
Role = tuple[int, ...]

EMPTY = Symbol("-", None)
NO_ROLE: Role = ()


def folded(tree: Meaning) -> Meaning:
    """A tree in which a relation between constants alone is a constant: its text."""
    if isinstance(tree, str):
        return tree
    if len(tree) > 1 and all(isinstance(part, str) for part in tree[1:]):
        return format_meaning(tree)
    return (tree[0], *map(folded, tree[1:]))


def symbols_in(tree: Meaning) -> list[Symbol]:
    """The symbols of a tree, one for each node; arguments of a relation that are the same count once."""
    found, waiting = [], [tree]
    while waiting:
        node = waiting.pop()
        found.append(symbol_of(node))
        if not isinstance(node, str):
            waiting += dict.fromkeys(node[1:])
    return found


def relations_in(trees: Iterable[Meaning]) -> dict[Symbol, list[dict[Symbol, Role]]]:
    """The relations of all trees: symbol -> list of dicts from an argument's symbol to its role.

    A role is the tuple of the indices of the arguments, more than one where they are the same.
    """
    found = defaultdict(list)
    waiting = list(trees)
    while waiting:
        node = waiting.pop()
        if isinstance(node, str):
            continue
        roles: dict[Symbol, Role] = defaultdict(tuple)
        for k, part in enumerate(node[1:]):
            roles[symbol_of(part)] += (k,)
        found[symbol_of(node)].append(dict(roles))
        waiting += node[1:]
    return found
