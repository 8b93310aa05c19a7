"""Classifiers within scikit-learn's one against the rest and one against one, with their own defaults."""

import numpy as np
import pytest
from kernel_kinds import CLASSIFIERS
from sklearn.model_selection import KFold, cross_val_predict, cross_val_score
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier

from structsvm.metrics import chunk_f1_scorer
from structsvm.tasks import SequenceLabeler

# Four classes, two of them with few examples: C="auto" has next to nothing to hold out of these.
LABELS = np.repeat([0, 1, 2, 3], [30, 24, 2, 1])
X = np.random.default_rng(0).normal(size=(57, 5))
X[np.arange(57), LABELS] += 6.0


@pytest.mark.parametrize("around", [OneVsRestClassifier, OneVsOneClassifier])
@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_one_against_others(kind, around):
    seed = {"random_state": 0} if "random_state" in kind().get_params() else {}
    assert around(kind(**seed)).fit(X, LABELS).score(X, LABELS) > 0.9


TOKENS = [["the", "cat"], ["a", "dog"], ["the", "dog"], ["Ann", "ran"], ["a", "cat"], ["Bob", "sat"]] * 4
PHRASES = [["B-X", "I-X"] if words[0].islower() else ["O", "O"] for words in TOKENS]


def test_predictions_of_sequences_by_cross_validation():
    """One array of equally long sequences; others are refused, and the page has the loop for them."""
    labeler = SequenceLabeler(C=1.0, random_state=0)
    found = cross_val_predict(labeler, TOKENS, PHRASES, cv=3)
    assert found.shape == (24, 2) and found.tolist() == PHRASES
    with pytest.raises(ValueError, match="inhomogeneous"):
        cross_val_predict(labeler, [*TOKENS, ["the"]], [*PHRASES, ["B-X"]], cv=3)


@pytest.mark.filterwarnings("ignore::structsvm.AdviceWarning")
def test_folds_without_a_label():
    """A label that training has not seen, or that there is nothing of to score, costs no nan."""
    labels = [row if k < 18 else ["B-Y", "I-Y"] for k, row in enumerate(PHRASES)]
    scores = cross_val_score(
        SequenceLabeler(C=1.0, random_state=0), TOKENS, labels, cv=KFold(4), scoring=chunk_f1_scorer
    )
    assert scores[-1] == 0.0 and np.isfinite(scores).all() and scores[0] > 0.5
