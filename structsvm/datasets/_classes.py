"""Loaders of multiclass data: letters, digits and texts as rows of numbers."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from structsvm.datasets._fetch import fetch

if TYPE_CHECKING:
    from scipy.sparse import csr_array

__all__ = ["LabelledRows", "fetch_20newsgroups", "fetch_letter", "fetch_mnist", "fetch_usps"]


@dataclass(frozen=True, repr=False)
class LabelledRows:
    """Rows of numbers and their classes, split into parts.

    Attributes
    ----------
    X_train, X_test : ndarray or CSR array of shape (n_samples, n_features), float32
    y_train, y_test : ndarray of shape (n_samples,)
        Digits, 1 and -1 (int64), letters or names (str).
    path : Path
        File that they were read from.
    """

    X_train: np.ndarray | csr_array
    y_train: np.ndarray
    X_test: np.ndarray | csr_array
    y_test: np.ndarray
    path: Path

    def __repr__(self):
        sizes = f"n_train={len(self.y_train)}, n_test={len(self.y_test)}, n_features={self.X_train.shape[1]}"
        return f"LabelledRows({sizes})"


def fetch_letter(data_home=None) -> LabelledRows:
    """Letters of distorted fonts (UCI Letter Image Recognition): 26 classes, 16,000 and 4000 examples.

    16 features, whole numbers 0 to 15: the values with which the LaRank paper's duals are reached.

    Parameters
    ----------
    data_home : path-like, optional
        The data folder (``mc_letter/``); see :func:`fetch_conll2000`.

    Returns
    -------
    LabelledRows

    Raises
    ------
    DatasetUnavailableError
        The file is missing and cannot be downloaded, or it is not the right one.

    References
    ----------
    P. W. Frey and D. J. Slate, Letter Recognition Using Holland-Style Adaptive Classifiers, 1991.
    """
    path, content = fetch("letter", data_home)["letter-recognition.data.gz"]
    rows = [line.split(",") for line in content.decode("ascii").split()]
    y = np.array([row[0] for row in rows])
    X = np.array([row[1:] for row in rows], dtype=np.float32)
    return LabelledRows(X[:16000], y[:16000], X[16000:], y[16000:], path)


def _digits(name, data_home, scale):
    """Digits of an .npz file, grey values times `scale`."""
    ((path, _),) = fetch(name, data_home).values()
    with np.load(io.BytesIO(path.read_bytes())) as arrays:
        rows = [arrays[f"X_{part}"] * np.float32(scale) for part in ("train", "test")]
        labels = [arrays[f"y_{part}"].astype(np.int64) for part in ("train", "test")]
    return LabelledRows(rows[0], labels[0], rows[1], labels[1], path)


def fetch_usps(data_home=None) -> LabelledRows:
    """Handwritten digits of postal codes (USPS): 10 classes, 7291 and 2007 examples.

    16 x 16 grey values from -1 to 1, row by row. The file is not made from its origin by this function, and has to be
    there.

    Parameters
    ----------
    data_home : path-like, optional
        The data folder (``mc_usps/``); see :func:`fetch_conll2000`.

    Returns
    -------
    LabelledRows

    Raises
    ------
    DatasetUnavailableError
        The file is missing, or it is not the right one.

    References
    ----------
    Y. Le Cun and others, Handwritten Digit Recognition with a Back-Propagation Network, 1990.
    """
    return _digits("usps", data_home, 1e-3)


def fetch_mnist(data_home=None) -> LabelledRows:
    """Handwritten digits (MNIST): 10 classes, 60,000 and 10,000 examples.

    28 x 28 grey values from 0 to 1, row by row. The file is not made from its origin by this function, and has to be
    there.

    Parameters
    ----------
    data_home : path-like, optional
        The data folder (``mc_mnist/``); see :func:`fetch_conll2000`.

    Returns
    -------
    LabelledRows

    Raises
    ------
    DatasetUnavailableError
        The file is missing, or it is not the right one.

    References
    ----------
    Y. LeCun, L. Bottou, Y. Bengio and P. Haffner, Gradient-Based Learning Applied to Document Recognition, 1998.
    """
    return _digits("mnist", data_home, 1 / 255)


def fetch_20newsgroups(data_home=None) -> LabelledRows:
    """Messages of newsgroups, split by date (20news-bydate): 20 classes, 11,314 and 7532 documents.

    Counts of 32,994 words, sparse; documents stand class by class. What to weigh them by is up to the user. The file is
    not made from its origin by this function, and has to be there.

    Parameters
    ----------
    data_home : path-like, optional
        The data folder (``text_20news/``); see :func:`fetch_conll2000`.

    Returns
    -------
    LabelledRows

    Raises
    ------
    DatasetUnavailableError
        A file is missing, or it is not the right one.

    References
    ----------
    K. Lang, NewsWeeder: Learning to Filter Netnews, 1995.
    """
    from scipy.sparse import csr_array

    files = fetch("20newsgroups", data_home)
    names = np.array(files["classes.txt"][1].decode("ascii").split())
    rows, labels = [], []
    with np.load(io.BytesIO(files["news.npz"][0].read_bytes())) as arrays:
        width = 1 + max(int(arrays[f"{part}_indices"].max()) for part in ("train", "test"))
        for part in ("train", "test"):
            counts = arrays[f"{part}_counts"].astype(np.float32)
            indices, indptr = arrays[f"{part}_indices"], arrays[f"{part}_indptr"]
            rows.append(csr_array((counts, indices, indptr), shape=(len(indptr) - 1, width)))
            labels.append(names[arrays[f"{part}_y"]])
    return LabelledRows(rows[0], labels[0], rows[1], labels[1], files["news.npz"][0])
