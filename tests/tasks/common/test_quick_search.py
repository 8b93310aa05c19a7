"""Searches for C that end early: what their paths try, how long, and where training goes on from."""

from types import SimpleNamespace

import numpy as np
import pytest

import structsvm
from structsvm import ModelFileError, tasks
from structsvm.datasets import make_sequences
from structsvm.model_file import read_model, write_model
from structsvm.solvers.choosing import Row
from structsvm.tasks.common.selection import search as selection
from structsvm.tasks.common.selection import sums
from structsvm.tasks.common.selection.choice import ChosenSum
from structsvm.tasks.common.selection.search import Held, Part, Search

N = 4000
X, y = make_sequences(60, n_labels=5, n_words=100, mean_length=8.0, random_state=0)
pytestmark = pytest.mark.filterwarnings("ignore::structsvm.ConvergenceWarning")


def held(n_right, metric="accuracy", first=0):
    right = np.zeros(N)
    right[first : first + n_right] = 1.0
    return Held(metric, right, np.ones(N))


class Path(Search):
    """A search whose values are predicted as it is told."""

    def __init__(self, scores, metric="accuracy", *, is_quick=True):
        self.scores, self.metric, self.is_quick, self.table = iter(scores), metric, is_quick, []
        self.parts = [SimpleNamespace(model=tasks.SequenceLabeler(), races=False, problem=None, best=None)]
        self.parts[0].model.copy = lambda: self.parts[0].model
        self.grows, self.n_held_out, self.patience = False, N, 1
        self._walk([0.1, 0.3, 1.0, 3.0, 10.0], None)

    def tried(self, parts, C, monitor):
        self.last = held(next(self.scores), self.metric)
        return Row(C, float(self.last.numerator.mean()), 0.0, 1)


@pytest.mark.parametrize(
    ("scores", "n_tried", "chosen"),
    [
        ((2000, 2800, 2801, 3500, 3501), 5, 10.0),  # little is gained, and then more
        ((2000, 2800, 2700), 3, 0.3),  # patience
        ((0, 0, 0, 1000, 1001), 5, 10.0),  # nothing that is right says nothing
    ],
)
def test_a_path_ends_with_values_that_are_worse(scores, n_tried, chosen):
    path = Path(scores)
    assert len(path.table) == n_tried and chosen == path.choice.C
    assert path.parts[0].best is path.held


def test_other_paths_do_not():
    slow = Path((2000, 2800, 2801, 2802, 2803), is_quick=False)
    assert len(slow.table) == 5 and slow.parts[0].best is None


@pytest.mark.parametrize(
    ("now", "n_passes", "is_worse"),
    [(2900, 3, True), (2900, 2, False), (2900, 4, False), (3000, 3, False), (3001, 3, False)],
)
def test_a_value_is_left_after_three_passes_that_predict_worse(now, n_passes, is_worse):
    part = Part.__new__(Part)
    part.run, part.model = None, SimpleNamespace(set_weights_from=lambda run: None)
    part.held_out_scores = lambda: held(now)
    assert not part._is_worse(n_passes)  # without a best value
    part.best = held(3000)
    assert part._is_worse(n_passes) == is_worse


def test_as_many_wrong_elsewhere_are_no_reason_to_leave():
    part = Part.__new__(Part)
    part.run, part.model = None, SimpleNamespace(set_weights_from=lambda run: None)
    part.best, part.held_out_scores = held(3000), lambda: held(2998, first=500)
    assert not part._is_worse(3)


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


def test_the_likelihood_of_a_sum_ends_at_a_wider_gap_that_is_the_true_one():
    model = labeler().fit(X, y)
    result = model.results_["log"]
    alone = labeler(loss="log", C=model.C_).fit(X, y).result_
    optimum = labeler(loss="log", C=model.C_, tol=1e-5).fit(X, y).result_
    assert alone.relative_gap <= 0.05 and result.relative_gap <= 0.1
    assert result.dual <= optimum.primal <= result.primal * (1.0 + 1e-6)


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


@pytest.mark.parametrize(("n", "are_quick"), [(999, False), (1000, True)])
def test_searches_of_few_examples_are_not_quick(monkeypatch, n, are_quick):
    """Their search ranks values in its own way, and takes no time."""

    class Asked(Exception):
        pass

    def choose(search, monitor):
        assert [own.is_quick for own in search.searches] == [are_quick] * 2
        raise Asked

    monkeypatch.setattr(sums.SumSearch, "choose", choose)
    with pytest.raises(Asked):
        labeler().fit([[["x"], ["y"]]] * n, [["a", "b"]] * n)


def test_a_sum_that_continues_as_one_model_is_trained_as_one():
    more = make_sequences(60, n_labels=5, n_words=100, mean_length=8.0, random_state=1)
    model = labeler(warm_start=True).fit(X, y)
    assert list(model.results_) == ["log", "hamming"]
    model.fit(*more)
    assert list(model.results_) == ["log"]
    assert model.result_.gap <= 0.05 * model.result_.primal
