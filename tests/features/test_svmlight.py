"""Files in svmlight's form."""

import gzip

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from structsvm.features.svmlight import SvmlightFileError, read_svmlight, write_svmlight


def test_read(tmp_path):
    text = b"+1 1:0.5 3:-2  # a comment\n\n# nothing\n-1 2:1e-3\r\n7\n"
    for name, data in (("a.svm", text), ("a.svm.gz", gzip.compress(text))):
        (tmp_path / name).write_bytes(data)
        X, y = read_svmlight(tmp_path / name)
        np.testing.assert_array_equal(X.toarray(), np.array([[0.5, 0, -2], [0, 1e-3, 0], [0, 0, 0]], dtype=np.float32))
        assert y.tolist() == [1, -1, 7] and y.dtype == np.int64
        assert X.dtype == np.float32


def test_whole_numbers_are_integers(tmp_path):
    (tmp_path / "a").write_text("1.0 1:1\n-2 1:1\n+3e0 1:1\n")
    np.testing.assert_array_equal(read_svmlight(tmp_path / "a")[1], [1, -2, 3])
    (tmp_path / "a").write_text("1.5 1:1\n1 1:1\n")
    assert read_svmlight(tmp_path / "a")[1].tolist() == ["1.5", "1"]


def test_labels_may_be_words(tmp_path):
    (tmp_path / "a").write_text("cat 2:1\n3 1:1\n", encoding="utf-8")
    X, y = read_svmlight(tmp_path / "a")
    assert y.tolist() == ["cat", "3"] and X.shape == (2, 2)
    (tmp_path / "a").write_text("1_0 2:1\n3 1:1\n\u0661 1:2  # \u0661_\n", encoding="utf-8")
    assert read_svmlight(tmp_path / "a")[1].tolist() == ["1_0", "3", "\u0661"]


@given(seed=st.integers(0, 10**6))
@settings(max_examples=10)
def test_written_is_read(seed, tmp_path_factory):
    rng = np.random.default_rng(seed)
    X = (rng.normal(size=(8, 5)) * (rng.random((8, 5)) < 0.5)).astype(np.float32)
    X[0, 4] = 1.0
    y = rng.integers(-3, 3, 8)
    path = tmp_path_factory.mktemp("svm") / "a"
    write_svmlight(path, sp.csr_array(X) if seed % 2 else X, y)
    found, labels = read_svmlight(path)
    np.testing.assert_array_equal(found.toarray(), X)
    np.testing.assert_array_equal(labels, y)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 1:2\n1 2\n", "line 2: expected a label and index:value pairs, found '1 2'"),
        ("1 1:2\n\n1 a:2\n", "line 3: expected"),
        ("1 1:2:3\n", "line 1: expected"),
        ("1 1:2\n1 1:1_0\n", "line 2: expected"),
        ("1 1_0:2\n", "line 1: expected"),
        ("1 1:\u0661\n", "line 1: expected"),
        ("1 -1:2\n", "line 1: an index that is not in 1"),
        ("1 1:2\n1 0:1 3000000000:2\n", "line 2: an index that is not in 1"),
        ("1 1:2\n2:1\n", "line 2: has no label, unlike the lines before: '2:1'"),
        ("1:2\n\n1 2:1\n", "line 3: has a label, unlike the lines before: '1 2:1'"),
        ("1 1:1 qid:3\n", "line 1: expected"),
        ("1 1:2\n1 3000000000:2\n", "line 2: an index that is not in 1"),
        ("1 2:2 2:3\n", "line 1: a repeated index"),
        ("1 1:2 2:3\n1\n1 1:1 2:nan\n", "line 3: a value that is not a finite"),
        ("1 1:1e300\n", "line 1: a value that is not a finite"),
        ("# only this\n", "contains no examples"),
        ("", "contains no examples"),
    ],
)
def test_errors_name_file_and_line(tmp_path, text, message):
    (tmp_path / "bad.svm").write_text(text, encoding="utf-8")
    with pytest.raises(SvmlightFileError, match=f"bad.svm[,:].*{message}"):
        read_svmlight(tmp_path / "bad.svm")


@pytest.mark.parametrize("zero_based", [True, False])
@pytest.mark.parametrize("comment", [None, "a\nb"])
def test_files_of_scikit_learn(zero_based, comment, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 5)) * (rng.random((30, 5)) < 0.6)
    y, qid = rng.integers(0, 3, 30), np.sort(rng.integers(0, 4, 30))
    dump_svmlight_file(X, y, str(tmp_path / "a"), zero_based=zero_based, comment=comment, query_id=qid)
    found, labels = read_svmlight(tmp_path / "a")
    wanted, targets = load_svmlight_file(str(tmp_path / "a"), dtype=np.float32)
    np.testing.assert_array_equal(found.toarray(), wanted.toarray())
    np.testing.assert_array_equal(labels, targets)
    assert found.shape == (30, 5)
    for first in (0, 1):
        if first and zero_based:
            with pytest.raises(SvmlightFileError, match="has the index 0, and the indices of the data before begin"):
                read_svmlight(tmp_path / "a", first_index=1)
        else:
            assert read_svmlight(tmp_path / "a", first_index=first)[0].shape[1] == 5 + (not zero_based) * (1 - first)


def test_lines_without_labels(tmp_path):
    (tmp_path / "a").write_text("1:2 2:3\n# nothing\nqid:3 2:1 # a comment\n")
    X, y = read_svmlight(tmp_path / "a")
    assert y is None and X.toarray().tolist() == [[2, 3], [0, 1]]
    (tmp_path / "a").write_text("GO:0008150 1:2\nurn:x 2:3\n")  # words with a colon are labels
    assert read_svmlight(tmp_path / "a")[1].tolist() == ["GO:0008150", "urn:x"]


def test_bytes_that_are_no_text(tmp_path):
    (tmp_path / "bad.svm").write_bytes(b"1 1:1\n\xff 1:1\n")
    with pytest.raises(SvmlightFileError, match="line 2: bytes that are not UTF-8"):
        read_svmlight(tmp_path / "bad.svm")


@pytest.mark.parametrize(
    ("X", "labels", "message"),
    [
        ([[1.0], [2.0]], ["a", "b c"], "row 1: the label 'b c' is empty, a feature, or holds a blank or #"),
        ([[1.0]], [""], "row 0: the label '' is empty"),
        ([[1.0]], ["3:1"], "row 0: the label '3:1' is empty, a feature,"),
        ([[1.0]], ["#1"], "row 0: the label '#1'"),
        ([[1.0]], ["a", "b"], "X has 1 rows and there are 2 labels"),
        ([[1.0, np.nan]], ["a"], "row 0, column 1: nan is not a finite float32 number"),
        ([[1e39]], ["a"], "row 0, column 0: inf is not a finite float32 number"),
    ],
)
def test_what_cannot_be_read_back_is_not_written(tmp_path, X, labels, message):
    (tmp_path / "a").write_text("the file before")
    with pytest.raises(ValueError, match=message):
        write_svmlight(tmp_path / "a", np.array(X), labels)
    assert (tmp_path / "a").read_text() == "the file before"
