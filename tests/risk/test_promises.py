"""Promises of every estimator: what they refuse, what they return, and that they are kept."""

import pickle

import networkx as nx
import numpy as np
import pytest
from cases import TABLE
from scipy.stats import binom
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import LinearSVC

from structsvm import AdviceWarning
from structsvm.datasets import make_dependency_trees, make_orderings, make_sequences, make_treebank
from structsvm.risk import ConformalOutputs, ConformalSets, ConformalSpans, LossController, RiskController
from structsvm.tasks import (
    DependencyParser,
    GrammarParser,
    GraphLabeler,
    ItemOrderer,
    MultilabelClassifier,
    SequenceLabeler,
    TaxonomyClassifier,
)

# Outputs of these have no confidence of their own.
WITHOUT = {"ranker, pairs", "ranker, map", "ranker, ndcg", "ospas", "concepts", "bags of concepts", "structured"}
# Outputs of these are known in part.
OPEN = {name for name in TABLE if name.startswith("open ") and name not in ("open taxonomy", "open meanings")}
WHOLE = [name for name in TABLE if name not in WITHOUT | OPEN]


@pytest.fixture(scope="module")
def fitted():
    """Fitted estimators by the names of their cases, with inputs and outputs."""

    def of(name):
        case = TABLE[name]
        return case.trained, case.questions, case.X if case.y is None else case.y

    return of


def text(output):
    return repr(output.tolist() if isinstance(output, (np.ndarray, np.generic)) else output)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", WHOLE)
def test_answers_are_the_estimator_s(fitted, name):
    model, X, y = fitted(name)
    careful = RiskController(model, alpha=0.6, delta=0.3).calibrate(X, y)
    answers, outputs = careful.predict(X), model.predict(X)
    sure = careful.predict_confidence(X)
    assert len(answers) == len(outputs) == len(careful.reasons_) == careful.n_calibration_ == len(y)
    for answer, output, reason, own in zip(answers, outputs, careful.reasons_, sure, strict=True):
        assert (answer is None) == (reason is not None) == (own <= careful.threshold_)
        assert answer is None or text(answer) == text(output)
    passed = sure > careful.threshold_
    assert careful.coverage_ == pytest.approx(passed.mean())
    if passed.any():
        assert careful.score(X, y) == pytest.approx(passed.mean() * (1.0 - careful.risk_))
    assert careful.curve_.coverage[-1] == pytest.approx(1.0)
    assert (np.diff(careful.curve_.coverage) > 0.0).all() and (np.diff(careful.curve_.threshold) < 0.0).all()


@pytest.mark.parametrize("name", sorted(WITHOUT))
def test_estimators_without_confidence(fitted, name):
    model, X, y = fitted(name)
    with pytest.raises(TypeError, match=type(model).__name__):
        RiskController(model).calibrate(X, y)


@pytest.mark.filterwarnings("ignore::structsvm.AdviceWarning")
@pytest.mark.parametrize("name", sorted(OPEN))
def test_outputs_that_are_known_in_part(fitted, name):
    model, X, y = fitted(name)
    with pytest.raises(ValueError, match=r"1 is not known|word 1 has no head"):
        RiskController(model).calibrate(X, y)


@pytest.mark.filterwarnings("ignore::structsvm.AdviceWarning")
def test_a_confidence_of_one_s_own(fitted):
    model, X, y = fitted("concepts")
    careful = RiskController(model, alpha=0.6, delta=0.3, confidence=lambda _, X: [len(x[0]) for x in X]).calibrate(
        X, y
    )
    assert careful.predict_confidence(X[:1]).tolist() == [len(X[0][0])]
    for strange in ([1.0], np.full(len(X), np.nan)):
        with pytest.raises(ValueError, match=f"confidence must return a number for each of {len(X)} inputs"):
            RiskController(model, confidence=lambda *_, found=strange: found).calibrate(X, y)


def test_a_loss_of_one_s_own():
    X, y = make_sequences(300, mean_length=5.0, random_state=0)
    model = SequenceLabeler(C=0.1, random_state=0).fit(X[:60], y[:60])

    def wrong_share(true, found):
        return np.mean([a != b for a, b in zip(true, found, strict=True)])

    strict, mild = (
        RiskController(model, alpha=0.25, delta=0.1, loss=loss).calibrate(X[60:], y[60:])
        for loss in ("wrong", wrong_share)
    )
    assert mild.threshold_ <= strict.threshold_ and mild.coverage_ > 0.5
    with pytest.raises(ValueError, match=r"loss must return a number from 0 to 1, got 2 for output 0"):
        RiskController(model, loss=lambda *_: 2.0).calibrate(X[60:], y[60:])


def test_what_is_refused():
    X, y = make_sequences(60, random_state=0)
    model = SequenceLabeler(C=0.1, random_state=0)
    with pytest.raises(NotFittedError, match="call fit, which trains it"):
        RiskController(model).calibrate(X, y)
    model.fit(X, y)
    with pytest.raises(NotFittedError):
        RiskController(model).predict(X)
    with pytest.raises(ValueError, match=r"alpha=0.01 with delta=0.05 needs at least 299 held-out outputs, got 60"):
        RiskController(model).calibrate(X, y)
    with pytest.raises(ValueError, match="X has 60 inputs, y has 59 outputs"):
        RiskController(model).calibrate(X, y[1:])
    with pytest.raises(ValueError, match="needs the true outputs y"):
        RiskController(model).calibrate(X)
    for params in ({"alpha": 0.0}, {"alpha": 1}, {"delta": 1.0}, {"confidence": "high"}, {"loss": 0.1}):
        with pytest.raises(ValueError, match=f"The '{next(iter(params))}' parameter of RiskController must be"):
            RiskController(model).set_params(**params).calibrate(X, y)
    with pytest.raises(ValueError, match="sample_weight has shape"):
        RiskController(model, alpha=0.5).calibrate(X, y, np.ones(3))
    with pytest.raises(ValueError, match=r"sequence 0 has \d+ labels, X has"):
        RiskController(model, alpha=0.5).calibrate(X, [own[1:] for own in y])


@pytest.mark.parametrize("kind", [RiskController, ConformalSets, ConformalSpans, ConformalOutputs, LossController])
def test_before_calibration_and_on_nothing(kind):
    X, y = make_sequences(60, mean_length=3.0, random_state=0)
    model = SequenceLabeler(C=0.1, random_state=0).fit(X[:30], y[:30])
    promise = kind(model, alpha=0.9)
    for ask in (
        lambda: promise.predict(X),
        lambda: promise.score(X, y),
        lambda: promise.classes_,
        lambda: promise.save("x"),
    ):
        with pytest.raises(NotFittedError):
            ask()
    promise.calibrate(X[30:], y[30:])
    assert promise.predict([]) == [] and promise.predict(iter(X[:2])) == promise.predict(X[:2])


@pytest.mark.filterwarnings("ignore::structsvm.AdviceWarning")
def test_a_failed_calibration_leaves_the_old_one():
    X, y = make_sequences(60, random_state=0)
    careful = RiskController(SequenceLabeler(C=0.1, random_state=0).fit(X, y), alpha=0.5).calibrate(X, y)
    before = careful.predict(X)
    with pytest.raises(ValueError, match="needs at least 5 held-out outputs, got 2"):
        careful.calibrate(X[:2], y[:2])
    assert careful.predict(X) == before and careful.n_calibration_ == 60


def test_nothing_is_sure_enough():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 2)), rng.integers(0, 2, 200)
    model = LogisticRegression().fit(X, y)
    with pytest.warns(AdviceWarning, match="predict will answer nothing: the least risk of held-out outputs is"):
        careful = RiskController(model, alpha=0.02, delta=0.1).calibrate(
            rng.normal(size=(300, 2)), rng.integers(0, 2, 300)
        )
    assert careful.predict(X) == [None] * 200 and careful.coverage_ == 0.0 and np.isnan(careful.risk_)
    assert careful.reasons_[0] == "no confidence is high enough for alpha=0.02"


def two_clouds(n, seed):
    rng = np.random.default_rng(seed)
    y = np.array(["p", "q"])[rng.integers(0, 2, n)]
    return rng.normal(size=(n, 3)) + 1.5 * (y == "q")[:, None], y


@pytest.mark.parametrize("last", [LogisticRegression(), LinearSVC(random_state=0)], ids=["probabilities", "scores"])
def test_the_contract_of_scikit_learn(last):
    X, y = two_clouds(2000, 0)
    careful = RiskController(make_pipeline(StandardScaler(), last), alpha=0.05, delta=0.1, random_state=0).fit(X, y)
    assert careful.n_calibration_ == 600 and 0.2 < careful.coverage_ <= 1.0
    assert careful.classes_.tolist() == ["p", "q"] and set(careful.predict(X)) <= {"p", "q", None}
    again = clone(careful).fit(X, y)
    assert again.threshold_ == careful.threshold_ and again.predict(X) == careful.predict(X)
    assert pickle.loads(pickle.dumps(careful)).predict(X) == careful.predict(X)
    outside = make_pipeline(StandardScaler(), RiskController(last, alpha=0.05, delta=0.1, random_state=0)).fit(X, y)
    assert len(outside.predict(X[:5])) == 5
    search = GridSearchCV(careful, {"alpha": [0.05, 0.2]}, cv=2).fit(X, y)
    assert search.best_params_ == {"alpha": 0.2}  # it answers more
    trained = careful.estimator_
    assert careful.calibrate(X[:200], y[:200]).estimator_ is trained


@pytest.mark.filterwarnings("ignore::structsvm.AdviceWarning")
def test_structures_in_a_pipeline():
    X, y = make_sequences(120, random_state=0)
    lower = FunctionTransformer(lambda X: [[{"w": str(token)} for token in own] for own in X])
    whole = make_pipeline(lower, SequenceLabeler(C=0.1, random_state=0)).fit(X[:60], y[:60])
    careful = RiskController(whole, alpha=0.5, delta=0.2).calibrate(X[60:], y[60:])
    assert len(careful.predict(X)) == 120
    assert ConformalSets(whole, alpha=0.2).calibrate(X[60:], y[60:]).score(X[60:], y[60:]) >= 0.8


@pytest.mark.parametrize("promise", [RiskController, ConformalSets, ConformalOutputs, ConformalSpans, LossController])
def test_a_pipeline_transforms_its_inputs_once(promise):
    X, y = make_sequences(120, random_state=0)
    calls = []

    def counted(X):
        calls.append(len(X))
        return X

    whole = make_pipeline(FunctionTransformer(counted), SequenceLabeler(loss="log", C=1.0, random_state=0))
    own = promise(whole.fit(X[:60], y[:60]), alpha=0.8).calibrate(X[60:], y[60:])
    for ask in (lambda: own.predict(X[:7]), lambda: own.score(X[:7], y[:7])):
        calls.clear()
        ask()
        assert calls == [7]


@pytest.mark.filterwarnings("ignore::structsvm.ConvergenceWarning", "ignore::structsvm.AdviceWarning")
def test_trees_alone():
    trees = make_treebank(60, max_length=7, random_state=0)
    careful = RiskController(GrammarParser(C=0.1, random_state=0), alpha=0.8, delta=0.3, random_state=0).fit(trees)
    assert careful.n_calibration_ == 18
    sentences = [tree.tokens() for tree in trees]
    assert careful.calibrate(sentences, trees).threshold_ == careful.calibrate(trees).threshold_
    words = make_dependency_trees(40, max_length=7, random_state=0)
    parser = RiskController(DependencyParser(C=0.1, random_state=0), alpha=0.8, delta=0.3, random_state=0).fit(words)
    assert len(parser.predict(words)) == 40


# ---- sets -----------------------------------------------------------------------------------------

LABELLED = [
    name
    for name in WHOLE
    if TABLE[name].room not in ("grammar", "dependency", "tagged", "alignment", "semantics", "ordering", "ambiguous")
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("cover", ["output", "unit"])
@pytest.mark.parametrize("name", LABELLED)
def test_sets_of_labels(fitted, name, cover):
    model, X, y = fitted(name)
    if name == "open taxonomy":
        y = TABLE["taxonomy"].y
    sets = ConformalSets(model, alpha=0.2, cover=cover).calibrate(X, y)
    found, masks = sets.predict(X), sets.predict_masks(X)
    assert len(found) == len(masks) == sets.n_calibration_ == len(y)
    if cover == "output":
        assert sets.score(X, y) >= 0.8
    names = getattr(model.model_, "labels", None)
    for own, mask, output in zip(found, masks, model.predict(X), strict=True):
        if TABLE[name].room == "taxonomy":
            assert own in model.taxonomy_.nodes
        elif TABLE[name].room == "multilabel":
            assert len(own) == mask.sum()
        elif np.ndim(mask) == 1:
            assert output in own and len(own) == mask.sum()
        elif not model.model_.has_spans if name != "segments" and TABLE[name].room == "sequence" else False:
            assert [labels[0] for labels in own] == output or name == "log loss of sequences"
            assert [{names[k] for k in np.flatnonzero(row)} for row in mask] == list(map(set, own))


@pytest.mark.parametrize("name", ["grammar", "alignment", "semantics", "ordering", "concepts"])
def test_outputs_without_labels(fitted, name):
    model, X, y = fitted(name)
    with pytest.raises(TypeError, match="ConformalOutputs takes whole outputs"):
        ConformalSets(model, alpha=0.2).calibrate(X, y)


@pytest.mark.filterwarnings("ignore::structsvm.ConvergenceWarning")
def test_sets_of_heads():
    trees = make_dependency_trees(120, max_length=8, random_state=0)
    parser = DependencyParser(C=0.1, probability=True, random_state=0).fit(trees[:60])
    sets = ConformalSets(parser, alpha=0.1).calibrate(trees[60:])
    heads = sets.predict([tree.words for tree in trees[60:]])
    inside = [
        all(head in own for (head, _), own in zip(tree.arcs, of, strict=True))
        for tree, of in zip(trees[60:], heads, strict=True)
    ]
    assert sets.score(trees[60:]) == np.mean(inside) >= 0.9
    with pytest.raises(TypeError, match="no probabilities of heads"):
        ConformalSets(DependencyParser(C=0.1, random_state=0).fit(trees[:20])).calibrate(trees[60:])


@pytest.mark.parametrize(
    "name", ["sequence", "log loss of sequences", "segments", "grammar", "dependency", "graph", "semantics"]
)
def test_sets_of_outputs(fitted, name):
    model, X, y = fitted(name)
    sets = ConformalOutputs(model, alpha=0.2, k=6).calibrate(X, y)
    found = sets.predict(X)
    assert sets.score(X, y) >= 0.8 and all(1 <= len(own) <= 6 for own in found)
    if name != "semantics":
        assert [text(own[0]) for own in found] == list(map(text, model.predict(X)))


def test_too_few_of_the_best_outputs():
    X, y = make_orderings(60, 3, max_items=5, random_state=0)
    model = ItemOrderer(C=0.01, random_state=0).fit(X[:20], y[:20])
    with pytest.raises(ValueError, match=r"no sets of k=1 outputs .*among them for \d+ of 40 held-out inputs"):
        ConformalOutputs(model, alpha=0.05, k=1).calibrate(X[20:], y[20:])
    assert ConformalOutputs(model, alpha=0.05, k=120).calibrate(X[20:], y[20:]).score(X[20:], y[20:]) >= 0.95


def test_a_subtree_is_a_subtree():
    rng = np.random.default_rng(0)
    edges = [("r", "a"), ("r", "b"), ("a", "a1"), ("a", "a2"), ("b", "b1"), ("b", "b2")]
    leaves = np.array(["a1", "a2", "b1", "b2"])
    ids = rng.integers(0, 4, 500)
    X = rng.normal(size=(500, 3)) + 1.2 * np.array([[1, 1, 0], [1, -1, 0], [-1, 0, 1], [-1, 0, -1]])[ids]
    model = TaxonomyClassifier(taxonomy=edges, C=1.0, random_state=0).fit(X[:200], leaves[ids[:200]])
    sets = ConformalSets(model, alpha=0.1).calibrate(X[200:], leaves[ids[200:]])
    nodes, masks = sets.predict(X[200:]), sets.predict_masks(X[200:])
    assert len(set(nodes)) > 3
    for node, mask in zip(nodes, masks, strict=True):
        below = {leaf for leaf in leaves if node == "r" or node in model.taxonomy_.ancestors(leaf)}
        assert {leaves[k] for k in np.flatnonzero(mask)} == below
    assert 0.9 <= sets.score(X[200:], leaves[ids[200:]]) < 1.0
    flat = ConformalSets(model, alpha=0.1, subtree=False).calibrate(X[200:], leaves[ids[200:]])
    assert flat.predict_masks(X).sum() < sets.predict_masks(X).sum()
    with pytest.raises(ValueError, match="subtree=True is for a TaxonomyClassifier"):
        ConformalSets(LogisticRegression().fit(X, ids), subtree=True).calibrate(X, ids)


def test_labels_of_nodes_by_name():
    """True labels are those of the nodes that they name, in whatever order; one that is left out is not known."""
    rng, graphs, y = np.random.default_rng(0), [], []
    for _ in range(60):
        graph = nx.path_graph(4)
        own = rng.integers(0, 2, 4)
        for node, label in enumerate(own.tolist()):
            graph.nodes[node]["features"] = [1.0, label + rng.normal()]
        graphs.append(graph)
        y.append(dict(enumerate(own.tolist())))
    model = GraphLabeler(loss="log", C=1.0, random_state=0).fit(graphs[:20], y[:20])
    turned = [dict(reversed(own.items())) for own in y]
    for made in (
        lambda: ConformalSets(model, alpha=0.2, cover="unit"),
        lambda: LossController(model, loss="missed", alpha=0.3),
        lambda: RiskController(model, alpha=0.5, delta=0.2, loss="parts"),
    ):
        one, other = (made().calibrate(graphs[20:], own[20:]) for own in (y, turned))
        assert vars(one).get("quantile_", vars(one).get("threshold_")) == vars(other).get(
            "quantile_", vars(other).get("threshold_")
        )
        assert one.score(graphs[20:], y[20:]) == other.score(graphs[20:], turned[20:])
        with pytest.raises(ValueError, match=r"y: graph 1 is not known, or in part: leave it out"):
            made().calibrate(graphs[20:], [y[20], {0: 1, 1: 0, 3: 1}, *y[22:]])
    with pytest.raises(ValueError, match=r"y: graph 1 is not known, or in part: leave it out"):
        RiskController(model, alpha=0.5, delta=0.2).calibrate(graphs[20:], [y[20], {0: 1, 1: 0, 3: 1}, *y[22:]])


def test_sets_for_each_class_and_group():
    rng = np.random.default_rng(0)
    X, y = two_clouds(1500, 0)
    keep = (y == "p") | (rng.random(1500) < 0.15)  # few are q
    X, y = X[keep], y[keep]
    model = LogisticRegression().fit(X[:300], y[:300])
    sets = ConformalSets(model, alpha=0.1).calibrate(X[300:], y[300:])
    for each in (
        ConformalSets(model, alpha=0.1, by_label=True).calibrate(X[300:], y[300:]),
        ConformalSets(model, alpha=0.1).calibrate(X[300:], y[300:], groups=y[300:]),
    ):
        assert set(each.quantile_) == {"p", "q"}
    masks = ConformalSets(model, alpha=0.1, by_label=True).calibrate(X[300:], y[300:]).predict_masks(X[300:])
    of_q = y[300:] == "q"
    assert masks[of_q, 1].mean() >= 0.9 > sets.predict_masks(X[300:])[of_q, 1].mean()
    by_group = ConformalSets(model, alpha=0.1).calibrate(X[300:], y[300:], groups=y[300:])
    with pytest.raises(ValueError, match="predict takes groups if calibrate was given groups"):
        by_group.predict(X)
    with pytest.raises(ValueError, match="'z' is none of the groups"):
        by_group.predict(X[:1], groups=["z"])
    with pytest.raises(ValueError, match="groups has 1 entries, X has 2 inputs"):
        by_group.predict(X[:2], groups=["p"])
    first = np.append(np.flatnonzero(~of_q)[:50], np.flatnonzero(of_q)[:3])
    with pytest.raises(ValueError, match=r"class 'q': alpha=0\.1 needs at least 9 held-out outputs, got"):
        ConformalSets(model, alpha=0.1, by_label=True).calibrate(X[300:][first], y[300:][first])


def test_labels_that_the_estimator_does_not_know():
    X, y = two_clouds(200, 0)
    model = LogisticRegression().fit(X, y)
    strange = np.where(np.arange(200) % 3 == 0, "z", y)
    with pytest.raises(ValueError, match="knows all labels of only 133 of 200 held-out outputs"):
        ConformalSets(model, alpha=0.1).calibrate(X, strange)


def test_cross_conformal_sets():
    X, y = two_clouds(60, 0)
    sets = ConformalSets(LogisticRegression(), alpha=0.1, cv=5, random_state=0).fit(X, y)
    later, truth = two_clouds(2000, 1)
    assert sets.n_calibration_ == 60 and sets.score(later, truth) >= 0.85
    assert clone(sets).fit(X, y).predict(later) == sets.predict(later)
    tokens, labels = make_sequences(40, random_state=0)
    tagger = SequenceLabeler(C=0.1, random_state=0)
    assert ConformalSets(tagger, alpha=0.1, cv=4, random_state=0).fit(tokens, labels).score(tokens, labels) >= 0.9
    with pytest.raises(ValueError, match=r"alpha=0\.01 needs at least 99 examples, got 60"):
        ConformalSets(LogisticRegression(), alpha=0.01, cv=5).fit(X, y)
    with pytest.raises(ValueError, match="cv goes without"):
        ConformalSets(LogisticRegression(), cv=5, by_label=True).fit(X, y)


# ---- promises are kept ----------------------------------------------------------------------------


class Remembered(BaseEstimator):
    """A fitted classifier of indices, whose predictions were made beforehand: many splits cost nothing."""

    def __init__(self, proba=None, classes=None):
        self.proba, self.classes = proba, classes

    @property
    def classes_(self):
        return self.classes

    def predict_proba(self, X):
        return self.proba[np.asarray(X).ravel()]

    def predict(self, X):
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    def fit(self, X, y):
        raise NotImplementedError

    def __sklearn_is_fitted__(self):
        return True


@pytest.mark.filterwarnings("ignore::structsvm.AdviceWarning")
def test_many_splits():
    """An overconfident classifier: thresholds on its probabilities break the promise, calibrated ones keep it."""
    rng = np.random.default_rng(0)
    n, classes = 4000, np.arange(6)
    logits = rng.normal(scale=2.0, size=(n, 6))
    p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    y = np.array([rng.choice(6, p=own) for own in p])
    sharp = np.exp(3.0 * logits) / np.exp(3.0 * logits).sum(axis=1, keepdims=True)
    model = Remembered(sharp, classes)
    covered, risks, raw, splits = [], [], [], 60
    for _ in range(splits):
        order = rng.permutation(n)
        held, later = order[:500, None], order[500:, None]
        sets = ConformalSets(model, alpha=0.1).calibrate(held, y[held.ravel()])
        covered.append(sets.predict_masks(later)[np.arange(len(later)), y[later.ravel()]].mean())
        careful = RiskController(model, alpha=0.2, delta=0.1).calibrate(held, y[held.ravel()])
        answers = np.array([-1 if own is None else own for own in careful.predict(later)])
        passed = answers >= 0
        risks.append((answers != y[later.ravel()])[passed].mean() if passed.any() else 0.0)
        sure = model.predict_proba(later).max(axis=1) > 0.8
        raw.append((model.predict(later) != y[later.ravel()])[sure].mean())
    error = 4.0 * np.std(covered) / splits**0.5
    assert 0.9 - error <= np.mean(covered) <= 0.9 + 1.0 / 501 + error
    assert np.count_nonzero(risks) > splits / 2
    assert np.sum(np.array(risks) > 0.2) <= binom.ppf(0.999, splits, 0.1)
    assert np.mean(raw) > 0.23


def test_whole_sentences_are_covered():
    """All tokens of a sentence at once: of 1 - alpha sentences, in new ones too."""
    X, y = make_sequences(900, random_state=0)
    model = SequenceLabeler(C=0.1, random_state=0).fit(X[:100], y[:100])
    rng, found = np.random.default_rng(0), []
    for _ in range(12):
        order = 100 + rng.permutation(800)
        held, later = order[:150], order[150:]
        sets = ConformalSets(model, alpha=0.2).calibrate([X[i] for i in held], [y[i] for i in held])
        found.append(sets.score([X[i] for i in later], [y[i] for i in later]))
    assert 0.8 - 0.03 <= np.mean(found) <= 0.8 + 0.04


def test_all_true_labels_of_sets():
    case = TABLE["multilabel, tree"]
    model = MultilabelClassifier(C=1.0, probability=True, random_state=0).fit(case.X[:30], case.y[:30])
    sets = ConformalSets(model, alpha=0.2).calibrate(case.X[30:], case.y[30:])
    masks, truth = sets.predict_masks(case.X[30:]), case.y[30:] > 0
    assert (masks | ~truth).all(axis=1).mean() == sets.score(case.X[30:], case.y[30:]) >= 0.8
