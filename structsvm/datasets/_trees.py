"""Treebanks: a real one, and a simulator."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from structsvm.datasets._fetch import fetch
from structsvm.structures.trees import Tree, read_trees

__all__ = ["Treebank", "fetch_treebank_sample", "make_treebank"]


@dataclass(frozen=True, repr=False)
class Treebank:
    """Parsed sentences, split into parts.

    Attributes
    ----------
    train, test : list of Tree
    train_path, test_path : Path
        Bracketed files that they were read from, for the command line.
    """

    train: list[Tree]
    test: list[Tree]
    train_path: Path
    test_path: Path

    def __repr__(self):
        return f"Treebank(n_train={len(self.train)}, n_test={len(self.test)})"


def fetch_treebank_sample(data_home=None) -> Treebank:
    """Sample of the Penn Treebank that NLTK distributes: Wall Street Journal, constituency trees.

    3396 sentences (wsj_0001 to wsj_0159) to train on, 518 (wsj_0160 to wsj_0199) to test on, without traces, empty
    nodes and function tags; roots are TOP. For non-commercial use only.

    Parameters
    ----------
    data_home : path-like, optional
        The data folder (``wsj_sample/``); see :func:`fetch_conll2000`.

    Returns
    -------
    Treebank

    Raises
    ------
    DatasetUnavailableError
        The files are missing and cannot be downloaded, or they are not the right ones.

    References
    ----------
    M. Marcus, M. A. Marcinkiewicz and B. Santorini, Building a large annotated corpus of English:
    the Penn Treebank, Computational Linguistics 19(2), 1993.
    """
    found = fetch("treebank_sample", data_home)
    parts: dict[str, Any] = {}
    for part in ("train", "test"):
        path, content = found[f"clean.{part}.mrg.gz"]
        parts |= {part: read_trees(io.BytesIO(content)), f"{part}_path": path}
    return Treebank(**parts)


# ---- simulated ----------------------------------------------------------------------------------

# Rules with their odds by left-hand side and, where it matters, by parent: prepositional phrases prefer verbs to nouns
# within a verb phrase, and bare nouns are objects, which a grammar of plain rules cannot say.
_RULES: dict[str, list[tuple[float, tuple[str, ...]]]] = {
    "TOP": [(1.0, ("S",))],
    "S": [(8.0, ("NP", "VP", ".")), (1.0, ("PP", ",", "NP", "VP", ".")), (0.5, ("VP", "."))],
    "SBAR": [(1.0, ("IN", "NP", "VP"))],
    "NP": [
        (4.0, ("DT", "NN")),
        (2.0, ("DT", "JJ", "NN")),
        (2.0, ("NNP",)),
        (1.5, ("NP", "PP")),
        (1.0, ("PRP",)),
        (0.7, ("DT", "NN", "NN")),
        (0.5, ("NP", "CC", "NP")),
        (0.4, ("NP", "SBAR")),
    ],
    "NP^VP": [(3.0, ("DT", "NN")), (2.0, ("JJ", "NN")), (2.5, ("NN",)), (1.5, ("NP", "PP")), (0.5, ("NP", "SBAR"))],
    "VP": [
        (4.0, ("VB", "NP")),
        (2.5, ("VB", "NP", "PP")),
        (1.5, ("VB", "PP")),
        (1.0, ("VB",)),
        (1.0, ("MD", "VP")),
        (0.7, ("VB", "SBAR")),
        (0.5, ("VP", "CC", "VP")),
        (0.4, ("VB", "ADJP")),
    ],
    "PP": [(1.0, ("IN", "NP"))],
    "ADJP": [(2.0, ("JJ",)), (1.0, ("RB", "JJ"))],
}
# Words of each tag.
_WORDS = {"DT": 4, "NN": 200, "NNP": 100, "JJ": 60, "VB": 80, "MD": 5, "PRP": 6, "IN": 10, "CC": 2, "RB": 20}
_WORDS |= {".": 1, ",": 1}


def make_treebank(n_trees=1000, *, max_length=20, random_state=None) -> list[Tree]:
    """Draw trees of a small English-like grammar in which a phrase's shape depends on where it stands.

    Parameters
    ----------
    n_trees : int
        At least 1.
    max_length : int
        Longest sentence, in words; at least 5. Longer ones are drawn again.
    random_state : int, numpy.random.Generator or None

    Returns
    -------
    list of Tree
        Words are ``nn17``, say, for a tag ``NN``; their frequencies are those of Zipf, 1 / rank.

    Raises
    ------
    ValueError
        A parameter is out of its range.

    Examples
    --------
    >>> from structsvm.datasets import make_treebank
    >>> trees = make_treebank(100, random_state=0)
    >>> len(trees), trees[0].label
    (100, 'TOP')
    """
    for name, value, low in (("n_trees", n_trees, 1), ("max_length", max_length, 5)):
        if not value >= low:
            raise ValueError(f"The {name!r} parameter of make_treebank must be at least {low}. Got {value}.")
    rng = np.random.default_rng(random_state)
    trees: list[Tree] = []
    while len(trees) < n_trees:
        tree = _draw_tree(rng, max_length)
        if tree is not None:
            trees.append(tree)
    return trees


def _draw_tree(rng, max_length):
    """A tree, or None when it would get too long. Children are drawn left to right, then put together."""
    parts: list[Tree] = []
    stack: list[tuple[str, str, int]] = [("TOP", "", 0)]  # label, parent, children that have been drawn already
    n_words = 0
    while stack:
        label, parent, n_children = stack.pop()
        if n_children:
            children = parts[-n_children:]
            del parts[-n_children:]
            parts.append(Tree(label, children))
        elif label in _WORDS:
            n_words += 1
            if n_words > max_length:
                return None
            odds = np.cumsum(1.0 / np.arange(1, _WORDS[label] + 1))
            rank = np.searchsorted(odds, rng.random() * odds[-1])
            parts.append(Tree(label, (label if label in ".," else f"{label.lower()}{rank}",)))
        else:
            rules = _RULES.get(f"{label}^{parent}", _RULES[label])
            odds = np.cumsum([weight for weight, _ in rules])
            rhs = rules[np.searchsorted(odds, rng.random() * odds[-1])][1]
            stack.append((label, parent, len(rhs)))
            stack.extend((child, label, 0) for child in reversed(rhs))
    return parts[0]
