"""Solvers: schedules of steps on one shared state. None of them knows any structure."""

from structsvm.solvers.base import Solver
from structsvm.solvers.conditional_likelihood import ConditionalLikelihood
from structsvm.solvers.cutting_plane import CuttingPlane
from structsvm.solvers.elastic_likelihood import ElasticLikelihood
from structsvm.solvers.frank_wolfe import FrankWolfe
from structsvm.solvers.kernel.crammer_singer import CrammerSinger
from structsvm.solvers.kernel.huller import Huller
from structsvm.solvers.kernel.larank import KernelLaRank
from structsvm.solvers.kernel.lasvm import LaSVM
from structsvm.solvers.kernel.pairwise import Pairwise
from structsvm.solvers.kernel.perceptron import KernelPerceptron
from structsvm.solvers.kernel.weston_watkins import WestonWatkins
from structsvm.solvers.larank import LaRank
from structsvm.solvers.latent import LatentSVM
from structsvm.solvers.linear.sgdqn import SGDQN
from structsvm.solvers.linear.tracking import Tracking
from structsvm.solvers.passive_aggressive import PassiveAggressive
from structsvm.solvers.perceptron import Perceptron
from structsvm.solvers.run import Run
from structsvm.solvers.sparse_likelihood import SparseLikelihood

__all__ = [
    "SGDQN",
    "ConditionalLikelihood",
    "CrammerSinger",
    "CuttingPlane",
    "ElasticLikelihood",
    "FrankWolfe",
    "Huller",
    "KernelLaRank",
    "KernelPerceptron",
    "LaRank",
    "LaSVM",
    "LatentSVM",
    "Pairwise",
    "PassiveAggressive",
    "Perceptron",
    "Run",
    "Solver",
    "SparseLikelihood",
    "Tracking",
    "WestonWatkins",
]
