"""Projective dependency trees, by Eisner's chart."""

from structsvm.oracles.dependency import DependencyOracle


class EisnerOracle(DependencyOracle):
    """Projective trees: no two arcs cross. O(n^3), and vectorised; expectations by inside and outside.

    Parameters are those of `structsvm.oracles.dependency.DependencyOracle`.

    References
    ----------
    J. Eisner, Three new probabilistic models for dependency parsing: an exploration, COLING 1996. R. McDonald,
    K. Crammer and F. Pereira, Online large-margin training of dependency parsers, ACL 2005.
    """

    projective = True
