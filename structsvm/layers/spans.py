"""Binary trees over labelled spans, with a grammar or without, on given scores.

All verbs are compiled (see brackets.h, bracketings.h); sums, samples and the best tree run in threads. The chart of
training (cky_inside.h) is for sparse grammars whose rules have weights; here each span has a score of each label. Where
probabilities would be lost to underflow, sums go over spans in NumPy, as samples with a grammar do.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from structsvm.arrays import Floats
from structsvm.layers._spans import Brackets, known_trees
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
    over_batch,
    possible,
    shares_of,
)
from structsvm.parameters import checked_k, checked_threads


class Spans(Summed):
    """Binary trees over the words of B sentences of up to n words, whose spans have one of K labels each.

    The parts are, in this order,

    - ``spans`` (B, n, n, K): of the span from word i to word j, both included, with label k; those with i > j do not
      matter;
    - ``rules`` (K, K, K) or (B, K, K, K), optional: of the labels of a span, and of the left and the right one that it
      consists of. -inf: no such rule. Without them the labels of a tree do not depend on one another.

    An output is an integer array (B, n, n), with the label of each span of the tree and -1 elsewhere: 2 n - 1 labels.
    In a truth known in part, -1 is unknown, so that some spans of a tree are given with their labels. The default cost
    of losses is 1 per wrong span.

    Parameters
    ----------
    n_threads : int, default=1
        The batch is split among them; results are bit-identical for every number.

    References
    ----------
    J. K. Baker, Trainable grammars for speech recognition, 1979.

    Examples
    --------
    >>> import numpy as np
    >>> from structsvm.layers import Spans
    >>> spans = np.zeros((1, 3, 3, 2))
    >>> spans[0, 1, 2, 1] = 2.0  # words 1 and 2, label 1
    >>> Spans().argmax(spans).tolist()
    [[[0, -1, 0], [-1, 0, 1], [-1, -1, 0]]]
    >>> np.exp(Spans().log_partition(np.zeros((1, 4, 4, 1)))).round().tolist()  # the number of trees
    [5.0]
    """

    part_names: ClassVar[tuple[str, ...]] = ("spans", "rules")

    def __init__(self, *, n_threads: int = 1) -> None:
        self.n_threads = checked_threads(n_threads)

    def check(self, parts: Sequence[object], lengths: ArrayLike | None) -> Scores:
        present, shapes = as_parts(Spans, parts, 1)
        spans = present["spans"]
        if spans.ndim != 4 or spans.shape[1] != spans.shape[2] or spans.shape[3] == 0:
            raise ValueError(f"spans must have shape (B, n, n, K), with K >= 1. Got {spans.shape}.")
        n, longest, _, K = spans.shape
        sizes = check_lengths(lengths, n, longest)
        check_values("spans", spans, lambda: _inside(longest, sizes), n_threads=self.n_threads)
        shared = [batched("rules", present["rules"], n, (K, K, K))] if "rules" in present else []
        return Scores((spans, *shared), shapes, sizes, self.n_threads)

    def check_output(self, y: ArrayLike, scores: Scores, *, partly: bool = False) -> Labels:
        found, (n, longest, _, K) = as_outputs(y), scores.parts[0].shape
        if found.shape != (n, longest, longest) or found.dtype.kind not in "iu":
            wanted = (n, longest, longest)
            raise ValueError(f"y must be an array of integers of shape {wanted}. Got {found.dtype} {found.shape}.")
        whole, (narrow, is_narrow) = np.empty(found.shape, np.int32), as_narrow(found)
        places = np.empty((n, 2 * longest), np.int32)
        if is_narrow and known_trees(narrow, scores.lengths, K, whole, places, self.n_threads):
            if len(scores.parts) == 1:
                scores.truth = places  # with rules there is no sum in one go
            return whole
        inside = _inside(longest, scores.lengths)
        bad = (found < -1) | (found >= K) | ((found >= 0) & np.tri(longest, k=-1, dtype=bool))
        bad &= inside | inside.transpose(0, 2, 1)
        if bad.any():
            entry, i, j = np.argwhere(bad)[0].tolist()
            raise ValueError(
                f"y must contain labels from 0 to {K - 1} at spans (i, j) with i <= j, and -1 elsewhere. Got "
                f"{found[entry, i, j]} at batch entry {entry}, span {(i, j)}."
            )
        labels: Labels = np.where(inside, found, -1).astype(np.int32)
        for entry, i, j in np.argwhere(_crossing(labels >= 0) & (labels >= 0))[:1].tolist():
            raise ValueError(f"y must be trees. Span {(i, j)} of batch entry {entry} crosses another one.")
        sizes, present = np.maximum(2 * scores.lengths - 1, 0), (labels >= 0).sum(axis=(1, 2))
        for entry in [] if partly else np.flatnonzero(present != sizes)[:1].tolist():
            raise ValueError(
                f"y must be binary trees, of {sizes[entry]} spans for the {scores.lengths[entry]} words of batch "
                f"entry {entry}. Got {present[entry]}; only log_loss takes trees that are known in part."
            )
        return labels

    def indicators(self, y: Labels, scores: Scores) -> Parts:
        counts = [np.zeros((len(y), *part.shape[1:]), part.dtype) for part in scores.parts]
        entries, first, last = np.nonzero(y >= 0)
        counts[0][entries, first, last, y[entries, first, last]] = 1
        if len(counts) > 1:
            wide = np.flatnonzero(first < last)  # the left part of a span stands just before it: the next shorter one
            entry, i, j, split = entries[wide], first[wide], last[wide], last[wide - 1]
            np.add.at(counts[1], (entry, y[entry, i, j], y[entry, i, split], y[entry, split + 1, j]), 1)
        return tuple(counts)

    def is_known(self, y: Labels, scores: Scores) -> bool:
        return bool(np.count_nonzero(y >= 0) == np.maximum(2 * scores.lengths - 1, 0).sum())

    def _batch(self, scores: Scores) -> Brackets:
        return _brackets(scores)

    def _log_sums(self, scores: Scores, entry: int) -> tuple[float, Values, Values]:
        return _log_sums(*_tables(scores, entry))

    def _expect(
        self, scores: Scores, log_z: Values, truth: Labels | None = None, known: Values | None = None
    ) -> tuple[Floats, ...]:
        spans, *shared = scores.parts
        parts, rules = np.empty_like(spans), np.zeros((len(log_z), *(shared[0].shape[1:] if shared else (1, 1, 1))))
        batch = self._batch(scores)
        wide = batch.sums(self.n_threads, log_z, parts, rules, None, truth, known)
        for entry in wide:
            log_z[entry], *found = self._log_sums(scores, entry)
            parts[entry], size = 0, len(found[0])
            parts[entry, :size, :size], rules[entry] = found
        batch.finish_wide(wide)
        possible(log_z)
        return (parts, rules.astype(spans.dtype)) if shared else (parts,)

    def best(self, scores: Scores) -> Labels:
        y, values = np.full(scores.parts[0].shape[:3], -1, np.int32), np.empty(len(scores.lengths))
        over_batch(len(y), self.n_threads, lambda first, last: _brackets(scores).best(first, last, values, y))
        possible(values)
        return y

    def restrict(self, scores: Scores, y: Labels) -> Scores:
        spans, needed = scores.parts[0].copy(), y >= 0
        may = ~needed[..., None] | (y[..., None] == np.arange(spans.shape[3]))
        may[_crossing(needed)] = False  # all other binary trees have the spans that are needed
        spans[~may] = -np.inf
        return replace(scores, parts=(spans, *scores.parts[1:]), truth=None)

    def kbest(self, *parts: object, k: int, lengths: ArrayLike | None = None) -> tuple[Labels, Values]:
        k, scores = checked_k(k), self.check(parts, lengths)
        n, longest = scores.parts[0].shape[:2]
        y, values = np.full((n, k, longest, longest), -1, np.int32), np.full((n, k), -np.inf)
        _brackets(scores).kbest(k, y, values)
        return y, values

    def max_marginals(self, *parts: object, lengths: ArrayLike | None = None) -> Values:
        scores = self.check(parts, lengths)
        best = np.full(scores.parts[0].shape, -np.inf)
        _brackets(scores).through(best)
        return best

    def samples(self, scores: Scores, n_samples: int, generators: Generators) -> Labels:
        n = scores.parts[0].shape[1]
        y, log_z = np.full((len(scores.lengths), n_samples, n, n), -1, np.int32), np.zeros(len(scores.lengths))

        def work(first: int, last: int) -> list[int]:
            if len(scores.parts) == 1:
                return _brackets(scores).draws(first, last, generators, log_z, y)
            return list(range(first, last))

        for several in over_batch(len(y), self.n_threads, work):
            for entry in several:
                log_z[entry] = _draw_in_logs(*_tables(scores, entry), generators[entry], y[entry])
        possible(log_z)
        return y


def _brackets(scores: Scores) -> Brackets:
    shared = tuple(np.ascontiguousarray(part, np.float64) for part in scores.parts[1:])
    return Brackets(scores.parts[0], shared, scores.lengths)


def _inside(n: int, sizes: NDArray[np.int64]) -> NDArray[np.bool_]:
    """True for spans (B, n, n) that end within the lengths."""
    words = np.arange(n)
    inside: NDArray[np.bool_] = (words[:, None] <= words) & (words < sizes[:, None, None])
    return inside


def _crossing(spans: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """True for spans (i, j) that cross one (a, b) of the given ones: a < i <= b < j or i < a <= j < b."""
    upper, reach = np.tri(spans.shape[1], dtype=bool).T, np.logical_or.accumulate
    before, after, left, right = (np.zeros_like(spans) for _ in range(4))
    before[:, 1:] = reach(spans, 1)[:, :-1]
    left[:, :, 1:] = reach(before & upper, 2)[:, :, :-1]
    after[:, :, :-1] = reach(spans[:, :, ::-1], 2)[:, :, -2::-1]
    right[:, :-1] = reach((after & upper)[:, ::-1], 1)[:, -2::-1]
    return left | right


def _tables(scores: Scores, entry: int) -> tuple[Values, Values | None]:
    """Scores of an entry's spans, 0 where there is none, and of rules."""
    spans, *shared = scores.parts
    size = int(scores.lengths[entry])
    rules = [part[entry if len(part) > 1 else 0].astype(np.float64) for part in shared]
    own = spans[entry, :size, :size].astype(np.float64)
    own[np.tri(size, k=-1, dtype=bool)] = 0
    return own, rules[0] if rules else None


class Chart:
    """A sentence's recursion in logs. Without rules, a span's labels are added up first."""

    def __init__(self, spans: Values, rules: Values | None) -> None:
        self.spans, self.n = spans, len(spans)
        self.scores = spans if rules is not None else np.logaddexp.reduce(spans, axis=2, keepdims=True)
        self.rules = np.zeros((1, 1, 1)) if rules is None else rules
        self.has_rules = rules is not None
        self.inside = np.full(self.scores.shape, -np.inf)  # over the trees of each span, by the root's label
        self.cut: dict[tuple[int, ...], Values] = {}  # cumulative weights that `choose` has used
        for i, j in self.spans_by_width():
            self.inside[i, j] = self.scores[i, j]
            if i < j:
                both = np.logaddexp.reduce(self.pairs(i, j), axis=0) + self.rules
                self.inside[i, j] += np.logaddexp.reduce(both, axis=(1, 2))

    def spans_by_width(self) -> list[tuple[int, int]]:
        return [(i, i + width) for width in range(self.n) for i in range(self.n - width)]

    def pairs(self, i: int, j: int) -> Values:
        """Scores of what stands below a span, by where it is cut and by the labels of both parts."""
        both: Values = self.inside[i, i:j, :, None] + self.inside[i + 1 : j + 1, j, None]
        return both

    def shares(self) -> tuple[Values, Values]:
        """Probabilities of what `scores` has, and expected rules: shares of what a log sums, which are never over 1."""
        spans, rules = np.zeros(self.scores.shape), np.zeros(self.rules.shape)
        root = self.inside[:1, -1:]
        spans[:1, -1:] = shares_of(root, -1)
        for i, j in reversed(self.spans_by_width()):
            if i < j and spans[i, j].any():
                pairs = self.pairs(i, j)
                both = np.logaddexp.reduce(pairs, axis=0)
                own = shares_of(both + self.rules, (1, 2)) * spans[i, j, :, None, None]
                cut = shares_of(pairs, 0) * own.sum(axis=0)
                spans[i, i:j] += cut.sum(axis=2)
                spans[i + 1 : j + 1, j] += cut.sum(axis=1)
                rules += own
        return spans, rules

    def draw(self, random: np.random.Generator) -> Iterator[tuple[int, int, int]]:
        """The spans of a tree with their labels, drawn from the top down."""
        todo = [(0, self.n - 1, self.choose(random))]
        while todo:
            i, j, a = todo.pop()
            yield i, j, a if self.has_rules else self.choose(random, i, j)
            if i < j:
                place = self.choose(random, i, j, a)
                cut, b, c = np.unravel_index(place, (j - i, *self.rules.shape[1:]))
                todo += [(i + int(cut) + 1, j, int(c)), (i, i + int(cut), int(b))]

    def choose(self, random: np.random.Generator, *key: int) -> int:
        """The root's label, that of a span without rules, or where a span with a label is cut and the labels below."""
        if key not in self.cut:
            if len(key) == 3:
                logs = (self.pairs(*key[:2]) + self.rules[key[2]]).ravel()
            else:
                logs = self.spans[key] if key else self.inside[0, -1]
            self.cut[key] = np.cumsum(np.exp(logs - logs.max()))
        sums = self.cut[key]
        return int(np.searchsorted(sums, random.random() * sums[-1], side="right"))


def _draw_in_logs(spans: Values, rules: Values | None, random: np.random.Generator, y: Labels) -> float:
    """Write samples (n_samples, n, n) of a sentence; returns its log partition."""
    if not len(spans):
        return 0.0
    chart = Chart(spans, rules)
    log_z = float(np.logaddexp.reduce(chart.inside[0, -1]))
    for sample in y if log_z > -np.inf else ():
        for i, j, label in chart.draw(random):
            sample[i, j] = label
    return log_z


def _log_sums(spans: Values, rules: Values | None) -> tuple[float, Values, Values]:
    """Log partition of a sentence, and expected spans and rules."""
    chart = Chart(spans, rules)
    log_z = float(np.logaddexp.reduce(chart.inside[0, -1]))
    if np.isneginf(log_z):
        return log_z, np.zeros(spans.shape), np.zeros(chart.rules.shape)
    own, used = chart.shares()
    return log_z, own if chart.has_rules else own * shares_of(spans, 2), used
