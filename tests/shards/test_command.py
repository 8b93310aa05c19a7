"""Training with ``--shards``: the model is that of `fit` on the same shards; what is refused."""

import numpy as np
import pytest
from command_line import run

import structsvm
from structsvm import DocumentShards, SequenceShards
from structsvm.datasets import make_sequences, write_columns
from structsvm.tasks import SequenceLabeler, TaxonomyClassifier, TokenFeatures

TRAIN = ["train", "sequence", "-C", 0.1, "--max-iter", 2, "--hash-bits", 12, "--loss", "hamming", "--no-probability"]


@pytest.fixture
def work(tmp_path):
    write_columns(tmp_path / "train.txt", *make_sequences(60, n_labels=4, n_words=80, mean_length=6.0, random_state=0))
    (tmp_path / "folder").mkdir()
    return tmp_path


def weights(path):
    return structsvm.load(path).model_.weights


def test_shards_are_made_and_trained_on_and_trained_on_again(work, monkeypatch):
    made, make = [], SequenceShards.make.__func__

    def counted(cls, source, folder, *, max_memory, **given):
        assert max_memory == 7 * 10**6
        made.append(folder)
        return make(cls, source, folder, max_memory=5000, **given)

    monkeypatch.setattr(SequenceShards, "make", classmethod(counted))
    given = [*TRAIN, "train.txt", "--shards", "shards", "--max-memory", 7, "--model"]
    out, _ = run(work, *given, "model")
    assert "60 sequences" in out
    shards = SequenceShards.open(work / "shards")
    assert len(shards) == 60
    assert shards.n_shards > 2
    labeler = SequenceLabeler(
        C=0.1, max_iter=2, features=TokenFeatures(hash_bits=12), loss="hamming", probability=False, random_state=0
    )
    np.testing.assert_array_equal(weights(work / "model"), labeler.fit(shards).model_.weights)
    run(work, *TRAIN, "shards", "--model", "again")
    np.testing.assert_array_equal(weights(work / "again"), weights(work / "model"))
    _, error = run(work, *given, "other", status=1)
    assert "shards: is there already" in error
    assert made == ["shards", "shards"]
    assert not (work / "other").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--model", "shards"], "'--shards' are the same file"),
        (["--model", "m", "--checkpoint", "shards"], "'--shards' are the same file"),
        (["--model", "shards/m"], "in the folder '--shards', whose files nothing may replace"),
    ],
)
def test_no_output_goes_into_the_folder_that_is_made(work, options, message):
    _, error = run(work, *TRAIN, "train.txt", "--shards", "shards", *options, status=2)
    assert message in error and not (work / "shards").exists()


@pytest.mark.parametrize(
    ("options", "status", "message"),
    [
        (["--segments"], 1, "shards need segments=False"),
        (["--constraints", "bio", "--broken", "repair"], 1, "shards need broken='refuse' or 'predict'"),
        (["--inference", "greedy", "--loss", "log"], 2, "loss='log' needs inference='exact'"),
    ],
)
def test_what_shards_cannot_be_trained_with_is_refused_before_they_are_made(work, options, status, message):
    _, error = run(work, *TRAIN, "train.txt", "--shards", "shards", *options, "--model", "model", status=status)
    assert message in error and not (work / "shards").exists()


@pytest.mark.parametrize("options", [["--model", "shards/index"], ["--model", "m", "--checkpoint", "shards/new"]])
def test_no_output_goes_into_the_folder_that_is_read(work, options):
    run(work, *TRAIN, "train.txt", "--shards", "shards", "--model", "model")
    before = {path.name: path.read_bytes() for path in (work / "shards").iterdir()}
    _, err = run(work, *TRAIN, "shards", *options, status=2)
    assert f"'{options[-2]}'" in err and "whose files nothing may replace" in err
    assert {path.name: path.read_bytes() for path in (work / "shards").iterdir()} == before


def test_a_damaged_line_is_named_and_leaves_nothing(work):
    with open(work / "train.txt", "a") as file:
        file.write("one\n")
    n_lines = (work / "train.txt").read_text().count("\n")
    _, error = run(work, *TRAIN, "train.txt", "--shards", "shards", "--model", "model", status=1)
    assert f"train.txt:{n_lines}:" in error
    assert not (work / "shards").exists()
    assert not (work / "model").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["train.txt", "--max-memory", 7], "--max-memory needs --shards"),
        (["train.txt", "--shards", "shards", "--partial"], "--partial has no meaning with shards"),
        (["folder", "--shards", "shards"], "folder is a folder of shards itself"),
        (["folder", "--max-memory", 7], "--max-memory needs --shards"),
        (["train.txt", "--shards", "shards", "--max-memory", 0], "'--max-memory'"),
    ],
)
def test_what_has_no_meaning_is_refused(work, options, message):
    _, error = run(work, *TRAIN, *options, "--model", "model", status=2)
    assert message in error
    assert not (work / "shards").exists()


def test_documents_are_made_and_trained_on_and_trained_on_again(work):
    texts = [(f"{'AB'[k % 2]} > {'xyz'[k % 3]}", f"word{k % 6} number{k} common thing") for k in range(60)]
    (work / "docs.txt").write_text("".join(f"{label}\t{text}\n" for label, text in texts))
    (work / "docs.svm").write_text("".join(f"{label[0]} {k % 6 + 1}:2 9:1.5\n" for k, (label, _) in enumerate(texts)))
    train = ["train", "taxonomy", "-C", 0.3, "--max-iter", 2]
    for name, given, columns in (("docs.txt", ["--min-count", 2, "--ngrams", 2], 9), ("docs.svm", [], 9)):
        folder, model = f"{name}.shards", f"{name}.model"
        out, _ = run(work, *train, name, *given, "--shards", folder, "--max-memory", 3, "--model", model)
        assert "60 documents" in out
        shards = DocumentShards.open(work / folder)
        assert shards.tokens.max_memory == 3 * 10**6
        assert shards.n_features == columns
        fitted = TaxonomyClassifier(C=0.3, max_iter=2, random_state=0).fit(shards)
        np.testing.assert_array_equal(weights(work / model), fitted.model_.weights)
        run(work, *train, folder, "--model", "again")
        np.testing.assert_array_equal(weights(work / "again"), weights(work / model))
        out, _ = run(work, "evaluate", model, name)
        assert "60 documents: accuracy 100.00%" in out
    _, error = run(work, *train, "docs.txt", "--shards", "other", "--partial", "--model", "no", status=2)
    assert "--partial has no meaning with shards" in error
    _, error = run(work, *train, "docs.txt", "--shards", "other", "--kernel", "rbf", "--model", "no", status=2)
    assert "--kernel has no meaning with shards" in error and not (work / "other").exists()
    _, error = run(work, *train, "docs.txt", "--shards", "docs.txt.shards", "--model", "no", status=1)
    assert "docs.txt.shards: is there already" in error
    _, error = run(work, *train, "folder", "--model", "no", status=1)
    assert "folder/index is not there: folder is no folder of shards" in error


def test_a_stream_has_no_shards(work):
    _, error = run(work, "train", "sequence", "train.txt", "--stream", "--shards", "shards", "-m", "model", status=2)
    assert "--stream has no meaning with shards" in error


def test_a_folder_without_shards_is_named(work):
    _, error = run(work, *TRAIN, "folder", "--model", "model", status=1)
    assert "folder/index is not there: folder is no folder of shards" in error
