"""Marks of unknown labels, one rule for all estimators; and labels of test data that training never saw."""

import warnings

import numpy as np
import pytest

import structsvm
from structsvm import AdviceWarning, metrics, tasks
from structsvm._adapter import as_objects
from structsvm.datasets import make_dependency_trees
from structsvm.metrics import SCORERS, label_report, node_accuracy, token_accuracy, token_accuracy_scorer
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
@pytest.mark.parametrize(("mark", "unknown"), [("-1", -1), ("-100", -100), ("-7", -7), ("?", "?")])
def test_text_that_is_a_mark(name, mark, unknown):
    """As files have it; numbers that mean unknown unasked are counted aloud."""
    same = fitted(name, labels_with(None))
    model = fitted(name, labels_with(mark), unknown=unknown)
    assert model.classes_.tolist() == [0, 1, 2] and model.n_unknown_ == N_HIDDEN
    np.testing.assert_array_equal(model.model_.weights, same.model_.weights)
    if mark in ("-1", "-100"):
        with pytest.warns(AdviceWarning, match=f"y is {mark} at {N_HIDDEN} .*, which is read as: not known"):
            assert fitted(name, labels_with(mark, Y.astype(str))).classes_.tolist() == ["0", "1", "2"]


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
    for mark in (None, -100, "-100"):
        y = as_objects([mark if k in (4, 7) else int(label) for k, label in enumerate(signs)])
        for labels in (y, y.tolist(), *([y.astype(int), y.astype(str)] if mark else [])):
            with pytest.raises(ValueError, match=r"y has no label .* in 2 of its rows, row 4 the first: leave these"):
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


@pytest.mark.parametrize("mark", [-100, np.int64(-100), -100.0, "-100"], ids=repr)
def test_heads_and_labels_of_trees(mark):
    trees = make_dependency_trees(12, max_length=7, random_state=0)
    arcs = [[(None, None) if k == 1 else arc for k, arc in enumerate(tree.arcs)] for tree in trees]
    marked = [[(mark, mark) if k == 1 else arc for k, arc in enumerate(tree.arcs)] for tree in trees]
    n = sum(len(tree) > 1 for tree in trees)
    quick = {"C": 0.1, "max_iter": 2, "random_state": 0, "projective": True}
    same = tasks.DependencyParser(**quick).fit(trees, arcs)
    with pytest.warns(AdviceWarning, match=f"y is -100 at {2 * n} heads and labels, which is read as: not known"):
        model = tasks.DependencyParser(**quick).fit(trees, marked)
    assert model.n_unknown_ == same.n_unknown_ == n and model.classes_.tolist() == same.classes_.tolist()
    np.testing.assert_array_equal(model.model_.weights, same.model_.weights)


# ---- labels that training never saw ---------------------------------------------------------------

SAID = r"1 \w+ have a label that training never saw \(9\): they count as wrong"


def case(name):
    """A trained estimator, its inputs, and labels with one that it does not know, where it was right."""
    X, form, quick = PARTIAL.get(name, (ROWS, np.array, {}))
    labels = (Y > 0).astype(int) if name in FLAT else Y
    kind = getattr(tasks, name)
    seed = {"random_state": 0} if "random_state" in kind().get_params() else {}
    model = kind(**seed, **quick).fit(X, form(labels.tolist()))
    found = np.ravel(np.array(model.predict(X))).tolist()
    k = int(np.flatnonzero(np.array(found) == labels)[0])
    return model, X, form(labels.tolist()), form([9 if i == k else label for i, label in enumerate(labels.tolist())])


@pytest.mark.filterwarnings("ignore:.*(C = |not converge|gap)")
@pytest.mark.parametrize("name", [*PARTIAL, *FLAT])
def test_score_counts_them_as_wrong(name):
    model, X, y, unseen = case(name)
    before = model.score(X, y)
    with pytest.warns(AdviceWarning, match=SAID):
        assert model.score(X, unseen) == pytest.approx(before - 1 / 90)


@pytest.mark.parametrize(("name", "scorer"), [("SequenceLabeler", "token_accuracy"), ("GraphLabeler", "node_accuracy")])
def test_scorers_count_them_as_wrong(name, scorer):
    model, X, y, unseen = case(name)
    before = SCORERS[scorer](model, X, y)
    with pytest.warns(AdviceWarning, match=SAID):
        assert SCORERS[scorer](model, X, unseen) == pytest.approx(before - 1 / 90)


PATHS = ["A > B > C", "A > B > D", "A > E", "F > G"]


@pytest.mark.parametrize(
    ("true", "pred", "tree", "path", "hierarchical"),
    [
        ("A > B > X", "A > B > C", 1.0, 2.0, (2 / 3, 2 / 3)),
        ("A > B > X", "A > E", 2.0, 3.0, (1 / 2, 1 / 3)),
        ("A > X > Y", "A > E", 2.0, 3.0, (1 / 2, 1 / 3)),
        ("A > E > X", "A > E", 1.0, 1.0, (1.0, 2 / 3)),
        ("X", "F > G", 3.0, 3.0, (0.0, 0.0)),
    ],
)
def test_paths_that_are_no_nodes_count_by_the_ancestors_they_share(true, pred, tree, path, hierarchical):
    model = tasks.TaxonomyClassifier(" > ", C=1.0, random_state=0).fit(np.eye(4), PATHS)
    taxonomy = model.taxonomy_
    with pytest.warns(AdviceWarning, match=r"1 documents have a label that training never saw"):
        assert metrics.tree_loss([true, "F > G"], [pred, "F > G"], taxonomy) == tree / 2
    with pytest.warns(AdviceWarning):
        assert metrics.path_loss([true], [pred], taxonomy) == path
    with pytest.warns(AdviceWarning):
        assert metrics.hierarchical_scores([true], [pred], taxonomy)[:2] == pytest.approx(hierarchical)


@pytest.mark.parametrize("name", ["hierarchical_f1", "tree_loss", "path_loss"])
def test_no_candidate_has_nan(name):
    model = tasks.TaxonomyClassifier(" > ", C=1.0, random_state=0).fit(np.eye(4), PATHS)
    with pytest.warns(AdviceWarning, match="training never saw"):
        assert np.isfinite(SCORERS[name](model, np.eye(4), ["A > B > X", *PATHS[1:]]))


@pytest.mark.parametrize(
    "kind",
    [kind for entry in tasks.registry.ESTIMATORS if "unknown" in (kind := getattr(tasks, entry.name))().get_params()],
    ids=lambda kind: kind.__name__,
)
def test_marks_are_labels(kind):
    """A list of marks is no label, and was no mark without a word."""
    for mark in (["?"], {"?"}, b"?", object()):
        with pytest.raises(ValueError, match=r"The 'unknown' parameter of .* must be a label or None"):
            kind(unknown=mark).fit([[1.0]], [["a"]])
