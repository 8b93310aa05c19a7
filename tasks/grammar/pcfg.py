"""The generative baseline: a probabilistic context-free grammar, estimated by relative frequencies."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from structsvm.arrays import Floats
    from structsvm.structures.grammar import Grammar


def pcfg_weights(grammar: Grammar, counts: Floats, smoothing: float = 0.0) -> Floats:
    """Logarithms of rule probabilities, (count + smoothing) / (their sum over the rules of the left-hand side).

    Parameters
    ----------
    grammar : Grammar
    counts : ndarray of shape (len(grammar.features),)
        Occurrences of each rule.
    smoothing : float
        Added to every count (Laplace: 1). 0 is the maximum of the likelihood.

    Returns
    -------
    ndarray of shape (len(grammar.features),), float64
        Where a left-hand side has no counts at all, its rules are equally probable.

    Raises
    ------
    ValueError
        `smoothing` is not a number of at least 0; or it is 0 and a rule never occurs: its probability is 0, and its
        weight not finite.
    """
    if not 0.0 <= smoothing < np.inf:
        raise ValueError(f"smoothing must be a number in [0, inf). Got {smoothing!r} instead.")
    sides: dict[str, int] = {}
    lhs = np.array([sides.setdefault(lhs, len(sides)) for lhs, _ in grammar.features])
    smoothed = np.asarray(counts, dtype=np.float64) + smoothing
    smoothed[(np.bincount(lhs, weights=smoothed) == 0.0)[lhs]] = 1.0
    if (smoothed == 0.0).any():
        rule = grammar.features[int(np.argmin(smoothed))]
        raise ValueError(f"the rule {rule} never occurs: its probability needs smoothing > 0")
    return np.log(smoothed / np.bincount(lhs, weights=smoothed)[lhs])
