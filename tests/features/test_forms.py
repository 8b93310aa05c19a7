"""Forms of column files: CoNLL-U, comments, document marks, tabs; and the choice of columns and sequences."""

import io
from itertools import chain

import pytest

from structsvm.features.columns import ColumnFileError, ColumnPieces, Columns, read_columns
from structsvm.features.tables.forms import Reading

CONLLU = """# newdoc id = x
# sent_id = 1
# text = vámonos al mar
1-2\tvámonos\t_\t_\t_\t_\t_\t_\t_\t_
1\tvamos\tir\tVERB\tVB\t_\t0\troot\t_\t_
2\tnos\tnosotros\tPRON\tPP\t_\t1\tobj\t_\t_
3.1\te\te\tX\t_\t_\t_\t_\t_\t_

# sent_id = 2
1\tal\ta\tADP\tIN\t_\t0\troot\t_\tSpaceAfter=No

"""
PLUS = "# global.columns = ID FORM NER\n1\tNew York\tB\n2\tis\tO\n\n1\tyes\tO\n"
NAMED = "# id 12-34 domain=en\nnew _ _ B-CW\nyork _ _ I-CW\n\n# id 12-35\tdomain=en\n# _ _ O\na _ _ O\n"
DOCUMENTS = "-DOCSTART- -X- -X- O\n\nEU NNP B-NP B\nis VB B-VP O\n\n-DOCSTART- -X- -X- O\n\n# # B-NP O\n"

FORMS = {
    "CoNLL-U": (CONLLU, {}, [[("vamos", "VERB"), ("nos", "PRON")], [("al", "ADP")]]),
    "named columns": (
        CONLLU,
        {"columns": ["FORM", "lemma"], "label": "xpos"},
        [[("vamos", "ir", "VB"), ("nos", "nosotros", "PP")], [("al", "a", "IN")]],
    ),
    "numbered columns": (CONLLU, {"columns": [1, -1], "label": "4"}, [
        [("vamos", "_", "VERB"), ("nos", "_", "PRON")], [("al", "SpaceAfter=No", "ADP")]
    ]),
    "no universal tags": (
        CONLLU.replace("VERB", "_").replace("PRON", "_").replace("ADP", "_").replace("X", "_"),
        {},
        [[("vamos", "VB"), ("nos", "PP")], [("al", "IN")]],
    ),
    "CoNLL-U Plus": (PLUS, {}, [[("New York", "B"), ("is", "O")], [("yes", "O")]]),
    "headers": (NAMED, {}, [
        [("new", "_", "_", "B-CW"), ("york", "_", "_", "I-CW")], [("#", "_", "_", "O"), ("a", "_", "_", "O")]
    ]),
    "document marks": (DOCUMENTS, {}, [
        [("EU", "NNP", "B-NP", "B"), ("is", "VB", "B-VP", "O")], [("#", "#", "B-NP", "O")]
    ]),
    "a header without a blank line": ("a X\n# sent_id = 7\nb Y\n", {}, [[("a", "X")], [("b", "Y")]]),
    "comments": ("# two words more\nthe DT\n\n## and more of it\n# NN\n", {}, [[("the", "DT")], [("#", "NN")]]),
    "hashtags": ("#tag NN\nb Y\n", {}, [[("#tag", "NN"), ("b", "Y")]]),
    "values with blanks": ("New York\tB-LOC\nis\tO\n \t\n a b c\tO\r\n", {}, [
        [("New York", "B-LOC"), ("is", "O")], [("a b c", "O")]
    ]),
    "blanks that come late": ("is\tO\n\nNew York\tB\n", {}, [[("is", "O")], [("New York", "B")]]),
    "values that are empty": ("a\tb\tO\na\t\tO\n", {}, [[("a", "b", "O"), ("a", "", "O")]]),
    "tabs and blanks": ("a b\tO\nc  d\tX\n", {}, [[("a", "b", "O"), ("c", "d", "X")]]),
    "blank lines of blanks": ("a b\r\n \t\r\nc d\r\n\t\n", {}, [[("a", "b")], [("c", "d")]]),
    "names of sequences": ("a s1 X\nb s1 Y\nc s2 Y\n", {"sequence": "2"}, [[("a", "X"), ("b", "Y")], [("c", "Y")]]),
    "ends of sentences": ("a X\n. Y\nc Y\n! Y\n", {"sentence_end": ". !"}, [[("a", "X"), (".", "Y")],
                                                                           [("c", "Y"), ("!", "Y")]]),
    "a label first": ("X a 1\nY b 2\n", {"label": 0}, [[("a", "1", "X"), ("b", "2", "Y")]]),
}  # fmt: skip
forms = pytest.mark.parametrize(("text", "given", "wanted"), FORMS.values(), ids=FORMS)


@forms
def test_forms_are_read(text, given, wanted):
    for data in (text, text.replace("\r", "").replace("\n", "\r\n"), "\ufeff" + text):
        assert list(read_columns(io.BytesIO(data.encode()), **given)) == wanted


@forms
@pytest.mark.parametrize("n", [1, 5])
def test_pieces_have_the_form_of_the_whole(text, given, wanted, n):
    reading = Reading.of(given | {"sentence_end": given.get("sentence_end", "").split()})
    pieces = ColumnPieces(io.BytesIO(text.encode()), n, reading)
    assert [sequence for piece in pieces for sequence in pieces.parse(piece)] == wanted
    assert Reading.of(reading.to_json()) == reading


@forms
def test_files_without_labels(text, given, wanted):
    """With as many columns of tokens as a model has, a file needs no label."""
    n = len(wanted[0][0]) - 1
    if n == 1 and any(" " in token[0] for sentence in wanted for token in sentence):
        return  # a single column has no tabs
    bare = "\n\n".join("\n".join("\t".join(token[:n]) for token in sentence) for sentence in wanted) + "\n"
    pieces = ColumnPieces(io.BytesIO(bare.encode()), None, Reading(), n)
    found = [list(pieces.parse(piece)) for piece in pieces]
    assert not pieces.form.has_label
    assert list(chain.from_iterable(found)) == [
        [token[:n] if n > 1 else token[0] for token in sentence] for sentence in wanted
    ]


def test_an_empty_tag_is_no_label_to_predict():
    text = "1\tdogs\t_\t_\t_\t_\t_\t_\t_\t_\n2\tbark\t_\t_\t_\t_\t_\t_\t_\t_\n"
    pieces = ColumnPieces(io.BytesIO(text.encode()), None, None, 1)
    assert [list(pieces.parse(piece)) for piece in pieces] == [[["dogs", "bark"]]]
    with pytest.raises(ColumnFileError, match=r"columns upos and xpos are empty; label= \(--label\) names the one"):
        read_columns(io.BytesIO(text.encode()))


@pytest.mark.parametrize(
    ("text", "given", "message"),
    [
        (CONLLU, {"label": "ner"}, "no column 'ner'; there are 10, of the names id, form,"),
        ("a b\n", {"label": "ner"}, "no column 'ner'; there are 2, of a name: they have numbers"),
        ("a b\n", {"label": "3"}, "no column '3'; there are 2"),
        ("a b\n", {"columns": [2]}, "no column of index 2; there are 2"),
        ("a b\n", {"columns": [0, 1]}, r"the column 2 is the label, and among the columns of tokens"),
        (CONLLU, {"columns": ["upos"]}, r"the column 4 \(upos\) is the label, and among"),
        (CONLLU.replace("0\troot", "0 root"), {}, ":5: expected 10 columns between tabs, found 9"),
        ("a b\n\n# c\nd e f\n", {}, ":4: expected 2 columns, found 3"),
        ("x y\tB\nz\tO\nq\n", {}, ":3: expected 2 columns between tabs, found 1"),
        ("a b\n# c d\n", {}, ":2: expected 2 columns, found 3"),  # within a sequence it is no comment
        ("x\tB\nx y\tO\nq\n", {}, ":2: expected 2 columns, found 3"),
    ],
)
def test_errors_name_line_and_column(text, given, message):
    with pytest.raises(ColumnFileError, match=message):
        read_columns(io.BytesIO(text.encode()), **given)


@pytest.mark.parametrize(
    "value", [{"columns": "ab"}, {"label": 1.5}, {"sentence_end": "."}, {"other": 1}, {"sequence": []}]
)
def test_readings_that_are_none(value):
    with pytest.raises((ValueError, TypeError)):
        Reading.of(value)


def test_a_file_that_says_what_it_is_by_its_name(tmp_path):
    (tmp_path / "x.conllu").write_text("2\tdogs\t_\tN\n")
    with pytest.raises(ColumnFileError, match=r"x\.conllu:1: expected 10 columns between tabs, found 4"):
        read_columns(tmp_path / "x.conllu")


def test_what_a_form_says():
    pieces = ColumnPieces(io.BytesIO(CONLLU.encode()))
    next(iter(pieces))
    assert pieces.form.describe() == (
        "<lines>: CoNLL-U, read by its column form; its column upos is the label (--label names another)"
    )


def test_conllu_by_name_is_what_columns_are():
    wanted = Columns.from_conllu(io.BytesIO(CONLLU.encode()), ["form", "xpos"])
    assert list(read_columns(io.BytesIO(CONLLU.encode()), label="xpos")) == list(wanted)


def rows_of(line, n=12):
    return "".join("".join(line.format(k, k - 1) + "\n" for k in (1, 2, 3)) + "\n" for _ in range(n)).encode()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{} w w NOUN NN _ {} dep _ SpaceAfter=No", "CoNLL-U whose columns stand between blanks: .* --label 4"),
        ("{} w w NOUN NN _ {} dep _ _", "CoNLL-U whose columns stand between blanks"),
        ("{0}\tw\tw\tw\tN\tN\t_\t_\t{1}\t{1}\td\td\t_\t_\tA0", "CoNLL-2009: .* --label 5"),
    ],
    ids=["MISC", "empty MISC", "2009"],
)
def test_treebanks_whose_last_column_is_no_label(line, said):
    data = rows_of(line)
    with pytest.raises(ColumnFileError, match=said):
        read_columns(io.BytesIO(data))
    label = "4" if "U" in said else "5"
    columns = read_columns(io.BytesIO(data), columns=["2"], label=label)
    assert columns[0][0] == ("w", "NOUN" if label == "4" else "N")


@pytest.mark.parametrize(
    "text",
    [
        "(TOP (S (NP (DT the) (NN dog)) (VP (VB barks))))\n",
        "(S (DT the) (NN dog))\n",
        "( (S (NP (NN dogs)) (VP (VB bark))) )\n",
        "( (S \n    (NP (NN dogs))\n",
        "( (S \n    (NP-SBJ \n      (NP (NNP Pierre) (NNP Vinken) )\n",
        "(TOP (S (NP (DT the)\n  (NN dog))))\n",
        "(S (NP (NN dogs) )\n  (VP\n    (VB bark)))\n",
    ],
)
def test_trees_in_brackets_are_no_columns(text):
    with pytest.raises(ColumnFileError, match=r":1: begins a tree in brackets, .* train grammar"):
        read_columns(io.StringIO(text * 3))


@pytest.mark.parametrize(
    "row",
    [
        "( -LRB- O",
        "( ( O",
        "(S (NP* O",
        "(S (NP",
        "( (S* O",
        "( (S*",
        "(a (b) O",
        "(: (: O",
        "(NP (x O",
        "( (x",
        "(: (: ))",
    ],
)
def test_brackets_are_words_and_labels_of_columns(row):
    assert read_columns(io.StringIO(f"{row}\n" * 2))[0] == [tuple(row.split())] * 2
    other = " ".join([")"] * len(row.split()))
    assert read_columns(io.StringIO(f"{row}\n{other}\n\n{row}\n"))[0] == [tuple(row.split()), tuple(other.split())]


def test_ten_columns_of_their_own():
    """The last one is the label, as of any file."""
    assert read_columns(io.BytesIO(rows_of("w{} a b c d e {} f g B-X")))[0][0][-1] == "B-X"
    assert read_columns(io.BytesIO(rows_of("{} a b c d e f{} f g B-X")))[0][0][-1] == "B-X"


def test_sentences_of_conllu_without_a_blank_line_between_them():
    data = rows_of("{}\tw\tw\tNOUN\tNN\t_\t{}\tdep\t_\t_")
    assert len(read_columns(io.BytesIO(data))) == 12
    with pytest.raises(ColumnFileError, match=":4: word 1 after word 3: a blank line is missing before it"):
        read_columns(io.BytesIO(data.replace(b"\n\n", b"\n")))


@pytest.mark.parametrize("head", ["word tag", "Token POS NER_tag", "words labels"])
def test_a_line_of_names_is_no_token(head):
    n = len(head.split())
    data = f"{head}\n" + "\t".join("abc"[:n]) + "\n\n" + "\t".join("cba"[:n]) + "\n"
    assert len(read_columns(io.StringIO(data.replace(" ", "\t")))) == 2  # between tabs it begins a table
    with pytest.raises(ColumnFileError, match=r":1: its first line, .*, names columns"):
        read_columns(io.StringIO(data))
    assert len(read_columns(io.StringIO("word B\ntag I\n\n"))) == 1
