"""Deterministic automata over labels: a table of states, made smallest, intersected, and run over sequences.

Two prefixes of labels lead to one state of the smallest automaton if and only if the same continuations complete them.
So it is unique up to the order of its states: here that of their first visit, breadth first, label by label.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from structsvm.arrays import Integers

__all__ = ["Automaton"]

# Most states of an automaton; a product with more is given up.
MOST_STATES = 1 << 12


class NoLabelling(ValueError):
    """A sequence that has no labelling: why, and its number."""

    def __init__(self, why: str, number: int | None = None) -> None:
        super().__init__(why if number is None else f"sequence {number}: {why}")
        self.why, self.number = why, number

    def among(self, lengths: Integers) -> NoLabelling:
        """The same error with the number among all sequences, where only those with tokens were numbered."""
        return self if self.number is None else NoLabelling(self.why, int(np.flatnonzero(lengths)[self.number]))


class TooLarge(ValueError):
    """An automaton with more states than `MOST_STATES`."""


class Automaton:
    """The sequences of labels that lead from state 0 to an accepting state.

    Parameters
    ----------
    following : int array-like of shape (n_states, n_labels)
        The state after a label; -1 where the label may not stand.
    accepting : bool array-like of shape (n_states,)
        Where a sequence may end.

    Examples
    --------
    >>> from structsvm.structures.languages import Automaton
    >>> once = Automaton([[0, 1], [1, -1]], [True, True])  # label 1 at most once
    >>> once.accepts([0, 1, 0]), once.accepts([1, 0, 1])
    (True, False)
    """

    def __init__(self, following: ArrayLike, accepting: ArrayLike) -> None:
        try:
            table, ends = np.asarray(following), np.asarray(accepting)
        except ValueError:
            raise ValueError("following and accepting must be arrays, got rows of several lengths") from None
        if table.ndim != 2 or 0 in table.shape or table.dtype.kind not in "iu":
            raise ValueError(
                f"following must be an integer array (n_states, n_labels), got {table.dtype} {table.shape}"
            )
        if ends.shape != table.shape[:1] or ends.dtype != bool:
            raise ValueError(f"accepting must be a bool array ({len(table)},), got {ends.dtype} {ends.shape}")
        if table.min() < -1 or table.max() >= len(table):
            raise ValueError(
                f"following has states {table.min()} to {table.max()}, expected -1 (none) to {len(table) - 1}"
            )
        self.following: NDArray[np.int32] = np.ascontiguousarray(table, dtype=np.int32)
        self.accepting: NDArray[np.bool_] = ends.copy()

    @property
    def n_states(self) -> int:
        """The number of states."""
        return len(self.following)

    @property
    def n_labels(self) -> int:
        """The number of labels."""
        return self.following.shape[1]

    @property
    def is_empty(self) -> bool:
        """Whether no sequence is accepted."""
        return not self._completable()[0]

    def __repr__(self) -> str:
        return f"Automaton({self.following.tolist()}, {self.accepting.tolist()})"

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Automaton)
            and np.array_equal(self.following, other.following)
            and np.array_equal(self.accepting, other.accepting)
        )

    def __hash__(self) -> int:
        return hash((self.following.tobytes(), self.accepting.tobytes()))

    def accepts(self, label_ids: Sequence[int]) -> bool:
        """Whether a sequence belongs to the language."""
        state = 0
        for label in label_ids:
            state = int(self.following[state, label])
            if state < 0:
                return False
        return bool(self.accepting[state])

    # ---- smallest ---------------------------------------------------------------------------------

    def _completable(self) -> NDArray[np.bool_]:
        """States from which an accepting one can be reached."""
        alive, n = self.accepting.copy(), -1
        while n < (n := int(np.count_nonzero(alive))):
            alive |= (alive[self.following] & (self.following >= 0)).any(axis=1)
        return alive

    def minimal(self) -> Automaton:
        """The smallest automaton of the language; of the empty one, a single state from which nothing follows."""
        alive = self._completable()
        if not alive[0]:
            return Automaton(np.full((1, self.n_labels), -1), [False])
        # Moore's refinement; the last state stands for "nowhere".
        n = self.n_states
        table = np.where((self.following >= 0) & alive[self.following], self.following, n)
        table = np.vstack([table, np.full((1, self.n_labels), n)])
        kinds, n_kinds = np.append(self.accepting, False).astype(np.int64), 0
        while n_kinds < (n_kinds := len(np.unique(kinds))):
            rows = np.column_stack([kinds, kinds[table]])
            kinds = np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1)
        first = np.unique(kinds, return_index=True)[1]
        merged = np.where(kinds[table[first]] == kinds[n], -1, kinds[table[first]])
        ends = np.append(self.accepting, False)[first]
        return Automaton(*_in_order(merged, ends, int(kinds[0])))

    def __and__(self, other: Automaton) -> Automaton:
        """The sequences of both languages. Raises TooLarge."""
        seen = {(0, 0): 0}
        pairs, rows, k = [(0, 0)], list[NDArray[np.int32]](), 0
        while k < len(pairs):
            p, q = pairs[k]
            mine, its = self.following[p].tolist(), other.following[q].tolist()
            row = np.full(self.n_labels, -1, dtype=np.int32)
            for label, (a, b) in enumerate(zip(mine, its, strict=True)):
                if a >= 0 and b >= 0:
                    if (a, b) not in seen:
                        seen[a, b] = len(pairs)
                        pairs.append((a, b))
                    row[label] = seen[a, b]
            rows.append(row)
            k += 1
            if len(pairs) > MOST_STATES:
                raise TooLarge(f"their common automaton has more than {MOST_STATES} states")
        ends = [bool(self.accepting[p] and other.accepting[q]) for p, q in pairs]
        return Automaton(np.array(rows), ends).minimal()

    def as_masks(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_]] | None:
        """Masks ``(transitions, first, last)`` of the same language, but for the empty sequence; None if none say it.

        They do if all that may follow a label depends on this label alone: if it leads to one state of the smallest
        automaton.
        """
        table = self.following
        after = table.max(axis=0)
        if not ((table == after) | (table < 0)).all():
            return None
        transitions = (table[after] >= 0) & (after >= 0)[:, None]
        return transitions, table[0] >= 0, self.accepting[after] & (after >= 0)

    @classmethod
    def of_masks(
        cls,
        transitions: NDArray[np.bool_] | None,
        first: NDArray[np.bool_] | None,
        last: NDArray[np.bool_] | None,
        n_labels: int,
    ) -> Automaton:
        """The automaton of masks, None where all is allowed; the empty sequence belongs to it."""
        table = np.tile(np.arange(1, n_labels + 1), (n_labels + 1, 1))
        if first is not None:
            table[0, ~first] = -1
        if transitions is not None:
            table[1:][~transitions] = -1
        ends = np.ones(n_labels + 1, dtype=bool)
        if last is not None:
            ends[1:] = last
        return cls(table, ends).minimal()

    # ---- over sequences ---------------------------------------------------------------------------

    def broken_at(self, offsets: NDArray[np.int64], label_ids: Integers) -> tuple[int, int] | None:
        """The first ``(sequence, token)`` at which a sequence leaves the language, or at whose end it is incomplete."""
        broken = self.breaks(offsets, label_ids)
        if not (broken >= 0).any():
            return None
        i = int((broken >= 0).argmax())
        return i, int(broken[i])

    def breaks(self, offsets: NDArray[np.int64], label_ids: Integers) -> NDArray[np.int64]:
        """Per sequence the token at which it leaves the language, the last if it is incomplete; -1 if it does not."""
        starts, lengths = offsets[:-1], np.diff(offsets)
        order = np.argsort(-lengths, kind="stable")
        states, broken = np.zeros(len(lengths), dtype=np.int64), np.full(len(lengths), -1)
        for t in range(int(lengths.max(initial=0))):
            here = order[: np.searchsorted(-lengths[order], -t, side="left")]
            here = here[broken[here] < 0]
            states[here] = self.following[states[here], label_ids[starts[here] + t]]
            left = states[here] < 0
            left |= (lengths[here] == t + 1) & ~self.accepting[states[here]]
            broken[here[left]] = t
        return broken

    def left_at(
        self, offsets: NDArray[np.int64], which: NDArray[np.int32], table: NDArray[np.bool_]
    ) -> tuple[int, int] | None:
        """The first ``(sequence, token)`` from which on no labelling belongs to the language.

        Token t may have the labels ``table[which[t]]``.
        """
        arcs: dict[int, tuple[NDArray[np.intp], NDArray[np.int32]]] = {}
        for i, (start, stop) in enumerate(zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)):
            reached = np.zeros(self.n_states, dtype=bool)
            reached[0] = True
            for t, kind in enumerate(which[start:stop].tolist()):
                if kind not in arcs:
                    sources, labels = np.nonzero((self.following >= 0) & table[kind])
                    arcs[kind] = sources, self.following[sources, labels]
                sources, targets = arcs[kind]
                now = np.zeros(self.n_states, dtype=bool)
                now[targets[reached[sources]]] = True
                reached = now & self.accepting if start + t + 1 == stop else now
                if not reached.any():
                    return i, t
        return None

    def possible_lengths(self, longest: int) -> NDArray[np.bool_]:
        """Whether some sequence of n labels belongs to the language, for n = 0 .. longest."""
        possible = np.zeros(longest + 1, dtype=bool)
        now = np.zeros(self.n_states, dtype=bool)
        now[0], seen = True, dict[bytes, int]()
        for n in range(longest + 1):
            key = now.tobytes()
            if key in seen:  # from here on they come again
                period = n - seen[key]
                for m in range(n, longest + 1):
                    possible[m] = possible[m - period]
                break
            seen[key] = n
            possible[n] = (now & self.accepting).any()
            after = self.following[now]
            now = np.zeros(self.n_states, dtype=bool)
            now[after[after >= 0]] = True
        return possible

    def impossible_length(self, lengths: Integers) -> tuple[int, str] | None:
        """The first of some lengths that no sequence of the language has: its place, and the nearest ones in words."""
        possible = self.possible_lengths(int(lengths.max(initial=0)) + self.n_states)
        if possible[lengths].all():
            return None
        i, others = int((~possible[lengths]).argmax()), np.flatnonzero(possible[1:]) + 1
        near = [*others[others < lengths[i]][-1:].tolist(), *others[others > lengths[i]][:1].tolist()]
        return i, f"the nearest: {' and '.join(map(str, near))}"


def _in_order(table: Integers, accepting: NDArray[np.bool_], start: int) -> tuple[Integers, NDArray[np.bool_]]:
    """The states that can be reached, in the order of their first visit."""
    place, order, k = {start: 0}, [start], 0
    while k < len(order):
        for state in table[order[k]].tolist():
            if state >= 0 and state not in place:
                place[state] = len(order)
                order.append(state)
        k += 1
    new = np.full(len(table) + 1, -1)
    new[order] = np.arange(len(order))
    return new[table[order]], accepting[order]
