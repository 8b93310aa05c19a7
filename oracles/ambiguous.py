"""Multiclass examples whose label is only known to be one of a bag (Bordes 2010, section 6.1)."""

from __future__ import annotations

from itertools import chain
from numbers import Integral
from operator import index
from typing import Any

import numpy as np
from numpy.typing import NDArray

from structsvm.features.dense import DenseRows, check_squares
from structsvm.features.matrices import is_sparse
from structsvm.features.sparse import SparseRows, as_rows
from structsvm.features.tokens import narrowed
from structsvm.oracles._ambiguous import BAG_LOSSES, AmbiguousProblem, decision_scores
from structsvm.parameters import COUNT, Interval, Options, check_arguments
from structsvm.protocol import Oracle, Penalty, Rescaling, UnsupportedFormulation

__all__ = ["AmbiguousOracle"]


def as_bags(Y: Any, n_labels: int) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]]:
    """Bags as ``(indptr, labels, prior)``: the labels of each bag ascending, without repetitions, and their weights.

    A bag is a collection of labels, which weigh 1 each, or a dict from labels to weights > 0; of each bag they are
    divided by the greatest. Raises ValueError for an empty bag, a label out of range or such a weight, and names its
    example.
    """
    bags = [sorted({index(label) for label in bag}) for bag in Y]
    indptr = np.concatenate([[0], np.cumsum([len(bag) for bag in bags])]).astype(np.int64)
    for i, bag in enumerate(bags):
        if not bag:
            raise ValueError(f"the bag of example {i} is empty; at least one label must be a candidate")
        if not (bag[0] >= 0 and bag[-1] < n_labels):
            raise ValueError(f"example {i} has the label {bag[-1] if bag[0] >= 0 else bag[0]} of {n_labels}")
    prior = np.ones(int(indptr[-1]))
    for i, bag in enumerate(Y):
        if isinstance(bag, dict):
            weights = np.array([bag[label] for label in bags[i]], dtype=np.float64)
            if not (np.isfinite(weights).all() and (weights > 0.0).all()):
                raise ValueError(f"the weights of the candidates of example {i} must be finite and > 0, got {bag}")
            prior[indptr[i] : indptr[i + 1]] = weights / weights.max()
    return indptr, np.fromiter(chain.from_iterable(bags), dtype=np.int32, count=int(indptr[-1])), prior


class AmbiguousOracle(Oracle):
    """Multiclass inference, and losses over a bag of candidate labels.

    An example is a pair (x, Y) of an input and a bag, a set of labels with at least one right one. With
    ``Psi(x, y)`` = x in the block of label y and ``s_y = <w, Psi(x, y)>``, its loss is one of

    ``pairwise``: ``1 / (|Y| |not Y|) sum_{y in Y} sum_{z not in Y} [1 - s_y + s_z]_+`` (equations 6.5 and 6.6 of the
    thesis), the maximum over corners c in {0, 1}^(|Y| |not Y|) of ``b(c) - <w, psi(c)>``: each corner is one
    constraint, and a bound problem finds the most violated one in O(n_labels log n_labels);

    ``mean``: ``[1 - sum_{y in Y} q_y s_y]_+ + sum_{z not in Y} [1 + s_z]_+``, where q is the mean over the candidates,
    by their weights (CLPL: Cour, Sapp and Taskar 2011);

    ``max``: the same with ``max_{y in Y} s_y``, which is not convex;

    ``log``: ``log sum_k exp s_k - log sum_{y in Y} v_y exp s_y``, minus the log of the probability that the label is a
    candidate; v_y are the weights of the candidates, the greatest 1. Not convex, unless there is one candidate.

    The last two are minima over shares q, in which they are convex: see `AmbiguousProblem.share_out`. A bag of all
    labels with equal weights says nothing, and has no loss.

    Parameters
    ----------
    n_labels : int
    n_input_features : int
        Columns of X.
    bag_loss : {"pairwise", "mean", "max", "log"}, default="pairwise"

    Notes
    -----
    Layout of w: for each input feature a row of `n_labels` weights.

    Examples
    --------
    >>> import numpy as np
    >>> from structsvm.oracles.ambiguous import AmbiguousOracle
    >>> AmbiguousOracle(2, 1).argmax(np.array([1.0]), np.array([-0.5, 0.5]))
    1
    """

    def __init__(self, n_labels: int, n_input_features: Any, bag_loss: str = "pairwise") -> None:
        sizes = {"n_labels": Interval(Integral, 2), "n_input_features": COUNT}
        check_arguments("AmbiguousOracle", locals(), **sizes, bag_loss=Options(*BAG_LOSSES))
        self.bag_loss = bag_loss
        self.n_labels, self.n_input_features = int(n_labels), int(n_input_features)
        self.n_features = self.n_labels * self.n_input_features
        if self.n_features >= 2**31:
            raise ValueError(f"{n_labels} labels x {n_input_features} features are more than 2**31 - 1 weights")

    def with_loss(self, bag_loss: str) -> AmbiguousOracle:
        """The same oracle with another loss."""
        return AmbiguousOracle(self.n_labels, self.n_input_features, bag_loss)

    def touched(self, rows: SparseRows) -> tuple[AmbiguousOracle, SparseRows, NDArray[np.int64]]:
        """The oracle of only those features that some rows have, these with their features renumbered, and the
        rows of weights that are its own.
        """
        rows, features = narrowed(rows)
        return AmbiguousOracle(self.n_labels, len(features), self.bag_loss), rows, features

    def bind(
        self, X: Any, Y: Any, *, rescaling: Rescaling | None = "margin", penalty: Penalty | None = "linear"
    ) -> AmbiguousProblem:
        """Bind rows and their bags, label ids in any collection or as keys of their weights (see `Oracle.bind`).

        The problem of `DenseRows` has its weights in another order: `AmbiguousProblem.to_oracle` returns them in that
        of the oracle.
        """
        if (rescaling is None) != (self.bag_loss == "log"):
            raise UnsupportedFormulation(
                "the 'log' loss of a bag has no margin to rescale: rescaling must be None"
                if rescaling is not None
                else "a bag has no wrong prediction that a perceptron could learn from"
            )
        self.check_formulation(rescaling, penalty)
        rows = self._checked(X) if isinstance(X, DenseRows) else self.rows(X)
        indptr, labels, prior = as_bags(Y, self.n_labels)
        if len(rows) != len(indptr) - 1:
            raise ValueError(f"X has {len(rows)} rows, y has {len(indptr) - 1} bags")
        if self.bag_loss in ("pairwise", "max") and (prior != 1.0).any():
            raise ValueError(f"the {self.bag_loss!r} loss does not weight candidates; 'mean' and 'log' do")
        return AmbiguousProblem(self, rows, (indptr, labels), prior, rescaling=rescaling, penalty=penalty)

    def rows(self, X: Any) -> SparseRows:
        """X as `SparseRows`; ValueError unless finite and of the right width."""
        if isinstance(X, DenseRows):
            X = X.padded()[:, : X.n_features]
        return as_rows(X, self.n_input_features)

    def _checked(self, rows: DenseRows) -> DenseRows:
        values = rows.values
        if rows.n_features != self.n_input_features:
            raise ValueError(f"X has {rows.n_features} columns, expected {self.n_input_features}")
        if values.dtype != np.float64 or not values.flags.c_contiguous:
            raise ValueError("dense rows must be a C-contiguous float64 array")
        check_squares(values)
        return rows

    def scores(self, X: Any, w: Any) -> Any:
        """Array (n_rows, n_labels) of the labels' scores."""
        w = np.ascontiguousarray(w, dtype=np.float64)
        if isinstance(X, DenseRows):
            table, d = w.reshape(-1, self.n_labels), self._checked(X).values.shape[1]
            scores = X.values @ table[:d]
            return scores + table[d] if X.has_intercept else scores
        return decision_scores(self.rows(X), self.n_labels, w)

    def joint_feature(self, x: Any, y: Any) -> Any:
        if not 0 <= y < self.n_labels:
            raise ValueError(f"the label is {y}, expected 0..{self.n_labels - 1}")
        psi = np.zeros((self.n_input_features, self.n_labels))
        psi[:, y] = x.toarray().ravel() if is_sparse(x) else x
        return psi.ravel()

    def loss(self, y_true: Any, y: Any) -> float:
        """0 for a label of the bag, else 1."""
        return float(y not in y_true)

    def complete(self, x: Any, known: Any, w: Any) -> int:
        """The candidate of the highest score, the first of several."""
        scores = self.scores(x if is_sparse(x) else np.asarray(x)[None, :], w)[0]
        return max(sorted(known), key=lambda label: float(scores[label]))

    def argmax(self, x: Any, w: Any, y_true: Any = None, rescaling: Any = None) -> int:
        """The label of highest score; the maximising corner of a bag is not a label, and is found through `bind`."""
        if y_true is not None:
            raise NotImplementedError(
                "the most violated constraint of a bag is no label: AmbiguousOracle has it in bind()"
            )
        return int(self.scores(x if is_sparse(x) else np.asarray(x)[None, :], w)[0].argmax())
