"""The likely tags of words, for a parser that decides among them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from structsvm.tasks.grammar.estimator import GrammarParser

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from structsvm.features.columns import Columns

# A tag beside the likeliest one is handed on from this probability; MOST tags per word.
LEAST, MOST = 0.1, 3


def decides(parser: object) -> bool:
    """Whether a parser takes several tags of a word and finds the right one."""
    return isinstance(parser, GrammarParser) and parser.terminals == "predicted"


def check_no_blanks(tokens: Iterable[Iterable[tuple[str, str | None]]]) -> None:
    """Raise ValueError for a tag that is read as several; the message names its sentence."""
    for i, sentence in enumerate(tokens):
        tag = next((tag for _, tag in sentence if tag is not None and len(tag.split()) != 1), None)
        if tag is not None:
            raise ValueError(f"sentence {i}: the tag {tag!r:.80} must not have blanks, which stand between likely tags")


def given_by(tagger: Any, X: Columns, parser: object) -> list[list[str]]:
    """The tags of words as a parser takes them: the best labelling, or for a parser that decides among tags the likely
    ones of each word, the likeliest first, with blanks between them.

    Parameters
    ----------
    tagger : estimator
        One without probabilities (`temperature_`) has its best labelling alone.
    X : Columns
    parser : estimator
    """
    if not decides(parser) or getattr(tagger, "temperature_", None) is None:
        return [list(tags) for tags in tagger.predict(X)]
    names = np.array(tagger.classes_, dtype=object)
    return [_joined(names, chances) for chances in tagger.predict_marginals(X)]


def first_of(tags: str) -> str:
    """The likeliest of tags with blanks between them."""
    return tags.partition(" ")[0]


def _joined(names: NDArray[np.object_], chances: NDArray[np.float64]) -> list[str]:
    order = np.argsort(-chances, axis=1, kind="stable")[:, :MOST]
    likely = np.take_along_axis(chances, order, axis=1) >= LEAST
    likely[:, 0] = True
    return [" ".join(names[row[is_likely]]) for row, is_likely in zip(order, likely, strict=True)]
