"""Slack rescaling for an oracle that offers margin rescaling only (Choi, Meshi and Srebro 2016).

Slack rescaling maximises D(y) (1 + m(y)), where m(y) = <w, Psi(x, y)> - <w, Psi(x, y_true)>. Outputs are points
(m, D) in the plane, and margin rescaling with weights u w / v finds the one that is farthest in the direction
(u, v): argmax_y D + <u w / v, Psi> = argmax_y u m + v D. So it finds the corners of their convex hull, and the
search walks towards the corner of the greatest product. An output strictly inside the hull may have a greater
one; it cannot be found in this way, but the hull bounds what it could have.
"""

from __future__ import annotations

import heapq
from typing import Any, NamedTuple

from structsvm.adapter import sparse_feature
from structsvm.protocol import Oracle


class Corner(NamedTuple):
    """An output, its margin violation m and its loss D."""

    m: float
    D: float
    y: object

    @property
    def value(self) -> Any:
        """The objective of slack rescaling; 0 for the true output."""
        return self.D * (1.0 + self.m)


class SlackSearch(Oracle):
    """Slack rescaling for an oracle with margin rescaling.

    It declares itself inexact, so no duality gap is claimed. `search` bounds the value of a better output.

    Parameters
    ----------
    oracle : Oracle
        With "margin" in its ``rescalings``; for the bound of `search` to hold, its `inference` must not be
        ``"approximate"``.
    max_calls : int, default=30
        Maximum number of calls of its `argmax` per slack-rescaled one (at least 2).

    Examples
    --------
    >>> import numpy as np
    >>> from structsvm import CuttingPlane, SlackSearch, StructuredSVM
    >>> from structsvm.oracles.assignment import AssignmentOracle
    >>> X, Y = [np.array([[[1.0], [0.2]], [[0.9], [0.8]]])], [[0, 1]]
    >>> solver = CuttingPlane(C=1.0, rescaling="slack", tol=None, epsilon=0.01)
    >>> StructuredSVM(SlackSearch(AssignmentOracle(1)), solver).fit(X, Y).predict(X)[0].tolist()
    [0, 1]
    """

    inference = "approximate"
    rescalings = ("margin", "slack")

    def __init__(self, oracle: Any, *, max_calls: int = 30) -> None:
        if not isinstance(oracle, Oracle) or "margin" not in oracle.rescalings:
            raise ValueError(f"SlackSearch needs an Oracle with margin rescaling, got {oracle!r:.80}")
        if max_calls < 2:
            raise ValueError(f"max_calls must be at least 2, got {max_calls}")
        self.oracle, self.max_calls = oracle, max_calls
        self.n_features, self.nonnegative = oracle.n_features, oracle.nonnegative

    def joint_feature(self, x: Any, y: Any) -> Any:
        return self.oracle.joint_feature(x, y)

    def loss(self, y_true: Any, y: Any) -> Any:
        return self.oracle.loss(y_true, y)

    def argmax(self, x: Any, w: Any, y_true: Any = None, rescaling: Any = None) -> Any:
        if rescaling != "slack":
            return self.oracle.argmax(x, w, y_true=y_true, rescaling=rescaling)
        return self.search(x, w, y_true)[0]

    def search(self, x: Any, w: Any, y_true: Any) -> tuple[Any, Any, Any]:
        """The best corner of the hull.

        Returns
        -------
        y : object
            The output found; `y_true` if no corner has a positive value.
        value : float
            Its loss times (1 + its margin violation); 0 for `y_true`.
        bound : float
            No output has more.
        """
        true_score = self._score(x, w, y_true)
        ends = [self._farthest(x, w, y_true, true_score, u, v) for u, v in ((1.0, 0.0), (0.0, 1.0))]
        best = max([Corner(0.0, 0.0, y_true), *ends], key=lambda corner: corner.value)
        # Stretches of the hull between two corners, by what a point there could have at most.
        stretches = [(-most_between(*ends), 0, *ends)]
        settled, calls = best.value, 2
        while stretches and -stretches[0][0] > best.value and calls < self.max_calls:
            _, _, left, right = heapq.heappop(stretches)
            u, v = right.D - left.D, left.m - right.m
            corner = self._farthest(x, w, y_true, true_score, u, v) if u > 0.0 and v > 0.0 else left
            calls += 1
            height = u * (corner.m - left.m) + v * (corner.D - left.D)
            if height <= 1e-9 * (abs(u * left.m) + abs(v * left.D)):
                settled = max(settled, most_on(left, right))  # an edge: nothing is beyond it
                continue
            best = max(best, corner, key=lambda corner: corner.value)
            for a, b in ((left, corner), (corner, right)):
                heapq.heappush(stretches, (-most_between(a, b), calls + (a is corner) * self.max_calls, a, b))
        left_over = -stretches[0][0] if stretches else 0.0
        return best.y, max(best.value, 0.0), max(best.value, settled, left_over)

    def _farthest(self, x: Any, w: Any, y_true: Any, true_score: Any, u: Any, v: Any) -> Any:
        if v == 0.0:
            y = self.oracle.argmax(x, w)
        else:
            y = self.oracle.argmax(x, w * (u / v), y_true=y_true, rescaling="margin")
        return Corner(self._score(x, w, y) - true_score, float(self.oracle.loss(y_true, y)), y)

    def _score(self, x: Any, w: Any, y: Any) -> float:
        where = f"{type(self.oracle).__name__}.joint_feature"
        indices, values = sparse_feature(self.oracle.joint_feature(x, y), self.n_features, where)
        return float(values @ w[indices])


def most_between(left: Any, right: Any) -> Any:
    """The greatest possible value of a point between two corners, left.D <= D <= right.D and m <= left.m."""
    return max(right.D * (1.0 + left.m), 0.0)


def most_on(left: Any, right: Any) -> Any:
    """The greatest value on the straight line between two corners."""
    a, b = right.D - left.D, right.m - left.m
    # (left.D + a t) (1 + left.m + b t) has its peak where the derivative vanishes.
    t = 0.0 if a * b == 0.0 else -(a * (1.0 + left.m) + b * left.D) / (2.0 * a * b)
    t = min(max(t, 0.0), 1.0)
    return max(left.value, right.value, (left.D + a * t) * (1.0 + left.m + b * t))
