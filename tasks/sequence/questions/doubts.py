"""How sure a chain is of all labellings of a pool, from the scores of its tokens.

A chunk is wrong no more often than the labels that make it are together: those of its words, the one before where its
first label could go on with a chunk, and the one behind where its last label lets it go on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from structsvm.layers import Chain
from structsvm.tasks.sequence.chances import INSIDE, OPEN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from structsvm.arrays import Floats, Integers
    from structsvm.metrics._schemes import Part

# Numbers of the potentials that are summed side by side.
MOST_NUMBERS = 1 << 21
# The doubt about a chunk from which on it is worth more sums than that of its labels.
UNSURE = 0.3


class Potentials(NamedTuple):
    """The scores of a chain over sequences, over the temperature.

    Attributes
    ----------
    emissions : float array of shape (n_tokens, n_labels)
    moves : float array of shape (n_labels, n_labels)
    begin, end : float arrays of shape (n_labels,)
    offsets : int64 array of shape (n_sequences + 1,)
    of_pairs : callable or None
        What tokens, by their indices, add to the moves to them: array (n, n_labels, n_labels).
    """

    emissions: Floats
    moves: Floats
    begin: Floats
    end: Floats
    offsets: Integers
    of_pairs: Callable[[Integers], Floats] | None = None

    def blocks(self, sequences: Integers | None = None) -> Iterator[tuple[Integers, Integers, list[Floats]]]:
        """Yield ``(places, tokens, parts)``: some sequences of like length, padded, for `structsvm.layers.Chain`.

        Parameters
        ----------
        sequences : int array, optional
            Indices, also repeated; `places` are places in it. None: all.

        `tokens` has -1 beyond the lengths; `parts` may be changed.
        """
        sequences = np.arange(len(self.offsets) - 1) if sequences is None else sequences
        lengths, starts = np.diff(self.offsets)[sequences], self.offsets[sequences]
        order, K = np.argsort(lengths, kind="stable"), self.emissions.shape[1]
        size = K if self.of_pairs is None else K * K
        while len(order):
            n = max(1, min(len(order), MOST_NUMBERS // int(size * lengths[order[-1]])))
            chosen, order = order[-n:], order[:-n]
            places = np.arange(int(lengths[chosen[-1]]))
            tokens = np.where(places < lengths[chosen, None], starts[chosen, None] + places, -1)
            yield chosen, tokens, [self.emissions[tokens], self._moves_to(tokens[:, 1:]), self.begin, self.end]

    def _moves_to(self, tokens: Integers) -> Floats:
        if self.of_pairs is None:
            return self.moves
        own = self.of_pairs(np.maximum(tokens, 0).ravel())
        return self.moves + own.reshape(*tokens.shape, *self.moves.shape)


class Chunks:
    """The labels of chunks, by their roles and types.

    Attributes
    ----------
    kind : int array of shape (n_labels,)
    of_kind, open, inside : bool arrays of shape (n_kinds, n_labels)
        The labels of chunks of each type; those after which a chunk goes on; those with which it does.
    """

    def __init__(self, parts: Sequence[Part]) -> None:
        names = list(dict.fromkeys(part.kind for part in parts))
        self.kind = np.array([names.index(part.kind) for part in parts])
        is_own = self.kind == np.arange(len(names))[:, None]
        self.of_kind, self.open, self.inside = (
            is_own & np.array([part.role in roles for part in parts]) for roles in ("BIES", OPEN, INSIDE)
        )

    def read(self, best: Integers, offsets: Integers) -> Found:
        """The chunks of labellings, given by the label ids of all tokens."""
        is_first = np.zeros(len(best), dtype=bool)
        is_first[offsets[:-1]] = True
        goes_on = ~is_first
        goes_on[1:] &= self.open[self.kind[best[1:]], best[:-1]] & self.inside[self.kind[best[1:]], best[1:]]
        is_chunk = self.of_kind.any(axis=0)[best]
        starts = np.flatnonzero(is_chunk & ~goes_on)
        stops = np.flatnonzero(is_chunk & ~np.append(goes_on[1:], False))
        kind = self.kind[best[starts]]
        sequence = np.searchsorted(offsets, starts, side="right") - 1
        is_fresh = ~self.inside[kind, best[starts]]
        before = starts - (~is_fresh & (starts > offsets[sequence]))
        behind = stops + (self.open[kind, best[stops]] & (stops + 1 < offsets[sequence + 1]))
        return Found(sequence, starts, stops, kind, is_fresh, before, behind)

    def clamp(self, emissions: Floats, found: Found, firsts: Integers, lengths: Integers) -> None:
        """Leave the labellings that have a chunk, or most of them: row i of `emissions` is of chunk i's sequence.

        Parameters
        ----------
        firsts : int array
            The first token of each sequence.
        """
        rows, (starts, stops) = np.arange(len(firsts)), (found.starts - firsts, found.stops - firsts)
        row = np.repeat(rows, stops - starts + 1)
        place = np.arange(len(row)) - np.repeat(np.cumsum(stops - starts + 1) - stops - 1, stops - starts + 1)
        kind, is_start, is_stop = found.kind[row], place == starts[row], place == stops[row]
        may = self.of_kind[kind] & (self.inside[kind] | is_start[:, None]) & (self.open[kind] | is_stop[:, None])
        may &= ~(self.inside[kind] & (is_start & found.is_fresh[row])[:, None])
        emissions[row, place] = np.where(may, emissions[row, place], -np.inf)
        for has, at, labels in (
            (~found.is_fresh & (starts > 0), starts - 1, self.open),
            (stops + 1 < lengths, stops + 1, self.inside),
        ):
            some = rows[has], at[has]
            emissions[some] = np.where(labels[found.kind[has]], -np.inf, emissions[some])


class Found(NamedTuple):
    """Chunks: arrays, an entry each.

    Attributes
    ----------
    sequence : int array
    starts, stops : int arrays
        The first and the last token, among all.
    kind : int array
    is_fresh : bool array
        Whether the first label begins a chunk whatever stands before it.
    before, behind : int arrays
        The first and the last of the tokens that decide on the chunk.
    """

    sequence: Integers
    starts: Integers
    stops: Integers
    kind: Integers
    is_fresh: NDArray[np.bool_]
    before: Integers
    behind: Integers

    def of(self, some: Integers) -> Found:
        """Some of them."""
        return Found(
            self.sequence[some],
            self.starts[some],
            self.stops[some],
            self.kind[some],
            self.is_fresh[some],
            self.before[some],
            self.behind[some],
        )


def doubts(potentials: Potentials, strategy: str, chunks: Chunks) -> Floats:
    """Per sequence the entropy, the expected number of wrong labels, the probability that the best labelling is wrong,
    or one that no chunk of it exceeds in being wrong; right as far as the scores are.
    """
    if strategy in ("entropy", "confidence"):
        return _of_outputs(potentials, strategy)
    best, wrong = _of_tokens(potentials)
    if strategy == "risk":
        return np.add.reduceat(wrong, potentials.offsets[:-1])
    return _of_chunks(potentials, chunks, best, wrong)


def _of_outputs(potentials: Potentials, strategy: str) -> Floats:
    chain, lengths = Chain(), np.diff(potentials.offsets)
    values = np.empty(len(lengths))
    for chosen, _, parts in potentials.blocks():
        own = lengths[chosen]
        if strategy == "entropy":
            values[chosen] = chain.entropy(*parts, lengths=own)
        else:
            score = chain.score(chain.argmax(*parts, lengths=own), *parts, lengths=own)
            values[chosen] = -np.expm1(np.minimum(score - chain.log_partition(*parts, lengths=own), 0.0))
    return values


def _of_tokens(potentials: Potentials) -> tuple[Integers, Floats]:
    """Return ``(best, wrong)``: the labels of the best labellings, and how probable it is that each is wrong."""
    chain, lengths = Chain(), np.diff(potentials.offsets)
    best, wrong = np.zeros(int(potentials.offsets[-1]), dtype=np.int64), np.zeros(int(potentials.offsets[-1]))
    for chosen, tokens, parts in potentials.blocks():
        is_there = tokens >= 0
        labels = chain.argmax(*parts, lengths=lengths[chosen])[is_there]
        chances = np.asarray(chain.marginals(*parts, lengths=lengths[chosen])[0])[is_there]
        chances[np.arange(len(labels)), labels] = 0.0
        best[tokens[is_there]], wrong[tokens[is_there]] = labels, chances.sum(axis=1, dtype=np.float64)
    return best, wrong


def _of_chunks(potentials: Potentials, chunks: Chunks, best: Integers, wrong: Floats) -> Floats:
    """The greatest doubt about a chunk of each sequence, or about a token where there is none."""
    offsets = potentials.offsets
    found, sums = chunks.read(best, offsets), np.concatenate([[0.0], np.cumsum(wrong)])
    values = sums[found.behind + 1] - sums[found.before]
    unsure = np.flatnonzero(values > UNSURE)
    values[unsure] = np.minimum(values[unsure], 1.0 - _chances(potentials, chunks, found.of(unsure)))
    worst = np.full(len(offsets) - 1, -1.0)
    np.maximum.at(worst, found.sequence, values)
    return np.where(worst < 0.0, np.maximum.reduceat(wrong, offsets[:-1]), worst)


def _chances(potentials: Potentials, chunks: Chunks, found: Found) -> Floats:
    """The share of the labellings that have each chunk, or most of it."""
    chain, lengths = Chain(), np.diff(potentials.offsets)[found.sequence]
    logs = np.empty(len(lengths))
    for chosen, tokens, parts in potentials.blocks(found.sequence):
        own = lengths[chosen]
        total = chain.log_partition(*parts, lengths=own)
        chunks.clamp(parts[0], found.of(chosen), tokens[:, 0], own)
        logs[chosen] = chain.log_partition(*parts, lengths=own) - total
    return np.exp(np.minimum(logs, 0.0))
