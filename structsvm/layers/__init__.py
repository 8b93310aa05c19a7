"""Structures on scores that were computed elsewhere: inference, sums, samples, and losses with their gradients."""

from structsvm.layers.alignment import Alignment
from structsvm.layers.assignment import Assignment
from structsvm.layers.chain import Chain, label_language, scheme_masks
from structsvm.layers.decisions import Solver, regret, spo_plus
from structsvm.layers.label_sets import LabelSets
from structsvm.layers.losses import hinge, kl_divergence, log_loss, minimum_risk, perturbed, ramp, softmax_margin
from structsvm.layers.ordering import Ordering
from structsvm.layers.semi_markov import SemiMarkov
from structsvm.layers.spans import Spans
from structsvm.layers.sparsemap import sparsemap
from structsvm.layers.structure import Structure
from structsvm.layers.taxonomy import Taxonomy
from structsvm.layers.trees import Arborescence, Projective

__all__ = [
    "Alignment",
    "Arborescence",
    "Assignment",
    "Chain",
    "LabelSets",
    "Ordering",
    "Projective",
    "SemiMarkov",
    "Solver",
    "Spans",
    "Structure",
    "Taxonomy",
    "hinge",
    "kl_divergence",
    "label_language",
    "log_loss",
    "minimum_risk",
    "perturbed",
    "ramp",
    "regret",
    "scheme_masks",
    "softmax_margin",
    "sparsemap",
    "spo_plus",
]
