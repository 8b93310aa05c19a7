"""Conformal sets of whole outputs: some of the k best, which have the true one as often as promised."""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING, ClassVar, TypeAlias, cast

import numpy as np

from structsvm.parameters import RANDOM_STATE, Constraints, Interval, declared, parameter
from structsvm.risk.base import SHARE, Promise, chosen
from structsvm.risk.bounds import conformal_quantile
from structsvm.risk.outputs import kind_of, right_of, unwrapped
from structsvm.tasks.common.inspection.confidence import has_probabilities

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from structsvm.arrays import Floats
    from structsvm.risk.wrapped import Estimator, Inputs, Outputs

# An output and its strangeness.
Ranked: TypeAlias = "tuple[object, float]"
# Kinds whose k best outputs always come with probabilities.
CERTAIN = ("semantics", "taxonomy")


@declared
class ConformalOutputs(Promise):
    """Predicts some of the k best outputs, so that the true one is among them with probability ``1 - alpha``.

    For trees, meanings, alignments, orders and labellings as a whole. Whatever the estimator is: on outputs that it has
    not seen, `calibrate` finds how probable all outputs before the true one are together (without probabilities, by how
    much it falls short of the best score), and `predict` returns the outputs up to there (split conformal prediction:
    Papadopoulos et al. 2002). It assumes that later outputs are drawn as the held-out ones were.

    Parameters
    ----------
    estimator : estimator
        One of `structsvm.tasks` that has `predict_kbest`, or a pipeline that ends in one. `calibrate` takes it fitted;
        `fit` trains a clone.
    alpha : float, default=0.1
        The probability that the truth is not in its set.
    k : int, default=20
        The most outputs in a set.
    held_out : float, default=0.3
        The share of the examples of `fit` that are held out.
    random_state : int, RandomState or None, default=None
        For `fit`: which ones.

    Attributes
    ----------
    estimator_ : estimator
    quantile_ : float
        The greatest probability of all better outputs (the greatest loss of score) of an output in a set.
    n_calibration_ : int
        The number of held-out outputs.

    Examples
    --------
    >>> from structsvm.datasets import make_orderings
    >>> from structsvm.risk import ConformalOutputs
    >>> from structsvm.tasks import ItemOrderer
    >>> X, y = make_orderings(60, 3, max_items=4, random_state=0)
    >>> orderer = ItemOrderer(C=0.1, random_state=0).fit(X[:30], y[:30])
    >>> sets = ConformalOutputs(orderer, alpha=0.2, k=24).calibrate(X[30:], y[30:]).predict(X[:1])
    >>> 1 <= len(sets[0]) <= 24
    True
    """

    estimator: object = parameter(kw_only=False)
    alpha: float = parameter(SHARE, default=0.1)
    k: int = parameter(Interval(Integral, 1), default=20)
    held_out: float = parameter(SHARE, default=0.3)
    random_state: int | np.random.RandomState | None = parameter(*RANDOM_STATE, default=None)
    _constraints: ClassVar[Constraints]

    def _calibrate(self, estimator: Estimator, X: Inputs, y: Outputs, weight: Floats | None) -> dict[str, object]:
        estimator, X = unwrapped(estimator, X)
        strange = strangeness_of_truth(estimator, X, y, self.k)
        quantile = conformal_quantile(strange, self.alpha, weight)
        if quantile == np.inf:
            raise ValueError(
                f"no sets of k={self.k} outputs have the true one with probability {1.0 - self.alpha:g}: it is among "
                f"them for {int(np.isfinite(strange).sum())} of {len(strange)} held-out inputs; take a greater k or "
                "alpha"
            )
        return {"quantile_": quantile, "n_calibration_": len(strange)}

    def predict(self, X: Inputs) -> list[list[object]]:
        """Return per input the outputs of its set, the best one first."""
        estimator, X = self._inputs(X)
        most = cast("float", self.quantile_)
        return [[one for one, strange in own if strange <= most] for own in ranked(estimator, X, self.k)]

    def score(self, X: Inputs, y: Outputs | None = None, sample_weight: ArrayLike | None = None) -> float:
        """Return the share of inputs that have their true output in their set."""
        X, y, weight = self._asked(X, y, sample_weight)
        estimator, X = self._inputs(X)
        inside = strangeness_of_truth(estimator, X, y, self.k) <= cast("float", self.quantile_)
        return float(np.average(inside, weights=weight))


def ranked(estimator: Estimator, X: Inputs, k: int) -> list[list[Ranked]]:
    """The k best outputs of each input with their strangeness: the probability of all better ones, or the margin."""
    if not hasattr(estimator, "predict_kbest"):
        raise TypeError(f"{type(estimator).__name__} has no k best outputs, only a best one")
    always = kind_of(estimator) in CERTAIN
    has_chances = always or has_probabilities(estimator)
    best = estimator.predict_kbest(X, k, **({"probabilities": True} if has_chances and not always else {}))
    found = list[list[Ranked]]()
    for own in best:
        scores = np.array([score for _, score in own])
        strange = np.cumsum(scores) - scores if has_chances else scores[:1] - scores
        found.append([(output, float(one)) for (output, _), one in zip(own, np.nan_to_num(strange, nan=np.inf))])
    return found


def strangeness_of_truth(estimator: Estimator, X: Inputs, y: Outputs, k: int) -> Floats:
    """The strangeness of each true output; infinity where it is none of the k best."""
    best = ranked(estimator, X, k)
    found, right = np.full(len(best), np.inf), right_of(estimator)
    is_meaning = kind_of(estimator) == "semantics"
    for rank in range(max(map(len, best), default=0)):
        asked = np.array([rank == 0 or rank < len(own) for own in best]) & np.isinf(found)
        if not asked.any():
            continue
        here = [best[i][rank] if best[i] else (None, np.inf) for i in np.flatnonzero(asked).tolist()]
        outputs = [[] if one is None else [one] if is_meaning else one for one, _ in here]
        agree = right(estimator, chosen(X, asked), chosen(y, asked), outputs)
        found[asked] = np.where(agree, [strange for _, strange in here], np.inf)
    return found
