"""Dependency trees; CoNLL-U, the format of Universal Dependencies, in and out; CoNLL-X and CoNLL-2009 in.

CoNLL-X (2006 and 2007) has ten columns too: CPOSTAG, POSTAG, PHEAD and PDEPREL are read as UPOS, XPOS, DEPS and MISC.
CoNLL-2009 has fourteen and more: of LEMMA, POS and FEAT, of which a parser has the predicted ones only, the words get
those of PLEMMA, PPOS and PFEAT where these are given, with the tag as UPOS; HEAD and DEPREL are the true ones.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from itertools import accumulate
from typing import BinaryIO, NamedTuple

from structsvm._warnings import AdviceWarning, warn
from structsvm.features.sources import load_text
from structsvm.features.text.encodings import NotTextError
from structsvm.files.new_file import new_file
from structsvm.parameters import printable

__all__ = [
    "ConlluError",
    "DependencyTree",
    "Word",
    "crossing_arcs",
    "parse_conllu",
    "read_conllu",
    "what_is_no_tree",
    "with_one_root",
    "write_conllu",
]

N_COLUMNS = 10
# CoNLL-2009: its fewest columns, and those of form, lemma, tag, features, head and relation; predicted ones follow.
N_OF_2009 = 14
FORM, LEMMA, TAG, FEATS, HEAD, RELATION = 1, 2, 4, 6, 8, 10
SENT_ID = re.compile(r"#\s*sent_id\s*=")
UNKNOWN = -1  # a head that is not known
PLAIN_WORDS = "plain words are for TaggedParser, whose predict takes lists of them"
IGNORED = "-100"  # text in the place of a head or a relation that is not known
_NUMBER = r"0|[1-9][0-9]{0,8}"
_OTHER_ID = re.compile(rf"({_NUMBER})([-.])({_NUMBER})")


class ConlluError(ValueError):
    r"""Text that is not CoNLL-U; the message names file and line.

    Examples
    --------
    >>> from structsvm.structures.dependencies import parse_conllu
    >>> parse_conllu("1\tthe\n\n")
    Traceback (most recent call last):
        ...
    structsvm.structures.dependencies.ConlluError: <text>:1: expected 10 columns between tabs, got 2
    """


class Word(NamedTuple):
    """A word as CoNLL-U has it; ``_`` where nothing is said.

    Attributes
    ----------
    form, lemma, upos, xpos, feats : str
    head : int
        Position of the head, from 1; 0: the root; -1: not known.
    deprel, deps, misc : str

    Examples
    --------
    >>> from structsvm.structures.dependencies import DependencyTree, Word
    >>> DependencyTree((Word("Ice", head=2), Word("melts", head=0))).heads
    [2, 0]
    """

    form: str
    lemma: str = "_"
    upos: str = "_"
    xpos: str = "_"
    feats: str = "_"
    head: int = UNKNOWN
    deprel: str = "_"
    deps: str = "_"
    misc: str = "_"


@dataclass(frozen=True)
class DependencyTree:
    """A sentence with its arcs, which may be unknown.

    Attributes
    ----------
    words : tuple of Word
    comments : tuple of str
        Lines before the words, each with its ``#``.
    others : tuple of (int, str)
        Lines of multiword tokens (id ``3-4``) and of empty nodes (id ``3.1``), as they were, each with the number of
        words before it. They take no part in the tree.
    source : (str, int), optional
        Name of the file that it was read from, and the line of its first word, for messages.

    Examples
    --------
    >>> from structsvm.structures.dependencies import DependencyTree, Word
    >>> tree = DependencyTree((Word("Ice", head=2, deprel="nsubj"), Word("melts", head=0, deprel="root")))
    >>> tree.arcs, tree.is_projective
    ([(2, 'nsubj'), (0, 'root')], True)
    """

    words: tuple[Word, ...]
    comments: tuple[str, ...] = ()
    others: tuple[tuple[int, str], ...] = ()
    source: tuple[str, int] | None = field(default=None, compare=False, repr=False)

    def __len__(self) -> int:
        return len(self.words)

    def __str__(self) -> str:
        return " ".join(f"{word.form}" for word in self.words)

    def place_of(self, word: int) -> str | None:
        """File and line of a word, by its index, with the sentence's id; None if it was not read from a file."""
        if self.source is None:
            return None
        name, first = self.source
        found = next((line.partition("=")[2].strip() for line in self.comments if SENT_ID.match(line)), None)
        line = first + word + sum(before <= word for before, _ in self.others)
        return f"{name}:{line}" + (f" (sent_id {found:.80})" if found else "")

    @property
    def arcs(self) -> list[tuple[int, str]]:
        """The head and the label of each word."""
        return [(word.head, word.deprel) for word in self.words]

    @property
    def heads(self) -> list[int]:
        return [word.head for word in self.words]

    @property
    def is_projective(self) -> bool:
        """Whether no two arcs cross."""
        return not crossing_arcs(self.heads)

    def with_arcs(self, arcs: Iterable[tuple[int, str]]) -> DependencyTree:
        """The same sentence with these heads and labels, one pair per word."""
        pairs = list(arcs)
        if len(pairs) != len(self.words):
            raise ValueError(f"{len(pairs)} arcs for {len(self.words)} words")
        words = (
            word._replace(head=int(head), deprel=label) for word, (head, label) in zip(self.words, pairs, strict=True)
        )
        return replace(self, words=tuple(words))

    def to_conllu(self) -> str:
        """The text of the sentence, with the empty line that ends it; ValueError for columns that it cannot hold."""
        lines = list(self.comments)
        others = list(self.others)
        for k, word in enumerate(self.words):
            while others and others[0][0] == k:
                lines.append(others.pop(0)[1])
            head = "_" if word.head < 0 else str(word.head)
            line = "\t".join((str(k + 1), *word[:5], head, *word[6:]))
            if line.count("\t") != N_COLUMNS - 1 or "\n" in line or "\r" in line:
                raise ValueError(f"word {k + 1} has a tab or a line break in a column: {line!r:.80}")
            lines.append(line)
        lines += [line for _, line in others]
        return "\n".join(lines) + "\n\n"

    def pretty(self) -> str:
        """The tree as text: one word per line, its arc drawn to its head, and its label."""
        return "\n".join(_drawn(self))

    def _repr_svg_(self) -> str:
        """The tree as a picture, for notebooks: words with their tags, arcs from heads above them."""
        widths = [max(7.5 * len(word.form), 6.5 * len(word.upos), 6.0 * len(word.deprel)) + 16.0 for word in self.words]
        centres = [right - 0.5 * width for right, width in zip(accumulate(widths), widths)]
        longest = max((abs(m - h) for m, h in enumerate(self.heads, start=1) if h > 0), default=1)
        base = 26.0 + 20.0 * min(longest, 8)
        lines, texts = [], []
        for k, word in enumerate(self.words):
            x, relation = centres[k], escape(printable(word.deprel))
            tag = escape(printable(word.upos))
            texts.append(f'<text x="{x:.1f}" y="{base + 18.0:.1f}">{escape(printable(word.form))}</text>')
            texts.append(f'<text x="{x:.1f}" y="{base + 34.0:.1f}" font-size="11">{tag}</text>')
            if word.head > 0:
                other = centres[word.head - 1]
                top = base - 20.0 * min(abs(word.head - 1 - k), 8) - 4.0
                lines.append(f"M{other:.1f} {base:.1f}C{other:.1f} {top:.1f} {x:.1f} {top:.1f} {x:.1f} {base:.1f}")
                lines.append("m-3 -6l3 6l3 -6")
                texts.append(
                    f'<text x="{(x + other) / 2:.1f}" y="{base - (base - top) * 0.75 - 3.0:.1f}" font-size="10">'
                )
                texts.append(f"{relation}</text>")
            elif word.head == 0:
                lines.append(f"M{x:.1f} {base - 24.0:.1f}V{base:.1f}m-3 -6l3 6l3 -6")
                texts.append(f'<text x="{x:.1f}" y="{base - 27.0:.1f}" font-size="10">{relation}</text>')
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {sum(widths):.0f} {base + 42:.0f}" '
            f'width="{sum(widths):.0f}" font-family="sans-serif" font-size="13" text-anchor="middle" '
            f'fill="currentColor"><path d="{"".join(lines)}" stroke="#999999" fill="none"/>{"".join(texts)}</svg>'
        )


def crossing_arcs(heads: Sequence[int]) -> list[int]:
    """The words (from 1) whose arc spans a word that is not below its head; those of the root span nothing.

    If some heads are unknown (-1), a word may be below whatever: those whose arc crosses another known one.

    Examples
    --------
    >>> from structsvm.structures.dependencies import crossing_arcs
    >>> crossing_arcs([3, 4, 0, 3])
    [2]
    """
    if -1 in heads:
        arcs = [(min(h, m), max(h, m)) for m, h in enumerate(heads, start=1) if h >= 0]
        return [
            m
            for m, h in enumerate(heads, start=1)
            if h > 0 and any((a < min(h, m) < b) != (a < max(h, m) < b) and not {a, b} & {h, m} for a, b in arcs)
        ]
    found = []
    for m, h in enumerate(heads, start=1):
        if h <= 0:
            continue
        for between in range(min(h, m) + 1, max(h, m)):
            above, steps = between, 0
            while above > 0 and above != h and steps <= len(heads):
                above, steps = heads[above - 1], steps + 1
            if above != h:
                found.append(m)
                break
    return found


def with_one_root(heads: Sequence[int]) -> list[int]:
    """The heads with all words below the root but the first below that one.

    Examples
    --------
    >>> from structsvm.structures.dependencies import with_one_root
    >>> with_one_root([0, 1, 0])
    [0, 1, 1]
    """
    first = next((m for m, h in enumerate(heads, start=1) if h == 0), None)
    return [first if h == 0 and first is not None and m > first else h for m, h in enumerate(heads, start=1)]


def what_is_no_tree(heads: Sequence[int]) -> str | None:
    """Why heads (0: the root, -1: unknown) are not a tree with one word below the root; None if they are.

    Examples
    --------
    >>> from structsvm.structures.dependencies import what_is_no_tree
    >>> what_is_no_tree([2, 1, 0])
    'word 1 is below itself'
    """
    for m, h in enumerate(heads, start=1):
        if not -1 <= h <= len(heads):
            return f"word {m} has head {h}, of {len(heads)} words"
    roots = [m for m, h in enumerate(heads, start=1) if h == 0]
    if len(roots) > 1:
        return f"words {roots[0]} and {roots[1]} both have the root as their head"
    seen = [0] * (len(heads) + 1)
    for start in range(1, len(heads) + 1):
        m = start
        while m > 0 and not seen[m]:
            seen[m] = start
            m = heads[m - 1]
        if m > 0 and seen[m] == start:
            return f"word {m} is below itself"
    if not roots and -1 not in heads:
        return "no word has the root as its head"
    return None


def read_conllu(source: str | os.PathLike[str] | BinaryIO | Iterable[str]) -> list[DependencyTree]:
    r"""Read a file of CoNLL-U, CoNLL-X or CoNLL-2009, as the head of this module says.

    Parameters
    ----------
    source : path, binary file or lines of text
        A path or binary file may be compressed with gzip, xz or bzip2. UTF-8.

    Returns
    -------
    list of DependencyTree

    Raises
    ------
    ConlluError
        For a line that is no row of ten columns (of fourteen or more, if the first one is), ids with gaps, a head that
        is no position, damaged compression, bytes that are not UTF-8, no sentences; the message names file and line.
    OSError
        If the file cannot be opened.

    Examples
    --------
    >>> from structsvm.structures.dependencies import read_conllu
    >>> lines = ["1\tIce\tice\tNOUN\t_\t_\t2\tnsubj\t_\t_", "2\tmelts\tmelt\tVERB\t_\t_\t0\troot\t_\t_", ""]
    >>> read_conllu(lines)[0].heads
    [2, 0]
    """
    try:
        return parse_conllu(*load_text(source, ConlluError))
    except NotTextError as error:
        raise ConlluError(str(error)) from error


def parse_conllu(text: str, name: str = "<text>") -> list[DependencyTree]:
    r"""The sentences of CoNLL-U text; a ConlluError names `name` and the line.

    Examples
    --------
    >>> from structsvm.structures.dependencies import parse_conllu
    >>> parse_conllu("1\tIce\tice\tNOUN\t_\t_\t0\troot\t_\t_\n\n")[0].words[0].upos
    'NOUN'
    """
    trees = []
    comments: list[str] = []
    words: list[Word] = []
    others: list[tuple[int, str]] = []
    marks = Counter[str]()
    first, n_columns = 1, 0
    for number, line in enumerate((*text.removeprefix("\ufeff").split("\n"), ""), start=1):
        line = line.rstrip("\r")
        if "\r" in line:
            raise ConlluError(f"{name}:{number}: a carriage return within a line: {line!r:.80}")
        if line and not line.isspace():
            if line[0] == "#" and not words and not others:
                comments.append(line)
                continue
            if not words and not others:
                first = number
            n_columns = n_columns or line.count("\t") + 1
            try:
                _add(line if n_columns < N_OF_2009 else _from_2009(line), words, others, marks)
            except ValueError as error:
                raise ConlluError(f"{name}:{number}: {error}") from None
            continue
        if words:
            trees.append(
                _checked(DependencyTree(tuple(words), tuple(comments), tuple(others), (name, first)), name, first)
            )
        elif others:
            raise ConlluError(f"{name}:{first}: a sentence without words")
        else:
            continue  # comments belong to the sentence that follows, blank lines between or not
        comments, words, others = [], [], []
    if not trees:
        raise ConlluError(f"{name}: no sentences")
    for mark, n in marks.items():
        warn(
            f"{name}: HEAD or DEPREL is {mark} {n} times, which is read as: not known; _ says so without this message",
            AdviceWarning,
        )
    return trees


def _checked(tree: DependencyTree, name: str, first: int) -> DependencyTree:
    """The tree of lines from `first` on; ConlluError for a head, or a line of several words, beyond its words."""
    n = len(tree.words)
    for k, word in enumerate(tree.words):
        if word.head > n or word.head == k + 1:
            at = first + k + sum(before <= k for before, _ in tree.others)
            what = "itself" if word.head == k + 1 else f"{word.head}, of {n} words"
            raise ConlluError(f"{name}:{at}: the head of word {k + 1} is {what}")
    for k, (before, other) in enumerate(tree.others):
        if _last_word(other) > n:
            raise ConlluError(f"{name}:{first + before + k}: {_id(other)!r:.40} ends after the last of {n} words")
    return tree


def _add(line: str, words: list[Word], others: list[tuple[int, str]], marks: Counter[str]) -> None:
    columns = line.split("\t")
    if len(columns) != N_COLUMNS:
        what = "trees in brackets are for train grammar" if columns[0].startswith("(") else PLAIN_WORDS
        plain = f": {what}" * (len(columns) == 1)
        raise ValueError(f"expected {N_COLUMNS} columns between tabs, got {len(columns)}{plain}")
    position, head = columns[0], columns[6]
    if position != str(len(words) + 1):
        found = _OTHER_ID.fullmatch(position)
        before, other = others[-1] if others else (-1, "")
        if found is None:
            expected = False
        elif found[2] == ".":  # empty nodes after a word are numbered from 1, and no multiword token is between them
            number = 1 if before < len(words) else -1 if _last_word(other) else 1 + int(_id(other).partition(".")[2])
            expected = (int(found[1]), int(found[3])) == (len(words), number)
        else:  # multiword tokens do not overlap
            last = next(filter(None, (_last_word(line) for _, line in reversed(others))), 0)
            expected = last < int(found[1]) == len(words) + 1 < int(found[3])
        if not expected:
            raise ValueError(f"expected the id {len(words) + 1}, got {position!r:.40}")
        others.append((len(words), line))
        return
    if not columns[1]:
        raise ValueError("the word has no form")
    if head in ("_", IGNORED):
        value = UNKNOWN
    elif re.fullmatch(_NUMBER, head):
        value = int(head)
    else:
        raise ValueError(f"expected a head, the number of a word or '_', got {head!r:.40}")
    marks.update(field for field in columns[6:8] if field == IGNORED)
    columns[7] = "_" if columns[7] == IGNORED else columns[7]
    form, lemma, upos, xpos, feats = columns[1:6]
    deprel, deps, misc = columns[7:]
    words.append(Word(form, lemma, upos, xpos, feats, value, deprel, deps, misc))


def _from_2009(line: str) -> str:
    """A line of CoNLL-2009 as one of CoNLL-U; ValueError for too few columns."""
    columns = line.split("\t")
    if len(columns) < N_OF_2009:
        raise ValueError(f"expected {N_OF_2009} or more columns between tabs, as in CoNLL-2009, got {len(columns)}")
    lemma, tag, feats = (columns[k + 1] if columns[k + 1] != "_" else columns[k] for k in (LEMMA, TAG, FEATS))
    return "\t".join((columns[0], columns[FORM], lemma, tag, "_", feats, columns[HEAD], columns[RELATION], "_", "_"))


def _id(line: str) -> str:
    return line.partition("\t")[0]


def _last_word(line: str) -> int:
    """The last word of a multiword token, from its line; 0 for an empty node."""
    return int(_id(line).partition("-")[2] or 0)


def write_conllu(trees: Iterable[DependencyTree], path: str | os.PathLike[str]) -> None:
    """Write trees to a CoNLL-U file; what was read comes out as it was.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from structsvm.structures.dependencies import DependencyTree, Word, read_conllu, write_conllu
    >>> path = Path(tempfile.mkdtemp()) / "trees.conllu"
    >>> write_conllu([DependencyTree((Word("Ice", head=0, deprel="root"),))], path)
    >>> read_conllu(path)[0].heads
    [0]
    """
    with new_file(path, "w", encoding="utf-8", newline="\n") as file:
        file.writelines(tree.to_conllu() for tree in trees)


def _drawn(tree: DependencyTree) -> Iterator[str]:
    """Yield a line per word. Arcs stand left of the words, short ones nearest; ``>`` points at the word below."""
    n = len(tree)
    arcs = sorted((abs(h - m), min(h, m), max(h, m), m) for m, h in enumerate(tree.heads, start=1) if h > 0)
    columns: list[list[tuple[int, int, int]]] = []
    for _, a, b, m in arcs:
        # The first column beyond all arcs within this one in which no other arc is in the way.
        column = 0
        for k, others in enumerate(columns):
            if any(a <= d and c <= b for c, d, _ in others):
                column = k + 1
        if column == len(columns):
            columns.append([])
        columns[column].append((a, b, m))
    width = max((len(word.form) for word in tree.words), default=0)
    for m, word in enumerate(tree.words, start=1):
        cells = [" "] * (2 * len(columns))
        for k, others in enumerate(columns):
            at = 2 * (len(columns) - 1 - k)
            for a, b, below in others:
                if not a <= m <= b:
                    continue
                if a < m < b:
                    cells[at] = "│" if cells[at] == " " else "┼"
                    continue
                cells[at] = "┌" if m == a else "└"
                for right in range(at + 1, len(cells)):
                    cells[right] = {" ": "─", "│": "┼", "┌": "┬", "└": "┴"}.get(cells[right], cells[right])
                if m == below:
                    cells[-1] = ">"
        label = "" if word.head < 0 else f"{word.deprel}"
        yield f"{''.join(cells)} {m:>{len(str(n))}} {word.form:<{width}} {label}".rstrip()
