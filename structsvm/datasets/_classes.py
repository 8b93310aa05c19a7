"""Loaders of feature vectors with classes: letters, digits, texts, incomes, pages, and rows with ambiguous labels."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from structsvm.datasets._fetch import DataHome, Split, fetch, fields
from structsvm.features.svmlight import label_values, read_rows

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from structsvm.arrays import LabelArray


@dataclass(frozen=True, repr=False)
class LabelledRows(Split["NDArray[np.float32] | csr_array", "LabelArray"]):
    """Feature vectors and their classes, split into parts.

    Attributes
    ----------
    X_train, X_test : ndarray or CSR array of shape (n_samples, n_features), float32
    y_train, y_test : ndarray of shape (n_samples,)
        Digits, 1 and -1 (int64), letters or names (str); of sets of labels 0 and 1, of shape (n_samples, n_labels).
    path : Path
        File that they were read from.

    Examples
    --------
    >>> from structsvm.datasets import fetch_usps
    >>> data = fetch_usps()
    >>> data.X_train.shape, data.y_test.shape
    ((7291, 256), (2007,))
    """

    path: Path

    def _sizes(self) -> dict[str, int]:
        return super()._sizes() | {"n_features": self.X_train.shape[1]}


@dataclass(frozen=True, repr=False)
class CandidateLabels:
    """Rows with a set of candidate labels each.

    Attributes
    ----------
    X : ndarray of shape (n_rows, n_features), float64
        Features as in the source; their ranges differ widely.
    candidates : list of ndarray of int64
        The candidates of each row, ascending; the true label is among them.
    y : ndarray of shape (n_rows,), int64
        The true labels, for evaluation only.
    folds : ndarray of shape (n_rows,), int64
        Cross-validation fold of each row, 0 to 4.
    n_labels : int
    path : Path
        File that they were read from.

    Examples
    --------
    >>> from structsvm.datasets import fetch_lost
    >>> data = fetch_lost()
    >>> data.X.shape, len(data.candidates), data.n_labels
    ((1122, 108), 1122, 16)
    """

    X: NDArray[np.float64]
    candidates: list[NDArray[np.int64]]
    y: NDArray[np.int64]
    folds: NDArray[np.int64]
    n_labels: int
    path: Path

    def __repr__(self) -> str:
        return f"CandidateLabels(n_rows={len(self.X)}, n_labels={self.n_labels})"


# ---- dense rows ----------------------------------------------------------------------------------


def fetch_letter(data_home: DataHome = None) -> LabelledRows:
    """Load letters of distorted fonts (UCI Letter Image Recognition): 26 classes, 16,000 and 4000 examples.

    16 features, integers 0 to 15: the values with which the LaRank paper's duals are reached.

    Folder ``mc_letter/``; parameter and errors are those of :func:`fetch_conll2000`.

    References
    ----------
    P. W. Frey and D. J. Slate, Letter Recognition Using Holland-Style Adaptive Classifiers, 1991.

    Examples
    --------
    >>> from structsvm.datasets import fetch_letter
    >>> fetch_letter().X_train.shape
    (16000, 16)
    """
    file = fetch("letter", data_home)["letter-recognition.data.gz"]
    rows = [line.split(",") for line in file.lines()]
    y = np.array([row[0] for row in rows])
    X = np.array([row[1:] for row in rows], dtype=np.float32)
    return LabelledRows(X[:16000], y[:16000], X[16000:], y[16000:], file.path)


def _digits(name: str, data_home: DataHome, scale: float) -> LabelledRows:
    """Digits of an .npz file, grey values times `scale`."""
    (file,) = fetch(name, data_home).values()
    arrays = file.arrays()
    parts = fields(lambda part: (arrays[f"X_{part}"] * np.float32(scale), arrays[f"y_{part}"].astype(np.int64)))
    return LabelledRows(**parts, path=file.path)


def fetch_usps(data_home: DataHome = None) -> LabelledRows:
    """Load handwritten digits of postal codes (USPS): 10 classes, 7291 and 2007 examples.

    16 x 16 grey values from -1 to 1, row by row.

    Folder ``mc_usps/``, not downloaded; parameter and errors are those of :func:`fetch_conll2000`.

    References
    ----------
    Y. Le Cun and others, Handwritten Digit Recognition with a Back-Propagation Network, 1990.

    Examples
    --------
    >>> from structsvm.datasets import fetch_usps
    >>> fetch_usps().X_train.shape
    (7291, 256)
    """
    return _digits("usps", data_home, 1e-3)


def fetch_mnist(data_home: DataHome = None) -> LabelledRows:
    """Load handwritten digits (MNIST): 10 classes, 60,000 and 10,000 examples.

    28 x 28 grey values from 0 to 1, row by row.

    Folder ``mc_mnist/``, not downloaded; parameter and errors are those of :func:`fetch_conll2000`.

    References
    ----------
    Y. LeCun, L. Bottou, Y. Bengio and P. Haffner, Gradient-Based Learning Applied to Document Recognition, 1998.

    Examples
    --------
    >>> from structsvm.datasets import fetch_mnist
    >>> fetch_mnist().X_train.shape
    (60000, 784)
    """
    return _digits("mnist", data_home, 1 / 255)


def fetch_multilabel_yeast(data_home: DataHome = None) -> LabelledRows:
    """Load genes of yeast and their groups of functions: 14 labels, some 4 per gene, 1500 and 917 examples.

    103 numbers of micro-array experiments and phylogenetic profiles; the published split.

    Folder ``multilabel_yeast/``, not downloaded; parameter and errors are those of :func:`fetch_conll2000`.

    References
    ----------
    A. Elisseeff and J. Weston, A kernel method for multi-labelled classification, NIPS 14, 2001.

    Examples
    --------
    >>> from structsvm.datasets import fetch_multilabel_yeast
    >>> fetch_multilabel_yeast().y_train.shape
    (1500, 14)
    """
    files = fetch("multilabel_yeast", data_home)

    def rows(part: str) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        lines = [line.split() for line in files[f"yeast.{part}.svm.gz"].lines()]
        X, y = np.zeros((len(lines), 103), dtype=np.float32), np.zeros((len(lines), 14), dtype=np.int64)
        for i, (labels, *pairs) in enumerate(lines):
            y[i, [int(label) for label in labels.split(",")]] = 1
            for index, value in (pair.split(":") for pair in pairs):
                X[i, int(index) - 1] = float(value)
        return X, y

    return LabelledRows(**fields(rows), path=files["yeast.train.svm.gz"].path)


# ---- sparse rows ---------------------------------------------------------------------------------


def fetch_20newsgroups(data_home: DataHome = None) -> LabelledRows:
    """Load messages of newsgroups, split by date (20news-bydate): 20 classes, 11,314 and 7532 documents.

    Counts of 32,994 words in CSR arrays, unweighted; documents are sorted by class.

    Folder ``text_20news/``, not downloaded; parameter and errors are those of :func:`fetch_conll2000`.

    References
    ----------
    K. Lang, NewsWeeder: Learning to Filter Netnews, 1995.

    Examples
    --------
    >>> from structsvm.datasets import fetch_20newsgroups
    >>> fetch_20newsgroups().X_train.shape
    (11314, 32994)
    """
    from scipy.sparse import csr_array

    files = fetch("20newsgroups", data_home)
    names, arrays = np.array(files["classes.txt"].lines()), files["news.npz"].arrays()
    width = 1 + max(int(arrays[f"{part}_indices"].max()) for part in ("train", "test"))

    def rows(part: str) -> tuple[csr_array, LabelArray]:
        counts, indices, indptr, y = (arrays[f"{part}_{key}"] for key in ("counts", "indices", "indptr", "y"))
        return csr_array((counts.astype(np.float32), indices, indptr), shape=(len(indptr) - 1, width)), names[y]

    return LabelledRows(**fields(rows), path=files["news.npz"].path)


def _svmlight(name: str, data_home: DataHome, prefix: str, n_features: int) -> LabelledRows:
    """Training and test file in svmlight format, as CSR arrays of `n_features` columns."""
    from scipy.sparse import csr_array

    files = fetch(name, data_home)

    def rows(part: str) -> tuple[csr_array, LabelArray]:
        X, labels, *_ = read_rows(io.BytesIO(files[f"{prefix}.{part}.svm.gz"].content), 1)
        return csr_array((X.data, X.indices, X.indptr), shape=(X.shape[0], n_features)), label_values(labels or [])

    return LabelledRows(**fields(rows), path=files[f"{prefix}.train.svm.gz"].path)


def fetch_adult(data_home: DataHome = None) -> LabelledRows:
    """Load incomes of adults in a census (a9a): 32,561 and 16,281 examples of 123 binary features; 24 % have y = 1.

    X_train and X_test are CSR arrays; y is 1 or -1.

    Folder ``linear_adult/``, not downloaded; parameter and errors are those of :func:`fetch_conll2000`.

    References
    ----------
    B. Becker and R. Kohavi, Adult, 1996; J. Platt, Sequential Minimal Optimization, 1998.

    Examples
    --------
    >>> from structsvm.datasets import fetch_adult
    >>> fetch_adult().X_train.shape
    (32561, 123)
    """
    return _svmlight("adult", data_home, "a9a", 123)


def fetch_w8a(data_home: DataHome = None) -> LabelledRows:
    """Load categories of web pages (w8a): 40,561 and 9188 examples of 300 binary features; 3 % have y = 1.

    X_train and X_test are CSR arrays; y is 1 or -1.

    Folder ``linear_w8a/``, not downloaded; parameter and errors are those of :func:`fetch_conll2000`.

    References
    ----------
    J. Platt, Fast Training of Support Vector Machines using Sequential Minimal Optimization, 1999.

    Examples
    --------
    >>> from structsvm.datasets import fetch_w8a
    >>> fetch_w8a().X_train.shape
    (40561, 300)
    """
    return _svmlight("w8a", data_home, "w8a", 300)


# ---- candidate labels ----------------------------------------------------------------------------


def _candidate_labels(name: str, data_home: DataHome) -> CandidateLabels:
    (file,) = fetch(name, data_home).values()
    arrays = file.arrays()
    candidates = [np.flatnonzero(row) for row in arrays["S"]]
    return CandidateLabels(arrays["X"], candidates, arrays["y"], arrays["fold"], arrays["S"].shape[1], file.path)


def fetch_lost(data_home: DataHome = None) -> CandidateLabels:
    """Load faces of the TV series Lost, with the names that scripts and captions allow.

    1122 faces of 108 features; 16 names, 2.23 candidates per face on average. For research only.

    Folder ``pl_lost/``, not downloaded; parameter and errors are those of :func:`fetch_conll2000`.

    References
    ----------
    T. Cour, B. Sapp and B. Taskar, Learning from partial labels, JMLR 12, 2011.

    Examples
    --------
    >>> from structsvm.datasets import fetch_lost
    >>> fetch_lost().X.shape
    (1122, 108)
    """
    return _candidate_labels("lost", data_home)


def fetch_msrcv2(data_home: DataHome = None) -> CandidateLabels:
    """Load segments of the MSRCv2 images, with the classes of all objects in their image.

    1758 segments of 48 features; 23 classes, 3.16 candidates per segment on average. For research only.

    Folder ``pl_msrcv2/``, not downloaded; parameter and errors are those of :func:`fetch_conll2000`.

    References
    ----------
    L. Liu and T. Dietterich, A conditional multinomial mixture model for superset label learning, NIPS 25, 2012.

    Examples
    --------
    >>> from structsvm.datasets import fetch_msrcv2
    >>> fetch_msrcv2().X.shape
    (1758, 48)
    """
    return _candidate_labels("msrcv2", data_home)
