"""Batches of a stream: trained on the weights that they touch, in place, at a cost of their own size."""

import copy
import tracemalloc

import numpy as np
import pytest

import structsvm
from structsvm.datasets import make_sequences
from structsvm.features.columns import Columns
from structsvm.solvers import LaRank
from structsvm.solvers.run import DualRun
from structsvm.tasks import SequenceLabeler, TokenFeatures
from structsvm.tasks.common.likelihood import StructureCalibration
from structsvm.tasks.common.training import Job, start
from structsvm.tasks.sequence.examples import LabeledSequences

rng = np.random.default_rng(0)
LABELS = ["A", "B", "C", "D"]
TEMPLATES = "U0:%x[0,0]\nU1:%x[-1,0]/%x[0,0]\nB0:%x[0,1]\nB\n"


def batch(n, words=400):
    X = [[(f"w{rng.integers(words)}", f"t{rng.integers(3)}") for _ in range(rng.integers(1, 9))] for _ in range(n)]
    return X, [[LABELS[int(word[1:]) % 4] for word, _ in sequence] for sequence in X]


BATCHES = [batch(6) for _ in range(3)]

CASES = {
    "attributes": {},
    "hashed": {"features": TokenFeatures(hash_bits=12)},
    "order 2": {"order": 2, "features": TokenFeatures(end=True)},
    "greedy": {"inference": "greedy"},
    "bigrams of templates": {"templates": TEMPLATES},
    "hashed templates": {"templates": TEMPLATES, "features": TokenFeatures(hash_bits=8)},
    "log loss": {"loss": "log", "C": 1.0},
    "perceptron": {"solver": "perceptron"},
    "masks": {
        "broken": "predict",
        "constraints": (np.ones((4, 4), bool), np.ones(4, bool), np.array([True, True, True, False])),
    },
    "several passes of an average": {"solver": LaRank(C=0.3, average=True, random_state=0)},
}


def inputs(X, params):
    return Columns.from_sequences(X, "X") if "templates" in params else [[list(token) for token in seq] for seq in X]


def stream(params):
    seed = {} if isinstance(params.get("solver"), LaRank) else {"random_state": 0}
    model = SequenceLabeler(**seed | {"loss": "hamming"} | params)
    for X, y in BATCHES:
        model.partial_fit(inputs(X, params), y, classes=LABELS)
    return model


@pytest.mark.parametrize("case", CASES)
def test_weights_are_those_of_training_on_all_of_them(case, monkeypatch):
    part = stream(CASES[case])
    monkeypatch.setattr(structsvm.tasks.sequence.model.SequenceModel, "narrows", False)
    whole = stream(CASES[case])
    np.testing.assert_array_equal(part.model_.weights, whole.model_.weights)
    assert part.model_.weights.any()
    for name in ("primal", "dual", "n_argmax", "n_support"):
        assert getattr(part.result_, name) == pytest.approx(getattr(whole.result_, name), rel=1e-9, nan_ok=True)
    assert part.temperature_ == pytest.approx(whole.temperature_)
    X, _ = BATCHES[0]
    assert part.predict(inputs(X, CASES[case])) == whole.predict(inputs(X, CASES[case]))


def test_a_batch_allocates_what_it_needs():
    model = SequenceLabeler(0.1, loss="hamming", features=TokenFeatures(hash_bits=20), random_state=0)
    (X, y), *others = (batch(1) for _ in range(5))
    model.partial_fit(inputs(X, {}), y, classes=LABELS)
    weights = model.model_.weights
    assert weights.nbytes > 8 * 2**22
    tracemalloc.start()
    for X, y in others:
        model.partial_fit(inputs(X, {}), y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**20
    assert model.model_.weights is weights  # in place


def test_only_touched_weights_change():
    model = SequenceLabeler(0.1, loss="hamming", features=TokenFeatures(hash_bits=12), random_state=0)
    model.partial_fit(*BATCHES[0], classes=LABELS)
    before = model.emission_.copy()
    model.partial_fit([[["one"], ["two"]]], [["D", "C"]])
    changed = np.flatnonzero((model.emission_ != before).any(axis=1))
    assert 0 < len(changed) <= 2


def test_a_mapped_file_stays_as_it_was(tmp_path):
    model = stream(CASES["hashed"])
    model.save(tmp_path / "m")
    mapped = structsvm.load(tmp_path / "m", mmap=True)
    mapped.partial_fit(*BATCHES[1])
    assert not np.array_equal(mapped.model_.weights, model.model_.weights)
    np.testing.assert_array_equal(structsvm.load(tmp_path / "m").model_.weights, model.model_.weights)


def test_a_batch_that_fails_changes_nothing(monkeypatch):
    model = stream({"features": TokenFeatures(hash_bits=12)})
    before = copy.deepcopy(vars(model.model_))
    monkeypatch.setattr(structsvm.tasks.sequence.model.SequenceModel, "finish", lambda *args: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        model.partial_fit(*BATCHES[0])
    np.testing.assert_array_equal(model.model_.weights, before["weights"])
    assert model.model_.result.primal == before["result"].primal


def test_callbacks_see_all_weights():
    model = stream({"features": TokenFeatures(hash_bits=12)})
    tokens = model.model_.encode([[["w1"]]])
    examples = LabeledSequences(tokens, np.zeros(1, np.int32), np.zeros((0, len(model.classes_)), dtype=bool))
    job = Job(model.model_, examples, LaRank(), passes=1)
    start(job)

    class Run:
        weights = np.arange(len(job.rows) * job.learner.oracle.stride, dtype=np.float32)
        problem = job.problem

    seen = job.snapshot(Run)
    assert seen.weights.shape == model.model_.weights.shape
    np.testing.assert_array_equal(seen.weights.reshape(-1, 8)[job.rows].ravel(), Run.weights)
    assert model.model_.weights is not seen.weights


def test_scores_that_have_grown_are_no_contradiction():
    """With one sentence that is nearly solved, objectives are smaller than the rounding of its scores."""
    X, y = make_sequences(2000, random_state=0)
    X = [[{"w": word, "t": tag} for word, tag in tokens] for tokens in X]
    stream = SequenceLabeler(features=TokenFeatures(hash_bits=8), loss="log", random_state=0)
    for i in range(500):
        stream.partial_fit(X[i : i + 1], y[i : i + 1], classes=sorted(set().union(*y)))
        assert stream.result_.gap > -1e-3


@pytest.mark.parametrize("when", ["training", "calibration"])
def test_ctrl_c_in_a_batch_keeps_the_temperature(when, monkeypatch):
    X, y = make_sequences(200, random_state=0)
    stream = SequenceLabeler(features=TokenFeatures(hash_bits=12), random_state=0).partial_fit(X, y)
    before = stream.temperature_

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    if when == "training":
        monkeypatch.setattr(DualRun, "advance", interrupted)
    else:
        monkeypatch.setattr(StructureCalibration, "temperature", interrupted)
    with pytest.raises(KeyboardInterrupt):
        stream.partial_fit(X, y)
    assert (stream.result_.status == "interrupted") == (when == "training")
    assert stream.temperature_ == before > 0.0
    assert stream.predict_marginals(X[:1])[0].shape == (len(X[0]), len(stream.classes_))
