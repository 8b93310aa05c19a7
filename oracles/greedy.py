"""Label sequences labelled greedily, left to right, with a history of k labels (thesis, section 5.3)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from structsvm.oracles._greedy import GreedyDecoder, GreedyProblem
from structsvm.oracles.chain import KnownLabels, LabelChain, as_tokens
from structsvm.protocol import Penalty, Rescaling

__all__ = ["GreedyOracle"]


class GreedyOracle(LabelChain):
    """Greedy inference with the labels of the last `order` tokens as features.

    Training follows equation (5.12) of the thesis: every token is a separate example with the true history. That
    multiclass problem is solved exactly, and its duality gap can be certified; the search for a whole labelling is not
    exact, and `inference` says so.

    Parameters
    ----------
    n_labels, n_token_features : int
        Number of labels, and of features of a token.
    n_bigrams : int, default=0
        As for `ViterbiOracle`.
    order : int, default=2
        Number of previous labels that a score depends on, each by itself (not their combination), so the cost
        grows by one row per label: order 10 is cheap.
    label_costs, allowed_transitions, allowed_first, allowed_last
        As for `ViterbiOracle`. Masks apply to predictions; a label is only excluded at its own token, so a
        mask with dead ends may raise an error.

    Notes
    -----
    Layout of w: rows of `stride` float32; F emission rows, then for each lag s = 1 .. order K + 1 rows,
    one per label at that distance (the last: before the first token); then those of bigrams.

    Examples
    --------
    >>> import numpy as np
    >>> from structsvm.oracles.greedy import GreedyOracle
    >>> oracle = GreedyOracle(n_labels=2, n_token_features=1)
    >>> w = np.zeros(oracle.n_features)
    >>> w[1] = 1.0
    >>> oracle.argmax(np.array([[1.0], [-1.0]]), w).tolist()
    [1, 0]
    """

    inference = "approximate"
    rescalings = ("margin", "slack")
    penalties = ("linear", "quadratic", None)

    def __init__(
        self,
        n_labels: int,
        n_token_features: int,
        *,
        n_bigrams: int = 0,
        order: int = 2,
        label_costs: ArrayLike | None = None,
        allowed_transitions: ArrayLike | None = None,
        allowed_first: ArrayLike | None = None,
        allowed_last: ArrayLike | None = None,
    ) -> None:
        if not (isinstance(order, (int, np.integer)) and order >= 0):
            raise ValueError(f"The 'order' parameter of GreedyOracle must be an integer >= 0. Got {order!r} instead.")
        super().__init__(
            n_labels,
            n_token_features,
            n_bigrams,
            int(order),
            int(order) * (n_labels + 1),
            "hamming",
            label_costs,
            allowed_transitions,
            allowed_first,
            allowed_last,
        )

    def bind(
        self, X: Any, Y: Any, *, rescaling: Rescaling | None = "margin", penalty: Penalty | None = "linear"
    ) -> GreedyProblem:
        """Bind training sequences: a problem with one example per token (see `Oracle.bind`).

        X and Y as for `ViterbiOracle`. A sequence known in part is completed from left to right.
        """
        self.check_formulation(rescaling, penalty)
        tokens = as_tokens(X, self.n_token_features)
        labels, known = KnownLabels.of(Y, tokens, self.n_labels)
        return GreedyProblem(self, tokens, labels, known, rescaling=rescaling, penalty=penalty)

    def chain(self, X: Any) -> GreedyDecoder:
        """Return a decoder for sequences without labels."""
        return GreedyDecoder(self, as_tokens(X, self.n_token_features))

    def joint_feature(self, x: Any, y: ArrayLike) -> NDArray[np.float64]:
        tokens = as_tokens(x, self.n_token_features, single=True)
        y = self.check_labels(tokens, y)
        psi = self.emission(tokens, np.eye(self.n_labels)[y])
        for lag in range(1, self.order + 1):
            before = np.concatenate([np.full(lag, self.n_labels), y])[: len(y)]
            np.add.at(psi, (self.n_token_features + (lag - 1) * (self.n_labels + 1) + before, y), 1.0)
        if self.n_bigrams:
            self.add_bigrams(psi, tokens, self.pairs(y))
        return psi.ravel()

    def argmax(
        self, x: Any, w: ArrayLike, y_true: ArrayLike | None = None, rescaling: Rescaling | None = None
    ) -> NDArray[np.int32]:
        """Greedy labelling; there is no loss-augmented inference over whole sequences."""
        if y_true is not None:
            raise NotImplementedError(
                "GreedyOracle has no loss-augmented argmax over whole labellings: it is trained token by "
                "token, through bind()"
            )
        return self.chain(as_tokens(x, self.n_token_features, single=True)).decode(w)
