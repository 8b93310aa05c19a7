"""Promises in model files: they come back, older readers pass over them, and forged ones are refused."""

import zlib

import numpy as np
import pytest
from cases import CASES
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import structsvm
from structsvm import model_file
from structsvm.datasets import make_sequences
from structsvm.model_file import ModelFileError, read_model, write_model
from structsvm.risk import ConformalOutputs, ConformalSets, ConformalSpans, LossController, RiskController
from structsvm.tasks import SequenceLabeler, TaggedParser

pytestmark = pytest.mark.filterwarnings("ignore::structsvm.AdviceWarning", "ignore::structsvm.ConvergenceWarning")
X, Y = make_sequences(60, random_state=0)


@pytest.fixture(scope="module")
def tagger():
    return SequenceLabeler(C=0.1, random_state=0).fit(X[:30], Y[:30])


def promises(tagger):
    yield RiskController(tagger, alpha=0.6, delta=0.3).calibrate(X[30:], Y[30:])
    yield RiskController(tagger, alpha=0.01, delta=0.99, held_out=0.5).calibrate(X[30:], Y[30:])
    yield ConformalSets(tagger, alpha=0.2, cover="unit").calibrate(X[30:], Y[30:])
    yield ConformalSets(tagger, alpha=0.5).calibrate(X[30:], Y[30:], groups=["a", 1] * 15)
    for by_label in (False, True):
        yield LossController(tagger, alpha=0.7, by_label=by_label, random_state=0).calibrate(X[30:], Y[30:])
    yield ConformalSpans(tagger, alpha=0.5).calibrate(X[30:], Y[30:])
    yield ConformalOutputs(tagger, alpha=0.9, k=30).calibrate(X[30:], Y[30:])


def test_they_come_back(tagger, tmp_path):
    path = tmp_path / "tags.model"
    for promise in promises(tagger):
        options = {"groups": ["a", 1] * 30} if isinstance(getattr(promise, "quantile_", None), dict) else {}
        promise.save(path)
        for found in (structsvm.load(path), type(promise).load(path), structsvm.load(path.read_bytes())):
            assert type(found) is type(promise)
            params, before = found.get_params(deep=False), promise.get_params(deep=False)
            assert params | {"estimator": None, "random_state": None} == before | {
                "estimator": None,
                "random_state": None,
            }
            assert found.predict(X, **options) == promise.predict(X, **options)
            assert found.n_calibration_ == 30
        # Who asks for the estimator alone has it, and so have the command line and the small predictor.
        assert SequenceLabeler.load(path).predict(X) == tagger.predict(X)
    assert structsvm.load(path, predictor=True).predict(X[:3]) == tagger.predict(X[:3])


def test_each_array_is_inflated_once(tagger, tmp_path, monkeypatch):
    tagger.save(tmp_path / "alone")
    RiskController(tagger, alpha=0.6, delta=0.3).calibrate(X[30:], Y[30:]).save(tmp_path / "promised")
    n_inflated, inflater = [0], zlib.decompressobj

    def counting():
        n_inflated[0] += 1
        return inflater()

    monkeypatch.setattr(model_file.zlib, "decompressobj", counting)
    for name, options in (("alone", {}), ("alone", {"predictor": True}), ("promised", {})):
        n_deflated = (tmp_path / name).read_bytes().count(b'"deflated":')
        n_inflated[0] = 0
        structsvm.load(tmp_path / name, **options)
        assert n_inflated[0] == n_deflated > 0


@pytest.mark.parametrize("name", ["grammar", "taxonomy", "larank", "multilabel, tree", "dependency", "semantics"])
def test_other_estimators(name, tmp_path):
    case = CASES[name]
    model, questions, y = case.trained, case.questions, case.X if case.y is None else case.y
    careful = RiskController(model, alpha=0.7, delta=0.3).calibrate(questions, y)
    careful.save(tmp_path / "model")
    found = structsvm.load(tmp_path / "model")
    assert repr(found.predict(questions)) == repr(careful.predict(questions))
    assert found.threshold_ == careful.threshold_


def test_a_tagger_with_a_parser(tmp_path):
    from cases import TABLE

    case = TABLE["tagged"]
    model = case.trained
    careful = RiskController(model, alpha=0.7, delta=0.3).calibrate(case.X, case.y)
    careful.save(tmp_path / "model")
    found = structsvm.load(tmp_path / "model")
    assert isinstance(found.estimator_, TaggedParser) and repr(found.predict(case.X)) == repr(careful.predict(case.X))


def test_what_no_file_contains(tagger, tmp_path):
    rows = np.random.default_rng(0).normal(size=(60, 2))
    classes = (rows[:, 0] > 0.0).astype(int)
    of_others = LogisticRegression().fit(rows, classes)
    careful = RiskController(tagger, alpha=0.6, confidence=lambda model, X: [1.0] * len(X)).calibrate(X[30:], Y[30:])
    refused = [
        (RiskController(of_others, alpha=0.6).calibrate(rows, classes), "cannot hold a LogisticRegression"),
        (RiskController(make_pipeline(of_others), alpha=0.6).calibrate(rows, classes), "cannot hold a Pipeline"),
        (careful, "contains no code, and confidence="),
        (ConformalSets(of_others, cv=3).fit(rows, classes), "with cv=3 there are several"),
        (ConformalSets(tagger, alpha=0.5).calibrate(X[30:], Y[30:], groups=[("a", 1)] * 30), "not \\('a', 1\\)"),
    ]
    for promise, message in refused:
        with pytest.raises(TypeError, match=message):
            promise.save(tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_files_of_others(tagger, tmp_path):
    tagger.save(tmp_path / "plain")
    with pytest.raises(ModelFileError, match="plain: a model without a promise"):
        RiskController.load(tmp_path / "plain")
    next(promises(tagger)).save(tmp_path / "careful")
    with pytest.raises(ModelFileError, match="careful: a RiskController, not a ConformalSets"):
        ConformalSets.load(tmp_path / "careful")


LOST = {"risk": 0.1, "size": 2.0, "n_calibration": 30}
FORGED = [
    {"promise": "LogisticRegression"},
    {"params": {"alpha": 2.0}},
    {"params": {"estimator": None}},
    {"params": {"confidence": "os.system"}},
    {"params": 3},
    {"values": None},
    {"values": {"threshold": "much", "coverage": 0.5, "risk": 0.0, "n_calibration": 30}},
    {"values": {"threshold": "nan", "coverage": 0.5, "risk": 0.0, "n_calibration": 30}},
    {"promise": "ConformalSets", "params": {}, "values": {"quantile": "nan", "n_calibration": 30}},
    {"promise": "ConformalSets", "params": {}, "values": {"quantile": [["a", "nan"]], "n_calibration": 30}},
    {"values": {"threshold": True, "coverage": 0.5, "risk": 0.0, "n_calibration": 30}},
    {"values": {"threshold": 0.5, "coverage": 0.5, "risk": 0.0, "n_calibration": 0}},
    {"values": {"threshold": [["a", 1.0]], "coverage": 0.5, "risk": 0.0, "n_calibration": 3}},
    {"promise": "ConformalSets", "params": {}, "values": {"quantile": [[["a"], 1.0]], "n_calibration": 30}},
    {"promise": "ConformalSets", "params": {}, "values": {"quantile": None, "n_calibration": 30}},
    {"promise": "ConformalSpans", "params": {"by_label": True}, "values": {"quantile": 0.5, "n_calibration": 30}},
    {"promise": "ConformalSpans", "params": {}, "values": {"quantile": [["NP", 0.5]], "n_calibration": 30}},
    {"promise": "LossController", "params": {}, "values": {**LOST, "threshold": [["NP", 0.5], [None, 0.1]]}},
    {"promise": "LossController", "params": {"by_label": True}, "values": {**LOST, "threshold": 0.5}},
    {"promise": "LossController", "params": {"by_label": True}, "values": {**LOST, "threshold": [["NP", 0.5]]}},
    {"promise": "LossController", "params": {"loss": "high"}, "values": {**LOST, "threshold": 0.5}},
]


@pytest.mark.parametrize("forged", FORGED, ids=range(len(FORGED)))
def test_forged_promises(tagger, tmp_path, forged):
    path = tmp_path / "model"
    next(promises(tagger)).save(path)
    file = read_model(path)
    for other in (file.meta["guarantee"] | forged, {**file.meta["guarantee"], "more": 1}):
        write_model(path, file.kind, file.meta | {"guarantee": other}, file.arrays)
        if "more" in other:
            assert structsvm.load(path).threshold_ is not None
        else:
            with pytest.raises(ModelFileError, match="not a sound sequence with a promise model"):
                structsvm.load(path)
    write_model(path, file.kind, file.meta | {"guarantee": None}, file.arrays)
    with pytest.raises(ModelFileError, match="not a sound"):
        structsvm.load(path)
