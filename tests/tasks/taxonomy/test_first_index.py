"""The index of the first feature, 0 or 1: of all files of a model, also where it was trained on shards."""

import warnings

import command_line
import numpy as np
import pytest

import structsvm
from structsvm import AdviceWarning, DocumentShards
from structsvm.tasks import TaxonomyClassifier
from structsvm.tasks.taxonomy import documents

ROWS = [("abc"[k % 3], {k % 3: 1.0, 3 + k % 5: 0.5}) for k in range(60)]


def lines(base, rows=ROWS):
    return "".join(f"{label} {' '.join(f'{j + base}:{v}' for j, v in row.items())}\n" for label, row in rows)


@pytest.fixture
def files(tmp_path):
    """Files of training, and of predictions in which no index tells the first one."""
    for base in (0, 1):
        (tmp_path / f"train{base}").write_text(lines(base))
        (tmp_path / f"test{base}").write_text(lines(base, [row for row in ROWS if row[0] != "a"]))
    return tmp_path


@pytest.mark.parametrize("base", [0, 1])
def test_files_of_predictions_are_read_as_those_of_shards(base, files):
    command_line.run(files, "train", "taxonomy", f"train{base}", "-m", "whole", "-C", 10, "-q")
    command_line.run(files, "train", "taxonomy", f"train{base}", "--shards", "s", "-m", "m", "-C", 10, "-q")
    shards = DocumentShards.open(files / "s")
    assert shards.first_index == base
    command_line.run(files, "train", "taxonomy", "s", "-m", "again", "-C", 10, "-q")
    TaxonomyClassifier(C=10.0, random_state=0).fit(shards).save(files / "python")
    wanted = "b\nc\n" * 20
    with warnings.catch_warnings():
        warnings.simplefilter("error", AdviceWarning)
        for model in ("whole", "m", "again", "python"):
            assert command_line.run(files, "predict", model, f"test{base}")[0] == wanted
            assert structsvm.load(files / model).model_.first_index == base


def test_later_pieces_and_files_are_read_as_the_first(files, monkeypatch):
    whole = DocumentShards.make([files / "train0", files / "test0"], files / "s")
    monkeypatch.setattr(documents, "BLOCK", 100)
    pieces = DocumentShards.make([files / "train0", files / "test0"], files / "p")
    for shards in (whole, pieces):
        assert shards.n_features == 8 and shards.first_index == 0
        np.testing.assert_array_equal(shards.tokens[99:100].indices, [2, 7, 8])
    with pytest.raises(ValueError, match=r"train0, line 1: has the index 0, and the indices of the data before begin"):
        DocumentShards.make([files / "test1", files / "train0"], files / "q")
    assert DocumentShards.make(files / "test0", files / "r", first_index=0).first_index == 0


def test_a_model_is_resumed_on_shards_of_its_first_index(files):
    command_line.run(files, "train", "taxonomy", "train0", "-m", "m", "-C", 10, "-q")
    more = "".join(f"{label} {j}:1\n" for label, j in zip("bcabc" * 4, [1, 2, 7, 1, 2] * 4, strict=True))
    (files / "more").write_text(more)
    options = ("-m", "n", "-C", 10, "-q", "--warm-start", "m")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        command_line.run(files, "train", "taxonomy", "more", "--shards", "s", *options)
    assert DocumentShards.open(files / "s").first_index == 0
    DocumentShards.make(files / "train1", files / "other")
    error = command_line.run(files, "train", "taxonomy", "other", *options, status=1)[1]
    assert (
        "the indices of the shards' files begin with 1, those of the model's with 0: DocumentShards.make(first" in error
    )
