"""Loaders of the reference alignments of proteins, and of substitution matrices."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from structsvm.datasets._fetch import SOURCES, fetch
from structsvm.structures.gapped import strip_gaps
from structsvm.structures.substitution_matrix import SubstitutionMatrix

__all__ = ["AlignmentPairs", "fetch_oxbench", "fetch_prefab", "fetch_substitution_matrix"]

_PARTS = ("train", "valid", "test")


@dataclass(frozen=True, repr=False)
class AlignmentPairs:
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
    """

    X_train: list
    y_train: list
    decoys_train: list
    X_valid: list
    y_valid: list
    decoys_valid: list
    X_test: list
    y_test: list
    decoys_test: list
    path: Path

    def __repr__(self):
        sizes = ", ".join(f"n_{part}={len(getattr(self, f'X_{part}'))}" for part in _PARTS)
        return f"AlignmentPairs({sizes})"


def _load(name, data_home):
    found = fetch(name, data_home)
    path, content = found["pairs.fa.gz"]
    rows = content.decode("ascii").splitlines()[1::2]
    tables = [found[file][1].decode("ascii").splitlines()[1:] for file in ("pairs.tsv.gz", "decoys.tsv.gz")]
    records = found["seqs.fa.gz"][1].decode("ascii").splitlines()
    sequences = {title[1:].split()[0]: letters for title, letters in zip(records[::2], records[1::2], strict=True)}
    fields: dict = {f"{kind}_{part}": [] for part in _PARTS for kind in ("X", "y", "decoys")}
    for row_x, row_z, facts, decoys in zip(rows[::2], rows[1::2], *tables, strict=True):
        part = facts.split("\t")[-1]
        fields[f"X_{part}"].append((strip_gaps(row_x), strip_gaps(row_z)))
        fields[f"y_{part}"].append((row_x, row_z))
        fields[f"decoys_{part}"].append([sequences[identifier] for identifier in decoys.split("\t")[1].split(",")])
    return AlignmentPairs(**fields, path=path)


def fetch_prefab(data_home=None) -> AlignmentPairs:
    """Structure-based alignments of protein pairs: PREFAB 4.0, 1148 pairs to train on, 290 and 243 to try and test on.

    The split keeps relatives together: no sequence of one part has a near relative in another.

    Parameters
    ----------
    data_home : path-like, optional
        The data folder (``align_prefab4/``); see :func:`fetch_conll2000`.

    Returns
    -------
    AlignmentPairs

    Raises
    ------
    DatasetUnavailableError
        The files are missing (they cannot be downloaded in this form), or they are not the right ones.

    References
    ----------
    R. C. Edgar, MUSCLE: multiple sequence alignment with high accuracy and high throughput, 2004.
    """
    return _load("prefab", data_home)


def fetch_oxbench(data_home=None) -> AlignmentPairs:
    """Structure-based alignments of protein domains: OXBench, 1089 pairs to train on, 378 and 540 to try and test on.

    Parameters
    ----------
    data_home : path-like, optional
        The data folder (``align_oxbench/``); see :func:`fetch_conll2000`.

    Returns
    -------
    AlignmentPairs

    Raises
    ------
    DatasetUnavailableError
        The files are missing (they cannot be downloaded in this form), or they are not the right ones.

    References
    ----------
    G. P. Raghava and others, OXBench: a benchmark for evaluation of protein multiple sequence alignment accuracy, 2003.
    """
    return _load("oxbench", data_home)


def fetch_substitution_matrix(name, data_home=None) -> SubstitutionMatrix:
    """A published matrix of amino acid substitution scores.

    Parameters
    ----------
    name : str
        BLOSUM45, BLOSUM50, BLOSUM62, BLOSUM80, BLOSUM90, PAM30, PAM70, PAM250 or GONNET1992.
    data_home : path-like, optional
        The data folder (``substitution_matrices/``); see :func:`fetch_conll2000`.

    Returns
    -------
    SubstitutionMatrix

    Raises
    ------
    ValueError
        For another name.
    DatasetUnavailableError
        The files are missing and cannot be downloaded, or they are not the right ones.
    """
    known = sorted(file.removesuffix(".txt") for file in SOURCES["substitution_matrices"].sha256)
    if name not in known:
        raise ValueError(f"there is no substitution matrix {name!r}, neither a file nor one of {', '.join(known)}")
    path, content = fetch("substitution_matrices", data_home)[f"{name}.txt"]
    return SubstitutionMatrix.from_ncbi(content.decode("ascii"), str(path))
