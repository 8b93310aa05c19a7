"""Files of attributes: read and written as CRFsuite's, told from columns, refused line by line."""

import gzip
import io
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from structsvm.features import sources
from structsvm.features.sources import ColumnFileError
from structsvm.features.tables.attribute_files import (
    is_of_attributes,
    read_attributes,
    stream_attributes,
    write_attributes,
)

names = st.text(st.sampled_from("a:\\=é b"), min_size=1, max_size=5)
labels = st.sampled_from(["B:x", "I\\", "O"])
tokens = st.one_of(
    st.lists(names, unique=True, max_size=4), st.dictionaries(names, st.sampled_from([1.0, 0.5, -2.0]), max_size=4)
)


def flat(token):
    return dict.fromkeys(token, 1.0) if isinstance(token, list) else token


@given(st.lists(st.lists(st.tuples(tokens, labels), min_size=1, max_size=4), min_size=1, max_size=4))
def test_written_files_are_read(tmp_path_factory, sequences):
    path = tmp_path_factory.mktemp("files") / "f"
    X, y = [[t for t, _ in s] for s in sequences], [[label for _, label in s] for s in sequences]
    X[0][0] = ["some"]
    write_attributes(path, X, y)
    X_read, y_read = read_attributes(path)
    assert y_read == y
    assert [[flat(t) for t in s] for s in X_read] == [[flat(t) for t in s] for s in X]


def test_forms(tmp_path):
    text = "B\\:x\ta\\:b\tc\\\\:2\td:\te\\\r\n\t\n\nO\n"
    (tmp_path / "f.gz").write_bytes(gzip.compress(text.encode()))
    X, y = read_attributes(tmp_path / "f.gz")
    assert y == [["B:x"], ["O"]]
    assert X == [[{"a:b": 1.0, "c\\": 2.0, "d": 1.0, "e\\": 1.0}], [{}]]
    assert X.places == [f"{tmp_path}/f.gz:1", f"{tmp_path}/f.gz:4"]
    assert read_attributes(["A\tx\tx", "B\tx:2"])[0] == [[{"x": 2.0}, {"x": 2.0}]]
    assert read_attributes(["A\tx\tx", "", "", "B\ty"]) == ([[["x", "x"]], [["y"]]], [["A"], ["B"]])


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("A\tx:y", "f:2: .*behind the colon of 'x:y'"),
        ("A\tx:1:2", "f:2: "),
        ("A\tx:nan", "f:2: .*finite"),
        ("A\tx:1e999", "f:2: .*finite"),
        ("A:1\tx", "f:2: wanted a label"),
        ("\tx", "f:2: wanted a label"),
        ("@weight:2", "f:2: .*weights of sequences"),
    ],
)
def test_refused(tmp_path, line, message):
    (tmp_path / "f").write_text(f"A\tx\n{line}\n")
    with pytest.raises(ColumnFileError, match=message):
        read_attributes(tmp_path / "f")


def test_no_tokens_and_bytes(tmp_path):
    with pytest.raises(ColumnFileError, match="no tokens"):
        read_attributes(io.StringIO("\n\n"))
    with pytest.raises(ColumnFileError, match="no line has attributes"):
        read_attributes(io.StringIO("the D\ndog N\n"))
    (tmp_path / "f").write_bytes(b"A\tx\nB\t\xff\n")
    with pytest.raises(ColumnFileError, match="f:2: "):
        read_attributes(tmp_path / "f")


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [([[["a\tb"]]], [["A"]], "attribute"), ([[["a"]]], [["A\n"]], "label"), ([[["a"]]], [["A", "B"]], "as many")],
)
def test_what_cannot_be_written(tmp_path, X, y, message):
    with pytest.raises(ValueError, match=message):
        write_attributes(tmp_path / "f", X, y)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("text", "is_its"),
    [
        ("D\tw=the\n\nN\tw=dog\tsuf=g\n", True),
        ("D\tw=the\tp=\\:\nN\tw=dog\tp=N\n", True),
        ("D\tbias\tw=the\tp=D\nN\tw=dog\tp=N\n", True),
        ("B\\:D\tw\\:the\tlength:3.0\nN\tw\\:dog\n", True),  # as `write_attributes` has it
        ("D\tw\\:the\tlength:3.0\nN\tw\\:dog\tlength:-.5\n", True),
        ("the\t12:30\tB\ndog\tat:x\n", False),
        ("D\tw=the\tn:1\nN\tw=cat\tn:2\n", True),
        ("the\t12:30\t1:5\ndog\t14:00\t1:6\n", False),
        ("the\t12:30\t1:5\ndog\t12:45\t1:6\n", False),  # times of one hour
        ("hello\t0:01\t0:02\tO\nworld\t0:02\t0:03\n", False),  # columns, of which one is missing
        ("hello\t12:30\nworld\t12:31\tX\n", False),
        ("Paris\t48:51\t2:21\nin\n", False),
        ("light\tGen 1:3\nwas\tGen 1:3\tO\n", False),
        ("the\tlocalhost:80\tB\ndog\tlocalhost:81\n", False),
        ("the\tlocalhost:80\ta:1\ndog\tlocalhost:81\ta:2\n", False),
        ("the\t12:30\t1:5\tCase=Nom\ndog\t12:45\t1:6\n", False),
        ("light\tGen 1:3\tCase=Nom\nwas\tGen 1:3\n", False),
        ("the\tDT\tB\ndog\tNN\n", False),  # a broken column file
        ("the\tDT\tCase=Nom\ndog\tNN\tCase=Acc\n", False),
        ("the\tCase=Nom\ndog\tCase=Acc\n", False),
        ("w=the\tp=D\tB\nw=dog\tp=N\tI\n", False),
        ("the DT B\n", False),
        ("", False),
    ],
)
def test_told_from_columns(text, is_its):
    assert is_of_attributes(text) is is_its


def test_mutated_files_are_read_or_refused_by_name():
    rng, refused = random.Random(0), 0
    for _ in range(300):
        text = list("B\tw=the\tn:2.5\tc\\:d\nI\tx\n\nO\ty\\\\\n")
        at = rng.randrange(len(text))
        text[at : at + rng.randint(0, 2)] = rng.choices(list("\\:\t\n9é\0"), k=rng.randint(0, 2))
        try:
            X, y = read_attributes(io.StringIO("".join(text)))
        except ColumnFileError:
            refused += 1
        else:
            assert list(map(len, X)) == list(map(len, y))
    assert 0 < refused < 250


@given(st.lists(st.lists(st.tuples(tokens, labels), min_size=1, max_size=4), min_size=1, max_size=4), st.integers(1, 9))
def test_streams_have_the_tokens_of_files(tmp_path_factory, sequences, size):
    path = tmp_path_factory.mktemp("files") / "f"
    X, y = [[t for t, _ in s] for s in sequences], [[label for _, label in s] for s in sequences]
    X[0][0] = ["some"]
    write_attributes(path, X, y)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sources, "BLOCK", size)
        streamed = list(stream_attributes(path))
    assert [[flat(t) for t in s] for s in streamed] == [[flat(t) for t in s] for s in read_attributes(path)[0]]


@pytest.mark.parametrize(
    "data",
    [
        b"A\tx\tx\n\n\nB\ty",
        b"\xef\xbb\xbfA\tx\r\n\t\r\n\xef\xbb\xbfB\ty:2\tz\r\n",
        "A\tx\nB\té\n".encode("utf-16"),
        gzip.compress(b"A\tx\n\nB\n"),
        b"A\n\nB\tx\n",
    ],
    ids=["lists", "marks", "utf-16", "gzip", "without attributes"],
)
def test_forms_of_streams(data, monkeypatch):
    whole = read_attributes(io.BytesIO(data))[0]
    for size in (1, 3, 100):
        monkeypatch.setattr(sources, "BLOCK", size)
        streamed = list(stream_attributes(io.BytesIO(data)))
        assert [[flat(t) for t in s] for s in streamed] == [[flat(t) for t in s] for s in whole]


@pytest.mark.parametrize(
    "data", [b"", b"\n \n", b"\n\n", b"the D\ndog N\n", b"A\tx\nB\t\xff\n", b"A\tx\nB\ty:no\n", b"A\tx\n@weight:2\n"]
)
def test_streams_are_refused_as_files_are(tmp_path, data):
    (tmp_path / "f").write_bytes(data)
    with pytest.raises(ColumnFileError) as wanted:
        read_attributes(tmp_path / "f")
    with pytest.raises(ColumnFileError) as found:
        list(stream_attributes(tmp_path / "f"))
    assert str(found.value) == str(wanted.value)


def test_a_sequence_is_there_once_it_ends():
    class Pipe(io.RawIOBase):
        given = 0

        def readable(self):
            return True

        def readinto(self, buffer):
            self.given += 1
            assert self.given < 4, "the third sequence was asked for"
            buffer[:5] = b"A\tx\n\n"
            return 5

    pipe = Pipe()
    streamed = stream_attributes(io.BufferedReader(pipe, 5))
    assert [next(streamed), next(streamed)] == [[["x"]], [["x"]]] and pipe.given <= 3
