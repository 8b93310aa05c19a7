"""Displays: what they draw, on which axes, and what they say about bad input."""

import sys
from types import SimpleNamespace

import matplotlib as mpl
import numpy as np
import pytest

from structsvm.plotting import (
    AlignmentDisplay,
    ConfusionDisplay,
    FeatureDisplay,
    HistoryDisplay,
    SubstitutionDisplay,
    TransitionDisplay,
)
from structsvm.structures.substitution_matrix import SubstitutionMatrix

mpl.use("Agg")
LABELS = ["O", "B-X", "I-X"]
NAN = float("nan")


@pytest.fixture(autouse=True)
def pyplot():
    import matplotlib.pyplot as plt

    yield plt
    for number in plt.get_fignums():
        plt.figure(number).canvas.draw()
    plt.close("all")


@pytest.fixture
def history():
    return {
        "seconds": np.array([0.0, 0.1, 0.2, 0.3]),
        "primal": np.array([9000.0, NAN, 20.0, 12.0]),
        "dual": np.array([0.0, 5.0, 8.0, 10.0]),
        "gap": np.array([9000.0, NAN, 12.0, 2.0]),
        "n_support": np.arange(4.0),
        "n_argmax": np.arange(4.0),
    }


@pytest.fixture
def estimator(history):
    return SimpleNamespace(
        transition_=np.array([[0.5, 1.0, -np.inf], [0.0, -2.0, 1.0], [0.0, 0.0, 0.0]]),
        classes_=np.array(LABELS),
        emission_=np.arange(15.0).reshape(5, 3) - 6.0,
        feature_names_=["a", "b", "$c$", "d" * 99, "e"],
        result_=SimpleNamespace(history=history),
        predict=lambda X: [["B-X", "O"], ["O"]],
    )


# --- history --------------------------------------------------------------------------------


def test_history(history, estimator):
    for display in (
        HistoryDisplay.from_result(estimator.result_),
        HistoryDisplay.from_estimator(estimator),
        HistoryDisplay(history).plot(),
    ):
        objectives, gaps = display.ax_
        primal, dual = objectives.lines
        assert primal.get_label() == "primal" and dual.get_label() == "dual"
        np.testing.assert_array_equal(primal.get_ydata(), [9000, 20, 12])
        np.testing.assert_array_equal(primal.get_xdata(), [0.0, 0.2, 0.3])
        np.testing.assert_array_equal(dual.get_ydata(), history["dual"])
        np.testing.assert_array_equal(gaps.lines[0].get_ydata(), [9000, 12, 2])
        assert gaps.get_yscale() == "log"
        assert objectives.get_ylim()[1] < 30
        assert display.figure_ is objectives.figure


@pytest.mark.parametrize(
    "change",
    [
        {"primal": [NAN] * 4, "gap": [NAN] * 4},
        {"gap": [NAN, NAN, 0.0, -1e-12]},
        {"dual": [NAN] * 4},
        {"dual": [0.0] * 4, "primal": [0.0] * 4},
        {key: [] for key in ("seconds", "primal", "dual", "gap")},
    ],
)
def test_history_with_little_in_it(history, change):
    display = HistoryDisplay(history | change).plot()
    assert display.ax_[1].get_yscale() == ("log" if display.ax_[1].lines else "linear")


def test_history_on_given_axes(history, pyplot):
    figure, axes = pyplot.subplots(2)
    display = HistoryDisplay(history).plot(ax=axes)
    assert display.ax_ == tuple(axes) and display.figure_ is figure
    assert pyplot.get_fignums() == [figure.number]


def test_history_bad_input(history):
    with pytest.raises(ValueError, match="history has no 'dual', 'gap'"):
        HistoryDisplay({"seconds": [], "primal": []})
    with pytest.raises(ValueError, match="one length"):
        HistoryDisplay(history | {"gap": [1.0]})
    for draw in (HistoryDisplay.from_estimator, lambda estimator: HistoryDisplay.from_results({"a": estimator})):
        with pytest.raises(ValueError, match="SimpleNamespace has no history: it was not trained"):
            draw(SimpleNamespace(result_=None))


# --- matrices -------------------------------------------------------------------------------


def tick_texts(axis):
    return [text.get_text() for text in axis.get_ticklabels()]


def test_transitions(estimator):
    display = TransitionDisplay.from_estimator(estimator)
    assert tick_texts(display.ax_.xaxis) == tick_texts(display.ax_.yaxis) == LABELS
    assert display.ax_.images[0].get_clim() == (-2.0, 2.0)
    assert len(display.ax_.texts) == 8  # the forbidden pair has no number


def test_transitions_all_zero_or_forbidden():
    for value in (0.0, -np.inf):
        display = TransitionDisplay(np.full((2, 2), value), ["a", "b"]).plot()
        assert display.ax_.images[0].get_clim() == (-1.0, 1.0)


def test_many_labels():
    labels = [f"B-{k}" for k in range(150)]
    display = TransitionDisplay(np.eye(150), labels).plot()
    assert not display.ax_.texts
    assert tick_texts(display.ax_.xaxis) == labels[::3]


def test_confusions(estimator):
    y_true, y_pred = [["B-X", "O"], ["B-X"]], estimator.predict(None)
    display = ConfusionDisplay.from_predictions(y_true, y_pred)
    assert display.labels == ["B-X", "O"]
    assert display.matrix.tolist() == [[1, 1], [0, 1]]
    assert [text.get_text() for text in display.ax_.texts] == ["0.50", "0.50", "0.00", "1.00"]
    display = ConfusionDisplay.from_estimator(estimator, None, y_true, normalize=False)
    assert [text.get_text() for text in display.ax_.texts] == ["1", "1", "0", "1"]


def test_confusions_of_chosen_labels_of_any_type():
    display = ConfusionDisplay.from_predictions([[1, None, 2]], [[1, 2, 1]], labels=[2, 1], normalize=False)
    assert display.matrix.tolist() == [[0, 1], [0, 1]]
    assert tick_texts(display.ax_.xaxis) == ["2", "1"]


def test_confusions_of_different_lengths():
    with pytest.raises(ValueError, match="sequence 0"):
        ConfusionDisplay.from_predictions([["O"]], [["O", "O"]])


@pytest.mark.parametrize("display", [TransitionDisplay, ConfusionDisplay])
def test_matrix_shape(display, pyplot):
    with pytest.raises(ValueError, match=r"\(n_labels, n_labels\) for 3 labels.*Got \(2, 2\)"):
        display(np.eye(2), LABELS)
    with pytest.raises(ValueError, match="at least one label"):
        display(np.zeros((0, 0)), [])
    figure, ax = pyplot.subplots()
    made = display(np.eye(3), LABELS).plot(ax=ax, cmap="viridis")
    assert made.ax_ is ax and made.figure_ is figure
    assert ax.images[0].get_cmap().name == "viridis"


# --- features -------------------------------------------------------------------------------


def test_features(estimator):
    display = FeatureDisplay.from_estimator(estimator, "O", k=4)
    assert display.names == ["e", "d" * 99, "b", "a"]
    np.testing.assert_array_equal(display.weights, [6, 3, -3, -6])
    assert [bar.get_width() for bar in display.ax_.patches] == [6, 3, -3, -6]
    assert tick_texts(display.ax_.yaxis)[1] == "d" * 39 + "…"
    del estimator.feature_names_
    assert FeatureDisplay.from_estimator(estimator, "I-X", k=1).names == ["feature 4"]


def test_features_on_given_axes(estimator, pyplot):
    ax = pyplot.subplots()[1]
    display = FeatureDisplay.from_estimator(estimator, "B-X", k=99, ax=ax)
    assert display.ax_ is ax
    assert len(display.names) == 5


def test_features_bad_input(estimator):
    with pytest.raises(ValueError, match=r"label must be one of.*Got 'B-Y'"):
        FeatureDisplay.from_estimator(estimator, "B-Y")
    with pytest.raises(ValueError, match="2 names and weights of"):
        FeatureDisplay(["a", "b"], [1.0], "O")


# --- all ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("draw", "attribute"),
    [
        (HistoryDisplay.from_estimator, "result_"),
        (TransitionDisplay.from_estimator, "transition_"),
        (lambda est: FeatureDisplay.from_estimator(est, "O"), "emission_"),
    ],
)
def test_not_fitted(draw, attribute):
    with pytest.raises(TypeError, match=f"SimpleNamespace has no attribute '{attribute}'"):
        draw(SimpleNamespace())


def test_without_matplotlib(estimator, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    for draw in (
        HistoryDisplay.from_estimator,
        TransitionDisplay.from_estimator,
        lambda est: FeatureDisplay.from_estimator(est, "O"),
        lambda est: ConfusionDisplay.from_estimator(est, None, [["B-X", "O"], ["O"]]),
    ):
        with pytest.raises(ImportError, match=r"pip install 'structured-svm\[plot\]'"):
            draw(estimator)


# --- alignments -----------------------------------------------------------------------------


def test_substitution_matrix():
    matrix = SubstitutionMatrix("ACX", [[2.0, -1.0, 0.0], [-1.0, 3.0, 0.0], [0.0, 0.0, 0.0]])
    display = SubstitutionDisplay.from_estimator(SimpleNamespace(substitution_matrix_=matrix))
    image = display.ax_.images[0]
    assert np.array_equal(image.get_array(), matrix.values)
    assert image.get_clim() == (-3.0, 3.0)
    assert [text.get_text() for text in display.ax_.get_xticklabels()] == ["A", "C", "X"]


def test_alignment_paths():
    display = AlignmentDisplay.from_predictions(("AC-G", "A-TG"), ("ACG", "ATG"))
    lines = {line.get_label(): np.column_stack(line.get_data()).tolist() for line in display.ax_.lines}
    assert lines["reference"] == [[0, 0], [1, 1], [1, 2], [2, 2], [3, 3]]  # (z, x)
    assert lines["predicted"] == [[0, 0], [1, 1], [2, 2], [3, 3]]
    assert display.ax_.collections[0].get_offsets().tolist() == [[0.5, 0.5], [2.5, 2.5]]
    with pytest.raises(ValueError, match="of the same two sequences"):
        AlignmentDisplay({"a": ("A", "A"), "b": ("C", "A")})
    with pytest.raises(ValueError, match="at least one"):
        AlignmentDisplay({})


# ---- several histories -----------------------------------------------------------------------------


def result_of(**history):
    return SimpleNamespace(history={name: np.array(values) for name, values in history.items()})


def test_results_are_compared_by_their_relative_gaps():
    nan = np.nan
    one = result_of(seconds=[1.0, 2.0, 3.0], n_argmax=[5, 10, 15], primal=[nan, 10.0, 5.0], gap=[nan, 5.0, 0.5])
    two = result_of(seconds=[0.5, 1.0], n_argmax=[3, 6], primal=[np.inf, 4.0], gap=[np.inf, 0.0])
    estimator = SimpleNamespace(result_=two)
    display = HistoryDisplay.from_results(
        {"LaRank": one, "other": estimator}, x="n_argmax", colors={"LaRank": "red"}, linestyle=":"
    )
    assert display.ax_.get_yscale() == "log"
    assert display.ax_.get_xlabel() == "calls of the oracle"
    line = display.lines_["LaRank"]
    assert line.get_xydata().tolist() == [[10.0, 0.5], [15.0, 0.1]]
    assert (line.get_color(), line.get_linestyle(), line.get_label()) == ("red", ":", "LaRank")
    assert display.lines_["other"].get_xydata().tolist() == [[3.0, 1.0]]  # an infinite primal, and a gap of 0
    again = HistoryDisplay.from_results({"LaRank": one}, ax=display.ax_)
    assert again.ax_ is display.ax_ and len(display.ax_.lines) == 3
    with pytest.raises(ValueError, match="x must be one of 'seconds', 'n_argmax', 'n_iter'"):
        HistoryDisplay.from_results({"a": one}, x="time")
    with pytest.raises(ValueError, match="the history of 'a' has no 'n_iter'"):
        HistoryDisplay.from_results({"a": one}, x="n_iter")
    with pytest.raises(ValueError, match="colors has 'b', which is none"):
        HistoryDisplay.from_results({"a": one}, colors={"b": "red"})
    with pytest.raises(ValueError, match="none of the results has a gap"):
        HistoryDisplay.from_results({"a": result_of(seconds=[1.0], primal=[nan], gap=[nan])})


def test_confusions_of_iterators():
    lists = [["a", "b"]], [["a", "a"]]
    display = ConfusionDisplay.from_predictions(*map(iter, lists))
    np.testing.assert_array_equal(display.matrix, ConfusionDisplay.from_predictions(*lists).matrix)
    assert display.matrix.sum() == 2
