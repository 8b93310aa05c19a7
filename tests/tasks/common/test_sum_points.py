"""Sums of losses: where their trainings go on from after the choice of C, and where they end."""

import numpy as np
import pytest

import structsvm
from structsvm import ModelFileError, tasks
from structsvm.datasets import make_sequences
from structsvm.model_file import read_model, write_model
from structsvm.tasks.common.selection import search as selection
from structsvm.tasks.common.selection.choice import ChosenSum

X, y = make_sequences(60, n_labels=5, n_words=100, mean_length=8.0, random_state=0)
pytestmark = pytest.mark.filterwarnings("ignore::structsvm.ConvergenceWarning")


def labeler(**params):
    return tasks.SequenceLabeler(random_state=0, **params)


def test_the_margin_goes_on_from_where_the_choice_has_ended(monkeypatch):
    started = []
    start_from = structsvm.solvers.run.DualRun.start_from
    monkeypatch.setattr(
        structsvm.solvers.run.DualRun,
        "start_from",
        lambda run, point, rows: started.append((run.solver.C, len(rows))) or start_from(run, point, rows),
    )
    model = labeler().fit(X, y)
    C = model.validation_["losses"]["hamming"][0]
    assert started == [(C, 40)]  # two thirds of 60
    fixed = labeler(loss="hamming", C=C).fit(X, y)
    assert model.results_["hamming"].n_iter < fixed.n_iter_ and len(started) == 1
    labeler(loss="hamming").fit(X, y)  # alone it starts anew, as from shards
    assert len(started) == 1
    for params in ({"solver": "frank_wolfe"}, {"inference": "greedy"}):
        labeler(**params).fit(X, y)
    assert len(started) == 1


class Killed(Exception):
    pass


def killed(monkeypatch, path):
    """The checkpoint of a sum whose first training was killed after its first pass."""
    write = selection.ChoiceCheckpoint.write

    def kill(self, run, **about):
        write(self, run, **about)
        raise Killed

    monkeypatch.setattr(selection.ChoiceCheckpoint, "write", kill)
    with pytest.raises(Killed):
        labeler(checkpoint=path).fit(X, y)
    monkeypatch.undo()


def test_a_checkpoint_stores_the_point_of_the_other_loss(monkeypatch, tmp_path):
    killed(monkeypatch, tmp_path / "c")
    names = {name for name in read_model(tmp_path / "c").arrays if name.startswith("points.")}
    assert names == {
        f"points.hamming.{name}" for name in ("rows", "cut_example", "cut_bounds", "cut_words", "cut_numbers")
    }
    _, points, _ = selection.stored_choice(tmp_path / "c")
    point, rows = points["hamming"]
    assert all(array.flags.owndata for array in (rows, *point.values()))  # all else of the file is let go
    whole, model = labeler().fit(X, y), labeler(checkpoint=tmp_path / "c").fit(X, y)
    np.testing.assert_array_equal(model.emission_, whole.emission_)
    assert model.results_["hamming"].dual == whole.results_["hamming"].dual
    assert model.model_.choice.get(ChosenSum) is not None


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("rows", lambda a: a[::-1].copy()),
        ("rows", lambda a: a + 1000),
        ("rows", lambda a: a[:2]),
        ("cut_example", lambda a: a - 100),
        ("cut_words", lambda a: a[:-1]),
        ("cut_numbers", lambda a: a * np.nan),
        ("rows", lambda a: None),
        ("cut_bounds", lambda a: None),
    ],
)
def test_a_forged_point_is_refused(name, change, monkeypatch, tmp_path):
    killed(monkeypatch, tmp_path / "c")
    file = read_model(tmp_path / "c")
    arrays = dict(file.arrays)
    forged = change(arrays.pop(f"points.hamming.{name}"))
    if forged is not None:
        arrays[f"points.hamming.{name}"] = forged
    write_model(tmp_path / "c", file.kind, file.meta, arrays)
    with pytest.raises(ModelFileError, match="c: not a sound checkpoint model"):
        labeler(checkpoint=tmp_path / "c").fit(X, y)


def test_a_sum_that_continues_as_one_model_is_trained_as_one():
    more = make_sequences(60, n_labels=5, n_words=100, mean_length=8.0, random_state=1)
    model = labeler(warm_start=True).fit(X, y)
    assert list(model.results_) == ["log", "hamming"]
    model.fit(*more)
    assert list(model.results_) == ["log"]
    assert model.result_.gap <= 0.05 * model.result_.primal
