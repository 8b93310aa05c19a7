"""Scores of rankings: by query, and their means.

Rows are ranked by their scores. Rows with equal scores share their places: a score is the mean over their orders,
except average precision, which counts them all at once, as scikit-learn does.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from structsvm.features.inputs.masks import check_no_masks
from structsvm.parameters import checked_k
from structsvm.structures.queries import query_bounds


@dataclass(frozen=True)
class RankingScores:
    """Means over queries; one whose rows all have one grade is left out, as any ranking of it is perfect.

    Attributes
    ----------
    ndcg : float
        Normalised discounted cumulative gain of whole rankings.
    ndcg_at : dict of float
        Mean NDCG of the first k places, by k.
    map : float
        Mean average precision; grades > 0 are relevant.
    pairs : float
        Pairs of rows of different grades in the right order; equal scores are half right.
    n_queries : int
        Queries with different grades.

    Examples
    --------
    >>> from structsvm.metrics import ranking_scores
    >>> ranking_scores([1, 0, 0, 1], [0.9, 0.8, 0.2, 0.3], qid=[7, 7, 8, 8]).n_queries
    2
    """

    ndcg: float
    ndcg_at: dict[int, float]
    map: float
    pairs: float
    n_queries: int


def ranking_scores(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    group: ArrayLike | None = None,
    qid: ArrayLike | None = None,
    at: Iterable[int] = (1, 3, 5),
) -> RankingScores:
    """Return the usual scores of rankings, over the queries whose rows have different grades.

    Parameters
    ----------
    y_true : array-like of shape (n_rows,)
        Grades >= 0.
    y_score : array-like of shape (n_rows,)
    group, qid : array-like, optional
        Rows of each query, or each row's query; one of them, see `structsvm.tasks.Ranker`.
    at : sequence of int, default=(1, 3, 5)
        Numbers of first places, for `ndcg_at`.

    Examples
    --------
    >>> from structsvm.metrics import ranking_scores
    >>> scores = ranking_scores([2, 0, 1, 1, 0], [0.9, 0.8, 0.1, 0.3, 0.2], group=[3, 2])
    >>> round(scores.ndcg, 3), round(scores.map, 3), scores.pairs
    (0.982, 0.917, 0.8333333333333333)
    """
    grades, scores = checked(y_true, y_score)
    bounds = query_bounds(len(grades), group, qid)
    places, rows = [checked_k(k) for k in at], []
    for a, b in pairwise(bounds.tolist()):
        y, s = grades[a:b], scores[a:b]
        if (y != y[:1]).any():
            own = [ndcg(y, s), average_precision(y, s), ordered_pairs(y, s)]
            rows.append(own + [ndcg(y, s, k) for k in places])
    means = np.mean(rows, axis=0).tolist() if rows else [np.nan] * (3 + len(places))
    return RankingScores(means[0], dict(zip(places, means[3:], strict=True)), means[1], means[2], len(rows))


def ndcg(y_true: ArrayLike, y_score: ArrayLike, k: int | None = None) -> float:
    """Return the normalised discounted cumulative gain of one ranking, of its first k places if k is given.

    Gains are ``2^grade - 1``, discounts ``1 / log2(1 + place)``. NaN where no row is relevant; ValueError for a grade
    below 0, and unless k is an integer of at least 1.

    Examples
    --------
    >>> from structsvm.metrics import ndcg
    >>> round(ndcg([2, 0, 1], [0.1, 0.3, 0.2]), 3)
    0.587
    """
    grades, scores = checked(y_true, y_score)
    if (grades < 0.0).any():
        raise ValueError(f"grades must be at least 0, got {grades.min():g}")
    unit = max(grades.max(initial=0.0) - 1000.0, 0.0)  # where the largest gains are no floats
    gains = np.exp2(grades - unit) - np.exp2(-unit)
    if not gains.any():
        return np.nan
    discounts = 1.0 / np.log2(np.arange(2.0, len(gains) + 2.0))
    discounts[len(gains) if k is None else checked_k(k) :] = 0.0
    order, starts, lengths = ranked(scores)
    means = np.repeat(np.add.reduceat(discounts, starts) / lengths, lengths)
    return float(gains[order] @ means / (np.sort(gains)[::-1] @ discounts))


def average_precision(y_true: ArrayLike, y_score: ArrayLike) -> float:
    """Return the mean of the precisions at the relevant rows, grades > 0; NaN where there is none.

    Examples
    --------
    >>> from structsvm.metrics import average_precision
    >>> average_precision([1, 0, 0, 1], [0.9, 0.8, 0.2, 0.1])
    0.75
    """
    grades, scores = checked(y_true, y_score)
    order, starts, lengths = ranked(scores)
    if not (grades > 0.0).any():
        return np.nan
    found = np.add.reduceat(1.0 * (grades[order] > 0.0), starts)
    return float(found @ (np.cumsum(found) / np.cumsum(lengths)) / found.sum())


def precision_at_k(y_true: ArrayLike, y_score: ArrayLike, k: int) -> float:
    """Return the share of relevant rows, grades > 0, among the k best.

    Raises
    ------
    ValueError
        Unless k is an integer and ``1 <= k <= n_rows``.

    Examples
    --------
    >>> from structsvm.metrics import precision_at_k
    >>> precision_at_k([1, 0, 1, 0], [0.9, 0.8, 0.2, 0.1], k=2)
    0.5
    """
    grades, scores = checked(y_true, y_score)
    if checked_k(k) > len(grades):
        raise ValueError(f"k must be from 1 to the number of rows, {len(grades)}, got {k}")
    order, starts, lengths = ranked(scores)
    found = np.add.reduceat(1.0 * (grades[order] > 0.0), starts)
    taken = np.clip(k - starts, 0, lengths)
    return float(found @ (taken / lengths) / k)


def break_even_point(y_true: ArrayLike, y_score: ArrayLike) -> float:
    """Return the precision where it equals recall: among as many rows as are relevant. NaN if there is none.

    Examples
    --------
    >>> from structsvm.metrics import break_even_point
    >>> break_even_point([1, 0, 1, 0], [0.9, 0.8, 0.2, 0.1])
    0.5
    """
    grades, scores = checked(y_true, y_score)
    n_relevant = int((grades > 0.0).sum())
    return precision_at_k(grades, scores, n_relevant) if n_relevant else np.nan


def ordered_pairs(y_true: ArrayLike, y_score: ArrayLike) -> float:
    """Return the share of pairs of rows of different grades that are in the right order; equal scores are half right.

    With two grades that is the area under the ROC curve. NaN if all grades are equal.

    Examples
    --------
    >>> from structsvm.metrics import ordered_pairs
    >>> ordered_pairs([1, 0, 1, 0], [0.9, 0.8, 0.2, 0.1])
    0.75
    """
    grades, scores = checked(y_true, y_score)
    order, _, lengths = ranked(scores)
    place = np.repeat(np.arange(len(lengths)), lengths)  # 0 for the best; equal scores share a place
    n_right = n_pairs = 0.0
    in_order = grades[order]
    for grade in np.unique(grades)[1:].tolist():
        own = in_order == grade
        below = np.bincount(place[in_order < grade], minlength=len(lengths))
        worse = below.sum() - np.cumsum(below)
        n_right += float((worse + 0.5 * below)[place[own]].sum())
        n_pairs += float(own.sum() * below.sum())
    return n_right / n_pairs if n_pairs else np.nan


def ranked(scores: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """The rows from the best to the worst, and where runs of equal scores begin, and how long they are."""
    order = np.argsort(-scores, kind="stable")
    starts = np.flatnonzero(np.append(True, scores[order][1:] != scores[order][:-1]))[: len(scores)]
    return order, starts, np.diff(np.append(starts, len(scores)))


def checked(y_true: ArrayLike, y_score: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Both as float64 vectors; ValueError unless finite, not masked, and of one length."""
    for name, values in (("y_true", y_true), ("y_score", y_score)):
        check_no_masks(values, name)
    grades, scores = np.asarray(y_true, dtype=np.float64), np.asarray(y_score, dtype=np.float64)
    if grades.ndim != 1 or grades.shape != scores.shape:
        raise ValueError(f"y_true has shape {grades.shape}, y_score {scores.shape}: one number per row is expected")
    if not (np.isfinite(grades).all() and np.isfinite(scores).all()):
        raise ValueError("grades and scores must be finite")
    return grades, scores
