"""Templates of the features of spans, as text: what the weights of a node see of the words in its span and around it.

A template is one line of text, such as ``first-1.tag first.tag length``: parts side by side, conjoined.

======================  ========================================================================================
part                    sees
======================  ========================================================================================
``first.COLUMN``        that column of the span's first word; ``first-1.COLUMN``, ``first+1.COLUMN`` of words beside it
``last.COLUMN``         the same of the span's last word
``all.COLUMN``          the same of all its words, in any order; parts of ``all`` are conjoined word by word, so that
                        ``all.COLUMN all+1.COLUMN`` sees pairs of neighbours
``length``              the number of words: 1, 2, 3, 4, 5 to 6, 7 to 9, 10 to 14, 15 to 19, more
``split.COLUMN``        of a node's second child (of a rule made binary: all but the first) the first word; the word
                        before it is ``split-1``. A template of splits has no other parts.
``rule``                beside parts of ``split``: the binary rule (of one made binary: the node's category, and the two
                        children) at any of its splits; beside parts of ``first``: the same of the rest that is left
                        when a rule is made binary, ``first`` being the first word of the rest
======================  ========================================================================================

A template's value selects a row of weights, one per category, or with ``rule`` one per rule. ``length`` alone, and one
part of the column "terminal", have a row per value; all other values are hashed into the rows that all templates share:
one lot for categories, and another, of a 64th as many, for rules. Row numbers are sums,

    row(t, i, j) = first_row[t] + ((begin[i, t] + end[j, t] + length[j - i, t]) mod 2^32 >> shift[t]),

so the terms of i and of j are computed once per position. What all words of a span have is the difference of two sums
over the words before j and before i.

A column may have vectors instead of values. A template of one stands alone, ``last+1.COLUMN``: it has a row of weights
per number of the vector, and the score is their sum, each times its number; beyond the sentence there are zeros.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from structsvm.arrays import AnyArray

__all__ = ["SpanTemplates"]

TERMINAL = "terminal"
LENGTHS = (2, 3, 4, 5, 7, 10, 15, 20)  # where the next class of lengths begins, as in cky.h
MOST_TEMPLATES, MOST_PARTS = 256, 16
_PART = re.compile(r"(first|last|split|all)([+-][1-9])?\.(\w+)")
_SIDES = ("first", "last", "split")

# The features of a grammar's own terminals: exact, and of as many rows as there are terminals.
PLAIN = ("first.terminal", "last.terminal", "first-1.terminal", "last+1.terminal", "split.terminal", "length")


class _Part(NamedTuple):
    side: str
    offset: int
    column: int


class SpanTemplate(NamedTuple):
    """The columns that one template sees."""

    parts: tuple[_Part, ...]
    length: bool
    rule: bool

    @property
    def kind(self) -> int:
        """Group of the template: spans, splits, rules' splits, rests of rules. Templates are in this order."""
        is_split = bool(self.parts) and self.parts[0].side == "split"
        return (2 if is_split else 3) if self.rule else int(is_split)

    @property
    def is_table(self) -> bool:
        """Whether it has a row per value."""
        is_terminal = len(self.parts) == 1 and self.parts[0].column == 0 and not self.sees_all
        return not self.rule and (not self.parts or (is_terminal and not self.length))

    @property
    def sees_all(self) -> bool:
        """Whether it sees all words of a span."""
        return any(part.side == "all" for part in self.parts)

    @property
    def group(self) -> int:
        """The part of a span that it depends on, as in cky.h."""
        sides = {part.side for part in self.parts}
        if self.sees_all or len(sides) == 2:
            return 4
        return ("last" in sides) + 2 * self.length


class SpanTemplates:
    """Templates of a grammar's span features.

    Parameters
    ----------
    texts : sequence of str
    columns : sequence of str
        Columns of a word beside its terminal; "terminal" itself is always there. None are kept if no template sees any.
    bits : int
        Rows for hashed values: ``2**bits``, none if no template needs them. At least 1.
    n_terminals : int
    vectors : mapping of str to int, optional
        The columns that have vectors, and how many numbers.

    Attributes
    ----------
    n_spans, n_splits, n_rule_splits, n_rests : int
        Numbers of templates of spans and of splits, of rules at their splits and of rests of rules.
    n_keys, n_numbers : int
        Columns of `keys`; the last of them are the numbers of a word's vectors.
    n_rows, n_rule_rows, n_number_rows : int
        Rows of weights by category; by rule; by category, of numbers.
    of_vectors : int32 array of shape (n_vector_templates, 5)
        Templates of vectors: the word (0: the first, 1: the last, 2: that after the split), the offset from it; of the
        vector the first column among `keys`, how many numbers, and the first row.
    first_row, shift : int32 arrays of shape (n_templates,)
    lengths : uint32 array of shape (9, n_spans)
    group : int32 array of shape (n_spans,)
        Templates of spans by what they depend on: the begin alone, the end alone, these with the length, both.
    group_ptr : int32 array of shape (6,)
        Where each of the five groups begins.

    Raises
    ------
    ValueError
        For a malformed part or an unknown column; the message has the template.

    Examples
    --------
    >>> from structsvm.structures.spans import SpanTemplates
    >>> templates = SpanTemplates(["first.word last.word", "length", "split.terminal"], ["word"], bits=8, n_terminals=3)
    >>> templates.n_spans, templates.n_splits
    (2, 1)
    """

    def __init__(
        self,
        texts: Sequence[str],
        columns: Sequence[str] = (),
        bits: int = 1,
        n_terminals: int = 0,
        vectors: Mapping[str, int] | None = None,
    ) -> None:
        self.texts, self.columns = tuple(dict.fromkeys(" ".join(text.split()) for text in texts)), tuple(columns)
        self.n_terminals, self.vectors = n_terminals, dict(vectors or {})
        self.bits = bits
        of_vectors = [self._read_vector(text) for text in self.texts]
        read = [self._read(text) for text, part in zip(self.texts, of_vectors, strict=True) if part is None]
        templates = sorted(read, key=lambda one: one.kind)
        if not any(part.column for one in templates for part in one.parts):
            self.columns = ()
        if len(templates) > MOST_TEMPLATES:
            raise ValueError(f"{len(templates)} templates are more than {MOST_TEMPLATES}")
        counts = np.bincount([one.kind for one in templates], minlength=4).tolist()
        self.n_spans, self.n_splits, self.n_rule_splits, self.n_rests = counts
        # A template's own seed keeps it apart from the others. Numbers are the same in every process.
        seeds = _mixed(np.arange(len(templates), dtype=np.uint32) + np.uint32(0x7EED))
        self._number_rows(list(filter(None, of_vectors)), self.n_spans + len(templates))
        self._hashed_rows(templates)
        self._lengths_and_groups(templates[: self.n_spans], seeds)
        self._columns_of_keys(templates, seeds)

    def _number_rows(self, of_vectors: list[tuple[int, int, str]], n_hashed: int) -> None:
        """Give templates of vectors their columns among `keys`, behind those of hashes, and their rows."""
        self.n_numbers, self.n_number_rows = sum(self.vectors.values()) if of_vectors else 0, 0
        self.n_keys = n_hashed + self.n_numbers
        column = dict(zip(self.vectors, np.cumsum([n_hashed, *self.vectors.values()]).tolist(), strict=False))
        table = []
        for side, offset, name in of_vectors:
            table.append((side, offset, column[name], self.vectors[name], self.n_number_rows))
            self.n_number_rows += self.vectors[name]
        self.of_vectors = np.array(table, dtype=np.int32).reshape(-1, 5)

    def _hashed_rows(self, templates: list[SpanTemplate]) -> None:
        """Give templates their rows: tables their own, before those that all others share."""
        of_table = [self.n_terminals + 1 if one.parts else len(LENGTHS) + 1 for one in templates]
        sizes = [size if one.is_table else 0 for one, size in zip(templates, of_table, strict=True)]
        n_own, rule_bits, n_others = sum(sizes), max(self.bits - RULE_BITS, 1), self.n_spans + self.n_splits
        self.n_rows = n_own + (1 << self.bits if 0 in sizes[:n_others] else 0)
        self.n_rule_rows = 1 << rule_bits if n_others < len(templates) else 0
        first, shift = np.zeros((2, len(templates)), dtype=np.int32)
        for t, (one, size) in enumerate(zip(templates, sizes, strict=True)):
            first[t] = 0 if one.rule else sum(sizes[:t]) if size else n_own
            shift[t] = 0 if size else 32 - (rule_bits if one.rule else self.bits)
        self.first_row, self.shift = first, shift

    def _lengths_and_groups(self, of_spans: list[SpanTemplate], seeds: NDArray[np.uint32]) -> None:
        """Set the terms of templates of spans by the class of the length, and their order by what they depend on."""
        classes = np.arange(len(LENGTHS) + 1, dtype=np.uint32)
        self.lengths = np.zeros((len(classes), self.n_spans), dtype=np.uint32)
        for t, one in enumerate(of_spans):
            if one.length:
                self.lengths[:, t] = classes if one.is_table else _mixed(classes + seeds[t])
        groups = [one.group for one in of_spans]
        self.group = np.argsort(groups, kind="stable").astype(np.int32)
        self.group_ptr = np.searchsorted(np.sort(groups), np.arange(6)).astype(np.int32)

    def _columns_of_keys(self, templates: list[SpanTemplate], seeds: NDArray[np.uint32]) -> None:
        """Columns of `keys`: begins, ends, those of one position; each is a sum over one part or more.

        After them stand those of the word before a position, for templates of all words.
        """
        n_hashed = self.n_spans + len(templates)
        self._of_all = [t for t, one in enumerate(templates) if one.sees_all]
        groups: list[list[tuple[int, int, int, bool]]] = [[] for _ in range(n_hashed + len(self._of_all))]
        for t, one in enumerate(templates):
            for k, part in enumerate(one.parts):
                at = t + self.n_spans * (t >= self.n_spans or part.side != "first")
                if part.side == "all":
                    at = n_hashed + self._of_all.index(t)
                offset = part.offset - (part.side in ("last", "all"))
                seed = 0 if one.is_table else int(seeds[t]) + 0x9E37 * (k + 1)
                groups[at].append((offset, part.column, seed, one.is_table))
        nothing = (0, -1, 0, True)
        parts = [part for group in groups for part in group or [nothing]]
        self._starts = np.cumsum([0, *(max(len(group), 1) for group in groups)])[:-1]
        offsets, self._column, seeds_, is_table = map(np.array, zip(*(parts or [nothing]), strict=True))
        self._offset, self._seed, self._is_table = offsets, (seeds_ & 0xFFFFFFFF).astype(np.uint32), is_table
        self._reach = int(np.abs(offsets).max()) + 1

    @property
    def arrays(self) -> list[AnyArray]:
        """All that numbers of rows depend on; nothing for the templates that there were before there were others."""
        if self.texts in ((), PLAIN):
            return []
        hashed = [self.first_row, self.shift, self.lengths, self._starts, self._offset, self._column, self._seed]
        return [*hashed, self.of_vectors] if len(self.of_vectors) else hashed

    def _read_vector(self, text: str) -> tuple[int, int, str] | None:
        """The word, the offset and the column of a template of vectors; None of another one."""
        found = [part for part in map(_PART.fullmatch, text.split()) if part and part[3] in self.vectors]
        if not found:
            return None
        if len(text.split()) > 1:
            raise ValueError(f"template {text!r}: a vector stands alone, and {found[0][3]!r} has vectors")
        if found[0][1] not in _SIDES:
            raise ValueError(f"template {text!r}: 'all' sees no vectors, and {found[0][3]!r} has them")
        return _SIDES.index(found[0][1]), int(found[0][2] or 0), found[0][3]

    def _read(self, text: str) -> SpanTemplate:
        parts, flags = [], {"length": False, "rule": False}
        for word in text.split():
            if word in flags:
                flags[word] = True
                continue
            found = _PART.fullmatch(word)
            if found is None:
                raise ValueError(
                    f"template {text!r}: {word!r} is no part of one; expected 'length', 'rule', or a column after "
                    f"'first', 'last', 'all' or 'split', as in 'first.{TERMINAL}'"
                )
            names = (TERMINAL, *self.columns, *self.vectors)
            if found[3] not in names:
                raise ValueError(f"template {text!r}: no column {found[3]!r}; there are {', '.join(names)}")
            parts.append(_Part(found[1], int(found[2] or 0), names.index(found[3])))
        if len(parts) > MOST_PARTS:
            raise ValueError(f"template {text!r:.80}: {len(parts)} parts are more than {MOST_PARTS}")
        sides = {part.side for part in parts}
        if "split" in sides and (flags["length"] or len(sides) > 1):
            raise ValueError(f"template {text!r}: what is seen of a split stands alone")
        if flags["rule"] and (flags["length"] or sides not in ({"split"}, {"first"})):
            raise ValueError(f"template {text!r}: beside 'rule' stand parts of 'split' or of 'first', and no others")
        if not parts and not flags["length"]:
            raise ValueError(f"template {text!r}: it sees nothing")
        return SpanTemplate(tuple(parts), **flags)

    def keys(self, words: NDArray[np.int32], offsets: NDArray[np.int64] | None = None) -> NDArray[np.uint32]:
        """Keys that templates see at each position of sentences: begins, ends, splits and rules, side by side.

        Parameters
        ----------
        words : int32 array of shape (n_words, 1 + n_columns + n_numbers)
            Terminals and codes of all sentences, and the bits of their vectors' numbers, float32.
        offsets : int64 array of shape (n_sentences + 1,), optional
            Where sentences begin. None: there is one.

        Returns
        -------
        uint32 array of shape (n_words + n_sentences, n_keys)
            A sentence of n words has n + 1 positions.
        """
        offsets = np.array([0, len(words)]) if offsets is None else offsets
        border, sizes = self._reach, np.diff(offsets)
        # Sentences with a border of no words; the last column is always 0.
        sentence = np.repeat(np.arange(len(sizes)), sizes)
        padded = np.zeros((len(words) + 2 * border * len(sizes), words.shape[1] + 1), dtype=np.uint32)
        padded[:, 0] = self.n_terminals
        padded[np.arange(len(words)) + border * (2 * sentence + 1), :-1] = words
        sentence = np.repeat(np.arange(len(sizes)), sizes + 1)
        at = np.arange(len(words) + len(sizes)) - sentence + border * (2 * sentence + 1)
        n_hashed = self.n_keys - self.n_numbers
        found = np.empty((len(at), self.n_keys), dtype=np.uint32)
        of_words = np.empty((len(at), len(self._of_all)), dtype=np.uint32)
        for first in range(0, len(at), PIECE):
            part = at[first : first + PIECE, None] + self._offset
            seen = padded[part, self._column]
            seen = np.where(self._is_table, seen, _mixed(seen + self._seed))
            if len(self._starts):
                sums = np.add.reduceat(seen, self._starts, axis=1)
                found[first : first + PIECE, :n_hashed] = sums[:, :n_hashed]
                of_words[first : first + PIECE] = sums[:, n_hashed:]
        before = np.cumsum(_mixed(of_words), axis=0, dtype=np.uint32)
        for t, words_before in zip(self._of_all, before.T, strict=True):
            found[:, t] -= words_before
            found[:, self.n_spans + t] += words_before
        found[:, n_hashed:] = padded[at, 1 + len(self.columns) :][:, : self.n_numbers]
        return found

    def sentences(self, words: NDArray[np.int32], offsets: NDArray[np.int64]) -> tuple[Any, Any]:
        """Terminals and keys as compiled code has them: int32 arrays in one dimension."""
        return np.ascontiguousarray(words[:, 0]), self.keys(words, offsets).ravel().view(np.int32)

    def checked(self, words: Any, offsets: NDArray[np.int64] | None = None) -> tuple[Any, Any]:
        """The same of terminals, alone or with their codes; raises ValueError for anything else.

        offsets None: there is one sentence.
        """
        words = np.ascontiguousarray(words, dtype=np.int32)
        if len(words) == 0 or words.ndim > 2:
            raise ValueError("a sentence must have at least one word")
        rows = words[:, None] if words.ndim == 1 else words
        if not 0 <= rows[:, 0].min() <= rows[:, 0].max() < self.n_terminals:
            raise ValueError(f"terminals must lie in 0..{self.n_terminals - 1}")
        if rows.shape[1] <= len(self.columns) + self.n_numbers:
            more = f" and {self.n_numbers} numbers" * bool(self.n_numbers)
            raise ValueError(
                f"words need {len(self.columns)} codes{more} beside their terminals, got {rows.shape[1] - 1}"
            )
        return self.sentences(rows, np.array([0, len(rows)]) if offsets is None else offsets)

    @property
    def length_keys(self) -> NDArray[np.int32]:
        """`lengths` as compiled code has them."""
        return self.lengths.ravel().view(np.int32)

    def rows(self, keys: NDArray[np.uint32], i: int, j: int) -> NDArray[np.int64]:
        """The rows of a span; `keys` are its sentence's."""
        length = int(np.searchsorted(LENGTHS, j - i, side="right"))
        sums = keys[i, : self.n_spans] + keys[j, self.n_spans : 2 * self.n_spans] + self.lengths[length]
        shift = self.shift[: self.n_spans].astype(np.uint32)
        return self.first_row[: self.n_spans].astype(np.int64) + (sums >> shift).astype(np.int64)

    def numbers(
        self, keys: NDArray[np.uint32], first: int | None, last: int | None, split: int | None = None
    ) -> NDArray[np.float64]:
        """Counts of each row of numbers for a node whose span begins and ends with these words; for its split."""
        found = np.zeros(self.n_number_rows)
        for side, offset, column, size, row in self.of_vectors.tolist():
            word = (first, last, split)[side]
            if word is not None and 0 <= word + offset < len(keys) - 1:
                found[row : row + size] = keys[word + offset, column : column + size].copy().view(np.float32)
        return found

    def split_rows(self, keys: NDArray[np.uint32], k: int) -> NDArray[np.int64]:
        """The rows of a split before word k."""
        return self._rows_at(keys, k, self.n_spans, self.n_spans + self.n_splits)

    def rule_rows(self, keys: NDArray[np.uint32], k: int, rest: int | None) -> NDArray[np.int64]:
        """The rows, of those by rule, of a split before word k, and of a rest that begins at word `rest`."""
        first = self.n_spans + self.n_splits
        rows = self._rows_at(keys, k, first, first + self.n_rule_splits)
        first += self.n_rule_splits
        return rows if rest is None else np.append(rows, self._rows_at(keys, rest, first, first + self.n_rests))

    def _rows_at(self, keys: NDArray[np.uint32], k: int, first: int, end: int) -> NDArray[np.int64]:
        """The rows of templates of one position."""
        seen = keys[k, self.n_spans + first : self.n_spans + end] >> self.shift[first:end].astype(np.uint32)
        return self.first_row[first:end].astype(np.int64) + seen.astype(np.int64)


RULE_BITS = 6  # so many bits less for rows by rule, which are longer than those by category
PIECE = 256  # positions at a time: what is computed of them stays in the cache


def _mixed(x: Any) -> Any:
    """Hashes of uint32 numbers (the finaliser of MurmurHash 3)."""
    x = x ^ (x >> np.uint32(16))
    x = x * np.uint32(0x85EBCA6B)
    x = x ^ (x >> np.uint32(13))
    x = x * np.uint32(0xC2B2AE35)
    return x ^ (x >> np.uint32(16))


class Token(str):
    """A terminal's name that carries what templates see of the word: `codes`, one per column, and its vectors' numbers.

    `numbers` are a float32 array of one dimension, vectors side by side.
    """

    __slots__ = ("codes", "numbers")
    codes: tuple[int, ...]
    numbers: Any

    def __new__(cls, name: str, codes: tuple[int, ...], numbers: Any = ()) -> Self:
        token = super().__new__(cls, name)
        token.codes, token.numbers = codes, numbers
        return token

    def __getnewargs__(self) -> tuple[str, tuple[int, ...], Any]:  # type: ignore[override]
        return str(self), self.codes, self.numbers
