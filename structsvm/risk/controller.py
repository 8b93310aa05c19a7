"""Selective prediction: an output only where few of such outputs are wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal, cast

import numpy as np

from structsvm._warnings import AdviceWarning, warn
from structsvm.parameters import CALLABLE, RANDOM_STATE, Constraints, Options, declared, parameter
from structsvm.risk.base import SHARE, Promise
from structsvm.risk.bounds import selective_threshold
from structsvm.risk.losses import checked
from structsvm.risk.outputs import confidence, each, n_inputs, right_of, unwrapped
from structsvm.risk.parts import have_chances, known_parts, mean_chance, wrong_share

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from structsvm.arrays import Floats
    from structsvm.risk.wrapped import Estimator, Inputs, Outputs


@dataclass(frozen=True, eq=False)
class RiskCurve:
    """Risk against coverage on held-out outputs, from the surest output alone to all of them.

    Attributes
    ----------
    threshold : ndarray
        Confidences, descending; an entry per distinct one.
    coverage : ndarray
        The share of outputs of at least this confidence.
    risk : ndarray
        The mean loss of these.

    Examples
    --------
    >>> import numpy as np
    >>> from structsvm.risk import RiskCurve
    >>> RiskCurve.of(np.array([0.9, 0.8, 0.8]), np.array([0.0, 1.0, 0.0])).coverage.round(2).tolist()
    [0.33, 1.0]
    """

    threshold: Floats
    coverage: Floats
    risk: Floats

    @classmethod
    def of(cls, confidence: Floats, losses: Floats, weight: Floats | None = None) -> RiskCurve:
        """The curve of outputs with their losses and weights."""
        order = np.argsort(-confidence, kind="stable")
        sure, own = confidence[order], np.ones(len(order)) if weight is None else weight[order]
        last = np.append(np.flatnonzero(sure[1:] < sure[:-1]), len(order) - 1)
        mass, lost = np.cumsum(own)[last], np.cumsum(own * losses[order])[last]
        return cls(sure[last], mass / own.sum(), lost / np.maximum(mass, np.finfo(np.float64).tiny))


@declared
class RiskController(Promise):
    """Answers only where at most a share `alpha` of such answers is wrong, and None elsewhere.

    On outputs that the estimator has not seen, `calibrate` finds the lowest confidence above which, with probability
    ``1 - delta``, at most a share `alpha` of later outputs is wrong: whatever the estimator is, and for finitely many
    outputs. Assumed is that later outputs are drawn as these were. Wrong is an output that differs from the true one
    anywhere: a sentence with one wrong label is a wrong sentence. With ``loss="parts"`` it is the share of wrong parts
    in an answer that is at most `alpha` as a mean over later answers, with probability ``1 - delta``; of the parts of
    all answers together more may be wrong, where answers with many parts are wrong more often.

    Parameters
    ----------
    estimator : estimator
        One of `structsvm.tasks` that has probabilities or scores of outputs, a scikit-learn classifier, or a pipeline
        that ends in one. `calibrate` takes it fitted; `fit` trains a clone.
    alpha : float, default=0.01
        The greatest share of wrong answers, or the greatest mean loss of answers with another `loss`.
    delta : float, default=0.05
        The probability that the held-out outputs mislead, and more of the answers are wrong.
    confidence : callable or "auto", default="auto"
        ``confidence(estimator, X)`` returns a number per input, the greater the surer. "auto": the probability of the
        output where the estimator has one, otherwise how far its score is above the next one's; of a set of labels
        the least certain label's; with ``loss="parts"`` the mean probability of the parts where these have one.
    loss : {"wrong", "parts"} or callable, default="wrong"
        "wrong": 1 unless the output is the true one. "parts": the share of its parts that are not true (brackets of a
        tree, entities and other spans, arcs, labels of nodes and of sets, nodes of a taxonomy; see `LossController`), 0
        for an output without parts. Or ``loss(true, predicted)`` of one output, a number from 0 to 1.
    held_out : float, default=0.3
        The share of the examples of `fit` that are held out.
    random_state : int, RandomState or None, default=None
        For `fit`: which ones.

    Attributes
    ----------
    estimator_ : estimator
    threshold_ : float
        Answered is what has a confidence above this; infinity: nothing.
    coverage_ : float
        The share of held-out outputs that were answered.
    risk_ : float
        The share of wrong ones (the mean loss) among these; nan if there were none.
    n_calibration_ : int
        The number of held-out outputs.
    curve_ : RiskCurve
        Risk against coverage, for `structsvm.plotting.RiskCoverageDisplay`.
    reasons_ : list
        Per input of the last `predict`, None if it was answered, or why not.

    Examples
    --------
    >>> from structsvm.datasets import make_sequences
    >>> from structsvm.risk import RiskController
    >>> from structsvm.tasks import SequenceLabeler
    >>> X, y = make_sequences(400, random_state=0)
    >>> tagger = SequenceLabeler(C=0.1, random_state=0).fit(X[:200], y[:200])
    >>> careful = RiskController(tagger, alpha=0.5, delta=0.1).calibrate(X[200:300], y[200:300])
    >>> answers = careful.predict(X[300:])
    >>> len(answers), sum(answer is not None for answer in answers) > 0
    (100, True)
    """

    estimator: object = parameter(kw_only=False)
    alpha: float = parameter(SHARE, default=0.01)
    delta: float = parameter(SHARE, default=0.05)
    confidence: Literal["auto"] | Callable[[Estimator, Inputs], ArrayLike] = parameter(
        Options("auto"), CALLABLE, default="auto"
    )
    loss: Literal["wrong", "parts"] | Callable[[object, object], float] = parameter(
        Options("wrong", "parts"), CALLABLE, default="wrong"
    )
    held_out: float = parameter(SHARE, default=0.3)
    random_state: int | np.random.RandomState | None = parameter(*RANDOM_STATE, default=None)
    _constraints: ClassVar[Constraints]

    def _calibrate(self, estimator: Estimator, X: Inputs, y: Outputs, weight: Floats | None) -> dict[str, object]:
        estimator, X = unwrapped(estimator, X)
        predicted = estimator.predict(X)
        sure = self._sure(estimator, X, predicted)
        losses = self._losses(estimator, X, y, predicted)
        if weight is not None:  # without it, an output says nothing
            sure, losses, weight = sure[weight > 0.0], losses[weight > 0.0], weight[weight > 0.0]
        threshold = selective_threshold(sure, losses, self.alpha, self.delta, weight)
        passed, own = passing(sure, threshold), np.ones(len(sure)) if weight is None else weight
        curve = RiskCurve.of(sure, losses, weight)
        if not passed.any():
            self._say_nothing_passes(curve)
        return {
            "threshold_": threshold,
            "coverage_": float(own[passed].sum() / own.sum()),
            "risk_": float(np.average(losses[passed], weights=own[passed])) if own[passed].any() else np.nan,
            "n_calibration_": len(sure),
            "curve_": curve,
        }

    @property
    def _least(self) -> float:
        """The confidence above which outputs are given."""
        return cast("float", self.threshold_)

    def _say_nothing_passes(self, curve: RiskCurve) -> None:
        """Warn that no output is sure enough."""
        least = int(np.argmin(curve.risk[::-1]))
        at = len(curve.risk) - 1 - least
        warn(
            f"no threshold keeps the risk at alpha={self.alpha:g} with delta={self.delta:g}, and predict will answer "
            f"nothing: the least risk of held-out outputs is {curve.risk[at]:.4g}, of the surest "
            f"{100.0 * curve.coverage[at]:.3g} %; take a greater alpha, more held-out outputs, or a better estimator",
            AdviceWarning,
        )

    def _sure(self, estimator: Estimator, X: Inputs, predicted: Outputs) -> Floats:
        """The confidence of each output; ValueError unless these are numbers, one per input."""
        own = self.confidence
        found: ArrayLike = self._of_itself(estimator, X, predicted) if own == "auto" else own(estimator, X)
        sure = np.asarray(found, dtype=np.float64)
        if sure.shape != (n_inputs(X),) or np.isnan(sure).any():
            raise ValueError(
                f"confidence must return a number for each of {n_inputs(X)} inputs, got shape {sure.shape}"
                + " with nan" * bool(np.isnan(sure).any())
            )
        return sure

    def _of_itself(self, estimator: Estimator, X: Inputs, predicted: Outputs) -> Floats:
        """How sure the estimator itself is of each output, or of its parts."""
        if self.loss == "parts" and have_chances(estimator, known_parts(estimator)):
            return mean_chance(estimator, X, predicted)
        return confidence(estimator, X, predicted)

    def _losses(self, estimator: Estimator, X: Inputs, y: Outputs, predicted: Outputs) -> Floats:
        """The loss of each output; ValueError unless from 0 to 1."""
        if self.loss == "wrong":
            return 1.0 - right_of(estimator)(estimator, X, y, predicted)
        if self.loss == "parts":
            return wrong_share(estimator, X, y, predicted)
        own, pairs = self.loss, list(zip(each(y), each(predicted), strict=True))
        return checked((own(true, found) for true, found in pairs), range(len(pairs)))

    def predict(self, X: Inputs) -> list[object]:
        """Return per input the estimator's output, or None where it is not sure enough; see `reasons_`."""
        estimator, X = self._inputs(X)
        predicted = estimator.predict(X)
        sure = self._sure(estimator, X, predicted)
        pairs = zip(sure.tolist(), passing(sure, self._least).tolist(), strict=True)
        self.reasons_ = [None if passes else self._reason(own) for own, passes in pairs]
        return [output if own is None else None for output, own in zip(each(predicted), self.reasons_, strict=True)]

    def _reason(self, sure: float) -> str:
        """Why an output is not given."""
        if self._least == np.inf:
            return f"no confidence is high enough for alpha={self.alpha:g}"
        return f"its confidence {sure:.4g} is not above {self._least:.4g}, as alpha={self.alpha:g} asks"

    def predict_confidence(self, X: Inputs) -> Floats:
        """Return how sure the estimator is of each output: array (n_inputs,)."""
        estimator, X = self._inputs(X)
        return self._sure(estimator, X, estimator.predict(X))

    def score(self, X: Inputs, y: Outputs | None = None, sample_weight: ArrayLike | None = None) -> float:
        """Return the share of inputs that are answered rightly; with `loss` the mean of 1 less it, of None 0."""
        X, y, weight = self._asked(X, y, sample_weight)
        estimator, X = self._inputs(X)
        predicted = estimator.predict(X)
        passed = passing(self._sure(estimator, X, predicted), self._least)
        return float(np.average(passed * (1.0 - self._losses(estimator, X, y, predicted)), weights=weight))


def passing(sure: Floats, threshold: float) -> NDArray[np.bool_]:
    """Whether each output is answered: those that are surer than the threshold, all if it is minus infinity."""
    return (sure > threshold) | (threshold == -np.inf)
