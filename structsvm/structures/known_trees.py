"""Trees that are known in part: how they are written, and what each of their spans may contain.

A node ``_`` is a bracket whose label is not known. A node ``...`` is not a bracket: it stands for any number of
siblings over its words (as the root: for one tree), of which nothing is known but the brackets in it. All others are
brackets with just these children. So of ``(S (NP the cat) (... eats (_ a fly)))`` a sentence S is known whose first
child is the noun phrase, and somewhere in it a bracket over the last two words; of ``(NP (... the cat))`` a noun phrase
over two words, whatever is in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from structsvm.structures.grammar import Grammar
from structsvm.structures.rules import Rule, Terminal, category_of
from structsvm.structures.trees import STRETCH, UNKNOWN_LABEL, Tree

__all__ = ["is_partial"]

# Contents that a span may have: a row of `KnownTrees.rows`. The first two are for spans across a bracket, and for
# spans within one that hold several of its children, but not all.
ANYTHING, NOTHING, NO_NODE = -1, 0, 1

# The labels over a span from the top down, STRETCH for any number of them, UNKNOWN_LABEL for one.
Pattern = tuple[str, ...]


def is_partial(tree: Tree) -> bool:
    """Whether something of the tree is not known.

    Examples
    --------
    >>> from structsvm.structures.known_trees import is_partial
    >>> from structsvm.structures.trees import parse_tree
    >>> is_partial(parse_tree("(S (_ (DT a) (NN cat)) (VP (VBZ is)))"))
    True
    """
    return any(node.label in (UNKNOWN_LABEL, STRETCH) for node in tree.postorder())


def known_rules(tree: Tree, v: int = 1) -> list[Rule]:
    """The rules of those nodes that are known with all their children, labels as `annotate` writes them.

    With `v` above 1, nodes are left out whose nearest ancestors are not known.
    """
    rules = []
    stack: list[tuple[Tree, tuple[str, ...]]] = [(tree, ())]
    while stack:
        node, above = stack.pop()
        names = (node.label, *above)[:v]
        labels = [child.label if isinstance(child, Tree) else "" for child in node.children]
        if not {UNKNOWN_LABEL, STRETCH} & {*names, *labels}:
            parts = (
                "^".join((child.label, *names[: v - 1])) if isinstance(child, Tree) else Terminal(child)
                for child in node.children
            )
            rules.append(Rule("^".join(names), tuple(parts)))
        stack.extend((child, names[: v - 1]) for child in reversed(node.children) if isinstance(child, Tree))
    return rules


def known_spans(tree: Tree) -> dict[tuple[int, int], Pattern | int]:
    """Patterns of the spans of a tree of which something is known: a pattern, NOTHING or NO_NODE."""
    order = list(zip(tree.preorder(), tree.spans(), strict=True))
    n = order[0][1][2]
    size = {id(node): j - i for node, (_, i, j) in order}
    may = np.full((n, n + 1), ANYTHING, dtype=np.int32)
    chains: dict[tuple[int, int], list[str]] = {}
    brackets = []
    for node, (label, i, j) in order:
        chains.setdefault((i, j), []).append(label)
        if label != STRETCH:
            brackets.append((i, j))
        ends = np.cumsum([i, *(size[id(child)] if isinstance(child, Tree) else 1 for child in node.children)]).tolist()
        for child, begin, end in zip(node.children, ends, ends[1:]):
            if label == STRETCH:
                chains.setdefault((begin, end), [STRETCH])  # the labels over the child alone
            elif isinstance(child, str) and len(ends) > 2:
                may[begin, end] = NO_NODE
        if label != STRETCH and len(ends) > 2:
            part = np.repeat(np.arange(len(ends) - 1), np.diff(ends))
            inner = (part[:, None] != part) & (np.arange(j - i)[:, None] < np.arange(j - i))
            inner[0, -1] = False
            may[i:j, i + 1 : j + 1][inner] = NO_NODE
    for i, j in brackets:
        may[:i, i + 1 : j] = NOTHING
        may[i + 1 : j, j + 1 :] = NOTHING
    found: dict[tuple[int, int], Pattern | int]
    found = {(i, j): int(may[i, j]) for i, j in np.argwhere(may != ANYTHING).tolist()}
    return found | {span: tuple(chain) for span, chain in chains.items() if {*chain} != {STRETCH}}


class AllowedRows:
    """The distinct rows of what spans may hold in a grammar; see `KnownTrees`."""

    def __init__(self, grammar: Grammar) -> None:
        self.grammar = grammar
        self.chains = [(name,) for name in grammar.nodes] + grammar.chains
        self.numbers: dict[Pattern | int, int] = {NOTHING: NOTHING, NO_NODE: NO_NODE}
        self.rows = np.zeros((2, 1 + len(self.chains)), dtype=np.uint8)
        self.rows[NO_NODE, 0] = 1

    def number(self, what: Pattern | int) -> int:
        """Index of the row for a pattern, NOTHING or NO_NODE; ValueError if nothing is like the pattern."""
        if what not in self.numbers and isinstance(what, tuple):
            for label in what:
                if label not in (UNKNOWN_LABEL, STRETCH, *self.grammar.categories, *self.grammar.nodes):
                    raise ValueError(
                        f"the label {label!r} is not in the grammar: no node has it whose children are known"
                    )
            row = np.array([[0, *(matches(chain, what) for chain in self.chains)]], dtype=np.uint8)
            if not row.any():
                text = " -> ".join(what)[:200]
                raise ValueError(
                    f"the grammar has no chain {text} (max_unary={self.grammar.max_unary}, no label twice)"
                )
            self.numbers[what] = len(self.rows)
            self.rows = np.concatenate([self.rows, row])
        return self.numbers[what]


class KnownTrees(NamedTuple):
    """Partial knowledge of several trees.

    Attributes
    ----------
    offsets : int64 array of shape (n_trees + 1,)
        Where the spans of each tree begin; none for one that is fully known.
    masks : int32 array
        By span ``j (j - 1) / 2 + i`` a row, or ANYTHING.
    rows : uint8 array of shape (n_rows, 1 + n_nodes + n_chains)
        Whether a row allows terminals and intermediates, each node without a chain on top, each chain.
    """

    offsets: NDArray[np.int64]
    masks: NDArray[np.int32]
    rows: NDArray[np.uint8]

    def part(self, start: int, stop: int) -> Self:
        """The entries of the trees from `start` to `stop`."""
        first, *_, end = self.offsets[[start, stop]].tolist()
        return self._replace(offsets=self.offsets[start : stop + 1] - first, masks=self.masks[first:end])

    @classmethod
    def of(cls, grammar: Grammar, trees: Sequence[Tree | None]) -> Self | None:
        """Encode partly known trees in a grammar (None: a tree is fully known); returns None if all are fully known.

        Raises
        ------
        ValueError
            For a label that is not in the grammar, and for labels over one span that it has no chain of; the message
            names the tree.
        """
        if not any(trees):
            return None
        rows = AllowedRows(grammar)
        masks = [np.empty(0, dtype=np.int32)]
        for i, tree in enumerate(trees):
            if tree is None:
                masks.append(masks[0])
                continue
            n = len(tree.leaves())
            mask = np.full(n * (n + 1) // 2, ANYTHING, dtype=np.int32)
            try:
                for (begin, end), what in known_spans(tree).items():
                    mask[end * (end - 1) // 2 + begin] = rows.number(what)
            except ValueError as error:
                raise ValueError(f"tree {i}: {error}") from None
            masks.append(mask)
        offsets = np.cumsum([len(mask) for mask in masks]).astype(np.int64)
        return cls(offsets, np.concatenate(masks), rows.rows)


@lru_cache(maxsize=1 << 14)
def matches(labels: tuple[str, ...], pattern: Pattern) -> bool:
    """Whether labels, or their categories, are those of a pattern."""
    if not pattern:
        return not labels
    if pattern[0] == STRETCH:
        return any(matches(labels[k:], pattern[1:]) for k in range(len(labels) + 1))
    is_first = bool(labels) and pattern[0] in (UNKNOWN_LABEL, labels[0], category_of(labels[0]))
    return is_first and matches(labels[1:], pattern[1:])
