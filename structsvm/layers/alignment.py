"""Alignments of two strings on scores of pairs and of gaps, by the compiled recursions of alignments.h.

With x_1 .. x_n and z_1 .. z_m, the states of a cell (i, j) are named by what leads there, as in align.h: P (x_i with
z_j), X (x_i in a gap) and Z (z_j in a gap). Between two pairs x's letters come first, so that each alignment is counted
once:

    P(i, j) = pairs(i, j) + sum of (lead(i, j), P, X, Z at (i - 1, j - 1))
    X(i, j) = sum of (P(i - 1, j) + open_x(i), X(i - 1, j) + extend_x(i))
    Z(i, j) = sum of (P(i, j - 1) + open_z(j), X(i, j - 1) + open_z(j), Z(i, j - 1) + extend_z(j))

where the sum is of logs, or a maximum. What stands before the first pair and behind the last one has a closed form
(`enter_ends`). The way back distributes a flow of 1 over the terms of each sum: by their shares it yields marginals, by
the greatest the best alignment, by a draw a sample.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from structsvm.arrays import Floats, Integers
from structsvm.layers._alignment import Batch, known_alignments
from structsvm.layers.places import Places
from structsvm.layers.structure import (
    Generators,
    Labels,
    NoOutput,
    Parts,
    Scores,
    Values,
    as_floats,
    as_narrow,
    as_outputs,
    as_parts,
    check_two_lengths,
    check_values,
    over_batch,
    possible,
    possible_truths,
    zeros_like,
)
from structsvm.oracles.enumeration.labellings import Allowed
from structsvm.parameters import checked_threads

Bools = NDArray[np.bool_]
MODES = ("global", "semi-global", "local")
# Whether letters of x, and of z, beyond the outer pairs pay as a gap; more than one where the letters of one string do.
WAYS = {
    "global": ((True, True),),
    "semi-global": ((False, False), (True, False), (False, True)),
    "local": ((False, False),),
}


class Alignment(Places):
    """Alignments of two strings of n and m letters, with affine gaps.

    The parts are, in this order,

    - ``pairs`` (B, n, m): a letter of the first string, x, with one of the second, z;
    - ``open_x``, ``extend_x``: a letter of x that opens a gap (it stands against none of z), and a further one of it; a
      number, (n,) or (B, n);
    - ``open_z``, ``extend_z``: the same of z; a number, (m,) or (B, m). All four are 0 by default.

    An output is an integer array (B, n), per letter of x: its partner, 0 .. m - 1; m, in a gap; m + 1, outside of the
    alignment; -1 beyond the length. ``lengths`` is an array (B, 2) of letters of x and of z. The default cost of losses
    counts the pairs of only one of the alignments.

    Parameters
    ----------
    mode : {"global", "semi-global", "local"}, default="global"
        "global": all letters without a partner pay as gaps. "local": those before the first pair and behind the last
        one are outside, and pay nothing. "semi-global": at either end the letters of one string are outside, the
        other's pay; where one has none there, the other's are outside. Without any pair, no letter pays (globally, all
        do).
    n_threads : int, default=1
        The batch is split among them; results are bit-identical for every number.

    References
    ----------
    O. Gotoh, An improved algorithm for matching biological sequences, Journal of Molecular Biology 162, 1982.

    Examples
    --------
    >>> import numpy as np
    >>> from structsvm.layers import Alignment
    >>> pairs = np.where(np.array(list("abc"))[:, None] == np.array(list("ac")), 2.0, -1.0)[None]
    >>> Alignment().argmax(pairs, -1.0, -0.5, -1.0, -0.5).tolist()
    [[0, 2, 1]]
    >>> Alignment("local").argmax(pairs, -3.0, -0.5, -3.0, -0.5).tolist()
    [[0, 3, 3]]
    >>> np.exp(Alignment().log_partition(np.zeros((1, 3, 2)))).round().tolist()  # the number of alignments
    [10.0]
    """

    part_names: ClassVar[tuple[str, ...]] = ("pairs", "open_x", "extend_x", "open_z", "extend_z")

    def __init__(self, mode: str = "global", *, n_threads: int = 1) -> None:
        if mode not in MODES:
            raise ValueError(f"mode must be one of {', '.join(MODES)}. Got {mode!r}.")
        self.mode, self.n_threads = mode, checked_threads(n_threads)

    def check(self, parts: Sequence[object], lengths: ArrayLike | None) -> Scores:
        given = list(parts)
        if given and given[0] is not None:
            scored = as_floats("pairs", given[0])
            given = [scored, *given[1:]]
            given = [np.asarray(part, scored.dtype) if isinstance(part, (int, float)) else part for part in given]
        present, shapes = as_parts(Alignment, given, 1)
        pairs = present["pairs"]
        if pairs.ndim != 3:
            raise ValueError(f"pairs must have shape (B, n, m). Got {pairs.shape}.")
        n = len(pairs)
        sizes = check_two_lengths(lengths, n, pairs.shape[1:], "letters of x and of z")

        def inside(side: int) -> Bools:
            found: Bools = np.arange(pairs.shape[side + 1]) < sizes[:, side, None]
            return found

        check_values("pairs", pairs, lambda: inside(0)[:, :, None] & inside(1)[:, None], n_threads=self.n_threads)
        checked = [pairs]
        for name in self.part_names[1:]:
            side = int(name.endswith("z"))
            wanted = (), pairs.shape[side + 1 : side + 2], (n, pairs.shape[side + 1])
            part = present.get(name, np.zeros((), pairs.dtype))
            if part.shape not in wanted:
                raise ValueError(f"{name} must be a number or have shape {wanted[1]} or {wanted[2]}. Got {part.shape}.")
            counts = partial(inside, side) if part.ndim == 2 else None
            check_values(name, part, counts, is_batch=part.ndim == 2)
            checked.append(part.reshape(part.shape if part.ndim == 2 else (1, part.size)))
        hidden = [np.zeros((1, pairs.shape[1]), pairs.dtype)] * 2  # scores of letters of x in a gap, and outside
        return Scores((*checked, *hidden), shapes, sizes)

    def check_output(self, y: ArrayLike, scores: Scores, *, partly: bool = False) -> Labels:
        found, (n, longest, m) = as_outputs(y), scores.parts[0].shape
        if found.shape != (n, longest) or found.dtype.kind not in "iu":
            raise ValueError(
                f"y must be an array of integers of shape {(n, longest)}. Got {found.dtype} {found.shape}."
            )
        whole, (narrow, is_narrow) = np.empty((n, longest), np.int32), as_narrow(found)
        outer = self.mode != "local", self.mode != "global"
        if is_narrow and known_alignments(narrow, scores.lengths, m, *outer, whole):
            scores.truth = whole
            return whole
        inside = np.arange(longest) < scores.lengths[:, :1]
        good = (found >= 0) & (found < scores.lengths[:, 1:]) | (found >= m) & (found <= m + 1)
        bad = inside & ~(good | (partly & (found == -1)))
        if bad.any():
            entry, letter = np.argwhere(bad)[0].tolist()
            unknown = ", -1 for an unknown one" if partly else ""
            raise ValueError(
                f"y must contain partners from 0 to {scores.lengths[entry, 1] - 1}, {m} for a letter in a gap, {m + 1} "
                f"for one outside of the alignment{unknown}. Got {found[entry, letter]} at batch entry {entry}, letter "
                f"{letter}."
            )
        partners: Labels = np.where(inside, found, -1).astype(np.int32)
        if not partly:
            for entry, (size, width) in enumerate(scores.lengths.tolist()):
                self._check_alignment(partners[entry, :size], width, m, entry)
        return partners

    def _check_alignment(self, row: Labels, width: int, m: int, entry: int) -> None:
        """Refuse partners that are no alignment of the mode, as no loss would be true for them."""
        paired = np.flatnonzero(row < m)
        partners = row[paired]
        fault = "" if (np.diff(partners) > 0).all() else "partners that do not ascend"
        if len(paired):
            first, last = paired[0], paired[-1]
            ends = [(row[:first], partners[0] == 0), (row[last + 1 :], partners[-1] == width - 1)]
            inner = row[first:last]
            if (inner > m).any():
                fault = fault or f"a letter between two pairs that is outside ({m + 1}), not in a gap ({m})"
        else:
            ends = [(row, True)]
        for end, is_free in ends:
            allowed = {"global": [m], "local": [m + 1], "semi-global": [m + 1] if is_free else [m, m + 1]}[self.mode]
            if not np.isin(end, allowed).all() or len(set(end.tolist())) > 1:
                names = " or all ".join(f"{value} ({'outside' if value > m else 'in a gap'})" for value in allowed)
                fault = fault or f"letters beyond the outer pairs that are not all {names}"
        if fault:
            raise ValueError(f"y must be {self.mode} alignments. Batch entry {entry} has {fault}.")

    def indicators(self, y: Labels, scores: Scores) -> Parts:
        entries, letters, partners = self._paired(y, scores)
        pairs = np.zeros(scores.parts[0].shape, bool)
        pairs[entries, letters, partners] = True
        return _folded([pairs, *self._letters(y, scores, entries, partners)], scores.parts)

    def _paired(self, y: Labels, scores: Scores) -> tuple[Integers, Integers, Integers]:
        """Entries, letters of x and letters of z of the pairs."""
        entries, letters = np.nonzero((y >= 0) & (y < scores.parts[0].shape[2]))
        return entries, letters, y[entries, letters]

    def _letters(self, y: Labels, scores: Scores, entries: Integers, partners: Integers) -> list[Bools]:
        """Masks of letters that open and extend gaps, of x and of z, and of those of x in a gap, and outside."""
        n, _, m = scores.parts[0].shape
        paired = np.zeros((n, m), bool)
        paired[entries, partners] = True
        in_gap, outside = y == m, y == m + 1
        ahead, behind = np.cumsum(paired, axis=1) > 0, np.cumsum(paired[:, ::-1], axis=1)[:, ::-1] > 0
        has_pairs = paired.any(axis=1, keepdims=True)
        pays = np.full((n, 2), self.mode == "global")
        if self.mode == "semi-global" and y.shape[1]:
            last = np.maximum(scores.lengths[:, 0] - 1, 0)
            pays = np.stack([outside[:, 0], outside[np.arange(n), last]], axis=1) & has_pairs
        free = np.where(has_pairs, (~ahead & ~pays[:, :1]) | (~behind & ~pays[:, 1:]), ~pays[:, :1])
        z_in_gap = ~paired & ~free & (np.arange(m) < scores.lengths[:, 1:])
        return [*_opened(in_gap), *_opened(z_in_gap), in_gap, outside]

    def costs(self, right: Floats) -> Floats:
        return 1 - 2 * right

    def sums(self, scores: Scores, *, marginals: bool = True) -> tuple[Values, Parts]:
        totals, counts = np.empty(len(scores.lengths)), zeros_like(scores) if marginals else []
        self._batch(scores).sums(self.n_threads, totals, counts if marginals else None)
        return possible(totals) if marginals else totals, tuple(counts)

    def sums_less_known(self, scores: Scores, y: Labels) -> tuple[Values, Values, Parts]:
        """In one go for each entry, where all of y is known."""
        if scores.truth is None:
            return super().sums_less_known(scores, y)
        totals, known, counts = np.empty(len(y)), np.empty(len(y)), zeros_like(scores)
        self._batch(scores).sums(self.n_threads, totals, counts, scores.truth, known)
        return possible(totals), possible_truths(known), tuple(counts)

    def samples(self, scores: Scores, n_samples: int, generators: Generators) -> Labels:
        n, batch = len(scores.lengths), self._batch(scores)
        y = np.full((n, n_samples, scores.parts[0].shape[1]), -1, np.int32)
        for entry in over_batch(n, self.n_threads, lambda first, last: batch.draws(first, last, generators, y)):
            if entry >= 0:
                raise NoOutput(entry)
        return y

    def _batch(self, scores: Scores) -> Batch:
        pairs, *others = scores.parts
        return Batch(pairs, tuple(others), WAYS[self.mode], scores.lengths)

    # ---- places: the letters of x, whose values are partners, a gap, outside ----------------------------

    def sizes(self, scores: Scores) -> NDArray[np.int64]:
        return scores.lengths[:, 0]

    def shape(self, scores: Scores) -> tuple[int, int]:
        return scores.parts[0].shape[1], scores.parts[0].shape[2] + 2

    def limit(self, scores: Scores, allowed: Allowed) -> Scores:
        *others, in_gap, outside = scores.parts
        low = in_gap.dtype.type(-np.inf)
        masked = [
            np.where(allowed[..., where], part, low)
            for part, where in ((others[0], slice(-2)), (in_gap, -2), (outside, -1))
        ]
        return replace(scores, parts=(masked[0], *others[1:], *masked[1:]), truth=None)

    def find(self, scores: Scores) -> tuple[Labels, Values]:
        values, batch = np.empty(len(scores.lengths)), self._batch(scores)
        y = np.full(scores.parts[0].shape[:2], -1, np.int32)
        over_batch(len(values), self.n_threads, lambda first, last: batch.best(first, last, values, y))
        return y, values

    def value_counts(self, scores: Scores, counts: Parts) -> Values:
        pairs, *_, in_gap, outside = counts
        return np.concatenate([pairs, in_gap[..., None], outside[..., None]], axis=-1).astype(np.float64)

    def first_part(self, table: Values, scores: Scores) -> Values:
        return table[..., :-2]


def _opened(in_gap: Bools) -> tuple[Bools, Bools]:
    """Return which letters open a gap, and which extend one."""
    extends = in_gap.copy()
    extends[:, :1] = False
    extends[:, 1:] &= in_gap[:, :-1]
    return in_gap & ~extends, extends


def _folded(counts: Sequence[Values | Bools], parts: Parts) -> Parts:
    """Counts in the type of the parts, of all letters together where they share a score."""
    folded = []
    for count, part in zip(counts, parts, strict=True):
        shared = part.ndim == 2 and part.shape[1] == 1
        folded.append((count.sum(axis=1, keepdims=True) if shared else count).astype(part.dtype))
    return tuple(folded)
