"""The package of sklearn-crfsuite: its estimator and metrics."""

import pickle
import sys

import pytest
from attribute_sequences import sequences
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score

from structsvm.interop import pycrfsuite, sklearn_crfsuite
from structsvm.interop.sklearn_crfsuite import CRF, metrics

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
    ]
    assert [getattr(crf, name) for name in names] == [None] * 7
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
    with pytest.raises(ValueError, match="X_dev and y_dev belong together"):
        CRF().fit(X, Y, X)


def test_searches_and_parameters():
    crf = CRF(max_iterations=5, all_possible_states=True)
    assert next(iter(crf.get_params())) == "algorithm"
    assert cross_val_score(crf, X, Y, cv=3).mean() > 0.6
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
            def train_bytes(self, holdout=-1):
                taken.append(self.get_params())  # noqa: B023
                return b""

        CRF(algorithm, trainer_cls=Recording, **{name: names[name]}).fit(X, Y)
        assert taken[0][there] == names[name]


def test_metrics():
    y, z = [["x", "z", "y"], ["x", "x"]], [["y", "z", "y"], ["x", "y"]]
    assert metrics.flat_accuracy_score(y, z) == 3 / 5
    assert metrics.flat_precision_score(y, z, average="micro") == 3 / 5
    assert metrics.flat_recall_score(y, z, average="micro") == 3 / 5
    assert metrics.flat_f1_score(y, z, average="macro") == pytest.approx(2 / 3)
    assert metrics.flat_fbeta_score(y, z, beta=1, average="macro") == pytest.approx(2 / 3)
    assert "precision" in metrics.flat_classification_report(y, z, digits=3)
    assert metrics.sequence_accuracy_score(y, z) == 0
    assert metrics.sequence_accuracy_score([], []) == 0
    assert metrics.sequence_accuracy_score([[1, 2], [3], [4]], [[1, 2], [4], [4]]) == 2 / 3


def test_a_program_s_imports(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn_crfsuite", sklearn_crfsuite)
    monkeypatch.setitem(sys.modules, "sklearn_crfsuite.metrics", metrics)
    monkeypatch.setitem(sys.modules, "pycrfsuite", pycrfsuite)
    names = {}
    exec("import pycrfsuite, sklearn_crfsuite\nfrom sklearn_crfsuite import CRF, metrics", names)
    assert names["CRF"] is CRF
    assert names["metrics"] is metrics
    assert names["pycrfsuite"].Tagger is pycrfsuite.Tagger
