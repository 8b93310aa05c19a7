"""Significance of scores of local alignments: bit scores and E-values.

Two unrelated strings of m and n letters have E = K m n exp(-lambda s) local alignments of score s or more on average,
and ``P(S >= s) = 1 - exp(-E)`` (Karlin and Altschul 1990). With gaps, lambda and K have no closed form: they are those
of greatest likelihood for the scores of random strings (Altschul and Gish 1996). With a_i = m_i n_i the log-likelihood
of N scores is

    sum_i [log(lambda K a_i) - lambda s_i - K a_i exp(-lambda s_i)],

so K = N / sum_i a_i exp(-lambda s_i), and lambda is where ``1 / lambda = mean(s) - sum_i p_i s_i``, for the weights p_i
proportional to a_i exp(-lambda s_i).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from structsvm.structures.gapped import as_string

if TYPE_CHECKING:
    from collections.abc import Iterable

    from structsvm.arrays import Floats
    from structsvm.tasks.alignment.estimator import SequenceAligner
    from structsvm.tasks.alignment.examples import String

__all__ = ["KarlinAltschul"]

# The mean score may grow by this times what it should, before alignments are said to grow with the strings' lengths.
MOST_GROWTH = 2.0


class KarlinAltschul(NamedTuple):
    """The distribution of the scores of unrelated strings; returned by `SequenceAligner.significance`.

    Attributes
    ----------
    decay : float
        lambda, per unit of score.
    K : float

    Examples
    --------
    >>> from structsvm.tasks.alignment.significance import KarlinAltschul
    >>> blast = KarlinAltschul(decay=0.267, K=0.041)  # of BLOSUM62, 11 and 1
    >>> blast.bits([60.0, 100.0]).round(1).tolist(), blast.evalues([60.0, 100.0], 250, 1e8).round(3).tolist()
    ([27.7, 43.1], [113.064, 0.003])
    """

    decay: float
    K: float

    def bits(self, scores: ArrayLike) -> Floats:
        """Bit scores, ``(lambda s - log K) / log 2``: E-values are ``m n 2^-bits``."""
        return (self.decay * np.asarray(scores, dtype=np.float64) - math.log(self.K)) / math.log(2.0)

    def evalues(self, scores: ArrayLike, m: ArrayLike, n: ArrayLike) -> Floats:
        """How many alignments of such a score unrelated strings of m and of n letters would have.

        For a search, n is the number of letters of all candidates together.
        """
        return np.multiply(m, n, dtype=np.float64) * np.exp2(-self.bits(scores))

    @classmethod
    def fit(cls, scores: ArrayLike, areas: ArrayLike) -> KarlinAltschul:
        """The parameters of greatest likelihood, of scores of unrelated strings and their m n.

        Raises
        ------
        ValueError
            There are no two different scores.
        """
        from scipy.optimize import brentq

        s, a = np.asarray(scores, dtype=np.float64), np.asarray(areas, dtype=np.float64)
        spread = float(s.std()) if len(s) else 0.0
        if not spread > 0.0:
            raise ValueError("all scores of unrelated strings are equal: these costs align nothing by chance")
        low = float(s.min())

        def weights(decay: float) -> NDArray[np.float64]:
            return a * np.exp(-decay * (s - low))

        def slope(decay: float) -> float:
            p = weights(decay)
            return 1.0 / decay - float(s.mean()) + float(p @ s / p.sum())

        # The standard deviation of this distribution is pi / (sqrt(6) lambda).
        first = math.pi / (math.sqrt(6.0) * spread)
        decay = float(brentq(slope, first / 100.0, first * 100.0))
        return cls(decay, float(len(s) / weights(decay).sum() * math.exp(decay * low)))


def fitted_to_chance(
    aligner: SequenceAligner, background: Iterable[String], n_pairs: int, length: int, rng: np.random.Generator
) -> KarlinAltschul:
    """Fit to pairs of random strings, half of them of that length and the others of half of it.

    Letters are drawn as they occur in `background`.
    """
    letters, counts = np.unique([*"".join(map(as_string, background))], return_counts=True)
    if not len(letters):
        raise ValueError("background has no letters")
    shares = counts / counts.sum()
    sizes = np.where(np.arange(n_pairs) % 2, length // 2, length)
    drawn = [["".join(rng.choice(letters, size=size, p=shares)) for size in sizes] for _ in range(2)]
    scores = np.concatenate(aligner.decision_function(drawn[0], [[z] for z in drawn[1]]))
    found = KarlinAltschul.fit(scores, sizes.astype(np.float64) ** 2)
    growth, due = scores[::2].mean() - scores[1::2].mean(), math.log(4.0) / found.decay
    if growth > MOST_GROWTH * due:
        raise ValueError(
            f"alignments of unrelated strings grow with their lengths, by {growth:.3g} from {length // 2} to {length} "
            f"letters: their scores have no E-values; gaps cost too little, or a pair of random letters scores too much"
        )
    return found
