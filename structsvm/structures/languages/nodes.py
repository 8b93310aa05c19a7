"""Nodes of a chain that keeps to a language: pairs of a label and a state, for order 2 with the label before.

The layout is that of the compiled programmes (`oracles/simd/ruled.h`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from structsvm.structures.languages.automaton import Automaton


class Nodes(NamedTuple):
    """Tables of the nodes, int32; in the order of their groups, each of what leads to the same nodes.

    Attributes
    ----------
    labels, rows, group, ends : ndarray of shape (n_nodes,)
        Label; row of the table of transition scores; group; whether a sequence may end there.
    groups : ndarray of shape (n_groups + 1,)
        The first node of each group.
    following : ndarray of shape (n_groups, n_labels)
        The node of a label behind a group; -1 where it may not stand.
    first : ndarray of shape (n_labels,)
        The node of a first label, or -1.
    origins, origin : ndarray of shape (n_nodes + 1,), ndarray
        The groups that lead to a node n: ``origin[origins[n]:origins[n + 1]]``.
    """

    labels: NDArray[np.int32]
    rows: NDArray[np.int32]
    group: NDArray[np.int32]
    ends: NDArray[np.int32]
    groups: NDArray[np.int32]
    following: NDArray[np.int32]
    first: NDArray[np.int32]
    origins: NDArray[np.int32]
    origin: NDArray[np.int32]


def nodes_of(automaton: Automaton, order: int) -> Nodes:
    """The nodes of a chain of an order, by a smallest automaton. ValueError if its language is empty."""
    table, K = automaton.following, automaton.n_labels
    if not (table >= 0).any():
        raise ValueError("no sequence of labels is allowed")
    every = np.arange(K)
    # Pairs, by state and label: all of them lead on, or may be the last.
    number = np.full((len(table) + 1, K), -1)
    sources, behind = np.nonzero(table >= 0)
    number[table[sources, behind], behind] = 0
    states, labels = np.nonzero(number >= 0)
    number[states, labels] = np.arange(len(states))
    begin, ends = number[table[0], every], automaton.accepting[states]
    if order == 1:
        entered, group = np.unique(states, return_inverse=True)
        of, rows, following = np.arange(len(states)), labels, number[table[entered], every]
    else:
        after = number[table[states], every]
        place = np.full((len(states), K + 1), -1)
        sources, behind = np.nonzero(after >= 0)
        place[after[sources, behind], labels[sources]] = 0
        place[begin[begin >= 0], K] = 0
        of, earlier = np.nonzero(place >= 0)
        place[of, earlier] = np.arange(len(of))
        group, rows = of, labels[of] * (K + 1) + earlier
        following = np.where(after >= 0, place[after, labels[:, np.newaxis]], -1)
        begin = np.where(begin >= 0, place[begin, K], -1)
    groups = np.searchsorted(group, np.arange(len(following) + 1))
    sources, behind = np.nonzero(following >= 0)
    targets = following[sources, behind]
    origins = np.searchsorted(np.sort(targets), np.arange(len(of) + 1))
    origin = sources[np.argsort(targets, kind="stable")]
    found = labels[of], rows, group, ends[of], groups, following, begin, origins, origin
    return Nodes(*(np.ascontiguousarray(array, dtype=np.int32) for array in found))
