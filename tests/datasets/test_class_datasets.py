"""Multiclass data sets: the real files where STRUCTSVM_DATA has them."""

import gzip
import os

import numpy as np
import pytest

from structsvm import datasets
from structsvm.datasets import DatasetUnavailableError, _fetch, _sources

real_data = pytest.mark.skipif("STRUCTSVM_DATA" not in os.environ, reason="STRUCTSVM_DATA does not name a data folder")


@real_data
def test_letter():
    data = datasets.fetch_letter()
    assert (data.X_train.shape, data.X_test.shape) == ((16000, 16), (4000, 16))
    assert data.X_train.dtype == np.float32 and set(np.unique(data.X_train)) == set(range(16))
    assert data.y_train[:3].tolist() == ["T", "I", "D"]
    assert data.X_train[0].tolist() == [2, 8, 3, 5, 1, 8, 13, 0, 6, 6, 10, 8, 0, 8, 0, 8]
    assert len(set(data.y_train)) == 26
    assert repr(data) == "LabelledRows(n_train=16000, n_test=4000, n_features=16)"


@real_data
def test_letter_conversion(tmp_path):
    """The published file, with a line of names before it, gives ours."""
    path = datasets.fetch_letter().path
    (tmp_path / "archive").write_bytes(b"lettr,x-box\n" + gzip.decompress(path.read_bytes()))
    source = _sources.SOURCES["letter"]
    made = source.convert(tmp_path / "archive")
    _fetch._checked(source, path.name, made[path.name], path.name)


@real_data
@pytest.mark.parametrize(
    ("name", "shape", "counts", "low"),
    [
        ("usps", (7291, 256), [1194, 1005, 731, 658, 652, 556, 664, 645, 542, 644], -1.0),
        ("mnist", (60000, 784), [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949], 0.0),
    ],
)
def test_digits(name, shape, counts, low):
    data = getattr(datasets, f"fetch_{name}")()
    assert data.X_train.shape == shape and data.X_test.shape[1] == shape[1]
    assert data.X_train.dtype == np.float32 and data.X_train.flags.c_contiguous
    assert data.X_train.min() == low and data.X_train.max() == pytest.approx(1.0)
    assert np.bincount(data.y_train).tolist() == counts


@real_data
def test_20newsgroups():
    data = datasets.fetch_20newsgroups()
    assert (data.X_train.shape, data.X_test.shape) == ((11314, 32994), (7532, 32994))
    assert (data.X_train.nnz, data.X_test.nnz) == (1486188, 953094)
    assert data.X_train.dtype == np.float32 and data.X_train.has_sorted_indices
    names, counts = np.unique(data.y_train, return_counts=True)
    assert (len(names), names[0], counts[0]) == (20, "alt.atheism", 480)


def test_files_that_are_not_there(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pooch", None)
    fetches = (datasets.fetch_letter, datasets.fetch_usps, datasets.fetch_mnist, datasets.fetch_20newsgroups)
    for fetch, folder in zip(fetches, ("mc_letter", "mc_usps", "mc_mnist", "text_20news"), strict=True):
        with pytest.raises(DatasetUnavailableError, match=folder):
            fetch(tmp_path)
