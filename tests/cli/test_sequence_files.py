"""Conventions of column files on the command line: what train chooses or refuses, and that the others follow."""

import gzip
import json

import pytest
from command_line import run

import structsvm
from structsvm.datasets import make_sequences, write_columns

SENTENCE = (("The", "the", "DET", "DT"), ("dogs", "dog", "NOUN", "NNS"), ("bark", "bark", "VERB", "VB"))
OTHER = (("A", "a", "DET", "DT"), ("dog", "dog", "NOUN", "NN"))


def conllu(sentences, tags=True):
    lines = []
    for s, sentence in enumerate(sentences):
        lines += [f"# sent_id = {s}", "# text = " + " ".join(row[0] for row in sentence)]
        for k, (form, lemma, upos, xpos) in enumerate(sentence, 1):
            lines.append("\t".join([str(k), form, lemma, *((upos, xpos) if tags else "__"), "_", "0", "x", "_", "_"]))
        lines.append("")
    return "\n".join(lines) + "\n"


@pytest.fixture
def work(tmp_path):
    (tmp_path / "x.txt").write_text(conllu([SENTENCE, OTHER] * 10))
    return tmp_path


QUICK = ("-C", "1", "--max-iter", "5", "--loss", "hamming")


@pytest.mark.parametrize("stream", [(), ("--stream",), ("--shards", "folder")], ids=["memory", "stream", "shards"])
def test_tags_of_conllu_are_learnt(work, stream):
    train = ("train", "sequence", "x.txt", "-m", "m", *(("-C", "1") if "--stream" in stream else QUICK))
    said = run(work, *train, *stream)[0]
    if "--shards" not in stream:
        assert "x.txt: CoNLL-U, read by its column form; its column upos is the label (--label names another)" in said
    assert structsvm.load(work / "m").classes_.tolist() == ["DET", "NOUN", "VERB"]
    scores = json.loads(run(work, "evaluate", "m", "x.txt", "--json")[0])
    assert scores["accuracy"] == 1.0 and (scores["n_sequences"], scores["n_tokens"]) == (20, 50)
    assert run(work, "predict", "m", "x.txt")[0].startswith("The\tDET\tDET\ndogs\tNOUN\tNOUN\n")
    (work / "bare.conllu").write_text(conllu([SENTENCE], tags=False))
    assert run(work, "predict", "m", "bare.conllu")[0] == "The\tDET\ndogs\tNOUN\nbark\tVERB\n\n"


@pytest.mark.filterwarnings("default::structsvm.AdviceWarning")
@pytest.mark.parametrize("stream", [(), ("--stream",), ("--shards", "folder")], ids=["memory", "stream", "shards"])
@pytest.mark.parametrize("compressed", [False, True])
def test_a_model_takes_the_columns_that_it_was_trained_on(work, stream, compressed):
    if compressed:
        (work / "x.txt").write_bytes(gzip.compress((work / "x.txt").read_text().encode("utf-16")))
    options = (("-C", "1") if "--stream" in stream else QUICK) + stream
    run(work, "train", "sequence", "x.txt", "-m", "m", "--columns", "form, 3", "--label", "XPOS", *options)
    assert structsvm.load(work / "m").classes_.tolist() == ["DT", "NN", "NNS", "VB"]
    assert json.loads(run(work, "evaluate", "m", "x.txt", "--json")[0])["accuracy"] == 1.0
    assert run(work, "predict", "m", "x.txt")[0].startswith("The\tthe\tDT\tDT\n")
    assert json.loads(run(work, "evaluate", "m", "x.txt", "--json", "--label", "upos")[0])["accuracy"] == 0.0
    run(work, "train", "sequence", "x.txt", "-m", "more", "--warm-start", "m", "-C", "1", "--max-iter", "1")
    assert json.loads(run(work, "evaluate", "more", "x.txt", "--json")[0])["accuracy"] == 1.0
    (work / "plain").write_text("The\tthe\ndogs\tdog\n")  # columns without names, as many as the model has
    assert run(work, "predict", "more", "plain")[0] == "The\tthe\tDT\ndogs\tdog\tNNS\n\n"


@pytest.mark.parametrize("stream", [(), ("--stream",)], ids=["memory", "stream"])
@pytest.mark.parametrize(
    ("column", "message"), [("misc", r"column 10 (misc) is the label"), ("7", r"column 7 (head) is the label")]
)
def test_a_single_label_is_not_learnt(work, stream, column, message):
    err = run(work, "train", "sequence", "x.txt", "-m", "m", "--label", column, *stream, status=1)[1]
    assert "x.txt: " in err and message in err and "--label names another" in err
    assert not (work / "m").exists()


def test_another_label_per_token_is_not_learnt(work):
    (work / "d").write_text("".join(f"w{k % 3} A L{k}\n\n" for k in range(30)))
    err = run(work, "train", "sequence", "d", "-m", "m", status=1)[1]
    assert "d: 30 of the 30 labels in y differ: are they names or numbers of rows" in err and "its column 3 is" in err


def test_ends_of_sentences(tmp_path):
    X, y = make_sequences(60, random_state=0)
    X = [[*words, ("STOP",) * len(words[0])] for words in X]
    y = [[*labels, "O"] for labels in y]
    write_columns(tmp_path / "whole", X, y)
    text = (tmp_path / "whole").read_text()
    (tmp_path / "d").write_text(text.replace("\n\n", "\n"))
    err = run(tmp_path, "train", "sequence", "d", "-m", "m", status=1)[1]
    assert "d: 1 sequence of" in err and "(--sentence-end .)" in err and "(--sequence)" in err
    given = (*QUICK, "-q")
    run(tmp_path, "train", "sequence", "whole", "-m", "wanted", *given)
    run(tmp_path, "train", "sequence", "d", "-m", "m", "--sentence-end", "STOP", *given)
    found, wanted = structsvm.load(tmp_path / "m"), structsvm.load(tmp_path / "wanted")
    assert found.model_.weights.tobytes() == wanted.model_.weights.tobytes()
    scores = [run(tmp_path, "evaluate", model, data, "--json")[0] for model, data in (("m", "d"), ("wanted", "whole"))]
    assert scores[0] == scores[1] and json.loads(scores[0])["n_sequences"] == 60
    numbered = [f"{k} {line}\n" for k, part in enumerate(text.split("\n\n")) for line in part.split("\n") if line]
    (tmp_path / "n").write_text("".join(numbered))
    run(tmp_path, "train", "sequence", "n", "-m", "m", "--sequence", "1", *given)
    assert structsvm.load(tmp_path / "m").model_.weights.tobytes() == wanted.model_.weights.tobytes()
    assert run(tmp_path, "evaluate", "m", "n", "--json")[0] == scores[0]


def test_headers_and_document_marks(tmp_path):
    (tmp_path / "d").write_text("-DOCSTART- -X- O\n\n# id 1 en\nthe D O\ndog N B\n\n# id 2 en\na D O\ncat N B\n\n")
    run(tmp_path, "train", "sequence", "d", "-m", "m", *QUICK)
    assert structsvm.load(tmp_path / "m").classes_.tolist() == ["B", "O"]
    assert json.loads(run(tmp_path, "evaluate", "m", "d", "--json")[0])["n_tokens"] == 4
    assert run(tmp_path, "predict", "m", "d")[0] == "the\tD\tO\tO\ndog\tN\tB\tB\n\na\tD\tO\tO\ncat\tN\tB\tB\n\n"


@pytest.mark.parametrize("command", ["train", "predict", "evaluate"])
def test_encodings_are_named(tmp_path, command):
    (tmp_path / "d").write_bytes("thé A\ndög B\n\n".encode("latin-1") * 2)
    run(tmp_path, "train", "sequence", "d", "-m", "m", "--encoding", "latin-1", *QUICK)
    args = [command, "sequence", "d", "-m", "other", *QUICK] if command == "train" else [command, "m", "d"]
    err = run(tmp_path, *args, status=1)[1]
    assert "d:1: bytes that are not UTF-8 (0xe9, byte 3 of the line)" in err and "--encoding" in err
    found = run(tmp_path, *args, "--encoding", "latin-1")[0]
    assert command != "predict" or found.startswith("thé\tA\tA\n")
    assert "--encoding must be a text encoding" in run(tmp_path, *args, "--encoding", "no", status=2)[1]


def test_columns_are_of_column_files(tmp_path):
    (tmp_path / "d").write_text("1 1:1\n2 2:1\n1 1:2\n")
    run(tmp_path, "train", "multiclass", "d", "-m", "m")
    for option in ("--columns", "--label", "--sequence", "--sentence-end"):
        for command in ("predict", "evaluate"):
            err = run(tmp_path, command, "m", "d", option, "1", status=2)[1]
            assert f"{option} is for models of column files" in err


@pytest.mark.filterwarnings("default::structsvm.AdviceWarning")
@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{tag} {word}", "column 1 has tags of chunks alone, such as 'B-LOC', and the labels are words"),
        ("{word} {tag} {word}", "the labels are the values of column 1: is another column the label?"),
        ("{word}\t{odd}", "y has the label '', which is a class like the others"),
    ],
    ids=["label first", "word twice", "empty labels"],
)
def test_columns_that_are_no_labels_are_asked_about(tmp_path, line, said):
    tags = {"Rome": "B-LOC", "New": "B-LOC", "York": "I-LOC"}
    sentences = [["in", "Rome", "today"], ["New", "York", "is", "old"], ["today", "is", "old"]] * 8
    blocks = (
        "".join(line.format(word=w, tag=tags.get(w, "O"), odd=tags.get(w, "")) + "\n" for w in words)
        for words in sentences
    )
    (tmp_path / "t").write_text("\n".join(blocks))
    assert said in run(tmp_path, "train", "sequence", "t", "-m", "m", "-C", "1")[1]
