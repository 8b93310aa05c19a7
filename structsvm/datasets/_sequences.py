"""Loaders of the data sets of label sequences, and of labelled graphs."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
from numpy.typing import NDArray

from structsvm.datasets._fetch import DataHome, File, Split, fetch, fields


@dataclass(frozen=True, repr=False)
class TextSequences(Split[list[list[tuple[str, ...]]], list[list[str]]]):
    """Labelled sentences, split into parts.

    Attributes
    ----------
    X_train, X_test : list of (list of tuple of str)
        Sentences; a token is the tuple of its columns, (word, tag) or (word,).
    y_train, y_test : list of (list of str)
        The labels of their tokens.
    train_path, test_path : Path
        Column files of the parts, as the command line reads them.
    X_valid, y_valid, valid_path
        The development part, or None.

    Examples
    --------
    >>> from structsvm.datasets import fetch_conll2000
    >>> data = fetch_conll2000()
    >>> data.X_train[0][0], data.y_train[0][0]
    (('Confidence', 'NN'), 'B-NP')
    """

    train_path: Path
    test_path: Path
    X_valid: list[list[tuple[str, ...]]] | None = None
    y_valid: list[list[str]] | None = None
    valid_path: Path | None = None


@dataclass(frozen=True, repr=False)
class LetterSequences:
    """Handwritten words.

    Attributes
    ----------
    X : list of ndarray of shape (length, 128), float32
        Words; a row is the 16 x 8 binary pixels of a letter, row by row.
    y : list of (list of str)
        Their letters, "a" to "z".
    folds : ndarray of shape (n_words,), uint8
        Cross-validation fold of each word, 0 to 9.
    path : Path
        File that they were read from.

    Examples
    --------
    >>> from structsvm.datasets import fetch_ocr_letters
    >>> data = fetch_ocr_letters()
    >>> data.X[0].shape[1], "".join(data.y[0])
    (128, 'ommanding')
    """

    X: list[NDArray[np.float32]]
    y: list[list[str]]
    folds: NDArray[np.uint8]
    path: Path

    def __repr__(self) -> str:
        return f"LetterSequences(n_words={len(self.X)})"


def _parse(file: File) -> tuple[list[list[tuple[str, ...]]], list[list[str]]]:
    """X and y of a column text whose last column is the label."""
    X, y = [], []
    for sentence in file.content.decode("utf-8").strip("\n").split("\n\n"):
        columns = [tuple(line.split(" ")) for line in sentence.split("\n")]
        X.append([token[:-1] for token in columns])
        y.append([token[-1] for token in columns])
    return X, y


def _text_sequences(name: str, data_home: DataHome, **parts: str) -> TextSequences:
    """TextSequences of a data set, given the file of each part (train, test, valid)."""
    files = fetch(name, data_home)
    paths: dict[str, Any] = {f"{part}_path": files[file].path for part, file in parts.items()}
    return TextSequences(**fields(lambda part: _parse(files[parts[part]]), *parts), **paths)


def fetch_conll2000(data_home: DataHome = None) -> TextSequences:
    """Load the CoNLL-2000 shared task, text chunking: Wall Street Journal, 11 chunk types in IOB2.

    8936 sentences (211,727 tokens, 22 labels) for training, 2012 (47,377) for test; tokens are (word, part-of-speech
    tag). For research use only.

    Parameters
    ----------
    data_home : path-like, optional
        The data folder, which contains ``chunk_conll2000/`` or to which it is downloaded; by default that of the
        environment variable ``STRUCTSVM_DATA``, else the system's folder for caches (``~/.cache/structsvm``, say), or
        ``~/structsvm_data`` where there is one.

    Returns
    -------
    TextSequences

    Raises
    ------
    DatasetUnavailableError
        A file is missing and cannot be downloaded, or is damaged. The message names the file, where to put it, its
        origin and its licence.

    References
    ----------
    E. Tjong Kim Sang and S. Buchholz, Introduction to the CoNLL-2000 Shared Task: Chunking, 2000.

    Examples
    --------
    >>> from structsvm.datasets import fetch_conll2000
    >>> len(fetch_conll2000().X_train)
    8936
    """
    return _text_sequences("conll2000", data_home, train="train.txt.gz", test="test.txt.gz")


def fetch_conll2002(data_home: DataHome = None) -> TextSequences:
    """Load the Spanish named entities of the CoNLL-2002 shared task: PER, LOC, ORG and MISC in IOB2.

    8323 sentences (264,715 tokens, 9 labels) for training, ``testa`` with 1915 (52,923) as the ``valid`` part,
    ``testb`` with 1517 (51,533) for test; tokens are (word, part-of-speech tag). For research in the context of the
    shared task only.

    Folder ``ner_conll2002_es/``; parameter and errors are those of :func:`fetch_conll2000`.

    References
    ----------
    E. Tjong Kim Sang, Introduction to the CoNLL-2002 Shared Task, 2002.

    Examples
    --------
    >>> from structsvm.datasets import fetch_conll2002
    >>> len(fetch_conll2002().X_valid)
    1915
    """
    parts = {"train": "esp.train.gz", "valid": "esp.testa.gz", "test": "esp.testb.gz"}
    return _text_sequences("conll2002", data_home, **parts)


def fetch_treebank_tags(data_home: DataHome = None) -> TextSequences:
    """Load the part-of-speech tags of NLTK's sample of the Penn Treebank (Wall Street Journal).

    wsj_0001 to wsj_0159 are 3396 sentences (81,793 tokens, 45 labels) for training, wsj_0160 to wsj_0199 are 518
    (12,291) for test; tokens are (word,). For non-commercial use only.

    Folder ``wsj_sample/``; parameter and errors are those of :func:`fetch_conll2000`.

    References
    ----------
    M. Marcus, M. A. Marcinkiewicz and B. Santorini, Building a large annotated corpus of English: the Penn Treebank,
    Computational Linguistics 19(2), 1993.

    Examples
    --------
    >>> from structsvm.datasets import fetch_treebank_tags
    >>> len(fetch_treebank_tags().X_train)
    3396
    """
    return _text_sequences("treebank_tags", data_home, train="pos.train.txt.gz", test="pos.test.txt.gz")


# ---- records -------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class LabelledRecords(Split[list[list[str]], list[list[str]]]):
    """Short strings whose fields are labelled, as lists of words.

    Attributes
    ----------
    X_train, X_test : list of (list of str)
        Records; a token is a word with the punctuation that follows it.
    y_train, y_test : list of (list of str)
        The fields of their words.
    path : Path
        The folder that they were read from.

    Examples
    --------
    >>> from structsvm.datasets import fetch_citations
    >>> data = fetch_citations()
    >>> list(zip(data.X_train[0], data.y_train[0]))[:3]
    [('Heidegger', 'author'), ('M.,', 'author'), ('1927,', 'date')]
    """

    path: Path


def _records(file: File) -> tuple[list[list[str]], list[list[str]]]:
    """X and y of an XML file of records, whose elements are runs of words of one field."""
    X, y = [], []
    for record in ET.fromstring(file.content):  # noqa: S314 - its hash was checked
        words = []
        for field in record:
            attached = (field.tail or " ").split(" ")[0].strip()  # punctuation between a field and the blank
            words.append(((field.text or "").rstrip() + attached).split())
        X.append([word for run in words for word in run])
        y.append([field.tag for field, run in zip(record, words, strict=True) for _ in run])
    return X, y


def fetch_addresses(data_home: DataHome = None, *, part: str = "labeled") -> LabelledRecords:
    """Load addresses of the United States, labelled by hand for the parser usaddress: 29 fields.

    1513 addresses for training. Three parts for test: "labeled", 146 of the same kind; "us50", 687 addresses of
    businesses in the fifty states; "osm", 4120 made from OpenStreetMap. MIT licence.

    Folder ``address_us/``; other parameters and errors are those of :func:`fetch_conll2000`.

    Parameters
    ----------
    part : {"labeled", "us50", "osm"}
        The part for test.

    Examples
    --------
    >>> from structsvm.datasets import fetch_addresses
    >>> fetch_addresses(part="osm").X_test[0]
    ['2701', 'Thayer', 'Street,', 'Evanston,', '60201']
    """
    parts = ("labeled", "us50", "osm")
    if part not in parts:
        raise ValueError(f"part must be one of {', '.join(parts)}, got {part!r}")
    files = fetch("addresses", data_home)
    names = {"train": "train.xml.gz", "test": f"test_{part}.xml.gz"}
    read = fields(lambda name: _records(files[names[name]]))
    return LabelledRecords(**read, path=files["train.xml.gz"].path.parent)


def fetch_citations(data_home: DataHome = None) -> LabelledRecords:
    """Load bibliographic references, labelled for the parser AnyStyle: authors, titles, dates and 20 other fields.

    1514 references for training, 1669 for test. BSD-2-Clause licence.

    Folder ``cite_anystyle/``; parameter and errors are those of :func:`fetch_conll2000`.

    Examples
    --------
    >>> from structsvm.datasets import fetch_citations
    >>> len(fetch_citations().X_test)
    1669
    """
    files = fetch("citations", data_home)
    read = fields(lambda name: _records(files[f"{name}.xml.gz"]))
    return LabelledRecords(**read, path=files["train.xml.gz"].path.parent)


# ---- letters -------------------------------------------------------------------------------------


def fetch_ocr_letters(data_home: DataHome = None) -> LetterSequences:
    """Load handwritten words: 6877 words, 52,152 letters of 16 x 8 binary pixels, 10 folds.

    There are 55 different words, all of them in every fold, so transitions learn the vocabulary.

    Folder ``ocr_letters/``; parameter and errors are those of :func:`fetch_conll2000`.

    References
    ----------
    R. Kassel, A comparison of approaches to on-line handwritten character recognition, 1995;
    normalised by B. Taskar, C. Guestrin and D. Koller, Max-Margin Markov Networks, NIPS 2003.

    Examples
    --------
    >>> from structsvm.datasets import fetch_ocr_letters
    >>> len(fetch_ocr_letters().X)
    6877
    """
    file = fetch("ocr_letters", data_home)["ocr.npz"]
    arrays = file.arrays()
    pixels = np.unpackbits(arrays["pixels"], axis=1).astype(np.float32)
    letters = [chr(ord("a") + label) for label in arrays["labels"]]
    words = list(pairwise(arrays["offsets"].tolist()))
    return LetterSequences(
        X=[pixels[begin:end] for begin, end in words],
        y=[letters[begin:end] for begin, end in words],
        folds=arrays["folds"],
        path=file.path,
    )


# ---- graphs --------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class LabelledGraphs(Split[list[Any], list[NDArray[np.uint8]]]):
    """Graphs with labelled nodes, split into parts.

    Attributes
    ----------
    X_train, X_test : list of (nodes, edges, edge_features), or of grids (height, width, n_features)
    y_train, y_test : list of ndarray of uint8
        The labels of their nodes, those of a grid in its shape: 1 for the horse, 0 for what is around it.
    sizes_train, sizes_test : list of ndarray of int32
        For graphs, pixels of each node, and how many of them are the horse's, arrays (n_nodes, 2). None for grids.
    path : Path
        File that they were read from.

    Examples
    --------
    >>> from structsvm.datasets import fetch_graph_horses
    >>> nodes, edges, edge_features = fetch_graph_horses().X_train[0]
    >>> nodes.shape[1], edge_features.shape[1]
    (19, 5)
    """

    sizes_train: list[NDArray[np.int32]] | None
    sizes_test: list[NDArray[np.int32]] | None
    path: Path


def fetch_graph_horses(data_home: DataHome = None) -> LabelledGraphs:
    """Load 328 photographs of horses as graphs of superpixels: 200 to train on, 128 to test on.

    The Weizmann horses (Borenstein and Ullman 2002), about 120 nodes a picture; a node is horse where most of its
    pixels are. 19 features of nodes: mean and deviation of L, a, b; place; area; gradient; share at the border; 8 bins
    of directions. 5 features of edges: common border, differences of L and of (a, b), gradient along the border,
    whether one is above the other. Pixels would be 96.4 % right at best in the test part. Licence: none stated.

    Folder ``graph_horses/``; parameter and errors are those of :func:`fetch_conll2000`.

    Examples
    --------
    >>> from structsvm.datasets import fetch_graph_horses
    >>> len(fetch_graph_horses().X_train)
    200
    """
    file = fetch("graph_horses", data_home)["horses_superpixels.npz"]
    d = file.arrays()
    nodes, edges = d["node_ptr"].tolist(), d["edge_ptr"].tolist()
    sizes = np.column_stack([d["node_pixels"], d["node_fg_pixels"]])

    def graphs(part: str) -> tuple[Any, ...]:
        chosen = np.flatnonzero(d["is_train"] == (part == "train")).tolist()
        at, between = ([slice(p[i], p[i + 1]) for i in chosen] for p in (nodes, edges))
        X = [(d["node_x"][a], d["edges"][b].astype(np.int32), d["edge_x"][b]) for a, b in zip(at, between, strict=True)]
        return X, [d["node_y"][a] for a in at], [sizes[a] for a in at]

    return LabelledGraphs(**fields(graphs, names=("X", "y", "sizes")), path=file.path)


def fetch_grid_horses64(data_home: DataHome = None) -> LabelledGraphs:
    """Load the pictures of :func:`fetch_graph_horses` as grids of 64 x 64 pixels, with the same parts.

    X holds their colours, arrays (64, 64, 3) of R, G, B from 0 to 1, float32.

    Folder ``grid_horses64/``; parameter and errors are those of :func:`fetch_conll2000`.

    Examples
    --------
    >>> from structsvm.datasets import fetch_grid_horses64
    >>> fetch_grid_horses64().X_train[0].shape
    (64, 64, 3)
    """
    file = fetch("grid_horses64", data_home)["horses64.npz"]
    d = file.arrays()
    shape = tuple(d["mask_shape"].tolist())
    masks = np.unpackbits(d["mask"])[: int(np.prod(shape))].reshape(shape)

    def grids(part: str) -> tuple[Any, ...]:
        chosen = d["is_train"] == (part == "train")
        return list(d["image"][chosen].astype(np.float32) / np.float32(255.0)), list(masks[chosen]), None

    return LabelledGraphs(**fields(grids, names=("X", "y", "sizes")), path=file.path)
