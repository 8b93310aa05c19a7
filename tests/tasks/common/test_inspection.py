"""Weights by name, and why an output won, of all estimators that have such."""

import re

import numpy as np
import pytest
from cases import CASES, TABLE
from scipy.sparse import csr_array
from sklearn.feature_extraction.text import TfidfVectorizer

from structsvm.datasets import (
    make_alignment,
    make_ambig_house,
    make_banana,
    make_dependency_trees,
    make_label_sets,
    make_rankings,
)
from structsvm.oracles.hybrid import HybridTrees, Lexicon
from structsvm.plotting import FeatureDisplay
from structsvm.structures.meaning_units import MeaningUnits, Unit
from structsvm.structures.taxonomy import Taxonomy
from structsvm.tasks import (
    AmbiguousClassifier,
    DependencyParser,
    GrammarParser,
    GraphLabeler,
    Hybrid,
    LaRankClassifier,
    MultilabelClassifier,
    MultivariateClassifier,
    Ranker,
    SemanticParser,
    SequenceAligner,
    SequenceLabeler,
    SGDQNClassifier,
    SpanFeatures,
    TaxonomyClassifier,
    TokenFeatures,
)
from structsvm.tasks.common.inspection.inputs import are_sentences
from structsvm.tasks.common.inspection.weights import Explanation, WeightTable

pytestmark = pytest.mark.filterwarnings("ignore::structsvm.ConvergenceWarning")

SENTENCES = [["The", "dog", "barks", "now"], ["A", "cat", "sleeps"], ["The", "cat", "barks"]] * 2
TAGS = [["D", "N", "V", "A"], ["D", "N", "V"], ["D", "N", "V"]] * 2
ALIGNED = make_alignment(5, random_state=0)
TEXTS, NODES = ["king rook", "dice five", "novel page", "rook dice novel"] * 2, ["chess", "dice", "book", "dice"] * 2
GOODS = Taxonomy([("all", "games"), ("games", "chess"), ("games", "dice"), ("all", "book")])
X, Y = make_banana(30, random_state=0)
QUERIES = make_rankings(4, random_state=0)
BANK = ["(S (NP (D a) (N a)) (V a))", "(S (NP (D a)) (VP (N a) (V a)))"] * 2


def sequences(**settings):
    return SequenceLabeler(**{"C": 1.0, "max_iter": 2, "random_state": 0} | settings).fit(SENTENCES, TAGS)


def documents(**settings):
    settings = {"C": 1.0, "vectorizer": TfidfVectorizer(), "random_state": 0} | settings
    return TaxonomyClassifier(GOODS, **settings).fit(TEXTS, NODES)


def ranker():
    rows, grades, qid = QUERIES
    return Ranker(C=1.0, max_iter=2, random_state=0).fit(rows, grades, qid=qid)


# Cases, and features that these do not have.
FITTED = {name: lambda case=case: case.trained for name, case in CASES.items() if case.has_names} | {
    "tokens of strings": sequences,
    "texts": documents,
    "texts, few weights": lambda: documents(max_weights=10),
    "costs": lambda: SequenceAligner.from_costs("BLOSUM62", -11, -1, mode="local"),
    "queries": ranker,
}


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if not case.has_names])
def test_weights_without_names(name):
    case, estimator = CASES[name], CASES[name].trained
    for ask in (estimator.top_features, estimator.to_frame, estimator.report):
        with pytest.raises(TypeError, match=f"{case.kind.__name__} has no weights of named features"):
            ask()


@pytest.mark.parametrize("kind", FITTED)
def test_weights_by_name(kind):
    pytest.importorskip("pandas")
    from matplotlib.figure import Figure

    estimator = FITTED[kind]()
    table = estimator.model_.weight_table()
    assert table.weights.shape == (len(table.features), len(table.labels))
    frame = estimator.to_frame()
    assert list(frame) == ["feature", "label", "weight"]
    assert (frame["weight"].abs().diff().dropna() <= 0.0).all()
    assert frame["weight"].abs().sum() == pytest.approx(np.abs(table.weights).sum())
    tops = estimator.top_features(k=2)
    assert list(tops) == table.labels
    label, rows = next((label, rows) for label, rows in tops.items() if rows)
    assert rows == estimator.top_features(label, 2) or label is None
    mine = frame[frame["label"] == label] if label is not None else frame
    assert rows[0][1] == pytest.approx(mine["weight"].iloc[0])
    assert rows[0][0] in str(estimator.report(k=2))
    assert estimator.report(k=2)._repr_html_().count("<table") >= len(tops)
    display = FeatureDisplay.from_estimator(estimator, k=3, ax=Figure().subplots())
    assert sorted(np.abs(display.weights)) == pytest.approx(sorted(frame["weight"].abs()[:3]))
    assert display.ax_.get_xlabel() == "weight"


@pytest.mark.parametrize("case", TABLE.values(), ids=TABLE.keys())
def test_an_explanation_is_of_one_input(case):
    estimator, X = case.trained, case.questions
    inputs = [X[:3], X[3:6]] if case.kind is Ranker else X  # a query is several rows
    if "explanations" in case.apart:
        with pytest.raises((TypeError, ValueError), match=r"does not explain|no second best|method='hybrid'"):
            estimator.explain(inputs[0])
        return
    assert re.search("wins by|two are compared", explained(estimator, inputs[0]))
    for several, n in ((inputs[:2], 2), (inputs[:1], 1)):
        if n == 1 and case.has_rows and case.kind is not Ranker:
            assert isinstance(estimator.explain(several), Explanation)  # a matrix of one row is a row
            continue
        with pytest.raises(ValueError, match=rf"explain takes one input, got {n} of them: use \[estimator"):
            estimator.explain(several)


def explained(estimator, x):
    """The explanation of an input as text, or what is said of one that has one output only."""
    try:
        return str(estimator.explain(x))
    except ValueError as error:
        return str(error)


FORMS = {
    "texts": SENTENCES,
    "tuples": [[(word, word[0]) for word in s] for s in SENTENCES],
    "sets": [[{word, word[0]} for word in s] for s in SENTENCES],
    "dicts": [[{"word": word} for word in s] for s in SENTENCES],
    "rows": [np.eye(9)[: len(s)] for s in SENTENCES],
    "sparse rows": [csr_array(np.eye(9)[: len(s)]) for s in SENTENCES],
}


@pytest.mark.parametrize("form", FORMS)
def test_forms_of_several_sequences(form):
    X = FORMS[form]
    estimator = SequenceLabeler(C=1.0, max_iter=2, random_state=0).fit(X, TAGS)
    assert estimator.explain(X[0]).winner == estimator.predict(X[:1])[0]
    with pytest.raises(ValueError, match="explain takes one input, got 2 of them"):
        estimator.explain(X[:2])
    with pytest.raises(ValueError, match="there is one labelling only: the constraints, or an empty sequence"):
        estimator.explain([])


@pytest.mark.parametrize("make", [list, np.array, tuple])
def test_several_texts(make):
    with pytest.raises(ValueError, match="explain takes one input, got 2 of them"):
        documents().explain(make(TEXTS[:2]))
    tokens = TfidfVectorizer(analyzer=str.split)
    assert documents(vectorizer=tokens).explain(TEXTS[3]).winner in NODES
    words = TfidfVectorizer(analyzer=list)  # a list is one document there
    classifier = TaxonomyClassifier(GOODS, C=1.0, vectorizer=words, random_state=0)
    assert classifier.fit([text.split() for text in TEXTS], NODES).explain(["king", "rook"]).winner == "chess"


@pytest.mark.parametrize("sentence", [["how", "now"], [("how", "H"), ("now", "N")], [{"form": "how"}], "how now", []])
def test_what_one_sentence_is(sentence):
    assert not are_sentences(sentence)
    assert are_sentences([sentence or ["how"], sentence]) or isinstance(sentence, str)
    assert are_sentences(["how now", "brown cow"]) and are_sentences(make_dependency_trees(2, random_state=0))


def test_labels_without_weights_are_refused():
    estimator = sequences()
    with pytest.raises(ValueError, match=r"label must be one of those with weights\. Got 'n'; did you mean 'N'"):
        estimator.top_features("n")
    with pytest.raises(ValueError, match=r"Got 'X'$"):
        estimator.report(["X"])


def test_a_kernel_machine_explains_nothing():
    machine = LaRankClassifier(C=1.0, kernel="rbf", random_state=0).fit(X, Y)
    with pytest.raises(TypeError, match="LaRankClassifier"):
        machine.explain(X[0])


def test_the_names_of_sklearn_crfsuite():
    estimator = sequences(templates="attributes")
    assert (
        estimator.state_features_["U00:dog", "N"]
        == estimator.emission_[estimator.feature_names_.index("U00:dog"), list(estimator.classes_).index("N")]
    )
    assert all(estimator.state_features_.values())
    assert estimator.transition_features_["D", "N"] == pytest.approx(estimator.transition_[1, 2])
    assert len(estimator.transition_features_) == 16


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"order": 2},
        {"features": TokenFeatures(end=True)},
        {"loss": "log"},
        {"templates": "U0:%x[0,0]\nB\nB1:%x[0,0]\n"},
    ],
    ids=str,
)
def test_what_speaks_for_a_labelling(settings):
    estimator = sequences(**settings)
    found = estimator.explain(SENTENCES[0])
    (one, high), (two, low) = estimator.predict_kbest(SENTENCES[:1], 2)[0]
    assert (found.winner, found.runner_up) == (one, two)
    assert found.margin == pytest.approx(high - low, rel=1e-4)
    # Only where the two differ does a feature count, and it has a name and a place.
    assert all(part.feature and any(tag in part.label for tag in "DNVA") for part in found.contributions)
    assert f"wins by {found.margin:.4g} over" in str(found)


def test_what_speaks_for_alignments_trees_and_nodes():
    aligner = FITTED["costs"]()
    (_, high), (_, low) = aligner.predict_kbest(ALIGNED.X[:1], 2)[0]
    found = aligner.explain(ALIGNED.X[0])
    assert found.margin == pytest.approx(high - low)
    assert found.winner == aligner.predict(ALIGNED.X[:1])[0]

    for settings in ({"features": SpanFeatures(templates=())}, {}):
        parser = GrammarParser(C=1.0, max_iter=1, random_state=0, **settings).fit(BANK)
        sentence = [("x", "D"), ("y", "N"), ("z", "V")]
        (one, high), (two, low) = parser.predict_kbest([sentence], 2)[0]
        found = parser.explain(sentence)
        assert (found.winner, found.runner_up) == (one, two)
        assert found.margin == pytest.approx(high - low)

    for settings in ({}, {"attributes": "normalized"}, {"attributes": "flat"}, {"fit_intercept": False}):
        classifier = documents(**settings)
        scores = np.sort(classifier.decision_function(TEXTS[3:4])[0])
        found = classifier.explain(TEXTS[3])
        assert found.margin == pytest.approx(scores[-1] - scores[-2], rel=1e-4)
        assert found.winner == classifier.predict(TEXTS[3:4])[0]
        assert {part.feature for part in found.contributions} <= {"rook", "dice", "novel", "intercept"}


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize(
    ("make", "settings"),
    [
        (AmbiguousClassifier, {"C": 1.0, "loss": "pairwise", "max_iter": 5}),
        (SGDQNClassifier, {}),
        (MultivariateClassifier, {"C": 1.0}),
    ],
    ids=["ambiguous", "linear", "multivariate"],
)
def test_what_speaks_for_labels_of_rows(make, settings, fit_intercept):
    """Three labels or two; columns in units that are not those of training."""
    X, y = np.array([[1.0, 300.0], [2.0, 100.0], [-1.0, 500.0], [0.5, 250.0]] * 10), np.array([2, 1, 0, 2] * 10)
    y = y if make is not MultivariateClassifier else 1 * (y > 0)
    classifier = make(random_state=0, fit_intercept=fit_intercept, **settings)
    classifier.fit(X, [{int(label)} for label in y] if make is AmbiguousClassifier else y)
    scores = classifier.decision_function(X[:4])
    scores = np.column_stack([0.0 * scores, scores]) if scores.ndim == 1 else scores
    for x, label, own in zip(X, classifier.predict(X[:4]), scores):
        found = classifier.explain(x)
        assert found.winner == label
        assert found.margin == pytest.approx(np.diff(np.sort(own))[-1], rel=1e-4, abs=1e-6)
        assert {part.feature for part in found.contributions} <= {"feature 0", "feature 1", "intercept"}
        assert {part.label for part in found.contributions} == {f"{found.winner}, not {found.runner_up}"}
    assert str(classifier.explain(X[:1])) == str(classifier.explain(csr_array(X[:1]))) == str(classifier.explain(X[0]))
    for bad in (X[:2], X[0, :1], [[1.0, np.nan]]):
        with pytest.raises(ValueError, match=r"x must be one row of 2 columns|not finite|takes one input, got 2"):
            classifier.explain(bad)


@pytest.mark.parametrize("interactions", ["none", "full"])
def test_what_speaks_for_sets_of_labels(interactions):
    X, Y = make_label_sets(60, 4, random_state=0)
    classifier = MultilabelClassifier(C=1.0, interactions=interactions, random_state=0).fit(X, Y)
    margins, shared = classifier.decision_function(X[:10]), 0
    for x, own in zip(X, margins):
        found = classifier.explain(x)
        assert found.winner == tuple(np.flatnonzero(classifier.predict(x[np.newaxis])[0]))
        assert len(set(found.winner) ^ set(found.runner_up)) >= 1
        assert found.margin == pytest.approx(np.abs(own).min(), rel=1e-6)
        shared += any(part.feature == "together" for part in found.contributions)
    assert (shared > 0) == (interactions == "full")


def test_what_speaks_for_labels_of_graphs():
    nodes = [[{"red": 1.0}, {"blue": 1.0}, {"red": 1.0}], [{"blue": 1.0}, {"blue": 1.0, "big": 2.0}]] * 4
    X = [(rows, [(k, k + 1) for k in range(len(rows) - 1)], np.full((len(rows) - 1, 1), len(rows))) for rows in nodes]
    y = [["R" if "red" in row else "B" for row in rows] for rows, _, _ in X]
    labeler = GraphLabeler(C=1.0, random_state=0).fit(X, y)
    for x in X[:2]:
        (one, high), (two, low) = labeler.predict_kbest([x], 2)[0]
        found = labeler.explain(x)
        assert (list(found.winner), list(found.runner_up)) == (list(one), list(two))
        assert found.margin == pytest.approx(high - low)
        parts = {part.feature for part in found.contributions}
        assert parts & {"red", "blue", "big"} and any(part.startswith("edge") for part in parts)
    with pytest.raises(ValueError, match="the k best labellings need exact inference"):
        GraphLabeler(C=1.0, method="relaxed", random_state=0).fit(X, y).explain(X[0])


def test_what_speaks_for_dependency_trees():
    trees = [[(2, "det"), (3, "nsubj"), (0, "root")], [(2, "nsubj"), (0, "root")]] * 3
    sentences = [["The", "dog", "barks"], ["cats", "sleep"]] * 3
    parser = DependencyParser(C=1.0, max_iter=2, random_state=0).fit(sentences, trees)
    (one, high), (two, low) = parser.predict_kbest(sentences[:1], 2)[0]
    found = parser.explain(sentences[0])
    assert (found.winner, found.runner_up) == (one, two)
    assert found.margin == pytest.approx(high - low, rel=1e-4)
    differ = sum(a != b for a, b in zip(one, two))
    assert len(found.contributions) <= 2 * differ
    assert any(part.feature.startswith(("The (1) under", "dog (2) under")) for part in found.contributions)
    with pytest.raises(ValueError, match="fewer than two trees"):
        parser.explain([])


def test_one_output_alone_is_not_explained():
    parser = GrammarParser(C=1.0, max_iter=1, random_state=0).fit(BANK)
    with pytest.raises(ValueError, match=r"the grammar has 0 trees for the sentence, and two are compared"):
        parser.explain([("x", "V")])
    with pytest.raises(ValueError, match="there is one label only, and two are compared"):
        Explanation.of_row([1.0], WeightTable(["a"], ["b"], np.ones((1, 1))), np.ones(1), ["b"])
    with pytest.raises(ValueError, match="the graph has one labelling only"):
        GraphLabeler(C=1.0, random_state=0).fit([([{"a": 1.0}], [])] * 2, [["A"], ["B"]]).explain(([], []))


@pytest.mark.parametrize("form", [np.asarray, csr_array], ids=["dense", "sparse"])
def test_what_speaks_for_the_first_row_of_a_query(form):
    estimator, (rows, _, qid) = ranker(), QUERIES
    query = rows[qid == qid[0]]
    scores = estimator.predict(query)
    found = estimator.explain(form(query))
    order = np.argsort(-scores)
    assert (found.winner, found.runner_up) == tuple(order[:2])
    assert found.margin == pytest.approx(scores[order[0]] - scores[order[1]])
    by_name = {part.feature: part.value for part in found.contributions}
    expected = (query[order[0]] - query[order[1]]) * estimator.coef_
    assert by_name == pytest.approx({f"feature {j}": value for j, value in enumerate(expected) if value != 0.0})
    with pytest.raises(ValueError, match="one row only"):
        estimator.explain(form(query[:1]))
    with pytest.raises(ValueError, match="features"):
        estimator.explain(form(query[:, :-1]))


def test_what_speaks_for_a_meaning():
    """The margin is the log of the ratio of probabilities; what a weight adds is its own derivative times itself."""
    house = make_ambig_house(40, level=1, random_state=0)
    method = Hybrid(features=("affixes", "borders", "inside"))
    parser = SemanticParser(method=method, max_iter=2, random_state=0).fit(house.sentences, house.bags)
    sentence = house.sentences[0]

    def margin():
        (_, high), (_, low) = parser.predict_kbest([sentence], 4)[0][:2]
        return np.log(high / low)

    found = parser.explain(sentence)
    assert [found.winner, found.runner_up] == [text for text, _ in parser.predict_kbest([sentence], 4)[0][:2]]
    assert found.margin == pytest.approx(margin())
    hybrid, weights = parser.model_.hybrid, parser.model_.weights
    number = {hybrid.feature_name(k): k for k in np.flatnonzero(weights).tolist()}
    assert len(number) == np.count_nonzero(weights)
    named = [part for part in found.contributions if part.feature != "derivations"]
    assert len(found.contributions) - len(named) <= 1
    for part in [*named[:3], *named[-3:]]:
        k = number[part.feature, part.label]
        step, before = 1e-4, weights[k]
        values = []
        for sign in (1.0, -1.0):
            weights[k] = before + sign * step
            values.append(margin())
        weights[k] = before
        assert part.value == pytest.approx(before * (values[0] - values[1]) / (2 * step), rel=1e-3, abs=1e-6)
    with pytest.raises(ValueError, match="has 0 meanings"):
        parser.explain("zzz")
    other = SemanticParser(method="ospas", random_state=0).fit(house.sentences, house.bags)
    with pytest.raises(ValueError, match="explain is for models of method='hybrid'"):
        other.explain(sentence)


def test_names_of_the_weights_of_meanings():
    units = MeaningUnits([("f", "a1", "b"), ("f", "a2", "b")])
    hybrid = HybridTrees(units, Lexicon(units, {}, [1]), ["w:x", "p:y"], ["l:\x02", "r:x"], inside=True)
    names = [hybrid.feature_name(k) for k in range(hybrid.n_features)]
    assert len(set(names)) == len(names)
    number, lay = units.number, hybrid.layout
    assert names[hybrid.word_features(number[Unit("b", None)], 1)] == ("has p:y", "b")
    row = lay.rows[units.kinds[number[Unit("a1", None)]]]
    assert names[lay.end + 2 * row] == ("ends at l:the begin", "names like a1")
    assert names[lay.slot_begin + 2 + 1] == ("begins at r:x", "argument 2 of f")
    assert names[lay.order + 3] == ("after another", "argument 2 of f")
    assert names[lay.pair] == ("is f", "the whole")
    assert names[lay.pair + hybrid.pair(1, number[Unit("b", None)])] == ("is names like b", "argument 2 of f")
    assert names[lay.present] == ("with w:x", "f")
    assert names[lay.name - 1][0] == "around a word"
    assert names[lay.name] == ("has w:x", "b")
