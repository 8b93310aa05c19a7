"""Alignments of two strings on scores of pairs and of gaps: one recursion over anti-diagonals, for a batch at once.

With x_1 .. x_n and z_1 .. z_m, the states of a cell (i, j) are named by what leads there, as in align.h: P (x_i with
z_j), X (x_i in a gap) and Z (z_j in a gap). Between two pairs x's letters come first, so that each alignment is counted
once:

    P(i, j) = pairs(i, j) + sum of (lead(i, j), P, X, Z at (i - 1, j - 1))
    X(i, j) = sum of (P(i - 1, j) + open_x(i), X(i - 1, j) + extend_x(i))
    Z(i, j) = sum of (P(i, j - 1) + open_z(j), X(i, j - 1) + open_z(j), Z(i, j - 1) + extend_z(j))

where the sum is of logs, or a maximum. What stands before the first pair and behind the last one has a closed form
(`_Ends`). The way back distributes a flow of 1 over the terms of each sum: by their shares it yields marginals, by the
greatest the best alignment, by a draw a sample. Cells of a diagonal d = i + j do not depend on one another; arrays of
cells have the axes (d, entry, i).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from structsvm.arrays import Floats
from structsvm.layers.places import Places
from structsvm.layers.structure import (
    Generators,
    Labels,
    NoOutput,
    Parts,
    Scores,
    Values,
    as_floats,
    as_outputs,
    as_parts,
    check_two_lengths,
    check_values,
)
from structsvm.oracles.enumeration.labellings import Allowed

Reduce = Callable[[Values], Values]  # over the first axis
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

    def __init__(self, mode: str = "global") -> None:
        if mode not in MODES:
            raise ValueError(f"mode must be one of {', '.join(MODES)}. Got {mode!r}.")
        self.mode = mode

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
        inside = [np.arange(pairs.shape[k + 1]) < sizes[:, k, None] for k in (0, 1)]
        check_values("pairs", pairs, lambda: inside[0][:, :, None] & inside[1][:, None])
        checked = [pairs]
        for name in self.part_names[1:]:
            side = int(name.endswith("z"))
            wanted = (), pairs.shape[side + 1 : side + 2], (n, pairs.shape[side + 1])
            part = present.get(name, np.zeros((), pairs.dtype))
            if part.shape not in wanted:
                raise ValueError(f"{name} must be a number or have shape {wanted[1]} or {wanted[2]}. Got {part.shape}.")
            counts = partial(inside.__getitem__, side) if part.ndim == 2 else None
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
        n, _, m = scores.parts[0].shape
        pairs = y[:, :, None] == np.arange(m)
        in_gap, outside = y == m, y == m + 1
        paired = pairs.any(axis=1)
        ahead, behind = np.cumsum(paired, axis=1) > 0, np.cumsum(paired[:, ::-1], axis=1)[:, ::-1] > 0
        has_pairs = paired.any(axis=1, keepdims=True)
        pays = np.full((n, 2), self.mode == "global")
        if self.mode == "semi-global" and y.shape[1]:
            last = np.maximum(scores.lengths[:, 0] - 1, 0)
            pays = np.stack([outside[:, 0], outside[np.arange(n), last]], axis=1) & has_pairs
        free = np.where(has_pairs, (~ahead & ~pays[:, :1]) | (~behind & ~pays[:, 1:]), ~pays[:, :1])
        z_in_gap = ~paired & ~free & (np.arange(m) < scores.lengths[:, 1:])
        letters = [*_opened(in_gap), *_opened(z_in_gap), in_gap, outside]
        return _folded([pairs, *letters], scores)

    def costs(self, right: Floats) -> Floats:
        return 1 - 2 * right

    def sums(self, scores: Scores, *, marginals: bool = True) -> tuple[Values, Parts]:
        cells = _Cells(scores, self.mode)
        cells.fill(np.logaddexp.reduce)
        if not marginals:
            return cells.total, ()
        for entry in np.flatnonzero(np.isneginf(cells.total))[:1].tolist():
            raise NoOutput(entry)
        return cells.total, _folded(cells.flows(_shares), scores)

    def samples(self, scores: Scores, n_samples: int, generators: Generators) -> Labels:
        outputs = np.full((len(scores.lengths), n_samples, scores.parts[0].shape[1]), -1, np.int32)
        for entry in range(len(outputs)):
            draw = generators[entry]
            cells = _Cells(scores.take([entry]), self.mode)
            cells.fill(np.logaddexp.reduce)
            if np.isneginf(cells.total[0]):
                raise NoOutput(entry)
            several = scores.take([entry] * n_samples)
            outputs[entry] = _outputs(cells.flows(partial(_drawn, n_samples=n_samples, draw=draw)), several)
        return outputs

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
        return replace(scores, parts=(masked[0], *others[1:], *masked[1:]))

    def find(self, scores: Scores) -> tuple[Labels, Values]:
        cells = _Cells(scores, self.mode)
        cells.fill(_most)
        return _outputs(cells.flows(_best), scores), cells.total

    def value_counts(self, scores: Scores, counts: Parts) -> Values:
        pairs, *_, in_gap, outside = counts
        return np.concatenate([pairs, in_gap[..., None], outside[..., None]], axis=-1).astype(np.float64)

    def first_part(self, table: Values, scores: Scores) -> Values:
        return table[..., :-2]


# ---- sums, and shares of their terms -----------------------------------------------------------------


def _most(terms: Values) -> Values:
    return cast(Values, terms.max(axis=0))


def _shares(terms: Values) -> Values:
    """Return the share of each term in a log-sum, 0 where all terms are -inf."""
    top = terms.max(axis=0)
    found = np.exp(terms - np.where(np.isneginf(top), 0.0, top))
    return cast(Values, found / np.maximum(found.sum(axis=0), 1e-300))


def _best(terms: Values) -> Values:
    """Return 1 for the first of the greatest terms, 0 for the others."""
    return _whole(terms, terms.argmax(axis=0))


def _drawn(terms: Values, n_samples: int, draw: np.random.Generator) -> Values:
    """Return 1 for a term that is drawn by its share, for each of the samples of one entry."""
    sums = np.cumsum(_shares(terms), axis=0)
    uniforms = draw.random((n_samples, *terms.shape[2:]))
    return _whole(terms, (sums <= uniforms * sums[-1]).sum(axis=0))


def _whole(terms: Values, chosen: NDArray[np.int64]) -> Values:
    return (chosen == np.arange(len(terms)).reshape(-1, *[1] * (terms.ndim - 1))).astype(np.float64)


# ---- the ends, and the cells ----------------------------------------------------------------------------


@dataclass(frozen=True)
class _String:
    """Scores of a string's letters (B, n), 0 beyond the lengths."""

    opens: Values
    extends: Values
    outside: Values
    lengths: NDArray[np.int64]

    def lead(self, *, pays: bool) -> Values:
        """Scores (B, n + 1) of the first letters, by their number: a gap, or outside."""
        letters = np.concatenate([self.opens[:, :1], self.extends[:, 1:]], axis=1) if pays else self.outside
        return np.concatenate([np.zeros((len(letters), 1)), np.cumsum(letters, axis=1)], axis=1)

    def trail(self, *, pays: bool) -> Values:
        """Scores (B, n + 1) of the letters from the one of this number on."""
        more = self.extends if pays else self.outside
        sums = np.concatenate([np.cumsum(more[:, ::-1], axis=1)[:, ::-1], np.zeros((len(more), 1))], axis=1)
        if pays:
            sums[:, :-1] = self.opens + sums[:, 1:]
        return sums

    def counts(self, lead: Values, trail: Values, *, pays: bool) -> list[Values]:
        """How often letters open, extend and are outside, by weights (B, n + 1) of `lead` and `trail`."""
        after = np.cumsum(lead[:, ::-1], axis=1)[:, ::-1][:, 1:]
        before, here = np.cumsum(trail, axis=1)[:, :-1], trail[:, :-1].copy()
        inside = np.arange(self.opens.shape[1]) < self.lengths[:, None]
        if not pays:
            return [np.zeros_like(after), np.zeros_like(after), (after + before) * inside]
        here[:, :1] += after[:, :1]
        return [here * inside, (after + before - here) * inside, np.zeros_like(after)]


class _Cells:
    """The cells of a batch, their sums, and the flow back through them."""

    def __init__(self, scores: Scores, mode: str) -> None:
        pairs, open_x, extend_x, open_z, extend_z, in_gap, outside = (part.astype(np.float64) for part in scores.parts)
        n, rows, columns = pairs.shape
        inside = [np.arange(size) < scores.lengths[:, k, None] for k, size in enumerate((rows, columns))]
        wide = [np.where(inside[0], part, 0.0) for part in (open_x + in_gap, extend_x + in_gap, outside)]
        self.x = _String(wide[0], wide[1], wide[2], scores.lengths[:, 0])
        z = [np.where(inside[1], part, 0.0) for part in (open_z, extend_z)]
        self.z = _String(z[0], z[1], np.zeros((n, columns)), scores.lengths[:, 1])
        self.ways = WAYS[mode]
        self.i, self.j = np.indices((rows + 1, columns + 1))
        self.pairs = self._skewed(_framed(np.where(inside[0][:, :, None] & inside[1][:, None], pairs, -np.inf)))
        letters = [np.repeat(np.pad(part, ((0, 0), (1, 0)))[:, None], rows + 1, axis=1) for part in z]
        self.open_z, self.extend_z = (self._skewed(part) for part in letters)
        self.leads, self.trails = self._ends()
        self.alone = self._alone()

    def _ends(self) -> tuple[Values, Values]:
        """Scores of what stands before a cell's pair, if it is the first, and behind it, if it is the last, by way."""
        x, z = self.x.lengths[:, None, None], self.z.lengths[:, None, None]
        left, right = (self.i > 1) & (self.j > 1), (self.i < x) & (self.j < z)
        leads, trails = [], []
        for pays_x, pays_z in self.ways:
            lead = self.x.lead(pays=pays_x)[:, :-1, None] + self.z.lead(pays=pays_z)[:, None, :-1]
            trail = self.x.trail(pays=pays_x)[:, :, None] + self.z.trail(pays=pays_z)[:, None]
            lead, is_there = _framed(lead), np.ones((2, *trail.shape), bool)
            if len(self.ways) > 1:
                is_there = np.stack([np.broadcast_to(left, trail.shape), right]) == (pays_x or pays_z)
            leads.append(self._skewed(np.where(is_there[0], lead, -np.inf)))
            trails.append(self._skewed(np.where(is_there[1], trail, -np.inf)))
        return np.stack(leads), np.stack(trails)

    def _alone(self) -> Values:
        """The score of the alignment without pairs: all letters pay, or all are outside."""
        entries, (pays_x, pays_z) = np.arange(len(self.x.lengths)), self.ways[0]
        whole_x, whole_z = self.x.lead(pays=pays_x), self.z.lead(pays=pays_z)
        return whole_x[entries, self.x.lengths] + whole_z[entries, self.z.lengths]

    def _skewed(self, table: Values) -> Values:
        found = np.full((sum(table.shape[1:]) - 1, len(table), table.shape[1]), -np.inf)
        found[self.i + self.j, :, self.i] = table.transpose(1, 2, 0)
        return found

    def _straight(self, cells: Values) -> Values:
        return cells[self.i + self.j, :, self.i].transpose(2, 0, 1)

    # The terms of the sums of a diagonal's cells.

    def _pair_terms(self, d: int) -> Values:
        return np.stack([*self.leads[:, d, :, 1:], *(cells[d - 2, :, :-1] for cells in self.states)])

    def _x_terms(self, d: int) -> Values:
        P, X, _ = self.states
        return np.stack([P[d - 1, :, :-1] + self.x.opens, X[d - 1, :, :-1] + self.x.extends])

    def _z_terms(self, d: int) -> Values:
        P, X, Z = self.states
        return np.stack([P[d - 1] + self.open_z[d], X[d - 1] + self.open_z[d], Z[d - 1] + self.extend_z[d]])

    def _last_terms(self) -> Values:
        """Alignments by their last pair, and by way; the one without pairs at the end."""
        ends = (self.states[0] + self.trails).transpose(0, 1, 3, 2)
        n_ways, diagonals, width, n = ends.shape
        return np.concatenate([ends.reshape(n_ways * diagonals * width, n), self.alone[None]])

    def fill(self, reduce: Reduce) -> None:
        """Compute the sums of all cells, and their `total` (B,)."""
        self.states = np.full((3, *self.pairs.shape), -np.inf)
        P, X, Z = self.states
        for d in range(2, len(P)):
            P[d, :, 1:] = self.pairs[d, :, 1:] + reduce(self._pair_terms(d))
            X[d, :, 1:] = reduce(self._x_terms(d))
            Z[d] = reduce(self._z_terms(d))
        self.total = reduce(self._last_terms())

    def flows(self, shares: Reduce) -> list[Values]:
        """Distribute 1 over the alignments: weights of pairs and of letters, in the order of the parts."""
        n_ways, last = len(self.ways), shares(self._last_terms())
        n = last.shape[1]
        diagonals, _, width = self.pairs.shape
        trails = last[:-1].reshape(n_ways, diagonals, width, n).transpose(0, 1, 3, 2)
        flow, leads = np.zeros((3, diagonals, n, width)), np.zeros((n_ways, diagonals, n, width))
        opens, extends = np.zeros((diagonals, n, width)), np.zeros((diagonals, n, width))
        of_x = np.zeros((2, n, width - 1))
        flow[0] = trails.sum(axis=0)
        for d in range(diagonals - 1, 1, -1):
            parts = flow[0, d, :, 1:] * shares(self._pair_terms(d))
            leads[:, d, :, 1:] = parts[:n_ways]
            flow[:, d - 2, :, :-1] += parts[n_ways:]
            parts = flow[1, d, :, 1:] * shares(self._x_terms(d))
            flow[:2, d - 1, :, :-1] += parts
            of_x += parts
            parts = flow[2, d] * shares(self._z_terms(d))
            flow[:, d - 1] += parts
            opens[d], extends[d] = parts[:2].sum(axis=0), parts[2]
        of_z = np.stack([self._straight(part).sum(axis=1)[:, 1:] for part in (opens, extends)])
        return [self._straight(flow[0])[:, 1:, 1:], *self._letters(of_x, of_z, leads, trails, last[-1])]

    def _letters(self, of_x: Values, of_z: Values, leads: Values, trails: Values, alone: Values) -> list[Values]:
        """Add what letters beyond the outer pairs pay to what those between pairs do."""
        x, z = [*of_x, np.zeros_like(of_x[0])], [*of_z, np.zeros_like(of_z[0])]
        for k, (pays_x, pays_z) in enumerate(self.ways):
            lead, trail = self._straight(leads[k]), self._straight(trails[k])
            for string, pays, axis, found in ((self.x, pays_x, 2, x), (self.z, pays_z, 1, z)):
                before = np.roll(lead.sum(axis=axis), -1, axis=1)
                if k == 0:
                    lengths = np.broadcast_to(string.lengths, len(before))
                    before[np.arange(len(before)), lengths] += alone
                for number, more in enumerate(string.counts(before, trail.sum(axis=axis), pays=pays)):
                    found[number] = found[number] + more
        return [x[0], x[1], z[0], z[1], x[0] + x[1], x[2]]


def _framed(table: Values) -> Values:
    """A table with a first row and a first column of -inf, for the cells without a letter."""
    return np.pad(table, ((0, 0), (1, 0), (1, 0)), constant_values=-np.inf)


def _opened(in_gap: Bools) -> tuple[Bools, Bools]:
    """Return which letters open a gap, and which extend one."""
    extends = in_gap.copy()
    extends[:, :1] = False
    extends[:, 1:] &= in_gap[:, :-1]
    return in_gap & ~extends, extends


def _folded(counts: Sequence[Values | Bools], scores: Scores) -> Parts:
    """Counts in the type of the parts, of all letters together where they share a score."""
    folded = []
    for count, part in zip(counts, scores.parts, strict=True):
        shared = part.ndim == 2 and part.shape[1] == 1
        folded.append((count.sum(axis=1, keepdims=True) if shared else count).astype(part.dtype))
    return tuple(folded)


def _outputs(counts: list[Values], scores: Scores) -> Labels:
    """Outputs from their counts, which are 0 or 1."""
    pairs, *_, in_gap, _ = counts
    m = pairs.shape[2]
    alone = np.where(in_gap > 0.5, m, m + 1)
    partners = pairs.argmax(axis=2) if m else alone
    y = np.where(pairs.sum(axis=2) > 0.5, partners, alone)
    return np.where(np.arange(y.shape[1]) < scores.lengths[:, :1], y, -1).astype(np.int32)
