"""The package of sklearn-crfsuite: its estimator and metrics."""

import copy
import gc
import importlib
import os
import pickle
import sys
import tempfile
import types
from pathlib import Path

import numpy as np
import pytest
from attribute_sequences import sequences
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score

from structsvm.interop import pycrfsuite, sklearn_crfsuite
from structsvm.interop.sklearn_crfsuite import CRF, metrics, scorers

X, Y = sequences()


def test_estimator(tmp_path):
    crf = CRF("lbfgs", c1=0.1, c2=0.1, max_iterations=40)
    names = [
        "tagger_",
        "size_",
        "classes_",
        "num_attributes_",
        "attributes_",
        "state_features_",
        "transition_features_",
        "training_log_",
    ]
    assert [getattr(crf, name) for name in names] == [None] * 8
    with pytest.raises(NotFittedError, match="not fitted yet: call fit"):
        crf.predict(X)
    assert crf.fit(X, Y) is crf
    assert crf.score(X, Y) > 0.85
    assert sorted(crf.classes_) == ["A", "B", "C"]
    assert crf.size_ == len(crf._data)
    assert crf.num_attributes_ == len(crf.attributes_)
    assert {name for name, _ in crf.state_features_} == set(crf.attributes_)
    assert all(isinstance(weight, float) for weight in crf.transition_features_.values())
    assert crf.predict_single(X[0]) == crf.predict(X[:1])[0]
    assert type(crf.predict(X)) is type(crf.predict_marginals(X)) is list
    firsts = [x[:1] for x in X]
    predicted = crf.predict(firsts)
    assert np.mean(np.array(predicted) == np.array(copy.deepcopy(predicted))) == 1.0
    (marginals,) = crf.predict_marginals(X[:1])
    assert len(marginals) == len(X[0])
    for t, row in enumerate(marginals):
        assert sum(row.values()) == pytest.approx(1.0)
        assert row == {label: crf.tagger_.marginal(label, t) for label in crf.classes_}
    assert len(crf.training_log_.iterations) == 40
    for other in (pickle.loads(pickle.dumps(crf)), clone(crf).fit(X, Y)):
        assert other.predict(X) == crf.predict(X)
        assert other.state_features_ == crf.state_features_


def test_a_model_file(tmp_path):
    path = tmp_path / "m.crfsuite"
    crf = CRF(model_filename=str(path)).fit(X, Y)
    assert CRF(model_filename=str(path)).predict(X) == crf.predict(X)
    assert crf.size_ == path.stat().st_size
    tagger = pycrfsuite.Tagger()
    tagger.open(path)
    assert tagger.tag(X[0]) == crf.predict_single(X[0])


def test_development_sequences():
    crf = CRF(max_iterations=5).fit(X[:40], Y[:40], X[40:], Y[40:])
    assert crf.training_log_.last_iteration["item_accuracy_float"] == pytest.approx(crf.score(X[40:], Y[40:]))
    assert crf.state_features_ == CRF(max_iterations=5).fit(X[:40], Y[:40]).state_features_
    arrays = [np.array([*sequences, None], dtype=object)[:-1] for sequences in (X[40:], Y[40:])]
    assert CRF(max_iterations=5).fit(X[:40], Y[:40], *arrays).training_log_.last_iteration["item_accuracy_float"] > 0.5


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((X, Y, X), "X_dev and y_dev belong together"),
        (([], []), "^X has no sequences"),
        ((X, Y, [], []), "^X_dev has no sequences"),
        ((X[:3], Y), "^X has 3 sequences, and y has more"),
        ((X, iter(Y[:3])), "^y has 3 sequences, and X has more"),
        ((X, Y, X, Y[:0]), "^y_dev has 0 sequences, and X_dev has more"),
    ],
)
def test_refused_sequences(given, message):
    with pytest.raises(ValueError, match=message):
        CRF().fit(*given)


def test_searches_and_parameters():
    crf = CRF(max_iterations=5, all_possible_states=True)
    assert next(iter(crf.get_params())) == "algorithm"
    assert cross_val_score(crf, X, Y, cv=3).mean() > 0.6
    predicted = cross_val_predict(crf, [x[:1] for x in X], [y[:1] for y in Y], cv=3)
    assert predicted.shape == (len(X), 1)
    assert set(predicted.flat) <= {"A", "B", "C"}
    search = GridSearchCV(crf, {"c1": [0.0, 1.0]}, cv=2).fit(X, Y)
    assert set(search.best_params_) == {"c1"}
    names = {"min_freq": 3, "pa_type": 0, "calibration_eta": 0.2}
    for name, algorithm, there in (
        ("min_freq", "lbfgs", "feature.minfreq"),
        ("pa_type", "pa", "type"),
        ("calibration_eta", "l2sgd", "calibration.eta"),
    ):
        taken = []

        class Recording(pycrfsuite.Trainer):
            def __init__(self, *, algorithm, params, verbose):
                super().__init__(algorithm, params, verbose)

            def train(self, model, holdout=-1):
                taken.append(self.get_params())  # noqa: B023
                self.select("lbfgs")
                self.set("max_iterations", 1)
                super().train(model, holdout)

        crf = CRF(algorithm, trainer_cls=Recording, **{name: names[name]}).fit(X, Y)
        assert taken[0][there] == names[name]
        assert len(crf.training_log_.iterations) == 1


def test_metrics():
    y, z = [["x", "z", "y"], ["x", "x"]], [["y", "z", "y"], ["x", "y"]]
    assert metrics.flat_accuracy_score(y, z) == 3 / 5
    assert metrics.flat_precision_score(y, z, average="micro") == 3 / 5
    assert metrics.flat_recall_score(y, z, average="micro") == 3 / 5
    assert metrics.flat_f1_score(y, z, average="macro") == pytest.approx(2 / 3)
    assert metrics.flat_fbeta_score(y, z, beta=1, average="macro") == pytest.approx(2 / 3)
    assert "precision" in metrics.flat_classification_report(y, z, digits=3)
    report = metrics.flat_classification_report(y, z, ["x", "y"], target_names=["a", "b"], output_dict=True)
    assert report["b"]["recall"] == 1.0
    assert metrics.flat_precision_score([["x", "y"]], [["x", "x"]], pos_label="x") == 0.5
    assert metrics.flat_f1_score(iter(y), iter(z)) == metrics.flat_f1_score(y, z)
    with pytest.raises(ValueError, match="sequence 0: y_true has 1 labels, y_pred 2"):
        metrics.flat_f1_score([["x"], ["x", "y"]], [["x", "x"], ["y"]])
    assert metrics.sequence_accuracy_score(y, z) == 0
    assert metrics.sequence_accuracy_score([], []) == 0
    assert metrics.sequence_accuracy_score([[1, 2], [3], [4]], [[1, 2], [4], [4]]) == 2 / 3


@pytest.fixture
def swapped(monkeypatch):
    """The packages under their own names, with what a program imports of them."""
    for name, package in (("sklearn_crfsuite", sklearn_crfsuite), ("pycrfsuite", pycrfsuite)):
        for key in [key for key in sys.modules if key.partition(".")[0] == name]:
            monkeypatch.delitem(sys.modules, key)
        monkeypatch.setitem(sys.modules, name, package)
    before = set(sys.modules)
    yield
    for key in set(sys.modules) - before:
        if key.partition(".")[0] in ("sklearn_crfsuite", "pycrfsuite"):
            del sys.modules[key]


def test_a_program_s_imports(swapped):
    names = {}
    exec(
        "import pycrfsuite, sklearn_crfsuite, sklearn_crfsuite.metrics\n"
        "from sklearn_crfsuite import CRF, metrics, scorers\n"
        "from sklearn_crfsuite.estimator import CRF as same\n"
        "from sklearn_crfsuite.trainer import LinePerIterationTrainer\n"
        "from sklearn_crfsuite.utils import flatten\n"
        "from pycrfsuite._logparser import TrainLogParser\n",
        names,
    )
    assert names["CRF"] is names["same"] is CRF
    assert names["metrics"].flat_f1_score(Y, Y) == 1.0
    assert names["pycrfsuite"].Tagger is pycrfsuite.Tagger
    assert names["flatten"]([[1], [2, 3]]) == [1, 2, 3]


def test_scorers():
    crf = CRF(max_iterations=5).fit(X, Y)
    assert scorers.flat_accuracy(crf, X, Y) == crf.score(X, Y)
    assert scorers.sequence_accuracy(crf, X, Y) == metrics.sequence_accuracy_score(Y, crf.predict(X))


def test_a_line_per_iteration(capsys):
    CRF(max_iterations=2, verbose=True).fit(X[:40], Y[:40], X[40:], Y[40:])
    lines = capsys.readouterr().out.splitlines()
    assert [line[:6] for line in lines if line.startswith("Iter")] == ["Iter 1", "Iter 2"]
    assert any(line.startswith("Label  Precision") for line in lines)
    assert [line[0] for line in lines if line[:1] in "ABC" and line[1:2] == " "] == ["A", "B", "C"]


def test_the_model_s_file(tmp_path):
    crf = CRF(max_iterations=5)
    assert crf.modelfile.name is None
    name = crf.fit(X, Y).modelfile.name
    assert crf.modelfile.name == name
    tagger = pycrfsuite.Tagger()
    tagger.open(name)
    assert tagger.tag(X[0]) == crf.predict_single(X[0])
    for other in (pickle.loads(pickle.dumps(crf)), copy.deepcopy(crf)):
        assert other.modelfile.name != name
        assert other.predict(X) == crf.predict(X)
    assert pickle.loads(pickle.dumps(crf.modelfile)).data == Path(name).read_bytes()
    del crf
    gc.collect()
    assert not os.path.exists(name)
    path = str(tmp_path / "m")
    assert CRF(model_filename=path).modelfile.name == path


def test_the_model_s_file_is_of_the_model(tmp_path):
    path = str(tmp_path / "m")
    crf = CRF(max_iterations=5, model_filename=path).fit(X, Y)
    old = pickle.loads(pickle.dumps(crf))
    assert old.modelfile.name == crf.modelfile.name == path
    crf.set_params(c2=100.0).fit(X, Y)
    assert crf.modelfile.name == path
    assert old.modelfile.name == old.modelfile.name != path
    assert Path(old.modelfile.name).read_bytes() == old._data != crf._data
    os.remove(path)
    assert Path(crf.modelfile.name).read_bytes() == crf._data


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is full")
def test_a_full_disk_leaves_no_file(tmp_path, monkeypatch):
    file = CRF(max_iterations=1).fit(X, Y).modelfile
    path = tmp_path / "temporary"
    path.touch()
    monkeypatch.setattr(tempfile, "mkstemp", lambda *names: (os.open("/dev/full", os.O_WRONLY), str(path)))
    with pytest.raises(OSError, match="space"):
        file.name  # noqa: B018
    assert not path.exists()
    monkeypatch.undo()
    assert Path(file.name).read_bytes() == file.data


class WithMore(CRF):
    """Subclass with a parameter of its own."""

    def __init__(self, n=1, c1=None, max_iterations=None):
        super().__init__(c1=c1, max_iterations=max_iterations)
        self.n = n


def test_subclasses():
    crf = WithMore(2, c1=0.1, max_iterations=5).fit(X, Y)
    assert crf.get_params() == {"n": 2, "c1": 0.1, "max_iterations": 5}
    assert crf.predict(X) == CRF(c1=0.1, max_iterations=5).fit(X, Y).predict(X)
    assert clone(crf).n == pickle.loads(pickle.dumps(crf)).n == 2


def theirs(crf, without=(), **changed):
    """The pickle of sklearn-crfsuite's estimator, with what its attributes are there."""
    kinds = {"CRF": "sklearn_crfsuite.estimator", "FileResource": "sklearn_crfsuite._fileresource"}
    modules = {name: types.ModuleType(name) for name in kinds.values()}
    made = {}
    for name, place in kinds.items():
        kind = type(name, (), {"__module__": place})
        setattr(modules[place], name, kind)
        made[name] = kind()
    # The file's descriptor and name are those of another process.
    file = {"name": None, "auto": True, "keep_tempfiles": False, "suffix": ".crfsuite", "prefix": "model", "fd": 7}
    made["FileResource"].__dict__.update(file | {"__FILE_RESOURCE_DATA__": crf._data} | changed.pop("file", {}))
    state = crf.get_params() | {"modelfile": made["FileResource"], "training_log_": None, "_tagger": None}
    made["CRF"].__dict__.update(state | {"_info_cached": None} | changed)
    for name in without:
        del made["CRF"].__dict__[name]
    sys.modules.update(modules)
    data = pickle.dumps(made["CRF"])
    for name in modules:
        del sys.modules[name]
    return data


def test_pickles_of_the_original(swapped, tmp_path):
    crf = CRF(c1=0.1, max_iterations=5).fit(X, Y)
    log = importlib.import_module("pycrfsuite._logparser").TrainLogParser()
    del log.__dict__["events"]
    other = pickle.loads(theirs(crf, training_log_=log))
    assert type(other) is CRF
    assert other.get_params() == crf.get_params()
    assert other.predict(X) == crf.predict(X)
    assert other.modelfile.name != crf.modelfile.name
    assert other.training_log_.event is None
    assert clone(other).fit(X, Y).predict(X) == crf.predict(X)
    assert pickle.loads(pickle.dumps(other)).predict(X) == crf.predict(X)
    path = str(tmp_path / "m")
    Path(path).write_bytes(crf._data)
    file = {"name": path, "auto": False, "__FILE_RESOURCE_DATA__": None}
    data = theirs(crf, model_filename=path, file=file)
    assert pickle.loads(data).predict(X) == crf.predict(X)
    # Older versions have two parameters in the file alone. A subclass may have set more.
    file["keep_tempfiles"] = True
    old = pickle.loads(theirs(crf, ("model_filename", "keep_tempfiles"), file=file, tagset=["A"]))
    assert old.predict(X) == crf.predict(X)
    assert old.get_params() == crf.get_params() | {"model_filename": path, "keep_tempfiles": True}
    assert old.tagset == ["A"]
    assert old.modelfile.name == path
    assert not hasattr(old, "_info_cached")
    fresh = pickle.loads(theirs(crf, file={"__FILE_RESOURCE_DATA__": None}))
    with pytest.raises(NotFittedError):
        fresh.predict(X)
