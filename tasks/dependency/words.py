"""From the words of sentences to the codes that a parser's templates see."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from structsvm.features.word_codes import OwnColumns, code, shape
from structsvm.structures.dependencies import DependencyTree, Word
from structsvm.tasks.common.examples import split_text

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from typing import TypeAlias

    # A word as users give it: a string, a pair (form, tag), a dict of columns, or a `Word`; and a sentence of these.
    WordLike: TypeAlias = str | Sequence[str] | Mapping[str, object] | Word
    SentenceLike: TypeAlias = DependencyTree | str | Collection[WordLike]

# Columns of a word that templates can see: the form in lower case, the lemma, the tags (XPOS: where there is none,
# UPOS), the morphology, the first four and the last three letters, and the shape.
COLUMNS = ("form", "lemma", "upos", "xpos", "feats", "prefix", "suffix", "shape")
NOTHING = "_"
# The columns that users give, those after them come from the form; and what stands in for one that is not there.
GIVEN = COLUMNS[:5]
INSTEAD = {"lemma": "form", "xpos": "upos"}
FIELDS = frozenset(Word._fields)
KEPT = 1 << 16  # strings whose codes are kept at hand


@lru_cache(KEPT)
def codes_of(form: str, lemma: str, upos: str, xpos: str, feats: str) -> tuple[int, ...]:
    """The codes of a word's columns."""
    lower = form.lower()
    tag = upos if xpos == NOTHING else xpos
    base = lower if lemma == NOTHING else lemma
    return tuple(map(code, (lower, base, upos, tag, feats, lower[:4], lower[-3:], shape(form))))


def as_word(token: object) -> Word:
    """A word from what users write: a string, a pair (form, tag), a dict of columns, or a `Word`."""
    if isinstance(token, Word):
        return token
    if isinstance(token, str):
        word = Word(token)
    elif isinstance(token, Mapping):
        unknown = sorted(map(str, token.keys() - FIELDS))
        if unknown or "form" not in token:
            what = f"has no column {unknown[0]!r}" if unknown else "needs 'form'"
            raise ValueError(f"a word {what}; its columns are {', '.join(Word._fields)}")
        word = Word(**token)
    elif isinstance(token, (tuple, list)) and len(token) == 2:
        word = Word(token[0], upos=token[1])
    else:
        raise ValueError(f"a word must be a str, a pair (form, tag), a dict or a Word, got {token!r:.80}")
    for name in ("form", "lemma", "upos", "xpos", "feats"):
        if not isinstance(getattr(word, name), str):
            raise ValueError(f"a word's {name} must be a str, got {getattr(word, name)!r:.80}")
    if not word.form:
        raise ValueError("a word must have a form, got ''")
    return word


def words_of(sentence: SentenceLike) -> tuple[Word, ...]:
    """The words of a sentence: a `DependencyTree`, text cut at blanks, or a list of what `as_word` takes."""
    if isinstance(sentence, DependencyTree):
        return sentence.words
    words = split_text(sentence)
    if isinstance(words, (bytes, Mapping)) or not hasattr(words, "__len__"):
        raise ValueError(f"a sentence must be a list of words or a DependencyTree, got {sentence!r:.80}")
    return tuple(map(as_word, words))


def values_given(codes: NDArray[np.int32], names: Iterable[str]) -> dict[str, dict[int, int]]:
    """Per column how many words have each code, but for words that do not have the column."""
    found = {}
    for name in names:
        own = codes[:, COLUMNS.index(name)]
        found[name] = dict(zip(*(part.tolist() for part in np.unique(own[is_given(codes, name)], return_counts=True))))
    return found


def is_given(codes: NDArray[np.int32], name: str) -> NDArray[np.bool_]:
    """Whether words have a column, and not only what stands in for it."""
    return codes[:, COLUMNS.index(name)] != stand_in(codes, name)


def stand_in(codes: NDArray[np.int32], name: str) -> int | NDArray[np.int32]:
    """The codes of words that do not have a column: the form for the lemma, UPOS for XPOS."""
    instead = INSTEAD.get(name)
    return code(NOTHING) if instead is None else codes[:, COLUMNS.index(instead)]


def encoded(sentences: Iterable[SentenceLike], own: OwnColumns) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Return ``(codes, offsets)``: codes (n_words, n_codes) of all words, and where sentences begin.

    The user's own columns come last, of these the vectors, as the bits of float32.

    Raises
    ------
    ValueError
        For what is not a sentence; the message names its index.
    """
    rows: list[tuple[int, ...]] = []
    numbers: list[NDArray[np.float32]] = []
    ends = [0]
    for i, sentence in enumerate(sentences):
        try:
            words = words_of(sentence)
            more, vectors = own.values([word.form for word in words])
            if len(words):
                numbers.append(vectors)
            rows.extend(codes_of(*word[:5]) + codes for word, codes in zip(words, more, strict=True))
        except ValueError as error:
            raise ValueError(f"sentence {i}: {error}") from None
        ends.append(len(rows))
    width = len(COLUMNS) + len(own.names)
    codes = np.fromiter(chain.from_iterable(rows), dtype=np.int32, count=len(rows) * width).reshape(-1, width)
    if own.vectors:
        none = np.empty((0, sum(own.vectors.values())), dtype=np.float32)
        codes = np.hstack([codes, np.concatenate([none, *numbers]).view(np.int32)])
    return codes, np.array(ends, dtype=np.int64)
