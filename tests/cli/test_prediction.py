"""``predict`` by a chain without what trains: the same bytes, few imports, and all else by the whole model."""

import subprocess
import sys

import pytest
from command_line import run, run_process

import structsvm.cli
from structsvm.cli.sequence import prediction
from structsvm.datasets import make_sequences, write_columns
from structsvm.features.columns import Columns
from structsvm.features.tables.attribute_files import write_attributes
from structsvm.tasks import SequenceLabeler
from structsvm.tasks.sequence.predictor import Predictor

X, Y = make_sequences(40, n_labels=3, n_words=40, mean_length=5.0, random_state=0)
COLUMNS = Columns.from_sequences(X)
QUICK = {"C": 0.1, "max_iter": 2, "random_state": 0}
MODELS = {
    "columns": {},
    "log": {"loss": "log"},
    "rich": {"templates": "rich"},
    "order 2": {"order": 2},
    "greedy": {"inference": "greedy"},
    "constraints": {"constraints": "bio", "loss": "hamming"},
    "segments": {"segments": True},
}


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    folder = tmp_path_factory.mktemp("work")
    write_columns(folder / "x.txt", X, Y)
    for name, params in MODELS.items():
        SequenceLabeler(**QUICK | params).fit(COLUMNS, Y).save(folder / name)
    attributes = [[[f"w={token[0]}", "bias"] for token in tokens] for tokens in X]
    SequenceLabeler(loss="log", **QUICK).fit(attributes, Y).save(folder / "attributes")
    write_attributes(folder / "a.txt", attributes, Y)
    return folder


@pytest.fixture
def opened(monkeypatch):
    """The models that predicted, by class."""
    seen, predict = [], prediction.predict
    monkeypatch.setattr(prediction, "predict", lambda model, *args: seen.append(type(model)) or predict(model, *args))
    return seen


@pytest.mark.parametrize("options", [(), ("--confidence",), ("--jobs", 2)], ids=["labels", "confidence", "threads"])
@pytest.mark.parametrize("name", [*MODELS, "attributes"])
def test_the_bytes_are_those_of_the_whole_model(work, opened, name, options, monkeypatch):
    if name == "greedy" and "--confidence" in options:
        return
    file = "a.txt" if name == "attributes" else "x.txt"
    found = run(work, "predict", name, file, *options)
    assert opened.pop() is Predictor or name == "segments"
    monkeypatch.setattr(structsvm.cli, "labels_alone", lambda *_, **__: None)
    assert found == run(work, "predict", name, file, *options)
    assert opened.pop() is not Predictor
    labels = [line.split("\t")[-1 - ("--confidence" in options)] for line in found[0].splitlines() if line]
    assert len(labels) == sum(map(len, Y)) and len(set(labels)) > 1


@pytest.mark.parametrize("options", [("-k", 2), ("--constraints", "rules")], ids=["kbest", "constraints"])
def test_what_more_is_wanted_is_the_whole_model_s(work, opened, options):
    (work / "rules").write_text(".*\n")
    run(work, "predict", "columns", "x.txt", *options)
    assert Predictor not in opened


def test_margins_have_the_whole_model_s_error(work):
    SequenceLabeler(probability=False, loss="hamming", **QUICK).fit(COLUMNS, Y).save(work / "margin")
    _, err = run(work, "predict", "margin", "x.txt", "--confidence", status=1)
    assert "predict_marginals needs probabilities" in err and "probability=True" in err


def test_columns_are_read_as_in_training(work):
    (work / "turned.txt").write_text("\n".join(line[::-1] for line in ["ab cd X", "cd ab Y"] * 30) + "\n")
    run(work, "train", "sequence", "turned.txt", "-m", "turned", "--columns", "2", "--label", "1", "-C", "1", "-q")
    found = run(work, "predict", "turned", "turned.txt")[0]
    assert found.split("\n")[0] == "dc\tX\tX"  # the columns that are read, its label, the one that is predicted


@pytest.mark.parametrize(("model", "file", "message"), [
    ("columns", "one.txt", "one.txt: has 1 column"),
    ("attributes", "none.txt", "no tokens"),
    ("columns", "none.txt", "no tokens"),
])  # fmt: skip
def test_wrong_inputs_are_named(work, model, file, message):
    (work / "none.txt").write_text("\n\n")
    (work / "one.txt").write_text("a\nb\n")
    assert message in run(work, "predict", model, file, status=1)[1]


def test_options_of_other_models_are_refused(work):
    assert (
        "--pretty is for models that predict trees" in run(work, "predict", "columns", "x.txt", "--pretty", status=2)[1]
    )


UNNEEDED = ("structsvm.solvers", "structsvm.metrics", "structsvm.dual", "structsvm.tasks.common.training")


def test_what_trains_is_not_imported(work):
    code = (
        "import sys; from structsvm.cli import main\n"
        "main(['predict', 'attributes', 'a.txt', '-o', 'out'], standalone_mode=False); print(*sys.modules)"
    )
    command = [sys.executable, "-P", "-c", code]
    done = subprocess.run(command, cwd=work, capture_output=True, text=True, check=True)
    imported = set(done.stdout.split())
    assert "structsvm.cli.sequence.prediction" in imported and (work / "out").stat().st_size
    assert not {name for name in imported if name.startswith((*UNNEEDED, "scipy", "sklearn", "networkx"))}


def test_labels_of_attributes_come_as_sequences_end(work):
    with subprocess.Popen(
        [sys.executable, "-P", "-m", "structsvm", "predict", "attributes", "-"],
        cwd=work, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    ) as process:  # fmt: skip
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(b"O\tw=w1\tbias\n\n")
        process.stdin.flush()
        assert process.stdout.readline().strip()  # while the input is open
        process.stdin.write(b"O\tw=w2\tbias\n")
        process.stdin.close()
        assert len(process.stdout.read().split()) == 1
    assert process.returncode == 0
    assert run_process(work, "predict", "attributes", "-", text="O\tw=w1\n")[0].count("\n") == 2
