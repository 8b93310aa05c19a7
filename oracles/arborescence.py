"""Dependency trees of any shape, by maximum spanning arborescences."""

from structsvm.oracles.dependency.arcs import DependencyOracle

__all__ = ["ArborescenceOracle"]


class ArborescenceOracle(DependencyOracle):
    """All trees, arcs may cross: Chu and Liu, Edmonds, in O(n^2); expectations by Kirchhoff's theorem.

    Parameters are those of `structsvm.oracles.dependency.arcs.DependencyOracle`. `structsvm.SlackSearch` around it has
    slack rescaling, approximately.

    References
    ----------
    R. McDonald, F. Pereira, K. Ribarov and J. Hajic, Non-projective dependency parsing using spanning tree algorithms,
    HLT-EMNLP 2005. T. Koo, A. Globerson, X. Carreras and M. Collins, Structured prediction models via the matrix-tree
    theorem, EMNLP 2007.

    Examples
    --------
    >>> import numpy as np
    >>> from structsvm.features.arc_templates import ArcTemplates
    >>> from structsvm.oracles.arborescence import ArborescenceOracle
    >>> oracle = ArborescenceOracle(1, ArcTemplates(["tag"], ["h.tag m.tag"], ["m.tag"]), arc_bits=4, row_bits=2)
    >>> oracle.argmax(np.array([[2], [3]], dtype=np.int32), np.zeros(oracle.n_features)).shape
    (2, 2)
    """

    projective = False
