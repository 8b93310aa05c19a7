"""Documents in a taxonomy: loaders of real ones, and a simulator."""

from __future__ import annotations

import io
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from structsvm.datasets._fetch import fetch
from structsvm.structures.taxonomy import Taxonomy

__all__ = [
    "TaxonomyDocuments",
    "fetch_amazon_reviews",
    "fetch_clinc150",
    "fetch_imclef07a",
    "make_taxonomy",
    "write_documents",
]


@dataclass(frozen=True, repr=False)
class TaxonomyDocuments:
    """Documents labelled by leaves of a taxonomy, split into parts.

    Attributes
    ----------
    X_train, X_test : list of str, or ndarray of shape (n_documents, n_features)
    y_train, y_test : ndarray of str
        Names of leaves: the names on the way down to each, joined by ``/``.
    taxonomy : Taxonomy
        Its root is called ROOT.
    path : Path
        File of the documents.
    X_valid, y_valid
        The development part, None where there is none.
    """

    X_train: Any
    y_train: np.ndarray
    X_test: Any
    y_test: np.ndarray
    taxonomy: Taxonomy
    path: Path
    X_valid: Any = None
    y_valid: np.ndarray | None = None

    def __repr__(self):
        sizes = f"n_train={len(self.y_train)}, n_test={len(self.y_test)}, n_classes={len(self.taxonomy.leaves)}"
        return f"TaxonomyDocuments({sizes})"


def _nodes(content):
    """The taxonomy of a table id, parent, depth, is_leaf, path; and the names of the ids."""
    rows = [line.split("\t") for line in content.decode("utf-8").splitlines()[1:]]
    names = [row[4] for row in rows]
    return Taxonomy.from_parents([int(row[1]) for row in rows], names), names


def _texts(name, data_home):
    found = fetch(name, data_home)
    taxonomy, names = _nodes(found["taxonomy.tsv"][1])
    path, content = found["docs.tsv.gz"]
    parts: dict[str, tuple[list, list]] = {part: ([], []) for part in ("train", "valid", "test")}
    for line in content.decode("utf-8").splitlines():
        _, part, leaf, text = line.split("\t")
        parts[part][0].append(text)
        parts[part][1].append(names[int(leaf)])
    fields: dict[str, Any] = {f"X_{part}": texts for part, (texts, _) in parts.items()}
    fields |= {f"y_{part}": np.array(labels) for part, (_, labels) in parts.items()}
    return TaxonomyDocuments(**fields, taxonomy=taxonomy, path=path)


def fetch_clinc150(data_home=None) -> TaxonomyDocuments:
    """Queries to an assistant: 150 intents in 10 domains, 100, 20 and 30 queries each to train, validate and test on.

    The out-of-scope queries of the set are left out. Licence: Creative Commons Attribution 3.0.

    Parameters
    ----------
    data_home : path-like, optional
        The data folder (``taxo_clinc150/``); see :func:`fetch_conll2000`.

    Returns
    -------
    TaxonomyDocuments
        Of texts.

    Raises
    ------
    DatasetUnavailableError
        The files are missing and cannot be downloaded, or they are not the right ones.

    References
    ----------
    S. Larson and others, An evaluation dataset for intent classification and out-of-scope prediction, EMNLP 2019.
    """
    return _texts("clinc150", data_home)


def fetch_amazon_reviews(data_home=None) -> TaxonomyDocuments:
    """Product reviews: 317 leaves below 62 groups in 6 departments, 6244, 884 and 1819 documents.

    No product is in two parts; the leaves are as skewed as they come (1 to 658 documents). For research only; the
    files are not made from their origin by this function, and have to be there.

    Parameters
    ----------
    data_home : path-like, optional
        The data folder (``taxo_amazon/``); see :func:`fetch_conll2000`.

    Returns
    -------
    TaxonomyDocuments
        Of texts.

    Raises
    ------
    DatasetUnavailableError
        The files are missing, or they are not the right ones.

    References
    ----------
    J. McAuley and J. Leskovec, Hidden factors and hidden topics: understanding rating dimensions with review text,
    2013.
    """
    return _texts("amazon_reviews", data_home)


def fetch_imclef07a(data_home=None) -> TaxonomyDocuments:
    """X-ray images by anatomy (ImageCLEF 2007): 63 leaves of a code tree of 3 levels, 10,000 and 1006 images.

    An image is 80 bins of an edge histogram, integers 0 to 7. The files are not made from their origin by this
    function, and have to be there.

    Parameters
    ----------
    data_home : path-like, optional
        The data folder (``taxo_imclef07a/``); see :func:`fetch_conll2000`.

    Returns
    -------
    TaxonomyDocuments
        Of arrays, float32.

    Raises
    ------
    DatasetUnavailableError
        The files are missing, or they are not the right ones.

    References
    ----------
    I. Dimitrovski, D. Kocev, S. Loskovska and S. Dzeroski, Hierarchical annotation of medical images, 2011.
    """
    found = fetch("imclef07a", data_home)
    taxonomy, names = _nodes(found["taxonomy.tsv"][1])
    path = found["imclef07a.npz"][0]
    with np.load(io.BytesIO(path.read_bytes())) as arrays:
        fields: dict[str, Any] = {}
        for part in ("train", "test"):
            fields[f"X_{part}"] = arrays[f"X_{part}"].astype(np.float32)
            fields[f"y_{part}"] = np.array(names)[arrays[f"y_{part}"]]
    return TaxonomyDocuments(**fields, taxonomy=taxonomy, path=path)


# --- simulated documents ----------------------------------------------------------------------

_WORDS_OF_NODE = 12


def make_taxonomy(
    n_samples=1000,
    *,
    n_leaves=64,
    depth=3,
    n_words=5000,
    mean_length=20.0,
    topical=0.5,
    random_state=None,
):
    """Draw texts whose words tell the way down a tree to a leaf.

    The language depends on ``n_leaves``, ``depth`` and ``n_words`` alone. Each node has a dozen words of its own, and
    all words have Zipf frequencies in a common background. A word of a document is drawn from the background, or
    from the words of a node on its way down, each node alike.

    Parameters
    ----------
    n_samples : int
        Number of documents, at least 1. The first ones take each leaf once, as far as they go.
    n_leaves : int
        At least 2; all of them at the same depth.
    depth : int
        At least 1: edges from the root to a leaf. Nodes of one level have about equally many children.
    n_words : int
        Size of the vocabulary, at least 12.
    mean_length : float
        Mean number of words of a document, at least 1; the shortest has one.
    topical : float
        Share of the words, from 0 to 1, that come from the nodes.
    random_state : int, numpy.random.Generator or None
        Draws the documents.

    Returns
    -------
    X : list of str
        Texts of words ``w0``, ``w1`` and so on.
    y : ndarray of str of shape (n_samples,)
        Names of leaves: level and number of each node on the way, as ``1.0/2.3/3.12``.
    taxonomy : Taxonomy
        Its root is called ROOT.

    Raises
    ------
    ValueError
        A parameter is out of its range.

    Examples
    --------
    >>> from structsvm.datasets import make_taxonomy
    >>> X, y, taxonomy = make_taxonomy(100, random_state=0)
    >>> len(X), taxonomy
    (100, Taxonomy(85 nodes, 64 leaves, height 3))
    """
    for name, value, least in (
        ("n_samples", n_samples, 1),
        ("n_leaves", n_leaves, 2),
        ("depth", depth, 1),
        ("n_words", n_words, _WORDS_OF_NODE),
        ("mean_length", mean_length, 1),
    ):
        if not value >= least:
            raise ValueError(f"{name} must be at least {least}. Got {value!r}.")
    if not 0.0 <= topical <= 1.0:
        raise ValueError(f"topical must be from 0 to 1. Got {topical!r}.")
    # A leaf's node at each level, numbered through all levels.
    sizes = [max(round(n_leaves ** (level / depth)), 1) for level in range(1, depth)] + [n_leaves]
    on_level = [np.arange(n_leaves)]
    for above, below in zip(sizes[-2::-1], sizes[:0:-1]):
        on_level.insert(0, on_level[0] * above // below)
    ways = np.stack([nodes + before for nodes, before in zip(on_level, np.cumsum([0, *sizes[:-1]]))], axis=1)
    paths = [
        ["/".join(f"{level}.{k}" for level, k in enumerate(way[:end], start=1)) for end in range(1, depth + 1)]
        for way in np.stack(on_level, axis=1).tolist()
    ]
    taxonomy = Taxonomy.from_paths(paths)

    language = np.random.default_rng([n_leaves, depth, n_words])
    words_of_node = np.stack([language.choice(n_words, _WORDS_OF_NODE, replace=False) for _ in range(sum(sizes))])
    background = np.cumsum(1.0 / np.arange(1, n_words + 1))

    rng = np.random.default_rng(random_state)
    leaves = np.concatenate([np.arange(n_leaves), rng.integers(0, n_leaves, max(n_samples - n_leaves, 0))])[:n_samples]
    lengths = 1 + rng.poisson(mean_length - 1.0, n_samples)
    owner = np.repeat(leaves, lengths)
    words = np.searchsorted(background, rng.random(len(owner)) * background[-1])
    node = ways[owner, rng.integers(0, depth, len(owner))]
    own = words_of_node[node, rng.integers(0, _WORDS_OF_NODE, len(owner))]
    words = np.where(rng.random(len(owner)) < topical, own, words)
    names = [f"w{k}" for k in range(n_words)]
    bounds = np.concatenate([[0], np.cumsum(lengths)]).tolist()
    numbers = words.tolist()
    texts = [" ".join([names[k] for k in numbers[a:b]]) for a, b in pairwise(bounds)]
    return texts, np.array([path[-1] for path in paths])[leaves], taxonomy


def write_documents(path, X, y, taxonomy=None, taxonomy_path=None):
    """Write texts as the command line reads them, ``label<TAB>text``; and a taxonomy, ``child<TAB>parent``.

    Parameters
    ----------
    path : path-like
        File to write, UTF-8.
    X : list of str
        Texts of one line each.
    y : sequence of str
    taxonomy : Taxonomy, optional
        Written to `taxonomy_path`.

    Raises
    ------
    ValueError
        X and y differ in length, or a text or a name holds a line break or a tab.
    """
    if len(X) != len(y):
        raise ValueError(f"X has {len(X)} texts and y has {len(y)} labels.")
    rows = [(path, list(zip(y, X, strict=True)))]
    if taxonomy is not None:
        rows.append((taxonomy_path, [(child, parent) for parent, child in taxonomy.edges]))
    for file, pairs in rows:
        for k, pair in enumerate(pairs):
            if any("\t" in str(part) or len(str(part).splitlines()) > 1 for part in pair):
                raise ValueError(f"{file}: line {k + 1} would hold a tab or a line break: {pair!r:.80}.")
        Path(file).write_text("".join(f"{a}\t{b}\n" for a, b in pairs), encoding="utf-8")
