"""Decoding of alignments: the best one, or the one of which most pairs are expected to be right.

Q counts pairs of letters, and the alignment that scores best is not the one with the most right pairs: where several
ways through a stretch score alike, it takes one of them. With p ~ exp(beta score) each pair has a probability, the sum
over all alignments that have it, and the alignment with the greatest sum of its pairs' probabilities is expected to
have the most right ones (Do, Gross and Batzoglou 2006, section 2.4; Holmes and Durbin 1998).

The factor beta is the sharpness over the standard deviation of the scores of two letters, so that one sharpness serves
costs in all units. It is chosen with C: each C is judged by the decoding that aligns held-out pairs best.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from structsvm.tasks.common.selection.choice import ChosenDecoding
from structsvm.tasks.common.selection.search import Held, Search, difference, joined

if TYPE_CHECKING:
    from collections.abc import Sequence

    from structsvm.arrays import Floats
    from structsvm.tasks.common.selection.search import Part

# Decodings that `predict` may be asked for.
BEST, PAIRS = "best", "pairs"
# Sharpness: the usual one; factor of the steps to others; the standard errors by which each step must be better than
# the last, and expected pairs than the best alignment. With published costs .9 to 1.2 are alike on all proteins.
SHARPNESS, STEP, SURE = 1.0, 2.0**0.5, 1.0
# Values of sharpness that are tried lie within this factor of the first.
WIDEST = 8.0


def spread(table: Floats) -> float:
    """Standard deviation of the scores of two letters; 1 where all are equal."""
    return float(table.std()) or 1.0


class DecodedSearch(Search):
    """A search for C, where each value is judged by the decoding that is best for it.

    Attributes
    ----------
    decoding : ChosenDecoding
        The choice for the last value that was tried.
    """

    decoding: ChosenDecoding

    def _scores(self, parts: Sequence[Part]) -> Held:
        self._decode(parts, 0.0)
        best = super()._scores(parts)
        sharpness, pairs = self._climbed(parts)
        gain, error = difference(best, pairs)
        is_better = gain > SURE * error
        self.decoding = ChosenDecoding(sharpness if is_better else 0.0, (gain, error))
        self._decode(parts, self.decoding.sharpness)
        return pairs if is_better else best

    def _climbed(self, parts: Sequence[Part]) -> tuple[float, Held]:
        """The usual sharpness, or where steps up or down from it lead as long as each is surely better; its scores."""
        found, scores = SHARPNESS, self._decoded(parts, SHARPNESS)
        for factor in (STEP, 1.0 / STEP):
            while SHARPNESS / WIDEST < found * factor < SHARPNESS * WIDEST:
                others = self._decoded(parts, found * factor)
                gain, error = difference(scores, others)
                if gain <= SURE * error:
                    break
                found, scores = found * factor, others
            if found != SHARPNESS:
                break
        return found, scores

    def _decode(self, parts: Sequence[Part], sharpness: float) -> None:
        for part in parts:
            part.model.sharpness = sharpness

    def _decoded(self, parts: Sequence[Part], sharpness: float) -> Held:
        self._decode(parts, sharpness)
        return joined([part.held_out_scores() for part in parts])

    def keep(self) -> None:
        super().keep()
        self.others = (self.decoding,)
