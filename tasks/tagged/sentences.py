"""From sentences and trees of either kind to words and tags, and back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, TypeVar

from structsvm.features.columns import Columns
from structsvm.structures.dependencies import DependencyTree, Word
from structsvm.structures.trees import Tree, clean_tree, parse_tree
from structsvm.tasks.common.examples import check_no_words, split_text

if TYPE_CHECKING:
    from typing import TypeAlias

    # A sentence as users give it: a tree, bracketed text, text of words, or its words, each with its tag or without.
    SentenceLike: TypeAlias = Tree | DependencyTree | str | Sequence[str | Word | Sequence[str | None]]

T = TypeVar("T")


def columns_of(tokens: Iterable[Iterable[tuple[str, object]]]) -> Columns:
    """The words alone, as a tagger takes them."""
    return Columns.from_sequences([[(word,) for word, _ in sentence] for sentence in tokens])


def with_tags(tokens: Iterable[Iterable[tuple[str, object]]], tags: Iterable[Iterable[T]]) -> list[list[tuple[str, T]]]:
    """The words of sentences with other tags."""
    return [
        [(word, tag) for (word, _), tag in zip(sentence, found, strict=True)]
        for sentence, found in zip(tokens, tags, strict=True)
    ]


def tokens_of(X: Sequence[SentenceLike]) -> list[list[tuple[str, str | None]]]:
    """The words of sentences with their tags, None where there are none.

    Raises
    ------
    ValueError
        For an invalid sentence or word; the message names its index.
    """
    if isinstance(X, (str, bytes)) or not isinstance(X, Sequence):
        raise ValueError(f"X must be a list of sentences, got {X!r:.80}")
    check_no_words(X)
    found = []
    for i, sentence in enumerate(X):
        try:
            found.append(_tokens(sentence))
        except ValueError as error:
            raise ValueError(f"sentence {i}: {error}") from None
    return found


def _tokens(sentence: object) -> list[tuple[str, str | None]]:
    if isinstance(sentence, str):
        sentence = parse_tree(sentence) if sentence.lstrip().startswith("(") else split_text(sentence)
    if isinstance(sentence, Tree):
        cleaned = clean_tree(sentence)
        return [] if cleaned is None else cleaned.tokens()
    words = sentence.words if isinstance(sentence, DependencyTree) else sentence
    if not isinstance(words, Sequence):
        raise ValueError(f"it must be a list of words or a tree, got {sentence!r:.80}")
    found: list[tuple[str, str | None]] = []
    for token in words:
        if isinstance(token, Word):
            token = token.form, token.upos
        elif isinstance(token, str):
            token = token, None
        if not (isinstance(token, (tuple, list)) and len(token) == 2 and isinstance(token[0], str)):
            raise ValueError(f"a word must be a str, a pair (word, tag) or a Word, got {token!r:.80}")
        found.append((token[0], token[1]))
    return found
