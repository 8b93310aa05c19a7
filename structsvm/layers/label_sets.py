"""Sets of labels with scores of labels and of pairs of labels, where the pairs form a forest.

Messages go from the leaves to the roots, for all entries of a batch at once; what is learnt of a label given its parent
goes back down.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
    as_outputs,
    as_parts,
    batched,
    check_values,
    no_lengths,
    shares_of,
)
from structsvm.oracles.enumeration.labellings import Allowed
from structsvm.oracles.label_sets import checked_edges, forest_of


class LabelSets(Places):
    """Sets of L labels, some pairs of which interact.

    The parts are, in this order,

    - ``labels`` (B, L): scores of labels that are in the set;
    - ``pairs`` (E,) or (B, E): scores of pairs that are in the set, in the order of `edges`; None without edges;
    - ``off`` (L,) or (B, L), optional: scores of labels that are not in the set. -inf: the label must be in it.

    An output is an integer array (B, L) of 0 and 1. The default cost of losses counts wrong labels.

    Parameters
    ----------
    n_labels : int
    edges : array-like of shape (E, 2), default=()
        Pairs of labels; they form a forest, or ValueError.

    Examples
    --------
    >>> import numpy as np
    >>> from structsvm.layers import LabelSets
    >>> sets = LabelSets(3, [(0, 1), (1, 2)])
    >>> labels, pairs = np.array([[0.5, -0.2, -1.0]]), np.array([1.0, 0.5])
    >>> sets.argmax(labels, pairs).tolist()
    [[1, 1, 0]]
    >>> sets.marginals(labels, pairs)[0].round(2).tolist()
    [[0.75, 0.67, 0.34]]
    """

    part_names: ClassVar[tuple[str, ...]] = ("labels", "pairs", "off")

    def __init__(self, n_labels: int, edges: ArrayLike = ()) -> None:
        if n_labels < 1:
            raise ValueError(f"n_labels must be at least 1. Got {n_labels}.")
        self.n_labels, self.edges = n_labels, checked_edges(edges, n_labels)
        forest = forest_of(self.edges, n_labels)
        if forest is None:
            raise ValueError(
                "edges must form a forest: maxima and sums over sets whose pairs form a cycle have no polynomial "
                "algorithm. Leave out pairs (structsvm.oracles.label_sets.chow_liu finds a forest), or train with "
                "LabelSetOracle, which relaxes."
            )
        self.order, self.parent, self.link = (array.tolist() for array in forest)

    def check(self, parts: Sequence[object], lengths: ArrayLike | None) -> Scores:
        no_lengths(LabelSets, lengths)
        present, shapes = as_parts(LabelSets, parts, 1)
        labels, n_edges = present["labels"], len(self.edges)
        if labels.ndim != 2 or labels.shape[1] != self.n_labels:
            raise ValueError(f"labels must have shape (B, {self.n_labels}). Got {labels.shape}.")
        check_values("labels", labels)
        if n_edges and "pairs" not in present:
            raise ValueError(f"pairs must be an array of the scores of {n_edges} edges. Got None.")
        n = len(labels)
        pairs = batched("pairs", present.get("pairs", np.zeros(0, labels.dtype)), n, (n_edges,))
        off = batched("off", present.get("off", np.zeros(self.n_labels, labels.dtype)), n, (self.n_labels,))
        return Scores((labels, pairs, off), shapes, np.full(n, self.n_labels))

    def check_output(self, y: ArrayLike, scores: Scores, *, partly: bool = False) -> Labels:
        found, least = as_outputs(y), -1 if partly else 0
        if found.shape != scores.parts[0].shape or found.dtype.kind not in "iub":
            raise ValueError(f"y must be integers of shape {scores.parts[0].shape}. Got {found.dtype} {found.shape}.")
        bad = (found < least) | (found > 1)
        if bad.any():
            entry, label = np.argwhere(bad)[0].tolist()
            unknown = ", or -1 for an unknown one" if partly else ""
            raise ValueError(
                f"y must be 1 for labels in the set and 0 for others{unknown}. Got {found[entry, label]} at batch "
                f"entry {entry}, label {label}."
            )
        return found.astype(np.int32)

    def indicators(self, y: Labels, scores: Scores) -> Parts:
        on = y.astype(scores.parts[0].dtype)
        return on, on[:, self.edges[:, 0]] * on[:, self.edges[:, 1]], 1 - on

    def costs(self, right: Floats) -> Floats:
        return 1 - 2 * right

    def sums(self, scores: Scores, *, marginals: bool = True) -> tuple[Values, Parts]:
        ups, _, log_z = self._upwards(scores, np.logaddexp.reduce)
        if not marginals:
            return log_z, ()
        for entry in np.flatnonzero(np.isneginf(log_z))[:1].tolist():
            raise NoOutput(entry)
        chances, both = np.empty_like(ups), np.empty((len(ups), len(self.edges)))
        for j in reversed(self.order):
            if self.parent[j] < 0:
                chances[:, j] = shares_of(ups[:, j], 1)
                continue
            tables = shares_of(self._table(scores, ups, j), 1)  # 0 beside a parent's value that no label here goes with
            joint = tables * chances[:, self.parent[j], None]
            chances[:, j], both[:, self.link[j]] = joint.sum(axis=2), joint[:, 1, 1]
        dtype = scores.parts[0].dtype
        return log_z, (chances[..., 1].astype(dtype), both.astype(dtype), chances[..., 0].astype(dtype))

    # ---- places: the labels, with the values 0 and 1 --------------------------------------------------

    def shape(self, scores: Scores) -> tuple[int, int]:
        return self.n_labels, 2

    def limit(self, scores: Scores, allowed: Allowed) -> Scores:
        labels, pairs, off = scores.parts
        low = labels.dtype.type(-np.inf)
        masked = np.where(allowed[..., 1], labels, low), pairs, np.where(allowed[..., 0], off, low)
        return Scores(masked, scores.shapes, scores.lengths)

    def find(self, scores: Scores) -> tuple[Labels, Values]:
        ups, _, values = self._upwards(scores, np.max)
        y, entries = np.empty(ups.shape[:2], np.int32), np.arange(len(ups))
        for j in reversed(self.order):
            own = ups[:, j] if self.parent[j] < 0 else self._table(scores, ups, j)[entries, :, y[:, self.parent[j]]]
            y[:, j] = own.argmax(axis=1)
        return y, values

    def value_counts(self, scores: Scores, counts: Parts) -> Values:
        return np.stack([counts[2], counts[0]], axis=-1).astype(np.float64)

    def first_part(self, table: Values, scores: Scores) -> Values:
        return table[..., 1]

    # ---- messages -------------------------------------------------------------------------------------

    def _upwards(self, scores: Scores, reduce: Callable[[Values, int], Values]) -> tuple[Values, Values, Values]:
        """``(ups, messages, totals)``: of each label's values with all below it, of its parent's values, of all."""
        labels, _, off = scores.parts
        ups = np.stack([np.broadcast_to(off, labels.shape), labels], axis=-1).astype(np.float64)
        messages, totals = np.zeros_like(ups), np.zeros(len(ups))
        for j in self.order:
            if self.parent[j] < 0:
                totals += reduce(ups[:, j], 1)
            else:
                messages[:, j] = reduce(self._table(scores, ups, j), 1)
                ups[:, self.parent[j]] += messages[:, j]
        return ups, messages, totals

    def _table(self, scores: Scores, ups: Values, j: int) -> Values:
        """Scores (B, 2, 2) of label j's values, with all below it, and its parent's value."""
        table = np.repeat(ups[:, j, :, None], 2, axis=2)
        table[:, 1, 1] += scores.parts[1][:, self.link[j]]
        return table
