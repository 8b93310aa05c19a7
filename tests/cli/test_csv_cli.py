"""A table of comma-separated values on the command line: trained on, evaluated, labelled, and what is said of it."""

import csv
import json

import pytest
from command_line import run

import structsvm
from structsvm.datasets import make_addresses

QUICK = ("-C", "1", "--max-iter", "3", "--loss", "hamming")


@pytest.fixture
def work(tmp_path):
    X, y = make_addresses(40, random_state=0)
    rows = [(f"a{s}" if k == 0 else "", *row) for s, pair in enumerate(zip(X, y)) for k, row in enumerate(zip(*pair))]
    write(tmp_path / "x.csv", [("address", "word", "label"), *rows])
    write(tmp_path / "new.csv", [("word",), ("12",), ("Mill",), ("Rd",)])
    write(tmp_path / "plain.csv", [("address", "word"), *(row[:2] for row in rows)])
    return tmp_path


def write(path, rows):
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(rows)


def last(text):
    """The last column of what predict writes."""
    return [line.split("\t")[-1] for line in text.split("\n")]


def test_a_table_is_trained_on_and_labelled(work):
    said = run(work, "train", "sequence", "x.csv", "-m", "m", *QUICK)[0]
    assert "x.csv: a table, read by its columns word; label is the label; address names the sequence" in said
    assert "40 sequences" in said
    scores = json.loads(run(work, "evaluate", "m", "x.csv", "--json")[0])
    assert scores["n_sequences"] == 40 and scores["accuracy"] > 0.9
    labelled = run(work, "predict", "m", "x.csv")[0]
    model = structsvm.load(work / "m")
    X, _ = make_addresses(40, random_state=0)
    assert [line.split("\t")[-1] for line in labelled.split("\n\n")[0].split("\n")] == model.predict(X[:1])[0]
    assert last(run(work, "predict", "m", "plain.csv")[0]) == last(labelled)
    assert len(run(work, "predict", "m", "new.csv")[0].split("\n\n")[0].split("\n")) == 3


def test_a_table_with_another_name_for_its_words(work):
    """An option says which of its columns they are."""
    run(work, "train", "sequence", "x.csv", "-m", "m", *QUICK)
    write(work / "tokens.csv", [("id", "token"), ("1", "12"), ("1", "Mill"), ("1", "Rd")])
    said = run(work, "predict", "m", "tokens.csv", status=1)[1]
    assert "no column 'word'; there are 2, of the names id, token; columns= (--columns) names those that stand" in said
    found = run(work, "predict", "m", "tokens.csv", "--columns", "token")[0]
    assert last(found) == last(run(work, "predict", "m", "new.csv")[0])


def test_a_model_of_a_table_labels_other_files(work):
    run(work, "train", "sequence", "x.csv", "-m", "m", *QUICK)
    (work / "new.txt").write_text("12\nMill\nRd\n")
    assert run(work, "predict", "m", "new.txt")[0] == run(work, "predict", "m", "new.csv")[0]


def test_a_model_of_a_table_reads_labelled_columns(work):
    run(work, "train", "sequence", "x.csv", "-m", "m", *QUICK)
    (work / "old.txt").write_text("12 number\nMill street\nRd street\n")
    assert last(run(work, "predict", "m", "old.txt")[0]) == last(run(work, "predict", "m", "new.csv")[0])
    assert json.loads(run(work, "evaluate", "m", "old.txt", "--json")[0])["n_tokens"] == 3


def test_a_model_of_a_treebank_reads_labelled_columns(work):
    row = "{}\t{}\t_\t{}\t_\t_\t0\t_\t_\t_\n"
    rows = row.format(1, "dogs", "NOUN") + row.format(2, "bark", "VERB")
    (work / "x.conllu").write_text((rows + "\n") * 20)
    run(work, "train", "sequence", "x.conllu", "-m", "m", "--columns", "form", "--label", "upos", *QUICK)
    (work / "old.txt").write_text("dogs NOUN\nbark VERB\n")
    assert json.loads(run(work, "evaluate", "m", "old.txt", "--json")[0])["n_tokens"] == 2


def test_a_column_that_an_option_names_is_there(work):
    """A file may lack those that a model remembers, not those that are asked for."""
    run(work, "train", "sequence", "x.csv", "-m", "m", *QUICK)
    assert run(work, "predict", "m", "new.csv")[0]
    for command in (["predict"], ["predict", "--kbest", "2"], ["evaluate"]):
        said = run(work, *command, "m", "x.csv", "--sequence", "dox", status=1)[1]
        assert "x.csv: no column 'dox'; there are 3, of the names address, word, label" in said
    assert run(work, "predict", "m", "x.csv", "--sequence", "address")[0] == run(work, "predict", "m", "x.csv")[0]


def test_columns_of_training_name_no_sequences_later(work):
    """In the first sentence alone the shapes come in runs."""
    rows = [("Xx", "The", "D"), ("x", "cat", "N"), ("x", "sat", "V")]
    write(work / "shapes.csv", [("shape", "word", "label"), *[row for _ in range(30) for row in (*rows, ())]])
    assert "30 sequences" in run(work, "train", "sequence", "shapes.csv", "-m", "m", *QUICK)[0]
    write(work / "next.csv", [("shape", "word"), *(row[:2] for row in rows), (), *(row[:2] for row in rows)])
    found = run(work, "predict", "m", "next.csv")[0].strip("\n")
    assert [len(part.split("\n")) for part in found.split("\n\n")] == [3, 3]


SHAPES = [("Xx", "Anna", "PER"), ("x", "met", "O"), ("Xx", "Tom", "PER")]  # in a sentence of one shape each is a run


def written_shapes(work):
    """A table of sentences by blank rows, and one to label whose shapes come in runs."""
    write(work / "shapes.csv", [("shape", "word", "label"), *[row for _ in range(30) for row in (*SHAPES[1:], ())]])
    write(work / "next.csv", [("shape", "word"), *[row[:2] for row in SHAPES[:1] * 2 + SHAPES[1:2]]])


SHAPES_LEFT_OUT = ["train", "sequence", "shapes.csv", "-m", "m", "--columns", "word", "--label", "label"]


@pytest.mark.parametrize(
    "more",
    [(*QUICK,), ("--stream", "-C", "1", "--loss", "hamming"), (*QUICK, "--shards", "folder")],
    ids=["whole", "stream", "shards"],
)
def test_columns_that_are_left_out_name_no_sequences(work, more):
    """The training file decides, with all of its first rows; the model remembers."""
    written_shapes(work)
    assert "30 sequences" in run(work, *SHAPES_LEFT_OUT, *more)[0]
    assert structsvm.load(work / "m").model_.reading.left_out == ("shape",)
    found = run(work, "predict", "m", "next.csv")[0]
    assert [len(part.split("\n")) for part in found.strip("\n").split("\n\n")] == [3]
    scores = json.loads(run(work, "evaluate", "m", "shapes.csv", "--json")[0])
    assert scores["n_sequences"] == 30


def test_a_column_that_training_had_not_may_name_sequences(work):
    written_shapes(work)
    run(work, *SHAPES_LEFT_OUT, *QUICK)
    write(work / "named.csv", [("letter", "word"), ("1", "Anna"), ("1", "met"), ("2", "Tom")])
    found = run(work, "predict", "m", "named.csv")[0]
    assert [len(part.split("\n")) for part in found.strip("\n").split("\n\n")] == [2, 1]
    found = run(work, "predict", "m", "next.csv", "--sequence", "shape")[0]
    assert [len(part.split("\n")) for part in found.strip("\n").split("\n\n")] == [2, 1]


def test_strangers_names_of_tasks(work):
    for name, task in (("sequences", "sequence"), ("categories", "taxonomy"), ("entities", "sequence")):
        said = run(work, "train", name, "x.csv", "-m", "m", status=2)[1]
        assert f"No such command {name!r}: it is train {task}" in said
    assert "'x.csv' is a file; before it comes the task, one of alignment," in run(work, "train", "x.csv", status=2)[1]


def test_documents_in_the_other_order(work):
    (work / "x.tsv").write_text("".join(f"title number {k}\tHome/{'AB'[k % 2]}\n" for k in range(20)))
    said = run(work, "train", "taxonomy", "x.tsv", "-m", "m", status=1)[1]
    assert "Or are the columns in the other order? A line is label<TAB>text, and 'Home/A' is taken for a text" in said
    (work / "y.tsv").write_text("".join(f"Home/{'AB'[k % 2]}\tthe {'ab'[k % 2]}{k}\n" for k in range(20)))
    said = run(work, "train", "taxonomy", "y.tsv", "-m", "m", "-C", "1")[0]
    assert "2 classes without a taxonomy (if they are paths, say --separator '/')" in said
    assert "taxonomy of" in run(work, "train", "taxonomy", "y.tsv", "-m", "m", "-C", "1", "--separator", "/")[0]


@pytest.mark.parametrize("options", [(), ("--stream",), ("--shards", "folder")], ids=["plain", "stream", "shards"])
def test_training_on_names_alone_is_refused(tmp_path, options):
    (tmp_path / "h.csv").write_text("shape,word,label\n")
    said = run(tmp_path, "train", "sequence", "h.csv", "-m", "m", *options, status=1)[1]
    assert said == "Error: h.csv: no tokens (only the names of columns)\n"


@pytest.mark.parametrize("given", ["h.csv", "-"])
def test_predicting_names_alone_is_refused(work, given):
    run(work, "train", "sequence", "x.csv", "-m", "m", *QUICK)
    (work / "h.csv").write_text(text := "shape,word,label\n")
    said = run(work, "predict", "m", given, status=1, text=text)[1]
    assert said.endswith(": no tokens (only the names of columns)\n") and said.count("\n") == 1
