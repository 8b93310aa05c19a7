"""Files of rows of queries: with a qid in each line, or sizes of queries beside them."""

import gzip
import io
import re

import numpy as np
import pytest

from structsvm.features.svmlight import SvmlightFileError, write_svmlight
from structsvm.structures.queries import read_queries

TEXT = "2 qid:3 1:0.5 3:-2  # first\n\n0 qid:3 2:1\r\n# nothing\n1.5 qid:7\n50 qid:+7 1:1\n"


def test_a_qid_in_each_line(tmp_path):
    (tmp_path / "a").write_text(TEXT)
    (tmp_path / "a.gz").write_bytes(gzip.compress(TEXT.encode()))
    for source in (tmp_path / "a", str(tmp_path / "a.gz"), io.BytesIO(TEXT.encode())):
        X, grades, qid = read_queries(source)
        np.testing.assert_array_equal(X.toarray(), [[0.5, 0, -2], [0, 1, 0], [0, 0, 0], [1, 0, 0]])
        assert (X.dtype, grades.dtype, qid.dtype) == (np.float32, np.float64, np.int64)
        assert grades.tolist() == [2, 0, 1.5, 50] and qid.tolist() == [3, 3, 7, 7]


def test_sizes_beside(tmp_path):
    (tmp_path / "a").write_text(re.sub(r" qid:\S+", "", TEXT))
    X, grades, qid = read_queries(tmp_path / "a")
    assert X.shape == (4, 3) and grades.tolist() == [2, 0, 1.5, 50] and qid is None
    (tmp_path / "sizes").write_text(" 1 \n\n3\r\n")
    assert read_queries(tmp_path / "a", tmp_path / "sizes")[2].tolist() == [0, 1, 1, 1]
    for sizes, message in (
        ("1\n2\n", "sizes: the sizes add up to 3 rows, .*/a has 4"),
        ("", "sizes: the sizes add up to 0 rows, .*/a has 4"),
        ("1\n0\n3\n", "sizes, line 2: expected the number of rows of a query, found '0'"),
        ("4 1\n", "sizes, line 1: expected the number of rows"),
        ("\n-4\n", "sizes, line 2: expected"),
        ("4.0\n", "sizes, line 1: expected"),
        ("99999999999\n", "sizes, line 1: expected"),
    ):
        (tmp_path / "sizes").write_text(sizes)
        with pytest.raises(ValueError, match=message):
            read_queries(tmp_path / "a", tmp_path / "sizes")
    (tmp_path / "sizes").write_bytes(b"4\n\xff\n")
    with pytest.raises(ValueError, match="sizes, line 2: bytes that are not UTF-8"):
        read_queries(tmp_path / "a", tmp_path / "sizes")
    (tmp_path / "a").write_text(TEXT)
    with pytest.raises(ValueError, match=r"a: its lines have a qid; leave out the sizes of queries, .*sizes"):
        read_queries(tmp_path / "a", tmp_path / "sizes")


def test_written_is_read(tmp_path):
    X, y, qid = np.array([[0.0, 1.5], [2.0, 0.25], [0.0, 0.0]]), np.array([3, 0, 1]), np.array([-4, -4, 9])
    write_svmlight(tmp_path / "a", X, y, qid=qid)
    assert (tmp_path / "a").read_text() == "3 qid:-4 2:1.5\n0 qid:-4 1:2.0 2:0.25\n1 qid:9\n"
    for found, wanted in zip(read_queries(tmp_path / "a"), (X, y, qid), strict=True):
        np.testing.assert_array_equal(found.toarray() if found.ndim == 2 else found, wanted)
    for ids, message in (
        ([1, 2], "qid must hold an integer for each of the 3 rows"),
        ([1.0, 2.0, 3.0], "qid must hold an integer"),
        (np.array([1, 3, 2], dtype=np.uint8), "row 2: qid 2 after 3: rows must be sorted by qid"),
    ):
        with pytest.raises(ValueError, match=message):
            write_svmlight(tmp_path / "b", X, y, qid=ids)
    assert not (tmp_path / "b").exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 qid:1 1:1\n\n1 1:1\n", "line 3: has no qid, unlike the lines before"),
        ("1 1:1\n1 qid:1 1:1\n", "line 2: has a qid, unlike the lines before"),
        ("1 qid:2 1:1\n1 qid:2\n# x\n1 qid:1 1:1\n", "line 4: qid 1 after 2: lines are sorted by qid"),
        ("1 qid:1\n1 qid:a 1:1\n", "line 2: a qid is an integer, found 'qid:a'"),
        ("1 qid:1.5 1:1\n", "line 1: a qid is an integer"),
        ("1 qid: 1:1\n", "line 1: a qid is an integer, found 'qid:'"),
        ("1 qid:1_0 1:1\n", "line 1: a qid is an integer"),
        ("1 qid:9999999999999999999 1:1\n", "line 1: a qid is an integer"),
        ("1 1:1 qid:1\n", "line 1: expected a label and index:value pairs"),
        ("1 qid:1 qid:1 1:1\n", "line 1: expected a label and index:value pairs"),
        ("1 qid:1 1:x\n", "line 1: expected a label and index:value pairs"),
        ("1 qid:1 -1:1\n", "line 1: an index that is not in 1"),
        ("1 qid:1 1:1\ngood qid:1\n", "line 2: a grade is a number from 0 to 50, found 'good'"),
        ("# x\n-1 qid:1 1:1\n", "line 2: a grade is a number from 0 to 50, found '-1'"),
        ("51 qid:1 1:1\n", "line 1: a grade"),
        ("nan qid:1 1:1\n", "line 1: a grade"),
        ("# x\n\n", "contains no rows"),
    ],
)
def test_errors_name_file_and_line(tmp_path, text, message):
    (tmp_path / "bad.svm").write_text(text)
    with pytest.raises(SvmlightFileError, match=f"bad.svm[,:].*{message}"):
        read_queries(tmp_path / "bad.svm")
