"""``loss="auto"``: two trainings, one linear model; each resumes, is interrupted and is stored by itself."""

import numpy as np
import pytest

import structsvm
from structsvm import ModelFileError, tasks
from structsvm.datasets import make_sequences
from structsvm.model_file import read_model, write_model
from structsvm.progress import Monitor
from structsvm.solvers import ConditionalLikelihood, LaRank
from structsvm.tasks.common.selection import sums
from structsvm.tasks.common.selection.choice import ChosenSum
from structsvm.tasks.common.selection.search import Search

X, y = make_sequences(60, n_labels=5, n_words=100, mean_length=8.0, random_state=0)
X_other, y_other = make_sequences(60, n_labels=5, n_words=100, mean_length=8.0, random_state=1)
pytestmark = pytest.mark.filterwarnings("ignore::structsvm.ConvergenceWarning")


def labeler(**params):
    return tasks.SequenceLabeler(random_state=0, **params)


def passes(model):
    return {loss: result.n_iter for loss, result in model.results_.items()}


@pytest.mark.parametrize("is_loaded", [False, True])
def test_both_trainings_resume(is_loaded, tmp_path):
    one = labeler(max_iter=5).fit(X, y)
    two = labeler(max_iter=2, warm_start=True).fit(X, y)
    half = two.emission_.copy()
    if is_loaded:
        two.save(tmp_path / "m")
        two = structsvm.load(tmp_path / "m")
        assert passes(two) == {"log": 2, "hamming": 2}
    kept = two.model_
    two.set_params(max_iter=3).fit(X, y)
    assert passes(two) == passes(one) == {"log": 5, "hamming": 5}
    np.testing.assert_array_equal(two.emission_, one.emission_)
    np.testing.assert_array_equal(kept.emission(), half)  # the model before is as it was
    assert kept.margin.result.n_iter == 2


def test_the_path_of_an_added_margin_begins_higher_and_ends_sooner():
    added = labeler(max_iter=1).fit(X, y).model_.choice.get(ChosenSum).tables["hamming"]
    alone = labeler(loss="hamming", max_iter=1).fit(X, y).model_.choice.table
    assert added[0].C > alone[0].C and len(added) < len(alone)
    scores = [row.score for row in added]
    assert scores.index(max(scores)) == len(scores) - 2


def test_on_other_data_the_sum_goes_on_as_one_model():
    model = labeler(max_iter=2, warm_start=True).fit(X, y)
    before = model.emission_
    model.fit(X_other, y_other)
    assert passes(model) == {"log": 2} and model.temperature_ == 1.0
    stream = labeler().fit(X, y)
    stream.partial_fit(X_other, y_other)
    assert passes(stream) == {"log": 1} and stream.loss_ == "log" and stream.C_ == labeler().fit(X, y).C_
    distance = np.abs(model.emission_[: len(before)] - before).max()
    assert 0.0 < distance < np.abs(before).max()


def test_of_many_held_out_sequences_some_tell_the_temperatures(monkeypatch):
    all_ = labeler(max_iter=1).fit(X, y).validation_["scales"]
    monkeypatch.setattr(sums, "HELD_OUT", 15)
    some = labeler(max_iter=1).fit(X, y).validation_["scales"]
    assert all(some[loss] != scale and some[loss] == pytest.approx(scale, rel=0.5) for loss, scale in all_.items())


class Interrupt(Monitor):
    def end_pass(self, run):
        raise KeyboardInterrupt


@pytest.mark.parametrize("solver", [ConditionalLikelihood, LaRank])
def test_ctrl_c_in_either_training(solver, monkeypatch):
    whole = labeler().fit(X, y)
    solve = solver.solve
    monkeypatch.setattr(solver, "solve", lambda self, *a, **o: solve(self, *a, **o | {"monitor": Interrupt()}))
    model = labeler(warm_start=True)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    monkeypatch.undo()
    assert model.result_.status == "interrupted" and model.loss_ == "log"
    assert passes(model)[{ConditionalLikelihood: "log", LaRank: "hamming"}[solver]] == 1
    assert (len(model.results_) == 2) == (solver is LaRank)
    assert [len(labels) for labels in model.predict(X)] == [len(labels) for labels in y]
    monkeypatch.setattr(Search, "choose", lambda *_: pytest.fail("C is chosen again"))
    model.fit(X, y)
    assert model.result_.status != "interrupted" and passes(model).keys() == {"log", "hamming"}
    assert np.mean([a == b for a, b in zip(model.predict(X_other), whole.predict(X_other), strict=True)]) > 0.9


@pytest.mark.parametrize(
    ("where", "value"),
    [
        (("margin", "loss"), "hinge"),
        (("margin", "C"), "much"),
        (("margin", "fingerprint"), 0.5),
        (("margin", "result", "n_iter"), -1),
        (("choice", "scales", "log"), -1.0),
        (("choice", "scales"), {"log": 1.0}),
        (("choice", "sum"), [0.5]),
    ],
)
def test_forged_sums(where, value, tmp_path):
    labeler(max_iter=1).fit(X, y).save(tmp_path / "m")
    file = read_model(tmp_path / "m", kind="sequence")
    place = file.meta
    for name in where[:-1]:
        place = place[name]
    place[where[-1]] = value
    write_model(tmp_path / "n", "sequence", file.meta, file.arrays)
    with pytest.raises(ModelFileError, match="not a sound sequence model"):
        structsvm.load(tmp_path / "n")


def test_sums_without_one_of_their_states_are_refused(tmp_path):
    labeler(max_iter=1).fit(X, y).save(tmp_path / "m", training_state=True)
    file = read_model(tmp_path / "m", kind="sequence")
    own = [name for name in file.arrays if name.startswith("margin.state.")]
    assert own
    for lost in (own, own[:1]):
        arrays = {name: array for name, array in file.arrays.items() if name not in lost}
        write_model(tmp_path / "n", "sequence", file.meta, arrays)
        with pytest.raises(ModelFileError, match="not a sound sequence model"):
            structsvm.load(tmp_path / "n")
