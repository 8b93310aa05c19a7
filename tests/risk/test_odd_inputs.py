"""Promises of odd inputs: iterators, tables, nothing, weights of 0, one class, groups without a name, other models."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import BaggingClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from structsvm import AdviceWarning
from structsvm.datasets import make_sequences
from structsvm.risk import ConformalOutputs, ConformalSets, ConformalSpans, LossController, RiskController, wrapped
from structsvm.tasks import MultilabelClassifier, SequenceLabeler

KINDS = [RiskController, ConformalSets, ConformalSpans, ConformalOutputs, LossController]
X, Y = make_sequences(200, mean_length=4.0, random_state=0)
ROWS, CLASSES = make_classification(400, n_classes=3, n_informative=4, random_state=0)


@pytest.fixture(scope="module")
def tagger():
    return SequenceLabeler(loss="log", C=1.0, random_state=0).fit(X[:60], Y[:60])


@pytest.fixture(scope="module")
def classifier():
    return LogisticRegression().fit(ROWS[:100], CLASSES[:100])


def settled(promise):
    """The numbers that `calibrate` found, as a text."""
    names = ("threshold_", "quantile_", "risk_", "coverage_", "size_", "n_calibration_")
    found = {name: vars(promise)[name] for name in names if name in vars(promise)}
    parts = {name: value if isinstance(value, dict) else {"": value} for name, value in found.items()}
    return "\n".join(f"{name} {own} {number:.9g}" for name, value in parts.items() for own, number in value.items())


@pytest.mark.parametrize("kind", KINDS)
def test_iterators_and_columns_of_tables_are_lists(tagger, kind):
    own = settled(kind(tagger, alpha=0.5, random_state=0).calibrate(X, Y))
    for inputs, outputs in [(iter(X), iter(Y)), (X, (y for y in Y)), (pd.Series(X), pd.Series(Y, index=range(9, 209)))]:
        assert settled(kind(tagger, alpha=0.5, random_state=0).calibrate(inputs, outputs)) == own
    careful = kind(tagger, alpha=0.5, random_state=0).calibrate(X, Y)
    assert careful.score(iter(X), iter(Y)) == careful.score(X, Y) == careful.score(pd.Series(X), pd.Series(Y))
    assert repr(careful.predict(iter(X[:9]))) == repr(careful.predict(X[:9]))
    fresh = kind(SequenceLabeler(loss="log", C=1.0, random_state=0), alpha=0.5, random_state=0)
    assert settled(fresh.fit(iter(X), iter(Y))) == settled(fresh.fit(X, Y))


@pytest.mark.parametrize("kind", KINDS)
def test_nothing(tagger, kind):
    with pytest.raises(ValueError, match=r"needs at least \d held-out outputs, got 0"):
        kind(tagger, alpha=0.5).calibrate([], [])
    careful = kind(tagger, alpha=0.5, random_state=0).calibrate(X, Y)
    assert careful.predict([]) == []
    with pytest.raises(ValueError, match="X has no inputs, and a mean over none is no score"):
        careful.score([], [])
    with pytest.raises(ValueError, match="it needs 2, got 1"):
        kind(SequenceLabeler(loss="log"), alpha=0.9).fit(X[:1], Y[:1])
    # Sequences of no tokens are outputs too.
    assert kind(tagger, alpha=0.5, random_state=0).calibrate([[]] * 20, [[]] * 20).n_calibration_ == 20


@pytest.mark.parametrize("kind", KINDS)
def test_weights(tagger, kind):
    own = settled(kind(tagger, alpha=0.5, random_state=0).calibrate(X, Y))
    assert settled(kind(tagger, alpha=0.5, random_state=0).calibrate(X, Y, np.full(200, 0.1))) == own
    for wrong, says in ((np.zeros(200), "zero for every sample"), (np.full(200, np.nan), "finite and not negative")):
        with pytest.raises(ValueError, match=says):
            kind(tagger, alpha=0.5).calibrate(X, Y, wrong)
        with pytest.raises(ValueError, match=says):
            kind(tagger, alpha=0.5, random_state=0).calibrate(X, Y).score(X, Y, wrong)


@pytest.mark.parametrize("kind", KINDS)
def test_weights_of_any_size(tagger, kind):
    """Only their proportions matter: sums of the largest and products with the smallest stay in range."""
    own = kind(tagger, alpha=0.5, random_state=0).calibrate(X, Y)
    score, some = own.score(X, Y), np.arange(200) % 3 > 0
    for size in (1e308, 1e-300, 5e-324):
        careful = kind(tagger, alpha=0.5, random_state=0).calibrate(X, Y, np.full(200, size))
        assert settled(careful) == settled(own)
        assert careful.score(X, Y, np.full(200, size)) == pytest.approx(score)
    # The least float beside 1 is nothing.
    least, none = (kind(tagger, alpha=0.5, random_state=0).calibrate(X, Y, np.where(some, 1.0, w)) for w in (5e-324, 0))
    assert settled(least) == settled(none)


@pytest.mark.parametrize("cover", ["unit", "output"])
def test_a_group_without_weight(tagger, cover):
    groups, weight = ["a", "b"] * 100, np.tile([1.0, 0.0], 100)
    with pytest.raises(ValueError, match="group 'b': the weights of all 100 held-out outputs are 0"):
        ConformalSets(tagger, alpha=0.3, cover=cover).calibrate(X, Y, weight, groups=groups)


@pytest.mark.parametrize("kind", KINDS)
def test_one_example_or_more_is_trained_on(kind):
    careful = kind(SequenceLabeler(loss="log", C=1.0), alpha=0.9, held_out=0.99, random_state=0).fit(
        X[:1] * 10, Y[:1] * 10
    )
    assert careful.n_calibration_ == 9 and len(careful.estimator_.predict(X[:1])[0]) == len(X[0])


@pytest.mark.parametrize("by_label", [False, True])
@pytest.mark.parametrize("loss", ["missed", "f1"])
def test_outputs_of_weight_0_are_left_out(tagger, loss, by_label):
    """Whichever half of the outputs shows the way: as many as have a weight are shared among both."""
    params = {"loss": loss, "alpha": 0.5, "delta": 0.3, "by_label": by_label, "random_state": 0}
    weight = np.ones(200)
    weight[:140] = 0.0
    careful = LossController(tagger, **params).calibrate(X, Y, weight)
    alone = LossController(tagger, **params).calibrate(X[140:], Y[140:])
    assert settled(careful) == settled(alone) and careful.n_calibration_ == 60
    with pytest.raises(ValueError, match=r"needs at least \d held-out outputs, got 1"):
        LossController(tagger, **params).calibrate(X, Y, np.eye(200)[3])


def test_the_largest_weight_may_be_of_either_half(tagger):
    """Later outputs may have the largest weight of all: the half that tests does not count as more without it."""
    shown = np.random.RandomState(0).permutation(200)[:100]
    weight = np.full(200, 0.05)
    careful = LossController(tagger, loss="wrong", alpha=0.1, by_label=True, random_state=0)
    careful.calibrate(X, Y, weight)
    weight[shown[0]] = 1.0
    with pytest.raises(ValueError, match=r"which count as 5 under their weights"):
        careful.calibrate(X, Y, weight)


def test_answers_count_no_outputs_of_weight_0(tagger):
    weight = np.where(np.arange(200) < 140, 0.0, 1.0)
    careful = RiskController(tagger, alpha=0.5, delta=0.2).calibrate(X, Y, weight)
    alone = RiskController(tagger, alpha=0.5, delta=0.2).calibrate(X[140:], Y[140:])
    assert settled(careful) == settled(alone) and careful.n_calibration_ == 60
    assert careful.curve_.risk.tolist() == alone.curve_.risk.tolist()


@pytest.mark.parametrize(
    ("value", "shown"),
    [(None, "None"), ("x", "'x'"), ([0.1], r"\[0.1\]"), (np.nan, "nan"), (-0.5, "-0.5"), (2, "2"), (10**400, "1000+")],
)
def test_losses_that_are_no_numbers(tagger, value, shown):
    for kind in (RiskController, LossController):
        with pytest.raises(ValueError, match=rf"loss must return a number from 0 to 1, got {shown} for output 0"):
            kind(tagger, loss=lambda *_: value, alpha=0.5, delta=0.5).calibrate(X[:1] * 20, Y[:1] * 20)


def test_weights_under_which_outputs_are_few(tagger):
    weight = np.full(200, 1e-3)
    weight[3] = 1.0
    with pytest.raises(
        ValueError, match=r"outputs is .*, which count as 1.2 under their weights; take a greater alpha"
    ):
        LossController(tagger, alpha=0.05).calibrate(X, Y, weight)


def test_tables(classifier):
    frame, column = pd.DataFrame(ROWS), pd.Series(CLASSES, index=range(11, 411))
    for kind in (RiskController, ConformalSets, LossController):
        model = LogisticRegression().fit(frame[:100], column[:100])
        careful = kind(model, alpha=0.4, random_state=0).calibrate(frame[100:], column[100:])
        assert settled(careful) == settled(
            kind(classifier, alpha=0.4, random_state=0).calibrate(ROWS[100:], CLASSES[100:])
        )
        whole = kind(make_pipeline(StandardScaler(), LogisticRegression()), alpha=0.4, random_state=0)
        assert settled(whole.fit(frame, column)) == settled(whole.fit(ROWS, CLASSES))
        with pytest.raises(ValueError, match="row 1 the first"):
            kind(model, alpha=0.4).calibrate(frame[100:], column[100:].where(column[100:] > 0))
        with pytest.raises(ValueError, match="NaN"):
            kind(classifier, alpha=0.4).calibrate(np.full((100, 20), np.nan), CLASSES[:100])


def test_a_loss_of_rows_of_a_table():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(300, 4))
    sets = (rows + 0.5 * rng.normal(size=rows.shape) > 0).astype(int)
    model = MultilabelClassifier(probability=True, C=1.0, random_state=0).fit(rows[:100], sets[:100])

    def unequal(true, found):
        return float(np.mean(np.asarray(true) != np.asarray(found)))

    careful, again = (
        RiskController(model, alpha=0.5, loss=unequal).calibrate(rows[100:], own)
        for own in (sets[100:], pd.DataFrame(sets[100:], columns=list("abcd")))
    )
    assert settled(careful) == settled(again)
    assert 0.0 < careful.risk_ < 0.5


@pytest.mark.parametrize("kind", [RiskController, ConformalSets, LossController])
def test_one_class(kind):
    constant = DummyClassifier().fit(ROWS[:10], np.zeros(10, dtype=int))
    careful = kind(constant, alpha=0.4).calibrate(ROWS[:50], np.zeros(50, dtype=int))
    assert careful.predict(ROWS[:2]) == ([0, 0] if kind is RiskController else [[0], [0]])
    assert careful.score(ROWS[:9], np.zeros(9, dtype=int)) == 1.0


def test_groups(classifier):
    groups = pd.Series(["a", "b"] * 150, index=range(300, 600))
    careful = ConformalSets(classifier, alpha=0.3).calibrate(ROWS[100:], CLASSES[100:], groups=groups)
    assert list(careful.quantile_) == ["a", "b"]
    assert careful.score(ROWS[100:], CLASSES[100:], groups=groups) >= 0.7
    with pytest.raises(ValueError, match="takes groups if calibrate was given groups"):
        careful.score(ROWS[100:], CLASSES[100:])
    with pytest.raises(ValueError, match="groups: input 1 has none, but nan"):
        ConformalSets(classifier).calibrate(ROWS[100:], CLASSES[100:], groups=["a", np.nan] * 150)


@pytest.mark.parametrize(
    ("groups", "says"),
    [
        ([None, "a"] * 150, "groups: input 0 has none, but None"),
        ([pd.NA, "a"] * 150, "groups: input 0 has none, but <NA>"),
        (pd.Series(["a", None] * 150, dtype="string"), "groups: input 1 has none, but <NA>"),
        (["a", pd.NaT] * 150, "groups: input 1 has none, but NaT"),
        (np.array(["a", "b"] * 150).reshape(-1, 1), "groups must have one entry per input, in one dimension"),
        (np.array("a"), "groups must have one entry per input"),
        (pd.DataFrame({"g": ["a"] * 300}), "groups must have one entry per input"),
        ("a" * 300, "groups must have one entry per input, in one dimension, got 'aa"),
        (3, "groups must have one entry per input, in one dimension, got 3"),
        ([["a"]] * 300, r"groups: input 0 has \['a'\], which cannot be hashed"),
        (["a", ("b", [])] * 150, r"groups: input 1 has \('b', \[\]\), which cannot be hashed"),
        (["a"] * 299, "groups has 299 entries, X has 300 inputs"),
    ],
)
def test_groups_that_are_none(classifier, groups, says):
    with pytest.raises(ValueError, match=says):
        ConformalSets(classifier).calibrate(ROWS[100:], CLASSES[100:], groups=groups)
    careful = ConformalSets(classifier, alpha=0.3).calibrate(ROWS[100:], CLASSES[100:], groups=["a", "b"] * 150)
    for asked in (careful.predict, careful.predict_masks):
        with pytest.raises(ValueError, match=says):
            asked(ROWS[100:], groups=groups)


@pytest.mark.parametrize("as_given", [np.array, pd.Categorical, iter, lambda groups: [(name, 1) for name in groups]])
def test_groups_of_several_forms(classifier, as_given):
    groups = ["a", "b"] * 150
    plain = ConformalSets(classifier, alpha=0.3).calibrate(ROWS[100:], CLASSES[100:], groups=groups)
    careful = ConformalSets(classifier, alpha=0.3).calibrate(ROWS[100:], CLASSES[100:], groups=as_given(groups))
    assert [*careful.quantile_.values()] == [*plain.quantile_.values()]
    assert careful.predict(ROWS[100:], groups=as_given(groups)) == plain.predict(ROWS[100:], groups=groups)


def test_confidence_without_bounds(classifier):
    for value in (np.inf, -np.inf, 0.0):
        careful = RiskController(classifier, alpha=0.6, confidence=lambda _, X, value=value: np.full(len(X), value))
        assert careful.calibrate(ROWS[100:], CLASSES[100:]).coverage_ == 1.0
        assert careful.predict(ROWS[:3]) == classifier.predict(ROWS[:3]).tolist()
        assert careful.score(ROWS[100:], CLASSES[100:]) == pytest.approx(1.0 - careful.risk_)


class Unsure(LogisticRegression):
    """Its numbers are none from some input on."""

    def predict_proba(self, X):
        return np.where(np.arange(len(X))[:, None] < 7, super().predict_proba(X), np.nan)

    def decision_function(self, X):
        return np.where(np.arange(len(X))[:, None] < 7, super().decision_function(X), np.nan)


def test_numbers_that_are_none_are_named():
    unsure = Unsure().fit(ROWS[:100], CLASSES[:100])
    for promise in (ConformalSets(unsure, alpha=0.3), LossController(unsure, alpha=0.3)):
        with pytest.raises(ValueError, match="predict_proba of Unsure returns nan for input 7"):
            promise.calibrate(ROWS[100:], CLASSES[100:])
    with pytest.raises(ValueError, match=r"confidence must return a number for each of 300 inputs, .* with nan"):
        RiskController(unsure, alpha=0.3).calibrate(ROWS[100:], CLASSES[100:])


class Extreme(LogisticRegression):
    """Scores that are given, for input 3."""

    def __init__(self, scores=None):
        super().__init__()
        self.scores = scores

    predict_proba = property()

    def decision_function(self, X):
        found = super().decision_function(X)
        found[3] = self.scores
        return found


@pytest.mark.parametrize(
    ("scores", "wrong"), [([np.inf, 0.0, 0.0], "inf"), ([-np.inf] * 3, "-inf alone"), ([np.nan, 0.0, 0.0], "nan")]
)
def test_scores_without_a_best_one_are_named(scores, wrong):
    extreme = Extreme(scores).fit(ROWS[:100], CLASSES[:100])
    with pytest.raises(ValueError, match=f"decision_function of Extreme returns {wrong} for input 3"):
        ConformalSets(extreme, alpha=0.3).calibrate(ROWS[100:], CLASSES[100:])
    assert ConformalSets(extreme.set_params(scores=[-np.inf, 0.0, 0.0]), alpha=0.3).calibrate(ROWS, CLASSES).quantile_


@pytest.mark.parametrize("kind", KINDS)
def test_promises_within_a_search_are_refused_before_they_are_trained(classifier, kind, monkeypatch):
    monkeypatch.setattr(GridSearchCV, "fit", lambda *_, **__: pytest.fail("the search was trained"))
    careful = RiskController(classifier, alpha=0.6)
    for outer in (GridSearchCV(careful, {"alpha": [0.5]}), GridSearchCV(make_pipeline(careful), {"memory": [None]})):
        with pytest.raises(TypeError, match=f"{kind.__name__} wraps an estimator, and RiskController is a promise"):
            kind(outer).fit(ROWS, CLASSES)


@pytest.mark.parametrize("kind", KINDS)
def test_promises_about_promises_are_refused(classifier, kind):
    careful = RiskController(classifier, alpha=0.6).calibrate(ROWS[100:250], CLASSES[100:250])
    for outer in (careful, make_pipeline(StandardScaler(), careful)):
        for verb in (kind(outer).calibrate, kind(outer).fit):
            with pytest.raises(TypeError, match=f"{kind.__name__} wraps an estimator, and RiskController is a promise"):
                verb(ROWS[250:], CLASSES[250:])


def test_labels_of_sets_that_the_model_does_not_know_are_never_in_a_set():
    y = [{"x"} if row[0] > 0.0 else {"y", "z"} for row in ROWS]
    model = MultilabelClassifier(C=1.0, random_state=0).fit(ROWS[:100], y[:100])
    few = [own | {"new"} if i < 20 else own for i, own in enumerate(y[100:])]
    with pytest.warns(AdviceWarning, match=r"20 labels of rows have a label that training never saw \('new'\)"):
        sets = ConformalSets(model, alpha=0.3).calibrate(ROWS[100:], few)
    known = ConformalSets(model, alpha=0.3).calibrate(ROWS[100:], y[100:])
    assert sets.quantile_ >= known.quantile_
    with pytest.warns(AdviceWarning, match="20 labels of rows"):
        assert sets.score(ROWS[100:], few) <= 280 / 300
    with pytest.warns(AdviceWarning, match="20 labels of rows"):
        column = ConformalSets(model, alpha=0.3).calibrate(ROWS[100:], pd.Series(few, index=range(7, 307)))
    assert column.quantile_ == sets.quantile_
    with pytest.warns(AdviceWarning, match="20 labels of rows"):
        assert model.score(ROWS[100:], pd.Series(few)) <= 280 / 300
    many = [own | {"new"} for own in y[100:]]
    with (
        pytest.warns(AdviceWarning, match="300 labels of rows"),
        pytest.raises(ValueError, match=r"the estimator knows all labels of only 0 of 300 held-out outputs"),
    ):
        ConformalSets(model, alpha=0.3).calibrate(ROWS[100:], many)


def test_many_groups_are_compared_once(classifier):
    """A group for each three inputs: no input is compared with the names of all groups."""
    calls = []

    class Name(str):
        __slots__ = ()

        def __eq__(self, other):
            calls.append(1)
            return str.__eq__(self, other)

        __hash__ = str.__hash__

    groups = [Name(f"g{i // 3}") for i in range(300)]
    careful = ConformalSets(classifier, alpha=0.3).calibrate(ROWS[100:], CLASSES[100:], groups=groups)
    assert len(careful.quantile_) == 100 and len(calls) < 3000


# ---- a promise is about one model -----------------------------------------------------------------

CHANGES = {
    "partial_fit": lambda model: model.partial_fit(X[:30], Y[:30]),
    "fit": lambda model: model.fit(X[:30], Y[:30]),
    "calibrate": lambda model: model.calibrate(X[:90], Y[:90]),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_promise_ends_where_the_model_is_changed(tagger, kind, change, tmp_path):
    model = copy.deepcopy(tagger)
    careful = kind(model, alpha=0.5, random_state=0).calibrate(X, Y)
    before, kept = repr(careful.predict(X[:9])), pickle.loads(pickle.dumps(careful))
    CHANGES[change](model)
    for asked in (
        lambda: careful.predict(X[:9]),
        lambda: careful.score(X, Y),
        lambda: careful.save(tmp_path / "m"),
        lambda: pickle.loads(pickle.dumps(careful)).predict(X[:9]),
    ):
        with pytest.raises(
            NotFittedError, match=f"{kind.__name__} was calibrated before its SequenceLabeler was changed"
        ):
            asked()
    assert not (tmp_path / "m").exists()
    assert repr(kept.predict(X[:9])) == repr(copy.deepcopy(kept).predict(X[:9])) == before  # it has the old model
    assert len(careful.calibrate(X, Y).predict(X[:9])) == 9


@pytest.mark.parametrize("model", [GaussianNB(), SGDClassifier(loss="log_loss", random_state=0), LogisticRegression()])
@pytest.mark.parametrize("kind", [RiskController, ConformalSets, LossController])
def test_a_promise_ends_where_a_classifier_is_trained_again(kind, model, tmp_path):
    joblib = pytest.importorskip("joblib")
    whole = make_pipeline(StandardScaler(), model).fit(ROWS[:100], CLASSES[:100])
    careful = kind(whole, alpha=0.6, random_state=0).calibrate(ROWS[100:], CLASSES[100:])
    before = careful.predict(ROWS[:9])
    joblib.dump(careful, tmp_path / "m")
    assert (
        joblib.load(tmp_path / "m").predict(ROWS[:9]) == pickle.loads(pickle.dumps(careful)).predict(ROWS[:9]) == before
    )
    (model.partial_fit if hasattr(model, "partial_fit") else model.fit)(ROWS[:50] + 1.0, CLASSES[:50])
    with pytest.raises(NotFittedError, match="was calibrated before its Pipeline was changed, by training"):
        careful.predict(ROWS[:9])
    assert len(careful.calibrate(ROWS[100:], CLASSES[100:]).predict(ROWS[:9])) == 9


FITTED = {
    "forest": RandomForestClassifier(3, random_state=0),
    "trees added": RandomForestClassifier(3, warm_start=True, random_state=0),
    "bagging": BaggingClassifier(n_estimators=3, random_state=0),
    "boosting": HistGradientBoostingClassifier(max_iter=3),
    "neighbours": KNeighborsClassifier(),
    "calibrated": CalibratedClassifierCV(LogisticRegression(), cv=2),
    "frozen": FrozenEstimator(LogisticRegression()),
    "balanced": GaussianNB(),
}


def trained_again(model, name):
    """A model trained on the same rows with other labels: its small numbers stay as they were."""
    if name == "balanced":
        model.partial_fit(ROWS[:100], 2 - CLASSES[:100])
    elif name == "frozen":
        model.estimator.fit(ROWS[:100], 2 - CLASSES[:100])
    else:
        model.set_params(n_estimators=5) if name == "trees added" else None
        model.fit(ROWS[:100], 2 - CLASSES[:100])


@pytest.mark.parametrize("name", FITTED)
def test_training_again_is_seen_in_what_holds_no_weights(name):
    model = copy.deepcopy(FITTED[name])
    (model.estimator if name == "frozen" else model).fit(ROWS[:100], CLASSES[:100])
    careful = RiskController(model, alpha=0.7, delta=0.2).calibrate(ROWS[100:], CLASSES[100:])
    stored = pickle.dumps((careful, model))
    assert careful.predict(ROWS[:9]) == copy.deepcopy(careful).predict(ROWS[:9])
    trained_again(model, name)
    again, same = pickle.loads(stored)
    again.predict(ROWS[:9])
    trained_again(same, name)
    for changed in (careful, again, copy.copy(careful), pickle.loads(pickle.dumps(again))):
        with pytest.raises(NotFittedError, match="was changed, by training"):
            changed.predict(ROWS[:9])


def test_an_earlier_step_that_is_trained_again_is_seen(tagger):
    whole = make_pipeline(StandardScaler(), LogisticRegression()).fit(ROWS[:100], CLASSES[:100])
    careful = ConformalSets(whole, alpha=0.3).calibrate(ROWS[100:], CLASSES[100:])
    whole[0].fit(ROWS[:50] * 9.0)
    with pytest.raises(NotFittedError, match="was calibrated before its Pipeline was changed"):
        careful.predict(ROWS[:9])


class Remembering(LogisticRegression):
    """It keeps its last answer, and counts in place how many it has given."""

    def predict_proba(self, X):
        self.last_ = super().predict_proba(X)
        vars(self).setdefault("count_", np.zeros(1))[:] += len(X)
        return self.last_


@pytest.mark.parametrize("kind", [RiskController, ConformalSets, LossController])
def test_what_is_not_learnt_may_change(kind):
    model = Remembering().fit(ROWS[:100], CLASSES[:100])
    model.predict_proba(ROWS[:5])
    careful = kind(model, alpha=0.6, random_state=0).calibrate(ROWS[100:], CLASSES[100:])
    before = careful.predict(ROWS[:9])
    model.note_ = np.arange(3)
    model.sparsify()
    assert careful.predict(ROWS[:9]) == careful.predict(ROWS[:9]) == before
    copied = pickle.loads(pickle.dumps(careful))
    assert copied.predict(ROWS[:9]) == copied.predict(ROWS[:9]) == before
    model.densify()
    assert careful.predict(ROWS[:9]) == before
    model.coef_[0, 0] += 1.0
    model.sparsify()
    with pytest.raises(NotFittedError, match="was calibrated before its Remembering was changed"):
        careful.predict(ROWS[:9])


def test_large_arrays_are_not_read_again(classifier, monkeypatch):
    model = copy.deepcopy(classifier)
    model.large_, read = np.zeros(100_000), []
    careful = RiskController(model, alpha=0.6, delta=0.2).calibrate(ROWS[100:], CLASSES[100:])
    monkeypatch.setattr(wrapped, "checksum", lambda arrays: read.extend(own.nbytes for own in arrays))
    with pytest.raises(NotFittedError):  # small arrays are read
        careful.predict(ROWS[:9])
    assert 0 < max(read) < 1000


def test_the_old_model_is_not_pickled(tagger):
    model = copy.deepcopy(tagger)
    careful = RiskController(model, alpha=0.5).calibrate(X, Y)
    before, own = len(pickle.dumps(careful)), len(pickle.dumps(model))
    model.fit(X[:60], Y[:60])
    assert len(pickle.dumps(careful)) - len(pickle.dumps(model)) <= before - own + 100
