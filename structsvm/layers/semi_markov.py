"""Segmentations of sequences (semi-Markov chains) on given scores of segments.

Log partition, marginals and the best segmentation are compiled and run in threads (see segments.h). The rest goes over
tokens in NumPy: max-marginals and samples, and sums where probabilities would be lost to underflow; masks find the k
best.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from structsvm.arrays import Floats
from structsvm.layers._spans import Segments
from structsvm.layers.chain import Reduce
from structsvm.layers.places import MaskedPlaces
from structsvm.layers.structure import (
    Generators,
    Labels,
    NoOutput,
    Parts,
    Scores,
    Values,
    as_outputs,
    as_parts,
    batched,
    check_lengths,
    check_values,
    drawn,
    over_batch,
    possible,
    shares_of,
)
from structsvm.oracles.enumeration.labellings import Allowed
from structsvm.parameters import checked_count


class SemiMarkov(MaskedPlaces):
    """Segmentations of B sequences of T tokens into segments of at most L tokens, with K labels.

    The parts are, in this order,

    - ``segments`` (B, T, L, K): of the segment from token t on, of l + 1 tokens, with label k; what would end
      beyond the length does not matter;
    - ``transitions`` (K, K) or (B, K, K), from the label of a segment (row) to the next one's;
    - ``start`` and ``end`` (K,) or (B, K), optional: of the first and the last segment's label.

    An output is an integer array (B, T), with the label k at the first token of a segment, K + k at its others, and -1
    beyond the lengths: ``y % K`` are the tokens' labels, ``y < K`` the beginnings. In a truth known in part -1 is an
    unknown token. The default cost of losses counts the segments of only one of the two outputs.

    Parameters
    ----------
    n_threads : int, default=1
        The batch is split among them; results are bit-identical for every number.

    References
    ----------
    S. Sarawagi and W. Cohen, Semi-Markov conditional random fields for information extraction, NIPS 2004.

    Examples
    --------
    >>> import numpy as np
    >>> from structsvm.layers import SemiMarkov
    >>> segments = np.zeros((1, 3, 2, 2))
    >>> segments[0, 1, 1, 1] = 2.0  # tokens 1 and 2, label 1
    >>> SemiMarkov().argmax(segments, np.zeros((2, 2))).tolist()
    [[0, 1, 3]]
    >>> SemiMarkov().log_partition(segments, np.zeros((2, 2))).round(2).tolist()
    [3.36]
    """

    part_names: ClassVar[tuple[str, ...]] = ("segments", "transitions", "start", "end")

    def __init__(self, *, n_threads: int = 1) -> None:
        self.n_threads = checked_count("n_threads", n_threads, 1)

    def check(self, parts: Sequence[object], lengths: ArrayLike | None) -> Scores:
        present, shapes = as_parts(SemiMarkov, parts, 2)
        table = present["segments"]
        if table.ndim != 4 or 0 in table.shape[2:]:
            raise ValueError(f"segments must have shape (B, T, L, K), with L >= 1 and K >= 1. Got {table.shape}.")
        n, longest, _, K = table.shape
        sizes = check_lengths(lengths, n, longest)
        check_values("segments", table, lambda: _inside(table, sizes))
        edges = [present.get(name, np.zeros(K, table.dtype)) for name in ("start", "end")]
        shared = [batched("transitions", present["transitions"], n, (K, K))]
        shared += [batched(name, edge, n, (K,)) for name, edge in zip(("start", "end"), edges, strict=True)]
        return Scores((table, *shared), shapes, sizes)

    def check_output(self, y: ArrayLike, scores: Scores, *, partly: bool = False) -> Labels:
        found, (n, longest, L, K) = as_outputs(y), scores.parts[0].shape
        if found.shape != (n, longest) or found.dtype.kind not in "iu":
            raise ValueError(
                f"y must be an array of integers of shape {(n, longest)}. Got {found.dtype} {found.shape}."
            )
        inside = np.arange(longest) < scores.lengths[:, None]
        bad = inside & ((found < (-1 if partly else 0)) | (found >= 2 * K))
        if bad.any():
            entry, token = np.argwhere(bad)[0].tolist()
            unknown = ", -1 for an unknown token" if partly else ""
            raise ValueError(
                f"y must contain labels k from 0 to {K - 1} where a segment begins, {K} + k where it goes on{unknown}. "
                f"Got {found[entry, token]} at batch entry {entry}, token {token}."
            )
        labels: Labels = np.where(inside, found, -1).astype(np.int32)
        before = np.hstack([np.full((n, 1), 2 * K), labels[:, :-1]])  # nothing goes on from it
        broken = (labels >= K) & (before >= 0) & ((before == 2 * K) | (before % K != labels % K))
        if broken.any():
            entry, token = np.argwhere(broken)[0].tolist()
            raise ValueError(
                f"y goes on with a segment of label {labels[entry, token] - K} at batch entry {entry}, token {token}, "
                "that no token before it has begun."
            )
        for entry, token, length in [] if partly else _segments(labels, K):
            if length > L:
                raise ValueError(
                    f"y has a segment of {length} tokens at batch entry {entry}, token {token}; segments have scores "
                    f"for at most {L}."
                )
        return labels

    def indicators(self, y: Labels, scores: Scores) -> Parts:
        counts, K = _zeros_like(scores), scores.parts[0].shape[3]
        found = np.array(_segments(y, K), np.int64).reshape(-1, 3)
        entries, tokens, lengths = found.T
        labels = y[entries, tokens]
        counts[0][entries, tokens, lengths - 1, labels] = 1
        follows = entries[1:] == entries[:-1]
        np.add.at(counts[1], (entries[1:][follows], labels[:-1][follows], labels[1:][follows]), 1)
        for edge, there in ((counts[2], tokens == 0), (counts[3], tokens + lengths == scores.lengths[entries])):
            edge[entries[there], labels[there]] = 1
        return tuple(counts)

    def costs(self, right: Floats) -> Floats:
        return 1 - 2 * right

    def sums(self, scores: Scores, *, marginals: bool = True) -> tuple[Values, Parts]:
        log_z, shared = np.empty(len(scores.lengths)), _shared(scores)
        counts = _zeros_like(scores) if marginals else []
        steps = np.zeros(counts[1].shape) if marginals else None
        parts = counts[0] if marginals else None

        def work(first: int, last: int) -> list[int]:
            return Segments(scores.parts[0], shared, scores.lengths).sums(first, last, log_z, parts, steps)

        for wide in over_batch(len(log_z), self.n_threads, work):
            for entry in wide:
                log_z[entry], *found = _log_sums(*_tables(scores, entry))
                if parts is not None and steps is not None:
                    parts[entry] = 0
                    parts[entry, : len(found[0])], steps[entry] = found
        if steps is not None:
            for entry in np.flatnonzero(np.isneginf(log_z))[:1].tolist():
                raise NoOutput(entry)
            counts[1][:] = steps
            counts[2][:] = counts[0][:, :1].sum(axis=(1, 2))
            for entry, size in enumerate(scores.lengths.tolist()):
                l = np.arange(min(size, counts[0].shape[2]))
                counts[3][entry] = counts[0][entry, size - 1 - l, l].sum(axis=0)
        return log_z, tuple(counts)

    def max_marginals(self, *parts: object, lengths: ArrayLike | None = None) -> Values:
        scores = self.check(parts, lengths)
        best = np.full(scores.parts[0].shape, -np.inf)
        for entry, size in enumerate(scores.lengths.tolist()):
            table, transitions = _tables(scores, entry)
            (_, R), (B, _) = (step(table, transitions, np.max) for step in (_forward, _after))
            best[entry, :size] = _through(table, R, B)
        return best

    def samples(self, scores: Scores, n_samples: int, generators: Generators) -> Labels:
        y = np.full((len(scores.lengths), n_samples, scores.parts[0].shape[1]), -1, np.int32)
        log_z, shared = np.empty(len(y)), _shared(scores)

        def work(first: int, last: int) -> list[int]:
            return Segments(scores.parts[0], shared, scores.lengths).draws(first, last, generators, log_z, y)

        for wide in over_batch(len(y), self.n_threads, work):
            for entry in wide:
                log_z[entry] = _draw_in_logs(*_tables(scores, entry), generators[entry], y[entry])
        possible(log_z)
        return y

    # ---- places: tokens, whose values are labels of first and of other tokens ------------------------------

    def shape(self, scores: Scores) -> tuple[int, int]:
        return scores.parts[0].shape[1], 2 * scores.parts[0].shape[3]

    def limit(self, scores: Scores, allowed: Allowed) -> Scores:
        table, low = scores.parts[0].copy(), scores.parts[0].dtype.type(-np.inf)
        _, longest, L, K = table.shape
        firsts, others = allowed[..., :K], allowed[..., K:]
        may = firsts.copy()
        for l in range(L):
            if l:
                may[:, : max(longest - l, 0)] &= others[:, l:]
            table[:, :, l][~may] = low
        return Scores((table, *scores.parts[1:]), scores.shapes, scores.lengths)

    def find(self, scores: Scores) -> tuple[Labels, Values]:
        y, values = np.full(scores.parts[0].shape[:2], -1, np.int32), np.empty(len(scores.lengths))
        shared = _shared(scores)

        def work(first: int, last: int) -> None:
            Segments(scores.parts[0], shared, scores.lengths).best(first, last, values, y)

        over_batch(len(values), self.n_threads, work)
        return y, values


def _inside(table: Floats, sizes: NDArray[np.int64]) -> NDArray[np.bool_]:
    """True for segments (B, T, L) that end within the lengths."""
    last = np.add.outer(np.arange(table.shape[1]), np.arange(table.shape[2]))
    inside: NDArray[np.bool_] = last < sizes[:, None, None]
    return inside


def _segments(y: Labels, K: int) -> list[tuple[int, int, int]]:
    """Entry, first token and length of each segment, in order."""
    entries, tokens = np.nonzero((y >= 0) & (y < K))
    sizes = (y >= 0).sum(axis=1)
    last = np.append(entries[1:] != entries[:-1], True)[: len(entries)]
    ends = np.where(last, sizes[entries], np.append(tokens[1:], 0)[: len(entries)])
    return list(zip(entries.tolist(), tokens.tolist(), (ends - tokens).tolist(), strict=True))


def _zeros_like(scores: Scores) -> list[Floats]:
    """Arrays of zeros like the parts, each with all entries of the batch."""
    n = len(scores.lengths)
    return [np.zeros((n, *part.shape[1:]), part.dtype) for part in scores.parts]


def _shared(scores: Scores) -> tuple[Values, ...]:
    return tuple(np.ascontiguousarray(part, np.float64) for part in scores.parts[1:])


def _tables(scores: Scores, entry: int) -> tuple[Values, Values]:
    """Scores of an entry's segments, with start and end, and -inf beyond the length; and of its transitions."""
    own = [part[entry if len(part) > 1 else 0].astype(np.float64) for part in scores.parts]
    size = int(scores.lengths[entry])
    table, ends = own[0][:size], np.add.outer(np.arange(size), np.arange(own[0].shape[1])) + 1
    table[ends > size] = -np.inf
    table[:1] += own[2]
    table[ends == size] += own[3]
    return table, own[1]


def _forward(table: Values, transitions: Values, reduce: Reduce) -> tuple[Values, Values]:
    """V and R of segments.h, from token 0 to the end; R[0] = 0."""
    size, L, K = table.shape
    V, R = np.full((size + 1, K), -np.inf), np.zeros((size + 1, K))
    for t in range(1, size + 1):
        l = np.arange(min(t, L))
        V[t] = reduce(R[t - 1 - l] + table[t - 1 - l, l], 0)
        R[t] = reduce(V[t][:, None] + transitions, 0)
    return V, R


def _after(table: Values, transitions: Values, reduce: Reduce) -> tuple[Values, Values]:
    """B and W of segments.h: over what follows a segment that ended, and a place where one begins."""
    size, L, K = table.shape
    B, W = np.zeros((size + 1, K)), np.full((size + 1, K), -np.inf)
    for t in range(size - 1, -1, -1):
        m = min(L, size - t)
        W[t] = reduce(table[t, :m] + B[t + 1 : t + 1 + m], 0)
        B[t] = reduce(transitions + W[t], 1)
    return B, W


def _through(table: Values, R: Values, B: Values) -> Values:
    """Scores of all that goes through each segment."""
    size, L, _ = table.shape
    ends = np.minimum(np.add.outer(np.arange(size), np.arange(L)) + 1, size)
    return R[:size, None] + table + B[ends]


def _log_sums(table: Values, transitions: Values) -> tuple[float, Values, Values]:
    """Log partition of an entry, and expected segments and transitions."""
    (size, L, _), (V, R) = table.shape, _forward(table, transitions, np.logaddexp.reduce)
    log_z = float(np.logaddexp.reduce(V[-1]))
    segments, steps, begins = np.zeros_like(table), np.zeros_like(transitions), np.zeros_like(R)
    if np.isneginf(log_z):
        return log_z, segments, steps
    ends = shares_of(V[-1], 0)
    for t in range(size, 0, -1):  # shares of what a log of V or R sums: never more than 1
        if t < size:
            pairs = begins[t] * shares_of(V[t][:, None] + transitions, 0)
            ends, steps = pairs.sum(axis=1), steps + pairs
        l = np.arange(min(t, L))
        segments[t - 1 - l, l] = ends * shares_of(R[t - 1 - l] + table[t - 1 - l, l], 0)
        begins[t - 1 - l] += segments[t - 1 - l, l]
    return log_z, segments, steps


def _draw_in_logs(table: Values, transitions: Values, random: np.random.Generator, y: Labels) -> float:
    """Write samples (n_samples, T) of an entry; returns its log partition."""
    (size, L, K), n_samples = table.shape, len(y)
    V, R = _forward(table, transitions, np.logaddexp.reduce)
    log_z = float(np.logaddexp.reduce(V[size]))
    if np.isneginf(log_z):
        return log_z
    draws = random.random((size, 2, n_samples))
    ends, logs = np.full(n_samples, size), np.repeat(V[size:], n_samples, axis=0)
    for t in range(size, 0, -1):  # the samples that have a segment which ends here
        here = np.flatnonzero(ends == t)
        if not len(here):
            continue
        labels = _drawn(logs[here], draws[t - 1, 0, here])
        l = np.arange(min(t, L))
        own = (R[t - 1 - l] + table[t - 1 - l, l])[:, labels].T
        ends[here] = t - 1 - _drawn(own, draws[t - 1, 1, here])
        tokens = np.arange(t) >= ends[here, None]
        first = np.arange(t) == ends[here, None]
        y[here, :t] = np.where(tokens, labels[:, None] + K * ~first, -1)
        logs[here] = V[ends[here]] + transitions[:, labels].T
    return log_z


def _drawn(logs: Values, uniforms: Values) -> NDArray[np.int64]:
    """An index per row of logs of weights."""
    return drawn(np.exp(logs - logs.max(axis=1, keepdims=True)), uniforms)
