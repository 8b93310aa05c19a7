"""Structures on scores that were computed elsewhere: inference, sums, samples, and losses with their gradients."""

from structsvm.layers.assignment import Assignment
from structsvm.layers.chain import Chain
from structsvm.layers.label_sets import LabelSets
from structsvm.layers.losses import hinge, log_loss, perturbed, ramp, softmax_margin
from structsvm.layers.semi_markov import SemiMarkov
from structsvm.layers.spans import Spans
from structsvm.layers.sparsemap import sparsemap
from structsvm.layers.structure import Structure
from structsvm.layers.taxonomy import Taxonomy
from structsvm.layers.trees import Arborescence, Projective

__all__ = [
    "Arborescence",
    "Assignment",
    "Chain",
    "LabelSets",
    "Projective",
    "SemiMarkov",
    "Spans",
    "Structure",
    "Taxonomy",
    "hinge",
    "log_loss",
    "perturbed",
    "ramp",
    "softmax_margin",
    "sparsemap",
]
