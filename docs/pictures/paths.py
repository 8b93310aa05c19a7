"""A structure of one's own: cheapest paths through a map, whose costs are learnt from paths."""

from functools import cache
from typing import Any

import numpy as np

import structsvm
from pictures.ink import Ink, axes, picture

SIZE = 12
KINDS = ("grass", "wood", "water")
COSTS = np.array([1.0, 2.5, 9.0])  # the walkers have these in mind


class Paths(structsvm.Oracle):
    """Ways from the upper left to the lower right corner; x: kinds of fields (n, n), y: its fields, boolean (n, n)."""

    n_features = len(KINDS)

    def joint_feature(self, x: Any, y: Any) -> Any:
        return -np.bincount(x[y], minlength=len(KINDS)).astype(float)

    def loss(self, y_true: Any, y: Any) -> float:
        return float(np.sum(y_true & ~y))

    def argmax(self, x: Any, w: Any, y_true: Any = None, rescaling: str | None = None) -> Any:
        scores = -np.asarray(w)[x]
        if y_true is not None:
            scores = scores - y_true
        return way(scores)


def way(scores: Any) -> Any:
    """The way, right or down at each step, with the highest sum of scores: a dynamic programme."""
    n = len(scores)
    best = np.full((n + 1, n + 1), -np.inf)
    best[0, 1] = 0.0
    for i in range(n):
        for j in range(n):
            best[i + 1, j + 1] = scores[i, j] + max(best[i, j + 1], best[i + 1, j])
    visited = np.zeros((n, n), dtype=bool)
    i = j = n - 1
    while i >= 0 and j >= 0:
        visited[i, j] = True
        i, j = (i - 1, j) if best[i, j + 1] >= best[i + 1, j] else (i, j - 1)
    return visited


def maps(n: int, rng: Any) -> tuple[list[Any], list[Any]]:
    """Maps with lakes and woods, and the ways of those who know the costs."""
    X = []
    for _ in range(n):
        smooth = rng.normal(size=(SIZE + 4, SIZE + 4))
        smooth = sum(smooth[a : a + SIZE, b : b + SIZE] for a in range(4) for b in range(4)) / 4.0
        X.append(np.digitize(smooth, [0.1, 0.9]))
    return X, [way(-COSTS[x]) for x in X]


@cache
def walked() -> tuple[Any, Any, Any, Any]:
    """A new map, its true way, and the ways before and after training on thirty maps."""
    X, Y = maps(31, np.random.default_rng(5))
    model = structsvm.StructuredSVM(Paths(), structsvm.LaRank(C=1.0, tol=0.01, random_state=0)).fit(X[:30], Y[:30])
    return X[30], Y[30], way(-np.ones(3)[X[30]]), model.predict(X[30:])[0]


@picture
def own_structure(ink: Ink) -> None:
    """A map, the way that was walked, and the ways by equal and by learnt costs."""
    from matplotlib.colors import ListedColormap

    x, true, before, after = walked()
    fields = ListedColormap(["#b9d7a8", "#6f9a5f", "#7fb2d9"])
    for ax, found, title in zip(
        axes(height=2.8, columns=3), (true, before, after), ("walked", "all fields cost the same", "costs learnt"),
        strict=True,
    ):  # fmt: skip
        ax.imshow(x, cmap=fields, vmin=0, vmax=2)
        rows, columns = np.nonzero(found)
        ax.plot(columns, rows, "-o", color="#1f2328", linewidth=2.5, markersize=3.5)
        right = (found & true).sum() / true.sum()
        ax.set_title(title if found is true else f"{title}: {right:.0%}", fontsize=10.5)
        ax.set_axis_off()
