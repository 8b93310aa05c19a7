"""Classifiers within scikit-learn's one against the rest and one against one, with their own defaults."""

import numpy as np
import pytest
from cases import CASES
from kernel_kinds import CLASSIFIERS
from sklearn.model_selection import KFold, cross_val_predict, cross_val_score
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.utils import _safe_indexing

from structsvm.metrics import chunk_f1_scorer
from structsvm.tasks import Ranker, SequenceLabeler

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


# A case of each estimator that is trained on inputs and outputs; a ranker's parts need their groups.
CROSSED = list({case.kind: name for name, case in reversed(CASES.items()) if case.y is not None}.values())
CROSSED = [name for name in CROSSED if CASES[name].kind is not Ranker]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CROSSED)
def test_predictions_by_cross_validation(name):
    """Outputs of any lengths, in the order of the inputs."""
    case, folds = CASES[name], KFold(3, shuffle=True, random_state=0)
    X, y = (value if hasattr(value, "shape") else list(value) for value in (case.X, case.y))
    found = cross_val_predict(case.make(), X, y, cv=folds)
    for known, new in folds.split(X):
        (some, of_some), (others, _) = ([_safe_indexing(value, part) for value in (X, y)] for part in (known, new))
        predicted = case.make().fit(some, of_some).predict(others)
        for i, output in zip(new, predicted, strict=True):
            np.testing.assert_equal(listed(found[i]), listed(output))


def listed(output):
    return output.tolist() if isinstance(output, np.ndarray) else output


@pytest.mark.filterwarnings("ignore::structsvm.AdviceWarning")
def test_folds_without_a_label():
    """A label that training has not seen, or that there is nothing of to score, costs no nan."""
    labels = [row if k < 18 else ["B-Y", "I-Y"] for k, row in enumerate(PHRASES)]
    scores = cross_val_score(
        SequenceLabeler(C=1.0, random_state=0), TOKENS, labels, cv=KFold(4), scoring=chunk_f1_scorer
    )
    assert scores[-1] == 0.0 and np.isfinite(scores).all() and scores[0] > 0.5
