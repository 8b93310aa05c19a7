"""Files of pairs to align, read with Biopython: FASTA and A2M, and alignments of many sequences as pairs of rows.

Records that follow one another under the same first word of their titles are one example: its two sequences, then its
decoys. If the first two records have different first words, every two records are an example. Rows of an alignment
stand in the file as they are, with gaps; see `structsvm.structures.gapped` for what upper and lower case mean.
Three records or more of different names are rows of one alignment of many sequences if the file is called ``.a2m``,
``.a3m``, ``.afa`` or ``.msa``, or if they have gaps and one length; its insertions, in lower case, need no dots (A3M).
Stockholm, Clustal and the other formats of `Bio.AlignIO` hold alignments of many sequences. All of these become pairs.
Lines that begin with ``;`` or ``#`` are comments of FASTA; blanks are no part of a row.

Words have a form of their own: a line per example, its sequences between tabs, their words between blanks, and ``-`` as
gaps; decoys follow.
"""

from __future__ import annotations

import io
import os
import re
from itertools import groupby
from typing import Any, NamedTuple

from structsvm.features.inputs.places import PlacedList
from structsvm.features.sources import load_text, numbered_lines
from structsvm.structures.gapped import chosen_pairs, in_upper, padded, pairs_of_alignment, split_rows, strip_gaps

__all__ = ["read_alignments"]


class AlignmentFile(NamedTuple):
    """Contents of a file of alignments.

    Attributes
    ----------
    names : list of str
        The first word of each example's first record.
    rows : list of (str, str)
        As they stand in the file; of words pairs of lists, with None as gaps.
    decoys : list of (list of str)
        Empty lists where there are none.
    """

    names: list[str]
    rows: list[tuple[str, str]]
    decoys: list[list[str]]

    @property
    def pairs(self) -> list[tuple[str, ...]]:
        """The pairs of strings, without gaps."""
        found: list[tuple[str, ...]] = [tuple(strip_gaps(row) for row in rows) for rows in self.rows]
        return PlacedList(found, self.rows.places) if isinstance(self.rows, PlacedList) else found

    @property
    def has_decoys(self) -> bool:
        """Whether every example has decoys."""
        return all(self.decoys)

    def check_aligned(self, path: str | os.PathLike[str]) -> None:
        """Raise ValueError, naming file and record, unless the rows are alignments."""
        for name, rows in zip(self.names, self.rows, strict=True):
            try:
                split_rows(*rows)
            except ValueError as error:
                raise ValueError(f"{path}, record {name!r}: {error}") from None

    def with_pairs(self, path: str | os.PathLike[str], *, assessed: bool = True) -> tuple[AlignmentFile, int]:
        """The file without the alignments that pair no letters, such as those of fragments, and their number.

        `assessed`: without those that pair no upper-case letters. ValueError, naming the file, if none is left.
        """
        wanted = b"M" if assessed else b"Mm"
        kept = [k for k, rows in enumerate(self.rows) if any(step in wanted for step in split_rows(*rows)[2])]
        if not kept:
            raise ValueError(f"{path}: no alignment has a pair of {'upper-case ' if assessed else ''}letters")
        names, rows, decoys = (
            [self.names[k] for k in kept],
            [self.rows[k] for k in kept],
            [self.decoys[k] for k in kept],
        )
        return AlignmentFile(names, rows, decoys).placed(path), len(self.rows) - len(kept)

    def placed(self, path: str | os.PathLike[str]) -> AlignmentFile:
        """The file with rows and pairs whose places errors of training name: file and record."""
        return self._replace(rows=PlacedList(self.rows, [f"{path}, record {name!r}" for name in self.names]))


# Formats by the ends of names, and by how files begin; other files are FASTA.
FORMATS = {"sto": "stockholm", "stk": "stockholm", "stockholm": "stockholm", "aln": "clustal", "clustal": "clustal"}
HEADS = {
    "stockholm": re.compile(r"# STOCKHOLM"),
    "clustal": re.compile(r"CLUSTAL|MUSCLE|PROBCONS"),
    "nexus": re.compile(r"#NEXUS", re.IGNORECASE),
    "msf": re.compile(r"!!(AA|NA)_MULTIPLE|PileUp"),
    "pir": re.compile(r">(P1|F1|DL|DC|RL|RC|N1|N3|XX);"),
    "phylip-relaxed": re.compile(r"\d+\s+\d+\s*\n"),
}
# Ends of names of FASTA in which rows of many sequences stand below each other.
OF_ROWS = ("a2m", "a3m", "afa", "msa")
# Records of HH-suite beside the rows of A3M, which are no sequences.
NOTES = {"ss_pred", "ss_conf", "ss_dssp", "sa_dssp"}

MOST_ENDS = 100
# Pairs of the sequences of one alignment: 724 sequences have as many.
MOST_PAIRS = 2**18


def read_alignments(source: Any, form: str | None = None, *, pairs: str = "all") -> AlignmentFile:
    r"""Read pairs from a path or a file, compressed or not.

    Parameters
    ----------
    source : path or file
    form : str, optional
        "fasta": the examples that the head of this file describes; "a2m", "a3m": the rows of one alignment of many;
        or a format of `Bio.AlignIO`, such as "stockholm" or "clustal", a file of such alignments. None: what
        the first line or the name says (``.sto``, ``.stk``, ``.aln``), else "fasta".
    pairs : {"all", "first", "adjacent"}
        Which pairs of sequences of an alignment of many; see `pairs_of_alignment`.

    Raises
    ------
    ImportError
        Without Biopython.
    ValueError
        Naming file and record: not of this format, a record without letters, an example of one record; or file and
        line: bytes that are no text.

    Examples
    --------
    >>> import io
    >>> from structsvm.tasks.alignment.files import read_alignments
    >>> file = read_alignments(io.StringIO(">one\nACGT\n>other\nA-GT\n"))
    >>> file.names, file.rows
    (['one'], [('ACGT', 'A-GT')])
    """
    try:
        from Bio.SeqIO.FastaIO import SimpleFastaParser
    except ImportError:
        raise ImportError("reading alignments needs Biopython: pip install 'structured-svm[alignment]'") from None
    text, name = load_text(source, ValueError, "{}, line {}")
    suffixes = [part for part in name.lower().split(".")[1:] if part not in ("gz", "xz", "bz2", "zip")]
    suffix = suffixes[-1] if suffixes else ""
    if form is None:
        heads = (of for of, head in HEADS.items() if head.match(text.lstrip()))
        form = next(heads, FORMATS.get(suffix, "fasta"))
    if form in ("fasta", "a2m", "a3m"):
        records = [*SimpleFastaParser(_lines(_of_records(text, name)))]
        if form == "fasta" and not _are_rows(records, suffix in OF_ROWS):
            return _in_upper(_examples(records, name)).placed(name)
        return _of_many([_in_columns(records, name)], name, pairs)
    if HEADS["stockholm"].match(text.lstrip()) and not text.rstrip().endswith("//"):
        raise ValueError(f"{name}: Stockholm ends with a line //, which is missing: is the file cut off?")
    from Bio import AlignIO

    try:
        blocks = [
            [(record.id, str(record.seq)) for record in block] for block in AlignIO.parse(_lines(text.lstrip()), form)
        ]
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 - what Biopython's parsers raise
        raise ValueError(f"{name}: not {form} ({error})") from None
    return _of_many(blocks, name, pairs)


def _of_records(text: str, name: str) -> str:
    """The text of FASTA without comments, and without blanks in its rows; ValueError for text before the records."""
    lines, has_records = [], ">" in text
    for number, line in enumerate(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"), start=1):
        own = line.strip("\0 \t")
        if own.startswith(">"):
            lines.append(own)
        elif own and not own.startswith((";", "#")):
            if not lines and has_records:
                raise ValueError(f"{name}, line {number}: before the first record (>) stands {own!r:.60}")
            lines.append("".join(own.split()))
    return "\n".join(lines)


def _are_rows(records: list[tuple[str, str]], by_name: bool) -> bool:
    """Whether records are rows of one alignment of many: three or more of different names that fit below each other.

    So says the end of the file's name (`by_name`; a sequence may then have several rows), or that rows with gaps are
    all of one length.
    """
    names = [_word(title) for title, _ in records]
    if len(records) < 3 or names[0] == names[1]:
        return False
    lengths = {len(row) for _, row in records}
    has_gaps = any("-" in row or "." in row for _, row in records)
    return by_name or (len({*names}) == len(names) and len(lengths) == 1 and has_gaps)


def _in_columns(records: list[tuple[str, str]], path: str) -> list[tuple[str, str]]:
    """The names and rows of one alignment, with the insertions of A3M in columns of their own."""
    records = [(title, row) for title, row in records if _word(title) not in NOTES]
    names, rows = [_word(title) for title, _ in records], [row for _, row in records]
    if len({len(row) for row in rows}) > 1:
        try:
            rows = padded(names, rows)
        except ValueError as error:
            raise ValueError(f"{path}, alignment 1: {error}") from None
    return list(zip(names, rows, strict=True))


def _word(title: str) -> str:
    """The first word of a title."""
    return title.split(maxsplit=1)[0] if title.split() else ""


def _in_upper(file: AlignmentFile) -> AlignmentFile:
    """The file in upper case, if all of it is in lower case, and so says nothing of columns that are not assessed."""
    return file._replace(rows=in_upper(file.rows))


class _Lines(io.StringIO):
    """A file of lines, which tells those who read on and on behind its end, as Biopython does for a mere header."""

    n_ends = 0

    def readline(self, size: int = -1, /) -> str:  # type: ignore[override]  # of io.IOBase, whose lines are bytes
        line = super().readline(size)
        self.n_ends += not line
        if self.n_ends > MOST_ENDS:
            raise ValueError("the file ends too early")
        return line


def _lines(text: str) -> io.StringIO:
    return _Lines(text, newline=None)


def _of_many(blocks: list[list[tuple[str, str]]], path: str, pairs: str) -> AlignmentFile:
    """The pairs of rows of alignments, each a list of names and rows."""
    names, rows = list[str](), list[tuple[str, str]]()
    for number, block in enumerate(blocks, start=1):
        where = f"{path}, alignment {number}"
        if len(block) < 2:
            raise ValueError(f"{where}: has {len(block)} sequences, two or more are needed")
        for title, row in block:
            if len(row) != len(block[0][1]):
                raise ValueError(
                    f"{where}: the row of {title!r} has {len(row)} columns, that of {block[0][0]!r} {len(block[0][1])}"
                )
            if not strip_gaps(row):
                raise ValueError(f"{where}: the row of {title!r} has no letters")
        if pairs == "all" and (n_pairs := len(block) * (len(block) - 1) // 2) > MOST_PAIRS:
            raise ValueError(
                f"{where}: {len(block)} sequences have {n_pairs} pairs, more than {MOST_PAIRS}; pairs='first' and "
                "'adjacent' take fewer"
            )
        rows += pairs_of_alignment([row for _, row in block], pairs)
        names += [f"{a}/{b}" for a, b in chosen_pairs([title for title, _ in block], pairs)]
    if not rows:
        raise ValueError(f"{path}: has no alignments")
    return _in_upper(AlignmentFile(names, rows, [[] for _ in rows])).placed(path)


def _examples(records: list[tuple[str, str]], path: str | os.PathLike[str]) -> AlignmentFile:
    if not records:
        raise ValueError(f"{path}: has no FASTA records (lines that begin with >); lines of words need --words")
    words = []
    for number, (title, sequence) in enumerate(records, start=1):
        words.append(_word(title))
        if not strip_gaps(sequence):
            raise ValueError(f"{path}, record {number} ({title!r}): has no letters")
    if len(records) > 1 and words[0] == words[1]:
        groups = [list(group) for _, group in groupby(range(len(records)), key=words.__getitem__)]
    else:
        groups = [list(range(k, min(k + 2, len(records)))) for k in range(0, len(records), 2)]
    for group in groups:
        if len(group) < 2:
            raise ValueError(f"{path}, record {group[0] + 1} ({records[group[0]][0]!r}): has no partner to align with")
    return AlignmentFile(
        [words[group[0]] for group in groups],
        [(records[group[0]][1], records[group[1]][1]) for group in groups],
        [[strip_gaps(records[k][1]) for k in group[2:]] for group in groups],
    )


def read_words(source: Any) -> AlignmentFile:
    """Read pairs of lists of words, a line each; ValueError, naming file and line, for a line of fewer than two."""
    text, path = load_text(source, ValueError, "{}, line {}")
    names, rows, decoys = list[str](), list[Any](), list[list[Any]]()
    for number, line in numbered_lines(text.replace("\r\n", "\n").replace("\r", "\n")):
        lists = [[None if word == "-" else word for word in part.split()] for part in line.split("\t")]
        if len(lists) < 2 or not all(map(any, lists)):
            raise ValueError(
                f"{path}, line {number}: expected two lists of words or more between tabs, got {line!r:.80}"
            )
        names.append(str(number))
        rows.append((lists[0], lists[1]))
        decoys.append([strip_gaps(words) for words in lists[2:]])
    if not rows:
        raise ValueError(f"{path}: has no lines of words")
    return AlignmentFile(names, rows, decoys).placed(path)


def to_words(rows: tuple[list[Any], list[Any]]) -> str:
    """A pair of rows of words as a line, without its end."""
    return "\t".join(" ".join("-" if word is None else str(word) for word in row) for row in rows)


def to_a2m(name: str, rows: tuple[str, str]) -> str:
    """A pair of rows as A2M: each row on one line, under the example's name and x or z."""
    return "".join(f">{name} {which}\n{row}\n" for which, row in zip("xz", rows, strict=True))
