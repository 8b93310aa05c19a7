"""Tables of comma-separated values as column files: names, runs, quotes, empty cells."""

import csv
import io

import pytest

from structsvm.features.columns import ColumnPieces, Columns, read_columns, read_form, settled_reading
from structsvm.features.sources import ColumnFileError
from structsvm.features.tables.csv_rows import table_of
from structsvm.features.tables.forms import Reading, first_row

KAGGLE = "Sentence #,Word,POS,Tag\nSentence: 1,In,IN,O\n"
KAGGLE += ',"1,000",CD,O\n,Rome,NNP,B-geo\nSentence: 2,"""",PU,O\n,Paris,NNP,B-geo\n'
FIRST = [("In", "IN", "O"), ("1,000", "CD", "O"), ("Rome", "NNP", "B-geo")]


def table(text, **options):
    return read_columns(io.StringIO(text), **options)


def test_a_sentence_is_named_in_its_first_row_alone():
    columns = table(KAGGLE)
    assert len(columns) == 2 and columns[0] == FIRST
    assert columns[1] == [('"', "PU", "O"), ("Paris", "NNP", "B-geo")]


@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["lf", "crlf"])
@pytest.mark.parametrize("separator", [",", ";"])
def test_runs_of_the_first_column_are_sequences(separator, end):
    rows = [("address", "word", "label"), (7, "12", "number"), (7, "Mill", "street"), (9, "Ashford", "city")]
    columns = table(end.join(separator.join(map(str, row)) for row in rows) + end)
    assert list(columns) == [[("12", "number"), ("Mill", "street")], [("Ashford", "city")]]


@pytest.mark.parametrize("name", ["sentence", "Sentence #", "sequence_id"])
def test_another_column_that_is_called_so_names_sequences(name):
    """Anywhere in the table, where the first column is of words or comes again; and named as the file is read again."""
    rows = [("a", 7, "X"), ("b", 7, "Y"), ("a", 9, "X")]
    wanted = [[("a", "X"), ("b", "Y")], [("a", "X")]]
    for head, order in ((f"word,{name},label", (0, 1, 2)), (f"label,{name},word", (2, 1, 0))):
        text = "\n".join([head, *(",".join(str(row[k]) for k in order) for row in rows)]) + "\n"
        assert list(table(text)) == wanted
        _, form = read_form(io.StringIO(text), Reading())
        assert form.settled().sequence == name.lower() and form.describe().endswith(
            f"{name.lower()} names the sequence"
        )
    # The name alone does not decide: these numbers begin again in each document, and are a feature.
    text = f"word,{name},label\na,1,X\nb,2,Y\na,1,X\nb,2,Y\n"
    assert len(table(text)) == 1 and table(text)[0][0] == ("a", "1", "X")
    # So does a choice: words may be called so.
    assert table(f"word,{name},label\na,b,X\nc,b,Y\n", columns=[name])[0] == [("b", "X"), ("b", "Y")]


@pytest.mark.parametrize("name", ["sentence", "sent_id", "sequence"])
def test_a_column_called_sentence_wins_over_the_first(name):
    text = f"doc,{name},word,label\n1,1,a,X\n1,1,b,Y\n1,2,a,X\n2,3,b,Y\n"
    assert list(table(text)) == [[("1", "a", "X"), ("1", "b", "Y")], [("1", "a", "X")], [("2", "b", "Y")]]
    assert len(table(text, sequence="doc")) == 2


@pytest.mark.parametrize("separator", [",", ";", "\t"], ids=["comma", "semicolon", "tab"])
@pytest.mark.parametrize("row", ["1,a\r,O", "1,a,O\r2,b,O", "1,a\rb,O", '1,"a\rb",O', "\r1,a,O", "1,a,O\r"])
def test_a_carriage_return_within_a_line_is_refused(row, separator):
    text = f"id,word,tag\r\n1,a,O\r\n{row}\r\n2,b,B\r\n".replace(",", separator)
    with pytest.raises(ColumnFileError, match=":3: a carriage return within a line; lines end in LF or CRLF"):
        table(text)
    with pytest.raises(ColumnFileError, match=":2: expected 3 values"):  # errors above it come first
        table(text.replace(f"1{separator}a{separator}O", f"1{separator}a", 1))


def test_it_is_read_as_pandas_writes_it():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"id": [1, 1, 2, 2], "token": ["a", ",", '"', "NA"], "ner": ["O", "B-X", "O", "O"]})
    wanted = Columns.from_dataframe(frame, ["token", "ner"], sequence="id")
    assert list(table(frame.to_csv(index=False))) == list(wanted)


def test_without_a_column_of_sequences_empty_rows_end_them():
    """The first column comes again after others: it is a feature, and no name of sequences."""
    columns = table("pos,word,tag\nDT,the,O\nNN,cat,O\n\nDT,a,O\nNN,dog,B\n,,\n")
    assert list(columns) == [[("DT", "the", "O"), ("NN", "cat", "O")], [("DT", "a", "O"), ("NN", "dog", "B")]]


def test_columns_are_chosen_by_name():
    text = "doc,token,label,annotator\n1,a,X,kim\n1,b,Y,kim\n"
    assert table(text)[0] == [("a", "kim", "X"), ("b", "kim", "Y")]  # the last name of labels
    assert table(text, columns=["Token"], label="annotator")[0] == [("a", "kim"), ("b", "kim")]
    assert table(text, columns=["token"], label="label", sequence="token")[1] == [("b", "Y")]
    with pytest.raises(
        ColumnFileError, match="no column 'tag'; there are 4, of the names doc, token, label, annotator"
    ):
        table(text, label="tag")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id,word,tag\n1,a,O\n1,b\n", r":3: expected 3 values \(id, word, tag\), found 2"),
        ('id,word,tag\n1,a,O\n1,",O\n1,b,O\n', ":3: a quotation mark is opened and not closed in its line"),
        ("id,word,tag\n1,a,O\n1,,O\n", r":3: the column 2 \(word\) is empty"),
        ("id,word,tag\n1,a,O\n1,b,\n", r":3: the column 3 \(tag\) is empty"),
        ("word,tag,word\na,O,b\n", ":1: two columns have the name 'word'"),
        ("id,text,tags\n1,a b,O O\n2,c d,O O\n", "most cells of its column text hold several words"),
        ("id,word,tag\n,a,O\n,b,O\n", "the column that names sequences is empty in the first row"),
    ],
    ids=["short", "quote", "word", "label", "twice", "sentences", "unnamed"],
)
def test_what_is_no_such_table_is_refused(text, message):
    with pytest.raises(ColumnFileError, match=message):
        table(text)


def test_a_file_without_names_is_refused(tmp_path):
    (tmp_path / "x.csv").write_text("1,a,O\n1,b,B\n")
    with pytest.raises(ColumnFileError, match=r"x\.csv:1: a table .* begins with the names of its columns.*'1,a,O'"):
        read_columns(tmp_path / "x.csv")


@pytest.mark.parametrize("text", ["a,b O\nc,d B\n", "word,a X\ntag,b Y\n", "1,000\n2,5\n"])
def test_commas_alone_make_no_table(text):
    """Tokens of column files may contain them."""
    assert list(table(text)[0]) == [tuple(line.split()) if " " in line else line for line in text.split("\n")[:-1]]


@pytest.mark.parametrize("text", ["foo O\nbar O\n", "The\ncat\n\nRome\n"])
def test_a_column_file_by_the_name_of_a_table(tmp_path, text):
    (tmp_path / "x.csv").write_text(text)
    assert list(read_columns(tmp_path / "x.csv")) == list(table(text))


def test_a_first_line_like_names_alone_makes_no_table():
    """Nothing is separated in the line after it."""
    assert list(table("word,label\n\ncat\n")) == [["word,label"], ["cat"]]
    with pytest.raises(ColumnFileError, match=r":1: its first line, 'word , label', names columns"):
        table("word , label\nfoo O bar\n")
    assert table("word,label\n\ncat,O\n")[0] == [("cat", "O")]


def test_columns_without_a_name_are_the_index_of_a_frame():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"word": ["foo", "bar"], "label": ["O", "B"]})
    assert list(table(frame.to_csv())) == [[("foo", "O"), ("bar", "B")]]
    assert list(table(",,word,tag\n0,1,foo,O\n1,2,bar,B\n")) == [[("foo", "O"), ("bar", "B")]]
    assert list(table(",word\n0,foo\n", columns=["word"], label=0)) == [[("foo", "0")]]


def test_a_table_whose_only_column_names_sequences():
    with pytest.raises(ColumnFileError, match="its only column names sequences"):
        table("a\nb\n", sequence=0)


def test_pieces_have_the_names_of_the_first_one(tmp_path):
    (tmp_path / "x.csv").write_text("word,tag\na,O\n\nword,tag2\n\nc,B\n")
    pieces = ColumnPieces(tmp_path / "x.csv", 1)
    read = [sequence for piece in pieces for sequence in pieces.parse(piece)]
    assert read == [[("a", "O")], [("word", "tag2")], [("c", "B")]] == list(read_columns(tmp_path / "x.csv"))


@pytest.mark.parametrize("n", [1, 2, None])
def test_pieces_know_the_name_above_them(n):
    """Whichever is parsed first."""
    text = "doc,word,tag\n1,a,O\n\n,b,O\n\n,c,O\n2,d,B\n\n,e,B\n,f,B\n"
    pieces = ColumnPieces(io.BytesIO(text.encode()), n, Reading(sequence="doc"))
    found = [list(pieces.parse(piece)) for piece in reversed(list(pieces))]
    assert [sequence for piece in reversed(found) for sequence in piece] == list(table(text, sequence="doc"))


class Trickle(io.RawIOBase):
    """A pipe that has a few bytes at a time."""

    def __init__(self, data, size):
        self.data, self.size = data, size

    def readable(self):
        return True

    def readinto(self, buffer):
        size = min(self.size, len(buffer))
        part, self.data = self.data[:size], self.data[size:]
        buffer[: len(part)] = part
        return len(part)


@pytest.mark.parametrize("size", [3, 40, 1000])
def test_pieces_of_a_pipe_are_read_as_the_whole(size):
    """In the first sentence alone the shapes come in runs."""
    text = "shape,word,tag\n" + "X,Anna,B\nx,met,O\nx,her,O\n\n" * 5
    reading = Reading(columns=("word",), label="tag")
    pieces = ColumnPieces(Trickle(text.encode(), size), 1, reading)
    assert [s for piece in pieces for s in pieces.parse(piece)] == [*table(text, columns=["word"], label="tag")]
    assert pieces.form.settled().left_out == ("shape",)


SHAPES = "shape,word\n" + "X,Tom\nx,met\nx,met\n\n" * 2


@pytest.mark.parametrize("size", [1, 3, 28, 40, 1000])
def test_a_pipe_is_labelled_as_the_file(size):
    """In the first sentence alone the shapes come in runs; however much of it a pipe has at a time, it is not cut."""
    reading = Reading(columns=("word",), label="label")
    pieces = ColumnPieces(Trickle(SHAPES.encode(), size), None, reading, 1)
    assert [s for piece in pieces for s in pieces.parse(piece)] == [["Tom", "met", "met"]] * 2


@pytest.mark.parametrize("size", [1, 700, 1 << 16])
@pytest.mark.parametrize("n_features", [None, 1])
@pytest.mark.parametrize("end", ["z", "x"], ids=["runs", "again"])
def test_the_first_thousand_rows_tell_however_they_come(end, n_features, size):
    """The rows after them do not, though their values come again."""
    reading = Reading(columns=("word",), label="label")
    names = "shape,word" if n_features else "shape,word,label"
    rows = [f"{name},a" + ",O" * (n_features is None) for name in ["x", *["y"] * 998, end, "x", "y"]]
    text = names + "\n" + "\n\n".join(rows) + "\n"
    pieces = ColumnPieces(Trickle(text.encode(), size), 1, reading, n_features)
    assert next(iter(pieces))
    assert pieces.form.sequence == (0 if end == "z" else None)
    assert read_form(io.StringIO(text), reading, n_features)[1].sequence == pieces.form.sequence


@pytest.mark.parametrize("text", ["Jackson,\nWA\n\n", "word,label\na,O\n\n"], ids=["commas", "table"])
def test_what_no_row_can_change_is_labelled_at_once(text):
    pipe = Trickle(text.encode() * 500, len(text))
    pieces = ColumnPieces(pipe, None, Reading(columns=("word",), label="label"), 1)
    assert next(iter(pieces))[0].decode() == text
    assert len(pipe.data) > 498 * len(text)


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("n_features", [None, 1, 2])
@pytest.mark.parametrize("n", [None, 1])
def test_a_table_of_names_alone_has_no_tokens(tmp_path, n, n_features, separator):
    path = tmp_path / "h.csv"
    path.write_text("shape,word,label\n\n".replace(",", separator))
    with pytest.raises(ColumnFileError, match=r"h\.csv: no tokens \(only the names of columns\)"):
        list(ColumnPieces(path, n, None, n_features))
    with pytest.raises(ColumnFileError, match=r"h\.csv: no tokens \(only the names of columns\)"):
        read_columns(path)


def test_a_reading_is_settled_by_the_first_rows_alone():
    """A table without blank rows is one piece, and not read to its end."""
    pipe = Trickle(b"doc,word,tag\n" + b"".join(b"%d,a,O\n" % (k // 5) for k in range(100_000)), 1 << 14)
    size = len(pipe.data)
    assert settled_reading(pipe, Reading()).sequence == "doc"
    assert size - len(pipe.data) < 1 << 16


def test_what_is_left_out_is_stored():
    reading = Reading(columns=("word",), label="tag", left_out=("shape",))
    assert Reading.of(reading.to_json()) == reading
    assert "left_out" not in Reading(columns=("word",)).to_json()
    with pytest.raises(ValueError, match="columns that are left out"):
        Reading.of({"left_out": [1]})


def test_a_table_is_not_read_beyond_its_first_rows():
    """The first thousand tell what its columns are."""
    read = []

    class Counted(Trickle):
        def readinto(self, buffer):
            read.append(n := super().readinto(buffer))
            return n

    text = "shape,word,tag\n" + "X,Anna,B\n\n" * 200_000
    pieces = iter(ColumnPieces(Counted(text.encode(), 1 << 16), 1))
    next(pieces)
    assert sum(read) < 1 << 18


def test_errors_in_pieces_name_the_line_of_the_file():
    pieces = ColumnPieces(io.BytesIO(b'word,tag\na,O\n\n"b",O\n,\n\nc,O\nd,\n'), 1)
    with pytest.raises(ColumnFileError, match=r"<lines>:8: the column 2 \(tag\) is empty"):
        [pieces.parse(piece) for piece in pieces]


def test_every_row_of_csv_comes_out(tmp_path):
    """Against the rows as they were written, with commas and quotation marks in words."""
    words = ["a", ",", '"', ";", "x,y", '""', "'", "1,5", "#", "-DOCSTART-"]
    rows = [(s, word, f"L{k % 3}") for s in range(4) for k, word in enumerate(words)]
    with open(tmp_path / "x.csv", "w", newline="") as file:
        csv.writer(file).writerows([("sentence", "word", "label"), *rows])
    assert [list(sequence) for sequence in read_columns(tmp_path / "x.csv")] == [
        [(word, label) for s, word, label in rows if s == number] for number in range(4)
    ]


TABBED = 'Doc\tWord\tPOS\tLabel\n1\tAnna\tNNP\tB-PER\n1\t"\t``\tO\n1\tyes\tUH\tO\n2\tBen\tNNP\tB-PER\n'


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_names_between_tabs(end):
    """A quotation mark is a word; the first column names sequences."""
    columns = table(TABBED.replace("\n", end))
    assert list(columns) == [
        [("Anna", "NNP", "B-PER"), ('"', "``", "O"), ("yes", "UH", "O")],
        [("Ben", "NNP", "B-PER")],
    ]


def test_names_between_tabs_as_pandas_writes_them():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"word": ['"', '5"', "a,b"], "label": ["O", "B", "O"]})
    assert list(table(frame.to_csv(index=False, sep="\t"))) == [[('"', "O"), ('5"', "B"), ("a,b", "O")]]


@pytest.mark.parametrize("size", [1, 9, 40, 1000])
def test_pieces_of_a_table_by_tabs_are_read_as_the_whole(size):
    pieces = ColumnPieces(Trickle(TABBED.encode(), size), 1)
    assert [s for piece in pieces for s in pieces.parse(piece)] == list(table(TABBED))


def test_errors_in_a_table_by_tabs_name_the_line():
    with pytest.raises(ColumnFileError, match=r":3: expected 2 values \(word, label\), found 3"):
        table("word\tlabel\nAnna\tO\nBen\tO\tX\n")
    with pytest.raises(ColumnFileError, match=r":4: the column 2 \(label\) is empty"):
        table("word\tlabel\nAnna\tO\n\nBen\t\nTom\tO\n")
    with pytest.raises(ColumnFileError, match="two columns have the name 'word'"):
        table("word\tWord\tlabel\na\tb\tO\n")


@pytest.mark.parametrize("text", ["text\tNN\nlabel\tNN\n", "word\t1\tlabel\nis\t2\tO\n"], ids=["tokens", "numbers"])
def test_words_like_names_make_no_table_by_tabs(text):
    head = text.encode()
    assert table_of(first_row(head), "x", (), head) is None


def test_names_between_blanks_are_refused():
    for first in ("word label", "sentence word pos tag"):
        with pytest.raises(ColumnFileError, match="names columns, as column files do not"):
            table(f"{first}\n1 Anna NNP O\n")


@pytest.mark.parametrize(
    "line",
    [
        '{"tokens": ["Anna", "sleeps"], "labels": ["PER", "O"]}',
        '{"id": 3, "text": "a b"}',
        '[{"text": "a b"},',
        '{"a":{',
        '{"text": null, "label": "A"}',
        '{"ok": true, "label": "A"}',
        '["Anna","lives"]',
        '[["Anna", "lives"], ["PER", "O"]],',
        '[["Anna", "lives"],',
        '[\n  {\n    "text": "a b",\n    "label": "A"\n  },',
        '{\n  "text": "a b",',
        '[\r\n  "Anna",\r\n  "lives"\r\n]',
        '[\n  {"text": "a b"},',
    ],
)
def test_json_is_refused_by_name(line):
    with pytest.raises(ColumnFileError, match=r"<lines>:1: is JSON.*write_columns"):
        table(f"{line}\n{line} and more\n")


@pytest.mark.parametrize("line", ["{ O", '{"a" O', '{"a": O', "[{ O", '" O'])
def test_words_like_json_are_words(line):
    assert table(line + "\n").n_tokens == 1


@pytest.mark.parametrize(
    "text",
    [
        '{"id":5}\tO\nok\tB\n',
        '{"id": 5} O\nok it B\n',
        '{"a":"b"}\tNN\tO\nok\tNN\tB\n',
        '["a"]\tO\nok\tB\n',
        "[1]\nok\n",
        "[\nsee\n",
        "{\tO\nx\tB\n",
    ],
)
def test_a_first_word_of_json_is_a_word(text):
    assert table(text).n_tokens == 2
