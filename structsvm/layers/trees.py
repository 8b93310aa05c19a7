"""Dependency trees on scores of arcs: Eisner's chart and Kirchhoff's theorem (see eisner.h, arborescence.h).

The kernels' trees have one word below the root. Where there may be several, these stand below a word that is added
before the first, the only one below the root.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from structsvm.arrays import Floats
from structsvm.layers.places import Places
from structsvm.layers.structure import (
    Labels,
    NoOutput,
    Parts,
    Scores,
    Values,
    as_parts,
    check_lengths,
    check_threads,
    check_values,
    over_batch,
)
from structsvm.oracles.dependency._dependency import TreeFinder
from structsvm.oracles.enumeration.labellings import Allowed


class _Trees(Places):
    """Trees over the words of B sentences of up to n words, with scores of arcs.

    The part is ``arcs`` (B, n + 1, n + 1), from the head (row; 0 is the root) to the dependent (column); column 0 and
    the diagonal do not matter. An output is an integer array (B, n) of the heads of words 1 .. n, with -1 beyond the
    lengths.
    """

    part_names: ClassVar[tuple[str, ...]] = ("arcs",)
    projective: ClassVar[bool]

    def __init__(self, *, several_roots: bool = False, n_threads: int = 1) -> None:
        self.several_roots, self.n_threads = several_roots, check_threads(n_threads)

    def check(self, parts: Sequence[object], lengths: ArrayLike | None) -> Scores:
        present, shapes = as_parts(type(self), parts, 1)
        arcs = present["arcs"]
        if arcs.ndim != 3 or arcs.shape[1] != arcs.shape[2] or arcs.shape[1] < 1:
            raise ValueError(f"arcs must have shape (B, n + 1, n + 1). Got {arcs.shape}.")
        sizes, words = check_lengths(lengths, len(arcs), arcs.shape[1] - 1), np.arange(arcs.shape[1])
        inside = words <= sizes[:, None]
        check_values("arcs", arcs, inside[:, :, None] & inside[:, None] & (words > 0) & (words[:, None] != words))
        return Scores((arcs,), shapes, sizes)

    def check_output(self, y: ArrayLike, scores: Scores, *, partly: bool = False) -> Labels:
        found, wanted = np.asarray(y), (len(scores.lengths), scores.parts[0].shape[1] - 1)
        if found.shape != wanted or found.dtype.kind not in "iu":
            raise ValueError(f"y must be an array of integers of shape {wanted}. Got {found.dtype} {found.shape}.")
        inside = np.arange(wanted[1]) < scores.lengths[:, None]
        bad = inside & ((found < (-1 if partly else 0)) | (found > scores.lengths[:, None]))
        if bad.any():
            entry, word = np.argwhere(bad)[0].tolist()
            unknown = ", or -1 for an unknown one" if partly else ""
            raise ValueError(
                f"y must contain heads from 0 (the root) to {scores.lengths[entry]}{unknown}. Got {found[entry, word]} "
                f"at batch entry {entry}, word {word + 1}."
            )
        heads: Labels = np.where(inside, found, -1).astype(np.int32)
        if not partly:
            for entry, size in enumerate(scores.lengths.tolist()):
                self._check_tree(heads[entry, :size].tolist(), entry)
        return heads

    def _check_tree(self, heads: list[int], entry: int) -> None:
        """Refuse heads that the structure has not, as no loss would be true for them."""
        n, roots = len(heads), heads.count(0)
        above = [0] * n
        for word in range(n):
            head, steps = heads[word], 1
            while head and steps <= n:
                head, steps = heads[head - 1], steps + 1
            above[word] = steps
        fault = "a cycle" if max(above, default=0) > n else ""
        if not fault and roots > 1 and not self.several_roots:
            fault = f"{roots} words below the root (several_roots=True allows them)"
        arcs = [(min(head, word), max(head, word)) for word, head in enumerate(heads, start=1)]
        if not fault and self.projective and any(a < c < b < d for a, b in arcs for c, d in arcs):
            fault = "arcs that cross (Arborescence allows them)"
        if fault:
            raise ValueError(f"y must be trees of the structure. Batch entry {entry} has {fault}.")

    def indicators(self, y: Labels, scores: Scores) -> Parts:
        counts = np.zeros(scores.parts[0].shape, scores.parts[0].dtype)
        entries, words = np.nonzero(y >= 0)
        counts[entries, y[entries, words], words + 1] = 1
        return (counts,)

    def sums(self, scores: Scores, *, marginals: bool = True) -> tuple[Values, Parts]:
        arcs, log_z = scores.parts[0], np.zeros(len(scores.lengths))
        counts = np.zeros_like(arcs)

        def work(first: int, last: int) -> None:
            finder = self._finder(scores)
            for entry in range(first, last):
                size = int(scores.lengths[entry])
                if size:
                    table, shift = self._table(arcs[entry, : size + 1, : size + 1])
                    log_sum, chances = finder.log_sum(table)
                    log_z[entry] = log_sum + shift
                    counts[entry, : size + 1, 1 : size + 1] = self._own(chances)[:, 1:]

        over_batch(len(log_z), self.n_threads, work)
        for entry in np.flatnonzero(np.isneginf(log_z)).tolist():
            if np.isfinite(self.find(scores.take([entry]))[1][0]):
                raise ValueError(
                    f"The sum over the trees of batch entry {entry} underflows: the arcs of each tree score some "
                    "700 less than the best arcs into the same words. Scale the scores."
                )
            if marginals:
                raise NoOutput(entry)
        return log_z, (counts,) if marginals else ()

    # ---- places: the words, whose values are their heads ----------------------------------------------

    def shape(self, scores: Scores) -> tuple[int, int]:
        return scores.parts[0].shape[1] - 1, scores.parts[0].shape[1]

    def limit(self, scores: Scores, allowed: Allowed) -> Scores:
        masked = scores.parts[0].copy()
        masked[:, :, 1:][~allowed.transpose(0, 2, 1)] = -np.inf
        return Scores((masked,), scores.shapes, scores.lengths)

    def find(self, scores: Scores) -> tuple[Labels, Values]:
        arcs = scores.parts[0]
        heads, values = np.full((len(arcs), arcs.shape[1] - 1), -1, np.int32), np.zeros(len(arcs))

        def work(first: int, last: int) -> None:
            finder = self._finder(scores)
            for entry in range(first, last):
                size = int(scores.lengths[entry])
                if size:
                    table, shift = self._table(arcs[entry, : size + 1, : size + 1])
                    least = table[table > -np.inf].min(initial=0.0)
                    found = finder.tree((table / max(-least / 1e30, 1.0)).astype(np.float32))
                    values[entry] = -np.inf
                    if found is not None:
                        values[entry] = table[found[0], np.arange(1, len(table))].sum() + shift
                        heads[entry, :size] = np.maximum(found[0][1:] - 1, 0) if self.several_roots else found[0]

        over_batch(len(arcs), self.n_threads, work)
        return heads, values

    def value_counts(self, scores: Scores, counts: Parts) -> Values:
        return counts[0][:, :, 1:].transpose(0, 2, 1).astype(np.float64)

    def first_part(self, table: Values) -> Values:
        arcs = np.full((len(table), table.shape[2], table.shape[2]), -np.inf)
        arcs[:, :, 1:] = table.transpose(0, 2, 1)
        return arcs

    # ---- the kernels' tables --------------------------------------------------------------------------

    def _finder(self, scores: Scores) -> TreeFinder:
        return TreeFinder(self.projective, max(int(scores.lengths.max(initial=0)), 1) + self.several_roots)

    def _table(self, arcs: Floats) -> tuple[Values, float]:
        """An entry's table for the kernels, less the best head of each word, and the sum of these."""
        more = int(self.several_roots)
        table = np.full((len(arcs) + more, len(arcs) + more), -np.inf)
        table[more:, more + 1 :] = arcs[:, 1:]
        np.fill_diagonal(table, -np.inf)
        if more:
            table[0, 1] = 0.0
        tops = table[:, 1:].max(axis=0)
        if np.isneginf(tops).any():
            return table, 0.0
        table[:, 1:] -= tops
        return table, float(tops.sum())

    def _own(self, chances: Values) -> Values:
        """Probabilities of an entry's arcs, from those of the kernels' table."""
        return chances[1:, 1:] if self.several_roots else chances


class Projective(_Trees):
    """Projective dependency trees: no arcs cross.

    The part is ``arcs`` (B, n + 1, n + 1), from the head (row; 0 is the root) to the dependent (column); column 0 and
    the diagonal do not matter. An output is an integer array (B, n) of the heads of words 1 .. n, with -1 beyond the
    lengths.

    Parameters
    ----------
    several_roots : bool, default=False
        Whether several words may stand below the root.
    n_threads : int, default=1
        The batch is split among them; results are bit-identical for every number.

    Notes
    -----
    The best tree is searched in float32: of trees whose scores differ by less than its rounding, it may be any.

    References
    ----------
    J. Eisner, Three new probabilistic models for dependency parsing, COLING 1996.

    Examples
    --------
    >>> import numpy as np
    >>> from structsvm.layers import Projective
    >>> arcs = np.zeros((1, 4, 4))
    >>> arcs[0, 2, 1] = arcs[0, 2, 3] = 2.0
    >>> Projective().argmax(arcs).tolist()
    [[2, 0, 2]]
    >>> np.exp(Projective().log_partition(np.zeros((1, 4, 4)))).round().tolist()  # the number of trees
    [7.0]
    """

    projective: ClassVar[bool] = True


class Arborescence(_Trees):
    """Dependency trees whose arcs may cross; parts, outputs and parameters as those of `Projective`.

    Notes
    -----
    The best tree is searched in float32: of trees whose scores differ by less than its rounding, it may be any. Sums
    are of probabilities, not of logs: they underflow (ValueError) where all trees score some 700 less than the best
    arcs into each word, which then form a cycle.

    References
    ----------
    T. Koo, A. Globerson, X. Carreras and M. Collins, Structured prediction models via the matrix-tree theorem,
    EMNLP 2007.

    Examples
    --------
    >>> import numpy as np
    >>> from structsvm.layers import Arborescence
    >>> np.exp(Arborescence().log_partition(np.zeros((1, 4, 4)))).round().tolist()  # the number of trees
    [9.0]
    >>> np.exp(Arborescence(several_roots=True).log_partition(np.zeros((1, 4, 4)))).round().tolist()
    [16.0]
    """

    projective: ClassVar[bool] = False
