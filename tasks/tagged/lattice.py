"""A tagger's likely tags of each word, and the words as a parser takes them.

A parser that trusts the best labelling alone repeats its mistakes. The lattice of likely tags is handed on instead, the
likeliest first, and the parser learns what each set of them is worth. `GrammarParser` with ``terminals="predicted"``
finds the tags of its trees among all. `DependencyParser` has the likeliest tag in its columns and all of them as FEATS,
which its templates see in pairs of words. Other parsers have the best labelling.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from structsvm.structures.dependencies import Word
from structsvm.tasks.dependency.estimator import DependencyParser
from structsvm.tasks.grammar.estimator import GrammarParser
from structsvm.tasks.tagged.sentences import UPOS, word_of

if TYPE_CHECKING:
    from typing import Protocol

    from numpy.typing import NDArray

    from structsvm.features.columns import Columns

    class Tagger(Protocol):
        """A labeler of words; one without probabilities needs `predict` alone."""

        @property
        def classes_(self) -> Sequence[object]: ...
        def predict(self, X: Columns) -> Sequence[Sequence[str]]: ...
        def predict_marginals(self, X: Columns) -> list[NDArray[np.float64]]: ...


# A tag beside the likeliest one is handed on from this probability; MOST tags per word.
LEAST, MOST = 0.1, 3
BATCH = 256  # sentences whose probabilities, one a word and tag, are in memory at once
BESIDE = "|"  # between the likely tags of a word in its FEATS

Tags: TypeAlias = "tuple[str, ...]"
Tagged: TypeAlias = "tuple[str, str] | Word"


def likely_tags(tagger: Tagger, X: Columns, parser: object) -> list[list[Tags]]:
    """The likely tags of each word, the likeliest first; those of the best labelling alone for a parser that takes one.

    Parameters
    ----------
    tagger : estimator
    X : Columns
    parser : estimator
    """
    if not _has_lattice(tagger, parser):
        return [[(tag,) for tag in tags] for tags in tagger.predict(X)]
    names = np.array(tagger.classes_, dtype=object)
    return [
        _likely(names, chances)
        for start in range(0, len(X), BATCH)
        for chances in tagger.predict_marginals(X[np.arange(start, min(start + BATCH, len(X)))])
    ]


def _likely(names: NDArray[np.object_], chances: NDArray[np.float64]) -> list[Tags]:
    order = np.argsort(-chances, axis=1, kind="stable")[:, :MOST]
    is_likely = np.take_along_axis(chances, order, axis=1) >= LEAST
    is_likely[:, 0] = True
    return [tuple(names[row[kept]]) for row, kept in zip(order, is_likely, strict=True)]


def as_taken(
    tokens: Iterable[Iterable[tuple[str, object]]],
    tags: Iterable[Iterable[Tags]],
    columns: Sequence[str],
    tagger: object,
    parser: object,
) -> list[list[Tagged]]:
    """The words of sentences with likely tags, as a parser takes them."""
    make = _maker(columns, tagger, parser)
    return [
        [make(word, likely) for (word, _), likely in zip(sentence, found, strict=True)]
        for sentence, found in zip(tokens, tags, strict=True)
    ]


def _maker(columns: Sequence[str], tagger: object, parser: object) -> Callable[[str, Tags], Tagged]:
    """A function from a word and its likely tags to a token."""
    if decides(parser):
        return lambda word, tags: (word, " ".join(tags))
    if _has_lattice(tagger, parser):
        return lambda word, tags: _with_likely(word, tags, columns)
    if columns == (UPOS,):
        return lambda word, tags: (word, tags[0])
    return lambda word, tags: word_of(word, tags[0], columns)


def _with_likely(word: str, tags: Tags, columns: Sequence[str]) -> Word:
    """A word with its likeliest tag, and in FEATS the values that its likely tags have in the last column.

    UPOS stands in for a value that is not given.
    """
    found = [word_of(word, tag, columns) for tag in tags]
    values = dict.fromkeys(one.upos if getattr(one, columns[-1]) == "_" else getattr(one, columns[-1]) for one in found)
    return found[0]._replace(feats=BESIDE.join(values))


def decides(parser: object) -> bool:
    """Whether a parser finds the right one of several tags of a word."""
    return isinstance(parser, GrammarParser) and parser.terminals == "predicted"


def _has_lattice(tagger: object, parser: object) -> bool:
    """Whether a parser takes several tags of a word, and the tagger has their probabilities."""
    takes = _takes_feats(parser) or decides(parser)
    return takes and hasattr(tagger, "predict_marginals") and getattr(tagger, "temperature_", None) is not None


def _takes_feats(parser: object) -> bool:
    """Whether a parser of dependencies is yet to be trained, or was trained on words with FEATS."""
    if not isinstance(parser, DependencyParser) or not hasattr(parser, "model_"):
        return isinstance(parser, DependencyParser)
    seen = parser.model_.seen
    return seen is not None and seen.columns["feats"].share > 0


def check_no_blanks(tokens: Iterable[Iterable[tuple[str, str | None]]]) -> None:
    """Raise ValueError for a tag that would be read as several; the message names its sentence."""
    for i, sentence in enumerate(tokens):
        tag = next((tag for _, tag in sentence if tag is not None and len(tag.split()) != 1), None)
        if tag is not None:
            raise ValueError(f"sentence {i}: the tag {tag!r:.80} must not have blanks, which stand between likely tags")
