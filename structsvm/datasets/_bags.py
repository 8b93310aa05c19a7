"""Loaders of the data sets with ambiguous labels."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from structsvm.datasets._fetch import fetch

__all__ = ["CandidateLabels", "fetch_lost", "fetch_msrcv2"]


@dataclass(frozen=True, repr=False)
class CandidateLabels:
    """Rows with a set of candidate labels each.

    Attributes
    ----------
    X : ndarray of shape (n_rows, n_features), float64
        Features as the source has them; their ranges differ widely.
    candidates : list of ndarray of int64
        The candidates of each row, ascending; the right label is among them.
    y : ndarray of shape (n_rows,), int64
        The right labels, for evaluation only.
    folds : ndarray of shape (n_rows,), int64
        Cross-validation fold of each row, 0 to 4.
    n_labels : int
    path : Path
        File that they were read from.
    """

    X: np.ndarray
    candidates: list
    y: np.ndarray
    folds: np.ndarray
    n_labels: int
    path: Path

    def __repr__(self):
        return f"CandidateLabels(n_rows={len(self.X)}, n_labels={self.n_labels})"


def _candidate_labels(name, data_home):
    ((path, _),) = fetch(name, data_home).values()
    with np.load(path) as arrays:
        table = arrays["S"]
        return CandidateLabels(
            X=arrays["X"],
            candidates=[np.flatnonzero(row) for row in table],
            y=arrays["y"],
            folds=arrays["fold"],
            n_labels=table.shape[1],
            path=path,
        )


def fetch_lost(data_home=None) -> CandidateLabels:
    """Faces of the TV series Lost, with the names that scripts and captions allow.

    1122 faces of 108 features; 16 names, 2.23 candidates a face on average. For research only.

    Parameters
    ----------
    data_home : path-like, optional
        The data folder (``pl_lost/``); see :func:`fetch_conll2000`.

    Returns
    -------
    CandidateLabels

    Raises
    ------
    DatasetUnavailableError
        The file is missing and cannot be downloaded, or it is not the right one.

    References
    ----------
    T. Cour, B. Sapp and B. Taskar, Learning from partial labels, JMLR 12, 2011.
    """
    return _candidate_labels("lost", data_home)


def fetch_msrcv2(data_home=None) -> CandidateLabels:
    """Segments of the MSRCv2 images, with the classes of all objects in their image.

    1758 segments of 48 features; 23 classes, 3.16 candidates a segment on average. For research only.

    Parameters
    ----------
    data_home : path-like, optional
        The data folder (``pl_msrcv2/``); see :func:`fetch_conll2000`.

    Returns
    -------
    CandidateLabels

    Raises
    ------
    DatasetUnavailableError
        The file is missing and cannot be downloaded, or it is not the right one.

    References
    ----------
    L. Liu and T. Dietterich, A conditional multinomial mixture model for superset label learning, NIPS 25, 2012.
    """
    return _candidate_labels("msrcv2", data_home)
