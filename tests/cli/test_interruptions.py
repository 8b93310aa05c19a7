"""Signals that end the command line when the work is done: the model is stored first."""

import os
import signal
import subprocess
import sys
import warnings

import pytest
from command_line import COMMAND, run

from structsvm.cli.output import brief_warnings, held_interrupts
from structsvm.datasets import make_sequences, write_columns
from structsvm.solvers.run import DualRun
from structsvm.tasks.common.selection.search import Search

TRAIN = ["train", "sequence", "d", "-m", "m", "--loss", "hamming", "-C", "1", "--max-iter", "2"]
STREAM = ["train", "sequence", "d", "-m", "m", "--stream", "--batch", "20", "--hash-bits", "10"]


@pytest.fixture
def work(tmp_path):
    write_columns(tmp_path / "d", *make_sequences(60, n_labels=3, n_words=50, random_state=0))
    return tmp_path


def test_the_first_ctrl_c_is_held():
    with held_interrupts() as came:
        signal.raise_signal(signal.SIGINT)
        assert came == [signal.SIGINT]
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with held_interrupts() as came:
            signal.raise_signal(signal.SIGINT)
        assert not came and signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("command", [TRAIN, STREAM])
def test_ctrl_c_while_the_model_is_stored(work, command, monkeypatch):
    replace = os.replace

    def interrupted(*paths):
        signal.raise_signal(signal.SIGINT)
        replace(*paths)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", interrupted)
        _, err = run(work, *command, "-q", status=130)
    assert err == "m holds the model\ninterrupted\n"
    assert run(work, "evaluate", "m", "d", "--json")[0].startswith("{")


@pytest.mark.parametrize("command", [TRAIN, STREAM])
def test_the_reader_of_the_output_leaves(work, command):
    args = [*COMMAND, *command]
    with subprocess.Popen(args, cwd=work, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline()
        process.stdout.close()
        assert "Traceback" not in process.stderr.read()
    assert process.returncode == 1 and (work / "m").exists()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is full")
def test_a_warning_that_cannot_be_written(work):
    with open("/dev/full", "w") as full:
        args = [*COMMAND, *TRAIN, "--tol", "1e-9"]
        done = subprocess.run(args, cwd=work, stdout=subprocess.PIPE, stderr=full, check=False)
    assert done.returncode == 0 and b"max_iter" in done.stdout and (work / "m").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="closes streams by a shell")
def test_closed_streams(work):
    def closed(which, *args, status):
        command = ["sh", "-c", f'"$@" {which}', "sh", *COMMAND, *args]
        done = subprocess.run(command, cwd=work, capture_output=True, text=True, check=False)
        assert done.returncode == status and "Traceback" not in done.stderr
        return done.stderr

    closed("2>&-", *TRAIN, status=0)
    assert closed(">&-", "predict", "m", "d", status=1) == "Error: standard output is closed\n"
    assert closed("<&-", "predict", "m", "-", status=1) == "Error: standard input is closed\n"
    for command in (["evaluate", "m", "d"], ["inspect", "m"]):
        assert closed(">&-", *command, status=1) == "Error: standard output is closed\n"
    assert closed(">&-", "predict", "m", "d", "-o", "out", status=0) == "" and (work / "out").exists()
    if os.path.exists("/dev/full"):
        assert closed("> /dev/full", "--help", status=1) == "Error: [Errno 28] No space left on device\n"


@pytest.mark.parametrize("n", [1, 4])
def test_ctrl_c_while_c_is_chosen(work, n, monkeypatch):
    """The model of what was tried last, which is said to be that; before the first pass there is none."""
    left, end_pass = iter([False] * (n - 1) + [True]), DualRun.advance

    def interrupted(self, *args, **options):
        if next(left, False):
            raise KeyboardInterrupt
        return end_pass(self, *args, **options)

    monkeypatch.setattr(DualRun, "advance", interrupted)
    _, err = run(work, "train", "sequence", "d", "-m", "m", "--loss", "hamming", status=130)
    assert "passes over a part of the data, while C was chosen: m holds the partial model" in err
    monkeypatch.setattr(Search, "choose", interrupted_at_once)
    assert run(work, "train", "sequence", "d", "-m", "x", "--loss", "hamming", status=130)[1] == (
        "no model was written\ninterrupted\n"
    )
    assert not (work / "x").exists()


def interrupted_at_once(*args):
    raise KeyboardInterrupt


def test_warnings_are_lines(capsys):
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        with brief_warnings():
            warnings.warn("few", UserWarning, stacklevel=1)
        with brief_warnings(quiet=True):
            warnings.warn("none", UserWarning, stacklevel=1)
    assert capsys.readouterr().err == "warning: few\n"
