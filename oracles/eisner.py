"""Projective dependency trees, by Eisner's chart."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from structsvm.oracles.dependency import DependencyOracle
from structsvm.protocol import Penalty, Rescaling


class EisnerOracle(DependencyOracle):
    """Projective trees: no two arcs cross. O(n^3), and vectorised; expectations by the inside-outside algorithm.

    Parameters are those of `structsvm.oracles.dependency.DependencyOracle`.

    Notes
    -----
    Exact for both rescalings and penalties. But for margin rescaling with linear slacks, loss-augmented inference finds
    the best tree of each number of wrong words: in O(n^5), vectorised by NumPy, and for small treebanks.

    References
    ----------
    J. Eisner, Three new probabilistic models for dependency parsing: an exploration, COLING 1996. R. McDonald,
    K. Crammer and F. Pereira, Online large-margin training of dependency parsers, ACL 2005.

    Examples
    --------
    >>> import numpy as np
    >>> from structsvm.features.arc_templates import ArcTemplates
    >>> from structsvm.oracles.eisner import EisnerOracle
    >>> oracle = EisnerOracle(1, ArcTemplates(["tag"], ["h.tag m.tag"], ["m.tag"]), arc_bits=4, row_bits=2)
    >>> oracle.argmax(np.array([[2], [3]], dtype=np.int32), np.zeros(oracle.n_features)).shape
    (2, 2)
    """

    projective = True
    rescalings = ("margin", "slack")
    penalties = ("linear", "quadratic")

    def by_losses(
        self,
        table: NDArray[np.float32],
        heads: NDArray[np.int32],
        labels: NDArray[np.int32],
        rescaling: Rescaling,
        penalty: Penalty,
    ) -> NDArray[np.int32] | None:
        """The most violated tree over a table of scores (see `ArcDecoder.table`), heads and then labels; None of none.

        With s_d the greatest score of a tree of d wrong words and b = d or its root, the greatest of 0 and, over d > 0,
        b - (s_true - s_d), or with slack rescaling b (1 - (s_true - s_d)).
        """
        words = np.arange(len(heads))
        right, wrong = table[heads, words, labels].astype(float), table.astype(float)
        wrong[heads, words, labels] = -np.inf
        arcs = np.full((len(table), len(table), 2), -np.inf)
        arcs[heads, words + 1, 0] = right
        arcs[:, 1:, 1] = wrong.max(axis=2)
        chart = LossChart(arcs)
        if not np.isfinite(chart.best.max()):
            return None
        b = np.sqrt(words + 1.0) if penalty == "quadratic" else words + 1.0
        values = b + (b if rescaling == "slack" else 1.0) * (chart.best[1:] - right.sum())
        if values.max() > 0.0:
            heads, is_wrong = chart.tree(int(values.argmax()) + 1)
            labels = np.where(is_wrong, wrong[heads, words].argmax(axis=1), labels)
        return np.concatenate([heads, labels], dtype=np.int32)


class LossChart:
    """Eisner's chart with the number of wrong words as one more dimension.

    Parameters
    ----------
    arcs : float64 array (n + 1, n + 1, 2)
        Scores by head and word; [..., 0] as right ones, [..., 1] as wrong ones; -inf: there is none.

    Attributes
    ----------
    best : float64 array (n + 1,)
        The greatest score of a tree by its number of wrong words.
    """

    def __init__(self, arcs: NDArray[np.float64]) -> None:
        n = len(arcs) - 1
        self.arcs = arcs
        self.right, self.left, self.open_right, self.open_left = np.full((4, n + 2, n + 2, n + 1), -np.inf)
        ends = np.arange(1, n + 1)
        self.right[ends, ends, 0] = self.left[ends, ends, 0] = 0.0
        for width in range(1, n):
            i = np.arange(1, n - width + 1)[:, None]
            j, k = i + width, i + np.arange(width)
            middle = best_sums(self.right[i, k], self.left[k + 1, j], width)
            ij = i[:, 0], j[:, 0]
            self.open_right[ij] = with_arcs(middle, arcs[ij])
            self.open_left[ij] = with_arcs(middle, arcs[ij[::-1]])
            self.right[ij] = best_sums(self.open_right[i, k + 1], self.right[k + 1, j], width)
            self.left[ij] = best_sums(self.left[i, k], self.open_left[k, j], width)
        both = best_sums(self.left[1, ends, None], self.right[ends, n, None], n)
        self.best = with_arcs(both, arcs[0, 1:]).max(axis=0)

    def tree(self, d: int) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
        """The heads of the best tree of d wrong words, and which words those are."""
        n = len(self.arcs) - 1
        heads, is_wrong = np.zeros(n, dtype=np.int32), np.zeros(n, dtype=bool)

        def attached(head: int, word: int, left: Any, right: Any, d: int) -> tuple[Any, ...]:
            """Score, loss of the arc, and where its two parts meet with how many losses left of that."""
            parts = [(e, *split(left, right, d - e)) for e in range(min(d, 1) + 1)]
            return max((score + self.arcs[head, word, e], e, k, c) for e, score, k, c in parts)

        roots = [(*attached(0, r, self.left[1, r, None], self.right[r, n, None], d), r) for r in range(1, n + 1)]
        _, e, _, c, r = max(roots)
        is_wrong[r - 1] = e
        items = [("left", 1, r, c), ("right", r, n, d - e - c)]
        while items:
            kind, i, j, d = items.pop()
            if i == j:
                continue
            if kind == "right":
                _, k, c = split(self.open_right[i, i + 1 : j + 1], self.right[i + 1 : j + 1, j], d)
                items += [("open right", i, i + 1 + k, c), ("right", i + 1 + k, j, d - c)]
            elif kind == "left":
                _, k, c = split(self.left[i, i:j], self.open_left[i:j, j], d)
                items += [("left", i, i + k, c), ("open left", i + k, j, d - c)]
            else:
                head, word = (i, j) if kind == "open right" else (j, i)
                _, e, k, c = attached(head, word, self.right[i, i:j], self.left[i + 1 : j + 1, j], d)
                heads[word - 1], is_wrong[word - 1] = head, e
                items += [("right", i, i + k, c), ("left", i + k + 1, j, d - e - c)]
        return heads, is_wrong


def best_sums(left: NDArray[np.float64], right: NDArray[np.float64], most: int) -> NDArray[np.float64]:
    """Of pairs of parts (..., splits, n + 1), the greatest sum by their losses together, `most` of them at most."""
    out = np.full((len(left), left.shape[-1]), -np.inf)
    for c in range(most + 1):
        sums = left[..., c, None] + right[..., : most + 1 - c]
        np.maximum(out[:, c : most + 1], sums.max(axis=1), out=out[:, c : most + 1])
    return out


def with_arcs(scores: NDArray[np.float64], arcs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scores (items, n + 1) by losses, with an arc (items, 2) on top of each."""
    out = scores + arcs[:, :1]
    np.maximum(out[:, 1:], scores[:, :-1] + arcs[:, 1:], out=out[:, 1:])
    return out


def split(left: NDArray[np.float64], right: NDArray[np.float64], d: int) -> tuple[float, int, int]:
    """The greatest sum of parts (splits, n + 1) with d losses together: it, its split, the losses of the left part."""
    sums = left[:, : d + 1] + right[:, d::-1]
    k, c = divmod(int(sums.argmax()), d + 1)
    return float(sums[k, c]), k, c
