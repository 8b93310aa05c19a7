"""Scores for constituency trees, counted as the program EVALB does (Sekine and Collins, after PARSEVAL 1991)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from itertools import accumulate

from structsvm.structures.trees import Tree

__all__ = ["EVALB_DELETED", "EVALB_EQUAL", "BracketScores", "bracket_scores"]

# Of EVALB's parameter files COLLINS.prm and new.prm, with the usual names of an outermost node.
EVALB_DELETED = frozenset({"TOP", "ROOT", "S1", "", "-NONE-", ",", ":", "``", "''", ".", "?", "!"})
EVALB_EQUAL = (("ADVP", "PRT"),)


@dataclass(frozen=True)
class BracketScores:
    """What EVALB prints, as numbers; made by :func:`bracket_scores`.

    Attributes
    ----------
    precision, recall, f1 : float
        Over the labelled brackets of all sentences together (micro), as fractions; 0 where nothing is counted.
    accuracy : float
        Share of sentences whose brackets are all right and all there (complete match).
    tag_accuracy : float
        Share of words whose tag is right, deleted ones aside.
    n_sentences, n_true, n_predicted, n_correct : int
        Sentences, and brackets in ``y_true``, in ``y_pred`` and in both.
    """

    precision: float
    recall: float
    f1: float
    accuracy: float
    tag_accuracy: float
    n_sentences: int
    n_true: int
    n_predicted: int
    n_correct: int

    def report(self) -> str:
        """Text in the manner of EVALB's summary: percentages."""
        rows = (
            ("Number of sentences", f"{self.n_sentences:6d}"),
            ("Bracketing recall", f"{100 * self.recall:6.2f}"),
            ("Bracketing precision", f"{100 * self.precision:6.2f}"),
            ("Bracketing F-measure", f"{100 * self.f1:6.2f}"),
            ("Complete match", f"{100 * self.accuracy:6.2f}"),
            ("Tagging accuracy", f"{100 * self.tag_accuracy:6.2f}"),
        )
        return "\n".join(f"{name:<20s} = {value}" for name, value in rows)


def bracket_scores(
    y_true: Iterable[Tree],
    y_pred: Iterable[Tree],
    *,
    deleted: Collection[str] = EVALB_DELETED,
    equal: Iterable[Collection[str]] = EVALB_EQUAL,
) -> BracketScores:
    """Labelled bracketing precision, recall and F1, counted exactly as EVALB does.

    A bracket is a node above the tags with its label and the words that it covers. Words whose tag is deleted are taken
    out of the sentence first; brackets with a deleted label, or without words then, are not counted. Brackets match
    one to one where label, begin and end agree. (Where the two trees do not agree on which words are to be deleted,
    EVALB gives up on the sentence; here the true tags decide.)

    Parameters
    ----------
    y_true, y_pred : iterables of Tree
        Trees over the same sentences.
    deleted : collection of str
        Labels and tags that are left out; by default the outermost node's and punctuation.
    equal : iterable of collections of str
        Labels that are taken for one another.

    Returns
    -------
    BracketScores

    Raises
    ------
    ValueError
        The numbers of trees differ, there is none, one is no Tree, or the words of a pair differ (the message names
        its index).
    """
    y_true, y_pred = list(y_true), list(y_pred)
    if len(y_true) != len(y_pred):
        raise ValueError(f"y_true has {len(y_true)} trees and y_pred has {len(y_pred)}.")
    if not y_true:
        raise ValueError("y_true and y_pred have no trees to score.")
    deleted, name = frozenset(deleted), {label: min(group) for group in equal for label in group}
    n_true = n_predicted = n_correct = n_complete = n_words = n_tags = 0
    for i, (true, predicted) in enumerate(zip(y_true, y_pred, strict=True)):
        for tree in (true, predicted):
            if not isinstance(tree, Tree):
                raise ValueError(f"tree {i}: expected a Tree, got {tree!r:.80}; parse_tree makes one of text.")
        tokens, others = true.tokens(), predicted.tokens()
        if [word for word, _ in tokens] != [word for word, _ in others]:
            raise ValueError(f"tree {i}: y_true and y_pred have different words.")
        stays = [tag not in deleted for _, tag in tokens]
        brackets, found = (_brackets(tree, stays, deleted, name) for tree in (true, predicted))
        correct = (brackets & found).total()
        n_true += brackets.total()
        n_predicted += found.total()
        n_correct += correct
        n_complete += correct == brackets.total() == found.total()
        n_words += sum(stays)
        n_tags += sum(a == b for a, b, stay in zip(tokens, others, stays, strict=True) if stay)
    return BracketScores(
        precision=n_correct / n_predicted if n_predicted else 0.0,
        recall=n_correct / n_true if n_true else 0.0,
        f1=2 * n_correct / (n_true + n_predicted) if n_correct else 0.0,
        accuracy=n_complete / len(y_true),
        tag_accuracy=n_tags / n_words if n_words else 0.0,
        n_sentences=len(y_true),
        n_true=n_true,
        n_predicted=n_predicted,
        n_correct=n_correct,
    )


def _brackets(
    tree: Tree, stays: list[bool], deleted: frozenset[str], name: dict[str, str]
) -> Counter[tuple[str, int, int]]:
    """The brackets over the words that stay."""
    place = [0, *accumulate(stays)]  # of each word among those that stay
    return Counter(
        (name.get(label, label), place[i], place[j])
        for node, (label, i, j) in zip(tree.preorder(), tree.spans(), strict=True)
        if not node.is_preterminal and label not in deleted and place[i] < place[j]
    )
