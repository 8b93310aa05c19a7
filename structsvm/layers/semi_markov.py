"""Segmentations of sequences (semi-Markov chains) on given scores of segments.

All verbs are compiled (see segments.h); sums, samples and the best segmentation run in threads. Where probabilities
would be lost to underflow, sums and samples go over tokens in NumPy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from structsvm.arrays import Floats
from structsvm.layers._spans import Segments, known_segments
from structsvm.layers.structure import (
    Generators,
    Labels,
    Parts,
    Scores,
    Summed,
    Values,
    as_narrow,
    as_outputs,
    as_parts,
    batched,
    check_lengths,
    check_values,
    drawn,
    over_batch,
    possible,
    shares_of,
    zeros_like,
)
from structsvm.parameters import checked_k, checked_threads


class SemiMarkov(Summed):
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
        self.n_threads = checked_threads(n_threads)

    def check(self, parts: Sequence[object], lengths: ArrayLike | None) -> Scores:
        present, shapes = as_parts(SemiMarkov, parts, 2)
        table = present["segments"]
        if table.ndim != 4 or 0 in table.shape[2:]:
            raise ValueError(f"segments must have shape (B, T, L, K), with L >= 1 and K >= 1. Got {table.shape}.")
        n, longest, _, K = table.shape
        sizes = check_lengths(lengths, n, longest)
        check_values("segments", table, lambda: _inside(table, sizes), n_threads=self.n_threads)
        edges = [present.get(name, np.zeros(K, table.dtype)) for name in ("start", "end")]
        shared = [batched("transitions", present["transitions"], n, (K, K))]
        shared += [batched(name, edge, n, (K,)) for name, edge in zip(("start", "end"), edges, strict=True)]
        return Scores((table, *shared), shapes, sizes, self.n_threads)

    def check_output(self, y: ArrayLike, scores: Scores, *, partly: bool = False) -> Labels:
        found, (n, longest, L, K) = as_outputs(y), scores.parts[0].shape
        if found.shape != (n, longest) or found.dtype.kind not in "iu":
            raise ValueError(
                f"y must be an array of integers of shape {(n, longest)}. Got {found.dtype} {found.shape}."
            )
        whole, (narrow, is_narrow) = np.empty((n, longest), np.int32), as_narrow(found)
        if is_narrow and known_segments(narrow, scores.lengths, K, L, whole):
            scores.truth = whole
            return whole
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
        counts, K = zeros_like(scores), scores.parts[0].shape[3]
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

    def restrict(self, scores: Scores, y: Labels) -> Scores:
        table, (_, longest, L, K) = scores.parts[0].copy(), scores.parts[0].shape
        allowed = (y[..., None] < 0) | (y[..., None] == np.arange(2 * K))
        may, others = allowed[..., :K].copy(), allowed[..., K:]
        for l in range(L):
            if l:
                may[:, : max(longest - l, 0)] &= others[:, l:]
            table[:, :, l][~may] = -np.inf
        return replace(scores, parts=(table, *scores.parts[1:]), truth=None)

    def best(self, scores: Scores) -> Labels:
        y, values = np.full(scores.parts[0].shape[:2], -1, np.int32), np.empty(len(scores.lengths))
        over_batch(len(y), self.n_threads, lambda first, last: _segments_of(scores).best(first, last, values, y))
        possible(values)
        return y

    def _batch(self, scores: Scores) -> Segments:
        return _segments_of(scores)

    def _log_sums(self, scores: Scores, entry: int) -> tuple[float, Values, Values]:
        return _log_sums(*_tables(scores, entry))

    def _expect(
        self, scores: Scores, log_z: Values, truth: Labels | None = None, known: Values | None = None
    ) -> tuple[Floats, ...]:
        parts, (n, K) = np.empty_like(scores.parts[0]), (len(log_z), scores.parts[0].shape[3])
        batch, steps, (start, end) = self._batch(scores), np.zeros((n, K, K)), np.zeros((2, n, K))
        wide = batch.sums(self.n_threads, log_z, parts, steps, (start, end), truth, known)
        for entry in wide:
            log_z[entry], *found = self._log_sums(scores, entry)
            parts[entry] = 0
            parts[entry, : len(found[0])], steps[entry] = found
        batch.finish_wide(wide)
        possible(log_z)
        return parts, *(table.astype(parts.dtype, copy=False) for table in (steps, start, end))

    def kbest(self, *parts: object, k: int, lengths: ArrayLike | None = None) -> tuple[Labels, Values]:
        k, scores = checked_k(k), self.check(parts, lengths)
        y = np.full((len(scores.lengths), k, scores.parts[0].shape[1]), -1, np.int32)
        values = np.full(y.shape[:2], -np.inf)
        _segments_of(scores).kbest(k, y, values)
        return y, values

    def max_marginals(self, *parts: object, lengths: ArrayLike | None = None) -> Values:
        scores = self.check(parts, lengths)
        table, steps = _whole(scores)
        n, longest, L, _ = table.shape
        left = scores.lengths[:, None, None] - np.add.outer(np.arange(longest), np.arange(L)) - 1  # tokens behind
        entries, lengths_less_1, tokens = np.arange(n)[:, None, None], np.arange(L), np.maximum(left, 0)
        turned = np.where((left >= 0)[..., None], table[entries, tokens, lengths_less_1], -np.inf)
        before = _reached(table, steps, scores.lengths)
        after = _reached(turned, steps.swapaxes(1, 2), scores.lengths)
        through: Values = before[:, :-1, None] + table + after[entries, tokens]
        return through

    def samples(self, scores: Scores, n_samples: int, generators: Generators) -> Labels:
        y = np.full((len(scores.lengths), n_samples, scores.parts[0].shape[1]), -1, np.int32)
        log_z = np.empty(len(y))

        def work(first: int, last: int) -> list[int]:
            return _segments_of(scores).draws(first, last, generators, log_z, y)

        for wide in over_batch(len(y), self.n_threads, work):
            for entry in wide:
                log_z[entry] = _draw_in_logs(*_tables(scores, entry), generators[entry], y[entry])
        possible(log_z)
        return y


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


def _segments_of(scores: Scores) -> Segments:
    shared = tuple(np.ascontiguousarray(part, np.float64) for part in scores.parts[1:])
    return Segments(scores.parts[0], shared, scores.lengths)


def _whole(scores: Scores) -> tuple[Values, Values]:
    """Scores of segments, with start and end, and -inf beyond the lengths; and of transitions: float64."""
    segments, steps, start, end = (part.astype(np.float64) for part in scores.parts)
    ends = np.add.outer(np.arange(segments.shape[1]), np.arange(segments.shape[2])) + 1
    with np.errstate(invalid="ignore"):  # beyond the lengths stands anything
        segments[:, :1] += start[:, None, None]
    np.add(segments, end[:, None, None], out=segments, where=(ends == scores.lengths[:, None, None])[..., None])
    return np.where((ends <= scores.lengths[:, None, None])[..., None], segments, -np.inf), steps


def _reached(table: Values, steps: Values, lengths: NDArray[np.int64]) -> Values:
    """Best scores (B, T + 1, K) of what comes before a segment that begins at a token with a label."""
    n, longest, _, K = table.shape
    found, none = np.full((n, longest + 1, K), -np.inf), np.zeros((1, K))
    Segments(table, (np.ascontiguousarray(steps), none, none), lengths).reached(found)
    return found


def _tables(scores: Scores, entry: int) -> tuple[Values, Values]:
    """Scores of an entry's segments, with start and end, and -inf beyond the length; and of its transitions."""
    own = [part[entry if len(part) > 1 else 0].astype(np.float64) for part in scores.parts]
    size = int(scores.lengths[entry])
    table, ends = own[0][:size], np.add.outer(np.arange(size), np.arange(own[0].shape[1])) + 1
    table[ends > size] = -np.inf
    table[:1] += own[2]
    table[ends == size] += own[3]
    return table, own[1]


def _forward(table: Values, transitions: Values) -> tuple[Values, Values]:
    """V and R of segments.h, from token 0 to the end; R[0] = 0."""
    size, L, K = table.shape
    V, R = np.full((size + 1, K), -np.inf), np.zeros((size + 1, K))
    for t in range(1, size + 1):
        l = np.arange(min(t, L))
        V[t] = np.logaddexp.reduce(R[t - 1 - l] + table[t - 1 - l, l], axis=0)
        R[t] = np.logaddexp.reduce(V[t][:, None] + transitions, axis=0)
    return V, R


def _log_sums(table: Values, transitions: Values) -> tuple[float, Values, Values]:
    """Log partition of an entry, and expected segments and transitions."""
    (size, L, _), (V, R) = table.shape, _forward(table, transitions)
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
    V, R = _forward(table, transitions)
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
