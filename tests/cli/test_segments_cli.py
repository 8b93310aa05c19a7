"""The command line for segments: what it trains is the estimator's, and its files take the other commands."""

import json

import pytest
from command_line import run

import structsvm
from structsvm.datasets import make_sequences, write_columns
from structsvm.features.columns import read_columns
from structsvm.metrics import chunk_scores
from structsvm.tasks import SequenceLabeler


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("segments")
    for seed, name in enumerate(("train", "test")):
        write_columns(folder / name, *make_sequences(40, n_words=60, random_state=seed))
    run(folder, "train", "sequence", "train", "-m", "m", "-C", "0.1", "--segments", "--segment-length", "5", "--quiet")
    return folder


def test_the_commands(folder):
    columns = read_columns(folder / "train")
    params = {"segments": 5, "C": 0.1, "random_state": 0}
    wanted = SequenceLabeler(**params).fit(columns.drop_last(), columns.column(-1))
    model, test = structsvm.load(folder / "m"), read_columns(folder / "test")
    assert model.model_.weights.tobytes() == wanted.model_.weights.tobytes()
    assert model.model_.params.keys() <= wanted.get_params(deep=False).keys()
    labels = wanted.predict(test.drop_last())
    run(folder, "predict", "m", "test", "--confidence", "--output", "found")
    found = read_columns(folder / "found")
    assert found.column(3) == labels
    chances = [float(p) for sentence in found.column(4) for p in sentence]
    assert 0.0 < min(chances) <= max(chances) <= 1.0
    scores = chunk_scores(test.column(-1), labels)
    out, _ = run(folder, "evaluate", "m", "test", "--json")
    assert json.loads(out)["f1"] == pytest.approx(scores.f1)
    out, _ = run(folder, "inspect", "m", "--top", "2")
    assert "inference of segments, those of 1 to 5 tokens by length" in out and " phrases, " in out and "S-NP" in out
    out, _ = run(folder, "predict", "m", "test", "--kbest", "2")
    assert out.startswith("# 1 ") and "\n# 2 " in out


def test_the_length_goes_with_a_warm_start(folder):
    args = ["train", "sequence", "train", "--warm-start", "m", "--max-iter", "1", "--quiet"]
    for options in ([], ["--segments"], ["--segment-length", "5"]):
        run(folder, *args, "-m", "w", *options)
        assert structsvm.load(folder / "w").model_.segments.phrases.max_length == 5
    assert structsvm.load(folder / "m").segments == structsvm.load(folder / "w").segments == 5
    _, err = run(folder, *args, "-m", "x", "--segment-length", "6", status=1)
    assert "trained with another 'segments'" in err and "Got 6, it has 5" in err
    assert not (folder / "x").exists()


def test_streams(folder):
    args = ["--segments", "--stream", "--hash-bits", "12", "--batch", "10", "--quiet"]
    run(folder, "train", "sequence", "train", "-m", "s", *args)
    out, _ = run(folder, "evaluate", "s", "test", "--json")
    assert json.loads(out)["f1"] > 0.4
    run(folder, "train", "sequence", "test", "-m", "s2", "--warm-start", "s", *args)
