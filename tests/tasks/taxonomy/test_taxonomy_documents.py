"""Files of documents: texts and svmlight, and what is wrong with them."""

import gzip
import io

import numpy as np
import pytest

from structsvm.tasks.taxonomy.documents import DocumentFileError, read_documents


def test_labelled_texts(tmp_path):
    path = tmp_path / "docs.txt"
    path.write_bytes("\ufeffmac\tapple\tcore 12:30\r\n\r\npc\t\nautos\twörd\n".encode())
    assert read_documents(path) == (["apple\tcore 12:30", "", "wörd"], ["mac", "pc", "autos"])
    packed = tmp_path / "docs.txt.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert read_documents(packed) == read_documents(path)


def test_texts_alone():
    assert read_documents(io.BytesIO(b"one text\nanother: 1:2\n")) == (["one text", "another: 1:2"], None)


def test_comments_below_the_lines_that_tell_the_form():
    X, labels = read_documents(io.BytesIO(b"a 1:1\n" * 30 + b"# no document\nb 2:1\n"))
    assert X.shape == (31, 2) and labels[-2:] == ["a", "b"]


def test_svmlight():
    X, labels = read_documents(io.BytesIO(b"mac\n126 1:0.5 7:-2 # why\ncomp/pc 3:1e-2\n"))
    assert labels == ["mac", "126", "comp/pc"]
    assert X.shape == (3, 7) and X.dtype == np.float32
    np.testing.assert_allclose(X.toarray()[1:, [0, 2, 6]], [[0.5, 0, -2], [0, 0.01, 0]])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "holds no documents"),
        (b"\n \n", "holds no documents"),
        (b"mac\tx y\nno tab\n", "line 2: expected label<TAB>text, found 'no tab'"),
        (b"mac\tx y\n\ttext\n", "line 2: expected label<TAB>text"),
        (b"a text\nmac\ttext\n", "line 2: has a tab, and the first line has none"),
        (b"mac\tx y\npc\t\xff\n", "line 2: bytes that are not UTF-8"),
        (b"a 1:1\na 3000000000:1\n", "line 2: an index that is not in 1"),
        (b"a 1:1\na 1:nan\n", "line 2: a value that is not a finite float32 number"),
        (b"a 1:1\na 1:1e60\n", "line 2: a value that is not a finite float32 number"),
        (b"a 1:1\n" * 20 + b"a 1;1\n", "line 21: expected a label and index:value pairs, found 'a 1;1'"),
        (b"a 1:x\na 1:1\n", "line 1: expected a label and index:value pairs"),
    ],
)
@pytest.mark.filterwarnings("ignore:overflow encountered in cast")
def test_bad_files(content, message, tmp_path):
    path = tmp_path / "docs"
    path.write_bytes(content)
    with pytest.raises(DocumentFileError, match=message) as caught:
        read_documents(path)
    assert str(caught.value).startswith(str(path))
