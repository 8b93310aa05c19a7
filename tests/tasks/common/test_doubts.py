"""Outputs from which nothing can be learnt: an error, or a warning, of every estimator of labels."""

import importlib

import numpy as np
import pytest
from cases import CASES

from structsvm import AdviceWarning, tasks
from structsvm._adapter import as_objects
from structsvm.tasks.common.labels import warn_of_odd_labels
from structsvm.tasks.registry import ESTIMATORS

ROWS = np.random.default_rng(1).normal(size=(24, 3))


def labelled(kind):
    """A function that makes y of 24 labels, and X for it; None: there are no labels of which all may be the same."""
    if kind is tasks.SequenceLabeler:
        return lambda labels: (
            [ROWS[3 * k : 3 * k + 3] for k in range(8)],
            [labels[3 * k : 3 * k + 3] for k in range(8)],
        )
    if kind is tasks.GraphLabeler:
        pairs = [(ROWS[2 * k : 2 * k + 2], [(0, 1)]) for k in range(12)]
        return lambda labels: (pairs, [labels[2 * k : 2 * k + 2] for k in range(12)])
    if kind in (tasks.MultilabelClassifier, tasks.AmbiguousClassifier):
        return lambda labels: (ROWS, [{label} for label in labels])
    return lambda labels: (ROWS, np.array(labels))


# Their outputs are structures, grades or classes of a binary problem, which is refused already.
OTHERS = ("GrammarParser", "DependencyParser", "SequenceAligner", "SemanticParser", "ConceptLabeler", "Ranker",
          "ItemOrderer", "StructuredSVM")  # fmt: skip
KINDS = {case.kind.__name__: case for case in reversed(CASES.values()) if case.kind.__name__ not in OTHERS}
kinds = pytest.mark.parametrize("case", KINDS.values(), ids=KINDS)


def quick(case):
    return case.make() if case.kind is not tasks.SequenceLabeler else case.make(max_iter=3, C=1.0, loss="hamming")


@kinds
def test_a_single_label_is_never_learnt_in_silence(case):
    X, y = labelled(case.kind)(["a"] * 24)
    if case.kind in (tasks.SequenceLabeler, tasks.MultilabelClassifier):
        with pytest.warns(AdviceWarning, match="all 24 labels in y are the same"):
            quick(case).fit(X, y)
    else:
        with pytest.raises(ValueError, match=r"2 (classes|labels)"):
            quick(case).fit(X, y)


@kinds
@pytest.mark.filterwarnings("ignore:.*(gap|converge|C = )")
def test_a_single_label_of_weight_is_never_learnt_in_silence(case):
    """Examples of weight 0 count as left out, as in scikit-learn's machines."""
    X, y = labelled(case.kind)(["a"] * 12 + ["b"] * 12)
    weight = np.repeat([1.0, 0.0], len(y) // 2)
    if quick(case)._takes_one_label:
        with pytest.warns(AdviceWarning, match="all 12 labels in y are the same"):
            quick(case).fit(X, y, sample_weight=weight)
    else:
        with pytest.raises(ValueError, match="class"):
            quick(case).fit(X, y, sample_weight=weight)
    weight[-1] = 1.0
    quick(case).fit(X, y, sample_weight=weight)  # warnings are errors


@pytest.mark.parametrize("name", [name for name, case in KINDS.items() if case.is_stream])
@pytest.mark.filterwarnings("ignore:.*(gap|converge|C = )")
def test_a_batch_of_a_stream_may_have_weight_on_one_class(name):
    case = KINDS[name]
    weight = (np.arange(len(case.X)) == 0).astype(float)
    case.make().partial_fit(case.X, case.y, sample_weight=weight)  # warnings are errors


@kinds
@pytest.mark.filterwarnings("ignore::structsvm.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:The number of unique classes")  # scikit-learn's
def test_another_label_per_row_is_never_learnt_in_silence(case):
    X, y = labelled(case.kind)([f"row {k}" for k in range(24)])
    if case.kind in (tasks.LaSVMClassifier, tasks.HullerClassifier, tasks.TrackingClassifier,
                     tasks.MultivariateClassifier):  # fmt: skip
        with pytest.raises(ValueError, match="class"):
            quick(case).fit(X, y)
    elif case.kind is not tasks.MultilabelClassifier:  # its sets may all differ
        with pytest.warns(AdviceWarning, match="24 of the 24 labels in y differ"):
            quick(case).fit(X, y)


def test_few_long_sequences_take_the_log_loss_and_say_so():
    words = [["x", "y", "z"][k % 3] for k in range(500)]
    with pytest.warns(AdviceWarning, match="1 sequence of 500 tokens on average: are the ends of sentences missing"):
        labeler = tasks.SequenceLabeler(max_iter=3, random_state=0).fit([words], [[word.upper() for word in words]])
    assert labeler.loss_ == "log"
    short = [words[k : k + 50] for k in range(0, 500, 50)]
    assert (
        tasks.SequenceLabeler(max_iter=3, random_state=0).fit(short, [list(map(str.upper, w)) for w in short]).loss_
        == "hamming"
    )


# ---- labels that are missing values as text, empty, or two ways to write one ------------------------


@kinds
@pytest.mark.parametrize("odd", ["nan", "<NA>", "", " "])
@pytest.mark.filterwarnings("ignore:.*(gap|converge|C = )")
def test_missing_values_as_text_are_named(case, odd):
    X, y = labelled(case.kind)([odd if k % 2 else "a" for k in range(24)])
    with pytest.warns(AdviceWarning, match=f"y has the label '{odd}', which is a class like the others"):
        quick(case).fit(X, y)


@pytest.mark.parametrize("labels", [[1, "1"], ["PER", "PER "], ["1", 1.5, 1], [" O", "O"]], ids=str)
def test_two_ways_to_write_a_label_are_named(labels):
    with pytest.warns(AdviceWarning, match="y has the labels .* and .*, which are two: write one of them"):
        warn_of_odd_labels(labels)


def test_usual_labels_are_not_named():
    warn_of_odd_labels([1, 1.5, "None", "Nan", "nancy", "?", ("a", "b"), "a", "A", -1])  # warnings are errors
    warn_of_odd_labels(np.arange(3))


@pytest.mark.filterwarnings("ignore:.*(gap|converge|C = )")
def test_odd_labels_of_a_stream_are_named_once():
    case = CASES["larank"]
    y = as_objects(["nan" if k % 2 else "a" for k in range(60)])
    model = case.make()
    with pytest.warns(AdviceWarning, match="the label 'nan'"):
        model.partial_fit(case.X, y)
    model.partial_fit(case.X, y)  # warnings are errors


def test_a_taxonomy_knows_some_labels_in_part():
    y = as_objects([{"a", "b"} if k % 2 else f"row {k}" for k in range(24)])
    tasks.TaxonomyClassifier(C=1.0, max_iter=2, random_state=0).fit(ROWS, y)


@pytest.mark.parametrize("entry", ESTIMATORS, ids=lambda entry: entry.name)
def test_files_are_no_examples(entry, tmp_path):
    """Every estimator refuses paths and texts, most by the name of the reader, which is there."""
    (tmp_path / "train.txt").write_text("a b\n")
    estimator = getattr(tasks, entry.name)()
    for X in ("train.txt", "a text", str(tmp_path / "train.txt"), tmp_path / "train.txt"):
        with pytest.raises(ValueError, match=r"learns from examples, not from the|must be a list of") as said:
            estimator.fit(X, ["a"] * 9)
        if "learns from examples" in str(said.value):
            assert ("the path" in str(said.value)) is (str(tmp_path) in str(X))
    if reader := getattr(estimator, "_reader", ""):
        module, _, name = reader.rpartition(".")
        assert callable(getattr(importlib.import_module(f"structsvm.{module}"), name))
