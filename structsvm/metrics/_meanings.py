"""Scores for semantic parsers: meanings found, and words aligned with symbols (Bordes 2010, section 6.2.2)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from structsvm.structures.meanings import as_meaning

__all__ = ["MeaningScores", "alignment_error", "meaning_scores"]


@dataclass(frozen=True)
class MeaningScores:
    """Made by :func:`meaning_scores`.

    Attributes
    ----------
    precision : float
        Fraction of the valid meanings that were predicted which are right.
    recall : float
        Fraction of the true meanings that were predicted.
    f1 : float
        Their harmonic mean.
    n_true, n_valid, n_correct : int
        Numbers of true meanings, of predicted ones that are valid, and of those that are right.
    """

    precision: float
    recall: float
    f1: float
    n_true: int
    n_valid: int
    n_correct: int


def _meanings(y, name, i):
    """The trees of one sentence; a single meaning counts as a list of one."""
    meanings = [y] if isinstance(y, (str, tuple)) else list(y)
    try:
        return [as_meaning(meaning) for meaning in meanings]
    except (ValueError, TypeError) as error:
        raise type(error)(f"{name}[{i}]: {error}") from None


def meaning_scores(y_true, y_pred, *, grammar=None) -> MeaningScores:
    """Precision, recall and F1 of predicted meaning representations.

    A prediction is right if it equals a true meaning of its sentence, as trees; each true meaning counts once.

    Parameters
    ----------
    y_true, y_pred : list of (list of meanings, or a single meaning)
        For each sentence; a meaning is text or nested tuples (see `structsvm.structures.meanings`).
    grammar : MeaningGrammar, optional
        Predictions that it does not accept are not valid, and left out of the precision. None: all are valid.

    Returns
    -------
    MeaningScores

    Raises
    ------
    ValueError, TypeError
        The numbers of sentences differ, there are no true meanings, or a meaning is none (the message names it).

    Examples
    --------
    >>> from structsvm.metrics import meaning_scores
    >>> meaning_scores([["kick(pink1)"], ["pass(pink1,pink2)"]], [["kick(pink1)"], []]).recall
    0.5
    """
    y_true, y_pred = list(y_true), list(y_pred)
    if len(y_true) != len(y_pred):
        raise ValueError(f"y_true has {len(y_true)} sentences and y_pred has {len(y_pred)}.")
    n_true = n_valid = n_correct = 0
    for i, (true, pred) in enumerate(zip(y_true, y_pred, strict=True)):
        wanted = Counter(_meanings(true, "y_true", i))
        found = Counter(tree for tree in _meanings(pred, "y_pred", i) if grammar is None or grammar.accepts(tree))
        n_true += wanted.total()
        n_valid += found.total()
        n_correct += (wanted & found).total()
    if n_true == 0:
        raise ValueError("y_true has no meanings to find.")
    return MeaningScores(
        precision=n_correct / n_valid if n_valid else 0.0,
        recall=n_correct / n_true,
        f1=2 * n_correct / (n_true + n_valid),
        n_true=n_true,
        n_valid=n_valid,
        n_correct=n_correct,
    )


def alignment_error(y_true, y_pred) -> float:
    """Fraction of sentences in which the symbol of at least one word is wrong.

    Parameters
    ----------
    y_true, y_pred : list of (list of str)
        For each sentence the symbol that each word means, ``"-"`` for none.

    Returns
    -------
    float
        Between 0 and 1.

    Raises
    ------
    ValueError
        The numbers of sentences differ, there are none, or a pair differs in length (the message names its index).
    """
    y_true, y_pred = list(y_true), list(y_pred)
    if len(y_true) != len(y_pred) or not y_true:
        raise ValueError(f"y_true has {len(y_true)} sentences and y_pred has {len(y_pred)}.")
    for i, (true, pred) in enumerate(zip(y_true, y_pred, strict=True)):
        if len(true) != len(pred):
            raise ValueError(f"sentence {i}: y_true has {len(true)} symbols and y_pred has {len(pred)}.")
    return sum(list(true) != list(pred) for true, pred in zip(y_true, y_pred, strict=True)) / len(y_true)
