"""Label sets: the oracle, and the graphs of pairs of labels that interact."""

from __future__ import annotations

from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import breadth_first_order, connected_components, minimum_spanning_tree

from structsvm.adapter import Inference
from structsvm.features.dense import DenseRows, check_squares
from structsvm.features.sparse import SparseRows, as_rows
from structsvm.oracles._label_sets import SET_LOSSES, LabelSetProblem
from structsvm.parameters import Interval, Options, check_arguments
from structsvm.protocol import Oracle, Penalty, Rescaling

__all__ = ["LabelSetOracle"]

# Number of labels up to which the search is exhaustive on any graph, and the nodes of a search with more labels.
MOST_EXACT, BUDGET = 20, 20_000
MOST_RELATED = 4096  # labels whose interactions take tables of n_labels x n_labels


class FractionalSet(NamedTuple):
    """A point of the relaxation: labels and pairs that are 0, 1/2 or 1.

    Attributes
    ----------
    labels : float64 array of shape (n_labels,)
    pairs : float64 array of shape (n_edges,)
    """

    labels: NDArray[np.float64]
    pairs: NDArray[np.float64]


class LabelSetOracle(Oracle):
    """Sets of labels: scores of labels by a row's features, and one weight per pair of labels that interact.

    A set is an array of 0 and 1; x is a row, of `n_input_features` numbers. ``w[: F * L].reshape(F, L)`` are the
    labels' weights; those of the pairs follow.

    Parameters
    ----------
    n_labels, n_input_features : int
    edges : array-like of shape (n_edges, 2)
        Pairs of labels.
    loss : {"hamming", "subset", "f1", "log"}
        The number of wrong labels; whether one is wrong; 1 - F1 of the set, averaged over examples. "log": as
        "hamming" where a loss is needed, but only for solvers of the log loss.

    Notes
    -----
    Without edges, and on a forest (except with F1), inference is exact by sorting and by dynamic programming. On other
    graphs it is branch and bound, exact up to 20 labels. With more, training with "hamming" uses the optimum of the
    linear relaxation, a minimum cut (roof duality; Boros and Hammer 2002): ``"relaxed"``. Labels that are integral
    there have the same value in a best set; a search of 20,000 nodes finds the others for predictions, and all of them
    for the other losses: ``"approximate"``. Sums over all sets are exact on forests and up to 20 labels; otherwise
    there are none.

    Examples
    --------
    >>> import numpy as np
    >>> from structsvm.oracles.label_sets import LabelSetOracle
    >>> LabelSetOracle(2, 1, edges=[(0, 1)]).argmax([1.0], np.array([0.4, -0.3, 0.5])).tolist()
    [1, 1]
    """

    def __init__(self, n_labels: int, n_input_features: int, edges: Any = (), loss: str = "hamming") -> None:
        size = Interval(Integral, 1, 2**24 - 1, closed="both")
        check_arguments("LabelSetOracle", locals(), n_labels=size, n_input_features=size, loss=Options(*SET_LOSSES))
        self.n_labels, self.n_input_features, self.loss_name = int(n_labels), int(n_input_features), loss
        self.edges = checked_edges(edges, self.n_labels)
        self.n_features = self.n_labels * self.n_input_features + len(self.edges)
        self.forest = forest_of(self.edges, self.n_labels)
        is_forest = self.forest is not None and loss != "f1"
        self.structure = "none" if not len(self.edges) else "forest" if is_forest else "graph"
        if self.structure == "graph" and self.n_labels > MOST_RELATED:
            raise ValueError(
                f"a loss of 'f1', and edges that are no forest, can have at most {MOST_RELATED} labels where labels "
                f"interact. Got n_labels={self.n_labels}"
            )
        self.can_sum = self.forest is not None or self.n_labels <= MOST_EXACT
        self.forest = self.forest or (np.empty(0, np.int32),) * 3
        is_search = self.structure == "graph" and self.n_labels > MOST_EXACT
        self.inference: Inference = "exact" if not is_search else "relaxed" if loss == "hamming" else "approximate"
        self.budget = BUDGET if is_search else 0
        if loss == "log":
            if is_search:
                raise ValueError(
                    f"the log loss needs sums over all sets, of edges that are no forest with at most {MOST_EXACT} "
                    f"labels. Got n_labels={self.n_labels}"
                )
            self.rescalings = ()
        if loss == "subset":
            self.penalties = ("linear", "quadratic", None)

    @property
    def has_expect(self) -> bool:
        """Whether bound problems offer expectations."""
        return self.can_sum

    def bind(
        self, X: Any, Y: Any, *, rescaling: Rescaling | None = "margin", penalty: Penalty | None = "linear"
    ) -> LabelSetProblem:
        """Bind rows (`DenseRows`, `SparseRows`, a matrix, or a list of rows) and their sets (see `Oracle.bind`).

        Sets are rows of 0, 1, and -1 for an unknown label.
        """
        self.check_formulation(rescaling, penalty)
        if not isinstance(X, (DenseRows, SparseRows)):
            X = as_rows(
                X if hasattr(X, "shape") else np.reshape(X, (len(X), self.n_input_features)),
                X.shape[1] if hasattr(X, "shape") else self.n_input_features,
            )
        check_squares(X.values)
        Y = np.asarray(Y, dtype=np.int8).reshape(len(Y), self.n_labels)
        if X.n_features != self.n_input_features:
            raise ValueError(f"X has {X.n_features} columns, expected {self.n_input_features}")
        if len(X) != len(Y):
            raise ValueError(f"X has {len(X)} examples, y has {len(Y)}")
        if Y.size and not -1 <= Y.min() <= Y.max() <= 1:
            raise ValueError("sets are rows of 0 and 1 (and -1 for what is not known)")
        return LabelSetProblem(self, X, Y, rescaling=rescaling, penalty=penalty)

    def joint_feature(self, x: Any, y: Any) -> Any:
        if isinstance(y, FractionalSet):
            labels, pairs = y
        else:
            labels = np.asarray(y, dtype=np.float64)
            pairs = labels[self.edges[:, 0]] * labels[self.edges[:, 1]]
        return np.concatenate([np.outer(x, labels).ravel(), pairs])

    def loss(self, y_true: Any, y: Any) -> float:
        if isinstance(y, FractionalSet):
            return float(np.abs(np.asarray(y_true) - y.labels).sum())
        y_true, y = np.asarray(y_true) > 0, np.asarray(y) > 0
        if self.loss_name in ("hamming", "log"):
            return float((y_true != y).sum())
        if self.loss_name == "subset":
            return float((y_true != y).any())
        total = int(y_true.sum() + y.sum())
        return 1.0 - 2.0 * int((y_true & y).sum()) / total if total else 0.0

    def argmax(self, x: Any, w: Any, y_true: Any = None, rescaling: Any = None) -> Any:
        """See `Oracle.argmax`. A fractional solution of a relaxation is a `FractionalSet`."""
        y = np.zeros(self.n_labels) if y_true is None else y_true
        found = FractionalSet(*self.bind([x], [y], rescaling=None if y_true is None else rescaling).answer(0, w))
        is_whole = (found.labels % 1.0 == 0.0).all()
        return found.labels.astype(np.int8) if is_whole else found

    def complete(self, x: Any, known: Any, w: Any) -> Any:
        return self.bind([x], [known], rescaling=None).decoded(w)[0]

    def expect(self, x: Any, w: Any) -> tuple[float, Any]:
        return self.expect_known(x, np.full(self.n_labels, -1), w)

    def expect_known(self, x: Any, known: Any, w: Any) -> tuple[float, Any]:
        log_sum, *means = self.bind([x], [known], rescaling=None).moments(0, w)
        return log_sum, self.joint_feature(x, FractionalSet(*means))


def checked_edges(edges: Any, n_labels: int) -> NDArray[np.int32]:
    """Pairs as an array of shape (n_edges, 2), the lower label first; ValueError for loops, repetitions, others."""
    pairs = np.asarray(edges, dtype=np.int64).reshape(-1, 2)
    if pairs.size and not 0 <= pairs.min() <= pairs.max() < n_labels:
        raise ValueError(f"edges join labels {pairs.min()} to {pairs.max()}, expected 0 .. {n_labels - 1}")
    pairs = np.sort(pairs, axis=1)
    if (pairs[:, 0] == pairs[:, 1]).any() or len(np.unique(pairs, axis=0)) < len(pairs):
        raise ValueError("edges must join different labels, each pair once")
    return np.ascontiguousarray(pairs, dtype=np.int32)


def forest_of(edges: NDArray[np.int32], n_labels: int) -> tuple[NDArray[np.int32], ...] | None:
    """``(order, parent, link)``: labels, leaves before their parents; each one's parent and edge to it, or -1.

    None if the edges have a cycle.
    """
    graph = coo_array((np.ones(len(edges)), edges.T.astype(np.int32)), shape=(n_labels, n_labels)).tocsr()
    n_trees, tree = connected_components(graph, directed=False)
    if n_labels - n_trees != len(edges):
        return None
    order, parent, link = [], np.full(n_labels, -1, np.int32), np.full(n_labels, -1, np.int32)
    for root in np.unique(tree, return_index=True)[1].tolist():
        reached, before = breadth_first_order(graph, root, directed=False)
        order += reached.tolist()
        parent[reached[1:]] = before[reached[1:]]
    number = {pair: e for e, pair in enumerate(map(tuple, edges.tolist()))}
    for j in np.flatnonzero(parent >= 0).tolist():
        link[j] = number[min(j, int(parent[j])), max(j, int(parent[j]))]
    return np.array(order[::-1], dtype=np.int32), parent, link


def all_pairs(n_labels: int) -> NDArray[np.int32]:
    """The edges of the complete graph."""
    return np.column_stack(np.triu_indices(n_labels, 1)).astype(np.int32)


def chow_liu(Y: Any, sample_weight: Any = None) -> NDArray[np.int32]:
    """The edges of the forest of greatest mutual information between labels (Chow and Liu 1968).

    Parameters
    ----------
    Y : int8 array of shape (n, n_labels)
        0, 1, and -1 for unknown: a pair counts the rows in which both labels are known.
    sample_weight : float64 array of shape (n,), optional
    """
    weight = np.ones(len(Y)) if sample_weight is None else sample_weight
    sides = [(v == Y) * np.sqrt(weight)[:, np.newaxis] for v in (0, 1)]
    joint = np.array([[a.T @ b for b in sides] for a in sides])
    total = np.maximum(joint.sum(axis=(0, 1)), 1e-300)
    p = joint / total
    independent = p.sum(axis=1)[:, np.newaxis] * p.sum(axis=0)[np.newaxis]
    with np.errstate(divide="ignore", invalid="ignore"):
        information = np.where(p > 0.0, p * np.log(p / independent), 0.0).sum(axis=(0, 1))
    information = np.triu(np.maximum(information, 0.0), k=1)
    information[information <= 1e-12] = 0.0  # rounding errors
    tree = minimum_spanning_tree(-information).tocoo()
    return checked_edges(np.column_stack([tree.row, tree.col]), Y.shape[1])
