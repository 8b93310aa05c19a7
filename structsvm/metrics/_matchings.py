"""Scores of matchings, word alignments say, over their pairs.

A matching is an int array: the right node of each left one, -1 if it is unmatched.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from structsvm.metrics._counts import paired


class MatchingScores(NamedTuple):
    """Returned by `matching_scores`, as fractions, over the pairs of all matchings together (micro).

    Attributes
    ----------
    precision, recall, f1 : float
    alignment_error_rate : float
        1 - (found sure pairs + found possible pairs) / (predicted pairs + sure pairs); 0 where there are none.
    exact : float
        Fraction of matchings that are right as a whole.

    Examples
    --------
    >>> from structsvm.metrics import matching_scores
    >>> matching_scores([[0, 1]], [[0, 2]]).alignment_error_rate
    0.5
    """

    precision: float
    recall: float
    f1: float
    alignment_error_rate: float
    exact: float


def matching_scores(
    y_true: Iterable[ArrayLike],
    y_pred: Iterable[ArrayLike],
    *,
    possible: Sequence[Iterable[tuple[int, int]]] | None = None,
) -> MatchingScores:
    """Compare predicted matchings with true ones.

    Parameters
    ----------
    y_true, y_pred : list of (int array of shape (n_left,))
    possible : list of (iterable of (int, int)), optional
        For each matching pairs (left, right) that are not sure but not wrong either: they count neither as missed nor
        as false. Precision counts them as right.

    Raises
    ------
    ValueError
        The lists differ in length or are empty, or a pair of matchings has different numbers of left nodes.

    References
    ----------
    F. Och and H. Ney, A systematic comparison of various statistical alignment models, Computational Linguistics 2003.

    Examples
    --------
    >>> from structsvm.metrics import matching_scores
    >>> matching_scores([[0, 1, -1]], [[0, -1, 2]])
    MatchingScores(precision=0.5, recall=0.5, f1=0.5, alignment_error_rate=0.5, exact=0.0)
    """
    true, pred = paired(y_true, y_pred, "matchings")
    if possible is not None and len(possible) != len(true):
        raise ValueError(f"there are {len(true)} matchings and {len(possible)} lists of possible pairs")
    n_true = n_found = n_sure = n_allowed = n_exact = 0
    for k, (t, p) in enumerate(zip(true, pred, strict=True)):
        a, b = np.asarray(t), np.asarray(p)
        if a.shape != b.shape or a.ndim != 1:
            raise ValueError(f"matching {k}: y_true has shape {a.shape}, y_pred {b.shape}")
        n_true += int((a >= 0).sum())
        n_found += int((b >= 0).sum())
        right = int(((a == b) & (b >= 0)).sum())
        n_sure += right
        n_allowed += right
        if possible is not None:
            wrong = {(int(i), int(b[i])) for i in np.flatnonzero((a != b) & (b >= 0))}
            n_allowed += len(wrong & {(int(i), int(j)) for i, j in possible[k]})
        n_exact += bool((a == b).all())
    precision, recall = n_allowed / n_found if n_found else 0.0, n_sure / n_true if n_true else 0.0
    f1 = 2.0 * precision * recall / (precision + recall) if precision + recall > 0.0 else 0.0
    total = n_true + n_found
    rate = 1.0 - (n_sure + n_allowed) / total if total else 0.0
    return MatchingScores(precision, recall, f1, rate, n_exact / len(true))


def matching_f1(y_true: Iterable[ArrayLike], y_pred: Iterable[ArrayLike]) -> float:
    """F1 of pairs; see :func:`matching_scores`.

    Examples
    --------
    >>> from structsvm.metrics import matching_f1
    >>> matching_f1([[0, 1, -1]], [[0, -1, 2]])
    0.5
    """
    return matching_scores(y_true, y_pred).f1
