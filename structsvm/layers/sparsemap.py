"""SparseMAP: a maximum over mixtures of outputs, less half the squared norm of the mixture's first part.

    max_mu  <theta, mu> - |mu_1|^2 / 2,        mu = sum_v alpha_v v,  alpha on the simplex

An active set of outputs v: the best output at theta - mu_1 enters, which bounds what is missing (the gap), and weights
move from the worst to the best output of the set, by the exact step, until these are equally good.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from structsvm._warnings import warn
from structsvm.arrays import Floats
from structsvm.layers.losses import score_of_truth
from structsvm.layers.structure import Gradients, Parts, Scores, Structure, Values, expected
from structsvm.result import ConvergenceWarning

MOST_STEPS = 100_000  # between two maxima


class _Mixture:
    """The outputs of one entry that have a weight."""

    def __init__(self, output: Parts, score: float) -> None:
        self.outputs, self.weights = [output], np.ones(1)
        self.scores, self.firsts = np.array([score]), output[0].reshape(1, -1)

    def mean(self, part: int) -> Values:
        total: Values = np.tensordot(self.weights, np.stack([output[part] for output in self.outputs]), axes=1)
        return total

    def gains(self) -> Values:
        """The derivative of the objective by each weight."""
        gains: Values = self.scores - self.firsts @ (self.weights @ self.firsts)
        return gains

    def value(self) -> float:
        mean = self.weights @ self.firsts
        return float(self.weights @ self.scores - mean @ mean / 2)

    def add(self, output: Parts, score: float) -> None:
        self.outputs.append(output)
        self.weights, self.scores = np.append(self.weights, 0.0), np.append(self.scores, score)
        self.firsts = np.vstack([self.firsts, output[0].ravel()])

    def settle(self, tol: float, max_steps: int) -> None:
        """Move weights until no output gains more than `tol` over another that has a weight."""
        gram = self.firsts @ self.firsts.T
        for _ in range(max_steps):
            gains = self.scores - gram @ self.weights
            there = np.flatnonzero(self.weights)
            best, worst = int(gains.argmax()), int(there[gains[there].argmin()])
            rise = gains[best] - gains[worst]
            if rise <= tol:
                break
            bend = gram[best, best] + gram[worst, worst] - 2 * gram[best, worst]
            step = self.weights[worst] if rise >= bend * self.weights[worst] else rise / bend
            self.weights[best] += step
            self.weights[worst] -= step
        there = np.flatnonzero(self.weights)
        self.outputs = [self.outputs[k] for k in there.tolist()]
        self.weights, self.scores, self.firsts = self.weights[there], self.scores[there], self.firsts[there]


def sparsemap(
    structure: Structure,
    parts: Sequence[object],
    y: ArrayLike,
    lengths: ArrayLike | None = None,
    *,
    tol: float = 1e-6,
    max_iter: int = 1000,
    per_entry: bool = False,
) -> tuple[Values, Gradients]:
    """The Fenchel-Young loss of SparseMAP, whose probabilities are 0 for all but a few outputs.

    It needs maxima alone, so it is the probabilistic loss of matchings, too. The gradient is the mixture less the
    truth. Maxima of trees are rounded to float32, and so is their gap.
    Niculae and others (2018), "SparseMAP: differentiable sparse structured inference".

    Parameters
    ----------
    structure, parts, y, lengths, per_entry : as for `hinge`
    tol : float, default=1e-6
        The gap to the maximum, in units of the loss, of each entry.
    max_iter : int, default=1000
        Maxima of the batch. ConvergenceWarning, with the gap, if they do not suffice.

    Examples
    --------
    >>> import numpy as np
    >>> from structsvm.layers import Chain, sparsemap
    >>> parts = np.array([[[1.0, 0.6, -2.0]]]), np.zeros((3, 3))
    >>> values, (emissions, transitions) = sparsemap(Chain(), parts, [[0]])  # probabilities .7, .3 and 0
    >>> values.round(2).tolist(), emissions.round(2).tolist()
    ([0.09], [[[-0.3, 0.3, 0.0]]])
    """
    if not tol > 0 or max_iter < 1:
        raise ValueError(f"tol must be > 0 and max_iter at least 1. Got {tol} and {max_iter}.")
    given = structure.check(parts, lengths)
    truth = structure.check_output(y, given)
    scores = replace(given, parts=tuple(part.astype(np.float64) for part in given.parts))
    right = structure.indicators(truth, scores)
    own = score_of_truth(scores, right)
    mixtures = [_Mixture(tuple(part[b] for part in right), float(own[b])) for b in range(len(own))]
    if mixtures:
        _climb(structure, scores, mixtures, tol, max_iter)
    values = np.array([mixture.value() for mixture in mixtures]) - own + _flat(right[0] ** 2).sum(axis=1) / 2
    means = [np.array([mixture.mean(j) for mixture in mixtures]).reshape(part.shape) for j, part in enumerate(right)]
    mixed = [(mean - part).astype(given.parts[0].dtype) for mean, part in zip(means, right, strict=True)]
    return np.maximum(values, 0.0), given.gradients(per_entry, tuple(mixed))


def _climb(structure: Structure, scores: Scores, mixtures: list[_Mixture], tol: float, max_iter: int) -> None:
    """Add the best outputs of all entries and settle, until no entry has a gap above `tol`."""
    gaps = np.zeros(len(mixtures))
    for _ in range(max_iter):
        means = np.stack([mixture.mean(0) for mixture in mixtures])
        found = structure.indicators(structure.best(scores.plus(-means)), scores)
        values = expected(scores, found)
        gaps = (
            values - _flat(found[0] * means).sum(axis=1) - [mixture.weights @ mixture.gains() for mixture in mixtures]
        )
        for b in np.flatnonzero(gaps > tol).tolist():
            mixtures[b].add(tuple(part[b] for part in found), float(values[b]))
            mixtures[b].settle(tol / 2, MOST_STEPS)
        if gaps.max() <= tol:
            return
    warn(
        f"sparsemap has a gap of {gaps.max():.3g} after max_iter={max_iter} maxima, more than tol={tol:g}: raise "
        "max_iter, or tol.",
        ConvergenceWarning,
    )


def _flat(array: Floats) -> Floats:
    return array.reshape(len(array), -1 if array.size else 0)
