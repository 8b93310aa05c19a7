"""Phrases: what several neighbouring tokens are called, as attributes of the segments that they make.

A token has names: its word in lower case, the shape of the word ("Xx" of "Madrid"), its part of speech. A phrase is a
run of 2 to M of one of these that occurs twice or more in the training text, in a segment or not: labels are ignored,
so that a phrase is as likely to be a segment where it is met again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import chain, groupby, islice, product
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from structsvm.features._tokens import known_runs
from structsvm.features.columns import Columns, Vocabulary
from structsvm.features.tokens import Tokens
from structsvm.stored_values import Array, Table, checked_arrays, strings

if TYPE_CHECKING:
    from typing import TypeAlias

    from structsvm.arrays import AnyArray, Integers
    from structsvm.tasks.sequence.examples import SequencesLike

    # The column, or the name of the feature, that a name is in, and what is made of it.
    Source: TypeAlias = tuple[int | str, str]

# Usual names of features: those that hold the word, and its part of speech.
WORDS = ("word", "w", "w[0]", "token", "form", "text", "word.lower()", "lower")
TAGS = ("pos", "postag", "tag", "upos", "pos[0]", "p[0]", "t[0]")
# Forms made of a name.
KINDS = ("lower", "shape", "same")
# Phrases are seen so often or more.
FEWEST_SEEN = 2
# Tokens that tell what features there are.
FIRST = 1000
# Texts whose numbers are remembered.
MOST_TEXTS = 1 << 16


class Phrases:
    """The phrases of a training text.

    Attributes
    ----------
    sources : list of (int or str, str)
        Of each kind of name: the column, or the name of the feature, that it is in, and what is made of it ("lower",
        "shape", "same").
    names : list of list of str
        The distinct names of each kind.
    keys : list of list of int64 arrays
        By kind, for phrases of 2, 3, ... M names, ascending: the number of the phrase without its last name (of one
        name: its number) times the number of names, plus that of the last one.
    """

    def __init__(
        self, sources: Sequence[Source], names: list[list[str]], keys: list[list[Integers]], max_length: int
    ) -> None:
        self.sources, self.names, self.keys, self.max_length = sources, names, keys, max_length

    @classmethod
    def fit(
        cls, X: SequencesLike, tokens: Tokens, max_length: int, *, are_columns: bool = False
    ) -> tuple[Self, Tokens]:
        """Number the phrases of encoded sequences, and return them with the sequences'.

        `are_columns`: whether tokens are tuples of columns.
        """
        sources = _sources(X, are_columns=are_columns)
        self = cls(sources, [], [], max_length)
        grown = [_Grown(tokens.offsets, *_names(X, source, tokens.n_tokens)) for source in sources]
        for one in grown:
            one.start()
            self.names.append(list(one.number))
            self.keys.append([one.grow() for _ in range(2, max_length + 1)])
        return self, self._gathered(tokens, grown)

    def transform(self, X: SequencesLike, tokens: Tokens) -> Tokens:
        """The phrases of encoded sequences, by the token that they end at."""
        names = [self._numbered(X, k, tokens.n_tokens) for k in range(len(self.sources))]
        indptr, ids = known_runs(tokens.offsets, names, [len(names) for names in self.names], self.keys)
        return Tokens(tokens.offsets, indptr, ids, None, int(self.starts[-1]))

    def _numbered(self, X: Any, k: int, n_tokens: int) -> NDArray[np.int64]:
        """The number of each token's name of a kind; -1: it has none that is known."""
        where, _ = source = self.sources[k]
        if isinstance(X, Columns):
            ids, texts = _names(X, source, n_tokens)
            return np.array([*(self.numbers[k].get(text, -1) for text in texts), -1], dtype=np.int64)[ids]
        tokens, known = chain.from_iterable(X), self._known[k]
        found = [token.get(where) if type(token) is dict else _text(token, where) for token in tokens]
        numbers = [known[text] if type(text) is str and text in known else self._looked_up(k, text) for text in found]
        return np.array(numbers, dtype=np.int64)

    def _looked_up(self, k: int, text: object) -> int:
        """The number of the name that a text makes."""
        if not isinstance(text, str):
            return -1
        number = self.numbers[k].get(MADE[self.sources[k][1]](text), -1)
        if type(text) is str and len(self._known[k]) < MOST_TEXTS:
            self._known[k][text] = number
        return number

    @cached_property
    def _known(self) -> list[dict[str, int]]:
        """The numbers that were looked up, by kind and text."""
        return [{} for _ in self.sources]

    @cached_property
    def numbers(self) -> list[dict[str, int]]:
        """The number of each name, by kind."""
        return [{name: k for k, name in enumerate(names)} for names in self.names]

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """The number of phrases that are shorter than m + 1, for m = 0 .. M."""
        sizes = [sum(len(keys[m]) for keys in self.keys) for m in range(self.max_length - 1)]
        return np.concatenate([[0, 0], np.cumsum(sizes, dtype=np.int64)]).astype(np.int64)

    def name_of(self, number: int) -> str:
        """The names that make a phrase."""
        for m, (names, keys) in product(range(self.max_length - 1), list(zip(self.names, self.keys))):
            if number < len(keys[m]):
                last: list[str] = []
                for key in reversed(keys[: m + 1]):
                    number, k = divmod(int(key[number]), len(names))
                    last.insert(0, names[k])
                return " ".join([names[number], *last])
            number -= len(keys[m])
        raise IndexError(number)

    def _gathered(self, tokens: Tokens, grown: list[_Grown]) -> Tokens:
        """Numbers ascend by length, then by kind."""
        ends, ids, first = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], 0
        for m in range(self.max_length - 1):
            for one, keys in zip(grown, self.keys, strict=True):
                at, number = one.found[m]
                ends.append(at)
                ids.append(first + number)
                first += len(keys[m])
        end = np.concatenate(ends)
        order = np.argsort(end, kind="stable")
        indptr = np.concatenate([[0], np.cumsum(np.bincount(end, minlength=tokens.n_tokens))]).astype(np.int64)
        return Tokens(tokens.offsets, indptr, np.concatenate(ids)[order].astype(np.int32), None, first)

    # ---- model files ----------------------------------------------------------------------------

    def to_arrays(self) -> dict[str, AnyArray]:
        """Names and keys as named arrays."""
        arrays: dict[str, AnyArray] = {}
        for k, (names, keys) in enumerate(zip(self.names, self.keys, strict=True)):
            vocabulary = Vocabulary.from_strings(names)
            arrays[f"{k}.names"], arrays[f"{k}.starts"] = vocabulary.data, vocabulary.starts
            arrays |= {f"{k}.keys.{m}": array for m, array in enumerate(keys, start=2)}
        return arrays

    @classmethod
    def from_arrays(cls, sources: Sequence[Source], arrays: dict[str, AnyArray], max_length: int) -> Self:
        """The inverse of `to_arrays`; ValueError for what it cannot have written."""
        names: list[list[str]] = []
        keys: list[list[Integers]] = []
        for k in range(len(sources)):
            stored = checked_arrays(arrays, strings(f"{k}.names", f"{k}.starts", "n_names"))
            names.append(Vocabulary(stored[f"{k}.names"], stored[f"{k}.starts"]).tolist())
            keys.append([])
            n = before = len(names[k])
            if len(set(names[k])) != n:
                raise ValueError(f"names of phrases {k} have a name twice")
            for m in range(2, max_length + 1):
                name = f"{k}.keys.{m}"
                table: Table = {name: Array("i8", ("n",), within=(0, before * n))}
                keys[k].append(checked_arrays(arrays, table)[name])
                before = len(keys[k][-1])
                if (keys[k][-1][1:] <= keys[k][-1][:-1]).any():
                    raise ValueError(f"array {name!r} must ascend")
        return cls(sources, names, keys, max_length)


def sources_from(stored: object) -> list[Source]:
    """The sources of a header, a list of lists; ValueError for what `Phrases` cannot have."""
    if not isinstance(stored, list) or not all(
        isinstance(source, list)
        and len(source) == 2
        and (type(source[0]) is str or (type(source[0]) is int and source[0] >= 0))
        and source[1] in KINDS
        for source in stored
    ):
        raise ValueError(f"sources of phrases {stored!r:.80}")
    return [tuple(source) for source in stored]


class _Grown:
    """Runs of names of one kind, of ever more tokens: `grow` makes those of one more."""

    def __init__(self, offsets: Integers, ids: Integers, texts: Sequence[str]) -> None:
        self.ids, self.texts = ids, texts
        self.place = np.arange(len(ids)) - np.repeat(offsets[:-1], np.diff(offsets))
        self.found: list[tuple[NDArray[np.intp], NDArray[np.intp]]] = []
        self.length = 1

    def start(self) -> None:
        """Set what names tokens have: those that are seen often enough."""
        counts = np.bincount(self.ids[self.ids >= 0], minlength=len(self.texts))
        number = {self.texts[k]: n for n, k in enumerate(np.flatnonzero(counts >= FEWEST_SEEN).tolist())}
        of_text = np.array([*(number.get(text, -1) for text in self.texts), -1], dtype=np.int64)
        self.number, self.n = number, len(number)
        self.of_token = self.runs = of_text[self.ids]

    def grow(self) -> Integers:
        """The numbers of the runs of one more token, by the last of these; returns their keys."""
        self.length += 1
        at = np.flatnonzero((self.place >= self.length - 1) & (self.of_token >= 0))
        at = at[self.runs[at - 1] >= 0]
        key = self.runs[at - 1] * self.n + self.of_token[at]
        every, counts = np.unique(key, return_counts=True)
        known: Integers = every[counts >= FEWEST_SEEN]
        number = np.searchsorted(known, key)
        is_known = np.zeros(len(key), dtype=bool)
        inside = number < len(known)
        is_known[inside] = known[number[inside]] == key[inside]
        self.runs = np.full(len(self.runs), -1, dtype=np.int64)
        self.runs[at[is_known]] = number[is_known]
        self.found.append((at[is_known], number[is_known]))
        return known


def shape(word: str) -> str:
    """Shape of a word: "Xx" for "Madrid", "d-x" for "19-year"."""
    marks = ("X" if c.isupper() else "x" if c.islower() else "d" if c.isdigit() else c for c in word)
    return "".join(mark for mark, _ in groupby(marks))


MADE: dict[str, Callable[[str], str]] = {"lower": str.lower, "shape": shape, "same": str}


_OF_COLUMNS: list[Source] = [(0, "lower"), (0, "shape"), (1, "same")]


def _sources(X: SequencesLike, *, are_columns: bool) -> list[Source]:
    """Where names are found: the first two columns, or the features that have usual names."""
    if isinstance(X, Columns):
        return _OF_COLUMNS[: 2 if X.n_columns == 1 else 3]
    tokens = list(islice(chain.from_iterable(X), FIRST)) if isinstance(X, (list, tuple)) else []
    if are_columns:
        return _OF_COLUMNS[: 3 if tokens and isinstance(tokens[0], tuple) and len(tokens[0]) > 1 else 2]
    names = {name for token in tokens for name, _ in _attributes(token)}
    word = next((name for name in WORDS if name in names), None)
    tag = next((name for name in TAGS if name in names), None)
    found: list[Source] = [] if word is None else [(word, "lower"), (word, "shape")]
    return found if tag is None else [*found, (tag, "same")]


def _attributes(token: object) -> list[tuple[str, str]]:
    """The features of a token that have a name and a text."""
    if isinstance(token, dict):
        return [(name, value) for name, value in token.items() if isinstance(value, str)]
    if not isinstance(token, (list, tuple, set, frozenset)):
        return []
    parts = (attribute.partition("=") for attribute in token if isinstance(attribute, str))
    return [(name, value) for name, mark, value in parts if mark]


def _names(X: Any, source: tuple[Any, str], n_tokens: int) -> tuple[NDArray[np.int64], list[str]]:
    """``(ids, texts)``: the number of each token's name among the distinct ones; -1: it has none."""
    where, kind = source
    made = MADE[kind]
    if isinstance(X, Columns):
        if where >= X.n_columns:
            return np.full(n_tokens, -1, dtype=np.int64), []
        of_text: dict[str, int] = {}
        ids = [of_text.setdefault(made(text), len(of_text)) for text in X.vocabularies[where].tolist()]
        return np.array(ids, dtype=np.int64)[X.ids[:, where]], list(of_text)
    numbers: dict[str, int] = {}
    texts = (_text(token, where) for token in chain.from_iterable(X))
    found = [-1 if text is None else numbers.setdefault(text, len(numbers)) for text in texts]
    of_text = {}
    ids = [of_text.setdefault(made(text), len(of_text)) for text in numbers]
    return np.array([*ids, -1], dtype=np.int64)[np.array(found, dtype=np.int64)], list(of_text)


def _text(token: object, where: int | str) -> str | None:
    """The text of a token in a column, or that of a feature."""
    if isinstance(where, int):
        parts = (token,) if isinstance(token, str) else token
        return parts[where] if isinstance(parts, tuple) and where < len(parts) else None
    if isinstance(token, dict):
        text = token.get(where)
        return text if isinstance(text, str) else None
    return min((text for name, text in _attributes(token) if name == where), default=None)
