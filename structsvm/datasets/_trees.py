"""Treebanks: a real one, and a simulator."""

from __future__ import annotations

import io
from dataclasses import dataclass
from numbers import Integral
from pathlib import Path

import numpy as np

from structsvm.datasets._draws import COUNT, RandomState, check_arguments, draw, zipf
from structsvm.datasets._fetch import DataHome, fetch
from structsvm.parameters import Interval
from structsvm.structures.trees import Tree, read_trees


@dataclass(frozen=True, repr=False)
class Treebank:
    """Parsed sentences, split into parts.

    Attributes
    ----------
    train, test : list of Tree
    train_path, test_path : Path
        Bracketed files of the parts, as the command line reads them.
    """

    train: list[Tree]
    test: list[Tree]
    train_path: Path
    test_path: Path

    def __repr__(self) -> str:
        return f"Treebank(n_train={len(self.train)}, n_test={len(self.test)})"


def fetch_treebank_sample(data_home: DataHome = None) -> Treebank:
    """Load the sample of the Penn Treebank that NLTK distributes: Wall Street Journal, constituency trees.

    3396 sentences (wsj_0001 to wsj_0159) for training, 518 (wsj_0160 to wsj_0199) for test, without traces, empty
    nodes and function tags; roots are TOP. For non-commercial use only.

    Folder ``wsj_sample/``; parameter and errors are those of :func:`fetch_conll2000`.

    References
    ----------
    M. Marcus, M. A. Marcinkiewicz and B. Santorini, Building a large annotated corpus of English: the Penn Treebank,
    Computational Linguistics 19(2), 1993.
    """
    train, test = fetch("treebank_sample", data_home).values()
    train_trees, test_trees = (read_trees(io.BytesIO(file.content)) for file in (train, test))
    return Treebank(train_trees, test_trees, train.path, test.path)


# ---- simulated ----------------------------------------------------------------------------------

# Rules with their odds by left-hand side and, where it matters, by parent: prepositional phrases prefer verbs to nouns
# within a verb phrase, and bare nouns are objects, which a plain context-free grammar cannot express.
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
# Number of words per tag.
_WORDS = {"DT": 4, "NN": 200, "NNP": 100, "JJ": 60, "VB": 80, "MD": 5, "PRP": 6, "IN": 10, "CC": 2, "RB": 20}
_WORDS |= {".": 1, ",": 1}


def make_treebank(n_trees: int = 1000, *, max_length: int = 20, random_state: RandomState = None) -> list[Tree]:
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

    Examples
    --------
    >>> from structsvm.datasets import make_treebank
    >>> trees = make_treebank(100, random_state=0)
    >>> len(trees), trees[0].label
    (100, 'TOP')
    """
    check_arguments("make_treebank", locals(), n_trees=COUNT, max_length=Interval(Integral, 5))
    rng = np.random.default_rng(random_state)
    trees: list[Tree] = []
    while len(trees) < n_trees:
        tree = _draw_tree(rng, max_length)
        if tree is not None:
            trees.append(tree)
    return trees


def _draw_tree(rng: np.random.Generator, max_length: int) -> Tree | None:
    """Return a tree, or None if it is too long. Children are drawn left to right, then joined."""
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
            rank = draw(rng, zipf(_WORDS[label]))
            parts.append(Tree(label, (label if label in ".," else f"{label.lower()}{rank}",)))
        else:
            rules = _RULES.get(f"{label}^{parent}", _RULES[label])
            rhs = rules[draw(rng, [weight for weight, _ in rules])][1]
            stack.append((label, parent, len(rhs)))
            stack.extend((child, label, 0) for child in reversed(rhs))
    return parts[0]
