"""A labelling that keeps all of too many rules, found group by group.

Each group of rules has an automaton. A labelling that keeps all rules is improved by one group after the other: the
best labelling of the group is found among those along which all other rules are in the states that they are in along
the present one. Each is at least as good as the one before and keeps all rules; the best of all is at most as good as
the best one that keeps some of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import numpy as np

from structsvm.structures.languages.automaton import Automaton, TooLarge

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

Group = TypeVar("Group")

# Steps of the search for a first labelling.
MOST_STEPS = 20_000


def groups_of(rules: Sequence[Automaton]) -> list[tuple[Automaton, list[int]]]:
    """Automata of neighbouring rules, as many as fit, with their numbers; each with the first rule, where this fits."""
    found = [(rules[0], [0])]
    for k, rule in enumerate(rules[1:], 1):
        group = joined(found[-1], rule, k)
        if group is not None:
            found[-1] = group
        else:
            found.append(joined((rules[0], [0]), rule, k) or (rule, [k]))
    return found


def joined(group: tuple[Automaton, list[int]], rule: Automaton, k: int) -> tuple[Automaton, list[int]] | None:
    """A group and rule k; None if their automaton is too large."""
    try:
        return group[0] & rule, [*group[1], k]
    except TooLarge:
        return None


def states_along(rule: Automaton, labels: NDArray[np.int32]) -> list[int]:
    """The states of a rule along a labelling, from the first one on."""
    states = [0]
    for label in labels.tolist():
        states.append(int(rule.following[states[-1], label]))
    return states


def keeping(rule: Automaton, labels: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Labels at each token with which the rule is in the same states as along a labelling: array (length, n_labels)."""
    states = np.array(states_along(rule, labels))
    return rule.following[states[:-1]] == states[1:, None]


def completions_of(rule: Automaton, length: int) -> list[NDArray[np.bool_]]:
    """The states from which n more labels can end a sequence, for n = 0 .. length."""
    found: list[NDArray[np.bool_]] = [rule.accepting]
    while len(found) <= length:
        ends = np.any((rule.following >= 0) & found[-1][rule.following], axis=1)
        if np.array_equal(ends, found[-1]):
            return found + [ends] * (length + 1 - len(found))
        found.append(ends)
    return found


def least_lengths(ends: Sequence[NDArray[np.bool_]]) -> NDArray[np.int64]:
    """The least number of labels that end a sequence from each state, by `completions_of`; one too many: no number."""
    found = np.full(len(ends[0]), len(ends))
    for n in range(len(ends) - 1, -1, -1):
        found[ends[n]] = n
    return found


def first_kept(
    rules: Sequence[Automaton], labels: NDArray[np.int32], allowed: NDArray[np.bool_]
) -> NDArray[np.int32] | None:
    """A labelling that keeps all rules, near another one; None if none was found.

    Depth first: at each token the label that is there, the one before it, then the others. Labels after which the rules
    need more tokens to end, all their least numbers together, than are left are tried last, the most needy after all:
    so rules that a label each has to meet are met in time.
    """
    length = len(labels)
    ends = [completions_of(rule, length) for rule in rules]
    tables, least = [rule.following for rule in rules], list(map(least_lengths, ends))

    def options(t: int, states: tuple[int, ...], before: int) -> list[tuple[int, tuple[int, ...]]]:
        """The labels that may stand at token t, the last one to be tried first."""
        nexts, left = np.array([table[state] for table, state in zip(tables, states, strict=True)]), length - t - 1
        may = allowed[t] & (nexts >= 0).all(axis=0)
        for own, end in zip(nexts, ends, strict=True):
            may &= end[left][own]
        lacks = np.maximum(sum(own[after] for own, after in zip(least, nexts, strict=True)) - left, 0)
        order = sorted(
            np.flatnonzero(may).tolist(), key=lambda label: (-lacks[label], label == labels[t], label == before)
        )
        return [(label, tuple(nexts[:, label].tolist())) for label in order]

    stack, path, seen = [options(0, (0,) * len(rules), -1)], [-1] * length, set()
    for _ in range(MOST_STEPS):
        if not stack:
            return None
        t = len(stack) - 1
        if not stack[-1]:
            stack.pop()
            continue
        path[t], states = stack[-1].pop()
        if t + 1 == length:
            return np.array(path, dtype=np.int32)
        if (t, path[t], states) not in seen:
            seen.add((t, path[t], states))
            stack.append(options(t + 1, states, path[t]))
    return None


def improved(
    labels: NDArray[np.int32],
    score: float,
    rules: Sequence[Automaton],
    groups: Sequence[tuple[Group, list[int]]],
    allowed: NDArray[np.bool_],
    best: Callable[[Group, NDArray[np.bool_]], tuple[NDArray[np.int32], float]],
) -> tuple[NDArray[np.int32], float]:
    """A labelling that no group of rules improves, and its score; from one that keeps all rules, and its score.

    A group has the numbers of its rules. ``best(group, allowed)`` is its best labelling with some labels at each token,
    and the score of this.
    """
    before = -np.inf
    while score > before:
        before = score
        for group, own in groups:
            others = [keeping(rule, labels) for k, rule in enumerate(rules) if k not in own]
            found, its = best(group, np.logical_and.reduce([allowed, *others]))
            if its > score:
                labels, score = found, its
    return labels, score
