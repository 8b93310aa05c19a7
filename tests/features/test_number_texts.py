"""Numbers as text among named features: each is a feature of its own, and where values may be meant, this is said."""

import numpy as np
import pytest

from structsvm import AdviceWarning
from structsvm.features.encoder import FeatureEncoder
from structsvm.tasks import GraphLabeler, SequenceLabeler

DRAWN = np.random.default_rng(0)
NUMBERS = DRAWN.normal(size=(20, 3)).round(4).tolist()
SEQUENCES = [[{"x": x, "w": "w"} for x in row] for row in NUMBERS]
LABELS = [["P" if x > 0.0 else "Q" for x in row] for row in NUMBERS]
TEXTS = [[{**token, "x": str(token["x"])} for token in row] for row in SEQUENCES]
PATH = [(0, 1), (1, 2)]


def label(X):
    return SequenceLabeler(C=1.0, loss="hamming", max_iter=5).fit(X, LABELS)


def label_nodes(X):
    return GraphLabeler(C=1.0, max_iter=5).fit([(row, PATH) for row in X], LABELS)


@pytest.mark.parametrize("fit", [label, label_nodes])
@pytest.mark.filterwarnings("ignore:.*gap of .*after 5 passes")
def test_numbers_as_text_are_said(fit):
    fit(SEQUENCES)  # warnings are errors
    with pytest.warns(AdviceWarning, match=r"the feature 'x' has numbers as text, such as '.*', .*'x:.*': float\(\)"):
        fit(TEXTS)
    mixed = [SEQUENCES[0], TEXTS[1], *SEQUENCES[2:]]
    with pytest.warns(AdviceWarning, match="the feature 'x' has numbers as text beside numbers"):
        fit(mixed)
    with pytest.warns(AdviceWarning, match="numbers as text beside numbers, such as 'nan'"):
        fit([[{"x": "nan", "w": "w"}, *SEQUENCES[0][1:]], *SEQUENCES[1:]])


@pytest.mark.parametrize(
    "values",
    [
        [str(k) for k in range(60)],  # codes
        [f"{k}.{k}" for k in range(59)] + ["word"],
        [f"{k % 9}.5" for k in range(60)],  # few, as of bins
        ["1.5.2", "v2.0"] * 30,
    ],
    ids=["codes", "words", "bins", "versions"],
)
def test_names_that_look_like_numbers_are_names(values):
    FeatureEncoder().fit([[{"x": value}] for value in values])  # warnings are errors


@pytest.mark.parametrize("fit", [label, label_nodes])
def test_a_false_is_no_unknown_feature(fit):
    """Tokens whose only feature is 0 or False are known: their labels are no guesses."""
    X = [[{"x": x > 1.0} for x in row] for row in NUMBERS]
    model = fit(X)
    assert len(model.predict(X if fit is label else [(row, PATH) for row in X])) == len(X)  # warnings are errors
