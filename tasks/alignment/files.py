"""Files of pairs to align: FASTA and A2M, read with Biopython.

Records that follow one another under the same first word of their titles are one example: its two sequences, then its
decoys. If the first two records have different first words, every two records are an example. Rows of an alignment
stand in the file as they are, with gaps; see `structsvm.structures.gapped` for what upper and lower case mean.
"""

from __future__ import annotations

import io
import os
from itertools import groupby
from typing import Any, NamedTuple

from structsvm.features.sources import load_text
from structsvm.structures.gapped import split_rows, strip_gaps


class AlignmentFile(NamedTuple):
    """What a file holds.

    Attributes
    ----------
    names : list of str
        The first word of each example's first record.
    rows : list of (str, str)
        As they stand in the file.
    decoys : list of (list of str)
        Empty lists where there are none.
    """

    names: list[Any]
    rows: list[Any]
    decoys: list[Any]

    @property
    def pairs(self) -> list[Any]:
        """The pairs of strings, without gaps."""
        return [tuple(strip_gaps(row) for row in rows) for rows in self.rows]

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


def read_alignments(source: Any) -> Any:
    """Read FASTA or A2M from a path or a file, compressed or not.

    Raises
    ------
    ImportError
        Without Biopython.
    ValueError
        Naming file and record: no FASTA, a record without letters, an example of one record; or file and line: bytes
        that are no text.
    """
    try:
        from Bio.SeqIO.FastaIO import SimpleFastaParser
    except ImportError:
        raise ImportError("reading FASTA needs Biopython: pip install 'structsvm[alignment]'") from None
    text, name = load_text(source, ValueError, "{}, line {}")
    return _examples(list(SimpleFastaParser(io.StringIO(text, newline=None))), name)


def _examples(records: Any, path: str | os.PathLike[str]) -> Any:
    if not records:
        raise ValueError(f"{path}: has no FASTA records (lines that begin with >)")
    words = []
    for number, (title, sequence) in enumerate(records, start=1):
        words.append(title.split()[0] if title.split() else "")
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


def to_a2m(name: str, rows: tuple[str, str]) -> str:
    """A pair of rows as A2M: each row on one line, under the example's name and x or z."""
    return "".join(f">{name} {which}\n{row}\n" for which, row in zip("xz", rows, strict=True))
