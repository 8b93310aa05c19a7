"""Pictures of dependency trees."""

import pytest

from structsvm.datasets import make_dependency_trees
from structsvm.plotting import DependencyDisplay
from structsvm.structures.dependencies import parse_conllu

pytest.importorskip("matplotlib")


def texts(ax):
    return [text.get_text() for text in ax.texts if text.get_text()]


def test_every_word_and_arc_is_drawn(tmp_path):
    tree = make_dependency_trees(1, random_state=0)[0]
    display = DependencyDisplay(tree).plot()
    assert display.missed == []
    assert sorted(texts(display.ax_)) == sorted([word.form for word in tree.words] + [label for _, label in tree.arcs])
    assert len(display.ax_.lines) == sum(head > 0 for head in tree.heads)
    display.figure_.savefig(tmp_path / "tree.svg")
    assert (tmp_path / "tree.svg").read_bytes().startswith(b"<?xml")


def test_wrong_arcs_stand_below():
    tree = make_dependency_trees(1, random_state=0)[0]
    wrong = tree.with_arcs([(2, "x"), *tree.arcs[1:]])
    display = DependencyDisplay.from_predictions(tree, wrong)
    assert display.missed == [1]
    assert display.ax_.get_title().startswith("true above, 1 wrong arc ")
    assert min(text.get_position()[1] for text in display.ax_.texts) < 0.0
    other = make_dependency_trees(2, random_state=1)[1]
    with pytest.raises(ValueError, match="different words"):
        DependencyDisplay(tree, other)
    assert DependencyDisplay(parse_conllu("1\ta\t_\t_\t_\t_\t_\t_\t_\t_\n\n")[0]).plot().ax_ is not None
