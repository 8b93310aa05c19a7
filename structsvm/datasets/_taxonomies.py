"""Documents in a taxonomy: loaders of real ones, and a simulator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from numbers import Integral, Real
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from structsvm.datasets._draws import SHARE, RandomState, draw, zipf
from structsvm.datasets._fetch import DataHome, File, Split, fetch, fields
from structsvm.files.new_file import new_file
from structsvm.parameters import COUNT, Interval, check_arguments
from structsvm.structures.taxonomy import Taxonomy


@dataclass(frozen=True, repr=False)
class TaxonomyDocuments(Split[Any, NDArray[np.str_]]):
    """Documents labelled by leaves of a taxonomy, split into parts.

    Attributes
    ----------
    X_train, X_test : list of str, or ndarray of shape (n_documents, n_features)
    y_train, y_test : ndarray of str
        Names of leaves: the names on the path down to each, joined by ``/``.
    taxonomy : Taxonomy
        Its root is called ROOT.
    path : Path
        File of the documents.
    X_valid, y_valid
        The development part, or None.

    Examples
    --------
    >>> from structsvm.datasets import fetch_clinc150
    >>> data = fetch_clinc150()
    >>> len(data.X_train), len(data.taxonomy.leaves)
    (15000, 150)
    """

    taxonomy: Taxonomy
    path: Path
    X_valid: Any = None
    y_valid: NDArray[np.str_] | None = None

    def _sizes(self) -> dict[str, int]:
        return super()._sizes() | {"n_classes": len(self.taxonomy.leaves)}


def _nodes(table: File) -> tuple[Taxonomy, list[str]]:
    """The taxonomy of a table id, parent, depth, is_leaf, path; and the names of the ids."""
    rows = table.rows()[1:]
    names = [row[4] for row in rows]
    return Taxonomy.from_parents([int(row[1]) for row in rows], names), names


def _texts(name: str, data_home: DataHome) -> TaxonomyDocuments:
    files = fetch(name, data_home)
    taxonomy, names = _nodes(files["taxonomy.tsv"])
    rows = files["docs.tsv.gz"].rows()

    def read(part: str) -> tuple[list[str], NDArray[np.str_]]:
        documents = [(text, names[int(leaf)]) for _, of, leaf, text in rows if of == part]
        return [text for text, _ in documents], np.array([name for _, name in documents])

    return TaxonomyDocuments(
        **fields(read, "train", "valid", "test"), taxonomy=taxonomy, path=files["docs.tsv.gz"].path
    )


def fetch_clinc150(data_home: DataHome = None) -> TaxonomyDocuments:
    """Load queries to an assistant: 150 intents in 10 domains.

    X are texts: 100, 20 and 30 queries per intent for training, validation and test, without the out-of-scope ones.
    Licence: Creative Commons Attribution 3.0.

    Folder ``taxo_clinc150/``; parameter and errors are those of :func:`fetch_conll2000`.

    References
    ----------
    S. Larson and others, An evaluation dataset for intent classification and out-of-scope prediction, EMNLP 2019.

    Examples
    --------
    >>> from structsvm.datasets import fetch_clinc150
    >>> len(fetch_clinc150().X_train)
    15000
    """
    return _texts("clinc150", data_home)


def fetch_amazon_reviews(data_home: DataHome = None) -> TaxonomyDocuments:
    """Load product reviews: 317 leaves below 62 groups in 6 departments, 6244, 884 and 1819 documents.

    X are texts. No product is in two parts; the leaves have 1 to 658 documents. For research only.

    Folder ``taxo_amazon/``, not downloaded; parameter and errors are those of :func:`fetch_conll2000`.

    References
    ----------
    J. McAuley and J. Leskovec, Hidden factors and hidden topics: understanding rating dimensions with review text,
    2013.

    Examples
    --------
    >>> from structsvm.datasets import fetch_amazon_reviews
    >>> len(fetch_amazon_reviews().X_train)
    6244
    """
    return _texts("amazon_reviews", data_home)


def fetch_imclef07a(data_home: DataHome = None) -> TaxonomyDocuments:
    """Load X-ray images by anatomy (ImageCLEF 2007): 63 leaves of a code tree of 3 levels, 10,000 and 1006 images.

    X are arrays (float32): an image is 80 bins of an edge histogram, integers 0 to 7.

    Folder ``taxo_imclef07a/``, not downloaded; parameter and errors are those of :func:`fetch_conll2000`.

    References
    ----------
    I. Dimitrovski, D. Kocev, S. Loskovska and S. Dzeroski, Hierarchical annotation of medical images, 2011.

    Examples
    --------
    >>> from structsvm.datasets import fetch_imclef07a
    >>> fetch_imclef07a().X_train.shape
    (10000, 80)
    """
    files = fetch("imclef07a", data_home)
    taxonomy, names = _nodes(files["taxonomy.tsv"])
    arrays = files["imclef07a.npz"].arrays()
    parts = fields(lambda part: (arrays[f"X_{part}"].astype(np.float32), np.array(names)[arrays[f"y_{part}"]]))
    return TaxonomyDocuments(**parts, taxonomy=taxonomy, path=files["imclef07a.npz"].path)


# ---- simulated documents -------------------------------------------------------------------------

_WORDS_OF_NODE = 12


def make_taxonomy(
    n_samples: int = 1000,
    *,
    n_leaves: int = 64,
    depth: int = 3,
    n_words: int = 5000,
    mean_length: float = 20.0,
    topical: float = 0.5,
    random_state: RandomState = None,
) -> tuple[list[str], NDArray[np.str_], Taxonomy]:
    """Draw texts whose words reveal the path down a tree to a leaf.

    The language depends on ``n_leaves``, ``depth`` and ``n_words`` alone. Each node has a dozen words of its own, and
    all words have Zipf frequencies in a common background. A word of a document is drawn from the background, or
    from the words of a node on its path, all nodes equally likely.

    Parameters
    ----------
    n_samples : int
        Number of documents, at least 1. The first ``n_leaves`` have one leaf each.
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
        Names of leaves: level and number of each node on the path, as ``1.0/2.3/3.12``.
    taxonomy : Taxonomy
        Its root is called ROOT.

    Examples
    --------
    >>> from structsvm.datasets import make_taxonomy
    >>> X, y, taxonomy = make_taxonomy(100, random_state=0)
    >>> len(X), taxonomy
    (100, Taxonomy(85 nodes, 64 leaves, height 3))
    """
    check_arguments(
        "make_taxonomy",
        locals(),
        n_samples=COUNT,
        n_leaves=Interval(Integral, 2),
        depth=COUNT,
        n_words=Interval(Integral, _WORDS_OF_NODE),
        mean_length=Interval(Real, 1),
        topical=SHARE,
    )
    # The index of each leaf's node at each level, counted through all levels.
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

    rng = np.random.default_rng(random_state)
    leaves = np.concatenate([np.arange(n_leaves), rng.integers(0, n_leaves, max(n_samples - n_leaves, 0))])[:n_samples]
    lengths = 1 + rng.poisson(mean_length - 1.0, n_samples)
    owner = np.repeat(leaves, lengths)
    words = draw(rng, zipf(n_words), len(owner))
    node = ways[owner, rng.integers(0, depth, len(owner))]
    own = words_of_node[node, rng.integers(0, _WORDS_OF_NODE, len(owner))]
    words = np.where(rng.random(len(owner)) < topical, own, words)
    names = [f"w{k}" for k in range(n_words)]
    bounds = np.concatenate([[0], np.cumsum(lengths)]).tolist()
    word_ids = words.tolist()
    texts = [" ".join([names[k] for k in word_ids[a:b]]) for a, b in pairwise(bounds)]
    return texts, np.array([path[-1] for path in paths])[leaves], taxonomy


def write_documents(
    path: str | PathLike[str],
    X: Sequence[str],
    y: Sequence[str],
    taxonomy: Taxonomy | None = None,
    taxonomy_path: str | PathLike[str] | None = None,
) -> None:
    r"""Write texts as the command line reads them, ``label<TAB>text``; and a taxonomy, ``child<TAB>parent``.

    Parameters
    ----------
    path : path-like
        File to write, UTF-8.
    X : list of str
        Texts without line breaks.
    y : sequence of str
    taxonomy : Taxonomy, optional
    taxonomy_path : path-like, optional
        File to write `taxonomy` to.

    Raises
    ------
    ValueError
        X and y differ in length, `taxonomy` has no `taxonomy_path`, or a text or name contains a line break or a tab.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from structsvm.datasets import write_documents
    >>> path = Path(tempfile.mkdtemp()) / "train.txt"
    >>> write_documents(path, ["king and rook", "five dice"], ["chess", "dice"])
    >>> path.read_text().splitlines()
    ['chess\tking and rook', 'dice\tfive dice']
    """
    if len(X) != len(y):
        raise ValueError(f"X has {len(X)} texts and y has {len(y)} labels.")
    tables = [(path, list(zip(y, X, strict=True)))]
    if taxonomy is not None:
        if taxonomy_path is None:
            raise ValueError("taxonomy_path must name the file to write taxonomy to. Got None.")
        tables.append((taxonomy_path, [(child, parent) for parent, child in taxonomy.edges]))
    for file, pairs in tables:
        for k, pair in enumerate(pairs):
            if any("\t" in str(part) or len(str(part).splitlines()) > 1 for part in pair):
                raise ValueError(f"{file}: line {k + 1} would contain a tab or a line break: {pair!r:.80}.")
        with new_file(file, "w", encoding="utf-8", newline="\n") as stream:
            stream.writelines(f"{a}\t{b}\n" for a, b in pairs)
