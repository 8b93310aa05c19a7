"""From sentences and trees of either kind to words and tags.

A tagger has one label per word. Where training has two columns of tags, UPOS and XPOS (or FEATS, if there is no XPOS),
the label is their values side by side, so that they agree, and the parser gets them in their columns again. FEATS
beside XPOS were worth nothing with 2,000 sentences of UD English EWT, and doubled the tagger's time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from structsvm.features.columns import Columns
from structsvm.structures.dependencies import DependencyTree, Word
from structsvm.structures.trees import Tree, clean_tree, parse_tree
from structsvm.tasks.common.examples import check_no_words, split_text

if TYPE_CHECKING:
    from typing import TypeAlias

    # A sentence as users give it: a tree, bracketed text, text of words, or its words, each with its tag or without.
    SentenceLike: TypeAlias = Tree | DependencyTree | str | Sequence[str | Word | Sequence[str | None]]

# Columns of a word that are tags. Every word has the first one, others are "_" where they are not given.
UPOS = "upos"
COLUMNS = (UPOS, "xpos", "feats")
# A tagger's time grows with the square of the labels: of more pairs, UPOS alone is predicted.
MOST_LABELS = 128
BETWEEN = "\t"  # stands in no column of CoNLL-U


def columns_of(tokens: Iterable[Iterable[tuple[str, object]]]) -> Columns:
    """The words alone, as a tagger takes them."""
    return Columns.from_sequences([[(word,) for word, _ in sentence] for sentence in tokens])


def word_of(form: str, tag: str, columns: Sequence[str]) -> Word:
    """A word whose tag is the values of columns side by side; ValueError for one that is not."""
    values = tag.split(BETWEEN) if len(columns) > 1 else [tag]
    if len(values) != len(columns):
        raise ValueError(f"the tagger's label {tag!r:.80} of {form!r:.80} has not the columns {', '.join(columns)}")
    given = dict(zip(columns, values, strict=True))
    return Word(form, upos=given[UPOS], xpos=given.get("xpos", "_"), feats=given.get("feats", "_"))


def columns_in(X: Iterable[object]) -> tuple[str, ...]:
    """The columns of tags of sentences: UPOS, and another one if all words are `Word` and there are no more than
    `MOST_LABELS` pairs of values: XPOS if most words have it, or FEATS if some have.
    """
    words: list[Word] = []
    for sentence in X:
        tokens = sentence.words if isinstance(sentence, DependencyTree) else sentence
        if not isinstance(tokens, (list, tuple)) or not all(isinstance(token, Word) for token in tokens):
            return (UPOS,)
        words.extend(tokens)
    n_with = {name: sum(getattr(word, name) != "_" for word in words) for name in COLUMNS[1:]}
    more = ("xpos",) if 2 * n_with["xpos"] > len(words) else ("feats",) if n_with["feats"] else ()
    columns = (UPOS, *more)
    labels = {tuple(getattr(word, name) for name in columns) for word in words}
    return columns if len(labels) <= MOST_LABELS else (UPOS,)


def check_sentences(X: object) -> None:
    """Raise ValueError for what is no list of sentences."""
    if isinstance(X, (str, bytes)) or not isinstance(X, Sequence):
        raise ValueError(f"X must be a list of sentences, got {X!r:.80}")
    check_no_words(X)


def check_tags(tokens: Iterable[Sequence[tuple[str, object]]]) -> None:
    """Raise ValueError for a sentence without words, and a word without a tag, or with one that is not text."""
    for i, sentence in enumerate(tokens):
        if not sentence:
            raise ValueError(f"sentence {i}: it has no words")
        for word, tag in sentence:
            if tag in (None, "_"):
                raise ValueError(f"sentence {i}: {word!r} has no tag")
            if not isinstance(tag, str):
                raise ValueError(f"sentence {i}: a word's upos must be a str, got {tag!r:.80}")


def tokens_of(X: Sequence[SentenceLike], columns: Sequence[str] = (UPOS,)) -> list[list[tuple[str, str | None]]]:
    """The words of sentences with their tags, the values of these columns side by side; None where there are none.

    Raises
    ------
    ValueError
        For an invalid sentence or word; the message names its index.
    """
    check_sentences(X)
    found = []
    for i, sentence in enumerate(X):
        try:
            found.append(_tokens(sentence, columns))
        except ValueError as error:
            raise ValueError(f"sentence {i}: {error}") from None
    return found


def _tokens(sentence: object, columns: Sequence[str]) -> list[tuple[str, str | None]]:
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
            token = token.form, _tag_of(token, columns)
        elif isinstance(token, str):
            token = token, None
        if not (isinstance(token, (tuple, list)) and len(token) == 2 and isinstance(token[0], str)):
            raise ValueError(f"a word must be a str, a pair (word, tag) or a Word, got {token!r:.80}")
        found.append((token[0], token[1]))
    return found


def _tag_of(word: Word, columns: Sequence[str]) -> str | None:
    """The word's values of columns as one tag; None without UPOS."""
    if len(columns) == 1:
        return None if word.upos == "_" else word.upos
    values = [getattr(word, name) for name in columns]
    other = next((name for name, value in zip(columns, values, strict=True) if not isinstance(value, str)), None)
    if other is not None:
        raise ValueError(f"a word's {other} must be a str, got {getattr(word, other)!r:.80}")
    if any(BETWEEN in value for value in values):
        raise ValueError(f"a tag of the word {word.form!r:.80} has a tab: {values!r:.80}")
    return None if word.upos == "_" else BETWEEN.join(values)
