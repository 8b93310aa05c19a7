"""Tables of documents: names of columns, separators, quotes, missing labels, lines in errors."""

import io

import pytest
from click.testing import CliRunner

from structsvm import cli
from structsvm.tasks.taxonomy.documents import DocumentFileError, document_pieces, document_rows, read_documents


def rows(text, name="x.txt"):
    source = io.BytesIO(text.encode())
    source.name = name
    return document_rows(source)


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("mark", ["", "\ufeff"], ids=["plain", "marked"])
def test_columns_are_found_by_their_names(separator, mark):
    lines = ["Category Path|sku|Product Title", "Home/Beds|7|Oak bed", "Home/Desks|8|Small desk"]
    text = mark + "\r\n".join(line.replace("|", separator) for line in lines) + "\r\n"
    found = rows(text, "p.tsv" if separator == "\t" else "p.csv")
    assert found[:2] == (["Oak bed", "Small desk"], ["Home/Beds", "Home/Desks"])
    assert found.lines == [2, 3]
    assert found.remark == "a table, read by its columns Product Title; Category Path is the label"


def test_texts_are_joined_and_may_have_several_lines():
    found = rows('title,description,label\n"Bed, oak","for two\npersons",a\n\nDesk,"12"" wide",b\n')
    assert found[:2] == (["Bed, oak for two\npersons", 'Desk 12" wide'], ["a", "b"])
    assert found.lines == [2, 5]


@pytest.mark.parametrize("separator", [",", "\t"], ids=["commas", "tabs"])
@pytest.mark.parametrize("blank", ["\n\n", "  \n", "\r\n"], ids=["two", "blanks", "returns"])
def test_names_after_blank_lines_are_no_document(separator, blank):
    text = blank + "title|category\none|a\n\ntwo|b\n".replace("|", separator)
    found = rows(text, "x.csv")
    assert found[:2] == (["one", "two"], ["a", "b"])
    assert found.lines == [text.count("\n", 0, text.index(word)) + 1 for word in ("one", "two")]
    with pytest.raises(DocumentFileError, match=f"line {blank.count(chr(10)) + 1}: the columns 'class' and 'label'"):
        rows(blank + "title|class|label\none|a|b\n".replace("|", separator), "x.csv")


def test_two_values_between_tabs_are_names_only_if_exact():
    text = "Education/Class Supplies\tSchool name tags\nb\ttwo\n"
    assert rows(text, "x.tsv")[:2] == (["School name tags", "two"], ["Education/Class Supplies", "b"])
    assert rows("Category\tName\n" + text, "x.tsv")[:2] == rows(text, "x.tsv")[:2]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('category,title\na,one\nb,"two\na,three\nb,four\n', 3),
        ('category,title\na,one\nb,"two\na,"three"\nb,four\n', 3),
        ('category,title\n\na,"one\nand a half"\nb,"two', 5),
        ('category,title\na,"12" wide"\n', 2),
        ('\n"category,title\na,one\n', 2),
    ],
    ids=["end", "closed later", "last", "within", "names"],
)
def test_a_quotation_mark_swallows_no_documents(text, line):
    with pytest.raises(DocumentFileError, match=rf"x\.csv, line {line}: a quotation mark is opened and not closed"):
        rows(text, "x.csv")


@pytest.mark.parametrize("mark", ["", '"'], ids=["plain", "quoted"])
def test_long_texts_are_read_between_tabs(mark):
    long = "word " * 40000
    with pytest.raises(DocumentFileError, match=r"line 2: a value of more than 131,072 .* lines of label<TAB>text"):
        rows(f"category,title\na,{mark}{long}{mark}\n", "x.csv")
    assert rows(f"a\t{long}\n", "x.csv")[1] == ["a"]


def test_a_name_that_is_exact_goes_before_one_that_has_the_word():
    assert rows("title,category name,category\nbed,Beds,7\n")[:2] == (["bed"], ["7"])
    assert rows("brand name,category name\nTarn,Beds\n", "p.csv")[:2] == (["Tarn"], ["Beds"])


def test_a_table_without_labels():
    for text in ("title\nbed\ndesk\n", "sku,title\n1,bed\n2,desk\n", "title,category\nbed,\ndesk,\n"):
        assert rows(text, "new.csv")[:2] == (["bed", "desk"], None)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("title,category\nbed,a\ndesk,\n", "x.csv, line 3: the column category is empty"),
        ("title,category\nbed,a\ndesk,b,c\n", r"x.csv, line 3: expected 2 values \(title, category\), found 3"),
        ("title,category\n", "x.csv: holds no documents, but the names of columns alone"),
        ("bed,a\ndesk,b\n", "x.csv, line 1: a table begins with the names of its columns, .* found bed, a"),
        ("title,main class,sub class\nbed,a,b\n", "line 1: the columns 'main class' and 'sub class' may be the label"),
    ],
    ids=["label", "values", "none", "names", "labels"],
)
def test_what_is_no_such_table_is_refused(text, message):
    with pytest.raises(DocumentFileError, match=message):
        rows(text, "x.csv")


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("a text, with a category\nanother, without\n", (["a text, with a category", "another, without"], None)),
        ("mac\tthe title, and a path\npc\tx\n", (["the title, and a path", "x"], ["mac", "pc"])),
        ("title\t7\tcategory\nx\ty\n", (["7\tcategory", "y"], ["title", "x"])),
    ],
    ids=["texts", "labelled", "number"],
)
def test_files_without_names_are_read_as_before(text, read):
    assert rows(text)[:2] == read and rows(text).remark == ""


@pytest.mark.parametrize("text", ["category\ttitle\nBeds\toak\n", "title,category\noak,Beds\n"], ids=["tabs", "commas"])
def test_a_table_is_not_read_in_parts(tmp_path, text):
    (tmp_path / "x.csv").write_text(text)
    with pytest.raises(
        DocumentFileError, match=r"x\.csv: a table is not read in parts: write label<TAB>text, or Parquet"
    ):
        list(document_pieces(tmp_path / "x.csv"))


def test_rows_of_svmlight_are_no_table():
    assert read_documents(io.BytesIO(b"a 1:2\nb 2:1\n"))[1] == ["a", "b"]


def test_a_table_is_learnt_and_labelled_on_the_command_line(tmp_path):
    kinds = {"Home > Beds": "oak bed", "Home > Desks": "small desk", "Sport > Tents": "dome tent"}
    lines = [
        f'{k},"{text}, {colour}",{path}' for k, colour in enumerate(["red", "blue"] * 6) for path, text in kinds.items()
    ]
    (tmp_path / "p.csv").write_text("\n".join(["sku,title,category", *lines]) + "\n")
    (tmp_path / "new.csv").write_text('sku,title\n1,"dome tent, green"\n')
    model = tmp_path / "p.model"

    def run(*arguments):
        ran = CliRunner().invoke(cli.main, [*map(str, arguments)])
        assert ran.exit_code == 0, ran.output
        return ran.output

    said = run("train", "taxonomy", tmp_path / "p.csv", "--model", model, "--separator", " > ")
    assert "p.csv: a table, read by its columns title; category is the label" in said
    assert "accuracy 100.00%" in run("evaluate", model, tmp_path / "p.csv")
    assert run("predict", model, tmp_path / "new.csv") == "Sport > Tents\n"
