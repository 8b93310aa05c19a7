"""Solvers: schedules of steps on one shared state. None of them knows any structure."""

from structsvm.solvers.base import Run, Solver
from structsvm.solvers.cutting_plane import CuttingPlane
from structsvm.solvers.frank_wolfe import FrankWolfe
from structsvm.solvers.larank import LaRank
from structsvm.solvers.passive_aggressive import PassiveAggressive
from structsvm.solvers.perceptron import Perceptron

__all__ = ["CuttingPlane", "FrankWolfe", "LaRank", "PassiveAggressive", "Perceptron", "Run", "Solver"]
