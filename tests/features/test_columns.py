"""The column reader, against str.split and friends."""

import bz2
import gzip
import io
import lzma
import pickle
import tracemalloc

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from structsvm.features import columns, sources
from structsvm.features.columns import ColumnFileError, ColumnPieces, Columns, Vocabulary, read_columns

SMALL = "The DT B\ndog NN I\n\nIt PRP B\n"


def reference_read(text):
    """Sequences of rows, in the obvious way."""
    sequences, rows = [], []
    for line in text.split("\n"):
        row = line.rstrip("\r").replace("\t", " ").split(" ")
        row = [field for field in row if field]
        if row:
            rows.append(row)
        elif rows:
            sequences.append(rows)
            rows = []
    return [*sequences, rows] if rows else sequences


def rows_of(columns):
    by_column = [columns.column(j) for j in range(columns.n_columns)]
    return [[list(row) for row in zip(*rows, strict=True)] for rows in zip(*by_column, strict=True)]


def read_bytes(data, **kwargs):
    return read_columns(io.BytesIO(data), **kwargs)


def test_a_small_file():
    columns = read_bytes(SMALL.encode())
    assert rows_of(columns) == [[["The", "DT", "B"], ["dog", "NN", "I"]], [["It", "PRP", "B"]]]
    assert len(columns) == 2
    assert columns.n_tokens == 3
    assert columns.n_columns == 3
    assert columns.ids.dtype == np.int32
    assert columns.offsets.tolist() == [0, 2, 3]
    # Equal strings of a column have one id, numbered by arrival.
    assert columns.ids[:, 2].tolist() == [0, 1, 0]
    assert columns.vocabularies[2].tolist() == ["B", "I"]


fields = st.text(st.characters(exclude_characters=" \t\n\r\ufeff", exclude_categories=["Cs"]), min_size=1, max_size=12)


@given(
    st.integers(1, 4).flatmap(
        lambda n: st.lists(
            st.lists(st.lists(fields, min_size=n, max_size=n), min_size=1, max_size=4), min_size=1, max_size=4
        )
    ),
    st.sampled_from([" ", "\t", "  ", " \t "]),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from(["", "\n", "\n\n \n"]),
    st.booleans(),
    st.booleans(),
)
def test_reads_what_was_written(sequences, separator, newline, blanks, bom, compress):
    blocks = [newline.join(separator.join(row) for row in rows) for rows in sequences]
    text = blanks.replace("\n", newline) + (newline * 2 + blanks).join(blocks) + blanks
    data = text.encode("utf-8-sig" if bom else "utf-8")
    columns = read_bytes(gzip.compress(data) if compress else data)
    assert rows_of(columns) == sequences == reference_read(text)


@given(st.binary(max_size=200))
@example(b"\x00\x00 \x00\n\x00 b\n")
@example(b"\xed\xa0\x80")
@example(b"\xf4\x90\x80\x80")
@example(b"\xc3")
@example(b"a\r\r\nb\n")
def test_any_bytes_are_read_or_refused(data):
    try:
        columns = read_bytes(b"\n" + data)
    except ColumnFileError:
        return
    (data).decode("utf-8")  # accepted text is UTF-8
    columns.column(0)


@given(st.binary(max_size=6))
def test_utf8_is_what_python_takes(data):
    field = b"x" + data.translate(None, b" \t\r\n")
    try:
        wanted = field.decode("utf-8")
    except UnicodeDecodeError:
        with pytest.raises(ColumnFileError, match="<lines>:1: bytes that are not UTF-8"):
            read_bytes(field)
    else:
        assert read_bytes(field).column(0) == [[wanted]]


@pytest.mark.parametrize("compress", [gzip.compress, lzma.compress, bz2.compress])
@pytest.mark.parametrize("suffix", ["txt", "txt.gz", "txt.xz", "txt.bz2"])
def test_compressed_files(tmp_path, compress, suffix):
    path = tmp_path / f"train.{suffix}"
    path.write_bytes(compress(SMALL.encode()))
    kind = {gzip.compress: "gz", lzma.compress: "xz", bz2.compress: "bz2"}[compress]
    if suffix in ("txt", f"txt.{kind}"):
        assert rows_of(read_columns(path)) == reference_read(SMALL)
        assert rows_of(read_columns(str(path))) == reference_read(SMALL)
        with path.open("rb") as file:
            assert read_columns(file).name == str(path)


@pytest.mark.parametrize(("compress", "suffix"), [(gzip.compress, "gz"), (lzma.compress, "xz"), (bz2.compress, "bz2")])
def test_damaged_compression_names_the_file(tmp_path, compress, suffix):
    path = tmp_path / f"train.{suffix}"
    whole = compress(SMALL.encode() * 50)
    for data in (whole[: len(whole) // 2], b"", b"plain text\n", whole[:20] + b"?" + whole[21:]):
        path.write_bytes(data)
        with pytest.raises(ColumnFileError, match=rf"train\.{suffix}: "):
            read_columns(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a b c\nd e\n", r"f\.txt:2: expected 3 columns, found 2"),
        ("\n\na b\n\nc d e f\n", r"f\.txt:5: expected 2 columns, found 4"),
        ("a b\r\nc\r\n", r"f\.txt:2: expected 2 columns, found 1"),
        ("", r"f\.txt: no tokens \(the file is empty\)"),
        (" \n\t\n\r\n", r"f\.txt: no tokens \(only blank lines\)"),
        ("a b\rc d\r\re f\r", r"f\.txt:1: a carriage return within a line; lines end in LF or CRLF"),
        ("a b\r\n\r\na\r b\r\n", r"f\.txt:3: a carriage return within a line"),
        ("a b\nc\nd\re f\n", r"f\.txt:2: expected 2 columns, found 1"),
        (b"a b\nc \xff\n", r"f\.txt:2: bytes that are not UTF-8"),
    ],
)
def test_errors_name_file_and_line(tmp_path, text, message):
    path = tmp_path / "f.txt"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ColumnFileError, match=message):
        read_columns(path)


def test_other_encodings():
    data = "café N\n".encode("latin-1")
    assert read_bytes(data, encoding="latin-1").column(0) == [["café"]]
    assert read_bytes("é N\n".encode("utf-16"), encoding="utf-16").column(0) == [["é"]]
    with pytest.raises(ColumnFileError, match="<lines>:2: bytes that are not ascii"):
        read_bytes(b"a\n\xe9\n", encoding="ascii")


def test_lines_of_text():
    wanted = reference_read(SMALL)
    assert rows_of(read_columns(SMALL.splitlines())) == wanted
    assert rows_of(read_columns(line for line in SMALL.splitlines(keepends=True))) == wanted
    assert rows_of(read_columns(io.StringIO(SMALL))) == wanted
    with pytest.raises(TypeError, match="line 1 must be a str, got int"):
        read_columns([1])
    with pytest.raises(TypeError, match="BytesIO"):
        read_columns(b"a b\n")
    with pytest.raises(ColumnFileError, match=":1: lone surrogates"):
        read_columns(["\ud800 x"])


def test_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_columns(tmp_path / "nothing.txt")


def test_long_tokens_and_many_strings():
    words = ["w" * 100_000, *(f"w{i}" for i in range(20_000))]
    columns = read_bytes("\n".join(words).encode())
    assert columns.column(0) == [words]
    assert columns.ids[:, 0].tolist() == list(range(len(words)))


def test_selecting_columns_and_sequences():
    columns = read_bytes(SMALL.encode())
    assert columns.drop_last().n_columns == 2
    assert columns.drop_last().ids.base is not None
    assert rows_of(columns.select([2, 0])) == [[["B", "The"], ["I", "dog"]], [["B", "It"]]]
    assert columns.select([-1]).column(0) == columns.column(-1)
    assert rows_of(columns[1:]) == [[["It", "PRP", "B"]]]
    assert rows_of(columns.take([1, 0, 1])) == [rows_of(columns)[i] for i in (1, 0, 1)]
    assert rows_of(columns[::-1]) == rows_of(columns)[::-1]
    assert len(columns[2:1]) == 0
    again = pickle.loads(pickle.dumps(columns))
    assert rows_of(again) == rows_of(columns)


def test_columns_are_a_list_of_sequences():
    columns = read_bytes(SMALL.encode())
    labels = columns.select([2])
    assert list(labels) == labels.column(0) == columns.column(2) == [["B", "I"], ["B"]]
    assert list(columns.drop_last()) == [[("The", "DT"), ("dog", "NN")], [("It", "PRP")]]
    assert [columns[i] for i in range(2)] == list(columns) == [columns[-2], columns[np.int64(-1)]]
    assert labels[1] == ["B"]
    assert list(columns.select([])) == [[(), ()], [()]]
    assert list(columns[:0]) == []
    assert Columns.from_sequences(columns)[0] == columns[0]
    for i in (2, -3):
        with pytest.raises(IndexError, match=f"sequence {i} of 2"):
            columns[i]


@given(st.lists(st.lists(st.sampled_from("abc"), min_size=1, max_size=3), min_size=1, max_size=6), st.data())
def test_indexed_as_a_list_is(sequences, data):
    columns = Columns.from_sequences([[(x,) for x in rows] for rows in sequences])
    assert list(columns) == sequences
    cut = data.draw(st.slices(len(sequences)))
    assert list(columns[cut]) == sequences[cut]
    index = data.draw(st.lists(st.integers(-len(sequences), len(sequences) - 1)))
    wanted = [sequences[i] for i in index]
    for chosen in (columns[index], columns[np.array(index, dtype=int)], columns.take(index)):
        assert list(chosen) == wanted
        assert [chosen[i] for i in range(len(chosen))] == wanted
    mask = [data.draw(st.booleans()) for _ in sequences]
    wanted = [rows for rows, keep in zip(sequences, mask, strict=True) if keep]
    assert list(columns[np.array(mask)]) == list(columns[mask]) == wanted


@pytest.mark.parametrize(
    ("index", "error", "message"),
    [
        ((0, 1), TypeError, "by sequences only"),
        (([0], [1]), TypeError, "by sequences only"),
        ([2], IndexError, "out of bounds"),
        ([[0, 1]], IndexError, "expected a vector"),
        ([True], IndexError, "a mask of 1 entries for 2 sequences"),
        ([0.5], TypeError, "Cannot cast"),
        ("a", IndexError, "expected a vector"),
        (["a"], TypeError, "Cannot cast"),
    ],
)
def test_bad_indices(index, error, message):
    with pytest.raises(error, match=message):
        read_bytes(SMALL.encode())[index]


def test_splits_of_scikit_learn():
    sklearn_split = pytest.importorskip("sklearn.model_selection")
    columns = Columns.from_sequences([[(f"w{i}", "N")] * (i + 1) for i in range(6)])
    parts = sklearn_split.train_test_split(columns, columns.select([1]), random_state=0)
    assert all(isinstance(part, Columns) for part in parts)
    assert [len(part) for part in parts] == [4, 2, 4, 2]
    assert [len(s) for s in parts[0]] == [len(s) for s in parts[2]]
    utils = pytest.importorskip("sklearn.utils")
    assert sorted(utils.shuffle(columns, random_state=0)) == list(columns)
    mask = np.arange(6) < 2
    assert list(utils._safe_indexing(columns, mask)) == list(columns[:2])
    assert utils._safe_indexing(columns, 3) == columns[3]


def test_cross_validation_on_columns():
    selection = pytest.importorskip("sklearn.model_selection")
    from structsvm.metrics import chunk_f1_scorer, chunk_scores, label_report, token_accuracy
    from structsvm.tasks import SequenceLabeler

    words = ["the dog saw a cat", "a cat sat", "the man saw the dog", "a dog ran", "cats sat"]
    tag = {"the": "B-X", "a": "B-X", "dog": "I-X", "cat": "I-X", "man": "I-X"}
    rows = [[(w, w[-1], tag.get(w, "O")) for w in line.split()] for line in words * 4]
    columns = Columns.from_sequences(rows)
    X, y = columns.drop_last(), columns.select([2])
    labeler = SequenceLabeler(templates="crf++", random_state=0)
    results = []
    for target in (y, columns.column(2)):
        search = selection.GridSearchCV(labeler, {"C": [0.01, 0.1]}, scoring=chunk_f1_scorer, cv=2)
        search.fit(X, target)
        assert search.best_estimator_.model_.encoder.kind == "columns"
        scores = selection.cross_validate(labeler, X, target, cv=3, return_train_score=True)
        results.append((search.cv_results_["mean_test_score"].tolist(), scores["test_score"].tolist()))
    assert results[0] == results[1]
    # The same as folds made by hand.
    train, test = next(selection.KFold(3).split(X))
    by_hand = labeler.fit(X.take(train), y.take(train)).score(X.take(test), y.take(test))
    assert results[0][1][0] == by_hand
    predicted = labeler.predict(X)
    lists = columns.column(2)
    for metric in (token_accuracy, chunk_scores, label_report):
        assert metric(y, predicted) == metric(lists, predicted)
        assert metric(y, y) == metric(lists, lists)
    weight = np.arange(len(X))
    assert labeler.score(X, y, weight) == labeler.score(X, lists, weight)


def test_from_sequences():
    rows = [[("New York", "NNP"), ("", "x")], [("é", "y")]]
    assert rows_of(Columns.from_sequences(rows)) == [[list(r) for r in s] for s in rows]
    assert Columns.from_sequences([[(np.str_("é"),)]]).column(0) == [["é"]]
    with pytest.raises(ColumnFileError, match="sequence 1 is empty"):
        Columns.from_sequences([[("a",)], []])
    with pytest.raises(ColumnFileError, match="sequence 0, token 1: expected 1 columns, found 2"):
        Columns.from_sequences([[("a",), ("b", "c")]])
    with pytest.raises(TypeError, match="sequence 0, token 0 must be a string or a row of strings"):
        Columns.from_sequences([[7]])


def test_columns_check_their_arrays():
    vocabulary = Vocabulary.from_strings(["a"])
    ids = np.zeros((2, 1), dtype=np.int32)
    offsets = np.array([0, 2])
    with pytest.raises(ValueError, match="one column per vocabulary"):
        Columns(offsets, ids, ())
    with pytest.raises(ValueError, match="int32"):
        Columns(offsets, ids.astype(np.int64), (vocabulary,))
    with pytest.raises(ValueError, match="from 0 to the number of tokens"):
        Columns(np.array([0, 3]), ids, (vocabulary,))


# ---- piece by piece --------------------------------------------------------------------------------

TEXTS = [
    b"a b\nc d\n\ne f\n",
    b"\xef\xbb\xbf\n\na b\r\n\r\n\r\nc\td\r\n \t\r\n e  f \n",
    b"one\n\ntwo\nthree",
    "ä ö\n\n€ 𝄞\n".encode(),
    b"\n \n\na b\n" * 9,
    b"\x0c\n\n\x0b\n",  # only blanks, tabs and ends of lines stand between columns
    b"a\x0bb c\n\nd\x0c e\n",
    b"a\n\r\nb\n\nc\r",
    b"\n\n\xef\xbb\xbfa\n\nb",
]
WRONG = [b"", b"\n \n", b"a b\n\nc\n", b"a b\nc d e\n", b"a b\n\n\nc d\n\n\ne\n", b"a\n\n\n\xff\n", b"a b\n\nc d\ne\n"]
WRONG += [b"\x0c\n\na b\n", b"a b c\n\nd e\nf g h\n", b"a b\n\n\n\x0c\n", b"\r\r\n\na b\n\n\x0c"]
WRONG += [b"a\n\r\r\nb\n\nc", b"a b\n\nc\n\nd\re f\n", b"a b\n\nd\re f\n\nc\n", b"\r\rfoo bar\n\n\r a\r\n"]


def pieces_of(data, size, monkeypatch, n=None):
    monkeypatch.setattr(sources, "BLOCK", size)
    pieces = ColumnPieces(io.BytesIO(data), n)
    return [pieces.parse(piece) for piece in pieces]


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 100])
@pytest.mark.parametrize("data", TEXTS)
def test_pieces_are_the_whole(data, size, monkeypatch):
    found = pieces_of(data, size, monkeypatch)
    assert [sequence for piece in found for sequence in piece] == list(read_columns(io.BytesIO(data)))
    assert size > 8 or len(found) > 1
    outside = Vocabulary.from_strings(["O"])
    text = b"".join(piece.with_column(np.zeros(piece.n_tokens, np.int32), outside).to_bytes() for piece in found)
    text = b"\n" + text  # text that begins with a byte order mark does not in a file's first line
    assert list(read_columns(io.BytesIO(text)).drop_last()) == list(read_columns(io.BytesIO(data)))


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 100])
@pytest.mark.parametrize("data", WRONG)
def test_errors_of_pieces_are_those_of_the_whole(data, size, monkeypatch):
    with pytest.raises(ColumnFileError) as whole:
        read_columns(io.BytesIO(data))
    with pytest.raises(ColumnFileError) as piece:
        pieces_of(data, size, monkeypatch)
    assert str(piece.value).partition(":")[2] == str(whole.value).partition(":")[2]


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("size", [1, 3, 8, 100])
@pytest.mark.parametrize("data", TEXTS)
def test_pieces_of_so_many_sequences(data, size, n, monkeypatch):
    found = pieces_of(data, size, monkeypatch, n)
    whole = list(read_columns(io.BytesIO(data)))
    assert [list(piece) for piece in found] == [whole[k : k + n] for k in range(0, len(whole), n)]


@pytest.mark.parametrize("size", [1, 3, 100])
@pytest.mark.parametrize("data", WRONG)
def test_errors_of_so_many_sequences(data, size, monkeypatch):
    with pytest.raises(ColumnFileError) as whole:
        read_columns(io.BytesIO(data))
    with pytest.raises(ColumnFileError) as piece:
        pieces_of(data, size, monkeypatch, 2)
    assert str(piece.value).partition(":")[2] == str(whole.value).partition(":")[2]


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lzma.compress])
def test_pieces_of_compressed_files_are_unfolded_as_they_come(compress, tmp_path, monkeypatch):
    (tmp_path / "c").write_bytes(compress(b"a b\n\n" * 100_000))
    monkeypatch.setenv(sources.LIMIT, "50000")
    monkeypatch.setattr(sources, "BLOCK", 1 << 12)
    pieces = ColumnPieces(tmp_path / "c")
    assert sum(len(pieces.parse(piece)) for piece in pieces) == 100_000
    (tmp_path / "c").write_bytes(compress(b"a b\n" * 100_000))
    with pytest.raises(ColumnFileError, match="a sequence unfolds to more than 50000"):
        list(ColumnPieces(tmp_path / "c"))
    (tmp_path / "c").write_bytes(compress(b"a b\n\n" * 1000)[:-9])
    with pytest.raises(ColumnFileError, match="damaged"):
        list(ColumnPieces(tmp_path / "c"))


def test_pieces_hold_no_more_than_they_need(monkeypatch):
    monkeypatch.setattr(sources, "BLOCK", 1 << 14)
    handed = 0

    class Endless(io.RawIOBase):
        def readable(self):
            return True

        def readinto(self, buffer):
            nonlocal handed
            text = (b"a b\nc d\n\n" * (len(buffer) // 9 + 1))[: len(buffer) // 9 * 9]
            buffer[: len(text)] = text
            handed += len(text)
            return len(text)

    pieces = ColumnPieces(Endless())
    walk, used = iter(pieces), 0
    tracemalloc.start()
    for _ in range(50):
        used += pieces.parse(next(walk)).n_tokens
        assert handed < 4.5 * used + 3 * (1 << 14)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 30 * (1 << 14)


@pytest.mark.parametrize("n", [None, 2])
@pytest.mark.parametrize("line", [b"a" * 3000, b" " * 3000, b"\n" + b" \t" * 1500, b"\n\r" * 1500, b"a b\n" * 800])
def test_pieces_look_once_at_each_byte(line, n, monkeypatch):
    """A line, blanks or a sequence that goes on over many blocks is not searched anew with each of them."""
    looked, blank_line = 0, columns.BLANK_LINE

    class Counted:
        def finditer(self, held, begin):
            nonlocal looked
            looked += len(held) - begin
            return blank_line.finditer(held, begin)

    monkeypatch.setattr(sources, "BLOCK", 8)
    pieces = ColumnPieces(io.BytesIO(b"a b\n\n" + line + b"\n\nc d\n"), n)
    monkeypatch.setattr(columns, "BLANK_LINE", Counted())
    assert list(pieces)
    assert looked < 3 * len(line) + 100
