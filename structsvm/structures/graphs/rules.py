"""Rules that labels must obey, as sums; the best point or labelling that does, by HiGHS."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from structsvm.execution.aside import aside

if TYPE_CHECKING:
    from structsvm.arrays import AnyArray


class BoundedSum(NamedTuple):
    """``least <= sum signs x[nodes, labels] <= most``, where x[v, k] is 1 if node v has the label k.

    Attributes
    ----------
    number : int
        The index of the constraint which says so.
    nodes, labels, signs : int64 array of shape (n_terms,)
    least, most : float
    """

    number: int
    nodes: NDArray[np.int64]
    labels: NDArray[np.int64]
    signs: NDArray[np.int64]
    least: float
    most: float


class Rules(NamedTuple):
    """The rules of a graph.

    Attributes
    ----------
    graph : int
        Its number where they were given.
    sums : list of BoundedSum
    """

    graph: int
    sums: list[BoundedSum]

    @property
    def arrays(self) -> list[AnyArray]:
        """The arrays, for checksums."""
        return [
            array
            for _, nodes, labels, signs, least, most in self.sums
            for array in (nodes, labels, signs, np.array([least, most]))
        ]

    def broken(self, labels: NDArray[np.int32]) -> BoundedSum | None:
        """The first rule that a labelling breaks."""
        for rule in self.sums:
            if not rule.least <= rule.signs @ (labels[rule.nodes] == rule.labels) <= rule.most:
                return rule
        return None

    def within(self, nodes: NDArray[np.int64]) -> Rules:
        """The rules about these nodes alone, which are numbered in this order."""
        place = {node: k for k, node in enumerate(nodes.tolist())}
        return Rules(
            self.graph,
            [
                rule._replace(nodes=np.array([place[node] for node in rule.nodes.tolist()]))
                for rule in self.sums
                if place.keys() >= set(rule.nodes.tolist())
            ],
        )

    def best(
        self,
        scores: NDArray[np.float64],
        edges: NDArray[np.int32],
        tables: NDArray[np.float64],
        allowed: NDArray[np.bool_] | None,
        *,
        whole: bool,
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """``(nodes, pairs)``: the best point of the local polytope that obeys; ValueError if none does.

        The linear programme of x of (node, label), then m of (edge, label, label), whose sums over one label are x of
        the other end; the integer programme if labels are to be whole.

        Parameters
        ----------
        scores : array of shape (n, K)
        edges : array of shape (n_edges, 2)
        tables : array of shape (n_edges, K, K)
        allowed : boolean array of shape (n, K), optional
        """
        from scipy.optimize import Bounds, LinearConstraint, milp
        from scipy.sparse import csr_array

        (n, K), E = scores.shape, len(edges)
        node, pair = np.arange(n * K), n * K + np.arange(E * K * K).reshape(E, K, K)
        end = np.arange(2 * E * K).reshape(E, 2, K)
        x = edges[:, :, np.newaxis] * K + np.arange(K)
        rows = [
            node // K,
            n + np.broadcast_to(end[:, 0, :, None], (E, K, K)),
            n + np.broadcast_to(end[:, 1, None], (E, K, K)),
        ]
        columns = [node, pair, pair]
        entries = [(rows[k].ravel(), columns[k].ravel(), np.ones(columns[k].size)) for k in range(3)]
        entries.append(((n + end).ravel(), x.ravel(), -np.ones(end.size)))
        first = n + end.size
        for r, rule in enumerate(self.sums):
            at = rule.nodes * K + rule.labels
            entries.append((np.full(len(at), first + r), at, rule.signs.astype(np.float64)))
        row, column, value = (np.concatenate(parts) for parts in zip(*entries, strict=True))
        matrix = csr_array((value, (row, column)), shape=(first + len(self.sums), n * K + pair.size))
        sides = np.concatenate([np.ones(n), np.zeros(end.size)])
        least = np.concatenate([sides, [rule.least for rule in self.sums]])
        most = np.concatenate([sides, [rule.most for rule in self.sums]])
        upper = np.ones(n * K + pair.size)
        if allowed is not None:
            upper[: n * K] = allowed.ravel()
        programme = partial(
            milp,
            -np.concatenate([scores.ravel(), tables.ravel()]),
            integrality=(np.arange(len(upper)) < n * K * whole).astype(np.int64),
            bounds=Bounds(0.0, upper),
            constraints=LinearConstraint(matrix, least, most),
            options={"mip_rel_gap": 1e-9},
        )
        outcome = aside(programme)
        if outcome.status == 2:  # infeasible
            raise ValueError(f"graph {self.graph}: no labelling obeys all constraints")
        if outcome.x is None:
            raise RuntimeError(f"the programme of graph {self.graph} was not solved: {outcome.message}")
        return outcome.x[: n * K].reshape(n, K), outcome.x[n * K :].reshape(E, K, K)
