"""Solvers: schedules of steps on one shared state. None of them knows any structure."""

from structsvm.solvers.base import Run, Solver
from structsvm.solvers.larank import LaRank
from structsvm.solvers.passive_aggressive import PassiveAggressive
from structsvm.solvers.perceptron import Perceptron

__all__ = ["LaRank", "PassiveAggressive", "Perceptron", "Run", "Solver"]
