"""Nodes of a taxonomy on scores of nodes: an output has the scores of all nodes on its paths from the root."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array

from structsvm.arrays import Floats
from structsvm.layers.structure import (
    Generators,
    Labels,
    NoOutput,
    Parts,
    Scores,
    Structure,
    Values,
    as_outputs,
    as_parts,
    batched,
    check_values,
    drawn,
    no_lengths,
    shares_of,
)
from structsvm.parameters import checked_k
from structsvm.structures.taxonomy import Taxonomy as Nodes


class Taxonomy(Structure):
    """One of the nodes of a taxonomy with N nodes, K of which are outputs.

    The parts are, in this order,

    - ``nodes`` (B, N), in the order of ``taxonomy.nodes``: a node's score counts for each output at or below it;
    - ``outputs`` (K,) or (B, K), optional: scores of the outputs alone. -inf: not this one.

    An output is the number of its node: an integer array (B,). A truth known in part is an inner node, any output at or
    below which is meant, or -1 for any. The default cost of losses counts the nodes above or at only one of the two.

    Parameters
    ----------
    taxonomy : structsvm.Taxonomy
    outputs : iterable of names of nodes, optional
        The leaves by default.

    Examples
    --------
    >>> import numpy as np
    >>> import structsvm
    >>> from structsvm.layers import Taxonomy, log_loss
    >>> nodes = structsvm.Taxonomy([("all", "comp"), ("all", "autos"), ("comp", "mac"), ("comp", "pc")])
    >>> layer, scores = Taxonomy(nodes), np.array([[0.0, 1.0, 1.5, 0.0, 0.2]])
    >>> nodes.nodes
    ['all', 'comp', 'autos', 'mac', 'pc']
    >>> [nodes.nodes[k] for k in layer.argmax(scores)]
    ['autos']
    >>> layer.marginals(scores)[0].round(2).tolist()
    [[1.0, 0.57, 0.43, 0.26, 0.32]]
    >>> log_loss(layer, (scores,), [1])[0].round(2).tolist()  # somewhere below "comp"
    [0.56]
    """

    part_names: ClassVar[tuple[str, ...]] = ("nodes", "outputs")

    def __init__(self, taxonomy: Nodes, outputs: Iterable[Hashable] | None = None) -> None:
        numbers = [taxonomy.number(name) for name in (taxonomy.leaves if outputs is None else outputs)]
        if not numbers or len(set(numbers)) < len(numbers):
            raise ValueError(f"outputs must be different nodes of the taxonomy, at least one. Got {len(numbers)}.")
        self.taxonomy, self.outputs = taxonomy, np.array(numbers, np.int32)
        self.n_nodes = len(taxonomy.nodes)
        self.place = np.full(self.n_nodes, -1)
        self.place[self.outputs] = np.arange(len(numbers))
        above: list[set[int]] = []
        indptr, parents = taxonomy.lattice.indptr.tolist(), taxonomy.lattice.parents.tolist()
        for node in range(self.n_nodes):
            above.append({node}.union(*(above[p] for p in parents[indptr[node] : indptr[node + 1]])))
        rows = [sorted(above[node]) for node in numbers]
        bounds = np.cumsum([0, *map(len, rows)])
        entries = np.array([node for row in rows for node in row])
        self.paths = csr_array((np.ones(len(entries)), entries, bounds), shape=(len(rows), self.n_nodes))

    def check(self, parts: Sequence[object], lengths: ArrayLike | None) -> Scores:
        no_lengths(Taxonomy, lengths)
        present, shapes = as_parts(Taxonomy, parts, 1)
        nodes, n_outputs = present["nodes"], len(self.outputs)
        if nodes.ndim != 2 or nodes.shape[1] != self.n_nodes:
            raise ValueError(f"nodes must have shape (B, {self.n_nodes}). Got {nodes.shape}.")
        check_values("nodes", nodes)
        alone = present.get("outputs", np.zeros(n_outputs, nodes.dtype))
        return Scores(
            (nodes, batched("outputs", alone, len(nodes), (n_outputs,))), shapes, np.ones(len(nodes), np.int64)
        )

    def check_output(self, y: ArrayLike, scores: Scores, *, partly: bool = False) -> Labels:
        found = as_outputs(y)
        if found.shape != scores.lengths.shape or found.dtype.kind not in "iu":
            raise ValueError(
                f"y must be an array of integers of shape {scores.lengths.shape}. Got {found.dtype} {found.shape}."
            )
        for entry in np.flatnonzero((found < (-1 if partly else 0)) | (found >= self.n_nodes))[:1].tolist():
            raise ValueError(
                f"y must contain numbers of nodes from 0 to {self.n_nodes - 1}. Got {found[entry]} at batch entry "
                f"{entry}."
            )
        for entry in [] if partly else np.flatnonzero(self.place[found] < 0)[:1].tolist():
            name = self.taxonomy.nodes[found[entry]]
            raise ValueError(
                f"y must contain outputs. Got the node {name!r} at batch entry {entry}, which is none: only log_loss "
                "takes inner nodes, or give `outputs`."
            )
        return found.astype(np.int32)

    def indicators(self, y: Labels, scores: Scores) -> Parts:
        chosen, dtype = self.place[y], scores.parts[0].dtype
        single = np.zeros((len(y), len(self.outputs)), dtype)
        single[np.arange(len(y)), chosen] = 1
        return self.paths[chosen].toarray().astype(dtype), single

    def costs(self, right: Floats) -> Floats:
        return 1 - 2 * right

    def is_known(self, y: Labels, scores: Scores) -> bool:
        return False  # an inner node stands for what lies below it

    def restrict(self, scores: Scores, y: Labels) -> Scores:
        nodes, alone = scores.parts
        below = np.ones((len(y), len(self.outputs)), bool)
        inner = (y >= 0) & (self.place[y] < 0)
        below[inner] = self.paths[:, y[inner]].toarray().T > 0
        exact = (y >= 0) & ~inner
        below[exact] = np.arange(len(self.outputs)) == self.place[y[exact], None]
        return Scores((nodes, np.where(below, alone, alone.dtype.type(-np.inf))), scores.shapes, scores.lengths)

    def best(self, scores: Scores) -> Labels:
        totals = self._totals(scores)
        for entry in np.flatnonzero(np.isneginf(totals.max(axis=1)))[:1].tolist():
            raise NoOutput(entry)
        return self.outputs[totals.argmax(axis=1)]

    def sums(self, scores: Scores, *, marginals: bool = True) -> tuple[Values, Parts]:
        totals = self._totals(scores)
        log_z = np.logaddexp.reduce(totals, axis=1)
        if not marginals:
            return log_z, ()
        for entry in np.flatnonzero(np.isneginf(log_z))[:1].tolist():
            raise NoOutput(entry)
        chances, dtype = shares_of(totals, 1), scores.parts[0].dtype
        return log_z, ((chances @ self.paths).astype(dtype), chances.astype(dtype))

    def kbest(self, *parts: object, k: int, lengths: ArrayLike | None = None) -> tuple[Labels, Values]:
        k, totals = checked_k(k), self._totals(self.check(parts, lengths))
        order = np.argsort(-totals, axis=1, kind="stable")[:, :k]
        labels, values = np.full((len(totals), k), -1, np.int32), np.full((len(totals), k), -np.inf)
        values[:, : order.shape[1]] = np.take_along_axis(totals, order, axis=1)
        labels[:, : order.shape[1]] = self.outputs[order]
        labels[np.isneginf(values)] = -1
        return labels, values

    def max_marginals(self, *parts: object, lengths: ArrayLike | None = None) -> Values:
        totals = self._totals(self.check(parts, lengths))
        best = np.full((len(totals), self.n_nodes), -np.inf)
        columns = self.paths.tocsc()
        for node in np.flatnonzero(np.diff(columns.indptr)).tolist():
            best[:, node] = totals[:, columns.indices[columns.indptr[node] : columns.indptr[node + 1]]].max(axis=1)
        return best

    def samples(self, scores: Scores, n_samples: int, generators: Generators) -> Labels:
        chances = self.sums(scores)[1][1].astype(np.float64)
        uniforms = np.array([draw.random(n_samples) for draw in generators]).reshape(len(generators), n_samples)
        return self.outputs[drawn(chances[:, None], uniforms)]

    def _totals(self, scores: Scores) -> Values:
        """Scores (B, K) of the outputs."""
        nodes, alone = scores.parts
        totals: Values = (self.paths @ nodes.astype(np.float64).T).T + alone
        return totals
