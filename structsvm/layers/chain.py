"""Label chains (linear-chain CRFs): forward-backward and Viterbi on given scores.

Log partition, marginals and the best labelling are compiled and run in threads (see potentials.h); the k best,
max-marginals and samples are for looking at single entries, and loop over tokens in NumPy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from structsvm.arrays import Floats
from structsvm.layers._chain import Batch
from structsvm.layers.structure import (
    Labels,
    NoOutput,
    Parts,
    Scores,
    Structure,
    Values,
    as_parts,
    check_lengths,
    check_threads,
    check_values,
    drawn,
    over_batch,
)
from structsvm.metrics._schemes import scheme_for
from structsvm.parameters import checked_k

Reduce = Callable[[Values, int], Values]


class Chain(Structure):
    """Labellings of B sequences of T tokens with K labels each.

    The parts are, in this order,

    - ``emissions`` (B, T, K);
    - ``transitions`` (K, K), from row to column; (B, 1, K, K), each sequence's own; or (B, T - 1, K, K), each step's;
    - ``start`` and ``end`` (K,), optional.

    An output is an integer array (B, T), with -1 beyond the lengths.

    Parameters
    ----------
    n_threads : int, default=1
        The batch is split among them; results are bit-identical for every number.

    Examples
    --------
    >>> import numpy as np
    >>> from structsvm.layers import Chain
    >>> emissions, transitions = np.array([[[2.0, 0.0], [0.0, 1.0], [0.5, 0.0]]]), np.array([[1.0, 0.0], [0.0, 1.0]])
    >>> Chain().argmax(emissions, transitions).tolist()
    [[0, 0, 0]]
    >>> labels, values = Chain().kbest(emissions, transitions, k=2)
    >>> labels[0].tolist(), values[0].tolist()
    ([[0, 0, 0], [0, 1, 1]], [4.5, 4.0])
    >>> Chain().log_partition(emissions, transitions).round(2).tolist()
    [5.46]
    """

    part_names: ClassVar[tuple[str, ...]] = ("emissions", "transitions", "start", "end")

    def __init__(self, n_threads: int = 1) -> None:
        self.n_threads = check_threads(n_threads)

    def check(self, parts: Sequence[object], lengths: ArrayLike | None) -> Scores:
        present, shapes = as_parts(Chain, parts, 2)
        emissions, transitions = present["emissions"], present["transitions"]
        if emissions.ndim != 3 or emissions.shape[2] == 0:
            raise ValueError(f"emissions must have shape (B, T, K), with K >= 1. Got {emissions.shape}.")
        n, longest, K = emissions.shape
        fitting = (K, K), (n, 1, K, K), (n, max(longest - 1, 0), K, K)
        if transitions.shape not in fitting:
            wanted = f"{fitting[0]}, {fitting[1]} or {fitting[2]}"
            raise ValueError(f"transitions must have shape {wanted}. Got {transitions.shape}.")
        sizes = check_lengths(lengths, n, longest)
        check_values("emissions", emissions, np.arange(longest) < sizes[:, None])
        shared = transitions.ndim == 2
        wide = transitions.reshape(1, 1, K, K) if shared else transitions
        steps = None if shared else np.arange(wide.shape[1]) < sizes[:, None] - 1
        check_values("transitions", transitions, steps, is_batch=not shared)
        edges = [present.get(name, np.zeros(K, emissions.dtype)) for name in self.part_names[2:]]
        for name, edge in zip(self.part_names[2:], edges, strict=True):
            if edge.shape != (K,):
                raise ValueError(f"{name} must have shape ({K},). Got {edge.shape}.")
            check_values(name, edge, is_batch=False)
        return Scores((emissions, wide, *(edge.reshape(1, K) for edge in edges)), shapes, sizes)

    def check_output(self, y: ArrayLike, scores: Scores, *, partly: bool = False) -> Labels:
        emissions, found = _emissions(scores), np.asarray(y)
        n, longest, K = emissions.shape
        if found.shape != (n, longest) or found.dtype.kind not in "iu":
            raise ValueError(
                f"y must be an array of integers of shape {(n, longest)}. Got {found.dtype} {found.shape}."
            )
        inside = np.arange(longest) < scores.lengths[:, None]
        bad = inside & ((found < (-1 if partly else 0)) | (found >= K))
        if bad.any():
            entry, token = np.argwhere(bad)[0].tolist()
            unknown = ", or -1 for an unknown one" if partly else ""
            raise ValueError(
                f"y must contain labels from 0 to {K - 1}{unknown}. Got {found[entry, token]} at batch entry {entry}, "
                f"token {token}; leave out what does not count by `lengths`."
            )
        return np.where(inside, found, -1).astype(np.int32)

    def indicators(self, y: Labels, scores: Scores) -> Parts:
        transitions, counts = scores.parts[1], _zeros_like(scores)
        entries, tokens = np.nonzero(y >= 0)
        counts[0][entries, tokens, y[entries, tokens]] = 1
        entries, steps = np.nonzero(y[:, 1:] >= 0)
        places = steps if transitions.shape[1] != 1 else np.zeros_like(steps)
        np.add.at(counts[1], (entries, places, y[entries, steps], y[entries, steps + 1]), 1)
        full = np.flatnonzero(scores.lengths)
        for edge, token in ((counts[2], np.zeros_like(full)), (counts[3], scores.lengths[full] - 1)):
            edge[full, y[full, token]] = 1
        return tuple(counts)

    def restrict(self, scores: Scores, y: Labels) -> Scores:
        emissions = _emissions(scores)
        allowed = (y[:, :, None] < 0) | (y[:, :, None] == np.arange(emissions.shape[2]))
        masked = np.where(allowed, emissions, emissions.dtype.type(-np.inf))
        return replace(scores, parts=(np.ascontiguousarray(masked), *scores.parts[1:]))

    def best(self, scores: Scores) -> Labels:
        emissions, batch = _emissions(scores), _batch(scores)
        labels = np.full(emissions.shape[:2], -1, np.int32)
        for entry in over_batch(len(labels), self.n_threads, lambda first, last: batch.best(first, last, labels)):
            if entry >= 0:
                raise NoOutput(entry)
        return labels

    def sums(self, scores: Scores, *, marginals: bool = True) -> tuple[Values, Parts]:
        log_z = np.empty(len(scores.lengths))
        counts = _zeros_like(scores) if marginals else []
        nodes, pairs = counts[:2] if marginals else (None, None)
        batch = _batch(scores)
        over_batch(len(log_z), self.n_threads, lambda first, last: batch.sums(first, last, log_z, nodes, pairs))
        if marginals:
            empty = np.flatnonzero(np.isneginf(log_z))
            if len(empty):
                raise NoOutput(int(empty[0]))
            full = np.flatnonzero(scores.lengths)
            for edge, token in ((counts[2], np.zeros_like(full)), (counts[3], scores.lengths[full] - 1)):
                edge[full] = counts[0][full, token]
        return log_z, tuple(counts)

    def kbest(self, *parts: object, k: int, lengths: ArrayLike | None = None) -> tuple[Labels, Values]:
        k, scores = checked_k(k), self.check(parts, lengths)
        n, longest, _ = _emissions(scores).shape
        labels, values = np.full((n, k, longest), -1, np.int32), np.full((n, k), -np.inf)
        for entry in range(n):
            rows, found = _kbest(*_tables(scores, entry), k)
            labels[entry, : len(found), : rows.shape[1]], values[entry, : len(found)] = rows, found
        return labels, values

    def max_marginals(self, *parts: object, lengths: ArrayLike | None = None) -> Values:
        scores = self.check(parts, lengths)
        best = np.full(_emissions(scores).shape, -np.inf)
        for entry, length in enumerate(scores.lengths):
            rows, tables = _tables(scores, entry)
            before = _forward(rows, tables, np.max)
            after = _forward(rows[::-1], tables[::-1].transpose(0, 2, 1), np.max)[::-1]
            best[entry, :length] = before + after - np.where(np.isneginf(rows), 0.0, rows)
        return best

    def sample(self, *parts: object, n_samples: int, seed: int, lengths: ArrayLike | None = None) -> Labels:
        scores = self.check(parts, lengths)
        n, longest, _ = _emissions(scores).shape
        labels = np.full((n, n_samples, longest), -1, np.int32)
        for entry, length in enumerate(scores.lengths):
            rows, tables = _tables(scores, entry)
            alphas = _forward(rows, tables, np.logaddexp.reduce)
            if length and np.isneginf(alphas[-1]).all():
                raise NoOutput(entry)
            draws = np.random.default_rng([seed, entry]).random((length, n_samples))
            for t in range(length - 1, -1, -1):
                after = tables[t][:, labels[entry, :, t + 1]] if t < length - 1 else 0.0
                logs = alphas[t][:, None] + after
                labels[entry, :, t] = drawn(np.exp(logs - logs.max(axis=0)).T, draws[t])
        return labels


def scheme_masks(labels: Sequence[str], scheme: str) -> tuple[Floats, Floats, Floats]:
    """Return the masks of a labelling scheme: `transitions`, `start` and `end`, 0 or -inf, to add to those of a chain.

    Parameters
    ----------
    labels : sequence of str
        The names of labels 0 .. K - 1; tags with types, as in "B-PER", "B_PER" or "PER-B", and "O".
    scheme : str
        bio, bioes, bilou, bmes, bmewo, iob1, ioe1, ioe2 or io, also by other orders of their letters (IOB2).

    Returns
    -------
    transitions, start, end : float32 arrays (K, K), (K,) and (K,)

    Raises
    ------
    ValueError
        The scheme is unknown, or a label is none of it.

    Examples
    --------
    >>> import numpy as np
    >>> from structsvm.layers import Chain, scheme_masks
    >>> labels = ["O", "B-PER", "I-PER"]
    >>> emissions = np.array([[[0.0, 1.0, 2.0], [0.0, 0.0, 1.0]]])
    >>> best = Chain().argmax(emissions, *scheme_masks(labels, "bio"))
    >>> [labels[k] for k in best[0]]
    ['B-PER', 'I-PER']
    """
    transitions, start, end = (
        np.where(allowed, 0.0, -np.inf).astype(np.float32) for allowed in scheme_for(labels, scheme).masks(labels)
    )
    return transitions, start, end


def _emissions(scores: Scores) -> Floats:
    return scores.parts[0]


def _batch(scores: Scores) -> Batch:
    emissions, transitions, start, end = scores.parts
    return Batch(emissions, transitions, start, end, scores.lengths)


def _zeros_like(scores: Scores) -> list[Floats]:
    """Arrays of zeros like the parts, each with all entries of the batch."""
    n = len(scores.lengths)
    return [np.zeros((n, *part.shape[1:]), part.dtype) for part in scores.parts]


def _tables(scores: Scores, entry: int) -> tuple[Values, Values]:
    """Scores of an entry's labels, with start and end, (T, K), and of its steps, (T - 1, K, K)."""
    emissions, transitions, start, end = scores.parts
    length = int(scores.lengths[entry])
    rows = emissions[entry, :length].astype(np.float64)
    own = transitions[entry if len(transitions) > 1 else 0]
    steps = max(length - 1, 0)
    tables = np.broadcast_to(own, (steps, *own.shape[1:])) if len(own) == 1 else own[:steps]
    if length:
        rows[0] += start[0]
        rows[-1] += end[0]
    return rows, tables.astype(np.float64)


def _forward(rows: Values, tables: Values, reduce: Reduce) -> Values:
    """Compute alpha[t][q] = rows[t][q] + reduce_a (alpha[t - 1][a] + tables[t - 1][a][q])."""
    alphas = rows.copy()
    for t in range(1, len(rows)):
        alphas[t] += reduce(alphas[t - 1][:, None] + tables[t - 1], 0)
    return alphas


def _kbest(rows: Values, tables: Values, k: int) -> tuple[Labels, Values]:
    """The k best labellings of a sequence, and their scores: each label keeps the k best beginnings that end in it."""
    length, K = rows.shape
    if length == 0:
        return np.empty((1, 0), np.int32), np.zeros(1)
    values = np.full((k, K), -np.inf)
    values[0] = rows[0]
    back = np.zeros((length, k, K), np.int64)
    for t in range(1, length):
        paths = (values[:, :, None] + tables[t - 1]).reshape(k * K, K)
        back[t] = np.argsort(-paths, axis=0, kind="stable")[:k]
        values = np.take_along_axis(paths, back[t], axis=0) + rows[t]
    places = np.argsort(-values.ravel(), kind="stable")[:k]
    found = values.ravel()[places]
    places, found = places[found > -np.inf], found[found > -np.inf]
    labels = np.empty((len(places), length), np.int32)
    for t in range(length - 1, -1, -1):
        labels[:, t] = places % K
        places = back[t].reshape(-1)[places]
    return labels, found
