"""Projective dependency trees, by Eisner's chart."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from structsvm.oracles.dependency._dependency import DependencyProblem
from structsvm.oracles.dependency.arcs import DependencyOracle
from structsvm.protocol import Penalty, Rescaling

__all__ = ["EisnerOracle"]


class EisnerOracle(DependencyOracle):
    """Projective trees: no two arcs cross. O(n^3), and vectorised; expectations by the inside-outside algorithm.

    Parameters are those of `structsvm.oracles.dependency.arcs.DependencyOracle`.

    Notes
    -----
    Exact for both rescalings and penalties. All but the margin with linear slacks find the best tree of each number of
    wrong words, in O(n^5) and by NumPy.

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
    rescalings: tuple[Rescaling, ...] = ("margin", "slack")
    penalties: tuple[Penalty | None, ...] = ("linear", "quadratic")

    def by_losses(self, problem: DependencyProblem, i: int, scores: Any, found: Any) -> bool:
        """Find the tree of the greatest b - s (s_true - s_d), of d wrong words; False: none has a finite score."""
        first, end = problem.offsets_array[i : i + 2]
        heads, labels = problem.targets[1].reshape(-1, 2)[first:end].T
        n, words = len(heads), np.arange(len(heads))
        table = np.asarray(scores)[: (n + 1) * n * self.n_labels].reshape(n + 1, n, self.n_labels)
        right, wrong = table[heads, words, labels].astype(float), table.astype(float)
        wrong[heads, words, labels] = -np.inf
        arcs = np.full((n + 1, n + 1, 2), -np.inf)
        arcs[heads, words + 1, 0] = right
        arcs[:, 1:, 1] = wrong.max(axis=2)
        chart = LossChart(arcs)
        if not np.isfinite(chart.best.max()):
            return False
        b = np.sqrt(words + 1.0) if problem.formulation["penalty"] == "quadratic" else words + 1.0
        values = b + (b if problem.formulation["rescaling"] == "slack" else 1.0) * (chart.best[1:] - right.sum())
        if values.max() > 0.0:
            heads, is_wrong = chart.tree(int(values.argmax()) + 1)
            labels = np.where(is_wrong, wrong[heads, words].argmax(axis=1), labels)
        np.asarray(found)[: 2 * n] = *heads, *labels
        return True


class LossChart:
    """Eisner's chart with the number of wrong words: scores [kind, i, j, losses]; `best`: of trees, by losses.

    Kinds: words right (0) or left (1) of a head, an arc to the right (2) or left (3). `arcs`: [head, word, is wrong].
    """

    def __init__(self, arcs: NDArray[np.float64]) -> None:
        n, self.arcs = len(arcs) - 1, arcs
        self.scores = np.full((4, n + 1, n + 1, n + 2), -np.inf)  # the last losses there never are: index -1
        self.scores[:2, range(n + 1), range(n + 1), 0] = 0.0
        rest = np.maximum(np.subtract.outer(range(n + 1), range(n + 1)), -1)
        spans = [
            (kind, i, i + width) for width in range(1, n) for i in range(1, n - width + 1) for kind in (2, 3, 0, 1)
        ]
        for kind, i, j in [*spans, *((2, 0, j) for j in range(1, n + 1)), (0, 0, n)]:
            left, right = self.parts(kind, i, j)
            size = j - i + 1
            sums = left[:, None, :size] + right[:, rest[:size, :size]]
            self.scores[kind, i, j, :size] = sums.max(axis=(0, 2))
        self.best = self.scores[0, 0, n, :-1]

    def parts(self, kind: int, i: int, j: int) -> tuple[Any, Any]:
        closed_right, closed_left, right, left = self.scores
        if kind == 0:
            return right[i, i + 1 : j + 1], closed_right[i + 1 : j + 1, j]
        if kind == 1:
            return closed_left[i, i:j], left[i:j, j]
        as_right, as_wrong = self.arcs[i, j] if kind == 2 else self.arcs[j, i]
        below = closed_right[i, i:j] + as_right
        below[:, 1:] = np.maximum(below[:, 1:], closed_right[i, i:j, :-1] + as_wrong)
        return below, closed_left[i + 1 : j + 1, j]

    def tree(self, d: int) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
        """The heads of the best tree of d wrong words, and which words those are."""
        n = len(self.arcs) - 1
        heads, is_wrong = np.zeros(n, dtype=np.int32), np.zeros(n, dtype=bool)
        items = [(0, 0, n, d)]
        while items:
            kind, i, j, d = items.pop()
            if i == j:
                continue
            left, right = self.parts(kind, i, j)
            k, c = divmod(int((left[:, : d + 1] + right[:, d::-1]).argmax()), d + 1)
            k += i
            if kind == 0:
                items += [(2, i, k + 1, c), (0, k + 1, j, d - c)]
            elif kind == 1:
                items += [(1, i, k, c), (3, k, j, d - c)]
            else:
                head, word = (i, j) if kind == 2 else (j, i)
                right_wrong = self.scores[0, i, k, [c, c - 1]] + self.arcs[head, word]
                heads[word - 1], is_wrong[word - 1] = head, right_wrong.argmax()
                items += [(0, i, k, c - right_wrong.argmax()), (1, k + 1, j, d - c)]
        return heads, is_wrong
