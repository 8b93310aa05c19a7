"""Guarantees: answers that are right as often as promised, for every estimator with scores or probabilities.

What is promised holds for finitely many held-out outputs and whatever the estimator is. It assumes that later outputs
are drawn as the held-out ones were.
"""

from structsvm.risk.best_outputs import ConformalOutputs
from structsvm.risk.controller import RiskController, RiskCurve
from structsvm.risk.loss_controller import LossController
from structsvm.risk.sets import ConformalSets
from structsvm.risk.spans import ConformalSpans

__all__ = ["ConformalOutputs", "ConformalSets", "ConformalSpans", "LossController", "RiskController", "RiskCurve"]
