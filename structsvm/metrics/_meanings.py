"""Scores for semantic parsers: meanings found, and words aligned with symbols (Bordes 2010, section 6.2.2)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from structsvm.metrics._counts import paired, precision_recall_f1
from structsvm.structures.meanings import MeaningGrammar, as_meaning, in_one_order

Meaning = str | tuple[object, ...]
Meanings = Iterable[Meaning | Iterable[Meaning]]


@dataclass(frozen=True)
class MeaningScores:
    """Returned by :func:`meaning_scores`.

    Attributes
    ----------
    precision : float
        Fraction of the valid predicted meanings that are right.
    recall : float
        Fraction of the true meanings that were predicted.
    f1 : float
        Their harmonic mean.
    n_true, n_valid, n_correct : int
        Numbers of true meanings, of valid predicted ones, and of the right ones among these.

    Examples
    --------
    >>> from structsvm.metrics import meaning_scores
    >>> scores = meaning_scores([["kick(pink1)"], ["steal(pink2)"]], [["kick(pink1)"], []])
    >>> scores.n_true, scores.n_correct
    (2, 1)
    """

    precision: float
    recall: float
    f1: float
    n_true: int
    n_valid: int
    n_correct: int


def _meanings(y: Meaning | Iterable[Meaning], name: str, i: int) -> list[Meaning]:
    """Return the trees of one sentence; a single meaning counts as a list of one."""
    meanings: list[Meaning] = [y] if isinstance(y, (str, tuple)) else list(y)
    try:
        return [as_meaning(meaning) for meaning in meanings]
    except (ValueError, TypeError) as error:
        raise type(error)(f"{name}[{i}]: {error}") from None


def meaning_scores(
    y_true: Meanings, y_pred: Meanings, *, grammar: MeaningGrammar | None = None, any_order: Iterable[str] = ()
) -> MeaningScores:
    """Precision, recall and F1 of predicted meaning representations.

    A prediction is right if it equals a true meaning of its sentence, as trees; each true meaning counts once.

    Parameters
    ----------
    y_true, y_pred : list of (list of meanings, or a single meaning)
        One item per sentence; a meaning is text or nested tuples (see `structsvm.structures.meanings`).
    grammar : MeaningGrammar, optional
        Predictions that it does not accept are invalid, and excluded from the precision. None: all are valid.
    any_order : list of str, optional
        Names of relations whose arguments may stand in any order, as ``["and"]``, beside those that the grammar names.

    Returns
    -------
    MeaningScores

    Raises
    ------
    ValueError, TypeError
        The numbers of sentences differ or are 0, there are no true meanings, or a meaning cannot be parsed (the message
        gives its sentence).

    Examples
    --------
    >>> from structsvm.metrics import meaning_scores
    >>> meaning_scores([["kick(pink1)"], ["pass(pink1,pink2)"]], [["kick(pink1)"], []]).recall
    0.5
    >>> meaning_scores([["and(a,b)"]], [["and(b,a)"]], any_order=["and"]).f1
    1.0
    """
    if isinstance(any_order, str):
        raise TypeError(f"any_order must be a list of names of relations, got the text {any_order!r:.80}")
    names = {*any_order} | (set() if grammar is None else grammar.any_order)
    n_true = n_valid = n_correct = 0
    for i, (true, pred) in enumerate(zip(*paired(y_true, y_pred, "sentences"), strict=True)):
        valid = [tree for tree in _meanings(pred, "y_pred", i) if grammar is None or grammar.accepts(tree)]
        wanted = Counter(in_one_order(tree, names) for tree in _meanings(true, "y_true", i))
        found = Counter(in_one_order(tree, names) for tree in valid)
        n_true += wanted.total()
        n_valid += found.total()
        n_correct += (wanted & found).total()
    if n_true == 0:
        raise ValueError("y_true has no meanings to find.")
    return MeaningScores(*precision_recall_f1(n_correct, n_true, n_valid), n_true, n_valid, n_correct)


def alignment_error(y_true: Iterable[Sequence[str]], y_pred: Iterable[Sequence[str]]) -> float:
    """Fraction of sentences in which the symbol of at least one word is wrong.

    Parameters
    ----------
    y_true, y_pred : list of (list of str)
        For each sentence the symbols of its words, ``"-"`` for none.

    Returns
    -------
    float
        Between 0 and 1.

    Raises
    ------
    ValueError
        The numbers of sentences differ or are 0, or a pair differs in length or has text in place of a list (the
        message gives its index).

    Examples
    --------
    >>> from structsvm.metrics import alignment_error
    >>> alignment_error([["-", "kick", "pink1"], ["pass"]], [["-", "kick", "pink1"], ["-"]])
    0.5
    """
    pairs = list(zip(*paired(y_true, y_pred, "sentences"), strict=True))
    for i, (true, pred) in enumerate(pairs):
        if isinstance(true, str) or isinstance(pred, str):
            raise ValueError(f"sentence {i}: expected lists of symbols, got {true!r:.80} and {pred!r:.80}.")
        if len(true) != len(pred):
            raise ValueError(f"sentence {i}: y_true has {len(true)} symbols and y_pred has {len(pred)}.")
    return sum(list(true) != list(pred) for true, pred in pairs) / len(pairs)
