"""MultilabelClassifier: forms of y, what it learns, and what it refuses."""

import itertools
import os

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import accuracy_score, f1_score, log_loss
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import LinearSVC

import structsvm
from structsvm import LaRank, datasets
from structsvm.oracles.label_sets import LabelSetOracle
from structsvm.tasks import MultilabelClassifier
from structsvm.tasks.multilabel.model import LabelSets

rng = np.random.default_rng(0)
X = rng.normal(size=(300, 6))
Y = ((X @ rng.normal(size=(6, 4)) + 0.5 * rng.normal(size=(300, 4))) > 0.3).astype(int)
Y[:, 3] = Y[:, 0] & Y[:, 1]  # no label tells it by itself
NAMES = np.array(["ant", "bee", "cat", "dog"])
SETS = [set(NAMES[row > 0].tolist()) for row in Y]


def fitted(y=Y, **params):
    return MultilabelClassifier(**{"C": 1.0, "random_state": 0} | params).fit(X, y)


def test_predictions_have_the_form_of_y():
    dense, sparse, sets = fitted(), fitted(sp.csr_array(Y)), fitted(SETS)
    found = dense.predict(X)
    assert found.shape == (300, 4) and found.dtype == np.int64 and set(np.unique(found)) == {0, 1}
    assert sp.issparse(sparse.predict(X)) and np.array_equal(sparse.predict(X).toarray(), found)
    assert sets.predict(X) == [tuple(NAMES[row > 0].tolist()) for row in found]
    assert dense.classes_.tolist() == [0, 1, 2, 3] and sets.classes_.tolist() == NAMES.tolist()
    for model, y in ((dense, Y), (sparse, sp.csr_array(Y)), (sets, SETS)):
        assert model.score(X, y) == pytest.approx(accuracy_score(Y, found))
    assert np.array_equal(fitted(Y.astype(bool)).predict(X), found)


def test_data_frames_name_their_labels():
    class Frame:
        """As much of a data frame as is asked of it."""

        shape, ndim = Y.shape, 2

        def __init__(self, columns):
            self.columns = columns

        def to_numpy(self):
            return Y

    model = fitted(Frame(NAMES))
    assert model.classes_.tolist() == NAMES.tolist()
    with pytest.raises(ValueError, match="columns of y have the same name"):
        fitted(Frame(["a", "a", "b", "c"]))


@pytest.mark.parametrize("as_sparse", [False, True])
def test_dense_and_sparse_rows_are_the_same_problem(as_sparse):
    rows = sp.csr_array(X) if as_sparse else X
    model = MultilabelClassifier(C=0.1, tol=1e-3, standardize=False, random_state=0).fit(rows, Y)
    assert model.result_.primal == pytest.approx(fitted(C=0.1, tol=1e-3, standardize=False).result_.primal, rel=2e-3)
    np.testing.assert_allclose(model.decision_function(X), model.decision_function(sp.csr_array(X)), atol=1e-9)


def test_without_pairs_and_bias_it_is_one_machine_per_label():
    """The Hamming loss of independent labels: a linear SVM each, of margin 1/2 in y of 0 and 1."""
    model = fitted(interactions="none", fit_intercept=False, standardize=False, tol=1e-6)
    svm = OneVsRestClassifier(LinearSVC(C=1.0, loss="hinge", fit_intercept=False, tol=1e-7, max_iter=10**5)).fit(X, Y)
    # <w, x> >= 1 - xi with w of a label: 1/2 |w|^2 + C sum xi is LinearSVC's own objective.
    np.testing.assert_allclose(model.coef_, np.vstack([one.coef_ for one in svm.estimators_]), atol=2e-3)
    assert model.interactions_.shape == (0,) and (model.intercept_ == 0.0).all()


def test_what_interactions_add():
    """A label that is there with two others together is found by pairs."""
    train, test = slice(0, 200), slice(200, 300)
    scores = {}
    for how in ("none", "tree", "full", "auto"):
        model = MultilabelClassifier(interactions=how, C=10.0, random_state=0).fit(X[train], Y[train])
        scores[how] = model.score(X[test], Y[test])
        assert len(model.edges_) == len(model.interactions_) == {"none": 0, "tree": 3, "full": 6, "auto": 6}[how]
        assert np.array_equal(model.decision_function(X) > 0.0, model.predict(X) > 0)
    assert scores["full"] == scores["auto"] > scores["none"] + 0.05


@pytest.mark.parametrize("loss", ["hamming", "subset", "f1"])
def test_c_is_chosen_by_what_the_loss_is_of(loss):
    model = MultilabelClassifier(loss, standardize=False, random_state=0).fit(X, Y)
    metric = {"hamming": "Hamming loss", "subset": "subset accuracy", "f1": "F1"}[loss]
    assert model.validation_["metric"] == metric and model.C_ in model.validation_["C"]
    examples = LabelSets(model.model_.rows(X), Y.astype(np.int8))
    held, found = model.model_.held_out_scores(examples), model.predict(X)
    value = held.numerator.sum() / held.denominator.sum()
    want = {
        "hamming": np.mean(found != Y),
        "subset": accuracy_score(Y, found),
        "f1": f1_score(Y, found, average="samples", zero_division=1.0),
    }[loss]
    assert value == pytest.approx(want)


def test_labels_that_are_not_known_are_completed():
    hidden = np.where(np.random.default_rng(1).random(Y.shape) < 0.3, -1, Y)
    model = fitted(hidden)
    assert model.result_.n_rounds > 0
    assert np.mean(model.predict(X) != Y) < 0.15
    rows = [None if k % 5 == 0 else labels for k, labels in enumerate(SETS)]
    assert fitted(rows).score(X, SETS) > 0.6
    for mark in (-100, np.nan):
        same = fitted(np.where(hidden < 0, mark, hidden))
        assert same.n_unknown_ == (hidden < 0).sum()
        np.testing.assert_array_equal(same.model_.weights, model.model_.weights)
    with pytest.raises(ValueError, match="nothing is known of any row"):
        fitted(np.full_like(Y, -1))


def test_labels_that_training_never_saw():
    model = fitted(SETS)
    right = [set(labels) for labels in model.predict(X)]
    assert model.score(X, right) == 1.0
    more = [labels | {"new"} if k < 2 else labels for k, labels in enumerate(right)]
    with pytest.warns(structsvm.AdviceWarning, match=r"2 labels of rows have a label that training never"):
        assert model.score(X, more) == 1 - 2 / len(X)


def test_streams_settle_their_labels():
    model = MultilabelClassifier(C=1.0, random_state=0)
    model.partial_fit(X[:20], [{"bee"}] * 20, classes=NAMES)
    model.partial_fit(X, SETS)
    assert model.classes_.tolist() == NAMES.tolist() and model.score(X, SETS) > 0.4
    with pytest.raises(ValueError, match="is not the same as on the last call"):
        model.partial_fit(X, SETS, classes=["ant"])
    with pytest.raises(ValueError, match="row 0 of y has the label 'eel', which is none of"):
        model.partial_fit(X[:1], [{"eel"}])


def test_many_labels(tmp_path):
    """Relaxed by the Hamming loss, searched by the others; and with probabilities of labels."""
    few = np.hstack([Y] * 6)  # 24 labels
    model = MultilabelClassifier(interactions="full", C=1.0, probability=True, random_state=0).fit(X[:60], few[:60])
    assert model.result_.inference == "relaxed" and model.result_.gap >= 0.0
    model.save(tmp_path / "m")
    loaded = structsvm.load(tmp_path / "m")
    assert np.array_equal(loaded.predict(X), model.predict(X))
    found = model.predict_proba(X)
    is_clear = np.abs(found - 0.5) > 1e-9  # labels that are copies tie
    assert np.array_equal((found > 0.5)[is_clear], (model.predict(X) > 0)[is_clear])
    np.testing.assert_array_equal(loaded.predict_proba(X), found)
    np.testing.assert_allclose(np.log(found / (1 - found)) * model.temperature_, model.decision_function(X), atol=1e-9)
    mean = [
        log_loss(few[60:120].ravel(), model.calibrate(X[k], few[k]).predict_proba(X[60:120]).ravel())
        for k in (slice(60, 120), slice(0, 60))
    ]
    assert mean[0] < mean[1]  # the training rows' temperature is too low
    searched = MultilabelClassifier("subset", interactions="full", C=1.0, random_state=0).fit(X[:60], few[:60])
    assert searched.result_.inference == "approximate" and np.isnan(searched.result_.gap)
    assert MultilabelClassifier(C=1.0, random_state=0).fit(X[:60], few[:60]).result_.inference == "exact"  # a tree
    with pytest.raises(ValueError, match="the log loss needs sums over all sets"):
        MultilabelClassifier("log", interactions="full").fit(X[:60], few[:60])


@pytest.mark.parametrize("interactions", ["none", "tree", "full"])
def test_probabilities(interactions):
    """A log loss gives calibrated probabilities, a margin needs a temperature; both are sums over sets."""
    train, test = slice(0, 200), slice(200, 300)
    table = {}
    for name, params in (("log", {"loss": "log"}), ("margin", {"probability": True}), ("raw", {})):
        model = MultilabelClassifier(interactions=interactions, C=1.0, random_state=0, **params).fit(X[train], Y[train])
        if name == "raw":
            with pytest.raises(ValueError, match="predict_proba needs probabilities"):
                model.predict_proba(X[test])
            model.calibrate(X[test], Y[test])
            known = np.where(np.arange(4) == 0, Y[test], -1)
            model.calibrate(X[test], known)  # the known part
        p = model.predict_proba(X[test])
        assert p.shape == (100, 4) and ((p >= 0.0) & (p <= 1.0)).all()
        table[name] = log_loss(Y[test].ravel(), p.ravel())
        oracle, w = model.model_.oracle, model.model_.weights / model.temperature_
        x = model.model_.rows(X[250:251]).tokens().values
        sets = np.array(list(itertools.product((0, 1), repeat=4)))
        weight = np.exp([oracle.joint_feature(x, y) @ w for y in sets])
        np.testing.assert_allclose(p[50], weight @ sets / weight.sum(), atol=1e-9)
    assert model.temperature_ != 1.0 and table["log"] < 0.45 and table["margin"] < 0.45
    with pytest.raises(ValueError, match="trains a margin, and loss='log' has a solver of its own"):
        MultilabelClassifier("log", solver="frank_wolfe").fit(X, Y)


def test_the_log_loss_of_what_is_known():
    hidden = np.where(np.random.default_rng(1).random(Y.shape) < 0.3, -1, Y)
    model = MultilabelClassifier("log", C=1.0, random_state=0).fit(X, hidden)
    assert model.result_.gap >= 0.0 and np.mean(model.predict(X) != Y) < 0.15


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (Y * 2, "row 0, column . is 2"),
        (Y[:, 0], r"a column per label, or a list of sets of labels; got shape \(300,\)"),
        (Y[:-1], "X has 300 samples, y has 299"),
        (SETS[:-1], "X has 300 samples, y has 299"),
        (["ant"] * 300, "row 0 of y must be a collection of labels, got 'ant'"),
        ([{"ant"}, 3, *SETS[2:]], "row 1 of y must be a collection of labels, got 3"),
        ([{"ant"}, [[]], *SETS[2:]], r"row 1 of y holds \[\], which is no label"),
        ([set()] * 300, "y holds no label"),
        (Y.tolist(), r"y is a list of rows of 0 and 1, .* np.array\(y\) is a matrix"),
        ("ant", "y must be a matrix of 0 and 1, or a list of sets of labels, got 'ant'"),
        (np.full((300, 2), "a"), "y must be a matrix of 0 and 1, got <U1"),
        (np.where(Y > 0, 1, -1), "y has 1 and -1, and no 0: -1 is a label that is not known"),
    ],
)
def test_what_is_refused(y, message):
    with pytest.raises(ValueError, match=message):
        fitted(y)


def test_what_fit_refuses():
    with pytest.raises(ValueError, match="The 'interactions' parameter of MultilabelClassifier must be"):
        fitted(interactions="some")
    with pytest.raises(ValueError, match="the model was trained with another 'interactions'"):
        fitted(warm_start=True).set_params(interactions="none").fit(X, Y)
    with pytest.raises(ValueError, match="rescaling='slack' needs loss-augmented inference"):
        MultilabelClassifier(solver=LaRank(rescaling="slack")).fit(X, Y)
    with pytest.raises(ValueError, match="X has 5 features, but MultilabelClassifier is expecting 6"):
        fitted().predict(X[:, :5])
    with pytest.raises(ValueError, match="X has 300 samples, y has 3"):
        fitted().score(X, Y[:3])


def test_very_many_labels_do_not_interact():
    """Their pairs would take gigabytes."""
    y = np.eye(2, 4097, dtype=int)
    for how in ("tree", "full"):
        with pytest.raises(ValueError, match=r"'interactions' parameter .* must be 'none' for more than 4096 labels"):
            MultilabelClassifier(C=1.0, interactions=how).fit(np.eye(2), y)
    model = MultilabelClassifier(C=1.0, max_iter=1, random_state=0).fit(np.eye(2), y)
    assert len(model.edges_) == 0 and model.predict(np.eye(2)).shape == y.shape
    with pytest.raises(ValueError, match="can have at most 4096 labels"):
        LabelSetOracle(4097, 1, [(0, 1), (1, 2), (0, 2)])


def test_files_are_checked(tmp_path):
    model = fitted()
    kind, record = type(model.model_), model.model_.record
    header, arrays = record.write(model.model_)
    for change, message in [
        ({"loss": "exact"}, "'loss' must be one of .* got 'exact'"),
        ({"form": "list"}, "'form' must be one of .* got 'list'"),
        ({"n_features_in": 7}, "array 'weights' has shape"),
        ({"labels": [0, 1, 2]}, "expected from 0 up to"),
    ]:
        with pytest.raises(ValueError, match=message):
            kind.from_record(record.read(header | change, arrays))
    loops = arrays | {"edges": np.zeros_like(arrays["edges"])}
    with pytest.raises(ValueError, match="edges must join different labels"):
        kind.from_record(record.read(header, loops))


def test_yeast():
    if "STRUCTSVM_DATA" not in os.environ:
        pytest.skip("STRUCTSVM_DATA does not name a data folder")
    data = datasets.fetch_multilabel_yeast()
    assert repr(data) == "LabelledRows(n_train=1500, n_test=917, n_features=103)"
    counts = [476, 645, 598, 532, 441, 378, 261, 289, 98, 161, 198, 1128, 1116, 21]
    assert data.y_train.sum(axis=0).tolist() == counts and data.y_test.sum(axis=1).max() == 10
    model = MultilabelClassifier(C=1.0, max_iter=3, random_state=0).fit(data.X_train, data.y_train)
    assert np.mean(model.predict(data.X_test) != data.y_test) < 0.205
    assert model.score(data.X_test, data.y_test) > 0.19


class Frame:
    """A data frame, as far as y is read."""

    def __init__(self, values, columns):
        self.values, self.columns = values, columns

    def to_numpy(self):
        return self.values


def test_columns_go_by_their_names():
    named, order = Frame(Y, list("dcba")), [3, 1, 0, 2]
    other = Frame(Y[:, order], [named.columns[k] for k in order])
    model = fitted(named)
    assert model.classes_.tolist() == list("dcba") and model.score(X, other) == model.score(X, named) > 0.5
    first, again = (MultilabelClassifier(C=1.0, random_state=0) for _ in range(2))
    first.partial_fit(X, named, classes=list("dcba")).partial_fit(X, other)
    again.partial_fit(X, named).partial_fit(X, named)
    np.testing.assert_array_equal(first.coef_, again.coef_)
    stream = MultilabelClassifier(C=1.0, random_state=0).partial_fit(X, Y, classes=list("dcba"))
    assert stream.classes_.tolist() == list("dcba")
    with pytest.raises(ValueError, match=r"the columns of y are .*'x'.*, the labels are .*'d'"):
        model.score(X, Frame(Y, list("xyzw")))


def test_score_leaves_out_what_is_not_known():
    model, found = fitted(), fitted().predict(X)
    known = np.where(np.arange(4) == 2, -1, Y)
    right = (found == Y)[:, [0, 1, 3]].all(axis=1)
    assert model.score(X, known) == right.mean()
    known[:100] = -1
    assert model.score(X, known) == right[100:].mean()
    with pytest.raises(ValueError, match="y tells nothing of any example"):
        model.score(X, np.full_like(Y, -1))


def test_the_log_loss_chooses_by_itself():
    model = fitted(C="auto", loss="log")
    assert model.validation_["metric"] == "log loss"
