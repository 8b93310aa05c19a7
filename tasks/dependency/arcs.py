"""Heads and labels of words as users give them, and as the oracle has them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from structsvm._warnings import AdviceWarning, warn
from structsvm.metrics._counts import IGNORED, number_of
from structsvm.structures.dependencies import DependencyTree, what_is_no_tree, with_one_root
from structsvm.tasks.common.examples import check_no_words

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from structsvm.arrays import Integers
    from structsvm.tasks.dependency.examples import Arcs, ArcsLike
    from structsvm.tasks.dependency.words import SentenceLike


def check_sentences(X: object) -> None:
    """Raise ValueError unless X is a list or another collection."""
    if isinstance(X, (str, bytes, DependencyTree)) or not hasattr(X, "__len__"):
        raise ValueError(f"X must be a list of sentences, got {X!r:.80}")
    check_no_words(X)


def known_arcs_of(X: Collection[SentenceLike], y: Collection[ArcsLike] | None) -> list[Arcs]:
    """`arcs_of` trees to compare with, with one root or several: ValueError for a word without a head, or no tree."""
    found = arcs_of(X, y)
    for i, tree in enumerate(found):
        for j, (head, _) in enumerate(tree):
            if head < 0:
                raise ValueError(f"sentence {i}: word {j + 1} has no head, and so there is nothing to compare with")
        problem = what_is_no_tree(with_one_root([head for head, _ in tree]))
        if problem:
            raise ValueError(f"sentence {i}: {problem}")
    return found


def arcs_of(X: Collection[SentenceLike], y: Collection[ArcsLike] | None) -> list[Arcs]:
    """The (head, label) of the words of each sentence: those of y, of the trees y, or of the trees X."""
    check_sentences(X)
    given: Collection[SentenceLike | ArcsLike] = X if y is None else y
    if isinstance(given, (str, bytes)) or not hasattr(given, "__len__"):
        raise ValueError(f"y must be a list of trees, got {given!r:.80}")
    if len(given) != len(X):
        raise ValueError(f"X has {len(X)} sentences, y has {len(given)} trees")
    if len(X) == 0:
        raise ValueError("there are no sentences")
    found, n_marks = [], 0
    for i, tree in enumerate(given):
        if isinstance(tree, DependencyTree):
            found.append(tree.arcs)
            continue
        if y is None:
            raise ValueError(f"sentence {i}: without y it must be a DependencyTree, got {tree!r:.80}")
        if isinstance(tree, (str, bytes)) or not hasattr(tree, "__len__"):
            raise ValueError(f"sentence {i}: its tree must be a list of (head, label), got {tree!r:.80}")
        found.append([_arc(i, pair) for pair in tree])
        n_marks += sum(number_of(part) == IGNORED for pair in tree for part in pair)
    if n_marks:
        warn(
            f"y is {IGNORED} at {n_marks} heads and labels, which is read as: not known; None in its place says so "
            "without this message",
            AdviceWarning,
        )
    return found


def single_rooted(arcs: list[Arcs]) -> list[Arcs]:
    """Trees to train on, with one word below the root each; warns of those that have several, as CoNLL-X may have."""
    several = [i for i, tree in enumerate(arcs) if sum(head == 0 for head, _ in tree) > 1]
    for i in several:
        heads = with_one_root([head for head, _ in arcs[i]])
        arcs[i] = [(head, label) for head, (_, label) in zip(heads, arcs[i], strict=True)]
    if several:
        warn(
            f"{len(several)} of {len(arcs)} sentences have several words below the root (sentence {several[0]} is the "
            "first), and this parser predicts one: the others are trained on as below the first; split such sentences, "
            "or give these words heads of your own, for other trees",
            AdviceWarning,
        )
    return arcs


def _arc(i: int, pair: object) -> tuple[int, str]:
    if not (isinstance(pair, (tuple, list)) and len(pair) == 2):
        raise ValueError(f"sentence {i}: an arc must be a pair (head, label), got {pair!r:.80}")
    head, label = (None if number_of(part) == IGNORED else part for part in pair)
    if head is None:
        head = -1
    if isinstance(head, bool) or not isinstance(head, (int, np.integer)):
        raise ValueError(f"sentence {i}: a head must be an int, or None where it is not known, got {head!r:.80}")
    if label is not None and (not isinstance(label, str) or not label):
        raise ValueError(f"sentence {i}: a label must be a str, or None where it is not known, got {label!r:.80}")
    return int(head), "_" if label is None else label


def outputs_of(arcs: Iterable[Arcs], offsets: Integers, labels: Sequence[str], subtypes: bool) -> NDArray[np.int32]:
    """Heads and label ids as int32 (n_words, 2), -1 where they are not known; ValueError, naming sentence and word."""
    number = {label: k for k, label in enumerate(labels)} | {"_": -1}
    lengths = np.diff(offsets).tolist()
    rows: list[tuple[int, int]] = []
    for i, (tree, n) in enumerate(zip(arcs, lengths, strict=True)):
        if len(tree) != n:
            raise ValueError(f"sentence {i}: {n} words, and its tree has {len(tree)} arcs")
        for m, (head, label) in enumerate(tree, start=1):
            kept = label if subtypes else without_subtype(label)
            if kept not in number:
                raise ValueError(f"sentence {i}: word {m} has the label {kept!r}, which the model does not know")
            if not -1 <= head <= n or head == m:
                raise ValueError(f"sentence {i}: word {m} has head {head}, of {n} words")
            rows.append((head, number[kept]))
    return np.array(rows, dtype=np.int32).reshape(-1, 2)


def without_subtype(label: str) -> str:
    """``acl`` of ``acl:relcl``."""
    return label.partition(":")[0]
