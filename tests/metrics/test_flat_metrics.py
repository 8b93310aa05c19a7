"""Scores over tokens with averages: scikit-learn's on all tokens as one list, for labels of any type."""

from itertools import chain

import numpy as np
import pytest
import sklearn.metrics as theirs
from sklearn.model_selection import cross_val_score

from structsvm import AdviceWarning, metrics
from structsvm.tasks import SequenceLabeler

rng = np.random.default_rng(0)
LABELS = ["B-X", "I-X", "O", "B-Y"]
TRUE = [[LABELS[k] for k in rng.integers(0, 4, n)] for n in (3, 5, 1, 8)]
PRED = [[label if rng.random() < 0.6 else LABELS[rng.integers(0, 3)] for label in labels] for labels in TRUE]
FLAT = list(chain.from_iterable(TRUE)), list(chain.from_iterable(PRED))


@pytest.mark.parametrize("average", ["weighted", "macro", "micro", None])
@pytest.mark.parametrize("labels", [None, ["B-X", "I-X", "B-Y"], ["B-X", "nowhere"]])
@pytest.mark.parametrize("name", ["precision", "recall", "f1"])
def test_scores_are_those_of_scikit_learn(name, labels, average):
    options = {"labels": labels, "average": average, "zero_division": 0.0}
    wanted = getattr(theirs, f"{name}_score")(*FLAT, **options)
    np.testing.assert_allclose(getattr(metrics, f"flat_{name}_score")(TRUE, PRED, **options), wanted)


def test_report():
    assert metrics.flat_classification_report(TRUE, PRED, digits=3) == theirs.classification_report(
        *FLAT, digits=3, zero_division=0.0
    )
    found = metrics.flat_classification_report(TRUE, PRED, labels=["B-X"], output_dict=True)
    assert found["B-X"] == theirs.classification_report(*FLAT, output_dict=True, zero_division=0.0)["B-X"]


def test_labels_of_any_type_and_unknown_ones():
    assert metrics.flat_recall_score([[(1, 2), "a", 7]], [[(1, 2), "a", "a"]], average="macro") == pytest.approx(2 / 3)
    with pytest.warns(AdviceWarning, match="y is -100 at 1 tokens that the scores leave out"):
        assert metrics.flat_f1_score([["a", -100]], [["a", "b"]]) == 1.0
    with pytest.raises(ValueError, match="average must be"):
        metrics.flat_f1_score(TRUE, PRED, average="binary")


@pytest.mark.filterwarnings("ignore:.*training never saw:structsvm.AdviceWarning")
def test_folds_without_a_label():
    X = [["a", "b"], ["b", "b"], ["a", "a"], ["c", "b"]]
    y = [["B-X", "O"], ["O", "O"], ["B-X", "B-X"], ["B-Y", "O"]]
    for name in ("flat_f1", "flat_precision", "flat_recall", "chunk_f1", "token_accuracy"):
        scores = cross_val_score(SequenceLabeler(C=1.0, random_state=0), X, y, cv=4, scoring=metrics.SCORERS[name])
        assert np.isfinite(scores).all()


def test_names_with_newlines_are_one_line_of_the_report():
    report = metrics.flat_classification_report([["a\nb", "c"]], [["a\nb", "a\nb"]])
    assert "a\\nb" in report and len(report.splitlines()) == 8
    assert "a\nb" in metrics.flat_classification_report([["a\nb", "c"]], [["a\nb", "c"]], output_dict=True)
