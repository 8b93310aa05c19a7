"""Rows of queries with grades: a loader, and a simulator."""

from __future__ import annotations

import io
from dataclasses import dataclass
from numbers import Integral, Real
from pathlib import Path
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from structsvm.datasets._draws import RandomState
from structsvm.datasets._fetch import DataHome, Split, fetch, fields
from structsvm.parameters import COUNT, Interval, check_arguments
from structsvm.structures.queries import HIGHEST_GRADE, read_queries

if TYPE_CHECKING:
    from scipy.sparse import csr_array


@dataclass(frozen=True, repr=False)
class QueryRows(Split["csr_array", NDArray[np.float64]]):
    """Rows of queries and their grades, split into parts.

    Attributes
    ----------
    X_train, X_test : csr_array of shape (n_rows, n_features), float32
    y_train, y_test : ndarray of shape (n_rows,), float64
        Grades, more is better.
    qid_train, qid_test : ndarray of shape (n_rows,), int64
        The query of each row, ascending.
    path : Path
        File of the training part.

    Examples
    --------
    >>> from structsvm.datasets import fetch_rank_lightgbm
    >>> data = fetch_rank_lightgbm()
    >>> data.X_train.shape == (len(data.qid_train), 300)
    True
    """

    qid_train: NDArray[np.int64]
    qid_test: NDArray[np.int64]
    path: Path

    def _sizes(self) -> dict[str, int]:
        return super()._sizes() | {"n_features": self.X_train.shape[1]}


def fetch_rank_lightgbm(data_home: DataHome = None) -> QueryRows:
    """Load LightGBM's example of a ranking: 201 queries of 3005 rows, and 50 of 768 to test on.

    300 features, about 95 of them per row; grades from 0 to 4. Licence: MIT.

    Folder ``rank_lightgbm/``; parameter and errors are those of :func:`fetch_conll2000`.

    References
    ----------
    G. Ke and others, LightGBM: a highly efficient gradient boosting decision tree, NIPS 30, 2017.

    Examples
    --------
    >>> from structsvm.datasets import fetch_rank_lightgbm
    >>> fetch_rank_lightgbm().X_train.shape
    (3005, 300)
    """
    files = fetch("rank_lightgbm", data_home)

    def rows(part: str) -> tuple[csr_array, NDArray[np.float64], NDArray[np.int64] | None]:
        X, grades, qid = read_queries(io.BytesIO(files[f"{part}.letor.gz"].content))
        X.resize(X.shape[0], 300)
        return X, grades, qid

    return QueryRows(**fields(rows, names=("X", "y", "qid")), path=files["train.letor.gz"].path)


def make_rankings(
    n_queries: int = 200,
    n_features: int = 10,
    *,
    max_rows: int = 20,
    n_grades: int = 5,
    noise: float = 1.0,
    shift: float = 1.0,
    random_state: RandomState = None,
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
    """Draw rows of queries, whose grades come from a noisy linear score.

    The score is ``<w, x> + noise e`` with standard Gaussian x and e; half of all rows have grade 0, half of the others
    grade 1, and so on. Then each query adds its own vector to its rows, which misleads a regression on all rows
    and says nothing about the order within a query. The direction w, of length 1, depends on `n_features` only, so
    two draws can serve as training and test set.

    Parameters
    ----------
    n_queries, n_features : int
    max_rows : int
        At least 2; queries have from 2 rows on, all sizes equally likely.
    n_grades : int
        From 2 to 51.
    noise : float
        Standard deviation of the noise; the score's own is 1.
    shift : float
        Standard deviation of a query's vector.
    random_state : int, numpy.random.Generator or None

    Returns
    -------
    X : ndarray of shape (n_rows, n_features), float64
    y : ndarray of shape (n_rows,), int64
        Grades, from 0 on.
    qid : ndarray of shape (n_rows,), int64
        From 1 on, ascending.

    Examples
    --------
    >>> from structsvm.datasets import make_rankings
    >>> X, y, qid = make_rankings(50, random_state=0)
    >>> len(X) == len(y) == len(qid), int(qid.max())
    (True, 50)
    """
    check_arguments(
        "make_rankings",
        locals(),
        n_queries=COUNT,
        n_features=COUNT,
        max_rows=Interval(Integral, 2),
        n_grades=Interval(Integral, 2, int(HIGHEST_GRADE) + 1, closed="both"),
        noise=Interval(Real, 0.0),
        shift=Interval(Real, 0.0),
    )
    w = np.random.default_rng(n_features).normal(size=n_features)
    rng = np.random.default_rng(random_state)
    query = np.repeat(np.arange(n_queries), rng.integers(2, max_rows, n_queries, endpoint=True))
    X = rng.normal(size=(len(query), n_features))
    scores = X @ (w / np.linalg.norm(w)) + noise * rng.normal(size=len(X))
    # A share 2^-k of normal numbers is above the k-th bound.
    bounds = [-NormalDist(sigma=float(np.hypot(1.0, noise))).inv_cdf(0.5**k) for k in range(1, n_grades)]
    X += shift * rng.normal(size=(n_queries, n_features))[query]
    return X, np.searchsorted(bounds, scores), query + 1
