"""Treebanks of constituents and of dependencies: real ones, and simulators."""

from __future__ import annotations

import io
from dataclasses import dataclass
from numbers import Integral, Real
from pathlib import Path

import numpy as np

from structsvm.datasets._draws import RandomState, draw, zipf
from structsvm.datasets._fetch import DataHome, fetch
from structsvm.datasets.english._sentences import spoken
from structsvm.parameters import COUNT, FLAG, Interval, Kind, check_arguments
from structsvm.structures.dependencies import DependencyTree, Word, read_conllu
from structsvm.structures.trees import Tree, read_trees


@dataclass(frozen=True, repr=False)
class Treebank:
    """Parsed sentences, split into parts.

    Attributes
    ----------
    train, test : list of Tree
    train_path, test_path : Path
        Bracketed files of the parts, as the command line reads them.

    Examples
    --------
    >>> from structsvm.datasets import fetch_treebank_sample
    >>> data = fetch_treebank_sample()
    >>> data.train[0].label, len(data.test)
    ('TOP', 518)
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

    Examples
    --------
    >>> from structsvm.datasets import fetch_treebank_sample
    >>> len(fetch_treebank_sample().train)
    3396
    """
    train, test = fetch("treebank_sample", data_home).values()
    train_trees, test_trees = (read_trees(io.BytesIO(file.content)) for file in (train, test))
    return Treebank(train_trees, test_trees, train.path, test.path)


@dataclass(frozen=True, repr=False)
class DependencyTreebank:
    """Sentences with dependency trees, split into parts.

    Attributes
    ----------
    train, dev, test : list of DependencyTree
    train_path, dev_path, test_path : Path
        CoNLL-U files of the parts, as the command line reads them.

    Examples
    --------
    >>> from structsvm.datasets import fetch_ud_dutch
    >>> data = fetch_ud_dutch()
    >>> len(data.train), len(data.dev), len(data.test)
    (3303, 718, 596)
    """

    train: list[DependencyTree]
    dev: list[DependencyTree]
    test: list[DependencyTree]
    train_path: Path
    dev_path: Path
    test_path: Path

    def __repr__(self) -> str:
        return f"DependencyTreebank(n_train={len(self.train)}, n_dev={len(self.dev)}, n_test={len(self.test)})"


def fetch_ud_english_ewt(data_home: DataHome = None) -> DependencyTreebank:
    """Load the English Web Treebank of Universal Dependencies: weblogs, newsgroups, emails, reviews, answers.

    12544 sentences (204577 words) for training, 2001 for development, 2077 for test; the official parts. 51 relations
    with subtypes, and few crossing arcs (2.3 % of the training sentences). CC BY-SA 4.0.

    Folder ``ud_english_ewt/``; parameter and errors are those of :func:`fetch_conll2000`.

    References
    ----------
    N. Silveira and others, A gold standard dependency corpus for English, LREC 2014.

    Examples
    --------
    >>> from structsvm.datasets import fetch_ud_english_ewt
    >>> len(fetch_ud_english_ewt().train)
    12544
    """
    return _dependency_treebank("ud_english_ewt", data_home)


def fetch_ud_dutch(data_home: DataHome = None) -> DependencyTreebank:
    """Load Dutch sentences of Universal Dependencies, one in eight with crossing arcs.

    718 sentences for development and 596 for test are those of UD_Dutch-Alpino (newspapers); the 3303 for training are
    those for development and test of UD_Dutch-LassySmall (Wikipedia): scores are not comparable with published ones of
    either. 39 relations with subtypes. CC BY-SA 4.0.

    Folder ``ud_dutch/``; parameter and errors are those of :func:`fetch_conll2000`.

    References
    ----------
    G. Bouma and G. van Noord, Increasing return on annotation investment: the automatic construction of a Universal
    Dependency treebank for Dutch, UDW 2017.

    Examples
    --------
    >>> from structsvm.datasets import fetch_ud_dutch
    >>> len(fetch_ud_dutch().train)
    3303
    """
    return _dependency_treebank("ud_dutch", data_home)


def _dependency_treebank(name: str, data_home: DataHome) -> DependencyTreebank:
    train, dev, test = fetch(name, data_home).values()
    parts = [read_conllu(io.BytesIO(file.content)) for file in (train, dev, test)]
    return DependencyTreebank(parts[0], parts[1], parts[2], train.path, dev.path, test.path)


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


def make_treebank(
    n_trees: int = 1000, *, max_length: int = 20, english: bool = False, random_state: RandomState = None
) -> list[Tree]:
    """Draw trees of a small English-like grammar in which a phrase's shape depends on where it stands.

    Parameters
    ----------
    n_trees : int
        At least 1.
    max_length : int
        Longest sentence, in words; at least 5. Longer ones are drawn again.
    english : bool
        Words of English, at most two dozen per tag, in the same trees.
    random_state : int, numpy.random.Generator or None

    Returns
    -------
    list of Tree
        Words are ``nn17``, say, for a tag ``NN``, unless they are `english`; their frequencies are those of Zipf,
        1 / rank.

    Examples
    --------
    >>> from structsvm.datasets import make_treebank
    >>> trees = make_treebank(100, random_state=0)
    >>> len(trees), trees[0].label
    (100, 'TOP')
    >>> " ".join(make_treebank(1, english=True, random_state=0)[0].leaves())
    'every small fire spread stone .'
    """
    check_arguments("make_treebank", locals(), n_trees=COUNT, max_length=Interval(Integral, 5), english=FLAG)
    rng = np.random.default_rng(random_state)
    trees: list[Tree] = []
    while len(trees) < n_trees:
        tree = _draw_tree(rng, max_length)
        if tree is not None:
            trees.append(spoken(tree) if english else tree)
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


# The child that a phrase's head is in, by the phrase; the relations of others to it, by their label and the phrase.
_HEADS = {
    "TOP": ("S",), "S": ("VP",), "SBAR": ("VP",), "NP": ("NP", "NN", "NNP", "PRP"), "VP": ("VP", "VB"), "PP": ("NP",),
    "ADJP": ("JJ",),
}  # fmt: skip
_RELATIONS = {
    "NP S": "nsubj", "NP SBAR": "nsubj", "NP VP": "obj", "PP VP": "obl", "PP S": "obl", "PP NP": "nmod",
    "IN PP": "case", "IN SBAR": "mark", "SBAR NP": "acl:relcl", "SBAR VP": "ccomp", "DT NP": "det",
    "JJ NP": "amod", "NN NP": "compound", "MD VP": "aux", "CC NP": "cc", "CC VP": "cc", "NP NP": "conj",
    "VP VP": "conj", "ADJP VP": "xcomp", "RB ADJP": "advmod", ". S": "punct", ", S": "punct",
}  # fmt: skip
_UPOS = {
    "DT": "DET", "NN": "NOUN", "NNP": "PROPN", "JJ": "ADJ", "VB": "VERB", "MD": "AUX", "PRP": "PRON", "IN": "ADP",
    "CC": "CCONJ", "RB": "ADV", ".": "PUNCT", ",": "PUNCT",
}  # fmt: skip


def make_dependency_trees(
    n_trees: int = 1000,
    *,
    max_length: int = 20,
    crossing: float = 0.0,
    english: bool = False,
    random_state: RandomState = None,
) -> list[DependencyTree]:
    """Draw trees as :func:`make_treebank` does, as dependencies between the heads of phrases.

    Parameters
    ----------
    n_trees : int
        At least 1.
    max_length : int
        Longest sentence, in words; at least 5.
    crossing : float
        Share of the sentences in which a word without others below it has moved to the end, so that its arc may cross
        others.
    english : bool
        Words of English in place of codes.
    random_state : int, numpy.random.Generator or None

    Returns
    -------
    list of DependencyTree

    Examples
    --------
    >>> from structsvm.datasets import make_dependency_trees
    >>> tree = make_dependency_trees(100, random_state=0)[0]
    >>> print(tree)
    dt3 jj1 nn21 vb34 nn1 .
    >>> tree.arcs
    [(3, 'det'), (3, 'amod'), (4, 'nsubj'), (0, 'root'), (4, 'obj'), (4, 'punct')]
    """
    possible: dict[str, Interval | Kind] = {
        "n_trees": COUNT,
        "max_length": Interval(Integral, 5),
        "crossing": Interval(Real, 0.0, 1.0, closed="both"),
        "english": FLAG,
    }
    check_arguments("make_dependency_trees", locals(), **possible)
    rng = np.random.default_rng(random_state)
    trees = make_treebank(n_trees, max_length=max_length, english=english, random_state=rng)
    made = [_dependencies(tree) for tree in trees]
    return [_moved(tree, rng) if crossing and rng.random() < crossing else tree for tree in made]


def _dependencies(tree: Tree) -> DependencyTree:
    heads: dict[int, tuple[int, str]] = {}
    words: list[Word] = []

    def make(node: Tree, below: list[int]) -> int:
        """The word that heads a node, after the words below it have got theirs."""
        if node.is_preterminal:
            words.append(Word(node.leaves()[0], upos=_UPOS[node.label], xpos=node.label))
            return len(words)
        labels = [child.label for child in node.children if isinstance(child, Tree)]
        place = next(
            (k for label in _HEADS[node.label] for k in _order(node.label, labels) if labels[k] == label),
            len(labels) - 1,
        )
        for k, (label, word) in enumerate(zip(labels, below, strict=True)):
            if k != place:
                heads[word] = below[place], _RELATIONS.get(f"{label} {node.label}", "dep")
        return below[place]

    heads[tree.map(make)] = 0, "root"
    return DependencyTree(tuple(words)).with_arcs(heads[m] for m in range(1, len(words) + 1))


def _order(label: str, children: list[str]) -> list[int]:
    """Coordinations are headed by their first part, noun compounds by their last word."""
    places = list(range(len(children)))
    return places if "CC" in children or label != "NP" else places[::-1]


def _moved(tree: DependencyTree, rng: np.random.Generator) -> DependencyTree:
    n = len(tree)
    leaves = sorted(set(range(1, n)) - set(tree.heads))
    if not leaves:
        return tree
    chosen = int(rng.choice(leaves))
    order = [m for m in range(1, n + 1) if m != chosen]
    order.insert(n - 2, chosen)  # before the full stop
    place = {m: k for k, m in enumerate(order, start=1)} | {0: 0}
    return DependencyTree(tuple(tree.words[m - 1]._replace(head=place[tree.words[m - 1].head]) for m in order))
