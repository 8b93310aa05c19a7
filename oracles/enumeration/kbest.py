"""The k best derivations in a chart, in order, each computed on demand.

Lazy enumeration (Huang and Chiang 2005, algorithm 3): the r-th best derivation of an item is one of a few candidates:
its edges with the best derivations of their children, and the neighbours (the rank of one child raised by one) of the
derivations found so far. Ranks of children are computed as they are needed, on an explicit stack.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from structsvm.oracles._cky import Parser

# Items are (kind, symbol, begin, end). A "base" item has a rule at its root, a "final" one may have a chain on top.
_BASE, _FINAL = 0, 1


class _Item:
    """An item's derivations found so far, and the candidates for the next one."""

    def __init__(self, edges: list[tuple[float, Any, tuple[Any, ...]]]) -> None:
        # A candidate is (-score, index of the edge, ranks of the children).
        self.edges = edges
        self.found: list[tuple[float, int, tuple[int, ...]]] = []
        self.heap = [(-score, number, (0,) * len(tails)) for number, (score, _, tails) in enumerate(edges)]
        heapq.heapify(self.heap)
        self.seen = {(number, ranks) for _, number, ranks in self.heap}
        self.due: tuple[float, int, tuple[int, ...]] | None = None  # found, its neighbours not yet added


class _Search:
    def __init__(self, parser: Any, n: int) -> None:
        self.parser, self.n = parser, n
        self.grammar = parser.tables
        self.items: dict[tuple[int, int, int, int], _Item] = {}

    def item(self, key: tuple[int, int, int, int]) -> _Item:
        if key not in self.items:
            kind, symbol, i, j = key
            self.items[key] = _Item(self.final_edges(symbol, i, j) if kind == _FINAL else self.base_edges(symbol, i, j))
        return self.items[key]

    def final_edges(self, symbol: int, i: int, j: int) -> list[Any]:
        bottoms = self.grammar.arrays["chain_bottom"]
        return [
            (score, chain, ((_BASE, symbol if chain < 0 else int(bottoms[chain]), i, j),))
            for score, chain in self.parser.chains(symbol, i, j)
        ]

    def base_edges(self, symbol: int, i: int, j: int) -> list[Any]:
        arrays = self.grammar.arrays
        edges = []
        for score, rule, split in self.parser.rules(symbol, i, j):
            tails: tuple[Any, ...] = ()
            if split >= 0:
                pair = arrays["rule_pair"][rule]
                left, right = int(arrays["pair_left"][pair]), int(arrays["pair_right"][pair])
                tails = ((_FINAL, left, i, split), (_FINAL, right, split, j))
            edges.append((score, (rule, split), tails))
        return edges

    def ask(self, key: tuple[int, int, int, int], rank: int) -> bool:
        """Compute the item's derivation of this rank; returns False if it has none."""
        stack = [(key, rank)]
        while stack:
            key, rank = stack[-1]
            item = self.item(key)
            if len(item.found) > rank:
                stack.pop()
            elif item.due is not None:
                missing = self.neighbours(item)
                if missing is not None:
                    stack.append(missing)
            elif item.heap:
                cost, number, ranks = heapq.heappop(item.heap)
                item.found.append((-cost, number, ranks))
                item.due = item.found[-1]
            else:
                stack.pop()
        return len(self.items[key].found) > rank

    def neighbours(self, item: _Item) -> tuple[Any, int] | None:
        """Add the neighbours of the derivation found last.

        Returns a child and its rank that must be computed first, if any; then call it again.
        """
        score, number, ranks = item.due  # type: ignore[misc]
        tails = item.edges[number][2]
        for which, tail in enumerate(tails):
            raised = (*ranks[:which], ranks[which] + 1, *ranks[which + 1 :])
            if (number, raised) in item.seen:
                continue
            child = self.item(tail)
            if len(child.found) <= raised[which] and (child.heap or child.due is not None):
                return tail, raised[which]
            item.seen.add((number, raised))
            if len(child.found) > raised[which]:
                gain = child.found[raised[which]][0] - child.found[ranks[which]][0]
                heapq.heappush(item.heap, (-(score + gain), number, raised))
        item.due = None
        return None

    def rows(self, root: tuple[int, int, int, int], rank: int) -> NDArray[np.int32]:
        """A derivation as returned by `Parser.parse`."""
        rows = []
        stack = [(root, rank)]
        while stack:
            key, rank = stack.pop()
            _, symbol, i, j = key
            (chain, ((base_key),)), ranks = self.step(key, rank)
            ((rule, split), tails), ranks = self.step(base_key, ranks[0])
            rows.append((symbol, i, j, chain, rule, split))
            stack += reversed(list(zip(tails, ranks, strict=True)))
        return np.array(rows, dtype=np.int32)

    def step(self, key: tuple[int, int, int, int], rank: int) -> Any:
        """``(what an edge says, ranks below it)`` of an item's derivation of this rank, which there is."""
        if not self.ask(key, rank):  # a sum that is infinite is no sum of the scores below it
            raise ValueError("the scores of a derivation overflow: the weights are too large")
        _, number, ranks = self.items[key].found[rank]
        return self.items[key].edges[number][1:], ranks


def derivations(
    parser: Parser, words: NDArray[np.int32], w: NDArray[np.float64]
) -> Iterator[tuple[NDArray[np.int32], float]]:
    """Yield ``(nodes, score)`` of a sentence's derivations, best first; see `Parser.parse`.

    The iterator uses the parser's chart: do not parse anything else before its end.
    """
    parser.fill(words, w)
    n = len(words)
    search = _Search(parser, n)
    roots = [((_FINAL, symbol, 0, n), worth) for symbol, worth in parser.roots()]
    ranks = [0] * len(roots)
    while True:
        best = None
        for k, ((root, worth), rank) in enumerate(zip(roots, ranks, strict=True)):
            if search.ask(root, rank):
                score = search.items[root].found[rank][0] + worth
                if best is None or score > best[0]:
                    best = (score, k)
        if best is None:
            return
        score, k = best
        yield search.rows(roots[k][0], ranks[k]), score
        ranks[k] += 1


def fragments(parser: Parser, words: NDArray[np.int32], w: NDArray[np.float64]) -> list[NDArray[np.int32]]:
    """The derivations of the fewest constituents that stand side by side over a sentence, and of these the best."""
    cover = parser.cover(words, w)
    search, found = _Search(parser, len(words)), []
    for symbol, i, j in cover:
        found.append(search.rows((_FINAL, symbol, i, j), 0))
    return found
