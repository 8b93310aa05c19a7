"""Labels that are paths: strings with a separator, rows of levels."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline

from structsvm import AdviceWarning, load
from structsvm.metrics import (
    hierarchical_f1_scorer,
    hierarchical_scores,
    path_loss,
    path_loss_scorer,
    tree_loss,
    tree_loss_scorer,
)
from structsvm.structures.taxonomy import Taxonomy, joined_levels, rows_of_levels
from structsvm.tasks import TaxonomyClassifier
from structsvm.tasks.taxonomy.paths import _check_one_path

TEXTS = ["a king and a rook", "five dice", "ball and goal", "ball and basket", "a novel", "king of dice"] * 5
PATHS = [
    "Toys > Games > Chess",
    "Toys > Games > Dice",
    "Toys > Balls",
    "Sports > Balls",
    "Books",
    "Toys > Games > Dice",
] * 5
LEVELS = [[*path.split(" > "), "", ""][:3] for path in PATHS]
SETTINGS = {"C": 1.0, "random_state": 0}


def classifier(**settings):
    return TaxonomyClassifier(**SETTINGS | {"vectorizer": TfidfVectorizer()} | settings)


@pytest.fixture(scope="module")
def by_strings():
    return classifier(taxonomy=" > ").fit(TEXTS, PATHS)


def test_paths_are_a_taxonomy_of_their_own(by_strings):
    taxonomy = by_strings.taxonomy_
    assert taxonomy == Taxonomy.from_paths([path.split(" > ") for path in PATHS], separator=" > ")
    assert by_strings.predict(TEXTS).tolist() == PATHS
    assert by_strings.predict_levels(TEXTS).tolist() == LEVELS
    assert taxonomy.levels("Toys > Games") == ["Toys", "Games"]
    assert taxonomy.levels("ROOT") == []


@pytest.mark.parametrize("form", ["lists", "array", "None", "frame"])
def test_rows_of_levels(form, by_strings):
    y = np.array(LEVELS, dtype=object)
    if form in ("None", "frame"):
        y[y == ""] = None
    if form == "frame":
        y = pytest.importorskip("pandas").DataFrame(y, columns=["one", "two", "three"])
    y = LEVELS if form == "lists" else y
    found = classifier().fit(TEXTS, y)
    assert (found.coef_ == by_strings.coef_).all()
    assert found.predict(TEXTS).tolist() == PATHS
    assert found.score(TEXTS, y) == 1.0
    assert found.score(TEXTS[:2], LEVELS[:1] * 2) == 0.5
    assert found.result_.primal == by_strings.result_.primal


def test_a_file_keeps_the_separator(by_strings, tmp_path):
    by_strings.save(tmp_path / "t.model")
    other = load(tmp_path / "t.model")
    assert other.taxonomy_.separator == " > "
    assert other.predict_levels(TEXTS).tolist() == LEVELS
    assert other.fit(TEXTS, LEVELS).score(TEXTS, PATHS) == 1.0


def test_streams_of_paths():
    stream = classifier(taxonomy="/", vectorizer=None)
    X, y = TfidfVectorizer().fit_transform(TEXTS), [path.replace(" > ", "/") for path in PATHS]
    stream.partial_fit(X[:7], y[:7], classes=sorted(set(y)))
    stream.partial_fit(X[7:], y[7:])
    assert set(stream.classes_) == set(y)
    with pytest.raises(ValueError, match="'Toys/Chess'"):
        stream.partial_fit(X[:1], ["Toys/Chess"])


@pytest.mark.parametrize("form", [list, set, iter, np.array], ids=["list", "set", "iterator", "array"])
def test_classes_that_are_no_paths_are_named_as_classes(form):
    y = ["a/b", "a/c", "a/d"]
    classes = [*y, 5] if form is not np.array else np.array([*y, 5], dtype=object)
    with pytest.raises(ValueError, match=r"^classes: labels must be paths of levels between '/', got 5"):
        classifier(taxonomy="/", vectorizer=None).partial_fit(np.eye(3), y, classes=form(classes))
    found = classifier(taxonomy="/", vectorizer=None).partial_fit(np.eye(3), y, classes=form([*y, "e"]))
    assert found.classes_.tolist() == [*y, "e"]


def test_inner_nodes_and_sets():
    y = np.array([*PATHS[:-2], "Toys", None], dtype=object)
    found = classifier(taxonomy=" > ", leaf_only=True).fit(TEXTS, y)
    assert set(found.classes_) == set(PATHS)
    y[0] = {"Toys > Games > Chess", "Books"}
    assert set(classifier(taxonomy=" > ", leaf_only=True).fit(TEXTS, y).classes_) == set(PATHS)


# A row that ends early, in the forms that rows of levels come in: all but the first three without padding.
ENDS_EARLY = [["Toys"] if k % 6 == 5 else path.split(" > ") for k, path in enumerate(PATHS)]
BEARS = ["plush bear" if k % 6 == 5 else text for k, text in enumerate(TEXTS)]
PADDED = [[*row, "", ""][:3] for row in ENDS_EARLY]


def objects(rows):
    array = np.empty(len(rows), dtype=object)
    array[:] = rows
    return array


ROWS = {
    "array": lambda: np.array(PADDED),
    "data frame": lambda: pd.DataFrame(PADDED).replace("", None),
    "polars frame": lambda: pl.DataFrame(PADDED, orient="row"),
    "lists": lambda: ENDS_EARLY,
    "tuples": lambda: [tuple(row) for row in ENDS_EARLY],
    "array of lists": lambda: objects(ENDS_EARLY),
    "array of arrays": lambda: objects([np.array(row) for row in ENDS_EARLY]),
    "series": lambda: pd.Series(ENDS_EARLY, index=range(5, 5 + len(PATHS))),
    "one column": lambda: pd.DataFrame({"label": ENDS_EARLY}),
    "polars series": lambda: pl.Series(ENDS_EARLY),
    "arrow": lambda: pa.array(ENDS_EARLY),
}


@pytest.mark.parametrize("form", ROWS)
def test_rows_that_end_early_are_labels(form):
    """As HiClass reads them: the label is the inner node, predicted as such."""
    rows = ROWS[form]()
    found = classifier().fit(BEARS, rows)
    same = classifier(taxonomy=" > ").fit(BEARS, [" > ".join(row) for row in ENDS_EARLY])
    np.testing.assert_array_equal(found.predict(BEARS), same.predict(BEARS))
    assert found.predict(["plush bear"]).tolist() == ["Toys"]
    assert found.score(BEARS, rows) == hierarchical_scores(rows, found.predict(BEARS), found.taxonomy_).f1 == 1.0
    assert found.predict_levels(["plush bear"]).tolist() == [["Toys", "", ""]]


def test_a_row_that_is_none_says_nothing():
    found = classifier().fit(TEXTS, [None, *ENDS_EARLY[1:]])
    assert found.score(TEXTS, [None, *ENDS_EARLY[1:]]) == found.score(TEXTS[1:], ENDS_EARLY[1:])
    assert rows_of_levels(objects([("A", "x"), ("A", "y")])) is None  # tuples are names there
    assert rows_of_levels(["A > x", None]) is None


def test_inner_nodes_where_labels_have_been_leaves():
    found = classifier(taxonomy=" > ").partial_fit(TEXTS, PATHS)
    with pytest.raises(ValueError, match="1 documents at inner nodes such as 'Toys', and the first call"):
        found.partial_fit(TEXTS, [*PATHS[:-1], "Toys"])
    assert found.score(TEXTS, ["Toys"] * len(TEXTS)) == 0.0
    named = classifier(taxonomy=" > ").partial_fit(TEXTS, PATHS, classes=[*PATHS, "Toys"])
    assert "Toys" in named.partial_fit(TEXTS, [*PATHS[:-1], "Toys"]).classes_


@pytest.mark.parametrize(
    ("taxonomy", "y", "message"),
    [
        (None, [["A", ""], ["", "B"]], "y, row 1: a missing level before others"),
        (None, [["A", "B"], ["", None]], "y, row 1: no level at all"),
        (None, [["A", "B > C"], ["A", "D"]], "y, row 0: the level 'B > C' contains ' > '"),
        ("", ["A", "B"], "'taxonomy' parameter must not be the empty string"),
        (" > ", [1, 2], "row 0 of y: labels must be paths of levels between ' > ', got 1"),
        (" > ", ["a", "b", float("nan")], "row 2 of y: labels must be paths of levels between ' > ', got nan"),
        (" > ", ["A >  > B", "A"], "the label path .* has an empty level"),
        ([("R", "A"), ("R", "B")], [["A", "C"], ["B", "C"]], "its taxonomy must be None, or one of paths"),
        ([("R", "Chess"), ("R", "Dice")], ["Chess", "dise"], "'dise' is no node of the taxonomy; did you mean 'Dice'"),
        ([("R", "A"), ("R", "B")], ["A", "zzz"], "'zzz' is no node of the taxonomy$"),
    ],
)
def test_labels_that_are_none(taxonomy, y, message):
    with pytest.raises(ValueError, match=message):
        classifier(taxonomy=taxonomy).fit(TEXTS[:2], y)


def test_names_that_are_near():
    taxonomy = Taxonomy([("all", "comp"), ("comp", "mac"), ("comp", "pc")])
    with pytest.raises(ValueError, match="'MAC' is no node of the taxonomy; did you mean 'mac'"):
        taxonomy.number("MAC")
    with pytest.raises(ValueError, match=r"'cmop'.*; did you mean 'comp'"):
        tree_loss(["pc"], ["cmop"], taxonomy)


def test_scorers_take_the_taxonomy_of_the_estimator(by_strings):
    wrong = [*PATHS[1:], PATHS[0]]
    taxonomy, predicted = by_strings.taxonomy_, by_strings.predict(TEXTS)
    assert hierarchical_f1_scorer(by_strings, TEXTS, wrong) == hierarchical_scores(wrong, predicted, taxonomy).f1
    assert tree_loss_scorer(by_strings, TEXTS, wrong) == -tree_loss(wrong, predicted, taxonomy) < 0.0
    assert path_loss_scorer(by_strings, TEXTS, wrong) == -path_loss(wrong, predicted, taxonomy)
    levels = [*LEVELS[1:], LEVELS[0]]
    assert hierarchical_f1_scorer(by_strings, TEXTS, levels) == hierarchical_f1_scorer(by_strings, TEXTS, wrong)
    pipeline = make_pipeline(TfidfVectorizer(), TaxonomyClassifier(taxonomy, **SETTINGS))
    assert cross_val_score(pipeline, TEXTS, PATHS, scoring=hierarchical_f1_scorer, cv=2).min() == 1.0
    search = GridSearchCV(classifier(), {"C": [1.0]}, scoring=tree_loss_scorer, cv=2)
    assert search.fit(TEXTS, np.array(LEVELS)).best_score_ == 0.0
    assert repr(tree_loss_scorer) == "tree_loss_scorer"


def test_whole_numbers_and_missing_ones():
    class Nothing:
        """As pandas has it: comparisons have no truth value."""

        def __ne__(self, other):
            raise TypeError("boolean value of NA is ambiguous")

        __hash__ = object.__hash__

    levels = [[1.0, 2.0], [1.0, 3.0], [4.0, np.nan], [4.0, Nothing()], [np.float32(1.5), None]]
    assert joined_levels(rows_of_levels(levels), ">") == ["1>2", "1>3", "4", "4", "1.5"]


def test_a_separator_that_stands_nowhere(tmp_path):
    with pytest.warns(AdviceWarning, match=r"taxonomy='/' stands in no label, so no node lies above the labels$"):
        classifier(taxonomy="/").fit(TEXTS, PATHS)
    edges = tmp_path / "edges.tsv"
    edges.write_text("a\tb\n")
    with pytest.warns(AdviceWarning, match=r"a file's taxonomy is read_taxonomy\(...\)"):
        classifier(taxonomy=str(edges)).fit(TEXTS, PATHS)


def test_texts_need_a_vectorizer():
    with pytest.raises(ValueError, match=r"texts need a vectorizer: TaxonomyClassifier\(..., vectorizer="):
        TaxonomyClassifier(C=1.0).fit(TEXTS, PATHS)


def test_nodes_that_are_tuples():
    taxonomy = Taxonomy([("all", ("A", 1)), ("all", ("A", 2))])
    y = [("A", 1 + i % 2) for i in range(30)]
    with pytest.raises(ValueError, match="nodes that are tuples: give y as a 1-D array of objects"):
        classifier(taxonomy=taxonomy).fit(TEXTS, y)
    labels = np.empty(30, dtype=object)
    labels[:] = y
    assert set(classifier(taxonomy=taxonomy).fit(TEXTS, labels).predict(TEXTS)) <= set(y)


def test_a_separator_without_its_blanks():
    """It would make "A " of "A > B", a node beside the label "A"."""
    rows, y = np.eye(3), ["A", "A > B", "A > C"]
    with pytest.raises(ValueError, match="'A ' of the label 'A > B' has a blank at its end: is the separator ' > '"):
        TaxonomyClassifier(taxonomy=">").fit(rows, y)
    for separator in (" > ", "/", "::", " / "):
        labels = [label.replace(" > ", separator) for label in y]
        assert TaxonomyClassifier(taxonomy=separator, C=1.0).fit(rows, labels).taxonomy_.nodes[1] == "A"


def test_indicators_of_classes_are_no_levels():
    X = np.random.default_rng(0).normal(size=(30, 2))
    y = np.eye(3, dtype=int)[np.arange(30) % 3]
    with pytest.warns(AdviceWarning, match=r"one 1 per row.*y.argmax\(axis=1\) are the labels"):
        TaxonomyClassifier(C=1.0, max_iter=1, random_state=0).fit(X, y)
    for levels in (y + 1, np.where(y == 1, "1", "0"), np.array([[0, 0], [0, 1], [1, 0]])[np.arange(30) % 3]):
        TaxonomyClassifier(C=1.0, max_iter=1, random_state=0).fit(X, levels)  # warnings are errors


@pytest.mark.parametrize("mark", ["|", "; ", ","])
def test_several_paths_in_one_label(mark):
    """They would be one path, with a level such as "C|A"; the lists of labels that stand nowhere else stay labels."""
    y = ["A/B", "A/C", f"A/B{mark}A/C"]
    refused = r"lists 'A/B', which is a label.*y has a set of paths \(on the command line --partial"
    for several in (y[2], f"A/B{mark}A/D", f"A/D{mark}A/B", f"A/B{mark}", f"{mark}A/B", f"A/B{mark}A/B"):
        with pytest.raises(ValueError, match=refused):
            TaxonomyClassifier(taxonomy="/").fit(np.eye(3), [*y[:2], several])
    for other in (f"A/B{mark}D", f"A/D{mark}A/E", f"D{mark}A/B"):
        TaxonomyClassifier(taxonomy="/", C=1.0).fit(np.eye(3), [*y[:2], other])
    sets = np.empty(3, dtype=object)
    sets[:] = [*y[:2], {"A/B", "A/C"}]
    TaxonomyClassifier(taxonomy="/", C=1.0).fit(np.eye(3), sets)


@pytest.mark.parametrize("mark", ["|", ";", ","])
def test_one_path_of_several_is_a_label(mark):
    """A level such as "b|c" would be made of them."""
    with pytest.raises(ValueError, match="lists 'a/b', which is a label"):
        TaxonomyClassifier(taxonomy="/").fit(np.eye(2), ["a/b", f"a/b{mark}c/d"])


def test_a_level_with_a_comma_lists_no_paths():
    y = ["Vehicles > Cars", "Vehicles > Cars, Trucks & Vans > Parts", "Vehicles > Boats"]
    model = TaxonomyClassifier(taxonomy=" > ", C=1.0).fit(np.eye(3), y)
    assert "Vehicles > Cars, Trucks & Vans" in model.taxonomy_.nodes


@pytest.mark.parametrize(
    ("separator", "y"),
    [
        (".", ["1.2", "1.3", "1.2,1.3"]),
        ("-", ["A-B", "A-C", "A-B,A-C"]),
        (" ", ["red wine", "dry wine", "red wine, dry wine"]),
        (" ", ["red wine", "dry wine", "red wine, sweet wine"]),
    ],
)
def test_lists_are_refused_with_separators_that_stand_in_words(separator, y):
    """Both parts are labels, and the path would have a level such as "2,1" or "wine,", which no taxonomy has.

    Whoever means it writes another separator: without that of the paths in it, the label is a name of its own.
    """
    with pytest.raises(ValueError, match="which is a label, beside ','"):
        TaxonomyClassifier(taxonomy=separator).fit(np.eye(3), y)
    other = [label.replace(separator, "/", 1) for label in y[:2]]
    TaxonomyClassifier(taxonomy="/", C=1.0).fit(np.eye(3), [*other, y[2]])


def test_a_long_list_is_read_once():
    """Each of its paths is looked up, not compared with all others."""

    class Path(str):
        compared = 0
        __slots__ = ()

        def __hash__(self):
            return super().__hash__()

        def __eq__(self, other):
            Path.compared += 1
            return super().__eq__(other)

        def strip(self):
            return Path(super().strip())

        def split(self, *mark):
            return [Path(part) for part in super().split(*mark)]

    paths = [f"a/{i}" for i in range(300)]
    with pytest.raises(ValueError, match="lists 'a/0', which is a label"):
        _check_one_path(dict.fromkeys(map(Path, [*paths, ";".join(paths)])), "/")
    assert Path.compared < 3_000
