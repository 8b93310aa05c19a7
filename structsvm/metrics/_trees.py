"""Scores for constituency trees, counted as the program EVALB does (Sekine and Collins, after PARSEVAL 1991)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate

from structsvm.metrics._counts import paired, precision_recall_f1
from structsvm.structures.trees import Tree, as_tree

# The lists in EVALB's parameter files COLLINS.prm and new.prm, with the usual names of an outermost node.
EVALB_DELETED = frozenset({"TOP", "ROOT", "S1", "", "-NONE-", ",", ":", "``", "''", ".", "?", "!"})
EVALB_EQUAL = (("ADVP", "PRT"),)


@dataclass(frozen=True)
class BracketScores:
    """Scores of brackets as EVALB prints them, as numbers; returned by :func:`bracket_scores`.

    Attributes
    ----------
    precision, recall, f1 : float
        Over the labelled brackets of all sentences together (micro), as fractions; 0 where nothing is counted.
    accuracy : float
        Fraction of sentences whose predicted brackets are exactly the true ones (complete match).
    tag_accuracy : float
        Fraction of words whose tag is right, without the deleted ones.
    n_sentences, n_true, n_predicted, n_correct : int
        Numbers of sentences, and of brackets in ``y_true``, in ``y_pred`` and in both.

    Examples
    --------
    >>> from structsvm.metrics import bracket_scores
    >>> from structsvm.structures.trees import parse_tree
    >>> tree = parse_tree("(S (NP (DT a) (NN cat)) (VP (VBZ eats)))")
    >>> bracket_scores([tree], [tree]).n_true
    3
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
        """Text in the format of EVALB's summary: percentages."""
        rows = (
            ("Number of sentences", f"{self.n_sentences:6d}"),
            ("Bracketing recall", f"{100 * self.recall:6.2f}"),
            ("Bracketing precision", f"{100 * self.precision:6.2f}"),
            ("Bracketing F-measure", f"{100 * self.f1:6.2f}"),
            ("Complete match", f"{100 * self.accuracy:6.2f}"),
            ("Tagging accuracy", f"{100 * self.tag_accuracy:6.2f}"),
        )
        return "\n".join(f"{name:<20s} = {value}" for name, value in rows)


class Brackets:
    """The labelled spans that EVALB compares; parameters as in :func:`bracket_scores`."""

    def __init__(self, deleted: Collection[str], equal: Iterable[Collection[str]]) -> None:
        self.deleted = frozenset(deleted)
        self.name = {label: min(group) for group in equal for label in group}

    def stays(self, tree: Tree) -> list[bool]:
        """Whether each word stays, by the tags of the true tree."""
        return [tag not in self.deleted for _, tag in tree.tokens()]

    def __call__(self, tree: Tree, stays: list[bool]) -> Iterator[tuple[int, tuple[str, int, int]]]:
        """Yield the preorder index and the span of each bracket over the words that stay."""
        place = [0, *accumulate(stays)]  # index of each word among those that stay
        for k, (node, (label, i, j)) in enumerate(zip(tree.preorder(), tree.spans(), strict=True)):
            if not node.is_preterminal and label not in self.deleted and place[i] < place[j]:
                yield k, (self.name.get(label, label), place[i], place[j])


def bracket_scores(
    y_true: Iterable[Tree],
    y_pred: Iterable[Tree],
    *,
    deleted: Collection[str] = EVALB_DELETED,
    equal: Iterable[Collection[str]] = EVALB_EQUAL,
) -> BracketScores:
    """Labelled bracketing precision, recall and F1, counted exactly as EVALB does.

    A bracket is the label and the span of a node above the tags. Words with a deleted tag are removed from the sentence
    first; brackets with a deleted label, or left without words, are not counted. Brackets match one to one if label,
    begin and end agree. (If the two trees disagree on which words to delete, EVALB skips the sentence; here the true
    tags decide.)

    Parameters
    ----------
    y_true, y_pred : iterables of Tree or nltk.Tree
        Trees over the same sentences.
    deleted : collection of str
        Labels and tags to exclude; by default those of the outermost node and of punctuation.
    equal : iterable of collections of str
        Groups of labels that count as equal.

    Returns
    -------
    BracketScores

    Raises
    ------
    ValueError
        The numbers of trees differ or are 0, an item is not a Tree, or the words of a pair differ (the message gives
        its index).

    Examples
    --------
    >>> from structsvm.metrics import bracket_scores
    >>> from structsvm.structures.trees import parse_tree
    >>> true = parse_tree("(S (NP (DT a) (NN cat)) (VP (VBZ eats)))")
    >>> round(bracket_scores([true], [parse_tree("(S (DT a) (NN cat) (VP (VBZ eats)))")]).f1, 3)
    0.8
    """
    y_true, y_pred = paired(y_true, y_pred, "trees")
    brackets_of = Brackets(deleted, equal)
    n_true = n_predicted = n_correct = n_complete = n_words = n_tags = 0
    for i, (true, predicted) in enumerate(zip(y_true, y_pred, strict=True)):
        try:
            true, predicted = as_tree(true), as_tree(predicted)
        except ValueError as error:
            raise ValueError(f"tree {i}: {error}") from None
        tokens, others = true.tokens(), predicted.tokens()
        if [word for word, _ in tokens] != [word for word, _ in others]:
            raise ValueError(f"tree {i}: y_true and y_pred have different words.")
        stays = brackets_of.stays(true)
        brackets, found = (Counter(span for _, span in brackets_of(tree, stays)) for tree in (true, predicted))
        correct = (brackets & found).total()
        n_true += brackets.total()
        n_predicted += found.total()
        n_correct += correct
        n_complete += correct == brackets.total() == found.total()
        n_words += sum(stays)
        n_tags += sum(a == b for a, b, stay in zip(tokens, others, stays, strict=True) if stay)
    return BracketScores(
        *precision_recall_f1(n_correct, n_true, n_predicted),
        accuracy=n_complete / len(y_true),
        tag_accuracy=n_tags / n_words if n_words else 0.0,
        n_sentences=len(y_true),
        n_true=n_true,
        n_predicted=n_predicted,
        n_correct=n_correct,
    )
