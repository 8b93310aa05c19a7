"""Scores for alignments, and for the choice of a homologue among decoys.

Alignments are pairs of gapped rows (see `structsvm.structures.gapped`). Pairs of two upper-case letters in the
reference are assessed, or all pairs if no reference has an upper-case letter. Other columns, gaps among them, are not:
a predicted pair of letters that stand in none of those pairs counts neither as missed nor as wrong, as in the scores Q
and TC of benchmarks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from structsvm.metrics._counts import paired, precision_recall_f1
from structsvm.structures.gapped import as_rows, assessed_pairs, in_upper, strip_gaps

if TYPE_CHECKING:
    from structsvm.arrays import Floats

Alignments = Iterable[tuple[str, str]]
Pairs = list[tuple[int, int]]


class AlignmentScores(NamedTuple):
    """Returned by `alignment_scores`, as fractions.

    Attributes
    ----------
    pair_precision, pair_recall, pair_f1 : float
        Over the pairs of all alignments together (micro). A predicted pair counts if one of its letters is in a pair of
        upper-case letters of the reference.
    q : float
        Fraction of the reference's pairs that were found, mean over the alignments.
    total_column : float
        Fraction of alignments in which every assessed pair was found.

    Examples
    --------
    >>> from structsvm.metrics import alignment_scores
    >>> alignment_scores([("AC-GT", "ACTGA")], [("AC-GT", "ACTGA")]).pair_f1
    1.0
    """

    pair_precision: float
    pair_recall: float
    pair_f1: float
    q: float
    total_column: float


def alignment_scores(y_true: Alignments, y_pred: Alignments, *, window: int = 0) -> AlignmentScores:
    """Compare predicted alignments with references.

    Parameters
    ----------
    y_true, y_pred : list of (str, str)
        Gapped rows of the same strings, or lists of words with gaps; or Biopython's alignments of two sequences.
    window : int
        A reference pair counts as found if its letter of x is paired with a letter of z at most `window` from its own.

    Returns
    -------
    AlignmentScores

    Raises
    ------
    ValueError
        The lists differ in length or are empty, an alignment is no pair of rows, a pair of alignments has different
        strings, or a reference has no column to assess; or the window is negative.

    Examples
    --------
    >>> from structsvm.metrics import alignment_scores
    >>> scores = alignment_scores([("AC-GT", "ACTGa")], [("ACG-T", "ACTGA")])
    >>> round(scores.pair_f1, 3), round(scores.q, 3), scores.total_column
    (0.667, 0.667, 0.0)
    """
    if window < 0:
        raise ValueError(f"window must not be negative, got {window}")
    wanted = found = hits = 0
    shares = []
    for k, (true, pred) in enumerate(zip(*paired(in_upper(y_true), y_pred, "alignments"), strict=True)):
        (true, (reference, _)), (pred, of_pred) = _read(true, "y_true", k), _read(pred, "y_pred", k)
        for row, other in zip(true, pred, strict=True):
            if strip_gaps(row) != strip_gaps(other):
                raise ValueError(f"alignment {k}: y_true and y_pred have different strings")
        if not reference:
            raise ValueError(f"alignment {k}: the reference has no column of two upper-case letters to assess")
        predicted = [pair for pairs in of_pred for pair in pairs]
        at = dict(predicted)
        n_hits = sum(i in at and abs(at[i] - j) <= window for i, j in reference)
        xs, zs = {i for i, _ in reference}, {j for _, j in reference}
        wanted += len(reference)
        found += sum(i in xs or j in zs for i, j in predicted)
        hits += n_hits
        shares.append(n_hits / len(reference))
    ratios = precision_recall_f1(hits, wanted, found)
    return AlignmentScores(*ratios, q=float(np.mean(shares)), total_column=float(np.mean(np.array(shares) == 1.0)))


def _read(alignment: object, name: str, k: int) -> tuple[tuple[str, str], tuple[Pairs, Pairs]]:
    """The rows of an alignment, and its pairs; ValueError, naming it, if it is none."""
    try:
        rows = as_rows(alignment)
        if (
            not isinstance(rows, tuple)
            or len(rows) != 2
            or not (all(isinstance(row, str) for row in rows) or all(isinstance(row, list) for row in rows))
        ):
            raise ValueError(f"expected a pair of rows, got {alignment!r:.80}")
        return rows, assessed_pairs(*rows)
    except ValueError as error:
        raise ValueError(f"alignment {k} of {name}: {error}") from None


def pair_f1(y_true: Alignments, y_pred: Alignments) -> float:
    """Harmonic mean of precision and recall of aligned pairs; see :func:`alignment_scores`.

    Examples
    --------
    >>> from structsvm.metrics import pair_f1
    >>> round(pair_f1([("AC-GT", "ACTGA")], [("ACG-T", "ACTGA")]), 3)
    0.75
    """
    return alignment_scores(y_true, y_pred).pair_f1


def q_score(y_true: Alignments, y_pred: Alignments) -> float:
    """Mean fraction of the reference's pairs that were found; see :func:`alignment_scores`.

    Examples
    --------
    >>> from structsvm.metrics import q_score
    >>> q_score([("AC-GT", "ACTGA")], [("ACG-T", "ACTGA")])
    0.75
    """
    return alignment_scores(y_true, y_pred).q


def total_column(y_true: Alignments, y_pred: Alignments) -> float:
    """Fraction of alignments in which every assessed pair was found; see :func:`alignment_scores`.

    Examples
    --------
    >>> from structsvm.metrics import total_column
    >>> total_column([("AC-GT", "ACTGA")], [("ACG-T", "ACTGA")])
    0.0
    """
    return alignment_scores(y_true, y_pred).total_column


def homologue_error(homologue_scores: Sequence[float] | Floats, decoy_scores: Sequence[ArrayLike]) -> float:
    """Fraction of examples whose homologue does not score higher than all its decoys (Tsochantaridis 2004, table 4).

    Parameters
    ----------
    homologue_scores : array-like of shape (n,)
    decoy_scores : list of (array-like of floats)
        The scores of each example's decoys, at least one.

    Raises
    ------
    ValueError
        The lists differ in length or are empty, or an example has no decoys or a score that is NaN.

    Examples
    --------
    >>> from structsvm.metrics import homologue_error
    >>> homologue_error([5.0, 2.0], [[1.0, 3.0], [4.0]])
    0.5
    """
    if len(homologue_scores) != len(decoy_scores) or len(homologue_scores) == 0:
        raise ValueError(f"there are {len(homologue_scores)} homologues and {len(decoy_scores)} lists of decoys")
    for k, (score, scores) in enumerate(zip(homologue_scores, decoy_scores, strict=True)):
        if np.size(scores) == 0:
            raise ValueError(f"example {k} has no decoys")
        if np.isnan(score) or np.isnan(scores).any():
            raise ValueError(f"example {k} has a score that is NaN")
    return float(
        np.mean([score <= np.max(decoys) for score, decoys in zip(homologue_scores, decoy_scores, strict=True)])
    )
