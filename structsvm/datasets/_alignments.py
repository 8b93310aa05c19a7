"""Loaders of the reference alignments of proteins, and of substitution matrices."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from structsvm.datasets._fetch import DataHome, Split, fetch, fields
from structsvm.datasets._sources import SOURCES
from structsvm.structures.gapped import strip_gaps
from structsvm.structures.substitution_matrix import SubstitutionMatrix


@dataclass(frozen=True, repr=False)
class AlignmentPairs(Split[list[tuple[str, str]], list[tuple[str, str]]]):
    """Pairs of homologous proteins with reference alignments and decoys, split into parts.

    Attributes
    ----------
    X_train, X_valid, X_test : list of (str, str)
        The sequences.
    y_train, y_valid, y_test : list of (str, str)
        Gapped rows; columns in lower case are not assessed.
    decoys_train, decoys_valid, decoys_test : list of (list of str)
        Ten proteins without detectable relation to each first sequence.
    path : Path
        The A2M file of all pairs.

    Examples
    --------
    >>> from structsvm.datasets import fetch_prefab
    >>> data = fetch_prefab()
    >>> len(data.X_train), len(data.y_valid), len(data.decoys_test[0])
    (1148, 290, 10)
    """

    X_valid: list[tuple[str, str]]
    y_valid: list[tuple[str, str]]
    decoys_train: list[list[str]]
    decoys_valid: list[list[str]]
    decoys_test: list[list[str]]
    path: Path

    def _sizes(self) -> dict[str, int]:
        return {"n_train": len(self.X_train), "n_valid": len(self.X_valid), "n_test": len(self.X_test)}


def _alignment_pairs(name: str, data_home: DataHome) -> AlignmentPairs:
    files = fetch(name, data_home)
    rows = files["pairs.fa.gz"].lines()[1::2]
    records = files["seqs.fa.gz"].lines()
    sequences = {title[1:].split()[0]: letters for title, letters in zip(records[::2], records[1::2], strict=True)}
    tables = (files[file].rows()[1:] for file in ("pairs.tsv.gz", "decoys.tsv.gz"))
    examples = list(zip(zip(rows[::2], rows[1::2], strict=True), *tables, strict=True))

    def read(part: str) -> tuple[list[tuple[str, str]], list[tuple[str, str]], list[list[str]]]:
        chosen = [(pair, decoys[1].split(",")) for pair, facts, decoys in examples if facts[-1] == part]
        y = [pair for pair, _ in chosen]
        X = [(strip_gaps(row_x), strip_gaps(row_z)) for row_x, row_z in y]
        return X, y, [[sequences[identifier] for identifier in decoys] for _, decoys in chosen]

    parts = fields(read, "train", "valid", "test", names=("X", "y", "decoys"))
    return AlignmentPairs(**parts, path=files["pairs.fa.gz"].path)


def fetch_prefab(data_home: DataHome = None) -> AlignmentPairs:
    """Load PREFAB 4.0, structure-based alignments of protein pairs.

    1148 pairs for training, 290 for validation, 243 for test. No sequence of one part has a near relative in another.

    Folder ``align_prefab4/``, not downloaded; parameter and errors are those of :func:`fetch_conll2000`.

    References
    ----------
    R. C. Edgar, MUSCLE: multiple sequence alignment with high accuracy and high throughput, 2004.

    Examples
    --------
    >>> from structsvm.datasets import fetch_prefab
    >>> len(fetch_prefab().X_train)
    1148
    """
    return _alignment_pairs("prefab", data_home)


def fetch_oxbench(data_home: DataHome = None) -> AlignmentPairs:
    """Load OXBench, structure-based alignments of protein domains.

    1089 pairs for training, 378 for validation, 540 for test.

    Folder ``align_oxbench/``, not downloaded; parameter and errors are those of :func:`fetch_conll2000`.

    References
    ----------
    G. P. Raghava and others, OXBench: a benchmark for evaluation of protein multiple sequence alignment accuracy, 2003.

    Examples
    --------
    >>> from structsvm.datasets import fetch_oxbench
    >>> len(fetch_oxbench().X_train)
    1089
    """
    return _alignment_pairs("oxbench", data_home)


def fetch_substitution_matrix(name: str, data_home: DataHome = None) -> SubstitutionMatrix:
    """Load a published matrix of amino acid substitution scores.

    Folder ``substitution_matrices/``; `data_home` and its errors are those of :func:`fetch_conll2000`.

    Parameters
    ----------
    name : str
        BLOSUM45, BLOSUM50, BLOSUM62, BLOSUM80, BLOSUM90, PAM30, PAM70, PAM250 or GONNET1992.
    data_home : path-like, optional

    Raises
    ------
    ValueError
        For another name.

    Examples
    --------
    >>> from structsvm.datasets import fetch_substitution_matrix
    >>> fetch_substitution_matrix("BLOSUM62")["W", "W"]
    11.0
    """
    known = sorted(file.removesuffix(".txt") for file in SOURCES["substitution_matrices"].sha256)
    if name not in known:
        raise ValueError(f"there is no substitution matrix {name!r}, neither a file nor one of {', '.join(known)}")
    path, content = fetch("substitution_matrices", data_home)[f"{name}.txt"]
    return SubstitutionMatrix.from_ncbi(content.decode("ascii"), str(path))
