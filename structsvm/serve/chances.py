"""Probabilities of spans, in time linear in the length of a text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from structsvm.tasks import SequenceLabeler

# Words from which on spans have the bound, where the exact probability is a pass over the text per span.
LONG = 300

SpanChance = tuple[int, int, str, float]


def span_chances(estimator: SequenceLabeler, X: Sequence[Sequence[str]]) -> list[list[SpanChance]]:
    """Return the spans ``(start, stop, label, probability)`` of texts, given by their words.

    The probability is exact for texts of fewer than `LONG` words, see `SequenceLabeler.predict_spans`, and for longer
    ones where it takes one pass for all spans. Elsewhere it is that of the least certain word's label, which it cannot
    exceed.
    """
    is_long = [len(words) >= LONG and not estimator.model_.has_quick_chances(len(words)) for words in X]
    short = [words for words, own in zip(X, is_long, strict=True) if not own]
    exact = iter(estimator.predict_spans(short, probabilities=True) if short else [])
    return [_bounds(estimator, words) if own else next(exact) for words, own in zip(X, is_long, strict=True)]


def _bounds(estimator: SequenceLabeler, words: Sequence[str]) -> list[SpanChance]:
    (spans,), (marginals,) = estimator.predict_spans([words]), estimator.predict_marginals([words])
    best = marginals.max(axis=1)
    return [(start, stop, label, float(best[start:stop].min())) for start, stop, label in spans]
