"""Derivations in the chart of a hybrid tree: in the order of their scores, and the best by what a loss counts.

An item is five numbers, see `structsvm.oracles._hybrid`. Its edges are the ways to make it: what each is worth, the
items below it and the words that it adds.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from itertools import count
from operator import itemgetter
from typing import Any

import numpy as np

from structsvm.oracles._hybrid import Kind

# The item that is the whole of a derivation.
ALL = int(Kind.ROOT), 0, 0, 0, 0
# A search takes up so many times more partial derivations than it keeps, one after the other.
MOST_TAKEN = 10


def best_first(edges: Callable[..., Any], most: int) -> Iterator[tuple[float, list[Any]]]:
    """``(share, steps)`` of derivations, best first: A* whose bounds, from the chart, are exact.

    Share: what one is worth by what the best is. A step is an item, the items below it and the words that it adds; they
    are in preorder. No more than `most` partial derivations are kept.
    """
    order, known = count(), {}

    def ways(item: Any) -> Any:
        if item not in known:
            known[item] = sorted(edges(*item), key=itemgetter(0), reverse=True)
        return known[item]

    # A partial derivation: minus its bound, its items in preorder as a list linked from the last one, what waits,
    # and the rank of the edge that its first waiting item is to have.
    agenda: list[Any] = [(-1.0, next(order), None, (ALL, None), 0)]
    for _ in range(MOST_TAKEN * most):  # one meaning may have more derivations than anybody waits for
        if not agenda:
            return
        bound, _, done, waiting, rank = heapq.heappop(agenda)
        while waiting is not None:
            item, rest = waiting
            options = ways(item)
            if not options:  # the item's value is so small that none of its ways is above 0
                break
            if rank + 1 < len(options) and len(agenda) < most - 1:
                loss = options[rank + 1][0] / options[rank][0]
                heapq.heappush(agenda, (bound * loss, next(order), done, waiting, rank + 1))
            _, below, own = options[rank]
            done, waiting, rank = (done, item, below, own), rest, 0
            for part in reversed(below):
                waiting = part, waiting
        if waiting is None and bound < 0.0:
            steps = []
            while done is not None:
                done, item, below, own = done
                steps.append((item, below, own))
            steps.reverse()
            yield -bound, steps


def ways_within(edges: Any, most: float) -> tuple[dict[Any, Any], dict[Any, float]]:
    """Ways to make items, and what the best derivation with each item lacks of the best (Dijkstra).

    Only derivations that lack no more than `most` count; a way is what it lacks of the item's best, the items below
    and the words.
    """
    ways: dict[Any, Any] = {}
    lacks, agenda = {ALL: 0.0}, [(0.0, ALL)]
    while agenda:
        lack, item = heapq.heappop(agenda)
        if item in ways:
            continue
        found = edges(*item)
        top = max(map(itemgetter(0), found), default=0.0)
        ways[item] = [(d, *way) for v, *way in found if v and lack + (d := float(np.log(top / v))) <= most]
        for d, below, _ in ways[item]:
            for part in below:
                if lack + d < lacks.get(part, np.inf):
                    lacks[part] = lack + d
                    heapq.heappush(agenda, (lack + d, part))
    return ways, lacks


def counted(ways: dict[Any, Any], lacks: dict[Any, float], most: float, counts_of: Any) -> dict[Any, Any]:
    """Best derivations of items, by three counts that `counts_of` has of each way.

    A derivation is what it lacks, the items below, the words, and the counts of the items below.
    """
    tables: dict[Any, Any] = {}
    waiting: list[Any] = [ALL]
    while waiting:
        item = waiting[-1]
        left = [part for _, below, _ in ways[item] for part in below if part not in tables]
        if left:
            waiting += left
            continue
        waiting.pop()
        tables[item], room = {}, most - lacks[item]
        for lost, below, own in ways[item]:
            sums: dict[Any, Any] = {counts_of(item, below, own): (lost, below, own, ())}
            for part in below:
                joint: dict[Any, Any] = {}
                for (a, b, c), (before, *_, chosen) in sums.items():
                    for counts, (more, *_) in tables[part].items():
                        key, value = (a + counts[0], b + counts[1], c + counts[2]), before + more
                        if value <= room and (key not in joint or value < joint[key][0]):
                            joint[key] = value, below, own, (*chosen, counts)
                sums = joint
            for key, made in sums.items():
                if key not in tables[item] or made[0] < tables[item][key][0]:
                    tables[item][key] = made
    return tables
