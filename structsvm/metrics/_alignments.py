"""Scores for alignments, and for the choice of a homologue among decoys.

Alignments are pairs of gapped rows (see `structsvm.structures.gapped`). Columns of the reference that are not all upper
case are
not assessed: the pairs in them are neither wanted nor wrong.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from structsvm.structures.gapped import assessed_pairs, strip_gaps

__all__ = ["AlignmentScores", "alignment_scores", "homologue_error", "pair_f1", "q_score", "total_column"]


class AlignmentScores(NamedTuple):
    """What `alignment_scores` counts, as fractions.

    Attributes
    ----------
    pair_precision, pair_recall, pair_f1 : float
        Of the pairs of all alignments together (micro). Predicted pairs count if one of their letters is assessed.
    q : float
        Share of the reference's pairs that were found, mean over the alignments.
    total_column : float
        Share of alignments in which every assessed column was found.
    """

    pair_precision: float
    pair_recall: float
    pair_f1: float
    q: float
    total_column: float


def alignment_scores(y_true, y_pred, *, window=0) -> AlignmentScores:
    """Compare predicted alignments with references.

    Parameters
    ----------
    y_true, y_pred : list of (str, str)
        Gapped rows of the same strings.
    window : int
        A reference pair counts as found if its letter of x is paired with a letter of z at most so far from its own.

    Returns
    -------
    AlignmentScores

    Raises
    ------
    ValueError
        If the lists differ in length, an alignment is not one of the same strings, or a reference has no column to
        assess.

    Examples
    --------
    >>> from structsvm.metrics import alignment_scores
    >>> scores = alignment_scores([("AC-GT", "ACTGa")], [("ACG-T", "ACTGA")])
    >>> round(scores.pair_f1, 3), round(scores.q, 3), scores.total_column
    (0.667, 0.667, 0.0)
    """
    if len(y_true) != len(y_pred):
        raise ValueError(f"y_true has {len(y_true)} alignments and y_pred has {len(y_pred)}")
    if len(y_true) == 0:
        raise ValueError("y_true and y_pred hold no alignments to score")
    wanted = found = hits = 0
    shares = []
    for k, (true, pred) in enumerate(zip(y_true, y_pred, strict=True)):
        for row, other in zip(true, pred, strict=True):
            if strip_gaps(row) != strip_gaps(other):
                raise ValueError(f"alignment {k}: the predicted one is of other strings than the reference")
        reference, _ = assessed_pairs(*true)
        if not reference:
            raise ValueError(f"alignment {k}: the reference has no column of two upper-case letters to assess")
        predicted = [pair for pairs in assessed_pairs(*pred) for pair in pairs]
        at = dict(predicted)
        n_hits = sum(i in at and abs(at[i] - j) <= window for i, j in reference)
        xs, zs = {i for i, _ in reference}, {j for _, j in reference}
        wanted += len(reference)
        found += sum(i in xs or j in zs for i, j in predicted)
        hits += n_hits
        shares.append(n_hits / len(reference))
    return AlignmentScores(
        pair_precision=hits / found if found else 0.0,
        pair_recall=hits / wanted,
        pair_f1=2 * hits / (wanted + found),
        q=float(np.mean(shares)),
        total_column=float(np.mean(np.array(shares) == 1.0)),
    )


def pair_f1(y_true, y_pred) -> float:
    """Harmonic mean of precision and recall of aligned pairs; see :func:`alignment_scores`."""
    return alignment_scores(y_true, y_pred).pair_f1


def q_score(y_true, y_pred) -> float:
    """Mean share of the reference's pairs that were found; see :func:`alignment_scores`."""
    return alignment_scores(y_true, y_pred).q


def total_column(y_true, y_pred) -> float:
    """Share of alignments in which every assessed column was found; see :func:`alignment_scores`."""
    return alignment_scores(y_true, y_pred).total_column


def homologue_error(homologue_scores, decoy_scores) -> float:
    """Share of examples whose homologue does not score more than all its decoys (Tsochantaridis 2004, table 4).

    Parameters
    ----------
    homologue_scores : array-like of shape (n,)
    decoy_scores : list of (array-like of floats)
        The scores of each example's decoys, at least one.
    """
    if len(homologue_scores) != len(decoy_scores) or len(homologue_scores) == 0:
        raise ValueError(f"there are {len(homologue_scores)} homologues and {len(decoy_scores)} lists of decoys")
    for k, scores in enumerate(decoy_scores):
        if len(scores) == 0:
            raise ValueError(f"example {k} has no decoys")
    return float(
        np.mean([score <= np.max(decoys) for score, decoys in zip(homologue_scores, decoy_scores, strict=True)])
    )
