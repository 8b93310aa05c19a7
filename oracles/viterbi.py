"""Label chains: the oracle for label sequences with exact inference (thesis, section 5.3)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from structsvm.oracles._viterbi import Chain, ChainProblem, LazyProblem
from structsvm.oracles.chain import ExactChain, KnownLabels, as_tokens
from structsvm.oracles.enumeration.lazily import LazyChain, check_few, joint, no_sums, under
from structsvm.protocol import Penalty, Rescaling, UnsupportedFormulation
from structsvm.structures._labels import LabelLattice
from structsvm.structures.languages import Automaton

__all__ = ["ViterbiOracle"]

MOST_UNITS = 100  # a loss of one error is counted up to so many units


class ViterbiOracle(ExactChain):
    """Label chains of order 1 or 2 with exact inference.

    Parameters
    ----------
    n_labels : int
        Number of labels K; a labelling is an integer array with values 0 .. K - 1.
    n_token_features : int
        Number of features F of a token.
    n_bigrams : int, default=0
        Number of attributes that are conjoined with pairs of neighbouring labels (`Tokens.bigrams`).
    order : {1, 2}, default=1
        Number of previous labels that a score may depend on.
    end : bool, default=False
        Whether the last label has a score of its own. (The first always has: the transition from
        the absent label, as in the thesis.)
    loss : {"hamming", "zero_one", "log"}, default="hamming"
        Number of wrong labels, or 1 for any wrong labelling. "log": as "hamming" where a loss is needed, but only for
        solvers of the log loss: `rescalings` is empty.
    label_costs : array-like of shape (n_labels,), optional
        Loss of a wrong label, by the true label. Default: 1. With costs that are no small multiples of one unit
        (`cost_units`) `rescalings` and `penalties` contain only margin rescaling and the linear penalty, and with
        ``loss="zero_one"`` not even those.
    allowed_transitions : bool array of shape (n_labels, n_labels), optional
        ``allowed_transitions[a, b]``: whether b may follow a. Default: always.
    allowed_first, allowed_last : bool arrays of shape (n_labels,), optional
        Labels allowed first and last.
    language : Automaton, optional
        Labellings that are allowed, in place of masks; see `structsvm.structures.languages`.
    rules : sequence of Automaton, optional
        Languages to all of which labellings belong, and which are too many for one automaton: for the best labelling
        and for margins, see `structsvm.oracles.enumeration.lazily`; without sums.

    Attributes
    ----------
    n_features : int
        Length of w: ``n_rows * stride`` (layout: see the head of `_viterbi.pyx`).
    stride : int
        Floats in a row: n_labels rounded up to a multiple of 8.

    Notes
    -----
    Exact for both rescalings. Margin rescaling costs T K^2 (order 2: T K^3); slack rescaling and
    quadratic penalties count errors in one more dimension and cost T times as much, with label costs as many times
    T as the mean cost is units. With a language N pairs of a label and a state of its automaton stand in place of
    labels, at a cost of T N K (order 2: T N K^2).

    Examples
    --------
    >>> import numpy as np
    >>> from structsvm.oracles.viterbi import ViterbiOracle
    >>> oracle = ViterbiOracle(n_labels=2, n_token_features=1)
    >>> w = np.zeros(oracle.n_features)
    >>> w[1] = 1.0
    >>> oracle.argmax(np.array([[1.0], [-1.0]]), w).tolist()
    [1, 0]
    """

    rescalings: tuple[Rescaling, ...] = ("margin", "slack")
    penalties: tuple[Penalty | None, ...] = ("linear", "quadratic", None)

    def __init__(
        self,
        n_labels: int,
        n_token_features: int,
        *,
        n_bigrams: int = 0,
        order: int = 1,
        end: bool = False,
        loss: str = "hamming",
        label_costs: ArrayLike | None = None,
        allowed_transitions: ArrayLike | None = None,
        allowed_first: ArrayLike | None = None,
        allowed_last: ArrayLike | None = None,
        language: Automaton | None = None,
        rules: Sequence[Automaton] = (),
    ) -> None:
        if order not in (1, 2):
            raise ValueError(f"The 'order' parameter of ViterbiOracle must be 1 or 2. Got {order!r} instead.")
        if loss not in ("hamming", "zero_one", "log"):
            raise ValueError(
                f"The 'loss' parameter of ViterbiOracle must be 'hamming', 'zero_one' or 'log'. Got {loss!r} instead."
            )
        triples = (n_labels + 1) * n_labels if order == 2 else 0
        super().__init__(
            n_labels,
            n_token_features,
            n_bigrams,
            order,
            n_labels + 2 + triples,
            loss,
            label_costs,
            allowed_transitions,
            allowed_first,
            allowed_last,
        )
        self.end = end
        if language is not None:
            if any(mask is not None for mask in self.allowed):
                raise ValueError("ViterbiOracle takes masks or a language; masks are one: Automaton.of_masks")
            if language.n_labels != n_labels:
                raise ValueError(
                    f"The 'language' parameter of ViterbiOracle must have {n_labels} labels. Got {language.n_labels} "
                    "instead."
                )
            self.language = language.minimal()
            if not (self.language.following >= 0).any():
                raise ValueError("The 'language' parameter of ViterbiOracle contains no sequence of labels")
        for rule in rules:
            if language is not None or rule.n_labels != n_labels:
                raise ValueError(
                    f"The 'rules' parameter of ViterbiOracle takes automata of {n_labels} labels beside masks"
                )
        self.rules = tuple(rule.minimal() for rule in rules)
        if loss == "log":
            self.rescalings = ()
        elif self.label_costs is not None:
            if loss == "zero_one":
                self.rescalings = ()
            elif self.cost_units is None:
                self.rescalings, self.penalties = ("margin",), ("linear",)

    @property
    def cost_units(self) -> tuple[float, NDArray[np.int32]] | None:
        """The largest unit of which all label costs are multiples, and these; None if one were above `MOST_UNITS`."""
        costs = np.ones(self.n_labels) if self.label_costs is None else self.label_costs
        for parts in range(1, MOST_UNITS + 1):
            unit = float(costs.min()) / parts
            units = np.rint(costs / unit)
            if units.max() > MOST_UNITS:
                break
            if np.allclose(units * unit, costs, rtol=1e-6, atol=0.0):
                return unit, units.astype(np.int32)
        return None

    def with_loss(self, loss: str) -> ViterbiOracle:
        """The same oracle with another loss."""
        transitions, first, last = self.allowed
        return ViterbiOracle(
            self.n_labels,
            self.n_token_features,
            n_bigrams=self.n_bigrams,
            order=self.order,
            end=self.end,
            loss=loss,
            label_costs=self.label_costs,
            allowed_transitions=transitions,
            allowed_first=first,
            allowed_last=last,
            language=self.language,
            rules=self.rules,
        )

    def check_formulation(self, rescaling: Rescaling | None, penalty: Penalty | None) -> None:
        try:
            super().check_formulation(rescaling, penalty)
        except UnsupportedFormulation as error:
            if self.label_costs is None:
                raise
            raise UnsupportedFormulation(
                f"{error}: label costs (class_weight) need the Hamming loss; the formulations that count errors need "
                f"costs that are multiples of one unit, up to {MOST_UNITS} of it, as 1 and 2.5"
            ) from None

    def bind(
        self, X: Any, Y: Any, *, rescaling: Rescaling | None = "margin", penalty: Penalty | None = "linear"
    ) -> ChainProblem:
        """Bind training sequences; see `Oracle.bind`.

        X is a `Tokens` or a list of 2-D arrays (length, n_token_features) or of `Tokens`; Y one flat int32 array of all
        labels, or a list of label arrays. Partly known labels: `KnownLabels`, or in the list boolean arrays (length,
        n_labels) of the allowed labels. With margin rescaling, the linear penalty and the Hamming loss only
        labels outside of a token's set, or wrong labels of known tokens, then count; otherwise those that differ from
        the completion.
        """
        self.check_formulation(rescaling, penalty)
        tokens = as_tokens(X, self.n_token_features)
        labels, known = KnownLabels.of(Y, tokens, self.n_labels)
        if self.loss_name == "log":
            check_few(self.rules, "the log loss, a sum over all labellings (loss='hamming' takes them)")
        if known is not None:
            check_few(self.rules, "labels that are known in part")
        kind = LazyProblem if self.rules else ChainProblem
        return kind(self, tokens, labels, known, rescaling=rescaling, penalty=penalty)

    @cached_property
    def n_joint_rules(self) -> int:
        """How many of the rules, the first ones, one automaton holds."""
        return joint(self.products.rules[0], self.rules)[1]

    def under(self, rules: frozenset[int]) -> ExactChain:
        """The same oracle under some of its rules; TooLarge if these alone are too many."""
        return under(self, rules)

    def refuse_sums(self) -> NoReturn:
        """Raise ValueError: sums over labellings need all rules at once."""
        raise ValueError(no_sums(self.rules))

    def chain(self, X: Any) -> LabelLattice:
        """Return a decoder for sequences without labels."""
        if self.rules:
            lazy: Any = LazyChain(self, as_tokens(X, self.n_token_features))
            return lazy
        return Chain(self, as_tokens(X, self.n_token_features))

    # ---- the protocol on single objects ---------------------------------------------------------

    def joint_feature(self, x: Any, y: ArrayLike) -> NDArray[np.float64]:
        tokens = as_tokens(x, self.n_token_features, single=True)
        y = self.check_labels(tokens, y)
        psi = self.emission(tokens, np.eye(self.n_labels)[y])
        first = self.n_token_features
        np.add.at(psi, (first + y[:-1], y[1:]), 1.0)
        psi[first + self.n_labels, y[0]] += 1.0
        if self.end:
            psi[first + self.n_labels + 1, y[-1]] += 1.0
        if self.order == 2:
            before = np.concatenate([[self.n_labels], y[:-2]])[: len(y) - 1]
            np.add.at(psi, (first + self.n_labels + 2 + before * self.n_labels + y[:-1], y[1:]), 1.0)
        if self.n_bigrams:
            self.add_bigrams(psi, tokens, self.pairs(y))
        return psi.ravel()

    def add_conjoined(self, psi: NDArray[np.float64], tokens: Any, rows: NDArray[np.float64]) -> None:
        pairs = rows.reshape(tokens.n_tokens, self.n_labels, self.stride)
        self.add_bigrams(psi, tokens, pairs[:, :, : self.n_labels])
