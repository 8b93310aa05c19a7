"""Answers that say which label is wrong."""

import numpy as np
import pytest
from sklearn.base import clone

from structsvm.datasets import make_dependency_trees, make_sequences
from structsvm.tasks import AmbiguousClassifier, DependencyParser, Not, SequenceLabeler, TaxonomyClassifier

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(60, 4))
CLASSES = np.array(["a", "b", "c"])[ROWS[:, :3].argmax(axis=1)].tolist()
TAXONOMY = [("root", "p"), ("root", "c"), ("p", "a"), ("p", "b")]
SENTENCES, TAGS = make_sequences(40, mean_length=6, random_state=0)
SENTENCES = [list(x) for x in SENTENCES]
LABELS = sorted({tag for y in TAGS for tag in y})

ESTIMATORS = {
    "taxonomy": TaxonomyClassifier(TAXONOMY, C=1.0, loss="log", random_state=0),
    "flat": TaxonomyClassifier(C=1.0, loss="log", random_state=0),
    "ambiguous": AmbiguousClassifier(C=1.0, loss="log", random_state=0),
}


def proba(model, X):
    return model.predict_proba(X)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_it_is_the_set_of_the_others(name):
    """In `fit`, `partial_fit`, `teach` and `consolidate` alike."""
    denied = [Not("a") if label == "b" and i % 2 else label for i, label in enumerate(CLASSES)]
    others = [{"b", "c"} if isinstance(label, Not) else label for label in denied]
    ours, theirs = clone(ESTIMATORS[name]).fit(ROWS, denied), clone(ESTIMATORS[name]).fit(ROWS, others)
    np.testing.assert_array_equal(proba(ours, ROWS), proba(theirs, ROWS))
    ours.teach(ROWS[0], Not("a", "b"))
    theirs.teach(ROWS[0], "c")
    np.testing.assert_array_equal(proba(ours, ROWS), proba(theirs, ROWS))
    np.testing.assert_array_equal(proba(ours.consolidate(), ROWS), proba(theirs.consolidate(), ROWS))
    ours.partial_fit(ROWS[:1], [Not("c")])
    theirs.partial_fit(ROWS[:1], [{"a", "b"}])
    np.testing.assert_array_equal(proba(ours, ROWS), proba(theirs, ROWS))


def test_it_is_the_set_of_the_others_at_tokens():
    first = TAGS[0][0]
    denied = [[Not(first) if tag == first else tag for tag in y] if i % 3 == 1 else y for i, y in enumerate(TAGS)]
    others = [[{*LABELS} - {first} if isinstance(tag, Not) else tag for tag in y] for y in denied]
    assert any(isinstance(tag, Not) for y in denied for tag in y)
    model = SequenceLabeler(C=1.0, loss="log", random_state=0)
    ours, theirs = clone(model).fit(SENTENCES, denied), clone(model).fit(SENTENCES, others)
    assert ours.predict_marginals(SENTENCES)[0].tolist() == theirs.predict_marginals(SENTENCES)[0].tolist()
    ours.teach(SENTENCES[0], [Not(first), *[None] * (len(SENTENCES[0]) - 1)])
    theirs.teach(SENTENCES[0], [{*LABELS} - {first}, *[None] * (len(SENTENCES[0]) - 1)])
    assert ours.predict_marginals(SENTENCES)[0].tolist() == theirs.predict_marginals(SENTENCES)[0].tolist()


def test_a_wrong_label_becomes_less_likely():
    model = SequenceLabeler(C=1.0, loss="log", random_state=0).fit(SENTENCES[:20], TAGS[:20])
    x = SENTENCES[30]
    (best,) = model.predict([x])
    place = model.classes_.tolist().index(best[0])
    before = model.predict_marginals([x])[0][0, place]
    for _ in range(10):
        model.teach(x, [Not(best[0]), *[None] * (len(x) - 1)])
    assert model.predict_marginals([x])[0][0, place] < before / 2


def test_an_inner_node_stands_for_what_is_below():
    model = clone(ESTIMATORS["taxonomy"])
    denied = [Not("p") if i < 5 else label for i, label in enumerate(CLASSES)]
    as_c = ["c" if i < 5 else label for i, label in enumerate(CLASSES)]
    ours, theirs = clone(model).fit(ROWS, denied), clone(model).fit(ROWS, as_c)
    np.testing.assert_array_equal(proba(ours, ROWS), proba(theirs, ROWS))
    before = proba(ours, ROWS[6:7])[0]
    after = proba(ours.teach(ROWS[6], Not("p")), ROWS[6:7])[0]
    assert after[2] > before[2]


def test_where_labels_are_nodes_an_inner_node_is_itself():
    y = ["p" if i % 4 == 0 else label for i, label in enumerate(CLASSES)]
    model = TaxonomyClassifier(TAXONOMY, C=1.0, loss="log", leaf_only=False, random_state=0)
    ours = clone(model).fit(ROWS, [Not("p") if i == 1 else label for i, label in enumerate(y)])
    theirs = clone(model).fit(ROWS, [{*y} - {"p"} if i == 1 else label for i, label in enumerate(y)])
    np.testing.assert_array_equal(proba(ours, ROWS), proba(theirs, ROWS))


def test_labels_that_come_later_are_among_the_others():
    model = AmbiguousClassifier(C=1.0, loss="log", random_state=0)
    for i in range(10):
        model.teach(ROWS[i], "a" if i % 2 else "b")
    model.teach(ROWS[11], Not("a")).teach(ROWS[12], "c").consolidate()
    y = ["a" if i % 2 else "b" for i in range(10)]
    whole = AmbiguousClassifier(C=1.0, loss="log", random_state=0)
    whole.fit(ROWS[[*range(10), 11, 12]], [*y, {"b", "c"}, "c"])
    np.testing.assert_array_equal(proba(model, ROWS), proba(whole, ROWS))


@pytest.mark.parametrize("name", ESTIMATORS)
def test_first_answers_may_be_denials(name):
    model = clone(ESTIMATORS[name])
    for i, answer in enumerate([Not("a"), Not("a"), "a", Not("b"), "b"]):
        model.teach(ROWS[i], answer)
    assert model.classes_.tolist() == ["a", "b"]


def test_the_first_tokens_may_be_denials():
    model = SequenceLabeler(C=1.0, loss="log", random_state=0)
    model.teach(["x"], [Not("a")]).teach(["y"], ["a"])
    assert model.teach(["z", "y"], ["b", None]).classes_.tolist() == ["a", "b"]


def test_first_answers_may_deny_all_that_is_below():
    model = TaxonomyClassifier(" > ", C=1.0, loss="log", random_state=0)
    for i, answer in enumerate([Not("a"), "a > x", "a > y"]):
        model.teach(ROWS[i], answer)
    assert not hasattr(model, "model_")
    assert model.teach(ROWS[3], "b > z").classes_.tolist() == ["a > x", "a > y", "b > z"]


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("kind", ["array", "series"])
def test_marks_are_found_in_objects(name, kind):
    pandas = pytest.importorskip("pandas")
    denied = [Not("a") if label == "b" and i % 2 else label for i, label in enumerate(CLASSES)]
    y = np.array(denied, dtype=object) if kind == "array" else pandas.Series(denied, index=range(5, 65))
    ours, theirs = clone(ESTIMATORS[name]).fit(ROWS, y), clone(ESTIMATORS[name]).fit(ROWS, denied)
    np.testing.assert_array_equal(proba(ours, ROWS), proba(theirs, ROWS))
    assert ours.score(ROWS, y) == theirs.score(ROWS, denied)


@pytest.mark.parametrize("kind", ["rows", "table"])
def test_marks_are_found_in_rows_of_tokens(kind):
    X, y = [["a", "b"], ["c", "d"], ["a", "d"]], [["O", "B-X"], ["O", "B-Y"], ["O", Not("B-X")]]
    objects = np.array(y, dtype=object) if kind == "table" else [np.array(labels, dtype=object) for labels in y]
    model = SequenceLabeler(C=1.0, loss="log", random_state=0)
    ours, theirs = clone(model).fit(X, objects), clone(model).fit(X, y)
    assert ours.predict_marginals(X)[2].tolist() == theirs.predict_marginals(X)[2].tolist()
    ours.teach(X[0], objects[2])
    theirs.teach(X[0], y[2])
    assert ours.predict_marginals(X)[2].tolist() == theirs.predict_marginals(X)[2].tolist()


@pytest.mark.parametrize(
    "whole",
    [Not("B-X"), {"O", "B-X"}, frozenset({"O", "B-X"}), {"O": 1.0, "B-X": 0.5}],
    ids=lambda one: type(one).__name__,
)
def test_no_mark_stands_for_the_labels_of_a_sequence(whole):
    X, y = [["a", "b"], ["c", "d"], ["a", "d"]], [["O", "B-X"], ["O", "B-Y"], whole]
    message = r"sequence \d: y holds .*stands for a token's label, in a list with an entry per token"
    model = SequenceLabeler(C=1.0, random_state=0)
    with pytest.raises(ValueError, match=message.replace(r"\d", "2")):
        model.fit(X, y)
    with pytest.raises(ValueError, match=message):
        model.teach(X[0], whole)
    model.teach(X[0], y[0]).teach(X[1], y[1])
    with pytest.raises(ValueError, match=message):
        model.teach(X[0], whole)


def test_flat_labels_may_have_marks():
    X, y = [["a", "b"], ["c", "d"]], ["O", "B-X", Not("O"), {"O", "B-X"}]
    model = SequenceLabeler(C=1.0, loss="log", random_state=0)
    ours, theirs = clone(model).fit(X, y), clone(model).fit(X, [y[:2], y[2:]])
    assert ours.predict_marginals(X)[1].tolist() == theirs.predict_marginals(X)[1].tolist()


def test_scores_count_what_is_not_denied():
    bags = AmbiguousClassifier(C=1.0, loss="log", random_state=0).fit(ROWS, CLASSES)
    best = bags.predict(ROWS[:4]).tolist()
    assert bags.score(ROWS[:4], [Not(best[0]), Not("x"), best[2], None]) == pytest.approx(2 / 3)
    assert bags.score(ROWS[:2], [Not(best[0]), Not("x")]) == 0.5
    model = TaxonomyClassifier(C=1.0, loss="log", random_state=0).fit(ROWS, CLASSES)
    best = model.predict(ROWS[:2]).tolist()
    assert model.score(ROWS[:2], [Not(best[0]), best[1]]) == 0.5
    assert model.score(ROWS[:2], [Not(*{"a", "b", "c"} - {best[0]}), best[1]]) == 1.0
    labeler = SequenceLabeler(C=1.0, loss="log", random_state=0).fit(SENTENCES, TAGS)
    (found,) = labeler.predict(SENTENCES[:1])
    assert labeler.score(SENTENCES[:1], [[Not(label) for label in found]]) == 0.0


def test_what_it_refuses():
    with pytest.raises(ValueError, match="one at least"):
        Not()
    for wrong in ({"a"}, ["a"], None):
        with pytest.raises(TypeError, match="each as an argument of its own"):
            Not(wrong)
    assert repr(Not("b", "a")) == "Not('a', 'b')" and Not("b", "a") == Not("a", "b")
    model = clone(ESTIMATORS["flat"]).fit(ROWS, CLASSES)
    for answer, message in (
        (Not("a", "b", "c"), r"leaves none of the labels 'a', 'b', 'c'"),
        (Not("x"), r"Not\('x'\), and the model has no such label"),
    ):
        before = model.model_
        with pytest.raises(ValueError, match=message):
            model.teach(ROWS[0], answer)
        assert model.model_ is before
    segments = SequenceLabeler(segments=True, random_state=0)
    with pytest.raises(ValueError, match=r"segments do not take Not"):
        segments.fit([["a", "b"]] * 3, [["B-x", Not("O")]] * 3)
    trees = make_dependency_trees(8, max_length=5, random_state=0)
    with pytest.raises(ValueError, match=r"DependencyParser does not take Not"):
        DependencyParser(random_state=0).fit(trees, [[Not("x"), *tree.arcs[1:]] for tree in trees])
