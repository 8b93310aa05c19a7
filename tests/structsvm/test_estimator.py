"""StructuredSVM: any oracle behind fit and predict."""

import os
import pickle
import re
import signal
import threading

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import structsvm
from structsvm import (
    LaRank,
    ModelFileError,
    Oracle,
    OracleError,
    PassiveAggressive,
    Perceptron,
    StructuredSVM,
    UnsupportedFormulation,
)
from structsvm.features.encoder import FeatureEncoder
from structsvm.model_file import read_model, write_model
from structsvm.oracles.cky import CKYOracle
from structsvm.oracles.taxonomy import TaxonomyOracle
from structsvm.oracles.viterbi import ViterbiOracle
from structsvm.structures.taxonomy import Taxonomy
from structsvm.structures.trees import parse_tree
from structsvm.tasks import SequenceLabeler


class Multiclass(Oracle):
    """x in R^d, y in 0 .. k - 1."""

    rescalings = ("margin", "slack")
    penalties = ("linear", "quadratic", None)

    def __init__(self, d=3, k=3):
        self.d, self.k = d, k
        self.n_features = d * k

    def joint_feature(self, x, y):
        psi = np.zeros((self.k, self.d))
        psi[y] = x
        return psi.ravel()

    def loss(self, y_true, y):
        return float(y_true != y)

    def argmax(self, x, w, y_true=None, rescaling=None):
        scores = w.reshape(self.k, self.d) @ x
        if y_true is not None:
            wrong = 1.0 - (np.arange(self.k) == y_true)
            scores = wrong + scores if rescaling == "margin" else wrong * (1.0 + scores - scores[y_true])
        return int(scores.argmax())


rng = np.random.default_rng(0)
centres = np.array([[3.0, 0.0, 0.0], [0.0, 3.0, 0.0], [0.0, 0.0, 3.0]])
y = rng.integers(0, 3, 60).tolist()
X = list(centres[y] + rng.normal(size=(60, 3)))

SOLVERS = [
    LaRank(C=0.5, random_state=0),
    LaRank(C=0.5, random_state=0, average=False, schedule="fixed", n_reprocess=2),
    LaRank(C=0.5, random_state=0, schedule="adaptive", rescaling="slack"),
    LaRank(C=0.5, random_state=0, penalty="quadratic"),
    PassiveAggressive(C=0.5, random_state=0),
    Perceptron(random_state=0),
    Perceptron(random_state=0, average=False),
]


@pytest.mark.parametrize("solver", SOLVERS, ids=repr)
def test_fit_predict_score(solver):
    model = StructuredSVM(Multiclass(), solver).fit(X, y)
    predicted = model.predict(X)
    assert isinstance(predicted, list)
    errors = np.mean([a != b for a, b in zip(predicted, y, strict=True)])
    assert errors < 0.3
    assert model.score(X, y) == pytest.approx(-errors)
    assert model.coef_.shape == (9,)
    assert model.n_iter_ == model.result_.n_iter
    weight = np.r_[np.ones(30), np.zeros(30)]
    assert model.score(X, y, sample_weight=weight) == pytest.approx(model.score(X[:30], y[:30]))
    np.testing.assert_array_equal(StructuredSVM(Multiclass(), solver).fit(X, y).coef_, model.coef_)


def test_the_default_solver_is_larank():
    np.testing.assert_array_equal(StructuredSVM(Multiclass(), LaRank(random_state=0)).fit(X, y).coef_.shape, (9,))
    assert StructuredSVM(Multiclass()).fit(X, y).score(X, y) > -0.2


def test_compiled_oracles_and_encoded_tokens():
    words = [[["a"], ["b"], ["a"]], [["b"]], [["a"], ["a"]]]
    encoder = FeatureEncoder()
    tokens = encoder.fit_transform(words)
    labels = np.array([0, 1, 0, 1, 0, 0], dtype=np.int32)
    oracle = ViterbiOracle(2, encoder.n_features)
    model = StructuredSVM(oracle, LaRank(C=10.0, max_iter=4, random_state=0), warm_start=True).fit(tokens, labels)
    names = [["A", "B", "A"], ["B"], ["A", "A"]]
    task = SequenceLabeler(solver=LaRank(C=10.0, max_iter=4, random_state=0)).fit(words, names)
    np.testing.assert_array_equal(model.coef_, task.model_.weights)
    assert model.fit(tokens, labels).n_iter_ == 2 * task.n_iter_
    assert model.fit(tokens, labels[::-1].copy()).n_iter_ == task.n_iter_
    dense = [np.eye(2)[[0, 1, 0]], np.eye(2)[[1]]]
    of_lists = StructuredSVM(ViterbiOracle(2, 2), LaRank(C=10.0, random_state=0)).fit(dense, [[0, 1, 0], [1]])
    assert [p.tolist() for p in of_lists.predict(dense)] == [[0, 1, 0], [1]]


def chain(loss):
    tokens, labels = np.array([0, 1, 2, 1, 0], dtype=float)[:, None], [0, 1, 1, 0, 1]
    return ViterbiOracle(2, 1, loss=loss), [tokens, tokens[::-1].copy()], [labels, labels[::-1]]


def nodes(loss):
    taxonomy = Taxonomy([("r", "a"), ("r", "b"), ("a", "c"), ("a", "d")])
    return TaxonomyOracle(taxonomy, 2, loss=loss), np.eye(2), [0, 1]


def derivations(loss):
    trees = [parse_tree("(S (S (A a)) (S (A a) (A a)))"), parse_tree("(S (A a) (A a))")]
    return CKYOracle("S -> S S | A A | A\nA -> 'a'", loss=loss), None, trees


@pytest.mark.parametrize(
    ("make", "losses"), [(chain, ("hamming", "zero_one")), (nodes, ("tree", "path")), (derivations, ("f1", "hamming"))]
)
def test_going_on_with_another_loss_or_formulation_is_refused(make, losses):
    oracle, X, Y = make(losses[0])
    model = StructuredSVM(oracle, LaRank(C=1.0, random_state=0), warm_start=True).fit(X, Y)
    other, X, Y = make(losses[1])
    with pytest.raises(ValueError, match=r"another formulation \(other losses or another kernel\)"):
        model.set_params(oracle=other).fit(X, Y)
    model.set_params(oracle=oracle, solver=LaRank(C=1.0, rescaling="slack", random_state=0))
    with pytest.raises(ValueError, match=r"another formulation \(rescaling='margin', not 'slack'\)"):
        model.fit(X, Y)


# ---- going on ----------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", SOLVERS, ids=repr)
def test_going_on_is_one_run_bit_for_bit(solver, tmp_path):
    def of(passes, **params):
        return StructuredSVM(Multiclass(), type(solver)(**solver.get_params() | {"max_iter": passes}), **params)

    whole = of(5).fit(X, y)
    part = of(2, warm_start=True).fit(X, y)
    part.save(tmp_path / "m")
    loaded = structsvm.load(tmp_path / "m", oracle=Multiclass())
    assert loaded.warm_start and repr(loaded.solver) == repr(part.solver)
    for model in (part, loaded):
        model.set_params(solver__max_iter=3).fit(X, y)
        np.testing.assert_array_equal(model.coef_, whole.coef_)
        assert model.n_iter_ == 5
        assert model.result_.dual == pytest.approx(whole.result_.dual, nan_ok=True, rel=0)


def test_going_on_with_other_data_or_another_solver():
    def model():
        return StructuredSVM(Multiclass(), LaRank(C=0.5, max_iter=4, random_state=0), warm_start=True).fit(X, y)

    for others in ((X[::-1], y[::-1]), (X[:-1], y[:-1])):  # the problem around the weights so far
        moved = model().fit(*others)
        solver, problem = moved.solver, Multiclass().bind(*others, **moved.solver.formulation())
        np.testing.assert_array_equal(moved.coef_, solver.solve(problem, base=model().coef_).weights)
    least = model().set_params(solver__C=1e-9).fit(X, y)
    assert least.n_iter_ == 8 and abs(least.result_.relative_gap) < 1e-6
    changed = model().set_params(solver=Perceptron(random_state=0)).fit(X, y)
    problem = Multiclass().bind(X, y, **changed.solver.formulation())
    np.testing.assert_array_equal(changed.coef_, changed.solver.solve(problem, base=model().coef_).weights)


def test_partial_fit_starts_from_the_weights():
    model = StructuredSVM(Multiclass(), LaRank(C=0.5, random_state=0))
    for a in range(0, 60, 20):
        assert model.partial_fit(X[a : a + 20], y[a : a + 20]) is model
        assert model.n_iter_ == 1
    assert model.score(X, y) > -0.25
    far = StructuredSVM(Multiclass(), LaRank(C=1e-9, random_state=0)).fit(X, y)
    far.model_.weights = model.coef_.copy()
    np.testing.assert_allclose(far.partial_fit(X, y).coef_, model.coef_, atol=1e-6)


def test_ctrl_c_leaves_a_partial_model():
    class Slow(Multiclass):
        calls = 0

        def argmax(self, x, w, y_true=None, rescaling=None):
            Slow.calls += 1
            if Slow.calls == 500:
                os.kill(os.getpid(), signal.SIGINT)
            return super().argmax(x, w, y_true, rescaling)

    model = StructuredSVM(Slow(), LaRank(C=0.5, max_iter=10_000, random_state=0), warm_start=True)
    with pytest.raises(KeyboardInterrupt, match="the estimator holds the model as it was then"):
        model.fit(X, y)
    assert threading.current_thread() is threading.main_thread()
    assert Slow.calls < 1000
    assert model.result_.status == "interrupted"
    assert model.score(X, y) > -0.3
    done = model.n_iter_
    assert model.set_params(solver__max_iter=2).fit(X, y).n_iter_ == done + 2


# ---- files -------------------------------------------------------------------------------------


def test_save_and_load(tmp_path):
    model = StructuredSVM(Multiclass(), LaRank(C=0.5, tol=0.2, max_iter=50, random_state=0)).fit(X, y)
    model.save(tmp_path / "m")
    for mmap in (False, True):
        loaded = structsvm.load(tmp_path / "m", oracle=Multiclass(), mmap=mmap)
        np.testing.assert_array_equal(loaded.coef_, model.coef_)
        assert loaded.predict(X) == model.predict(X)
        assert loaded.result_.to_dict() == model.result_.to_dict()
        for name, values in model.result_.history.items():
            np.testing.assert_array_equal(loaded.result_.history[name], values)
        assert loaded.get_params()["solver__tol"] == 0.2
    loaded.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "m").read_bytes()
    assert pickle.loads(pickle.dumps(model)).predict(X) == model.predict(X)


def test_files_that_do_not_fit(tmp_path):
    StructuredSVM(Multiclass(), LaRank()).fit(X, y).save(tmp_path / "m")
    SequenceLabeler().fit([[["a"]]], [["A"]]).save(tmp_path / "s")
    with pytest.raises(ModelFileError, match=r"give its oracle, load\(path, oracle=...\)"):
        structsvm.load(tmp_path / "m")
    with pytest.raises(ModelFileError, match="for the task 'sequence', but one for 'structured' was wanted"):
        StructuredSVM.load(tmp_path / "s", oracle=Multiclass())
    with pytest.raises(ModelFileError, match="no weights for the 12 features of the oracle"):
        structsvm.load(tmp_path / "m", oracle=Multiclass(d=4))
    with pytest.raises(ModelFileError, match="is for the oracle 'Multiclass', not 'ViterbiOracle'"):
        structsvm.load(tmp_path / "m", oracle=ViterbiOracle(2, 2))
    with pytest.raises(TypeError, match=r"oracle must be an instance of Multiclass, not the class: Multiclass\(...\)"):
        structsvm.load(tmp_path / "m", oracle=Multiclass)


def test_hostile_files(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda _: None)
    StructuredSVM(Multiclass(), LaRank(random_state=0)).fit(X, y).save(tmp_path / "m", training_state=True)
    file = read_model(tmp_path / "m")
    strange = [
        None,
        True,
        -1,
        2**63,
        0.5,
        "x",
        [],
        {},
        {"solver": "Run", "params": {}},
        {"solver": "LaRank", "params": {"D": 1}},
    ]

    def check(meta, arrays):
        write_model(tmp_path / "bad", "structured", meta, arrays)
        try:
            model = structsvm.load(tmp_path / "bad", oracle=Multiclass())
        except ModelFileError:
            return 1
        model.predict(X)
        model.result_.certificate()
        # Solvers that the file does not know are the default: one pass of it must go, or say why not.
        model.set_params(solver=LaRank(random_state=0, max_iter=1), warm_start=True)
        try:
            model.fit(X, y)
        except ValueError as error:
            assert "training" in str(error), error  # noqa: PT017
        return 0

    refused = 0
    for key in file.meta:
        refused += check({k: v for k, v in file.meta.items() if k != key}, file.arrays)
        for value in strange:
            refused += check(file.meta | {key: value}, file.arrays)
    for key in file.meta["result"]:
        for value in strange:
            refused += check(file.meta | {"result": file.meta["result"] | {key: value}}, file.arrays)
    for name, array in file.arrays.items():
        refused += check(file.meta, {k: v for k, v in file.arrays.items() if k != name})
        for new in (
            array[:-1],
            array[..., None],
            array.astype(np.float32),
            np.zeros(array.shape, "S2"),
            np.full(array.shape, np.nan),
            np.full(array.shape, np.inf),
            np.full(array.shape, -1),
            np.zeros(0),
        ):
            refused += check(file.meta, file.arrays | {name: new})
    assert refused > 100


# ---- errors ------------------------------------------------------------------------------------


def test_not_fitted():
    for call in (lambda m: m.predict(X), lambda m: m.score(X, y), lambda m: m.save("nowhere")):
        with pytest.raises(NotFittedError):
            call(StructuredSVM(Multiclass()))


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (
            StructuredSVM(),
            "The 'oracle' parameter of StructuredSVM must be an instance of a subclass of structsvm.Oracle",
        ),
        (StructuredSVM(Multiclass), "The 'oracle' parameter"),
        (StructuredSVM(Multiclass(), LaRank), "The 'solver' parameter"),
        (StructuredSVM(Multiclass(), "larank"), "The 'solver' parameter"),
        (StructuredSVM(Multiclass(), LaRank(C=0)), "The 'C' parameter of LaRank"),
        (StructuredSVM(Multiclass(), warm_start=1), "The 'warm_start' parameter of StructuredSVM must be a bool"),
    ],
)
def test_bad_parameters(model, message):
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)


def test_bad_data():
    model = StructuredSVM(Multiclass())
    with pytest.raises(ValueError, match="X has 60 examples, Y has 59"):
        model.fit(X, y[:-1])
    with pytest.raises(ValueError, match="requires y to be passed, but the target y is None"):
        model.fit(X, None)
    with pytest.raises(ValueError, match="no examples to train on"):
        model.fit([], [])
    with pytest.raises(ValueError, match=r"sample_weight has shape \(1,\), expected \(60,\)"):
        model.fit(X, y, sample_weight=[1.0])
    with pytest.raises(ValueError, match="must not be zero for every sample"):
        model.fit(X, y, sample_weight=np.zeros(60))
    with pytest.raises(OracleError, match="not finite"):
        model.fit([np.array([np.nan, 0.0, 0.0])], [0])
    assert not hasattr(model, "coef_")
    model.fit(X, y)
    with pytest.raises(ValueError, match="X has 60 examples, y has 2"):
        model.score(X, [0, 1])


def test_formulations_that_an_oracle_does_not_serve():
    class Plain(Multiclass):
        rescalings = ("margin",)

    with pytest.raises(UnsupportedFormulation, match="rescaling='slack' needs"):
        StructuredSVM(Plain(), LaRank(rescaling="slack")).fit(X, y)


def test_errors_of_user_code_come_out_unchanged():
    class Mine(Exception):
        pass

    error = Mine("mine")

    class Broken(Multiclass):
        def argmax(self, x, w, y_true=None, rescaling=None):
            raise error

    model = StructuredSVM(Broken())
    with pytest.raises(Mine) as caught:
        model.fit(X, y)
    assert caught.value is error
    assert str(error) == "mine"
    (note,) = error.__notes__  # beside the message, which stays what it was
    assert re.fullmatch(r"while Broken was asked about example \d+", note)
    assert not hasattr(model, "coef_")


def test_sample_weight():
    weight = np.where(np.array(y) == 0, 0.0, 1.0)
    model = StructuredSVM(Multiclass(), LaRank(random_state=0)).fit(X, y, sample_weight=weight)
    assert 0 not in model.predict([x for x, label in zip(X, y, strict=True) if label])
    with pytest.raises(ValueError, match="Perceptron takes no sample_weight"):
        StructuredSVM(Multiclass(), Perceptron()).fit(X, y, sample_weight=weight)


def test_verbose_shows_a_bar(capsys):
    StructuredSVM(Multiclass(), verbose=True).fit(X, y)
    assert "training" in capsys.readouterr().err


@pytest.mark.parametrize(("kind", "meta"), [("unheard", {}), ("binary", {}), ("binary", {"estimator": "__all__"})])
def test_models_of_unknown_tasks(kind, meta, tmp_path):
    write_model(tmp_path / "m", kind, meta, {})
    with pytest.raises(ModelFileError, match=f"a model of the task '{kind}', which this version does not know"):
        structsvm.load(tmp_path / "m")


def test_one_changed_label_makes_other_data():
    """Whichever example it is: cuts of the label before would stay in the dual of a warm start, or of a checkpoint."""
    X, y = rng.normal(size=(60, 3)), rng.integers(0, 3, 60).tolist()
    same = Multiclass().bind(X, y).fingerprint()
    assert same == Multiclass().bind(X.copy(), list(y)).fingerprint()
    found = {Multiclass().bind(X, [*y[:i], (y[i] + 1) % 3, *y[i + 1 :]]).fingerprint() for i in range(60)}
    assert len(found) == 60 and same not in found


def test_an_oracle_cannot_write_to_the_model():
    class Greedy(Multiclass):
        def argmax(self, x, w, y_true=None, rescaling=None):
            if y_true is None:
                w *= 0.5
            return super().argmax(x, w, y_true, rescaling)

    X, y = rng.normal(size=(20, 3)), rng.integers(0, 3, 20).tolist()
    model = StructuredSVM(Multiclass(), LaRank(random_state=0)).fit(X, y)
    before = model.coef_.copy()
    with pytest.raises(ValueError, match="read-only"):
        model.set_params(oracle=Greedy()).predict(X)
    assert np.array_equal(model.coef_, before)
    with pytest.raises(ValueError, match="the oracle has 12 features now, and the model 9"):
        model.set_params(oracle=Multiclass(4)).predict(X)
