"""The column reader and the template parser, against str.split and friends."""

import bz2
import gzip
import io
import lzma
import pickle

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from structsvm.columns import (
    BUILT_IN_TEMPLATES,
    FUNCTIONS,
    ColumnFileError,
    Columns,
    Item,
    TemplateError,
    Vocabulary,
    built_in_templates,
    parse_templates,
    read_columns,
    read_templates,
)

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
    assert rows_of(columns) == [
        [["The", "DT", "B"], ["dog", "NN", "I"]],
        [["It", "PRP", "B"]],
    ]
    assert len(columns) == 2
    assert columns.n_tokens == 3
    assert columns.n_columns == 3
    assert columns.ids.dtype == np.int32
    assert columns.offsets.tolist() == [0, 2, 3]
    # Equal strings of a column have one id, numbered by arrival.
    assert columns.ids[:, 2].tolist() == [0, 1, 0]
    assert columns.vocabularies[2].tolist() == ["B", "I"]


fields = st.text(st.characters(exclude_characters=" \t\n\r", exclude_categories=["Cs"]), min_size=1, max_size=12)


@given(
    st.integers(1, 4).flatmap(
        lambda n: st.lists(
            st.lists(st.lists(fields, min_size=n, max_size=n), min_size=1, max_size=4),
            min_size=1,
            max_size=4,
        )
    ),
    st.sampled_from([" ", "\t", "  ", " \t "]),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from(["", "\n", "\n\n \n"]),
    st.booleans(),
    st.booleans(),
)
@example([[["﻿x"]]], " ", "\n", "", False, False)
def test_reads_what_was_written(sequences, separator, newline, blanks, bom, compress):
    blocks = [newline.join(separator.join(row) for row in rows) for rows in sequences]
    text = blanks.replace("\n", newline) + (newline * 2 + blanks).join(blocks) + blanks
    data = text.encode("utf-8-sig" if bom else "utf-8")
    if not bom and text.startswith("﻿"):
        data = b"\xef\xbb\xbf" + data  # one mark is skipped, one belongs to the word
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
    (data).decode("utf-8")  # what is accepted is UTF-8
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
    with pytest.raises(TypeError, match="take"):
        columns[0]
    again = pickle.loads(pickle.dumps(columns))
    assert rows_of(again) == rows_of(columns)


def test_from_sequences():
    rows = [[("New York", "NNP"), ("", "x")], [("é", "y")]]
    assert rows_of(Columns.from_sequences(rows)) == [[list(r) for r in s] for s in rows]
    with pytest.raises(ColumnFileError, match="sequence 1 is empty"):
        Columns.from_sequences([[("a",)], []])
    with pytest.raises(ColumnFileError, match="sequence 0, token 1: expected 1 columns, found 2"):
        Columns.from_sequences([[("a",), ("b", "c")]])
    with pytest.raises(TypeError, match="sequence 0, token 0 must be a row of strings"):
        Columns.from_sequences([["word"]])


def test_columns_check_their_arrays():
    vocabulary = Vocabulary.from_strings(["a"])
    ids = np.zeros((2, 1), dtype=np.int32)
    offsets = np.array([0, 2])
    with pytest.raises(ValueError, match="one column for each vocabulary"):
        Columns(offsets, ids, ())
    with pytest.raises(ValueError, match="int32"):
        Columns(offsets, ids.astype(np.int64), (vocabulary,))
    with pytest.raises(ValueError, match="from 0 to the number of tokens"):
        Columns(np.array([0, 3]), ids, (vocabulary,))


# ---------------------------------------------------------------------- templates


def test_templates_are_parsed():
    text = "# words\r\nU00:%x[-2,0]\r\n\nU05:%x[-1,0]/%x[0,0]|\n  U\nU30:%shape[0,1]\nB\n"
    templates, bigram = parse_templates(text)
    assert bigram
    assert [str(t) for t in templates] == [
        "U00:%x[-2,0]",
        "U05:%x[-1,0]/%x[0,0]|",
        "U",
        "U30:%shape[0,1]",
    ]
    assert templates[1].items == (Item("x", -1, 0), Item("x", 0, 0))
    assert templates[1].literals == ("U05:", "/", "|")
    assert not parse_templates("U00:%x[0,0]")[1]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("B01:%x[0,0]", "only 'B' alone is supported"),
        ("Bx", "only 'B' alone"),
        ("X00:%x[0,0]", "starts with 'U' or is 'B'"),
        ("U00:%x[0]", r"wanted %x\[row,column\]"),
        ("U00:%x[0,-1]", r"wanted %x\[row,column\]"),
        ("U00:%y[0,0]", "no function 'y' .there are x, lower"),
        ("U00:%x[101,0]", "row 101 is not within"),
        ("U00:50%", "after '%'"),
    ],
)
def test_template_errors_name_the_line(line, message):
    with pytest.raises(TemplateError, match=f"my.tpl:3: .*{message}"):
        parse_templates(f"# a\n\n{line}\n", "my.tpl")


def test_too_many_templates():
    with pytest.raises(TemplateError, match="more than"):
        parse_templates("U:%x[0,0]\n" * 2000)


def test_template_files(tmp_path):
    path = tmp_path / "my.tpl"
    path.write_text("U00:%x[0,0]\nB\n")
    templates, bigram = read_templates(path)
    assert len(templates) == 1
    assert bigram
    path.write_text("U00:%x[0,0]\nB1\n")
    with pytest.raises(TemplateError, match=r"my\.tpl:2:"):
        read_templates(path)
    path.write_bytes(b"U\xff")
    with pytest.raises(TemplateError, match=r"my\.tpl: bytes"):
        read_templates(path)


@pytest.mark.parametrize("name", BUILT_IN_TEMPLATES)
@pytest.mark.parametrize("n_columns", [1, 2, 3, 6])
def test_built_in_templates(name, n_columns):
    templates, bigram = parse_templates(built_in_templates(name, n_columns))
    assert bigram
    assert len({t.literals for t in templates}) == len(templates)
    assert all(item.column < n_columns for t in templates for item in t.items)
    if name == "rich":
        assert len(templates) <= 35 + 3 * max(0, n_columns - 2)
    if name == "crf++" and n_columns > 1:
        assert len(templates) == 19
    if name == "attributes":
        assert len(templates) == n_columns


@given(st.lists(st.text(max_size=8), unique=True, max_size=10))
def test_functions_of_strings(words):
    for function in FUNCTIONS.values():
        values = function(words)
        assert len(values) == len(words)
        assert all(v is None or isinstance(v, str) for v in values)
        assert function(words) == [function([w])[0] for w in words]  # word by word


def test_functions_by_example():
    def of(name, word):
        return FUNCTIONS[name]([word])[0]

    assert of("shape", "McDonald-1999s") == "XxXx-dx"
    assert of("shape", "Élan") == "Xx"
    assert of("prefix3", "Straße") == "Str"
    assert of("suffix2", "Straße") == "ße"
    assert of("prefix4", "cat") is None
    assert [of("digit", w) for w in ("1999", "a1", "a")] == ["all", "some", None]
    assert [of("capital", w) for w in ("USA", "Usa", "iOS", "A", "usa", "12")] == [
        "all", "first", "inside", "first", None, None,
    ]  # fmt: skip
    assert [of("hyphen", w) for w in ("a-b", "ab")] == ["some", None]
