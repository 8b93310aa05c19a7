"""Dependency trees on scores of arcs: Eisner's chart and Kirchhoff's theorem (see eisner.h, arborescence.h).

The kernels' trees have one word below the root. Where there may be several, these stand below a word that is added
before the first, the only one below the root. Labels of arcs do not depend on one another: the kernels take each arc's
best label, or the log-sum over its labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from structsvm.arrays import Floats
from structsvm.layers._trees import CROSSING, CYCLE, ROOTS, Batch, faults
from structsvm.layers.places import Places
from structsvm.layers.structure import (
    Generators,
    Labels,
    NoOutput,
    Parts,
    Scores,
    Values,
    as_outputs,
    as_parts,
    check_lengths,
    check_values,
    drawn,
    over_batch,
    plain_outputs,
    possible,
    possible_truths,
    without_output,
)
from structsvm.oracles.dependency._dependency import TreeFinder
from structsvm.oracles.enumeration.labellings import Allowed
from structsvm.parameters import checked_threads


class _Trees(Places):
    """Trees over the words of B sentences of up to n words, with scores of arcs.

    The part is ``arcs``, (B, n + 1, n + 1) or with labels (B, n + 1, n + 1, K), from the head (row; 0 is the root) to
    the dependent (column); column 0 and the diagonal do not matter. An output is an integer array (B, n) of the heads
    of words 1 .. n, with labels (B, n, 2) of heads and labels; -1 beyond the lengths.
    """

    part_names: ClassVar[tuple[str, ...]] = ("arcs",)
    is_centred: ClassVar[bool] = True
    projective: ClassVar[bool]

    def __init__(self, *, several_roots: bool = False, n_threads: int = 1) -> None:
        self.several_roots, self.n_threads = several_roots, checked_threads(n_threads)

    def check(self, parts: Sequence[object], lengths: ArrayLike | None) -> Scores:
        return self.check_for_sums(parts, lengths).settle()

    def check_for_sums(self, parts: Sequence[object], lengths: ArrayLike | None) -> Scores:
        present, shapes = as_parts(type(self), parts, 1)
        arcs = present["arcs"]
        n, *shape = arcs.shape or (0,)
        if len(shape) not in (2, 3) or shape[0] != shape[1] or 0 in shape:
            raise ValueError(
                f"arcs must have shape (B, n + 1, n + 1), or (B, n + 1, n + 1, K) with K labels. Got {arcs.shape}."
            )
        sizes = check_lengths(lengths, n, shape[0] - 1)

        def check() -> None:
            check_values("arcs", arcs, lambda: _counting(shape[0], sizes), n_threads=self.n_threads)

        return Scores((arcs,), shapes, sizes, later=check)

    def check_output(self, y: ArrayLike, scores: Scores, *, partly: bool = False) -> Labels:
        found, arcs = as_outputs(y), scores.parts[0]
        wanted = len(arcs), arcs.shape[1] - 1, *([2] if arcs.ndim == 4 else [])
        if found.shape != wanted or found.dtype.kind not in "iu":
            raise ValueError(f"y must be an array of integers of shape {wanted}. Got {found.dtype} {found.shape}.")
        inside = np.arange(wanted[1]) < scores.lengths[:, None]
        table = found if arcs.ndim == 4 else found[..., None]
        bounds = {"heads from 0 (the root)": scores.lengths, "labels from 0": np.full(len(arcs), arcs.shape[-1] - 1)}
        for values, (name, most) in zip(table.transpose(2, 0, 1), bounds.items(), strict=False):
            bad = inside & ((values < (-1 if partly else 0)) | (values > most[:, None]))
            if bad.any():
                entry, word = np.argwhere(bad)[0].tolist()
                unknown = ", or -1 for an unknown one" if partly else ""
                raise ValueError(
                    f"y must contain {name} to {most[entry]}{unknown}. Got {values[entry, word]} at batch entry "
                    f"{entry}, word {word + 1}."
                )
        checked = np.where(inside[..., None], table, -1).astype(np.int32)
        self._check_trees(np.ascontiguousarray(checked[..., 0]), scores)
        return cast(Labels, checked.reshape(wanted))

    def _check_trees(self, heads: Labels, scores: Scores) -> None:
        """Refuse heads that the structure has not, as no loss would be true for them."""
        found = faults(heads, scores.lengths, self.several_roots, self.projective)
        for entry in np.flatnonzero(found)[:1].tolist():
            fault = {
                CYCLE: "a cycle",
                ROOTS: f"{np.count_nonzero(heads[entry] == 0)} words below the root (several_roots=True allows them)",
                CROSSING: "arcs that cross (Arborescence allows them)",
            }[int(found[entry])]
            raise ValueError(f"y must be trees of the structure. Batch entry {entry} has {fault}.")

    def indicators(self, y: Labels, scores: Scores) -> Parts:
        counts = np.zeros(scores.parts[0].shape, scores.parts[0].dtype)
        heads, *labels = y.transpose(2, 0, 1) if counts.ndim == 4 else [y]
        entries, words = np.nonzero(heads >= 0)
        counts[entries, heads[entries, words], words + 1, *(label[entries, words] for label in labels)] = 1
        return (counts,)

    def restrict(self, scores: Scores, y: Labels) -> Scores:
        n, width, _, n_labels = _with_labels(scores).shape
        heads, label = (y[..., :1], y[..., 1:]) if y.ndim == 3 else (y[..., None], np.full((1, 1, 1), -1))
        of_heads, of_labels = (heads < 0) | (heads == np.arange(width)), (label < 0) | (label == np.arange(n_labels))
        allowed = of_heads[..., None] & of_labels[..., None, :]
        return self.limit(scores, allowed.reshape(n, width - 1, width * n_labels))

    def less_agreeing(self, scores: Scores, y: Labels, marginals: Parts) -> Values:
        """In place, at the true arcs alone, where all of them are known."""
        entries, words = np.nonzero(np.arange(y.shape[1]) < scores.lengths[:, None])
        chosen = y[entries, words]
        if (chosen < 0).any():
            return super().less_agreeing(scores, y, marginals)
        arcs = (entries, chosen[:, 0], words + 1, chosen[:, 1]) if y.ndim == 3 else (entries, chosen, words + 1)
        marginals[0][arcs] -= 1
        values = np.zeros(len(y))
        values += np.bincount(entries, scores.parts[0][arcs], len(y))
        return possible(values)

    def is_known(self, y: Labels, scores: Scores) -> bool:
        return bool(np.count_nonzero(y >= 0) == scores.lengths.sum() * (y.ndim - 1))  # heads, and labels

    def centred(self, scores: Scores, y: Labels) -> Scores:
        """In float64, less the score of each word's arc."""
        arcs, of_words = _with_labels(scores).astype(np.float64), np.maximum(y, 0)
        heads, *labels = of_words.reshape(*y.shape[:2], y.ndim - 1).T
        n, width, *_ = arcs.shape
        chosen = np.arange(n)[:, None], heads.T, np.arange(1, width), labels[0].T if labels else 0
        with np.errstate(invalid="ignore"):  # beyond the lengths stands anything
            arcs[:, :, 1:] -= arcs[chosen][:, None, :, None]
        return replace(scores, parts=(arcs.reshape(scores.parts[0].shape),))

    def sums(self, scores: Scores, *, marginals: bool = True) -> tuple[Values, Parts]:
        arcs, log_z = scores.parts[0], np.empty(len(scores.lengths))
        if arcs.ndim == 4:
            arcs = _over_labels(arcs)
        counts = np.empty(arcs.shape, arcs.dtype) if marginals else None
        batch = Batch(arcs, scores.lengths, self.projective, self.several_roots)
        for entry in cast("list[int]", batch.sums(self.n_threads, log_z, counts)):
            self._sum_logs(arcs, scores, entry, log_z, counts)
        self._check_sums(scores, log_z, marginals=marginals)
        return log_z, () if counts is None else (self._of_labels(counts, arcs, scores),)

    def sums_less(self, scores: Scores, y: ArrayLike, *, per_entry: bool = True) -> tuple[Values, Values, Parts]:
        """In one go for each entry, where there are no labels and all heads are known."""
        arcs, n = scores.parts[0], len(scores.lengths)
        heads = plain_outputs(y, (n, arcs.shape[1] - 1)) if arcs.ndim == 3 else None
        batch = Batch(arcs, scores.lengths, self.projective, self.several_roots)
        if heads is None or not batch.are_trees(heads):
            return super().sums_less(scores, y)
        log_z, known, counts = np.empty(n), np.empty(n), np.empty_like(arcs)
        sums = self.n_threads, log_z, counts, heads, known
        in_logs = batch.sums(*sums, looks=True)
        if in_logs is None:
            scores.settle()  # raises, unless another thread has mended the scores
            in_logs = batch.sums(*sums)
        for entry in cast("list[int]", in_logs):
            self._sum_logs(arcs, scores, entry, log_z, counts)
            words = np.arange(scores.lengths[entry])
            counts[entry, heads[entry, words], words + 1] -= 1
        self._check_sums(scores, log_z, marginals=True)
        return log_z, possible_truths(known), (counts,)

    def _check_sums(self, scores: Scores, log_z: Values, *, marginals: bool) -> None:
        """Refuse sums that underflow, and unless log partitions are all that is wanted, those without a tree."""
        for entry in without_output(log_z):
            if np.isfinite(self.find(scores.take([entry]))[1][0]):
                raise ValueError(
                    f"The sum over the trees of batch entry {entry} underflows: the arcs of each tree score some "
                    "700 less than the best arcs into the same words. Scale the scores."
                )
            if marginals:
                raise NoOutput(entry)

    def _sum_logs(self, arcs: Floats, scores: Scores, entry: int, log_z: Values, counts: Floats | None) -> None:
        """The sums of an entry whose weights are too small, or too many."""
        size = int(scores.lengths[entry])
        table, shift = self._table(arcs[entry, : size + 1, : size + 1])
        log_sum, chances = TreeFinder(self.projective, size + self.several_roots).log_sum(table)
        if not self.projective and not np.isclose(log_sum, _by_elimination(table), rtol=1e-11, atol=1e-9):
            log_sum = -np.inf  # weights too small to have all their digits
        log_z[entry] = log_sum + shift
        if counts is not None:
            counts[entry, : size + 1, 1 : size + 1] = self._own(chances)[:, 1:]
            counts[entry][np.isneginf(arcs[entry])] = 0  # not their rounding

    def _of_labels(self, counts: Floats, arcs: Floats, scores: Scores) -> Floats:
        """Probabilities of arcs with their labels, from those of arcs and the log-sums over labels."""
        part = scores.parts[0]
        if part.ndim == 3:
            return counts
        logs = np.full(part.shape, -np.inf)
        np.subtract(part, arcs[..., None], out=logs, where=np.isfinite(arcs)[..., None])
        return (counts[..., None] * np.exp(logs)).astype(part.dtype)

    def sampled_values(self, scores: Scores, n_samples: int, generators: Generators) -> Labels:
        labelled, longest = _with_labels(scores), scores.parts[0].shape[1] - 1
        values = np.full((len(labelled), n_samples, longest), -1, np.int32)

        def work(first: int, last: int) -> None:
            finder = self._finder(scores)
            for entry in range(first, last):
                size = int(scores.lengths[entry])
                draws = generators[entry].random((n_samples, 3 * size + 2))
                table, words = labelled[entry, : size + 1, : size + 1].astype(np.float64), np.arange(1, size + 1)
                heads = self._heads(finder, _over_labels(table), draws[:, size:])
                if heads is None:
                    one = scores.take([entry]), n_samples, [generators[entry]]
                    values[entry] = super(_Trees, self).sampled_values(*one)[0]
                elif size:
                    logs = table[heads, words]
                    labels = drawn(np.exp(logs - logs.max(axis=2, keepdims=True)), draws[:, :size])
                    values[entry, :, :size] = heads * labelled.shape[3] + labels

        over_batch(len(values), self.n_threads, work)
        return values

    def _heads(self, finder: TreeFinder, arcs: Values, uniforms: Values) -> NDArray[np.int32] | None:
        """Heads of an entry's words in samples, by twice as many numbers as words; None where rounding spoils them."""
        more, size = int(self.several_roots), len(arcs) - 1
        if not size:
            return np.empty((len(uniforms), 0), np.int32)
        table, _ = self._table(arcs)
        heads = finder.samples(table, np.ascontiguousarray(uniforms[:, : 2 * (size + more)]))
        return heads if heads is None or not more else np.maximum(heads[:, 1:] - 1, 0)

    # ---- places: the words, whose values are their heads, each with all labels ----------------------------

    def shape(self, scores: Scores) -> tuple[int, int]:
        _, width, _, n_labels = _with_labels(scores).shape
        return width - 1, width * n_labels

    def shown(self, values: Labels, scores: Scores) -> Labels:
        if scores.parts[0].ndim == 3:
            return values
        heads, labels = np.divmod(values, scores.parts[0].shape[3])
        return np.where(values[..., None] < 0, -1, np.stack([heads, labels], axis=-1)).astype(np.int32)

    def limit(self, scores: Scores, allowed: Allowed) -> Scores:
        masked = scores.parts[0].copy()
        n, width, _, n_labels = _with_labels(scores).shape
        by_arc = allowed.reshape(n, width - 1, width, n_labels).swapaxes(1, 2)
        masked[:, :, 1:][~by_arc.reshape(masked[:, :, 1:].shape)] = -np.inf
        return Scores((masked,), scores.shapes, scores.lengths)

    def find(self, scores: Scores) -> tuple[Labels, Values]:
        labelled, more = _with_labels(scores), int(self.several_roots)
        arcs, best = labelled[..., 0], None
        if labelled.shape[3] > 1:
            best = labelled.argmax(axis=3)
            arcs = np.take_along_axis(labelled, best[..., None], axis=3)[..., 0]
        nodes = np.full((len(arcs), arcs.shape[1] - 1 + more), -1, np.int32)
        batch = Batch(arcs, scores.lengths, self.projective, self.several_roots)

        def work(first: int, last: int) -> None:
            self._finder(scores).trees(*batch.tables(first, last), nodes[first:last])

        over_batch(len(arcs), self.n_threads, work)
        heads = np.maximum(nodes[:, 1:] - 1, np.minimum(nodes[:, 1:], 0)) if more else nodes
        entries, words = np.nonzero(heads >= 0)
        chosen = entries, heads[entries, words], words + 1
        values = np.zeros(len(arcs))
        values += np.bincount(entries, arcs[chosen], len(arcs))
        values[(scores.lengths > 0) & (nodes < 0).all(axis=1)] = -np.inf
        found = np.full(heads.shape, -1, np.int32)
        found[entries, words] = chosen[1] if best is None else chosen[1] * labelled.shape[3] + best[chosen]
        return found, values

    def value_counts(self, scores: Scores, counts: Parts) -> Values:
        n, width, _, n_labels = _with_labels(scores).shape
        by_word = counts[0].reshape(n, width, width, n_labels)[:, :, 1:].swapaxes(1, 2)
        return by_word.reshape(n, width - 1, width * n_labels).astype(np.float64)

    def first_part(self, table: Values, scores: Scores) -> Values:
        n, width, _, n_labels = _with_labels(scores).shape
        arcs = np.full((n, width, width, n_labels), -np.inf)
        arcs[:, :, 1:] = table.reshape(n, width - 1, width, n_labels).swapaxes(1, 2)
        return arcs.reshape(scores.parts[0].shape)

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


def _over_labels(scores: Floats) -> Values:
    """Log-sums over labels, the last axis; in places that do not count stands anything."""
    with np.errstate(invalid="ignore"):
        sums: Values = np.logaddexp.reduce(scores, axis=-1, dtype=np.float64)
    return sums


def _by_elimination(table: Values) -> float:
    """The log-sum over the trees of a table as `arborescence.h` has it, of logs: nothing underflows, and it is slow."""
    heads, roots, total = table[1:, 1:].T.copy(), table[0, 1:].copy(), 0.0
    while len(roots) > 1:
        sums = np.logaddexp.reduce(heads, axis=1)
        last = int(sums.argmax())
        if np.isneginf(sums[last]):
            return -np.inf
        total += float(sums[last])
        ways, rest = heads[:, last] - sums[last], np.arange(len(roots)) != last
        roots = np.logaddexp(roots, ways + roots[last])[rest]
        heads = np.logaddexp(heads, ways[:, None] + heads[last])[rest][:, rest]
        np.fill_diagonal(heads, -np.inf)
    return total + float(roots[0])


def _counting(width: int, sizes: NDArray[np.int64]) -> NDArray[np.bool_]:
    """True for arcs that count, (B, width, width): into words, from others, within the lengths."""
    words = np.arange(width)
    inside = words <= sizes[:, None]
    return inside[:, :, None] & inside[:, None] & (words > 0) & (words[:, None] != words)


def _with_labels(scores: Scores) -> Floats:
    """Scores (B, n + 1, n + 1, K) of arcs; without labels K is 1."""
    arcs = scores.parts[0]
    return arcs if arcs.ndim == 4 else arcs[..., None]


class Projective(_Trees):
    """Projective dependency trees: no arcs cross.

    The part is ``arcs``, (B, n + 1, n + 1) or with labels (B, n + 1, n + 1, K), from the head (row; 0 is the root) to
    the dependent (column); column 0 and the diagonal do not matter. An output is an integer array (B, n) of the heads
    of words 1 .. n, with labels (B, n, 2) of heads and labels; -1 beyond the lengths, or for what is unknown.

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
    >>> labels = np.zeros((4, 4, 2))
    >>> labels[2, :, 1] = 0.1
    >>> Projective().argmax(arcs[..., None] + labels).tolist()  # of each word the head and the label
    [[[2, 1], [0, 0], [2, 1]]]
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
