"""Files of the command line: no input is lost, and what cannot be written is found before the work."""

import os
import signal
import stat
import subprocess
import sys
import time

import pytest
from command_line import COMMAND, run, run_process

import structsvm
from structsvm.cli import TASKS
from structsvm.datasets import make_sequences, write_columns
from structsvm.features.columns import Columns
from structsvm.tasks import SequenceLabeler

TRAIN = {
    "sequence": "the D B\ndog N I\n\na D B\ncat N I\n",
    "dependency": "1\tdogs\t_\tN\t_\t_\t2\tsubj\t_\t_\n2\tbark\t_\tV\t_\t_\t0\troot\t_\t_\n\n" * 2,
    "grammar": "(S (NP (N dogs)) (VP (V bark)))\n(S (NP (D the) (N dog)) (VP (V barks)))\n",
    "graph": '{"nodes": [{"x": 1, "label": "a"}, {"x": 2, "label": "b"}], "edges": [[0, 1]]}\n' * 2,
    "multiclass": "1 1:1\n2 2:1\n3 1:1 2:2\n1 1:2\n",
    "multilabel": "1,2 1:1\n2 2:1\n1 1:2 2:1\n 2:3\n",
    "binary": "1 1:1\n-1 2:1\n1 1:2\n-1 2:2\n",
    "ranking": "1 qid:1 1:1\n0 qid:1 2:1\n2 qid:2 1:1\n1 qid:2 2:2\n",
    "taxonomy": "a\tgreen tree\nb\tblue sky\na\ttall tree\nb\twide sky\n",
    "alignment": ">1 x\nACDE\n>1 z\nAC-E\n>2 x\nACDE\n>2 z\nAKDE\n",
    "semantics": '{"sentence": "john sleeps", "bag": ["sleep(john)"]}\n{"sentence": "mary runs", "bag": ["run(al)"]}\n',
}


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """A folder with a model of each task."""
    folder = tmp_path_factory.mktemp("models")
    for task, text in TRAIN.items():
        (folder / task).write_text(text)
        run(folder, "train", task, task, "-m", f"{task}.model", "-q")
    return folder


@pytest.fixture
def work(models, tmp_path, request):
    """A folder with training data and model of the test's task (sequence where it has none)."""
    task = getattr(request.node, "callspec", None)
    task = task.params.get("task", "sequence") if task else "sequence"
    (tmp_path / "d").write_text(TRAIN[task])
    (tmp_path / "m").write_bytes((models / f"{task}.model").read_bytes())
    return tmp_path


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def refused(work, *args, text=None):
    """The command refuses at once, and every file stays."""
    before = contents(work)
    _, err = run(work, *args, status=2, text=text)
    assert "are the same file" in err and err.startswith("Usage:"), err
    assert contents(work) == before


@pytest.mark.parametrize("task", TASKS)
def test_no_output_of_train_is_its_input(work, task):
    os.symlink("d", work / "link")
    os.link(work / "d", work / "hard.png")
    for path in ("d", "./d", work / "d", "link", "hard.png"):
        refused(work, "train", task, "d", "-m", path)
        refused(work, "train", task, "d", "-m", "new", "--checkpoint", path)
        if task not in ("dependency", "grammar", "semantics"):
            refused(work, "train", task, "d", "-m", "new", "--plot", path)
    refused(work, "train", task, "d", "-m", "new", "--warm-start", "m", "--checkpoint", "m")
    refused(work, "train", task, "d", "-m", "new", "--checkpoint", "./new")  # neither is there yet


@pytest.mark.parametrize(
    ("task", "option"), [("taxonomy", "--taxonomy"), ("semantics", "--grammar"), ("sequence", "--templates"),
                         ("alignment", "--prior")]
)  # fmt: skip
def test_no_model_replaces_what_else_is_read(work, task, option):
    (work / "other").write_text("what it holds is not looked at\n")
    refused(work, "train", task, "d", option, "other", "-m", "other")


def test_other_outputs_and_other_commands(work, models):
    refused(work, "predict", "m", "d", "-o", "d")
    refused(work, "predict", "m", "d", "-o", "m")
    refused(work, "evaluate", "m", "d", "--plot", "d")
    refused(work, "inspect", "m", "--plot", "m")
    (work / "pairs").write_text(TRAIN["alignment"])
    refused(work, "train", "alignment", "pairs", "-m", "new", "--matrix", "pairs")
    refused(work, "train", "alignment", "pairs", "-m", "new", "--matrix", "new")
    with (work / "d").open() as standard_input:
        done = subprocess.run(
            [*COMMAND, "predict", "m", "-", "-o", "d"], cwd=work, stdin=standard_input, capture_output=True, text=True
        )
    assert done.returncode == 2 and "are the same file" in done.stderr
    assert (work / "d").read_text() == TRAIN["sequence"]


@pytest.mark.parametrize("task", TASKS)
def test_a_model_may_replace_the_one_that_it_continues(work, task):
    before = (work / "m").read_bytes()
    run(work, "train", task, "d", "--warm-start", "m", "-m", "m", "--max-iter", "1", "-q")
    assert (work / "m").read_bytes() != before
    assert structsvm.load(work / "m").n_iter_ >= 1


def test_a_model_may_have_the_name_of_what_is_no_file(work):
    run(work, "train", "sequence", "d", "--templates", "rich", "-m", "rich", "-q")


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("option", ["-m", "--checkpoint"])
def test_what_cannot_be_written_is_found_before_training(work, task, option, monkeypatch):
    """Before the training file is read, even: it is no such file."""
    (work / "d").write_bytes(b"\xff\xfe\x00 not a training file")
    os.mkfifo(work / "fifo")
    os.symlink("none/x", work / "dangling")
    os.symlink("loop", work / "loop")
    (work / "read-only").write_text("")
    (work / "read-only").chmod(0o400)
    others = [] if option == "-m" else ["-m", "new"]
    paths = {
        "fifo": "not a regular file",
        "/dev/null": "not a regular file",
        "dangling": "there is no folder",
        "none/x": "there is no folder",
        "d/x": "Not a directory",
        "x" * 300: "File name too long",
        "loop": "Too many levels",
    }
    if os.geteuid():
        paths["read-only"] = "read-only"
    for path, message in paths.items():
        _, err = run(work, "train", task, "d", *others, option, path, status=1)
        assert message in err, (path, err)
    run(work, "train", task, "d", *others, option, ".", status=2)  # a folder
    assert stat.S_ISFIFO((work / "fifo").stat().st_mode)
    assert sorted(os.listdir(work)) == ["d", "dangling", "fifo", "loop", "m", "read-only"]


@pytest.mark.parametrize("command", [["predict", "m", "d", "-o"], ["evaluate", "m", "d", "--plot"],
                                     ["inspect", "m", "--plot"], ["demo", "-o"]])  # fmt: skip
def test_other_outputs_that_cannot_be_written(work, command):
    _, err = run(work, *command, "none/x.png", status=1)
    assert "there is no folder" in err
    _, err = run(work, *command, f"{'x' * 300}.png", status=1)
    assert "File name too long" in err


def test_a_device_and_a_pipe_take_predictions(work):
    os.mkfifo(work / "fifo")
    reader = subprocess.Popen(["cat", work / "fifo"], stdout=subprocess.PIPE, text=True)
    run(work, "predict", "m", "d", "-o", "fifo")
    assert reader.communicate(timeout=60)[0] == run(work, "predict", "m", "d")[0] != ""
    run(work, "predict", "m", "d", "-o", "/dev/null")
    assert stat.S_ISFIFO((work / "fifo").stat().st_mode)


def test_a_picture_is_whole_or_not_there_and_costs_no_model(work, monkeypatch):
    from matplotlib.figure import Figure

    def half(self, file, **options):
        file.write(b"\x89PNG half of it")
        raise OSError(28, "No space left on device")

    (work / "p.png").write_text("the one before")
    (work / "new").write_bytes(b"")
    monkeypatch.setattr(Figure, "savefig", half)
    _, err = run(work, "train", "sequence", "d", "-m", "new", "--plot", "p.png", status=1)
    assert "No space left" in err
    assert (work / "p.png").read_text() == "the one before"
    assert structsvm.load(work / "new").predict([[("the", "D")]]) == [["B"]]
    assert sorted(os.listdir(work)) == ["d", "m", "new", "p.png"]


PLANTED = """
import os, sys
from structsvm.cli import main
os.urandom = bytes
main(sys.argv[1:])
"""


@pytest.mark.parametrize("command", ["predict m d -o new", "train sequence d -m new -C 1 --loss hamming"])
def test_a_link_under_the_name_of_the_temporary_file_is_not_followed(work, command):
    """Its name is drawn; even where it was guessed, what another user's link leads to is not written."""
    (work / "victim").write_text("precious")
    os.symlink("victim", work / ".structsvm-0000000000000000.tmp")
    args = [sys.executable, "-c", PLANTED, *command.split()]
    done = subprocess.run(args, cwd=work, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1 and "File exists" in done.stderr
    assert (work / "victim").read_text() == "precious" and not (work / "new").exists()


FULL = """
import errno, os, sys
import structsvm.model_file as model_file
from structsvm.cli import main
real = model_file.new_file
def full(path, *args, **options):
    if os.path.basename(path) == "new":
        raise OSError(errno.ENOSPC, "No space left on device", path)
    return real(path, *args, **options)
model_file.new_file = full
main(sys.argv[1:])
"""


def test_a_disk_that_is_full_at_the_end(work):
    def train(*options):
        args = [sys.executable, "-c", FULL, "train", "sequence", "d", "-m", "new", "-q", *options]
        done = subprocess.run(args, cwd=work, capture_output=True, text=True, timeout=120)
        assert done.returncode == 1 and done.stderr.count("\n") == 1, done
        return done.stderr

    assert train() == "Error: the model was not saved: [Errno 28] No space left on device: 'new'\n"
    assert not (work / "new").exists()
    err = train("--checkpoint", "c", "--solver", "perceptron")
    assert err.endswith("'new'; c holds its training: run the command again to resume from there\n")
    run(work, "train", "sequence", "d", "-m", "new", "--checkpoint", "c", "--solver", "perceptron", "-q")
    run(work, "train", "sequence", "d", "-m", "whole", "--solver", "perceptron", "-q")
    saved = structsvm.load(work / "new").model_.weights, structsvm.load(work / "whole").model_.weights
    assert saved[0].tobytes() == saved[1].tobytes()


SLOW_SAVE = """
import sys, time
import structsvm.model_file as model_file
from structsvm.cli import main
encode = model_file._encode
def slowly(*args):
    for chunk in encode(*args):
        print("saving", flush=True)
        yield chunk
        time.sleep(0.2)
model_file._encode = slowly
main(sys.argv[1:])
"""


def test_a_second_ctrl_c_leaves_no_half_of_a_file(tmp_path):
    write_columns(tmp_path / "d", *make_sequences(150, n_labels=5, n_words=300, random_state=0))
    before = contents(tmp_path)
    args = [sys.executable, "-c", SLOW_SAVE, "train", "sequence", "d", "-m", "m", "-C", "0.1", "--max-iter", "10000000"]
    process = subprocess.Popen(args, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert "sequences" in process.stdout.readline()
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "saving\n"
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert (process.returncode, err) == (130, "no model was written\ninterrupted\n")
    assert contents(tmp_path) == before


@pytest.mark.parametrize("place", ["nosuch/../d", "d/../d"])
def test_a_path_by_way_of_what_is_no_folder(work, place):
    refused(work, "train", "sequence", "d", "-m", place)
    refused(work, "predict", "m", "d", "--output", place)


def test_a_model_with_other_weights_than_were_stored(work):
    data = bytearray((work / "m").read_bytes())
    at = 16 + int.from_bytes(data[8:12], "little")
    data[at : at + 8] = bytes(b ^ 255 for b in data[at : at + 8])
    (work / "m").write_bytes(data)
    for args in (("predict", "m", "d"), ("evaluate", "m", "d")):
        assert "checksum" in run(work, *args, status=1)[1]


def test_labels_that_are_numbers_are_evaluated(tmp_path):
    columns = Columns.from_sequences([[("a",), ("b",)]] * 5)
    SequenceLabeler(C=1.0, random_state=0).fit(columns, [[0, 1]] * 5).save(tmp_path / "m")
    (tmp_path / "d").write_text("a 0\nb 1\n\n")
    assert '"accuracy": 1.0' in run(tmp_path, "evaluate", "m", "d", "--json")[0]


def test_a_pipe_to_shards(tmp_path):
    write_columns(tmp_path / "d", *make_sequences(200, random_state=0))
    shards = ("--shards", "folder", "-m", "m", "-C", "0.1", "--max-iter", "1", "-q")
    whole = run_process(tmp_path, "train", "sequence", "d", "--shards", "other", *shards[2:])
    command = [*COMMAND, "train", "sequence", "/dev/stdin", *shards]
    with subprocess.Popen(["cat", "d"], cwd=tmp_path, stdout=subprocess.PIPE) as source:
        done = subprocess.run(command, cwd=tmp_path, stdin=source.stdout, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert whole is not None and structsvm.SequenceShards.open(tmp_path / "folder").n_tokens == (
        structsvm.SequenceShards.open(tmp_path / "other").n_tokens
    )
    (tmp_path / "texts").write_text(TRAIN["taxonomy"])
    command = [*COMMAND, "train", "taxonomy", "/dev/stdin", *shards]
    with subprocess.Popen(["cat", "texts"], cwd=tmp_path, stdout=subprocess.PIPE) as source:
        done = subprocess.run(command, cwd=tmp_path, stdin=source.stdout, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "made of a file, which is read twice" in done.stderr, done.stderr


def test_terms_of_shards_stay(tmp_path):
    (tmp_path / "d").write_text(TRAIN["taxonomy"])
    run(tmp_path, "train", "taxonomy", "d", "--shards", "folder", "-m", "m", "-C", "1", "-q")
    error = run(tmp_path, "train", "taxonomy", "folder", "--ngrams", "2", "-m", "other", "-q", status=2)[1]
    assert "--ngrams: shards have the terms they have" in error


def test_a_carriage_return_within_a_document(tmp_path):
    (tmp_path / "d").write_bytes(b"a\tgreen tree\rb\tblue sky\r")
    error = run(tmp_path, "train", "taxonomy", "d", "-m", "m", "-q", status=1)[1]
    assert "d, line 1: a carriage return within a line" in error
