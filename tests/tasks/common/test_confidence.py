"""Confidence of outputs, abstention below a number, and probabilities of given outputs, of all estimators."""

import numpy as np
import pytest
from cases import TABLE

from structsvm.datasets import make_dependency_trees, make_orderings, make_sequences
from structsvm.risk.outputs import confidence
from structsvm.structures.trees import parse_tree
from structsvm.tasks import DependencyParser, GrammarParser, GraphLabeler, ItemOrderer, SequenceLabeler

# Outputs of these have no confidence.
WITHOUT = {"ranker, pairs", "ranker, map", "ranker, ndcg", "ospas", "concepts", "bags of concepts", "structured"}
NAMES = [name for name in TABLE if name != "tagged"]


@pytest.fixture(scope="module")
def fitted():
    """Fitted estimators by the names of their cases."""
    return lambda name: TABLE[name].trained


@pytest.mark.filterwarnings("ignore::structsvm.AdviceWarning")
@pytest.mark.parametrize("name", [name for name in NAMES if name not in WITHOUT])
def test_answers_above_a_number(fitted, name):
    model, X = fitted(name), TABLE[name].questions
    sure, outputs = model.predict_confidence(X), model.predict(X)
    assert sure.dtype == np.float64 and sure.shape == (len(outputs),) and not np.isnan(sure).any()
    assert sure.tolist() == confidence(model, X, outputs).tolist() == model.predict_confidence(X, outputs).tolist()
    middle = float(np.median(np.clip(sure, -1e9, 1e9)))
    chosen = model.predict_selective(X, abstain_below=middle)
    assert len(chosen) == len(outputs)
    for own, answer, output in zip(sure.tolist(), chosen, outputs, strict=True):
        assert (answer is None) == (own < middle)
        assert answer is None or repr(answer) == repr(output.item() if isinstance(output, np.generic) else output)
    lowest = float(sure.min()) if np.isfinite(sure.min()) else -1e300
    assert all(answer is not None for answer in model.predict_selective(X, abstain_below=lowest))
    for bad in ("high", None, np.nan):
        with pytest.raises(ValueError, match=f"The 'abstain_below' parameter of {type(model).__name__}.predict_sel"):
            model.predict_selective(X, abstain_below=bad)


@pytest.mark.parametrize("name", sorted(WITHOUT))
def test_estimators_without_confidence(fitted, name):
    model = fitted(name)
    with pytest.raises(TypeError, match=type(model).__name__):
        model.predict_confidence(TABLE[name].questions)


# ---- given outputs --------------------------------------------------------------------------------


def by_enumeration(model, X, Y, k=5000):
    """The probabilities of outputs, by all outputs of each input."""
    every = [{str(output): p for output, p in found} for found in model.predict_kbest(X, k, probabilities=True)]
    assert [sum(own.values()) for own in every] == pytest.approx(np.ones(len(X)), abs=1e-4)
    return [own[str(y)] for own, y in zip(every, Y, strict=True)]


@pytest.mark.parametrize("params", [{}, {"loss": "log", "order": 2}, {"segments": 2, "loss": "log"}], ids=str)
def test_labellings(params):
    X, y = make_sequences(60, mean_length=3.0, random_state=0)
    model = SequenceLabeler(C=1.0, random_state=0, **params).fit(X, y)
    short = [(x, own) for x, own in zip(X, y, strict=True) if len(x) <= 2][:5]
    X, y = [x for x, _ in short], [own for _, own in short]
    assert model.probability_of(X, y) == pytest.approx(by_enumeration(model, X, y), abs=1e-5)
    if params.get("segments"):
        return
    first = [[own[0], *[None] * (len(own) - 1)] for own in y]
    column = [list(model.classes_).index(own[0]) for own in y]
    marginals = [own[0, k] for own, k in zip(model.predict_marginals(X), column, strict=True)]
    assert model.probability_of(X, first) == pytest.approx(marginals, abs=1e-5)
    found = model.probability_of([[], X[0], X[0]], [[], first[0], [None] * len(X[0])])
    assert found == pytest.approx([1.0, marginals[0], 1.0], abs=1e-5)


def test_trees():
    trees = [
        "(S (NP (NN cat)) (VP (VB saw) (NP (NP (NN dog)) (PP (IN in) (NP (NN rain))))))",
        "(S (NP (NN cat)) (VP (VB saw) (NP (NN dog)) (PP (IN in) (NP (NN rain)))))",
    ]
    parser = GrammarParser.from_counts(trees, smoothing=0.5)
    X = [parse_tree(tree).tokens() for tree in trees]
    shown = [str(tree) for tree in parser.predict(X)]
    assert parser.probability_of(trees) == pytest.approx(by_enumeration(parser, X, map(parse_tree, trees)), abs=1e-6)
    assert parser.probability_of(X, trees).tolist() == parser.probability_of(trees).tolist() and len(set(shown)) == 1
    part = ["(S (NP (NN cat)) (VP (VB saw) (NP (... (NN dog) (IN in) (NN rain)))))"]
    bracket = {span[:3]: span[3] for span in parser.predict_spans(X[:1], least=1e-6)[0]}
    assert parser.probability_of(part) == pytest.approx([bracket[2, 5, "NP"]], abs=1e-6)


@pytest.mark.filterwarnings("ignore::structsvm.ConvergenceWarning")
def test_dependencies_and_orders():
    trees = make_dependency_trees(30, max_length=5, random_state=0)
    parser = DependencyParser(C=0.1, probability=True, random_state=0).fit(trees)
    trees = [tree for tree in trees if len(tree.words) < 5][:5]
    words, arcs = [tree.words for tree in trees], [tree.arcs for tree in trees]
    found = parser.probability_of(words, arcs)
    ranked = parser.predict_kbest(words, 500, probabilities=True)
    for p, own, of in zip(found, arcs, ranked, strict=True):
        same = [q for one, q in of if [tuple(a) for a in one] == [tuple(a) for a in own]]
        assert p == pytest.approx(sum(same), abs=1e-5)
    X, y = make_orderings(30, 3, max_items=4, random_state=0)
    orderer = ItemOrderer(C=0.1, probability=True, random_state=0).fit(X, y)
    ranked = orderer.predict_kbest(X[:5], 24, probabilities=True)
    for p, own, of in zip(orderer.probability_of(X[:5], y[:5]), y, ranked, strict=False):
        assert p == pytest.approx(sum(q for one, q in of if list(one) == list(own)), abs=1e-5)


@pytest.mark.filterwarnings("ignore::structsvm.ConvergenceWarning")
def test_graphs():
    case = TABLE["graph"]
    model = GraphLabeler(loss="log", C=1.0, random_state=0).fit(case.X, case.y)
    every = model.predict_kbest(case.X[:4], 27, probabilities=True)
    for p, own, of in zip(model.probability_of(case.X[:4], case.y[:4]), case.y, every, strict=False):
        assert p == pytest.approx(sum(q for one, q in of if list(one) == list(own)), abs=1e-5)


def test_probabilities_of_a_margin_alone():
    X, y = make_sequences(30, random_state=0)
    model = SequenceLabeler(C=1.0, probability=False, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="probability_of needs probabilities, and the scores of this model are marg"):
        model.probability_of(X, y)
