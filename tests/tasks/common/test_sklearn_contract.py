"""Estimators as scikit-learn's.

scikit-learn's own checks feed 2-D arrays and flat targets. `Rows` is SequenceLabeler on such data, each row a
sequence of one token, and `Bins` an oracle that cuts a real target into bins: so most of the checks apply as
they are. Those that do not stand in the estimator's case, each with its reason (`Case.apart`).
"""

import warnings
from functools import partial
from inspect import signature

import joblib
import numpy as np
import pytest
import sklearn
from cases import TABLE
from sklearn.base import BaseEstimator, TransformerMixin, clone, is_classifier, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import check_estimator, parametrize_with_checks

from structsvm import LaRank, LatentSVM, Oracle, PassiveAggressive, Perceptron, StructuredSVM
from structsvm.datasets import make_sequences
from structsvm.metrics import chunk_f1_scorer, token_accuracy_scorer
from structsvm.tasks import AmbiguousClassifier, Hybrid, MultilabelClassifier, Ranker, SequenceLabeler

try:
    from sklearn import callback
except ImportError:  # scikit-learn before 1.9
    callback = None

X, y = make_sequences(60, n_labels=5, n_words=200, mean_length=8.0, random_state=0)


# ---- scikit-learn's own checks -----------------------------------------------------------------


class Rows(SequenceLabeler):
    """SequenceLabeler on a 2-D array and flat labels: every row a sequence of one token."""

    def fit(self, X, y, sample_weight=None):
        return super().fit(X, column(y), sample_weight, lengths=ones(X))

    def partial_fit(self, X, y, sample_weight=None, classes=None):
        return super().partial_fit(X, column(y), classes, sample_weight, lengths=ones(X))

    def predict(self, X):
        labels = super().predict(X, lengths=ones(X))
        return np.array([label for (label,) in labels])

    def decision_function(self, X):
        return np.vstack(super().decision_function(X, lengths=ones(X)))

    def score(self, X, y, sample_weight=None):
        return float(np.average(self.predict(X) == y, weights=sample_weight))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = True
        tags.input_tags.sparse = True
        tags.target_tags.single_output, tags.target_tags.multi_output = True, False
        return tags


def ones(X):
    return np.ones(X.shape[0] if hasattr(X, "shape") else len(np.asarray(X)), dtype=int)


def column(y):
    return None if y is None else [[label] for label in np.asarray(y).tolist()]


class Bins(Oracle):
    """Multiclass on rows of any width up to 64: the class of a real target is its floor modulo 4."""

    n_features = 64 * 4

    def __repr__(self):
        return "Bins()"  # names a test, the same in every process

    def joint_feature(self, x, y):
        x = np.asarray(x, dtype=np.float64).ravel()
        return np.arange(len(x)) * 4 + self.bin(y), x

    def loss(self, y_true, y):
        return float(self.bin(y_true) != self.bin(y))

    def argmax(self, x, w, y_true=None, rescaling=None):
        x = np.asarray(x, dtype=np.float64).ravel()
        scores = x @ w.reshape(64, 4)[: len(x)]
        if y_true is None:
            return float(scores.argmax())
        scores = scores + 1.0
        scores[self.bin(y_true)] -= 1.0
        # The true output as it was given, where it wins: it equals itself.
        best = int(scores.argmax())
        return y_true if best == self.bin(y_true) else float(best)

    @staticmethod
    def bin(y):
        return int(np.floor(float(np.ravel(y)[0]))) % 4


class OneQuery(Ranker):
    """Ranker on one query."""

    def fit(self, X, y, sample_weight=None):
        return super().fit(X, y, sample_weight, group=[len(ones(X))])

    def partial_fit(self, X, y, classes=None, sample_weight=None):
        return super().partial_fit(X, y, classes, sample_weight, group=[len(ones(X))])

    def score(self, X, y, sample_weight=None):
        return super().score(X, y, sample_weight, group=[len(ones(X))])


FIRST = {case.kind: case for case in reversed(TABLE.values())}
# As it comes, but for those that need a form of such data, a shorter training or probabilities.
CHECKED = {case.kind: case.kind for case in FIRST.values() if case.has_rows} | {
    AmbiguousClassifier: partial(AmbiguousClassifier, C=1.0, loss="log"),
    MultilabelClassifier: partial(MultilabelClassifier, probability=True),
    Ranker: OneQuery,
    SequenceLabeler: Rows,
    StructuredSVM: lambda random_state: StructuredSVM(Bins(), LaRank(random_state=random_state)),
}


def seeded(make):
    """Its labels may be -1, as scikit-learn's checks have them."""
    own = {"random_state": 0, "unknown": None}
    return make(**{name: value for name, value in own.items() if name in signature(make).parameters})


def expected_failures(estimator):
    """The checks that the estimator's case takes no part in, and why."""
    return next(FIRST[kind].apart for kind in type(estimator).__mro__ if kind in FIRST)


CHECKS = parametrize_with_checks(
    [
        *map(seeded, CHECKED.values()),
        Rows(random_state=0, inference="greedy", solver="passive_aggressive"),
        AmbiguousClassifier(C=0.1, unknown=None, random_state=0, solver="passive_aggressive", fit_intercept=False),
    ],
    expected_failed_checks=expected_failures,
)


# Some of the data are far from the origin, where 20 passes are not enough; of a few examples any C may be the best.
@pytest.mark.filterwarnings("ignore::structsvm.ConvergenceWarning", "ignore::structsvm.AdviceWarning")
# As a list: of the generator that scikit-learn may give, pytest warns.
@pytest.mark.parametrize(CHECKS.args[0], list(CHECKS.args[1]), **CHECKS.kwargs)
def test_checks_of_scikit_learn(estimator, check):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=sklearn.exceptions.SkipTestWarning)
        check(estimator)


@pytest.mark.parametrize(
    "kind", [kind for kind in FIRST if kind not in CHECKED or kind is SequenceLabeler], ids=lambda kind: kind.__name__
)
def test_what_arrays_are_not_for_says_so(kind):
    assert not get_tags(kind()).input_tags.two_d_array
    with pytest.warns(sklearn.exceptions.SkipTestWarning):
        results = check_estimator(kind(), on_skip=None)
    assert {result["status"] for result in results} <= {"passed", "skipped"}


# ---- parameters --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [LatentSVM, Hybrid])
def test_nested_parameters_are_set_last_and_on_a_copy(kind):
    shared = LaRank(C=0.5)
    one, other = kind(solver=shared), kind(solver=shared)
    assert one.set_params(solver__C=2.0, solver__max_iter=7).solver.C == 2.0
    assert (shared.C, other.solver.C, one.solver.max_iter) == (0.5, 0.5, 7)
    assert one.set_params(solver__C=5.0, solver=shared).solver.C == 5.0 and shared.C == 0.5
    with pytest.raises(ValueError, match=f"{kind.__name__} has no parameter 'other__C'"):
        one.set_params(other__C=1.0)


def test_parameters_two_levels_down_are_set_last_and_on_copies():
    shared = LatentSVM(LaRank(C=0.5))
    method = Hybrid(solver=shared).set_params(solver__solver__C=3.0, solver__solver=LaRank(C=2.0))
    assert method.solver.solver.C == 3.0 and shared.solver.C == 0.5
    assert Hybrid(solver=shared).set_params(solver__C=4.0).solver.solver.C == 4.0 and shared.solver.C == 0.5


def test_parameters_nest():
    model = SequenceLabeler(solver=LaRank(C=0.5))
    params = model.get_params()
    assert params["solver__C"] == 0.5
    assert model.set_params(solver__C=2.0, order=2).solver.C == 2.0
    with pytest.raises(ValueError, match="Invalid parameter 'depth'"):
        model.set_params(depth=3)
    with pytest.raises(ValueError, match="LaRank has no parameter 'depth'"):
        model.set_params(solver__depth=3)
    copy = clone(model)
    assert copy.solver is not model.solver
    assert copy.get_params()["solver__C"] == 2.0
    assert StructuredSVM(Bins(), LaRank(C=3.0)).get_params()["solver__C"] == 3.0


def test_clone_forgets_what_was_learnt():
    model = SequenceLabeler(C=0.3, constraints=(None, None, None), class_weight={"O": 2.0}, random_state=0).fit(X, y)
    copy = clone(model)
    with pytest.raises(NotFittedError):
        copy.predict(X)
    np.testing.assert_array_equal(copy.fit(X, y).emission_, model.emission_)


def test_repr_says_what_was_set():
    assert repr(SequenceLabeler()) == "SequenceLabeler()"
    text = repr(SequenceLabeler(C=0.5, solver=Perceptron(max_iter=3), order=2))
    assert text == "SequenceLabeler(C=0.5, order=2, solver=Perceptron(max_iter=3))"
    assert "PassiveAggressive(C=2.0)" in repr(StructuredSVM(Bins(), PassiveAggressive(C=2.0)))
    assert "SequenceLabeler" in SequenceLabeler(solver=LaRank())._repr_html_()


def test_tags_are_true():
    tags = get_tags(SequenceLabeler())
    assert tags.input_tags.dict and tags.input_tags.string and tags.input_tags.sparse and tags.input_tags.three_d_array
    assert not tags.input_tags.two_d_array and not tags.input_tags.allow_nan and not tags.no_validation
    assert tags.requires_fit and tags.target_tags.required and not tags.target_tags.single_output
    assert not is_classifier(SequenceLabeler()) and not is_regressor(SequenceLabeler())
    assert get_tags(StructuredSVM()).target_tags.required


# ---- model selection ---------------------------------------------------------------------------


def test_grid_search_over_C():
    search = GridSearchCV(SequenceLabeler(random_state=0), {"C": [1e-4, 0.3]}, scoring=chunk_f1_scorer, cv=3).fit(X, y)
    assert search.best_params_ == {"C": 0.3}
    assert search.best_estimator_.predict(X) == search.predict(X)
    assert 0.3 < search.best_score_ <= 1.0
    scoring = {"f1": chunk_f1_scorer, "accuracy": token_accuracy_scorer}
    both = GridSearchCV(SequenceLabeler(random_state=0), {"C": [0.3]}, scoring=scoring, refit="f1", cv=3).fit(X, y)
    own = GridSearchCV(SequenceLabeler(random_state=0), {"C": [0.3]}, cv=3).fit(X, y)
    np.testing.assert_allclose(both.cv_results_["mean_test_accuracy"], own.cv_results_["mean_test_score"])


def test_grid_search_into_the_solver():
    grid = {"solver__C": [1e-4, 0.3], "solver__schedule": ["fixed", "decode-once"]}
    model = SequenceLabeler(solver=LaRank(random_state=0, n_reprocess=1))
    search = GridSearchCV(model, grid, scoring=chunk_f1_scorer, cv=3).fit(X, y)
    assert search.best_params_["solver__C"] == 0.3
    assert model.solver.C == 1.0
    solvers = [LaRank(C=0.3, random_state=0), Perceptron(random_state=0)]
    assert GridSearchCV(SequenceLabeler(), {"solver": solvers}, cv=2).fit(X, y).best_params_["solver"] in solvers


def test_cross_validation_hands_on_weights():
    weight = np.where(np.arange(len(X)) % 2, 2.0, 0.0)
    folds = KFold(3)
    by_hand = []
    for train, test in folds.split(X):
        model = SequenceLabeler(random_state=0)
        model.fit([X[i] for i in train], [y[i] for i in train], sample_weight=weight[train])
        by_hand.append(model.score([X[i] for i in test], [y[i] for i in test], sample_weight=weight[test]))
    with sklearn.config_context(enable_metadata_routing=True):
        model = (
            SequenceLabeler(random_state=0).set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        )
        found = cross_validate(model, X, y, cv=folds, params={"sample_weight": weight})
    np.testing.assert_allclose(found["test_score"], by_hand)
    plain = cross_validate(SequenceLabeler(random_state=0), X, y, cv=folds, params={"sample_weight": weight})
    assert np.isfinite(plain["test_score"]).all()


def test_parallel_search_is_serial_search():
    serial = cross_val_score(SequenceLabeler(random_state=0), X, y, cv=3)
    np.testing.assert_array_equal(cross_val_score(SequenceLabeler(random_state=0), X, y, cv=3, n_jobs=2), serial)
    model = SequenceLabeler(random_state=0).fit(X, y)
    halves = joblib.Parallel(2, prefer="threads")(joblib.delayed(model.predict)(part) for part in (X[:30], X[30:]))
    assert halves[0] + halves[1] == model.predict(X)


class Lower(TransformerMixin, BaseEstimator):
    """Tokens in small letters."""

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return [[[part.lower() for part in token] for token in s] for s in X]

    def __sklearn_is_fitted__(self):
        return True


def test_at_the_end_of_a_pipeline():
    pipeline = make_pipeline(Lower(), SequenceLabeler(random_state=0)).fit(X, y)
    assert pipeline.predict(X) == SequenceLabeler(random_state=0).fit(Lower().transform(X), y).predict(
        Lower().transform(X)
    )
    assert pipeline.score(X, y) > 0.8
    assert pipeline[-1].feature_names_[0].islower()
    search = GridSearchCV(pipeline, {"sequencelabeler__C": [1e-4, 0.3]}, cv=2).fit(X, y)
    assert search.best_params_ == {"sequencelabeler__C": 0.3}


# ---- callbacks ---------------------------------------------------------------------------------

needs_callbacks = pytest.mark.skipif(callback is None, reason="scikit-learn before 1.9 has no callbacks")


class Counter:
    """Writes down what it is told, and stops after some passes."""

    def __init__(self, stop_after=None):
        self.stop_after = stop_after
        self.begun, self.ended, self.events = [], [], []

    def setup(self, estimator, context):
        self.events.append("setup")

    def teardown(self, estimator, context):
        self.events.append("teardown")

    def on_fit_task_begin(self, estimator, context, *, X, y):
        if X is not None:  # a search's own tasks have none
            self.begun.append((context.task_name, context.task_id, len(X), len(y)))

    def on_fit_task_end(self, estimator, context):
        self.ended.append(context.task_name)
        return context.task_name == "pass" and self.ended.count("pass") == self.stop_after


@needs_callbacks
@pytest.mark.parametrize("params", [{}, {"inference": "greedy"}, {"solver": "perceptron"}])
def test_callbacks_count_passes(params):
    counter = Counter()
    model = SequenceLabeler(max_iter=3, random_state=0, **params).set_callbacks(counter).fit(X, y)
    assert counter.begun == [("fit", 0, 60, 60), *(("pass", k, 60, 60) for k in range(3))]
    assert counter.ended == ["pass"] * 3 + ["fit"]
    assert counter.events == ["setup", "teardown"]
    assert model.result_.status == "max_iter"
    np.testing.assert_array_equal(
        model.emission_, SequenceLabeler(max_iter=3, random_state=0, **params).fit(X, y).emission_
    )


@needs_callbacks
def test_a_callback_stops_training():
    model = SequenceLabeler(max_iter=50, random_state=0).set_callbacks(Counter(stop_after=2)).fit(X, y)
    assert (model.n_iter_, model.result_.status) == (2, "stopped")
    np.testing.assert_array_equal(model.emission_, SequenceLabeler(max_iter=2, random_state=0).fit(X, y).emission_)
    generic = (
        StructuredSVM(Bins(), LaRank(max_iter=50)).set_callbacks(Counter(stop_after=3)).fit([[1.0], [-1.0]], [0, 1])
    )
    assert (generic.n_iter_, generic.result_.status) == (3, "stopped")


@needs_callbacks
def test_partial_fit_is_one_pass_to_callbacks():
    counter = Counter()
    SequenceLabeler(random_state=0).set_callbacks(counter).partial_fit(X, y)
    assert [name for name, *_ in counter.begun] == ["fit", "pass"]


@needs_callbacks
def test_callbacks_are_torn_down_after_an_error():
    counter = Counter()
    with pytest.raises(ValueError, match="needs"):
        SequenceLabeler(inference="greedy", loss="zero_one").set_callbacks(counter).fit(X, y)
    assert counter.events in ([], ["setup", "teardown"])


@needs_callbacks
def test_progress_bar_of_scikit_learn(capfd):
    pytest.importorskip("rich")
    SequenceLabeler(max_iter=2, random_state=0).set_callbacks(callback.ProgressBar()).fit(X, y)
    assert "SequenceLabeler" in capfd.readouterr().out


@needs_callbacks
def test_scoring_monitor_sees_the_model_of_each_pass():
    scoring = {"score": token_accuracy_scorer}
    monitor = callback.ScoringMonitor(scoring=scoring)
    model = SequenceLabeler(0.1, max_iter=3, random_state=0).set_callbacks(monitor).fit(X, y)
    scores = [row["score"] for row in monitor.get_logs().data]
    single = [
        SequenceLabeler(solver=LaRank(C=0.1, max_iter=k, random_state=0)).fit(X, y).score(X, y) for k in (1, 2, 3)
    ]
    assert len(scores) == 3
    assert scores == pytest.approx(single, abs=0.02)
    assert model.score(X, y) == pytest.approx(scores[-1], abs=0.02)
    monitor = callback.ScoringMonitor(scoring=scoring)
    SequenceLabeler(max_iter=2).set_callbacks(monitor).fit(np.eye(3), [["a", "b", "c"]], lengths=[3])
    assert len(monitor.get_logs().data) == 2


@needs_callbacks
def test_callbacks_of_a_search_reach_the_labeler():
    class Auto(Counter):
        max_propagation_depth = None

    auto = Auto()
    search = GridSearchCV(SequenceLabeler(max_iter=2, random_state=0), {"C": [0.1]}, cv=2)
    if not hasattr(search, "set_callbacks"):
        pytest.skip("GridSearchCV takes no callbacks in this scikit-learn")
    search.set_callbacks(auto).fit(X, y)
    assert auto.ended.count("pass") == 2 * 3
