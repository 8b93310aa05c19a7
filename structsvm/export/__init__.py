"""Predict-only runtime: chains over given weights, without scipy or scikit-learn."""

from structsvm.export._tagger import Lattice, Tagger

__all__ = ["Lattice", "Tagger"]
