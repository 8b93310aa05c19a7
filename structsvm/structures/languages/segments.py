"""Nodes of chains of segments that keep to a language: pairs of a tag and the state of the automaton behind it.

A segment of a type is its first tag F, inner tags I and the last one L, or a single one S. From a first node on, its
length alone settles the nodes of the others: they are followed once, here, up to `max_length` tokens; what is longer
is followed token by token.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from structsvm.structures.languages.automaton import Automaton
from structsvm.structures.languages.nodes import Nodes, nodes_of

MAX_TABLE_BYTES = 1 << 30


class SegmentNodes(NamedTuple):
    """Tables of the nodes, int32, as the compiled decoder has them.

    Attributes
    ----------
    labels, end_at, ends : ndarray of shape (n_nodes,)
        Label; its place among the labels that end a segment, or -1; whether a sequence may end there.
    groups : ndarray of shape (n_groups, 2)
        The first node of those that end a segment and lead to the same ones, and the node behind the last.
    following : ndarray of shape (n_groups, n_begins)
        The node of each label that begins a segment; -1 where it may not stand.
    first : ndarray of shape (n_begins,)
        The same at the first token.
    singles : ndarray
        Nodes of segments of one token.
    heads_of, heads : ndarray of shape (n_types + 1,), ndarray of shape (n_heads,)
        The first nodes of segments of several tokens: of type c ``heads[heads_of[c]:heads_of[c + 1]]``.
    closed : ndarray of shape (n_heads, max_length + 1)
        By number of tokens, the place in `last` of the node that ends the segment; -1 where none may.
    opened : ndarray of shape (n_heads,)
        The open node at which a segment of `max_length` tokens goes on; -1 where it may not.
    opens_of, on, out : ndarray of shape (n_types + 1,), ndarrays of shape (n_open,)
        Open nodes: the one after another inner token, the place in `last` after the last token; or -1.
    lasts_of, last, last_at : ndarray of shape (n_types + 1,), ndarray, ndarray of shape (n_nodes,)
        Nodes of last tokens, and the place of each node among them, or -1.
    """

    labels: NDArray[np.int32]
    end_at: NDArray[np.int32]
    ends: NDArray[np.int32]
    groups: NDArray[np.int32]
    following: NDArray[np.int32]
    first: NDArray[np.int32]
    singles: NDArray[np.int32]
    heads_of: NDArray[np.int32]
    heads: NDArray[np.int32]
    closed: NDArray[np.int32]
    opened: NDArray[np.int32]
    opens_of: NDArray[np.int32]
    on: NDArray[np.int32]
    out: NDArray[np.int32]
    lasts_of: NDArray[np.int32]
    last: NDArray[np.int32]
    last_at: NDArray[np.int32]


def segment_nodes(
    automaton: Automaton, tags: NDArray[np.int32], begins: NDArray[np.int32], ends: NDArray[np.int32], max_length: int
) -> SegmentNodes:
    """The nodes of an automaton that accepts chains of segments alone, by the four labels of each type.

    Labels in `begins` and `ends` begin and end a segment. ValueError if the language is empty, or tables too large.
    """
    nodes, n_labels = nodes_of(automaton, 1), automaton.n_labels
    end_at, singles = _places(ends, n_labels)[nodes.labels], np.isin(nodes.labels, np.intersect1d(begins, ends))
    # A group whose first node ends a segment consists of such nodes alone.
    closed_groups = np.flatnonzero(end_at[nodes.groups[:-1]] >= 0)
    of_type = [[np.flatnonzero(nodes.labels == label) for label in own[:3]] for own in tags.tolist()]
    heads, last = (_joined([own[k] for own in of_type]) for k in (0, 2))
    last_at = _places(last, len(nodes.labels))
    size = 8 * len(heads) * (max_length + 1)  # the table, and its copy
    if size > MAX_TABLE_BYTES:
        raise ValueError(
            f"segments of up to {max_length} tokens that may begin at {len(heads)} pairs of labels and states need "
            f"tables of {size} bytes, more than {MAX_TABLE_BYTES}: lower max_length, or leave rules out"
        )
    closed = np.full((len(heads), max_length + 1), -1, dtype=np.int32)
    opened, opens = np.full(len(heads), -1), list[NDArray[np.intp]]()
    heads_of, lasts_of = (_bounds([own[k] for own in of_type]) for k in (0, 2))
    for c, (_, inside, ending, _) in enumerate(tags.tolist()):
        own = slice(heads_of[c], heads_of[c + 1])
        now = heads[own]
        for m in range(2, max_length + 1):
            closed[own, m] = _at(last_at, _behind(nodes, now, ending))
            now = _behind(nodes, now, inside)
        opened[own] = now
        opens.append(_reached(nodes, now, inside))
    open_nodes = _joined(opens)
    open_at, of_open = _places(open_nodes, len(nodes.labels)), np.repeat(np.arange(len(tags)), list(map(len, opens)))
    on = [_behind(nodes, open_nodes[of_open == c], own[1]) for c, own in enumerate(tags.tolist())]
    out = [_behind(nodes, open_nodes[of_open == c], own[2]) for c, own in enumerate(tags.tolist())]
    found = (
        nodes.labels,
        end_at,
        nodes.ends,
        np.column_stack([nodes.groups[:-1], nodes.groups[1:]])[closed_groups],
        nodes.following[closed_groups][:, begins],
        nodes.first[begins],
        np.flatnonzero(singles),
        heads_of,
        heads,
        closed,
        _at(open_at, opened),
        _bounds(opens),
        _at(open_at, _joined(on)),
        _at(last_at, _joined(out)),
        lasts_of,
        last,
        last_at,
    )
    return SegmentNodes(*(np.ascontiguousarray(array, dtype=np.int32) for array in found))


def _behind(nodes: Nodes, now: NDArray[np.intp], label: int) -> NDArray[np.intp]:
    """The nodes of a label behind others, -1 where it may not stand; -1 behind -1."""
    return np.where(now >= 0, nodes.following[nodes.group[now], label], -1).astype(np.intp)


def _reached(nodes: Nodes, now: NDArray[np.intp], label: int) -> NDArray[np.intp]:
    """Nodes, and those that any number of tokens of a label lead to, ascending."""
    reached = np.zeros(len(nodes.labels), dtype=bool)
    while len(now := now[now >= 0]):
        now = np.unique(now)
        now = now[~reached[now]]
        reached[now] = True
        now = _behind(nodes, now, label)
    return np.flatnonzero(reached)


def _places(some: NDArray[np.intp] | NDArray[np.int32], n: int) -> NDArray[np.intp]:
    """The place of each of n numbers in a list, -1 of others."""
    place = np.full(n, -1)
    place[some] = np.arange(len(some))
    return place


def _at(places: NDArray[np.intp], of: NDArray[np.intp]) -> NDArray[np.intp]:
    """The places of nodes; -1 of -1."""
    return np.where(of >= 0, places[of], -1)


def _joined(parts: list[NDArray[np.intp]]) -> NDArray[np.intp]:
    return np.concatenate([np.zeros(0, dtype=np.intp), *parts])


def _bounds(parts: list[NDArray[np.intp]]) -> NDArray[np.intp]:
    return np.cumsum([0, *map(len, parts)])
