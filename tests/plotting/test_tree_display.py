"""TreeDisplay: which spans it marks, where it puts nodes, and what it draws."""

import matplotlib as mpl
import numpy as np
import pytest

mpl.use("Agg")

import matplotlib.pyplot as plt

from structsvm.datasets import make_treebank
from structsvm.metrics import bracket_scores
from structsvm.plotting import TreeDisplay
from structsvm.structures.trees import Tree, parse_tree
from structsvm.tasks import GrammarParser

TRUE = parse_tree(
    "(TOP (S (NP (DT the) (NN cat)) (VP (VBZ eats) (NP (NP (NN fish)) (PP (IN of) (NP (NN it))))) (. .)))"
)
PREDICTED = parse_tree(
    "(TOP (S (NP (DT the) (NN cat)) (VP (VBZ eats) (NP (NN fish)) (PRT (IN of) (NP (NN it)))) (. .)))"
)


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def texts(ax):
    return [(text.get_text(), *text.get_position(), text.get_fontweight()) for text in ax.texts]


def test_spans_that_only_one_tree_has():
    display = TreeDisplay(TRUE, PREDICTED)
    assert display.missed == [("NP", 3, 6), ("PP", 4, 6)]
    assert display.wrong == [("PRT", 4, 6)]
    other = parse_tree(str(TRUE).replace("PP", "ADVP"))
    assert TreeDisplay(other, PREDICTED).missed == [("NP", 3, 6)]  # ADVP and PRT are one
    assert TreeDisplay(other, PREDICTED, equal=()).wrong == [("PRT", 4, 6)]
    assert TreeDisplay(TRUE).missed == TreeDisplay(TRUE, TRUE).wrong == []
    renamed = Tree("ROOT", TRUE.children)
    assert TreeDisplay(TRUE, renamed).wrong == [] and TreeDisplay(TRUE, renamed, deleted=()).wrong == [("ROOT", 0, 7)]
    twice = parse_tree("(S (X (X (A a))) (B b))")
    assert TreeDisplay(twice, parse_tree("(S (X (A a)) (B b))")).missed == [("X", 0, 1)]


def test_marked_spans_are_what_bracket_scores_count():
    trees = make_treebank(80, max_length=12, random_state=0)
    parser = GrammarParser.from_counts(trees)
    for tree, predicted in zip(trees, parser.predict([tree.tokens() for tree in trees]), strict=True):
        scores, display = bracket_scores([tree], [predicted]), TreeDisplay(tree, predicted)
        assert len(display.missed) == scores.n_true - scores.n_correct
        assert len(display.wrong) == scores.n_predicted - scores.n_correct


def test_words_that_are_not_counted_move_no_span():
    tree = parse_tree("(TOP (S (NP (NN a) (, ,)) (VP (VB b) (NP (: -)))))")
    predicted = parse_tree("(TOP (S (NP (NN a)) (, ,) (VP (VB b) (: -))))")
    assert bracket_scores([tree], [predicted]).accuracy == 1.0
    display = TreeDisplay(tree, predicted)
    assert display.missed == display.wrong == []
    assert TreeDisplay(tree, predicted, deleted=()).missed == [("NP", 0, 2), ("NP", 3, 4)]


def test_a_tree():
    display = TreeDisplay(parse_tree("(S (A a) (B (C b) (D c)))")).plot()
    assert texts(display.ax_) == [
        ("S", 0.75, 3, "normal"),
        ("A", 0.0, 1, "normal"),
        ("a", 0.0, 0, "normal"),
        ("B", 1.5, 2, "normal"),
        ("C", 1.0, 1, "normal"),
        ("b", 1.0, 0, "normal"),
        ("D", 2.0, 1, "normal"),
        ("c", 2.0, 0, "normal"),
    ]
    (lines,) = display.ax_.collections
    assert len(lines.get_segments()) == 7  # all but the root hang from something
    assert np.allclose(lines.get_segments()[0], [(0.75, 3), (0.75, 2.5), (0.0, 2.5), (0.0, 1)])
    assert display.figure_ is display.ax_.figure
    display.figure_.canvas.draw()


def test_two_trees():
    display = TreeDisplay.from_predictions(TRUE, PREDICTED)
    true, predicted = display.ax_
    assert [text for text, _, _, weight in texts(true) if weight == "bold"] == ["NP", "PP"]
    assert [text for text, _, _, weight in texts(predicted) if weight == "bold"] == ["PRT"]
    assert true.get_title() == "true, 2 spans missed" and predicted.get_title() == "predicted, 1 span wrong"
    assert true.get_position().x1 <= predicted.get_position().x0  # side by side
    long = parse_tree("(S" + " (A a)" * 11 + ")")
    upper, lower = TreeDisplay(long, long).plot().ax_
    assert lower.get_position().y1 <= upper.get_position().y0
    axes = plt.subplots(2)[1]
    assert TreeDisplay(TRUE, PREDICTED).plot(ax=axes).ax_ == tuple(axes)
    display.figure_.canvas.draw()


def test_from_estimator():
    trees = make_treebank(60, max_length=10, random_state=1)
    parser = GrammarParser.from_counts(trees)
    display = TreeDisplay.from_estimator(parser, trees[0])
    assert display.predicted == parser.predict([trees[0].tokens()])[0]


def test_words_that_are_no_plain_text():
    display = TreeDisplay(parse_tree(f"(S (NN $a$) (NN {'b' * 30}) (-LRB- -LRB-))")).plot()
    shown = [text for text, *_ in texts(display.ax_)]
    assert r"\$a\$" in shown and "b" * 13 + "…" in shown
    display.figure_.canvas.draw()


def test_deep_trees_have_places():
    display = TreeDisplay(parse_tree("(A " * 3000 + "x" + ")" * 3000)).plot()
    assert display.ax_.texts[0].get_position() == (0.0, 3000)


def test_bad_trees():
    with pytest.raises(ValueError, match="the trees have different words"):
        TreeDisplay(TRUE, parse_tree("(S (A a))"))
