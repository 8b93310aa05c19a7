"""Structures on scores that were computed elsewhere: inference, sums, samples, and losses with their gradients."""

from structsvm.layers.chain import Chain
from structsvm.layers.losses import hinge, log_loss, perturbed, ramp, softmax_margin
from structsvm.layers.structure import Structure

__all__ = ["Chain", "Structure", "hinge", "log_loss", "perturbed", "ramp", "softmax_margin"]
