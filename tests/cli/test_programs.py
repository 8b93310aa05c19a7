"""Model files of other programs on the command line, conversions to them, and CRFsuite's text."""

import json

import pytest
from command_line import run

import structsvm
from structsvm.cli.sequence.programs import tokens_of
from structsvm.features.tables.attribute_files import read_attributes
from structsvm.interop import read_wapiti
from structsvm.interop.kinds import KINDS, kind_by_content, kind_by_name, read_chain

COLUMNS = "The DT B\ndog NN I\nbarks VB O\n\nA DT B\ncat NN I\nsleeps VB O\n\n" * 4
ATTRIBUTES = "B\tw=The\tt=DT\nI\tw=dog\tt=NN\nO\tw=barks\n\nB\tw=A\tt=DT\nI\tw=cat\tn:2\nO\tw=sleeps\n\n" * 4
PATTERNS = 'u:w=%X[0,0]\nu:t=%t[0,1,"^N"]\n*\n'
OUT = {"wapiti": "m.wapiti", "crfpp": "m.crfpp"}  # with patterns


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("programs")
    (folder / "train").write_text(COLUMNS)
    (folder / "attributes").write_text(ATTRIBUTES.replace("\tn:2", ""))
    (folder / "patterns").write_text(PATTERNS)
    run(folder, "train", "sequence", "train", "-m", "own", "-C", "1", "-q", "--templates", "crf++")
    run(folder, "train", "sequence", "train", "-m", "patterns.own", "-C", "1", "-q", "--templates", "patterns")
    run(folder, "train", "sequence", "attributes", "-m", "attributes.own", "-C", "1", "-q")
    for kind, out in OUT.items():
        run(folder, "convert", "own", out)
        run(folder, "convert", "own", f"{kind}.named", "--to", kind)
        assert (folder / out).read_bytes() == (folder / f"{kind}.named").read_bytes()
    run(folder, "convert", "patterns.own", "patterns.wapiti")
    run(folder, "convert", "attributes.own", "attributes.wapiti")
    run(folder, "convert", "attributes.own", "m.crfsuite", "-q")
    return folder


def test_every_kind_has_a_case():
    assert {*OUT, "crfsuite"} == {*KINDS}


@pytest.mark.parametrize("kind", OUT)
def test_converted_models_predict_as_their_own(models, kind):
    assert kind_by_content(models / OUT[kind]) == kind_by_name(OUT[kind]) == kind
    assert read_chain(models / OUT[kind]).kind == kind
    for args in ([], ["--confidence"], ["-j", "2"]):
        out, _ = run(models, "predict", OUT[kind], "train", *args)
        labels = [line.split("\t")[3] for line in out.split("\n") if line]
        own, _ = run(models, "predict", "own", "train", *args)
        assert labels == [line.split("\t")[3] for line in own.split("\n") if line]
    out, _ = run(models, "predict", OUT[kind], "train", "-k", "2")
    assert out.startswith("# 1 ") and out.count("# 2 ") == 8


@pytest.mark.parametrize("kind", OUT)
def test_evaluate_and_inspect(models, kind):
    scores = json.loads(run(models, "evaluate", OUT[kind], "train", "--json")[0])
    assert scores == json.loads(run(models, "evaluate", "own", "train", "--json")[0])
    text, _ = run(models, "inspect", OUT[kind], "--top", "3", "--label", "B")
    assert "from a file of" in text and "\nB\n  + " in text and "\nI\n" not in text
    found = json.loads(run(models, "inspect", OUT[kind], "--json", "--top", "2")[0])
    assert found["labels"] == ["B", "I", "O"] and all(len(some) == 2 for some in found["weights"].values())
    _, err = run(models, "inspect", OUT[kind], "--plot", "p.png", status=1)
    assert "--plot draws trainings" in err
    _, err = run(models, "evaluate", OUT[kind], "train", "--unknown", "x", status=2)
    assert "--unknown is for" in err


def test_a_model_of_attributes_comes_back(models):
    run(models, "convert", "m.crfsuite", "back.model")
    for command in (["predict"], ["predict", "--confidence"]):
        out, _ = run(models, *command, "m.crfsuite", "attributes")
        assert run(models, *command, "back.model", "attributes")[0] == out
    run(models, "train", "sequence", "attributes", "--warm-start", "back.model", "-m", "on.model", "-q", "-C", "1")
    _, err = run(models, "convert", "own", "x.model", status=1)
    assert "ours already" in err


def test_patterns_train_and_convert(models):
    assert [pattern.source for pattern in read_wapiti(models / "patterns.wapiti").patterns[:3]] == PATTERNS.split()
    _, err = run(models, "convert", "patterns.own", "x.crfpp", status=1)
    assert "patterns.own: " in err and "Wapiti's patterns" in err


def test_a_model_of_attributes_reads_crfsuites_text(models):
    out, _ = run(models, "predict", "attributes.own", "attributes")
    labels = [line.split("\t")[0] for line in ATTRIBUTES.split("\n")]
    assert out == "\n".join(labels)
    out, _ = run(models, "predict", "attributes.own", "attributes", "--confidence")
    model = structsvm.load(models / "attributes.own")
    X, _ = read_attributes(models / "attributes")
    chances = [row.max() for rows in model.predict_marginals(X) for row in rows]
    assert [float(line.split("\t")[1]) for line in out.split("\n") if line] == pytest.approx(chances, abs=1e-6)
    out, _ = run(models, "predict", "attributes.own", "attributes", "-k", "2")
    assert out.count("# 2 ") == 8
    scores = json.loads(run(models, "evaluate", "attributes.own", "attributes", "--json")[0])
    assert scores["accuracy"] == 1.0 and scores["n_tokens"] == 24


def test_a_wapiti_model_without_patterns(models):
    lines = ["b u__BOS__ uw=The ut=DT B", "b uw=dog ut=NN I", "b uw=barks O"]
    (models / "observations").write_text("\n".join(lines))
    out, _ = run(models, "predict", "attributes.wapiti", "observations")
    assert out == "B\nI\nO\n\n"
    assert json.loads(run(models, "evaluate", "attributes.wapiti", "observations", "--json")[0])["accuracy"] == 1.0


def test_observations_are_parted_by_blanks_of_ascii_alone(models, tmp_path):
    (tmp_path / "observations").write_text("b uw=10\u00a0000\t\u2003x  B\r\n", encoding="utf-8", newline="")
    X, y = tokens_of(read_wapiti(models / "attributes.wapiti"), str(tmp_path / "observations"))
    assert (X, y) == ([[["b", "uw=10\u00a0000", "\u2003x", "B"]]], [["B"]])


@pytest.mark.filterwarnings("ignore:column 1 has tags of chunks alone:structsvm.AdviceWarning")  # read as columns
@pytest.mark.parametrize(
    ("args", "told"), [([], True), (["--format", "crfsuite"], True), (["--format", "columns"], False)]
)
def test_the_text_is_told_or_named(tmp_path, args, told):
    (tmp_path / "d").write_text("B\tw=The\tt=DT\nI\tw=dog\tt=NN\nO\tw=barks\tt=VB\n\n" * 5)
    out, _ = run(tmp_path, "train", "sequence", "d", "-m", "m", "-C", "1", *args, status=0)
    assert ("CRFsuite's text" in out) is told
    assert (structsvm.load(tmp_path / "m").classes_[0] == "B") is told


def test_options_of_columns_name_columns(tmp_path):
    (tmp_path / "d").write_text("B\tw=The\tt=DT\nI\tw=dog\tt=NN\nO\tw=barks\tt=VB\n\n" * 5)
    out, _ = run(tmp_path, "train", "sequence", "d", "-m", "m", "-C", "1", "--label", "1")
    assert "CRFsuite's text" not in out
    assert structsvm.load(tmp_path / "m").classes_.tolist() == ["B", "I", "O"]
    _, err = run(tmp_path, "train", "sequence", "d", "-m", "m", "--label", "1", "--format", "crfsuite", status=2)
    assert "without columns" in err


def test_training_goes_on_with_the_text(models):
    (models / "more").write_text("B\tx\nI\tw=dog\n\n" * 3)
    run(
        models, "train", "sequence", "more", "--warm-start", "attributes.own", "-m", "more.own", "--max-iter", "1", "-q"
    )
    (models / "bad").write_text("B\tw=The\tt=DT\nQ\tw=dog\n")
    _, err = run(models, "train", "sequence", "bad", "--warm-start", "attributes.own", "-m", "x", "-q", status=1)
    assert "bad" in err and "'Q'" in err
    _, err = run(models, "train", "sequence", "more", "--format", "crfsuite", "--partial", "-m", "x", status=2)
    assert "--format crfsuite" in err


@pytest.mark.parametrize(
    ("args", "status", "message"),
    [
        (["convert", "own", "x"], 2, "--to names the kind of x"),
        (["convert", "own", "own", "--to", "wapiti"], 2, "are the same file"),
        (["convert", "train", "x.crfpp"], 1, "train"),
        (["convert", "attributes.own", "x.crfpp"], 1, "attributes"),
        (["convert", "patterns.wapiti", "x.crfpp"], 1, r"no counterpart of the pattern 'u:w=%X"),
        (["convert", "m.crfsuite", "x.crfpp"], 1, "no counterpart of attributes"),
        (["predict", "m.wapiti", "one"], 1, "one: has 1 columns; the model's patterns read 2"),
        (["evaluate", "m.wapiti", "two"], 1, "two: has 2 columns; .* read 2 and a label"),
    ],
)
def test_refused(models, args, status, message):
    import re

    (models / "one").write_text("The\ndog\n")
    (models / "two").write_text("The DT\ndog NN\n")
    _, err = run(models, *args, status=status)
    assert re.search(message, err), err
    assert not (models / "x").exists() and not (models / "x.crfpp").exists()


def test_other_tasks_are_not_converted(tmp_path):
    (tmp_path / "d").write_text("1 1:1\n2 2:1\n3 1:1 2:2\n1 1:2\n")
    run(tmp_path, "train", "multiclass", "d", "-m", "m", "-q")
    _, err = run(tmp_path, "convert", "m", "x.wapiti", status=1)
    assert "label sequences alone" in err


def test_damaged_files_are_named(models):
    (models / "bad.mod").write_bytes((models / "m.wapiti").read_bytes()[:-20])
    _, err = run(models, "predict", "bad.mod", "train", status=1)
    assert err.startswith("Error: bad.mod:")
