"""TaxonomyDisplay: what it counts, in which order, and what it draws."""

import matplotlib as mpl
import numpy as np
import pytest

mpl.use("Agg")

import matplotlib.pyplot as plt

from structsvm.plotting import TaxonomyDisplay
from structsvm.structures.taxonomy import Taxonomy
from structsvm.tasks import TaxonomyClassifier

PATHS = [["comp", "mac"], ["rec", "autos"], ["comp", "pc"], ["rec", "motor"], ["misc"]]
TRUE = ["mac", "pc", "pc", "autos", "autos", "motor", "misc"]
PREDICTED = ["pc", "pc", "mac", "autos", "mac", "comp", "misc"]


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def test_recalls_and_order():
    display = TaxonomyDisplay.from_predictions(TRUE, PREDICTED, Taxonomy.from_paths(PATHS))
    top = [display.taxonomy.path(label)[0] for label in display.labels]
    assert sorted(range(len(top)), key=lambda k: top.index(top[k])) == list(range(len(top)))
    assert set(display.labels) == {*TRUE, *PREDICTED}
    wanted = {"comp": 1.0, "mac": 0.0, "pc": 0.5, "rec": 1 / 3, "autos": 0.5, "motor": 0.0, "misc": 1.0}
    assert display.recall == pytest.approx(wanted)
    k, m = display.labels.index("autos"), display.labels.index("mac")
    assert display.matrix[k, m] == 1 and display.matrix.sum() == 7


def test_a_node_of_several_parents_counts_for_all():
    taxonomy = Taxonomy([("r", "a"), ("r", "b"), ("a", "x"), ("b", "x"), ("b", "y")])
    display = TaxonomyDisplay(taxonomy, [[1, 1], [0, 2]], ["x", "y"])
    assert display.recall == {"a": 0.5, "b": 1.0, "x": 0.5, "y": 1.0}


def test_what_is_drawn():
    display = TaxonomyDisplay.from_predictions(TRUE, PREDICTED, Taxonomy.from_paths(PATHS))
    tree, matrix = display.ax_
    # A bar for each node, as high as it has labels, at its depth; `comp` is a label too.
    spans = sorted((bar.get_x(), bar.get_height()) for bar in tree.patches)
    assert spans == [(0, 1), (0, 2), (0, 3), *[(1, 1)] * 4]
    texts = [text.get_text() for text in tree.texts]
    assert "comp 1.00" in texts and "rec 0.33" in texts and "mac 0.00" in texts
    assert [text.get_text() for text in matrix.get_xticklabels()] == display.labels
    assert len(matrix.lines) == 4
    assert display.figure_ is tree.figure


def test_names_that_are_paths_are_shown_by_their_ends():
    names = ["Home/Pans", "Homes > Flats", "Toysets"]
    edges = [("r", "Home"), ("Home", names[0]), ("r", "Homes"), ("Homes", names[1]), ("r", "Toys"), ("Toys", names[2])]
    tree = TaxonomyDisplay(Taxonomy(edges), np.eye(3, dtype=int), names).plot().ax_[0]
    texts = {text.get_text().rpartition(" ")[0] for text in tree.texts}
    assert texts == {"Home", "Pans", "Homes", "Flats", "Toys", "Toysets"}


def test_on_given_axes_and_many_labels():
    taxonomy = Taxonomy([("r", f"g{g}") for g in range(10)] + [(f"g{k % 10}", f"leaf{k}") for k in range(120)])
    axes = plt.subplots(ncols=2)[1]
    display = TaxonomyDisplay(taxonomy, np.eye(120, dtype=int), [f"leaf{k}" for k in range(120)]).plot(ax=axes)
    assert display.ax_ == tuple(axes) and len(axes[0].patches) == 130
    assert len(axes[0].texts) == 10  # leaves are too low to be named
    empty = TaxonomyDisplay(taxonomy, np.zeros((2, 2)), ["leaf0", "leaf1"])
    assert empty.recall == {} and empty.plot(ax=axes) is empty


def test_from_estimator():
    X = np.eye(5)[[0, 1, 2, 3, 4] * 3]
    y = np.array(["mac", "pc", "autos", "motor", "misc"] * 3)
    model = TaxonomyClassifier(PATHS, random_state=0).fit(X, y)
    display = TaxonomyDisplay.from_estimator(model, X, y)
    assert set(display.recall.values()) == {1.0}


def test_bad_input():
    taxonomy = Taxonomy.from_paths(PATHS)
    for message, call in (
        ("matrix must have shape", lambda: TaxonomyDisplay(taxonomy, np.eye(3), ["mac", "pc"])),
        ("'linux' is no node", lambda: TaxonomyDisplay(taxonomy, np.eye(2), ["mac", "linux"])),
        ("y_true has 1 labels and y_pred has 2", lambda: TaxonomyDisplay.from_predictions(["pc"], TRUE[:2], taxonomy)),
        ("have no labels to score", lambda: TaxonomyDisplay.from_predictions([], [], taxonomy)),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    with pytest.raises(TypeError, match="has no attribute 'taxonomy_'"):
        TaxonomyDisplay.from_estimator(type("Model", (), {"predict": lambda self, X: X})(), ["pc"], ["pc"])
