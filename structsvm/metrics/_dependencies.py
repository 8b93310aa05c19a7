"""Scores for dependency trees, counted as the official evaluation of the CoNLL 2018 shared task does."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from numbers import Integral

from structsvm.metrics._counts import paired, precision_recall_f1, say_unseen
from structsvm.structures.dependencies import DependencyTree

# Relations of content words, which CLAS counts.
CONTENT_RELATIONS = frozenset(
    {
        *(
            "nsubj",
            "obj",
            "iobj",
            "csubj",
            "ccomp",
            "xcomp",
            "obl",
            "vocative",
            "expl",
            "dislocated",
            "advcl",
            "advmod",
        ),
        *("discourse", "nmod", "appos", "nummod", "acl", "amod", "conj", "fixed", "flat", "compound", "list"),
        *("parataxis", "orphan", "goeswith", "reparandum", "root", "dep"),
    }
)

Arcs = Sequence[tuple[int, str]]


@dataclass(frozen=True)
class DependencyScores:
    """Scores of trees as the official evaluation prints them, as fractions; returned by :func:`dependency_scores`.

    Attributes
    ----------
    uas : float
        Share of words with the right head.
    las : float
        Share of words with the right head and relation, subtypes (what follows a colon) left out.
    clas : float
        F1 of the words with content relations, right head and relation; subtypes left out.
    las_subtypes : float
        As `las`, with subtypes.
    accuracy : float
        Share of sentences with all heads right.
    n_sentences, n_words : int

    Examples
    --------
    >>> from structsvm.metrics import dependency_scores
    >>> print(dependency_scores([[(2, "det"), (0, "root")]], [[(2, "amod"), (0, "root")]]).report())
    Number of sentences  =      1
    Number of words      =      2
    UAS                  = 100.00
    LAS                  =  50.00
    CLAS                 =  66.67
    LAS with subtypes    =  50.00
    All heads right      = 100.00
    """

    uas: float
    las: float
    clas: float
    las_subtypes: float
    accuracy: float
    n_sentences: int
    n_words: int

    def report(self) -> str:
        """Text: percentages."""
        rows = (
            ("Number of sentences", f"{self.n_sentences:6d}"),
            ("Number of words", f"{self.n_words:6d}"),
            ("UAS", f"{100 * self.uas:6.2f}"),
            ("LAS", f"{100 * self.las:6.2f}"),
            ("CLAS", f"{100 * self.clas:6.2f}"),
            ("LAS with subtypes", f"{100 * self.las_subtypes:6.2f}"),
            ("All heads right", f"{100 * self.accuracy:6.2f}"),
        )
        return "\n".join(f"{name:<20s} = {value}" for name, value in rows)


def dependency_scores(
    y_true: Iterable[DependencyTree | Arcs], y_pred: Iterable[DependencyTree | Arcs]
) -> DependencyScores:
    """UAS, LAS and CLAS over all words, as ``conll18_ud_eval.py`` counts them where words are the same in both.

    Parameters
    ----------
    y_true, y_pred : iterables of `DependencyTree`, or of lists of (head, relation)
        Trees of the same sentences, head 0 being the root.

    Returns
    -------
    DependencyScores

    Raises
    ------
    ValueError
        The numbers of trees differ or are 0, or those of the words of a pair (the message gives its index).

    References
    ----------
    D. Zeman and others, CoNLL 2018 shared task: multilingual parsing from raw text to Universal Dependencies.

    Examples
    --------
    >>> from structsvm.metrics import dependency_scores
    >>> scores = dependency_scores([[(2, "det"), (0, "root")]], [[(2, "amod"), (0, "root")]])
    >>> scores.uas, scores.las
    (1.0, 0.5)
    """
    y_true, y_pred = paired(y_true, y_pred, "trees")
    n_words = n_heads = n_right = n_whole = n_complete = n_content = n_found = n_common = 0
    for i, (true, predicted) in enumerate(zip(y_true, y_pred, strict=True)):
        arcs, others = _arcs(true, i), _arcs(predicted, i)
        if len(arcs) != len(others):
            raise ValueError(f"tree {i}: y_true has {len(arcs)} words and y_pred {len(others)}.")
        n_words += len(arcs)
        same = 0
        for (head, label), (other, found) in zip(arcs, others, strict=True):
            base, other_base = label.partition(":")[0], found.partition(":")[0]
            is_content = base in CONTENT_RELATIONS
            right = head == other and base == other_base
            same += head == other
            n_right += right
            n_whole += head == other and label == found
            n_content += is_content
            n_found += other_base in CONTENT_RELATIONS
            n_common += is_content and right
        n_heads += same
        n_complete += same == len(arcs)
    n = max(n_words, 1)
    return DependencyScores(
        uas=n_heads / n,
        las=n_right / n,
        clas=precision_recall_f1(n_common, n_content, n_found)[2],
        las_subtypes=n_whole / n,
        accuracy=n_complete / len(y_true),
        n_sentences=len(y_true),
        n_words=n_words,
    )


def say_unseen_relations(y_true: Iterable[DependencyTree | Arcs], labels: Iterable[str]) -> None:
    """Say how many words have a relation that none of a parser's `labels` is, subtypes aside."""
    arcs = chain.from_iterable(tree.arcs if isinstance(tree, DependencyTree) else tree for tree in y_true)
    found = (label.partition(":")[0] for _, label in arcs if isinstance(label, str))
    say_unseen(found, {label.partition(":")[0] for label in labels}, "words")


def _arcs(tree: DependencyTree | Arcs, i: int) -> Arcs:
    arcs = tree.arcs if isinstance(tree, DependencyTree) else tree
    if not isinstance(arcs, (tuple, list)) or not all(isinstance(arc, (tuple, list)) and len(arc) == 2 for arc in arcs):
        raise ValueError(f"tree {i}: expected a DependencyTree or a list of (head, relation), got {tree!r:.80}")
    for k, (head, label) in enumerate(arcs, start=1):
        if not isinstance(head, Integral) or head < 0 or not isinstance(label, str):
            raise ValueError(f"tree {i}: the head or the relation of word {k} is unknown, got {(head, label)!r:.80}")
    return arcs
