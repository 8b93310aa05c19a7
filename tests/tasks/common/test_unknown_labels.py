"""Marks of unknown labels: None and -100 always, -1 or another mark by `unknown`; one rule for all estimators."""

import warnings

import numpy as np
import pytest

import structsvm
from structsvm import AdviceWarning, tasks
from structsvm._adapter import as_objects
from structsvm.metrics import label_report, node_accuracy, token_accuracy, token_accuracy_scorer
from structsvm.tasks.registry import ESTIMATORS

ROWS = np.random.default_rng(0).normal(size=(90, 3))
Y = np.where(ROWS[:, 0] > 0.4, 2, np.where(ROWS[:, 1] > 0.0, 1, 0))
HIDDEN = np.arange(90) % 3 == 1
N_HIDDEN = int(HIDDEN.sum())
PATH = [(0, 1), (1, 2)]


def by_threes(values):
    return [list(values[k : k + 3]) for k in range(0, 90, 3)]


def as_column(values):
    return (
        np.array(values) if all(isinstance(value, int | float | np.number) for value in values) else as_objects(values)
    )


# By estimator: the inputs, y of one label per row, and the parameters of a quick training.
PARTIAL = {
    "SequenceLabeler": (list(ROWS.reshape(30, 3, 3)), by_threes, {"C": 1.0}),
    "GraphLabeler": ([(rows, PATH) for rows in ROWS.reshape(30, 3, 3)], by_threes, {"C": 1.0}),
    "TaxonomyClassifier": (ROWS, as_column, {"C": 1.0, "loss": "log"}),
    "AmbiguousClassifier": (ROWS, list, {"C": 1.0, "loss": "log"}),
}
EVERY = pytest.mark.parametrize("name", PARTIAL)


def labels_with(mark, labels=Y):
    return [mark if hidden else label for label, hidden in zip(labels.tolist(), HIDDEN.tolist(), strict=True)]


def fitted(name, labels, **params):
    X, form, quick = PARTIAL[name]
    model = getattr(tasks, name)(random_state=0, max_iter=5, **quick, **params)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*(not converge|gap|passes)")
        return model.fit(X, form(labels))


def scored(model, name, labels):
    X, form, _ = PARTIAL[name]
    return model.score(X, form(labels))


@EVERY
@pytest.mark.parametrize(
    ("mark", "unknown"),
    [(None, None), (None, "auto"), (-1, -1), (-100, -100), (np.int64(-1), -1), (np.int32(-100), -100), (-7, -7)],
    ids=str,
)
def test_marks_that_are_named_are_unknown_without_a_word(name, mark, unknown, tmp_path):
    same = fitted(name, labels_with(None))
    model = fitted(name, labels_with(mark), unknown=unknown)
    assert model.classes_.tolist() == [0, 1, 2] and model.n_unknown_ == same.n_unknown_ == N_HIDDEN
    np.testing.assert_array_equal(model.model_.weights, same.model_.weights)
    assert scored(model, name, labels_with(mark)) == scored(same, name, labels_with(None))
    model.save(tmp_path / "m")
    again = structsvm.load(tmp_path / "m")
    assert scored(again, name, labels_with(mark)) == scored(model, name, labels_with(mark))


@EVERY
@pytest.mark.parametrize("mark", [-1, -100, np.int64(-1), -1.0])
@pytest.mark.parametrize("others", [[0, 1, 2], [5, -3, 7], ["a", "b", "c"]], ids=str)
def test_numbers_that_mean_unknown_are_counted_aloud(name, mark, others):
    labels = np.array(others, dtype=object)[Y]
    with pytest.warns(AdviceWarning, match=f"y is {int(mark)} at {N_HIDDEN} .*, which is read as: not known") as said:
        model = fitted(name, labels_with(mark, labels))
    assert len(said) == 1
    assert set(model.classes_.tolist()) == set(others) and model.n_unknown_ == N_HIDDEN
    with pytest.warns(AdviceWarning, match=f"y is {int(mark)} at {N_HIDDEN} "):
        scored(model, name, labels_with(mark, labels))


@EVERY
def test_unknown_is_none(name):
    model = fitted(name, labels_with(-1), unknown=None)
    assert model.classes_.tolist() == [-1, 0, 1, 2] and model.n_unknown_ == 0
    assert 0.0 < scored(model, name, labels_with(-1)) < 1.0
    with pytest.warns(AdviceWarning, match="y is -100 at"):
        assert fitted(name, labels_with(-100), unknown=None).classes_.tolist() == [0, 1, 2]


@EVERY
@pytest.mark.parametrize("mark", [-1, -100])
def test_one_label_beside_a_mark_is_an_error(name, mark):
    with pytest.raises(ValueError, match=f"y has one label alone, 1: y is {mark} at {N_HIDDEN} .*unknown=") as error:
        fitted(name, labels_with(mark, np.ones(90, dtype=int)))
    assert mark == -100 or "unknown=None makes -1 a label" in str(error.value)


@EVERY
def test_marks_in_sets_are_refused(name):
    labels = labels_with(-1)
    labels[0] = {0, -1}
    with pytest.raises(ValueError, match="-1"):
        fitted(name, labels, unknown=-1)


def test_strings_are_marks():
    assert fitted("SequenceLabeler", labels_with("?", Y.astype(str)), unknown="?").classes_.tolist() == ["0", "1", "2"]


FLAT = [entry.name for entry in ESTIMATORS if entry.kind in ("multiclass", "binary")]


@pytest.mark.parametrize("name", FLAT)
def test_machines_that_do_not_learn_from_unknown_labels(name):
    kind, signs = getattr(tasks, name), np.where(ROWS[:, 0] > 0.0, 1, -1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert kind().fit(ROWS, signs).classes_.tolist() == [-1, 1]
    for mark in (None, -100):
        y = as_objects([mark if k in (4, 7) else int(label) for k, label in enumerate(signs)])
        for labels in (y, y.tolist(), *([y.astype(int)] if mark else [])):
            with pytest.raises(ValueError, match=rf"y\[4\] is {mark}, .*\(2 rows have such\).*leave these rows out"):
                kind().fit(ROWS, labels)


@pytest.mark.parametrize(
    "score", [token_accuracy, lambda *args, **of: label_report(*args, **of)["a"].recall, node_accuracy]
)
def test_metrics_leave_unknown_labels_out(score):
    pred = [["a", "b"], ["a"]]
    assert score([["a", None], ["a"]], pred) == 1.0
    with pytest.warns(AdviceWarning, match="y is -100 at 1 "):
        assert score([["a", -100], ["a"]], pred) == 1.0
    with pytest.warns(AdviceWarning, match="y is -1 at 1 "):
        assert score([["a", -1], ["a"]], pred) == 1.0
    assert score([["a", "b"], ["?"]], pred, unknown="?") == 1.0


def test_scorers_have_the_mark_of_the_estimator():
    X = PARTIAL["SequenceLabeler"][0]
    model = fitted("SequenceLabeler", labels_with(-7), unknown=-7)
    y = by_threes(labels_with(-7))
    assert token_accuracy_scorer(model, X, y) == model.score(X, y)
