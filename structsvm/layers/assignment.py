"""Matchings of two sets of nodes, one to one, on scores of pairs; maxima are the oracle's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from structsvm.arrays import Floats
from structsvm.layers.places import Places
from structsvm.layers.structure import (
    Labels,
    Parts,
    Scores,
    Values,
    as_outputs,
    as_parts,
    batched,
    check_two_lengths,
    check_values,
)
from structsvm.oracles.assignment import AssignmentInput, AssignmentOracle, NoMatching
from structsvm.oracles.enumeration.labellings import Allowed


class Assignment(Places):
    """Matchings of n left nodes with m right ones, one to one.

    The parts are, in this order,

    - ``pairs`` (B, n, m);
    - ``alone`` (n,) or (B, n), optional: scores of left nodes that stay unmatched. Without it as many nodes are matched
      as there are on the smaller side.

    An output is an integer array (B, n) of right nodes, -1 for a left node that is unmatched or beyond the length.
    ``lengths`` is an array (B, 2) of left and right nodes. The default cost of losses counts the pairs of only one of
    the matchings.

    Notes
    -----
    There are no sums: they would be permanents. `hinge`, `ramp`, `perturbed` and `sparsemap` need maxima alone.

    Examples
    --------
    >>> import numpy as np
    >>> from structsvm.layers import Assignment
    >>> pairs = np.array([[[3.0, 2.5, 0.0], [2.9, 0.0, 0.4]]])
    >>> Assignment().argmax(pairs).tolist()
    [[1, 0]]
    >>> labels, values = Assignment().kbest(pairs, np.full(2, 1.0), k=2)
    >>> labels[0].tolist(), values[0].tolist()
    ([[1, 0], [0, -1]], [5.4, 4.0])
    """

    part_names: ClassVar[tuple[str, ...]] = ("pairs", "alone")

    def check(self, parts: Sequence[object], lengths: ArrayLike | None) -> Scores:
        present, shapes = as_parts(Assignment, parts, 1)
        pairs = present["pairs"]
        if pairs.ndim != 3:
            raise ValueError(f"pairs must have shape (B, n, m). Got {pairs.shape}.")
        n, left, right = pairs.shape
        sizes = check_two_lengths(lengths, n, (left, right), "left and right nodes of each entry")
        lefts, rights = np.arange(left) < sizes[:, :1], np.arange(right) < sizes[:, 1:]
        check_values("pairs", pairs, lambda: lefts[:, :, None] & rights[:, None])
        alone = batched("alone", present.get("alone", np.zeros(left, pairs.dtype)), n, (left,))
        return Scores((pairs, alone), shapes, sizes)

    def check_output(self, y: ArrayLike, scores: Scores, *, partly: bool = False) -> Labels:
        found, (n, left, _) = as_outputs(y), scores.parts[0].shape
        if found.shape != (n, left) or found.dtype.kind not in "iu":
            raise ValueError(f"y must be an array of integers of shape {(n, left)}. Got {found.dtype} {found.shape}.")
        inside = np.arange(left) < scores.lengths[:, :1]
        bad = inside & ((found < -1) | (found >= scores.lengths[:, 1:]))
        if bad.any():
            entry, node = np.argwhere(bad)[0].tolist()
            raise ValueError(
                f"y must contain right nodes from 0 to {scores.lengths[entry, 1] - 1}, or -1 for none. Got "
                f"{found[entry, node]} at batch entry {entry}, node {node}."
            )
        matched: Labels = np.where(inside, found, -1).astype(np.int32)
        for entry, (row, size) in enumerate(zip(matched, scores.lengths.tolist(), strict=True)):
            nodes, counts = np.unique(row[row >= 0], return_counts=True)
            if (counts > 1).any():
                raise ValueError(
                    f"y matches {counts.max()} nodes of batch entry {entry} with node {nodes[counts.argmax()]}."
                )
            if not _has_alone(scores) and len(nodes) < min(size):
                raise ValueError(
                    f"y must match {min(size)} nodes of batch entry {entry}. Got {len(nodes)}; scores `alone` allow "
                    "more to be unmatched."
                )
        return matched

    def indicators(self, y: Labels, scores: Scores) -> Parts:
        pairs, alone = scores.parts
        counts = np.zeros_like(pairs)
        entries, nodes = np.nonzero(y >= 0)
        counts[entries, nodes, y[entries, nodes]] = 1
        single = (y < 0) & (np.arange(y.shape[1]) < scores.lengths[:, :1])
        return counts, single.astype(alone.dtype)

    def costs(self, right: Floats) -> Floats:
        return 1 - 2 * right

    def sums(self, scores: Scores, *, marginals: bool = True) -> tuple[Values, Parts]:
        raise NotImplementedError(
            "Sums over matchings are permanents, for which there is no polynomial algorithm: Assignment has no "
            "log_partition, marginals, entropy and sample. Take argmax, kbest and max_marginals, and the losses hinge, "
            "ramp, perturbed and sparsemap."
        )

    # ---- places: left nodes, whose values are right nodes, and at the end none -------------------------

    def sizes(self, scores: Scores) -> NDArray[np.int64]:
        return scores.lengths[:, 0]

    def shape(self, scores: Scores) -> tuple[int, int]:
        return scores.parts[0].shape[1], scores.parts[0].shape[2] + 1

    def limit(self, scores: Scores, allowed: Allowed) -> Scores:
        pairs, alone = scores.parts
        low = pairs.dtype.type(-np.inf)
        masked = np.where(allowed[..., :-1], pairs, low), np.where(allowed[..., -1], alone, low)
        return Scores(masked, scores.shapes, scores.lengths)

    def find(self, scores: Scores) -> tuple[Labels, Values]:
        pairs, alone = scores.parts
        y, values = np.full(pairs.shape[:2], -1, np.int32), np.full(len(pairs), -np.inf)
        unmatched = _has_alone(scores)
        oracle, weights = AssignmentOracle(1, unmatched=unmatched), np.eye(1 + unmatched)[0]
        for entry, (left, right) in enumerate(scores.lengths.tolist()):
            single = alone[entry if len(alone) > 1 else 0, :left, None]
            table = np.concatenate([pairs[entry, :left, :right], single], axis=1).astype(np.float64)
            there = table > -np.inf
            row = np.where(there, np.arange(table.size).reshape(table.shape), -1).astype(np.int32)
            x = AssignmentInput(np.where(there, table, 0.0).reshape(-1, 1), row, np.arange(right))
            try:
                best = oracle.complete(x, there, weights)
            except NoMatching:
                continue
            y[entry, :left], values[entry] = best, table[np.arange(left), best].sum()
        return y, values

    def value_counts(self, scores: Scores, counts: Parts) -> Values:
        return np.concatenate([counts[0], counts[1][..., None]], axis=-1).astype(np.float64)

    def first_part(self, table: Values, scores: Scores) -> Values:
        return table[..., :-1]


def _has_alone(scores: Scores) -> bool:
    """Whether there are scores of unmatched nodes."""
    return len(scores.shapes) > 1 and scores.shapes[1] is not None
