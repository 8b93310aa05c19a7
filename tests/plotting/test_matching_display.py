"""MatchingDisplay: where its marks stand."""

import matplotlib as mpl
import numpy as np
import pytest

mpl.use("Agg")

import matplotlib.pyplot as plt

from structsvm.plotting import MatchingDisplay


def test_marks_stand_at_the_pairs():
    display = MatchingDisplay.from_predictions(
        [1, -1], [0, 2], ["a", "b"], "xyz", scores=[[0.0, 2.0, 1.0], [-np.inf] * 3]
    )
    true, predicted = (marks.get_offsets().tolist() for marks in display.ax_.collections)
    assert true == [[1.0, 0.0]] and predicted == [[0.0, 0.0], [2.0, 1.0]]  # column, row
    assert [text.get_text() for text in display.ax_.get_yticklabels()] == ["a", "b"]
    assert [text.get_text() for text in display.ax_.get_legend().get_texts()] == ["true", "predicted"]
    assert display.ax_.images[0].get_array().mask.tolist() == [[False] * 3, [True] * 3]
    display.plot(ax=plt.subplots()[1])
    plt.close("all")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0], [0, 1], "ab", "x"), "y_true must be 2 integers from -1 to 0"),
        (([0, -1], [0, 1], "ab", "x"), "y_pred must be 2 integers"),
        (([0, -1], [0, -1], "ab", "x", [[1.0]]), r"scores must have shape \(2, 1\)"),
        (([], [], "", "x"), "at least one pair"),
    ],
)
def test_wrong_input(arguments, message):
    with pytest.raises(ValueError, match=message):
        MatchingDisplay(*arguments)
