"""The command line and its commands for sequences: in this process, and in one of its own where that matters."""

import errno
import gzip
import io
import json
import lzma
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from command_line import COMMAND, run, run_process

import structsvm
from structsvm import cli
from structsvm.cli.task import Wanted
from structsvm.datasets import fetch_conll2000, make_addresses, make_sequences
from structsvm.datasets._simulate import write_columns
from structsvm.features import sources
from structsvm.features.columns import read_columns
from structsvm.metrics import chunk_f1, token_accuracy
from structsvm.model_file import read_model, write_model
from structsvm.tasks import SequenceLabeler, TokenFeatures
from structsvm.tasks.sequence.model import SequenceModel


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A folder with training and test columns, and a model of them."""
    folder = tmp_path_factory.mktemp("cli")
    for name, n, seed in (("train.txt", 150, 0), ("test.txt", 40, 1)):
        write_columns(folder / name, *make_sequences(n, n_labels=5, n_words=300, mean_length=8.0, random_state=seed))
    run(folder, "train", "sequence", "train.txt", "--model", "chunk.model", "--quiet")
    return folder


@pytest.fixture
def work(data, tmp_path):
    """A folder of one's own with links to the data."""
    for name in ("train.txt", "test.txt", "chunk.model"):
        os.symlink(data / name, tmp_path / name)
    return tmp_path


BIGRAM_TEMPLATES = "U00:%x[0,0]\nU01:%x[0,1]\nB01:%x[0,0]\nB02:%x[-1,1]/%x[0,1]\nB\n"


def python_model(folder, **params):
    """A labeler trained in Python, as its file has it: without features that have no weights."""
    columns = read_columns(folder / "train.txt")
    SequenceLabeler(random_state=0, **params).fit(columns.drop_last(), columns.select([2])).save(folder / "of python")
    return structsvm.load(folder / "of python")


# ---- the commands ------------------------------------------------------------------------------


def test_train_says_what_it_did(work):
    out, err = run_process(work, "train", "sequence", "train.txt", "--model", "m")
    assert "150 sequences" in out and "5 labels" in out
    assert "primal" in out and "dual" in out and "gap" in out
    assert "model: m" in out
    assert err == ""  # no bar where there is no terminal
    model = structsvm.load(work / "m")
    np.testing.assert_array_equal(model.emission_, python_model(work).emission_)
    assert read_model(work / "m").kind == "sequence"
    assert os.listdir(work).count("m") == 1 and not [name for name in os.listdir(work) if "tmp" in name]


def test_predict_writes_the_columns_and_the_label(work):
    out, _ = run(work, "predict", "chunk.model", "test.txt")
    predicted = [[line.split("\t") for line in s.splitlines()] for s in out.strip("\n").split("\n\n")]
    columns = read_columns(work / "test.txt")
    model = structsvm.load(work / "chunk.model")
    labels = model.predict(columns.drop_last())
    assert [[token[:2] for token in s] for s in predicted] == [
        [list(token) for token in zip(a, b, strict=True)]
        for a, b in zip(columns.column(0), columns.column(1), strict=True)
    ]
    assert [[token[-1] for token in s] for s in predicted] == labels
    # Without labels in the input it is the same but for their column.
    bare = "\n\n".join("\n".join(" ".join(token[:2]) for token in s) for s in predicted) + "\n"
    for jobs in ("2", "-1"):
        again, _ = run(work, "predict", "chunk.model", "-", "--jobs", jobs, text=bare)
        found, wanted = ([line.split("\t")[-1] for line in text.split("\n")] for text in (again, out))
        assert found == wanted
    assert (
        "0 is no number of threads" in run(work, "predict", "chunk.model", "-", "--jobs", "0", text=bare, status=2)[1]
    )


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("kbest", [None, 2])
def test_predict_labels_as_it_reads(work, jobs, kbest, monkeypatch):
    whole, _ = run(work, "predict", "chunk.model", "test.txt", *([] if kbest is None else ["-k", "2"]))
    block = (work / "test.txt").read_bytes() + b"\n"
    handed = 0

    class Endless(io.RawIOBase):
        def readable(self):
            return True

        def readinto(self, buffer):
            nonlocal handed
            handed += 1
            buffer[: len(block)] = block
            return len(block)

    monkeypatch.setattr(sources, "BLOCK", len(block))
    monkeypatch.setattr(cli.output, "source", lambda path: io.BufferedReader(Endless(), 2 * len(block)))
    model = SequenceModel.load(work / "chunk.model")
    texts = cli.sequence.command.predict(model, "-", Wanted(kbest=kbest, jobs=jobs, confidence=False, pretty=False))
    assert "".join(next(texts) for _ in range(5)) == 5 * whole
    assert 5 <= handed <= 5 + 3 * jobs
    texts.close()


def test_predict_to_a_file(work):
    out, _ = run(work, "predict", "chunk.model", "test.txt")
    told, _ = run(work, "predict", "chunk.model", "test.txt", "--output", "labels.txt")
    assert told == ""
    assert (work / "labels.txt").read_text() == out
    if os.path.exists("/dev/stdout"):
        piped, _ = run_process(work, "predict", "chunk.model", "test.txt", "-o", "/dev/stdout")
        assert piped == out
    assert sorted(os.listdir(work)) == ["chunk.model", "labels.txt", "test.txt", "train.txt"]


def test_a_dash_is_standard_output(work):
    assert run(work, "predict", "chunk.model", "test.txt", "-o", "-") == run(work, "predict", "chunk.model", "test.txt")
    assert not (work / "-").exists()


def test_output_is_all_or_nothing(work):
    (work / "labels.txt").write_text("old")
    (work / "bad.txt").write_text("one\n")
    run_process(work, "predict", "chunk.model", "bad.txt", "-o", "labels.txt", status=1)
    assert (work / "labels.txt").read_text() == "old"
    _, err = run(work, "predict", "chunk.model", "test.txt", "-o", "none/labels.txt", status=1)
    assert "there is no folder" in err
    assert sorted(os.listdir(work)) == ["bad.txt", "chunk.model", "labels.txt", "test.txt", "train.txt"]


def test_kbest(work):
    out, _ = run(work, "predict", "chunk.model", "test.txt", "--kbest", "3")
    columns = read_columns(work / "test.txt")
    found = structsvm.load(work / "chunk.model").predict_kbest(columns.drop_last(), 3)
    blocks = iter(out.strip("\n").split("\n\n"))
    for best in found:
        for rank, (labels, score) in enumerate(best, start=1):
            head, *lines = next(blocks).split("\n")
            assert head == f"# {rank} {score:.6f}"
            assert [line.split("\t")[-1] for line in lines] == labels
    assert next(blocks, None) is None
    run(work, "train", "sequence", "train.txt", "--model", "greedy", "--inference", "greedy", "-q")
    _, err = run(work, "predict", "greedy", "test.txt", "-k", "2", status=1)
    assert "exact inference" in err


def test_evaluate(work):
    out, _ = run(work, "evaluate", "chunk.model", "test.txt", "--json")
    scores = json.loads(out)
    columns = read_columns(work / "test.txt")
    predicted = structsvm.load(work / "chunk.model").predict(columns.drop_last())
    gold = columns.column(2)
    assert scores["accuracy"] == token_accuracy(gold, predicted)
    assert scores["f1"] == chunk_f1(gold, predicted) > 0.5
    assert scores["n_sequences"] == 40
    report, _ = run(work, "evaluate", "chunk.model", "test.txt", "-j", "2")
    assert f"FB1: {100 * scores['f1']:6.2f}" in report
    plotted, err = run(work, "evaluate", "chunk.model", "test.txt", "--json", "--plot", "c.png")
    assert json.loads(plotted) == scores and "c.png" in err
    assert (work / "c.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.filterwarnings("default::structsvm.AdviceWarning")
def test_labels_never_seen_count_as_errors(work):
    text = (work / "test.txt").read_text()
    before = json.loads(run(work, "evaluate", "chunk.model", "-", "--json", text=text)[0])
    unseen = text.replace(" B-NP\n", " B-NEVER\n").replace(" I-NP\n", " I-NEVER\n")
    assert unseen != text
    out, err = run(work, "evaluate", "chunk.model", "-", "--json", text=unseen)
    assert f"warning: {unseen.count('-NEVER')} tokens have a label that training never saw" in err
    after = json.loads(out)
    assert after["n_unseen"] == unseen.count("-NEVER") and before["n_unseen"] == 0
    assert after["accuracy"] < before["accuracy"] and after["f1"] < before["f1"]
    report, _ = run(work, "evaluate", "chunk.model", "-", text=unseen)
    assert "NEVER: precision:   0.00%; recall:   0.00%; FB1:   0.00" in report


@pytest.mark.filterwarnings("default::structsvm.AdviceWarning")
def test_evaluate_counts_chunks_by_the_scheme_of_the_labels(work, tmp_path):
    text = "\n".join(
        f"{word} {label}" if word else "" for word, label in [("a", "S_X"), ("a", "S_X"), ("b", "O"), ("", "")] * 20
    )
    (tmp_path / "bioes").write_text(text)
    run(tmp_path, "train", "sequence", "bioes", "-m", "m", "-C", "1", "-q", "--constraints", "IOBES")
    report, _ = run(tmp_path, "evaluate", "m", "bioes")
    assert report.startswith("processed 60 tokens with 40 phrases; found: 40 phrases; correct: 40.")
    odd, err = run(tmp_path, "evaluate", "m", "-", text=text.replace("S_X", "odd", 1))
    assert "warning: 1 tokens have a label that training never saw ('odd')" in err
    assert odd.startswith("processed 60 tokens with 39 phrases; found: 40 phrases; correct: 39.\naccuracy:  98.33%")


@pytest.mark.parametrize("labels", [("NN", "VB"), ("B", "O"), ("B-1", "I-95")])
def test_labels_without_a_scheme_have_no_chunk_scores(tmp_path, labels):
    text = "\n".join(f"{word} {label}" if word else "" for word, label in [*zip("ab", labels), ("", "")] * 20)
    (tmp_path / "tags").write_text(text)
    run(tmp_path, "train", "sequence", "tags", "-m", "m", "-C", "1", "-q")
    report, _ = run(tmp_path, "evaluate", "m", "tags")
    assert report.startswith("accuracy: 100.00%\nno chunk scores: the labels have no scheme of chunks")
    scores = json.loads(run(tmp_path, "evaluate", "m", "tags", "--json")[0])
    assert scores == {
        "accuracy": 1.0,
        "records": 1.0,
        "fields": 1.0,
        "n_sequences": 20,
        "n_tokens": 40,
        "n_unseen": 0,
        "n_unknown": 0,
    }


def test_inspect(work):
    out, _ = run(work, "inspect", "chunk.model", "--top", "2")
    assert "exact inference of order 1" in out and "parameters: defaults" in out and "primal" in out
    for label in structsvm.load(work / "chunk.model").classes_:
        assert f"\n{label}\n" in out
    one, _ = run(work, "inspect", "chunk.model", "--label", "O", "--plot", "i.png")
    assert "\nO\n" in one and "\nB-NP\n" not in one
    assert (work / "i.png").read_bytes().startswith(b"\x89PNG")
    sizes = read_model(work / "chunk.model").sizes
    assert {"weights", "encoder", "history"} <= set(sizes) and sum(sizes.values()) < (
        work / "chunk.model"
    ).stat().st_size
    shown = ", ".join(f"{name} {size:,}" for name, size in sizes.items())
    assert f"\nbytes: {shown}\n" in one
    assert json.loads(run(work, "inspect", "chunk.model", "--json")[0])["bytes"] == sizes
    _, err = run(work, "inspect", "chunk.model", "--label", "X", status=1)
    assert "'X' is not one of the labels" in err
    run(work, "train", "sequence", "train.txt", "-m", "m", "-C", "0.5", "--order", "2", "--constraints", "bio", "-q")
    out, _ = run(work, "inspect", "m")
    assert "order=2" in out and "C=0.5" in out and "constraints='bio'" in out
    assert structsvm.load(work / "m").get_params()["constraints"] == "bio"


def test_demo(work, monkeypatch):
    asked = []

    def fewer(n, *, random_state, **hardness):
        asked.append((n, random_state))
        return make_addresses(n // 20, random_state=random_state, **hardness)

    monkeypatch.setattr(structsvm.datasets, "make_addresses", fewer)
    out, _ = run(work, "demo", "sequence")
    assert "% of whole addresses" in out and "gap" in out and "picture: structsvm-demo.png" in out
    assert (work / "structsvm-demo.png").read_bytes().startswith(b"\x89PNG")
    run(work, "demo", "sequence", "-o", "d.svg", "--seed", "3")
    assert "<svg" in (work / "d.svg").read_text()
    assert asked == [(1000, 0), (500, 1), (1000, 3), (500, 4)]


def test_every_option_of_train(work):
    (work / "templates").write_text("U00:%x[0,0]\nU01:%x[0,1]\nB\n")
    (work / "bigrams").write_text("# as in CRF++'s files\n" + BIGRAM_TEMPLATES)
    for options, params in [
        (["--solver", "perceptron"], {"solver": "perceptron"}),
        (["--solver", "passive_aggressive", "-C", "0.5"], {"solver": "passive_aggressive", "C": 0.5}),
        (["--inference", "greedy", "--order", "3"], {"inference": "greedy", "order": 3}),
        (["--hash-bits", "12", "--max-iter", "2"], {"features": TokenFeatures(hash_bits=12), "max_iter": 2}),
        (["--min-count", "3", "--templates", "crf++"], {"features": TokenFeatures(min_count=3), "templates": "crf++"}),
        (["--templates", "templates"], {"templates": "U00:%x[0,0]\nU01:%x[0,1]\nB\n"}),
        (["--templates", "bigrams"], {"templates": BIGRAM_TEMPLATES}),
        (["--constraints", "bio", "--tol", "0.2"], {"constraints": "bio", "tol": 0.2}),
    ]:
        run(work, "train", "sequence", "train.txt", "-m", "m", *options)
        ours = python_model(work, **params)
        model = structsvm.load(work / "m")
        np.testing.assert_array_equal(model.model_.weights, ours.model_.weights)
        assert {name: getattr(model, name) for name in params} == params
        assert model.random_state == 0


def test_bigrams_are_inspected(work):
    (work / "bigrams").write_text(BIGRAM_TEMPLATES)
    run(work, "train", "sequence", "train.txt", "-m", "m", "--templates", "bigrams", "-q")
    out, _ = run(work, "inspect", "m", "--top", "1", "--label", "O")
    model = structsvm.load(work / "m")
    assert f"features, {len(model.bigram_names_)} bigrams, 5 labels" in out
    n, a = np.unravel_index(model.bigram_[:, :, 4].argmax(), (len(model.bigram_names_), 5))
    assert f"+ {model.bigram_names_[n]} after {model.classes_[a]} {model.bigram_[n, a, 4]:.3f}" in out
    assert json.loads(run(work, "evaluate", "m", "test.txt", "--json")[0])["accuracy"] > 0.8


def test_quiet_and_plot(work):
    out, err = run(work, "train", "sequence", "train.txt", "-m", "m", "-q", "--plot", "t.png")
    assert out == err == ""
    assert (work / "t.png").read_bytes().startswith(b"\x89PNG")


def test_warm_start_goes_on(work):
    run(work, "train", "sequence", "train.txt", "-m", "whole", "--max-iter", "5", "-C", "0.3", "-q")
    run(work, "train", "sequence", "train.txt", "-m", "part", "--max-iter", "2", "-C", "0.3", "-q", "--training-state")
    run(work, "train", "sequence", "train.txt", "-m", "part", "--warm-start", "part", "--max-iter", "3", "-q")
    whole, part = structsvm.load(work / "whole"), structsvm.load(work / "part")
    np.testing.assert_array_equal(whole.model_.weights, part.model_.weights)
    assert part.C == 0.3 and part.n_iter_ == 5
    _, err = run(work, "train", "sequence", "train.txt", "-m", "x", "--warm-start", "part", "--order", "2", status=1)
    assert "another 'order'" in err
    (work / "other.txt").write_text("a N B-NEVER\n")
    _, err = run(work, "train", "sequence", "other.txt", "-m", "x", "--warm-start", "part", status=1)
    assert "B-NEVER" in err
    assert not (work / "x").exists()
    # Other data: the problem around the weights that were learnt.
    run(work, "train", "sequence", "test.txt", "-m", "x", "--warm-start", "part", "-q")
    columns = read_columns(work / "test.txt")
    part.set_params(warm_start=True).fit(columns.drop_last(), columns.select([2]))
    np.testing.assert_array_equal(structsvm.load(work / "x").model_.weights, part.model_.weights)


def test_not_converged_is_a_line_not_a_warning_of_python(work):
    options = ["--loss", "hamming", "--tol", "1e-9", "--max-iter", "2"]
    out, err = run_process(work, "train", "sequence", "train.txt", "-m", "m", *options)
    assert err.startswith("warning: LaRank stopped after 2 passes") and err.count("\n") == 1
    assert "model: m" in out


@pytest.mark.parametrize(("suffix", "open_"), [(".gz", gzip.open), (".xz", lzma.open)])
def test_compressed_files_are_read_as_they_are(work, suffix, open_):
    for name in ("train.txt", "test.txt"):
        with open_(work / f"{name}{suffix}", "wb") as file:
            file.write((work / name).read_bytes())
    run(work, "train", "sequence", f"train.txt{suffix}", "-m", "m", "-q")
    np.testing.assert_array_equal(structsvm.load(work / "m").emission_, structsvm.load(work / "chunk.model").emission_)
    out, _ = run(work, "evaluate", "m", f"test.txt{suffix}", "--json")
    assert out == run(work, "evaluate", "m", "test.txt", "--json")[0]
    piped, _ = run_process(work, "evaluate", "m", "-", "--json", text=(work / f"test.txt{suffix}").read_bytes())
    assert piped == out


def test_unicode_in_any_locale(work):
    text = "".join(
        f"{word}\tN\tB-{kind}\n\n" for word, kind in [("東京", "場所"), ("naïve", "É"), ("🦜" * 500, "場所")]
    )
    (work / "u.txt").write_text(text, encoding="utf-8")
    plain = {"PYTHONUTF8": "0", "PYTHONIOENCODING": "", "LC_ALL": "C", "PYTHONCOERCECLOCALE": "0"}
    environment = os.environ | plain
    run_process(work, "train", "sequence", "u.txt", "-m", "m", env=environment)
    out, _ = run_process(work, "predict", "m", "u.txt", env=environment)
    assert "東京\tN\tB-場所\tB-場所\n" in out


def test_a_reader_that_has_seen_enough(work):
    done = subprocess.run(
        f"{sys.executable} -m structsvm predict chunk.model train.txt -k 50 | head -n 1",
        shell=True,
        cwd=work,
        capture_output=True,
        text=True,
    )
    assert done.stdout.startswith("# 1 ")
    assert done.stderr == ""


def test_version_and_help(work):
    assert structsvm.__version__ in run_process(work, "--version")[0]
    assert "Error: No such command" in run_process(work, "fly", status=2)[1]
    for args in ([], ["train"], ["train", "sequence"], ["predict"], ["evaluate"], ["inspect"], ["demo"]):
        out, _ = run(work, *args, "--help")
        assert out.startswith("Usage:")


# ---- bad input ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "bad.txt: no tokens (the file is empty)"),
        (b"\n\n \n", "bad.txt: no tokens (only blank lines)"),
        (b"a N O\nb O\n", "bad.txt:2: expected 3 columns, found 2"),
        (b"a N O\n\n\n\nb N O X\n", "bad.txt:5: expected 3 columns, found 4"),
        (b"a\nb\n", "bad.txt: has one column; training needs at least a word and, last, its label"),
        (b"a N O\n\xff N O\n", "bad.txt:2: bytes that are not UTF-8"),
    ],
)
def test_bad_training_files(work, text, message):
    (work / "bad.txt").write_bytes(text)
    _out, err = run(work, "train", "sequence", "bad.txt", "-m", "m", status=1)
    assert err.startswith(f"Error: {message}")
    assert not (work / "m").exists()


def test_blank_lines_in_a_row_are_one(work):
    text = (work / "train.txt").read_text()
    (work / "airy.txt").write_text("\n\n" + text.replace("\n\n", "\n \n\t\n\n") + "\n\n")
    run(work, "train", "sequence", "airy.txt", "-m", "m", "-q")
    np.testing.assert_array_equal(structsvm.load(work / "m").emission_, structsvm.load(work / "chunk.model").emission_)


def test_one_label_one_sentence_and_long_ones(work):
    (work / "one.txt").write_text("a O\n")
    run(work, "train", "sequence", "one.txt", "-m", "m")
    assert run(work, "predict", "m", "one.txt")[0] == "a\tO\tO\n\n"
    (work / "long.txt").write_text("a A\nb B\n" * 20_000 + "x" * 100_000 + " A\n")
    args = ["train", "sequence", "long.txt", "-m", "m", "--templates", "U:%x[0,0]\nB\n", "--max-iter", "1"]
    err = run(work, *args, status=1)[1]
    assert "long.txt: 1 sequence of 40001 tokens on average: are the ends of sentences missing" in err
    assert "--sentence-end '' trains on them as they are" in err
    run(work, *args, "--sentence-end", "", "--loss", "hamming")
    assert json.loads(run(work, "evaluate", "m", "long.txt", "--json")[0])["accuracy"] > 0.99


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--templates", "nowhere"], "templates 'nowhere' are neither built in"),
        (["--min-count", "1000000"], "train.txt: no features are left"),
        (["--model", "none/m"], "there is no folder"),
        (["--plot", "none/p.png"], "there is no folder"),
        (["--plot", "p.xyz"], "a picture's name ends in one of"),
        (["--warm-start", "train.txt"], "train.txt: is not a structsvm model file"),
    ],
)
def test_bad_options_of_train(work, options, message):
    _, err = run(work, "train", "sequence", "train.txt", "--model", "m", *options, status=1)
    assert message in err
    assert not (work / "m").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-C", "-1"], "'-C': '-1' is not auto or records or tokens or a float in the range (0.0, inf)"),
        (["-C", "0"], "'-C': '0' is not auto or records"),
        (["-C", "nan"], "'-C': 'nan' is not auto or records"),
        (["--tol", "0"], "Error: Invalid value for '--tol': 0.0 is not in the range x>0.0."),
        (["--tol", "nan"], "Error: --tol of LaRank"),
        (["--jobs", "0"], "Error: --jobs: 0 is no number of threads"),
        (["-C", "1", "--solver", "perceptron"], "Error: -C has no meaning for solver='perceptron'"),
        (["--order", "5"], "Error: --order must be 1 or 2 with inference='exact'"),
        (["--hash-bits", "8", "--min-count", "2"], "Error: --hash-bits keeps no counts"),
        (["--model", ""], "Error: '-m' / '--model' is empty: expected the name of a file"),
        (["--checkpoint-every", "2"], "Error: --checkpoint-every has no effect without --checkpoint"),
        (["--segment-length", "4"], "Error: --segment-length has no effect without --segments"),
        (["--broken", "repair"], "Error: --broken has no effect without --constraints"),
    ],
)
def test_wrong_options_of_train(work, options, message):
    _, err = run(work, "train", "sequence", "train.txt", "--model", "m", *options, status=2)
    assert message in err
    assert not (work / "m").exists()


@pytest.mark.parametrize(
    "args",
    [
        ["train", "sequence", "nowhere.txt", "-m", "m"],
        ["train", "sequence", "train.txt"],
        ["train", "poetry", "train.txt", "-m", "m"],
        ["train", "sequence", "train.txt", "-m", "m", "--inference", "magic"],
        ["train", "sequence", "train.txt", "-m", "m", "--max-iter", "0"],
        ["train", "sequence", "train.txt", "-m", "m", "-C", "much"],
        ["predict", "nowhere", "test.txt"],
        ["predict", "chunk.model", "test.txt", "-k", "0"],
        ["evaluate", "chunk.model"],
        ["demo", "poetry"],
        ["fly"],
    ],
)
def test_usage_errors(work, args):
    _, err = run(work, *args, status=2)
    assert err.startswith("Usage:") and "Error: " in err


def test_data_that_breaks_the_constraints(work):
    (work / "iob1.txt").write_text("a O\nb I-X\n\nc O\n")
    _, err = run(work, "train", "sequence", "iob1.txt", "-m", "m", "--constraints", "bio", status=1)
    assert "sequence 0: the constraints do not allow its label 'I-X' at token 1, after 'O'" in err


def test_files_that_do_not_fit_the_model(work):
    (work / "four.txt").write_text("a b c d\n")
    _, err = run(work, "predict", "chunk.model", "four.txt", status=1)
    assert "has 4 columns; the model was trained on 2 and a label: a line is one token, and an empty line" in err
    (work / "two.txt").write_text("a N\n")
    _, err = run(work, "evaluate", "chunk.model", "two.txt", status=1)
    assert "no labels to compare with, or a column of training is missing" in err
    _, err = run(work, "predict", "test.txt", "test.txt", status=1)
    assert "is not a structsvm model file" in err
    file = read_model(work / "chunk.model")
    write_model(work / "other", "cookery", file.meta, file.arrays)
    _, err = run(work, "predict", "other", "test.txt", status=1)
    assert "a model of the task 'cookery'" in err
    whole = (work / "chunk.model").read_bytes()
    (work / "cut").write_bytes(whole[: len(whole) // 2])
    for command in (["predict", "cut", "test.txt"], ["evaluate", "cut", "test.txt"], ["inspect", "cut"]):
        _, err = run(work, *command, status=1)
        assert "cut: is truncated" in err
    SequenceLabeler().fit([[["a"]]], [["A"]]).save(work / "python")
    _, err = run(work, "predict", "python", "test.txt", status=1)
    assert "test.txt: no line has attributes: wanted a label, then attributes, between tabs" in err
    SequenceLabeler(C=1.0).fit([np.eye(2)], [["A", "B"]]).save(work / "python")
    _, err = run(work, "predict", "python", "test.txt", status=1)
    assert "trained on Python data, not on columns" in err


def test_a_model_that_cannot_be_written_is_named(work, monkeypatch):
    def full(*args, **options):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("structsvm.tasks.common.model.write_model", full)
    _, err = run(work, "train", "sequence", "train.txt", "-m", "m", "-C", 1, "--max-iter", 1, "-q", status=1)
    assert err == "Error: the model was not saved: m: [Errno 28] No space left on device\n"


def test_an_old_model_survives_a_failed_training(work):
    (work / "m").write_bytes((work / "chunk.model").read_bytes())
    (work / "bad.txt").write_text("a N O\nb O\n")
    run(work, "train", "sequence", "bad.txt", "-m", "m", status=1)
    assert (work / "m").read_bytes() == (work / "chunk.model").read_bytes()


# ---- Ctrl-C ------------------------------------------------------------------------------------


def interrupt(args, cwd, ready):
    """Start, wait until `ready(line)` of its output, send SIGINT; return status, output, and seconds to the end."""
    process = subprocess.Popen(
        [*COMMAND, *args],
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    )
    try:
        while ready is not None and not ready(process.stdout.readline()):
            assert process.poll() is None
        time.sleep(0.5)
        begin = time.monotonic()
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    finally:
        process.kill()
    return process.returncode, err, time.monotonic() - begin


def test_ctrl_c_leaves_a_usable_model(work):
    # With C given: one that is interrupted while it is chosen leaves no run to resume.
    args = ["train", "sequence", "train.txt", "--model", "m", "-C", "0.1", "--max-iter", "10000000"]
    status, err, seconds = interrupt(args, work, lambda line: "sequences" in line)
    assert status == 130
    assert "interrupted after" in err and "m holds the partial model" in err and "--warm-start m" in err
    assert "Traceback" not in err
    assert seconds < 5.0
    model = structsvm.load(work / "m")
    assert model.result_.status == "interrupted"
    assert json.loads(run(work, "evaluate", "m", "test.txt", "--json")[0])["f1"] > 0.5
    run(work, "train", "sequence", "train.txt", "-m", "m", "--warm-start", "m", "--max-iter", "1", "-q")
    assert structsvm.load(work / "m").n_iter_ == model.n_iter_ + 1


def test_ctrl_c_before_training_leaves_nothing(work):
    os.mkfifo(work / "fifo")  # reading it waits for ever
    process = subprocess.Popen(
        [*COMMAND, "train", "sequence", "fifo", "-m", "m"],
        cwd=work,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    writer = None
    try:
        while writer is None and process.poll() is None:
            try:
                writer = os.open(work / "fifo", os.O_WRONLY | os.O_NONBLOCK)
            except OSError:  # nobody reads yet
                time.sleep(0.05)
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
        if writer is not None:
            os.close(writer)
    assert process.returncode == 130, (out, err)
    assert err == "no model was written\ninterrupted\n"
    assert sorted(os.listdir(work)) == ["chunk.model", "fifo", "test.txt", "train.txt"]


# ---- what is not imported ----------------------------------------------------------------------


def test_the_command_line_never_imports_scikit_learn(work):
    code = """
import sys
from structsvm.cli import main
for args in (["train", "sequence", "train.txt", "-m", "m"], ["predict", "m", "test.txt", "-o", "p"],
             ["evaluate", "m", "test.txt"], ["inspect", "m", "--top", "1"]):
    try:
        main(args)
    except SystemExit as end:
        assert not end.code, end.code
found = {name.split(".")[0] for name in sys.modules}
heavy = sorted(found & {"sklearn", "scipy", "networkx", "matplotlib", "pandas", "joblib"})
assert not heavy, heavy
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=work, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_command_line_starts_without_what_a_server_needs():
    code = "import structsvm.cli, sys; sys.exit(str({'logging', 'asyncio', 'http'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True)
    assert done.stderr.strip() == "set()"


@pytest.mark.filterwarnings("default::structsvm.AdviceWarning")
@pytest.mark.skipif("STRUCTSVM_DATA" not in os.environ, reason="STRUCTSVM_DATA names no data folder")
def test_conll2000_reaches_the_thesis(tmp_path):
    paths = fetch_conll2000()
    out, _ = run(tmp_path, "train", "sequence", paths.train_path, "--model", "chunk.model", "-C", "0.1")
    assert "8936 sequences, 211727 tokens" in out and "22 labels" in out
    scores = json.loads(run(tmp_path, "evaluate", "chunk.model", paths.test_path, "--json")[0])
    assert scores["f1"] > 0.93
