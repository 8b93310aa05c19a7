"""Projective dependency trees, by Eisner's chart."""

from structsvm.oracles.dependency import DependencyOracle


class EisnerOracle(DependencyOracle):
    """Projective trees: no two arcs cross. O(n^3), and vectorised; expectations by the inside-outside algorithm.

    Parameters are those of `structsvm.oracles.dependency.DependencyOracle`.

    References
    ----------
    J. Eisner, Three new probabilistic models for dependency parsing: an exploration, COLING 1996. R. McDonald,
    K. Crammer and F. Pereira, Online large-margin training of dependency parsers, ACL 2005.

    Examples
    --------
    >>> import numpy as np
    >>> from structsvm.features.arc_templates import ArcTemplates
    >>> from structsvm.oracles.eisner import EisnerOracle
    >>> oracle = EisnerOracle(1, ArcTemplates(["tag"], ["h.tag m.tag"], ["m.tag"]), arc_bits=4, row_bits=2)
    >>> oracle.argmax(np.array([[2], [3]], dtype=np.int32), np.zeros(oracle.n_features)).shape
    (2, 2)
    """

    projective = True
