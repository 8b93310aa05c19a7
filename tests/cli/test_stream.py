"""``train sequence --stream``: one reading, in batches; what is learnt is that of `partial_fit` on the same batches."""

import io

import numpy as np
import pytest
from command_line import run

import structsvm
from structsvm import cli
from structsvm.cli.sequence import stream
from structsvm.datasets import make_sequences, write_columns
from structsvm.features import sources
from structsvm.features.columns import read_columns
from structsvm.progress import Monitor
from structsvm.tasks import SequenceLabeler, TokenFeatures

SIZE = 20
TRAIN = ["train", "sequence", "--stream", "--batch", SIZE, "--hash-bits", 12]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A folder with a training file of 4 1/2 batches."""
    folder = tmp_path_factory.mktemp("stream")
    write_columns(folder / "train.txt", *make_sequences(90, n_labels=5, n_words=100, mean_length=6.0, random_state=0))
    return folder


@pytest.fixture
def work(data, tmp_path):
    (tmp_path / "train.txt").write_bytes((data / "train.txt").read_bytes())
    return tmp_path


def sequences(folder):
    return (folder / "train.txt").read_text().rstrip("\n").split("\n\n")


def taught(columns, n_batches=5, **params):
    """The labeler that `partial_fit` makes of the first batches."""
    model = SequenceLabeler(features=TokenFeatures(hash_bits=12), random_state=0, **params)
    y = columns.select([2])
    classes = sorted({label for labels in y.column(0) for label in labels})
    for first in range(0, n_batches * SIZE, SIZE):
        part = slice(first, first + SIZE)
        model.partial_fit(columns[part].drop_last(), y[part], classes=classes)
    return model


def weights(path):
    return structsvm.load(path).model_.weights


class Raw(io.RawIOBase):
    """A pipe that hands over blocks, each when it is asked for."""

    def __init__(self, blocks):
        self.blocks = iter(blocks)

    def readable(self):
        return True

    def readinto(self, buffer):
        block = next(self.blocks, b"")
        buffer[: len(block)] = block
        return len(block)


def interrupt(*args):
    raise KeyboardInterrupt


def piped(monkeypatch, blocks):
    monkeypatch.setattr(cli.output, "source", lambda path: Raw(blocks))


@pytest.mark.parametrize(
    ("options", "params"),
    [([], {}), (["-C", "0.5", "--loss", "hamming"], {"C": 0.5, "loss": "hamming"}),
     (["--loss", "log", "--no-probability"], {"loss": "log", "probability": False})],
    ids=["defaults", "margin", "log"],
)  # fmt: skip
def test_as_partial_fit(work, options, params):
    out, err = run(work, *TRAIN, "train.txt", "-m", "m", *options)
    wanted, made = taught(read_columns(work / "train.txt"), **params), structsvm.load(work / "m")
    np.testing.assert_array_equal(made.model_.weights, wanted.model_.weights)
    assert made.model_.labels == wanted.model_.labels and made.temperature_ == wanted.temperature_
    assert made.result_.primal == wanted.result_.primal and made.C_ == wanted.C_
    assert "90 sequences" in out and "in 5 batches" in out and "\nlast batch: " in out and err == ""
    assert f"batches of 20 sequences, 4096 hashed features, 5 labels, C = {made.C_:g}" in out
    assert ("fixed: a stream has no held-out examples" in out) == ("-C" not in options)


def test_defaults(work):
    out, _ = run(work, "train", "sequence", "--stream", "train.txt", "-m", "m")
    assert f"batches of {stream.BATCH} sequences, 1048576 hashed features" in out
    assert structsvm.load(work / "m").features.hash_bits == 20


@pytest.mark.parametrize("block", [7, 1000])
def test_a_pipe_is_as_the_file(work, block, monkeypatch):
    run(work, *TRAIN, "train.txt", "-m", "file", "-q")
    text = (work / "train.txt").read_bytes()
    run(work, *TRAIN, "-", "-m", "stdin", "-q", text=text)
    piped(monkeypatch, (text[k : k + block] for k in range(0, len(text), block)))
    run(work, *TRAIN, "-", "-m", "pipe", "-q")
    for other in ("stdin", "pipe"):
        np.testing.assert_array_equal(weights(work / other), weights(work / "file"))


def test_no_more_is_read_than_is_learnt(work, monkeypatch):
    """An endless pipe: Ctrl-C after thirty blocks leaves the model of those before."""
    text, handed, read = (work / "train.txt").read_bytes().rstrip(b"\n") + b"\n\n", 0, []

    def blocks():
        nonlocal handed
        for _ in range(30):
            handed += 1
            yield text
        raise KeyboardInterrupt

    learn = stream.Stream.learn

    def learn_and_look(self, piece):
        run = learn(self, piece)
        read.append((handed, self.n_seen))
        return run

    monkeypatch.setattr(sources, "BLOCK", len(text))
    monkeypatch.setattr(stream, "HEAD", 1)
    monkeypatch.setattr(stream.Stream, "learn", learn_and_look)
    piped(monkeypatch, blocks())
    _, err = run(work, *TRAIN, "-", "-m", "m", "--no-probability", status=130)
    assert "interrupted after 2700 sequences: m holds the partial model" in err
    assert len(read) == 135
    assert all(90 * handed <= n_seen + 90 + SIZE for handed, n_seen in read)
    assert structsvm.load(work / "m").model_.encoder.n_features == 4096


def test_ctrl_c_within_a_batch(work, monkeypatch):
    ticks = iter([False, False, True])
    monkeypatch.setattr(Monitor, "end_pass", lambda self, run: interrupt() if next(ticks) else False)
    _, err = run(work, *TRAIN, "train.txt", "-m", "m", status=130)
    assert "interrupted after 60 sequences: m holds the partial model; resume with --warm-start m" in err
    assert structsvm.load(work / "m").result_.status == "interrupted"
    with_two = taught(read_columns(work / "train.txt"), 2).model_.weights
    assert weights(work / "m").shape == with_two.shape and (weights(work / "m") != with_two).any()
    # Before anything was learnt, nothing is left behind.
    monkeypatch.setattr(stream.Stream, "learn", interrupt)
    _, err = run(work, *TRAIN, "train.txt", "-m", "none", status=130)
    assert err == "no model was written\ninterrupted\n" and not (work / "none").exists()


@pytest.mark.parametrize("where", [0, 1, 47])
def test_a_label_that_is_not_known(work, where):
    parts = sequences(work)
    labels = ",".join(sorted(set(read_columns(work / "train.txt").select([2]).vocabularies[0].tolist())))
    parts[where] += "\nw t B-NEW\nw t I-NEW"
    text = "\n\n".join(parts) + "\n"
    (work / "new.txt").write_text(text)
    line = text[: text.index("w t B-NEW")].count("\n") + 1
    _, err = run(work, *TRAIN, "new.txt", "-m", "m", "--labels", labels, status=1)
    assert f"new.txt:{line}: the label 'B-NEW' is not one of the 5 that --labels names: B-" in err
    learnt = where // SIZE * SIZE
    assert (
        (f"m holds the partial model of the {learnt} sequences before" in err) == (work / "m").exists() == (learnt > 0)
    )
    if learnt:
        np.testing.assert_array_equal(weights(work / "m"), taught(read_columns(work / "train.txt"), 2).model_.weights)


def test_labels_of_the_first_part_or_named(work, monkeypatch):
    monkeypatch.setattr(stream, "HEAD", 1)
    text = "".join(f"w t {label}\n\n" for label in [*SIZE // 2 * ["A", "C"], "B"])
    (work / "new.txt").write_text(text)
    _, err = run(work, *TRAIN, "new.txt", "-m", "m", status=1)
    assert (
        "new.txt:41: the label 'B' is not one of the 2 that came first (--labels names all): A, C; m holds the partial"
        in err
    )
    for named in ("B,A,,", "", " "):
        assert "an empty label" in run(work, *TRAIN, "new.txt", "-m", "m", "--labels", named, status=2)[1]
    for named in ("B,C,A", "B A C", "A B C ,"):
        run(work, *TRAIN, "new.txt", "-m", "m", "--labels", named)
        assert structsvm.load(work / "m").model_.labels == sorted(named.replace("B,C,A", "B A C").split())
    monkeypatch.setattr(stream, "HEAD", 1000)
    run(work, *TRAIN, "new.txt", "-m", "m")
    assert structsvm.load(work / "m").model_.labels == ["A", "B", "C"]
    (work / "new.txt").write_text("".join(f"w t {k} A\n\n" for k in range(SIZE)))
    for given, column in ((), "4"), (("--label", "3"), "3"):
        _, err = run(work, *TRAIN, "new.txt", "-m", "other", *given, status=1)
        assert f"labels of the first {SIZE} tokens: its column {column} is the label; --label names another" in err
    run(work, *TRAIN, "new.txt", "-m", "other", "--labels", "A B")


@pytest.mark.parametrize("bad", [b"w t\n", b"w t \xff\n"])
def test_other_errors_keep_what_was_learnt(work, bad, monkeypatch):
    text = b"".join(sequence.encode() + b"\n\n" for sequence in sequences(work)[:80])
    (work / "bad.txt").write_bytes(text + bad)
    monkeypatch.setattr(stream, "HEAD", len(text))
    _, err = run(work, *TRAIN, "bad.txt", "-m", "m", status=1)
    assert f"bad.txt:{text.count(chr(10).encode()) + 1}: " in err and "partial model of the 80 sequences before" in err
    np.testing.assert_array_equal(weights(work / "m"), taught(read_columns(work / "train.txt"), 4).model_.weights)


def test_errors_of_a_batch_name_its_lines(work):
    text = "a t O\n\n" * SIZE + "a t O\nb t I-X\n"
    (work / "new.txt").write_text(text)
    args = [*TRAIN, "new.txt", "-m", "m", "--labels", "O,I-X,B-X"]
    _, err = run(work, *args, "--constraints", "bio", status=1)
    assert "new.txt: lines 41 to 42: sequence 0: the constraints do not allow its label 'I-X' at token 1" in err
    run(work, *args, "--constraints", "bio", "--broken", "repair")
    assert structsvm.load(work / "m").model_.labels == ["B-X", "I-X", "O"]
    (work / "new.txt").write_text(text + "c t A||B\n")
    _, err = run(work, *args, "--partial", status=1)
    assert "new.txt: lines 41 to 43: the label 'A||B': each side of a bar" in err


def test_labels_known_in_part(work):
    (work / "new.txt").write_text("a t A\nb t _\n\nb t A|B\nc t \\_\n\n" * SIZE)
    run(work, *TRAIN, "new.txt", "-m", "m", "--partial")
    assert structsvm.load(work / "m").model_.labels == ["A", "B", "_"]


def test_warm_start(work):
    parts = sequences(work)
    for name, some in (("one", parts[: 3 * SIZE]), ("two", parts[3 * SIZE :])):
        (work / f"{name}.txt").write_text("\n\n".join(some) + "\n")
    run(work, *TRAIN, "train.txt", "-m", "whole", "-q")
    run(work, *TRAIN, "one.txt", "-m", "m", "-q")
    args = ["train", "sequence", "--stream", "--batch", SIZE, "two.txt", "--warm-start", "m"]
    out, _ = run(work, *args, "-m", "two")
    assert "30 sequences" in out and "4096 hashed features, 5 labels, C = 0.1 (fixed" in out
    np.testing.assert_array_equal(weights(work / "two"), weights(work / "whole"))
    _, err = run(work, *args, "-m", "x", "--labels", "A,B", status=1)
    assert "--labels: the model to continue has others, B-" in err
    assert "another 'hash_bits'" in run(work, *args, "-m", "x", "--hash-bits", "9", status=1)[1]
    # Without --stream it is trained further, on what it learns then.
    run(work, "train", "sequence", "two.txt", "--warm-start", "two", "-m", "more", "--max-iter", "2", "-q")
    assert structsvm.load(work / "more").n_iter_ == 2
    # A model of a vocabulary goes on with it.
    run(work, "train", "sequence", "one.txt", "-m", "v", "-C", "0.1", "--tol", "0.5", "-q")
    out, _ = run(work, "train", "sequence", "--stream", "two.txt", "--warm-start", "v", "-m", "v")
    assert "hashed" not in out and structsvm.load(work / "v").tol is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--stream", "--checkpoint", "c"], "--checkpoint has no meaning with --stream: what was read"),
        (["--stream", "--checkpoint-every", "2"], "--checkpoint-every has no meaning with --stream"),
        (["--stream", "--min-count", "2"], "--min-count has no meaning with --stream: features are hashed"),
        (["--stream", "--tol", "0.1"], "--tol has no meaning with --stream: each batch"),
        (["--stream", "--max-iter", "2"], "--max-iter has no meaning with --stream: each batch"),
        (["--labels", "A,B"], "--labels needs --stream"),
        (["--batch", "2"], "--batch needs --stream"),
    ],
)
def test_options_that_do_not_go_together(work, options, message):
    _, err = run(work, "train", "sequence", "train.txt", "-m", "m", *options, status=2)
    assert message in err and not (work / "m").exists()


def test_batches_of_a_batch_solver_end_without_advice(work):
    given = ["train", "sequence", "--stream", "train.txt", "--solver", "cutting_plane", "-m", "m", "--batch", "20"]
    out, err = run(work, *given)
    assert "stopped after" not in err and "1 pass (max_iter)" in out


def test_nothing_to_learn_from(work):
    (work / "empty").write_text("\n \n")
    assert "no tokens (only blank lines)" in run(work, *TRAIN, "empty", "-m", "m", status=1)[1]
    (work / "one").write_text("a\n\n" * 30)
    assert "one: has one column" in run(work, *TRAIN, "one", "-m", "m", status=1)[1]
    assert not (work / "m").exists()


def test_standard_input_without_stream(work):
    run(work, "train", "sequence", "train.txt", "-m", "file", "-C", "0.1", "-q")
    run(work, "train", "sequence", "-", "-m", "stdin", "-C", "0.1", "-q", text=(work / "train.txt").read_bytes())
    np.testing.assert_array_equal(weights(work / "stdin"), weights(work / "file"))


def test_a_stream_without_ends_of_sentences(tmp_path):
    """One sequence of thousands of tokens is refused as it is without --stream."""
    (tmp_path / "t").write_text("the D\ndog N\nruns V\n" * 200)
    message = run(tmp_path, *TRAIN, "t", "-m", "m", "-C", "1", status=1)[1]
    assert "1 sequence of 600 tokens on average" in message and "--sentence-end ''" in message
    run(tmp_path, *TRAIN, "t", "-m", "m", "-C", "1", "--sentence-end", "", "-q")
    (tmp_path / "long").write_text(("the D\ndog N\nruns V\n" * 110 + "\n") * 25)
    run(tmp_path, *TRAIN, "long", "-m", "m", "-C", "1", "-q")
